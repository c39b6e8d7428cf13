/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns which bank (safe/banks.h).
 *
 *    of the file, in all processes:    … | page       | bank | page       | bank | …
 *    of this process, over it:             room of A           room of B
 *    of this process, elsewhere:           path stack of A     path stack of B
 *
 * A slot is taken from an owner that the kernel does not know any more: so whatever a thread does at its end is counted.
 * The owner's process may have another number for us, if it is in another PID namespace. Then we do not take its slot. The room and the
 * path stack of a slot stay mapped, for the next thread of this process that owns it.
 *
 * After a fork, the child has copies of all rooms and path stacks of its parent. They are used again as those of threads that
 * have ended. Two processes never count in one bank at a time, even if the banks are one memory: the table of slots is, too.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "counter/counter.h"
#include "counter/cpu.h"
#include "safe/syscall.h"

#define STACK_LEAST (64ull << 20)
#define STACK_MOST (1ull << 30)
#define STACK_SMALL (8ull << 20)
#define APART (UINT64_C(1) << 41)
#define APART_TRIES 8u
#define TRIES 16u         /* slots that are looked at before a new one is taken */
#define TRIES_LATE 256u   /* the first ones belong to threads that ran already */
#define LIMITED_SHARE 16u /* of a limited address space is for banks, at most */
#define STACK_SHARE 256u  /* the same for a path stack */

bool banks_apart;

struct path_entry {
	uint64_t sum, sp;
};

struct local { /* what this process has mapped for a slot */
	char *stack;
	uint64_t stack_size;
	bool room;
	bool lost; /* its bank is no shared memory here any more */
};

static struct {
	struct banks_header *header;
	struct local *locals;
	uint64_t size, slots_at, stride;
	uint64_t address_limit; /* 0: none */
	uint32_t slots;
	uint32_t space;
	int32_t process;
} banks;

struct banks_header *banks_header(void)
{
	return banks.header;
}

uint64_t banks_words(void)
{
	return banks.header ? (banks.stride - BANKS_PAGE) / sizeof(uint64_t) : 0;
}

void banks_memory(uint64_t *start, uint64_t *size)
{
	*start = (uint64_t)banks.header;
	*size = banks.size;
}

static void *map(void *at, uint64_t size, int protection, int flags, int file)
{
	long result = safe_syscall6(SYS_mmap, (long)at, (long)size, protection, flags, file, 0);
	return result < 0 && result > -4096 ? NULL : (void *)result;
}

/* Far below libraries, if that is wanted: what is mapped for copies must be near those. */
static void *map_apart(uint64_t size, int protection, int flags, int file)
{
	static _Atomic uint64_t lowest;
	void *got = NULL;
	uint64_t none = 0, far = ((uint64_t)&lowest & ~(APART - 1)) - APART;
	atomic_compare_exchange_strong(&lowest, &none, far);
	for (unsigned i = 0; banks_apart && !got && i < APART_TRIES; i++) {
		uint64_t at = atomic_fetch_sub(&lowest, size) - size;
		got = at < far
			      ? map((void *)at, size, protection, flags | MAP_FIXED_NOREPLACE, file)
			      : NULL;
	}
	return got ? got : map(NULL, size, protection, flags, file);
}

static void *map_own(void *at, uint64_t size)
{
	return map(at, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1);
}

static void unmap(void *at, uint64_t size)
{
	if (at)
		SAFE_SYSCALL(SYS_munmap, at, size, 0, 0);
}

static void advise(void *at, uint64_t size, int advice)
{
	SAFE_SYSCALL(SYS_madvise, at, size, advice, 0);
}

static bool allow(void *at, uint64_t size)
{
	return SAFE_SYSCALL(SYS_mprotect, at, size, PROT_READ | PROT_WRITE, 0) == 0;
}

/* ---- the memory ---- */

