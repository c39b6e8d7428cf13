/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an ELF file says: its segments, sections, identity. Every byte of it is
 * foreign: all offsets, sizes and counts are checked against the file before
 * use, contents are read (not mapped, so a file cut short under us cannot kill
 * us) when first asked for. Addresses are the file's own virtual addresses.
 * Several threads may use one image; only opening and closing is for one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;

#define BUILD_ID_MAX 64

struct image_segment {              /* a PT_LOAD */
	uint64_t address, size;     /* in memory */
	uint64_t offset, file_size; /* in the file */
	bool executable, writable;
};

struct image_section {
	const char *name; /* owned by the image */
	uint64_t address, offset, size, entry_size, flags;
	uint32_t type, link;
};

/* Opens an executable, shared object, vDSO copy or debug file (ELF64, little
   endian, x86-64 or aarch64). A kernel module or other relocatable object, a
   core file, another class or machine is refused with a sentence that says so. */
struct err *image_open(const char *path, struct image **out);

/* The same from an open file (fd stays the caller's), or from memory, which is copied. */
struct err *image_open_fd(int fd, const char *name, struct image **out);
struct err *image_open_memory(const void *bytes, size_t size, const char *name, struct image **out);

void image_close(struct image *image); /* NULL is fine */

const char *image_path(const struct image *image);
/* The open file, which stays the image's; -1 where it is in memory. */
int image_descriptor(const struct image *image);
/* The same for others, also where it is in memory: the caller's to close; -1 where there can be none. */
int image_hand_over(const struct image *image);
uint16_t image_machine(const struct image *image); /* e_machine */
uint16_t image_type(const struct image *image);    /* ET_EXEC, ET_DYN */
uint64_t image_entry(const struct image *image);
/* The dynamic linker that it asks for, malloc'ed; NULL where it asks for none: a static program
   or a library. */
char *image_interpreter(struct image *image);
/* The GNU build-id as bytes; returns its length, 0 where there is none. */
size_t image_build_id(const struct image *image, const uint8_t **bytes);
/* Build-id as lower-case hex into out[2 * BUILD_ID_MAX + 1]; "" where there is none. */
void image_build_id_hex(const struct image *image, char *out);
/* Whether it is the file at `path` that somebody has seen: the one with this build-id (""; none), or without one, a file that was not
   written after `until`, in seconds since 1970; 0: not known. */
bool image_is_same(const struct image *image, const char *path, const char *build_id,
		   uint64_t until);

size_t image_segments(const struct image *image, const struct image_segment **out);
/* Whether it has code at this address. */
bool image_is_code(const struct image *image, uint64_t address);
size_t image_sections(const struct image *image, const struct image_section **out);
/* By name, or NULL. The first with contents (not SHT_NOBITS) wins. */
const struct image_section *image_section(const struct image *image, const char *name);

/* The contents of a section, decompressed where it is compressed; owned by the image,
   cached. NULL with *size 0 where it has none or it cannot be read (see image_damage). */
const uint8_t *image_section_bytes(struct image *image, const struct image_section *section,
				   size_t *size);

/* The bytes of the file that lie at virtual address `address`, to the end of the file-backed
   part of its segment: *size says how many. NULL where none. Owned by the image, cached. */
const uint8_t *image_bytes_at(struct image *image, uint64_t address, size_t *size);

/* From now on no section of it, nor of its debug file, gives more than `most` bytes when it is decompressed, and a debug
   file that is larger is not opened: for who must stay small. What that refused is missing, and then
   image_exceeded says so. To be called before others use the image. */
void image_bound(struct image *image, uint64_t most);
bool image_exceeded(const struct image *image);

/* What was found broken so far, one sentence, or NULL: contents past the end of the file etc. */
const char *image_damage(const struct image *image);
