/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The registers of the place where it is used, by DWARF number: those that callers may count on. */
#include <stdint.h>

static inline __attribute__((always_inline)) uint64_t local_registers(uint64_t *r)
{
	uint64_t pc;
#if defined(__aarch64__)
	__asm__ volatile("stp x19, x20, [%1, #152]\n\tstp x21, x22, [%1, #168]\n\t"
			 "stp x23, x24, [%1, #184]\n\tstp x25, x26, [%1, #200]\n\t"
			 "stp x27, x28, [%1, #216]\n\tstp x29, x30, [%1, #232]\n\t"
			 "mov %0, sp\n\tstr %0, [%1, #248]\n\tadr %0, ."
			 : "=&r"(pc)
			 : "r"(r)
			 : "memory");
#elif defined(__x86_64__)
	__asm__ volatile("movq %%rbx, 24(%1)\n\tmovq %%rbp, 48(%1)\n\tmovq %%rsp, 56(%1)\n\t"
			 "movq %%r12, 96(%1)\n\tmovq %%r13, 104(%1)\n\tmovq %%r14, 112(%1)\n\t"
			 "movq %%r15, 120(%1)\n\tleaq (%%rip), %0"
			 : "=&r"(pc)
			 : "r"(r)
			 : "memory");
#else
#error "no registers for this CPU"
#endif
	return pc;
}
