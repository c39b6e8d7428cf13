/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The line map of an image: which source line each instruction comes from, as
 * DWARF (2 to 5) says in .debug_line. Read by our own code: the bytes are
 * foreign, a program of a few bytes may ask for billions of rows, and whole
 * modules are read, so it is bounded and quick. Units are read when first asked for. Code of Go
 * that DWARF does not describe has what Go's own table says (gotab.h).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct lines;

struct line_row { /* holds for [address, end); of several for one address the last */
	uint64_t address, end;
	uint32_t file; /* lines_file(); 0: not known */
	uint32_t line; /* 0: the compiler says that it comes from no line */
	uint16_t column;
	bool statement;         /* a good place for a breakpoint */
	uint16_t discriminator; /* its lower 15 bits */
};

/* `debug` may be NULL (then the image's own DWARF). Both must outlive the result. Without DWARF:
   lines that know nothing. Several threads may use one. */
struct err *lines_open(struct image *image, struct image *debug, struct lines **out);
void lines_close(struct lines *lines); /* NULL is fine */

/* The rows of [start, end), ascending, without overlaps, cut at both ends; *rows is the caller's to
   free. Where two units claim one address the one that the address table names wins. */
struct err *lines_range(struct lines *lines, uint64_t start, uint64_t end, struct line_row **rows,
			size_t *count);

/* The path of a file, with the directories that DWARF gives; owned by `lines`. Equal paths have
   equal numbers. NULL for 0. */
const char *lines_file(const struct lines *lines, uint32_t file);

/* What was found broken or missing so far, one sentence, or NULL; the same as inlines_damage(). */
const char *lines_damage(const struct lines *lines);
