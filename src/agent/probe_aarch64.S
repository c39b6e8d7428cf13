/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probed functions are called through: see probes.c.
 *
 * A stub has the address of its entry in probe_table behind its code, as a distance, for unwinders: the return address is
 * there. They know the stub by the return address of the frame before, which is in x30 for them, perhaps signed. Its
 * CFA must be that of no other frame, since unwinders tell frames apart by that: so it is one byte above SP.
 *
 * x16 and x17 belong to the linker, which may use them between any two functions. All other registers stay as they are.
 */
#include "agent/probe_stubs.h"

	.hidden probe_enter, probe_leave, probe_personality, probe_table
	.globl probe_stubs, probe_entry
	.hidden probe_stubs, probe_entry

	.text
	.balign 65536
	.cfi_startproc
	.cfi_personality 0x1b, probe_personality
	.cfi_def_cfa 31, 1
	.cfi_escape 0x16, 31, 2, 0x8f, 0     /* SP is SP */
	.cfi_escape 0x16, 30, 43, 0x8e, 0    /* word = x30 */
	.cfi_escape 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x1a /* without its signature */
	.cfi_escape 0x12, 0x09, 0xe0, 0x1a   /* stub = word & -32 */
	.cfi_escape 0x12, 0x23, 20, 0x94, 4  /* if what is at stub + 20 */
	.cfi_escape 0x0c, 0x06, 0x16, 0x0e, 0x1e, 0x2e, 0x28, 12, 0 /* is PROBE_SIGN: */
	.cfi_escape 0x12, 0x23, 16, 0x94, 4, 0x22, 0x23, 16, 0x06 /* what is at stub + 16 leads to the word */
	.cfi_escape 0x2f, 1, 0
	.cfi_escape 0x13                     /* else it is the word */
probe_stubs:
	.set number, 0
	.rept PROBE_STUBS
	ldr x17, probe_table + number * 16 + 8
	blr x17
	ldr x30, probe_table + number * 16
	b go_back
	.word probe_table + number * 16 - .
	.word PROBE_SIGN
	.word 0, 0
	.set number, number + 1
	.endr
	.cfi_endproc

	.macro save
	stp x29, x30, [sp, #-176]!
	.cfi_def_cfa_offset 176
	.cfi_offset 29, -176
	.cfi_offset 30, -168
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
	.endm

	.macro restore
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
	ldp x29, x30, [sp], #176
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	.endm

	/* From an island, with its first word in x16. */
	.type probe_entry, %function
probe_entry:
	.cfi_startproc
	hint #38 /* bti jc */
	save
	mov x3, x29
	mov x29, sp
	mov x0, x16
	add x1, sp, #176
	mov x2, x30
	mov x4, x19
	bl probe_enter
	mov x16, x0
	restore
	br x16
	.cfi_endproc
	.size probe_entry, . - probe_entry

	/* From a stub: the function has returned. */
	.type go_back, %function
go_back:
	.cfi_startproc
	save
	mov x29, sp
	add x0, sp, #176
	bl probe_leave
	restore
	ret
	.cfi_endproc
	.size go_back, . - go_back
	.section .note.GNU-stack, "", %progbits
