/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/join.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/term.h"
#include "compare/names.h"
#include "profile/profile.h"

#define NOTES_KEPT 8 /* of damaged files, in the profile */
#define ALIKE 1.1    /* shares of the time that differ by less than this factor */

struct joiner {
	struct profile *all;
	const struct join_options *o;
	struct buf *warnings;
	struct buf notes;
	size_t note_count, read;
	bool numbered; /* file names do not tell runs apart */
};

/* ---- names of runs ---- */

/* "rank-07" of "out/rank-07.prof". */
static void stem(const char *path, struct buf *out)
{
	static const char ending[] = ".prof";
	size_t before = out->size, size, extra = sizeof ending - 1;
	name_module(path, out);
	size = out->size - before;
	if (!out->failed && size > extra && !strcmp(out->data + out->size - extra, ending)) {
		out->size -= extra;
		out->data[out->size] = 0;
	}
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct err *check_stems(struct joiner *j, const char *const *paths, size_t count)
{
	char **stems = calloc(count + 1, sizeof *stems);
	bool good = stems;
	for (size_t i = 0; i < count && good; i++) {
		struct buf b = {0};
		stem(paths[i], &b);
		stems[i] = buf_take(&b);
		good = stems[i];
	}
	if (good)
		qsort(stems, count, sizeof *stems, compare_strings);
	for (size_t i = 1; i < count && good; i++)
		j->numbered |= !strcmp(stems[i - 1], stems[i]);
	for (size_t i = 0; i < count && stems; i++)
		free(stems[i]);
	free(stems);
	return good ? NULL : err_new("out of memory");
}

/* Says in the names of the processes from `first` on which run they are of. */
static struct err *label(struct joiner *j, size_t first, const char *path, size_t number)
{
	for (size_t i = first; i < j->all->process_count; i++) {
		struct profile_process *p = &j->all->processes[i];
		struct buf name = {0};
		buf_printf(&name, "%s@", p->name);
		if (j->numbered)
			buf_printf(&name, "%zu", number + 1);
		else
			stem(path, &name);
		if (name.failed) {
			buf_free(&name);
			return err_new("out of memory");
		}
		p->name = profile_string(j->all, buf_text(&name));
		buf_free(&name);
	}
	return NULL;
}

/* ---- metrics ---- */

/* Samples that stand for different amounts must not be added. */
static struct err *check_periods(const struct joiner *j, const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->metric_count && !j->o->apart; i++)
		for (size_t k = 0; k < j->all->metric_count; k++) {
			const struct profile_metric *a = &j->all->metrics[k], *b = &p->metrics[i];
			if (strcmp(a->name, b->name) != 0)
				continue;
			if (strcmp(a->unit, b->unit) != 0)
				return err_new("%s: %s counts %s, in the files before it %s: they "
					       "cannot be added (--apart keeps them apart)",
					       path, b->name, b->unit, a->unit);
			if (a->period != b->period)
				return err_new("%s: a sample of %s stands for %" PRIu64
					       " %s, in the files before it for %" PRIu64
					       ": they cannot be added (--apart keeps them apart)",
					       path, b->name, b->period, b->unit, a->period);
		}
	return NULL;
}

/* ---- one after the other ---- */

static void warn(struct joiner *j, const char *path, const char *what, const char *why)
{
	buf_printf(j->warnings, "%s %s: %s\n", path, what, why);
	if (j->note_count++ < NOTES_KEPT)
		buf_printf(&j->notes, "%s%s %s: %s", j->notes.size ? "; " : "", path, what, why);
}

/* The sum of all stays right, whatever the shares; who is in it with how much does not quite. */
static void warn_coverage(struct joiner *j, const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->metric_count; i++)
		for (size_t k = 0; k < j->all->metric_count; k++) {
			const struct profile_metric *a = &j->all->metrics[k], *b = &p->metrics[i];
			double before = coverage_share(a->coverage),
			       now = coverage_share(b->coverage);
			struct buf what = {0};
			if (strcmp(a->name, b->name) != 0 || a->period != b->period ||
			    (before < ALIKE * now && now < ALIKE * before))
				continue;
			buf_printf(&what,
				   "counted %s %.1f%% of the time, the files before it %.1f%%",
				   b->name, 100 * now, 100 * before);
			warn(j, path, buf_text(&what),
			     "what ran where it was counted longer has "
			     "too large a share");
			buf_free(&what);
		}
}

static struct err *join_one(struct joiner *j, const char *path, size_t number, bool labelled)
{
	struct profile *p = NULL;
	char *damage = NULL;
	size_t first = j->all->process_count;
	struct err *e = profile_read(path, &p, &damage);
	if (e && j->o->keep_going) {
		warn(j, path, "was left out", err_text(e));
		err_free(e);
		return NULL;
	}
	if (damage)
		warn(j, path, "is damaged, the rest of it is used", damage);
	free(damage);
	if (!e)
		e = check_periods(j, p, path);
	if (!e)
		warn_coverage(j, p, path);
	if (!e)
		e = err_context(profile_append(j->all, p), "%s", path);
	if (!e && labelled)
		e = label(j, first, path, number);
	j->read += !e;
	profile_free(p);
	return e;
}

static void keep_notes(struct joiner *j)
{
	if (j->note_count > NOTES_KEPT)
		buf_printf(&j->notes, "; and %zu more files", j->note_count - NOTES_KEPT);
	if (!j->notes.size)
		return;
	if (*j->all->note)
		buf_printf(&j->notes, "; %s", j->all->note);
	j->all->note = profile_string(j->all, buf_text(&j->notes));
}

struct err *join_files(const char *const *paths, size_t count, const struct join_options *options,
		       struct profile **out, struct buf *warnings)
{
	struct joiner j = {.o = options, .warnings = warnings};
	struct term_progress progress;
	struct err *e = profile_new(&j.all);
	*out = NULL;
	if (!e)
		e = check_stems(&j, paths, count);
	term_progress_start(&progress, "culprit: merging");
	for (size_t i = 0; i < count && !e; i++) {
		e = join_one(&j, paths[i], i, count > 1);
		term_progress_update(&progress, i + 1, count);
	}
	term_progress_end(&progress);
	if (!e && !j.read)
		e = err_new("none of the files could be read: %s", paths[0]);
	if (!e)
		e = profile_settle(j.all);
	if (!e)
		keep_notes(&j);
	buf_free(&j.notes);
	if (e)
		profile_free(j.all);
	else
		*out = j.all;
	return e;
}
