/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the registers of a stopped thread, or of a perf sample, for the CPU that we run on. remote.c and
   those who read perf samples (collect/, import/) use it. One of registers_CPU.c is built. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct remote_thread;

extern const uint16_t native_machine; /* our ELF machine */

/* Reads the registers of a stopped thread into thread->registers and thread->pc. False if the thread is
   gone, or runs 32-bit code. */
bool registers_read(struct remote_thread *thread);

/* Lets a stopped thread go on elsewhere. */
bool registers_set_pc(pid_t tid, uint64_t pc);

/* Signal frames on a stack are known by a word that nothing else has: word & mask == value. So many words before it are
   the PC and the SP of what was interrupted. */
struct registers_frame {
	uint64_t mask, value;
	unsigned pc, sp;
};
extern const struct registers_frame registers_signal_frame;

/* Registers as perf events give them (perf_event_attr.sample_regs_user): the mask to ask for, how many
   they are, and the conversion to the order of DWARF numbers and the PC. */
extern const uint64_t registers_perf_mask;
extern const unsigned registers_perf_count;
void registers_from_perf(const uint64_t *perf, uint64_t *registers, uint64_t *pc);
