/* SPDX-License-Identifier: Apache-2.0 */
#include "process/registers.h"

#include <elf.h>
#include <string.h>
#include <asm/perf_regs.h>
#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "process/remote.h"

const uint16_t native_machine = EM_AARCH64;

bool registers_read(struct remote_thread *thread)
{
	struct user_pt_regs regs;
	struct iovec all = {&regs, sizeof regs};
	if (ptrace(PTRACE_GETREGSET, thread->tid, NT_PRSTATUS, &all) || all.iov_len != sizeof regs)
		return false;
	memcpy(thread->registers, regs.regs, sizeof regs.regs); /* x0 to x30 */
	thread->registers[31] = regs.sp;
	thread->pc = regs.pc;
	return true;
}

bool registers_set_pc(pid_t tid, uint64_t pc)
{
	struct user_pt_regs regs;
	struct iovec all = {&regs, sizeof regs};
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &all) || all.iov_len != sizeof regs)
		return false;
	regs.pc = pc;
	return !ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &all);
}

/* The head of the vector registers, which begin at a multiple of 16 behind SP, PC and PSTATE. */
const struct registers_frame registers_signal_frame = {
	.mask = UINT64_MAX,
	.value = FPSIMD_MAGIC | (uint64_t)sizeof(struct fpsimd_context) << 32,
	.pc = 3,
	.sp = 4};

const uint64_t registers_perf_mask = (2ull << PERF_REG_ARM64_PC) - 1;
const unsigned registers_perf_count = PERF_REG_ARM64_PC + 1;

void registers_from_perf(const uint64_t *perf, uint64_t *registers, uint64_t *pc)
{
	memcpy(registers, perf, PERF_REG_ARM64_PC * sizeof *perf); /* x0 to x30, sp */
	*pc = perf[PERF_REG_ARM64_PC];
}
