/* SPDX-License-Identifier: Apache-2.0 */
#include "export/job.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/scopes.h"
#include "analyze/shorten.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/text.h"
#include "profile/profile.h"

#define FRAMES_MAX UINT64_C(2000000000) /* that are written out, path by path */
#define NO_PATH "(no path)"

_Static_assert(sizeof((struct job *)0)->metrics / sizeof(uint32_t) >= PROFILE_METRIC_MAX,
	       "room for every metric");

static bool is_only_one(enum export_format format)
{
	return format == EXPORT_FOLDED || format == EXPORT_FIREFOX;
}

static void choose_metrics(struct job *j)
{
	uint32_t wanted = j->o->metric;
	if (wanted == EXPORT_ALL_METRICS && is_only_one(j->o->format))
		wanted = 0;
	for (uint32_t i = 0; i < j->p->metric_count; i++)
		if (wanted == EXPORT_ALL_METRICS || wanted == i)
			j->metrics[j->metric_count++] = i;
}

size_t job_column(const struct job *j, uint32_t metric)
{
	return j->metric_count == j->p->metric_count ? metric : 0;
}

bool job_has(const struct job *j, const struct profile_value *v)
{
	return !j->a->dropped[v->node] && (!j->o->thread || j->o->thread[v->thread]) &&
	       (j->metric_count == j->p->metric_count || v->metric == j->metrics[0]);
}

struct err *job_open(struct job *j)
{
	const struct profile *p = j->p;
	choose_metrics(j);
	j->used = calloc(p->node_count + 1, sizeof *j->used);
	if (!j->used)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++)
		if (job_has(j, &p->values[i]))
			j->used[p->values[i].node] = true;
	for (size_t i = p->node_count; i-- > 1;)
		if (j->used[i])
			j->used[p->nodes[i].parent] = true;
	return NULL;
}

void job_close(struct job *j)
{
	for (size_t i = 0; i < j->name_count; i++)
		free(j->names[i]);
	free(j->names);
	free(j->used);
}

const struct scope *job_scope(const struct job *j, uint32_t scope)
{
	return scopes_get(j->a->scopes, scope);
}

/* Threads are scopes, too, and come later. */
static bool grow_names(struct job *j)
{
	size_t count = scopes_count(j->a->scopes);
	char **moved = reallocarray(j->names, count, sizeof *moved);
	if (!moved)
		return false;
	memset(moved + j->name_count, 0, (count - j->name_count) * sizeof *moved);
	j->names = moved;
	j->name_count = count;
	return true;
}

static char *make_name(const struct job *j, uint32_t scope)
{
	const struct scope *s = job_scope(j, scope);
	bool shorten = !j->o->full_names && !s->object &&
		       (s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE);
	struct buf name = {0}, clean = {0};
	if (shorten)
		name_shorten(s->name, &name);
	text_clean(!scope ? NO_PATH : shorten ? buf_text(&name) : s->name, "", 0, &clean);
	if (!clean.size)
		buf_puts(&clean, "??");
	clean.failed |= name.failed;
	buf_free(&name);
	return buf_take(&clean);
}

const char *job_name(struct job *j, uint32_t scope)
{
	if (scope < j->name_count || grow_names(j)) {
		if (!j->names[scope])
			j->names[scope] = make_name(j, scope);
		if (j->names[scope])
			return j->names[scope];
	}
	j->no_memory = true;
	return "??";
}

const char *job_module(const struct job *j, uint32_t scope)
{
	uint32_t module = job_scope(j, scope)->module;
	return module ? j->p->modules[module].path : "";
}

uint64_t job_amount(const struct job *j, uint32_t metric, uint64_t count)
{
	uint64_t period = profile_period(j->p, metric), amount;
	if (__builtin_mul_overflow(count, period ? period : 1, &amount) || amount > INT64_MAX)
		return INT64_MAX;
	return amount;
}

struct err *job_check_frames(uint64_t frames)
{
	return frames <= FRAMES_MAX
		       ? NULL
		       : err_new("this format lists every path in full, which would be %llu frames: "
				 "too many; callgrind and firefox have room for them",
				 (unsigned long long)frames);
}

struct err *job_check_paths(const struct job *j, bool each_sample, size_t *deepest)
{
	const struct profile *p = j->p;
	uint64_t frames = 0;
	uint32_t most = 0, *depths = calloc(p->node_count + 1, sizeof *depths);
	if (!depths)
		return err_new("out of memory");
	for (size_t i = 1; i < p->node_count; i++) {
		depths[i] = depths[p->nodes[i].parent] + 1;
		most = depths[i] > most ? depths[i] : most;
	}
	for (size_t i = 0; i < p->value_count; i++) {
		uint64_t times = each_sample ? p->values[i].count : 1, written;
		if (!job_has(j, &p->values[i]))
			continue;
		if (__builtin_mul_overflow(depths[p->values[i].node] + 1, times, &written) ||
		    __builtin_add_overflow(frames, written, &frames))
			frames = UINT64_MAX;
	}
	free(depths);
	if (deepest)
		*deepest = most;
	return job_check_frames(frames);
}

/* ---- the face ---- */

bool export_is_binary(enum export_format format)
{
	return format == EXPORT_PPROF || format == EXPORT_AUTOFDO;
}

struct err *export_write(struct attribution *a, struct modules *modules,
			 const struct export_options *o, FILE *out)
{
	static struct err *(*const formats[])(struct job *) = {
		[EXPORT_PPROF] = pprof_write,
		[EXPORT_FOLDED] = folded_write,
		[EXPORT_SPEEDSCOPE] = speedscope_write,
		[EXPORT_FIREFOX] = firefox_write,
		[EXPORT_CALLGRIND] = callgrind_write,
		[EXPORT_PERF_SCRIPT] = perf_script_write,
		[EXPORT_CSV] = csv_write,
	};
	struct job j = {.o = o, .p = a->profile, .a = a, .modules = modules, .out = out};
	struct err *e = job_open(&j);
	if (!e)
		e = formats[o->format](&j);
	if (!e && j.no_memory)
		e = err_new("out of memory");
	job_close(&j);
	return e;
}
