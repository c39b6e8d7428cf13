/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentinel (see sentinel.h): which frame it is put into, how it moves, when it is taken out.
 *
 *      main    run    parse    expr    sum            a sample; sum is the youngest frame with a slot in memory:
 *                               ^--------- slot       its return address becomes that of stub number n
 *
 *   sum returns -> stub n -> sentinel_returned: + 1 to the node of sum; the sentinel goes to the slot of expr;
 *   -> expr, as if nothing had been
 *
 * So each activation that a sample has met is counted once, when it returns.
 *
 * A stub is taken for each put, and is given back when the procedure has returned or the true word is in its
 * place again. What a stub stands for is found by its number alone, whoever returns to it: a coroutine that was
 * moved to another thread, or a stack that was copied away and back. Where frames are left by a way that we do
 * not see, the word may still be somewhere. Such a stub is never taken again before somebody has returned to it.
 * If too many are lost this way, no more is counted; the program always goes on where it should.
 *
 * What may not change: everything that a callee may leave in registers. Compilers know which registers a procedure
 * of the same file leaves alone (gcc -fipa-ra). So the stubs keep all of them, and this file is compiled without
 * vector registers.
 *
 * Our own signal may come at any instruction. While `busy` is set, the handler touches neither the sentinel nor the memo.
 * Everything about the sentinel is in the memory of the process, not in the arena: a forked child has its own.
 */
#include "agent/sentinel.h"

#include <sys/mman.h>

#include "agent/cpu.h"
#include "agent/frames.h"
#include "safe/readable.h"

#define PAGE 4096u
#define SEARCHED 64u          /* stubs, or frames, that are looked at */
#define STACK_NEEDED 1024u    /* bytes below SP that a stub may use */
#define HELD_REACH (1u << 18) /* bytes of stack that libc's longjmp and unwinders use at most */

enum sentinel_state { SENTINEL_FREE, SENTINEL_PUT, SENTINEL_LEFT };

/* The stubs know the size of this, and that `word` is the first. */
struct sentinel {
	uint64_t word; /* the true one */
	uint64_t sp;   /* when the procedure has returned */
	uint64_t slot;
	_Atomic uint32_t state;
	uint32_t reserved;
};
_Static_assert(sizeof(struct sentinel) == 32, "sentinel_CPU.S knows it");

struct sentinel sentinels[SENTINELS] __attribute__((visibility("hidden")));
static _Atomic uint32_t next_sentinel;

/* What a thread knows about its sentinel. */
struct mark {
	struct sentinel *at; /* NULL: none */
	uint32_t index;      /* in the memo, of the frame that is returned to */
	uint32_t node;       /* gets the count */
	bool in_register;    /* at this sample: the procedure has read it, and is about to return */
	/* A stub works, and this is its SP; samples belong to busy_node. */
	uint64_t busy;
	uint32_t busy_node;
	/* The caller of a function that must not meet a sentinel: its SP, and its PC if that is known. 0: none. */
	uint64_t held_sp, held_pc;
};
static __thread __attribute__((tls_model("initial-exec"))) struct mark mark;

