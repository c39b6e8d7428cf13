/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unwind tables in the sampler's memory. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct library_module;

enum kernel_given { KERNEL_GIVEN, KERNEL_NO_TABLE, KERNEL_NO_ROOM };
struct err *tables_open(struct kernel *k);
bool tables_begin(struct kernel *k); /* anew, with none */
void tables_close(struct kernel *k);
/* A module's table to the sampler, or its beginning, unless it has it. */
enum kernel_given tables_give(struct kernel *k, const struct library_module *m);
/* What it took to walk these frames, where the sampler has tables only in part. */
void tables_need(struct kernel *k, const uint64_t *keys, uint32_t count);
/* Whether the sampler has that of the module, or its beginning. */
bool tables_has(const struct kernel *k, uint32_t id);
void tables_take_back(struct kernel *k, uint32_t id);
/* Whether it is time to begin anew. */
bool tables_are_full(const struct kernel *k);
