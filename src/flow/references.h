/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a module refers to: the addresses that its code computes and its data
 * holds. Where something is referred to, something else ends: that tells how
 * long a table is that no compare bounds. Found in one quick pass over the code,
 * when first asked for.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct image;
struct isa;
struct references;

/* `image` must outlive the result. Several threads may use one. */
struct err *references_open(struct image *image, const struct isa *isa, struct references **out);
void references_close(struct references *references); /* NULL is fine */

/* The lowest address above `address` that something refers to, or where a section begins or ends;
   UINT64_MAX where there is none. */
uint64_t references_next(struct references *references, uint64_t address);

/* The word that the dynamic linker writes at `address`, relative to the load address; false where
   it writes none. */
bool references_word(struct references *references, uint64_t address, uint64_t *value);
