/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that says HELLO waits for our answer, and has one thread. So nothing in its memory changes, and nobody runs the
 * code that is to be changed. Where each function is, what replaces its beginning (patch/plan.h), and where in its
 * memory there is room for islands, we find out here. The agent does it.
 *
 * Islands are in blocks: one for each file, within reach of its code.
 *
 *    block:  address of the agent's code | word, island | word, island | …
 */
#include "collect/agents/patches.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/patches_tree.h"
#include "collect/agents/rooms.h"
#include "collect/agents/slowest.h"
#include "collect/agents/state.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "image/image.h"
#include "library/emulated.h"
#include "library/library.h"
#include "patch/plan.h"
#include "process/maps.h"
#include "process/registers.h"
#include "process/remote.h"
#include "profile/profile.h"
#include "safe/probes.h"
#include "safe/slowest.h"
#include "safe/ticks.h"

#define PAGE 4096u
#define BLOCK_HEAD 16u /* bytes */
#define ISLAND_ROOM (ARENA_ISLAND_BYTES + 16u)
#define STAT_START 22    /* in /proc/PID/stat */
#define RATE_NS 10000000 /* how long ticks are compared with a clock */

_Static_assert(ARENA_PROBE_TIMES == PROBE_TIMES, "the same buckets");
_Static_assert(ARENA_STEPS == PATCH_STEPS_MAX, "the same steps");

/* ---- ticks ---- */

/* Nanoseconds of a tick, times 2^32. */
static uint64_t tick_rate(void)
{
	static uint64_t rate;
	if (rate)
		return rate;
	uint64_t ns = now_ns(), ticks = ticks_now();
	nanosleep(&(struct timespec){.tv_nsec = RATE_NS}, NULL);
	uint64_t ns_later = now_ns(), ticks_later = ticks_now();
	rate = (uint64_t)(((unsigned __int128)(ns_later - ns) << 32) / (ticks_later - ticks));
	return rate;
}

/* ---- where ---- */

static bool is_of(const struct map *m, const struct probe_function *f, const struct stat *st)
{
	return m->executable &&
	       (!strcmp(m->path, f->module) || (m->inode == st->st_ino && m->device == st->st_dev));
}

/* The mapping that has the function; NULL: there is none. */
static const struct map *map_of(const struct maps *maps, const struct probe_function *f)
{
	struct stat st = {0};
	if (!f->site_count || stat(f->file, &st))
		return NULL;
	uint64_t offset = f->sites[0].offset;
	for (size_t i = 0; i < maps->count; i++) {
		const struct map *m = &maps->items[i];
		if (is_of(m, f, &st) && offset >= m->offset &&
		    offset - m->offset < m->end - m->start)
			return m;
	}
	return NULL;
}

/* ---- what ---- */

struct arena_probe *patches_at(const struct arena *a, uint32_t index)
{
	uint32_t chunk = atomic_load(&a->header->probes);
	uint64_t chunks = a->size >> ARENA_CHUNK_BITS;
	if (index >= ARENA_PROBES_MAX)
		return NULL;
	for (uint32_t i = index / ARENA_PROBES_PER_CHUNK; i && chunk && chunk < chunks; i--)
		chunk = atomic_load(&((struct arena_chunk *)arena_at(a->header, chunk))->next);
	if (!chunk || chunk >= chunks)
		return NULL;
	char *at = arena_at(a->header, chunk);
	return (struct arena_probe *)(at + sizeof(struct arena_chunk)) +
	       index % ARENA_PROBES_PER_CHUNK;
}

struct asking {
	struct agents *agents;
	struct process *process;
	struct arena *arena;
	const struct patch_cpu *cpu;
	struct maps maps, code; /* code: as the program sees it, if an emulator runs it */
	struct rooms rooms;
	uint32_t count;
};

static struct arena_probe *new_description(struct asking *a)
{
	struct arena_header *arena = a->arena->header;
	uint32_t index = a->count % ARENA_PROBES_PER_CHUNK;
	if (a->count == ARENA_PROBES_MAX)
		return NULL;
	if (!index) {
		uint32_t chunk = arena_take(arena);
		if (!chunk)
			return NULL;
		if (a->arena->probe_chunk)
			atomic_store(&((struct arena_chunk *)arena_at(arena, a->arena->probe_chunk))
					      ->next,
				     chunk);
		else
			atomic_store(&arena->probes, chunk);
		a->arena->probe_chunk = chunk;
	}
	char *chunk = arena_at(arena, a->arena->probe_chunk);
	struct arena_probe *p = (struct arena_probe *)(chunk + sizeof(struct arena_chunk)) + index;
	memset(p, 0, sizeof *p);
	return p;
}

