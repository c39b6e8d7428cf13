/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies: samples that a target could not walk, because they met code of no module in its list. The code may
 * be a library that was loaded a moment ago, or made at run time. The target leaves registers and stack. We
 * read the process's memory map again, tell the target the new list, and walk the copy. The samples of
 * unsignalled.c are walked here, too.
 *
 * A walk may have to wait for seconds until a new module's table is built, and the arena has room for few
 * copies. So copies are first taken out of the arena (copies_take_out), also while tables are built. Then they
 * are walked (copies_walk), oldest first. By then the process may have ended, or unloaded the code that it
 * ran. So its memory map is read now and then meanwhile, and kept as a picture (struct picture). Pictures are
 * tried if the present map does not explain a copy.
 *
 * From one sample to the next, a stack changes little except at its inner end. So it is kept in blocks. A
 * block that is unchanged since the thread's sample before is shared with that. So many copies of a deep
 * stack need little more memory than those of a shallow one.
 *
 *     the thread's samples      [a][b][c][d]
 *                            [e][f]  |  |       (the upper ends are the same)
 */
#include "collect/agents/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cct/cct.h"
#include "collect/agents/arenas.h"
#include "collect/agents/descriptors.h"
#include "collect/agents/heaps.h"
#include "collect/agents/programs.h"
#include "collect/agents/sample_ring.h"
#include "collect/agents/sentinels.h"
#include "collect/agents/state.h"
#include "collect/agents/trees.h"
#include "harvest/harvest.h"
#include "harvest/kernel_frames.h"
#include "harvest/mark.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "harvest/stack.h"
#include "library/library.h"
#include "profile/profile.h"

/* Pause before a memory map is read again in which nothing was new; doubled each time. */
#define LOOK_AGAIN_NS 500000ull
#define USELESS_MAX 10u /* doublings */
#define BYTES_MAX ((size_t)ARENA_COPY_CHUNKS * ARENA_CHUNK)
#define KEPT_MAX ((size_t)512 << 20) /* bytes of all; further copies stay in the arena */
#define BLOCK 256u
#define PICTURE_NS 1000000ull /* between two of a process */
#define PICTURES_MAX 256u
#define BEYOND (64u << 10) /* bytes that are read at a time */
#define THREADS 256u       /* slots for the last samples of threads */
#define AT_A_TIME 64u      /* walks between two calls of `meanwhile` */

/* A part of a stack. Samples share blocks. */
struct block {
	unsigned uses;
	uint8_t bytes[BLOCK];
};

/* A copy that was taken out of the arena. */
struct sample {
	struct sample *next;
	struct process *process;
	uint32_t owner;  /* chunk of its thread's record */
	uint32_t thread; /* index in the profile */
	uint32_t event, weight;
	uint64_t site; /* of an allocation, or 0 */
	/* Frames below the walk, further values: as in struct arena_copy. What the last frame is done to, by name. */
	uint64_t below[2];
	char *object;
	uint32_t more_count, more_metrics[ARENA_COPY_MORE];
	uint64_t more[ARENA_COPY_MORE];
	uint64_t
		wait_since; /* not 0: it is no sample, but where a thread waits since then (waits.c) */
	uint64_t ns;
	uint64_t kept_ns; /* when it was taken out of the arena */
	uint64_t registers[CPU_REGISTERS];
	uint64_t pc, address, size; /* address, size: of the stack */
	bool cut;                   /* the stack goes on beyond the copy */
	bool unsignalled;           /* it came without a signal: see unsignalled.c */
	/* Bytes of the stack that are from the moment of the sample; the rest was read later. */
	uint64_t copied;
	struct mark mark;        /* to read more of the stack later */
	uint64_t *kernel_frames; /* frames of the kernel, innermost first */
	uint32_t kernel_frame_count;
	size_t block_count;
	struct block *blocks[]; /* the word at `address` is somewhere in the first one */
};
_Static_assert(CPU_REGISTERS == 32, "as many as in struct arena_copy");

/* The memory map of a process at some moment. */
struct picture {
	struct picture *next;
	struct process *process;
	struct library_view *view;
	uint64_t taken_ns;
};

