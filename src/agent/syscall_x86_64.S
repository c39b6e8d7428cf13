/* SPDX-License-Identifier: Apache-2.0 */
/* syscall(), without a frame of its own: a call that returns twice (vfork) finds its stack as it was.
   See exec.c. */
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
	/* the seventh argument is on the stack already, as agent_syscall expects it */
	jmp agent_syscall
	.cfi_endproc
	.size syscall, . - syscall
	.section .note.GNU-stack, "", @progbits
