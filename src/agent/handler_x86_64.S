/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the signal handler: agent.h says what it does. */
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
