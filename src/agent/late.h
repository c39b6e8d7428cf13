/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The thread of an agent in a process that ran before (late.c), and what it does there: it samples (late_samples.c), or it
   counts calls (late_probes.c). */
#include "agent/agent.h"

/* The number of this recording; and the one that agent_self of the calling thread belongs to. */
extern _Atomic uint32_t late_recording;
extern AGENT_OWN uint32_t late_own;
extern int32_t late_process; /* the number of this process */
/* While calls are counted: the record of a thread that forks. It has none until the handlers of fork are done: a child that
   has its parent's record must not count in that. */
extern AGENT_OWN struct agent_thread *late_forks;

/* late_samples.c or late_probes.c: serves the recording until it ends. `own`: the number of the calling thread. */
void late_serve(int32_t own);
/* The collector does not want anything. */
void late_fail(void);
/* A thread of the program is there. *met: is set if the collector is to be told. */
void late_meet(int32_t tid, bool *met);

/* Looks at all threads. Returns how many there are beside this one, that has the number `own`. The first thread stays in
   the list when it has ended. */
unsigned late_look(int32_t own);
void late_sleep(uint64_t ns);
/* Sleeps, but not longer than until the collector says stop, or wakes us. */
void late_rest(uint64_t ns);
/* Whether the collector is gone. It is looked at now and then; *knocked: when that was. */
bool late_is_gone(uint64_t *knocked);
/* In a child process, which has no such thread. */
void late_after_fork(void) AGENT_OPTIONAL;

/* late_probes.c: the record of the calling thread, which may be new. `sp` is on its stack. NULL: there is none, or nothing
   is counted. */
struct agent_thread *late_join_new(uint64_t sp);
static inline struct agent_thread *late_known(void)
{
	if (!atomic_load_explicit(&agent.on, memory_order_acquire) ||
	    late_own != atomic_load_explicit(&late_recording, memory_order_relaxed))
		return NULL;
	return agent_self;
}
static inline struct agent_thread *late_join(uint64_t sp)
{
	if (!atomic_load_explicit(&agent.on, memory_order_acquire))
		return NULL;
	if (__builtin_expect(
		    late_own == atomic_load_explicit(&late_recording, memory_order_relaxed), 1))
		return agent_self;
	return late_join_new(sp);
}
