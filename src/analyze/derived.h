/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Metrics that are quotients of others: bytes per allocation, time per read, instructions per cycle. All of them are in
 * one table (derived.c). A profile has those whose two metrics it has. Nothing of them is stored.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct json;
struct profile;
struct tree;

#define DERIVED_MAX 20

struct derived {
	const char *name;     /* "io.size" */
	const char *title;    /* of its column */
	const char *unit;     /* "bytes", "ns", "cycles", "ratio", or "share": a ratio up to 1 */
	uint32_t over, under; /* metrics of the profile: the dividend, and the divisor */
	uint32_t beside;      /* the metric that it is shown with */
	bool of_calls; /* the divisor is the calls of a function itself, not of those that it calls */
};

/* Fills those that the profile has, in the order of the table. Returns how many. */
size_t derived_find(const struct profile *profile, struct derived out[DERIVED_MAX]);
/* Whether the table has this name. */
bool derived_is_known(const char *name);
/* Finds the one with this name; if there is no name, the first that is shown with the metric. False: there is none. */
bool derived_choose(const struct profile *profile, const char *name, uint32_t metric,
		    struct derived *out);
/* The value at a node, of the samples there alone (`self`) or of all below it. False: the divisor is 0. */
bool derived_value(const struct derived *derived, const struct profile *profile,
		   const struct tree *tree, uint32_t node, bool self, double *out);
/* Appends it for people: "12 B", "1.3 us", "0.82", "4.1%". */
void derived_print(const struct derived *derived, double value, struct buf *out);

/* The member "derived" of the JSON object that is open; nothing if `count` is 0. Of the profile: [{"name","unit","over",
   "under"}]; of a node: the values of all below it, in that order, null where the divisor is 0. */
void derived_json(const struct derived *all, size_t count, const struct profile *profile,
		  struct json *out);
void derived_json_values(const struct derived *all, size_t count, const struct profile *profile,
			 const struct tree *tree, uint32_t node, struct json *out);
