/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is measured of the calls of probed functions, and which of these are the slowest: bpf/measure.h adds it up, here
   it is taken. probes.c uses it. */
#include <stdbool.h>
#include <stdint.h>

#include "collect/kernel/bpf/shared.h"

struct err;
struct kernel;
struct kernel_piece;
struct kernel_probe_sum;

/* Chooses the programs that are needed, before they are loaded, and the sizes of maps. */
void measures_choose(struct kernel *k);
/* Tells the sampler what is measured. */
void measures_fill(const struct kernel *k, struct kernel_settings *settings);
struct err *measures_open(struct kernel *k);
void measures_close(struct kernel *k);
/* Makes room for the slowest calls of a function, by its number. */
struct err *measures_add_function(struct kernel *k, uint32_t number);

/* Adds what has come since the last time to the function and the node. `octaves`: as in struct kernel_timing. */
struct err *measures_take(struct kernel *k, struct kernel_probe_sum *sum, const uint64_t *octaves,
			  bool last);
/* Forgets the sums of calls that are over. */
void measures_forget(struct kernel *k, struct kernel_probe_sum *sum);

/* Takes the slowest calls of all functions. */
void measures_take_slowest(struct kernel *k);
/* The same, if this sum may have one of them: it will soon not be known where it belongs. */
void measures_keep_slowest(struct kernel *k, const struct kernel_probe_sum *sum);
