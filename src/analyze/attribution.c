/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/attribution.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/chains.h"
#include "analyze/modules.h"
#include "analyze/reasons.h"
#include "analyze/scopes.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/path.h"
#include "image/places.h"
#include "profile/profile.h"
#include "structure/structure.h"
#include "unwind/walk.h"

#define FOCUS 1
#define IGNORE 2
#define LOOKED_AT 4

struct maker {
	struct attribution *a;
	const struct profile *p;
	struct modules *modules;
	const struct attribution_options *o;
	uint32_t *alike;     /* by node: an earlier one at the same instruction, or itself */
	uint32_t *functions; /* scope of the function of each node */
	bool *detailed;      /* scopes of functions whose places are wanted */
	uint8_t *matches;    /* of each function's scope; 0: not looked at */
};

static uint64_t instruction_of(const struct profile_node *n)
{
	return n->address - (n->kind == PROFILE_CALL);
}

/* ---- nodes at the same instruction ---- */

#define ALIKE_SLOTS (1u << 17) /* stay in a processor's cache */

static bool are_alike(const struct profile_node *a, const struct profile_node *b)
{
	return a->address == b->address && a->module == b->module && a->kind == b->kind;
}

/* Instructions are much fewer than nodes: what is asked of one is asked once, mostly. A node that
   is pushed out of its slot by another only costs a second question. */
static struct err *find_alike(struct maker *k)
{
	const struct profile_node *nodes = k->p->nodes;
	uint32_t *slots = calloc(ALIKE_SLOTS, sizeof *slots);
	k->alike = calloc(k->p->node_count + 1, sizeof *k->alike);
	bool good = slots && k->alike;
	for (uint32_t i = 0; good && i < k->p->node_count; i++) {
		uint64_t hash = hash_number(hash_number(HASH_START, nodes[i].address),
					    nodes[i].module);
		uint32_t *slot = &slots[hash % ALIKE_SLOTS];
		if (!are_alike(&nodes[*slot], &nodes[i]))
			*slot = i;
		k->alike[i] = *slot;
	}
	free(slots);
	return good ? NULL : err_new("out of memory");
}

/* ---- functions ---- */

static struct err *add_partial(struct maker *k, const struct profile_node *n, uint32_t *scope)
{
	char name[64];
	bool known = n->address > WALK_COMPLETE && n->address <= WALK_COUNTED;
	snprintf(name, sizeof name, "(partial: %s)",
		 known ? walk_end_name((enum walk_end)n->address) : "unknown");
	return scopes_add(k->a->scopes,
			  &(struct scope){.kind = SCOPE_PARTIAL,
					  .address = known ? n->address : 0,
					  .name = name},
			  scope);
}

/* "libx.so+0x1234" where there is no name. */
static struct err *add_named(struct maker *k, enum scope_kind kind, uint32_t module,
			     const struct modules_function *f, uint32_t *scope)
{
	struct scope s = {.kind = kind,
			  .module = module,
			  .address = f->start,
			  .name = f->name,
			  .nameless = !f->name,
			  .script = k->p->modules[module].kind == PROFILE_SCRIPT,
			  .object = k->p->modules[module].kind == PROFILE_OBJECT};
	struct buf text = {0};
	if (!s.name) {
		buf_printf(&text, "%s+0x%" PRIx64, path_file(k->p->modules[module].path), f->start);
		s.name = buf_text(&text);
	}
	struct err *e = scopes_add(k->a->scopes, &s, scope);
	buf_free(&text);
	return e;
}

static struct err *add_function(struct maker *k, const struct profile_node *n, uint32_t *scope)
{
	struct modules_function f;
	uint8_t kind = k->p->modules[n->module].kind;
	*scope = 0;
	if (n->kind == PROFILE_ROOT)
		return NULL;
	if (n->kind == PROFILE_PARTIAL)
		return add_partial(k, n, scope);
	modules_function(k->modules, n->module, n->address, n->kind == PROFILE_EXACT, &f);
	if (kind == PROFILE_NONE)
		f = (struct modules_function){.name = "(code of no module)"};
	else if (kind == PROFILE_JIT && !f.name)
		f = (struct modules_function){.name = "(code made at run time)"};
	else if (kind == PROFILE_KERNEL && !f.name)
		f = (struct modules_function){.name = "(kernel)"};
	return add_named(k, kind == PROFILE_KERNEL ? SCOPE_KERNEL : SCOPE_FUNCTION, n->module, &f,
			 scope);
}

static struct err *find_functions(struct maker *k)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < k->p->node_count; i++) {
		if (k->alike[i] == i)
			e = add_function(k, &k->p->nodes[i], &k->functions[i]);
		else
			k->functions[i] = k->functions[k->alike[i]];
	}
	return e;
}

