/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to its places, quickly and often.
 *
 * Walking the DIE tree for every question would cost as much as the tree is
 * large. Instead two indices are built when first needed, both of one shape: a
 * sorted array of points, each saying what covers the addresses from there to
 * the next point.
 *
 *     points of the file:   address -> compilation unit
 *     points of a unit:     address -> innermost scope -> its outer scopes
 *
 *         outer()        |----------------------------|
 *         inlined a         |--------------|
 *         inlined b             |----|
 *         points         o  a   b    a     o          -
 *
 * A scope is a function or an inlined function. Names, call lines and lines are
 * looked up only for scopes that are asked for, and kept.
 *
 * The DWARF is foreign. Its offsets must grow along the walk (a tree that points
 * back ends the unit), depth, time and the number of ranges are bounded, line
 * tables are looked over before libdw reads them, ranges outside of the image's
 * code (functions that the linker dropped) are ignored.
 */
#include "image/source.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "image/dwarf_file.h"
#include "image/image.h"

#define DEPTH_MAX 128                   /* of nested DIEs */
#define CHAIN_MAX 256                   /* of nested inlined functions */
#define INTERVALS_MAX ((size_t)1 << 24) /* of one index */
#define ROWS_MAX ((uint64_t)16 << 20)   /* of all line tables together, each takes 100 bytes */
#define TEXT_MAX ((uint64_t)512 << 20)  /* of all their paths */
#define SLOW_NS 1000000000u             /* to walk a unit: this, */
#define SLOW_NS_PER_BYTE 1000           /* and so much more, 30 times what ordinary ones take */
#define NOTHING UINT32_MAX

struct interval {
	uint64_t start, end;
	uint32_t what, depth;
};

struct intervals {
	struct interval *all;
	size_t count, room;
	size_t looked_at; /* ranges, also of those not taken */
};

struct point {
	uint64_t start;
	uint32_t what; /* NOTHING: not covered */
};

struct points {
	struct point *all;
	size_t count;
};

struct scope {
	Dwarf_Die die;
	uint32_t outer;
	bool inlined, known; /* known: the rest was looked up */
	const char *name;
	const char *call_file, *declared_file;
	int call_line, declared_line;
};

struct unit {
	Dwarf_Die die;  /* what the lines hang on */
	Dwarf_Die root; /* what the functions hang on: the same, or in a .dwo file */
	bool indexed;
	bool has_lines; /* that libdw may read */
	struct scope *scopes;
	size_t scope_count, scope_room;
	struct points points;
	const char *directory;
};

struct string {
	struct string *next;
	char text[];
};

#define STRING_BUCKETS 1024

struct source {
	struct image *image, *debug;
	pthread_mutex_t lock; /* libdw is for one thread at a time */
	bool opened;
	struct dwarf_file file;
	uint64_t code_start, code_end;
	uint64_t rows_left, text_left; /* that line tables may still take */
	struct unit *units;
	size_t unit_count;
	struct points points;
	struct string *strings[STRING_BUCKETS];
};

/* ---- points from intervals ---- */

static bool intervals_add(struct intervals *in, uint64_t start, uint64_t end, uint32_t what,
			  uint32_t depth)
{
	if (in->count == in->room) {
		size_t room = in->room ? in->room * 2 : 64;
		struct interval *moved = reallocarray(in->all, room, sizeof(*moved));

		if (!moved || room > INTERVALS_MAX) {
			in->all = moved ? moved : in->all;
			return false;
		}
		in->all = moved;
		in->room = room;
	}
	in->all[in->count++] = (struct interval){start, end, what, depth};
	return true;
}

static int compare_starts(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->what < y->what ? -1 : x->what > y->what;
}

/* Whether `a` lies further in than `b`, where both cover an address. Compilers do let inlined
   functions of one parent overlap; then the later one counts. */
static bool is_inner(const struct interval *a, const struct interval *b)
{
	if (a->depth != b->depth)
		return a->depth > b->depth;
	if (a->start != b->start)
		return a->start > b->start;
	return a->what < b->what;
}

