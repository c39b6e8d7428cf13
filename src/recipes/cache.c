/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "recipes/rows.h"

#define KEY_SIZE 40

/* Part of every key: to be raised when the same module would give another table. */
#define RECIPES_VERSION 28

/* The part of the key that costs nothing: false where there is no build-id to go by. */
static bool begin_key(struct image *image, uint8_t key[KEY_SIZE])
{
	const uint8_t *id;
	size_t length = image_build_id(image, &id);
	bool named = length >= 8 && length <= KEY_SIZE - 2;
	memset(key, 0, KEY_SIZE);
	key[0] = RECIPES_VERSION;
	key[1] = named ? (uint8_t)length : 0;
	if (named)
		memcpy(key + 2, id, length);
	return named;
}

/* What the table depends on: kind of key, length, then build-id or hash of the code. */
static void make_key(struct image *image, uint8_t key[KEY_SIZE])
{
	if (begin_key(image, key))
		return;
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	uint64_t hash = 0;
	for (size_t i = 0; i < count; i++) {
		size_t size;
		const uint8_t *bytes = segments[i].writable
					       ? NULL
					       : image_bytes_at(image, segments[i].address, &size);
		if (bytes)
			hash = hash * 31 + table_checksum(bytes, size) + segments[i].address;
	}
	memcpy(key + 2, &hash, sizeof hash);
}

static void key_name(const uint8_t key[KEY_SIZE], enum recipes_mode mode, struct buf *name)
{
	static const char *const modes[] = {"auto", "cfi", "analysis"};
	unsigned length = key[1] ? key[1] : 8;
	for (unsigned i = 0; i < length; i++)
		buf_printf(name, "%02x", key[2 + i]);
	buf_printf(name, "%s.%s.%u.%u", key[1] ? "" : "-code", modes[mode], TABLE_VERSION,
		   RECIPES_VERSION);
}

/* `key_size`: how much of the key is known. */
static bool map_table(int fd, const uint8_t *key, size_t key_size, struct module_table *out)
{
	struct stat st;
	struct table_header h;
	void *bytes = MAP_FAILED;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof h)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
			     0);
	if (bytes == MAP_FAILED)
		return false;
	size_t size = (size_t)st.st_size;
	memcpy(&h, bytes, sizeof h);
	if (memcmp(h.key, key, key_size) || !table_open(&out->table, bytes, size) ||
	    h.checksum != table_checksum((char *)bytes + sizeof h, size - sizeof h)) {
		munmap(bytes, size);
		return false;
	}
	out->bytes = bytes;
	out->size = size;
	out->mapped = true;
	return true;
}

/* Where the table of an image is, or would be, in the cache. */
struct place {
	int directory; /* -1: there is no cache */
	struct buf name;
};

static bool find_place(struct image *image, enum recipes_mode mode, uint8_t key[KEY_SIZE],
		       struct place *out)
{
	*out = (struct place){0};
	make_key(image, key);
	key_name(key, mode, &out->name);
	err_free(cachedir_open("tables", &out->directory));
	return out->directory >= 0 && !out->name.failed;
}

static void leave_place(struct place *place)
{
	if (place->directory >= 0)
		close(place->directory);
	buf_free(&place->name);
}

static bool map_file(const struct place *place, const uint8_t key[KEY_SIZE],
		     struct module_table *out)
{
	int fd = cachedir_read(place->directory, buf_text(&place->name));
	if (fd < 0)
		return false;
	bool mapped = map_table(fd, key, KEY_SIZE, out);
	close(fd);
	return mapped;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = write(fd, bytes + done, size - done);
		if (n <= 0 && errno != EINTR)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return done == size;
}

static void save_file(const struct place *place, const void *bytes, size_t size)
{
	struct buf temporary = {0};
	int fd = cachedir_write(place->directory, buf_text(&place->name), &temporary);
	if (fd >= 0)
		cachedir_keep(place->directory, buf_text(&place->name), &temporary, fd,
			      write_all(fd, bytes, size));
	buf_free(&temporary);
}

