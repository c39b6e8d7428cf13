/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From addresses in a process to names, inlined functions, files and lines.
 * Symbols, debug file and DWARF of a module are opened when the first of its
 * addresses is asked for; answers are kept.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct place; /* image/places.h */
struct space;
struct space_module;
struct symbolizer;
struct symbols;

struct symbolize_options {
	bool download;  /* ask debuginfod for debug files */
	bool no_inline; /* only the functions that have frames of their own */
};

/* `space` must outlive the result. */
struct err *symbolizer_open(pid_t pid, struct space *space, const struct symbolize_options *options,
			    struct symbolizer **out);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/* The places of an address, innermost first: at least one, whose fields may all be unknown.
   `exact`: the instruction itself; else a return address, whose place is that of the call.
   Owned by the symbolizer and valid until it is closed. */
size_t symbolize(struct symbolizer *symbolizer, uint64_t address, bool exact,
		 const struct place **out);

/* The symbols of a module, NULL where it has none. */
const struct symbols *symbolizer_symbols(struct symbolizer *symbolizer,
					 const struct space_module *module);
