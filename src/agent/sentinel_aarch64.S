/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of the sentinel, and the functions before which it is taken out. See sentinel.c and leaves.c.
 *
 * A procedure returns to a stub: all registers are as it left them, and stay so, but for x16, x17 (which belong
 * to the linker) and x30. Unwinders find the caller by the third word of a stub, where the sentinel's data is,
 * with the true address first. The stub is known by its address, which is in x30 for them.
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
	/* A signal frame, as its CFA is that of the next one: unwinders tell frames apart by that. So the caller
	   stands right on an instruction, that of the call: at the true address - 1. Of x30, which is read
	   from the stack, and may be the true address by now: */
	.cfi_signal_frame
	.cfi_escape 0x16, 30, 31, 0x8e, 0    /* word: */
	.cfi_escape 0x12, 0x09, 0xf0, 0x1a   /* stub = word & -16 */
	.cfi_escape 0x12, 0x23, 12, 0x94, 4  /* if what is at stub + 12 */
	.cfi_escape 0x0c, 0x73, 0x65, 0x6e, 0x74, 0x2e, 0x28, 8, 0 /* is SENTINEL_SIGN: */
	.cfi_escape 0x23, 8, 0x12, 0x94, 4, 0x22 /* what is at stub + 8 leads to the data */
	.cfi_escape 0x06, 0x16               /* with the true word in front */
	.cfi_escape 0x13, 0x31, 0x1c         /* - 1 */
	.rept 4
	nop /* a caller is looked for right before its return address */
	.endr
sentinel_stubs:
	.set number, 0
	.rept SENTINELS
	adr x30, .
	b go_on
	.word sentinels + number * SENTINEL_SIZE - .
	.word SENTINEL_SIGN
	.set number, number + 1
	.endr
	.cfi_endproc

	.type go_on, %function
go_on:
	.cfi_startproc
	stp x29, x30, [sp, #-192]!
	.cfi_def_cfa_offset 192
	.cfi_offset 29, -192
	.cfi_offset 30, -184
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	stp x8, x9, [sp, #80]
	stp x10, x11, [sp, #96]
	stp x12, x13, [sp, #112]
	stp x14, x15, [sp, #128]
	mrs x15, nzcv
	stp x18, x15, [sp, #144]
	mov x0, x30
	add x1, sp, #192
	bl sentinel_returned
	str x0, [sp, #8]
	ldp x18, x15, [sp, #144]
	msr nzcv, x15
	ldp x14, x15, [sp, #128]
	ldp x12, x13, [sp, #112]
	ldp x10, x11, [sp, #96]
	ldp x8, x9, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #192
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	ret
	.cfi_endproc
	.size go_on, . - go_on

	.macro leave_by name, number
	.globl \name
	.type \name, %function
\name:
	.cfi_startproc
	bti c
	stp x29, x30, [sp, #-96]!
	.cfi_def_cfa_offset 96
	.cfi_offset 29, -96
	.cfi_offset 30, -88
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	mov x0, #\number
	add x1, sp, #96
	add x2, sp, #8
	bl leaves_begin
	mov x16, x0
	ldr x8, [sp, #80]
	ldp x6, x7, [sp, #64]
	ldp x4, x5, [sp, #48]
	ldp x2, x3, [sp, #32]
	ldp x0, x1, [sp, #16]
	ldp x29, x30, [sp], #96
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	br x16
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
	.section .note.GNU-stack, "", %progbits
