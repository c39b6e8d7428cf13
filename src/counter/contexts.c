/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and makes the records of contexts, where the code of copies has none at hand. A signal handler may come in at any time
 * that finds and makes some, too: so all signals are held back while something is made, and else a slot is one word.
 */
#include "counter/contexts.h"

#include <signal.h>
#include <stddef.h>

#include "counter/counter.h"
#include "safe/contexts.h"
#include "safe/syscall.h"

#if defined(__x86_64__)

#define MASK_BYTES 8

/* What the number of slots is told with. */
#define COUNTS_CALLS (UINT32_C(1) << 31) /* the call is to be counted */
#define KEEPS_RECORD \
	(UINT32_C(1) << 30) /* the record goes to r11: nobody is called, so there is no entry */
#define SLOTS (KEEPS_RECORD - 1)

enum context_call { CONTEXT_ENTER, CONTEXT_ENTER_DIRECT, CONTEXT_CHECK };

/* What the stub has put on the stack: contexts_x86_64.S. */
struct context_frame {
	uint64_t kind, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rax;
	uint64_t returns; /* to the code of the copy */
};

/* Behind a call: long NOPs, whose displacements say something. */
struct __attribute__((packed)) context_told {
	uint8_t op[3];
	int32_t value;
};

void context_enter(void);
void context_enter_direct(void);
void context_check(void);
void context_slow(struct context_frame *frame);

static uint64_t get_word(unsigned word)
{
	uint64_t value;
	__asm__ volatile("movq %%gs:(%1), %0" : "=r"(value) : "r"(-(int64_t)(8 * word)));
	return value;
}

static void set_word(unsigned word, uint64_t value)
{
	__asm__ volatile("movq %0, %%gs:(%1)" : : "r"(value), "r"(-(int64_t)(8 * word)) : "memory");
}

static struct context_head *head_of(uint64_t record)
{
	return (struct context_head *)(record - sizeof(struct context_head));
}

static struct context_arena *arena_here(void)
{
	return (struct context_arena *)get_word(CONTEXTS_ARENA_AT);
}

/* ---- finding ---- */

static uint64_t *bucket_of(struct context_arena *a, uint64_t parent, uint64_t from,
			   uint32_t function)
{
	uint64_t hash = (parent ^ from * 0x9e3779b97f4a7c15u ^ (uint64_t)function << 20) *
			0xbf58476d1ce4e5b9u;
	return &a->buckets[hash >> 49]; /* CONTEXTS_BUCKETS of them */
}

/* The record or link of a function that is called so; 0: there is none yet. */
static uint64_t find(struct context_arena *a, uint64_t parent, uint64_t from, uint32_t function)
{
	uint64_t at = *(volatile uint64_t *)bucket_of(a, parent, from, function);
	while (at) {
		const struct context_head *h = head_of(at);
		if (h->parent == parent && h->from == from && h->function == function)
			return at;
		at = h->next;
	}
	return 0;
}

/* The one among those who have led to it, with itself; 0: none. */
static uint64_t find_above(uint64_t parent, uint32_t function)
{
	for (; parent; parent = head_of(parent)->parent)
		if (head_of(parent)->function == function)
			return parent;
	return 0;
}

/* ---- making ---- */

static uint64_t bank_record(uint64_t bank, uint32_t function)
{
	uint64_t record = bank + 8 * (uint64_t)function;
	volatile struct context_head *h = head_of(record);
	if (!h->record) {
		h->function = function;
		h->record = record;
	}
	return record;
}

static uint64_t take(struct context_arena *a, uint64_t bytes)
{
	uint64_t at = a->used;
	bytes = (bytes + 15) & ~(uint64_t)15;
	if (at + bytes > CONTEXTS_ARENA)
		return 0;
	return (uint64_t)a + at;
}