struct copies {
	struct sample *first, *last;
	struct picture *pictures; /* oldest first */
	unsigned picture_count;
	struct sample *recent[THREADS]; /* last waiting sample of threads, by hash */
	size_t bytes;
	bool walking;
};

bool copies_any(const struct arena_thread *record)
{
	for (int i = 0; i < ARENA_COPIES; i++)
		if (atomic_load_explicit(&((struct arena_thread *)record)->copies[i],
					 memory_order_relaxed))
			return true;
	return false;
}

/* ---- keeping ---- */

static void sample_free(struct copies *c, struct sample *sample)
{
	for (size_t i = 0; i < sample->block_count; i++)
		if (sample->blocks[i] && !--sample->blocks[i]->uses) {
			free(sample->blocks[i]);
			c->bytes -= sizeof(struct block);
		}
	c->bytes -= sizeof *sample + sample->block_count * sizeof *sample->blocks +
		    sample->kernel_frame_count * sizeof *sample->kernel_frames;
	free(sample->kernel_frames);
	free(sample->object);
	free(sample);
}

static struct sample *sample_new(struct copies *c, const struct arena_copy *from)
{
	uint64_t size = from->size, address = from->address;
	if (size > BYTES_MAX || address > UINT64_MAX - BYTES_MAX - BLOCK)
		return NULL;
	size_t count = (size_t)((address % BLOCK + size + BLOCK - 1) / BLOCK);
	struct sample *out = calloc(1, sizeof *out + count * sizeof *out->blocks);
	if (!out)
		return NULL;
	out->event = from->event;
	out->weight = from->weight;
	out->site = from->site;
	out->more_count = from->more_count < ARENA_COPY_MORE ? from->more_count : ARENA_COPY_MORE;
	memcpy(out->below, from->below, sizeof out->below);
	memcpy(out->more_metrics, from->more_metrics, sizeof out->more_metrics);
	memcpy(out->more, from->more, sizeof out->more);
	out->ns = from->ns;
	out->kept_ns = now_ns();
	out->pc = from->pc;
	out->address = address;
	out->size = out->copied = size;
	out->cut = from->cut;
	memcpy(out->registers, from->registers, sizeof out->registers);
	out->block_count = count;
	c->bytes += sizeof *out + count * sizeof *out->blocks;
	return out;
}

/* The block of `sample` that begins at this address, or NULL. */
static struct block *block_at(const struct sample *sample, uint64_t address)
{
	uint64_t first = sample->address - sample->address % BLOCK;
	uint64_t index = (address - first) / BLOCK;
	return address >= first && index < sample->block_count ? sample->blocks[index] : NULL;
}

/* The block of `before` at this address, if it has the same bytes; else takes over *fresh. */
static struct block *share_block(struct copies *c, const struct sample *before, uint64_t address,
				 struct block **fresh)
{
	struct block *same = before ? block_at(before, address) : NULL;
	if (!same || memcmp(same->bytes, (*fresh)->bytes, BLOCK)) {
		same = *fresh;
		*fresh = NULL;
		c->bytes += sizeof *same;
	}
	same->uses++;
	return same;
}

/* Where the bytes of a stack come from: the chunks of a copy in the arena, or memory. */
struct source {
	const struct arena *arena;
	const struct arena_chunk *chunk;
	size_t at;
	const uint8_t *flat; /* not NULL: all bytes are here */
};

static bool source_read(struct source *from, uint8_t *to, size_t size)
{
	if (from->flat) {
		memcpy(to, from->flat, size);
		from->flat += size;
		return true;
	}
	while (size) {
		if (from->at == ARENA_CHUNK) {
			uint32_t next = atomic_load(&((struct arena_chunk *)from->chunk)->next);
			from->chunk = (void *)arena_record(from->arena, next);
			from->at = sizeof *from->chunk;
		}
		if (!from->chunk)
			return false;
		size_t part = ARENA_CHUNK - from->at < size ? ARENA_CHUNK - from->at : size;
		memcpy(to, (const char *)from->chunk + from->at, part);
		from->at += part;
		to += part;
		size -= part;
	}
	return true;
}

