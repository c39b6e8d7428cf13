/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/aside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define TRIES 100

static bool choose_name(const char *path, char *name, size_t size)
{
	char when[32];
	time_t now = time(NULL);
	struct tm parts;
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
	for (int i = 0; i < TRIES; i++) {
		int length = snprintf(name, size, i ? "%s.damaged-%s-%d" : "%s.damaged-%s", path,
				      when, i);
		if (length < 0 || (size_t)length >= size)
			return false;
		if (access(name, F_OK) && errno == ENOENT)
			return true;
	}
	return false;
}

static int rename_beside(const char *path, const char *name, const char *suffix)
{
	struct buf from = {0}, to = {0};
	buf_printf(&from, "%s%s", path, suffix);
	buf_printf(&to, "%s%s", name, suffix);
	int failed = from.failed || to.failed || rename(buf_text(&from), buf_text(&to));
	buf_free(&from);
	buf_free(&to);
	return failed;
}

/* What is not merged into it yet goes first: with that gone a file is only older, while without its own
   file it would be taken for a part of the next one. */
struct err *aside_put(const char *path, char *name, size_t size)
{
	if (!choose_name(path, name, size))
		return err_new("%s: there is no other name for it", path);
	rename_beside(path, name, "-wal");
	rename_beside(path, name, "-shm");
	return rename_beside(path, name, "") ? err_errno("%s: cannot rename it", path) : NULL;
}
