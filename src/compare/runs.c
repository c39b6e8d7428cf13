/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/runs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/choose.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

#define LOST_NOTED 0.01 /* share of the samples */

/* ---- metrics ---- */

/* The same one in another file. */
static struct err *find(const struct runs *r, const struct profile *p, const char *path,
			uint32_t *metric)
{
	for (uint32_t i = 0; i < p->metric_count; i++) {
		if (strcmp(p->metrics[i].name, r->metric))
			continue;
		if (strcmp(p->metrics[i].unit, r->unit))
			return err_new("%s of %s counts %s, that of %s %s", r->metric, path,
				       p->metrics[i].unit, r->all[0].path, r->unit);
		*metric = i;
		return NULL;
	}
	return choose_no_metric(p, path, r->metric);
}

/* Where the profile of all has this metric. */
static uint32_t find_joined(const struct profile *all, const struct profile_metric *m)
{
	uint32_t i = 0;
	while (i + 1 < all->metric_count &&
	       (all->metrics[i].period != m->period || strcmp(all->metrics[i].name, m->name) ||
		strcmp(all->metrics[i].unit, m->unit)))
		i++;
	return i;
}

/* ---- reading ---- */

static void describe(struct run *run, const struct profile *p, uint32_t metric)
{
	run->period = profile_period(p, metric);
	run->coverage = p->metrics[metric].coverage;
	run->user_only = p->metrics[metric].user_only;
	run->complete = p->complete;
	run->shortened = p->shortened;
	run->samples = profile_samples(p, metric);
	for (size_t i = 0; i < p->lost_count; i++)
		run->lost += p->lost[i].count;
}

/* Each run has its own, whatever became of its metrics in the profile of all. */
static struct err *keep_periods(const struct profile *all, const struct profile *p, struct run *run)
{
	run->periods = calloc(all->metric_count + 1, sizeof *run->periods);
	if (!run->periods)
		return err_new("out of memory");
	run->period_count = all->metric_count;
	for (uint32_t i = 0; i < p->metric_count; i++)
		run->periods[find_joined(all, &p->metrics[i])] = profile_period(p, i);
	return NULL;
}

static struct err *add(struct runs *r, struct run *run, const struct profile *p, const char *wanted)
{
	bool first = run == r->all;
	uint32_t metric = 0;
	struct err *e = choose_check_samples(p, run->path);
	if (e)
		return e;
	e = !p->metric_count ? err_new("%s has no samples", run->path)
	    : first          ? choose_metric(p, run->path, wanted, &metric)
			     : find(r, p, run->path, &metric);
	if (e)
		return e;
	if (first) {
		r->metric = profile_string(r->profile, p->metrics[metric].name);
		r->unit = profile_string(r->profile, p->metrics[metric].unit);
		uint32_t sampled = profile_sampled(p, metric);
		r->amounts = sampled != metric;
		r->sampled = profile_string(r->profile, p->metrics[sampled].name);
	}
	describe(run, p, metric);
	if (!run->period)
		return err_new("%s: %s has no period", run->path, r->metric);
	run->first_thread = (uint32_t)r->profile->thread_count;
	e = profile_append(r->profile, p);
	if (!e)
		e = keep_periods(r->profile, p, run);
	run->metric = e ? 0 : find_joined(r->profile, &p->metrics[metric]);
	return err_context(e, "%s", run->path);
}

static struct err *read_one(struct runs *r, size_t i, const char *path, const char *wanted)
{
	struct run *run = &r->all[i];
	struct profile *p = NULL;
	const struct profile_spare spare = {.rare_above = wanted ? 0 : PROFILE_MANY};
	run->path = path;
	r->count = i + 1;
	struct err *e = profile_read_without(path, &spare, &p, &run->damage);
	if (!e)
		e = add(r, run, p, wanted);
	profile_free(p);
	return e;
}

static struct err *map_threads(struct runs *r)
{
	r->of_thread = calloc(r->profile->thread_count + 1, sizeof *r->of_thread);
	if (!r->of_thread)
		return err_new("out of memory");
	for (size_t i = 0; i < r->count; i++) {
		size_t end = i + 1 < r->count ? r->all[i + 1].first_thread
					      : r->profile->thread_count;
		for (size_t t = r->all[i].first_thread; t < end; t++)
			r->of_thread[t] = (uint32_t)i;
	}
	return NULL;
}

struct err *runs_read(const char *const *paths, size_t count, const char *metric, struct runs *out)
{
	*out = (struct runs){.all = calloc(count + 1, sizeof *out->all)};
	struct err *e = out->all ? profile_new(&out->profile) : err_new("out of memory");
	for (size_t i = 0; i < count && !e; i++)
		e = read_one(out, i, paths[i], metric);
	if (!e)
		e = profile_settle(out->profile);
	if (!e)
		e = map_threads(out);
	if (e)
		runs_free(out);
	return e;
}

void runs_free(struct runs *r)
{
	for (size_t i = 0; i < r->count; i++) {
		free(r->all[i].damage);
		free(r->all[i].periods);
	}
	free(r->all);
	free(r->of_thread);
	profile_free(r->profile);
	*r = (struct runs){0};
}

/* ---- what makes them hard to compare ---- */

static void note_run(const struct run *run, const char *metric, struct buf *out)
{
	double counted = coverage_share(run->coverage);
	if (counted < 1)
		buf_printf(out, "%s counted %s %.1f%% of the time: scaled\n", run->path, metric,
			   100 * counted);
	if (run->damage)
		buf_printf(out, "%s is damaged: %s\n", run->path, run->damage);
	if (run->shortened)
		buf_printf(out, "%s: the callers of rare samples are left out (culprit-db(1))\n",
			   run->path);
	if (!run->complete)
		buf_printf(out, "%s was written while the command was still running\n", run->path);
	if (!run->samples)
		buf_printf(out, "%s has no samples\n", run->path);
	if ((double)run->lost > LOST_NOTED * (double)(run->lost + run->samples))
		buf_printf(out, "%s lost %" PRIu64 " samples\n", run->path, run->lost);
}

void runs_notes(const struct runs *r, struct buf *out)
{
	bool periods = false, kernel = false;
	for (size_t i = 0; i < r->count; i++) {
		note_run(&r->all[i], r->metric, out);
		periods |= r->all[i].period != r->all[0].period;
		kernel |= r->all[i].user_only != r->all[0].user_only;
	}
	if (periods)
		buf_puts(out, "the recordings have different periods: samples are weighted by "
			      "them\n");
	if (kernel)
		buf_puts(out, "some of the recordings count code in the kernel, others do not\n");
}