static bool copy_stack(struct copies *c, struct source source, const struct sample *before,
		       struct sample *out)
{
	struct block *fresh = NULL;
	uint64_t done = 0;
	for (size_t i = 0; i < out->block_count; i++) {
		uint64_t at = out->address + done;
		size_t skip = (size_t)(at % BLOCK), part = BLOCK - skip;
		if (part > out->size - done)
			part = (size_t)(out->size - done);
		if (!fresh)
			fresh = malloc(sizeof *fresh);
		if (!fresh)
			return false;
		*fresh = (struct block){0};
		if (!source_read(&source, fresh->bytes + skip, part)) {
			free(fresh);
			return false;
		}
		out->blocks[i] = share_block(c, before, at - skip, &fresh);
		done += part;
	}
	free(fresh);
	return true;
}

static struct sample **recent_of(struct copies *c, const struct arena *a, uint32_t owner)
{
	return &c->recent[(owner * 31u + (uint32_t)a->inode) % THREADS];
}

/* What a descriptor stands for is in memory of the thread, which may be taken back before the walk. */
static void keep_object(const struct arena *a, struct sample *sample)
{
	struct buf name = {0};
	if (cct_key_module(sample->below[1]) != CCT_OBJECT)
		return;
	descriptors_name(a, sample->below[1], &name);
	sample->object = strdup(buf_text(&name));
	buf_free(&name);
}

/* NULL if it could not be kept. */
static struct sample *keep_one(struct agents *agents, const struct arena *a, struct process *p,
			       uint32_t owner, uint32_t thread, const struct arena_copy *from,
			       struct source source)
{
	struct copies *c = agents->copies;
	struct sample **recent = recent_of(c, a, owner);
	struct sample *sample = from ? sample_new(c, from) : NULL;
	if (!sample) {
		agents->recording->notes.unkept++;
		return NULL;
	}
	if (sample->event >= agents->recording->options.event_count ||
	    !copy_stack(c, source, *recent, sample)) {
		agents->recording->notes.damaged_trees++;
		sample_free(c, sample);
		return NULL;
	}
	keep_object(a, sample);
	sample->process = p;
	sample->owner = owner;
	sample->thread = thread;
	*(c->last ? &c->last->next : &c->first) = sample;
	c->last = sample;
	*recent = sample;
	return sample;
}

static void keep_left(struct agents *agents, struct arena *a, struct process *p, uint32_t owner,
		      uint32_t thread, uint32_t chunk)
{
	const struct arena_copy *from = (void *)arena_record(a, chunk);
	struct source source = {.arena = a,
				.chunk = from ? &from->chunk : NULL,
				.at = offsetof(struct arena_copy, bytes)};
	keep_one(agents, a, p, owner, thread, from, source);
}

static void take_picture(struct agents *agents, struct process *p)
{
	struct copies *c = agents->copies;
	struct picture **end = &c->pictures, *last = NULL, *new;
	struct library_view *view;
	uint64_t now = now_ns();
	for (; *end; end = &(*end)->next)
		if ((*end)->process == p)
			last = *end;
	if (p->gone || p->foreign || (last && now - last->taken_ns < PICTURE_NS) ||
	    c->picture_count == PICTURES_MAX || !process_is_alive(p))
		return;
	struct err *e = library_view_open(agents->recording->library, p->pid, p->machine, &view);
	if (e) { /* it may be ending */
		err_free(e);
		return;
	}
	if (last)
		last->taken_ns = now;
	if (!last || !library_view_is_same(last->view, view)) {
		new = calloc(1, sizeof *new);
		if (new) {
			*new = (struct picture){NULL, p, view, now};
			*end = new;
			c->picture_count++;
			return;
		}
	}
	library_view_free(view);
}