/* Returns zeroed memory in the arena; NULL: there is no room. */
static void *new_piece(struct asking *a, size_t size)
{
	struct arena_header *arena = a->arena->header;
	struct arena_chunk *chunk = a->arena->probe_sums ? arena_at(arena, a->arena->probe_sums)
							 : NULL;
	uint32_t used = chunk ? atomic_load(&chunk->used) : ARENA_CHUNK;
	if (used + size > ARENA_CHUNK) {
		a->arena->probe_sums = arena_take(arena);
		if (!a->arena->probe_sums)
			return NULL;
		chunk = arena_at(arena, a->arena->probe_sums);
		used = sizeof *chunk;
	}
	void *piece = (char *)chunk + used;
	memset(piece, 0, size);
	atomic_store(&chunk->used, used + (uint32_t)size);
	return piece;
}

static uint64_t reference_to(const struct asking *a, const void *piece)
{
	return piece ? (uint64_t)((const char *)piece - (const char *)a->arena->header) / 8 : 0;
}

/* Where the slowest calls are kept. Returns a reference; 0: there is no room. */
static uint64_t new_slowest(struct asking *a, uint32_t wanted)
{
	struct arena_slowest *list = new_piece(a, slowest_size(wanted));
	if (list)
		list->count = wanted + ARENA_SLOWEST_SPARE;
	return reference_to(a, list);
}

/* Sums that all threads add to. Returns a reference; 0: there is no room. */
static uint64_t new_sums(struct asking *a, uint32_t number, uint64_t slowest)
{
	struct arena_probe_sums *s = new_piece(a, sizeof *s);
	if (!s)
		return 0;
	s->number = number;
	s->least = UINT64_MAX;
	s->slowest = slowest;
	s->threshold = slowest ? 0 : UINT64_MAX;
	return reference_to(a, s);
}

/* The beginning of a function, as its file has it. */
static size_t read_code(const struct probe_function *f, uint8_t code[PATCH_WINDOW_MAX])
{
	int fd = open(f->file, O_RDONLY | O_CLOEXEC);
	size_t most = f->room < PATCH_WINDOW_MAX ? f->room : PATCH_WINDOW_MAX;
	ssize_t size = fd < 0 ? -1 : pread(fd, code, most, (off_t)f->sites[0].offset);
	if (fd >= 0)
		close(fd);
	return size > 0 ? (size_t)size : 0;
}

static enum patch_refusal plan_for(const struct asking *a, const struct probe_function *f,
				   uint64_t address, uint64_t block, uint64_t island,
				   struct patch_plan *plan)
{
	uint8_t code[PATCH_WINDOW_MAX];
	uint64_t targets[PROBE_TARGETS];
	for (size_t i = 0; i < f->target_count; i++)
		targets[i] = address + f->targets[i];
	const struct patch_input input = {.code = code,
					  .size = read_code(f, code),
					  .address = address,
					  .island = island,
					  .through = block,
					  .targets = targets,
					  .target_count = f->target_count};
	return patch_plan(a->cpu, &input, plan);
}

static void describe(struct arena_probe *p, uint32_t number, uint64_t address, uint64_t block,
		     uint64_t block_size, uint64_t island, const struct patch_plan *plan)
{
	p->function = address;
	p->at = plan->at;
	p->block = block;
	p->block_size = block_size;
	p->island = island - sizeof(uint64_t);
	p->body = island + plan->body;
	p->number = number;
	p->island_size = (uint16_t)(plan->island_size + sizeof(uint64_t));
	p->window = plan->window;
	p->length = plan->length;
	memcpy(p->original, plan->original, sizeof p->original);
	memcpy(p->jump, plan->jump, sizeof p->jump);
	memcpy(p->code + sizeof(uint64_t), plan->island, plan->island_size);
	p->step_count = (uint8_t)plan->step_count;
	for (size_t i = 0; i < plan->step_count; i++) {
		p->step_from[i] = plan->steps[i].from;
		p->step_to[i] = plan->steps[i].to;
	}
}