/* 0: there is none. */
static uint64_t address_limit(void)
{
	struct rlimit all = {RLIM_INFINITY, 0}, data = {RLIM_INFINITY, 0};
	SAFE_SYSCALL(SYS_prlimit64, 0, RLIMIT_AS, 0, &all);
	SAFE_SYSCALL(SYS_prlimit64, 0, RLIMIT_DATA, 0, &data);
	uint64_t least = all.rlim_cur < data.rlim_cur ? all.rlim_cur : data.rlim_cur;
	return least < RLIM_INFINITY ? least : 0;
}

static void bound_slots(const struct banks_reply *plan)
{
	uint64_t room = banks.address_limit / LIMITED_SHARE, fit;
	banks.slots = plan->slots;
	if (!banks.address_limit || plan->size <= room)
		return;
	fit = room > plan->slots_at ? (room - plan->slots_at) / plan->stride : 0;
	banks.slots = fit ? (uint32_t)fit : 1;
}

static bool map_banks(int memory, const struct banks_reply *plan)
{
	banks.header =
		NULL; /* that of an earlier collector stays where it is: its copies may still run */
	banks.space = 0;
	banks.address_limit = address_limit();
	bound_slots(plan);
	banks.stride = plan->stride;
	banks.slots_at = plan->slots_at;
	banks.locals = map_own(NULL, banks.slots * sizeof *banks.locals);
	while (banks.locals && banks.slots && !banks.header) {
		banks.size = banks.slots_at + banks.slots * banks.stride;
		banks.header = map_apart(banks.size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memory);
		if (!banks.header)
			banks.slots /= 2;
	}
	if (!banks.header)
		return false;
	advise(banks.header, banks.size, MADV_DONTDUMP);
	allow(banks.header, banks.slots_at);
	banks.process = (int32_t)SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0);
	return true;
}

void banks_close(struct counter_room *room)
{
	cpu_set_bank(0);
	if (room)
		unmap(room->stack, room->stack_size + BANKS_PAGE);
	unmap(banks.locals, banks.slots * sizeof *banks.locals);
	unmap(banks.header, banks.size);
	banks.header = NULL;
}

static char *page_of(uint32_t slot)
{
	return (char *)banks.header + banks.slots_at + slot * banks.stride;
}

/* ---- owners ---- */

static bool is_gone(const struct banks_slot *s)
{
	int32_t process = atomic_load(&s->process), thread = atomic_load(&s->thread);
	return atomic_load(&s->space) == banks.space &&
	       SAFE_SYSCALL(SYS_tgkill, process, thread ? thread : process, 0, 0) == -ESRCH;
}

/* Makes a slot ours if nobody owns it. */
static bool take_slot(uint32_t slot)
{
	struct banks_slot *s = &banks.header->slots[slot];
	uint32_t state = atomic_load(&s->state);
	uint32_t next = (state & ~BANKS_STATES) + BANKS_OWNER;
	if (banks.locals[slot].lost || (state & BANKS_STATES) == BANKS_TAKEN ||
	    ((state & BANKS_STATES) == BANKS_OWNED && !is_gone(s)) ||
	    !atomic_compare_exchange_strong(&s->state, &state, next | BANKS_TAKEN))
		return false;
	atomic_store(&s->process, banks.process);
	atomic_store(&s->thread, 0);
	atomic_store(&s->space, banks.space);
	atomic_store(&s->state, next | BANKS_OWNED);
	return true;
}

/* If our parent is not who it was, or has another number here, we do not know who else has which number. */
static void begin_process(void)
{
	int32_t parent = (int32_t)SAFE_SYSCALL(SYS_getppid, 0, 0, 0, 0);
	if (parent != banks.process)
		banks.space = atomic_fetch_add(&banks.header->spaces, 1) + 1;
	banks.process = (int32_t)SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0);
}

static void free_slot(uint32_t slot)
{
	struct banks_slot *s = &banks.header->slots[slot];
	atomic_store(&s->state, (atomic_load(&s->state) & ~BANKS_STATES) | BANKS_FREE);
}

static int64_t search(uint32_t used, uint32_t tries)
{
	uint32_t at = atomic_fetch_add(&banks.header->cursor, tries);
	for (uint32_t i = 0; i < tries && i < used; i++)
		if (take_slot((at + i) % used))
			return (at + i) % used;
	return -1;
}

