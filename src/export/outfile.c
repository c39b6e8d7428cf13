/* SPDX-License-Identifier: Apache-2.0 */
#include "export/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file_limit.h"
#include "base/newfile.h"

#define BUFFER (1u << 20)

static struct err *open_beside(struct outfile *o, const char *path, int *fd)
{
	char *real = realpath(path, NULL); /* the file, not a link to it, is replaced */
	o->path = real ? real : strdup(path);
	if (!o->path || asprintf(&o->temporary, "%s.tmp-%d", o->path, (int)getpid()) < 0) {
		o->temporary = NULL;
		return err_new("out of memory");
	}
	*fd = newfile_create(o->temporary, o->path);
	if (*fd >= 0)
		return NULL;
	struct err *e = err_errno("%s: cannot create it", path);
	free(o->temporary);
	o->temporary = NULL;
	return e;
}

static struct err *open_path(struct outfile *o, const char *path)
{
	struct stat st;
	int fd = -1;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return err_new("%s is a directory: -o names a file", path);
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (fd < 0)
			return err_errno("%s: cannot open", path);
	} else {
		struct err *e = open_beside(o, path, &fd);
		if (e)
			return e;
	}
	o->file = fdopen(fd, "w");
	if (o->file)
		return NULL;
	close(fd);
	return err_new("out of memory");
}

struct err *outfile_open(struct outfile *o, const char *path)
{
	*o = (struct outfile){.file = path ? NULL : stdout};
	struct err *e = path ? open_path(o, path) : NULL;
	if (e)
		return outfile_close(o, e);
	setvbuf(o->file, NULL, _IOFBF, BUFFER);
	__fsetlocking(o->file, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	file_limit_ignore();
	return NULL;
}

/* Why something could not be written before: told by trying once more. */
static int find_error(FILE *file)
{
	clearerr(file);
	return fputc('\n', file) == EOF || fflush(file) ? errno : EIO;
}

/* 0, or the error. */
static int finish(struct outfile *o)
{
	int error = fflush(o->file) ? errno : ferror(o->file) ? find_error(o->file) : 0;
	if (o->file == stdout)
		return error;
	if (!error && o->temporary && fsync(fileno(o->file)) && errno != EINVAL && errno != EROFS)
		error = errno;
	if (fclose(o->file) && !error)
		error = errno;
	return error;
}

struct err *outfile_close(struct outfile *o, struct err *e)
{
	int error = o->file ? finish(o) : 0;
	const char *name = o->path ? o->path : "the output";
	errno = error;
	if (!e && error)
		e = err_errno("cannot write %s", name);
	if (!e && o->temporary && rename(o->temporary, o->path))
		e = err_errno("cannot put %s in its place", name);
	if (e && o->temporary)
		unlink(o->temporary);
	free(o->path);
	free(o->temporary);
	*o = (struct outfile){0};
	return e;
}
