/* SPDX-License-Identifier: Apache-2.0 */
#include "view/contexts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/reasons.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/align.h"
#include "view/comparison.h"
#include "view/lines.h"

/* ---- the tree ---- */

bool *contexts_wanted(const struct profile *p)
{
	bool *wanted = calloc(p->node_count + 1, sizeof *wanted);
	for (size_t i = 0; wanted && i < p->value_count; i++)
		wanted[p->values[i].node] |= p->values[i].count > 0;
	for (size_t i = p->node_count; wanted && i-- > 1;)
		wanted[p->nodes[i].parent] |= wanted[i];
	return wanted;
}

/* Whether a step goes on in what it comes from: calls inside of what is one, and of the part that a
   compiler split off a function. */
static bool is_inside(const struct attribution *a, const struct comparison *c, uint32_t node,
		      uint32_t step)
{
	const struct attribution_span *span = &a->spans[node],
				      *above = &a->spans[a->profile->nodes[node].parent];
	if (c->whole[c->same[a->steps[step].scope]])
		return true;
	if (step != span->first || !above->count)
		return false;
	const struct scope *s = scopes_get(a->scopes, a->steps[step].scope),
			   *from = scopes_get(a->scopes,
					      a->steps[above->first + above->count - 1].scope);
	return strstr(s->name, ".part") && !strstr(from->name, ".part");
}

static struct err *descend(const struct attribution *a, const struct comparison *c, struct tree *t,
			   uint32_t node, uint32_t *at)
{
	const struct attribution_span *span = &a->spans[node];
	struct err *e = NULL;
	for (uint32_t i = span->first; !e && i < span->first + span->count; i++) {
		const struct attribution_step *step = &a->steps[i];
		uint32_t scope = c ? c->same[step->scope] : step->scope;
		if (c && t->nodes[*at].scope == scope && is_inside(a, c, node, i))
			continue;
		e = tree_child(t, *at, scope, at);
		if (!e && scopes_get(a->scopes, scope)->kind == SCOPE_INLINE)
			tree_called(t, *at, step->call_file, step->call_line);
	}
	return e;
}

/* places[i]: the tree node of profile node i. */
static struct err *place_nodes(const struct attribution *a, const struct comparison *c,
			       struct tree *t, uint32_t *places)
{
	const struct profile *p = a->profile;
	bool *wanted = contexts_wanted(p);
	struct err *e = wanted ? NULL : err_new("out of memory");
	for (uint32_t i = 1; !e && i < p->node_count; i++) {
		places[i] = places[p->nodes[i].parent];
		if (wanted[i])
			e = descend(a, c, t, i, &places[i]);
	}
	free(wanted);
	return e;
}

/* By node of the tree, the samples of either side. */
static struct err *count_sides(const struct profile *p, const struct comparison *c,
			       const uint32_t *places, size_t count, uint64_t (**own)[2])
{
	*own = calloc(count + 1, sizeof **own);
	for (size_t i = 0; *own && i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		bool new = c->of_thread[v->thread] >= c->old_count;
		(*own)[places[v->node]][new] += v->count;
	}
	return *own ? NULL : err_new("out of memory");
}

/* Joins what is the same though one side has levels that the other has not. */
static struct err *align(const struct profile *p, const struct comparison *c, struct tree **tree,
			 uint32_t *places)
{
	uint32_t *moved = calloc((*tree)->count + 1, sizeof *moved);
	uint64_t(*own)[2] = NULL;
	struct tree *aligned = NULL;
	struct err *e = moved ? count_sides(p, c, places, (*tree)->count, &own)
			      : err_new("out of memory");
	if (!e)
		e = align_make(*tree, (const uint64_t(*)[2])own, &aligned, moved);
	for (size_t i = 0; !e && i < p->node_count; i++)
		places[i] = moved[places[i]];
	if (!e) {
		tree_free(*tree);
		*tree = aligned;
	}
	free(own);
	free(moved);
	return e;
}

static void count_samples(const struct profile *p, struct tree *t, const uint32_t *places)
{
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		t->self[places[v->node] * t->metric_count + v->metric] += v->count;
		t->whole[v->metric] += v->count;
	}
	tree_sum(t);
}

/* ---- the order ---- */

