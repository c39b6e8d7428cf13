/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was explained, as text for people and as JSON. */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct function;
struct json;
struct program;

struct explain_show {
	bool colour;
	unsigned width; /* columns to fit into; 0: no matter */
};

/* A program: cycles by cause, and its worst loops. */
void explain_show_program(const struct program *program, const struct explain_show *options,
			  struct buf *out);
/* Its only function: cycles by cause, its loops, and the instructions that lose most. */
void explain_show_function(const struct program *program, const struct explain_show *options,
			   struct buf *out);

/* "machine", "causes" and "functions" of the object that is open. */
void explain_json(const struct program *program, struct json *out);

/* Beside the instructions of `culprit annotate --asm`: columns, and lines above those that wait. */
#define EXPLAIN_COLUMNS 22
void explain_put_titles(struct buf *out);
void explain_put_columns(const void *function, size_t insn, struct buf *out);
/* Calls `put` with each line above an instruction. */
void explain_put_bubbles(const void *function, size_t insn, void (*put)(void *to, const char *line),
			 void *to);