static bool has_frames(struct image *image)
{
	return image_section(image, ".eh_frame") || image_section(image, ".debug_frame") ||
	       image_section(image, ".sframe");
}

static struct err *build(struct image *image, enum recipes_mode mode, const uint8_t *key,
			 struct module_table *out)
{
	struct image *debug = NULL;
	struct rows rows;
	struct err *e = NULL;
	rows_init(&rows);
	if (mode != RECIPES_ANALYSIS && !has_frames(image))
		e = debug_find(image, false, &debug);
	if (!e)
		e = recipes_rows(image, debug, mode, &rows);
	if (!e && (image_exceeded(image) || (debug && image_exceeded(debug))))
		e = err_new("more must be decompressed for it than is allowed here");
	if (!e)
		e = recipes_pack(&rows, image_machine(image), mode, key, &out->bytes, &out->size);
	image_close(debug);
	rows_free(&rows);
	if (!e && !table_open(&out->table, out->bytes, out->size)) {
		free(out->bytes);
		e = err_new("%s: internal error: a table that was just built is not sane",
			    image_path(image));
	}
	return e;
}

struct err *cache_table(struct image *image, enum recipes_mode mode, struct module_table *out)
{
	uint8_t key[KEY_SIZE];
	struct place place;
	memset(out, 0, sizeof *out);
	bool cached = find_place(image, mode, key, &place);
	if (cached && map_file(&place, key, out)) {
		leave_place(&place);
		return NULL;
	}
	struct err *e = build(image, mode, key, out);
	if (!e && cached) {
		struct module_table saved = {0};
		save_file(&place, out->bytes, out->size);
		if (map_file(&place, key, &saved)) { /* memory that can be given back */
			module_table_free(out);
			*out = saved;
		}
	}
	leave_place(&place);
	return err_context(e, "unwind table of '%s'", image_path(image));
}

bool cache_find(struct image *image, enum recipes_mode mode, struct module_table *out)
{
	uint8_t key[KEY_SIZE];
	struct place place;
	memset(out, 0, sizeof *out);
	bool found = find_place(image, mode, key, &place) && map_file(&place, key, out);
	leave_place(&place);
	return found;
}

static struct err *file_in_memory(const struct module_table *t, int *out)
{
	int fd = memfd_create("culprit-table", MFD_CLOEXEC);
	if (fd < 0 || !write_all(fd, t->bytes, t->size)) {
		struct err *e = err_errno("no memory for an unwind table");
		if (fd >= 0)
			close(fd);
		return e;
	}
	*out = fd;
	return NULL;
}

struct err *cache_file(struct image *image, enum recipes_mode mode, int *out)
{
	struct module_table t;
	uint8_t key[KEY_SIZE];
	struct place place;
	struct err *e = cache_table(image, mode, &t);
	*out = -1;
	if (e)
		return e;
	if (t.mapped) {
		if (find_place(image, mode, key, &place))
			*out = cachedir_read(place.directory, buf_text(&place.name));
		leave_place(&place);
	}
	if (*out < 0)
		e = file_in_memory(&t, out);
	module_table_free(&t);
	return e;
}

bool cache_map(int fd, struct image *image, struct module_table *out)
{
	uint8_t key[KEY_SIZE];
	memset(out, 0, sizeof *out);
	bool named = begin_key(image, key);
	return map_table(fd, key, named ? KEY_SIZE : 2, out);
}

void module_table_rest(const struct module_table *t)
{
	if (t->mapped)
		madvise(t->bytes, t->size, MADV_DONTNEED);
}

void module_table_free(struct module_table *t)
{
	if (t->mapped)
		munmap(t->bytes, t->size);
	else
		free(t->bytes);
	memset(t, 0, sizeof *t);
}
