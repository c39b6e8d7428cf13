/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of the sentinel, and the functions before which it is taken out. See sentinel.c and leaves.c.
 *
 * A procedure returns to a stub: all registers are as it left them, and stay so. The stub calls, which puts its own
 * address into the slot that the return address was in; the true one is put there later. Unwinders find the
 * caller by the third word of a stub, where the sentinel's data is, with the true address first. The
 * stub is known by its address, which is the return address for them (register 16).
 */
#define SENTINELS 4096
#define SENTINEL_SIZE 32
#define SENTINEL_SIGN 0x746e6573

	.text
	.hidden sentinels, sentinel_returned, leaves_begin
	.globl sentinel_stubs
	.hidden sentinel_stubs
	.balign 16
	.cfi_startproc
	.cfi_def_cfa_offset 0
	/* A signal frame, as its CFA is that of the next one: unwinders tell frames apart by that. So the caller
	   stands right on an instruction, that of the call: at the true address - 1. Of register 16, which is read
	   from the stack, and may be the true address by now: */
	.cfi_signal_frame
	.cfi_escape 0x16, 16, 31, 0x80, 0    /* word: */
	.cfi_escape 0x12, 0x09, 0xf0, 0x1a   /* stub = word & -16 */
	.cfi_escape 0x12, 0x23, 12, 0x94, 4  /* if what is at stub + 12 */
	.cfi_escape 0x0c, 0x73, 0x65, 0x6e, 0x74, 0x2e, 0x28, 8, 0 /* is SENTINEL_SIGN: */
	.cfi_escape 0x23, 8, 0x12, 0x94, 4, 0x22 /* what is at stub + 8 leads to the data */
	.cfi_escape 0x06, 0x16               /* with the true word in front */
	.cfi_escape 0x13, 0x31, 0x1c         /* - 1 */
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

	leave_by _Unwind_RaiseException, 0
	leave_by _Unwind_ForcedUnwind, 1
	leave_by _Unwind_Resume, 2
	leave_by _Unwind_Resume_or_Rethrow, 3
	leave_by _Unwind_Backtrace, 4
	leave_by backtrace, 5
	leave_by pthread_exit, 6
	leave_by thrd_exit, 7
	leave_by swapcontext, 8
	leave_by setcontext, 9
	leave_by dlopen, 10
	leave_by dlmopen, 11
	leave_by dlsym, 12
	.section .note.GNU-stack, "", @progbits
