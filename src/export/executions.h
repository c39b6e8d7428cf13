/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often the code of one file ran, in the formats of programs that optimise it: compilers, and what
 * rearranges code that is linked already. What others take from branch records of the CPU is estimated from
 * samples here (explain/frequency.h), so these are executions, not samples.
 */
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"

struct err;
struct modules;
struct profile;
struct program;

/* Is a format one of these? */
bool export_is_of_executions(enum export_format format);

/* The file that is meant: the one with this path or name, NULL: the one with most samples of the metric.
   An error where there is none. */
struct err *executions_module(const struct profile *profile, const char *name, uint32_t metric,
			      uint32_t *module);

/* Writes it. The program has the functions of that file. That all could be written is for the caller to see. */
struct err *executions_write(const struct program *program, struct modules *modules,
			     uint32_t module, enum export_format format, FILE *out);
