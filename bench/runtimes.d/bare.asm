; SPDX-License-Identifier: Apache-2.0
; bare SECONDS: nasm, without a C library, without unwind information.
	global	_start
	section	.text
tree:	push	rbx
	push	r12
	mov	rbx, rdi
	test	rdi, rdi
	jz	.leaf
	lea	rdi, [rbx - 1]
	call	tree
	mov	r12, rax
	lea	rdi, [rbx - 1]
	call	tree
	add	rax, r12
	jmp	.done
.leaf:	mov	ecx, 20
.spin:	dec	rcx
	jnz	.spin
	mov	eax, 1
.done:	pop	r12
	pop	rbx
	ret
now:	sub	rsp, 24
	mov	eax, 228
	mov	edi, 1
	mov	rsi, rsp
	syscall
	mov	rax, [rsp]
	add	rsp, 24
	ret
_start:	mov	r13d, 5
	cmp	qword [rsp], 2
	jl	.begin
	mov	rsi, [rsp + 16]
	xor	r13d, r13d
.digit:	movzx	eax, byte [rsi]
	sub	eax, '0'
	jl	.begin
	imul	r13, r13, 10
	add	r13, rax
	inc	rsi
	jmp	.digit
.begin:	call	now
	add	r13, rax
.again:	mov	edi, 14
	call	tree
	call	now
	cmp	rax, r13
	jl	.again
	mov	eax, 231
	xor	edi, edi
	syscall
