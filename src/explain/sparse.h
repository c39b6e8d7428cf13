/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Symmetric positive definite systems with few entries, as control flow gives them: solved by factors whose
 * order keeps them sparse (the node with the fewest neighbours goes first). Of the inverse, the entries
 * where the factors have some can be had, too.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct sparse;

struct sparse_pair {
	uint32_t row, column; /* different */
};

/* A system of `size` unknowns, with entries on the diagonal and at these pairs (each twice is fine). NULL in
   *out: the factors would have too many entries. */
struct err *sparse_open(size_t size, const struct sparse_pair *pairs, size_t pair_count,
			struct sparse **out);
void sparse_close(struct sparse *sparse); /* NULL is fine */

/* All entries become 0; then each is added to. A pair that was not announced is ignored. */
void sparse_clear(struct sparse *sparse);
void sparse_add(struct sparse *sparse, uint32_t row, uint32_t column, double value);

/* Replaces the entries by the factors. What is not positive is made so. */
void sparse_factor(struct sparse *sparse);
/* Solves with these factors, in place. */
void sparse_solve(const struct sparse *sparse, double *values);
/* Puts the diagonal of the inverse into `diagonal`. The factors are lost. */
void sparse_invert(struct sparse *sparse, double *diagonal);
