/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>
/*
 * Runs work(context, i) for every i in [0, count) on as many threads as there
 * are CPUs and returns when all are done. Indices are handed out in ascending
 * order, one at a time. With one CPU or one item it runs in the calling thread.
 */
void parallel_for(size_t count, void (*work)(void *context, size_t index), void *context);
