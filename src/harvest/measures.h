/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is measured of each call of a probed function beside its time: CPU time, time blocked, events, integer arguments
   and results. Values are added up by bucket, together with the time of their calls. So it can be told how the time of a
   call depends on an argument (probe/fit.h). harvest/probes.h has one measure for each function and for each path. */
#include <stdbool.h>
#include <stdint.h>

#define PROBE_TIMES 320u    /* buckets of a histogram: eight from each power of two to the next */
#define PROBE_METRICS 6u    /* at most, beside calls and time */
#define PROBE_PARAMETERS 6u /* arguments that can be read: those in registers on all CPUs */
/* Buckets of values: those of times, then -1, -2 and so on; the last has all that are less. */
#define PROBE_NEGATIVE 8u
#define PROBE_VALUES (PROBE_TIMES + PROBE_NEGATIVE)
#define PROBE_OCTAVES (PROBE_VALUES / 8)

enum probe_metric_kind {
	PROBE_CPU = 1,
	PROBE_BLOCKED,
	PROBE_ARGUMENT,
	PROBE_RETURN,
	PROBE_EVENT,
};

struct probe_metric {
	uint8_t kind;   /* enum probe_metric_kind */
	uint8_t number; /* of the argument, from 1 on */
	uint8_t bits;   /* of an argument or result: 8, 16, 32, 64 */
	bool is_signed;
	char name[48]; /* as given: "cpu", "arg:2" */
	char unit[24]; /* "ns"; of values: "" */
	uint32_t type; /* of an event: as in struct perf_event_attr */
	uint64_t config, config1, config2;
	bool user_only;
};

struct probe_bucket {
	uint64_t calls;
	int64_t sum;         /* of values */
	uint64_t ns, cpu_ns; /* of these calls; cpu_ns: 0 if it was not measured */
};

struct probe_octave {        /* eight buckets */
	int64_t least, most; /* if there are any calls */
	struct probe_bucket eighths[8];
};

struct probe_measure {
	uint64_t calls;
	int64_t sum, least, most; /* least, most: if there are any calls */
	struct probe_bucket buckets[PROBE_VALUES];
};

#define PROBE_SLOWEST_MAX 32u

/* One of the slowest calls of a function. */
struct probe_slow {
	uint64_t ns, begun; /* begun: CLOCK_MONOTONIC */
	uint32_t process, thread;
	uint32_t node; /* of its path; 0: it is not known */
	uint64_t parameters[PROBE_PARAMETERS],
		result; /* registers, as they are; agents read none */
};

/* Returns the bucket of a time, and where that begins. */
uint32_t probes_bucket(uint64_t ns);
uint64_t probes_bucket_start(uint32_t bucket);

/* Adds the calls of one octave. */
void measure_add(struct probe_measure *to, uint32_t octave, const struct probe_octave *more);
/* Returns the value that this part of the calls did not exceed, within 1/16 of it. */
int64_t measure_quantile(const struct probe_measure *measure, double part);
/* Returns the least value of a bucket. */
int64_t measure_bucket_start(uint32_t bucket);
/* Returns the value of an argument or a result in a register. */
int64_t measure_value(const struct probe_metric *metric, uint64_t word);
