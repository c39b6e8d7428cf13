/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What stands out in what probes have counted: who makes the slow calls, and for which arguments. show.c uses it. */
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json;
struct modules;
struct probes;
struct profile;

enum finding_kind {
	FINDING_TAIL,  /* most of the slowest calls come by one caller */
	FINDING_GROWS, /* the time depends on an argument */
	FINDING_INPUT, /* few calls with large arguments take most of the time, and one caller makes them */
	FINDING_PATH, /* calls by one path are slow, with arguments as of others */
	FINDING_JUMP, /* calls by one path are slow beyond a value */
};

struct finding {
	enum finding_kind kind;
	uint32_t function, metric;
	uint32_t node; /* PATH, JUMP: of the path */
	char *caller;  /* TAIL, INPUT; or NULL */
	double share; /* TAIL: of the slowest calls that are by this caller; INPUT: of the time above the value */
	int64_t above;                 /* INPUT, JUMP: the value */
	double time_share, call_share; /* INPUT: of all, above the value */
	double factor;                 /* PATH, JUMP: how many times as slow */
};

struct findings {
	struct finding *all;
	size_t count, room;
};

struct err *findings_make(const struct probes *probes, const struct profile *profile,
			  struct modules *modules, struct findings *out);
/* Appends a line for each. */
void findings_print(const struct findings *findings, const struct probes *probes,
		    const struct profile *profile, struct modules *modules, struct buf *out);
/* Writes "findings" into the object that is open. */
void findings_json(const struct findings *findings, const struct probes *probes,
		   const struct profile *profile, struct modules *modules, struct json *out);
void findings_free(struct findings *findings);