static void fence(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static struct sentinel *sentinel_of(uint64_t stub)
{
	return &sentinels[(stub - (uint64_t)sentinel_stubs) / SENTINEL_STUB];
}

static uint64_t stub_of(const struct sentinel *s)
{
	return (uint64_t)sentinel_stubs + (uint64_t)(s - sentinels) * SENTINEL_STUB;
}

uint64_t sentinel_see_through(uint64_t word)
{
	return sentinel_is_stub(word) ? sentinel_of(word)->word : word;
}

const uint64_t *sentinel_registers(const uint64_t *registers, uint64_t *room)
{
	bool any = false;
	mark.in_register = false;
	for (unsigned i = 0; i < CPU_REGISTERS; i++)
		any |= sentinel_is_stub(registers[i]);
	if (!any)
		return registers;
	for (unsigned i = 0; i < CPU_REGISTERS; i++) {
		mark.in_register |= mark.at && registers[i] == stub_of(mark.at);
		room[i] = sentinel_see_through(registers[i]);
	}
	return room;
}

/* Is 0 in a child that was made without libc's knowledge, and has our record as its own. */
static const volatile uint64_t *is_ours;

void sentinel_begin_process(void)
{
	static uint64_t *page;
	if (!page) {
		void *made = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
		page = made == MAP_FAILED ? NULL : made;
		if (page && madvise(page, PAGE, MADV_WIPEONFORK))
			agent.calls = false;
	}
	if (page)
		*page = 1;
	else
		agent.calls = false;
	is_ours = page;
}

void sentinel_start(void)
{
	if (agent.calls && cpu_has_shadow_stack()) {
		atomic_fetch_or(&agent.arena->uncounted, ARENA_UNCOUNTED_SHADOW);
		agent.calls = false;
	}
	agent.signs = cpu_signs();
	if (agent.calls)
		sentinel_begin_process();
	if (agent.calls)
		atomic_store(&agent.arena->stubs, (uint64_t)sentinel_stubs);
}

/* ---- stubs ---- */

static struct sentinel *take(void)
{
	for (unsigned i = 0; i < SEARCHED; i++) {
		uint32_t number = atomic_fetch_add_explicit(&next_sentinel, 1,
							    memory_order_relaxed);
		struct sentinel *s = &sentinels[number % SENTINELS];
		uint32_t before = SENTINEL_FREE;
		if (atomic_compare_exchange_strong(&s->state, &before, SENTINEL_PUT))
			return s;
	}
	atomic_fetch_or(&agent.arena->uncounted, ARENA_UNCOUNTED_LEFT);
	return NULL;
}

static bool exchange(uint64_t slot, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong((_Atomic uint64_t *)slot, &from, to);
}

/* For the collector, which walks copies of stacks that the kernel has made. */
static void note(struct agent_thread *t, const struct sentinel *s)
{
	uint32_t chunk = atomic_load_explicit(&t->shared.marks, memory_order_relaxed);
	if (!chunk)
		return;
	struct arena_mark *first =
		(struct arena_mark *)((struct arena_chunk *)arena_at(agent.arena, chunk) + 2);
	struct arena_mark *m = &first[t->noted++ % ARENA_MARKS];
	m->place = 0;
	m->word = s->word;
	m->place = ARENA_MARK_PLACE(s->slot, s - sentinels);
}

/* Puts the sentinel into the slot of the memo's frame number `index`. */
static void put(struct agent_thread *t, uint32_t index)
{
	const struct agent_frame *f = frame_at(&t->memo, index);
	uint64_t word = *(volatile uint64_t *)f->slot;
	struct sentinel *s = word == f->pc ? take() : NULL;
	if (!s)
		return;
	s->word = word;
	s->sp = f->sp;
	s->slot = f->slot;
	note(t, s);
	mark.index = index;
	mark.node = f->returns;
	mark.at = s;
	fence();
	if (exchange(s->slot, word, stub_of(s)))
		return;
	mark.at = NULL;
	s->state = SENTINEL_FREE;
}

/* Whether the address is on the stack that the thread began with. */
static bool is_on_own_stack(const struct agent_thread *t, uint64_t address)
{
	return t && address >= t->stack_low && address < t->shared.stack_top;
}

/* Takes the sentinel out. `there`: its frame is on the stack; else the program may have copied the word. */
static void take_out(const struct agent_thread *t, bool there)
{
	struct sentinel *s = mark.at;
	if (!s)
		return;
	mark.at = NULL;
	fence();
	bool own = is_on_own_stack(t, s->slot);
	bool known = own || (atomic_load(&agent.on) && readable_word(s->slot));
	bool out = known && exchange(s->slot, stub_of(s), s->word);
	s->state = out && (there || !own) ? SENTINEL_FREE : SENTINEL_LEFT;
}

/* ---- a return ---- */

static void count(struct agent_thread *t, uint32_t node)
{
	counter_add(&cct_values(cct_node(&t->tree, node))[agent.event_count], 1);
}

/* The frame number `index` of the memo is the innermost one now: the sentinel goes to the next one that can
   have it. */
static void move(struct agent_thread *t, uint32_t index)
{
	t->memo.count = index + 1;
	for (uint32_t i = index, left = SEARCHED; i && left; left--)
		if (frame_at(&t->memo, --i)->returns) {
			put(t, i);
			return;
		}
}

/* Whether the frame that is returned to is known. */
static bool is_in_memo(const struct agent_thread *t, const struct sentinel *s)
{
	return mark.index < t->memo.count && frame_at(&t->memo, mark.index)->sp == s->sp;
}

static bool is_sampling(void)
{
	return atomic_load_explicit(&agent.on, memory_order_relaxed) &&
	       !atomic_load_explicit(&agent.arena->stop, memory_order_relaxed);
}

static void returned(struct agent_thread *t, const struct sentinel *s)
{
	mark.busy_node = is_in_memo(t, s) ? frame_at(&t->memo, mark.index)->node : mark.node;
	fence();
	mark.busy = s->sp;
	fence();
	if (mark.at == s) { /* else a sample came right before */
		mark.at = NULL;
		count(t, mark.node);
		if (is_in_memo(t, s) && is_sampling())
			move(t, mark.index);
	}
	fence();
	mark.busy = 0;
}

uint64_t sentinel_returned(uint64_t stub, uint64_t sp)
{
	struct sentinel *s = sentinel_of(stub);
	struct agent_thread *t = agent_self;
	uint64_t word = s->word;
	if (t && mark.at == s && s->sp == sp && *is_ours)
		returned(t, s);
	else if (mark.at == s)
		mark.at = NULL;
	atomic_store_explicit(&s->state, SENTINEL_FREE, memory_order_release);
	return word;
}

uint32_t sentinel_busy_node(uint64_t sp)
{
	if (!mark.busy)
		return 0;
	if (sp >= mark.busy) { /* a handler of the program has jumped out of it */
		mark.busy = 0;
		return 0;
	}
	return mark.busy_node;
}

/* ---- a sample ---- */

uint32_t sentinel_guarded(const struct agent_thread *t, uint64_t *slot, uint64_t *stub)
{
	const struct sentinel *s = mark.at;
	if (!s || mark.index >= t->memo.count || frame_at(&t->memo, mark.index)->slot != s->slot)
		return 0;
	*slot = s->slot;
	*stub = stub_of(s);
	return mark.index + 1;
}

#define NEVER (WIRE_MODULE_AGENT | WIRE_MODULE_JIT | WIRE_MODULE_BARE | WIRE_MODULE_OWN_WALKS)

/* Whether the code at this address is such as compilers make, with a description of its frame. `owner`: it is
   the one whose return address would be changed. */
static bool is_plain(struct agent_thread *t, uint64_t address, bool owner)
{
	uint32_t flags, never = NEVER | (owner ? WIRE_MODULE_OWN_RETURNS : 0);
	const struct recipe *r = sample_code(t, address, &flags);
	if (owner && agent.signs)
		never |= WIRE_MODULE_SIGNS;
	return r && !(flags & never) && r->source == RECIPE_FROM_CFI &&
	       (r->cfa == RECIPE_REG || r->cfa == RECIPE_DEREF);
}

/* Whether a stub has room on the stack. */
static bool has_room(const struct agent_thread *t, uint64_t sp)
{
	uint64_t low = sp - STACK_NEEDED;
	return is_on_own_stack(t, low) || readable_word(low);
}

/* Whether the return address of frame number `index + 1` can be changed: it is that of a call in code that
   is known, and will be read again. */
static bool can_have(struct agent_thread *t, uint32_t index, const uint64_t *registers)
{
	const struct agent_frame *f = frame_at(&t->memo, index), *owner;
	if (index + 1 >= t->memo.count || !f->slot || f->slot % 8 || f->pc & FRAME_EXACT)
		return false;
	owner = frame_at(&t->memo, index + 1);
	bool exact = owner->pc & FRAME_EXACT;
	uint64_t pc = owner->pc & ~FRAME_EXACT;
	return is_plain(t, pc - !exact, true) && is_plain(t, f->pc - 1, false) &&
	       cpu_is_after_call(f->pc) && (!exact || cpu_will_read(registers, pc, f->pc)) &&
	       has_room(t, f->sp);
}

void sentinel_judge(struct agent_thread *t, uint32_t known, const uint64_t *registers)
{
	if (!agent.calls || t->has_unwinder)
		return;
	for (uint32_t i = known ? known - 1 : 0; i < t->memo.count; i++) {
		struct agent_frame *f = frame_at(&t->memo, i);
		f->returns = can_have(t, i, registers) ? frame_at(&t->memo, i + 1)->node : 0;
	}
}

/* Whether the thread is still in a function that must not meet a sentinel. */
static bool is_held(const struct agent_thread *t, uint64_t sp)
{
	if (!mark.held_sp)
		return false;
	if (!mark.held_pc || t->memo_end != WALK_COMPLETE)
		return sp <= mark.held_sp && mark.held_sp - sp < HELD_REACH;
	for (uint32_t i = t->memo.count; i--;) {
		const struct agent_frame *f = frame_at(&t->memo, i);
		if (f->sp == mark.held_sp && f->pc == mark.held_pc)
			return true;
	}
	return false;
}

/* Finds the sentinel in the memo; false: it is in none of its frames. A procedure that ends with a jump to
   another one may hand it over in a register, to another slot. */
static bool find(struct agent_thread *t)
{
	struct sentinel *s = mark.at;
	for (uint32_t i = t->memo.count; s && i--;) {
		const struct agent_frame *f = frame_at(&t->memo, i);
		bool same = f->slot && (f->slot == s->slot || f->returns);
		if (f->sp != s->sp || !same || *(volatile uint64_t *)f->slot != stub_of(s))
			continue;
		s->slot = f->slot;
		mark.index = i;
		mark.node = f->returns ? f->returns : mark.node;
		return true;
	}
	return false;
}

/* The innermost frame that can have it. */
static bool choose(struct agent_thread *t, uint32_t *index)
{
	uint32_t i = t->memo.count;
	for (unsigned left = SEARCHED; i && left; left--)
		if (frame_at(&t->memo, --i)->returns) {
			*index = i;
			return true;
		}
	return false;
}

/* Whether the thread is in a function of ours, perhaps right before or after a stub was busy. */
static bool is_in_agent(struct agent_thread *t, uint64_t pc)
{
	uint32_t flags;
	sample_code(t, pc, &flags);
	return flags & WIRE_MODULE_AGENT;
}

/* An unwinder tells the frame with the handler from others by its CFA, which a stub would share: what it finds in
   its first phase must not differ from what it finds in the second one. So nothing is counted if there is an
   unwinder before which the sentinel is not taken out. */
static void note_unwinder(struct agent_thread *t)
{
	take_out(t, find(t));
	atomic_fetch_or(&agent.arena->uncounted, ARENA_UNCOUNTED_UNWINDER);
}

void sentinel_place(struct agent_thread *t, uint64_t pc, uint64_t sp)
{
	uint32_t index;
	if (!agent.calls || mark.in_register || is_in_agent(t, pc))
		return;
	if (t->has_unwinder) {
		note_unwinder(t);
		return;
	}
	if (is_held(t, sp))
		return;
	mark.held_sp = 0;
	bool there = find(t);
	if (mark.at && !there && t->memo_end != WALK_COMPLETE)
		return; /* the walk did not come so far */
	if (!atomic_load_explicit(&t->shared.marks, memory_order_relaxed))
		atomic_store(&t->shared.marks, scratch_take(t));
	bool chosen = choose(t, &index);
	if (there && (!chosen || index <= mark.index))
		return;
	take_out(t, there);
	if (chosen)
		put(t, index);
}

/* ---- taking it out ---- */

void sentinel_withdraw(uint64_t sp)
{
	take_out(agent_self, mark.at && mark.at->slot >= sp);
	mark.busy = 0;
}

void sentinel_leave(uint64_t sp, uint64_t pc)
{
	if (!agent.calls)
		return;
	mark.held_pc = pc;
	mark.held_sp = sp;
	fence();
	sentinel_withdraw(sp);
}
