/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of an import share. */
#include <stdbool.h>
#include <stdint.h>

#include "base/term.h"
#include "import/import.h"
#include "import/perf_file.h"

#define IMPORT_FRAMES 8192u /* a record has no room for a longer chain */

struct binaries;
struct input;
struct kernel_names;
struct perf_cpu;
struct profile;
struct perf_tasks;

struct import {
	const struct import_options *options;
	struct input *input;
	struct perf_file *file;
	struct perf_info *info;
	struct profile *profile;
	uint64_t recorded;          /* when the file was written; 0: not known */
	const struct perf_cpu *cpu; /* NULL: not known as yet */
	struct binaries *binaries;
	struct perf_tasks *tasks;

	uint32_t metrics[PERF_EVENTS_MAX]; /* of each event: number + 1; 0: none as yet */
	uint64_t periods[PERF_EVENTS_MAX]; /* sums, by metric */
	uint64_t first_time, last_time;

	bool kernel_asked; /* whether there are names of the kernel's */
	struct kernel_names *kernel;
	char kernel_symbol[64]; /* that is at kernel_address; "": not told */
	uint64_t kernel_address;
	uint32_t kernel_module; /* number + 1 in the profile; 0: not there yet */

	uint64_t *keys, *user, *kernel_chain; /* IMPORT_FRAMES each */

	struct term_progress progress;
	uint64_t records, damaged;
	uint64_t short_stacks, stack_wanted; /* copies that ended before the stack did */
	uint64_t flat;                       /* samples without callers */
	uint64_t narrow;                     /* of 32-bit code */
};

/* One sample into the tree (paths.c). */
struct err *import_sample(struct import *i, const struct perf_record *record);
/* Names for code of the kernel and such that was made at run time, once all samples are in. */
void import_names(struct import *i);
