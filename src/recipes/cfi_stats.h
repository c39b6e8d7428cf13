/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What cfi.h counts while it reads. */
#include <stdint.h>

struct cfi_stats {
	uint64_t entries;      /* FDEs read */
	uint64_t bad_entries;  /* FDEs that were damaged or made no sense, left out */
	uint64_t complex_rows; /* rows whose expression no recipe can say (RECIPE_COMPLEX) */
};
