/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An annotation as text for people, by source lines or by instructions, and as
 * JSON.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct annotation;
struct buf;
struct err;
struct json;
struct sources;

#define ANNOTATE_ALL UINT64_MAX

/* More about instructions, from whoever knows more (explain/show.h). */
struct annotate_more {
	const void *context;
	unsigned columns; /* that each row has more */
	void (*put_titles)(struct buf *out);
	void (*put_columns)(const void *context, size_t insn, struct buf *out);
	/* Calls `put` with each line above an instruction. */
	void (*put_above)(const void *context, size_t insn, void (*put)(void *to, const char *line),
			  void *to);
};

struct annotate_show {
	uint32_t metric;
	double min;       /* what has a smaller share of the function is not pointed out */
	uint64_t context; /* lines or instructions around what has samples; or ANNOTATE_ALL */
	unsigned width;   /* columns to fit into; 0: no matter */
	bool colour;
	bool full_names; /* of C++, with parameters and template arguments */
	bool bytes;      /* of instructions */
	struct sources *sources;
	const struct annotate_more *more; /* of instructions; NULL: nothing */
};

/* Append a title, a line of titles, and rows. */
struct err *annotate_show_source(const struct annotation *annotation,
				 const struct annotate_show *options, struct buf *out);
struct err *annotate_show_asm(const struct annotation *annotation,
			      const struct annotate_show *options, struct buf *out);

/* Writes "metrics", "function", "loops", and "lines" and "instructions" where they are wanted, into
   the object that is open. */
struct err *annotate_show_json(const struct annotation *annotation, struct sources *sources,
			       bool lines, bool instructions, struct json *out);
