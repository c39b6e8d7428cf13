/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/lookup.h"
#include "analyze/reasons.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

#define CALLERS_DEPTH 1000 /* farther up nobody reads, and recursion would cost its depth squared */

/* ---- groups ---- */

static void name_group(const struct profile *p, enum view_group group, uint32_t thread,
		       struct scope *scope, struct buf *name)
{
	const struct profile_thread *t = &p->threads[thread];
	const struct profile_process *x = &p->processes[t->process];
	switch (group) {
	case GROUP_THREAD:
		*scope = (struct scope){.kind = SCOPE_THREAD, .address = thread};
		buf_printf(name, "%s (thread %" PRId32, t->name, t->tid);
		if (p->process_count > 1)
			buf_printf(name, " of %s %" PRId32, x->name, x->pid);
		buf_puts(name, ")");
		break;
	case GROUP_PROCESS:
		*scope = (struct scope){.kind = SCOPE_PROCESS, .address = t->process};
		buf_printf(name, "%s (process %" PRId32 ")", x->name, x->pid);
		break;
	default:
		*scope = (struct scope){.kind = SCOPE_RANK, .address = (uint64_t)(int64_t)x->rank};
		if (x->rank >= 0)
			buf_printf(name, "rank %" PRId32, x->rank);
		else
			buf_puts(name, "(no rank)");
	}
}

static struct err *find_reasons(struct attribution *a, uint32_t **out)
{
	uint32_t *scopes = *out = calloc(REASON_COUNT, sizeof *scopes);
	struct err *e = scopes ? NULL : err_new("out of memory");
	for (uint32_t i = 0; !e && i < REASON_COUNT; i++)
		e = scopes_add(a->scopes,
			       &(struct scope){.kind = SCOPE_REASON,
					       .address = i,
					       .name = reason_name((enum reason)i)},
			       &scopes[i]);
	return e;
}

/* The scopes of all groups: by reason, or by thread. */
static struct err *find_groups(struct attribution *a, enum view_group group, uint32_t **out)
{
	if (group == GROUP_REASON)
		return find_reasons(a, out);
	uint32_t *scopes = *out = calloc(a->profile->thread_count + 1, sizeof *scopes);
	struct err *e = scopes ? NULL : err_new("out of memory");
	for (uint32_t i = 0; !e && group && i < a->profile->thread_count; i++) {
		struct buf name = {0};
		struct scope s;
		name_group(a->profile, group, i, &s, &name);
		s.name = buf_text(&name);
		e = scopes_add(a->scopes, &s, &scopes[i]);
		buf_free(&name);
	}
	return e;
}

static bool is_group(const struct tree *t, uint32_t node)
{
	enum scope_kind kind = scopes_get(t->scopes, t->nodes[node].scope)->kind;
	return kind == SCOPE_THREAD || kind == SCOPE_PROCESS || kind == SCOPE_RANK ||
	       kind == SCOPE_REASON;
}

/* ---- from the roots down ---- */

struct builder {
	struct attribution *a;
	struct tree *tree;
	uint32_t *groups;
	uint32_t
		*tree_nodes; /* by profile node, of the group alone where there is one; TREE_NONE */
	struct lookup placed; /* group and profile node -> tree node */
	uint32_t *outside;    /* the same of what is in no group, by profile node; LOOKUP_NONE */
	uint32_t *path;       /* nodes still to be placed */
};

/* Goes down from a tree node by the scopes of one profile node. Files and modules are entered
   where they begin, not at every call inside. */
static struct err *descend(struct builder *b, uint32_t node, uint32_t *at)
{
	const struct attribution_span *span = &b->a->spans[node];
	struct err *e = NULL;
	for (uint32_t i = span->first; !e && i < span->first + span->count; i++) {
		const struct attribution_step *step = &b->a->steps[i];
		enum scope_kind kind = scopes_get(b->a->scopes, step->scope)->kind;
		if ((kind == SCOPE_FILE || kind == SCOPE_MODULE) &&
		    b->tree->nodes[*at].scope == step->scope)
			continue;
		e = tree_child(b->tree, *at, step->scope, at);
		if (!e && kind == SCOPE_INLINE)
			tree_called(b->tree, *at, step->call_file, step->call_line);
	}
	return e;
}

