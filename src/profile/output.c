/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/output.h"

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct err *check_directory(const char *path, struct stat *info)
{
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) : 1;
	char directory[PATH_MAX];
	snprintf(directory, sizeof directory, "%.*s", length ? length : 1, slash ? path : ".");
	if (stat(directory, info))
		return err_errno("%s", directory);
	if (!S_ISDIR(info->st_mode))
		return err_new("%s is not a directory", directory);
	if (access(directory, W_OK | X_OK))
		return err_errno("cannot write to the directory %s", directory);
	return NULL;
}

/* Permissions do not tell all: read-only and virtual file systems, quotas. */
static struct err *try_to_create(const char *path)
{
	char name[PATH_MAX];
	int fd;
	snprintf(name, sizeof name, "%s.try-%d", path, (int)getpid());
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno("cannot create a file there");
	close(fd);
	unlink(name);
	return NULL;
}

/* Whether a sticky directory keeps us from moving somebody else's file. */
static bool is_kept(const struct stat *directory, const struct stat *file)
{
	uid_t user = geteuid();
	return directory->st_mode & S_ISVTX && user && user != file->st_uid &&
	       user != directory->st_uid;
}

static struct err *check(const struct output *o)
{
	struct stat directory, file;
	struct err *e = check_directory(o->path, &directory);
	if (e)
		return e;
	if (!stat(o->old, &file) && S_ISDIR(file.st_mode))
		return err_new("%s, which an existing profile becomes, is a directory", o->old);
	if (stat(o->path, &file))
		return errno == ENOENT ? try_to_create(o->path) : err_errno("%s", o->path);
	if (S_ISDIR(file.st_mode))
		return err_new("it is a directory: -o names a file");
	if (!S_ISREG(file.st_mode))
		return err_new("it is not a regular file");
	if (is_kept(&directory, &file))
		return err_new("it belongs to another user and cannot be replaced");
	return try_to_create(o->path);
}

struct err *output_open(struct output *o, const char *path)
{
	char *real = realpath(path, NULL); /* behind a link is what is written */
	struct buf old = {0};
	struct err *e;
	*o = (struct output){.path = real ? real : strdup(path)};
	if (o->path)
		buf_printf(&old, "%s.old", o->path);
	o->old = buf_take(&old);
	if (!o->path || !o->old)
		return err_new("out of memory");
	if (strlen(o->old) + 16 > PATH_MAX)
		return err_new("the output's path is too long");
	e = check(o);
	return err_context(e, "output %s", path);
}

void output_close(struct output *o)
{
	free(o->path);
	free(o->old);
	*o = (struct output){0};
}

struct err *output_save(struct output *o, const struct profile *profile)
{
	bool moved = false;
	struct err *e;
	if (!o->written) {
		moved = !rename(o->path, o->old);
		if (!moved && errno != ENOENT)
			return err_errno("cannot rename %s to %s", o->path, o->old);
	}
	e = profile_write(profile, o->path);
	if (!e)
		o->written = true;
	else if (moved && rename(o->old, o->path))
		return err_context(e, "what was in %s is now %s", o->path, o->old);
	return e;
}

struct err *output_save_last(struct output *o, const struct profile *profile)
{
	const char *temporary = getenv("TMPDIR");
	struct err *e = output_save(o, profile), *again;
	char path[PATH_MAX];
	if (!e)
		return NULL;
	snprintf(path, sizeof path, "%s/culprit-%d.prof",
		 temporary && *temporary ? temporary : "/tmp", (int)getpid());
	again = profile_write(profile, path);
	if (!again)
		return err_context(e, "the profile is in %s instead", path);
	err_free(again);
	return err_context(e, "the profile is lost: there is no room in %s either", path);
}

uint64_t output_size(const struct output *o)
{
	struct stat info;
	return stat(o->path, &info) ? 0 : (uint64_t)info.st_size;
}
