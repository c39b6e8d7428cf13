/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unwind tables in the sampler's memory. code.c gives the tables of the modules in a list. walks.c says
   which parts of large tables were needed. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct kernel;
struct library_module;

enum kernel_given { KERNEL_GIVEN, KERNEL_NO_TABLE, KERNEL_NO_ROOM };
struct err *tables_open(struct kernel *k);
bool tables_begin(struct kernel *k); /* begins anew, without any table */
void tables_close(struct kernel *k);
/* Gives the sampler the table of a module, unless it has it already. Of a large table, parts are given
   later. */
enum kernel_given tables_give(struct kernel *k, const struct library_module *m);
/* Gives the sampler the parts of large tables that were needed to walk these frames. */
void tables_need(struct kernel *k, const uint64_t *keys, uint32_t count);
/* Whether the sampler has the table of a module, or parts of it. */
bool tables_has(const struct kernel *k, uint32_t id);
/* Takes the table of a module away from the sampler. */
void tables_take_back(struct kernel *k, uint32_t id);
/* Whether there is no room left, and it is time to begin anew. */
bool tables_are_full(const struct kernel *k);
