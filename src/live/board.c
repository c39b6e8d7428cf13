/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples since the profile before are made into further metrics of the
 * profile: so one attribution and one view give both columns.
 */
#include "live/board.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/shorten.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/path.h"
#include "live/text.h"
#include "profile/between.h"
#include "profile/profile.h"

#define DETAIL 0.002 /* share of a function for which inlined code and loops are looked for */
#define BLOCK 65536

struct board_maker {
	struct profile *profile;
	double interval;
	struct profile twice; /* the same with metrics for now and all */
	struct modules *modules;
	/* kept while neither the profile nor what rows are changes */
	struct attribution attribution;
	bool attributed, rough;
	enum board_by by;
};

/* ---- texts ---- */

struct text_block {
	struct text_block *next;
	size_t used, room;
	char bytes[];
};

const char *text_keep(struct board *t, const char *text)
{
	size_t size = strlen(text) + 1;
	if (size == 1)
		return "";
	if (!t->texts || t->texts->room - t->texts->used < size) {
		size_t room = size > BLOCK ? size : BLOCK;
		struct text_block *b = malloc(sizeof *b + room);
		if (!b)
			return "";
		*b = (struct text_block){.next = t->texts, .room = room};
		t->texts = b;
	}
	char *copy = memcpy(t->texts->bytes + t->texts->used, text, size);
	t->texts->used += size;
	return copy;
}

const char *text_label(struct board *t, const struct scope *s)
{
	bool line = s->kind == SCOPE_LINE;
	if (s->object || (s->kind != SCOPE_FUNCTION && s->kind != SCOPE_INLINE && !line))
		return text_keep(t, s->name);
	struct buf text = {0};
	if (line && s->file)
		buf_printf(&text, s->line ? "%s:%d  " : "%s  ", path_file(s->file), s->line);
	name_shorten(s->name, &text);
	const char *label = text_keep(t, text.failed ? s->name : buf_text(&text));
	buf_free(&text);
	return label;
}

void board_free(struct board *t)
{
	if (!t)
		return;
	while (t->texts) {
		struct text_block *b = t->texts;
		t->texts = b->next;
		free(b);
	}
	free(t->rows);
	free(t->steps);
	free(t);
}

/* ---- the maker ---- */

struct err *board_maker_new(struct board_maker **out)
{
	*out = calloc(1, sizeof **out);
	return *out ? NULL : err_new("out of memory");
}

static void forget_attribution(struct board_maker *k)
{
	if (k->attributed)
		attribution_free(&k->attribution);
	k->attributed = false;
}

void board_maker_free(struct board_maker *k)
{
	if (!k)
		return;
	forget_attribution(k);
	modules_close(k->modules);
	profile_free(k->profile);
	free(k->twice.values);
	free(k->twice.metrics);
	free(k);
}

/* `twice` has the values of the profile, then those of the time since the one before. */
static struct err *double_metrics(struct board_maker *k, const struct profile *before)
{
	const struct profile *p = k->profile;
	struct profile_value *now = NULL;
	size_t now_count = 0;
	struct err *e = before ? between_values(before, p, &now, &now_count) : NULL;
	if (e)
		return e;
	const struct profile_value *recent = before ? now : p->values;
	size_t recent_count = before ? now_count : p->value_count;
	struct profile_value *values = malloc((p->value_count + recent_count + 1) * sizeof *values);
	struct profile_metric *metrics = malloc((p->metric_count * 2 + 1) * sizeof *metrics);
	if (values && metrics) {
		memcpy(values, p->values, p->value_count * sizeof *values);
		for (size_t i = 0; i < recent_count; i++) {
			values[p->value_count + i] = recent[i];
			values[p->value_count + i].metric += (uint32_t)p->metric_count;
		}
		memcpy(metrics, p->metrics, p->metric_count * sizeof *metrics);
		memcpy(metrics + p->metric_count, p->metrics, p->metric_count * sizeof *metrics);
	}
	free(now);
	free(k->twice.values);
	free(k->twice.metrics);
	k->twice = *p;
	k->twice.values = values;
	k->twice.value_count = values ? p->value_count + recent_count : 0;
	k->twice.metrics = metrics;
	k->twice.metric_count = metrics ? p->metric_count * 2 : 0;
	return values && metrics ? NULL : err_new("out of memory");
}

