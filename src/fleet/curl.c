/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

static struct curl_library library;
static bool loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Debian and its kin have it with OpenSSL or with GnuTLS. */
static void *open_library(void)
{
	void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	return handle ? handle : dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
	const struct {
		const char *name;
		void *to; /* a pointer to a function */
	} wanted[] = {
		{"curl_global_init", &library.global_init},
		{"curl_easy_init", &library.easy_init},
		{"curl_easy_cleanup", &library.easy_cleanup},
		{"curl_easy_setopt", &library.easy_setopt},
		{"curl_easy_getinfo", &library.easy_getinfo},
		{"curl_easy_strerror", &library.easy_strerror},
		{"curl_slist_append", &library.slist_append},
		{"curl_slist_free_all", &library.slist_free_all},
		{"curl_multi_init", &library.multi_init},
		{"curl_multi_cleanup", &library.multi_cleanup},
		{"curl_multi_add_handle", &library.multi_add_handle},
		{"curl_multi_remove_handle", &library.multi_remove_handle},
		{"curl_multi_perform", &library.multi_perform},
		{"curl_multi_poll", &library.multi_poll},
		{"curl_multi_info_read", &library.multi_info_read},
	};
	void *handle = open_library();
	bool all = handle != NULL;
	for (size_t i = 0; all && i < sizeof wanted / sizeof *wanted; i++) {
		*(void **)wanted[i].to = dlsym(handle, wanted[i].name);
		all = *(void **)wanted[i].to;
	}
	loaded = all && !library.global_init(CURL_GLOBAL_DEFAULT);
}

struct err *curl_load(const struct curl_library **out)
{
	pthread_once(&once, load);
	*out = &library;
	return loaded ? NULL
		      : err_new("libcurl, which a server needs, cannot be loaded: apt install "
				"libcurl4");
}
