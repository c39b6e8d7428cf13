/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What probed functions are called through: see probes.c.
 *
 * A stub puts SP above the return address, and calls. So its own address takes the place of the return address, and the
 * function finds its arguments where they belong. Behind its code, a stub has the address of its entry in probe_table, as
 * a distance, for unwinders: the return address is there. They know the stub by its PC (register 16 for them). Its CFA
 * must be that of no other frame, since unwinders tell frames apart by that: so it is one byte above SP. The caller's SP
 * is SP, but for the instructions at 0 and 17 of a stub, where the return address is still there, or again.
 *
 * All registers stay as they are. Below SP, the kernel leaves 128 bytes alone when a signal comes.
 */
#include "agent/probe_stubs.h"

	.hidden probe_enter, probe_leave, probe_personality, probe_table
	.globl probe_stubs, probe_entry
	.hidden probe_stubs, probe_entry

	.text
	.balign 65536
	.cfi_startproc
	.cfi_personality 0x1b, probe_personality
	.cfi_def_cfa 7, 1
	.cfi_escape 0x16, 16, 14, 0x80, 0, 0x09, 0xe0, 0x1a /* stub = PC & -32 */
	.cfi_escape 0x12, 0x23, 24, 0x94, 4, 0x22, 0x23, 24, 0x06 /* what is at stub + 24 leads to the word */
	.cfi_escape 0x16, 7, 17, 0x80, 0, 0x4f, 0x1a /* PC & 31 */
	.cfi_escape 0x12, 0x30, 0x29, 0x16, 0x41, 0x29, 0x21 /* is 0 or 17: */
	.cfi_escape 0x33, 0x24, 0x77, 0, 0x22, 0x96 /* 8 more than SP */
probe_stubs:
	.set number, 0
	.rept PROBE_STUBS
	leaq 8(%rsp), %rsp
	call *probe_table + number * 16 + 8(%rip)
	pushq probe_table + number * 16(%rip)
	.byte 0xe9
	.long go_back - . - 4
	.fill 2, 1, 0xcc
	.long probe_table + number * 16 - .
	.long PROBE_SIGN
	.set number, number + 1
	.endr
	.cfi_endproc

	.macro save
	pushq %rax
	lahf
	seto %al
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	.endm

	.macro restore
	leaq -80(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	addb $0x7f, %al
	sahf
	popq %rax
	popq %rbp
	.endm

	/* From an island, with its first word on the stack. */
	.type probe_entry, @function
probe_entry:
	.cfi_startproc
	.cfi_def_cfa_offset 16
	pushq %rbp
	.cfi_def_cfa_offset 24
	.cfi_offset 6, -24
	movq %rsp, %rbp
	.cfi_def_cfa_register 6
	save
	movq 8(%rbp), %rdi
	leaq 16(%rbp), %rsi
	movq 16(%rbp), %rdx
	movq (%rbp), %rcx
	movq %rbx, %r8
	andq $-16, %rsp
	cld
	call probe_enter
	movq %rax, 8(%rbp)
	restore
	.cfi_def_cfa 7, 16
	.cfi_restore 6
	leaq 8(%rsp), %rsp
	.cfi_def_cfa_offset 8
	jmp *-8(%rsp)
	.cfi_endproc
	.size probe_entry, . - probe_entry

	/* From a stub: the function has returned, and the return address is where it was. */
	.type go_back, @function
go_back:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register 6
	save
	leaq 8(%rbp), %rdi
	andq $-16, %rsp
	cld
	call probe_leave
	restore
	.cfi_def_cfa 7, 8
	.cfi_restore 6
	ret
	.cfi_endproc
	.size go_back, . - go_back
	.section .note.GNU-stack, "", @progbits
