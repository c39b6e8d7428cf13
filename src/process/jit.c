/* SPDX-License-Identifier: Apache-2.0 */
#include "process/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "process/reach.h"
#include "process/status.h"

#define FILE_MAX ((off_t)256 << 20)
#define KEPT_MAX 65536u
#define LINE_BYTES 4096
#define NAME_MAX_BYTES 1024
/* How many entries before an address are looked at: replaced code may start between the wanted code
   and it. */
#define LOOK_BACK 32

struct jit_entry {
	struct jit_code code;
	size_t order; /* position in the file */
};

struct jit {
	struct jit_entry *entries; /* sorted by start, then order */
	size_t count, room;
	char *text;
	bool own_names; /* each name was allocated on its own */
};

static int compare_entries(const void *a, const void *b)
{
	const struct jit_entry *x = a, *y = b;
	if (x->code.start != y->code.start)
		return x->code.start < y->code.start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool take_line(char *line, struct jit_code *out)
{
	char *end;
	errno = 0;
	out->start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return false;
	line = end + 1;
	out->size = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || !end[1] || errno)
		return false;
	out->name = end + 1;
	return out->size && out->start <= UINT64_MAX - out->size;
}

struct err *jit_parse(const char *text, size_t size, struct jit **out)
{
	struct jit *jit = calloc(1, sizeof *jit);
	size_t lines = 1;
	*out = NULL;
	if (jit)
		jit->text = malloc(size + 1);
	if (!jit || !jit->text) {
		jit_close(jit);
		return err_new("out of memory");
	}
	for (size_t i = 0; i < size; i++) {
		jit->text[i] = text[i] ? text[i] : '?';
		lines += text[i] == '\n';
	}
	jit->text[size] = '\0';
	jit->entries = reallocarray(NULL, lines, sizeof *jit->entries);
	if (!jit->entries) {
		jit_close(jit);
		return err_new("out of memory");
	}
	for (char *line = jit->text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		jit->entries[jit->count].order = jit->count;
		jit->count += take_line(line, &jit->entries[jit->count].code);
	}
	if (jit->count)
		qsort(jit->entries, jit->count, sizeof *jit->entries, compare_entries);
	*out = jit;
	return NULL;
}

/* The pid of the process in its own, innermost namespace. */
static pid_t own_pid(pid_t pid)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "status", &text);
	const char *line = e ? NULL : strstr(buf_text(&text), "\nNSpid:");
	pid_t own = pid;
	if (line) {
		line += strlen("\nNSpid:");
		size_t length = strcspn(line, "\n");
		while (length && line[length - 1] != '\t' && line[length - 1] != ' ')
			length--;
		own = (pid_t)strtol(line + length, NULL, 10);
	}
	err_free(e);
	buf_free(&text);
	return own;
}

/* Only a file that belongs to `user` or root is believed. */
static int open_trusted(const char *path, uid_t user, off_t *size)
{
	struct stat st;
	int fd = reach_open(path, O_NOFOLLOW, &st);
	if (fd < 0)
		return -1;
	if (S_ISREG(st.st_mode) && st.st_size <= FILE_MAX &&
	    (st.st_uid == user || st.st_uid == 0)) {
		*size = st.st_size;
		return fd;
	}
	close(fd);
	return -1;
}

struct err *jit_open_file(const char *path, uid_t user, struct jit **out)
{
	off_t size;
	int fd = open_trusted(path, user, &size);
	*out = NULL;
	if (fd < 0)
		return NULL;
	char *text = malloc((size_t)size + 1);
	ssize_t got = text ? pread(fd, text, (size_t)size, 0) : 0;
	close(fd);
	struct err *e = text ? jit_parse(text, got > 0 ? (size_t)got : 0, out)
			     : err_new("out of memory");
	free(text);
	return e;
}

static bool find_path(pid_t pid, char *path, size_t size, uid_t *user)
{
	struct process_status s;
	if (!process_status(pid, &s))
		return false;
	snprintf(path, size, "/proc/%d/root/tmp/perf-%d.map", (int)pid, (int)own_pid(pid));
	*user = s.user;
	return true;
}

struct err *jit_open(pid_t pid, struct jit **out)
{
	char path[96];
	uid_t user;
	*out = NULL;
	return find_path(pid, path, sizeof path, &user) ? jit_open_file(path, user, out) : NULL;
}

