/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The samples of one function, by its lines, loops and instructions. What was
 * inlined into it is shown where it was called, so lines hang together as a
 * tree: a line belongs to a context (the function, or one that was inlined),
 * and an inlined context to the line that calls it:
 *
 *     solve                        context 0
 *       app.c:14                   line
 *       app.c:15                   line
 *         find, inlined            context
 *           find.h:7               line
 *
 * Each has `self`, the samples in its own instructions (of a context or loop: in
 * all inside of it), and `total`, with all that was called or inlined there; of a
 * recursive function a sample counts once. The self of all lines together is that
 * of the function.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct isa;
struct modules;
struct profile;

#define ANNOTATE_NONE UINT32_MAX

enum annotate_kind { ANNOTATE_CONTEXT, ANNOTATE_LINE, ANNOTATE_LOOP };

struct annotate_item {
	uint8_t kind;     /* enum annotate_kind */
	uint32_t parent;  /* context: the line that calls it, or the context around it where no call
			     is known; line: its context; loop: the loop around it. Item 0 is the
			     function and has none */
	uint32_t context; /* of a line or loop: where it is written */
	const char *name; /* of a context, for people */
	const char *file; /* NULL: not known */
	uint32_t line, last_line; /* 0: not known. Context: where it is written */
	const char *call_file;    /* of an inlined context */
	uint32_t call_line;
	uint32_t depth;   /* of a loop: how many are around it, in whatever context */
	bool has_code;    /* a line with instructions of its own */
	uint64_t header;  /* of a loop: where it begins */
	uint64_t address; /* its first instruction; UINT64_MAX: has none */
};

struct annotate_insn {
	uint64_t address, target; /* target of a direct jump or call; else 0 */
	uint32_t line;            /* item */
	uint32_t loop;            /* item, or ANNOTATE_NONE */
	uint8_t length, kind;     /* enum insn_kind */
	bool is_target;           /* of a jump in this function */
};

struct annotation {
	const struct profile *profile;
	struct modules *modules;
	uint32_t module;
	uint64_t start;     /* its entry */
	const char *symbol; /* as the file says it; NULL: not known */
	const struct isa *isa;
	struct annotate_item *items; /* parents before children */
	size_t item_count;
	struct annotate_insn *insns; /* ascending */
	size_t insn_count;
	bool has_lines; /* some line is known */
	size_t metric_count;
	uint64_t *self, *total; /* [item * metric_count + metric], then instructions likewise */
	uint64_t *whole;        /* samples of each metric in the recording */
	struct annotate_private *own;
};

/* Annotates the function at `address` of a module. `thread`: which count; NULL: all. Profile and
   modules must outlive the result. An error says why there is nothing to show: code that was made at
   run time, code of the kernel, a file that is gone or has changed. */
struct err *annotate_make(const struct profile *profile, struct modules *modules, uint32_t module,
			  uint64_t address, const bool *thread, struct annotation *out);
/* The samples of a whole profile by where they are, for many functions in a row. */
struct annotate_samples;
struct err *annotate_samples_gather(const struct profile *profile, const bool *thread,
				    struct annotate_samples **out);
void annotate_samples_free(struct annotate_samples *samples); /* NULL is fine */
/* The same without totals, which takes much less time: `total` is NULL. */
struct err *annotate_make_self(const struct profile *profile, struct modules *modules,
			       uint32_t module, uint64_t address,
			       const struct annotate_samples *samples, struct annotation *out);
/* The same without samples: `self` and `total` are NULL. */
struct err *annotate_read(const struct profile *profile, struct modules *modules, uint32_t module,
			  uint64_t address, struct annotation *out);
void annotate_free(struct annotation *annotation);

static inline uint64_t annotate_self(const struct annotation *a, uint32_t item, uint32_t metric)
{
	return a->self[item * a->metric_count + metric];
}
static inline uint64_t annotate_total(const struct annotation *a, uint32_t item, uint32_t metric)
{
	return a->total[item * a->metric_count + metric];
}
/* The same of an instruction. */
static inline uint64_t annotate_insn_self(const struct annotation *a, size_t insn, uint32_t metric)
{
	return a->self[(a->item_count + insn) * a->metric_count + metric];
}
static inline uint64_t annotate_insn_total(const struct annotation *a, size_t insn, uint32_t metric)
{
	return a->total[(a->item_count + insn) * a->metric_count + metric];
}