static void describe_lead(struct arena_probe *p, const struct probe_function *f)
{
	uint8_t code[PATCH_WINDOW_MAX];
	size_t size = read_code(f, code), lead = p->at - p->function;
	size = size < lead ? size : lead;
	p->lead_size = (uint8_t)(size < ARENA_LEAD_BYTES ? size : ARENA_LEAD_BYTES);
	memcpy(p->lead, code, p->lead_size);
}

static bool ask_one(struct asking *a, struct probe_function *f, uint32_t number, uint64_t address,
		    uint64_t block, uint64_t block_size, uint64_t island)
{
	struct patch_plan plan;
	enum patch_refusal refusal = plan_for(a, f, address, block, island, &plan);
	if (!refusal && plan.island_size + sizeof(uint64_t) > ARENA_ISLAND_BYTES)
		refusal = PATCH_OUT_OF_REACH;
	if (refusal) {
		probes_refuse(f, PROBE_REFUSED, patch_refusal_text(refusal));
		return true;
	}
	struct arena_probe *p = new_description(a);
	uint32_t wanted = a->agents->recording->options.probes->slowest;
	uint64_t slowest = p && wanted ? new_slowest(a, wanted) : 0;
	uint64_t sums = p ? new_sums(a, number, slowest) : 0;
	if (!sums || (wanted && !slowest)) {
		probes_refuse(f, PROBE_REFUSED, "there are too many probes");
		return false;
	}
	describe(p, number, address, block, block_size, island, &plan);
	describe_lead(p, f);
	p->wrapped = f->wrapped;
	p->sums = sums;
	p->slowest = slowest;
	p->counted = f->dropped;
	a->count++;
	return true;
}

