/* SPDX-License-Identifier: Apache-2.0 */
/* What runs in the process: cpu.h says what it does. It is only copied from here. */
#include "safe/late.h"

	.section .rodata
	.balign 16
	.globl inject_code, inject_done, inject_saved, inject_code_end
	.hidden inject_code, inject_done, inject_saved, inject_code_end
inject_code: /* of the new thread; x0: struct late */
	hint #34 /* bti c */
	stp x29, x30, [sp, #-32]!
	mov x29, sp
	str x19, [sp, #16]
	mov x19, x0
	mov w9, #LATE_BEGUN
	str w9, [x19, #LATE_STATE]
	ldr x9, [x19, #LATE_DLOPEN]
	add x0, x19, #LATE_LIBRARY
	mov w1, #LATE_FLAGS
	blr x9
	cbz x0, 1f
	ldr x9, [x19, #LATE_DLSYM]
	mov x1, #LATE_FUNCTION
	add x1, x19, x1
	blr x9
	cbz x0, 1f
	mov x16, x0
	mov w10, #LATE_LOADED
	str w10, [x19, #LATE_STATE]
	mov x0, x19
	ldr x19, [sp, #16]
	ldp x29, x30, [sp], #32
	br x16
1:	ldr x9, [x19, #LATE_DLERROR]
	blr x9
	cbz x0, 3f
	mov x1, #LATE_WHY
	add x1, x19, x1
	mov w3, #(LATE_WHY_SIZE - 1)
2:	ldrb w2, [x0], #1
	cbz w2, 3f
	strb w2, [x1], #1
	subs w3, w3, #1
	b.ne 2b
3:	add x1, x19, #LATE_STATE
	mov w10, #LATE_FAILED
	stlr w10, [x1]
	mov x0, #0
	ldr x19, [sp, #16]
	ldp x29, x30, [sp], #32
	ret
inject_done: /* of the borrowed thread: the call has returned; x0: what it returned */
	hint #34
	mov x10, x0
4:	adr x9, inject_saved
	ldp x0, x1, [x9]
	ldp x2, x3, [x9, #16]
	ldp x4, x5, [x9, #32]
	ldp x6, x7, [x9, #48]
	mov x8, #139 /* rt_sigreturn */
	svc #0
	b 4b
	.balign 8
inject_saved:
	.skip 64 /* x0 to x7 */
inject_code_end:
	.section .note.GNU-stack, "", %progbits
