/* SPDX-License-Identifier: Apache-2.0 */
#include "process/maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/err.h"
#include "process/status.h"

#define DELETED " (deleted)"

/* Parses a number in `base` that is followed by `after`, and moves *at behind both. */
static bool take_number(const char **at, int base, char after, uint64_t *out)
{
	char *end;
	if (!strchr("0123456789abcdefABCDEF", **at) || !**at)
		return false;
	errno = 0;
	*out = strtoull(*at, &end, base);
	if (errno || end == *at || *end != after)
		return false;
	*at = end + 1;
	return true;
}

static bool take_permissions(const char **at, struct map *map)
{
	const char *p = *at;
	if (strnlen(p, 5) < 5 || p[4] != ' ')
		return false;
	map->readable = p[0] == 'r';
	map->writable = p[1] == 'w';
	map->executable = p[2] == 'x';
	*at = p + 5;
	return true;
}

/* The kernel writes a newline in a path as \012. */
static void unescape(char *path)
{
	char *to = path;
	for (const char *from = path; *from; to++) {
		if (!strncmp(from, "\\012", 4)) {
			*to = '\n';
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool maps_is_deleted(const char *path, size_t *length)
{
	size_t suffix = sizeof(DELETED) - 1;
	*length = strlen(path);
	if (*length <= suffix || strcmp(path + *length - suffix, DELETED) != 0)
		return false;
	*length -= suffix;
	return true;
}

static void take_path(char *path, struct map *map)
{
	size_t length;
	path += strspn(path, " ");
	map->deleted = maps_is_deleted(path, &length);
	path[length] = '\0';
	unescape(path);
	map->path = path;
}

/* A line is: 7f0000000000-7f0000001000 r-xp 00001000 fd:01 1234    /path */
static bool take_line(char *line, struct map *map)
{
	const char *at = line;
	uint64_t major, minor;
	*map = (struct map){0};
	if (!take_number(&at, 16, '-', &map->start) || !take_number(&at, 16, ' ', &map->end) ||
	    map->end <= map->start || !take_permissions(&at, map) ||
	    !take_number(&at, 16, ' ', &map->offset) || !take_number(&at, 16, ':', &major) ||
	    !take_number(&at, 16, ' ', &minor))
		return false;
	map->device = makedev((unsigned)major, (unsigned)minor);
	/* Without a path, the line ends after the inode; some kernels put a space there. */
	size_t digits = strspn(at, "0123456789");
	char after = at[digits];
	if (!digits || (after && after != ' ') || !take_number(&at, 10, after, &map->inode))
		return false;
	take_path(line + (at - line) - !after, map);
	return true;
}

static int compare_maps(const void *a, const void *b)
{
	const struct map *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* The kernel writes mappings in order and disjoint. Other text may not be so: it is sorted, and overlaps
   are dropped. */
static void put_in_order(struct maps *maps)
{
	size_t kept = 0;
	qsort(maps->items, maps->count, sizeof *maps->items, compare_maps);
	for (size_t i = 0; i < maps->count; i++)
		if (!kept || maps->items[i].start >= maps->items[kept - 1].end)
			maps->items[kept++] = maps->items[i];
	maps->count = kept;
}

/* Takes over `text`: `size` bytes and a NUL. */
static struct err *parse_owned(char *text, size_t size, struct maps *out)
{
	size_t lines = 1;
	*out = (struct maps){.text = text};
	for (size_t i = 0; i < size; i++) {
		lines += text[i] == '\n';
		if (!text[i]) /* it would end a path too early */
			text[i] = '?';
	}
	out->items = malloc(lines * sizeof *out->items);
	if (!out->items) {
		maps_free(out);
		return err_new("out of memory");
	}
	for (char *line = text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		out->count += take_line(line, &out->items[out->count]);
	}
	if (out->count)
		put_in_order(out);
	return NULL;
}

struct err *maps_parse(const char *text, size_t size, struct maps *out)
{
	char *copy = malloc(size + 1);
	*out = (struct maps){0};
	if (!copy)
		return err_new("out of memory");
	if (size)
		memcpy(copy, text, size);
	copy[size] = '\0';
	return parse_owned(copy, size, out);
}

struct err *maps_read(pid_t pid, struct maps *out)
{
	struct buf text = {0};
	struct err *e;
	pid_t task = pid, other;
	*out = (struct maps){0};
	e = process_file(pid, "maps", &text);
	if ((e || !text.size) &&
	    (other = process_task(pid)) != pid) { /* the first thread has ended before others */
		err_free(e);
		e = process_file(task = other, "maps", &text);
	}
	if (e || !text.size) { /* not allowed; or the process has no memory (any more) */
		bool refused = e != NULL;
		buf_free(&text);
		err_free(e);
		e = process_refusal(pid);
		if (e)
			return e;
		return refused ? process_forbidden(pid, pid)
			       : err_new("process %d has ended: it has no memory any more",
					 (int)pid);
	}
	size_t size = text.size;
	e = parse_owned(buf_take(&text), size, out);
	out->task = task;
	return e;
}

void maps_free(struct maps *maps)
{
	free(maps->items);
	free(maps->text);
	*maps = (struct maps){0};
}
