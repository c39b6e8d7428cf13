/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The unwind table of a module, made from everything that is known about it.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct rows;

enum recipes_mode {
	RECIPES_AUTO,     /* CFI, corrected where the code proves it wrong; analysis elsewhere */
	RECIPES_CFI,      /* CFI alone */
	RECIPES_ANALYSIS, /* the code alone */
};

/* The rows of a module (see recipes/rows.h), finished. `debug` may be NULL. */
struct err *recipes_rows(struct image *image, struct image *debug, enum recipes_mode mode,
			 struct rows *rows);

/* Packs finished rows into table bytes (unwind/table.h); malloc'ed, the caller's. `key` (40
   bytes) is stored in the header. */
struct err *recipes_pack(const struct rows *rows, uint16_t machine, enum recipes_mode mode,
			 const uint8_t *key, void **bytes, size_t *size);
