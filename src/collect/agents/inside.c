/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/inside.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/programs.h"
#include "harvest/process.h"
#include "inject/still.h"
#include "process/maps.h"
#include "safe/probes.h"

#define QUIET_NS 2000000000ull /* for the agent to end */
#define PAUSE_NS 1000000
#define THREADS_MAX 65536u

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* ---- the arena ---- */

bool inside_read(const struct inside *in, uint64_t offset, void *out, size_t size)
{
	return offset <= in->size && size <= in->size - offset &&
	       pread(in->memory, out, size, (off_t)(in->base + offset)) == (ssize_t)size;
}

bool inside_read_header(struct inside *in)
{
	return inside_read(in, 0, &in->header, sizeof in->header);
}

bool inside_stop(const struct inside *in, uint32_t value)
{
	uint64_t at = in->base + offsetof(struct arena_header, stop);
	return pwrite(in->memory, &value, sizeof value, (off_t)at) == (ssize_t)sizeof value;
}

bool inside_next_probe(const struct inside *in, uint32_t index, uint32_t *chunk,
		       struct arena_probe *out)
{
	uint32_t next, place = index % ARENA_PROBES_PER_CHUNK;
	uint64_t at;
	if (index && !place) {
		at = (uint64_t)*chunk << ARENA_CHUNK_BITS;
		if (!inside_read(in, at + offsetof(struct arena_chunk, next), &next, sizeof next))
			return false;
		*chunk = next;
	}
	at = ((uint64_t)*chunk << ARENA_CHUNK_BITS) + sizeof(struct arena_chunk);
	return *chunk && inside_read(in, at + place * sizeof *out, out, sizeof *out);
}

uint32_t inside_probe_count(const struct inside *in)
{
	uint32_t count = atomic_load(&in->header.probe_count);
	return count < ARENA_PROBES_MAX ? count : ARENA_PROBES_MAX;
}

/* ---- who is inside ---- */

static bool add_place(struct inside *in, uint64_t start, uint64_t end)
{
	if (in->place_count && in->places[in->place_count - 1].start == start)
		return true;
	if (!ARRAY_ROOM(in->places, in->place_count, in->place_room))
		return false;
	in->places[in->place_count++] = (struct still_place){start, end};
	return true;
}

/* The agent's code without its stubs, and its islands. */
static bool find_places(struct inside *in)
{
	const struct arena_header *h = &in->header;
	uint32_t chunk = atomic_load(&h->probes);
	struct arena_probe p;
	bool good = add_place(in, h->code, h->stubs_begin) &&
		    add_place(in, h->stubs_end, h->code_end);
	for (uint32_t i = 0;
	     good && i < inside_probe_count(in) && inside_next_probe(in, i, &chunk, &p); i++)
		good = add_place(in, p.block, p.block + p.block_size);
	return good;
}

/* All threads stand still. */
static void look_who_is_busy(struct inside *in)
{
	struct arena_thread r;
	uint32_t left = THREADS_MAX;
	in->looked = true;
	if (!inside_read_header(in))
		return;
	uint32_t chunk = atomic_load(&in->header.threads);
	for (; chunk && left && inside_read(in, (uint64_t)chunk << ARENA_CHUNK_BITS, &r, sizeof r);
	     left--, chunk = atomic_load(&r.chunk.next))
		if (atomic_load(&r.state) == ARENA_LIVE && r.probe_busy &&
		    ARRAY_ROOM(in->busy, in->busy_count, in->busy_room))
			in->busy[in->busy_count++] = (struct busy){r.tid, r.probe_busy,
								   r.stack_top};
}

/* If SP is above, the frame is gone: a handler has jumped out of it. */
static bool is_inside(void *context, pid_t tid, uint64_t sp)
{
	struct inside *in = context;
	if (!in->looked)
		look_who_is_busy(in);
	if (atomic_load(&in->header.joining))
		return true;
	for (size_t i = 0; i < in->busy_count; i++) {
		const struct busy *b = &in->busy[i];
		if (in->namespaced || (b->tid == tid && !(sp > b->sp && sp < b->top)))
			return true;
	}
	return false;
}

bool inside_is_mapped(const struct inside *in)
{
	struct maps maps;
	bool found = false;
	struct err *e = maps_read(in->pid, &maps);
	if (e) {
		err_free(e);
		return false;
	}
	for (size_t i = 0; i < maps.count; i++)
		found |= maps.items[i].start == in->base && !strcmp(maps.items[i].path, ARENA_FILE);
	maps_free(&maps);
	return found;
}

/* ---- the end ---- */

/* The process may become another program meanwhile. */
static bool wait_quiet(struct inside *in)
{
	uint64_t start = now_ns();
	while (inside_is_mapped(in) && inside_read_header(in) && now_ns() - start < QUIET_NS) {
		if (atomic_load(&in->header.quiet))
			return true;
		pause_briefly();
	}
	return false;
}

static void wait_unmapped(struct inside *in)
{
	uint64_t start = now_ns();
	while (inside_is_mapped(in) && now_ns() - start < QUIET_NS)
		pause_briefly();
}

struct err *inside_let_go(struct inside *in)
{
	struct still_report report = {0};
	bool outside = false;
	if (!wait_quiet(in))
		return err_new("process %d: its agent does not end", (int)in->pid);
	if (!find_places(in))
		return err_new("out of memory");
	/* The agent's own thread is found by its number in its namespace. */
	const struct process p = {.pid = in->pid};
	pid_t server = program_tid(&p, in->header.served_by);
	in->namespaced = server != in->header.served_by;
	struct err *e = still_outside(in->pid, server, in->places, in->place_count, is_inside, in,
				      &report, &outside);
	if (e)
		return e;
	if (!outside)
		return err_new(
			"process %d: a signal handler stays where it has interrupted the agent",
			(int)in->pid);
	if (!inside_stop(in, ARENA_GO))
		return err_errno("process %d: its memory cannot be written", (int)in->pid);
	wait_unmapped(in);
	return NULL;
}

bool inside_open(struct inside *in)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)in->pid);
	in->memory = open(path, O_RDWR | O_CLOEXEC);
	return in->memory >= 0;
}

void inside_close(struct inside *in)
{
	if (in->memory >= 0)
		close(in->memory);
	free(in->places);
	free(in->busy);
}
