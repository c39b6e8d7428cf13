/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/paths/copier.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "collect/paths/contexts.h"
#include "collect/paths/counting.h"
#include "collect/paths/room.h"
#include "image/image.h"
#include "copies/module.h"
#include "copies/write.h"
#include "paths/result.h"
#include "process/maps.h"

/* How much larger than the code the copies may be, all in all. */
#define GROWTH 8u
#define ROOM_LEAST (UINT64_C(1) << 20)
#define NO_OBJECT SIZE_MAX

struct made_module {
	char *path;
	char build_id[2 * BUILD_ID_MAX + 1];
	struct path_module module;
	struct path_spots *spots; /* by function of that: its samples; NULL: there are none */
	size_t object;            /* of the plan; NO_OBJECT: there is none */
	size_t first_patch; /* the same: of those functions that are counted, in their order */
	uint64_t bias;
};

struct made { /* for a program */
	struct made_module *modules;
	size_t count, room;
	struct room_taken *taken;
	size_t taken_count, taken_room;
};

struct copier {
	struct copier_options options;
	struct made **all;
	size_t count, room;
	bool failed; /* there was no memory for a sample */
};

struct err *copier_open(const struct copier_options *options, struct copier **out)
{
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	(*out)->options = *options;
	return NULL;
}

static void made_free(struct made *made)
{
	for (size_t i = 0; i < made->count; i++) {
		free(made->modules[i].path);
		for (size_t k = 0; made->modules[i].spots && k < made->modules[i].module.count; k++)
			path_spots_free(&made->modules[i].spots[k]);
		free(made->modules[i].spots);
		path_module_free(&made->modules[i].module);
	}
	free(made->modules);
	free(made->taken);
	free(made);
}

void copier_close(struct copier *copier)
{
	for (size_t i = 0; copier && i < copier->count; i++)
		made_free(copier->all[i]);
	if (copier)
		free(copier->all);
	free(copier);
}

/* ---- a module ---- */

/* Where the module is in memory: what is added to its addresses. */
static bool find_bias(struct image *image, const struct map *map, bool emulated, uint64_t *out)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	for (size_t i = 0; i < count; i++)
		if ((segments[i].executable || emulated) &&
		    map->offset + (map->end - map->start) > segments[i].offset &&
		    map->offset < segments[i].offset + segments[i].file_size) {
			*out = map->start - map->offset -
			       (segments[i].address - segments[i].offset);
			return true;
		}
	return false;
}

/* All of its addresses, and how much of that is code. */
static void find_extent(struct image *image, uint64_t *low, uint64_t *high, uint64_t *code)
{
	const struct image_segment *segments;
	size_t count = image_segments(image, &segments);
	*low = UINT64_MAX;
	*high = *code = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t end = segments[i].address + segments[i].size;
		*low = segments[i].address < *low ? segments[i].address : *low;
		*high = end > *high ? end : *high;
		*code += segments[i].executable ? segments[i].size : 0;
	}
}

static struct err *add_object(struct made_module *m, uint64_t base, struct counting_plan *plan,
			      size_t *room)
{
	struct buf name = {0};
	buf_printf(&name, "%s.%" PRIx64 ".paths.so", path_file(m->path), base);
	if (!ARRAY_ROOM(plan->objects, plan->object_count, *room) || name.failed) {
		buf_free(&name);
		return err_new("out of memory");
	}
	struct counting_object *o = &plan->objects[plan->object_count];
	o->base = base;
	o->size = m->module.object.size;
	o->bytes = buf_take(&m->module.object);
	o->name = buf_take(&name);
	m->object = plan->object_count++;
	return NULL;
}

static void note_start(struct image *image, const struct path_item *item, struct counting_patch *p)
{
	size_t size = 0;
	const uint8_t *bytes = image_bytes_at(image, item->entry, &size);
	uint64_t end = item->parts[0].end - item->entry;
	size = size < end ? size : end;
	p->start_size = bytes ? (uint8_t)(size < COUNTING_START ? size : COUNTING_START) : 0;
	if (p->start_size)
		memcpy(p->start, bytes, p->start_size);
}

