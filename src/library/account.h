/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What other processes took to make unwind tables. The library counts it (library_take_account), and the
   daemon reports it. */
#include <stdint.h>

/* Of the tables that other processes made. */
struct library_account {
	uint64_t cpu_ns, memory; /* memory: the peak of one process */
	unsigned made, failed;
	char reason[256]; /* why the last one failed */
};
