/* SPDX-License-Identifier: Apache-2.0 */
/* syscall() without a stack frame, so that a system call that returns twice (vfork) finds the stack
   unchanged. See exec.c. */
	.text
	.globl syscall
	.type syscall, @function
syscall:
	.cfi_startproc
	endbr64
	cmpq $59, %rdi /* SYS_execve */
	je slow
	cmpq $322, %rdi /* SYS_execveat */
	je slow
	cmpq $202, %rdi /* SYS_futex */
	je slow
	cmpq $317, %rdi /* SYS_seccomp */
	je slow
	movq agent_real_syscall(%rip), %rax
	testq %rax, %rax
	jz slow
	jmp *%rax
slow:
	/* the seventh argument is already on the stack, where agent_syscall expects it */
	jmp agent_syscall
	.cfi_endproc
	.size syscall, . - syscall
	.section .note.GNU-stack, "", @progbits
