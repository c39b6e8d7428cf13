/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function symbols from every table that an image and its debug file have.
 *
 * Collected as they come, sorted by address, then each run of aliases is cut
 * down to the best name. What remains of a damaged or lying table: a size that
 * leads out of the code becomes 0 (unknown), a name outside its string table
 * loses the symbol. Labels without size inside a sized function are dropped:
 * they are places in it, not functions.
 *
 * Where only some addresses matter (near.h), what is far from them is passed over, and names are read one by
 * one.
 *
 * Functions may nest (several entries of one assembly routine) or overlap, so a
 * search cannot just look at the last start before the address. `outer` links
 * each symbol to the nearest earlier one that reaches beyond its start.
 */
#include "image/symbols.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/gotab.h"
#include "image/image.h"
#include "image/inflate.h"
#include "image/internal.h"
#include "image/near.h"
#include "image/v8tab.h"

#define NAME_COMPARED 4096 /* bytes looked at to choose among aliases */
#define MANY 1000          /* symbols that are worth another way to sort */
#define DIGIT_BITS 11
#define DIGITS (1u << DIGIT_BITS)
#define NESTING_MAX 256 /* outer functions looked at */
#define NO_OUTER UINT32_MAX
#define TABLE_MAX (UINT64_C(4) << 30) /* bytes */
#define PIECE 4096u                   /* symbols that are read at a time */
#define NAME_USUAL 256u               /* bytes of a name that are read at first */
#define NAME_MOST (1u << 20)

struct range {
	uint64_t start, end;
};

struct symbols {
	struct symbol *all;
	uint32_t *outer;
	size_t count, room;
	struct range *code; /* executable parts, sorted, not overlapping */
	size_t code_count;
	char **names; /* that symbols point into: string tables, or single ones */
	size_t names_count, names_room;
	struct near *near; /* NULL: all are wanted */
};

/* A symbol table of an image. */
struct symtab {
	struct image *image;
	const struct image_section *entries, *strings;
	const char *names; /* NULL: each is read when it is wanted */
	size_t names_size;
};

/* ---- where code is ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_range(struct symbols *symbols, uint64_t start, uint64_t size)
{
	if (size == 0 || size > UINT64_MAX - start)
		return;
	symbols->code[symbols->code_count++] = (struct range){start, start + size};
}

/* After sorting: what overlaps becomes one, what only touches stays apart. */
static void merge_ranges(struct symbols *symbols)
{
	struct range *code = symbols->code;
	size_t kept = 0;
	if (symbols->code_count == 0)
		return;
	qsort(code, symbols->code_count, sizeof *code, compare_ranges);
	for (size_t i = 1; i < symbols->code_count; i++) {
		if (code[i].start >= code[kept].end)
			code[++kept] = code[i];
		else if (code[i].end > code[kept].end)
			code[kept].end = code[i].end;
	}
	symbols->code_count = kept + 1;
}

/* Executable sections, or where there are none, executable segments. */
static bool find_code(struct symbols *symbols, const struct image *image)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	size_t section_count = image_sections(image, &sections);
	size_t segment_count = image_segments(image, &segments);
	symbols->code = calloc(section_count + segment_count + 1, sizeof *symbols->code);
	if (!symbols->code)
		return false;
	for (size_t i = 0; i < section_count; i++)
		if ((sections[i].flags & SHF_EXECINSTR) && (sections[i].flags & SHF_ALLOC))
			add_range(symbols, sections[i].address, sections[i].size);
	for (size_t i = 0; i < segment_count && symbols->code_count == 0; i++)
		if (segments[i].executable)
			add_range(symbols, segments[i].address, segments[i].size);
	merge_ranges(symbols);
	return true;
}

/* The executable part that holds `address`, or NULL. */
static const struct range *code_at(const struct symbols *symbols, uint64_t address)
{
	size_t after = FIRST_NOT(i, symbols->code_count, symbols->code[i].start <= address);
	if (after == 0 || address >= symbols->code[after - 1].end)
		return NULL;
	return &symbols->code[after - 1];
}

/* ---- one table ---- */

static bool is_function(const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);
	return sym->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* Assembly labels; "$x" and the like only map code and data. */
