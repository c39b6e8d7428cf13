/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What board.c and path.c share. */
#include <stdint.h>

struct profile;
struct scope;
struct board;
struct tree;

/* A copy that lives as long as the board; "" without memory. */
const char *text_keep(struct board *board, const char *text);
/* The short name of a scope, as one that people read. */
const char *text_label(struct board *board, const struct scope *scope);
/* What makes a scope the same on every board. */
uint64_t scope_identity(const struct profile *profile, const struct scope *scope);

/* Fills in the steps: by which way the row `selected` of the board's wish was mostly reached, and where
   that went. `tree` is top-down, `now` and `all` its metrics. */
void path_make(const struct tree *tree, const struct profile *profile, uint32_t now, uint32_t all,
	       struct board *board);
