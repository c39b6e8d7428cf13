/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/depth.h"
#include "copies/needs.h"
#include "copies/object.h"
#include "copies/original.h"
#include "copies/refusal.h"
#include "copies/write.h"
#include "flow/graph.h"
#include "image/image.h"
#include "isa/insn.h"
#include "paths/choice.h"
#include "paths/spots.h"
#include "safe/contexts.h"

#define PAGE 4096u
#define COPY_ALIGNMENT 16u
#define WORDS_MAX (1u << 27) /* so that counters are in reach of instructions */

struct maker {
	const struct path_module_input *in;
	struct path_module *out;
	struct original original;
	struct needs needs;
	struct buf tables;
	uint64_t table_room; /* bytes of tables, at most */
};

/* ---- the jump at the entry ---- */

/* Bytes of the function that can be overwritten, and of what fills the room behind it. */
static size_t find_room(const struct maker *m, const struct path_item *item)
{
	const struct graph_part *part = &item->parts[0];
	uint64_t end = part->end;
	while (end - item->entry < WRITE_JUMP_MAX) {
		struct insn insn;
		if (extents_at(&m->original.extents, end) != EXTENT_NONE ||
		    !original_insn(&m->original, end, &insn))
			break;
		if (insn.kind != INSN_NOP && insn.kind != INSN_TRAP)
			break;
		end += insn.length;
	}
	return end - item->entry;
}

static const char *make_jump(const struct maker *m, struct path_item *item)
{
	struct write_entry entry = {
		.address = item->entry, .copy = item->copy.address, .guarded = m->original.guarded};
	struct write_jump jump;
	size_t size = 0, room = find_room(m, item);
	entry.code = image_bytes_at(m->original.image, item->entry, &size);
	entry.size = size < room ? size : room;
	const char *reason = entry.code ? write_enter(m->original.machine, &entry, &jump)
					: "it is too small for a jump";
	if (reason)
		return reason;
	item->jump_at = jump.at;
	item->jump_size = jump.size;
	memcpy(item->original, entry.code + (jump.at - item->entry), jump.size);
	memcpy(item->jump, jump.bytes, jump.size);
	return NULL;
}

/* Whether a thread that is in the function may come to the middle of the jump: by a jump, or where a call returns to. */
static bool is_entered_within(const struct maker *m, const struct path_item *item)
{
	uint64_t from = item->jump_at, end = from + item->jump_size;
	const struct graph *g = item->graph;
	for (size_t i = 0; i < g->edge_count; i++) {
		uint64_t to = g->blocks[g->edges[i].to].start;
		if (g->edges[i].kind != EDGE_FALL && to > from && to < end)
			return true;
	}
	for (uint64_t at = item->entry; at < end;) {
		struct insn insn;
		if (!original_insn(&m->original, at, &insn))
			return true;
		at += insn.length;
		bool calls = insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT;
		if (calls && at > from && at < end)
			return true;
	}
	return false;
}

/* ---- a function ---- */

static struct err *take_parts(const struct maker *m, uint32_t procedure, struct path_item *item)
{
	const struct extents_procedure *p = &m->original.extents.procedures[procedure];
	item->parts = calloc(p->count + 1, sizeof *item->parts);
	if (!item->parts)
		return err_new("out of memory");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part =
			&m->original.extents.parts[m->original.extents.by_procedure[p->first + i]];
		item->parts[i] = (struct graph_part){part->start, part->end};
	}
	item->copy.entry = item->entry;
	item->copy.parts = item->parts;
	item->copy.part_count = p->count;
	return NULL;
}

static void count_tables(struct maker *m, const struct graph *graph)
{
	for (size_t i = 0; i < graph->table_count; i++) {
		const struct graph_table *t = &graph->tables[i];
		uint64_t entries = t->entries + (t->exact ? 0 : WRITE_TABLE_SPARE);
		m->table_room += entries * (t->entry_size == 8 ? 8 : 4) + sizeof(uint64_t);
	}
}