static bool is_label(const Elf64_Sym *sym)
{
	return ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE && sym->st_shndx != SHN_UNDEF &&
	       sym->st_shndx != SHN_ABS;
}

static bool own_name(struct symbols *symbols, char *name)
{
	if (!ARRAY_ROOM(symbols->names, symbols->names_count, symbols->names_room)) {
		free(name);
		return false;
	}
	symbols->names[symbols->names_count++] = name;
	return true;
}

/* Longer and longer pieces, until its end is in one. */
static bool read_name(struct symbols *symbols, const struct symtab *table, uint32_t at,
		      const char **out)
{
	uint64_t most = table->strings->size - at;
	size_t size = NAME_USUAL, got;
	char *text = NULL;
	for (;; size *= 4) {
		free(text);
		text = (char *)image_read_copy(table->image, table->strings->offset + at,
					       size < most ? size : most, &got);
		if (!text || got < size || size >= NAME_MOST || memchr(text, 0, got))
			break;
	}
	char *fits = text ? realloc(text, strlen(text) + 1) : NULL;
	*out = text = fits ? fits : text;
	return !text || own_name(symbols, text);
}

/* NULL: it has none. False: no memory. */
static bool find_name(struct symbols *symbols, const struct symtab *table, uint32_t at,
		      const char **out)
{
	*out = NULL;
	if (at >= table->names_size)
		return true;
	if (!table->names)
		return read_name(symbols, table, at, out);
	*out = table->names + at;
	return true;
}

static bool append(struct symbols *symbols, struct symbol symbol)
{
	if (!ARRAY_ROOM(symbols->all, symbols->count, symbols->room))
		return false;
	symbols->all[symbols->count++] = symbol;
	return true;
}

static bool add_symbol(struct symbols *symbols, const struct symtab *table, const Elf64_Sym *sym)
{
	unsigned int binding = ELF64_ST_BIND(sym->st_info);
	const struct range *code;
	const char *name;
	uint64_t size = sym->st_size;
	if (!is_function(sym) && !is_label(sym))
		return true;
	code = code_at(symbols, sym->st_value);
	if (!code)
		return true;
	if (size > code->end - sym->st_value)
		size = 0;
	if (symbols->near && !near_keeps(symbols->near, sym->st_value, size))
		return true;
	if (!find_name(symbols, table, sym->st_name, &name))
		return false;
	if (!name || !name[0] || (is_label(sym) && name[0] == '$'))
		return true;
	return append(symbols, (struct symbol){
				       .address = sym->st_value,
				       .size = size,
				       .name = name,
				       .global = binding == STB_GLOBAL || binding == STB_WEAK,
			       });
}

/* Those that are certain to be kept in the end: with a name, and a size. */
static bool see_symbol(struct symbols *symbols, const struct symtab *table, const Elf64_Sym *sym)
{
	const struct range *code = is_function(sym) ? code_at(symbols, sym->st_value) : NULL;
	if (code && sym->st_name && sym->st_name < table->names_size && sym->st_size &&
	    sym->st_size <= code->end - sym->st_value)
		near_see(symbols->near, sym->st_value);
	return true;
}

/* A piece at a time, for there may be very many. False: no memory. */
static bool read_entries(struct symbols *symbols, const struct symtab *table,
			 bool (*take)(struct symbols *, const struct symtab *, const Elf64_Sym *))
{
	uint64_t size = table->entries->size < TABLE_MAX ? table->entries->size : TABLE_MAX;
	uint64_t left = size / sizeof(Elf64_Sym), offset = table->entries->offset;
	Elf64_Sym *piece = reallocarray(NULL, PIECE, sizeof *piece);
	bool good = piece;
	while (good && left) {
		size_t got = image_read(table->image, offset, piece,
					(left < PIECE ? left : PIECE) * sizeof *piece) /
			     sizeof *piece;
		for (size_t i = 0; good && i < got; i++)
			good = take(symbols, table, &piece[i]);
		if (!got) {
			pthread_mutex_lock(&table->image->lock);
			image_note_damage(table->image, "section %s lies past the end of the file",
					  table->entries->name);
			pthread_mutex_unlock(&table->image->lock);
			break;
		}
		offset += got * sizeof *piece;
		left -= got;
	}
	free(piece);
	return good;
}

