/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180): a row for each function, or for each calling context, with its
 * samples of every metric. Contexts have a number and that of their parent, parents first.
 */
#include <inttypes.h>
#include <string.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/job.h"
#include "export/text.h"
#include "export/walk.h"
#include "profile/profile.h"

#define ROW_END "\r\n"

static void put_text(struct job *j, const char *text)
{
	fputc('"', j->out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', j->out);
		fputc(*text, j->out);
	}
	fputc('"', j->out);
}

/* Quoted where it must be. */
static void put_field(struct job *j, const char *text)
{
	struct buf clean = {0};
	text_clean(text, "", 0, &clean);
	j->no_memory |= clean.failed;
	fputc(',', j->out);
	if (strpbrk(buf_text(&clean), "\",") || strchr(buf_text(&clean), ' '))
		put_text(j, buf_text(&clean));
	else
		fputs(buf_text(&clean), j->out);
	buf_free(&clean);
}

static void put_title(struct job *j)
{
	fputs(j->o->contexts ? "id,parent,depth,kind,name,module,file,line,address"
			     : "kind,name,module,file,line,address",
	      j->out);
	for (size_t i = 0; i < j->metric_count; i++) {
		static const char *const what[] = {"self", "total"};
		for (size_t k = 0; k < 2; k++) {
			struct buf title = {0};
			buf_printf(&title, "%s %s", j->p->metrics[j->metrics[i]].name, what[k]);
			put_field(j, buf_text(&title));
			buf_free(&title);
		}
	}
	fputs(ROW_END, j->out);
}

static void put_node(struct job *j, const struct tree *t, uint32_t node)
{
	uint32_t number = t->nodes[node].scope;
	const struct scope *s = job_scope(j, number);
	bool addressed = scope_has_address(s);
	fputs(scope_kind_name(s->kind), j->out);
	put_field(j, node ? job_name(j, number) : "(all)");
	put_field(j, job_module(j, number));
	put_field(j, s->file ? s->file : "");
	fputc(',', j->out);
	if (s->line)
		fprintf(j->out, "%d", s->line);
	fputc(',', j->out);
	if (addressed)
		fprintf(j->out, "0x%" PRIx64, s->address);
	for (size_t i = 0; i < j->metric_count; i++)
		fprintf(j->out, ",%" PRIu64 ",%" PRIu64, tree_self(t, node, j->metrics[i]),
			tree_total(t, node, j->metrics[i]));
	fputs(ROW_END, j->out);
}

static void put_contexts(struct job *j, const struct tree *t)
{
	struct tree_walk w;
	for (uint32_t n = tree_walk_first(&w, t, 0); n != TREE_NONE; n = tree_walk_next(&w)) {
		fprintf(j->out, "%" PRIu32 ",", n);
		if (n)
			fprintf(j->out, "%" PRIu32, t->nodes[n].parent);
		fprintf(j->out, ",%zu,", w.depth);
		put_node(j, t, n);
	}
}

struct err *csv_write(struct job *j)
{
	struct tree *t = NULL;
	struct err *e = walk_view(j, j->o->contexts ? VIEW_TREE : VIEW_FLAT, j->o->group, &t);
	if (e)
		return e;
	put_title(j);
	if (j->o->contexts)
		put_contexts(j, t);
	else
		for (uint32_t n = t->nodes[0].child; n != TREE_NONE; n = t->nodes[n].next)
			put_node(j, t, n);
	tree_free(t);
	return NULL;
}
