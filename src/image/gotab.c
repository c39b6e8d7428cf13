/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table begins with a header, which says where its parts are:
 *
 *    functab  (entry, offset of the function's record) for each function, then the end of the last
 *    records  offsets of its name and of its series of values, and what else is known
 *    pctab    series: (difference of the value, difference of the PC) as varints
 *    names, cutab (numbers of files of a unit -> filetab), filetab (paths)
 *
 * In Go 1.2 all of these are relative to the table's start, since 1.16 each to its part, and since
 * 1.18 entries are relative to the start of the text. A part ends where the table does: reading
 * more than the part has gives nonsense, but no bytes of others.
 */
#include "image/gotab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "image/relocs.h"

#define FUNCTIONS_MAX (1u << 23)
#define VALUES_MAX (1u << 20) /* of one series */
#define NAME_MAX_BYTES 65536
#define INLINED_MAX (1u << 20)

enum version { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct part {
	const uint8_t *bytes;
	size_t size;
};

struct gotab {
	enum version version;
	uint32_t quantum; /* bytes of the smallest instruction */
	uint64_t text;    /* entries are relative to it */
	size_t count;
	struct part all, names, units, files, values, records;
	struct part inlined; /* what funcdata is relative to */
	struct image *image;
};

/* ---- bytes ---- */

/* Zero beyond the end. */
static uint64_t get(const struct part *p, uint64_t at, unsigned bytes)
{
	uint64_t value = 0;
	if (at <= p->size && p->size - at >= bytes)
		memcpy(&value, p->bytes + at, bytes);
	return value;
}

static bool cut(const struct part *from, uint64_t at, struct part *out)
{
	if (at >= from->size)
		return false;
	*out = (struct part){from->bytes + at, from->size - at};
	return true;
}

static const char *text_at(const struct part *p, uint64_t at)
{
	size_t left = at < p->size ? p->size - at : 0;
	const char *text = (const char *)p->bytes + at;
	if (!left || !memchr(text, 0, left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES))
		return NULL;
	return text;
}

static bool get_varint(const struct part *p, uint64_t *at, uint32_t *out)
{
	uint32_t value = 0;
	for (unsigned shift = 0; shift < 35 && *at < p->size; shift += 7) {
		uint8_t byte = p->bytes[(*at)++];
		value |= (uint32_t)((uint64_t)(byte & 0x7f) << shift);
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

/* ---- the header ---- */

static bool is_header(const uint8_t *b, size_t size)
{
	static const uint8_t magics[] = {0xfb, 0xfa, 0xf0, 0xf1};
	return size >= 72 && memchr(magics, b[0], sizeof magics) && b[1] == 0xff && b[2] == 0xff &&
	       b[3] == 0xff && !b[4] && !b[5] && (b[6] == 1 || b[6] == 4) && b[7] == 8;
}

static bool is_code(const struct image *image, uint64_t address)
{
	const struct image_segment *s;
	size_t count = image_segments(image, &s);
	for (size_t i = 0; i < count; i++)
		if (s[i].executable && address - s[i].address < s[i].size)
			return true;
	return false;
}

/* Of an executable that is moved in memory the file need not have the words that are written then. */
static uint64_t word_at(struct image *image, uint64_t address)
{
	struct reloc *relocs = NULL;
	size_t size = 0, count = 0;
	uint64_t value = 0;
	const uint8_t *bytes = image_bytes_at(image, address, &size);
	if (bytes && size >= sizeof value)
		memcpy(&value, bytes, sizeof value);
	if (value)
		return value;
	err_free(relocs_read(image, &relocs, &count));
	for (size_t i = 0; i < count && !value; i++)
		if (relocs[i].offset == address)
			value = relocs[i].value;
	free(relocs);
	return value;
}

static bool open_parts(struct gotab *t)
{
	const unsigned first = t->version >= GO_1_18 ? 32 : 24;
	if (t->version == GO_1_2) {
		t->names = t->values = t->all;
		return cut(&t->all, 16, &t->records);
	}
	return cut(&t->all, get(&t->all, first, 8), &t->names) &&
	       cut(&t->all, get(&t->all, first + 8, 8), &t->units) &&
	       cut(&t->all, get(&t->all, first + 16, 8), &t->files) &&
	       cut(&t->all, get(&t->all, first + 24, 8), &t->values) &&
	       cut(&t->all, get(&t->all, first + 32, 8), &t->records);
}

/* ---- functions ---- */

static unsigned entry_size(const struct gotab *t)
{
	return t->version >= GO_1_18 ? 4 : 8;
}

static uint64_t entry_of(const struct gotab *t, size_t index)
{
	unsigned size = entry_size(t);
	uint64_t value = get(&t->records, (uint64_t)index * 2 * size, size);
	return t->version >= GO_1_18 ? t->text + value : value;
}

/* The function's record. */
static bool record_of(const struct gotab *t, size_t index, struct part *out)
{
	unsigned size = entry_size(t);
	uint64_t offset = get(&t->records, (uint64_t)index * 2 * size + size, size);
	return cut(t->version == GO_1_2 ? &t->all : &t->records, offset, out);
}

/* Words of 32 bits after the entry; the last ones have bytes. */
static uint32_t word_of(const struct gotab *t, const struct part *record, unsigned word)
{
	return (uint32_t)get(record, entry_size(t) + 4ull * word, 4);
}

/* Name 0, arguments 1, deferred 2, SP 3, file 4, line 5, number of pcdata 6, unit 7 (from 1.16 on), start
   8 (from 1.20 on), bytes; then the pcdata. */
static unsigned bytes_word(const struct gotab *t)
{
	return t->version == GO_1_2 ? 7 : t->version == GO_1_20 ? 9 : 8;
}

/* Whether it looks like one: entries ascend, and lie in code. */
static bool is_sane(const struct gotab *t)
{
	if (t->count < 1 || t->count > FUNCTIONS_MAX ||
	    t->records.size / (2 * entry_size(t)) < t->count + 1)
		return false;
	for (size_t i = 0; i < t->count; i++)
		if (entry_of(t, i) > entry_of(t, i + 1))
			return false;
	struct part record;
	return is_code(t->image, entry_of(t, 0)) && is_code(t->image, entry_of(t, t->count) - 1) &&
	       record_of(t, 0, &record) && text_at(&t->names, word_of(t, &record, 0));
}

/* ---- where the table is ---- */

static void find_inlined(struct gotab *t, uint64_t address);

static struct gotab *open_at(struct image *image, const uint8_t *bytes, size_t size,
			     uint64_t address)
{
	static const enum version versions[] = {[0x0] = GO_1_18, [0x1] = GO_1_20, [0xa] = GO_1_16};
	struct gotab *t = is_header(bytes, size) ? calloc(1, sizeof *t) : NULL;
	if (!t)
		return NULL;
	*t = (struct gotab){
		.version = bytes[0] == 0xfb ? GO_1_2 : versions[bytes[0] & 0xf],
		.quantum = bytes[6],
		.all = {bytes, size},
		.count = get(&(struct part){bytes, size}, 8, 8),
		.image = image,
	};
	if (t->version >= GO_1_18)
		t->text = word_at(image, address + 24);
	if (!open_parts(t) || !is_sane(t)) {
		free(t);
		return NULL;
	}
	find_inlined(t, address);
	return t;
}

#define ALIGNMENT 32 /* of the table */

/* Somewhere in these bytes. */
static struct gotab *search(struct image *image, const uint8_t *bytes, size_t size,
			    uint64_t address)
{
	struct gotab *found = NULL;
	uint64_t at = (ALIGNMENT - address % ALIGNMENT) % ALIGNMENT;
	for (; bytes && !found && at < size; at += ALIGNMENT)
		if (is_header(bytes + at, size - at))
			found = open_at(image, bytes + at, size - at, address + at);
	return found;
}

static struct gotab *search_section(struct image *image, const char *name)
{
	const struct image_section *s = image_section(image, name);
	size_t size = 0;
	const uint8_t *bytes = s && s->address ? image_section_bytes(image, s, &size) : NULL;
	return search(image, bytes, size, s ? s->address : 0);
}

/* Where nothing has a name any more. */
static struct gotab *search_segments(struct image *image)
{
	const struct image_segment *s;
	struct gotab *found = NULL;
	size_t count = image_segments(image, &s);
	for (size_t i = 0; !found && i < count; i++) {
		size_t size = 0;
		const uint8_t *bytes = s[i].executable ? NULL
						       : image_bytes_at(image, s[i].address, &size);
		found = search(image, bytes, size, s[i].address);
	}
	return found;
}

/* Whether its section headers are gone. */
static bool is_bare(const struct image *image)
{
	const struct image_section *s;
	size_t count = image_sections(image, &s);
	for (size_t i = 0; i < count; i++)
		if (s[i].flags & SHF_EXECINSTR)
			return false;
	return true;
}

struct gotab *gotab_open(struct image *image)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	struct gotab *found = NULL;
	for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
		found = search_section(image, names[i]);
	if (!found &&
	    image_section(image, ".go.buildinfo")) /* another linker has put it elsewhere */
		found = search_section(image, ".data.rel.ro");
	if (!found && is_bare(image))
		found = search_segments(image);
	return found;
}

void gotab_close(struct gotab *t)
{
	free(t);
}

/* ---- what is asked ---- */

size_t gotab_count(const struct gotab *t)
{
	return t->count;
}

bool gotab_function(const struct gotab *t, size_t index, struct gotab_function *out)
{
	struct part record;
	if (index >= t->count || !record_of(t, index, &record))
		return false;
	uint32_t bytes = word_of(t, &record, bytes_word(t));
	const char *name = text_at(&t->names, word_of(t, &record, 0));
	bool flags = t->version >= GO_1_16;
	*out = (struct gotab_function){
		.start = entry_of(t, index),
		.end = entry_of(t, index + 1),
		.name = name ? name : "",
		.line = t->version == GO_1_20 ? word_of(t, &record, 8) : 0,
		.id = (uint8_t)bytes,
		.top = flags && bytes >> 8 & 1,
		.writes_sp = flags && bytes >> 8 & 2,
	};
	return true;
}

bool gotab_find(const struct gotab *t, uint64_t address, size_t *index)
{
	size_t after = FIRST_NOT(i, t->count, entry_of(t, i) <= address);
	*index = after ? after - 1 : 0;
	return after && address < entry_of(t, after);
}

/* Where the series begins, 0: there is none. */
static uint32_t series_of(const struct gotab *t, size_t index, enum gotab_what what)
{
	struct part record;
	if (!record_of(t, index, &record))
		return 0;
	if (what != GOTAB_INLINE)
		return word_of(t, &record, what == GOTAB_SP ? 3 : what == GOTAB_FILE ? 4 : 5);
	return word_of(t, &record, 6) > 2 ? word_of(t, &record, bytes_word(t) + 1 + 2) : 0;
}

bool gotab_next(struct gotab_values *v)
{
	const struct gotab *t = v->table;
	bool first = !v->at;
	uint32_t difference, length;
	if (v->index >= t->count)
		return false;
	if (first) {
		uint32_t from = series_of(t, v->index, v->what);
		if (!from)
			return false;
		v->at = from + 1ull;
		v->end = entry_of(t, v->index);
		v->value = -1;
	}
	uint64_t at = v->at - 1;
	if (!get_varint(&t->values, &at, &difference) || (!difference && !first) ||
	    !get_varint(&t->values, &at, &length) || !length)
		return false;
	uint32_t change = difference & 1 ? ~(difference >> 1) : difference >> 1;
	v->value = (int32_t)((uint32_t)v->value + change);
	v->start = v->end;
	v->end += (uint64_t)length * t->quantum;
	v->at = at + 1;
	return v->end <= entry_of(t, v->index + 1);
}

bool gotab_value(const struct gotab *t, size_t index, enum gotab_what what, uint64_t address,
		 int32_t *out)
{
	struct gotab_values v = {.table = t, .index = index, .what = what};
	for (uint32_t i = 0; i < VALUES_MAX && gotab_next(&v); i++) {
		if (address - v.start < v.end - v.start) {
			*out = v.value;
			return true;
		}
	}
	return false;
}

const char *gotab_file(const struct gotab *t, size_t index, int32_t file)
{
	struct part record;
	if (file < 0 || !record_of(t, index, &record))
		return NULL;
	if (t->version ==
	    GO_1_2) { /* numbers are from 1; after the last entry it says where they are */
		struct part files;
		uint64_t at = get(&t->records, (uint64_t)t->count * 16 + 8, 4);
		return file && at && cut(&t->all, at, &files) &&
				       (uint32_t)file < (uint32_t)get(&files, 0, 4)
			       ? text_at(&t->all, get(&files, 4ull * (uint32_t)file, 4))
			       : NULL;
	}
	uint64_t unit = word_of(t, &record, 7);
	uint32_t at = (uint32_t)get(&t->units, (unit + (uint32_t)file) * 4, 4);
	return at != UINT32_MAX ? text_at(&t->files, at) : NULL;
}

/* ---- what was inlined ---- */

#define MODULE_WORDS 48 /* of the runtime's moduledata, as far as we look */
#define MODULE_TEXT 22

/* The runtime's own description of the module begins with the table's address, and says where the
   rest is. Its words are only believed where the start of the text is among them. */
static void take_module(struct gotab *t, const uint64_t *words)
{
	unsigned at = t->version == GO_1_20 ? 40 : 38;
	if (words[MODULE_TEXT] != t->text || !words[at])
		return;
	size_t size = 0;
	const uint8_t *bytes = image_bytes_at(t->image, words[at], &size);
	if (!bytes)
		return;
	t->inlined = (struct part){bytes, size};
}

static void search_module(struct gotab *t, const uint8_t *bytes, size_t size, uint64_t table)
{
	uint64_t words[MODULE_WORDS];
	for (size_t at = 0; bytes && size - at >= sizeof words && !t->inlined.bytes; at += 8) {
		memcpy(words, bytes + at, 8);
		if (words[0] != table)
			continue;
		memcpy(words, bytes + at, sizeof words);
		take_module(t, words);
	}
}

/* The same where the words are only written when it is loaded. */
static void search_relocated(struct gotab *t, uint64_t table)
{
	struct reloc *relocs = NULL;
	size_t count = 0;
	err_free(relocs_read(t->image, &relocs, &count));
	for (size_t i = 0; i < count && !t->inlined.bytes; i++) {
		if (relocs[i].value != table)
			continue;
		uint64_t words[MODULE_WORDS] = {0};
		for (size_t k = i; k < count && relocs[k].offset - relocs[i].offset < sizeof words;
		     k++)
			words[(relocs[k].offset - relocs[i].offset) / 8] = relocs[k].value;
		take_module(t, words);
	}
	free(relocs);
}

static void find_inlined(struct gotab *t, uint64_t address)
{
	const struct image_segment *s;
	size_t count = image_segments(t->image, &s);
	if (t->version < GO_1_18)
		return;
	for (size_t i = 0; i < count && !t->inlined.bytes; i++) {
		size_t size = 0;
		const uint8_t *bytes = s[i].writable ? image_bytes_at(t->image, s[i].address, &size)
						     : NULL;
		if (size >= MODULE_WORDS * 8)
			search_module(t, bytes, size, address);
	}
	if (!t->inlined.bytes)
		search_relocated(t, address);
}

bool gotab_inlined(const struct gotab *t, size_t index, int32_t which, const char **name,
		   uint64_t *call)
{
	struct part record, tree;
	if (which < 0 || (uint32_t)which >= INLINED_MAX || t->version < GO_1_18 ||
	    !record_of(t, index, &record))
		return false;
	uint32_t bytes = word_of(t, &record, bytes_word(t)), pcdata = word_of(t, &record, 6);
	if (bytes >> 24 <= 3 || pcdata > 64)
		return false;
	uint32_t offset = word_of(t, &record, bytes_word(t) + 1 + pcdata + 3);
	if (offset == UINT32_MAX || !cut(&t->inlined, offset, &tree))
		return false;
	bool new = t->version == GO_1_20;
	uint64_t at = (uint64_t)which * (new ? 16 : 20);
	*name = text_at(&t->names, get(&tree, at + (new ? 4 : 12), 4));
	*call = entry_of(t, index) + get(&tree, at + (new ? 8 : 16), 4);
	return *name && (*name)[0] && *call < entry_of(t, index + 1);
}
