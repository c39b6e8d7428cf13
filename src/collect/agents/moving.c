/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How it ends:
 *
 *    all jumps are taken out           no thread comes into the agent any more, but by returns to its stubs
 *    stop                              the agent counts nothing any more, and says `quiet`
 *    no thread is inside               of its code, of an island; nor will it return there from a signal handler
 *    stop = ARENA_GO                   the agent unmaps its memory
 *
 * The same is done for a collector that was killed. Then only the memory of the process is read and written: its arena
 * is there.
 */
#include "collect/agents/moving.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/patches.h"
#include "collect/agents/programs.h"
#include "collect/agents/state.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "inject/still.h"
#include "process/maps.h"
#include "process/status.h"
#include "safe/probes.h"

#define READ_NS 5000000000ull  /* for the agent to make islands */
#define QUIET_NS 2000000000ull /* for it to end */
#define PAUSE_NS 1000000
#define ARENA_FILE "/memfd:culprit-arena"
#define STAT_START 22 /* in /proc/PID/stat */
#define THREADS_MAX 65536u

_Static_assert(STILL_BYTES == ARENA_JUMP_BYTES && STILL_STEPS == ARENA_STEPS, "the same");

static void pause_briefly(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

/* ---- lists of changes ---- */

struct changes {
	struct still_write *all;
	uint32_t *indexes; /* of the descriptions */
	size_t count, room, index_room;
};

static struct still_write *add_change(struct changes *c, uint32_t index)
{
	if (!ARRAY_ROOM(c->all, c->count, c->room) ||
	    !ARRAY_ROOM(c->indexes, c->count, c->index_room))
		return NULL;
	c->indexes[c->count] = index;
	c->all[c->count] = (struct still_write){0};
	return &c->all[c->count++];
}

static void free_changes(struct changes *c)
{
	free(c->all);
	free(c->indexes);
}

static bool add_jump(struct changes *c, const struct arena_probe *p, uint32_t index)
{
	struct still_write *w = p->window <= STILL_BYTES && p->length <= p->window
					? add_change(c, index)
					: NULL;
	if (!w)
		return false;
	w->at = p->at;
	w->known = p->window;
	w->length = p->length;
	memcpy(w->expected, p->original, sizeof w->expected);
	memcpy(w->bytes, p->jump, sizeof w->bytes);
	for (unsigned i = 0; i < p->step_count && i < STILL_STEPS; i++) {
		w->steps[i].from = p->step_from[i];
		w->steps[i].to = p->island + sizeof(uint64_t) + p->step_to[i];
		w->step_count++;
	}
	return true;
}

static bool add_original(struct changes *c, const struct arena_probe *p, uint32_t index)
{
	struct still_write *w = p->length <= STILL_BYTES ? add_change(c, index) : NULL;
	if (!w)
		return false;
	w->at = p->at;
	w->known = w->length = p->length;
	memcpy(w->expected, p->jump, sizeof w->expected);
	memcpy(w->bytes, p->original, sizeof w->bytes);
	return true;
}

static struct err *make(struct agents *agents, const struct process *p, struct changes *c)
{
	struct probes *probes = agents->recording->options.probes;
	struct still_report report = {0};
	struct err *e = still_write(p->pid, c->all, c->count, &report);
	if (report.longest_ns > probes->stop_ns)
		probes->stop_ns = report.longest_ns;
	return e;
}

/* ---- putting in ---- */

/* Waits until the agent has made the islands. */
static struct err *wait_for_islands(const struct process *p)
{
	struct arena_header *a = p->agent->arena->header;
	uint64_t start = now_ns();
	syscall(SYS_futex, &a->stop, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (atomic_load(&a->probes_read) < atomic_load(&a->probe_count)) {
		if (!process_is_alive(p))
			return err_new("process %d has ended", (int)p->pid);
		if (now_ns() - start > READ_NS)
			return err_new("process %d: its agent does not answer", (int)p->pid);
		pause_briefly();
	}
	return NULL;
}

static bool is_wanted(const struct probes *probes, const struct arena_probe *p)
{
	const struct probe_function *f = p->number < probes->count ? &probes->functions[p->number]
								   : NULL;
	return f && !f->removed && f->state != PROBE_REFUSED &&
	       atomic_load(&p->state) == ARENA_PROBE_READY;
}

static void note_result(const struct probes *probes, struct arena_probe *p, unsigned result)
{
	static const uint32_t states[] = {
		[STILL_WAITS] = ARENA_PROBE_READY,
		[STILL_DONE] = ARENA_PROBE_ON,
		[STILL_CHANGED] = ARENA_PROBE_CHANGED,
		[STILL_FAILED] = ARENA_PROBE_FIXED,
	};
	atomic_store(&p->state, states[result]);
	if (result == STILL_WAITS && p->number < probes->count)
		probes_refuse(&probes->functions[p->number], PROBE_REFUSED,
			      "a thread stays where its code is to be changed: try again");
}

/* Those for which the agent found no room, or whose code is not as it was. */
static void refuse_others(const struct probes *probes, const struct arena *a)
{
	for (uint32_t i = 0; i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		const char *why = p ? patches_state_text(atomic_load(&p->state)) : NULL;
		if (why && p->number < probes->count && !probes->functions[p->number].sums.calls)
			probes_refuse(&probes->functions[p->number], PROBE_REFUSED, why);
	}
}

struct err *moving_put_in(struct agents *agents, struct process *process)
{
	const struct probes *probes = agents->recording->options.probes;
	const struct arena *a = process->agent->arena;
	struct changes c = {0};
	bool made = false;
	struct err *e = wait_for_islands(process);
	for (uint32_t i = 0; !e && i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		if (p && is_wanted(probes, p) && !add_jump(&c, p, i))
			e = err_new("out of memory");
	}
	if (!e) {
		e = make(agents, process, &c);
		made = true;
	}
	for (size_t i = 0; made && i < c.count; i++)
		note_result(probes, patches_at(a, c.indexes[i]), c.all[i].result);
	if (!e)
		refuse_others(probes, a);
	free_changes(&c);
	return e;
}

/* ---- taking out ---- */

/* number UINT32_MAX: all of them, also those of which it is not known that they are in. */
static bool collect_on(const struct arena *a, uint32_t number, struct changes *c)
{
	for (uint32_t i = 0; i < atomic_load(&a->header->probe_count); i++) {
		const struct arena_probe *p = patches_at(a, i);
		bool on = p && p->number == number && atomic_load(&p->state) == ARENA_PROBE_ON;
		if (p && (on || number == UINT32_MAX) && !add_original(c, p, i))
			return false;
	}
	return true;
}

static bool is_any_left(const struct changes *c)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->all[i].result == STILL_WAITS || c->all[i].result == STILL_FAILED)
			return true;
	return false;
}

