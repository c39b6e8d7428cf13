/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What probes have counted, as text and as JSON. cmd/probe.c uses it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json;
struct modules;
struct probes;
struct profile;

/* Appends the table of functions. Returns how many lines it has. */
size_t probe_show_functions(const struct probes *probes, struct buf *out);
/* Appends the call paths with the most time, or calls. */
void probe_show_paths(const struct probes *probes, const struct profile *profile,
		      struct modules *modules, uint64_t limit, struct buf *out);
/* Appends what was measured, the slowest calls, and what stands out. */
struct err *probe_show_more(const struct probes *probes, const struct profile *profile,
			    struct modules *modules, struct buf *out);
/* Writes "probes" into the object that is open: the functions and how often they were called. */
void probe_show_list(const struct probes *probes, struct json *out);
/* Writes "probes", "paths", "metrics" and the tree into the object that is open. `rows`: see base/json_tree.h. */
struct err *probe_show_json(const struct probes *probes, const struct profile *profile,
			    struct modules *modules, bool rows, struct json *out);