static struct err *order_nodes(struct contexts *c, uint32_t **numbers)
{
	const struct tree *t = c->tree;
	c->order = calloc(t->count, sizeof *c->order);
	c->depths = calloc(t->count, sizeof *c->depths);
	*numbers = calloc(t->count, sizeof **numbers);
	if (!c->order || !c->depths || !*numbers)
		return err_new("out of memory");
	uint32_t count = 0, depth = 0, at = 0;
	while (at != TREE_NONE) {
		(*numbers)[at] = count;
		c->order[count] = at;
		c->depths[count++] = depth++;
		uint32_t next = t->nodes[at].child;
		while (next == TREE_NONE && at != TREE_NONE) {
			next = t->nodes[at].next;
			at = t->nodes[at].parent;
			depth--;
		}
		at = next;
	}
	return NULL;
}

/* ---- rows ---- */

int contexts_compare(const struct context_row *x, const struct context_row *y)
{
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->reason > y->reason) - (x->reason < y->reason);
}

static int compare_rows(const void *a, const void *b)
{
	const struct context_row *x = a, *y = b;
	int order = contexts_compare(x, y);
	return order ? order : (x->metric > y->metric) - (x->metric < y->metric);
}

uint32_t *contexts_number(const struct contexts *c)
{
	uint32_t *numbers = calloc(c->row_count + 1, sizeof *numbers);
	for (size_t i = 1; numbers && i < c->row_count; i++)
		numbers[i] = numbers[i - 1] + (contexts_compare(&c->rows[i - 1], &c->rows[i]) != 0);
	return numbers;
}

const struct context_row *contexts_find(const struct contexts *c, const struct attribution *a,
					const struct lines *lines, const struct profile_value *v)
{
	const struct context_row wanted = {.node = c->of_node[v->node],
					   .thread = v->thread,
					   .line = lines->of_node[v->node],
					   .reason = (uint8_t)reason_of(a->profile, a->reasons, v),
					   .metric = v->metric};
	return c->row_count ? bsearch(&wanted, c->rows, c->row_count, sizeof wanted, compare_rows)
			    : NULL;
}

static struct err *make_rows(const struct attribution *a, const struct lines *lines,
			     const uint32_t *places, const uint32_t *numbers, struct contexts *c)
{
	const struct profile *p = a->profile;
	size_t count = 0;
	c->rows = calloc(p->value_count + 1, sizeof *c->rows);
	if (!c->rows)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		c->rows[i] = (struct context_row){.node = numbers[places[v->node]],
						  .thread = v->thread,
						  .line = lines->of_node[v->node],
						  .reason = (uint8_t)reason_of(p, a->reasons, v),
						  .metric = v->metric,
						  .count = v->count};
	}
	qsort(c->rows, p->value_count, sizeof *c->rows, compare_rows);
	for (size_t i = 0; i < p->value_count; i++)
		if (count && !compare_rows(&c->rows[count - 1], &c->rows[i]))
			c->rows[count - 1].count += c->rows[i].count;
		else if (c->rows[i].count)
			c->rows[count++] = c->rows[i];
	c->row_count = count;
	return NULL;
}

struct err *contexts_make(struct attribution *a, const struct lines *lines,
			  const struct comparison *comparison, struct contexts *out)
{
	const struct profile *p = a->profile;
	uint32_t *numbers = NULL, *places = calloc(p->node_count + 1, sizeof *places);
	*out = (struct contexts){0};
	struct err *e = places ? tree_new(a->scopes, p->metric_count, &out->tree)
			       : err_new("out of memory");
	if (!e)
		e = place_nodes(a, comparison, out->tree, places);
	if (!e && comparison)
		e = align(p, comparison, &out->tree, places);
	if (!e) {
		count_samples(p, out->tree, places);
		e = p->metric_count ? tree_sort(out->tree, 0, false) : NULL;
	}
	if (!e)
		e = order_nodes(out, &numbers);
	if (!e)
		e = make_rows(a, lines, places, numbers, out);
	for (size_t i = 0; !e && i < p->node_count; i++)
		places[i] = numbers[places[i]];
	out->of_node = places;
	free(numbers);
	if (e)
		contexts_free(out);
	return e;
}

void contexts_free(struct contexts *c)
{
	tree_free(c->tree);
	free(c->order);
	free(c->depths);
	free(c->rows);
	free(c->of_node);
	*c = (struct contexts){0};
}