/* Out of all processes that share the arena: a child has the jumps of its parent. Returns false if some are left. */
static bool take_out(struct agents *agents, struct arena *a, uint32_t number)
{
	struct changes c = {0};
	bool good = collect_on(a, number, &c);
	for (struct process *p = a->processes; good && c.count && p; p = p->agent->next) {
		if (!p->agent->late || p->foreign || !process_is_alive(p))
			continue;
		struct err *e = make(agents, p, &c);
		if ((e || is_any_left(&c)) && process_is_alive(p))
			good = false;
		err_free(e);
	}
	for (size_t i = 0; good && i < c.count; i++)
		atomic_store(&patches_at(a, c.indexes[i])->state, ARENA_PROBE_READY);
	free_changes(&c);
	return good;
}

bool moving_take_out(struct agents *agents, uint32_t number)
{
	bool good = true;
	for (struct arena *a = agents->arenas; a; a = a->next)
		if (a->header)
			good &= take_out(agents, a, number);
	return good;
}

static struct err *left(pid_t pid)
{
	return err_new("process %d: what counts its calls cannot be taken out now: a thread sleeps "
		       "in the kernel",
		       (int)pid);
}

/* ---- who is inside ---- */

struct inside { /* an arena in the memory of a process */
	pid_t pid;
	int memory;
	uint64_t base, size;
	bool namespaced; /* threads have other numbers there */
	struct arena_header header;
	struct still_place *places;
	size_t place_count, place_room;
	struct busy { /* threads that are at work; read when they stand still */
		pid_t tid;
		uint64_t sp, top;
	} * busy;
	size_t busy_count, busy_room;
	bool looked;
};

static bool read_at(const struct inside *in, uint64_t offset, void *out, size_t size)
{
	return offset <= in->size && size <= in->size - offset &&
	       pread(in->memory, out, size, (off_t)(in->base + offset)) == (ssize_t)size;
}

static bool read_header(struct inside *in)
{
	return read_at(in, 0, &in->header, sizeof in->header);
}

static bool write_stop(const struct inside *in, uint32_t value)
{
	uint64_t at = in->base + offsetof(struct arena_header, stop);
	return pwrite(in->memory, &value, sizeof value, (off_t)at) == (ssize_t)sizeof value;
}

/* The next description; chunk and index lead through them. */
static bool next_probe(const struct inside *in, uint32_t index, uint32_t *chunk,
		       struct arena_probe *out)
{
	uint32_t next, place = index % ARENA_PROBES_PER_CHUNK;
	uint64_t at;
	if (index && !place) {
		at = (uint64_t)*chunk << ARENA_CHUNK_BITS;
		if (!read_at(in, at + offsetof(struct arena_chunk, next), &next, sizeof next))
			return false;
		*chunk = next;
	}
	at = ((uint64_t)*chunk << ARENA_CHUNK_BITS) + sizeof(struct arena_chunk);
	return *chunk && read_at(in, at + place * sizeof *out, out, sizeof *out);
}

static uint32_t probe_count(const struct inside *in)
{
	uint32_t count = atomic_load(&in->header.probe_count);
	return count < ARENA_PROBES_MAX ? count : ARENA_PROBES_MAX;
}

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
	for (uint32_t i = 0; good && i < probe_count(in) && next_probe(in, i, &chunk, &p); i++)
		good = add_place(in, p.block, p.block + p.block_size);
	return good;
}