void copies_take_out(struct agents *agents, struct arena *a, struct process *p, uint32_t owner,
		     struct arena_thread *record)
{
	struct thread *t = arena_thread_of(a, owner);
	uint32_t thread;
	if (!t || !copies_any(record) || !trees_find_thread(agents->recording, t, record, &thread))
		return;
	if (!agents->copies)
		agents->copies = calloc(1, sizeof *agents->copies);
	for (int i = 0; agents->copies && i < ARENA_COPIES; i++) {
		uint32_t chunk = atomic_load(&record->copies[i]);
		if (!chunk || agents->copies->bytes > KEPT_MAX)
			continue;
		keep_left(agents, a, p, owner, thread, chunk);
		/* The chunks are given back first, then the thread may leave another copy. */
		arena_give(a->header, chunk);
		atomic_store(&record->copies[i], 0);
	}
	if (agents->copies &&
	    (agents->copies->walking || library_is_busy(agents->recording->library)))
		take_picture(agents, p);
}

/* Without memory, the path ends at the program's call. */
static void keep_kernel_frames(struct copies *c, struct sample *sample,
			       const struct ring_copy *copy)
{
	size_t size = copy->kernel_frame_count * sizeof *copy->kernel_frames;
	sample->kernel_frames = size ? malloc(size) : NULL;
	if (!sample->kernel_frames)
		return;
	memcpy(sample->kernel_frames, copy->kernel_frames, size);
	sample->kernel_frame_count = copy->kernel_frame_count;
	c->bytes += size;
}

bool copies_add(struct agents *agents, struct arena *a, uint32_t owner, struct arena_copy *from,
		struct ring_copy *copy)
{
	struct thread *t = arena_thread_of(a, owner);
	const struct arena_thread *record = arena_record(a, owner);
	uint32_t thread;
	if (!t || !record || t->generation != record->generation) /* overwritten */
		return true;
	if (!agents->copies)
		agents->copies = calloc(1, sizeof *agents->copies);
	if (!agents->copies || agents->copies->bytes > KEPT_MAX ||
	    !trees_find_thread(agents->recording, t, record, &thread))
		return false;
	struct mark mark = {0};
	if (from->cut) /* from the bytes as they are in memory */
		mark_make(&mark, from->address, copy->stack, from->size);
	sentinels_remove(a, owner, from->address, copy->stack, from->size, from->registers);
	struct sample *sample = keep_one(agents, a, t->process, owner, thread, from,
					 (struct source){.flat = copy->stack});
	if (!sample)
		return false;
	sample->unsignalled = true;
	sample->copied = copy->copied;
	sample->mark = mark;
	keep_kernel_frames(agents->copies, sample, copy);
	if (agents->copies->walking || library_is_busy(agents->recording->library))
		take_picture(agents, t->process);
	return true;
}

bool copies_add_wait(struct agents *agents, struct arena *a, uint32_t owner,
		     struct arena_copy *from, struct ring_copy *copy, uint64_t since)
{
	if (!copies_add(agents, a, owner, from, copy))
		return false;
	if (agents->copies && agents->copies->last)
		agents->copies->last->wait_since = since;
	return true;
}

/* ---- walking ---- */

static bool read_kept(const struct sample *s, uint64_t address, uint64_t *out)
{
	if (address < s->address || address - s->address > s->size ||
	    s->size - (address - s->address) < sizeof *out)
		return false;
	for (size_t done = 0; done < sizeof *out;) {
		uint64_t at = address + done;
		size_t skip = (size_t)(at % BLOCK), part = BLOCK - skip;
		if (part > sizeof *out - done)
			part = sizeof *out - done;
		memcpy((uint8_t *)out + done, block_at(s, at - skip)->bytes + skip, part);
		done += part;
	}
	return true;
}

struct beyond { /* a part of the stack that was not copied */
	const struct sample *sample;
	bool late; /* some words that were read are of a later time */
	uint64_t address, size;
	uint8_t bytes[BEYOND];
};

static bool read_beyond(struct beyond *b, uint64_t address, uint64_t *out)
{
	const struct sample *s = b->sample;
	uint64_t end = s->address + s->size, from = address - address % BEYOND;
	if (!s->mark.address || address < end)
		return false;
	if (address - b->address >= b->size) {
		b->address = from < end ? end : from;
		b->size = s->process->gone ? 0
					   : mark_read(&s->mark, s->process->pid, s->ns, b->address,
						       b->bytes, BEYOND);
	}
	if (address - b->address > b->size || b->size - (address - b->address) < sizeof *out)
		return false;
	memcpy(out, b->bytes + (address - b->address), sizeof *out);
	*out = sentinels_see_through(s->process->agent->arena, s->owner, address, *out);
	return true;
}

