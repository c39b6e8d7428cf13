/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Interpreted functions in targets: agents are told where the interpreter is, and what they copied of
   its functions (struct arena_script) becomes frames of the profile. */
#include <stdint.h>

struct agents;
struct arena;
struct err;
struct harvest;
struct process;
struct recording;

/* Tells the agent about the interpreter in the process's list, if there is one. */
void interpreted_tell(struct agents *agents, struct process *p);
/* As harvest_add_child, also for keys of CCT_SCRIPT and CCT_OBJECT, whose copies are in the arena. */
struct err *interpreted_add_child(struct recording *r, struct harvest *h, struct process *p,
				  const struct arena *a, uint32_t parent, uint64_t key,
				  uint32_t *node);
