// SPDX-License-Identifier: Apache-2.0
// A program in assembly that follows no convention where it need not: its entry pushes as it likes, on
// a stack of its own, keeps a number in the frame pointer and never says that it is the end.
//
//     cc -nostdlib -static free.S -DROUNDS=100
	.text
	.globl	_start
_start:
#if defined(__x86_64__)
	lea	own_end(%rip), %rsp
	mov	$ROUNDS, %ebp
	push	$1
again:	call	work
	push	%rbp
	call	outer
	pop	%rbp
	dec	%ebp
	jne	again
	xor	%edi, %edi
	mov	$60, %eax
	syscall
work:	mov	$30, %ecx
1:	dec	%ecx
	jne	1b
	ret
outer:	push	%rbp
	xor	%ebp, %ebp
	call	work
	pop	%rbp
	ret
#else
	adrp	x0, own_end
	add	x0, x0, :lo12:own_end
	mov	sp, x0
	mov	w29, #ROUNDS
	sub	sp, sp, #32
again:	bl	work
	str	x29, [sp, #-16]!
	bl	outer
	ldr	x29, [sp], #16
	subs	w29, w29, #1
	b.ne	again
	mov	x0, #0
	mov	x8, #93
	svc	#0
work:	mov	x1, #30
1:	subs	x1, x1, #1
	b.ne	1b
	ret
outer:	stp	x29, x30, [sp, #-16]!
	mov	x29, #0
	bl	work
	ldp	x29, x30, [sp], #16
	ret
#endif
	.bss
	.balign	16
own:	.skip	65536
own_end:
	.skip	16
	.section .note.GNU-stack, "", %progbits