/* Exceptions and debuggers must find their way through the copy. */
static void check_frames(struct maker *m, struct path_item *item)
{
	struct err *e = object_check(&m->original.frames, &item->copy);
	if (!e)
		return;
	item->told = strdup(err_text(e));
	item->reason = item->told ? item->told : "its unwind information cannot be copied";
	err_free(e);
}

/* If contexts can be told apart, its counters have a head before them, and slots behind. */
static struct err *find_depths(const struct maker *m, struct path_item *item,
			       struct write_input *input, struct depth **out)
{
	*out = depth_find(m->in->image, isa_for_machine(m->original.machine), item->graph,
			  input->live);
	if (!*out)
		return err_new("out of memory");
	item->no_context = item->sums.words >= CONTEXTS_WORDS_MAX ? "it has too many paths"
								  : write_contexts(input, *out);
	if (item->no_context)
		return NULL;
	input->depths = *out;
	input->keeps_record = item->keeps_record;
	input->counters += sizeof(struct context_head);
	input->function = (uint32_t)(input->counters / 8);
	input->slots = write_slots(input->live);
	return NULL;
}

static struct err *write_item(struct maker *m, struct path_item *item, const struct live *live,
			      uint64_t *address)
{
	struct write_input input = {
		.image = m->in->image,
		.graph = item->graph,
		.live = live,
		.sums = &item->sums,
		.parts = item->parts,
		.part_count = item->copy.part_count,
		.address = *address,
		.tables = m->in->base + OBJECT_TABLES + m->tables.size,
		.bias = m->in->bias,
		.counters = 8 * m->out->words,
		.thread_word = m->in->thread_word,
		.atomics = m->in->atomics,
	};
	size_t tables = m->tables.size;
	struct depth *depths = NULL;
	if (m->in->contexts) {
		struct err *e = find_depths(m, item, &input, &depths);
		if (e)
			return e;
	}
	item->copy.name = item->name;
	item->copy.address = *address;
	struct err *e = write_copy(&input, &item->copy, &m->tables, &item->reason);
	free(depths);
	if (e || item->reason)
		return e;
	item->reason = make_jump(m, item);
	if (!item->reason && m->in->running && is_entered_within(m, item))
		item->reason = "a thread may come to the middle of its beginning";
	if (!item->reason)
		check_frames(m, item);
	if (item->reason) {
		m->tables.size = tables;
		return NULL;
	}
	item->first_word = input.counters / 8;
	m->out->words = item->first_word + 1 + item->sums.words + input.slots +
			(input.depths ? CONTEXTS_CACHE : 0);
	*address = (*address + item->copy.size + COPY_ALIGNMENT - 1) &
		   ~(uint64_t)(COPY_ALIGNMENT - 1);
	return NULL;
}

/* If a register can be kept for the record of its context, and nothing else is different then, it is. */
static struct err *make_sums(const struct maker *m, struct path_item *item, const struct live *live)
{
	struct use_cpu less;
	if (m->in->contexts && write_can_keep(m->original.machine, live, &less)) {
		struct err *e = sums_make(item->graph, live, &less, NULL, &item->sums);
		item->keeps_record = !e && !item->sums.refused && !item->sums.pressed;
		if (e || item->keeps_record)
			return e;
		sums_free(&item->sums);
	}
	return sums_make(item->graph, live, m->original.cpu, NULL, &item->sums);
}

static struct err *make_item(struct maker *m, struct path_item *item, uint64_t *address)
{
	struct live live;
	struct err *e = needs_live(&m->needs, &m->original, item->procedure, item->graph, &live);
	if (e)
		return e;
	item->reason = refusal_of(&m->original, item->graph, &item->copy, &live);
	if (!item->reason)
		e = make_sums(m, item, &live);
	if (!e && !item->reason)
		item->reason = item->sums.refused;
	if (!e && !item->reason && m->out->words + item->sums.words > WORDS_MAX)
		item->reason = "there are too many counters";
	if (!e && !item->reason)
		e = write_item(m, item, &live, address);
	live_free(&live);
	return e;
}

