/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where code comes from: source file, line and inlined functions, read from
 * DWARF (of the image or its debug file), on demand. Several threads may use one.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct source;

struct source_place {
	const char *function; /* linkage or plain name of the (inlined) function, NULL: not known */
	const char *file;     /* NULL: not known */
	int line;             /* 0: not known */
	const char *declared_file; /* where the function itself is written, as far as known */
	int declared_line;
};

/* `debug` may be NULL (then the image's own DWARF). Both must outlive the result. A file
   without DWARF gives a source that knows nothing. */
struct err *source_open(struct image *image, struct image *debug, struct source **out);
void source_close(struct source *source);

/* The places that the instruction at `address` stands for, innermost inlined function first,
   the containing function last: at most `max`; returns how many (0: nothing known). Strings
   are owned by the source. */
size_t source_places(struct source *source, uint64_t address, struct source_place *out, size_t max);
