/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the shapes of some bare code give. */
#include "bare_image.h"
#include "recipes/rows.h"
#include "recipes/shapes.h"

/* Closes the image. */
static inline struct rows shapes_of_image(struct image *image)
{
	struct rows rows;
	rows_init(&rows);
	shapes_add(image, &rows);
	rows_finish(&rows);
	image_close(image);
	return rows;
}

static inline struct rows shapes_of(uint16_t machine, const void *code, size_t size)
{
	return shapes_of_image(bare_image(machine, code, size, 0));
}

static inline const struct recipe *at(const struct rows *rows, uint64_t offset)
{
	return &rows->rules[rows_find(rows, BARE_START + offset)];
}