/* Its bytes in the file are its contents. */
static bool is_plain(const struct image_section *s)
{
	return s->type != SHT_NOBITS && !(s->flags & SHF_COMPRESSED);
}

static bool find_table(struct image *image, const char *name, struct symtab *out)
{
	const struct image_section *entries = image_section(image, name), *sections;
	size_t section_count = image_sections(image, &sections);
	if (!entries || entries->link >= section_count)
		return false;
	*out = (struct symtab){
		.image = image,
		.entries = entries,
		.strings = &sections[entries->link],
		.names_size = sections[entries->link].size,
	};
	return is_plain(entries) && is_plain(out->strings);
}

/* Reads one symbol table; one that is absent or unreadable adds nothing. False: no memory. */
static bool add_table(struct symbols *symbols, struct image *image, const char *name)
{
	struct symtab table;
	char *names;
	if (!find_table(image, name, &table))
		return true;
	if (symbols->near)
		return read_entries(symbols, &table, add_symbol);
	names = (char *)image_section_copy(image, table.strings, &table.names_size);
	table.names = names;
	return !names || (own_name(symbols, names) && read_entries(symbols, &table, add_symbol));
}

static bool see_table(struct symbols *symbols, struct image *image, const char *name)
{
	struct symtab table;
	return !find_table(image, name, &table) || read_entries(symbols, &table, see_symbol);
}

/* The small ELF file inside .gnu_debugdata, whose .symtab has what .dynsym lacks. */
static bool add_mini_debug(struct symbols *symbols, struct image *image)
{
	const struct image_section *section = image_section(image, ".gnu_debugdata");
	struct image *mini = NULL;
	size_t size, packed_size;
	const uint8_t *packed;
	uint8_t *bytes;
	bool good, exceeded = false;
	if (!section)
		return true;
	packed = image_section_bytes(image, section, &packed_size);
	bytes = packed ? inflate_xz(packed, packed_size, image->most, &size, &exceeded) : NULL;
	if (exceeded && image->most != UINT64_MAX)
		atomic_store(&image->exceeded, true);
	if (!bytes) {
		pthread_mutex_lock(&image->lock);
		image_note_damage(image, "section .gnu_debugdata cannot be decompressed");
		pthread_mutex_unlock(&image->lock);
		return true;
	}
	err_free(image_open_owned(bytes, size, ".gnu_debugdata", &mini));
	if (!mini)
		return true;
	image_bound(mini, image->most);
	good = add_table(symbols, mini, ".symtab");
	if (image_exceeded(mini))
		atomic_store(&image->exceeded, true);
	image_close(mini);
	return good;
}

/* ---- one per address ---- */

static size_t underscores(const char *name)
{
	size_t n = 0;
	while (name[n] == '_' && n < NAME_COMPARED)
		n++;
	return n;
}

/* Mangled names start with one underscore that says nothing about the name's rank. */
static size_t name_rank(const char *name)
{
	if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0)
		return 0;
	return underscores(name);
}

/* Whether `a` is a better name than `b` for their common address. */
static bool better(const struct symbol *a, const struct symbol *b)
{
	size_t x, y;
	if ((a->size != 0) != (b->size != 0))
		return a->size != 0;
	if (a->global != b->global)
		return a->global;
	x = name_rank(a->name);
	y = name_rank(b->name);
	if (x != y)
		return x < y;
	x = strnlen(a->name, NAME_COMPARED);
	y = strnlen(b->name, NAME_COMPARED);
	if (x != y)
		return x < y;
	return strncmp(a->name, b->name, NAME_COMPARED) < 0;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* By so many bits of the address at a time, from the lowest on: for large tables that takes a tenth of
   the time that comparing them does. False where there is no memory. */
static bool sort_by_digits(struct symbols *symbols)
{
	struct symbol *from = symbols->all, *to = reallocarray(NULL, symbols->count, sizeof *to);
	uint64_t differ = 0;
	if (!to)
		return false;
	for (size_t i = 1; i < symbols->count; i++)
		differ |= from[i].address ^ from[0].address;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		size_t starts[DIGITS + 1] = {0};
		struct symbol *other = from;
		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		for (size_t i = 0; i < symbols->count; i++)
			starts[(from[i].address >> shift & (DIGITS - 1)) + 1]++;
		for (size_t i = 1; i < DIGITS; i++)
			starts[i] += starts[i - 1];
		for (size_t i = 0; i < symbols->count; i++)
			to[starts[from[i].address >> shift & (DIGITS - 1)]++] = from[i];
		from = to;
		to = other;
	}
	symbols->all = from;
	symbols->room = symbols->count;
	free(to);
	return true;
}

