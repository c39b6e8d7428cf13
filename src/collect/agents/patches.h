/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Probes that agents put into their programs (agent/probes.c): what they are asked for, and what they have counted. */
#include <stdbool.h>
#include <stdint.h>

struct agents;
struct arena;
struct err;
struct harvest;
struct process;
struct recording;

/* Describes the probes for a program that has just said HELLO, in its arena. It waits for our answer. */
struct err *patches_ask(struct agents *agents, struct process *process);
/* Counts the sums that a value of a node refers to. `last`: nobody will add to them.
   `partial`: is raised by the calls; NULL: their path is complete. */
struct err *patches_take(struct recording *recording, struct harvest *harvest,
			 const struct arena *a, uint64_t reference, uint32_t node, uint32_t thread,
			 bool last, uint64_t *partial);
/* The arena goes away: what became of its probes. */
void patches_settle(struct recording *recording, struct arena *a);
/* Takes the probes out of a process, which goes on. */
void patches_withdraw(struct process *process);
