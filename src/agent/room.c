/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for our signal. The kernel puts its frame on the program's stack, and kills the program where
 * that has come to its end. Some take SP there on purpose: Ruby does when it starts, to have the whole
 * stack mapped. So our signal has a stack of its own (sigaltstack), which the program is not told of.
 *
 * A thread can have one such stack only. Ours goes as soon as the program may want one, or could come
 * to run on ours: when it sets one, has a handler that would use one, or makes a second thread, whose
 * handlers nobody here could keep off the first one's stack. From then on our signal comes on whatever
 * stack the program is on.
 */
#include "agent/agent.h"

#include <sys/auxv.h>

#include "safe/syscall.h"

#define HANDLER_STACK 4096u /* the handler takes less than a kilobyte of it */

REAL_SLOT(sigaltstack);

/* The process whose only thread has it; 0: none. A child of vfork has its parent's memory, and leaves this alone. */
static _Atomic int owner;

static bool is_ours(void)
{
	int process = atomic_load_explicit(&owner, memory_order_relaxed);
	return process && process == getpid();
}

/* The handler's own stack needs less than its chunk: this is the rest. */
void room_make(void)
{
	struct arena_chunk *chunk = (struct arena_chunk *)(agent_stack - ARENA_CHUNK);
	stack_t stack = {.ss_sp = chunk + 1,
			 .ss_size = ARENA_CHUNK - sizeof *chunk - HANDLER_STACK};
	bool made = agent_stack && getauxval(AT_MINSIGSTKSZ) <= stack.ss_size &&
		    SAFE_SYSCALL(SYS_sigaltstack, &stack, 0, 0, 0) == 0;
	atomic_store(&owner, made ? getpid() : 0);
}

static void unset(void)
{
	static const stack_t none = {.ss_flags = SS_DISABLE};
	SAFE_SYSCALL(SYS_sigaltstack, &none, 0, 0, 0);
	atomic_store(&owner, 0);
}

void room_give_up(void)
{
	if (!is_ours())
		return;
	signals_leave_room();
	unset();
}

bool room_leave_parents(void)
{
	bool had = atomic_load(&owner);
	if (had)
		unset();
	return had;
}

AGENT_EXPORT int sigaltstack(const stack_t *restrict stack, stack_t *restrict old)
{
	if (stack)
		room_give_up();
	if (stack || !old || !is_ours())
		return REAL(sigaltstack)(stack, old);
	*old = (stack_t){.ss_flags = SS_DISABLE};
	return 0;
}
