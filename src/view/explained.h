/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of the functions that are explained (explain/program.h): their control flow, how often code ran, what
 * instructions cost, and why they waited. As columns of numbers, as the page has them (view/pack.h).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code;
struct err;
struct modules;
struct profile;
struct program;
struct strings;

enum explained_column {
	EXPLAINED_FUNCTION, /* of `code`; how many there are: it is not there */
	EXPLAINED_BLOCKS,   /* how many it has */
	EXPLAINED_EDGES,
	EXPLAINED_ENTRY,      /* its first block */
	EXPLAINED_INCOMPLETE, /* 1: edges are missing */
	BLOCK_ADDRESS,        /* by function: of all blocks */
	BLOCK_SIZE,
	BLOCK_COUNT, /* executions */
	BLOCK_LOW,   /* at least, and at most */
	BLOCK_HIGH,
	BLOCK_SURE,   /* enum frequency_confidence */
	BLOCK_LENGTH, /* instructions, if they were counted (view/counted.h); else 0 */
	BLOCK_LINES, /* how many lines of it are told below; of those that are explained, instructions tell them */
	BLOCK_LINE_FILE, /* text */
	BLOCK_LINE,
	EDGE_FROM, /* by function: block of it */
	EDGE_TO,
	EDGE_COUNT,
	EDGE_KIND,   /* enum graph_edge_kind */
	COST_INSN,   /* instruction of `code` */
	COST_COUNT,  /* executions */
	COST_CYCLES, /* hundredths of a cycle, of one execution */
	COST_LOST,   /* of these, what the code does not ask for */
	BLAME_COST,  /* by COST that waits */
	BLAME_CAUSE, /* enum cause */
	BLAME_LOW,   /* hundredths of a cycle, of one execution */
	BLAME_HIGH,
	BLAME_BY,      /* 1 + the instruction of `code` that is to blame; 0: it is not there */
	VERDICT_BLOCK, /* of loops: the block with which it begins, of those of all functions */
	VERDICT_TEXT,
	EXPLAINED_COLUMNS,
};
extern const char *const explained_columns[EXPLAINED_COLUMNS]; /* names */

struct explained {
	struct explained_numbers {
		uint64_t *all;
		size_t count, room;
	} columns[EXPLAINED_COLUMNS];
	bool failed;
};

/* Explains the functions that take most of the time, for program_close. That none can be is no error: the page says
   so. */
void explained_program(const struct profile *profile, struct modules *modules, struct program *out);

/* `program` may be NULL: nothing is explained. */
struct err *explained_make(const struct program *program, const struct code *code,
			   struct strings *strings, struct explained *out);
/* Appends a number to a column. */
void explained_put(struct explained *explained, enum explained_column column, uint64_t number);
void explained_free(struct explained *explained);
