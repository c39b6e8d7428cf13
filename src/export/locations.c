/* SPDX-License-Identifier: Apache-2.0 */
#include "export/locations.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/attribution.h"
#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/array.h"
#include "base/err.h"
#include "export/job.h"
#include "image/places.h"
#include "profile/profile.h"

struct maker {
	struct job *j;
	struct locations *l;
	size_t room, frame_room;
	struct lookup by_hash; /* -> the newest location with this hash */
	uint32_t *next;        /* another with the same hash */
};

uint64_t location_instruction(const struct location *l)
{
	return l->address - (l->kind == PROFILE_CALL);
}

/* ---- frames ---- */

static struct err *add_frame(struct maker *k, const struct frame *frame)
{
	struct locations *l = k->l;
	if (!ARRAY_ROOM_BELOW(l->frames, l->frame_count, k->frame_room, UINT32_MAX))
		return err_new("out of memory");
	l->frames[l->frame_count++] = *frame;
	return NULL;
}

/* A frame is at the line that calls the next inlined function; the innermost is where the
   instruction is written. */
static void place_frames(struct maker *k, const struct profile_node *n,
			 const struct attribution_span *span, const struct location *at)
{
	const struct answer *a = modules_answer(k->j->modules, n->module, location_instruction(at));
	const char *file = NULL;
	int line = 0;
	if (a && a->count) {
		const struct place *p = &a->places[k->j->o->no_inline ? a->count - 1 : 0];
		file = p->file;
		line = p->line;
	}
	for (uint32_t i = span->count; i-- > 0;) {
		struct frame *f = &k->l->frames[at->first + i];
		const struct attribution_step *s = &k->j->a->steps[span->first + i];
		f->file = file;
		f->line = line;
		if (job_scope(k->j, s->scope)->kind == SCOPE_INLINE) {
			file = s->call_file;
			line = s->call_line;
		}
	}
}

static struct err *add_frames(struct maker *k, uint32_t node, uint32_t location)
{
	const struct attribution_span *span = &k->j->a->spans[node];
	struct location *at = &k->l->all[location];
	struct err *e = NULL;
	at->first = (uint32_t)k->l->frame_count;
	at->count = span->count ? span->count : 1;
	if (!span->count) /* the root */
		return add_frame(k, &(struct frame){.location = location});
	for (uint32_t i = 0; !e && i < span->count; i++)
		e = add_frame(k, &(struct frame){.scope = k->j->a->steps[span->first + i].scope,
						 .location = location});
	const struct profile_node *n = &k->j->p->nodes[node];
	if (!e && n->kind != PROFILE_PARTIAL)
		place_frames(k, n, span, at);
	return e;
}

/* ---- locations ---- */

static uint64_t hash_of(const struct profile_node *n)
{
	uint64_t hash = (n->address ^ (uint64_t)n->module << 40) * 0x9e3779b97f4a7c15ull;
	return (hash ^ hash >> 29) + n->kind;
}

static uint32_t find(const struct maker *k, uint64_t hash, const struct profile_node *n)
{
	uint32_t at = lookup_find(&k->by_hash, hash);
	for (; at != LOOKUP_NONE; at = k->next[at]) {
		const struct location *l = &k->l->all[at];
		if (l->module == n->module && l->address == n->address && l->kind == n->kind)
			break;
	}
	return at;
}

static bool grow(struct maker *k)
{
	if (k->l->count < k->room)
		return true;
	size_t room = k->room ? k->room * 2 : 1024;
	struct location *all = reallocarray(k->l->all, room, sizeof *all);
	if (all)
		k->l->all = all;
	uint32_t *next = reallocarray(k->next, room, sizeof *next);
	if (next)
		k->next = next;
	if (all && next)
		k->room = room;
	return all && next;
}

