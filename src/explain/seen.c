/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/seen.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "explain/frequency.h"
#include "flow/graph.h"
#include "profile/profile.h"

#define WEIGHT_MOST 20.0 /* of a trail; that of the usual one is 1 */
#define FEW 3.0          /* so many trails more are taken for granted where few began */

struct begin { /* an instruction at which trails began */
	uint32_t module;
	uint64_t address;
	double trails, samples, frequency; /* frequency 0: not known */
	double weight;
};

struct way { /* an edge of the trails that began at one instruction */
	uint32_t module, begin;
	uint64_t from, to;
	double count;
};

struct seen {
	struct begin *begins;
	size_t begin_count;
	struct way *ways; /* by module, from, to */
	size_t way_count;
};

static int compare_ways(const void *a, const void *b)
{
	const struct way *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* The profile has them by where they begin. */
static void read_edges(struct seen *s, const struct profile *p)
{
	for (size_t i = 0; i < p->edge_count; i++) {
		const struct profile_edge *e = &p->edges[i];
		struct begin *last = s->begin_count ? &s->begins[s->begin_count - 1] : NULL;
		if (!last || last->module != e->begin_module || last->address != e->begin) {
			last = &s->begins[s->begin_count++];
			*last = (struct begin){
				.module = e->begin_module, .address = e->begin, .weight = 1};
		}
		if (e->module)
			s->ways[s->way_count++] = (struct way){e->module,
							       (uint32_t)(s->begin_count - 1),
							       e->from, e->to, (double)e->count};
		else
			last->trails += (double)e->count;
	}
	if (s->way_count)
		qsort(s->ways, s->way_count, sizeof *s->ways, compare_ways);
}

struct err *seen_open(const struct profile *p, struct seen **out)
{
	*out = NULL;
	if (!p->edge_count)
		return NULL;
	struct seen *s = calloc(1, sizeof *s);
	if (s) {
		s->begins = calloc(p->edge_count, sizeof *s->begins);
		s->ways = calloc(p->edge_count, sizeof *s->ways);
	}
	if (!s || !s->begins || !s->ways) {
		seen_close(s);
		return err_new("out of memory");
	}
	read_edges(s, p);
	*out = s;
	return NULL;
}

void seen_close(struct seen *s)
{
	if (!s)
		return;
	free(s->begins);
	free(s->ways);
	free(s);
}

/* ---- weights ---- */

static bool is_before(const struct begin *b, uint32_t module, uint64_t address)
{
	return b->module != module ? b->module < module : b->address < address;
}

void seen_weigh(struct seen *s, uint32_t module, const struct graph *graph,
		const struct frequency_insn *insns, size_t count,
		const struct frequency_result *result)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = FIRST_NOT(k, s->begin_count,
				      is_before(&s->begins[k], module, insns[i].address));
		struct begin *b = &s->begins[at];
		if (at == s->begin_count || b->module != module || b->address != insns[i].address)
			continue;
		uint32_t block = graph_find(graph, insns[i].address);
		b->samples = insns[i].samples;
		b->frequency = block == GRAPH_NONE ? 0 : result->blocks[block].executions;
	}
}

static int compare_weights(const void *a, const void *b)
{
	const struct begin *x = *(const struct begin *const *)a,
			   *y = *(const struct begin *const *)b;
	return (x->weight > y->weight) - (x->weight < y->weight);
}

/* The weight that half of the trails have at most. */
static double usual_weight(struct seen *s)
{
	const struct begin **order = calloc(s->begin_count + 1, sizeof *order);
	double all = 0, sum = 0, usual = 1;
	size_t count = 0;
	for (size_t i = 0; order && i < s->begin_count; i++)
		if (s->begins[i].frequency > 0) {
			order[count++] = &s->begins[i];
			all += s->begins[i].trails;
		}
	if (count)
		qsort(order, count, sizeof *order, compare_weights);
	for (size_t i = 0; i < count && sum < all / 2; i++) {
		sum += order[i]->trails;
		usual = order[i]->weight;
	}
	free(order);
	return usual > 0 ? usual : 1;
}

void seen_settle(struct seen *s)
{
	double trails = 0, samples = 0;
	for (size_t i = 0; i < s->begin_count; i++) {
		trails += s->begins[i].trails;
		samples += s->begins[i].samples;
	}
	for (size_t i = 0; i < s->begin_count; i++) {
		struct begin *b = &s->begins[i];
		/* How many trails begin here is known better with the samples than without. */
		double expected = samples > 0 ? b->samples * trails / (2 * samples) : 0;
		b->weight = b->frequency / (b->trails + FEW + expected);
	}
	double usual = usual_weight(s);
	for (size_t i = 0; i < s->begin_count; i++) {
		struct begin *b = &s->begins[i];
		b->weight = b->frequency > 0 ? b->weight / usual : 1;
		if (b->weight > WEIGHT_MOST)
			b->weight = WEIGHT_MOST;
	}
}

/* ---- lists ---- */

struct err *seen_list(const struct seen *s, uint32_t module, const struct graph *graph,
		      struct frequency_observation **out, size_t *count)
{
	size_t room = 0;
	*out = NULL;
	*count = 0;
	for (size_t i = 0; i < graph->block_count; i++) {
		struct way wanted = {.module = module, .from = graph->blocks[i].last};
		size_t at = FIRST_NOT(k, s->way_count, compare_ways(&s->ways[k], &wanted) < 0);
		for (; at < s->way_count && s->ways[at].module == module &&
		       s->ways[at].from == wanted.from;
		     at++) {
			const struct way *w = &s->ways[at];
			double weight = s->begins[w->begin].weight;
			struct frequency_observation *last = *count ? &(*out)[*count - 1] : NULL;
			if (!last || last->from != w->from || last->to != w->to) {
				if (!ARRAY_ROOM(*out, *count, room))
					return err_new("out of memory");
				last = &(*out)[(*count)++];
				*last = (struct frequency_observation){.from = w->from,
								       .to = w->to};
			}
			last->count += weight * w->count;
			last->squares += weight * weight * w->count;
		}
	}
	return NULL;
}
