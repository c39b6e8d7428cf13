/* SPDX-License-Identifier: Apache-2.0 */
/* hand: functions written by hand, without unwind information, below a main in C (hand.c). */
	.text
	.globl	hand_tree
	.type	hand_tree, %function
hand_tree:
	stp	x19, x20, [sp, #-32]!
	str	x30, [sp, #16]
	mov	x19, x0
	cbz	x0, 1f
	sub	x0, x19, #1
	bl	hand_tree
	mov	x20, x0
	sub	x0, x19, #1
	bl	hand_tree
	add	x0, x0, x20
	add	x0, x0, #1
	b	2f
1:	sub	sp, sp, #48
	mov	x1, #20
3:	str	x1, [sp, #8]
	subs	x1, x1, #1
	b.ne	3b
	mov	x0, #1
	add	sp, sp, #48
2:	ldr	x30, [sp, #16]
	ldp	x19, x20, [sp], #32
	ret
	.size	hand_tree, . - hand_tree
	.section .note.GNU-stack, "", %progbits
