/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* From addresses in a process to names, inlined functions, files and lines. `culprit stack` uses it.
   Symbols, debug file and DWARF of a module are opened when one of its addresses is first asked for;
   answers are kept. */
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
	bool no_inline; /* leave out inlined functions */
};

/* `space` must outlive the result. */
struct err *symbolizer_open(pid_t pid, struct space *space, const struct symbolize_options *options,
			    struct symbolizer **out);
void symbolizer_close(struct symbolizer *symbolizer); /* NULL is fine */

/* The places of an address, innermost first. There is at least one, but its fields may all be unknown.
   `exact`: it is the address of an instruction; else it is a return address, and the place is that of the
   call. The result belongs to the symbolizer, and is valid until that is closed. */
size_t symbolize(struct symbolizer *symbolizer, uint64_t address, bool exact,
		 const struct place **out);

/* The symbols of a module; NULL if there are none. */
const struct symbols *symbolizer_symbols(struct symbolizer *symbolizer,
					 const struct space_module *module);
