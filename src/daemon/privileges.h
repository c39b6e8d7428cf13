/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the daemon may do. It reads what all programs of a machine map, so it is worth
 * attacking; what it does not need itself it gives up for good.
 */
#include <stddef.h>

struct err;

/* Before there are other threads: each has its own. `missing` (size bytes) gets what will not be known for want
   of others, "" where nothing is. */
struct err *privileges_drop(char *missing, size_t size);
