/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/diff_paths.h"

#include <stdio.h>
#include <stdio_ext.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cmd/cmd.h"
#include "cmd/comparing.h"
#include "cmd/stored_paths.h"
#include "compare/path_diff.h"
#include "paths/ranking.h"

struct sides {
	struct stored_paths old, new;
	struct ranking old_ranking, new_ranking;
	struct buf old_name, new_name;
	struct path_diff diff;
};

static void put_name(const struct comparing_files *f, size_t from, size_t to, struct buf *out)
{
	buf_puts(out, f->paths[from]);
	if (to - from > 1)
		buf_printf(out, " and %zu more", to - from - 1);
}

static struct err *load(struct comparing *c, const struct comparing_files *f,
			const struct path_diff_options *options, struct sides *s)
{
	struct err *e = comparing_check(f, "paths");
	if (!e)
		e = stored_paths_read(f->paths, f->old_count, &s->old, &c->notes);
	if (!e)
		e = stored_paths_read(f->paths + f->old_count, f->count - f->old_count, &s->new,
				      &c->notes);
	if (!e)
		e = ranking_make(&s->old.result, &s->old_ranking);
	if (!e)
		e = ranking_make(&s->new.result, &s->new_ranking);
	if (!e)
		e = path_diff_make(&s->old_ranking, &s->new_ranking, options, &s->diff);
	put_name(f, 0, f->old_count, &s->old_name);
	put_name(f, f->old_count, f->count, &s->new_name);
	s->diff.old_name = buf_text(&s->old_name);
	s->diff.new_name = buf_text(&s->new_name);
	return e;
}

static struct err *print_json(const struct comparing *c, const struct path_diff *diff)
{
	struct json j = json_to_file(stdout);
	__fsetlocking(stdout, FSETLOCKING_BYCALLER); /* many small pieces, one thread */
	comparing_json_begin(&j);
	struct err *e = path_diff_json(diff, c->limit, &j);
	comparing_json_end(c, &j);
	return e;
}

static struct err *print_text(const struct comparing *c, const struct path_diff *diff)
{
	struct text_options o = comparing_text(c);
	struct buf text = {0};
	struct err *e = path_diff_text(diff, &o, &text);
	if (!e)
		e = comparing_show(c, &text);
	buf_free(&text);
	return e;
}

int diff_paths(struct comparing *c, const struct comparing_files *files,
	       const struct path_diff_options *options)
{
	struct sides s = {0};
	struct err *e = load(c, files, options, &s);
	if (!e)
		e = c->json ? print_json(c, &s.diff) : print_text(c, &s.diff);
	int status = s.diff.too_slow ? CMD_FAILED : CMD_OK;
	path_diff_free(&s.diff);
	ranking_free(&s.old_ranking);
	ranking_free(&s.new_ranking);
	stored_paths_free(&s.old);
	stored_paths_free(&s.new);
	buf_free(&s.old_name);
	buf_free(&s.new_name);
	buf_free(&c->notes);
	return e ? cmd_fail("diff", e) : cmd_finish("diff", status);
}
