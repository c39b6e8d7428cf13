/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stubs of the sentinel, and the functions before which it is taken out. See sentinel.c and leaves.c.
 *
 * A procedure returns to a stub: all registers are as it left them, and stay so, but for x16, x17 (which belong
 * to the linker) and x30. Unwinders find the caller by the third word of a stub, where the sentinel's data is,
 * with the true address first. The stub is known by its address, which is in x30 for them.
 */
#include "agent/sentinel_stubs.h"

	.text
	.balign 16
	.cfi_startproc
	describe_stub 30, 0x8e
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

	LEAVES_EACH(LEAVE_BY)
	.section .note.GNU-stack, "", %progbits
