/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The machine that a profile is of: the model of its CPU, and what was measured there, if it is this one; else
 * what is usual for such a CPU.
 */
#include <stdbool.h>

#include "explain/calibrate.h"

struct buf;
struct err;
struct isa;
struct json;
struct model;
struct profile;

struct machine {
	struct model *model;
	struct calibration
		numbers; /* nothing is 0 but `problem`, `l3` of those that have none, and sizes */
	bool measured;   /* on this machine, which is the recorded one */
	unsigned reach;  /* samples of a slow load fall up to so many instructions behind it */
	unsigned reach_other; /* the same of a division or a square root */
	double window;        /* instructions in flight */
};

struct err *machine_open(const struct profile *profile, const struct isa *isa, struct machine *out);
void machine_close(struct machine *machine);

/* What people must know: that the CPU is not known, or is another one. "" where there is nothing to say. */
void machine_note(const struct machine *machine, const struct profile *profile, struct buf *out);
/* The members of "machine". */
void machine_json(const struct machine *machine, struct json *out);
