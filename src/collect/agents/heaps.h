/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The numbers of allocations, from the arena (safe/heap.h) to the profile. A tree only tells which node a site
   belongs to. The numbers change until the process ends, and are read then. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "safe/wire.h"

struct agents;
struct arena;
struct harvest;
struct process;
struct recording;
struct recording_options;

/* The metric whose value in an arena's node is the reference to its site; SIZE_MAX: allocations are not
   recorded. */
size_t heaps_site_metric(const struct recording_options *o);
/* What an agent is told about allocations. */
struct wire_heap heaps_settings(const struct recording *recording);
/* Notes the node and the thread of a site. */
void heaps_place(struct process *p, uint64_t site, uint32_t node, uint32_t thread);
/* Counts what a site has now. */
struct err *heaps_count(const struct recording_options *o, struct harvest *h, const struct arena *a,
			const struct process *p, uint64_t site, uint32_t node, uint32_t thread);
/* Counts the sites of a process that were noted. */
void heaps_count_placed(struct agents *agents, struct harvest *h, const struct process *p);
/* The same, when the process has ended. */
void heaps_end(struct agents *agents, struct process *p);
