/* SPDX-License-Identifier: Apache-2.0 */
/* A switch from stack to stack that is written by hand, as boost.context has it. */
#if defined(__aarch64__)
#define SAVED 0xb0 /* bytes that hand_switch saves, and where the PC is in them */
#define SAVED_PC 160
#else
#define SAVED 0x40
#define SAVED_PC 0x38
#endif

void *hand_switch(void *to); /* returns what was left */

__asm__(".text\n.p2align 4\n.globl hand_switch\n.type hand_switch,%function\nhand_switch:\n"
#if defined(__aarch64__)
	"sub sp, sp, #0xb0\n"
	"stp d8, d9, [sp]\n stp d10, d11, [sp, #16]\n stp d12, d13, [sp, #32]\n stp d14, d15, [sp, #48]\n"
	"stp x19, x20, [sp, #64]\n stp x21, x22, [sp, #80]\n stp x23, x24, [sp, #96]\n"
	"stp x25, x26, [sp, #112]\n stp x27, x28, [sp, #128]\n stp x29, x30, [sp, #144]\n"
	"str x30, [sp, #160]\n"
	"mov x4, sp\n mov sp, x0\n"
	"ldp d8, d9, [sp]\n ldp d10, d11, [sp, #16]\n ldp d12, d13, [sp, #32]\n ldp d14, d15, [sp, #48]\n"
	"ldp x19, x20, [sp, #64]\n ldp x21, x22, [sp, #80]\n ldp x23, x24, [sp, #96]\n"
	"ldp x25, x26, [sp, #112]\n ldp x27, x28, [sp, #128]\n ldp x29, x30, [sp, #144]\n"
	"mov x0, x4\n ldr x4, [sp, #160]\n add sp, sp, #0xb0\n ret x4\n"
#elif defined(__x86_64__)
	"leaq -0x38(%rsp), %rsp\n"
	"stmxcsr (%rsp)\n fnstcw 0x4(%rsp)\n"
	"movq %r12, 0x8(%rsp)\n movq %r13, 0x10(%rsp)\n movq %r14, 0x18(%rsp)\n"
	"movq %r15, 0x20(%rsp)\n movq %rbx, 0x28(%rsp)\n movq %rbp, 0x30(%rsp)\n"
	"movq %rsp, %rax\n movq %rdi, %rsp\n movq 0x38(%rsp), %r8\n"
	"ldmxcsr (%rsp)\n fldcw 0x4(%rsp)\n"
	"movq 0x8(%rsp), %r12\n movq 0x10(%rsp), %r13\n movq 0x18(%rsp), %r14\n"
	"movq 0x20(%rsp), %r15\n movq 0x28(%rsp), %rbx\n movq 0x30(%rsp), %rbp\n"
	"leaq 0x40(%rsp), %rsp\n jmp *%r8\n"
#endif
	".size hand_switch,.-hand_switch\n");
