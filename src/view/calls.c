/* SPDX-License-Identifier: Apache-2.0 */
#include "view/calls.h"

#include <stdbool.h>
#include <stdlib.h>

#include "analyze/attribution.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/array.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/contexts.h"
#include "view/lines.h"

#define SEVERAL UINT32_MAX
#define UNKNOWN (UINT32_MAX - 1)

struct maker {
	const struct attribution *a;
	const struct contexts *contexts;
	const struct lines *lines;
	struct strings *strings;
	uint32_t *place; /* by node of the tree: its place in the order */
	bool *wanted;    /* by node of the profile: whether it is in the tree */
	struct calls *out;
};

/* What is done with a node of the tree, a line from which it is called, and the node of the profile
   of which that is known. */
typedef struct err *call_use(struct maker *k, uint32_t place, uint32_t line, void *context,
			     uint32_t node);

/* The line from which a step of a frame is called: UNKNOWN, or 0 where it is no call. */
static uint32_t line_of_step(const struct maker *k, uint32_t node, uint32_t i)
{
	const struct attribution_span *span = &k->a->spans[node];
	const struct attribution_step *step = &k->a->steps[span->first + i];
	bool inlined = scopes_get(k->a->scopes, step->scope)->kind == SCOPE_INLINE;
	if (!inlined && i > 0)
		return 0;
	uint32_t line = inlined ? lines_find(k->lines, k->strings, step->call_file, step->call_line)
				: k->lines->of_node[k->a->profile->nodes[node].parent];
	return line ? line : UNKNOWN;
}

static struct err *each_call(struct maker *k, call_use *use, void *context)
{
	const struct tree *t = k->contexts->tree;
	struct err *e = NULL;
	for (uint32_t node = 1; !e && node < k->a->profile->node_count; node++) {
		uint32_t at = k->contexts->order[k->contexts->of_node[node]];
		uint32_t count = k->wanted[node] ? k->a->spans[node].count : 0;
		for (uint32_t i = count; !e && at && i-- > 0; at = t->nodes[at].parent) {
			uint32_t line = line_of_step(k, node, i);
			if (line)
				e = use(k, k->place[at], line, context, node);
		}
	}
	return e;
}

static struct err *note_line(struct maker *k, uint32_t place, uint32_t line, void *context,
			     uint32_t node)
{
	(void)context;
	(void)node;
	uint32_t *known = &k->out->line[place];
	*known = !*known || *known == line ? line : SEVERAL;
	return NULL;
}

struct metric_totals {
	uint32_t metric;
	uint64_t *totals; /* by node of the profile */
};

static struct err *add_row(struct maker *k, uint32_t place, uint32_t line, void *context,
			   uint32_t node)
{
	const struct metric_totals *m = context;
	struct calls *c = k->out;
	if (c->line[place] != SEVERAL || line == UNKNOWN || !m->totals[node])
		return NULL;
	if (!ARRAY_ROOM_BELOW(c->rows, c->row_count, c->room, SIZE_MAX))
		return err_new("out of memory");
	c->rows[c->row_count++] = (struct call_row){place, line, m->metric, m->totals[node]};
	return NULL;
}

static void sum_metric(const struct profile *p, struct metric_totals *m)
{
	for (size_t i = 0; i < p->node_count; i++)
		m->totals[i] = 0;
	for (size_t i = 0; i < p->value_count; i++)
		if (p->values[i].metric == m->metric)
			m->totals[p->values[i].node] += p->values[i].count;
	for (size_t i = p->node_count; i-- > 1;)
		m->totals[p->nodes[i].parent] += m->totals[i];
}

static int compare_calls(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->metric < y->metric ? -1 : x->metric > y->metric;
}

static void join_rows(struct calls *c)
{
	size_t count = 0;
	if (c->row_count)
		qsort(c->rows, c->row_count, sizeof *c->rows, compare_calls);
	for (size_t i = 0; i < c->row_count; i++)
		if (count && !compare_calls(&c->rows[count - 1], &c->rows[i]))
			c->rows[count - 1].count += c->rows[i].count;
		else
			c->rows[count++] = c->rows[i];
	c->row_count = count;
}

static struct err *make_rows(struct maker *k)
{
	const struct profile *p = k->a->profile;
	struct metric_totals m = {.totals = calloc(p->node_count + 1, sizeof *m.totals)};
	struct err *e = m.totals ? each_call(k, note_line, NULL) : err_new("out of memory");
	for (; !e && m.metric < p->metric_count; m.metric++) {
		sum_metric(p, &m);
		e = each_call(k, add_row, &m);
	}
	free(m.totals);
	join_rows(k->out);
	for (size_t i = 0; !e && i < k->contexts->tree->count; i++)
		k->out->line[i] = k->out->line[i] >= UNKNOWN ? 0 : k->out->line[i];
	return e;
}

struct err *calls_make(const struct attribution *a, const struct contexts *contexts,
		       const struct lines *lines, struct strings *strings, struct calls *out)
{
	size_t count = contexts->tree->count;
	*out = (struct calls){.line = calloc(count + 1, sizeof *out->line)};
	struct maker k = {
		.a = a, .contexts = contexts, .lines = lines, .strings = strings, .out = out};
	k.place = calloc(count + 1, sizeof *k.place);
	k.wanted = contexts_wanted(a->profile);
	struct err *e = k.place && k.wanted && out->line ? NULL : err_new("out of memory");
	for (uint32_t i = 0; !e && i < count; i++)
		k.place[contexts->order[i]] = i;
	if (!e)
		e = make_rows(&k);
	free(k.place);
	free(k.wanted);
	if (e)
		calls_free(out);
	return e;
}

void calls_free(struct calls *c)
{
	free(c->line);
	free(c->rows);
	*c = (struct calls){0};
}
