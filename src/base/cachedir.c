/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cachedir.h"

#include "base/buf.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define OURS "culprit"
#define SECRET "secret"

/* The XDG specification: a path that is not absolute is as good as none. */
static const char *env_directory(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] == '/' ? value : NULL;
}

/* The user's own place for caches of all programs. */
static struct err *base_path(struct buf *path)
{
	const char *cache = env_directory("XDG_CACHE_HOME"), *home = env_directory("HOME");
	if (cache)
		buf_puts(path, cache);
	else if (home)
		buf_printf(path, "%s/.cache", home);
	else
		return err_new("no place for a cache: neither XDG_CACHE_HOME nor HOME is set");
	return path->failed ? err_new("no memory for the path of the cache") : NULL;
}

struct err *cachedir_path(struct buf *path)
{
	struct err *e = base_path(path);
	buf_puts(path, "/" OURS);
	return e || !path->failed ? e : err_new("no memory for the path of the cache");
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

static struct err *open_base(struct buf *path, int *out)
{
	struct err *e = base_path(path);
	if (e)
		return e;
	*out = open(path->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*out < 0 && errno == ENOENT) {
		e = create_all(path->data);
		*out = e ? -1 : open(path->data, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	return e || *out >= 0 ? e : err_errno("cache '%s'", path->data);
}

static struct err *check_own(int directory, const char *path)
{
	struct stat st;
	if (fstat(directory, &st))
		return err_errno("cache '%s'", path);
	if (st.st_uid != geteuid())
		return err_new("cache '%s': belongs to another user", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_new("cache '%s': others may write to it (chmod go-w it)", path);
	return NULL;
}

static int open_below(int directory, const char *name)
{
	return openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* *directory becomes the one with that name in it, and `path` its path. */
static struct err *step_into(int *directory, const char *name, struct buf *path)
{
	int next;
	buf_printf(path, "/%s", name);
	if (path->failed)
		return err_new("no memory for the path of the cache");
	next = open_below(*directory, name);
	if (next < 0 && errno == ENOENT) {
		if (mkdirat(*directory, name, 0700) && errno != EEXIST)
			return err_errno("cannot create directory '%s'", path->data);
		next = open_below(*directory, name);
	}
	if (next < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_new("cache '%s': not a directory (a link to one is not followed)",
			       path->data);
	if (next < 0)
		return err_errno("cache '%s'", path->data);
	close(*directory);
	*directory = next;
	return check_own(next, path->data);
}

struct err *cachedir_open(const char *name, int *out)
{
	struct buf path = {0};
	struct err *e;
	*out = -1;
	e = open_base(&path, out);
	if (!e)
		e = step_into(out, OURS, &path);
	if (!e && name)
		e = step_into(out, name, &path);
	if (e && *out >= 0) {
		close(*out);
		*out = -1;
	}
	buf_free(&path);
	return e;
}

/* ---- files ---- */

int cachedir_read(int directory, const char *name)
{
	struct stat st;
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return -1;
	}
	return fd;
}

int cachedir_write(int directory, const char *name, struct buf *temporary)
{
	buf_clear(temporary);
	buf_printf(temporary, "%s.%d.tmp", name, (int)getpid());
	if (temporary->failed)
		return -1;
	return openat(directory, temporary->data,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void cachedir_keep(int directory, const char *name, const struct buf *temporary, int fd, bool whole)
{
	if (close(fd) || !whole || renameat(directory, temporary->data, directory, name))
		unlinkat(directory, temporary->data, 0);
}

/* ---- the secret ---- */

static bool read_secret(int directory, uint8_t out[CACHEDIR_SECRET])
{
	struct stat st;
	int fd = cachedir_read(directory, SECRET);
	bool good = fd >= 0 && !fstat(fd, &st) && !(st.st_mode & 077) &&
		    st.st_size == CACHEDIR_SECRET &&
		    pread(fd, out, CACHEDIR_SECRET, 0) == CACHEDIR_SECRET;
	if (fd >= 0)
		close(fd);
	return good;
}

/* Whoever comes first makes it: what is there is never replaced, since others use it already. */
static void make_secret(int directory)
{
	uint8_t bytes[CACHEDIR_SECRET];
	struct buf temporary = {0};
	int fd = -1;
	if (getrandom(bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes)
		fd = cachedir_write(directory, SECRET, &temporary);
	if (fd >= 0) {
		bool whole = write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
		if (!close(fd) && whole &&
		    linkat(directory, temporary.data, directory, SECRET, 0) && errno != EEXIST)
			/* a file system without links */
			renameat2(directory, temporary.data, directory, SECRET, RENAME_NOREPLACE);
		unlinkat(directory, temporary.data, 0);
	}
	buf_free(&temporary);
}

bool cachedir_secret(uint8_t out[CACHEDIR_SECRET])
{
	static pthread_mutex_t lock =
		PTHREAD_MUTEX_INITIALIZER; /* threads write to the same name */
	int directory;
	bool good;
	err_free(cachedir_open(NULL, &directory));
	if (directory < 0)
		return false;
	pthread_mutex_lock(&lock);
	good = read_secret(directory, out);
	if (!good) {
		make_secret(directory);
		good = read_secret(directory, out);
	}
	pthread_mutex_unlock(&lock);
	close(directory);
	return good;
}
