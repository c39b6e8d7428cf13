/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where the probes of a function go: its first instruction, and each one by which it is left. */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct graph;
struct image;
struct probe_function;
struct probe_module;

/* Fills in the places of a function. If it cannot be probed, or its ends cannot be seen, its state and the reason are
   set: that is no error. `named`: a symbol says that it begins there. */
struct err *probe_find_sites(struct probe_module *module, struct probe_function *function,
			     bool named);
/* Returns where an address of code is in the file; UINT64_MAX: it is not there. */
uint64_t probe_offset(const struct image *image, uint64_t address);
/* Why the ends of a function with this control flow cannot be seen; NULL: they can. */
const char *probe_judge(const struct graph *graph, uint64_t entry);
