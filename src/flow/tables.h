/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the indirect jumps of switch statements go: finds the way that leads
 * to such a jump, has the CPU's isa recognise the table, and reads it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct branches;
struct isa;
struct jump_table;

struct tables_code {
	const struct isa *isa;
	const uint8_t *bytes; /* of [start, end), around the jump */
	uint64_t start, end;
	/* The length of the instruction that is known to begin at `at` (in [start, end)); 0: none. */
	unsigned (*length)(const void *context, uint64_t at);
	const void *context;
	const struct branches
		*branches; /* all that are known; NULL: they are searched around the jump */
	bool nearby;       /* look only at the code right before the jump */
};

/* The table of the indirect jump at `jump`. Where the code right before it does not tell, what is
   known to lead there is searched, some 4 KiB around. */
bool tables_find(const struct tables_code *code, uint64_t jump, struct jump_table *out);

/* Where an entry leads, whose bytes these are. */
uint64_t tables_target(const struct jump_table *table, const uint8_t *entry);

/* Reads where a table leads: at most `max` addresses, in order, repetitions left out where they
   follow each other. `data` gives the bytes of constant data at an address and how many follow, NULL
   where there are none. Every target must lie in [low, high): for a table whose count is
   exact anything else means 0 targets, another one ends there. So the narrower the better: those
   of the procedure, where they are known, else of the section. 0 also where `max` is too small, or
   where nothing says where the table ends. */
size_t tables_targets(const struct jump_table *table,
		      const uint8_t *(*data)(const void *context, uint64_t address, size_t *size),
		      const void *context, uint64_t low, uint64_t high, unsigned align,
		      uint64_t *out, size_t max);
