/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/show.h"

#include "analyze/derived.h"
#include "analyze/scopes.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "profile/profile.h"

static void put_values(struct json *j, const char *key, const uint64_t *values, size_t count)
{
	json_key(j, key);
	json_begin_array(j);
	for (size_t i = 0; i < count; i++)
		json_u64(j, values[i]);
	json_end_array(j);
}

static void put_loop(const struct tree *t, const struct scope *s, struct json *j)
{
	if (s->line) {
		json_key(j, "last_line");
		json_i64(j, s->last_line);
	}
	json_key(j, "function");
	json_string(j, scopes_get(t->scopes, s->function)->name);
	if (s->inlined) {
		json_key(j, "inlined");
		json_string(j, scopes_get(t->scopes, s->inlined)->name);
	}
}

static void put_inlined(const struct tree_node *n, const struct scope *s, struct json *j)
{
	if (n->call_line) {
		json_key(j, "call_file");
		json_string(j, n->call_file);
		json_key(j, "call_line");
		json_i64(j, n->call_line);
	}
	if (s->guessed) {
		json_key(j, "guessed");
		json_bool(j, true);
	}
}

/* All its time, if the kernel counted it. */
static void put_thread(const struct profile *p, const struct scope *s, struct json *j)
{
	const struct profile_thread *t = &p->threads[s->address];
	if (!t->blocked_ns && !t->queued_ns)
		return;
	json_put_u64(j, "wall_ns", t->end_ns - t->start_ns);
	json_put_u64(j, "cpu_ns", t->cpu_ns);
	json_put_u64(j, "blocked_ns", t->blocked_ns);
	json_put_u64(j, "queued_ns", t->queued_ns);
}

struct shown {
	const struct tree *t;
	const struct profile *p;
	struct derived derived[DERIVED_MAX];
	size_t derived_count;
};

/* All of a node but its children, into the object that is open. */
static void put_node(const struct shown *x, uint32_t node, struct json *j)
{
	const struct tree *t = x->t;
	const struct profile *p = x->p;
	const struct scope *s = scopes_get(t->scopes, t->nodes[node].scope);
	json_key(j, "name");
	json_string(j, s->name);
	json_key(j, "kind");
	json_string(j, scope_kind_name(s->kind));
	json_key(j, "module");
	json_string(j, s->module ? p->modules[s->module].path : NULL);
	json_key(j, "file");
	json_string(j, s->file);
	json_key(j, "line");
	if (s->line)
		json_i64(j, s->line);
	else
		json_null(j);
	if (scope_has_address(s) || s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INSN) {
		json_key(j, "address");
		json_address(j, s->address);
	}
	if (s->kind == SCOPE_LOOP && s->module)
		put_loop(t, s, j);
	else if (s->kind == SCOPE_INLINE)
		put_inlined(&t->nodes[node], s, j);
	else if (s->kind == SCOPE_THREAD)
		put_thread(p, s, j);
	put_values(j, "self", t->self + node * t->metric_count, t->metric_count);
	put_values(j, "total", t->total + node * t->metric_count, t->metric_count);
	derived_json_values(x->derived, x->derived_count, p, t, node, j);
}

/* Trees may be as deep as stacks: no recursion here. */
static bool put_tree(const struct shown *x, bool rows, struct json *j)
{
	const struct tree *t = x->t;
	struct json_tree out;
	uint32_t at = 0;
	json_tree_begin(&out, j, rows, "tree");
	for (;;) {
		json_tree_open(&out);
		put_node(x, at, j);
		json_tree_children(&out);
		uint32_t next = tree_first(t, at);
		while (next == TREE_NONE) {
			json_tree_close(&out);
			if (!at)
				return json_tree_end(&out);
			next = tree_next(t, at);
			at = t->nodes[at].parent;
		}
		at = next;
	}
}

bool show_json(const struct tree *t, const struct profile *p, const struct show_options *o,
	       struct json *j)
{
	uint64_t rows = 0;
	struct shown x = {.t = t, .p = p};
	x.derived_count = derived_find(p, x.derived);
	summary_json_metrics(p, j);
	derived_json(x.derived, x.derived_count, p, j);
	if (!o->flat)
		return put_tree(&x, o->rows, j);
	json_key(j, "rows");
	json_begin_array(j);
	for (uint32_t i = tree_first(t, 0); i != TREE_NONE; i = tree_next(t, i)) {
		if (o->limit && rows++ >= o->limit)
			break;
		json_begin_object(j);
		put_node(&x, i, j);
		json_end_object(j);
	}
	json_end_array(j);
	return true;
}