/* Returns the record or link; 0: there is no room. `bytes`: behind the head; 0: of none, it is in the bank always. */
static uint64_t add(struct context_arena *a, const struct context_head *wanted, uint64_t bytes)
{
	uint64_t above = find_above(wanted->parent, wanted->function);
	uint64_t *bucket = bucket_of(a, wanted->parent, wanted->from, wanted->function);
	uint64_t size = sizeof *wanted + (above || !bytes ? 0 : bytes);
	uint64_t in_bank = bank_record(get_word(CONTEXTS_BANK), wanted->function);
	struct context_head *h = (struct context_head *)take(a, size);
	if (!h) {
		a->full++;
		return 0;
	}
	uint64_t own = (uint64_t)(h + 1);
	*(volatile struct context_head *)h = *wanted;
	h->size = (uint32_t)((size + 15) & ~15ull);
	h->record = above ? above : bytes ? own : in_bank;
	h->next = *bucket;
	__atomic_store_n(&a->used, a->used + h->size, __ATOMIC_RELEASE);
	__atomic_store_n(bucket, own, __ATOMIC_RELEASE);
	return own;
}

static uint64_t find_or_add(struct context_arena *a, const struct context_head *wanted,
			    uint64_t bytes)
{
	uint64_t all = ~UINT64_C(0), before = 0;
	uint64_t record = find(a, wanted->parent, wanted->from, wanted->function);
	if (record)
		return record;
	if (a->full && !take(a, sizeof *wanted + bytes)) {
		a->full++;
		return 0;
	}
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, MASK_BYTES);
	record = find(a, wanted->parent, wanted->from, wanted->function);
	if (!record)
		record = add(a, wanted, bytes);
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, MASK_BYTES);
	return record;
}

/* ---- the stack ---- */

/* As the code of copies does it: who comes in between finds a record, and the place is written twice, for he uses it. */
static void push(struct context_entry *last, uint64_t record, uint64_t sp)
{
	volatile struct context_entry *e = last + 1;
	e->sp = sp;
	e->record = record;
	set_word(CONTEXTS_TOP, (uint64_t)e);
	e->sp = sp;
	e->record = record;
}

static struct context_entry *last_entry(void)
{
	return (struct context_entry *)get_word(CONTEXTS_TOP);
}

static int32_t told(const struct context_frame *f, unsigned index)
{
	return ((const struct context_told *)f->returns)[index].value;
}

static void enter(struct context_frame *f)
{
	const uint32_t function = (uint32_t)told(f, 0);
	const int32_t slots = told(f, 2);
	const uint64_t words = (uint32_t)told(f, 1), sp = (uint64_t)(&f->returns + 1);
	struct context_entry *last = last_entry();
	while (last->sp <= sp)
		last--;
	const struct context_head wanted = {
		.parent = last->record, .from = *(const uint64_t *)sp, .function = function};
	uint64_t bytes = words > CONTEXTS_WORDS_MAX ? 0 : 8 * (words + ((uint32_t)slots & SLOTS));
	uint64_t found = find_or_add(arena_here(), &wanted, bytes), bank = get_word(CONTEXTS_BANK);
	uint64_t record = found ? head_of(found)->record : bank_record(bank, function);
	uint64_t cache = bank + 8 * (function + words + ((uint32_t)slots & SLOTS));
	if (found)
		*(volatile uint64_t *)(cache + CONTEXTS_PLACE(wanted.parent, wanted.from)) = found;
	if (f->kind == CONTEXT_ENTER_DIRECT)
		*(volatile uint64_t *)(last->record + f->r11) = record;
	if ((uint32_t)slots & KEEPS_RECORD)
		f->r11 = record;
	else
		push(last, record, sp);
	if ((uint32_t)slots & COUNTS_CALLS)
		++*(volatile uint64_t *)record;
}

/* Drops what is not its own. If it is not there, its context is lost. */
static void check(const struct context_frame *f)
{
	const uint32_t function = (uint32_t)told(f, 0);
	const int32_t by_fp = told(f, 2);
	const uint64_t sp = (uint64_t)(&f->returns + 1);
	const uint64_t own = (by_fp ? f->rbp : sp) + (uint64_t)(int64_t)told(f, 1);
	struct context_entry *last = last_entry();
	while (last->sp < own)
		last--;
	if (last->sp == own) {
		set_word(CONTEXTS_TOP, (uint64_t)last);
		return;
	}
	arena_here()->lost++;
	if ((uint64_t)last > get_word(CONTEXTS_LIMIT))
		last = (struct context_entry *)get_word(CONTEXTS_BEGIN);
	push(last, bank_record(get_word(CONTEXTS_BANK), function), own);
}

