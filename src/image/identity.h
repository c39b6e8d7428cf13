/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a file is called in the cache. Anybody can write somebody else's build-id into
 * a file and run that: what is made of it must not become the other's. So the build-id
 * is the name of those files only whose owner could do worse anyway: root's and our
 * own, that nobody else may write to, in our own mount namespace (not a container's),
 * and on a file system of which an ordinary user cannot be the master: not FUSE, and not
 * one that is mounted nosuid, which says that its owners are not to be believed.
 *
 * All others have a hash of all their bytes, with the cache's secret in it, so that
 * nobody can make a file that has another's. It is of use only where what is kept was
 * made of the very bytes that were hashed; but the owner may write to the file between
 * the hash and the making: hash a true copy of a container's library, make a
 * table of something else. Two ways lead out:
 *
 *   IDENTITY_CONTENTS   made of a private copy, and the copy was hashed (identity_copy).
 *                       Equal files share it, as those of containers of one image do.
 *   IDENTITY_FILE       the hash is also one of the file's device, number, owner, times and
 *                       kind of file system: what its owner spoils is no other file's.
 *
 * Hashes are remembered in this process by device, number, size and times. Somebody who
 * changes a file without a trace there gets what belongs to the former contents for it, and
 * for it alone.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct image;

#define IDENTITY_MAX 38                       /* bytes; longer build-ids are not used */
#define IDENTITY_COPY_MAX (UINT64_C(1) << 30) /* bytes; larger files are not copied */

enum identity_kind {
	IDENTITY_NONE, /* nothing can be kept for it */
	IDENTITY_BUILD_ID,
	IDENTITY_CONTENTS,
	IDENTITY_FILE,
};

struct identity {
	enum identity_kind kind;
	uint8_t size;
	uint8_t bytes[IDENTITY_MAX];
};

/* What the answer depends on. */
struct identity_facts {
	uid_t owner;
	mode_t mode;
	uint64_t file_system; /* its kind, as in statfs */
	bool nosuid;
	bool here; /* at its path, in our own mount namespace and root */
};

/* Whether what such a file says of itself is believed by `user`. */
bool identity_believes(const struct identity_facts *facts, uid_t user);
/* The same of an image that is a file. One in memory is another process's memory: it is not believed. */
bool identity_is_believed(const struct image *image);

/* By build-id or contents. `soon`: none where that takes long, since it is large and not known yet. */
struct identity identity_of(struct image *image, bool soon);
/* By build-id, or as IDENTITY_FILE. With its debug file, which may be NULL. */
struct identity identity_of_file(struct image *image, struct image *debug);
/* A copy that nobody else can write to, opened in *out, and its identity; NULL where it cannot be made. An image in memory
   is one already: *out is NULL then, too, and the identity there. */
struct identity identity_copy(struct image *image, struct image **out);

/* Appends the text of it, which tells the kinds apart. */
struct buf;
void identity_name(const struct identity *id, struct buf *out);
