/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The static side: from the scopes of a procedure to items. Scopes that people
 * cannot tell apart become one item: code that was inlined by one call but is both
 * in a loop and before it, copies of one loop.
 */
#include "annotate/build.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "image/image.h"
#include "image/names.h"
#include "isa/insn.h"
#include "structure/structure.h"

#define INSN_COUNT_MAX (1u << 24)

struct maker {
	struct annotation *a;
	const struct structure_procedure *p;
	size_t item_room, insn_room;
	struct lookup hashes; /* -> the newest item with this hash */
	uint32_t *same;       /* of each item: an older one with its hash, or LOOKUP_NONE */
	uint32_t *context, *line, *loop; /* of each scope: items */
};

/* ---- items ---- */

static uint64_t hash_of(const struct annotate_item *i)
{
	uint64_t hash = hash_number(
		hash_number(hash_number(hash_number(0, i->kind), i->parent), i->context), i->line);
	return hash_number(hash_text(hash_text(hash, i->file), i->name),
			   i->line ? i->last_line : i->header);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_item(const struct annotate_item *a, const struct annotate_item *b)
{
	return a->kind == b->kind && a->parent == b->parent && a->context == b->context &&
	       a->line == b->line && a->last_line == b->last_line &&
	       (a->line || a->header == b->header) && same_text(a->file, b->file) &&
	       same_text(a->name, b->name);
}

static bool grow(struct maker *k)
{
	struct annotation *a = k->a;
	if (a->item_count < k->item_room)
		return true;
	size_t room = k->item_room ? k->item_room * 2 : 64;
	struct annotate_item *items = reallocarray(a->items, room, sizeof *items);
	if (items)
		a->items = items;
	uint32_t *same = reallocarray(k->same, room, sizeof *same);
	if (same)
		k->same = same;
	if (!items || !same || room >= ANNOTATE_NONE)
		return false;
	k->item_room = room;
	return true;
}

/* The item like this one, added where it is new; ANNOTATE_NONE without memory. */
static uint32_t add_item(struct maker *k, const struct annotate_item *item)
{
	struct annotation *a = k->a;
	uint64_t hash = hash_of(item);
	uint32_t first = lookup_find(&k->hashes, hash), at = first;
	while (at != LOOKUP_NONE && !same_item(&a->items[at], item))
		at = k->same[at];
	if (at != LOOKUP_NONE)
		return at;
	if (!grow(k) || !lookup_put(&k->hashes, hash, (uint32_t)a->item_count))
		return ANNOTATE_NONE;
	k->same[a->item_count] = first;
	a->items[a->item_count] = *item;
	a->items[a->item_count].address = UINT64_MAX;
	return (uint32_t)a->item_count++;
}

static uint32_t add_line(struct maker *k, uint32_t context, const char *file, uint32_t line)
{
	return add_item(k, &(struct annotate_item){
				   .kind = ANNOTATE_LINE,
				   .parent = context,
				   .context = context,
				   .file = line ? file : NULL,
				   .line = line,
				   .last_line = line,
			   });
}

/* A name for people that lives as long as the annotation. */
static const char *keep_name(struct annotation *a, const char *symbol)
{
	struct annotate_private *own = a->own;
	if (!symbol)
		return NULL;
	if (!ARRAY_ROOM(own->names, own->name_count, own->name_room))
		return symbol;
	char *name = name_demangle(symbol);
	if (!name)
		return symbol;
	own->names[own->name_count++] = name;
	return name;
}

static bool make_inlined(struct maker *k, uint32_t scope)
{
	const struct structure_scope *s = &k->p->scopes[scope];
	uint32_t around = k->context[s->parent], parent = around;
	if (s->call_line)
		parent = add_line(k, around, s->call_file, s->call_line);
	if (parent == ANNOTATE_NONE)
		return false;
	size_t before = k->a->item_count;
	uint32_t item = add_item(k, &(struct annotate_item){
					    .kind = ANNOTATE_CONTEXT,
					    .parent = parent,
					    .name = s->name, /* the symbol, until it is compared */
					    .file = s->file,
					    .line = s->line,
				    });
	if (item == ANNOTATE_NONE)
		return false;
	struct annotate_item *i = &k->a->items[item];
	if (k->a->item_count > before) {
		i->call_file = s->call_line ? s->call_file : NULL;
		i->call_line = s->call_line;
	}
	k->context[scope] = item;
	return true;
}

/* Copies of a loop are one, where lines tell. */
static bool make_loop(struct maker *k, uint32_t scope)
{
	const struct structure_scope *s = &k->p->scopes[scope];
	uint32_t around = k->loop[s->parent];
	uint32_t item = add_item(k, &(struct annotate_item){
					    .kind = ANNOTATE_LOOP,
					    .parent = around,
					    .context = k->context[scope],
					    .file = s->file,
					    .line = s->line,
					    .last_line = s->last_line,
					    .header = s->line ? 0 : s->header,
				    });
	if (item == ANNOTATE_NONE)
		return false;
	struct annotate_item *i = &k->a->items[item];
	if (!i->header || s->header < i->header)
		i->header = s->header;
	i->depth = around == ANNOTATE_NONE ? 0 : k->a->items[around].depth + 1;
	k->loop[scope] = item;
	return true;
}

static bool make_scope(struct maker *k, uint32_t scope)
{
	const struct structure_scope *s = &k->p->scopes[scope];
	k->context[scope] = k->context[s->parent];
	k->loop[scope] = k->loop[s->parent];
	k->line[scope] = ANNOTATE_NONE; /* made when an instruction asks for it */
	if (s->type == STRUCTURE_INLINE)
		return make_inlined(k, scope);
	return s->type != STRUCTURE_LOOP || make_loop(k, scope);
}

static bool make_items(struct maker *k)
{
	size_t count = k->p->scope_count;
	const struct structure_scope *s = &k->p->scopes[0];
	k->context = calloc(count, sizeof *k->context);
	k->line = calloc(count, sizeof *k->line);
	k->loop = calloc(count, sizeof *k->loop);
	if (!k->context || !k->line || !k->loop)
		return false;
	struct annotate_item function = {
		.kind = ANNOTATE_CONTEXT,
		.parent = ANNOTATE_NONE,
		.name = s->name,
		.file = s->file,
		.line = s->line,
	};
	if (add_item(k, &function) != 0)
		return false;
	k->loop[0] = k->line[0] = ANNOTATE_NONE;
	for (uint32_t i = 1; i < count; i++)
		if (!make_scope(k, i))
			return false;
	return true;
}

/* The line of instructions in a scope; without one, the line 0 of their context. */
static uint32_t line_of(struct maker *k, uint32_t scope)
{
	const struct structure_scope *s = &k->p->scopes[scope];
	if (k->line[scope] == ANNOTATE_NONE)
		k->line[scope] = add_line(k, k->context[scope], s->file,
					  s->type == STRUCTURE_LINE ? s->line : 0);
	return k->line[scope];
}

/* ---- instructions ---- */

static struct annotate_insn *new_insn(struct maker *k)
{
	struct annotation *a = k->a;
	if (!ARRAY_ROOM_BELOW(a->insns, a->insn_count, k->insn_room, INSN_COUNT_MAX))
		return NULL;
	return &a->insns[a->insn_count++];
}

/* What lies in a row: one range or several. */
static struct err *read_stretch(struct maker *k, size_t first, size_t last)
{
	struct image *image = modules_image(k->a->modules, k->a->module);
	const struct structure_range *ranges = k->p->ranges;
	uint64_t start = ranges[first].start, end = ranges[last].end;
	size_t size = 0, range = first;
	const uint8_t *bytes = image_bytes_at(image, start, &size);
	if (!bytes)
		return NULL;
	if (size > end - start)
		size = (size_t)(end - start);
	for (size_t at = 0; at < size;) {
		struct insn insn;
		k->a->isa->decode(bytes + at, size - at, start + at, &insn);
		while (range < last && ranges[range].end <= start + at)
			range++;
		struct annotate_insn *i = new_insn(k);
		if (!i)
			return err_new("the function is too large");
		*i = (struct annotate_insn){.address = start + at,
					    .line = line_of(k, ranges[range].scope),
					    .loop = k->loop[ranges[range].scope],
					    .length = insn.length ? insn.length : 1,
					    .kind = insn.kind};
		if (i->line == ANNOTATE_NONE)
			return err_new("out of memory");
		if (insn.kind == INSN_CALL || insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH)
			i->target = insn.target;
		at += i->length;
	}
	return NULL;
}

static struct err *read_insns(struct maker *k)
{
	const struct structure_range *ranges = k->p->ranges;
	struct err *e = NULL;
	for (size_t first = 0, last; !e && first < k->p->range_count; first = last + 1) {
		last = first;
		while (last + 1 < k->p->range_count && ranges[last + 1].start == ranges[last].end)
			last++;
		e = read_stretch(k, first, last);
	}
	return e;
}

uint32_t annotate_insn_at(const struct annotation *a, uint64_t address)
{
	size_t after = FIRST_NOT(i, a->insn_count, a->insns[i].address <= address);
	if (!after || address - a->insns[after - 1].address >= a->insns[after - 1].length)
		return ANNOTATE_NONE;
	return (uint32_t)after - 1;
}

static void note_address(struct annotation *a, uint32_t item, uint64_t address)
{
	for (; item != ANNOTATE_NONE && a->items[item].address > address;
	     item = a->items[item].parent)
		a->items[item].address = address;
}

static void link_insns(struct annotation *a)
{
	for (size_t i = 0; i < a->insn_count; i++) {
		struct annotate_insn *insn = &a->insns[i];
		a->items[insn->line].has_code = true;
		a->has_lines |= a->items[insn->line].line != 0;
		note_address(a, insn->line, insn->address);
		note_address(a, insn->loop, insn->address);
		uint32_t to = insn->kind == INSN_CALL || !insn->target
				      ? ANNOTATE_NONE
				      : annotate_insn_at(a, insn->target);
		if (to != ANNOTATE_NONE && a->insns[to].address == insn->target)
			a->insns[to].is_target = true;
	}
}

/* How far contexts go, as far as their own lines show. */
static void stretch_contexts(struct annotation *a)
{
	for (size_t i = 0; i < a->item_count; i++) {
		const struct annotate_item *item = &a->items[i];
		if (item->kind != ANNOTATE_LINE)
			continue;
		struct annotate_item *c = &a->items[item->context];
		if (same_text(c->file, item->file) && item->line > c->last_line)
			c->last_line = item->line;
	}
	for (size_t i = 0; i < a->item_count; i++)
		if (a->items[i].kind == ANNOTATE_CONTEXT)
			a->items[i].name = keep_name(a, a->items[i].name);
}

struct err *annotate_read_code(struct annotation *a, const struct structure_procedure *procedure)
{
	struct maker k = {.a = a, .p = procedure};
	struct err *e = make_items(&k) ? NULL : err_new("out of memory");
	if (!e)
		e = read_insns(&k);
	if (!e) {
		link_insns(a);
		stretch_contexts(a);
	}
	lookup_free(&k.hashes);
	free(k.same);
	free(k.context);
	free(k.line);
	free(k.loop);
	return e;
}