void context_slow(struct context_frame *f)
{
	if (f->kind == CONTEXT_CHECK)
		check(f);
	else
		enter(f);
}

/* ---- threads ---- */

bool contexts_known(void)
{
	return true;
}

static void begin_arena(struct context_arena *a)
{
	if (a->magic == CONTEXTS_MAGIC)
		return;
	a->used = CONTEXTS_FIRST;
	a->root_head.function = CONTEXTS_ROOT;
	a->root_head.size = sizeof a->root_head;
	a->root_head.record = (uint64_t)(&a->root_head + 1);
	__atomic_store_n(&a->magic, CONTEXTS_MAGIC, __ATOMIC_RELEASE);
}

static void set_words(uint64_t bank, uint64_t arena)
{
	volatile uint64_t *words = (volatile uint64_t *)bank;
	words[-CONTEXTS_ENTER] = (uint64_t)context_enter;
	words[-CONTEXTS_ENTER_DIRECT] = (uint64_t)context_enter_direct;
	words[-CONTEXTS_CHECK] = (uint64_t)context_check;
	words[-CONTEXTS_BANK] = bank;
	words[-CONTEXTS_ARENA_AT] = arena;
}

void contexts_begin(uint64_t bank, uint64_t arena, char *stack, uint64_t size)
{
	volatile uint64_t *words = (volatile uint64_t *)bank;
	volatile struct context_entry *lowest = (volatile struct context_entry *)stack;
	begin_arena((struct context_arena *)arena);
	set_words(bank, arena);
	lowest->record = (uint64_t)(&((struct context_arena *)arena)->root_head + 1);
	lowest->sp = UINT64_MAX;
	words[-CONTEXTS_TOP] = (uint64_t)stack;
	words[-CONTEXTS_BEGIN] = (uint64_t)stack;
	words[-CONTEXTS_LIMIT] = (uint64_t)stack + size / 2;
}

/* The record of the same context in an arena of ours. The bytes behind the head are known by the one that was copied. */
static uint64_t translate(uint64_t record, uint64_t from_bank, uint64_t bank_bytes, uint64_t bank,
			  struct context_arena *a)
{
	const struct context_head *h = head_of(record);
	if (record >= from_bank && record < from_bank + bank_bytes)
		return bank_record(bank, h->function);
	if (h->function == CONTEXTS_ROOT || !h->parent)
		return (uint64_t)(&a->root_head + 1);
	struct context_head wanted = {.from = h->from, .function = h->function};
	wanted.parent = translate(h->parent, from_bank, bank_bytes, bank, a);
	uint64_t found = find(a, wanted.parent, wanted.from, wanted.function);
	if (!found)
		found = add(a, &wanted, h->size - sizeof *h);
	return found ? head_of(found)->record : bank_record(bank, h->function);
}

void contexts_move(uint64_t from_bank, uint64_t to_bank, uint64_t to_arena, uint64_t bank_bytes)
{
	volatile uint64_t *words = (volatile uint64_t *)to_bank;
	struct context_arena *a = (struct context_arena *)to_arena;
	struct context_entry *begin = (struct context_entry *)words[-CONTEXTS_BEGIN];
	struct context_entry *end = (struct context_entry *)words[-CONTEXTS_TOP];
	uint64_t before = 0, now = 0;
	begin_arena(a);
	set_words(to_bank, to_arena);
	for (struct context_entry *e = begin; e <= end; e++) {
		if (e->record != before) {
			before = e->record;
			now = translate(before, from_bank, bank_bytes, to_bank, a);
		}
		((volatile struct context_entry *)e)->record = now;
	}
}

#else

bool contexts_known(void)
{
	return false;
}

void contexts_begin(uint64_t bank, uint64_t arena, char *stack, uint64_t size)
{
	(void)bank;
	(void)arena;
	(void)stack;
	(void)size;
}

void contexts_move(uint64_t from_bank, uint64_t to_bank, uint64_t to_arena, uint64_t bank_bytes)
{
	(void)from_bank;
	(void)to_bank;
	(void)to_arena;
	(void)bank_bytes;
}

#endif
