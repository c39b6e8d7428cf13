/* SPDX-License-Identifier: Apache-2.0 */
/* What the code of copies calls: contexts.h says when. All registers are as they were, or the frame
   says; flags are not. The stack may be of any
   alignment. */
	.macro SAVE reg
	pushq %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %\reg, 0
	.endm
	.macro GIVE_BACK reg
	popq %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore %\reg
	.endm
	.macro ENTRY name, kind
	.globl \name
	.hidden \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	SAVE rax
	SAVE rcx
	SAVE rdx
	SAVE rsi
	SAVE rdi
	SAVE rbp
	SAVE r8
	SAVE r9
	SAVE r10
	SAVE r11
	pushq $\kind
	.cfi_adjust_cfa_offset 8
	cld
	movq %rsp, %rdi
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	andq $-16, %rsp
	call context_slow
	movq %rbp, %rsp
	.cfi_def_cfa_register %rsp
	leaq 8(%rsp), %rsp
	.cfi_adjust_cfa_offset -8
	GIVE_BACK r11
	GIVE_BACK r10
	GIVE_BACK r9
	GIVE_BACK r8
	GIVE_BACK rbp
	GIVE_BACK rdi
	GIVE_BACK rsi
	GIVE_BACK rdx
	GIVE_BACK rcx
	GIVE_BACK rax
	ret
	.cfi_endproc
	.size \name, . - \name
	.endm

	.text
	.hidden context_slow
	ENTRY context_enter, 0
	ENTRY context_enter_direct, 1
	ENTRY context_check, 2
	.section .note.GNU-stack, "", @progbits
