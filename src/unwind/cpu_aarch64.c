/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cpu.h"

#include <elf.h>

/* At SP in the trampoline: siginfo (128 bytes), then ucontext, whose machine context begins after
   176 bytes with the fault address, x0-x30, SP, PC. */
#define SAVED(n) (128 + 176 + 8 + 8 * (n))

const struct unwind_cpu unwind_cpu_aarch64 = {
	.elf_machine = EM_AARCH64,
	.sp = 31,
	.fp = 29,
	.link = 30,
	.extra = 19,
	.call_pushes = 0,
	.red_zone = 0,
	.kept_below = 8,
	.address_bits = (1ull << 48) - 1, /* above: pointer authentication and tags */
	.signal_pc = SAVED(32),
	.signal_info = 0,
	.signal_registers =
		{
			SAVED(0),  SAVED(1),  SAVED(2),  SAVED(3),  SAVED(4),  SAVED(5),  SAVED(6),
			SAVED(7),  SAVED(8),  SAVED(9),  SAVED(10), SAVED(11), SAVED(12), SAVED(13),
			SAVED(14), SAVED(15), SAVED(16), SAVED(17), SAVED(18), SAVED(19), SAVED(20),
			SAVED(21), SAVED(22), SAVED(23), SAVED(24), SAVED(25), SAVED(26), SAVED(27),
			SAVED(28), SAVED(29), SAVED(30), SAVED(31),
		},
};
