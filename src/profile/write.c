/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is written beside its place and then renamed, so that whoever looks
 * sees the old one or the new one. What is no ordinary file (a pipe,
 * /dev/null) is written to as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_limit.h"
#include "base/newfile.h"
#include "profile/profile.h"

/* A pipe without a reader raises a signal that kills: it is held back here, so that the error code comes instead. */
struct held {
	sigset_t wanted, before;
};

static void signal_hold(struct held *h)
{
	file_limit_ignore();
	sigemptyset(&h->wanted);
	sigaddset(&h->wanted, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &h->wanted, &h->before);
}

static void signal_release(struct held *h, int error)
{
	const struct timespec now = {0};
	if (error == EPIPE && !sigismember(&h->before, SIGPIPE))
		sigtimedwait(&h->wanted, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

/* 0, or the error. */
static int write_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n == 0)
			return EIO;
		if (n > 0) {
			bytes += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int sync_file(int fd)
{
	int error;
	do
		error = fsync(fd) ? errno : 0;
	while (error == EINTR);
	return error == EINVAL || error == ENOSYS || error == EROFS ? 0 : error;
}

/* Closes `fd`. The error is about `path`. */
static struct err *fill(int fd, const struct buf *bytes, const char *path, bool ordinary)
{
	const char *what = "write";
	struct held held;
	int error;
	signal_hold(&held);
	error = write_all(fd, bytes->data, bytes->size);
	signal_release(&held, error);
	if (!error && ordinary) {
		error = sync_file(fd);
		what = "write to disk";
	}
	if (close(fd) && !error && errno != EINTR)
		error = errno;
	if (!error)
		return NULL;
	errno = error;
	return err_errno("%s: cannot %s", path, what);
}

static struct err *replace(const char *path, const struct buf *bytes)
{
	struct err *e;
	char *temporary;
	int fd;
	if (asprintf(&temporary, "%s.tmp-%d", path, (int)getpid()) < 0)
		return err_new("out of memory");
	fd = newfile_create(temporary, path);
	if (fd < 0) {
		e = err_errno("%s: cannot create", temporary);
		free(temporary);
		return e;
	}
	e = fill(fd, bytes, path, true);
	if (!e && rename(temporary, path))
		e = err_errno("%s: cannot rename '%s' to it", path, temporary);
	if (e)
		unlink(temporary);
	free(temporary);
	return e;
}

static struct err *write_through(const char *path, const struct buf *bytes)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_errno("%s: cannot open", path);
	return fill(fd, bytes, path, false);
}

struct err *profile_write(const struct profile *p, const char *path)
{
	struct buf bytes = {0};
	struct err *e = err_context(profile_pack(p, &bytes), "%s", path);
	char *target = NULL;
	struct stat st;
	if (!e && stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode)) {
			errno = EISDIR;
			e = err_errno("%s: cannot write", path);
		} else if (!S_ISREG(st.st_mode)) {
			e = write_through(path, &bytes);
			goto out;
		}
		target = realpath(path, NULL); /* the file, not a link to it, is replaced */
	}
	if (!e)
		e = replace(target ? target : path, &bytes);
out:
	free(target);
	buf_free(&bytes);
	return e;
}
