/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Probes that agents put into their programs (agent/probes.c): what they are asked for, and what they have counted. */
#include <stdbool.h>
#include <stdint.h>

#include "harvest/probes.h"

struct agents;
struct arena;
struct arena_probe;
struct arena_probe_sums;
struct err;
struct harvest;
struct patches_tree;
struct process;
struct recording;

/* Describes the probes that are not described yet for a program, in its arena: for one that has just said HELLO, and waits
   for our answer; or for one that runs (moving.h). */
struct err *patches_ask(struct agents *agents, struct process *process);
/* Counts the sums that a value of a node refers to. `partial`: is raised by the calls; NULL: their path is complete. */
struct err *patches_take(const struct patches_tree *tree, uint64_t reference, uint32_t node,
			 uint64_t *partial);
/* The same sums in the collector's form. */
struct probe_sums patches_sums(const struct arena_probe_sums *s);
typedef void patches_each(struct arena_probe *p, void *context);
/* For all descriptions of a program. */
void patches_for_each(struct arena *a, patches_each *each, void *context);
/* Returns a description; NULL: there is none. */
struct arena_probe *patches_at(const struct arena *a, uint32_t index);
/* Why a probe is not in place; NULL: it is, or may be. */
const char *patches_state_text(uint32_t state);
/* What became of the probes of an arena, and calls that belong to no thread. `last`: the arena goes away. */
void patches_settle(struct recording *recording, struct arena *a, bool last);
/* Takes the probes out of a process that was started with its agent, and goes on. */
void patches_withdraw(struct process *process);
