/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file:
 *
 *     header        what follows, the key, a checksum of all up to the blobs
 *     parts         of all procedures: start, end, procedure
 *     procedures    name, part with the entry, and where the structure is
 *     offsets       of the texts
 *     texts         each with a zero behind it
 *     blobs         structures (encode.c)
 *
 * New blobs and texts are appended to what is there, so those of the file keep their
 * places and numbers when it is written again.
 */
#include "structure/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cachedir.h"
#include "structure/encode.h"
#include "structure/extents.h"
#include "structure/structure.h"
#include "unwind/table.h"

#define MAGIC "culstru1"
#define BLOBS_MAX (512u << 20)

struct file_header {
	char magic[8];
	uint8_t key[STORE_KEY_SIZE];
	uint64_t parts, procedures, texts, text_bytes, blob_bytes;
	uint64_t checksum;
};

struct file_part {
	uint64_t start, end, procedure;
};

struct file_procedure {
	uint32_t name, entry;
	struct store_blob blob;
};

/* ---- texts ---- */

static struct key text_key(const char *text)
{
	uint64_t address = (uintptr_t)text;
	return (struct key){(uint32_t)address, (uint32_t)(address >> 32), 0, 0};
}

static bool add_text(struct store *s, const char *text)
{
	if (!ARRAY_ROOM(s->texts, s->text_count, s->text_capacity))
		return false;
	s->texts[s->text_count++] = text;
	return true;
}

/* Texts live as long as the module's files are open, so their address is enough to know them. */
static uint32_t number_of(void *context, const char *text)
{
	struct store *s = context;
	uint32_t *at = keys_at(&s->known, text_key(text));
	if (!at)
		return UINT32_MAX;
	if (*at == KEYS_NONE) {
		*at = (uint32_t)s->text_count;
		if (!add_text(s, text)) {
			*at = 0;
			return UINT32_MAX;
		}
	}
	return *at;
}

/* ---- in memory ---- */

bool store_start(struct store *s, size_t procedures)
{
	memset(s, 0, sizeof *s);
	s->blob_of_procedure = calloc(procedures + 1, sizeof *s->blob_of_procedure);
	s->count = procedures;
	if (s->blob_of_procedure && add_text(s, NULL))
		return true;
	store_free(s);
	return false;
}

void store_free(struct store *s)
{
	if (s->file)
		munmap(s->file, s->file_size);
	buf_free(&s->more);
	free(s->blob_of_procedure);
	free(s->texts);
	keys_free(&s->known);
	memset(s, 0, sizeof *s);
}

void store_put(struct store *s, uint32_t procedure, const struct structure_procedure *structure)
{
	struct encode_texts texts = {number_of, s};
	size_t before = s->more.size;
	if (procedure >= s->count || s->blob_size + before > BLOBS_MAX || s->more.failed)
		return;
	if (!encode_procedure(structure, &texts, &s->more)) {
		s->more.size = before;
		return;
	}
	s->blob_of_procedure[procedure] = (struct store_blob){
		.offset = s->blob_size + before,
		.size = (uint32_t)(s->more.size - before),
		.checksum = (uint32_t)table_checksum(s->more.data + before, s->more.size - before),
	};
	s->changed = true;
}

static const uint8_t *blob_of(const struct store *s, const struct store_blob *at)
{
	if (at->offset < s->blob_size)
		return at->size <= s->blob_size - at->offset ? s->blobs + at->offset : NULL;
	if (at->offset - s->blob_size > s->more.size ||
	    at->size > s->more.size - (at->offset - s->blob_size))
		return NULL;
	return (const uint8_t *)s->more.data + (at->offset - s->blob_size);
}

struct structure_procedure *store_get(const struct store *s, uint32_t procedure)
{
	const struct store_blob *at = procedure < s->count ? &s->blob_of_procedure[procedure]
							   : NULL;
	const uint8_t *blob = at && at->size ? blob_of(s, at) : NULL;
	if (!blob || (uint32_t)table_checksum(blob, at->size) != at->checksum)
		return NULL;
	return decode_procedure(blob, at->size, s->texts, s->text_count);
}

/* ---- reading the file ---- */

/* The parts of a mapped file, all inside of it. */
struct layout {
	struct file_header h;
	const struct file_part *parts;
	const struct file_procedure *procedures;
	const uint64_t *offsets;
	const char *texts;
	const uint8_t *blobs;
};

static bool take(const uint8_t **at, const uint8_t *end, uint64_t count, size_t size,
		 const void **out)
{
	if (count > (uint64_t)(end - *at) / size)
		return false;
	*out = *at;
	*at += count * size;
	return true;
}

static bool lay_out(const uint8_t *file, size_t size, const uint8_t key[STORE_KEY_SIZE],
		    struct layout *out)
{
	const uint8_t *at = file + sizeof out->h, *end = file + size;
	const void *parts, *procedures, *offsets, *texts;
	if (size < sizeof out->h)
		return false;
	memcpy(&out->h, file, sizeof out->h);
	if (memcmp(out->h.magic, MAGIC, sizeof out->h.magic) ||
	    memcmp(out->h.key, key, STORE_KEY_SIZE))
		return false;
	if (!take(&at, end, out->h.parts, sizeof(struct file_part), &parts) ||
	    !take(&at, end, out->h.procedures, sizeof(struct file_procedure), &procedures) ||
	    !take(&at, end, out->h.texts, sizeof(uint64_t), &offsets) || out->h.text_bytes % 8 ||
	    !take(&at, end, out->h.text_bytes, 1, &texts) ||
	    (uint64_t)(end - at) != out->h.blob_bytes)
		return false;
	out->parts = parts, out->procedures = procedures, out->offsets = offsets;
	out->texts = texts, out->blobs = at;
	return out->h.checksum ==
		       table_checksum(file + sizeof out->h, (size_t)(at - file) - sizeof out->h) &&
	       (!out->h.text_bytes || !out->texts[out->h.text_bytes - 1]);
}

