/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/foreign.h"
#include "base/utf8.h"

#define SIZE_MAX_READ (64u << 20) /* bytes; larger sources are none that people read */
#define PROBE 8192                /* bytes that tell text from binary */
#define LISTED_MAX 3              /* files named in a note */
#define TAB 8

enum state { GOOD, MISSING, UNUSABLE };

struct source_text {
	char *path;      /* as asked for */
	char *found;     /* as opened; NULL: nowhere */
	const char *why; /* of UNUSABLE */
	enum state state;
	bool newer;
	char *bytes;
	size_t size;
	uint32_t *starts; /* of the lines, and the end */
	uint32_t line_count;
	bool wanted; /* the reader misses it where it is not found */
};

struct sources {
	struct sources_options options;
	struct timespec built; /* of the binary; 0: not known */
	struct source_text **all;
	size_t count, room;
};

struct err *sources_open(const struct sources_options *options, struct sources **out)
{
	struct stat st;
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	(*out)->options = *options;
	if (options->binary && !stat(options->binary, &st))
		(*out)->built = st.st_mtim;
	return NULL;
}

void sources_close(struct sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		free(s->all[i]->path);
		free(s->all[i]->found);
		free(s->all[i]->bytes);
		free(s->all[i]->starts);
		free(s->all[i]);
	}
	free(s->all);
	free(s);
}

/* ---- reading ---- */

static bool split_lines(struct source_text *t)
{
	uint32_t count = 0;
	for (const char *at = t->bytes, *end = at + t->size; at < end; at++) {
		at = memchr(at, '\n', (size_t)(end - at));
		count++;
		if (!at)
			break;
	}
	t->starts = calloc((size_t)count + 1, sizeof *t->starts);
	if (!t->starts)
		return false;
	t->line_count = count;
	for (uint32_t i = 0, at = 0; i < count; i++) {
		const char *end = memchr(t->bytes + at, '\n', t->size - at);
		t->starts[i] = at;
		at = end ? (uint32_t)(end - t->bytes) + 1 : (uint32_t)t->size;
		t->starts[i + 1] = at;
	}
	return true;
}

static const char *read_bytes(struct source_text *t, int fd)
{
	struct buf b = {0};
	ssize_t got = 1;
	while (got > 0 && b.size <= SIZE_MAX_READ && buf_reserve(&b, 65536)) {
		got = read(fd, b.data + b.size, 65536);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			b.size += (size_t)got;
	}
	const char *why = b.failed                 ? "there is no memory for it"
			  : got < 0                ? "cannot be read"
			  : b.size > SIZE_MAX_READ ? "is too large"
			  : memchr(b.data, 0, b.size < PROBE ? b.size : PROBE) ? "is no text"
									       : NULL;
	if (!why) {
		t->bytes = b.data;
		t->size = b.size;
		return split_lines(t) ? NULL : "there is no memory for it";
	}
	buf_free(&b);
	return why;
}

/* Nothing is waited for and no terminal is taken over, whatever the path names. */
static bool try_path(struct sources *s, struct source_text *t, const char *path)
{
	struct stat st;
	int fd = foreign_open(path, 0);
	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR && t->state == MISSING) {
			t->state = UNUSABLE;
			t->why = "cannot be opened";
		}
		return false;
	}
	const char *why = fstat(fd, &st) || !S_ISREG(st.st_mode) ? "is no regular file"
			  : (uint64_t)st.st_size > SIZE_MAX_READ ? "is too large"
								 : read_bytes(t, fd);
	close(fd);
	t->state = why ? UNUSABLE : GOOD;
	t->why = why;
	if (why)
		return false;
	t->found = strdup(path);
	t->newer = s->built.tv_sec &&
		   (st.st_mtim.tv_sec > s->built.tv_sec || (st.st_mtim.tv_sec == s->built.tv_sec &&
							    st.st_mtim.tv_nsec > s->built.tv_nsec));
	return true;
}

/* ---- searching ---- */

static bool try_joined(struct sources *s, struct source_text *t, const char *front, size_t length,
		       const char *rest)
{
	struct buf path = {0};
	bool found = false;
	buf_append(&path, front, length);
	if (length && front[length - 1] != '/' && rest[0] != '/' && rest[0])
		buf_puts(&path, "/");
	buf_puts(&path, rest);
	if (!path.failed)
		found = try_path(s, t, buf_text(&path));
	buf_free(&path);
	return found;
}

static bool try_maps(struct sources *s, struct source_text *t)
{
	for (size_t i = 0; i < s->options.map_count; i++) {
		const char *map = s->options.maps[i], *to = strchr(map, '=');
		size_t length = to ? (size_t)(to - map) : 0;
		if (!to || strncmp(t->path, map, length) != 0)
			continue;
		bool whole = !length || map[length - 1] == '/' || t->path[length] == '/' ||
			     !t->path[length];
		if (whole && try_joined(s, t, to + 1, strlen(to + 1), t->path + length))
			return true;
	}
	return false;
}

static const char *skip_dots(const char *path)
{
	while (!strncmp(path, "./", 2) || !strncmp(path, "../", 3) || *path == '/')
		path = strchr(path, '/') + 1;
	return path;
}

