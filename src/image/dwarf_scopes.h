/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a DIE lies in: namespaces, classes, functions. A function that has no
 * linkage name (lambdas, what is in a nameless namespace or local to a function)
 * is known to nobody by its plain name, "operator()", alone.
 */
#include "image/dwarf_unit.h"

struct buf;
struct dwarf_scopes;

/* Appends "outer::inner::" for the DIE at `offset`; nothing where it lies in nothing that has a
   name. The index of the unit is made when first asked for; several threads may ask. */
void dwarf_scopes_append(struct dwarf_unit *unit, uint64_t offset, struct buf *out);

/* Where the lambda expression is written whose code the DIE at `offset` is; false: it is of none. */
bool dwarf_scopes_lambda(struct dwarf_unit *unit, uint64_t offset, uint32_t *file, uint32_t *line);

void dwarf_scopes_free(struct dwarf_scopes *scopes); /* NULL is fine */