static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	struct beyond *b = context;
	if (!read_kept(b->sample, address, out) && !read_beyond(b, address, out))
		return false;
	b->late |= address - b->sample->address >= b->sample->copied;
	return true;
}

/* The keys of the frames, innermost first. */
struct path {
	uint64_t *keys;
	uint32_t count, max;
	enum walk_end end;
	bool late; /* it depends on words of a later time */
};

/* Adds the frames below the walk. */
static struct err *add_below(struct agents *agents, const struct sample *sample, uint32_t *node)
{
	struct harvest *h = &agents->recording->harvest;
	struct err *e = NULL;
	if (sample->below[0])
		e = harvest_add_child(agents->recording, h, sample->process, *node,
				      sample->below[0], node);
	if (!e && sample->object)
		e = descriptors_add_child(h, *node, sample->below[1], sample->object, node);
	return e;
}

static void note_wait(const struct sample *sample, uint32_t node)
{
	struct thread *t = arena_thread_of(sample->process->agent->arena, sample->owner);
	if (t) {
		t->wait_since = sample->wait_since;
		t->wait_node = node;
	}
}

static struct err *count_more(struct agents *agents, const struct sample *sample, uint32_t node)
{
	struct err *e = NULL;
	for (uint32_t i = 0; !e && i < sample->more_count; i++)
		if (sample->more_metrics[i] < agents->recording->options.event_count)
			e = profile_count(agents->recording->harvest.profile, node, sample->thread,
					  sample->more_metrics[i], sample->more[i]);
	return e;
}

static struct err *keep_path(struct agents *agents, const struct sample *sample,
			     const struct path *path)
{
	struct harvest *h = &agents->recording->harvest;
	struct process *p = sample->process;
	uint32_t node = 0;
	struct err *e = NULL;
	if (path->end != WALK_COMPLETE)
		e = harvest_add_child(agents->recording, h, p, 0,
				      cct_key(false, CCT_PARTIAL, (uint64_t)path->end), &node);
	for (uint32_t i = path->count; !e && i; i--)
		e = harvest_add_child(agents->recording, h, p, node, path->keys[i - 1], &node);
	if (!e && sample->kernel_frame_count)
		e = kernel_frames_add(agents->recording, p, sample->kernel_frames,
				      sample->kernel_frame_count, &node);
	if (!e)
		e = add_below(agents, sample, &node);
	if (!e && sample->wait_since) {
		note_wait(sample, node);
		return NULL;
	}
	if (!e)
		e = count_more(agents, sample, node);
	if (!e)
		e = profile_count(h->profile, node, sample->thread, sample->event, sample->weight);
	if (!e && sample->site)
		heaps_place(p, sample->site, node, sample->thread);
	if (!e && agents->recording->options.timeline && !sample->event)
		e = profile_time(h->profile, node, sample->thread, 0,
				 recording_since(agents->recording, sample->ns), sample->weight);
	if (!e && path->end != WALK_COMPLETE && !sample->event)
		agents->recording->partial += sample->weight;
	return e;
}

/* Reads the process's memory map again, unless that was of no use lately. Returns whether there is a
   new list. */
static bool refresh(struct agents *agents, struct process *p)
{
	uint64_t now = now_ns(), rest = p->useless ? LOOK_AGAIN_NS << p->useless : 0;
	if (p->gone || p->foreign || now - p->looked_ns < rest || !process_is_alive(p))
		return false;
	const struct library_list *before = p->list;
	p->looked_ns = now;
	err_free(program_look(agents, p, NULL)); /* if it is ending, we go on with what we know */
	if (p->list != before)
		p->useless = 0;
	else if (p->useless < USELESS_MAX)
		p->useless++;
	return p->list != before;
}