/* ---- for some addresses only ---- */

static bool is_wanted(const struct jit_wanted *w, const struct jit_code *code)
{
	size_t found = FIRST_NOT(i, w->count, w->addresses[i] < code->start);
	return found < w->count && w->addresses[found] - code->start < code->size;
}

/* Code that is replaced again and again has an entry each time. If there are too many, the older half
   is dropped. */
static bool keep_code(struct jit *jit, const struct jit_code *code, size_t order)
{
	if (jit->count == KEPT_MAX) {
		for (size_t i = 0; i < KEPT_MAX / 2; i++)
			free((char *)jit->entries[i].code.name);
		memmove(jit->entries, jit->entries + KEPT_MAX / 2,
			KEPT_MAX / 2 * sizeof *jit->entries);
		jit->count = KEPT_MAX / 2;
	}
	if (!ARRAY_ROOM(jit->entries, jit->count, jit->room))
		return false;
	struct jit_entry *entry = &jit->entries[jit->count];
	*entry = (struct jit_entry){*code, order};
	entry->code.name = strndup(code->name, NAME_MAX_BYTES);
	jit->count += entry->code.name != NULL;
	return entry->code.name;
}

/* Reads one line, cut off if it is too long; false at the end. */
static bool read_line(FILE *file, char line[LINE_BYTES], size_t *left)
{
	size_t used = 0, took = 0;
	int c = EOF;
	while (took < *left && (c = getc_unlocked(file)) != EOF) {
		took++;
		if (c == '\n')
			break;
		if (used < LINE_BYTES - 1)
			line[used++] = c ? (char)c : '?';
	}
	line[used] = 0;
	*left -= took;
	return took;
}

static bool take_lines(FILE *file, size_t left, const struct jit_wanted *w, struct jit *jit)
{
	char line[LINE_BYTES];
	for (size_t order = 0; read_line(file, line, &left); order++) {
		struct jit_code code;
		if (take_line(line, &code) && is_wanted(w, &code) && !keep_code(jit, &code, order))
			return false;
	}
	return true;
}

struct err *jit_open_file_wanted(const char *path, uid_t user, const struct jit_wanted *w,
				 struct jit **out)
{
	off_t size;
	int fd = open_trusted(path, user, &size);
	FILE *file = fd >= 0 ? fdopen(fd, "re") : NULL;
	struct jit *jit = file ? calloc(1, sizeof *jit) : NULL;
	*out = NULL;
	if (fd >= 0 && !file)
		close(fd);
	if (!jit) {
		if (file)
			fclose(file);
		return NULL;
	}
	jit->own_names = true;
	size_t part = (size_t)size < *w->budget ? (size_t)size : *w->budget;
	*w->budget -= part;
	bool good = !fseeko(file, size - (off_t)part, SEEK_SET) && take_lines(file, part, w, jit);
	fclose(file);
	if (!good) {
		jit_close(jit);
		return err_new("%s: out of memory", path);
	}
	if (jit->count)
		qsort(jit->entries, jit->count, sizeof *jit->entries, compare_entries);
	*out = jit;
	return NULL;
}

struct err *jit_open_wanted(pid_t pid, const struct jit_wanted *w, struct jit **out)
{
	char path[96];
	uid_t user;
	*out = NULL;
	return find_path(pid, path, sizeof path, &user) ? jit_open_file_wanted(path, user, w, out)
							: NULL;
}

void jit_close(struct jit *jit)
{
	if (!jit)
		return;
	for (size_t i = 0; jit->own_names && i < jit->count; i++)
		free((char *)jit->entries[i].code.name);
	free(jit->entries);
	free(jit->text);
	free(jit);
}

const struct jit_code *jit_find(const struct jit *jit, uint64_t address)
{
	const struct jit_entry *best = NULL;
	size_t after = FIRST_NOT(i, jit->count, jit->entries[i].code.start <= address);
	for (size_t i = 0; i < LOOK_BACK && after; i++) {
		const struct jit_entry *entry = &jit->entries[--after];
		if (address - entry->code.start < entry->code.size &&
		    (!best || entry->order > best->order))
			best = entry;
	}
	return best ? &best->code : NULL;
}
