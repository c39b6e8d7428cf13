/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Probes in processes that run already: puts them in, and takes them out (inject/still.h). Their agents make the islands
 * (agent/late_probes.c). If a collector was killed, its probes are still there and count: left.h.
 */
#include <stdbool.h>
#include <stdint.h>

struct agents;
struct err;
struct process;

/* Puts those in that are not in yet, and are neither removed nor refused. Refuses those that cannot be put in. */
struct err *moving_put_in(struct agents *agents, struct process *process);
/* Takes one out of all processes, by its number in the list of functions. Returns false if it is still in one. */
bool moving_take_out(struct agents *agents, uint32_t number);
/* Takes all out, ends the agent, and waits a moment until no thread is inside of it. The arena must have `stop`. */
void moving_end(struct agents *agents, struct process *process);
