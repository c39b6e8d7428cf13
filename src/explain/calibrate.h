/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this machine needs for things, measured by small loops: about a second, once for each CPU (the result
 * is in the cache). Everything is the least of several measurements, so that other work on the machine does
 * little harm. What could not be measured is 0, and `problem` says why.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu_id.h"

struct buf;
struct json;

#define CALIBRATE_SKID 4

struct calibration {
	char cpu[CPU_ID_MAX];
	char clock[16];          /* the event whose samples were looked at: "cpu-clock", "cycles" */
	double hz;               /* cycles per second, while it works */
	double width;            /* plain instructions in a cycle, at best */
	double l1, l2, l3, dram; /* cycles from the address of a load to its value */
	double walk;             /* cycles more if the page is in no TLB */
	double mispredict;       /* cycles that a wrong guess of a branch costs */
	double division;         /* cycles of a 64-bit division of small numbers */
	double store;   /* cycles for each line that is stored to and is not in the caches */
	double forward; /* cycles more if a load must wait for two stores to reach the cache */
	double handed;  /* cycles from a store of a value to a load that gets it, there and back */
	double atomic;  /* cycles of an atomic addition */
	/* Where samples of a slow instruction fall: the shares of itself, the instruction behind it, ... */
	double skid_load[CALIBRATE_SKID], skid_other[CALIBRATE_SKID];
	double plain; /* cycles for which an instruction that waits for nothing is seen */
	double l1_size, l2_size,
		l3_size; /* bytes of the caches, as the kernel says; 0: it does not */
	char problem[160];
};

/* From the cache, or measured now and kept there. `progress` shows on standard error that it takes a while. */
void calibrate(struct calibration *out, bool progress);
/* The same without the cache. */
void calibrate_now(struct calibration *out);

/* Samples that belong to a slow load fall so many instructions behind it, mostly. */
unsigned calibrate_skid_of_loads(const struct calibration *c);

/* What people want to know of it, line by line; and as members of the object that is open. */
void calibrate_show(const struct calibration *c, struct buf *out);
void calibrate_json(const struct calibration *c, struct json *out);

/* As it is kept: lines of a key and numbers. */
void calibrate_write(const struct calibration *c, struct buf *out);
/* False where it is not whole, or of another CPU or version. */
bool calibrate_read(const char *text, const char *cpu, struct calibration *out);
