/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the records that the sampler sends, in a thread of its own, and keeps them until kernel.c takes
   them. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;

struct err *reader_open(struct kernel *k);
/* Passes each record to `take`, in the order in which they came. False: records were lost, for lack of
   memory. */
bool reader_take(struct kernel *k, void (*take)(struct kernel *k, const void *data, size_t size));
/* Keeps a record; libbpf calls it for each one. Less than 0: there is no room for more. */
int reader_hold(void *reader, void *data, size_t size);
/* Reads what is in the ring now, if there is room. */
void reader_sync(struct kernel *k);
/* Ends the thread, and reads until the ring is empty. */
void reader_flush(struct kernel *k);
void reader_close(struct kernel *k);
