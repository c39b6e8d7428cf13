/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Adds the frames of a path to the profile's tree, outermost first, and counts the sample at the last
   one. paths.c uses it for paths that the sampler walked, walks.c for copies, counters.c for samples
   that were only counted. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kernel;
struct process;
struct script_calls;

/* Sets `node` to where a path begins, by how its walk ended (enum walk_end): at the root, or at the node
   of the reason for a partial path. */
struct err *frames_add_root(struct kernel *k, struct process *p, uint32_t end, uint32_t *node);
/* Moves `node` to its child for the next inner frame. */
struct err *frames_add(struct kernel *k, struct process *p, uint64_t key, uint32_t *node);
/* The same; but if the frame runs interpreted functions, these stand in its place. *left is as for
   scripts_add; 0: calls are left out. */
struct err *frames_add_called(struct kernel *k, struct process *p, uint64_t key,
			      const struct script_calls *calls, size_t *left, uint32_t *node);
/* Whether the frame runs interpreted functions. */
bool frames_is_host(uint64_t key);
/* Counts samples at a node. */
struct err *frames_count(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			 uint32_t end, uint64_t time, uint64_t count);
/* The same without the time line. */
struct err *frames_count_only(struct kernel *k, uint32_t thread, uint32_t node, uint32_t event,
			      uint32_t end, uint64_t count);
/* Counts samples of a place whose callers are not known. */
struct err *frames_count_place(struct kernel *k, struct process *p, uint32_t thread, uint64_t key,
			       uint32_t event, uint64_t count);