static struct err *add_location(struct maker *k, uint32_t node)
{
	const struct profile_node *n = &k->j->p->nodes[node];
	uint64_t hash = hash_of(n);
	uint32_t *at = &k->l->of_node[node];
	*at = find(k, hash, n);
	if (*at != LOOKUP_NONE)
		return NULL;
	if (!grow(k))
		return err_new("out of memory");
	*at = (uint32_t)k->l->count++;
	k->l->all[*at] = (struct location){
		.module = n->module,
		.address = n->address,
		.kind = n->kind,
	};
	k->next[*at] = lookup_find(&k->by_hash, hash);
	if (!lookup_put(&k->by_hash, hash, *at))
		return err_new("out of memory");
	return add_frames(k, node, *at);
}

/* Without inlined functions attribution asks for no lines. */
static struct err *prepare_lines(struct job *j)
{
	size_t count = 0;
	struct modules_question *q = calloc(j->p->node_count + 1, sizeof *q);
	if (!q)
		return err_new("out of memory");
	for (size_t i = 1; i < j->p->node_count; i++) {
		const struct profile_node *n = &j->p->nodes[i];
		if (j->used[i] && n->kind != PROFILE_PARTIAL)
			q[count++] = (struct modules_question){
				n->module, n->address - (n->kind == PROFILE_CALL)};
	}
	modules_prepare(j->modules, q, count, false);
	free(q);
	return NULL;
}

static bool has_own(const struct job *j)
{
	for (size_t i = 0; i < j->p->value_count && !j->p->values[i].node; i++)
		if (job_has(j, &j->p->values[i]))
			return true;
	return false;
}

struct err *locations_make(struct job *j, struct locations *out)
{
	struct maker k = {.j = j, .l = out};
	*out = (struct locations){0};
	struct err *e = j->o->no_inline ? prepare_lines(j) : NULL;
	out->of_node = calloc(j->p->node_count + 1, sizeof *out->of_node);
	if (!e && !out->of_node)
		e = err_new("out of memory");
	for (uint32_t i = 0; !e && i < j->p->node_count; i++) {
		out->of_node[i] = LOCATION_NONE;
		if (j->used[i] && (i || has_own(j)))
			e = add_location(&k, i);
	}
	lookup_free(&k.by_hash);
	free(k.next);
	if (e)
		locations_free(out);
	return e;
}

void locations_free(struct locations *l)
{
	free(l->all);
	free(l->frames);
	free(l->of_node);
	*l = (struct locations){0};
}

/* ---- stacks ---- */

static struct err *count_rows(struct job *j, struct frame_tree *s)
{
	uint64_t rows = 0;
	for (size_t i = 0; i < j->p->node_count; i++) {
		uint32_t at = s->locations.of_node[i];
		rows += at == LOCATION_NONE ? 0 : s->locations.all[at].count;
	}
	s->of_node = calloc(j->p->node_count + 1, sizeof *s->of_node);
	s->parent = calloc(rows + 1, sizeof *s->parent);
	s->frame = calloc(rows + 1, sizeof *s->frame);
	return s->of_node && s->parent && s->frame && rows < STACK_NONE ? NULL
									: err_new("out of memory");
}

struct err *frame_tree_make(struct job *j, struct frame_tree *out)
{
	*out = (struct frame_tree){0};
	struct err *e = locations_make(j, &out->locations);
	if (!e)
		e = count_rows(j, out);
	for (size_t i = 0; !e && i < j->p->node_count; i++) {
		uint32_t at = out->locations.of_node[i];
		uint32_t up = i && j->p->nodes[i].parent ? out->of_node[j->p->nodes[i].parent]
							 : STACK_NONE;
		for (uint32_t f = 0; at != LOCATION_NONE && f < out->locations.all[at].count; f++) {
			out->parent[out->count] = up;
			out->frame[out->count] = out->locations.all[at].first + f;
			up = (uint32_t)out->count++;
		}
		out->of_node[i] = up;
	}
	if (e)
		frame_tree_free(out);
	return e;
}

void frame_tree_free(struct frame_tree *s)
{
	locations_free(&s->locations);
	free(s->parent);
	free(s->frame);
	free(s->of_node);
	*s = (struct frame_tree){0};
}
