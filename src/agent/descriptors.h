/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What descriptors of the program stand for: for reads and writes (pauses.c). Only in the agent for events. */
#include "agent/agent.h"

/* Returns a reference to the struct arena_object of a descriptor; 0: there is none, or no room. `now`: CLOCK_MONOTONIC. */
uint32_t descriptor_object(struct agent_thread *t, int fd, uint64_t now);
