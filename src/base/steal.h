/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* Nanoseconds since the start of this machine in which its host ran something else, though there was work, of
   all CPUs together; 0: it has no host, or that does not say. */
uint64_t steal_ns(void);
