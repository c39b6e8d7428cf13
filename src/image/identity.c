/* SPDX-License-Identifier: Apache-2.0 */
#include "image/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/err.h"
#include "base/siphash.h"
#include "image/internal.h"

#define BLOCK (256u << 10)
#define SOON_MAX (16u << 20) /* bytes that are hashed in twenty milliseconds or so */
#define REMEMBERED 512u
#define ID_MIN 8

_Static_assert(CACHEDIR_SECRET == SIPHASH_SIZE, "the cache's secret is the hash's");

/* ---- whom we believe ---- */

bool identity_believes(const struct identity_facts *f, uid_t user)
{
	return f->here && (f->owner == 0 || f->owner == user) && S_ISREG(f->mode) &&
	       !(f->mode & (S_IWGRP | S_IWOTH)) && f->file_system != FUSE_SUPER_MAGIC && !f->nosuid;
}

/* The same file, by the path that the kernel gives it, as we see that; -1: there is another or none. */
static int find_here(int fd, const struct stat *wanted)
{
	char link[32], path[PATH_MAX];
	struct stat st;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	if (length <= 0 || path[0] != '/')
		return -1;
	path[length] = '\0';
	int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place >= 0 && !fstat(place, &st) && st.st_dev == wanted->st_dev &&
	    st.st_ino == wanted->st_ino)
		return place;
	if (place >= 0)
		close(place);
	return -1;
}

bool identity_is_believed(const struct image *image)
{
	struct stat st;
	struct statfs fs;
	if (image->fd < 0 || fstat(image->fd, &st))
		return false;
	int place = find_here(image->fd, &st);
	struct identity_facts facts = {
		.owner = st.st_uid, .mode = st.st_mode, .here = place >= 0 && !fstatfs(place, &fs)};
	if (facts.here) {
		facts.file_system = (uint32_t)fs.f_type;
		facts.nosuid = fs.f_flags & ST_NOSUID;
	}
	if (place >= 0)
		close(place);
	return identity_believes(&facts, geteuid());
}

/* ---- hashes ---- */

struct remembered {
	struct stat_key {
		uint64_t device, inode, size, written, changed;
		uint8_t secret[SIPHASH_SIZE];
	} key;
	bool known;
	uint8_t hash[SIPHASH_SIZE];
};

static struct remembered memory[REMEMBERED];
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct stat_key key_of(const struct stat *st, const uint8_t secret[SIPHASH_SIZE])
{
	struct stat_key key = {.device = st->st_dev,
			       .inode = st->st_ino,
			       .size = (uint64_t)st->st_size,
			       .written = ns(st->st_mtim),
			       .changed = ns(st->st_ctim)};
	memcpy(key.secret, secret, sizeof key.secret);
	return key;
}

static struct remembered *slot_of(const struct stat_key *key)
{
	uint64_t mixed = (key->inode * 31 + key->device) * 0x9e3779b97f4a7c15u;
	return &memory[mixed >> 32 & (REMEMBERED - 1)];
}

static bool recall(const struct stat_key *key, uint8_t hash[SIPHASH_SIZE])
{
	pthread_mutex_lock(&memory_lock);
	const struct remembered *r = slot_of(key);
	bool known = r->known && !memcmp(&r->key, key, sizeof *key);
	if (known)
		memcpy(hash, r->hash, SIPHASH_SIZE);
	pthread_mutex_unlock(&memory_lock);
	return known;
}

static void remember(const struct stat_key *key, const uint8_t hash[SIPHASH_SIZE])
{
	pthread_mutex_lock(&memory_lock);
	struct remembered *r = slot_of(key);
	r->key = *key;
	r->known = true;
	memcpy(r->hash, hash, SIPHASH_SIZE);
	pthread_mutex_unlock(&memory_lock);
}

