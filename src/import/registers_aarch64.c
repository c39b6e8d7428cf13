/* SPDX-License-Identifier: Apache-2.0 */
#include "import/registers.h"

#include <elf.h>

/* perf: x0 to x30, sp, pc; the same as DWARF's numbers. */
const struct perf_cpu perf_cpu_aarch64 = {
	.elf_machine = EM_AARCH64,
	.pc = 32,
	.numbers = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
};
