/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * Copies the stacks of goroutines, for the collector to walk. If the sampler walks itself, recipes lead it
 * from the thread's stack to the goroutine's (RECIPE_PARKED). A copy of one stack alone would end there. So
 * if a thread runs Go, the runtime's structures for the goroutine (g) and the thread (m) are copied, too,
 * with the stacks that they point to. C code that Go has called may use the register of g for other things.
 * Then g is searched among the thread-local variables. Nothing of these is read later: stacks of goroutines
 * move, and the zeros of a fresh stack look like the outermost frame. sample.bpf.c uses it.
 */
#include "collect/kernel/bpf/maps.h"

/* Where Go's runtime keeps what is needed here, in words. If a version of Go keeps it elsewhere, the
   words do not fit together (is_go), and the copy goes without them. */
#define GO_STACK_LOW 0
#define GO_STACK_HIGH 1
#define GO_M 6
#define GO_SP 7
#define GO_M_SYSTEM 0   /* m.g0 */
#define GO_M_SIGNALS 10 /* m.gsignal */
#define GO_M_CURRENT 24 /* m.curg */
#define GO_STACK_MAX (1ull << 32)
/* Bytes that are copied of a stack if its SP is not known. */
#define GO_STACK_PART (KERNEL_STACK - (1u << 16))
#define GO_M_SIZE 1024 /* an m is larger than this */
#define GO_WORDS 64    /* thread-local variables among which g is searched */
#define GO_SAVED 1024  /* words of the stack among which g is searched */

/* Indices of kernel_far.go: the g whose stack it is on, its m, m.g0, m.curg, m.gsignal. */
enum { GO_HERE, GO_THREAD, GO_SYSTEM, GO_CURRENT, GO_SIGNALS };

INLINE struct task_struct *current_task(void)
{
	return (void *)bpf_get_current_task_btf();
}

/* Returns the distance from SP to the end of a stack that a C library made, or the kernel; 0: not known. */
INLINE uint64_t thread_stack_size(uint64_t sp, uint64_t thread_pointer)
{
	struct mm_struct *mm = current_task()->mm;
	uint64_t size = thread_pointer - sp;
	uint64_t other = mm ? mm->start_stack - sp : UINT64_MAX;
	if (other < size)
		size = other;
	return size < STACK_REACH ? size : 0;
}

INLINE bool copy_go(struct kernel_far *far, uint32_t i, uint64_t address)
{
	far->go_at[i] = address;
	if (address && !(address & 7) &&
	    !bpf_probe_read_user(far->go[i], sizeof far->go[i], (void *)address))
		return true;
	far->go_at[i] = 0;
	return false;
}

/* Whether this is the g of a thread that runs Go. If so, copies its m and the other gs of that thread. */
INLINE bool is_go(struct kernel_far *far, uint64_t g)
{
	const uint64_t *m = far->go[GO_THREAD], *system = far->go[GO_SYSTEM];
	if (!copy_go(far, GO_HERE, g) || !copy_go(far, GO_THREAD, far->go[GO_HERE][GO_M]) ||
	    (g != m[GO_M_SYSTEM] && g != m[GO_M_CURRENT] && g != m[GO_M_SIGNALS]) ||
	    !copy_go(far, GO_SYSTEM, m[GO_M_SYSTEM]) || system[GO_M] != far->go_at[GO_THREAD] ||
	    system[GO_STACK_HIGH] - system[GO_STACK_LOW] - 1 >= GO_STACK_MAX)
		return false;
	copy_go(far, GO_CURRENT, m[GO_M_CURRENT]);
	copy_go(far, GO_SIGNALS, m[GO_M_SIGNALS]);
	return true;
}

/* Returns how much of a g's stack is beyond SP; 0: SP is on another stack. */
INLINE uint64_t go_beyond(const struct kernel_far *far, uint32_t i, uint64_t sp)
{
	uint64_t low = far->go[i][GO_STACK_LOW], high = far->go[i][GO_STACK_HIGH];
	return far->go_at[i] && low <= sp && sp < high && high - low < GO_STACK_MAX ? high - sp : 0;
}

/* Whether it is the g of this very thread: SP is on one of its stacks. */
INLINE bool is_go_here(struct workspace *ws, uint64_t g)
{
	struct kernel_far *far = &ws->far;
	uint64_t sp = ws->walk.registers[CPU.sp & (KERNEL_REGISTERS - 1)];
	return is_go(far, g) && (go_beyond(far, GO_SYSTEM, sp) || go_beyond(far, GO_CURRENT, sp) ||
				 go_beyond(far, GO_SIGNALS, sp));
}

static long find_go_own(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t tp = cpu_thread_pointer(current_task()), g = 0;
	if (bpf_probe_read_user(&g, sizeof g, (void *)CPU_GO_WORD(tp, i)))
		return 1;
	ws->go = g && is_go(&ws->far, g);
	return ws->go;
}

static long find_go_saved(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t sp = ws->walk.registers[CPU.sp & (KERNEL_REGISTERS - 1)] & ~7ull, g = 0;
	if (bpf_probe_read_user(&g, sizeof g, (void *)(sp + 8ull * i)))
		return 1;
	ws->go = g && is_go_here(ws, g);
	return ws->go;
}

