/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/probes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

#define SUBS 8u /* buckets from each power of two to the next */
#define SUB_BITS 3u

void probes_free(struct probes *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		free(f->name);
		free(f->module);
		free(f->file);
		free(f->sites);
		free(f->reason);
	}
	for (size_t i = 0; i < p->mark_count; i++) {
		free(p->marks[i].file);
		free(p->marks[i].sites);
	}
	free(p->functions);
	free(p->marks);
	free(p->paths);
	free(p->path_of_node);
	*p = (struct probes){0};
}

void probes_refuse(struct probe_function *f, enum probe_state state, const char *reason)
{
	if (f->state >= state)
		return;
	f->state = (uint8_t)state;
	free(f->reason);
	f->reason = strdup(reason);
}

/* ---- histograms ---- */

uint32_t probes_bucket(uint64_t ns)
{
	if (ns < SUBS)
		return (uint32_t)ns;
	uint32_t power = 63 - (uint32_t)__builtin_clzll(ns);
	uint32_t bucket = (power - SUB_BITS + 1) * SUBS +
			  ((uint32_t)(ns >> (power - SUB_BITS)) & (SUBS - 1));
	return bucket < PROBE_TIMES ? bucket : PROBE_TIMES - 1;
}

uint64_t probes_bucket_start(uint32_t bucket)
{
	if (bucket < SUBS)
		return bucket;
	return (uint64_t)(SUBS + bucket % SUBS) << (bucket / SUBS - 1);
}

uint64_t probes_quantile(const struct probe_sums *s, double part)
{
	uint64_t wanted = (uint64_t)(part * (double)s->returned + 0.5), seen = 0;
	if (!s->returned)
		return 0;
	wanted = wanted ? wanted : 1;
	uint32_t i = 0;
	while (i < PROBE_TIMES - 1 && (seen += s->times[i]) < wanted)
		i++;
	uint64_t start = probes_bucket_start(i), middle = (start + probes_bucket_start(i + 1)) / 2;
	return middle < s->least ? s->least : middle > s->most ? s->most : middle;
}

/* ---- sums ---- */

static void add(struct probe_sums *to, const struct probe_sums *more)
{
	if (!to->calls && !to->returned)
		to->least = UINT64_MAX;
	to->calls += more->calls;
	to->returned += more->returned;
	to->unwound += more->unwound;
	to->abandoned += more->abandoned;
	to->ns += more->ns;
	to->most = more->most > to->most ? more->most : to->most;
	to->least = more->least < to->least ? more->least : to->least;
	for (uint32_t i = 0; i < PROBE_TIMES; i++)
		to->times[i] += more->times[i];
}

static bool make_node_room(struct probes *p, uint32_t node)
{
	size_t room = p->node_room ? p->node_room : 1024;
	if (node < p->node_room)
		return true;
	while (room <= node)
		room *= 2;
	uint32_t *more = reallocarray(p->path_of_node, room, sizeof *more);
	if (!more)
		return false;
	memset(more + p->node_room, 0, (room - p->node_room) * sizeof *more);
	p->path_of_node = more;
	p->node_room = room;
	return true;
}

struct err *probes_add(struct probes *p, uint32_t function, uint32_t node,
		       const struct probe_sums *more)
{
	if (function >= p->count)
		return err_new("no such function");
	add(&p->functions[function].sums, more);
	if (!node)
		return NULL;
	if (!make_node_room(p, node) || !ARRAY_ROOM(p->paths, p->path_count, p->path_room))
		return err_new("out of memory");
	uint32_t *index = &p->path_of_node[node];
	if (!*index) {
		p->paths[p->path_count] = (struct probe_path){.node = node, .function = function};
		*index = (uint32_t)++p->path_count;
	}
	add(&p->paths[*index - 1].sums, more);
	return NULL;
}

uint64_t probes_active(const struct probe_sums *s)
{
	uint64_t ended = s->returned + s->unwound + s->abandoned;
	return s->calls > ended ? s->calls - ended : 0;
}