/* All functions in one mapping. */
static void ask_map(struct asking *a, const struct map *map, struct probes *probes,
		    const struct map **maps_of)
{
	uint64_t count = 0;
	for (size_t i = 0; i < probes->count; i++)
		count += maps_of[i] == map;
	uint64_t size = (BLOCK_HEAD + count * ISLAND_ROOM + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t block = rooms_take(&a->rooms, map, size);
	uint64_t island = block + BLOCK_HEAD + sizeof(uint64_t);
	for (size_t i = 0; i < probes->count; i++) {
		struct probe_function *f = &probes->functions[i];
		if (maps_of[i] != map)
			continue;
		maps_of[i] = NULL;
		if (!block) {
			probes_refuse(f, PROBE_REFUSED, patch_refusal_text(PATCH_OUT_OF_REACH));
			continue;
		}
		if (!ask_one(a, f, (uint32_t)i, map->start + f->sites[0].offset - map->offset,
			     block, size, island))
			return;
		island += ISLAND_ROOM;
	}
}

/* ---- functions that the agent has, too ---- */

static bool has_symbol(const Elf64_Sym *symbols, size_t count, const char *names, size_t size,
		       const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (symbols[i].st_shndx && symbols[i].st_name < size &&
		    !strncmp(names + symbols[i].st_name, name, size - symbols[i].st_name))
			return true;
	return false;
}

/* Calls of these come from the agent's own functions, which the program has called. */
static void note_wrapped(const char *agent, struct probes *probes)
{
	const struct image_section *all;
	struct image *image;
	struct err *e = image_open(agent, &image);
	if (e) {
		err_free(e);
		return;
	}
	size_t count = image_sections(image, &all), size, text;
	for (size_t i = 0; i < count; i++) {
		if (all[i].type != SHT_DYNSYM || all[i].link >= count)
			continue;
		const void *symbols = image_section_bytes(image, &all[i], &size);
		const void *names = image_section_bytes(image, &all[all[i].link], &text);
		for (size_t k = 0; symbols && names && k < probes->count; k++)
			probes->functions[k].wrapped = has_symbol(symbols, size / sizeof(Elf64_Sym),
								  names, text,
								  probes->functions[k].name);
	}
	image_close(image);
}

static struct err *read_maps(struct asking *a, const struct process *p)
{
	struct err *e = maps_read(p->pid, &a->maps);
	if (!e)
		e = maps_read(p->pid, &a->code);
	if (!e && a->cpu->elf_machine != native_machine)
		e = emulated_maps(p->pid, a->cpu->elf_machine, &a->code);
	if (e) {
		maps_free(&a->maps);
		maps_free(&a->code);
	}
	return e;
}

/* Where the functions are that are due. Returns whether one is found. */
static bool find_maps(const struct asking *a, const struct probes *probes, const bool *due,
		      const struct map **out)
{
	bool any = false;
	for (size_t i = 0; i < probes->count; i++) {
		out[i] = due[i] ? map_of(&a->code, &probes->functions[i]) : NULL;
		any |= out[i] != NULL;
	}
	return any;
}

/* An emulator of our own CPU maps no code of the program so that it could be executed. */
static void look_in_emulator(struct asking *a, const struct probes *probes, const bool *due,
			     const struct map **out)
{
	if (a->cpu->elf_machine != native_machine)
		return;
	struct err *e = emulated_maps(a->process->pid, native_machine, &a->code);
	if (!e)
		find_maps(a, probes, due, out);
	err_free(e);
}

/* Describes those for which it is due (`maps_of`). */
static struct err *ask(struct asking *a, struct probes *probes, const bool *due)
{
	struct err *e = read_maps(a, a->process);
	if (e)
		return e;
	a->rooms = (struct rooms){.maps = &a->maps, .reach = a->cpu->reach - PAGE};
	const struct map **maps_of = calloc(probes->count + 1, sizeof *maps_of);
	if (maps_of && !find_maps(a, probes, due, maps_of))
		look_in_emulator(a, probes, due, maps_of);
	for (size_t i = 0; maps_of && i < probes->count; i++)
		if (maps_of[i])
			ask_map(a, maps_of[i], probes, maps_of);
	free(maps_of);
	rooms_free(&a->rooms);
	maps_free(&a->maps);
	maps_free(&a->code);
	return NULL;
}

/* Those that can be asked for, and are not described in the arena yet. */
static bool *find_due(const struct arena *a, const struct probes *probes)
{
	bool *due = calloc(probes->count + 1, sizeof *due);
	for (size_t i = 0; due && i < probes->count; i++)
		due[i] = probes->functions[i].state != PROBE_REFUSED &&
			 !probes->functions[i].removed;
	for (uint32_t i = 0; due && i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		if (p && p->number < probes->count)
			due[p->number] = false;
	}
	return due;
}

struct err *patches_ask(struct agents *agents, struct process *p)
{
	struct probes *probes = agents->recording->options.probes;
	struct arena *arena = p->agent->arena;
	struct asking a = {.agents = agents,
			   .process = p,
			   .arena = arena,
			   .count = atomic_load(&arena->header->probe_count),
			   .cpu = patch_cpu_for(p->machine ? p->machine : native_machine)};
	if (!probes || !a.cpu)
		return NULL;
	if (!a.count)
		note_wrapped(agents->recording->options.agent, probes);
	bool *due = find_due(arena, probes);
	struct err *e = due ? ask(&a, probes, due) : err_new("out of memory");
	free(due);
	if (e)
		return e;
	arena->header->owner = getpid();
	arena->header->owner_start = (uint64_t)process_stat_field(getpid(), STAT_START);
	arena->header->probe_tick = tick_rate();
	slowest_begin();
	atomic_store(&arena->header->probe_count, a.count);
	return NULL;
}

/* ---- what they have counted ---- */

struct probe_sums patches_sums(const struct arena_probe_sums *s)
{
	struct probe_sums out = {.calls = s->calls,
				 .returned = s->returned,
				 .unwound = s->unwound,
				 .abandoned = s->abandoned,
				 .untimed = s->untimed,
				 .ns = s->ns,
				 .most = s->most,
				 .least = s->least};
	out.calls += out.untimed;
	for (uint32_t i = 0; i < PROBE_TIMES; i++)
		out.times[i] = s->times[i];
	return out;
}

static const struct arena_probe_sums *sums_at(const struct arena *a, uint64_t reference)
{
	if (!reference || reference > a->size / 8 ||
	    reference * 8 + sizeof(struct arena_probe_sums) > a->size)
		return NULL;
	return (const void *)((const char *)a->header + reference * 8);
}

struct err *patches_take(const struct patches_tree *tree, uint64_t reference, uint32_t node,
			 uint64_t *partial)
{
	struct probes *probes = tree->recording->options.probes;
	struct profile *profile = tree->harvest->profile;
	const struct arena_probe_sums *there = sums_at(tree->arena, reference);
	uint32_t number = there ? there->number : 0;
	if (!there || number >= probes->count)
		return NULL;
	struct probe_sums sums = patches_sums(there);
	if (partial)
		*partial += sums.calls;
	struct err *e = profile_count(profile, node, tree->thread, 0, sums.calls);
	if (!e && sums.ns)
		e = profile_count(profile, node, tree->thread, 1, sums.ns);
	if (tree->last)
		probes_return(probes);
	if (e || (!tree->last && !probes->lent))
		return e;
	if (there->kept)
		slowest_take(tree, there, reference, node);
	return probes_add(probes, number, node, &sums);
}

/* ---- what became of them ---- */

void patches_for_each(struct arena *a, patches_each *each, void *context)
{
	uint32_t count = a->header ? atomic_load(&a->header->probe_count) : 0;
	for (uint32_t i = 0; i < count; i++) {
		struct arena_probe *p = patches_at(a, i);
		if (!p)
			return;
		each(p, context);
	}
}

const char *patches_state_text(uint32_t state)
{
	switch (state) {
	case ARENA_PROBE_NO_ROOM:
		return "there is no room for code within reach of it";
	case ARENA_PROBE_CHANGED:
		return "its code in memory is not that of its file";
	case ARENA_PROBE_FIXED:
		return "its code cannot be changed";
	default:
		return NULL;
	}
}

struct settling {
	struct recording *recording;
	const struct arena *arena;
	struct probes *probes;
	bool last;
};

/* Sums that belong to no thread. */
static void add_shared(const struct settling *s, struct arena_probe *p)
{
	const struct arena_probe_sums *shared = sums_at(s->arena, p->sums);
	struct probe_sums sums = shared ? patches_sums(shared)
					: (struct probe_sums){.least = UINT64_MAX};
	uint64_t unknown = s->last ? atomic_exchange(&p->unknown, 0) : atomic_load(&p->unknown);
	sums.calls += unknown;
	sums.abandoned += unknown;
	if (sums.calls || sums.returned || sums.unwound || sums.abandoned)
		err_free(probes_add(s->probes, p->number, 0, &sums));
	s->probes->untimed += unknown;
	slowest_take_others(s->recording, s->arena, p);
}

static void settle(struct arena_probe *p, void *context)
{
	const struct settling *s = context;
	const char *why = patches_state_text(atomic_load(&p->state));
	if (p->number >= s->probes->count)
		return;
	struct probe_function *f = &s->probes->functions[p->number];
	if (s->last && why && !f->sums.calls)
		probes_refuse(f, PROBE_REFUSED, why);
	add_shared(s, p);
}

void patches_settle(struct recording *recording, struct arena *a, bool last)
{
	struct probes *probes = recording->options.probes;
	if (!probes || !a->header)
		return;
	if (last)
		probes_return(probes);
	patches_for_each(
		a, settle,
		&(struct settling){
			.recording = recording, .arena = a, .probes = probes, .last = last});
}

/* ---- taking them out ---- */

static void take_out(struct arena_probe *p, void *context)
{
	int memory = *(int *)context;
	uint8_t now[ARENA_JUMP_BYTES];
	uint8_t length = p->length < sizeof now ? p->length : sizeof now;
	if (atomic_load(&p->state) == ARENA_PROBE_ON &&
	    pread(memory, now, length, (off_t)p->at) == length && !memcmp(now, p->jump, length) &&
	    pwrite(memory, p->original, length, (off_t)p->at) != length)
		return; /* it stays, and does nothing */
}

void patches_withdraw(struct process *p)
{
	struct arena *a = p->agent->arena;
	struct remote stopped;
	char path[64];
	if (!a->header || !atomic_load(&a->header->probe_count) || p->foreign || p->agent->late ||
	    !process_is_alive(p) || (p->machine && p->machine != native_machine))
		return;
	struct err *e = remote_stop(p->pid, 0, &stopped);
	if (e) {
		err_free(e);
		return;
	}
	snprintf(path, sizeof path, "/proc/%d/mem", (int)p->pid);
	int memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory >= 0) {
		patches_for_each(a, take_out, &memory);
		close(memory);
	}
	remote_close(&stopped);
}