/* The longest tail of the path that is below the folder. */
static bool try_below(struct sources *s, struct source_text *t, const char *dir)
{
	for (const char *tail = skip_dots(t->path); *tail;) {
		if (try_joined(s, t, dir, strlen(dir), tail))
			return true;
		const char *slash = strchr(tail, '/');
		if (!slash)
			return false;
		tail = skip_dots(slash + 1);
	}
	return false;
}

static void search(struct sources *s, struct source_text *t)
{
	const char *directory = s->options.directory;
	if (try_maps(s, t) || try_path(s, t, t->path))
		return;
	if (t->path[0] != '/' && directory && directory[0] &&
	    try_joined(s, t, directory, strlen(directory), t->path))
		return;
	for (size_t i = 0; i < s->options.dir_count; i++)
		if (try_below(s, t, s->options.dirs[i]))
			return;
}

static struct source_text *add(struct sources *s, const char *path)
{
	if (!ARRAY_ROOM(s->all, s->count, s->room))
		return NULL;
	struct source_text *t = calloc(1, sizeof *t);
	if (!t || !(t->path = strdup(path))) {
		free(t);
		return NULL;
	}
	t->state = MISSING;
	s->all[s->count++] = t;
	return t;
}

static struct source_text *get(struct sources *s, const char *path)
{
	if (!path || !*path)
		return NULL;
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->all[i]->path, path))
			return s->all[i];
	struct source_text *t = add(s, path);
	if (t)
		search(s, t);
	return t;
}

const struct source_text *sources_find(struct sources *s, const char *path)
{
	struct source_text *t = get(s, path);
	if (t)
		t->wanted = true;
	return t && t->state == GOOD ? t : NULL;
}

const struct source_text *sources_glance(struct sources *s, const char *path)
{
	const struct source_text *t = get(s, path);
	return t && t->state == GOOD ? t : NULL;
}

const char *source_line(const struct source_text *t, uint32_t line, size_t *size)
{
	*size = 0;
	if (!line || line > t->line_count)
		return NULL;
	const char *start = t->bytes + t->starts[line - 1];
	*size = t->starts[line] - t->starts[line - 1];
	while (*size && (start[*size - 1] == '\n' || start[*size - 1] == '\r'))
		--*size;
	return start;
}

uint32_t source_line_count(const struct source_text *t)
{
	return t->line_count;
}

/* ---- what the reader must know ---- */

static bool is_missing(const struct source_text *t)
{
	return t->wanted && t->state == MISSING;
}
static bool is_newer(const struct source_text *t)
{
	return t->wanted && t->state == GOOD && t->newer;
}

static size_t list(const struct sources *s, bool (*wanted)(const struct source_text *t),
		   struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct source_text *t = s->all[i];
		if (!wanted(t))
			continue;
		const char *name = t->found ? t->found : t->path;
		if (count++ < LISTED_MAX) {
			buf_puts(out, count > 1 ? ", " : "");
			source_put_clean(out, name, strlen(name), 0);
		}
	}
	if (count > LISTED_MAX)
		buf_printf(out, " and %zu more", count - LISTED_MAX);
	return count;
}

unsigned sources_notes(const struct sources *s, struct buf *out)
{
	struct buf missing = {0}, newer = {0};
	unsigned lines = 0;
	if (list(s, is_missing, &missing)) {
		buf_printf(out, "no source: %s: --source-dir or --path-map tells where it is\n",
			   buf_text(&missing));
		lines++;
	}
	for (size_t i = 0; i < s->count; i++) {
		if (!s->all[i]->wanted || s->all[i]->state != UNUSABLE)
			continue;
		buf_puts(out, "no source: ");
		source_put_clean(out, s->all[i]->path, strlen(s->all[i]->path), 0);
		buf_printf(out, " %s\n", s->all[i]->why);
		lines++;
	}
	if (list(s, is_newer, &newer)) {
		buf_printf(out, "%s: newer than the binary, so that lines may differ\n",
			   buf_text(&newer));
		lines++;
	}
	buf_free(&missing);
	buf_free(&newer);
	return lines;
}

/* ---- text for a terminal ---- */

size_t source_put_clean(struct buf *out, const char *text, size_t size, size_t columns)
{
	size_t column = 0, last = out->size; /* `last`: where the last column begins */
	for (size_t i = 0; i < size;) {
		uint32_t code = 0;
		size_t length = utf8_decode(text + i, size - i, &code);
		size_t wide = length == 1 && text[i] == '\t' ? TAB - column % TAB : 1;
		if (columns && column + wide > columns) {
			out->size = last;
			buf_puts(out, "…");
			return columns;
		}
		if (wide > 1 || (length == 1 && text[i] == '\t'))
			buf_append(out, "        ", wide);
		else if (!length || utf8_is_harmful(code))
			buf_puts(out, "?");
		else
			buf_append(out, text + i, length);
		column += wide;
		if (column < columns || !columns)
			last = out->size;
		i += length ? length : 1;
	}
	return column;
}