static void swap(struct interval *a, struct interval *b)
{
	struct interval t = *a;

	*a = *b;
	*b = t;
}

/* The intervals that cover the current address are a heap with the innermost on top. */
static void heap_push(struct interval *heap, size_t count, struct interval new_one)
{
	heap[count] = new_one;
	while (count > 0 && is_inner(&heap[count], &heap[(count - 1) / 2])) {
		swap(&heap[count], &heap[(count - 1) / 2]);
		count = (count - 1) / 2;
	}
}

/* Takes the top out; `count` is what remains. */
static void heap_pop(struct interval *heap, size_t count)
{
	size_t at = 0, child;

	heap[0] = heap[count];
	while ((child = 2 * at + 1) < count) {
		if (child + 1 < count && is_inner(&heap[child + 1], &heap[child]))
			child++;
		if (!is_inner(&heap[child], &heap[at]))
			break;
		swap(&heap[child], &heap[at]);
		at = child;
	}
}

static void points_add(struct points *points, uint64_t start, uint32_t what)
{
	if (points->count == 0 || points->all[points->count - 1].what != what)
		points->all[points->count++] = (struct point){start, what};
}

/* Sweeps over the intervals from start to start and end to end. Each step takes one in or one
   out, so there are at most twice as many points. The heap grows over those already read. */
static bool points_make(struct points *points, struct intervals *in)
{
	struct interval *heap = in->all;
	size_t depth = 0, next = 0;
	uint64_t address;

	if (in->count == 0)
		return true;
	points->all = calloc(2 * in->count, sizeof(*points->all));
	if (!points->all)
		return false;
	qsort(in->all, in->count, sizeof(*in->all), compare_starts);
	while (next < in->count || depth > 0) {
		if (depth > 0 && (next == in->count || heap[0].end <= in->all[next].start))
			address = heap[0].end;
		else
			address = in->all[next].start;
		for (; next < in->count && in->all[next].start == address; next++)
			heap_push(heap, depth++, in->all[next]);
		while (depth > 0 && heap[0].end <= address)
			heap_pop(heap, --depth);
		points_add(points, address, depth ? heap[0].what : NOTHING);
	}
	return true;
}

static uint32_t points_find(const struct points *points, uint64_t address)
{
	size_t low = 0, high = points->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (points->all[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? points->all[low - 1].what : NOTHING;
}

/* Adds the ranges of `die`; false: too many or no memory. */
static bool add_ranges(const struct source *source, struct intervals *in, Dwarf_Die *die,
		       uint32_t what, uint32_t depth)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (in->looked_at++ > INTERVALS_MAX)
			return false;
		if (start >= end || start < source->code_start || end > source->code_end)
			continue;
		if (!intervals_add(in, start, end, what, depth))
			return false;
	}
	return true;
}

/* ---- paths ---- */

/* One copy of "directory/file" (or of a file that is absolute), owned by the source. */
static const char *join_path(struct source *source, const char *directory, const char *file)
{
	const char *slash = "/";
	size_t hash = 5381, bucket, first, second;
	struct string *s;

	if (file[0] == '/' || !directory || directory[0] == 0)
		return file;
	if (file[0] == '.' && file[1] == '/')
		file += 2;
	first = strlen(directory);
	second = strlen(file);
	if (directory[first - 1] == '/')
		slash = "";
	for (size_t i = 0; i < second; i++)
		hash = hash * 33 + (unsigned char)file[i];
	bucket = hash % STRING_BUCKETS;
	for (s = source->strings[bucket]; s; s = s->next)
		if (strncmp(s->text, directory, first) == 0 &&
		    strncmp(s->text + first, slash, strlen(slash)) == 0 &&
		    strcmp(s->text + first + strlen(slash), file) == 0)
			return s->text;
	s = malloc(sizeof(*s) + first + 1 + second + 1);
	if (!s)
		return file;
	sprintf(s->text, "%s%s%s", directory, slash, file);
	s->next = source->strings[bucket];
	source->strings[bucket] = s;
	return s->text;
}

/* ---- the scopes of a unit ---- */

