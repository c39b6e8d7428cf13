/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/probes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"

void probes_forget(struct probes *p, size_t first)
{
	for (size_t i = first; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		free(f->name);
		free(f->module);
		free(f->file);
		free(f->sites);
		free(f->reason);
		free(f->measures);
		free(f->slowest);
	}
	p->count = first;
}

static void free_kept(struct probes *p)
{
	for (size_t i = 0; p->kept && i < p->kept_count; i++)
		free(p->kept[i].slowest);
	free(p->kept);
	free(p->kept_of_paths);
	p->kept = NULL;
	p->kept_of_paths = NULL;
	p->kept_count = 0;
}

void probes_free(struct probes *p)
{
	probes_forget(p, 0);
	for (size_t i = 0; i < p->mark_count; i++) {
		free(p->marks[i].file);
		free(p->marks[i].sites);
	}
	for (size_t i = 0; i < p->path_count; i++)
		free(p->paths[i].measures);
	free(p->functions);
	free(p->marks);
	free(p->paths);
	free(p->path_of_node);
	free_kept(p);
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

/* ---- the budget ---- */

#define WORTH \
	0.1 /* part of what is too much that functions take at least, if less is to be done for them */

struct load {                           /* since the last time, in ns */
	uint64_t all, timed, most;      /* of functions that are timed; of one of them */
	struct probe_function *dearest; /* NULL: none is timed */
};

static struct load take_load(struct probes *p)
{
	struct load out = {0};
	for (size_t i = 0; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		uint64_t load = f->load_ns - f->judged_ns;
		f->judged_ns = f->load_ns;
		out.all += load;
		if (f->state != PROBE_ON || f->removed)
			continue;
		out.timed += load;
		if (load > out.most) {
			out.most = load;
			out.dearest = f;
		}
	}
	return out;
}

/* If nearly all is for functions that are only counted, it is of no use to count others only. */
uint32_t probes_judge(struct probes *p, uint64_t passed_ns)
{
	char why[160];
	struct load load = take_load(p);
	p->share = passed_ns ? (double)load.all / (double)passed_ns : 0;
	double over = (double)load.all - p->budget * (double)passed_ns;
	if (p->budget <= 0 || over <= 0 || !load.dearest || (double)load.timed < WORTH * over)
		return 0;
	snprintf(why, sizeof why,
		 "probes took %.0f %% of the program's time, and the budget is %g %%",
		 100 * p->share, 100 * p->budget);
	probes_refuse(load.dearest, PROBE_COUNTING, why);
	load.dearest->dropped = true;
	return (uint32_t)(load.dearest - p->functions) + 1;
}

/* ---- histograms ---- */

bool probes_are_timed(const struct probe_function *f)
{
	return f->state == PROBE_ON || f->dropped;
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

void probes_sum(struct probe_sums *to, const struct probe_sums *more)
{
	if (!to->calls && !to->returned)
		to->least = UINT64_MAX;
	to->calls += more->calls;
	to->returned += more->returned;
	to->unwound += more->unwound;
	to->abandoned += more->abandoned;
	to->untimed += more->untimed;
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

/* Finds the path that ends at this node, or makes it. */
static struct err *path_at(struct probes *p, uint32_t function, uint32_t node,
			   struct probe_path **out)
{
	if (!make_node_room(p, node) || !ARRAY_ROOM(p->paths, p->path_count, p->path_room))
		return err_new("out of memory");
	uint32_t *index = &p->path_of_node[node];
	if (!*index) {
		p->paths[p->path_count] = (struct probe_path){.node = node, .function = function};
		*index = (uint32_t)++p->path_count;
	}
	*out = &p->paths[*index - 1];
	return NULL;
}

struct err *probes_add(struct probes *p, uint32_t function, uint32_t node,
		       const struct probe_sums *more)
{
	if (function >= p->count)
		return err_new("no such function");
	probes_sum(&p->functions[function].sums, more);
	struct probe_path *path = NULL;
	struct err *e = node ? path_at(p, function, node, &path) : NULL;
	if (path)
		probes_sum(&path->sums, more);
	return e;
}

/* The slowest is the first. */
void probes_keep_slow(struct probes *p, uint32_t function, const struct probe_slow *call)
{
	struct probe_function *f = function < p->count ? &p->functions[function] : NULL;
	if (!f || !p->slowest)
		return;
	if (!f->slowest)
		f->slowest = calloc(PROBE_SLOWEST_MAX, sizeof *f->slowest);
	size_t most = p->slowest < PROBE_SLOWEST_MAX ? p->slowest : PROBE_SLOWEST_MAX;
	size_t at = f->slow_count;
	while (at && f->slowest[at - 1].ns < call->ns)
		at--;
	if (!f->slowest || at >= most)
		return;
	size_t moved = (f->slow_count < most ? f->slow_count : most - 1) - at;
	memmove(f->slowest + at + 1, f->slowest + at, moved * sizeof *f->slowest);
	f->slowest[at] = *call;
	f->slow_count = at + moved + 1;
}

/* Returns the measure in a list, which is made if there is none; NULL: no memory. */
static struct probe_measure *measure_in(struct probe_measure **list, const struct probes *p,
					uint32_t metric)
{
	if (!*list)
		*list = calloc(p->metric_count, sizeof **list);
	return *list ? &(*list)[metric] : NULL;
}

struct err *probes_measure(struct probes *p, uint32_t function, uint32_t node, uint32_t metric,
			   uint32_t octave, const struct probe_octave *more)
{
	struct probe_path *path = NULL;
	if (function >= p->count || metric >= p->metric_count)
		return err_new("no such function");
	struct err *e = node ? path_at(p, function, node, &path) : NULL;
	struct probe_measure *of = measure_in(&p->functions[function].measures, p, metric);
	struct probe_measure *of_path = path ? measure_in(&path->measures, p, metric) : NULL;
	if (!e && (!of || (path && !of_path)))
		e = err_new("out of memory");
	if (e)
		return e;
	measure_add(of, octave, more);
	if (of_path)
		measure_add(of_path, octave, more);
	return NULL;
}

uint64_t probes_active(const struct probe_sums *s)
{
	uint64_t ended = s->returned + s->unwound + s->abandoned + s->untimed;
	return s->calls > ended ? s->calls - ended : 0;
}

/* ---- looks ---- */

static bool keep(const struct probe_function *f, struct probe_kept *out)
{
	size_t size = PROBE_SLOWEST_MAX * sizeof *f->slowest;
	out->sums = f->sums;
	out->slow_count = f->slow_count;
	out->slowest = f->slow_count ? malloc(size) : NULL;
	if (out->slowest)
		memcpy(out->slowest, f->slowest, f->slow_count * sizeof *f->slowest);
	return out->slowest || !f->slow_count;
}

struct err *probes_lend(struct probes *p)
{
	probes_return(p);
	p->kept = calloc(p->count + 1, sizeof *p->kept);
	p->kept_of_paths = calloc(p->path_count + 1, sizeof *p->kept_of_paths);
	bool good = p->kept && p->kept_of_paths;
	for (size_t i = 0; good && i < p->count; i++, p->kept_count = i)
		good = keep(&p->functions[i], &p->kept[i]);
	if (!good) {
		free_kept(p);
		return err_new("out of memory");
	}
	for (size_t i = 0; i < p->path_count; i++)
		p->kept_of_paths[i] = p->paths[i].sums;
	p->kept_path_count = p->path_count;
	p->kept_untimed = p->untimed;
	p->lent = true;
	return NULL;
}

static void return_all(struct probes *p)
{
	for (size_t i = 0; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		const struct probe_kept none = {0};
		const struct probe_kept *then = i < p->kept_count ? &p->kept[i] : &none;
		f->sums = then->sums;
		f->slow_count = then->slow_count;
		if (then->slow_count)
			memcpy(f->slowest, then->slowest, then->slow_count * sizeof *f->slowest);
	}
	while (p->path_count > p->kept_path_count) {
		struct probe_path *last = &p->paths[--p->path_count];
		p->path_of_node[last->node] = 0;
		free(last->measures);
	}
	for (size_t i = 0; i < p->path_count; i++)
		p->paths[i].sums = p->kept_of_paths[i];
	p->untimed = p->kept_untimed;
}

void probes_return(struct probes *p)
{
	if (p->lent)
		return_all(p);
	p->lent = false;
	free_kept(p);
}
