/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread must not be inside of what changes: about to execute an instruction that is half overwritten, or one of an
 * island that goes away. Threads are stopped, so their PCs are known. A signal handler may have interrupted another
 * place, to which the thread will go back: that PC is on its stack. So all words of the inner part of each stack are
 * looked at, too. If one of them could be such a PC, the process goes on for a moment, and it is tried again.
 *
 * An island that a thread may still be in stays where it is when its patch is taken out. It leads back to the code as it
 * was. It goes away when a later look finds nobody in it.
 */
#include "patch/patcher.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "patch/plan.h"
#include "process/maps.h"
#include "process/registers.h"
#include "process/remote.h"

#define PAGE 4096u
#define TRIES 200
#define TRY_NS 2000000
#define STACK_LOOKED 16384u /* bytes of each stack */
#define ISLAND_ALIGN 16u

struct room { /* the rest of a page */
	uint64_t start, end;
};

struct module {        /* a file in the memory of the process */
	uint64_t base; /* of its first mapping */
	struct room code, data;
};

struct patch {
	enum { FREE, ON, LEFT } state; /* LEFT: only its island is still there */
	struct patch_plan plan;
	struct room island, counter;
	uint8_t before[PATCH_ISLAND_MAX]; /* what was where the island is */
};

struct patcher {
	pid_t pid;
	int memory; /* /proc/PID/mem */
	struct patch *patches;
	size_t count, room;
};

/* ---- memory ---- */

static bool read_memory(const struct patcher *p, uint64_t address, void *out, size_t size)
{
	return pread(p->memory, out, size, (off_t)address) == (ssize_t)size;
}

/* Writes, and reads it again. */
static bool write_memory(const struct patcher *p, uint64_t address, const void *bytes, size_t size)
{
	uint8_t again[PATCH_ISLAND_MAX];
	return size <= sizeof again &&
	       pwrite(p->memory, bytes, size, (off_t)address) == (ssize_t)size &&
	       read_memory(p, address, again, size) && !memcmp(again, bytes, size);
}

/* ---- room ---- */

/* Where the data segment that grows by brk begins. */
static uint64_t heap_start(pid_t pid)
{
	char path[64], text[1024] = "";
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (file && !fgets(text, sizeof text, file))
		text[0] = 0;
	if (file)
		fclose(file);
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 47; field++) /* start_brk */
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static uint64_t page_end(uint64_t address)
{
	return (address + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* The rest of the last page of a segment. */
static struct room rest_of(uint64_t end, unsigned align)
{
	return (struct room){(end + align - 1) & ~(uint64_t)(align - 1), page_end(end)};
}

static void find_rooms(const struct image *image, uint64_t bias, uint64_t address,
		       struct module *out)
{
	const struct image_segment *all;
	size_t count = image_segments(image, &all);
	for (size_t i = 0; i < count; i++) {
		uint64_t start = all[i].address + bias;
		if (all[i].executable && address >= start && address - start < all[i].file_size)
			out->code = rest_of(start + all[i].file_size, ISLAND_ALIGN);
		else if (all[i].writable)
			out->data = rest_of(start + all[i].size, sizeof(uint64_t));
	}
}

/* Finds the segment of the file that is mapped from this offset on, and so where the file is in memory. */
static bool find_bias(const struct image *image, const struct map *map, uint64_t *bias)
{
	const struct image_segment *all;
	size_t count = image_segments(image, &all);
	for (size_t i = 0; i < count; i++)
		if (all[i].executable && (all[i].offset & ~(uint64_t)(PAGE - 1)) == map->offset) {
			*bias = map->start - (all[i].address & ~(uint64_t)(PAGE - 1));
			return true;
		}
	return false;
}

static const struct map *find_map(const struct maps *maps, uint64_t address)
{
	for (size_t i = 0; i < maps->count; i++)
		if (address >= maps->items[i].start && address < maps->items[i].end)
			return maps->items[i].executable ? &maps->items[i] : NULL;
	return NULL;
}

static struct err *read_module(const struct patcher *p, const struct map *map, uint64_t address,
			       struct module *out)
{
	char path[96];
	struct image *image;
	uint64_t bias;
	snprintf(path, sizeof path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)p->pid,
		 map->start, map->end);
	struct err *e = image_open(path, &image);
	if (e)
		return e;
	if (!find_bias(image, map, &bias))
		e = err_new("%s: it is mapped in an unusual way", map->path);
	else
		find_rooms(image, bias, address, out);
	image_close(image);
	return e;
}

/* The heap may begin right behind the data of the program, in the rest of its page. */
static void leave_heap_alone(const struct patcher *p, struct module *m)
{
	uint64_t heap = heap_start(p->pid);
	if (heap >= m->data.start - PAGE && heap < m->data.end)
		m->data.end = m->data.start;
}

static struct err *find_module(const struct patcher *p, uint64_t address, struct module *out)
{
	struct maps maps;
	struct err *e = maps_read(p->pid, &maps);
	if (e)
		return e;
	const struct map *map = find_map(&maps, address);
	*out = (struct module){0};
	e = map && map->path[0] == '/'
		    ? read_module(p, map, address, out)
		    : err_new("0x%" PRIx64 ": no code of a file is there", address);
	maps_free(&maps);
	if (!e)
		leave_heap_alone(p, out);
	return e;
}

/* Whether another patch has it. */
static bool is_taken(const struct patcher *p, const struct room *r)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct patch *x = &p->patches[i];
		if (x->state != FREE && ((r->start < x->island.end && x->island.start < r->end) ||
					 (r->start < x->counter.end && x->counter.start < r->end)))
			return true;
	}
	return false;
}