struct err *board_maker_take(struct board_maker *k, struct profile *profile, bool fresh)
{
	struct profile *before = k->profile;
	forget_attribution(k);
	k->profile = profile;
	bool since = before && !fresh && profile->duration_ns > before->duration_ns;
	k->interval = since ? (double)(profile->duration_ns - before->duration_ns) / 1e9 : 0;
	struct err *e = double_metrics(k, since ? before : NULL);
	if (!e && k->modules)
		e = modules_update(k->modules, profile);
	if (e) {
		modules_close(k->modules); /* it may still know the profile before */
		k->modules = NULL;
	}
	profile_free(before);
	return e;
}

/* ---- attribution ---- */

static struct err *attribute(struct board_maker *k, const struct board_wish *wish, bool rough)
{
	static const enum attribution_by bys[] = {
		[BOARD_FUNCTION] = BY_FUNCTION, [BOARD_LOOP] = BY_LOOP,
		[BOARD_LINE] = BY_LINE,         [BOARD_MODULE] = BY_MODULE,
		[BOARD_THREAD] = BY_FUNCTION,
	};
	struct attribution_options o = {
		.by = bys[wish->by],
		.no_inline = rough || wish->by == BOARD_THREAD,
		.no_loops = rough || wish->by == BOARD_THREAD,
		.metric = wish->metric,
		.detail = DETAIL,
	};
	if (k->attributed && k->by == wish->by && k->rough == rough)
		return NULL;
	forget_attribution(k);
	struct err *e = k->modules ? NULL : modules_open(k->profile, false, &k->modules);
	if (!e)
		e = attribution_make(&k->twice, k->modules, &o, &k->attribution);
	k->attributed = !e;
	k->by = wish->by;
	k->rough = rough;
	return e;
}

/* ---- rows ---- */

uint64_t scope_identity(const struct profile *p, const struct scope *s)
{
	uint64_t hash = hash_text(HASH_START ^ s->kind, p->modules[s->module].path);
	hash = hash_text(hash, s->name);
	hash = hash_text(hash, s->file);
	/* The address of a thread or process is its place in one profile. */
	uint64_t address = s->kind >= SCOPE_FUNCTION ? s->address : 0;
	return hash_number(hash_number(hash, address), (uint64_t)s->line);
}

/* "in solve" of a loop, whose name mostly is its place. */
static void describe_loop(const struct board_maker *k, const struct scope *s, struct buf *out)
{
	const struct scope *in = scopes_get(k->attribution.scopes,
					    s->inlined ? s->inlined : s->function);
	if (s->module && s->file) {
		buf_puts(out, "in ");
		name_shorten(in->name, out);
	}
}

static const char *describe(const struct board_maker *k, struct board *t, const struct scope *s)
{
	struct buf text = {0};
	const char *path = k->profile->modules[s->module].path;
	if (s->kind == SCOPE_LOOP)
		describe_loop(k, s, &text);
	else if (s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE) {
		if (s->file)
			buf_printf(&text, s->line ? "%s:%d" : "%s", path_file(s->file), s->line);
		if (s->kind == SCOPE_INLINE)
			buf_puts(&text, text.size ? " inlined" : "inlined");
	} else if (s->kind == SCOPE_MODULE && strcmp(path, s->name) != 0) {
		buf_puts(&text, path);
	}
	if (s->module && s->kind != SCOPE_MODULE)
		buf_printf(&text, "%s(%s)", text.size ? "  " : "", path_file(path));
	const char *kept = text_keep(t, buf_text(&text));
	buf_free(&text);
	return kept;
}

