/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cachedir.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The XDG specification: a path that is not absolute is as good as none. */
static const char *env_directory(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

struct err *cachedir_path(struct buf *path)
{
	const char *cache = env_directory("XDG_CACHE_HOME"), *home = env_directory("HOME");

	if (cache)
		buf_printf(path, "%s/culprit", cache);
	else if (home)
		buf_printf(path, "%s/.cache/culprit", home);
	else
		return err_new("no place for a cache: neither XDG_CACHE_HOME nor HOME is set");
	return path->failed ? err_new("no memory for the path of the cache") : NULL;
}

/* Creates the directory and its missing parents; `path` is changed and put back. */
static struct err *create_all(char *path)
{
	char *slash = path;

	for (;;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		if (mkdir(path, 0700) && errno != EEXIST) {
			struct err *e = err_errno("cannot create directory '%s'", path);

			if (slash)
				*slash = '/';
			return e;
		}
		if (!slash)
			return NULL;
		*slash = '/';
	}
}

static struct err *check_own(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return err_errno("cache '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return err_new("cache '%s': not a directory", path);
	if (st.st_uid != geteuid())
		return err_new("cache '%s': belongs to another user", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_new("cache '%s': others may write to it (chmod go-w it)", path);
	return NULL;
}

struct err *cachedir_create(const char *name, struct buf *path)
{
	struct err *e;

	buf_clear(path);
	e = cachedir_path(path);
	if (!e)
		e = create_all(path->data);
	if (!e)
		e = check_own(path->data);
	if (e || !name)
		return e;
	buf_printf(path, "/%s", name);
	if (path->failed)
		return err_new("no memory for the path of the cache");
	e = create_all(path->data);
	return e ? e : check_own(path->data);
}