static bool is_sorted(const struct symbols *symbols)
{
	for (size_t i = 1; i < symbols->count; i++)
		if (symbols->all[i].address < symbols->all[i - 1].address)
			return false;
	return true;
}

static void sort_unique(struct symbols *symbols)
{
	struct symbol *all;
	size_t kept = 0;
	if (symbols->count == 0)
		return;
	if (!is_sorted(symbols) && (symbols->count < MANY || !sort_by_digits(symbols)))
		qsort(symbols->all, symbols->count, sizeof *all, compare_addresses);
	all = symbols->all;
	for (size_t i = 1; i < symbols->count; i++) {
		if (all[i].address != all[kept].address)
			all[++kept] = all[i];
		else if (better(&all[i], &all[kept]))
			all[kept] = all[i];
	}
	symbols->count = kept + 1;
}

static void drop_inner_labels(struct symbols *symbols)
{
	uint64_t reach = 0; /* the furthest end of a sized symbol so far */
	size_t kept = 0;
	for (size_t i = 0; i < symbols->count; i++) {
		struct symbol *s = &symbols->all[i];
		if (s->size == 0 && s->address < reach)
			continue;
		if (s->address + s->size > reach)
			reach = s->address + s->size;
		symbols->all[kept++] = *s;
	}
	symbols->count = kept;
}

static uint64_t symbol_end(const struct symbols *symbols, size_t i)
{
	const struct symbol *s = &symbols->all[i];
	const struct range *code;
	if (s->size)
		return s->address + s->size;
	code = code_at(symbols, s->address);
	if (!code)
		return s->address;
	if (i + 1 < symbols->count && symbols->all[i + 1].address < code->end)
		return symbols->all[i + 1].address;
	return code->end;
}

static bool link_outer(struct symbols *symbols)
{
	uint32_t top = NO_OUTER;
	symbols->outer = calloc(symbols->count + 1, sizeof *symbols->outer);
	if (!symbols->outer || symbols->count >= NO_OUTER)
		return false;
	for (size_t i = 0; i < symbols->count; i++) {
		while (top != NO_OUTER && symbol_end(symbols, top) <= symbols->all[i].address)
			top = symbols->outer[top];
		symbols->outer[i] = top;
		top = (uint32_t)i;
	}
	return true;
}

/* ---- the face ---- */

static struct err *finish(struct symbols *symbols, bool good, struct image *image,
			  struct symbols **out)
{
	if (good) {
		sort_unique(symbols);
		drop_inner_labels(symbols);
		good = link_outer(symbols);
	}
	if (!good) {
		symbols_free(symbols);
		return err_new("%s: out of memory for its symbols", image_path(image));
	}
	*out = symbols;
	return NULL;
}

/* Where there is none, tables of runtimes are what remains after `strip`. */
static bool has_symtab(struct image *image, struct image *debug)
{
	return image_section(image, ".symtab") || (debug && image_section(debug, ".symtab"));
}

/* A function of a table that is none of ELF's. */
static bool add_function(struct symbols *symbols, uint64_t start, uint64_t end, const char *text)
{
	const struct range *code = code_at(symbols, start);
	char *name;
	if (!text[0] || start >= end || !code || end > code->end ||
	    (symbols->near && !near_keeps(symbols->near, start, end - start)))
		return true;
	name = strdup(text);
	return name && own_name(symbols, name) &&
	       append(symbols,
		      (struct symbol){
			      .address = start, .size = end - start, .name = name, .global = true});
}

/* False: no memory. */
static bool add_go(struct symbols *symbols, struct image *image, bool see)
{
	struct gotab *table = gotab_open(image);
	struct gotab_function f;
	bool good = true;
	for (size_t i = 0; table && good && i < gotab_count(table); i++) {
		if (!gotab_function(table, i, &f))
			continue;
		if (see && f.name[0])
			near_see(symbols->near, f.start);
		else if (!see)
			good = add_function(symbols, f.start, f.end, f.name);
	}
	gotab_close(table);
	return good;
}