static void fill_row(const struct board_maker *k, struct board *t, const struct tree *tree,
		     uint32_t node)
{
	const struct scope *s = scopes_get(tree->scopes, tree->nodes[node].scope);
	uint32_t all = t->wish.metric, now = all + (uint32_t)k->profile->metric_count;
	struct board_row row = {
		.id = scope_identity(k->profile, s),
		.kind = s->kind,
		.line = s->line,
		.now_self = tree_self(tree, node, now),
		.now_total = tree_total(tree, node, now),
		.all_self = tree_self(tree, node, all),
		.all_total = tree_total(tree, node, all),
	};
	if (!row.all_total && !row.all_self)
		return;
	row.name = text_keep(t, s->name);
	row.label = text_label(t, s);
	row.where = describe(k, t, s);
	row.module = text_keep(t, s->module ? k->profile->modules[s->module].path : "");
	row.file = text_keep(t, s->file ? s->file : "");
	t->rows[t->count++] = row;
}

static struct err *make_view(struct board_maker *k, const struct board *t, enum view view,
			     struct tree **tree)
{
	struct view_options o = {
		.view = view,
		.group = t->wish.by == BOARD_THREAD ? GROUP_THREAD : GROUP_NONE,
		.metric = t->wish.metric,
	};
	return view_make(&k->attribution, &o, tree);
}

static struct err *make_rows(struct board_maker *k, struct board *t)
{
	struct tree *tree;
	struct err *e = make_view(k, t, VIEW_FLAT, &tree);
	if (e)
		return e;
	t->rows = calloc(tree->count + 1, sizeof *t->rows);
	for (uint32_t i = 1; t->rows && i < tree->count; i++)
		fill_row(k, t, tree, i);
	t->all_samples = tree->whole[t->wish.metric];
	t->now_samples = tree->whole[t->wish.metric + k->profile->metric_count];
	tree_free(tree);
	return t->rows ? NULL : err_new("out of memory");
}

static struct err *make_path(struct board_maker *k, struct board *t)
{
	struct tree *tree;
	struct err *e = make_view(k, t, VIEW_TREE, &tree);
	if (e)
		return e;
	uint32_t all = t->wish.metric;
	path_make(tree, k->profile, all + (uint32_t)k->profile->metric_count, all, t);
	tree_free(tree);
	return NULL;
}

static void describe_recording(const struct board_maker *k, struct board *t)
{
	const struct profile *p = k->profile;
	const struct profile_metric *m = &p->metrics[t->wish.metric];
	struct summary s;
	summary_make(p, t->wish.metric, &s);
	t->command = text_keep(t, p->command ? p->command : "");
	t->metric = text_keep(t, m->name);
	t->unit = text_keep(t, m->unit);
	t->period = profile_period(p, t->wish.metric);
	t->counted = coverage_share(m->coverage);
	t->metric_count = p->metric_count;
	t->seconds = s.seconds;
	t->interval = k->interval;
	t->all_partial = s.partial;
	t->lost = s.lost;
	t->processes = s.processes;
	t->threads = s.threads;
}

struct err *board_make(struct board_maker *k, const struct board_wish *wish, bool rough,
		       struct board **out)
{
	struct board *t = calloc(1, sizeof *t);
	*out = NULL;
	if (!t)
		return err_new("out of memory");
	t->wish = *wish;
	if (wish->metric >= k->profile->metric_count)
		t->wish.metric = 0;
	t->rough = rough;
	struct err *e = k->profile->metric_count ? attribute(k, &t->wish, rough)
						 : err_new("there are no samples");
	if (!e)
		e = make_rows(k, t);
	if (!e && wish->path)
		e = make_path(k, t);
	if (e) {
		board_free(t);
		return e;
	}
	describe_recording(k, t);
	*out = t;
	return NULL;
}
