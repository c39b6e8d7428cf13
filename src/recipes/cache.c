/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "image/debug.h"
#include "image/identity.h"
#include "image/image.h"
#include "recipes/rows.h"

#define KEY_SIZE 40

/* Part of every key: to be raised when the same module would give another table. */
#define RECIPES_VERSION 30

/* What the table depends on: version, kind and length, then what the file is called. */
static void make_key(const struct identity *id, uint8_t key[KEY_SIZE])
{
	memset(key, 0, KEY_SIZE);
	key[0] = RECIPES_VERSION;
	key[1] = (uint8_t)(id->kind << 6 | id->size);
	memcpy(key + 2, id->bytes, id->size);
}

static void key_name(const struct identity *id, enum recipes_mode mode, struct buf *name)
{
	static const char *const modes[] = {"auto", "cfi", "analysis"};
	identity_name(id, name);
	buf_printf(name, ".%s.%u.%u", modes[mode], TABLE_VERSION, RECIPES_VERSION);
}

/* The table in a file, if it is whole. Only its key can be written to, and in our memory alone. */
static bool map_table(int fd, int flags, struct module_table *out)
{
	struct stat st;
	struct table_header h;
	void *bytes = MAP_FAILED;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof h)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | flags, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	size_t size = (size_t)st.st_size;
	memcpy(&h, bytes, sizeof h);
	if (!table_open(&out->table, bytes, size) ||
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
struct entry {
	int directory; /* -1: there is no cache, or it is not to be kept */
	uint8_t key[KEY_SIZE];
	struct buf name;
};

static void close_entry(struct entry *entry)
{
	if (entry->directory >= 0)
		close(entry->directory);
	buf_free(&entry->name);
}

static void open_entry(const struct identity *id, enum recipes_mode mode, struct entry *out)
{
	*out = (struct entry){.directory = -1};
	make_key(id, out->key);
	key_name(id, mode, &out->name);
	if (id->kind != IDENTITY_NONE && !out->name.failed)
		err_free(cachedir_open("tables", &out->directory));
}

static bool map_file(const struct entry *entry, struct module_table *out)
{
	struct table_header h;
	int fd = entry->directory < 0 ? -1
				      : cachedir_read(entry->directory, buf_text(&entry->name));
	if (fd < 0)
		return false;
	bool mapped = map_table(fd, MAP_POPULATE, out);
	close(fd);
	if (!mapped)
		return false;
	memcpy(&h, out->bytes, sizeof h);
	if (!memcmp(h.key, entry->key, KEY_SIZE))
		return true;
	module_table_free(out);
	return false;
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

static void save_file(const struct entry *entry, const void *bytes, size_t size)
{
	struct buf temporary = {0};
	int fd = entry->directory < 0
			 ? -1
			 : cachedir_write(entry->directory, buf_text(&entry->name), &temporary);
	if (fd >= 0)
		cachedir_keep(entry->directory, buf_text(&entry->name), &temporary, fd,
			      write_all(fd, bytes, size));
	buf_free(&temporary);
}

static bool has_frames(struct image *image)
{
	return image_section(image, ".eh_frame") || image_section(image, ".debug_frame") ||
	       image_section(image, ".sframe");
}

/* ---- what it is made of ---- */

/* The debug file whose frames are used, or NULL. */
static struct err *find_debug(struct image *image, enum recipes_mode mode, struct image **out)
{
	*out = NULL;
	return mode == RECIPES_ANALYSIS || has_frames(image) ? NULL : debug_find(image, false, out);
}

/*
 * Whose table it is, and which debug files may have a part in it. What is kept is made of
 * the file itself, and of a debug file only where both are believed: the others' debug
 * files are found by a build-id or beside them, so somebody else may have put them there.
 */
static struct identity identify(struct image *image, enum recipes_mode mode, bool soon,
				enum cache_debug *allowed)
{
	struct identity id = {0};
	struct image *debug;
	struct err *e = find_debug(image, mode, &debug);
	*allowed = CACHE_DEBUG_ANY;
	if (!e && !debug) {
		*allowed = CACHE_DEBUG_NONE;
		id = identity_of(image, soon);
	} else if (!e && identity_is_believed(debug)) {
		id = identity_of(image, soon);
		if (id.kind == IDENTITY_BUILD_ID)
			*allowed = CACHE_DEBUG_BELIEVED;
		else
			id = (struct identity){0};
	}
	image_close(debug);
	err_free(e);
	return id;
}

struct cache_job {
	enum recipes_mode mode;
	enum cache_debug debug;
	struct image *image, *copy; /* what it is made of: the file or a copy */
	struct entry entry;
};

bool cache_find(struct image *image, enum recipes_mode mode, bool soon, struct module_table *out)
{
	enum cache_debug ignored;
	struct entry entry;
	memset(out, 0, sizeof *out);
	const struct identity id = identify(image, mode, soon, &ignored);
	open_entry(&id, mode, &entry);
	bool found = map_file(&entry, out);
	close_entry(&entry);
	return found;
}

struct err *cache_begin(struct image *image, enum recipes_mode mode, struct module_table *out,
			struct cache_job **job)
{
	struct cache_job *j = calloc(1, sizeof *j);
	memset(out, 0, sizeof *out);
	*job = j;
	if (!j)
		return err_new("out of memory");
	struct identity id = identify(image, mode, false, &j->debug);
	j->mode = mode;
	j->image = image;
	open_entry(&id, mode, &j->entry);
	if (j->entry.directory < 0 || map_file(&j->entry, out) || id.kind != IDENTITY_CONTENTS)
		return NULL;
	close_entry(&j->entry);
	id = identity_copy(image, &j->copy);
	if (j->copy)
		j->image = j->copy;
	open_entry(&id, mode, &j->entry);
	return NULL;
}

struct image *cache_image(const struct cache_job *job)
{
	return job->image;
}

enum cache_debug cache_debug(const struct cache_job *job)
{
	return job->debug;
}

void cache_end(struct cache_job *j)
{
	if (!j)
		return;
	close_entry(&j->entry);
	image_close(j->copy);
	free(j);
}

/* ---- making it ---- */

static struct err *build(struct image *image, enum recipes_mode mode, enum cache_debug allowed,
			 const uint8_t *key, struct module_table *out)
{
	struct image *debug = NULL;
	struct rows rows;
	struct err *e = NULL;
	rows_init(&rows);
	if (allowed != CACHE_DEBUG_NONE)
		e = find_debug(image, mode, &debug);
	if (debug && allowed == CACHE_DEBUG_BELIEVED && !identity_is_believed(debug))
		e = err_new("its debug file was replaced meanwhile");
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
	return err_context(e, "unwind table of '%s'", image_path(image));
}

/* Puts it into the cache, and gives it from there: that memory can be given back. */
static void keep(const struct cache_job *j, struct module_table *t)
{
	struct module_table saved = {0};
	save_file(&j->entry, t->bytes, t->size);
	if (map_file(&j->entry, &saved)) {
		module_table_free(t);
		*t = saved;
	}
}

struct err *cache_table(struct image *image, enum recipes_mode mode, struct module_table *out)
{
	struct cache_job *j;
	struct err *e = cache_begin(image, mode, out, &j);
	if (!e && !out->bytes) {
		e = build(j->image, mode, j->debug, j->entry.key, out);
		if (!e)
			keep(j, out);
	}
	cache_end(j);
	return e;
}

/* ---- by another process ---- */

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

struct err *cache_make(struct image *image, enum recipes_mode mode, enum cache_debug allowed,
		       int *out)
{
	static const uint8_t no_key[KEY_SIZE];
	struct module_table t = {0};
	struct err *e = build(image, mode, allowed, no_key, &t);
	*out = -1;
	if (e)
		return e;
	*out = memfd_create("culprit-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*out < 0 || !write_all(*out, t.bytes, t.size) || fcntl(*out, F_ADD_SEALS, SEALS)) {
		e = err_errno("no memory for an unwind table");
		if (*out >= 0)
			close(*out);
		*out = -1;
	}
	module_table_free(&t);
	return e;
}

bool cache_adopt(struct cache_job *j, int fd, struct module_table *out)
{
	int seals = fcntl(fd, F_GET_SEALS);
	memset(out, 0, sizeof *out);
	if (seals < 0 || (seals & SEALS) != SEALS || !map_table(fd, 0, out))
		return false;
	struct table_header *h = out->bytes;
	if (h->machine != image_machine(j->image) || h->mode != j->mode ||
	    mprotect(out->bytes, out->size, PROT_READ | PROT_WRITE)) {
		module_table_free(out);
		return false;
	}
	memcpy(h->key, j->entry.key, KEY_SIZE);
	mprotect(out->bytes, out->size, PROT_READ);
	keep(j, out);
	return true;
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
