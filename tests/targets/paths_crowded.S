/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of x86-64 in which all registers are in use where two branches in a row look at the same flags. Each is
   called with a number of rounds, and returns a sum. */
	.text

	/* Sets all registers but rdi, to values that add_all reads. */
	.macro fill_all
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	mov $1, %eax
	mov $2, %ecx
	mov $3, %edx
	mov $4, %ebx
	mov $5, %ebp
	mov $6, %esi
	mov $7, %r8d
	mov $8, %r9d
	mov $9, %r10d
	mov $11, %r12d
	mov $12, %r13d
	mov $13, %r14d
	mov $14, %r15d
	.endm

	.macro add_all
	add %rcx, %rax
	add %rdx, %rax
	add %rbx, %rax
	add %rbp, %rax
	add %rsi, %rax
	add %r8, %rax
	add %r9, %rax
	add %r10, %rax
	add %r12, %rax
	add %r13, %rax
	add %r14, %rax
	add %r15, %rax
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	.endm

	/* The second branch begins a block, which is reached with the flags of the first. */
	.globl crowded
	.type crowded, @function
crowded:
	fill_all
	mov $10, %r11d
1:	test $1, %dil
	je 2f
	add $3, %rcx
2:	cmp $5, %rdi
	ja 3f
	je 4f
	add $1, %rdx
	jmp 5f
3:	add $2, %rsi
	jmp 5f
4:	add $7, %r8
5:	dec %rdi
	jne 1b
	add %r11, %rax
	add_all
	ret
	.size crowded, . - crowded

	/* A loop goes on with flags that its first instruction reads. Only r11 is free. */
	.globl goes_round
	.type goes_round, @function
goes_round:
	fill_all
	mov $2, %r11d
	add %r11, %rcx
	cmp $4, %rdi
1:	je 2f
	jg 3f
	add $1, %rdx
	jmp 4f
2:	add $5, %rcx
	jmp 4f
3:	add $2, %rsi
4:	dec %rdi
	je 5f
	cmp $4, %rdi
	jmp 1b
5:	add_all
	ret
	.size goes_round, . - goes_round

	/* What it writes first is of no use to anybody, and no sign of rules of its own. */
	.globl in_vain
	.type in_vain, @function
in_vain:
	mov %rsi, %rax
	mov $1, %eax
1:	test $1, %dil
	je 2f
	add $3, %rax
2:	dec %rdi
	jne 1b
	ret
	.size in_vain, . - in_vain

	/* Somebody reads the middle of its table, so that seems to end there. */
	.globl longer
	.type longer, @function
longer:
	lea .Ltable(%rip), %rdx
	movslq (%rdx,%rdi,4), %rcx
	add %rdx, %rcx
	jmp *%rcx
.Lcase0:
	mov $3, %eax
	ret
.Lcase1:
	mov $5, %eax
	ret
.Lcase2:
	lea 4(%rdi), %rax
	ret
.Lcase3:
	lea 9(%rdi,%rdi), %rax
	ret
.Lcase4:
	lea 1(%rdi,%rdi,4), %rax
	ret
	.size longer, . - longer
	.section .rodata
	.balign 4
.Ltable:
	.long .Lcase0 - .Ltable, .Lcase1 - .Ltable
.Lmiddle:
	.long .Lcase2 - .Ltable, .Lcase3 - .Ltable, .Lcase4 - .Ltable
	.text

	.globl reads_middle
	.type reads_middle, @function
reads_middle:
	lea .Lmiddle(%rip), %rax
	mov (%rax), %eax
	and $15, %eax
	ret
	.size reads_middle, . - reads_middle

	/* Goes on elsewhere, as to code that is seldom run. What that reads is in registers that are not for arguments. */
	.globl goes_on
	.type goes_on, @function
goes_on:
	xor %r10d, %r10d
	add $9, %r10
	xor %r11d, %r11d
	add $10, %r11
	xor %eax, %eax
	test $1, %dil
	je 1f
	add $3, %r10
1:	test $2, %dil
	je 2f
	add $5, %r11
2:	jmp goes_on_there
	.size goes_on, . - goes_on

	.globl goes_on_there
	.type goes_on_there, @function
goes_on_there:
	test $4, %dil
	je 1f
	add %r10, %rax
1:	add %r10, %rax
	add %r11, %rax
	ret
	.size goes_on_there, . - goes_on_there

	/* Changes one register only, and who calls it knows that. */
	.globl changes_one
	.type changes_one, @function
changes_one:
	xor %eax, %eax
	test $1, %dil
	je 1f
	add $3, %rax
1:	test $2, %dil
	je 2f
	add $5, %rax
2:	test $4, %dil
	je 3f
	add $7, %rax
3:	ret
	.size changes_one, . - changes_one

	.globl knows_that
	.type knows_that, @function
knows_that:
	xor %ecx, %ecx
	xor %edx, %edx
	xor %esi, %esi
	xor %r8d, %r8d
	xor %r9d, %r9d
	xor %r10d, %r10d
	xor %r11d, %r11d
	add %rdi, %rcx
	add %rcx, %rdx
	add %rdx, %rsi
	add %rsi, %r8
	add %r8, %r9
	add %r9, %r10
	add %r10, %r11
	call changes_one
	add %rcx, %rax
	add %rdx, %rax
	add %rsi, %rax
	add %r8, %rax
	add %r9, %rax
	add %r10, %rax
	add %r11, %rax
	ret
	.size knows_that, . - knows_that

	/* Which way it came is kept over a call. */
	.globl keeps_sum
	.type keeps_sum, @function
keeps_sum:
	push %rbx
	mov %rdi, %rbx
	test $1, %dil
	je 1f
	add $3, %rbx
1:	test $2, %dil
	je 2f
	add $5, %rbx
2:	call changes_one
	add %rbx, %rax
	test $4, %bl
	je 3f
	add $7, %rax
3:	pop %rbx
	ret
	.size keeps_sum, . - keeps_sum

	/* The same over two calls. At the second one the stack pointer is higher: arguments on the stack are gone. */
	.globl keeps_over_two
	.type keeps_over_two, @function
keeps_over_two:
	push %rbx
	mov %rdi, %rbx
	test $1, %dil
	je 1f
	add $3, %rbx
1:	test $2, %dil
	je 2f
	add $5, %rbx
2:	push $0
	push $0
	push $0
	push $0
	mov %rbx, %rdi
	call keeps_sum
	add $32, %rsp
	mov %rax, %rdi
	call keeps_sum
	test $4, %bl
	je 3f
	add $7, %rax
3:	pop %rbx
	ret
	.size keeps_over_two, . - keeps_over_two

	.globl main
	.type main, @function
main:
	push %rbx
	xor %ebx, %ebx
	mov $12, %edi
	call crowded
	add %rax, %rbx
	mov $9, %edi
	call goes_round
	add %rax, %rbx
	mov $6, %edi
	call in_vain
	add %rax, %rbx
	call reads_middle
	add %rax, %rbx
	mov $4, %edi
1:	push %rdi
	push %rdi
	call longer
	pop %rdi
	pop %rdi
	add %rax, %rbx
	dec %rdi
	jns 1b
	mov $7, %edi
2:	call goes_on
	add %rax, %rbx
	call knows_that
	add %rax, %rbx
	push %rdi
	call keeps_over_two
	pop %rdi
	add %rax, %rbx
	dec %rdi
	jns 2b
	mov %rbx, %rax
	and $127, %eax
	pop %rbx
	ret
	.size main, . - main
	.section .note.GNU-stack, "", @progbits
