/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The loops that calibration runs, in the language of the CPU. Each instruction of the last two has 4 bytes
 * up to the branch, so that the address of a sample tells which one it was.
 */
#include <stdint.h>

#define CALIBRATE_CHAIN 64 /* additions that wait for each other, in a round */
#define CALIBRATE_PLAIN 96 /* instructions that wait for nothing, in a round */
#define CALIBRATE_LOOP \
	14 /* instructions of a loop with a slow one: it, 12 plain ones, and the count */

uint64_t calibrate_chain(uint64_t rounds);
uint64_t calibrate_plain(uint64_t rounds);
uint64_t calibrate_divide(uint64_t rounds); /* one division, that waits for the one before */
uint64_t calibrate_atomic(uint64_t *at, uint64_t rounds);
/* At `_loop`: a load that waits for the one before, then plain instructions. Returns where it is. */
void **calibrate_load(void **at, uint64_t rounds);
extern const char calibrate_load_loop[], calibrate_slow_loop[];
/* The same with a division or a square root. */
uint64_t calibrate_slow(uint64_t rounds);
