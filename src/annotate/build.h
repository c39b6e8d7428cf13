/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What annotate*.c share while an annotation is made. */
#include "annotate/annotate.h"

struct structure_procedure;

struct annotate_private {
	struct structure_procedure
		*made; /* where no structure is known: one scope over the symbol */
	char **names;  /* for people, of the contexts */
	size_t name_count, name_room;
};

/* Fills items, and for each of the procedure's scopes the line and loop that its instructions
   belong to; then the instructions of all of its ranges. */
struct err *annotate_read_code(struct annotation *a, const struct structure_procedure *procedure);

/* The instruction that covers an address; ANNOTATE_NONE: none does. */
uint32_t annotate_insn_at(const struct annotation *a, uint64_t address);
