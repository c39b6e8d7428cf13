/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the attributes of a DIE stand for: strings, addresses, other DIEs and
 * ranges of addresses, wherever in the file or in another one they are written.
 */
#include "image/dwarf_unit.h"
#include "image/inlines.h"

/* NULL: it has none, or it lies outside of its section. */
const char *dwarf_string(struct dwarf_unit *unit, const struct dwarf_die *die,
			 enum dwarf_wanted what);
/* The string that a value of this form and number means, also in a line table. */
const char *dwarf_string_of(struct dwarf_unit *unit, struct dwarf_value value);

bool dwarf_address(struct dwarf_unit *unit, const struct dwarf_die *die, enum dwarf_wanted what,
		   uint64_t *out);
/* DW_AT_high_pc is an address or a distance from `low`. */
bool dwarf_high(struct dwarf_unit *unit, const struct dwarf_die *die, uint64_t low, uint64_t *out);

/* A number that fits in 32 bits; 0 where there is none. */
uint32_t dwarf_number(const struct dwarf_die *die, enum dwarf_wanted what);

/* The DIE that this one refers to. False: none, or one of a type unit or a file that is missing. */
bool dwarf_reference(struct dwarf_unit *unit, const struct dwarf_die *die, enum dwarf_wanted what,
		     struct dwarf_unit **other, uint64_t *offset);

struct dwarf_ranges {
	struct inline_range *all;
	size_t count, room;
	uint64_t code_start, code_end; /* others are of functions that the linker dropped */
	uint64_t budget;               /* entries that may still be read */
	bool exceeded;                 /* one of them ended: the budget or the memory */
};

/* Where its list of ranges is. False: it has none. */
bool dwarf_ranges_offset(struct dwarf_unit *unit, const struct dwarf_die *die, uint64_t *out);
/* Appends the ranges of the list at `offset`. */
void dwarf_ranges_read(struct dwarf_unit *unit, uint64_t offset, struct dwarf_ranges *out);
/* Appends one. */
void dwarf_ranges_add(struct dwarf_ranges *out, uint64_t start, uint64_t end);
/* Appends the ranges of a DIE, however it gives them. */
void dwarf_ranges_of(struct dwarf_unit *unit, const struct dwarf_die *die,
		     struct dwarf_ranges *out);
