/* SPDX-License-Identifier: Apache-2.0 */
#include "import/binaries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "process/backing.h"
#include "process/registers.h"
#include "safe/wire.h"

#define BUCKETS 4096u
#define VERSIONS_MAX 64u /* of one path */

struct binaries {
	char *sysroot;
	uint16_t machine;
	uint64_t recorded;
	struct binary *buckets[BUCKETS];
	struct binary **all; /* by id - 1 */
	uint32_t count, room;
};

struct binaries *binaries_new(const char *sysroot, uint16_t machine, uint64_t recorded)
{
	struct binaries *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->machine = machine;
	b->recorded = recorded;
	b->sysroot = sysroot ? strdup(sysroot) : NULL;
	return b;
}

static void binary_free(struct binary *b)
{
	free(b->path);
	free(b->found);
	free(b->problem);
	free(b->segments);
	module_table_free(&b->table);
	free(b);
}

void binaries_free(struct binaries *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct binary *at = b->buckets[i], *next; at; at = next) {
			next = at->chain;
			binary_free(at);
		}
	free(b->all);
	free(b->sysroot);
	free(b);
}

size_t binaries_count(const struct binaries *b)
{
	return b->count;
}

struct binary *binaries_get(const struct binaries *b, uint32_t id)
{
	return id && id <= b->count ? b->all[id - 1] : NULL;
}

static bool number(struct binaries *b, struct binary *new)
{
	if (b->count == b->room) {
		uint32_t room = b->room ? b->room * 2 : 64;
		struct binary **more = reallocarray(b->all, room, sizeof(struct binary *));
		if (!more)
			return false;
		b->all = more;
		b->room = room;
	}
	b->all[b->count++] = new;
	new->id = b->count;
	return true;
}

struct binary *binaries_find(struct binaries *b, const char *path, const char *build_id)
{
	struct binary **bucket = &b->buckets[hash_text(HASH_START, path) % BUCKETS], *at;
	unsigned versions = 0;
	for (at = *bucket; at; at = at->chain)
		if (!strcmp(at->path, path) &&
		    (!build_id[0] || !at->build_id[0] || !strcmp(at->build_id, build_id) ||
		     ++versions == VERSIONS_MAX))
			return at;
	if (b->count == WIRE_MODULE_MAX - 1)
		return NULL;
	at = calloc(1, sizeof *at);
	if (at)
		at->path = strdup(path);
	if (!at || !at->path || !number(b, at)) {
		if (at)
			binary_free(at);
		return NULL;
	}
	snprintf(at->build_id, sizeof at->build_id, "%s", build_id);
	at->is_vdso = !strcmp(path, "[vdso]");
	at->chain = *bucket;
	*bucket = at;
	return at;
}

/* ---- finding ---- */

static bool is_newer(const struct binaries *b, const char *path)
{
	struct stat st;
	return b->recorded && !stat(path, &st) && (uint64_t)st.st_mtime > b->recorded + 1;
}

/* Is it the file that was recorded? */
static struct err *check(const struct binaries *b, const struct binary *wanted,
			 const struct image *image, const char *path)
{
	char id[2 * BUILD_ID_MAX + 1];
	image_build_id_hex(image, id);
	if (image_machine(image) != b->machine)
		return err_new("%s is of another CPU than the recording", path);
	if (wanted->build_id[0] && strcmp(id, wanted->build_id) != 0)
		return err_new("%s changed since the recording", path);
	if (!wanted->build_id[0] && !wanted->is_vdso && is_newer(b, path))
		return err_new("%s was written after the recording", path);
	return NULL;
}

static bool is_regular(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* NULL on success; *image is the caller's. An error of before is replaced by a better one only. */
static struct err *try_path(const struct binaries *b, const struct binary *wanted, const char *path,
			    struct err *before, struct image **image)
{
	struct err *e = is_regular(path) ? image_open(path, image)
					 : err_new("%s: there is no such file", path);
	if (!e) {
		e = check(b, wanted, *image, path);
		if (e) {
			image_close(*image);
			*image = NULL;
			err_free(before);
			return e;
		}
	}
	if (before && e) {
		err_free(e);
		return before;
	}
	err_free(before);
	return e;
}

/* perf keeps copies: ~/.debug/.build-id/ab/cdef…/elf, of the vDSO …/vdso. */
static char *cached_path(const struct binary *wanted)
{
	struct buf path = {0};
	const char *home = getenv("HOME");
	if (!home || strlen(wanted->build_id) < 3)
		return NULL;
	buf_printf(&path, "%s/.debug/.build-id/%.2s/%s/%s", home, wanted->build_id,
		   wanted->build_id + 2, wanted->is_vdso ? "vdso" : "elf");
	return buf_take(&path);
}

/* Sets binary->found where it is a file with a place of its own. */
static struct err *find_image(struct binaries *b, struct binary *wanted, struct image **image)
{
	struct buf inside = {0};
	struct err *e = NULL;
	*image = NULL;
	if (wanted->is_vdso && b->machine == native_machine) {
		e = backing_open_vdso(image);
		if (!e && (e = check(b, wanted, *image, wanted->path))) {
			image_close(*image);
			*image = NULL;
		}
	} else if (!wanted->is_vdso && b->sysroot) {
		buf_printf(&inside, "%s%s", b->sysroot, wanted->path);
		e = try_path(b, wanted, buf_text(&inside), NULL, image);
		if (*image)
			wanted->found = buf_take(&inside);
	}
	if (!*image && !wanted->is_vdso) {
		e = try_path(b, wanted, wanted->path, e, image);
		if (*image)
			wanted->found = strdup(wanted->path);
	}
	char *cached = *image ? NULL : cached_path(wanted);
	if (cached)
		e = try_path(b, wanted, cached, e, image);
	if (!*image && !e)
		e = err_new("%s: there is no copy of it", wanted->path);
	free(cached);
	buf_free(&inside);
	return e;
}

void binary_open(struct binaries *b, struct binary *wanted)
{
	struct image *image;
	const struct image_segment *segments;
	if (wanted->opened)
		return;
	wanted->opened = true;
	struct err *e = find_image(b, wanted, &image);
	if (!e) {
		size_t count = image_segments(image, &segments);
		image_build_id_hex(image, wanted->build_id);
		wanted->segments = reallocarray(NULL, count + 1, sizeof *segments);
		if (wanted->segments) {
			memcpy(wanted->segments, segments, count * sizeof *segments);
			wanted->segment_count = count;
		}
		e = cache_table(image, RECIPES_AUTO, &wanted->table);
		image_close(image);
	}
	if (e)
		wanted->problem = strdup(err_text(e));
	err_free(e);
}
