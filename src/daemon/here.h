/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where samples come from, as an epoch says it. */
#include <stdint.h>

struct here {
	char boot[64]; /* id of this boot, in hex digits */
	char cpu[128]; /* its name; "" where the kernel tells none */
	char host[65], kernel[65], machine[65];
	uint32_t cpus;
};

void here_read(struct here *out);
