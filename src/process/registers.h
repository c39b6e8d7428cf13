/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Registers of a stopped thread, for the CPU that we run on: registers_CPU.c, one of which is
   built. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct remote_thread;

extern const uint16_t native_machine; /* ELF machine */

/* Reads them into thread->registers and thread->pc. False where the thread is gone, or runs
   32-bit code. */
bool registers_read(struct remote_thread *thread);

/* As perf events give them (perf_event_attr.sample_regs_user): which, how many that are, and from those the ones
   by DWARF number and the PC. */
#define REGISTERS_OF_PERF 33
extern const uint64_t registers_perf_mask;
extern const unsigned registers_perf_count;
void registers_from_perf(const uint64_t *perf, uint64_t *registers, uint64_t *pc);
