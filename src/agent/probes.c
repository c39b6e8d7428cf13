/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: call-through with stubs.
 *
 * The first instruction of a probed function is a jump to its island, and from there to probe_entry, which calls
 * probe_enter. That takes a stub for this function and this return address, and the function is called through it:
 *
 *    caller            function         island            agent
 *      call f  ------>   jump  ------->   jump  ------->    probe_enter: path, record
 *                                                           stub: call body --.
 *                        rest  <-------   body  <-----------------------------'
 *      next  <------.    return ------------------------>   stub: probe_leave
 *                    `-------------------------------------   return
 *
 * What a stub does is in probe_table, and is never changed. So where control goes does not depend on what we remember: a
 * function that returns twice, or in a child process, or on another thread, comes back to its caller. Each call has its
 * return, so that the CPU predicts it.
 *
 * Records. Each thread has a stack of records, for the calls that have not ended: {slot, time, sums}. The slot is SP at
 * the function's first instruction.
 *  1. Slots of records descend, but for those that are equal: a function that ends by a jump to another one. That one
 *     returns for both.
 *  2. If a function is called, or returns, records with smaller slots are of frames that are gone: abandoned (longjmp).
 *  3. Calls on other stacks (coroutines, sigaltstack) have their records in `others`, by slot: their frames may be left
 *     and entered in any order, and on any thread. They are abandoned if their slot is used by another call.
 *
 * If the probes of a function take too much time, the collector says so. Its calls are only counted from then on: the
 * function goes on at once, and returns to its caller. Records of calls that had begun before end as usual.
 *
 * A handler of the program may interrupt us and call a probed function. Then nothing can be walked. Such calls are counted
 * and timed for the function, without a path.
 *
 * Unwinders find the frame of a stub by its description (probe_CPU.S), and call probe_personality when they leave it.
 */
#include "agent/probes.h"

#include <string.h>

#include "agent/cpu.h"
#include "agent/frames.h"
#include "agent/late.h"
#include "agent/recent.h"
#include "safe/probes.h"
#include "safe/slowest.h"
#include "safe/ticks.h"

#define STACK_BOUND (64u << 10)
#define HASH UINT64_C(0x9e3779b97f4a7c15)

struct record {
	uint64_t slot, since;
	struct arena_probe_sums *sums;
};

#define RECORDS ((uint32_t)((ARENA_CHUNK - sizeof(struct arena_chunk)) / sizeof(struct record)))
#define RECORD_CHUNKS 512u
#define COUNTED 256u
#define UNANSWERED 65536u

struct probe_thread { /* in a chunk of its own */
	struct arena_chunk chunk;
	uint32_t depth;
	uint32_t sums_chunk;
	uint32_t
		asked; /* how often the collector was asked for modules in vain, and when to ask again */
	uint32_t unknown;
	uint32_t unanswered;     /* how many calls go on without asking it about their callers */
	uint32_t until_measured; /* calls */
	uint32_t chunks[RECORD_CHUNKS];
	/* Where calls are added up that are only counted, by number of the function. */
	struct counted {
		const struct probe *probe;
		struct arena_probe_sums *sums;
	} counted[COUNTED];
};
_Static_assert(sizeof(struct probe_thread) <= ARENA_CHUNK, "it is one chunk");

/* Within reach of the stubs. */
struct probe_stub probe_table[PROBE_STUBS] __attribute__((section(".data.probe_table")));
static _Atomic uint32_t stubs_taken;
static __thread __attribute__((tls_model("initial-exec"))) struct probe_thread *own;

/* What each call comes by. */
#define INLINE static inline __attribute__((always_inline))
#define FENCE() atomic_signal_fence(memory_order_seq_cst)

/* ---- stubs ---- */

#define STUB_PLACES 8192u                         /* twice as many as there are stubs, and more */
static _Atomic uint32_t stub_places[STUB_PLACES]; /* number + 1 */

static bool is_stub_for(uint32_t number, uint64_t returns, uint64_t body)
{
	const struct probe_stub *s = &probe_table[number];
	return s->returns == returns && s->body == body;
}

static uint32_t stub_take(uint64_t returns, uint64_t body)
{
	uint32_t number = atomic_load_explicit(&stubs_taken, memory_order_relaxed);
	if (number >= PROBE_STUBS)
		return PROBE_STUBS;
	number = atomic_fetch_add(&stubs_taken, 1);
	if (number < PROBE_STUBS)
		probe_table[number] = (struct probe_stub){returns, body};
	return number;
}

/* The stubs are looked for from this place on. */
INLINE uint32_t stub_place(uint64_t returns, uint64_t body)
{
	return (uint32_t)((returns ^ body * 31) * HASH >> 51);
}

INLINE uint64_t stub_address(uint32_t number)
{
	return (uint64_t)probe_stubs + number * PROBE_STUB_SIZE;
}

/* Returns the address of the stub; 0: there are no more. */
__attribute__((noinline, cold)) static uint64_t stub_make(uint64_t returns, uint64_t body)
{
	uint32_t place = stub_place(returns, body), mine = PROBE_STUBS;
	for (;; place = (place + 1) % STUB_PLACES) {
		uint32_t there = atomic_load_explicit(&stub_places[place], memory_order_acquire);
		if (!there) {
			if (mine == PROBE_STUBS)
				mine = stub_take(returns, body);
			if (mine >= PROBE_STUBS)
				return 0;
			if (atomic_compare_exchange_strong(&stub_places[place], &there, mine + 1))
				there = mine + 1;
		}
		if (is_stub_for(there - 1, returns, body))
			return stub_address(there - 1);
	}
}

/* The same; 0: there is none yet. */
INLINE uint64_t stub_find(uint64_t returns, uint64_t body)
{
	uint32_t place = stub_place(returns, body), there;
	for (; (there = atomic_load_explicit(&stub_places[place], memory_order_acquire));
	     place = (place + 1) % STUB_PLACES)
		if (is_stub_for(there - 1, returns, body))
			return stub_address(there - 1);
	return 0;
}

/* ---- sums ---- */

static uint32_t bucket_of(uint64_t ns)
{
	if (ns < 8)
		return (uint32_t)ns;
	uint32_t power = 63 - (uint32_t)__builtin_clzll(ns);
	uint32_t bucket = (power - 2) * 8 + ((uint32_t)(ns >> (power - 3)) & 7);
	return bucket < ARENA_PROBE_TIMES ? bucket : ARENA_PROBE_TIMES - 1;
}

static void set(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static uint64_t ns_of(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * agent.arena->probe_tick >> 32);
}

static uint64_t reference_to(const struct arena_probe_sums *s)
{
	return (uint64_t)((const char *)s - (const char *)agent.arena) / 8;
}

/* The call may be one of the slowest of its function. This is rare: the threshold rises. `shared`: the sums belong to no
   thread. */
__attribute__((noinline, cold)) static void keep_slow(struct arena_probe_sums *s, uint64_t since,
						      uint64_t ns, bool shared)
{
	const struct arena_thread *t = &agent_self->shared;
	struct arena_slow call = {.since = since, .process = t->process, .tid = t->tid};
	if (!shared) {
		call.record = (uint32_t)(((const char *)t - (const char *)agent.arena) >>
					 ARENA_CHUNK_BITS);
		call.generation = t->generation;
		call.sums = (uint32_t)reference_to(s);
		atomic_store_explicit(&s->kept, 1, memory_order_relaxed);
	}
	set(&s->threshold, slowest_keep((void *)((char *)agent.arena + s->slowest * 8), ns, &call));
}

static void count_time(struct arena_probe_sums *s, uint64_t since, uint64_t now)
{
	uint64_t ns = ns_of(now - since);
	_Atomic uint32_t *bucket = &s->times[bucket_of(ns)];
	counter_add(&s->returned, 1);
	counter_add(&s->ns, ns);
	if (ns > get(&s->most))
		set(&s->most, ns);
	if (ns < get(&s->least))
		set(&s->least, ns);
	atomic_store_explicit(bucket, atomic_load_explicit(bucket, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (__builtin_expect(ns > get(&s->threshold), 0))
		keep_slow(s, since, ns, false);
}

__attribute__((noinline, cold)) static struct arena_probe_sums *sums_make(struct agent_thread *t,
									  const struct probe *p)
{
	struct arena_chunk *chunk = own->sums_chunk ? arena_at(agent.arena, own->sums_chunk) : NULL;
	uint32_t used = chunk ? atomic_load(&chunk->used) : ARENA_CHUNK;
	if (used + sizeof(struct arena_probe_sums) > ARENA_CHUNK) {
		own->sums_chunk = scratch_take(t);
		if (!own->sums_chunk)
			return NULL;
		chunk = arena_at(agent.arena, own->sums_chunk);
		used = sizeof *chunk;
	}
	struct arena_probe_sums *s = (void *)((char *)chunk + used);
	memset(s, 0, sizeof *s);
	s->number = p->number;
	s->least = UINT64_MAX;
	s->slowest = p->asked->slowest;
	s->threshold = s->slowest ? 0 : UINT64_MAX;
	atomic_store(&chunk->used, used + (uint32_t)sizeof *s);
	return s;
}

/* The sums of a node. `other`: of calls on other stacks. */
INLINE struct arena_probe_sums *sums_of(struct agent_thread *t, uint32_t node,
					const struct probe *p, bool other)
{
	_Atomic uint64_t *place = &cct_values(cct_node(&t->tree, node))[other];
	uint64_t there = get(place);
	if (there)
		return (void *)((char *)agent.arena + there * 8);
	struct arena_probe_sums *s = sums_make(t, p);
	if (s)
		atomic_store_explicit(place, reference_to(s), memory_order_release);
	return s;
}

/* ---- the path ---- */

/* Code that was loaded a moment ago: the collector is asked, but not for each call of code that it does not know either. */
static bool learn_modules(struct agent_thread *t)
{
	uint64_t before = t->list_place;
	if (own->unknown++ < own->asked)
		return false;
	own->unknown = 0;
	agent_ask_modules();
	bool new = atomic_load(&t->shared.list_place) != before;
	own->asked = new ? 0 : own->asked < 1u << 16 ? own->asked * 2 + 1 : own->asked;
	return new;
}

/* Asks the collector, but seldom if it does not answer. */
static bool has_answered(void)
{
	if (own->unanswered) {
		own->unanswered--;
		return false;
	}
	bool answered = agent_ask_modules();
	own->unanswered = answered ? 0 : UNANSWERED;
	return answered;
}

/* Returns the address of a new stub; 0: there is none. Runtimes that make code look at the return addresses of what that calls:
   so those stay. What the collector does not know either is the kernel's: the page of its own probes of returns. */
__attribute__((noinline, cold)) static uint64_t stub_for_caller(struct agent_thread *t,
								uint64_t slot, uint64_t returns,
								uint64_t body)
{
	sample_prepare(t, slot);
	enum sample_caller caller = sample_caller(t, returns - 1);
	if (caller == SAMPLE_UNKNOWN) {
		if (!has_answered())
			return 0;
		sample_prepare(t, slot);
		caller = sample_caller(t, returns - 1);
	}
	return caller == SAMPLE_MADE ? 0 : stub_make(returns, body);
}

/* The node of the calling path; 0: there is no room. */
static uint32_t path_of(struct agent_thread *t, uint64_t returns, uint64_t sp, uint64_t fp,
			uint64_t extra)
{
	uint32_t known, node = 0;
	bool python = atomic_load_explicit(&agent.arena->has_python, memory_order_relaxed);
	sample_prepare(t, sp);
	if (!python)
		node = recent_find(t, returns, sp);
	if (__builtin_expect(node != 0, 1))
		return node;
	t->registers[CPU_HERE.sp] = sp;
	t->registers[CPU_HERE.fp] = fp;
	t->registers[CPU_HERE.extra] = extra;
	enum walk_end end = sample_walk_caller(t, t->registers, returns, &known);
	if (end == WALK_NO_MODULE && learn_modules(t))
		end = sample_walk_caller(t, t->registers, returns, &known);
	node = sample_node(t, known, end, t->registers);
	if (node && (known || end == WALK_COMPLETE))
		recent_keep(t, known, node);
	return node;
}

/* ---- records of calls on the thread's own stack ---- */

static struct record *record_at(uint32_t index)
{
	char *chunk = arena_at(agent.arena, own->chunks[index / RECORDS]);
	return (struct record *)(chunk + sizeof(struct arena_chunk)) + index % RECORDS;
}

static bool record_push(struct agent_thread *t, uint64_t slot, uint64_t since,
			struct arena_probe_sums *sums)
{
	uint32_t index = own->depth, chunk = index / RECORDS;
	if (chunk == RECORD_CHUNKS)
		return false;
	if (!own->chunks[chunk])
		own->chunks[chunk] = scratch_take(t);
	if (!own->chunks[chunk])
		return false;
	*record_at(index) = (struct record){slot, since, sums};
	FENCE();
	own->depth = index + 1;
	return true;
}

/* Takes off the records of frames that are gone. `with`: also those of this slot. */
static void abandon(uint64_t slot, bool with)
{
	while (own->depth) {
		const struct record *r = record_at(own->depth - 1);
		if (r->slot > slot || (r->slot == slot && !with))
			return;
		counter_add(&r->sums->abandoned, 1);
		own->depth--;
	}
}

/* libc's own data may be above the upper end that we know of. So the lower end is not certain, and what is near to it is
   taken for another stack, which is right, too. */
static bool is_on_own_stack(const struct agent_thread *t, uint64_t slot)
{
	return slot < t->shared.stack_top &&
	       t->shared.stack_top - slot + STACK_BOUND < t->stack_size;
}

/* ---- records of calls on other stacks ---- */

#define OTHERS 32768u
#define TRIES 64u
#define GONE UINT64_C(1) /* no slot is odd */

static struct other {
	_Atomic uint64_t slot;
	uint64_t since;
	struct arena_probe_sums *sums;
	const struct probe *probe;
	struct agent_thread *thread;
	uint32_t generation,
		process; /* of the thread's record; which process it is since the last fork */
} others[OTHERS];
static uint32_t forks;

static struct other *other_place(uint64_t slot, uint32_t i)
{
	return &others[((uint32_t)(slot / 8 * HASH >> 40) + i) % OTHERS];
}

static struct other *other_find(uint64_t slot)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct other *o = other_place(slot, i);
		uint64_t there = get(&o->slot);
		if (there == slot)
			return o;
		if (!there)
			return NULL;
	}
	return NULL;
}

/* Sums that all threads add to. */
static void count_shared(struct arena_probe_sums *s, bool returned, bool unwound, uint64_t since,
			 uint64_t now)
{
	uint64_t ns = ns_of(now - since);
	if (!returned) {
		atomic_fetch_add(unwound ? &s->unwound : &s->abandoned, 1);
		return;
	}
	atomic_fetch_add(&s->returned, 1);
	atomic_fetch_add(&s->ns, ns);
	atomic_fetch_add(&s->times[bucket_of(ns)], 1);
	for (uint64_t most = get(&s->most);
	     ns > most && !atomic_compare_exchange_weak(&s->most, &most, ns);)
		;
	for (uint64_t least = get(&s->least);
	     ns < least && !atomic_compare_exchange_weak(&s->least, &least, ns);)
		;
	if (ns > get(&s->threshold))
		keep_slow(s, since, ns, true);
}

/* Another thread's sums may be gone with it, and only it may write there. */
static void other_end(struct other *o, bool returned, bool unwound, uint64_t now)
{
	bool mine = o->thread == agent_self && o->sums != o->probe->sums &&
		    o->generation == agent_self->shared.generation;
	if (o->process != forks)
		; /* the parent's */
	else if (!mine)
		count_shared(o->probe->sums, returned, unwound, o->since, now);
	else if (returned)
		count_time(o->sums, o->since, now);
	else
		counter_add(unwound ? &o->sums->unwound : &o->sums->abandoned, 1);
	atomic_store(&o->slot, GONE);
}

static bool other_push(uint64_t slot, uint64_t since, struct arena_probe_sums *sums,
		       const struct probe *probe)
{
	for (uint32_t i = 0; i < TRIES; i++) {
		struct other *o = other_place(slot, i);
		uint64_t there = get(&o->slot);
		if (there > GONE || !atomic_compare_exchange_strong(&o->slot, &there, slot))
			continue;
		o->since = since;
		o->sums = sums;
		o->probe = probe;
		o->thread = agent_self;
		o->generation = agent_self->shared.generation;
		o->process = forks;
		return true;
	}
	return false;
}

/* ---- a call ---- */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_own_code(uint64_t address)
{
	return address - (uint64_t)__ehdr_start < (uint64_t)(etext - __ehdr_start);
}

static bool begin_thread(struct agent_thread *t)
{
	uint32_t chunk = scratch_take(t);
	if (!chunk)
		return false;
	struct probe_thread *p = arena_at(agent.arena, chunk);
	memset((char *)p + sizeof p->chunk, 0, sizeof *p - sizeof p->chunk);
	p->until_measured = (uint32_t)(ticks_now() % ARENA_PROBE_EACH) + 1;
	set(&t->shared.samples[0], 1);
	own = p;
	return true;
}

/* A handler has interrupted us, or jumped out of us: then the frame is gone. */
__attribute__((noinline, cold)) static bool is_interrupted(struct agent_thread *t, uint64_t slot)
{
	if (!is_on_own_stack(t, t->shared.probe_busy) || !is_on_own_stack(t, slot) ||
	    slot < t->shared.probe_busy)
		return true;
	t->memo.count = 0; /* it may be half done */
	t->shared.probe_busy = 0;
	return false;
}

/* Whether a handler has interrupted us. */
INLINE bool is_busy(struct agent_thread *t, uint64_t slot)
{
	return __builtin_expect(t->shared.probe_busy != 0, 0) && is_interrupted(t, slot);
}

/* Where the caller's SP is after the return. */
static uint64_t sp_after(uint64_t slot)
{
	return CPU_HERE.link == CPU_NO_REGISTER ? slot + sizeof(uint64_t) : slot;
}

/* A function is called with this slot: other frames that had it are gone. */
INLINE void end_gone(uint64_t slot, bool on_own, bool jumped)
{
	struct other *left = on_own || jumped ? NULL : other_find(slot);
	if (on_own)
		abandon(slot, !jumped);
	else if (left)
		other_end(left, false, false, 0);
}

/* Returns whether the end of the call will be seen. *stub: 0 if there is none yet. */
static bool count_call(struct agent_thread *t, const struct probe *p, uint64_t slot,
		       uint64_t returns, uint64_t fp, uint64_t extra, uint64_t *stub)
{
	bool on_own = is_on_own_stack(t, slot), jumped = probe_is_stub(returns);
	end_gone(slot, on_own, jumped);
	if (jumped)
		returns = probe_see_through(returns);
	else if (__builtin_expect(!*stub, 0))
		*stub = stub_for_caller(t, slot, returns, p->body);
	bool ends = jumped || *stub;
	uint32_t node = path_of(t, returns, sp_after(slot), fp, extra);
	if (node)
		node = sample_called(t, node, p->function);
	struct arena_probe_sums *s = node ? sums_of(t, node, p, !on_own) : NULL;
	counter_add(&t->shared.weight, 1);
	if (!s) {
		atomic_fetch_add(&p->asked->unknown, 1);
		return false;
	}
	counter_add(&s->calls, 1);
	uint64_t now = ticks_now();
	if (ends && (on_own ? record_push(t, slot, now, s) : other_push(slot, now, s, p)))
		return true;
	counter_add(&s->abandoned, 1);
	return false;
}

/* The same for a handler that has interrupted us. */
static bool count_within(const struct probe *p, uint64_t slot, bool jumped, bool ends)
{
	struct other *left = other_find(slot);
	if (left && !jumped)
		other_end(left, false, false, 0);
	atomic_fetch_add(&p->sums->calls, 1);
	if (ends && !(left && jumped) && other_push(slot, ticks_now(), p->sums, p))
		return true;
	atomic_fetch_add(&p->sums->abandoned, 1);
	return false;
}

/* ---- calls that are only counted ---- */

/* Nobody walks: so they have a node of their own. NULL: there is no room. */
static struct arena_probe_sums *counted_sums(struct agent_thread *t, const struct probe *p,
					     uint64_t slot)
{
	struct counted *c = &own->counted[p->number % COUNTED];
	if (__builtin_expect(c->probe == p, 1))
		return c->sums;
	sample_prepare(t, slot);
	uint32_t node = cct_child(&t->tree, t->tree.root,
				  cct_key(false, CCT_PARTIAL, WALK_COUNTED));
	if (node)
		node = sample_called(t, node, p->function);
	struct arena_probe_sums *s = node ? sums_of(t, node, p, false) : NULL;
	if (!s || s->number != p->number)
		return NULL;
	*c = (struct counted){p, s};
	return s;
}

static void count_only(struct agent_thread *t, const struct probe *p, uint64_t slot, bool jumped)
{
	struct arena_probe_sums *s = NULL;
	if (is_busy(t, slot)) {
		end_gone(slot, false, jumped);
	} else {
		t->shared.probe_busy = slot;
		FENCE();
		end_gone(slot, is_on_own_stack(t, slot), jumped);
		s = counted_sums(t, p, slot);
		counter_add(&t->shared.weight, 1);
		if (s)
			counter_add(&s->untimed, 1);
		FENCE();
		t->shared.probe_busy = 0;
	}
	if (!s)
		atomic_fetch_add(&p->sums->untimed, 1);
}

/* ---- the way in ---- */

/* A function whose probes take much time is called often, so this also learns in time that it is to be counted only. */
__attribute__((noinline, cold)) static void measure(struct probe *p, uint64_t since)
{
	uint64_t now = ticks_now(), own_ticks = ticks_now() - now; /* to read this clock takes */
	uint64_t ns = now - since > own_ticks ? ns_of(now - since - own_ticks) : 0;
	atomic_fetch_add(&p->asked->measured_ns,
			 ns < ARENA_PROBE_COST_MAX ? ns : ARENA_PROBE_COST_MAX);
	atomic_fetch_add(&p->asked->measured, 1);
	atomic_store_explicit(&p->rare,
			      atomic_load(&p->asked->counted) ? PROBE_COUNTED : PROBE_MEASURED,
			      memory_order_relaxed);
}

/* A call that is measured, or only counted. */
__attribute__((noinline)) static uint64_t enter_rarely(struct agent_thread *t, struct probe *p,
						       uint64_t slot, uint64_t returns, uint64_t fp,
						       uint64_t extra)
{
	bool measured = own->until_measured <= PROBE_MEASURED;
	uint64_t since = measured ? ticks_now() : 0, next = p->body;
	own->until_measured = measured ? ARENA_PROBE_EACH : own->until_measured - 1;
	if (atomic_load_explicit(&p->rare, memory_order_relaxed) == PROBE_COUNTED)
		count_only(t, p, slot, probe_is_stub(returns));
	else
		next = probe_enter(p, slot, returns, fp, extra); /* it is no rare one now */
	if (measured)
		measure(p, since);
	return next;
}

uint64_t probe_enter(struct probe *p, uint64_t slot, uint64_t returns, uint64_t fp, uint64_t extra)
{
	returns &= CPU_HERE.address_bits;
	if (is_own_code(returns) && !probe_is_stub(returns) && !p->wrapped)
		return p->body;
	struct agent_thread *t = AGENT_LATE ? late_join(slot) : agent_self;
	if ((AGENT_LATE && !atomic_load(&agent.on)) ||
	    atomic_load_explicit(&agent.arena->stop, memory_order_relaxed))
		return p->body;
	if (!t || (!own && !begin_thread(t))) {
		if (atomic_load_explicit(&agent.on, memory_order_relaxed))
			atomic_fetch_add(&p->asked->unknown, 1);
		return p->body;
	}
	struct probe_thread *mine = own;
	uint32_t left = mine->until_measured;
	if (__builtin_expect(left <= atomic_load_explicit(&p->rare, memory_order_relaxed), 0))
		return enter_rarely(t, p, slot, returns, fp, extra);
	mine->until_measured = left - 1;
	/* Who has jumped here returns by the stub of the one that has jumped. */
	bool jumped = probe_is_stub(returns), seen;
	uint64_t stub = jumped ? 0 : stub_find(returns, p->body);
	if (is_busy(t, slot)) {
		stub = jumped || stub ? stub : stub_make(returns, p->body);
		seen = count_within(p, slot, jumped, jumped || stub);
	} else {
		t->shared.probe_busy = slot;
		FENCE();
		seen = count_call(t, p, slot, returns, fp, extra, &stub);
		FENCE();
		t->shared.probe_busy = 0;
	}
	return seen && stub ? stub : p->body;
}

/* The records of a slot end. */
static void end_calls(struct agent_thread *t, uint64_t slot, bool returned, uint64_t now)
{
	if (!is_on_own_stack(t, slot)) {
		struct other *o = other_find(slot);
		if (o)
			other_end(o, returned, !returned, now);
		return;
	}
	abandon(slot, false);
	while (own->depth) {
		const struct record *r = record_at(own->depth - 1);
		if (r->slot != slot)
			return;
		if (returned)
			count_time(r->sums, r->since, now);
		else
			counter_add(&r->sums->unwound, 1);
		own->depth--;
	}
}

static struct agent_thread *known(void)
{
	return AGENT_LATE ? late_known() : agent_self;
}

void probe_leave(uint64_t slot)
{
	uint64_t now = ticks_now();
	struct agent_thread *t = known();
	if (AGENT_LATE && !t && other_find(slot)) /* the thread has called nothing */
		t = late_join(slot);
	if (!t || atomic_load_explicit(&agent.arena->stop, memory_order_relaxed))
		return;
	if (!own ||
	    is_busy(t, slot)) { /* it has called nothing: the call began on another thread */
		struct other *o = other_find(slot);
		if (o)
			other_end(o, true, false, now);
		return;
	}
	t->shared.probe_busy = slot;
	FENCE();
	end_calls(t, slot, true, now);
	FENCE();
	t->shared.probe_busy = 0;
}

/* ---- exceptions ---- */

struct _Unwind_Context;
extern uint64_t _Unwind_GetCFA(struct _Unwind_Context *context) __attribute__((weak));
int probe_personality(int version, int actions, uint64_t class, void *exception,
		      struct _Unwind_Context *context) __attribute__((visibility("hidden")));

#define CLEANUP_PHASE 2
#define CONTINUE_UNWIND 8

/* The slot of the stub's frame that an unwinder leaves. The CFA is not known if the unwinder was loaded later: then the
   frame is that of the youngest record, since all frames are left in their order. */
static uint64_t slot_left(struct _Unwind_Context *context)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	if (_Unwind_GetCFA)
		return _Unwind_GetCFA(context) -
		       (CPU_HERE.link == CPU_NO_REGISTER ? sizeof(uint64_t) : 0);
	abandon(here, true);
	return own->depth ? record_at(own->depth - 1)->slot : 0;
}

int probe_personality(int version, int actions, uint64_t class, void *exception,
		      struct _Unwind_Context *context)
{
	struct agent_thread *t = known();
	(void)version;
	(void)class;
	(void)exception;
	if (!(actions & CLEANUP_PHASE) || !t || !own || t->shared.probe_busy ||
	    atomic_load_explicit(&agent.arena->stop, memory_order_relaxed))
		return CONTINUE_UNWIND;
	t->shared.probe_busy = (uint64_t)__builtin_frame_address(0);
	FENCE();
	uint64_t slot = slot_left(context);
	if (slot)
		end_calls(t, slot, false, 0);
	FENCE();
	t->shared.probe_busy = 0;
	return CONTINUE_UNWIND;
}

/* ---- the beginning and the end ---- */

void probe_begin_thread(void)
{
	own = NULL;
}

void probe_after_fork(void)
{
	own = NULL;
	forks++;
}

void probe_forget(void)
{
	memset(others, 0, sizeof others);
}