/* Writes a block, or leaves a hole where it is all zeros: a file may claim to be far larger than it is. */
static bool put_block(int fd, const char *block, size_t size, uint64_t at)
{
	if (!block[0] && !memcmp(block, block + 1, size - 1))
		return true;
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, block + done, size - done, (off_t)(at + done));
		if (n <= 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* All bytes, one after the other, each read once; `copy` is given them where it is not -1. */
static bool hash_bytes(struct image *image, const uint8_t secret[SIPHASH_SIZE], int copy,
		       uint8_t out[SIPHASH_SIZE])
{
	struct siphash hash;
	char *block = malloc(BLOCK);
	uint64_t at = 0;
	bool good = block;
	siphash_start(&hash, secret);
	while (good && at < image->size) {
		uint64_t left = image->size - at;
		size_t got = image_read(image, at, block, left < BLOCK ? (size_t)left : BLOCK);
		good = got && (copy < 0 || put_block(copy, block, got, at));
		if (good)
			siphash_add(&hash, block, got);
		at += got;
	}
	free(block);
	siphash_end(&hash, out);
	return good;
}

/* Remembered, or made anew. */
static bool hash_image(struct image *image, const uint8_t secret[SIPHASH_SIZE], bool soon,
		       uint8_t out[SIPHASH_SIZE])
{
	struct stat st;
	if (image->fd < 0)
		return hash_bytes(image, secret, -1, out);
	if (fstat(image->fd, &st))
		return false;
	const struct stat_key key = key_of(&st, secret);
	if (recall(&key, out))
		return true;
	if (soon && image->size > SOON_MAX)
		return false;
	if (!hash_bytes(image, secret, -1, out))
		return false;
	remember(&key, out);
	return true;
}

/* ---- identities ---- */

static struct identity by_hash(enum identity_kind kind, const uint8_t hash[SIPHASH_SIZE])
{
	struct identity id = {.kind = kind, .size = SIPHASH_SIZE};
	memcpy(id.bytes, hash, SIPHASH_SIZE);
	return id;
}

static bool by_build_id(const struct image *image, struct identity *out)
{
	const uint8_t *bytes;
	size_t size = image_build_id(image, &bytes);
	if (size < ID_MIN || size > IDENTITY_MAX || !identity_is_believed(image))
		return false;
	*out = (struct identity){.kind = IDENTITY_BUILD_ID, .size = (uint8_t)size};
	memcpy(out->bytes, bytes, size);
	return true;
}

/* What no other file has. */
static bool add_file(struct siphash *hash, struct image *image, const uint8_t secret[SIPHASH_SIZE])
{
	uint8_t contents[SIPHASH_SIZE];
	struct stat st = {0};
	struct statfs fs = {0};
	if (!hash_image(image, secret, false, contents))
		return false;
	if (image->fd >= 0 && (fstat(image->fd, &st) || fstatfs(image->fd, &fs)))
		return false;
	const uint64_t numbers[] = {st.st_dev,          st.st_ino,      st.st_uid,
				    ns(st.st_ctim),     ns(st.st_mtim), (uint64_t)st.st_size,
				    (uint32_t)fs.f_type};
	siphash_add(hash, numbers, sizeof numbers);
	siphash_add(hash, contents, sizeof contents);
	return true;
}

static struct identity by_file(struct image *image, struct image *debug)
{
	uint8_t secret[SIPHASH_SIZE], out[SIPHASH_SIZE];
	struct siphash hash;
	if (!cachedir_secret(secret))
		return (struct identity){0};
	siphash_start(&hash, secret);
	if (!add_file(&hash, image, secret) || (debug && !add_file(&hash, debug, secret)))
		return (struct identity){0};
	siphash_end(&hash, out);
	return by_hash(IDENTITY_FILE, out);
}

struct identity identity_of(struct image *image, bool soon)
{
	uint8_t secret[SIPHASH_SIZE], hash[SIPHASH_SIZE];
	struct identity id = {0};
	if (by_build_id(image, &id))
		return id;
	if (image->fd >= 0 && image->size > IDENTITY_COPY_MAX)
		return soon ? id : by_file(image, NULL);
	if (cachedir_secret(secret) && hash_image(image, secret, soon, hash))
		id = by_hash(IDENTITY_CONTENTS, hash);
	return id;
}

struct identity identity_of_file(struct image *image, struct image *debug)
{
	struct identity id;
	if ((!debug || identity_is_believed(debug)) && by_build_id(image, &id))
		return id;
	return by_file(image, debug);
}

/* In the cache's directory, without a name: it may be too large for the memory. */
static int new_copy(void)
{
	int directory, fd = -1;
	err_free(cachedir_open("tables", &directory));
	if (directory < 0)
		return -1;
	fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	close(directory);
	return fd;
}

struct identity identity_copy(struct image *image, struct image **out)
{
	uint8_t secret[SIPHASH_SIZE], hash[SIPHASH_SIZE];
	const struct identity none = {0};
	*out = NULL;
	if (!cachedir_secret(secret))
		return none;
	if (image->fd < 0)
		return hash_bytes(image, secret, -1, hash) ? by_hash(IDENTITY_CONTENTS, hash)
							   : none;
	int fd = image->size <= IDENTITY_COPY_MAX ? new_copy() : -1;
	if (fd < 0)
		return none;
	if (!ftruncate(fd, (off_t)image->size) && hash_bytes(image, secret, fd, hash))
		err_free(image_open_fd(fd, image->path, out));
	close(fd);
	return *out ? by_hash(IDENTITY_CONTENTS, hash) : none;
}

void identity_name(const struct identity *id, struct buf *out)
{
	static const char *const kinds[] = {[IDENTITY_NONE] = "-none",
					    [IDENTITY_BUILD_ID] = "",
					    [IDENTITY_CONTENTS] = "-contents",
					    [IDENTITY_FILE] = "-file"};
	for (unsigned i = 0; i < id->size; i++)
		buf_printf(out, "%02x", id->bytes[i]);
	buf_puts(out, kinds[id->kind]);
}