static uint32_t find_placed(const struct builder *b, uint32_t node, uint32_t group)
{
	return group ? lookup_find(&b->placed, (uint64_t)group << 32 | node) : b->outside[node];
}

static bool note_placed(struct builder *b, uint32_t node, uint32_t group, uint32_t at)
{
	if (group)
		return lookup_put(&b->placed, (uint64_t)group << 32 | node, at);
	b->outside[node] = at;
	return true;
}

/* The tree node of a profile node in a group; its callers are placed first. */
static struct err *place(struct builder *b, uint32_t node, uint32_t group, uint32_t *out)
{
	const struct profile *p = b->a->profile;
	size_t count = 0;
	struct err *e = NULL;
	while (node && (*out = find_placed(b, node, group)) == LOOKUP_NONE) {
		b->path[count++] = node;
		node = p->nodes[node].parent;
	}
	if (!node) {
		*out = 0;
		if (group)
			e = tree_child(b->tree, 0, group, out);
	}
	while (!e && count) {
		node = b->path[--count];
		e = descend(b, node, out);
		if (!e && !note_placed(b, node, group, *out))
			e = err_new("out of memory");
	}
	return e;
}

static struct err *build_tree(struct builder *b, const struct view_options *o)
{
	const struct profile *p = b->a->profile;
	struct err *e = NULL;
	b->path = calloc(p->node_count + 1, sizeof *b->path);
	b->outside = malloc((p->node_count + 1) * sizeof *b->outside);
	if (!b->path || !b->outside)
		return err_new("out of memory");
	for (size_t i = 0; i < p->node_count; i++)
		b->outside[i] = LOOKUP_NONE;
	for (size_t i = 0; !e && i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		uint32_t node;
		b->tree->whole[v->metric] += v->count;
		if (b->a->dropped[v->node] || (o->thread && !o->thread[v->thread]))
			continue;
		uint32_t group = b->groups[o->group == GROUP_REASON ? reason_of(p, b->a->reasons, v)
								    : v->thread];
		e = place(b, v->node, group, &node);
		uint32_t rest = attribution_rest(b->a, v->node);
		if (!e && rest)
			e = tree_child(b->tree, node, rest, &node);
		if (!e)
			b->tree->self[node * b->tree->metric_count + v->metric] += v->count;
	}
	tree_sum(b->tree);
	return e;
}

/* ---- recursion: for every node, whether none above it has its scope ---- */

static bool *find_outermost(const struct tree *t, size_t scope_count)
{
	bool *outermost = calloc(t->count, sizeof *outermost);
	uint32_t *open = calloc(scope_count, sizeof *open), at = 0;
	while (outermost && open && at != TREE_NONE) {
		const struct tree_node *n = &t->nodes[at];
		outermost[at] = !open[n->scope]++;
		uint32_t next = n->child;
		while (next == TREE_NONE && at != TREE_NONE) { /* leave it, and all that end here */
			open[t->nodes[at].scope]--;
			next = t->nodes[at].next;
			at = t->nodes[at].parent;
		}
		at = next;
	}
	free(open);
	if (at == TREE_NONE)
		return outermost;
	free(outermost);
	return NULL;
}

static void add_values(struct tree *to, uint32_t to_node, const struct tree *from, uint32_t node,
		       bool with_total)
{
	for (size_t m = 0; m < to->metric_count; m++) {
		to->self[to_node * to->metric_count + m] += from->self[node * to->metric_count + m];
		if (with_total)
			to->total[to_node * to->metric_count + m] +=
				from->total[node * to->metric_count + m];
	}
}

/* Totals of the root (and of groups) are those of the tree they come from. */
static void copy_total(struct tree *to, uint32_t to_node, const struct tree *from, uint32_t node)
{
	memcpy(to->total + to_node * to->metric_count, from->total + node * to->metric_count,
	       to->metric_count * sizeof *to->total);
}

/* Loops, where functions are listed: a function's own samples are also those in its loops. Parents
   come before their children. */

static bool is_part(const struct attribution *a, const struct tree *t, uint32_t node)
{
	return a->by != BY_LOOP && scopes_get(t->scopes, t->nodes[node].scope)->kind == SCOPE_LOOP;
}

