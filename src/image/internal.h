/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of image/ share of an image; nobody outside includes it.
 *
 * Threads: an image is filled by image_open*. Afterwards only the contents of
 * segments and sections and the damage text change, each at most once, under
 * `lock`; `ready` is set after the contents it guards. So every function of
 * image.h but image_close may be called from several threads at once, and once
 * contents were touched, getting them again takes no lock.
 */
#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>

#include "image/image.h"

struct contents {
	atomic_bool ready;
	const uint8_t *bytes;
	size_t size;
	uint8_t *owned; /* what to free, NULL where bytes lie in image.memory */
};

struct image {
	char *path;
	int fd;                /* -1: all is in `memory` */
	const uint8_t *memory; /* NULL: read from fd */
	uint8_t *memory_owned;
	uint64_t size;
	bool relocatable_allowed;
	uint64_t most; /* bytes that a section may give when it is decompressed */
	atomic_bool exceeded;

	Elf64_Ehdr header;
	Elf64_Phdr *program_headers;
	size_t program_header_count;
	struct image_segment *segments; /* by address, none wraps around */
	struct contents *segment_contents;
	size_t segment_count;
	struct image_section *sections; /* numbered as in the file */
	struct contents *section_contents;
	size_t section_count;
	char *section_names; /* NUL-terminated as a whole */

	uint8_t build_id[BUILD_ID_MAX];
	size_t build_id_size;

	pthread_mutex_t lock;
	char *damage;
};

/* Notes what is broken, if it is the first; the caller may hold `lock` or be alone. */
void image_note_damage(struct image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Reads up to `size` bytes at `offset` of the file; returns how many there were. */
size_t image_read(struct image *image, uint64_t offset, void *out, size_t size);

/* A malloc'ed copy of at most `size` bytes at `offset`, with a NUL after the last; *got says
   how many. NULL where there are none. */
uint8_t *image_read_copy(struct image *image, uint64_t offset, uint64_t size, size_t *got);

/* A malloc'ed, NUL-terminated copy of a section's contents, decompressed, not cached: for
   tables that are read once. NULL where it has none. */
uint8_t *image_section_copy(struct image *image, const struct image_section *section, size_t *size);

/* image_open_memory, but takes over `bytes` (malloc'ed), also when it fails. */
struct err *image_open_owned(uint8_t *bytes, size_t size, const char *name, struct image **out);

/* image_open for the common part that dwz takes out of debug files: it calls itself relocatable. */
struct err *image_open_shared_debug(const char *path, struct image **out);

/* Makes .eh_frame_hdr, .eh_frame, .dynamic, .dynsym and .dynstr from the program headers of
   an image that has no section headers. False: no memory. */
bool image_synthesize_sections(struct image *image);