/* ---- all of them ---- */

static bool is_wanted(const struct maker *m, uint32_t procedure)
{
	const struct extents *extents = &m->original.extents;
	return path_choice_has_place(m->in->choice, m->in->path,
				     extents_start(extents, procedure)) &&
	       !refusal_leaves_out(&m->original, procedure) &&
	       path_choice_has_function(m->in->choice, extents->procedures[procedure].name);
}

static struct err *take_items(struct maker *m)
{
	struct err *e = NULL;
	m->out->items = calloc(m->original.extents.procedure_count + 1, sizeof *m->out->items);
	if (!m->out->items)
		return err_new("out of memory");
	for (uint32_t i = 0; i < m->original.extents.procedure_count && !e; i++) {
		if (!is_wanted(m, i))
			continue;
		const char *name = m->original.extents.procedures[i].name;
		struct path_item *item = &m->out->items[m->out->count++];
		item->name = strdup(name ? name : "");
		item->procedure = i;
		item->entry = extents_start(&m->original.extents, i);
		item->graph = calloc(1, sizeof *item->graph);
		if (!item->name || !item->graph)
			e = err_new("out of memory");
		if (!e)
			e = take_parts(m, i, item);
		if (!e)
			e = original_graph(&m->original, i, item->graph);
		if (!e)
			count_tables(m, item->graph);
	}
	return e;
}

static struct err *find_needs(struct maker *m)
{
	struct graph **graphs = calloc(m->original.extents.procedure_count + 1, sizeof *graphs);
	if (!graphs)
		return err_new("out of memory");
	for (size_t i = 0; i < m->out->count; i++)
		graphs[m->out->items[i].procedure] = m->out->items[i].graph;
	struct err *e = needs_find(&m->original, graphs, &m->needs);
	free(graphs);
	return e;
}

/* The function that begins there, if it has a copy; NULL: it has none. Items ascend by their entries, as procedures do. */
static const struct path_item *item_at(const struct path_module *m, uint64_t entry)
{
	size_t i = FIRST_NOT(k, m->count, m->items[k].entry < entry);
	return i < m->count && m->items[i].entry == entry && !m->items[i].reason ? &m->items[i]
										 : NULL;
}

/* Lets copies call each other at once, and not by the jump in the function. */
static void join_copies(struct path_module *m, uint16_t machine)
{
	for (size_t i = 0; i < m->count; i++) {
		struct copy *c = &m->items[i].copy;
		for (size_t k = 0; k < c->call_count; k++) {
			const struct path_item *to = item_at(m, c->calls[k].target);
			uint32_t at = c->calls[k].at;
			if (to)
				write_aim(machine, c->code + at, c->address + at,
					  to->copy.address +
						  (c->calls[k].direct ? to->copy.direct : 0));
		}
	}
}

static struct err *write_object(struct maker *m)
{
	struct copy *copies = calloc(m->out->count + 1, sizeof *copies);
	size_t count = m->out->copied_count;
	if (!copies)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++)
		copies[i] = m->out->items[m->out->copied[i]].copy;
	const struct object_input input = {.image = m->in->image,
					   .name = m->in->name,
					   .base = m->in->base,
					   .bias = m->in->bias,
					   .tables = (const uint8_t *)buf_text(&m->tables),
					   .table_size = m->tables.size,
					   .copies = copies,
					   .copy_count = count};
	struct err *e = count ? object_write(&input, &m->out->object) : NULL;
	free(copies);
	return e;
}

static struct err *list_copied(struct path_module *out)
{
	out->copied = calloc(out->count + 1, sizeof *out->copied);
	for (size_t i = 0; i < out->count && out->copied; i++)
		if (!out->items[i].reason)
			out->copied[out->copied_count++] = (uint32_t)i;
	return out->copied ? NULL : err_new("out of memory");
}

