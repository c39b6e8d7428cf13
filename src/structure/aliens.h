/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inlined ("alien") code of one procedure, told from the line map alone: code whose
 * line belongs to another procedure. See descriptors.h for whose a line is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/weave.h"

struct descriptors;

/* Gives every piece its context. The procedure itself is written at this place; file 0 where that
   is not known. *contexts is the caller's to free. False: out of memory. */
bool aliens_mark(const struct descriptors *descriptors, uint32_t file, uint32_t line,
		 struct weave_piece *pieces, size_t count, struct weave_context **contexts,
		 size_t *context_count);
