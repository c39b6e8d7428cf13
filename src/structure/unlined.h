/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which context code without a line belongs to, told from what stands around it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/weave.h"

/* Gives a context to all pieces that are not known. The procedure itself is written in this file.
   False: out of memory. */
bool unlined_mark(struct weave_piece *pieces, size_t count, const struct weave_context *contexts,
		  size_t context_count, uint32_t file);
