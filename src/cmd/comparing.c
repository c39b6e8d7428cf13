/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/comparing.h"

#include "analyze/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/pager.h"
#include "base/term.h"
#include "cmd/cmd.h"

int comparing_percent(const char *command, const char *option, const char *text, double most,
		      double *out)
{
	char *end;
	double value;
	if (!text)
		return -1;
	value = strtod(text, &end);
	end += *end == '%';
	if (end == text || *end || !isfinite(value) || value < 0 || value > most)
		return cmd_misused(command, "--%s takes a per cent from 0 to %g, not '%s'", option,
				   most, text);
	*out = value;
	return -1;
}

int comparing_behind(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return argc - i - 1;
	return 0;
}

int comparing_gather(const char *command, struct comparing_files *f, const struct args *args,
		     int behind)
{
	size_t operands = (size_t)args->count, split = operands - (size_t)behind;
	if (f->old.count + f->new.count) {
		if (operands || !f->old.count || !f->new.count)
			return cmd_misused(command,
					   "--old and --new go together, without other profiles");
		operands = 0;
		split = 0;
	} else if (!behind && operands != 2) {
		return cmd_misused(command, operands < 2 ? "two profiles are needed: OLD NEW"
							 : "more than two profiles need a -- "
							   "between the sides: OLD... -- NEW...");
	} else if (!behind) {
		split = 1;
	} else if (!split) {
		return cmd_misused(command, "there are no profiles before --");
	}
	f->paths = calloc(operands + f->old.count + f->new.count + 1, sizeof *f->paths);
	if (!f->paths)
		return cmd_fail(command, err_new("out of memory"));
	for (size_t i = 0; i < operands; i++)
		f->paths[f->count++] = args->operands[i];
	for (size_t i = 0; i < f->old.count; i++)
		f->paths[f->count++] = f->old.values[i];
	for (size_t i = 0; i < f->new.count; i++)
		f->paths[f->count++] = f->new.values[i];
	f->old_count = split + f->old.count;
	return -1;
}

static struct err *check_files(const char *const *paths, size_t count, const char *command)
{
	for (size_t i = 0; i < count; i++)
		if (choose_is_missing(paths[i]))
			return err_new("there is no %s: make one by culprit %s -o %s -- COMMAND",
				       paths[i], command, paths[i]);
	return NULL;
}

struct err *comparing_check(const struct comparing_files *f, const char *command)
{
	return check_files(f->paths, f->count, command);
}

struct err *comparing_read(struct comparing *c, const char *const *paths, size_t count,
			   size_t old_count)
{
	struct counts_options options = {.by = (enum counts_by)c->by,
					 .old_runs = old_count,
					 .no_inline = c->no_inline,
					 .debuginfod = c->debuginfod};
	struct err *e = check_files(paths, count, "record");
	if (!e)
		e = runs_read(paths, count, c->metric, &c->runs);
	if (e)
		return e;
	if (c->runs.amounts && !old_count)
		return err_new("%s counts no samples, and how much these vary is told by samples: "
			       "--metric %s",
			       c->runs.metric, c->runs.sampled);
	runs_notes(&c->runs, &c->notes);
	return counts_make(&c->runs, &options, &c->rows, &c->notes);
}

void comparing_free(struct comparing *c)
{
	counts_free(&c->rows);
	runs_free(&c->runs);
	buf_free(&c->notes);
}

struct text_options comparing_text(const struct comparing *c)
{
	return (struct text_options){
		.limit = c->limit,
		.width = term_is_tty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0,
		.colour = term_colour(STDOUT_FILENO),
		.full_names = c->full_names,
	};
}

void comparing_json_begin(struct json *j)
{
	json_begin_object(j);
	json_key(j, "culprit");
	json_u64(j, 1);
}

void comparing_json_end(const struct comparing *c, struct json *j)
{
	text_notes_json(buf_text(&c->notes), j);
	json_end_object(j);
	json_newline(j);
}

struct err *comparing_show(const struct comparing *c, const struct buf *text)
{
	struct buf out = {0};
	cmd_put_lines(&out, buf_text(&c->notes), TERM_YELLOW);
	buf_puts(&out, buf_text(text));
	struct err *e = out.failed || text->failed ? err_new("out of memory")
						   : pager_show(&out, !c->no_pager);
	buf_free(&out);
	return e;
}