static bool load_texts(struct store *s, const struct layout *l)
{
	for (uint64_t i = 1; i < l->h.texts; i++)
		if (l->offsets[i] >= l->h.text_bytes || !add_text(s, l->texts + l->offsets[i]))
			return false;
	return true;
}

static bool load_extents(const struct store *s, const struct layout *l, struct extents *x)
{
	uint32_t *entry_of = calloc(l->h.procedures + 1, sizeof *entry_of);
	uint64_t before = 0;
	bool good;
	x->parts = calloc(l->h.parts + 1, sizeof *x->parts);
	x->procedures = calloc(l->h.procedures + 1, sizeof *x->procedures);
	good = entry_of && x->parts && x->procedures;
	for (uint64_t i = 0; good && i < l->h.parts; i++) {
		const struct file_part *p = &l->parts[i];
		good = p->start >= before && p->end > p->start && p->procedure < l->h.procedures;
		before = p->end;
		x->parts[x->part_count++] = (struct extent){p->start, p->end,
							    (uint32_t)p->procedure};
	}
	for (uint64_t i = 0; good && i < l->h.procedures; i++) {
		const struct file_procedure *p = &l->procedures[i];
		good = p->name < s->text_count && p->entry < l->h.parts &&
		       l->parts[p->entry].procedure == i;
		if (good) {
			x->procedures[x->procedure_count++].name = s->texts[p->name];
			entry_of[i] = p->entry;
		}
	}
	good = good && extents_group(x, entry_of);
	free(entry_of);
	if (!good)
		extents_free(x);
	return good;
}

static uint8_t *map(int directory, const char *name, size_t *size)
{
	int fd = cachedir_read(directory, name);
	struct stat st;
	void *bytes = MAP_FAILED;
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	*size = bytes == MAP_FAILED ? 0 : (size_t)st.st_size;
	return bytes == MAP_FAILED ? NULL : bytes;
}

bool store_load(struct store *s, int directory, const char *name, const uint8_t key[STORE_KEY_SIZE],
		struct extents *x)
{
	struct layout l;
	size_t size;
	uint8_t *file = map(directory, name, &size);
	memset(x, 0, sizeof *x);
	memset(s, 0, sizeof *s);
	if (!file)
		return false;
	if (!lay_out(file, size, key, &l) || !store_start(s, l.h.procedures)) {
		munmap(file, size);
		return false;
	}
	s->file = file;
	s->file_size = size;
	s->blobs = l.blobs;
	s->blob_size = l.h.blob_bytes;
	if (!load_texts(s, &l) || !load_extents(s, &l, x)) {
		store_free(s);
		return false;
	}
	for (uint64_t i = 0; i < l.h.procedures; i++)
		s->blob_of_procedure[i] = l.procedures[i].blob;
	return true;
}

/* ---- writing it ---- */

static bool put_tables(struct store *s, const struct extents *x, struct buf *out)
{
	static const char zeros[8];
	uint64_t offset = 0;
	for (size_t i = 0; i < x->part_count; i++) {
		struct file_part part = {x->parts[i].start, x->parts[i].end, x->parts[i].procedure};
		buf_append(out, &part, sizeof part);
	}
	for (size_t i = 0; i < x->procedure_count; i++) {
		const struct extents_procedure *p = &x->procedures[i];
		struct file_procedure procedure = {
			.name = p->name ? number_of(s, p->name) : 0,
			.entry = x->by_procedure[p->first],
			.blob = s->blob_of_procedure[i],
		};
		if (procedure.name == UINT32_MAX)
			return false;
		buf_append(out, &procedure, sizeof procedure);
	}
	for (size_t i = 0; i < s->text_count; i++) {
		buf_append(out, &offset, sizeof offset);
		offset += i ? strlen(s->texts[i]) + 1 : 0;
	}
	for (size_t i = 1; i < s->text_count; i++)
		buf_append(out, s->texts[i], strlen(s->texts[i]) + 1);
	buf_append(out, zeros, (8 - offset % 8) % 8);
	return !out->failed;
}

static bool write_all(int fd, const void *bytes, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);
		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static bool write_file(const struct store *s, int fd, const struct file_header *h,
		       const struct buf *tables)
{
	return write_all(fd, h, sizeof *h) && write_all(fd, tables->data, tables->size) &&
	       write_all(fd, s->blobs, s->blob_size) && write_all(fd, s->more.data, s->more.size);
}

void store_save(struct store *s, int directory, const char *name, const uint8_t key[STORE_KEY_SIZE],
		const struct extents *x)
{
	struct file_header h = {.parts = x->part_count, .procedures = x->procedure_count};
	struct buf tables = {0}, temporary = {0};
	int fd = -1;
	memcpy(h.magic, MAGIC, sizeof h.magic);
	memcpy(h.key, key, STORE_KEY_SIZE);
	if (put_tables(s, x, &tables))
		fd = cachedir_write(directory, name, &temporary);
	if (fd >= 0) {
		h.texts = s->text_count;
		h.text_bytes = tables.size - x->part_count * sizeof(struct file_part) -
			       x->procedure_count * sizeof(struct file_procedure) -
			       s->text_count * sizeof(uint64_t);
		h.blob_bytes = s->blob_size + s->more.size;
		h.checksum = table_checksum(tables.data, tables.size);
		cachedir_keep(directory, name, &temporary, fd, write_file(s, fd, &h, &tables));
	}
	buf_free(&temporary);
	buf_free(&tables);
}
