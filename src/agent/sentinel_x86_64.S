/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of the sentinel, and the functions before which it is taken out. See sentinel.c and leaves.c.
 *
 * A procedure returns to a stub: all registers are as it left them, and stay so. The stub calls, which puts its own
 * address into the slot that the return address was in; the true one is put there later. Unwinders find the
 * caller by the third word of a stub, where the sentinel's data is, with the true address first. The
 * stub is known by its address, which is the return address for them (register 16).
 */
#include "agent/sentinel_stubs.h"

	.text
	.balign 16
	.cfi_startproc
	.cfi_def_cfa_offset 0
	describe_stub 16, 0x80
	.fill 16, 1, 0x90 /* a caller is looked for right before its return address */
sentinel_stubs:
	.set number, 0
	.rept SENTINELS
	call go_on
	.fill 3, 1, 0xcc
	.long sentinels + number * SENTINEL_SIZE - .
	.long SENTINEL_SIGN
	.set number, number + 1
	.endr
	.cfi_endproc

	.type go_on, @function
go_on:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register 6
	pushfq
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	movq 8(%rbp), %rdi
	leaq 16(%rbp), %rsi
	andq $-16, %rsp
	cld
	call sentinel_returned
	movq %rax, 8(%rbp)
	leaq -80(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	popfq
	popq %rbp
	.cfi_def_cfa 7, 8
	.cfi_restore 6
	ret
	.cfi_endproc
	.size go_on, . - go_on

	.macro leave_by name, number
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	endbr64
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register 6
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	movl $\number, %edi
	leaq 16(%rbp), %rsi
	leaq 8(%rbp), %rdx
	andq $-16, %rsp
	call leaves_begin
	movq %rax, %r11
	leaq -64(%rbp), %rsp
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	popq %rbp
	.cfi_def_cfa 7, 8
	.cfi_restore 6
	jmp *%r11
	.cfi_endproc
	.size \name, . - \name
	.endm

	LEAVES_EACH(LEAVE_BY)
	.section .note.GNU-stack, "", @progbits
