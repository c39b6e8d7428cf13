/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the thread goes next: follows its code from a sample (trail/trail.h), and leaves the edges for the collector.
 *
 * Memory is read by the kernel (process_vm_readv of the process's own memory), a line at a time. So memory that is not
 * there, or goes while it is read, ends a trail and harms nobody. Only the thread's own stack is read directly,
 * as the walk does. Code of files does not change, so its lines are kept from trail to trail, for a while. Other code,
 * made at run time, is not followed, nor is the agent's own.
 *
 * Trails may cost a small share of the thread's time: each sample brings some credit, and a trail uses up what it
 * costs. So there are fewer of them if they are slow.
 */
#include "agent/agent.h"

#include <string.h>
#include <sys/uio.h>

#include "agent/cpu.h"
#include "agent/frames.h"
#include "safe/ticks.h"
#include "trail/trail.h"

#define SHARE 450u /* of the thread's time: one in so many */
#define LINE 128u
#define CODE_LINES 64u
#define DATA_LINES 16u
#define KEPT_TRAILS 256u    /* for which lines of code are kept */
#define COST_MAX_NS 100000u /* what took longer was not our doing: another thread had the CPU */
#define CREDIT_MAX_NS 30000u
#define PERIOD_NS 1000000u /* of events that are no clocks: not known, so this is taken for it */

_Static_assert(TRAIL_EDGES <= ARENA_TRAIL_EDGES, "a trail has room in the arena");

struct line {
	uint64_t address; /* 0: none */
	uint8_t bytes[LINE];
};

struct follow { /* a scratch chunk */
	struct arena_chunk chunk;
	struct agent_thread *thread;
	int64_t credit; /* ticks that may be spent on trails */
	uint64_t list;  /* value of list_place for which lines of code hold */
	uint32_t out;   /* chunk that trails are written to; 0: none yet */
	uint32_t trails, next_line;
	struct trail trail;
	struct line code[CODE_LINES], data[DATA_LINES];
};
_Static_assert(sizeof(struct follow) <= ARENA_CHUNK, "it is one chunk");

/* ---- memory ---- */

static bool read_line(const struct agent_thread *t, struct line *line, uint64_t address)
{
	struct iovec here = {line->bytes, LINE}, there = {(void *)(uintptr_t)address, LINE};
	long got = safe_syscall6(SYS_process_vm_readv, t->shared.process, (long)&here, 1,
				 (long)&there, 1, 0);
	line->address = got == LINE ? address : 0;
	return line->address;
}

static struct line *code_line(struct follow *f, uint64_t address)
{
	struct line *line = &f->code[address / LINE % CODE_LINES];
	uint32_t flags;
	if (line->address == address)
		return line;
	if (!sample_key(f->thread, address, &flags))
		return NULL;
	return read_line(f->thread, line, address) ? line : NULL;
}

static struct line *data_line(struct follow *f, uint64_t address)
{
	for (uint32_t i = 0; i < DATA_LINES; i++)
		if (f->data[i].address == address)
			return &f->data[i];
	struct line *line = &f->data[f->next_line++ % DATA_LINES];
	return read_line(f->thread, line, address) ? line : NULL;
}

typedef struct line *find_line(struct follow *f, uint64_t address);

static inline size_t copy_lines(struct follow *f, find_line *find, uint64_t address, void *out,
				size_t size)
{
	size_t done = 0;
	while (done < size) {
		uint64_t at = address + done, start = at & ~(uint64_t)(LINE - 1);
		size_t part = LINE - (at - start);
		const struct line *line = start ? find(f, start) : NULL;
		if (!line)
			break;
		part = part < size - done ? part : size - done;
		memcpy((char *)out + done, line->bytes + (at - start), part);
		done += part;
	}
	return done;
}

/* A module may begin or end within a line. */
static size_t read_code(void *context, uint64_t address, void *out, size_t size)
{
	struct follow *f = context;
	const struct line *line = &f->code[address / LINE % CODE_LINES];
	uint64_t start = address & ~(uint64_t)(LINE - 1);
	if (line->address == start && address - start <= LINE - size) {
		memcpy(out, line->bytes + (address - start), size);
		return size;
	}
	return copy_lines(f, code_line, address, out, size);
}

static size_t read_data(void *context, uint64_t address, void *out, size_t size)
{
	struct follow *f = context;
	const struct agent_thread *t = f->thread;
	if (address >= t->low && address < t->high && size <= t->high - address) {
		memcpy(out, (const void *)(uintptr_t)address, size);
		return size;
	}
	return copy_lines(f, data_line, address, out, size);
}

/* ---- what the collector gets ---- */

/* Room for a trail; NULL: there is none now. */
static struct arena_trail *make_room(struct follow *f, size_t size, struct arena_chunk **in)
{
	struct agent_thread *t = f->thread;
	struct arena_chunk *chunk = f->out ? arena_at(agent.arena, f->out) : NULL;
	uint32_t used = chunk ? atomic_load_explicit(&chunk->used, memory_order_relaxed) : 0;
	if (!chunk || used + size > ARENA_CHUNK) {
		if (atomic_load_explicit(&t->shared.trail_chunks, memory_order_relaxed) >=
		    ARENA_TRAIL_CHUNKS)
			return NULL;
		uint32_t more = arena_take(agent.arena);
		if (!more)
			return NULL;
		atomic_fetch_add(&t->shared.trail_chunks, 1);
		/* As soon as this is set, the collector may give the full chunk back. */
		atomic_store_explicit(chunk ? &chunk->next : &t->shared.trails, more,
				      memory_order_release);
		f->out = more;
		chunk = arena_at(agent.arena, more);
		used = sizeof *chunk;
	}
	*in = chunk;
	return (struct arena_trail *)((char *)chunk + used);
}

static void leave(struct follow *f, uint64_t begin)
{
	struct agent_thread *t = f->thread;
	const struct trail *trail = &f->trail;
	struct arena_chunk *chunk;
	struct arena_trail *out = make_room(f, sizeof *out + trail->edge_count * sizeof *out->edges,
					    &chunk);
	uint32_t flags;
	if (!out)
		return;
	out->begin = begin;
	out->edge_count = out->reserved = 0;
	for (uint32_t i = 0; i < trail->edge_count; i++) {
		uint64_t from = sample_key(t, trail->edges[i].from, &flags);
		uint64_t to = sample_key(t, trail->edges[i].to, &flags);
		if (!from || cct_key_module(from) != cct_key_module(to))
			continue;
		out->edges[out->edge_count].from = from;
		out->edges[out->edge_count++].to = to;
	}
	uint32_t used = (uint32_t)((char *)&out->edges[out->edge_count] - (char *)chunk);
	atomic_store_explicit(&chunk->used, used, memory_order_release);
}

/* ---- all ---- */

/* The chunk of the thread, as its last owner left it; NULL: there is no room. */
static struct follow *find(struct agent_thread *t)
{
	if (t->follow)
		return arena_at(agent.arena, t->follow);
	t->follow = scratch_take(t);
	struct follow *f = t->follow ? arena_at(agent.arena, t->follow) : NULL;
	if (f) {
		f->thread = t;
		f->credit = 0;
		f->out = f->trails = f->next_line = 0;
	}
	return f;
}

static void forget_lines(struct follow *f)
{
	const struct agent_thread *t = f->thread;
	if (f->list != t->list_place || f->trails++ % KEPT_TRAILS == 0) {
		for (uint32_t i = 0; i < CODE_LINES; i++)
			f->code[i].address = 0;
		f->list = t->list_place;
	}
	for (uint32_t i = 0; i < DATA_LINES; i++)
		f->data[i].address = 0;
}

static void follow(struct follow *f, const ucontext_t *context)
{
	struct agent_thread *t = f->thread;
	const uint64_t *registers = cpu_registers(context, t->registers);
	uint32_t flags;
	sample_prepare(t, registers[CPU_HERE.sp]);
	uint64_t pc = cpu_pc(context), begin = sample_key(t, pc, &flags);
	if (!begin)
		return;
	forget_lines(f);
	memcpy(f->trail.registers, registers, CPU_GENERAL * sizeof *registers);
	f->trail.pc = pc;
	f->trail.flags = cpu_flags(context);
	f->trail.thread = cpu_thread_pointer();
	f->trail.read_code = read_code;
	f->trail.read_data = read_data;
	f->trail.context = f;
	CPU_FOLLOW(&f->trail, TRAIL_STEPS);
	leave(f, begin);
}

static int64_t in_ticks(uint64_t ns)
{
	return (int64_t)(ns * atomic_load_explicit(&agent.ms_ticks, memory_order_relaxed) /
			 1000000);
}

void follow_sample(struct agent_thread *t, const ucontext_t *context)
{
	uint64_t period = agent.events[0].clock && agent.events[0].period ? agent.events[0].period
									  : PERIOD_NS;
	int64_t most = in_ticks(CREDIT_MAX_NS), longest = in_ticks(COST_MAX_NS);
	struct follow *f = find(t);
	if (!f)
		return;
	f->credit += in_ticks(period / SHARE);
	if (f->credit > most)
		f->credit = most;
	if (f->credit <= 0)
		return;
	uint64_t start = ticks_now();
	follow(f, context);
	int64_t cost = (int64_t)(ticks_now() - start);
	cost = cost < longest ? cost : longest;
	f->credit -= cost;
	counter_add(&t->shared.ticks, (uint64_t)cost);
}