static struct err *add_patches(struct image *image, struct made_module *m,
			       struct counting_plan *plan, size_t *room)
{
	m->first_patch = plan->patch_count;
	for (size_t i = 0; i < m->module.count; i++) {
		const struct path_item *item = &m->module.items[i];
		if (item->reason)
			continue;
		if (!ARRAY_ROOM(plan->patches, plan->patch_count, *room))
			return err_new("out of memory");
		struct counting_patch *p = &plan->patches[plan->patch_count++];
		*p = (struct counting_patch){.at = item->jump_at + m->bias,
					     .length = item->jump_size,
					     .object = m->object,
					     .entry = item->entry + m->bias};
		note_start(image, item, p);
		memcpy(p->expected, item->original, item->jump_size);
		memcpy(p->bytes, item->jump, item->jump_size);
	}
	return NULL;
}

struct job { /* copies for a program */
	struct copier *copier;
	struct made *made;
	const struct counting_program *program;
	const struct maps *maps;
	struct counting_plan *plan;
	size_t object_room, patch_room; /* of the plan's lists */
};

static struct err *make_copies(struct job *job, struct image *image, struct made_module *m)
{
	struct counting_plan *plan = job->plan;
	struct made *made = job->made;
	uint64_t low, high, code;
	find_extent(image, &low, &high, &code);
	uint64_t size = code * GROWTH + ROOM_LEAST;
	uint64_t base = room_find(job->maps, made->taken, made->taken_count, low + m->bias,
				  high + m->bias, size, write_reach(image_machine(image)),
				  job->program->late ? ROOM_BUSY : ROOM_STILL);
	if (!base)
		return err_new("%s: no room for copies near it", m->path);
	struct path_module_input input = {.image = image,
					  .choice = &job->copier->options.choice,
					  .path = m->path,
					  .name = path_file(m->path),
					  .base = base - m->bias,
					  .bias = m->bias,
					  .first_word = plan->words,
					  .thread_word = job->program->thread_word,
					  .atomics = job->program->atomics,
					  .running = job->program->late,
					  .contexts = plan->contexts};
	struct err *e = path_module_make(&input, &m->module);
	if (e)
		return err_context(e, "%s", m->path);
	plan->words = m->module.words;
	if (!m->module.object.size)
		return NULL;
	if (m->module.object.size > size)
		return err_new("%s: its copies are too large", m->path);
	if (!ARRAY_ROOM(made->taken, made->taken_count, made->taken_room))
		return err_new("out of memory");
	made->taken[made->taken_count++] = (struct room_taken){base, base + size};
	e = add_object(m, base, plan, &job->object_room);
	return e ? e : add_patches(image, m, plan, &job->patch_room);
}

/* ---- a program ---- */

/* A file that was deleted can still be opened as the mapping's. */
static struct err *open_map(pid_t pid, const struct map *map, struct image **out)
{
	char file[PATH_MAX + 64];
	if (map->deleted)
		snprintf(file, sizeof file, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
			 map->start, map->end);
	else
		snprintf(file, sizeof file, "/proc/%d/root%s", (int)pid, map->path);
	return image_open(file, out);
}

static bool is_known(const struct made *made, const char *path)
{
	for (size_t i = 0; i < made->count; i++)
		if (!strcmp(made->modules[i].path, path))
			return true;
	return false;
}

