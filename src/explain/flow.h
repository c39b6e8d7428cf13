/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Flows that fit together and fit what is known of them best. The unknowns are the logarithms of the flows
 * of classes (explain/classes.h); what is known are costs: each says how unlikely a flow is.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct flow;
struct network;

/* Fits flows to the arcs of a network. `network` and `class` must outlive the result. */
struct err *flow_open(const struct network *network, const uint32_t *class, size_t class_count,
		      struct flow **out);
void flow_close(struct flow *flow); /* NULL is fine */

/* The flow of class `a` is about `ratio` (a logarithm) of that of class `b`; so much it may vary. */
struct err *flow_relate(struct flow *flow, uint32_t a, uint32_t b, double ratio, double variance);
/* The flow of class `a` is about `value` (a logarithm). */
struct err *flow_expect(struct flow *flow, uint32_t a, double value, double variance);

/* The cost of a class at the logarithm of its flow. `slope`, if it is not NULL, gets its slope over a `step` to
   each side, and `curvature` what the curvature is to be taken for. */
typedef double flow_cost(const void *context, uint32_t class, double value, double step,
			 double *slope, double *curvature);

/* Finds the flows: of each class the logarithm, from those that `values` has, and its standard deviation, as
   far as costs tell; roughly, where `deviations` is NULL. *solved is false, and nothing is changed, where so many arcs lead from many nodes to many
   that it would take too long. */
struct err *flow_solve(struct flow *flow, flow_cost *cost, const void *context, double *values,
		       double *deviations, bool *solved);
