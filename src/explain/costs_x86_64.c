/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured on a Cascade Lake, with gzip, bzip2, xz and sqlite3. A sample of time is at the instruction behind the one
 * that waits, and up to four are finished in a cycle: of four in a row, one may have all samples, and which one
 * it is differs. So an instruction alone may take anything, but four that wait for nothing take a cycle and a little,
 * three times in four.
 */
#include "explain/costs_usual.h"

/* clang-format off */
const struct usual_table usual_x86_64 = {
	.width = 3.84,
	.unit = 2,
	.doubt = 0.25,
	.none = {0.0075F, 2.5F, 0.8F},
	.small = {0.135F, 0.08F, 0.3F},
	.by_groups = true,
	.weights = {0.5, 0.5},
	.alone = {
		[FREQUENCY_PLAIN] = {{0.18F, 0.00F, 0.200F, 1.10F}, {0.29F, 0.00F, 0.150F, 0.90F}, {0.21F, 0.00F, 0.200F, 1.10F}, {0.19F, 0.00F, 0.200F, 1.10F}, {0.24F, 0.00F, 0.200F, 1.10F}},
		[FREQUENCY_LOAD] = {{0.18F, 0.00F, 0.200F, 1.10F}, {0.28F, 0.00F, 0.100F, 0.90F}, {0.23F, 0.00F, 0.150F, 1.40F}, {0.15F, 0.00F, 0.200F, 1.10F}, {0.36F, 0.00F, 0.300F, 0.50F}},
		[FREQUENCY_STORE] = {{0.15F, 0.00F, 0.300F, 0.90F}, {0.26F, 0.00F, 0.100F, 1.10F}, {0.21F, 0.00F, 0.100F, 1.40F}, {0.21F, 0.00F, 0.150F, 1.10F}, {0.32F, 0.00F, 0.150F, 1.10F}},
		[FREQUENCY_BRANCH] = {{0.45F, 0.00F, 0.300F, 1.10F}, {0.98F, 0.00F, 0.200F, 0.90F}, {0.62F, 0.00F, 0.200F, 1.10F}, {0.45F, 0.00F, 0.150F, 0.90F}, {0.85F, 0.00F, 0.200F, 1.20F}},
		[FREQUENCY_JUMP] = {{0.27F, 0.00F, 0.150F, 1.10F}, {0.34F, 0.00F, 0.150F, 0.90F}, {0.14F, 0.00F, 0.150F, 1.40F}, {0.23F, 0.00F, 0.200F, 0.90F}, {0.26F, 0.00F, 0.150F, 1.10F}},
		[FREQUENCY_CALL] = {{0.18F, 0.00F, 0.150F, 0.90F}, {0.44F, 0.00F, 0.150F, 0.90F}, {0.26F, 0.00F, 0.075F, 1.40F}, {0.35F, 0.00F, 0.150F, 1.10F}, {0.33F, 0.00F, 0.100F, 1.20F}},
		[FREQUENCY_VECTOR] = {{0.21F, 0.00F, 0.200F, 1.20F}, {0.21F, 0.00F, 0.200F, 1.20F}, {0.21F, 0.00F, 0.200F, 1.20F}, {0.21F, 0.00F, 0.200F, 1.20F}, {0.19F, 0.00F, 0.200F, 0.90F}},
		[FREQUENCY_SLOW] = {{0.35F, 0.00F, 0.200F, 0.90F}, {0.40F, 0.00F, 0.200F, 0.90F}, {0.35F, 0.00F, 0.200F, 0.90F}, {0.35F, 0.00F, 0.200F, 0.90F}, {0.35F, 0.00F, 0.200F, 0.90F}},
	},
	.groups = {
		{{{0.14F, 0.00F, 0.200F, 0.90F}, {0.21F, 0.00F, 0.200F, 1.20F}}, {{0.04F, 0.07F, 0.400F, 0.90F}, {0.07F, 0.04F, 0.400F, 0.90F}}, {{0.01F, 0.45F, 0.700F, 1.20F}, {0.01F, 0.44F, 0.700F, 1.20F}}, {{0.00F, 0.86F, 1.400F, 0.50F}, {0.00F, 0.71F, 2.000F, 0.50F}}},
		{{{0.11F, 0.03F, 0.250F, 0.70F}, {0.20F, 0.02F, 0.300F, 0.90F}}, {{0.05F, 0.02F, 0.400F, 0.90F}, {0.05F, 0.00F, 0.400F, 0.90F}}, {{0.00F, 0.28F, 0.600F, 1.20F}, {0.00F, 0.30F, 0.850F, 0.90F}}, {{0.00F, 0.63F, 1.200F, 0.50F}, {0.00F, 0.61F, 1.700F, 0.70F}}},
		{{{0.16F, 0.03F, 0.125F, 1.20F}, {0.04F, 0.03F, 0.150F, 0.90F}}, {{0.01F, 0.05F, 0.150F, 1.20F}, {0.01F, 0.10F, 0.200F, 1.20F}}, {{0.08F, 0.11F, 0.700F, 0.30F}, {0.04F, 0.20F, 0.600F, 0.70F}}, {{0.01F, 0.53F, 0.700F, 0.70F}, {0.00F, 0.53F, 0.700F, 0.70F}}},
	},
};
/* clang-format on */