static struct err *make_module(struct job *job, const struct map *map)
{
	struct made *made = job->made;
	struct image *image = NULL;
	if (!ARRAY_ROOM(made->modules, made->count, made->room))
		return err_new("out of memory");
	struct made_module *m = &made->modules[made->count];
	*m = (struct made_module){.path = strdup(map->path), .object = NO_OBJECT};
	if (!m->path)
		return err_new("out of memory");
	made->count++;
	struct err *e = open_map(job->program->pid, map, &image);
	if (!e)
		image_build_id_hex(image, m->build_id);
	if (!e && !find_bias(image, map, job->copier->options.emulated, &m->bias))
		e = err_new("%s: it is not mapped as its file says", map->path);
	if (!e)
		e = make_copies(job, image, m);
	image_close(image);
	return e;
}

static bool is_wanted(const struct copier *copier, const struct made *made, const struct map *map,
		      const char *program)
{
	return (map->executable || copier->options.emulated) && map->path[0] == '/' &&
	       !is_known(made, map->path) &&
	       path_choice_has_module(&copier->options.choice, map->path,
				      !strcmp(map->path, program));
}

struct err *copier_make(void *context, struct counting_program *program, struct counting_plan *plan)
{
	struct copier *copier = context;
	struct maps maps;
	char link[64], file[PATH_MAX];
	struct made *made = calloc(1, sizeof *made);
	if (!made || !ARRAY_ROOM(copier->all, copier->count, copier->room)) {
		free(made);
		return err_new("out of memory");
	}
	copier->all[copier->count++] = made;
	program->made = made;
	if (program->kept_end && !ARRAY_ROOM(made->taken, made->taken_count, made->taken_room))
		return err_new("out of memory");
	if (program->kept_end)
		made->taken[made->taken_count++] = (struct room_taken){program->kept,
								       program->kept_end};
	if (copier->options.contexts && !program->can_contexts)
		return err_new("calling contexts are told apart on x86-64 only, so far");
	plan->contexts = copier->options.contexts;
	struct err *e = maps_read(program->pid, &maps);
	if (e)
		return e;
	snprintf(link, sizeof link, "/proc/%d/exe", (int)program->pid);
	struct job job = {
		.copier = copier, .made = made, .program = program, .maps = &maps, .plan = plan};
	ssize_t length = readlink(link, file, sizeof file - 1);
	file[length > 0 ? length : 0] = 0;
	for (size_t i = 0; i < maps.count && !e; i++)
		if (is_wanted(copier, made, &maps.items[i], file))
			e = make_module(&job, &maps.items[i]);
	maps_free(&maps);
	return e;
}

/* ---- samples ---- */

static bool add_sample(struct made_module *m, size_t item, const struct path_spot *spot,
		       size_t event, uint64_t value)
{
	if (!m->spots)
		m->spots = calloc(m->module.count, sizeof *m->spots);
	return m->spots && path_spots_add(&m->spots[item], spot, (uint32_t)event, value);
}

bool copier_find(const struct counting_program *program, uint64_t pc, const uint64_t *registers,
		 struct copier_place *out)
{
	const struct made *made = program->made;
	for (out->module = 0; made && out->module < made->count; out->module++) {
		const struct made_module *m = &made->modules[out->module];
		if (!path_module_spot(&m->module, pc - m->bias, registers, &out->index, &out->spot))
			continue;
		out->function = &m->module.items[out->index];
		return true;
	}
	return false;
}

void copier_sample(void *context, struct counting_program *program, size_t event, uint64_t pc,
		   const uint64_t *registers, uint64_t value)
{
	struct copier *copier = context;
	struct made *made = program->made;
	struct copier_place at;
	if (copier_find(program, pc, registers, &at) &&
	    !add_sample(&made->modules[at.module], at.index, &at.spot, event, value))
		copier->failed = true;
}

/* ---- what was counted ---- */

static const char *why_unchanged(const struct counting_program *program, size_t patch)
{
	for (size_t i = 0; i < program->unchanged_count; i++)
		if (program->unchanged[i].patch == patch)
			return program->unchanged[i].why;
	return NULL;
}