struct walk {
	struct source *source;
	struct unit *unit;
	struct intervals intervals;
	Dwarf_Off first, last; /* offsets of the unit's DIE and of the last one seen */
	uint64_t seen, started_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Attributes without contents cost time but no bytes. */
static bool is_too_slow(struct walk *walk)
{
	if (walk->seen++ % 256 != 0)
		return false;
	return now_ns() - walk->started_ns >
	       SLOW_NS + (walk->last - walk->first) * SLOW_NS_PER_BYTE;
}

/* DIEs below which there are no functions with code. */
static bool is_barren(int tag)
{
	switch (tag) {
	case DW_TAG_array_type:
	case DW_TAG_call_site:
	case DW_TAG_common_block:
	case DW_TAG_enumeration_type:
	case DW_TAG_formal_parameter:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_formal_parameter_pack:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_subroutine_type:
	case DW_TAG_variable:
		return true;
	default:
		return false;
	}
}

/* Makes a scope of a DIE that is a function with code, and says which scope is the one for its
   children in *scope. */
static bool add_scope(struct walk *walk, Dwarf_Die *die, int tag, uint32_t depth, uint32_t *scope)
{
	struct unit *unit = walk->unit;
	size_t before = walk->intervals.count;
	uint32_t new_scope = (uint32_t)unit->scope_count;

	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return true;
	if (!add_ranges(walk->source, &walk->intervals, die, new_scope, depth))
		return false;
	if (walk->intervals.count == before)
		return true;
	if (unit->scope_count == unit->scope_room) {
		size_t room = unit->scope_room ? unit->scope_room * 2 : 64;
		struct scope *moved = reallocarray(unit->scopes, room, sizeof(*moved));

		if (!moved || room > INTERVALS_MAX) {
			unit->scopes = moved ? moved : unit->scopes;
			walk->intervals.count = before;
			return false;
		}
		unit->scopes = moved;
		unit->scope_room = room;
	}
	unit->scopes[unit->scope_count++] = (struct scope){
		.die = *die,
		.outer = tag == DW_TAG_inlined_subroutine ? *scope : NOTHING,
		.inlined = tag == DW_TAG_inlined_subroutine,
	};
	*scope = new_scope;
	return true;
}

/* Goes through the DIEs of the unit. Stops for good where the tree makes no sense. */
static void walk_scopes(struct walk *walk)
{
	Dwarf_Die stack[DEPTH_MAX];
	uint32_t scopes[DEPTH_MAX];
	uint32_t depth = 1;
	int found;

	scopes[0] = NOTHING;
	found = dwarf_child(&walk->unit->root, &stack[1]);
	while (depth > 0) {
		Dwarf_Die *die = &stack[depth];
		int tag;

		if (found < 0 || (found == 0 && dwarf_dieoffset(die) <= walk->last))
			return;
		if (found > 0) { /* no more here: the parent's sibling */
			if (--depth > 0)
				found = dwarf_siblingof(&stack[depth], &stack[depth]);
			continue;
		}
		walk->last = dwarf_dieoffset(die);
		tag = dwarf_tag(die);
		scopes[depth] = scopes[depth - 1];
		if (is_too_slow(walk) || !add_scope(walk, die, tag, depth, &scopes[depth]))
			return;
		if (depth + 1 < DEPTH_MAX && !is_barren(tag) && dwarf_haschildren(die) > 0) {
			found = dwarf_child(die, &stack[depth + 1]);
			if (found == 0) {
				depth++;
				continue;
			}
		}
		found = dwarf_siblingof(die, die);
	}
}

static const char *own_string(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(die, name, &attribute));
}

static bool number_of(Dwarf_Die *die, unsigned int name, Dwarf_Word *out)
{
	Dwarf_Attribute attribute;

	return dwarf_formudata(dwarf_attr(die, name, &attribute), out) == 0;
}

/* The functions of a unit compiled with -gsplit-dwarf are in a file of their own. libdw opens
   it; here only that it is an ordinary file is made sure, since opening others may wait. */