static bool take_room(const struct patcher *p, const struct room *from, uint64_t size,
		      unsigned align, struct room *out)
{
	for (uint64_t at = from->start; at + size <= from->end; at += align) {
		*out = (struct room){at, at + size};
		if (!is_taken(p, out))
			return true;
	}
	return false;
}

/* ---- threads ---- */

static bool is_in(uint64_t address, const struct room *r)
{
	return address >= r->start && address < r->end;
}

/* Whether a word of the inner part of a stack is an address in this place. */
static bool is_on_stack(struct remote *stopped, uint64_t sp, const struct room *place)
{
	uint64_t words[PAGE / sizeof(uint64_t)];
	for (uint64_t at = sp & ~7ull, size; at < sp + STACK_LOOKED; at += size) {
		size = PAGE - at % PAGE;
		if (!remote_read(stopped, at, words, size))
			return false;
		for (size_t i = 0; i < size / sizeof *words; i++)
			if (is_in(words[i], place))
				return true;
	}
	return false;
}

/* Whether a thread may go on in this place. */
static bool is_busy(struct remote *stopped, const struct room *place)
{
	const uint8_t sp = unwind_cpu_for(native_machine)->sp;
	for (size_t i = 0; i < stopped->thread_count; i++) {
		const struct remote_thread *t = &stopped->threads[i];
		if (!t->gone &&
		    (is_in(t->pc, place) || is_on_stack(stopped, t->registers[sp], place)))
			return true;
	}
	return false;
}

static bool is_stuck(const struct remote *stopped)
{
	for (size_t i = 0; i < stopped->thread_count; i++)
		if (stopped->threads[i].stuck)
			return true;
	return false;
}

/* Stops all threads when none is in this place. */
static struct err *stop_outside(const struct patcher *p, const struct room *place,
				struct remote *out)
{
	for (int i = 0; i < TRIES; i++) {
		struct err *e = remote_stop(p->pid, 0, out);
		if (e)
			return e;
		bool stuck = is_stuck(out);
		if (!stuck && (place->start >= place->end || !is_busy(out, place)))
			return NULL;
		remote_close(out);
		if (stuck)
			return err_new(
				"process %d: a thread cannot be stopped: it waits in the kernel",
				(int)p->pid);
		nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
	}
	return err_new("process %d: a thread stays where the code is to be changed", (int)p->pid);
}

/* ---- patches ---- */

/* Between two instructions of the window: a thread there would go on within the jump. */
static struct room inside_of(const struct patch_plan *plan)
{
	return (struct room){plan->at + 1, plan->at + plan->window};
}

/* The threads are stopped. Takes away the islands that nobody is in any more. */
static void sweep(struct patcher *p, struct remote *stopped)
{
	for (size_t i = 0; i < p->count; i++) {
		struct patch *x = &p->patches[i];
		if (x->state == LEFT && !is_busy(stopped, &x->island) &&
		    write_memory(p, x->island.start, x->before, x->plan.island_size))
			x->state = FREE;
	}
}

static struct err *plan_for(const struct patcher *p, const struct patcher_function *f,
			    struct patch *out)
{
	const struct patch_cpu *cpu = patch_cpu_for(native_machine);
	uint8_t code[PATCH_WINDOW_MAX];
	struct module m;
	size_t size = f->size < sizeof code ? f->size : sizeof code;
	struct err *e = find_module(p, f->address, &m);
	if (e)
		return e;
	if (!read_memory(p, f->address, code, size))
		return err_errno("process %d: its memory cannot be read", (int)p->pid);
	struct patch_input input = {.code = code,
				    .size = size,
				    .address = f->address,
				    .targets = f->targets,
				    .target_count = f->target_count};
	/* At first only to learn how large it is. */
	input.island = m.code.start;
	input.counter = m.data.start;
	enum patch_refusal refusal = patch_plan(cpu, &input, &out->plan);
	if (!refusal &&
	    (!take_room(p, &m.data, sizeof(uint64_t), sizeof(uint64_t), &out->counter) ||
	     !take_room(p, &m.code, out->plan.island_size, ISLAND_ALIGN, &out->island)))
		refusal = PATCH_OUT_OF_REACH;
	if (!refusal) {
		input.island = out->island.start;
		input.counter = out->counter.start;
		refusal = patch_plan(cpu, &input, &out->plan);
	}
	return refusal ? err_new("%s", patch_refusal_text(refusal)) : NULL;
}