/* ---- what to look at closely ---- */

/* Sums of the samples below every node. */
static uint64_t *node_totals(const struct profile *p, uint32_t metric)
{
	uint64_t *totals = calloc(p->node_count + 1, sizeof *totals);
	for (size_t i = 0; totals && i < p->value_count; i++)
		if (p->values[i].metric == metric)
			totals[p->values[i].node] += p->values[i].count;
	for (size_t i = p->node_count; totals && i-- > 1;)
		totals[p->nodes[i].parent] += totals[i];
	return totals;
}

/* A recursive function is counted more than once here, which only lets more in. */
static struct err *choose_detailed(struct maker *k)
{
	const struct profile *p = k->p;
	size_t count = scopes_count(k->a->scopes);
	uint64_t *nodes = node_totals(p, k->o->metric), *sums = calloc(count, sizeof *sums);
	k->detailed = calloc(count, sizeof *k->detailed);
	bool good = nodes && sums && k->detailed;
	for (size_t i = 0; good && i < p->node_count; i++)
		sums[k->functions[i]] += nodes[i];
	for (size_t i = 0; good && i < count; i++)
		k->detailed[i] = k->o->detail <= 0 ||
				 (double)sums[i] >= k->o->detail * (double)nodes[0];
	free(nodes);
	free(sums);
	return good ? NULL : err_new("out of memory");
}

static bool wants_loops(const struct maker *k)
{
	return k->o->by == BY_LOOP || (k->o->by == BY_FUNCTION && !k->o->no_loops);
}

static bool wants_places(const struct maker *k)
{
	if (k->o->by == BY_MODULE)
		return (k->o->focus || k->o->ignore) && !k->o->no_inline;
	return k->o->by == BY_LINE || k->o->by == BY_FILE || k->o->by == BY_INSN ||
	       !k->o->no_inline || wants_loops(k);
}

/* Whether it is a function of a file, or of the kernel. */
static bool is_written(const struct scope *s)
{
	return !s->object && (s->kind == SCOPE_FUNCTION || s->kind == SCOPE_KERNEL);
}

static struct err *look_up_places(struct maker *k)
{
	size_t scope_count = scopes_count(k->a->scopes), count = 0;
	struct modules_question *q = calloc(k->p->node_count + scope_count + 1, sizeof *q);
	if (!q)
		return err_new("out of memory");
	for (size_t i = 1; i < k->p->node_count && wants_places(k); i++) {
		const struct profile_node *n = &k->p->nodes[i];
		if (k->alike[i] == i && k->detailed[k->functions[i]] && n->kind != PROFILE_PARTIAL)
			q[count++] = (struct modules_question){n->module, instruction_of(n)};
	}
	for (uint32_t i = 0; i < scope_count; i++) { /* where functions are written */
		const struct scope *s = scopes_get(k->a->scopes, i);
		if (is_written(s) && k->detailed[i] && k->o->by == BY_FUNCTION)
			q[count++] = (struct modules_question){s->module, s->address};
	}
	modules_prepare(k->modules, q, count, wants_places(k));
	free(q);
	return NULL;
}

/* Parts of a function that lie elsewhere are functions for symbol tables; structure knows better. */

static bool may_be_part(const struct scope *s, const struct structure_procedure *p)
{
	return s->kind == SCOPE_FUNCTION && s->address != p->start &&
	       (s->nameless || strstr(s->name, ".cold"));
}

static struct err *join_part(struct maker *k, size_t i)
{
	const struct profile_node *n = &k->p->nodes[i];
	const struct answer *a = modules_answer(k->modules, n->module, instruction_of(n));
	struct modules_function f;
	if (n->kind == PROFILE_PARTIAL || !a || !a->procedure ||
	    !may_be_part(scopes_get(k->a->scopes, k->functions[i]), a->procedure))
		return NULL;
	modules_function(k->modules, n->module, a->procedure->start, true, &f);
	if (f.start != a->procedure->start)
		return NULL;
	struct err *e = add_named(k, SCOPE_FUNCTION, n->module, &f, &k->functions[i]);
	const struct place *p = &a->places[a->count - 1];
	if (!e && p->declared_file)
		scopes_place(k->a->scopes, k->functions[i], p->declared_file, p->declared_line);
	return e;
}

static struct err *join_parts(struct maker *k)
{
	struct err *e = NULL;
	for (size_t i = 1; !e && i < k->p->node_count; i++)
		if (k->alike[i] == i)
			e = join_part(k, i);
		else
			k->functions[i] = k->functions[k->alike[i]];
	return e;
}