static void gather_loops(const struct attribution *a, struct tree *t)
{
	for (uint32_t i = (uint32_t)t->count; i-- > 1;) {
		uint64_t *self = t->self + i * t->metric_count,
			 *outer = t->self + t->nodes[i].parent * t->metric_count;
		for (size_t m = 0; is_part(a, t, i) && m < t->metric_count; m++) {
			outer[m] += self[m];
			self[m] = 0;
		}
	}
}

/* ---- flat: groups where there are some, else every scope ---- */

static struct err *build_flat(const struct attribution *a, const struct tree *t,
			      const bool *outermost, struct tree *out)
{
	struct err *e = NULL;
	copy_total(out, 0, t, 0);
	for (uint32_t i = 1; !e && i < t->count; i++) {
		uint32_t node;
		if (is_part(a, t, i))
			continue;
		e = tree_child(out, 0, t->nodes[i].scope, &node);
		if (!e)
			add_values(out, node, t, i, outermost[i]);
	}
	return e;
}

/* A group has all samples in it. */
static struct err *build_flat_groups(const struct tree *t, struct tree *out)
{
	struct err *e = NULL;
	copy_total(out, 0, t, 0);
	for (uint32_t g = t->nodes[0].child; !e && g != TREE_NONE; g = t->nodes[g].next) {
		uint32_t node;
		e = tree_child(out, 0, t->nodes[g].scope, &node);
		if (e)
			break;
		copy_total(out, node, t, g);
		memcpy(out->self + node * out->metric_count, out->total + node * out->metric_count,
		       out->metric_count * sizeof *out->self);
	}
	return e;
}

/* ---- callers ---- */

/* A node of the tree whose values are followed upwards, and how far it has come. */
struct cursor {
	uint32_t origin, at;
	uint32_t scope; /* of what comes next; TREE_NONE: nothing */
};

struct range { /* of cursors that came the same way, at `node` of the result */
	size_t start, count;
	uint32_t node;
	uint64_t depth;
};

struct callers {
	const struct attribution *a;
	const struct tree *from;
	struct tree *to;
	const bool *outermost;
	const struct view_options *o;
	struct cursor *cursors;
	struct range *ranges; /* still to be followed */
	size_t range_count, range_room;
};

static int compare_cursors(const void *a, const void *b)
{
	const struct cursor *x = a, *y = b;
	if (x->scope != y->scope)
		return x->scope < y->scope ? -1 : 1;
	return x->origin < y->origin ? -1 : x->origin > y->origin;
}

static bool is_small(const struct callers *c, uint32_t node)
{
	double least = c->o->min * (double)c->to->whole[c->o->metric];
	return c->o->min > 0 && (double)tree_self(c->to, node, c->o->metric) < least &&
	       (double)tree_total(c->to, node, c->o->metric) < least;
}

/* Makes nodes below `parent` of all cursors with the same scope; large ones are followed. */
static struct err *branch(struct callers *c, size_t start, size_t end, uint32_t parent,
			  uint64_t depth)
{
	struct err *e = NULL;
	qsort(c->cursors + start, end - start, sizeof *c->cursors, compare_cursors);
	while (!e && start < end && c->cursors[start].scope != TREE_NONE) {
		struct range r = {.start = start, .depth = depth};
		e = tree_child(c->to, parent, c->cursors[start].scope, &r.node);
		for (; !e && start < end && c->cursors[start].scope == c->cursors[r.start].scope;
		     start++)
			add_values(c->to, r.node, c->from, c->cursors[start].origin,
				   c->outermost[c->cursors[start].origin]);
		r.count = start - r.start;
		if (e || is_small(c, r.node))
			continue;
		if (!ARRAY_ROOM(c->ranges, c->range_count, c->range_room))
			return err_new("out of memory");
		c->ranges[c->range_count++] = r;
	}
	return e;
}