/* The threads are stopped. The island comes first, so that nothing is half done if we are killed. */
static struct err *put_in(const struct patcher *p, struct patch *x)
{
	const struct patch_plan *plan = &x->plan;
	const uint64_t none = 0;
	uint8_t now[PATCH_WINDOW_MAX];
	if (!read_memory(p, plan->at, now, plan->window) ||
	    memcmp(now, plan->original, plan->window))
		return err_new("the code has changed meanwhile");
	if (!read_memory(p, x->island.start, x->before, plan->island_size) ||
	    !write_memory(p, x->counter.start, &none, sizeof none) ||
	    !write_memory(p, x->island.start, plan->island, plan->island_size))
		return err_errno("process %d: its memory cannot be written", (int)p->pid);
	if (write_memory(p, plan->at, plan->jump, plan->length))
		return NULL;
	struct err *e = err_errno("process %d: its code cannot be written", (int)p->pid);
	write_memory(p, plan->at, plan->original, plan->length);
	write_memory(p, x->island.start, x->before, plan->island_size);
	return e;
}

static struct patch *find_free(struct patcher *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->patches[i].state == FREE)
			return &p->patches[i];
	if (!ARRAY_ROOM(p->patches, p->count, p->room))
		return NULL;
	p->patches[p->count].state = FREE;
	return &p->patches[p->count++];
}

struct err *patcher_add(struct patcher *p, const struct patcher_function *f, size_t *id)
{
	struct patch *x = find_free(p);
	struct remote stopped;
	if (!x)
		return err_new("out of memory");
	struct err *e = plan_for(p, f, x);
	if (e)
		return e;
	struct room inside = inside_of(&x->plan);
	e = stop_outside(p, &inside, &stopped);
	if (e)
		return e;
	e = put_in(p, x);
	if (!e)
		x->state = ON;
	sweep(p, &stopped);
	remote_close(&stopped);
	*id = (size_t)(x - p->patches);
	return e;
}

struct err *patcher_remove(struct patcher *p, size_t id)
{
	struct patch *x = id < p->count ? &p->patches[id] : NULL;
	uint8_t now[PATCH_WINDOW_MAX];
	struct remote stopped;
	if (!x || x->state != ON)
		return err_new("there is no such patch");
	struct err *e = stop_outside(p, &(struct room){0}, &stopped);
	if (e)
		return e;
	if (!read_memory(p, x->plan.at, now, x->plan.length) ||
	    memcmp(now, x->plan.jump, x->plan.length))
		e = err_new("the code at 0x%" PRIx64 " is not what was put there", x->plan.at);
	else if (!write_memory(p, x->plan.at, x->plan.original, x->plan.length))
		e = err_errno("process %d: its code cannot be written", (int)p->pid);
	if (!e)
		x->state = LEFT;
	sweep(p, &stopped);
	remote_close(&stopped);
	return e;
}

struct err *patcher_calls(struct patcher *p, size_t id, uint64_t *calls)
{
	if (id >= p->count || p->patches[id].state != ON)
		return err_new("there is no such patch");
	return read_memory(p, p->patches[id].counter.start, calls, sizeof *calls)
		       ? NULL
		       : err_errno("process %d: its memory cannot be read", (int)p->pid);
}

/* ---- opening and closing ---- */

struct err *patcher_open(pid_t pid, struct patcher **out)
{
	char path[64];
	struct patcher *p = calloc(1, sizeof *p);
	*out = p;
	if (!p)
		return err_new("out of memory");
	p->pid = pid;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	p->memory = open(path, O_RDWR | O_CLOEXEC);
	if (p->memory >= 0)
		return NULL;
	struct err *e = err_errno("process %d: its memory cannot be opened", (int)pid);
	free(p);
	*out = NULL;
	return e;
}

static bool has_left(const struct patcher *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->patches[i].state == LEFT)
			return true;
	return false;
}

void patcher_close(struct patcher *p)
{
	struct remote stopped;
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++)
		if (p->patches[i].state == ON)
			err_free(patcher_remove(p, i));
	for (int i = 0; i < TRIES && has_left(p); i++) {
		struct err *e = remote_stop(p->pid, 0, &stopped);
		if (e) {
			err_free(e);
			break;
		}
		sweep(p, &stopped);
		remote_close(&stopped);
		nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
	}
	close(p->memory);
	free(p->patches);
	free(p);
}
