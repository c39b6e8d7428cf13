/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A profile in the formats of other tools. Each has the same samples, the same
 * functions (inlined ones among them) and therefore the same totals as report.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analyze/views.h"

struct attribution;
struct err;
struct modules;

enum export_format {
	EXPORT_PPROF,       /* protocol buffers, gzipped */
	EXPORT_FOLDED,      /* a;b;c COUNT */
	EXPORT_SPEEDSCOPE,  /* JSON */
	EXPORT_FIREFOX,     /* JSON, "processed" profile */
	EXPORT_CALLGRIND,   /* text */
	EXPORT_PERF_SCRIPT, /* text */
	EXPORT_CSV,
	/* Of executions, not of samples: export/executions.h. */
	EXPORT_LLVM_SAMPLE, /* text */
	EXPORT_PROFGEN,     /* text, of addresses */
	EXPORT_BOLT,        /* text, "fdata" */
	EXPORT_AUTOFDO,     /* binary */
};

#define EXPORT_ALL_METRICS UINT32_MAX

struct export_options {
	enum export_format format;
	uint32_t metric;    /* EXPORT_ALL_METRICS: all, or the first where there is room for one */
	const bool *thread; /* which threads count, by index; NULL: all */
	enum view_group group; /* folded, CSV: what paths begin with */
	bool contexts;         /* CSV: a row for each context, not for each function */
	bool no_inline;        /* as the attribution was made */
	bool full_names;       /* of C++, with parameters and template arguments */
	const char *creator;   /* "culprit 1.0" */
};

/* Must it not be shown on a terminal? */
bool export_is_binary(enum export_format format);

/* Writes it. The attribution must be by function; threads may be added to its scopes. That all
   could be written is for the caller to see (ferror). */
struct err *export_write(struct attribution *attribution, struct modules *modules,
			 const struct export_options *options, FILE *out);
