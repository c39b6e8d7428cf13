/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Measures what a sample costs a program beside the walk. kernel.c puts it into the table of the
   sampler. */
#include <stdint.h>

/* Returns what an interrupt of the clock costs, in ns, without the time that the sampler measures
   itself; 0: it cannot be measured. Takes some 10 ms. */
uint64_t cost_of_interrupt(void);
