/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A whole profile, explained: the functions that have most of its samples, and the sum of their causes. Or one
 * function of it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explain/function.h"
#include "explain/machine.h"
#include "explain/spots.h"

struct annotate_samples;
struct err;
struct json;
struct modules;
struct profile;

/* Fewer samples of a function tell nothing about its instructions. */
#define PROGRAM_SAMPLES_MIN 100

struct program_function {
	uint32_t module;
	uint64_t start;
	const char *name;              /* for people; NULL: not known */
	struct annotation *annotation; /* both are there, or neither */
	struct function *function;
};

struct program {
	const struct profile *profile;
	struct machine machine;
	uint32_t metric;
	double cycles_per_sample;
	double samples;   /* of the metric, all */
	double explained; /* those in functions that are explained */
	double unread; /* those in code that cannot be read: of the kernel, made at run time, gone */
	struct program_function *functions; /* the most samples first */
	size_t count;
	struct spots spots;
	struct annotate_samples *own_samples; /* by where they are */
	struct range_sum causes;
};

struct program_options {
	uint32_t metric;
	const bool *thread; /* which count; NULL: all */
	uint32_t module;    /* only functions of this file; 0: of all */
	bool every;         /* also functions that matter little */
};

/* What is to be called first: chooses the machine's model. An error where the metric is not of time. */
struct err *program_open(const struct profile *profile, const struct program_options *options,
			 struct program *out);
void program_close(struct program *program);

/* Explains one function, and makes it the only one. An error where its code cannot be read, or there are too few
   samples. */
struct err *program_explain_one(struct program *program, struct modules *modules, uint32_t module,
				uint64_t start, const struct program_options *options);
/* Explains those that matter. An error where none can be. */
struct err *program_explain(struct program *program, struct modules *modules,
			    const struct program_options *options);

/* A loop of one of its functions. */
struct program_loop {
	const struct program_function *function;
	const struct explain_loop *loop;
};
/* The loops that lose most, at most `most` of them. Returns how many. */
size_t program_worst_loops(const struct program *program, struct program_loop *out, size_t most);
