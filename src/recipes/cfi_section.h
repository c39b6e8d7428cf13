/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A section of call-frame information (.eh_frame, .debug_frame) as bytes:
 * its entries one after the other. Inside recipes/, and for tests that make
 * such bytes by hand.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "recipes/cfi_program.h"

struct image;
struct image_segment;

struct cfi_section {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
	uint64_t text_base, data_base; /* what DW_EH_PE_textrel and DW_EH_PE_datarel count from */
	const struct isa *isa;
	bool is_eh; /* .eh_frame, not .debug_frame */
	/* Code must lie in an executable one of these; with none given, anywhere. */
	const struct image_segment *segments;
	size_t segment_count;
	uint64_t budget; /* operations of expressions that may be computed; 0: the usual number */
};

/* An entry: what it covers and how to unwind there. */
struct cfi_entry {
	uint64_t start, end;
	uint64_t lsda;                   /* address of the exception table, 0 where there is none */
	bool is_signal;                  /* a frame that the kernel pushed */
	const struct cfi_common *common; /* valid while the entries are being read */
	struct cursor cie;               /* the bytes of its CIE, after the id */
	struct cursor program;
	struct cfi_bases bases;
};

/* Calls `take` for every valid FDE, in the section's order, until it returns false. `machine`
   runs the CIEs' instructions; damaged entries are counted in its stats. Returns false where
   memory ran out. */
bool cfi_each_entry(const struct cfi_section *section, struct cfi_machine *machine,
		    bool (*take)(void *context, const struct cfi_entry *entry), void *context);

/* Adds the rows of a section. False where memory ran out. */
bool cfi_read_section(const struct cfi_section *section, struct rows *rows,
		      struct cfi_stats *stats);

/* Fills everything but bytes, size and address for a section of `image`; false where its CPU
   is not one of ours. */
bool cfi_section_init(struct cfi_section *section, struct image *image);

/* Does [start, end) lie in an executable segment? */
bool cfi_is_code(const struct image_segment *segments, size_t count, uint64_t start, uint64_t end);
