/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whole numbers with a unit, as people write times and sizes: 30d, 200M. */
#include <stdbool.h>
#include <stdint.h>

struct amount_unit {
	const char *name;
	uint64_t factor;
};

/* Seconds: s, m, min, h, d, days, w, weeks, y, or none. */
extern const struct amount_unit amount_times[];
/* Bytes: K, M and G are powers of 1024, kB, MB and GB of 1000; or none. */
extern const struct amount_unit amount_sizes[];

/* False where it is something else, or too large. */
bool amount_read(const char *text, const struct amount_unit *units, uint64_t *out);