/* Why a function was not counted; NULL: it was. */
static const char *why_not(const struct counting_program *program, const struct made_module *m,
			   const struct path_item *item, size_t patch)
{
	if (item->reason)
		return item->reason;
	if (program->troubles && program->troubles[m->object])
		return program->troubles[m->object];
	if (!program->counts)
		return "the program could not be changed";
	return why_unchanged(program, patch);
}

/* Moves what is known of a function, with its counts. */
static bool take_counts(const uint64_t *words, struct path_item *item, struct path_function *f)
{
	uint64_t paths = item->sums.numbering.path_count;
	f->entries = path_item_calls(item, words);
	f->no_context = item->no_context;
	f->graph = *item->graph;
	f->numbering = item->sums.numbering;
	f->numbering.graph = &f->graph;
	*item->graph = (struct graph){0};
	item->sums.numbering = (struct numbering){0};
	f->counts = calloc(paths + 1, sizeof *f->counts);
	if (!f->counts)
		return false;
	memcpy(f->counts, words + 1, paths * sizeof *f->counts);
	for (uint64_t i = paths; i < item->sums.words; i++)
		f->unknown += words[1 + i];
	return true;
}

/* ---- contexts ---- */

struct counter_owner { /* of the counters of a program */
	const struct made_module *module;
	struct path_item *item;
};

/* Whose counters begin there; no item: nobody's. */
static struct counter_owner owner_of(const struct made *made, uint64_t first_word)
{
	for (size_t i = 0; i < made->count; i++) {
		const struct path_module *m = &made->modules[i].module;
		size_t k = FIRST_NOT(n, m->copied_count,
				     m->items[m->copied[n]].first_word < first_word);
		if (k < m->copied_count && m->items[m->copied[k]].first_word == first_word)
			return (struct counter_owner){&made->modules[i], &m->items[m->copied[k]]};
	}
	return (struct counter_owner){0};
}

/* Adds a counter of a record to those of the bank, so functions have the sums of all their contexts, and to its context. */
static bool add_word(struct path_contexts *to, uint32_t context, const struct path_item *item,
		     uint64_t word, uint64_t count)
{
	const struct numbering *n = &item->sums.numbering;
	uint64_t paths = n->path_count, first = n->starts[0].first;
	uint64_t end = n->start_count > 1 ? n->starts[1].first : paths;
	bool enters = item->sums.counts_calls ? !word : word > first && word <= end;
	if (enters)
		to->items[context].entries += count;
	if (!word)
		return true;
	if (word > paths)
		to->items[context].unknown += count;
	else
		return path_contexts_count(to, context, word - 1, count);
	return true;
}

static uint32_t add_context(struct path_contexts *to, const struct made *made,
			    const struct counting_contexts *from, const struct counting_node *n,
			    const uint32_t *indices)
{
	const struct counter_owner own = owner_of(made, n->function);
	if (!own.item || own.item->no_context)
		return PATH_NO_CONTEXT;
	uint32_t place = path_contexts_place(to, own.item->name, own.module->path, own.item->entry);
	uint64_t site = 0;
	if (n->parent >= 2) {
		const struct counter_owner caller = owner_of(made, from->nodes[n->parent].function);
		if (caller.item)
			site = path_item_site(caller.item, n->from - caller.module->bias);
	}
	uint32_t parent = n->parent < 2 ? n->parent : indices[n->parent];
	if (place == PATH_NO_CONTEXT || parent == PATH_NO_CONTEXT)
		return PATH_NO_CONTEXT;
	return path_contexts_add(to, parent, place, site);
}