/* Nothing names them any more: they get their numbers. */
static bool add_v8(struct symbols *symbols, struct image *image, bool see)
{
	struct v8tab_builtin *all;
	size_t count = v8tab_read(image, &all);
	bool good = true;
	for (size_t i = 0; good && i < count; i++) {
		char name[32];
		if (see) {
			near_see(symbols->near, all[i].start);
			continue;
		}
		snprintf(name, sizeof name, V8TAB_NUMBERED "%zu", i);
		good = add_function(symbols, all[i].start, all[i].start + all[i].size, name);
	}
	free(all);
	return good;
}

static bool add_own(struct symbols *symbols, struct image *image, struct image *debug, bool see)
{
	return has_symtab(image, debug) ||
	       (add_go(symbols, image, see) && add_v8(symbols, image, see));
}

static bool add_tables(struct symbols *symbols, struct image *image, struct image *debug)
{
	return add_table(symbols, image, ".symtab") &&
	       (!debug || add_table(symbols, debug, ".symtab")) && add_mini_debug(symbols, image) &&
	       add_table(symbols, image, ".dynsym") && add_own(symbols, image, debug, false);
}

struct err *symbols_read(struct image *image, struct image *debug, struct symbols **out)
{
	struct symbols *symbols = calloc(1, sizeof *symbols);
	bool good = symbols && find_code(symbols, image) && add_tables(symbols, image, debug);
	*out = NULL;
	return finish(symbols, good, image, out);
}

struct err *symbols_read_near(struct image *image, struct image *debug, const uint64_t *addresses,
			      size_t count, struct symbols **out)
{
	struct symbols *symbols = calloc(1, sizeof *symbols);
	bool good = symbols && find_code(symbols, image);
	*out = NULL;
	if (good)
		symbols->near = near_open(addresses, count);
	good = good && symbols->near && see_table(symbols, image, ".symtab") &&
	       (!debug || see_table(symbols, debug, ".symtab")) &&
	       see_table(symbols, image, ".dynsym") && add_own(symbols, image, debug, true);
	if (good)
		near_spread(symbols->near);
	good = good && add_tables(symbols, image, debug);
	if (good && near_aliases(symbols->near))
		good = add_tables(symbols, image, debug);
	good = good && !near_failed(symbols->near);
	return finish(symbols, good, image, out);
}

struct err *symbols_read_dynamic(struct image *image, struct symbols **out)
{
	struct symbols *symbols = calloc(1, sizeof *symbols);
	bool good = symbols && find_code(symbols, image) && add_table(symbols, image, ".dynsym");
	*out = NULL;
	return finish(symbols, good, image, out);
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->names_count; i++)
		free(symbols->names[i]);
	free(symbols->names);
	near_close(symbols->near);
	free(symbols->all);
	free(symbols->outer);
	free(symbols->code);
	free(symbols);
}

size_t symbols_all(const struct symbols *symbols, const struct symbol **out)
{
	*out = symbols->all;
	return symbols->count;
}

const struct symbol *symbols_around(const struct symbols *symbols, uint64_t address,
				    uint64_t *start, uint64_t *end)
{
	size_t after = FIRST_NOT(k, symbols->count, symbols->all[k].address <= address);
	uint32_t i = after ? (uint32_t)(after - 1) : NO_OUTER;
	*start = after ? symbols->all[after - 1].address : 0;
	*end = after < symbols->count ? symbols->all[after].address : UINT64_MAX;
	for (int depth = 0; i != NO_OUTER && depth < NESTING_MAX; depth++) {
		uint64_t last = symbol_end(symbols, i);
		if (address < last) {
			*end = *end < last ? *end : last;
			return &symbols->all[i];
		}
		*start = *start > last ? *start : last;
		i = symbols->outer[i];
	}
	return NULL;
}

const struct symbol *symbols_find(const struct symbols *symbols, uint64_t address)
{
	uint64_t start, end;
	return symbols_around(symbols, address, &start, &end);
}
