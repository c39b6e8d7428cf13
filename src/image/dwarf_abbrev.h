/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Abbreviations, translated for quick reading: of the attributes of a DIE only
 * the few that somebody wants are taken, what lies between is skipped in one
 * step where its size is known. An attribute without bytes costs no step, so a
 * DIE never costs more than its bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/dwarf_read.h"

enum dwarf_kind {
	DWARF_BARREN,   /* below it there is no function with code */
	DWARF_PASS,     /* namespaces, types: functions may lie below */
	DWARF_BLOCK,    /* of a function's body */
	DWARF_FUNCTION, /* DW_TAG_subprogram */
	DWARF_INLINED,
	DWARF_ROOT, /* of a unit */
};

enum dwarf_wanted {
	WANT_SIBLING,
	WANT_NAME,
	WANT_LINKAGE_NAME,
	WANT_LOW,
	WANT_HIGH,
	WANT_RANGES,
	WANT_ORIGIN,
	WANT_SPECIFICATION,
	WANT_DECL_FILE,
	WANT_DECL_LINE,
	WANT_DECL_COLUMN,
	WANT_CALL_FILE,
	WANT_CALL_LINE,
	WANT_CALL_COLUMN,
	WANT_DISCRIMINATOR,
	/* of units */
	WANT_LINES,
	WANT_DIRECTORY,
	WANT_PRODUCER,
	WANT_LANGUAGE,
	WANT_SPLIT_NAME,
	WANT_SPLIT_ID,
	WANT_ADDRESS_BASE,
	WANT_STRINGS_BASE,
	WANT_RANGES_BASE,
	WANT_OLD_RANGES_BASE,
	WANTED, /* how many there are */
	WANT_NOTHING = WANTED,
};

enum dwarf_how {
	HOW_FIXED,
	HOW_LEB,
	HOW_STRING,
	HOW_BLOCK,
	HOW_COUNTED,
	HOW_INDIRECT,
	HOW_UNKNOWN
};

/* What sizes of forms depend on. */
struct dwarf_shape {
	uint16_t version;
	uint8_t address_size, offset_size;
};

struct dwarf_step {
	uint8_t what; /* enum dwarf_wanted */
	uint8_t how;
	uint16_t form;
	uint32_t size; /* of what is fixed; of the count before a block */
	int64_t value; /* of what has no bytes */
};

struct dwarf_abbrev {
	uint64_t code;
	uint16_t tag;
	uint8_t kind; /* enum dwarf_kind */
	bool children;
	uint32_t first, count; /* steps */
	uint32_t wanted;       /* bits of enum dwarf_wanted */
	int32_t fixed;         /* size of all attributes, -1: varies */
};

struct dwarf_abbrevs {
	uint64_t offset;
	struct dwarf_shape shape;
	struct dwarf_abbrev *all; /* by code */
	struct dwarf_step *steps;
	size_t count, step_count, room, step_room;
	size_t bytes; /* that it was read from */
	bool broken;  /* it ends before its end */
};

/* How a form is passed over; *size as in struct dwarf_step. */
enum dwarf_how dwarf_form_how(uint64_t form, struct dwarf_shape shape, uint32_t *size);

/* Passes over one value. */
void dwarf_form_skip(struct dwarf_cursor *c, uint64_t form, struct dwarf_shape shape);

/* The table at `offset`; with `only` not 0 no further than the abbreviation with that code.
   NULL: no memory. */
struct dwarf_abbrevs *dwarf_abbrevs_read(struct dwarf_span section, uint64_t offset,
					 struct dwarf_shape shape, uint64_t only);
void dwarf_abbrevs_free(struct dwarf_abbrevs *abbrevs); /* NULL is fine */

const struct dwarf_abbrev *dwarf_abbrevs_search(const struct dwarf_abbrevs *abbrevs, uint64_t code);

/* NULL: there is none with this code. Mostly codes count up from 1. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *abbrevs,
							    uint64_t code)
{
	if (code - 1 < abbrevs->count && abbrevs->all[code - 1].code == code)
		return &abbrevs->all[code - 1];
	return dwarf_abbrevs_search(abbrevs, code);
}