/* One step up for every cursor of a range. */
static struct err *follow(struct callers *c, struct range r)
{
	for (size_t i = r.start; i < r.start + r.count; i++) {
		struct cursor *cursor = &c->cursors[i];
		uint32_t up = c->from->nodes[cursor->at].parent;
		bool end = up == TREE_NONE || !up || is_group(c->from, up);
		cursor->scope = end ? TREE_NONE : c->from->nodes[up].scope;
		cursor->at = end ? cursor->at : up;
	}
	uint64_t limit = c->o->depth ? c->o->depth : CALLERS_DEPTH;
	return r.depth < limit ? branch(c, r.start, r.start + r.count, r.node, r.depth + 1) : NULL;
}

/* Inner calls of a recursive function without samples of their own add nothing anywhere. */
static bool adds_nothing(const struct callers *c, uint32_t node)
{
	for (uint32_t m = 0; !c->outermost[node] && m < c->from->metric_count; m++)
		if (tree_self(c->from, node, m))
			return false;
	return !c->outermost[node];
}

/* Below `parent`, the functions of the subtree of `top`. */
static struct err *callers_of(struct callers *c, uint32_t top, uint32_t parent)
{
	size_t count = 0;
	uint32_t at = c->from->nodes[top].child;
	while (at != TREE_NONE) {
		if (!is_part(c->a, c->from, at) && !adds_nothing(c, at))
			c->cursors[count++] = (struct cursor){at, at, c->from->nodes[at].scope};
		uint32_t next = c->from->nodes[at].child;
		while (next == TREE_NONE && at != top) {
			next = c->from->nodes[at].next;
			at = c->from->nodes[at].parent;
		}
		at = next;
	}
	copy_total(c->to, parent, c->from, top);
	struct err *e = branch(c, 0, count, parent, 1);
	while (!e && c->range_count)
		e = follow(c, c->ranges[--c->range_count]);
	return e;
}

static struct err *build_callers(const struct attribution *a, const struct tree *t,
				 const bool *outermost, const struct view_options *o,
				 struct tree *out)
{
	struct callers c = {.a = a, .from = t, .to = out, .outermost = outermost, .o = o};
	struct err *e = NULL;
	c.cursors = calloc(t->count, sizeof *c.cursors);
	if (!c.cursors)
		return err_new("out of memory");
	copy_total(out, 0, t, 0);
	if (o->group == GROUP_NONE)
		e = callers_of(&c, 0, 0);
	for (uint32_t g = o->group ? t->nodes[0].child : TREE_NONE; !e && g != TREE_NONE;
	     g = t->nodes[g].next) {
		uint32_t node;
		e = tree_child(out, 0, t->nodes[g].scope, &node);
		if (!e)
			e = callers_of(&c, g, node);
	}
	free(c.cursors);
	free(c.ranges);
	return e;
}

/* ---- the face ---- */

static struct err *build_upward(struct attribution *a, struct tree *t, const struct view_options *o,
				struct tree **out)
{
	bool *outermost = find_outermost(t, scopes_count(a->scopes));
	struct err *e = outermost ? tree_new(a->scopes, t->metric_count, out)
				  : err_new("out of memory");
	if (!e) {
		memcpy((*out)->whole, t->whole, t->metric_count * sizeof *t->whole);
		gather_loops(a, t);
		if (o->view == VIEW_CALLERS)
			e = build_callers(a, t, outermost, o, *out);
		else if (o->group)
			e = build_flat_groups(t, *out);
		else
			e = build_flat(a, t, outermost, *out);
	}
	free(outermost);
	return e;
}

struct err *view_make(struct attribution *a, const struct view_options *o, struct tree **out)
{
	struct builder b = {.a = a};
	*out = NULL;
	struct err *e = tree_new(a->scopes, a->profile->metric_count, &b.tree);
	if (!e)
		e = find_groups(a, o->group, &b.groups);
	if (!e)
		e = build_tree(&b, o);
	if (!e && o->view != VIEW_TREE) {
		struct tree *downward = b.tree;
		b.tree = NULL;
		e = build_upward(a, downward, o, &b.tree);
		tree_free(downward);
	}
	if (!e)
		e = tree_sort(b.tree, o->metric, o->view != VIEW_TREE);
	free(b.groups);
	free(b.path);
	free(b.outside);
	lookup_free(&b.placed);
	if (e)
		tree_free(b.tree);
	else
		*out = b.tree;
	return e;
}