/* The collector does not trust this number, nor do we: another process may have mapped fewer slots, or more. */
static uint32_t used_slots(void)
{
	uint32_t used = atomic_load(&banks.header->used);
	return used < banks.slots ? used : banks.slots;
}

/* Returns a slot that is ours now; -1: all have owners. */
static int64_t choose_slot(void)
{
	uint32_t used = used_slots();
	int64_t found = search(used, banks_apart ? TRIES_LATE : TRIES);
	while (found < 0 && used < banks.slots) {
		if (atomic_compare_exchange_strong(&banks.header->used, &used, used + 1)) {
			if (take_slot(used))
				return used;
			used++;
		}
	}
	return found < 0 ? search(used_slots(), banks.slots) : found;
}

/* ---- rooms ---- */

static uint64_t stack_bytes(uint64_t stack_size)
{
	uint64_t size = stack_size < STACK_LEAST ? STACK_LEAST : stack_size;
	if (size > STACK_MOST)
		size = STACK_MOST;
	if (banks.address_limit && size > banks.address_limit / STACK_SHARE)
		size = banks.address_limit / STACK_SHARE;
	if (size < STACK_SMALL)
		size = STACK_SMALL;
	return (size + BANKS_PAGE - 1) & ~(uint64_t)(BANKS_PAGE - 1);
}

/* With a page behind it that cannot be written. A huge page would be taken for a few entries. If the program has locked its
   future memory, this is not meant: it would be there at once, and whole. */
static char *map_stack(uint64_t size)
{
	char *stack = map_apart(size + BANKS_PAGE, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (!stack)
		return NULL;
	SAFE_SYSCALL(SYS_munlock, stack, size + BANKS_PAGE, 0, 0);
	advise(stack, size, MADV_NOHUGEPAGE);
	advise(stack, size, MADV_DONTDUMP);
	if (allow(stack, size))
		return stack;
	unmap(stack, size + BANKS_PAGE);
	return NULL;
}

/* As large as there is room for. */
static bool have_stack(struct local *local, uint64_t stack_size)
{
	uint64_t size = stack_bytes(stack_size);
	if (local->stack && local->stack_size >= size)
		return true;
	unmap(local->stack, local->stack_size + BANKS_PAGE);
	while (!(local->stack = map_stack(size)) && size / 2 >= STACK_SMALL)
		size = (size / 2) & ~(uint64_t)(BANKS_PAGE - 1);
	local->stack_size = size;
	return local->stack;
}

/* Also after an owner that has ended. */
static struct counter_room *fill_room(char *page, int64_t slot, char *stack, uint64_t stack_size)
{
	struct counter_room *room = (struct counter_room *)page;
	struct path_entry *lowest = (struct path_entry *)stack;
	volatile uint64_t *words = (volatile uint64_t *)page;
	for (size_t i = 0; i < BANKS_PAGE / sizeof *words; i++)
		words[i] = 0;
	*lowest = (struct path_entry){0, UINT64_MAX};
	room->bank = (uint64_t)page + BANKS_PAGE;
	room->slot = slot;
	room->stack = stack;
	room->stack_size = stack_size;
	words[BANKS_PAGE / sizeof *words - 1] = (uint64_t)(lowest + 1);
	words[BANKS_PAGE / sizeof *words - 2] = (uint64_t)stack + stack_size / 2;
	words[BANKS_PAGE / sizeof *words - 3] = (uint64_t)(lowest + 1);
	return room;
}

static bool have_page(uint32_t slot)
{
	struct local *local = &banks.locals[slot];
	local->room = local->room || (map_own(page_of(slot), BANKS_PAGE) &&
				      allow(page_of(slot) + BANKS_PAGE, banks.stride - BANKS_PAGE));
	return local->room;
}

/* A bank that nobody will read, for a thread that found no slot. It stays mapped. */
static struct counter_room *take_lone(uint64_t stack_size)
{
	struct local local = {0};
	char *page = map_own(NULL, banks.stride);
	atomic_fetch_add(&banks.header->left_out, 1);
	if (page && have_stack(&local, stack_size))
		return fill_room(page, -1, local.stack, local.stack_size);
	unmap(page, banks.stride);
	return NULL;
}

/* The bank that new threads begin with, until they have their own. Some never get one: libc creates them for itself. Then
   several may use it at once, and find sums there that are not theirs: so it is twice as large, and nobody reads it. */
static bool make_first_bank(void)
{
	uint64_t bank = banks.stride - BANKS_PAGE;
	char *page = map_own(NULL, BANKS_PAGE + 2 * bank), *stack = map_stack(STACK_SMALL);
	if (page && stack && cpu_set_first_bank((uint64_t)page + BANKS_PAGE)) {
		fill_room(page, -1, stack, STACK_SMALL);
		return true;
	}
	unmap(page, BANKS_PAGE + 2 * bank);
	unmap(stack, STACK_SMALL + BANKS_PAGE);
	return false;
}

bool banks_open(int memory, const struct banks_reply *plan)
{
	if (!map_banks(memory, plan))
		return false;
	if (!CPU_OWN_WORD || make_first_bank())
		return true;
	banks_close(NULL);
	return false;
}

/* In a process that was made by the system call itself: nobody has told us of that. */
static void know_process(void)
{
	struct counter_room *room = banks_here();
	if (banks.process == (int32_t)SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0))
		return;
	if (room)
		banks_after_fork(room);
	else
		begin_process();
}

