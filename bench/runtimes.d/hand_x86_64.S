/* SPDX-License-Identifier: Apache-2.0 */
/* hand: functions written by hand, without unwind information, below a main in C (hand.c). */
	.text
	.globl	hand_tree
	.type	hand_tree, @function
hand_tree:
	push	%rbx
	push	%r12
	mov	%rdi, %rbx
	test	%rdi, %rdi
	jz	1f
	lea	-1(%rbx), %rdi
	call	hand_tree
	mov	%rax, %r12
	lea	-1(%rbx), %rdi
	call	hand_tree
	add	%r12, %rax
	inc	%rax
	jmp	2f
1:	sub	$40, %rsp
	mov	$20, %ecx
3:	mov	%rcx, 8(%rsp)
	dec	%rcx
	jnz	3b
	mov	$1, %eax
	add	$40, %rsp
2:	pop	%r12
	pop	%rbx
	ret
	.size	hand_tree, . - hand_tree
	.section .note.GNU-stack, "", @progbits
