/* SPDX-License-Identifier: Apache-2.0 */
/* syscall() without a stack frame, so that a system call that returns twice (vfork) finds the stack
   unchanged. See exec.c. */
	.text
	.globl syscall
	.type syscall, %function
syscall:
	.cfi_startproc
	bti c
	cmp x0, #221 /* SYS_execve */
	b.eq agent_syscall
	cmp x0, #281 /* SYS_execveat */
	b.eq agent_syscall
	cmp x0, #98 /* SYS_futex */
	b.eq agent_syscall
	cmp x0, #277 /* SYS_seccomp */
	b.eq agent_syscall
	adrp x16, agent_real_syscall
	ldr x16, [x16, :lo12:agent_real_syscall]
	cbz x16, agent_syscall
	br x16
	.cfi_endproc
	.size syscall, . - syscall
	.section .note.GNU-stack, "", %progbits
