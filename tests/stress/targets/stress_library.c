/* SPDX-License-Identifier: Apache-2.0 */
/* A library that computes, also while it is loaded and unloaded. */
#include "stress.h"

unsigned long library_work(unsigned units);

static __attribute__((constructor)) void begin(void)
{
	burn(WHICH == 2 ? 20 : 1);
}

static __attribute__((destructor)) void end(void)
{
	burn(1);
}

unsigned long library_work(unsigned units)
{
	return (burn(units) & 0xffff) * WHICH;
}
