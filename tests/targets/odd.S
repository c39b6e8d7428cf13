/* SPDX-License-Identifier: Apache-2.0 */
/*
 * int odd(int (*callback)(int), int value): a procedure without unwind information and with no
 * prologue that a debugger could guess. A register holds the size of the frame, the return address
 * (aarch64) is saved by way of another register at an unusual place, the frame pointer is a number.
 */
	.text
	.globl odd
	.type odd, %function
odd:
#ifdef __aarch64__
	cbnz x0, 1f
	mov w0, #0
	ret
1:	mov x16, x30
	mov x17, #0x1230
	sub sp, sp, x17
	str x16, [sp, #0x48]
	str x29, [sp, #0x90]
	mov x29, #7
	mov x2, x0
	mov w0, w1
	blr x2
	add w0, w0, w29
	ldr x29, [sp, #0x90]
	ldr x30, [sp, #0x48]
	mov x17, #0x1230
	add sp, sp, x17
	ret
#else
	test %rdi, %rdi
	jne 1f
	xor %eax, %eax
	ret
1:	push %rbx
	mov $0x1230, %eax
	sub %rax, %rsp
	mov %rbp, 0x40(%rsp)
	mov $7, %ebp
	mov %rdi, %rax
	mov %esi, %edi
	call *%rax
	add %ebp, %eax
	mov 0x40(%rsp), %rbp
	mov $0x1230, %ecx
	add %rcx, %rsp
	pop %rbx
	ret
#endif
	.size odd, . - odd
	.section .note.GNU-stack, "", %progbits