/* All threads stand still. */
static void look_who_is_busy(struct inside *in)
{
	struct arena_thread r;
	uint32_t left = THREADS_MAX;
	in->looked = true;
	if (!read_header(in))
		return;
	uint32_t chunk = atomic_load(&in->header.threads);
	for (; chunk && left && read_at(in, (uint64_t)chunk << ARENA_CHUNK_BITS, &r, sizeof r);
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

/* The process may have become another program meanwhile. */
static bool is_mapped(const struct inside *in)
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

static bool wait_quiet(struct inside *in)
{
	uint64_t start = now_ns();
	while (is_mapped(in) && read_header(in) && now_ns() - start < QUIET_NS) {
		if (atomic_load(&in->header.quiet))
			return true;
		pause_briefly();
	}
	return false;
}

static void wait_unmapped(struct inside *in)
{
	uint64_t start = now_ns();
	while (is_mapped(in) && now_ns() - start < QUIET_NS)
		pause_briefly();
}

/* The jumps are out, and the arena says stop. */
static struct err *let_go(struct inside *in)
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
	if (!write_stop(in, ARENA_GO))
		return err_errno("process %d: its memory cannot be written", (int)in->pid);
	wait_unmapped(in);
	return NULL;
}

static bool open_inside(struct inside *in)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)in->pid);
	in->memory = open(path, O_RDWR | O_CLOEXEC);
	return in->memory >= 0;
}

static void close_inside(struct inside *in)
{
	if (in->memory >= 0)
		close(in->memory);
	free(in->places);
	free(in->busy);
}

void moving_end(struct agents *agents, struct process *p)
{
	struct arena *a = p->agent->arena;
	if (!p->agent->served || !agents->recording->options.probes || !a->header ||
	    !a->header->address)
		return;
	p->agent->served = false;
	struct inside in = {
		.pid = p->pid, .memory = -1, .base = a->header->address, .size = a->size};
	struct err *e = NULL;
	if (!take_out(agents, a, UINT32_MAX))
		e = left(p->pid);
	else if (process_is_alive(p) && open_inside(&in))
		e = let_go(&in);
	close_inside(&in);
	if (e && process_is_alive(p) && !agents->recording->notes.changed_processes++)
		agents->recording->notes.changed_why = strdup(err_text(e));
	err_free(e);
}

/* ---- what a collector has left that was killed ---- */

static bool is_owner_alive(const struct arena_header *h)
{
	return h->owner > 0 && process_stat_field(h->owner, STAT_START) == (long)h->owner_start;
}

/* Whether the memory is an arena with probes. */
static bool has_probes(struct inside *in)
{
	const struct arena_header *h = &in->header;
	return read_header(in) && h->magic == ARENA_MAGIC && h->version == ARENA_VERSION &&
	       (atomic_load(&h->probe_count) || h->address);
}

static struct err *take_out_left(struct inside *in)
{
	struct changes c = {0};
	struct still_report report = {0};
	uint32_t chunk = atomic_load(&in->header.probes);
	struct arena_probe p;
	struct err *e = NULL;
	/* All of them: what was taken out of its parent is still in a child. */
	for (uint32_t i = 0; !e && i < probe_count(in) && next_probe(in, i, &chunk, &p); i++)
		if (p.length && !add_original(&c, &p, i))
			e = err_new("out of memory");
	if (!e)
		e = still_write(in->pid, c.all, c.count, &report);
	if (!e && is_any_left(&c))
		e = left(in->pid);
	free_changes(&c);
	return e;
}

static struct err *clear(struct inside *in)
{
	const struct arena_header *h = &in->header;
	if (atomic_load(&h->probe_count) && is_owner_alive(h) && !atomic_load(&h->stop))
		return err_new(
			"process %d: culprit probe counts there already: 'culprit probe add' "
			"adds functions",
			(int)in->pid);
	struct err *e = take_out_left(in);
	if (e || !h->address || atomic_load(&h->stop) == ARENA_GO)
		return e; /* it was started with its agent, which stays; or it is a child, and its parent's agent is gone */
	if (!write_stop(in, ARENA_STOP))
		return err_errno("process %d: its memory cannot be written", (int)in->pid);
	return let_go(in);
}

static struct err *clear_map(pid_t pid, const struct map *m)
{
	struct inside in = {.pid = pid, .memory = -1, .base = m->start, .size = m->end - m->start};
	struct err *e = NULL;
	if (open_inside(&in) && has_probes(&in))
		e = clear(&in);
	close_inside(&in);
	return e;
}

/* A process of a collector that was killed may still be at it. */
static void wait_untraced(pid_t pid)
{
	uint64_t start = now_ns();
	struct process_status s;
	while (process_status(pid, &s) && s.tracer && now_ns() - start < QUIET_NS)
		pause_briefly();
}

struct err *moving_clear(pid_t pid)
{
	struct maps maps;
	wait_untraced(pid);
	struct err *e = maps_read(pid, &maps);
	if (e)
		return e;
	for (size_t i = 0; i < maps.count && !e; i++)
		if (!strcmp(maps.items[i].path, ARENA_FILE))
			e = clear_map(pid, &maps.items[i]);
	maps_free(&maps);
	return e;
}
