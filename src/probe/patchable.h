/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which functions the agent can probe from inside of the program. */

#include <stddef.h>

struct probe_modules;
struct probes;

/* Sets `unpatched` of those that it cannot. The first `at_start` modules are in memory when the program begins. */
void probe_judge_patches(struct probes *probes, const struct probe_modules *modules,
			 size_t at_start);
/* The agent probes those from `first` on. */
void probe_use_patches(struct probes *probes, size_t first);
