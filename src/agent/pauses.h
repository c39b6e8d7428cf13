/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Time off the CPU (-e blocked, -e wall), and reads and writes (-e io), without the kernel's help: functions of the
 * program that may wait, or that move bytes, are called through ours. Functions with these macros are in waits.c, lock.c
 * and transfers.c. What is counted is in pauses.c, which only the agent for events has (libculprit-events.so): elsewhere
 * agent.watches_pauses is false.
 *
 *    PAUSE(act, fd, function, call)                a call that may wait
 *    TRANSFER(act, fd, size, result, function, call)   the same; it moves bytes. `result`: how many, as an expression
 *                                                  of pause_result
 *
 * The registers are captured in the function that the program has called: there, the walk begins.
 */
#include <errno.h>

#include "agent/agent.h"
#include "agent/cpu.h"

/* Added to an act that moves bytes: the kernel does not count them for the process (/proc/PID/io); it counts them as read
   and as written. */
#define PAUSE_UNCOUNTED 0x100u
#define PAUSE_TWICE 0x200u
#define PAUSE_ACT 0xffu

struct pause {
	uint64_t start;     /* CLOCK_MONOTONIC; 0: it is not counted */
	uint64_t cpu;       /* the thread's CPU time at its beginning; 0: it was not asked for */
	uint64_t ns, bytes; /* how long it took; what it moved */
	uint64_t function;  /* what the program wanted to call */
	uint32_t act;       /* ARENA_READ …: it moves bytes; else for what it waits */
	int descriptor;
	unsigned moves;               /* how often the kernel counts its bytes for the process */
	bool open;                    /* it is the wait of the thread's record */
	uint32_t rings[WIRE_OFF_MAX]; /* samples of time off the CPU */
};

/* Returns whether the thread's record shall have this wait. */
bool pause_begin(struct pause *p, uint32_t act, int descriptor, size_t size,
		 void *function) AGENT_OPTIONAL;
void pause_note(const struct pause *p, uint64_t pc) AGENT_OPTIONAL;
/* Returns whether it must be counted at a path. Then pause_count has to be called. */
bool pause_end(struct pause *p, int64_t bytes) AGENT_OPTIONAL;
void pause_count(const struct pause *p, uint64_t pc) AGENT_OPTIONAL;

static inline bool pauses_watched(void)
{
	return __builtin_expect(agent.watches_pauses, 0) && agent_self;
}

/* `end_value`: the bytes that were moved; 0 for others. */
#define TRANSFER(act_, fd_, size_, end_value, function_, call_)                              \
	({                                                                                   \
		struct pause pause_;                                                         \
		pause_.start = 0;                                                            \
		if (pauses_watched() &&                                                      \
		    pause_begin(&pause_, (act_), (fd_), (size_), (void *)(function_)))       \
			pause_note(&pause_, cpu_capture(agent_self->shared.wait.registers)); \
		__typeof__(call_) pause_result = (call_);                                    \
		if (__builtin_expect(pause_.start != 0, 0)) {                                \
			int error_ = errno;                                                  \
			if (pause_end(&pause_, (int64_t)(end_value)))                        \
				pause_count(&pause_, cpu_capture(agent_self->registers));    \
			errno = error_;                                                      \
		}                                                                            \
		pause_result;                                                                \
	})

#define PAUSE(act_, fd_, function_, call_) TRANSFER(act_, fd_, 0, 0, function_, call_)