static struct err *make_all(struct maker *m)
{
	struct path_module *out = m->out;
	struct err *e = take_items(m);
	if (!e)
		e = find_needs(m);
	uint64_t room = (OBJECT_TABLES + m->table_room + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t address = m->in->base + room;
	for (size_t i = 0; i < out->count && !e; i++)
		e = make_item(m, &out->items[i], &address);
	if (!e)
		e = list_copied(out);
	if (!e && !m->in->running)
		join_copies(out, m->original.machine);
	return e ? e : write_object(m);
}

struct err *path_module_make(const struct path_module_input *input, struct path_module *out)
{
	struct maker m = {.in = input, .out = out};
	*out = (struct path_module){.words = input->first_word};
	struct err *e = original_open(input->image, &m.original);
	if (e)
		return e;
	if (m.original.cpu && (input->thread_word || !write_needs_word(m.original.machine)))
		e = make_all(&m);
	else
		e = err_new("it is code of another CPU");
	needs_free(&m.needs);
	original_close(&m.original);
	buf_free(&m.tables);
	if (e)
		path_module_free(out);
	return e;
}

uint64_t path_item_site(const struct path_item *item, uint64_t returns)
{
	const struct copy *c = &item->copy;
	uint64_t at = returns - c->address;
	size_t after = FIRST_NOT(i, c->step_count, c->steps[i].to < at);
	return at <= c->size && after ? c->steps[after - 1].from : 0;
}

uint64_t path_item_calls(const struct path_item *item, const uint64_t *words)
{
	const struct numbering *n = &item->sums.numbering;
	uint64_t end = n->start_count > 1 ? n->starts[1].first : n->path_count, calls = 0;
	if (item->sums.counts_calls)
		return words[0];
	for (uint64_t i = n->starts[0].first; i < end; i++)
		calls += words[1 + i];
	return calls;
}

/* ---- where it is ---- */

/* Of a sum, in a block: the paths that go on from there. */
static struct path_spot spot_of_sum(const struct numbering *n, uint32_t block, int64_t sum)
{
	int64_t number = sum + n->behind[block];
	bool known = number >= 0 && (uint64_t)number < n->path_count;
	return known ? (struct path_spot){(uint64_t)number, n->ways[block], 0}
		     : (struct path_spot){.block = SPOT_NO_BLOCK};
}

static struct path_spot spot_at(const struct numbering *n, const struct copy_place *place,
				const uint64_t *registers)
{
	if (place->reg == COPY_SUM_AWAY)
		return (struct path_spot){.block = place->block};
	int64_t sum = place->value;
	if (place->reg != COPY_KNOWN)
		sum = (int64_t)((uint64_t)sum + registers[place->reg]);
	if (place->block != COPY_WHOLE)
		return spot_of_sum(n, place->block, sum);
	return sum >= 0 && (uint64_t)sum < n->path_count
		       ? (struct path_spot){.first = (uint64_t)sum, .count = 1}
		       : (struct path_spot){.block = SPOT_NO_BLOCK};
}

bool path_module_spot(const struct path_module *m, uint64_t address, const uint64_t *registers,
		      size_t *item, struct path_spot *out)
{
	size_t after = FIRST_NOT(i, m->copied_count,
				 m->items[m->copied[i]].copy.address <= address);
	if (!after)
		return false;
	*item = m->copied[after - 1];
	const struct copy *c = &m->items[*item].copy;
	uint64_t at = address - c->address;
	size_t place = at < c->size ? FIRST_NOT(i, c->place_count, c->places[i].at <= at) : 0;
	if (!place)
		return false;
	*out = spot_at(&m->items[*item].sums.numbering, &c->places[place - 1], registers);
	return true;
}

void path_module_free(struct path_module *module)
{
	for (size_t i = 0; i < module->count; i++) {
		struct path_item *item = &module->items[i];
		free(item->name);
		free(item->told);
		free(item->parts);
		if (item->graph)
			graph_free(item->graph);
		free(item->graph);
		sums_free(&item->sums);
		copy_free(&item->copy);
	}
	free(module->items);
	free(module->copied);
	buf_free(&module->object);
	*module = (struct path_module){0};
}
