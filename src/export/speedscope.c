/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own file format: a list of frames, and for each thread (and metric) a "sampled"
 * profile: paths as lists of frames, outermost first, with their weights.
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

static uint64_t put_samples(struct writer *w, uint32_t thread, uint32_t metric)
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
		sum = sum + amount < sum ? UINT64_MAX : sum + amount;
	}
	json_end_array(&w->json);
	return sum;
}

static const char *unit_of(const struct profile_metric *m)
{
	return !strcmp(m->unit, "ns")      ? "nanoseconds"
	       : !strcmp(m->unit, "bytes") ? "bytes"
					   : "none";
}

static void put_profile(struct writer *w, uint32_t thread, uint32_t metric)
{
	const struct profile_metric *m = &w->j->p->metrics[metric];
	struct json *json = &w->json;
	struct buf name = {0};
	if (!tree_total(w->t, thread, metric))
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
	uint64_t end = put_samples(w, thread, metric);
	json_key(json, "endValue");
	json_u64(json, end);
	json_end_object(json);
	buf_free(&name);
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
		for (uint32_t n = w->t->nodes[0].child; n != TREE_NONE; n = w->t->nodes[n].next)
			put_profile(w, n, w->j->metrics[m]);
	json_end_array(json);
	json_key(json, "shared");
	json_begin_object(json);
	json_key(json, "frames");
	put_frames(w);
	json_end_object(json);
	json_end_object(json);
	json_newline(json);
}

static struct err *check_frames(const struct writer *w)
{
	uint64_t frames = 0;
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
