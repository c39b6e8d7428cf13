/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A debug file is taken only with proof that it belongs to the image: the same
 * build-id, or the checksum that .gnu_debuglink names. A candidate that cannot
 * be opened or does not belong is passed over, not an error.
 */
#include "image/debug.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/err.h"
#include "image/image.h"
#include "image/internal.h"

#define CRC_PIECE (1 << 20)

const char *debug_root(void)
{
	const char *root = getenv("CULPRIT_DEBUG_ROOT");
	return root && root[0] ? root : "/usr/lib/debug";
}

static bool same_build_id(const struct image *a, const struct image *b)
{
	const uint8_t *x, *y;
	size_t x_size = image_build_id(a, &x), y_size = image_build_id(b, &y);
	return x_size > 0 && x_size == y_size && memcmp(x, y, x_size) == 0;
}

/* Opens a candidate, or NULL. */
static struct image *open_candidate(struct image *image, const char *path)
{
	struct image *candidate;
	struct err *e = image_open(path, &candidate);
	if (e) {
		err_free(e);
		return NULL;
	}
	image_bound(candidate, image->most);
	if (candidate->size > image->most)
		atomic_store(&image->exceeded, true);
	else if (image_machine(candidate) == image_machine(image))
		return candidate;
	image_close(candidate);
	return NULL;
}

static struct image *find_by_build_id(struct image *image)
{
	char hex[2 * BUILD_ID_MAX + 1], path[PATH_MAX];
	struct image *candidate;
	image_build_id_hex(image, hex);
	if (strlen(hex) < 4 || snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug",
					debug_root(), hex, hex + 2) >= (int)sizeof path)
		return NULL;
	candidate = open_candidate(image, path);
	if (candidate && same_build_id(image, candidate))
		return candidate;
	image_close(candidate);
	return NULL;
}

/* ---- .gnu_debuglink ---- */

/* The name and checksum that it holds: false where it has none or they make no sense. */
static bool read_debuglink(struct image *image, char *name, size_t room, uint32_t *crc)
{
	const struct image_section *section = image_section(image, ".gnu_debuglink");
	const uint8_t *bytes;
	size_t size, length;
	if (!section)
		return false;
	bytes = image_section_bytes(image, section, &size);
	if (!bytes)
		return false;
	length = strnlen((const char *)bytes, size);
	if (length == 0 || length >= room || memchr(bytes, '/', length))
		return false;
	memcpy(name, bytes, length);
	name[length] = 0;
	length = (length + 4) & ~(size_t)3;
	if (length + sizeof *crc > size)
		return false;
	memcpy(crc, bytes + length, sizeof *crc);
	return true;
}

static bool has_checksum(struct image *candidate, uint32_t wanted)
{
	uint8_t *piece = malloc(CRC_PIECE);
	uLong crc = crc32(0, NULL, 0);
	uint64_t at = 0;
	size_t got;
	if (!piece)
		return false;
	while ((got = image_read(candidate, at, piece, CRC_PIECE)) > 0) {
		crc = crc32(crc, piece, (uInt)got);
		at += got;
	}
	free(piece);
	return crc == wanted;
}

static bool contradicts(const struct image *a, const struct image *b)
{
	const uint8_t *x, *y;
	return image_build_id(a, &x) && image_build_id(b, &y) && !same_build_id(a, b);
}

static struct image *find_linked_in(struct image *image, const char *root, const char *dir,
				    const char *below, const char *name, uint32_t crc)
{
	char path[PATH_MAX];
	struct image *candidate;
	if (snprintf(path, sizeof path, "%s%s%s/%s", root, dir, below, name) >= (int)sizeof path)
		return NULL;
	candidate = open_candidate(image, path);
	if (candidate && !contradicts(image, candidate) && has_checksum(candidate, crc))
		return candidate;
	image_close(candidate);
	return NULL;
}

/* `path` is the image's; what follows its last slash is cut off. */
static struct image *find_linked(struct image *image, char *path, const char *name, uint32_t crc)
{
	char *slash = strrchr(path, '/');
	struct image *found;
	if (!slash)
		return NULL;
	*slash = 0;
	found = find_linked_in(image, "", path, "", name, crc);
	if (!found)
		found = find_linked_in(image, "", path, "/.debug", name, crc);
	if (!found)
		found = find_linked_in(image, debug_root(), path, "", name, crc);
	return found;
}

static struct image *find_by_link(struct image *image)
{
	char name[NAME_MAX + 1], path[PATH_MAX];
	struct image *found = NULL;
	uint32_t crc;
	if (!read_debuglink(image, name, sizeof name, &crc))
		return NULL;
	if (realpath(image_path(image), path))
		found = find_linked(image, path, name, crc);
	/* As it was named: /lib/x has debug files from before /lib became /usr/lib. */
	if (!found && image_path(image)[0] == '/' && strlen(image_path(image)) < sizeof path) {
		strcpy(path, image_path(image));
		found = find_linked(image, path, name, crc);
	}
	return found;
}

/* ---- debuginfod ---- */

struct debuginfod {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *id, int size, char **path);
	void (*end)(void *client);
};

/* Loaded only when used, so that nothing else depends on it; stays loaded. */
static bool load_debuginfod(struct debuginfod *api)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	*(void **)&api->begin = dlsym(library, "debuginfod_begin");
	*(void **)&api->find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&api->end = dlsym(library, "debuginfod_end");
	return api->begin && api->find && api->end;
}

static struct image *download(const struct image *image)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct image *found = NULL;
	struct debuginfod api;
	const uint8_t *id;
	size_t size = image_build_id(image, &id);
	char *path = NULL;
	void *client;
	int fd;
	if (!urls || !urls[0] || size == 0 || !load_debuginfod(&api))
		return NULL;
	client = api.begin();
	if (!client)
		return NULL;
	fd = api.find(client, id, (int)size, &path);
	if (fd >= 0) {
		err_free(image_open_fd(fd, path ? path : "debuginfod", &found));
		close(fd);
		free(path);
	}
	api.end(client);
	if (found && same_build_id(image, found))
		return found;
	image_close(found);
	return NULL;
}

struct err *debug_find(struct image *image, bool allow_download, struct image **out)
{
	*out = find_by_build_id(image);
	if (!*out)
		*out = find_by_link(image);
	if (!*out && allow_download)
		*out = download(image);
	return NULL;
}
