/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One line table of .debug_line: its header with the files, and the rows that
 * its program makes. Also what lines.c shares with inlines.c.
 *
 * A table's header is read when the table is made. Its rows are made when first
 * asked for and may be dropped again, both under its lock.
 */
#include "image/dwarf_unit.h"
#include "image/lines.h"

struct dwarf_module;

struct packed_row {      /* 16 bytes: whole modules are kept */
	uint32_t offset; /* from the start of its sequence */
	uint32_t file;   /* lines_file() */
	uint32_t line;
	uint16_t column;
	uint16_t rest; /* discriminator, and whether it is a statement in the lowest bit */
};

struct line_sequence { /* its rows hold for [start, end) without gaps */
	uint64_t start, end;
	size_t first, count;
};

struct line_file {
	const char *name;
	uint64_t directory;
	_Atomic(uint32_t) number; /* lines_file(); LINE_FILE_UNKNOWN: not asked for yet */
};

#define LINE_FILE_UNKNOWN UINT32_MAX

struct line_table {
	struct lines *lines;
	struct dwarf_file *file;
	uint64_t offset;
	struct line_table *next; /* in the hash of tables */
	const char *directory;   /* of the unit */

	bool good; /* its header could be read */
	uint16_t version;
	uint8_t minimum, line_range, opcode_base, address_size, offset_size;
	int8_t line_base;
	bool statement;
	const uint8_t *operands;
	struct dwarf_span program;
	const char **directories;
	struct line_file *files;
	size_t directory_count, file_count;
	_Atomic(int64_t) text_left; /* of paths that may still be made */

	pthread_mutex_t lock;
	bool has_rows, was_read;
	struct packed_row *rows;
	struct line_sequence *sequences; /* ascending, without overlaps */
	size_t row_count, sequence_count;
};

/* Reads the header at table->offset of table->file; sets `good`. *next is where the table ends, 0:
   not known. */
void line_table_read(struct line_table *table, uint64_t *next);
/* Runs the program. The caller holds the lock. */
void line_table_make_rows(struct line_table *table);
void line_table_drop_rows(struct line_table *table);
void line_table_free(struct line_table *table);

/* lines_file() for a file by the number that rows and DIEs give it. */
uint32_t line_table_file(struct line_table *table, uint64_t number);

/* lines_file() for a name in one of the table's directories; 0: unknown. */
uint32_t lines_intern(struct line_table *table, uint64_t directory, const char *name);

/* ---- for inlines.c ---- */

struct dwarf_module *lines_module(struct lines *lines);
struct lines_files *lines_paths(struct lines *lines);
/* Go's own table, for code that DWARF does not describe; NULL where there is none. */
const struct gotab *lines_go(const struct lines *lines);
/* lines_file() for a file by its number in the unit's own table. */
uint32_t lines_unit_file(struct lines *lines, struct dwarf_unit *unit, uint64_t number);
