/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the sampler sends, in the order in which it came. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;

struct err *reader_open(struct kernel *k);
/* Gives each record to `take`, in the order in which they came. False: some were lost before, for want of memory. */
bool reader_take(struct kernel *k, void (*take)(struct kernel *k, const void *data, size_t size));
/* What the ring gives us: it is kept. Less than 0: there is no room for more. */
int reader_hold(void *reader, void *data, size_t size);
/* Reads what is in the ring now, as far as there is room. */
void reader_sync(struct kernel *k);
/* Waits until the ring is empty. */
void reader_flush(struct kernel *k);
void reader_close(struct kernel *k);
