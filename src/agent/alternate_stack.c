/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alternate stack of our signal. The kernel puts a signal frame on the program's stack, and kills the
 * program if that stack is full. Some programs move SP to the end of the stack on purpose: Ruby does at
 * its start, to have the whole stack mapped. So our signal gets an alternate stack (sigaltstack), which we
 * hide from the program.
 *
 * A thread can have only one such stack. We give ours up as soon as the program may want one, or might run a
 * handler on ours: when it sets one, when it has a handler that would use one, or when it makes a second
 * thread. (The agent cannot keep handlers of that thread off the first thread's stack.) From then on, our
 * signal uses the stack that the program is on.
 */
#include "agent/agent.h"

#include <sys/auxv.h>

#include "safe/syscall.h"

#define HANDLER_STACK 4096u /* the handler needs less than a kilobyte of it */

REAL_SLOT(sigaltstack);

/* The process whose only thread uses our stack; 0: none. A child of vfork shares its parent's memory and
   does not change this. */
static _Atomic int owner;

static bool is_ours(void)
{
	int process = atomic_load_explicit(&owner, memory_order_relaxed);
	return process && process == getpid();
}

/* Our handler's own stack (agent_stack) is one chunk, and needs only the upper part of it. This uses
   the rest. */
void alternate_stack_make(void)
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

void alternate_stack_give_up(void)
{
	if (!is_ours())
		return;
	signals_use_program_stack();
	unset();
}

bool alternate_stack_drop_inherited(void)
{
	bool had = atomic_load(&owner);
	if (had)
		unset();
	return had;
}

AGENT_EXPORT int sigaltstack(const stack_t *restrict stack, stack_t *restrict old)
{
	if (stack)
		alternate_stack_give_up();
	if (stack || !old || !is_ours())
		return REAL(sigaltstack)(stack, old);
	*old = (stack_t){.ss_flags = SS_DISABLE};
	return 0;
}
