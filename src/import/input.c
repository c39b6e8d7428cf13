/* SPDX-License-Identifier: Apache-2.0 */
#include "import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define WINDOW ((size_t)1 << 18)

struct input {
	int fd; /* -1: memory */
	bool seekable, owned;
	uint64_t size, place, modified; /* place: of what comes next */
	const uint8_t *bytes;           /* memory */
	uint8_t *window;                /* of the file: what was read and is still to come */
	size_t capacity, begin, end;
};

static struct err *look(struct input *s, const char *path)
{
	struct stat st;
	if (fstat(s->fd, &st))
		return err_errno("%s", path);
	if (S_ISDIR(st.st_mode))
		return err_new(
			"%s is a directory: recordings with one file per thread (perf record "
			"--threads) cannot be read",
			path);
	s->seekable = S_ISREG(st.st_mode);
	if (s->seekable) {
		s->size = (uint64_t)st.st_size;
		s->modified = (uint64_t)st.st_mtime;
	}
	return NULL;
}

struct err *input_open(const char *path, struct input **out)
{
	struct input *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return err_new("out of memory");
	s->size = UINT64_MAX;
	s->owned = strcmp(path, "-") != 0;
	s->fd = s->owned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	struct err *e = s->fd < 0 ? err_errno("%s: cannot open", path) : look(s, path);
	if (e)
		input_close(s);
	else
		*out = s;
	return e;
}

struct err *input_open_memory(const void *bytes, size_t size, struct input **out)
{
	struct input *s = calloc(1, sizeof *s);
	*out = s;
	if (!s)
		return err_new("out of memory");
	*s = (struct input){.fd = -1, .seekable = true, .size = size, .bytes = bytes};
	return NULL;
}

void input_close(struct input *s)
{
	if (!s)
		return;
	if (s->owned && s->fd >= 0)
		close(s->fd);
	free(s->window);
	free(s);
}

bool input_is_seekable(const struct input *s)
{
	return s->seekable;
}

uint64_t input_size(const struct input *s)
{
	return s->size;
}

uint64_t input_place(const struct input *s)
{
	return s->place;
}

uint64_t input_modified(const struct input *s)
{
	return s->modified;
}

/* Reads until the window has `size` bytes; false at the end of the file. */
static bool fill(struct input *s, size_t size)
{
	size_t room = size > WINDOW ? size : WINDOW;
	if (s->capacity < room) {
		uint8_t *more = realloc(s->window, room);
		if (!more)
			return false;
		s->window = more;
		s->capacity = room;
	}
	if (s->capacity - s->begin < size) {
		memmove(s->window, s->window + s->begin, s->end - s->begin);
		s->end -= s->begin;
		s->begin = 0;
	}
	while (s->end - s->begin < size) {
		uint64_t at = s->place + (s->end - s->begin);
		ssize_t done = s->seekable ? pread(s->fd, s->window + s->end, s->capacity - s->end,
						   (off_t)at)
					   : read(s->fd, s->window + s->end, s->capacity - s->end);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		s->end += (size_t)done;
	}
	return true;
}

const uint8_t *input_next(struct input *s, uint64_t size)
{
	const uint8_t *out;
	if (s->seekable && size > s->size - s->place)
		return NULL;
	if (s->fd < 0) {
		out = s->bytes + s->place;
	} else {
		if (size > s->end - s->begin && !fill(s, (size_t)size))
			return NULL;
		out = s->window + s->begin;
		s->begin += (size_t)size;
	}
	s->place += size;
	return out;
}

bool input_skip(struct input *s, uint64_t size)
{
	if (s->seekable)
		return size <= s->size - s->place && input_seek(s, s->place + size);
	for (uint64_t part; size; size -= part) {
		part = size < WINDOW ? size : WINDOW;
		if (!input_next(s, part))
			return false;
	}
	return true;
}

bool input_seek(struct input *s, uint64_t place)
{
	if (!s->seekable || place > s->size)
		return false;
	uint64_t ahead = place - s->place;
	if (place >= s->place && ahead <= s->end - s->begin)
		s->begin += (size_t)ahead;
	else
		s->begin = s->end = 0;
	s->place = place;
	return true;
}
