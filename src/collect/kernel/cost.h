/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* What the clock's interrupt costs, in ns, beside what the sampler measures in it. Takes some 10 ms. */
uint64_t cost_of_interrupt(void);