/*
 * Finds g. C code may use Go's register for itself. But if there is C in a program, Go also keeps g among
 * the thread-local variables; the linker decides where. The first thread may have put these somewhere
 * without the kernel having noticed yet. Then its thread pointer is still that of the previous program, and
 * g is searched where C has saved the register: on the stack.
 */
INLINE bool find_go(struct workspace *ws)
{
	uint64_t tp = cpu_thread_pointer(current_task()), word;
	ws->go = is_go_here(ws, ws->walk.registers[CPU_GO]);
	if (ws->go)
		return true;
	if (bpf_probe_read_user(&word, sizeof word, (void *)tp))
		bpf_loop(GO_SAVED, find_go_saved, &ws, 0);
	else
		bpf_loop(GO_WORDS, find_go_own, &ws, 0);
	return ws->go;
}

/* Returns where the stack of g0 ends. What Go takes for the end may be the place where C has called Go.
   If Go made the thread itself, the thread pointer points into its m, and says nothing about the stack. */
INLINE uint64_t go_thread_end(const struct kernel_far *far)
{
	uint64_t end = far->go[GO_SYSTEM][GO_STACK_HIGH];
	uint64_t tp = cpu_thread_pointer(current_task());
	return end + thread_stack_size(end, tp - far->go_at[GO_THREAD] < GO_M_SIZE ? 0 : tp);
}

/* Returns the distance from SP to the end of the stack that SP is on, with what C has there; 0: it is
   none of Go's stacks. */
INLINE uint64_t go_stack_size(const struct kernel_far *far, uint64_t sp)
{
	uint64_t size = go_beyond(far, GO_CURRENT, sp);
	size = size ? size : go_beyond(far, GO_SIGNALS, sp);
	if (!size && go_beyond(far, GO_SYSTEM, sp))
		size = go_thread_end(far) - sp;
	return size;
}

/* Copies up to the next page of another stack, behind what was copied before. If a page is not there, it
   was never touched, and the stack begins beyond it. In the part that belongs to C, such a page is the
   end. */
static long copy_far_one(uint32_t i, struct workspace **context)
{
	struct workspace *ws = *context;
	uint64_t address = ws->far.stacks[ws->other & 1].address;
	uint64_t have = ws->far.stacks[ws->other & 1].size;
	uint64_t to = ws->behind + have, from = address + have, size = 4096 - (from & 4095);
	(void)i;
	if (from >= ws->other_end || to >= ws->most || to > KERNEL_STACK - 4096)
		return 1;
	if (size > ws->other_end - from)
		size = ws->other_end - from;
	KEEP(size);
	KEEP(to);
	if (to > KERNEL_STACK - 4096 || size > 4096)
		return 1;
	if (bpf_probe_read_user(ws->stack + to, size, (void *)from)) {
		if (from >= ws->other_high)
			return 1;
		ws->far.stacks[ws->other & 1].address = from + size;
		ws->far.stacks[ws->other & 1].size = 0;
	} else {
		ws->far.stacks[ws->other & 1].size = have + size;
	}
	return 0;
}

/* Copies the stack of a g, unless SP is on it. `parked`: the goroutine has left it properly, so its SP
   is known. */
INLINE void copy_far_stack(struct workspace *ws, uint32_t i, uint64_t sp, bool parked)
{
	struct kernel_far *far = &ws->far;
	uint64_t low = far->go[i][GO_STACK_LOW], high = far->go[i][GO_STACK_HIGH];
	uint64_t from = high - low > GO_STACK_PART ? high - GO_STACK_PART : low;
	if (!far->go_at[i] || go_beyond(far, i, sp) || high - low > GO_STACK_MAX || high & 7)
		return;
	if (parked && far->go[i][GO_SP] - low < high - low)
		from = far->go[i][GO_SP];
	ws->other = i - GO_SYSTEM;
	far->stacks[ws->other & 1].address = from & ~7ull;
	ws->other_high = high;
	ws->other_end = i == GO_SYSTEM ? go_thread_end(far) & ~7ull : high;
	bpf_loop(KERNEL_STACK / 4096 + 1, copy_far_one, &ws, 0);
	ws->behind += far->stacks[ws->other & 1].size;
}

/* Copies the other stacks behind the first `behind` bytes, which are of the stack that SP is on: about
   `room` bytes at most. Returns how many bytes there are then. */
INLINE uint64_t copy_far(struct workspace *ws, uint64_t sp, uint64_t behind, uint64_t room)
{
	struct kernel_far *far = &ws->far;
	bool clean = go_beyond(far, GO_HERE, sp) != 0;
	bool system = far->go_at[GO_HERE] == far->go_at[GO_SYSTEM];
	bool current = far->go_at[GO_HERE] == far->go_at[GO_CURRENT];
	__builtin_memset(far->stacks, 0, sizeof far->stacks);
	ws->behind = behind;
	ws->most = behind + room;
	copy_far_stack(ws, GO_SYSTEM, sp, clean && current); /* in the order of far->stacks */
	copy_far_stack(ws, GO_CURRENT, sp, clean && system);
	return ws->behind;
}
