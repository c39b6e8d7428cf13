/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What covers an address, where ranges may overlap: intervals are collected,
 * then made into a sorted array of points, each saying what covers the
 * addresses from there to the next point.
 *
 *     outer()        |----------------------------|
 *     inlined a         |--------------|
 *     inlined b             |----|
 *     points         o  a   b    a     o          -
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POINT_NOTHING UINT32_MAX

struct dwarf_interval {
	uint64_t start, end;
	uint32_t what;
	uint32_t rank; /* where several cover an address the one with the highest counts */
};

struct dwarf_intervals {
	struct dwarf_interval *all;
	size_t count, room;
};

struct dwarf_point {
	uint64_t start;
	uint32_t what; /* POINT_NOTHING: not covered */
};

struct dwarf_points {
	struct dwarf_point *all;
	size_t count;
};

/* False: too many, or no memory. */
bool dwarf_intervals_add(struct dwarf_intervals *in, uint64_t start, uint64_t end, uint32_t what,
			 uint32_t rank);

/* Uses up the intervals (they are freed). False: no memory. */
bool dwarf_points_make(struct dwarf_points *points, struct dwarf_intervals *in);

/* How many points start at or before `address`: the last of them holds for it. */
size_t dwarf_points_before(const struct dwarf_points *points, uint64_t address);

/* What covers `address`, or POINT_NOTHING. */
uint32_t dwarf_points_find(const struct dwarf_points *points, uint64_t address);