struct counter_room *banks_take(uint64_t stack_size)
{
	know_process();
	int64_t slot = choose_slot();
	if (slot < 0)
		return take_lone(stack_size);
	struct local *local = &banks.locals[slot];
	if (have_page((uint32_t)slot) && have_stack(local, stack_size))
		return fill_room(page_of((uint32_t)slot), slot, local->stack, local->stack_size);
	free_slot((uint32_t)slot);
	return NULL;
}

void banks_give_back(struct counter_room *room)
{
	if (room->slot >= 0)
		free_slot((uint32_t)room->slot);
}

void banks_begin(struct counter_room *room)
{
	room->thread = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	room->given = 0;
	cpu_set_bank(room->bank);
	if (room->slot >= 0)
		atomic_store(&banks.header->slots[room->slot].thread, room->thread);
}

struct counter_room *banks_here(void)
{
	uint64_t bank = cpu_bank(), start = (uint64_t)banks.header;
	struct counter_room *room = (struct counter_room *)(bank - BANKS_PAGE);
	if (!start || bank < start + banks.slots_at || bank - start >= banks.size)
		return NULL;
	return room->bank == bank ? room : NULL;
}

/* ---- forked processes ---- */

/* If there is no slot: what the process counts is its own. */
static void leave_out(struct counter_room *room)
{
	banks.locals[room->slot].lost = true;
	map_own((void *)room->bank, banks.stride - BANKS_PAGE);
	atomic_fetch_add(&banks.header->left_out, 1);
}

static void copy_room(struct counter_room *to, const struct counter_room *from)
{
	volatile uint64_t *words = (volatile uint64_t *)to;
	const volatile uint64_t *before = (const volatile uint64_t *)from;
	for (size_t i = 0; i < BANKS_PAGE / sizeof *words; i++)
		words[i] = before[i];
	to->bank = (uint64_t)to + BANKS_PAGE;
}

static void move_to(struct counter_room *room, uint32_t slot)
{
	struct local *from = &banks.locals[room->slot], *to = &banks.locals[slot];
	struct counter_room *other = (struct counter_room *)page_of(slot);
	unmap(to->stack, to->stack_size + BANKS_PAGE);
	to->stack = from->stack;
	to->stack_size = from->stack_size;
	from->stack = NULL;
	copy_room(other, room);
	other->slot = slot;
	banks_begin(other);
}

void banks_after_fork(struct counter_room *room)
{
	begin_process();
	atomic_fetch_add(&banks.header->forks, 1);
	int64_t slot = choose_slot();
	if (slot >= 0 && have_page((uint32_t)slot))
		move_to(room, (uint32_t)slot);
	else
		leave_out(room);
}
