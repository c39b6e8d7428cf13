/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Asks lines.h, and checks of every answer what holds of all. */
#include <stdint.h>

#include "base/err.h"
#include "image/image.h"
#include "image/lines.h"
#include "unit.h"

static inline struct lines *open_lines(struct image *image, struct image *debug)
{
	struct lines *lines;
	assert_null(lines_open(image, debug, &lines));
	return lines;
}

static inline size_t range(struct lines *lines, uint64_t start, uint64_t end,
			   struct line_row **rows)
{
	size_t count;
	struct err *e = lines_range(lines, start, end, rows, &count);
	assert_null(e);
	for (size_t i = 0; i < count; i++) {
		assert_true((*rows)[i].address < (*rows)[i].end);
		assert_true((*rows)[i].address >= start && (*rows)[i].end <= end);
		assert_true(i == 0 || (*rows)[i - 1].end <= (*rows)[i].address);
	}
	return count;
}
