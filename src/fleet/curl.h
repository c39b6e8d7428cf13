/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * libcurl, loaded when a server is asked for the first time. It brings some twenty libraries along, which no command
 * but those for fleets needs: linked, it would make each start of the program several milliseconds slower, and the
 * program is started again for each unwind table that a daemon makes.
 */
#include <curl/curl.h>

struct err;

struct curl_library {
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	void (*easy_cleanup)(CURL *easy);
	CURLcode (*easy_setopt)(CURL *easy, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *easy, CURLINFO info, ...);
	const char *(*easy_strerror)(CURLcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	CURLM *(*multi_init)(void);
	CURLMcode (*multi_cleanup)(CURLM *multi);
	CURLMcode (*multi_add_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_remove_handle)(CURLM *multi, CURL *easy);
	CURLMcode (*multi_perform)(CURLM *multi, int *running);
	CURLMcode (*multi_poll)(CURLM *multi, struct curl_waitfd *extra, unsigned count, int ms,
				int *ready);
	CURLMsg *(*multi_info_read)(CURLM *multi, int *left);
};

/* Stays until the end of the process. */
struct err *curl_load(const struct curl_library **out);
