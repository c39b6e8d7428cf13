/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file:
 *
 *    header | entries, by address | names, each with a 0 at its end
 *
 * An entry is a piece of code that is one function's, so that a search needs to
 * look at one only: a function in which another one lies has several.
 *
 * Who wrote it may have died meanwhile: the header says how large the whole is,
 * and offsets are checked where they are used.
 */
#include "image/name_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "image/image.h"
#include "image/places.h"
#include "image/symbols.h"

#define MAGIC UINT64_C(0x31656d616e6c7563)

struct name_table_header {
	uint64_t magic, count, names_size;
};

struct name_table_entry {
	uint64_t from;
	uint32_t length; /* of the piece */
	uint32_t into;   /* where it begins, in the function */
	uint32_t size;   /* of the function */
	uint32_t name;
};

/* ---- making one ---- */

int name_table_file(bool *in_memory)
{
	int directory, file = -1;
	err_free(cachedir_open("tables", &directory));
	if (directory >= 0) {
		file = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		close(directory);
	}
	*in_memory = file < 0;
	if (file < 0)
		file = memfd_create("culprit-names", MFD_CLOEXEC);
	return file;
}

struct making {
	struct buf entries, names;
	const struct symbol *last;
	uint32_t last_name;
	uint64_t count;
	size_t most; /* bytes */
};

static uint32_t clip(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static bool add_piece(struct making *m, const struct symbol *s, uint64_t from, uint64_t to)
{
	if (s != m->last) {
		m->last = s;
		m->last_name = clip(m->names.size);
		buf_append(&m->names, s->name, strlen(s->name) + 1);
	}
	const struct name_table_entry entry = {.from = from,
					       .length = clip(to - from),
					       .into = clip(from - s->address),
					       .size = clip(s->size ? s->size : to - s->address),
					       .name = m->last_name};
	buf_append(&m->entries, &entry, sizeof entry);
	m->count++;
	return m->entries.size + m->names.size + sizeof(struct name_table_header) <= m->most;
}

/* Piece by piece, until the symbols end. */
static struct err *add_all(struct making *m, const struct symbols *symbols, const char *path)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	uint64_t at = count ? all[0].address : UINT64_MAX;
	while (at != UINT64_MAX) {
		uint64_t from, to;
		const struct symbol *s = symbols_around(symbols, at, &from, &to);
		if (s && !add_piece(m, s, at, to))
			return err_new("%s: it has too many functions to keep their names", path);
		at = to;
	}
	return m->entries.failed || m->names.failed ? err_new("out of memory") : NULL;
}

static bool write_all(int file, const void *bytes, size_t size)
{
	for (const char *at = bytes; size;) {
		ssize_t done = write(file, at, size);
		if (done <= 0 && errno != EINTR)
			return false;
		at += done > 0 ? done : 0;
		size -= done > 0 ? (size_t)done : 0;
	}
	return true;
}

static struct err *write_file(const struct making *m, int file)
{
	const struct name_table_header header = {MAGIC, m->count, m->names.size};
	if (!m->count)
		return NULL;
	if (write_all(file, &header, sizeof header) &&
	    write_all(file, m->entries.data, m->entries.size) &&
	    write_all(file, m->names.data, m->names.size))
		return NULL;
	struct err *e = err_errno("cannot keep names of functions");
	if (ftruncate(file, 0)) /* then it is not whole, which is noticed */
		return e;
	return e;
}

struct err *name_table_write(struct image *image, int file, size_t most)
{
	struct making m = {.most = most};
	struct places *places;
	if (lseek(file, 0, SEEK_SET) || ftruncate(file, 0))
		return err_errno("cannot keep names of functions");
	struct err *e = places_open(image, false, &places);
	if (e)
		return e;
	const struct symbols *symbols = places_symbols(places);
	if (symbols)
		e = add_all(&m, symbols, image_path(image));
	if (!e)
		e = write_file(&m, file);
	places_close(places);
	buf_free(&m.entries);
	buf_free(&m.names);
	return e;
}

/* ---- using one ---- */

static bool is_whole(const struct name_table_header *h, size_t size)
{
	size_t left = size - sizeof *h;
	return h->magic == MAGIC && h->count <= left / sizeof(struct name_table_entry) &&
	       h->names_size && h->names_size == left - h->count * sizeof(struct name_table_entry);
}

bool name_table_open(int file, struct name_table *out)
{
	struct stat st;
	*out = (struct name_table){0};
	if (fstat(file, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)sizeof(struct name_table_header) ||
	    st.st_size > (off_t)NAME_TABLE_MAX)
		return false;
	size_t size = (size_t)st.st_size;
	void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED)
		return false;
	struct name_table t = {.header = bytes, .size = size};
	if (!is_whole(t.header, size) || ((const char *)bytes)[size - 1]) {
		munmap(bytes, size);
		return false;
	}
	t.entries = (const struct name_table_entry *)(t.header + 1);
	t.names = (const char *)(t.entries + t.header->count);
	*out = t;
	return true;
}

void name_table_close(struct name_table *t)
{
	if (t->header)
		munmap((void *)t->header, t->size);
	*t = (struct name_table){0};
}

const char *name_table_find(const struct name_table *t, uint64_t address, uint64_t *start,
			    uint64_t *size)
{
	size_t after = FIRST_NOT(i, t->header ? t->header->count : 0,
				 t->entries[i].from <= address);
	const struct name_table_entry *x = after ? &t->entries[after - 1] : NULL;
	if (!x || address - x->from >= x->length || x->name >= t->header->names_size)
		return NULL;
	*start = x->from - x->into;
	*size = x->size;
	return t->names + x->name;
}
