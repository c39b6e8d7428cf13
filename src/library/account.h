/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* Unwind tables that other processes made. */
struct library_account {
	uint64_t cpu_ns, memory; /* memory: that one of them had at most */
	unsigned made, failed;
	char reason[256]; /* of the last one that failed */
};
