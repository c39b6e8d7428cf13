/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folded stacks, what flame graphs are drawn from: a line for every path that has samples, the
 * outermost function first.
 *
 *     main;solve(int);inner 800
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/job.h"
#include "export/text.h"
#include "export/walk.h"

struct folder {
	struct job *j;
	const struct tree *t;
	uint32_t metric;
	struct buf line;
	size_t *ends; /* of the line, by depth */
};

/* A number at the end of a name would be the first of two counts, as in differences of two runs. */
static void part_number(struct buf *line, size_t from)
{
	size_t at = line->size;
	while (at > from && strchr("0123456789.", line->data[at - 1]))
		at--;
	if (at > from && at < line->size && line->data[at - 1] == ' ')
		line->data[at - 1] = '_';
}

static void put_frame(struct folder *f, uint32_t scope)
{
	if (f->line.size)
		buf_puts(&f->line, ";");
	size_t from = f->line.size;
	text_clean(job_name(f->j, scope), ";", ':', &f->line);
	part_number(&f->line, from);
}

static bool is_path(const struct folder *f, uint32_t node)
{
	enum scope_kind kind = job_scope(f->j, f->t->nodes[node].scope)->kind;
	return kind != SCOPE_ROOT && kind != SCOPE_THREAD && kind != SCOPE_PROCESS;
}

static void put_line(struct folder *f, uint32_t node)
{
	uint64_t self = tree_self(f->t, node, f->metric);
	if (!self)
		return;
	if (!is_path(f, node))
		put_frame(f, 0);
	fprintf(f->j->out, "%s %" PRIu64 "\n", buf_text(&f->line), self);
}

static void cut(struct folder *f, size_t size)
{
	f->line.size = size;
	if (f->line.data)
		f->line.data[size] = 0;
}

static struct err *fold(struct folder *f)
{
	struct tree_walk w = {0};
	f->ends = calloc(tree_walk_depth(f->t, 0) + 2, sizeof *f->ends);
	if (!f->ends)
		return err_new("out of memory");
	for (uint32_t n = tree_walk_first(&w, f->t, 0); n != TREE_NONE; n = tree_walk_next(&w)) {
		cut(f, w.depth ? f->ends[w.depth - 1] : 0);
		if (n)
			put_frame(f, f->t->nodes[n].scope);
		f->ends[w.depth] = f->line.size;
		put_line(f, n);
		if (f->line.failed)
			return err_new("out of memory");
	}
	return NULL;
}

struct err *folded_write(struct job *j)
{
	struct folder f = {.j = j, .metric = j->metrics[0]};
	struct tree *t = NULL;
	if (!j->metric_count)
		return NULL;
	struct err *e = walk_view(j, VIEW_TREE, j->o->group, &t);
	f.t = t;
	if (!e)
		e = job_check_frames(tree_walk_frames(t, f.metric));
	if (!e)
		e = fold(&f);
	tree_free(t);
	buf_free(&f.line);
	free(f.ends);
	return e;
}
