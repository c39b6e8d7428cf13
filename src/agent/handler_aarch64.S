/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the signal handler: agent.h says what it does. */
	.text
	.hidden agent_stack
	.globl handler_entry
	.hidden handler_entry
	.type handler_entry, %function
handler_entry:
	.cfi_startproc
	bti c
	mov x9, sp
	mrs x10, tpidr_el0
	adrp x11, :gottprel:agent_stack
	ldr x11, [x11, :gottprel_lo12:agent_stack]
	ldr x11, [x10, x11]
	cbz x11, 1f
	mov sp, x11
1:	stp x9, x30, [sp, #-48]!
	stp x0, x1, [sp, #16]
	str x2, [sp, #32]
	bl sample_on_signal
	mov w10, w0
	ldp x0, x1, [sp, #16]
	ldr x2, [sp, #32]
	ldp x9, x30, [sp]
	mov sp, x9
	cbnz w10, signals_forward
	ret
	.cfi_endproc
	.size handler_entry, . - handler_entry
	.section .note.GNU-stack, "", %progbits
