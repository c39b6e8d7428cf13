/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/calibrate_cpu.h"

#ifdef __aarch64__

#include <sys/auxv.h>

#define HAS_ATOMICS (1u << 8) /* HWCAP_ATOMICS */

uint64_t calibrate_one_atomic(uint64_t *at, uint64_t rounds);
uint64_t calibrate_exclusive(uint64_t *at, uint64_t rounds);

uint64_t calibrate_atomic(uint64_t *at, uint64_t rounds)
{
	return getauxval(AT_HWCAP) & HAS_ATOMICS ? calibrate_one_atomic(at, rounds)
						 : calibrate_exclusive(at, rounds);
}

/* clang-format off */
#define PLAIN_12                                                                                   \
	"add x4, x4, #1\nadd x5, x5, #1\nadd x6, x6, #1\nadd x7, x7, #1\n"                         \
	"add x8, x8, #1\nadd x9, x9, #1\nadd x10, x10, #1\nadd x11, x11, #1\n"                     \
	"add x12, x12, #1\nadd x13, x13, #1\nadd x14, x14, #1\nadd x15, x15, #1\n"
#define FUNCTION(name) ".balign 64\n.globl " name "\n.hidden " name "\n.type " name ", %function\n" name ":\n"
#define LABEL(name) ".balign 64\n.globl " name "\n.hidden " name "\n" name ":\n"

__asm__(".text\n"
	FUNCTION("calibrate_chain")
	"mov x1, #1\nmov x2, x0\n1:\n.rept 64\nadd x0, x0, x1\n.endr\nsubs x2, x2, #1\nb.ne 1b\nret\n"
	FUNCTION("calibrate_plain")
	"1:\n.rept 48\nnop\nmov x4, #1\n.endr\nsubs x0, x0, #1\nb.ne 1b\nret\n"
	FUNCTION("calibrate_divide")
	"mov x1, x0\nmov x0, #1\nmov x2, #1\n1: udiv x0, x0, x2\nsubs x1, x1, #1\nb.ne 1b\nret\n"
	FUNCTION("calibrate_one_atomic")
	".arch_extension lse\nmov x3, #1\n1: ldaddal x3, x2, [x0]\nsubs x1, x1, #1\nb.ne 1b\nmov x0, x2\nret\n"
	FUNCTION("calibrate_exclusive")
	"1: ldxr x2, [x0]\nadd x2, x2, #1\nstxr w3, x2, [x0]\ncbnz w3, 1b\n"
	"subs x1, x1, #1\nb.ne 1b\nmov x0, x2\nret\n"
	FUNCTION("calibrate_load")
	LABEL("calibrate_load_loop")
	"ldr x0, [x0]\n" PLAIN_12 "subs x1, x1, #1\nb.ne calibrate_load_loop\nret\n"
	FUNCTION("calibrate_slow")
	"mov x1, x0\nmov x0, #1\nmov x2, #1\n"
	LABEL("calibrate_slow_loop")
	"udiv x0, x0, x2\n" PLAIN_12 "subs x1, x1, #1\nb.ne calibrate_slow_loop\nret\n");
/* clang-format on */

#endif
