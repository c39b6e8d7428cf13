/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * .sframe, versions 1 and 2: the small unwind format that GNU as writes with
 * --gsframe. Other versions are left alone (one bad entry is counted).
 */
#include <stdbool.h>

struct cfi_section;
struct cfi_stats;
struct rows;

/* Adds the rows of a section. False where memory ran out. */
bool sframe_read_section(const struct cfi_section *section, struct rows *rows,
			 struct cfi_stats *stats);
