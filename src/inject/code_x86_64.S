/* SPDX-License-Identifier: Apache-2.0 */
/* What runs in the process: cpu.h says what it does. It is only copied from here. */
#include "safe/late.h"

	.section .rodata
	.balign 16
	.globl inject_code, inject_done, inject_saved, inject_code_end
	.hidden inject_code, inject_done, inject_saved, inject_code_end
inject_code: /* of the new thread; rdi: struct late */
	endbr64
	pushq %rbx
	movq %rdi, %rbx
	movl $LATE_BEGUN, LATE_STATE(%rbx)
	leaq LATE_LIBRARY(%rbx), %rdi
	movl $LATE_FLAGS, %esi
	call *LATE_DLOPEN(%rbx)
	testq %rax, %rax
	jz 1f
	movq %rax, %rdi
	leaq LATE_FUNCTION(%rbx), %rsi
	call *LATE_DLSYM(%rbx)
	testq %rax, %rax
	jz 1f
	movl $LATE_LOADED, LATE_STATE(%rbx)
	movq %rbx, %rdi
	popq %rbx
	jmp *%rax
1:	call *LATE_DLERROR(%rbx)
	testq %rax, %rax
	jz 3f
	leaq LATE_WHY(%rbx), %rdi
	movl $(LATE_WHY_SIZE - 1), %ecx
2:	movb (%rax), %dl
	testb %dl, %dl
	jz 3f
	movb %dl, (%rdi)
	incq %rax
	incq %rdi
	decl %ecx
	jnz 2b
3:	movl $LATE_FAILED, LATE_STATE(%rbx)
	xorl %eax, %eax
	popq %rbx
	ret
inject_done: /* of the borrowed thread: the call has returned; rax: what it returned */
	endbr64
	movq %rax, %r10
4:	movl $15, %eax /* rt_sigreturn */
	syscall
	jmp 4b
	.balign 8
inject_saved:
inject_code_end:
	.section .note.GNU-stack, "", @progbits
