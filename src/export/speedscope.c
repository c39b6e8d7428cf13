/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format: a list of frames, and for each thread (and metric) a "sampled"
 * profile: paths as lists of frames, outermost first, with their weights. A sample has no time of its
 * own: it begins where the weights before it end. So where there is a time line, samples stand in its
 * order, and what has no frames fills the time in which the thread was not seen to work:
 *
 *     0      0.5 s                  0.7 s       1.2 s
 *     | []   | [main, read, parse]  | []        | [main, solve] ...
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "export/job.h"
#include "export/moments.h"
#include "export/text.h"
#include "export/walk.h"
#include "profile/profile.h"

#define FRAME_NONE UINT32_MAX

struct writer {
	struct job *j;
	struct json json;
	struct tree *t;
	uint32_t *frame_of; /* by scope */
	uint32_t *scope_of; /* by frame */
	uint32_t frame_count;
	uint32_t *path;
	bool in_order; /* of time, where that is known */
};

static uint32_t frame_of(struct writer *w, uint32_t scope)
{
	if (w->frame_of[scope] == FRAME_NONE) {
		w->scope_of[w->frame_count] = scope;
		w->frame_of[scope] = w->frame_count++;
	}
	return w->frame_of[scope];
}

static void put_path(struct writer *w, size_t depth)
{
	json_begin_array(&w->json);
	for (size_t i = 1; i <= depth; i++)
		json_u64(&w->json, w->path[i]);
	if (!depth)
		json_u64(&w->json, frame_of(w, 0));
	json_end_array(&w->json);
}

/* ---- by the time line ---- */

struct piece {
	uint32_t node; /* of the profile; PIECE_NONE: nothing was seen */
	uint64_t weight;
};
#define PIECE_NONE UINT32_MAX
#define PERIODS_MAX 2 /* without a sample of a thread that works */
#define GAP_MAX 1e18  /* ns; a damaged file may say more */

struct pieces {
	struct piece *all;
	size_t count;
	uint64_t end; /* the sum of the weights */
};

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void add_piece(struct pieces *p, uint32_t node, uint64_t weight)
{
	if (!p->count || p->all[p->count - 1].node != node)
		p->all[p->count++] = (struct piece){.node = node};
	struct piece *last = &p->all[p->count - 1];
	last->weight = sum_of(last->weight, weight);
	p->end = sum_of(p->end, weight);
}

/* False without memory. */
static bool make_pieces(const struct job *j, const struct timing *timing, const struct moments *m,
			struct pieces *out)
{
	*out = (struct pieces){.all = calloc(2 * m->count + 1, sizeof *out->all)};
	for (size_t i = 0; out->all && i < m->count; i++) {
		double ns = m->all[i].ms * 1e6, behind = ns - (double)out->end;
		if (timing->is_time && behind > PERIODS_MAX * timing->step_ms * 1e6 &&
		    behind < GAP_MAX)
			add_piece(out, PIECE_NONE, (uint64_t)behind);
		add_piece(out, m->all[i].node, job_amount(j, timing->metric, m->all[i].count));
	}
	return out->all;
}

/* The scopes of a node and its callers, innermost first; returns how many. */
static size_t find_path(struct writer *w, uint32_t node)
{
	const struct attribution *a = w->j->a;
	size_t depth = 0;
	for (; node; node = w->j->p->nodes[node].parent) {
		const struct attribution_span *span = &a->spans[node];
		for (uint32_t i = span->count; i-- > 0;)
			w->path[depth++] = frame_of(w, a->steps[span->first + i].scope);
	}
	return depth;
}

static void put_piece(struct writer *w, const struct piece *p)
{
	size_t depth = p->node == PIECE_NONE ? 0 : find_path(w, p->node);
	json_begin_array(&w->json);
	for (size_t i = depth; i-- > 0;)
		json_u64(&w->json, w->path[i]);
	if (!depth && p->node != PIECE_NONE)
		json_u64(&w->json, frame_of(w, 0));
	json_end_array(&w->json);
}

static uint64_t put_pieces(struct writer *w, const struct pieces *p)
{
	json_key(&w->json, "samples");
	json_begin_array(&w->json);
	for (size_t i = 0; i < p->count; i++)
		put_piece(w, &p->all[i]);
	json_end_array(&w->json);
	json_key(&w->json, "weights");
	json_begin_array(&w->json);
	for (size_t i = 0; i < p->count; i++)
		json_u64(&w->json, p->all[i].weight);
	json_end_array(&w->json);
	return p->end;
}

/* ---- without one ---- */

static uint64_t put_in_turn(struct writer *w, uint32_t thread, uint32_t metric)
{
	struct tree_walk walk;
	uint64_t sum = 0;
	json_key(&w->json, "samples");
	json_begin_array(&w->json);
	for (uint32_t n = tree_walk_first(&walk, w->t, thread); n != TREE_NONE;
	     n = tree_walk_next(&walk)) {
		if (walk.depth)
			w->path[walk.depth] = frame_of(w, w->t->nodes[n].scope);
		if (tree_self(w->t, n, metric))
			put_path(w, walk.depth);
	}
	json_end_array(&w->json);
	json_key(&w->json, "weights");
	json_begin_array(&w->json);
	for (uint32_t n = tree_walk_first(&walk, w->t, thread); n != TREE_NONE;
	     n = tree_walk_next(&walk)) {
		uint64_t amount = job_amount(w->j, metric, tree_self(w->t, n, metric));
		if (amount)
			json_u64(&w->json, amount);
		sum = sum_of(sum, amount);
	}
	json_end_array(&w->json);
	return sum;
}

