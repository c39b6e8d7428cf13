/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/calibrate_cpu.h"

#ifdef __x86_64__

/* clang-format off */
#define PLAIN_12                                                                                   \
	"lea 1(%r8), %r8\nlea 1(%r9), %r9\nlea 1(%r10), %r10\nlea 1(%r11), %r11\n"                 \
	"lea 1(%rcx), %rcx\nlea 1(%rdx), %rdx\nlea 2(%r8), %r8\nlea 2(%r9), %r9\n"                 \
	"lea 2(%r10), %r10\nlea 2(%r11), %r11\nlea 2(%rcx), %rcx\nlea 2(%rdx), %rdx\n"
#define FUNCTION(name) ".balign 64\n.globl " name "\n.hidden " name "\n.type " name ", @function\n" name ":\n"
#define LABEL(name) ".balign 64\n.globl " name "\n.hidden " name "\n" name ":\n"

__asm__(".text\n"
	FUNCTION("calibrate_chain")
	"mov $1, %ecx\nmov $0, %eax\n1:\n.rept 64\nadd %rcx, %rax\n.endr\nsub $1, %rdi\njnz 1b\nret\n"
	FUNCTION("calibrate_plain")
	"1:\n.rept 96\nnop\n.endr\nsub $1, %rdi\njnz 1b\nret\n"
	FUNCTION("calibrate_divide")
	"mov $1, %eax\nmov $1, %ecx\n1: xor %edx, %edx\ndiv %rcx\nsub $1, %rdi\njnz 1b\nret\n"
	FUNCTION("calibrate_atomic")
	"mov $1, %eax\n1: lock xadd %rax, (%rdi)\nsub $1, %rsi\njnz 1b\nret\n"
	FUNCTION("calibrate_load")
	LABEL("calibrate_load_loop")
	"{disp8} mov (%rdi), %rdi\n" PLAIN_12 "sub $1, %rsi\njnz calibrate_load_loop\nmov %rdi, %rax\nret\n"
	FUNCTION("calibrate_slow")
	"mov $1, %eax\ncvtsi2sd %rax, %xmm0\n"
	LABEL("calibrate_slow_loop")
	"sqrtsd %xmm0, %xmm0\n" PLAIN_12 "sub $1, %rdi\njnz calibrate_slow_loop\nret\n");
/* clang-format on */

#endif
