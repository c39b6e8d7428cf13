/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every format needs: which samples are meant, and what functions are
 * called. Names are clean (export/text.h) and the same in all formats.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"

struct profile;
struct profile_value;
struct scope;

struct job {
	const struct export_options *o;
	const struct profile *p;
	struct attribution *a;
	struct modules *modules;
	FILE *out;
	uint32_t metrics[256]; /* that are exported */
	size_t metric_count;
	bool *used;   /* nodes that have such samples, or lie on the way to one */
	char **names; /* by scope; NULL: not asked for yet */
	size_t name_count;
	bool no_memory;
};

struct err *job_open(struct job *job);
void job_close(struct job *job);

/* Is this sample exported? */
bool job_has(const struct job *job, const struct profile_value *value);
/* The place of a metric among those that are exported. */
size_t job_column(const struct job *job, uint32_t metric);

const struct scope *job_scope(const struct job *job, uint32_t scope);
/* The name of a scope, for people; of the root, that of a path without frames. */
const char *job_name(struct job *job, uint32_t scope);
/* The path of the scope's module, "" where it has none. */
const char *job_module(const struct job *job, uint32_t scope);

/* A count of samples in the unit of the metric; no more than INT64_MAX. */
uint64_t job_amount(const struct job *job, uint32_t metric, uint64_t count);

/* An error where listing that many frames would never end: formats that write every path out. */
struct err *job_check_frames(uint64_t frames);

/* The same for the paths of the profile, each written once or once for each of its samples; the
   deepest has *deepest nodes (may be NULL). */
struct err *job_check_paths(const struct job *job, bool each_sample, size_t *deepest);

/* The formats. */
struct err *pprof_write(struct job *job);
struct err *folded_write(struct job *job);
struct err *speedscope_write(struct job *job);
struct err *firefox_write(struct job *job);
struct err *callgrind_write(struct job *job);
struct err *perf_script_write(struct job *job);
struct err *csv_write(struct job *job);
