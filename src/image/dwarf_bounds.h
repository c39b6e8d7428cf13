/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What libdw must not be given. It checks that DWARF stays inside its section,
 * but not how much it makes of it: a few kilobytes can ask for gigabytes or
 * hours. These checks read the same bytes first, in one pass, and say no.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_part {
	const uint8_t *bytes; /* NULL: there is no such section */
	size_t size;
};

/* Abbreviation tables that units share in part would be kept once per unit, and abbreviations of
   thousands of attributes make a byte of .debug_info cost as much. False: has such. */
bool dwarf_bounds_abbrevs(struct dwarf_part info, struct dwarf_part abbrev);

struct dwarf_lines_cost {
	uint64_t rows; /* of the line table */
	uint64_t text; /* bytes of all paths, each written out */
};

struct dwarf_line_parts {
	struct dwarf_part line, line_str, str;
};

/* What the line table at `offset` costs, at most, with a unit's directory of this length. False:
   more than anybody needs, or it cannot be told. */
bool dwarf_bounds_lines(const struct dwarf_line_parts *parts, uint64_t offset,
			size_t directory_length, struct dwarf_lines_cost *out);
