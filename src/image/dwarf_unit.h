/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The DWARF of one file: its sections, its units, and the DIEs in them.
 *
 * Threads: units are listed once, before anybody else sees the file (split
 * units: before they are handed out). Afterwards only sections and tables of
 * abbreviations are added, each once, under `lock`.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "image/dwarf_abbrev.h"

struct dwarf_scopes;
struct image;
struct line_table;

enum dwarf_section {
	DWARF_INFO,
	DWARF_ABBREV,
	DWARF_STR,
	DWARF_LINE_STR,
	DWARF_STR_OFFSETS,
	DWARF_ADDR,
	DWARF_RANGES,
	DWARF_RNGLISTS,
	DWARF_LINE,
	DWARF_ARANGES,
	DWARF_CU_INDEX,
	DWARF_SECTIONS,
};

struct dwarf_note { /* the first thing that was found broken */
	_Atomic(char *) text;
};

struct dwarf_file {
	struct image *image; /* where sections come from; NULL: all are in `parts` */
	bool split;          /* a .dwo or .dwp file: its sections are called .debug_*.dwo */
	struct dwarf_span parts[DWARF_SECTIONS];
	atomic_bool part_ready[DWARF_SECTIONS];
	uint8_t *owned[DWARF_SECTIONS];

	struct dwarf_unit *units; /* ascending by offset */
	size_t unit_count;
	struct dwarf_file *shared; /* what dwz moved out; NULL: nothing, or not found */

	pthread_mutex_t lock;
	struct dwarf_abbrevs **abbrevs; /* hash by offset and shape */
	size_t abbrev_count, abbrev_slots;
	uint64_t abbrev_bytes;        /* read so far: more than there are say that tables overlap */
	_Atomic(int64_t) ranges_read; /* entries of lists, for the index of functions */
	struct dwarf_note *note;
};

/* A unit's own DIE is read when it is listed. Offsets are those in .debug_info. */
struct dwarf_unit {
	struct dwarf_file *file;
	uint64_t offset, end; /* of the whole unit */
	uint64_t die;         /* the first */
	uint64_t abbrev_offset;
	struct dwarf_shape shape;
	uint8_t type; /* DW_UT_…; one of a type is listed but its DIE is not read */
	_Atomic(struct dwarf_abbrevs *) abbrevs;

	bool has_root;                           /* what follows was read */
	bool has_low, has_ranges, has_addresses; /* addresses: some unit index names it */
	uint16_t language;
	uint64_t low, high; /* high: 0 where there is none */
	uint64_t ranges;    /* where its list is */
	uint64_t lines;     /* of .debug_line; DWARF_NONE: it has none */
	const char *directory, *producer, *split_name;
	uint64_t split_id;
	uint64_t address_base, strings_base, ranges_base, old_ranges_base;
	uint64_t ranges_start; /* of its part of a package's .debug_rnglists */
	/* The unit whose addresses and lines count: itself, or the skeleton of a split one. */
	struct dwarf_unit *skeleton;

	_Atomic(struct line_table *) line_table; /* of lines.c */
	_Atomic(struct dwarf_scopes *) scopes;   /* of dwarf_scopes.c */
};

struct dwarf_value {
	uint64_t raw; /* a number, an offset, or a pointer to a DW_FORM_string */
	uint16_t form;
};

struct dwarf_die {
	uint64_t offset;
	const struct dwarf_abbrev *abbrev;
	uint32_t has; /* bits of enum dwarf_wanted */
	struct dwarf_value values[WANTED];
};

struct dwarf_walk { /* through the DIEs of a unit, in their order */
	struct dwarf_unit *unit;
	const struct dwarf_abbrevs *abbrevs;
	struct dwarf_cursor c;
	const uint8_t *base; /* of .debug_info */
	uint32_t depth;      /* of the DIE that comes next */
	uint64_t offset;     /* of the one that came last */
};

void dwarf_note(struct dwarf_note *note, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* `image` stays the caller's. */
void dwarf_file_init(struct dwarf_file *file, struct image *image, bool split,
		     struct dwarf_note *note);
/* Copies all sections, so that the image can be closed. */
void dwarf_file_detach(struct dwarf_file *file);
void dwarf_file_free(struct dwarf_file *file);

struct dwarf_span dwarf_section(struct dwarf_file *file, enum dwarf_section which);

/* Lists the units of .debug_info, as many as there is room for. */
void dwarf_list_units(struct dwarf_file *file);
/* Reads a unit's header at `offset`. False: it makes no sense; *next is where the next one is,
   0: nowhere. */
bool dwarf_read_header(struct dwarf_file *file, uint64_t offset, struct dwarf_unit *out,
		       uint64_t *next);
/* Reads the unit's own DIE. */
void dwarf_read_root(struct dwarf_unit *unit);
/* The unit with this offset of .debug_info in it, or NULL. */
struct dwarf_unit *dwarf_unit_at(struct dwarf_file *file, uint64_t offset);

/* NULL: broken (noted). */
const struct dwarf_abbrevs *dwarf_unit_abbrevs(struct dwarf_unit *unit);

/* Starts at the DIE at `offset`, which gets depth 0. False: broken. */
bool dwarf_walk_start(struct dwarf_walk *walk, struct dwarf_unit *unit, uint64_t offset);
/* The next DIE, whose attributes are next to be read or passed; NULL: there is none any more, or
   it is broken (then the unit is noted). Its depth is in *depth. */
const struct dwarf_abbrev *dwarf_walk_next(struct dwarf_walk *walk, uint32_t *depth);
/* Its attributes. */
void dwarf_walk_read(struct dwarf_walk *walk, const struct dwarf_abbrev *abbrev,
		     struct dwarf_die *die);
void dwarf_walk_pass(struct dwarf_walk *walk, const struct dwarf_abbrev *abbrev);
/* Its attributes and all below it. */
void dwarf_walk_pass_tree(struct dwarf_walk *walk, const struct dwarf_abbrev *abbrev);

/* Reads the one DIE at `offset`, which may take *room bytes, and takes them from it; false: there
   is none, or it is longer. */
bool dwarf_read_die(struct dwarf_unit *unit, uint64_t offset, struct dwarf_die *die,
		    uint64_t *room);

static inline bool dwarf_has(const struct dwarf_die *die, enum dwarf_wanted what)
{
	return die->has & 1u << what;
}
