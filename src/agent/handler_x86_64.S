/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of the signal handler. The kernel has put its frame on the program's stack, or on our small
 * alternate stack (alternate_stack.c). There may be no room for more. So the rest runs on a stack of our own
 * (agent_stack, one for each thread), if there is one. If sample_on_signal returns true, the signal is not
 * ours. Then it goes to the program's handler, on the program's stack.
 */
	.text
	.hidden agent_stack
	.globl handler_entry
	.hidden handler_entry
	.type handler_entry, @function
handler_entry:
	.cfi_startproc
	endbr64
	movq %rsp, %rcx
	movq agent_stack@gottpoff(%rip), %rax
	movq %fs:(%rax), %rax
	testq %rax, %rax
	jz 1f
	movq %rax, %rsp
1:	andq $-16, %rsp
	pushq %rcx
	pushq %rdi
	pushq %rsi
	pushq %rdx
	call sample_on_signal
	popq %rdx
	popq %rsi
	popq %rdi
	popq %rsp
	testb %al, %al
	jnz 2f
	ret
2:	jmp signals_forward
	.cfi_endproc
	.size handler_entry, . - handler_entry
	.section .note.GNU-stack, "", @progbits
