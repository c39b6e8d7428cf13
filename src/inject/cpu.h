/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What borrowing a thread (borrow.c) needs to know of the CPU that we run on. One of cpu_CPU.c is built.
 *
 * A thread that waits in a system call is stopped by a ptrace interrupt. The kernel has then left the call, and is about to
 * begin it again. cpu_settle finds out about which call this is, and makes the registers those at the entry of the call:
 * if a thread at the entry of any call gets them and the number of the call (cpu_enter_call), it goes on as if it had
 * come from the program's own instruction. Nothing else can tell the difference: the kernel restarts the call itself if
 * another signal comes, or ends it with EINTR, as it would have done.
 *
 * A call that waits for a time has its rest in the kernel's memory (restart_syscall(2)). On x86-64 a register tells this. On
 * aarch64 the registers tell it when the call was begun again once: so such a thread is let go and stopped a second time
 * (cpu_must_look_again).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPU_GENERAL_MAX 320u
#define CPU_VECTOR_MAX 16384u
#define CPU_FRAME_MAX (CPU_VECTOR_MAX + 2048u)
#define CPU_RED_ZONE 128u

struct cpu_state { /* all registers of a thread */
	uint64_t general[CPU_GENERAL_MAX / 8];
	size_t general_size;
	uint8_t vector[CPU_VECTOR_MAX] __attribute__((aligned(64)));
	size_t vector_size;
};

/* What /proc/PID/task/TID/syscall tells; number -1: in none. */
struct cpu_seen {
	long number;
	uint64_t arguments[6], sp, pc;
};

struct cpu_call { /* the call that a thread is to go on with; number -1: none */
	long number;
	long first; /* the same, before it was begun again */
	bool ended; /* it has returned EINTR, because of our interrupt alone */
};

/* Reads all registers of a stopped thread. Returns NULL, or the reason why that thread is better left alone now. */
const char *cpu_read(pid_t tid, struct cpu_state *out);
bool cpu_write_general(pid_t tid, const struct cpu_state *state);
bool cpu_write_vectors(pid_t tid, const struct cpu_state *state);

uint64_t cpu_pc(const struct cpu_state *state);
uint64_t cpu_sp(const struct cpu_state *state);
uint64_t cpu_done_result(
	const struct cpu_state *state); /* what the call returned, in inject_done */

/* Finds the system call that the thread is to go on with, if there is one. `code`: the 4 bytes before PC, and the 4 bytes at
   PC. `seen`: before it was interrupted. Calls that end with EINTR when they are interrupted though no signal comes
   (signal(7), "Interruption of system calls by stop signals") are begun again. */
void cpu_settle(struct cpu_state *state, const struct cpu_seen *seen, const uint8_t code[8],
		struct cpu_call *out);
/* The same for a thread whose call has just ended, perhaps because it was interrupted. On x86-64, the registers alone tell
   which call that was: `seen` may be older. */
void cpu_settle_ended(struct cpu_state *state, const struct cpu_seen *seen, const uint8_t code[8],
		      struct cpu_call *out);
/* Whether the thread must be stopped once more to know which call it is. */
bool cpu_must_look_again(const struct cpu_seen *seen, const struct cpu_call *call);

/* Makes a signal frame for rt_sigreturn(2) that leads back to `state`: for the case that we die meanwhile. Returns its
   size. `at`: its address in the process, a multiple of 64, as large as the result. `restorer` calls rt_sigreturn. */
size_t cpu_frame_size(const struct cpu_state *state);
void cpu_frame(const struct cpu_state *state, const struct cpu_call *call, uint64_t mask,
	       uint64_t at, uint64_t restorer, void *out);

/* Lets the thread call a function, which returns to `restorer` with SP at the frame. */
void cpu_set_function(struct cpu_state *state, uint64_t frame, uint64_t restorer, uint64_t function,
		      const uint64_t arguments[6]);

/* The thread is at the entry of a system call: replaces it by this one, with these registers. */
bool cpu_enter_call(pid_t tid, const struct cpu_state *state, const struct cpu_call *call);
/* The thread is outside of a system call: sets its registers so that it makes this one, which has ended because of our
   interrupt; or, if a signal has come meanwhile (`interrupted`), so that the call has ended because of that. */
bool cpu_begin_again(pid_t tid, const struct cpu_state *state, const struct cpu_call *call,
		     bool interrupted);
/* The thread is at the entry of a system call: leaves that out. */
bool cpu_skip_call(pid_t tid);

/* Where rt_sigreturn is called in these bytes (of the vDSO or of libc); -1: nowhere. */
long cpu_find_restorer(const uint8_t *bytes, size_t size);
extern const bool cpu_restorer_in_vdso;

/* Whether threads have a base of a segment that C programs leave alone (GS), which others can read and set for a stopped thread.
   cpu_segment returns false if the thread uses it in another way, too. */
extern const bool cpu_has_segment;
bool cpu_segment(pid_t tid, uint64_t *base);
bool cpu_set_segment(pid_t tid, uint64_t base);

/* What is copied into the process (code_CPU.S). inject_code: begin of the new thread, which loads the library and calls its
   function. inject_done: end of the borrowed call. It calls rt_sigreturn, again and again if that is left out. inject_saved:
   what the registers of arguments must hold then; nothing on x86-64. */
extern const uint8_t inject_code[], inject_done[], inject_saved[], inject_code_end[];
void cpu_fill_saved(const struct cpu_state *state, void *out);
