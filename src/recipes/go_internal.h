/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is shared by those who know Go's code: internal to recipes/go*.c. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "image/gotab.h"
#include "isa/insn.h"
#include "unwind/recipe.h"

struct image;
struct rows;

struct go_offsets {      /* of the runtime's objects, as its code has them; 0: not known */
	uint16_t m;      /* in a g */
	uint16_t curg;   /* in an m */
	uint16_t sp, lr; /* in a g, of what it left */
};

struct go {
	struct image *image;
	struct gotab *table;
	const struct isa *isa;
	struct rows *rows;
	uint8_t g; /* the register */
	bool sure; /* the table tells which procedures write SP */
	struct go_offsets offsets;
};

struct go_code { /* of one function */
	const struct go *go;
	struct gotab_function f;
	size_t index;
	const uint8_t *bytes;
	uint64_t end; /* of the bytes that there are */
};

/* Bytes from SP to the CFA, for a frame of so many pushed bytes. */
int32_t go_beyond(const struct go *go, int32_t pushed);
/* The recipe of a frame of so many bytes below the return address (x86-64) or with it (aarch64); FP
   is unchanged. */
struct recipe go_frame(const struct go *go, int32_t pushed);
/* Where a frame of this size has the caller's FP, from the CFA on. */
int32_t go_fp_offset(const struct go *go, int32_t pushed);

/* The next instruction at `at`; false at the end. */
bool go_decode(const struct go_code *code, uint64_t at, struct insn *out);
/* Whether it puts something into SP that does not follow from SP. */
bool go_writes_sp(const struct go *go, const struct insn *insn);
void go_add_rows(const struct go *go, uint64_t start, uint64_t end, const struct recipe *recipe);

/* Adds what is known about a procedure that goes to another stack; false where it is none. */
bool go_add_switch(const struct go_code *code);
/* Reads off the code, where it is that of `systemstack` or `morestack`, where the runtime has what it saves. */
void go_find_offsets(struct go *go, const struct go_code *code);