static enum walk_end walk_with(struct agents *agents, struct sample *sample,
			       const struct library_list *list, bool fresh, struct path *path)
{
	const struct process *p = sample->process;
	struct beyond beyond;
	struct walk_reader reader = {read_word, &beyond};
	struct stack_code code = {.fresh = fresh,
				  .in_kernel = sample->unsignalled,
				  .late = &beyond.late,
				  .task = p->gone || p->foreign ? 0 : p->pid};
	beyond.sample = sample;
	beyond.late = false;
	beyond.address = beyond.size = 0;
	if (list)
		code.space = library_walk(agents->recording->library, list);
	enum walk_end end = stack_walk(&code, p->machine, sample->registers, sample->pc, &reader,
				       path->keys, path->max, &path->count);
	path->late = beyond.late;
	return end;
}

/* Tells the thread that this copy was in vain, so that it leaves fewer. */
static void tell_in_vain(const struct sample *sample)
{
	const struct arena *a = sample->process->agent->arena;
	struct arena_thread *record = a->header ? arena_record(a, sample->owner) : NULL;
	if (record)
		atomic_fetch_add(&record->vain, 1);
}

/* Whether the walk ended at code of no module; or one frame before, because a frame pointer that leads to
   such code is not believed. */
static bool is_unknown(const struct path *path)
{
	return path->end == WALK_NO_MODULE || path->end == WALK_NO_RECIPE;
}

static void walk_one(struct agents *agents, struct sample *sample, struct path *path)
{
	struct process *p = sample->process;
	path->end = walk_with(agents, sample, p->list, false, path);
	if (is_unknown(path) && refresh(agents, p))
		path->end = walk_with(agents, sample, p->list, false, path);
	for (struct picture *at = agents->copies->pictures; is_unknown(path) && at; at = at->next)
		if (at->process == p)
			path->end = walk_with(
				agents, sample,
				library_view_list(agents->recording->library, at->view), false,
				path);
	if (is_unknown(path)) /* as far as the present list goes */
		path->end = walk_with(agents, sample, p->list, p->looked_ns >= sample->kept_ns,
				      path);
	if (is_unknown(path) && !sample->unsignalled)
		tell_in_vain(sample);
	if (path->end == WALK_BAD_MEMORY && sample->cut)
		path->end = WALK_NO_STACK;
	if (path->late && path->end != WALK_COMPLETE && path->end != WALK_TOO_DEEP)
		path->end = WALK_NO_STACK; /* words of a later time were misleading */
	recording_note_error(agents->recording, keep_path(agents, sample, path));
}

static struct sample *take_first(struct copies *c)
{
	struct sample *sample = c->first;
	struct sample **recent = recent_of(c, sample->process->agent->arena, sample->owner);
	if (*recent == sample)
		*recent = NULL;
	c->first = sample->next;
	if (!c->first)
		c->last = NULL;
	return sample;
}

void copies_walk(struct agents *agents, void (*meanwhile)(struct agents *agents))
{
	struct path path = {.max = agents->recording->options.max_depth};
	struct copies *c = agents->copies;
	if (!c || c->walking || library_is_busy(agents->recording->library))
		return;
	uint64_t start = own_cpu_ns();
	c->walking = true;
	path.keys = reallocarray(NULL, path.max, sizeof *path.keys);
	/* More copies may come during the walks. They are walked, too, but after the last one that waits
	   now, `meanwhile` is not called any more; so the loop ends. */
	const struct sample *end = c->last;
	for (unsigned count = 1; c->first; count++) {
		struct sample *sample = take_first(c);
		if (sample == end)
			end = NULL;
		if (path.keys)
			walk_one(agents, sample, &path);
		else
			agents->recording->notes.unkept++;
		sample_free(c, sample);
		if (end && count % AT_A_TIME == 0)
			meanwhile(agents);
	}
	for (struct picture *at = c->pictures, *next; at; at = next) {
		next = at->next;
		library_view_free(at->view);
		free(at);
	}
	free(path.keys);
	free(c);
	agents->copies = NULL;
	agents->walking_ns += own_cpu_ns() - start;
}
