/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/paths/left.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "harvest/process.h"
#include "inject/still.h"
#include "process/maps.h"
#include "process/status.h"
#include "safe/banks.h"

#define STAT_START 22 /* in /proc/PID/stat */
#define PATCHES_MAX (1u << 22)
#define UNTRACED_NS 2000000000ull

/* ---- which processes ---- */

/* Where the memory of banks begins in a process; inode 0: of any. 0: it has none, or cannot be looked at. */
static uint64_t find_banks(pid_t pid, uint64_t inode, uint64_t from, uint64_t *found)
{
	struct maps maps;
	struct err *e = maps_read(pid, &maps);
	uint64_t at = 0;
	if (e) {
		err_free(e);
		return 0;
	}
	for (size_t i = 0; i < maps.count && !at; i++) {
		const struct map *m = &maps.items[i];
		if (m->start > from && !m->offset && !strcmp(m->path, BANKS_FILE) &&
		    (!inode || m->inode == inode)) {
			at = m->start;
			*found = m->inode;
		}
	}
	maps_free(&maps);
	return at;
}

struct err *paths_left_each(uint64_t inode, struct err *(*each)(void *context, pid_t pid),
			    void *context)
{
	DIR *all = opendir("/proc");
	const struct dirent *entry;
	struct err *e = all ? NULL : err_errno("/proc cannot be read");
	uint64_t found;
	while (!e && (entry = readdir(all))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (isdigit((unsigned char)*entry->d_name) && find_banks(pid, inode, 0, &found))
			e = each(context, pid);
	}
	if (all)
		closedir(all);
	return e;
}

/* ---- restoring ---- */

static struct still_write *list(const struct banks_patch *patches, size_t count)
{
	struct still_write *out = calloc(count + 1, sizeof *out);
	for (size_t i = 0; out && i < count; i++) {
		struct still_write *w = &out[i];
		w->at = patches[i].at;
		w->known = w->length = (uint8_t)(patches[i].length <= BANKS_PATCH
							 ? patches[i].length
							 : 0);
		memcpy(w->expected, patches[i].jump, w->length);
		memcpy(w->bytes, patches[i].original, w->length);
	}
	return out;
}

static bool is_gone(pid_t pid)
{
	struct process_status s;
	return !process_status(process_task(pid), &s) || s.state == 'Z' || s.state == 'X';
}

struct err *paths_left_restore(pid_t pid, const struct banks_patch *patches, size_t count,
			       const struct still_also *also, struct still_report *report)
{
	struct still_write *writes = list(patches, count);
	struct err *e = writes ? still_write_and(pid, writes, count, also, report)
			       : err_new("out of memory");
	bool left = false;
	for (size_t i = 0; !e && i < count; i++)
		left |= writes[i].result == STILL_WAITS || writes[i].result == STILL_FAILED;
	free(writes);
	uint64_t inode;
	if ((e || left) && (is_gone(pid) || !find_banks(pid, 0, 0, &inode))) {
		err_free(e); /* it has ended, or is another program now */
		return NULL;
	}
	return left ? err_new("process %d: what counts its paths cannot be taken out now: a thread "
			      "sleeps in the kernel",
			      (int)pid)
		    : e;
}

/* ---- what was left ---- */

struct left {
	struct banks_patch *patches;
	struct still_report report;
	struct banks_header header; /* without its slots */
};

static bool read_memory(pid_t pid, uint64_t at, void *out, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process_task(pid));
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	bool good = memory >= 0 && pread(memory, out, size, (off_t)at) == (ssize_t)size;
	if (memory >= 0)
		close(memory);
	return good;
}

static bool read_left(pid_t pid, uint64_t at, struct left *out)
{
	const struct banks_header *h = &out->header;
	if (!read_memory(pid, at, &out->header, sizeof out->header) || h->magic != BANKS_MAGIC ||
	    h->patch_count > PATCHES_MAX)
		return false;
	out->patches = calloc(h->patch_count + 1u, sizeof *out->patches);
	return out->patches && read_memory(pid, at + h->patches_at, out->patches,
					   h->patch_count * sizeof *out->patches);
}

/* One that was killed may stay in the list of processes, if its parent does not ask for its end. */
static bool is_owner_alive(const struct banks_header *h)
{
	struct process_status s;
	int32_t owner = atomic_load(&h->owner);
	return owner > 0 && process_status(owner, &s) && s.state != 'Z' && s.state != 'X' &&
	       process_stat_field(owner, STAT_START) == (long)h->owner_start;
}

static struct err *restore(void *context, pid_t pid)
{
	struct left *left = context;
	return paths_left_restore(pid, left->patches, left->header.patch_count, NULL,
				  &left->report);
}

static struct err *say_over(pid_t pid, uint64_t at)
{
	char path[64];
	const uint32_t over = 1;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process_task(pid));
	int memory = open(path, O_RDWR | O_CLOEXEC);
	bool good = memory >= 0 &&
		    pwrite(memory, &over, sizeof over,
			   (off_t)(at + offsetof(struct banks_header, over))) == sizeof over;
	struct err *e = good ? NULL
			     : err_errno("process %d: its memory cannot be written", (int)pid);
	if (memory >= 0)
		close(memory);
	return e;
}

static struct err *clear(pid_t pid, uint64_t at, uint64_t inode, enum left_found *found)
{
	struct left left = {0};
	struct err *e = NULL;
	bool any = read_left(pid, at, &left) && !atomic_load(&left.header.over);
	if (any && is_owner_alive(&left.header)) {
		*found = LEFT_ALIVE;
	} else if (any) {
		e = paths_left_each(inode, restore, &left);
		if (!e)
			e = say_over(pid, at);
		if (!e && *found == LEFT_NOTHING)
			*found = LEFT_CLEARED;
	}
	free(left.patches);
	return e;
}

struct err *paths_left_clear(pid_t pid, enum left_found *found)
{
	struct err *e = NULL;
	uint64_t at = 0, inode;
	*found = LEFT_NOTHING;
	while (!e && (at = find_banks(pid, 0, at, &inode))) {
		/* A process of a collector that was killed may still be at it. */
		process_wait_untraced(pid, UNTRACED_NS);
		e = clear(pid, at, inode, found);
	}
	return e;
}