static void place_functions(struct maker *k)
{
	for (uint32_t i = 0; i < scopes_count(k->a->scopes); i++) {
		const struct scope *s = scopes_get(k->a->scopes, i);
		if (!is_written(s))
			continue;
		const struct answer *a = modules_answer(k->modules, s->module, s->address);
		if (!a)
			continue;
		const struct place *p = &a->places[a->count - 1];
		scopes_place(k->a->scopes, i, p->declared_file ? p->declared_file : p->file,
			     p->declared_line ? p->declared_line : p->line);
	}
}

/* ---- focus and ignore ---- */

static uint8_t match_name(const struct maker *k, const char *name)
{
	uint8_t found = LOOKED_AT;
	if (k->o->focus && !regexec(k->o->focus, name, 0, NULL, 0))
		found |= FOCUS;
	if (k->o->ignore && !regexec(k->o->ignore, name, 0, NULL, 0))
		found |= IGNORE;
	return found;
}

/* Functions are few: each is matched once. Inlined ones are matched where they stand. */
static uint8_t match_node(struct maker *k, size_t i)
{
	const struct profile_node *n = &k->p->nodes[i];
	uint32_t function = k->functions[i];
	if (n->kind == PROFILE_ROOT)
		return 0;
	if (!k->matches[function])
		k->matches[function] = match_name(k, scopes_get(k->a->scopes, function)->name);
	uint8_t found = k->matches[function];
	if (n->kind == PROFILE_PARTIAL)
		return found;
	const struct answer *a = modules_answer(k->modules, n->module, instruction_of(n));
	for (size_t p = 0; a && p + 1 < a->count && !k->o->no_inline; p++)
		if (a->places[p].function)
			found |= match_name(k, a->places[p].function);
	return found;
}

static struct err *drop_nodes(struct maker *k)
{
	struct attribution *a = k->a;
	uint8_t *found = calloc(k->p->node_count + 1, 1);
	k->matches = calloc(scopes_count(a->scopes) + 1, 1);
	bool good = found && k->matches;
	for (size_t i = 0; good && i < k->p->node_count; i++) {
		found[i] = match_node(k, i) | (i ? found[k->p->nodes[i].parent] : 0);
		a->dropped[i] = (k->o->focus && !(found[i] & FOCUS)) || (found[i] & IGNORE);
	}
	free(found);
	return good ? NULL : err_new("out of memory");
}

/* ---- the face ---- */

static struct err *make(struct maker *k)
{
	struct attribution *a = k->a;
	size_t count = k->p->node_count;
	k->functions = calloc(count + 1, sizeof *k->functions);
	a->dropped = calloc(count + 1, sizeof *a->dropped);
	if (!k->functions || !a->dropped)
		return err_new("out of memory");
	struct err *e = scopes_new(&a->scopes);
	if (!e)
		e = find_alike(k);
	if (!e)
		e = find_functions(k);
	if (!e)
		e = choose_detailed(k);
	if (!e)
		e = look_up_places(k);
	if (!e)
		e = join_parts(k);
	if (!e && (k->o->focus || k->o->ignore))
		e = drop_nodes(k);
	if (!e)
		e = reasons_make(k->p, a->scopes, k->functions, &a->reasons);
	if (!e)
		place_functions(k);
	return e ? e : chains_make(a, k->modules, k->o, k->functions, k->alike);
}

struct err *attribution_make(const struct profile *profile, struct modules *modules,
			     const struct attribution_options *options, struct attribution *out)
{
	struct attribution_options o = *options;
	*out = (struct attribution){.profile = profile, .by = options->by};
	if (o.focus || o.ignore || o.by == BY_LOOP || o.by == BY_LINE || o.by == BY_FILE)
		o.detail = 0; /* what is not looked up would be missed, or miscounted */
	struct maker k = {.a = out, .p = profile, .modules = modules, .o = &o};
	struct err *e = make(&k);
	free(k.alike);
	free(k.detailed);
	free(k.functions);
	free(k.matches);
	if (e)
		attribution_free(out);
	return e;
}

void attribution_free(struct attribution *a)
{
	scopes_free(a->scopes);
	free(a->spans);
	free(a->steps);
	free(a->dropped);
	free(a->reasons);
	*a = (struct attribution){0};
}

uint32_t attribution_rest(const struct attribution *a, uint32_t node)
{
	const struct profile *p = a->profile;
	bool kernel = p->modules[p->nodes[node].module].kind == PROFILE_KERNEL;
	return a->spans[node].count ? 0 : kernel ? a->kernel_rest : a->rest;
}
