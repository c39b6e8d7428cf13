/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unwind information of a module as it must be known to write it again: its entries (FDEs) by address, and what a
 * CIE says.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipes/cfi_section.h"

struct err;
struct image;

struct frames_entry {
	uint64_t start, end;
	uint64_t lsda;     /* address of the exception table, 0 where there is none */
	struct cursor cie; /* its bytes, after the id */
	struct cursor program;
};

struct frames {
	struct image *image;
	struct cfi_section section;
	struct frames_entry *entries; /* ascending by start */
	size_t count, room;
	bool damaged; /* there are entries that cannot be read */
	bool failed;
};

/* What a CIE says; all that a copy needs of it. */
struct frames_common {
	uint64_t code_align;
	int64_t data_align;
	uint8_t return_column;
	uint8_t pointer_encoding;
	bool has_lsda;
	uint8_t personality_encoding; /* CFI_POINTER_OMITTED: none */
	uint64_t personality;         /* the address of its slot where it is indirect */
	bool is_signal, key_b, tagged;
	struct cursor program;
};

/* The entries of .eh_frame; `image` must outlive the result. */
struct err *frames_open(struct image *image, struct frames *out);
void frames_close(struct frames *frames);

/* The entry of the code at this address, or NULL. */
const struct frames_entry *frames_find(const struct frames *frames, uint64_t address);

/* What the CIE of an entry says; an error where a copy cannot say the same. */
struct err *frames_read_common(const struct frames *frames, const struct frames_entry *entry,
			       struct frames_common *out);

/* Whether a pointer in this encoding can be written again: it counts from its own place, or is absolute in a program
   that is not moved. What is moved is filled in when the module is loaded: the file does not have it. */
bool frames_can_encode(const struct image *image, uint8_t encoding);
