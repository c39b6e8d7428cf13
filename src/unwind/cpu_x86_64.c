/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/cpu.h"

#include <elf.h>

/* struct ucontext lies at SP in the trampoline: flags, link and the alternate stack take 40
   bytes, then the registers in the kernel's order. */
#define SAVED(n) (40 + 8 * (n))

const struct unwind_cpu unwind_cpu_x86_64 = {
	.elf_machine = EM_X86_64,
	.sp = 7,
	.fp = 6,
	.link = CPU_NO_REGISTER,
	.extra = 3,
	.call_pushes = 8,
	.red_zone = 128,
	.kept_below = 128,
	.address_bits = ~0ull,
	.signal_pc = SAVED(16),
	.signal_info = 304, /* behind the ucontext */
	.signal_registers =
		{
			[8] = SAVED(0),
			[9] = SAVED(1),
			[10] = SAVED(2),
			[11] = SAVED(3),
			[12] = SAVED(4),
			[13] = SAVED(5),
			[14] = SAVED(6),
			[15] = SAVED(7),
			[5] = SAVED(8),
			[4] = SAVED(9),
			[6] = SAVED(10),
			[3] = SAVED(11),
			[1] = SAVED(12),
			[0] = SAVED(13),
			[2] = SAVED(14),
			[7] = SAVED(15),
		},
};
