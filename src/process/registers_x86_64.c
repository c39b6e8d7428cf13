/* SPDX-License-Identifier: Apache-2.0 */
#include "process/registers.h"

#include <elf.h>
#include <string.h>
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