static void find_split(struct source *source, struct unit *unit)
{
	const char *name = own_string(&unit->die, DW_AT_dwo_name);
	struct stat status;
	Dwarf_Die root;
	uint8_t type;

	if (!name)
		name = own_string(&unit->die, DW_AT_GNU_dwo_name);
	if (!name || stat(join_path(source, unit->directory, name), &status) != 0 ||
	    !S_ISREG(status.st_mode))
		return;
	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &root, NULL, NULL, NULL) == 0 &&
	    type == DW_UT_skeleton && root.addr)
		unit->root = root;
}

/* Whether libdw may read the unit's lines. */
static bool allow_lines(struct source *source, struct unit *unit)
{
	struct dwarf_lines_cost cost;
	Dwarf_Word offset;

	if (!number_of(&unit->die, DW_AT_stmt_list, &offset) ||
	    !dwarf_bounds_lines(&source->file.lines, offset,
				unit->directory ? strlen(unit->directory) : 0, &cost) ||
	    cost.rows > source->rows_left || cost.text > source->text_left)
		return false;
	source->rows_left -= cost.rows;
	source->text_left -= cost.text;
	return true;
}

static void index_unit(struct source *source, struct unit *unit)
{
	struct walk walk = {.source = source, .unit = unit};

	unit->indexed = true;
	unit->directory = own_string(&unit->die, DW_AT_comp_dir);
	unit->has_lines = allow_lines(source, unit);
	find_split(source, unit);
	walk.first = walk.last = dwarf_dieoffset(&unit->root);
	walk.started_ns = now_ns();
	walk_scopes(&walk);
	points_make(&unit->points, &walk.intervals);
	free(walk.intervals.all);
}

/* ---- the units of the file ---- */

static bool add_unit(struct source *source, Dwarf_Die *die, struct intervals *in, size_t *room)
{
	if (source->unit_count == *room) {
		size_t more = *room ? *room * 2 : 64;
		struct unit *moved = reallocarray(source->units, more, sizeof(*moved));

		if (!moved || more > INTERVALS_MAX) {
			source->units = moved ? moved : source->units;
			return false;
		}
		source->units = moved;
		*room = more;
	}
	source->units[source->unit_count] = (struct unit){.die = *die, .root = *die};
	return add_ranges(source, in, die, (uint32_t)source->unit_count++, 0);
}

static void find_code(struct source *source)
{
	const struct image_segment *segments;
	size_t count = image_segments(source->image, &segments);

	source->code_start = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (!segments[i].executable)
			continue;
		if (segments[i].address < source->code_start)
			source->code_start = segments[i].address;
		if (segments[i].address + segments[i].size > source->code_end)
			source->code_end = segments[i].address + segments[i].size;
	}
}

static bool has_info(const struct image *image)
{
	const struct image_section *s = image ? image_section(image, ".debug_info") : NULL;

	return s && s->size > 0;
}

static void open_file(struct source *source)
{
	struct intervals in = {0};
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	Dwarf_Half version;
	uint8_t type;
	size_t room = 0;

	source->opened = true;
	find_code(source);
	dwarf_file_open(&source->file, has_info(source->debug) ? source->debug : source->image);
	if (!source->file.dwarf)
		return;
	while (dwarf_get_units(source->file.dwarf, cu, &cu, &version, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (!add_unit(source, &die, &in, &room))
			break;
	}
	points_make(&source->points, &in);
	free(in.all);
}

/* ---- names, files, lines ---- */

static const char *file_name(struct source *source, const struct unit *unit, const char *file)
{
	return file && file[0] ? join_path(source, unit->directory, file) : NULL;
}

static const char *string_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	/* Follows abstract origins and specifications, a bounded number of them. */
	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* A file of the unit's line table by its number. */
static const char *file_of(struct source *source, struct unit *unit, Dwarf_Word number)
{
	Dwarf_Files *files;
	size_t count;

	if (!unit->has_lines || dwarf_getsrcfiles(&unit->root, &files, &count) != 0 ||
	    number >= count)
		return NULL;
	return file_name(source, unit, dwarf_filesrc(files, number, NULL, NULL));
}

/* Where the function is written. Numbers of files are those of the unit that has the attribute:
   another's line table was not looked over. */
static void learn_declaration(struct source *source, struct unit *unit, struct scope *scope)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;

	if (dwarf_attr_integrate(&scope->die, DW_AT_decl_line, &attribute) &&
	    dwarf_formudata(&attribute, &number) == 0 && number <= INT32_MAX)
		scope->declared_line = (int)number;
	if (dwarf_attr_integrate(&scope->die, DW_AT_decl_file, &attribute) &&
	    attribute.cu == unit->root.cu && dwarf_formudata(&attribute, &number) == 0)
		scope->declared_file = file_of(source, unit, number);
}

