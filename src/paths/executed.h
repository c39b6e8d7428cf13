/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often instructions were executed, by the paths that come by them, as samples: so what shows samples of lines and functions can
 * show that. One sample is one execution.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;
struct ranking;

#define PATHS_EXECUTED "executed" /* the name of this metric */

/* Adds the metric, with one process and one thread for all that was counted. If the code of a function cannot be read any more, the first
   instructions of its blocks stand for all of these. */
struct err *paths_add_executed(const struct ranking *ranking, struct profile *profile);

/* The module of the profile that a function is in: the one with this path and build-id; 0: there is none. */
struct path_function;
uint32_t paths_find_module(const struct profile *profile, const struct path_function *function);
