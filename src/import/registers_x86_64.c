/* SPDX-License-Identifier: Apache-2.0 */
#include "import/registers.h"

#include <elf.h>

/* perf: ax bx cx dx si di bp sp ip flags, six segments, r8 to r15. */
const struct perf_cpu perf_cpu_x86_64 = {
	.elf_machine = EM_X86_64,
	.pc = 8,
	.numbers = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23,
		    [16 ... CPU_REGISTERS - 1] = PERF_NO_REGISTER},
};