static void learn_scope(struct source *source, struct unit *unit, struct scope *scope)
{
	Dwarf_Word number;

	scope->known = true;
	scope->name = string_of(&scope->die, DW_AT_linkage_name);
	if (!scope->name)
		scope->name = string_of(&scope->die, DW_AT_MIPS_linkage_name);
	if (!scope->name)
		scope->name = string_of(&scope->die, DW_AT_name);
	learn_declaration(source, unit, scope);
	if (!scope->inlined)
		return;
	if (number_of(&scope->die, DW_AT_call_line, &number) && number <= INT32_MAX)
		scope->call_line = (int)number;
	if (number_of(&scope->die, DW_AT_call_file, &number))
		scope->call_file = file_of(source, unit, number);
}

/* File and line of the instruction itself. */
static void find_line(struct source *source, struct unit *unit, uint64_t address,
		      struct source_place *out)
{
	Dwarf_Line *line = unit->has_lines ? dwarf_getsrc_die(&unit->die, address) : NULL;
	int number;

	if (!line)
		return;
	out->file = file_name(source, unit, dwarf_linesrc(line, NULL, NULL));
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		out->line = number;
}

static size_t places_in(struct source *source, struct unit *unit, uint64_t address,
			struct source_place *out, size_t max)
{
	struct source_place place = {0};
	uint32_t at = points_find(&unit->points, address);
	size_t count = 0;

	find_line(source, unit, address, &place);
	for (int i = 0; at != NOTHING && i < CHAIN_MAX && count < max; i++) {
		struct scope *scope = &unit->scopes[at];

		if (!scope->known)
			learn_scope(source, unit, scope);
		place.function = scope->name;
		place.declared_file = scope->declared_file;
		place.declared_line = scope->declared_line;
		out[count++] = place;
		place = (struct source_place){.file = scope->call_file, .line = scope->call_line};
		at = scope->outer;
	}
	if (count == 0 && (place.file || place.line))
		out[count++] = place; /* assembly: lines but no functions */
	return count;
}

/* ---- the face ---- */

struct err *source_open(struct image *image, struct image *debug, struct source **out)
{
	struct source *source = calloc(1, sizeof(*source));

	*out = source;
	if (!source)
		return err_new("%s: out of memory", image_path(image));
	source->image = image;
	source->debug = debug;
	source->rows_left = ROWS_MAX;
	source->text_left = TEXT_MAX;
	pthread_mutex_init(&source->lock, NULL);
	return NULL;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->unit_count; i++) {
		free(source->units[i].scopes);
		free(source->units[i].points.all);
	}
	free(source->units);
	free(source->points.all);
	for (size_t i = 0; i < STRING_BUCKETS; i++) {
		while (source->strings[i]) {
			struct string *next = source->strings[i]->next;

			free(source->strings[i]);
			source->strings[i] = next;
		}
	}
	dwarf_file_close(&source->file);
	pthread_mutex_destroy(&source->lock);
	free(source);
}

size_t source_places(struct source *source, uint64_t address, struct source_place *out, size_t max)
{
	size_t count = 0;
	uint32_t at;

	if (max == 0)
		return 0;
	pthread_mutex_lock(&source->lock);
	if (!source->opened)
		open_file(source);
	at = points_find(&source->points, address);
	if (at != NOTHING) {
		struct unit *unit = &source->units[at];

		if (!unit->indexed)
			index_unit(source, unit);
		count = places_in(source, unit, address, out, max);
	}
	pthread_mutex_unlock(&source->lock);
	return count;
}