/* What was counted in the bank is of contexts that are not known. */
static bool add_astray(struct path_contexts *to, const struct made_module *m,
		       const struct path_item *item, const uint64_t *words)
{
	bool any = false, good = true;
	for (uint64_t i = 0; i <= item->sums.words; i++)
		any |= words[i] > 0;
	if (!any)
		return true;
	uint32_t place = path_contexts_place(to, item->name, m->path, item->entry);
	uint32_t context = place == PATH_NO_CONTEXT ? place
						    : path_contexts_add(to, PATH_ASTRAY, place, 0);
	for (uint64_t i = 0; i <= item->sums.words && good; i++)
		if (words[i])
			good = context != PATH_NO_CONTEXT &&
			       add_word(to, context, item, i, words[i]);
	return good;
}

static bool add_all_astray(struct path_contexts *to, const struct made *made,
			   const uint64_t *counts)
{
	bool good = true;
	for (size_t i = 0; i < made->count; i++) {
		const struct made_module *m = &made->modules[i];
		for (size_t k = 0; k < m->module.copied_count && good; k++) {
			const struct path_item *item = &m->module.items[m->module.copied[k]];
			if (!item->no_context)
				good = add_astray(to, m, item, counts + item->first_word);
		}
	}
	return good;
}

static bool add_contexts(struct path_contexts *to, const struct made *made,
			 const struct counting_program *program)
{
	const struct counting_contexts *from = program->contexts;
	uint32_t *indices = calloc(from->count, sizeof *indices);
	bool good = indices && path_contexts_open(to) && add_all_astray(to, made, program->counts);
	for (size_t i = 2; i < from->count && good; i++)
		indices[i] = add_context(to, made, from, &from->nodes[i], indices);
	for (size_t i = 0; i < from->word_count && good; i++) {
		const struct counting_word *w = &from->words[i];
		const struct counter_owner own = owner_of(made, from->nodes[w->node].function);
		if (!own.item || indices[w->node] == PATH_NO_CONTEXT ||
		    w->word > own.item->sums.words)
			continue; /* a slot, or damaged */
		program->counts[own.item->first_word + w->word] += w->count;
		good = add_word(to, indices[w->node], own.item, w->word, w->count);
	}
	free(indices);
	return good;
}

static struct err *collect_item(const struct copier *copier, const struct counting_program *program,
				const struct made_module *m, size_t index, size_t patch,
				struct path_result *out)
{
	struct path_item *item = &m->module.items[index];
	struct path_function f = {.name = strdup(item->name),
				  .module = strdup(m->path),
				  .build_id = strdup(m->build_id),
				  .address = item->entry,
				  .reason = why_not(program, m, item, patch)};
	f.state = f.reason ? PATH_REFUSED : PATH_EXACT;
	bool good = f.name && f.module && f.build_id;
	if (good && f.state == PATH_EXACT)
		good = take_counts(program->counts + item->first_word, item, &f);
	struct err *e = good ? NULL : err_new("out of memory");
	if (!e && m->spots && f.state == PATH_EXACT) {
		f.numbering.graph = &f.graph;
		e = path_spots_give(&m->spots[index], (uint32_t)copier->options.metric_count, &f);
	}
	if (!e)
		return path_result_add(out, &f);
	path_function_free(&f);
	return e;
}

static struct err *collect_module(const struct copier *copier,
				  const struct counting_program *program, struct made_module *m,
				  struct path_result *out)
{
	struct err *e = NULL;
	size_t patch = m->first_patch;
	for (size_t i = 0; i < m->module.count && !e; i++) {
		bool counted = !m->module.items[i].reason;
		e = collect_item(copier, program, m, i, patch, out);
		patch += counted;
	}
	return e;
}

struct err *copier_collect(struct copier *copier, const struct counting_program *program,
			   struct path_result *out)
{
	struct made *made = program->made;
	struct err *e = copier->failed ? err_new("out of memory") : NULL;
	if (!e && made && program->counts && program->contexts &&
	    !add_contexts(&out->contexts, made, program))
		e = err_new("out of memory");
	for (size_t i = 0; made && i < made->count && !e; i++)
		e = collect_module(copier, program, &made->modules[i], out);
	if (made && program->counts)
		out->forks += program->forks;
	return e;
}
