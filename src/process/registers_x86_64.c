/* SPDX-License-Identifier: Apache-2.0 */
#include "process/registers.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <asm/perf_regs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "process/remote.h"

const uint16_t native_machine = EM_X86_64;

bool registers_read(struct remote_thread *thread)
{
	struct user_regs_struct regs;
	struct iovec all = {&regs, sizeof regs};
	if (ptrace(PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &all) || all.iov_len != sizeof regs)
		return false;
	const uint64_t by_number[] = {
		regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp,
		regs.r8,  regs.r9,  regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
	};
	memcpy(thread->registers, by_number, sizeof by_number);
	thread->pc = regs.rip;
	return true;
}

bool registers_set_pc(pid_t tid, uint64_t pc)
{
	return !ptrace(PTRACE_POKEUSER, tid, (void *)offsetof(struct user, regs.rip), (void *)pc);
}

/* The segments: cs, gs, fs, ss. Before them are the flags. */
const struct registers_frame registers_signal_frame = {
	.mask = UINT64_MAX, .value = 0x002b000000000033, .pc = 2, .sp = 3};

/* perf gives the registers in the order of its own numbers. Those between these (flags, segments) are not
   asked for. */
#define BITS(first, last) ((2ull << (last)) - (1ull << (first)))
const uint64_t registers_perf_mask = BITS(PERF_REG_X86_AX, PERF_REG_X86_IP) |
				     BITS(PERF_REG_X86_R8, PERF_REG_X86_R15);
const unsigned registers_perf_count = 17;

void registers_from_perf(const uint64_t *perf, uint64_t *registers, uint64_t *pc)
{
	static const uint8_t order[] = {PERF_REG_X86_AX, PERF_REG_X86_DX, PERF_REG_X86_CX,
					PERF_REG_X86_BX, PERF_REG_X86_SI, PERF_REG_X86_DI,
					PERF_REG_X86_BP, PERF_REG_X86_SP};
	for (unsigned i = 0; i < sizeof order; i++)
		registers[i] = perf[order[i]];
	memcpy(registers + 8, perf + PERF_REG_X86_IP + 1, 8 * sizeof *perf); /* r8 to r15 */
	*pc = perf[PERF_REG_X86_IP];
}