/* ---- profiles ---- */

/* Returns the sum of the weights. */
static uint64_t put_samples(struct writer *w, uint32_t node, const struct timing *timing)
{
	uint32_t thread = (uint32_t)job_scope(w->j, w->t->nodes[node].scope)->address;
	struct moments moments = {0};
	struct pieces pieces = {0};
	uint64_t end = 0;
	struct err *e = w->in_order ? moments_make(timing, thread, &moments) : NULL;
	bool good = !e && (!moments.timed || make_pieces(w->j, timing, &moments, &pieces));
	if (good)
		end = moments.timed ? put_pieces(w, &pieces) : put_in_turn(w, node, timing->metric);
	w->j->no_memory |= !good;
	err_free(e);
	free(pieces.all);
	moments_free(&moments);
	return end;
}

static const char *unit_of(const struct profile_metric *m)
{
	return !strcmp(m->unit, "ns")      ? "nanoseconds"
	       : !strcmp(m->unit, "bytes") ? "bytes"
					   : "none";
}

static void put_profile(struct writer *w, uint32_t thread, const struct timing *timing)
{
	const struct profile_metric *m = &w->j->p->metrics[timing->metric];
	struct json *json = &w->json;
	struct buf name = {0};
	if (!tree_total(w->t, thread, timing->metric))
		return;
	buf_puts(&name, job_name(w->j, w->t->nodes[thread].scope));
	if (w->j->metric_count > 1)
		buf_printf(&name, ": %s", m->name);
	json_begin_object(json);
	json_key(json, "type");
	json_string(json, "sampled");
	json_key(json, "name");
	json_string(json, buf_text(&name));
	json_key(json, "unit");
	json_string(json, unit_of(m));
	json_key(json, "startValue");
	json_u64(json, 0);
	uint64_t end = put_samples(w, thread, timing);
	json_key(json, "endValue");
	json_u64(json, end);
	json_end_object(json);
	buf_free(&name);
}

static void put_profiles(struct writer *w, uint32_t metric)
{
	struct timing timing;
	struct err *e = moments_open(w->j, metric, &timing);
	for (uint32_t n = w->t->nodes[0].child; !e && n != TREE_NONE; n = w->t->nodes[n].next)
		put_profile(w, n, &timing);
	w->j->no_memory |= e != NULL;
	err_free(e);
	moments_close(&timing);
}

static void put_frames(struct writer *w)
{
	struct json *json = &w->json;
	json_begin_array(json);
	for (uint32_t i = 0; i < w->frame_count; i++) {
		const struct scope *s = job_scope(w->j, w->scope_of[i]);
		json_begin_object(json);
		json_key(json, "name");
		json_string(json, job_name(w->j, w->scope_of[i]));
		if (s->file) {
			json_key(json, "file");
			json_string(json, s->file);
		}
		if (s->file && s->line > 0) {
			json_key(json, "line");
			json_i64(json, s->line);
		}
		json_end_object(json);
	}
	json_end_array(json);
}

static void put_all(struct writer *w)
{
	struct json *json = &w->json;
	const char *command = w->j->p->command;
	json_begin_object(json);
	json_key(json, "$schema");
	json_string(json, "https://www.speedscope.app/file-format-schema.json");
	json_key(json, "exporter");
	json_string(json, w->j->o->creator);
	json_key(json, "name");
	json_string(json, command && *command ? command : "culprit");
	json_key(json, "activeProfileIndex");
	json_u64(json, 0);
	json_key(json, "profiles");
	json_begin_array(json);
	for (size_t m = 0; m < w->j->metric_count; m++)
		put_profiles(w, w->j->metrics[m]);
	json_end_array(json);
	json_key(json, "shared");
	json_begin_object(json);
	json_key(json, "frames");
	put_frames(w);
	json_end_object(json);
	json_end_object(json);
	json_newline(json);
}

/* In their order, a path may be there as often as it has samples: only if that is not too long. */
static struct err *check_frames(struct writer *w)
{
	uint64_t frames = 0;
	struct err *e = job_check_paths(w->j, true, NULL);
	w->in_order = !e;
	err_free(e);
	for (size_t m = 0; m < w->j->metric_count; m++)
		frames += tree_walk_frames(w->t, w->j->metrics[m]);
	return job_check_frames(frames);
}

struct err *speedscope_write(struct job *j)
{
	struct writer w = {.j = j, .json = json_to_file(j->out)};
	struct err *e = walk_view(j, VIEW_TREE, GROUP_THREAD, &w.t);
	if (!e)
		e = check_frames(&w);
	if (!e) {
		size_t scopes = scopes_count(j->a->scopes) + 1;
		w.frame_of = malloc(scopes * sizeof *w.frame_of);
		w.scope_of = malloc(scopes * sizeof *w.scope_of);
		w.path = calloc(tree_walk_depth(w.t, 0) + 2, sizeof *w.path);
		if (w.frame_of && w.scope_of && w.path) {
			memset(w.frame_of, 0xff, scopes * sizeof *w.frame_of);
			put_all(&w);
		} else {
			e = err_new("out of memory");
		}
	}
	tree_free(w.t);
	free(w.frame_of);
	free(w.scope_of);
	free(w.path);
	return e;
}
