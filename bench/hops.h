/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* See hops.c. */
#define HOPS_COUNT 32

struct hops;
typedef void hop(const struct hops *hops, unsigned left);

struct hops {
	hop *(*next)(unsigned left); /* the function that goes on */
	void (*end)(void *context);
	void *context;
};

extern hop *const hops_a[HOPS_COUNT], *const hops_b[HOPS_COUNT], *const hops_c[HOPS_COUNT];
