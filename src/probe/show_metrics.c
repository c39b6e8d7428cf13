/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/show_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/term.h"
#include "harvest/probes.h"
#include "probe/fit.h"
#include "probe/paths.h"
#include "profile/profile.h"

#define SECOND_NS 1000000000ull
#define WIDTH 10

static bool is_time(const struct probe_metric *m)
{
	return m->kind == PROBE_CPU || m->kind == PROBE_BLOCKED;
}

static bool is_value(const struct probe_metric *m)
{
	return m->kind == PROBE_ARGUMENT || m->kind == PROBE_RETURN;
}

static void put(const struct probe_metric *m, int64_t value, struct buf *out)
{
	char text[TERM_UNIT_MAX];
	if (is_time(m))
		buf_printf(out, " %*s", WIDTH, term_time(text, (double)value / 1e9));
	else
		buf_printf(out, " %*" PRId64, WIDTH, value);
}

/* ---- tables ---- */

void metrics_show_title(const struct probe_metric *m, struct buf *out)
{
	buf_printf(out, " %*.*s", WIDTH, WIDTH, m->name);
}

void metrics_show_column(const struct probe_metric *m, const struct probe_measure *measure,
			 struct buf *out)
{
	if (!measure || !measure->calls)
		buf_printf(out, " %*s", WIDTH, "-");
	else
		put(m, is_value(m) ? measure->sum / (int64_t)measure->calls : measure->sum, out);
}

static void put_row(const struct probe_metric *m, const struct probe_measure *measure,
		    const char *name, struct buf *out)
{
	put(m, measure->sum, out);
	put(m, measure->sum / (int64_t)measure->calls, out);
	put(m, measure->least, out);
	put(m, measure_quantile(measure, 0.5), out);
	put(m, measure_quantile(measure, 0.9), out);
	put(m, measure_quantile(measure, 0.99), out);
	put(m, measure->most, out);
	buf_printf(out, "  %s of ", m->name);
	buf_put_clean(out, name, strlen(name));
	buf_puts(out, "\n");
}

/* By outcome: how many calls returned a negative number, 0 and more, and how long these took. */
static void put_outcomes(const struct probe_measure *m, struct buf *out)
{
	static const char *const names[] = {"negative", "0", "positive"};
	uint64_t calls[3] = {0}, ns[3] = {0};
	for (uint32_t i = 0; i < PROBE_VALUES; i++) {
		int outcome = i >= PROBE_TIMES ? 0 : i ? 2 : 1;
		calls[outcome] += m->buckets[i].calls;
		ns[outcome] += m->buckets[i].ns;
	}
	for (int i = 0; i < 3; i++) {
		char text[TERM_UNIT_MAX];
		if (!calls[i])
			continue;
		buf_printf(out, " %*s  returned %s: %" PRIu64 " call%s, %s each\n", WIDTH, "",
			   names[i], calls[i], calls[i] == 1 ? "" : "s",
			   term_time(text, (double)ns[i] / (double)calls[i] / 1e9));
	}
}

void metrics_show_table(const struct probes *p, struct buf *out)
{
	static const char *const titles[] = {"sum", "mean", "min", "p50", "p90", "p99", "max"};
	for (size_t i = 0; p->metric_count && i < sizeof titles / sizeof *titles; i++)
		buf_printf(out, "%s %*s", i ? "" : "\n", WIDTH, titles[i]);
	if (p->metric_count)
		buf_puts(out, "  metric\n");
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_function *f = &p->functions[i];
		for (size_t k = 0; f->measures && k < p->metric_count; k++) {
			if (!f->measures[k].calls)
				continue;
			put_row(&p->metrics[k], &f->measures[k], f->name, out);
			if (p->metrics[k].kind == PROBE_RETURN)
				put_outcomes(&f->measures[k], out);
		}
	}
}

/* ---- the slowest calls ---- */

struct slow {
	const struct probe_slow *call;
	const struct probe_function *function;
};

static int slower_first(const void *a, const void *b)
{
	const struct slow *x = a, *y = b;
	return x->call->ns > y->call->ns ? -1 : x->call->ns < y->call->ns;
}

/* When it was by the clock on the wall, in ns since 1970. */
static uint64_t real_ns(uint64_t monotonic)
{
	return clock_ns(CLOCK_REALTIME) - (clock_ns(CLOCK_MONOTONIC) - monotonic);
}

static void put_slow(const struct probes *p, const struct slow *s, const struct profile *profile,
		     struct modules *modules, struct buf *out)
{
	char text[TERM_UNIT_MAX], when[16] = "";
	uint64_t real = real_ns(s->call->begun);
	time_t seconds = (time_t)(real / SECOND_NS);
	struct tm local;
	if (localtime_r(&seconds, &local))
		strftime(when, sizeof when, "%H:%M:%S", &local);
	buf_printf(out, " %9s %8s.%03u %8u", term_time(text, (double)s->call->ns / 1e9), when,
		   (unsigned)(real % SECOND_NS / 1000000), s->call->thread);
	for (size_t i = 0; i < p->metric_count; i++) {
		const struct probe_metric *m = &p->metrics[i];
		if (is_value(m))
			put(m,
			    measure_value(m, m->kind == PROBE_RETURN
						     ? s->call->result
						     : s->call->parameters[m->number - 1]),
			    out);
	}
	buf_puts(out, "  ");
	if (s->call->node) {
		path_print(profile, modules, s->call->node, out);
	} else {
		buf_put_clean(out, s->function->name, strlen(s->function->name));
		buf_puts(out, " < ?");
	}
	buf_puts(out, "\n");
}

void metrics_show_slowest(const struct probes *p, const struct profile *profile,
			  struct modules *modules, struct buf *out)
{
	size_t count = 0, room = 0;
	for (size_t i = 0; i < p->count; i++)
		room += p->functions[i].slow_count;
	struct slow *all = calloc(room + 1, sizeof *all);
	for (size_t i = 0; all && i < p->count; i++)
		for (size_t k = 0; k < p->functions[i].slow_count; k++)
			all[count++] = (struct slow){&p->functions[i].slowest[k], &p->functions[i]};
	if (count) {
		qsort(all, count, sizeof *all, slower_first);
		buf_printf(out, "\n %9s %12s %8s", "slowest", "at", "thread");
		for (size_t i = 0; i < p->metric_count; i++)
			if (is_value(&p->metrics[i]))
				metrics_show_title(&p->metrics[i], out);
		buf_puts(out, "  called by\n");
	}
	for (size_t i = 0; i < count && i < p->slowest; i++)
		put_slow(p, &all[i], profile, modules, out);
	free(all);
}

/* ---- JSON ---- */

static void put_i64(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_i64(j, value);
}

static void put_fit(const struct fit *f, struct json *j)
{
	json_key(j, "fit");
	json_begin_object(j);
	json_put_string(j, "shape", fit_name(f->shape));
	if (f->shape != FIT_NONE) {
		json_put_string(j, "of", f->cpu ? "cpu" : "wall");
		json_put_double(j, "sure", f->sure);
		json_put_string(j, "other", fit_name(f->other));
		json_put_double(j, "explained", f->explained);
		json_put_double(j, "base_ns", f->base_ns);
		json_put_double(j, "each_ns", f->each_ns);
	}
	json_end_object(j);
}

/* Times: [from, calls]. Values: [from, calls, wall ns, CPU ns]. */
static void put_histogram(const struct probe_metric *m, const struct probe_measure *measure,
			  struct json *j)
{
	json_key(j, "histogram");
	json_begin_array(j);
	for (uint32_t i = 0; i < PROBE_VALUES; i++) {
		const struct probe_bucket *b = &measure->buckets[i];
		if (!b->calls)
			continue;
		json_begin_array(j);
		json_i64(j, measure_bucket_start(i));
		json_u64(j, b->calls);
		if (is_value(m)) {
			json_u64(j, b->ns);
			json_u64(j, b->cpu_ns);
		}
		json_end_array(j);
	}
	json_end_array(j);
}

static void put_measure(const struct probe_metric *m, const struct probe_measure *measure,
			struct json *j)
{
	char key[80];
	snprintf(key, sizeof key, "%s%s", m->name, is_time(m) ? "_ns" : "");
	json_key(j, key);
	json_begin_object(j);
	json_put_u64(j, "calls", measure->calls);
	put_i64(j, "sum", measure->sum);
	put_i64(j, "min", measure->calls ? measure->least : 0);
	put_i64(j, "max", measure->calls ? measure->most : 0);
	put_i64(j, "p50", measure_quantile(measure, 0.5));
	put_i64(j, "p90", measure_quantile(measure, 0.9));
	put_i64(j, "p99", measure_quantile(measure, 0.99));
	put_histogram(m, measure, j);
	if (m->kind == PROBE_ARGUMENT) {
		const struct fit fit = fit_make(measure);
		put_fit(&fit, j);
	}
	json_end_object(j);
}

void metrics_show_json(const struct probes *p, const struct probe_measure *measures, struct json *j)
{
	for (size_t i = 0; measures && i < p->metric_count; i++)
		put_measure(&p->metrics[i], &measures[i], j);
}

static void put_slow_json(const struct probes *p, const struct probe_slow *s,
			  const struct profile *profile, struct modules *modules, struct json *j)
{
	json_begin_object(j);
	json_put_u64(j, "ns", s->ns);
	json_put_u64(j, "time_ns", real_ns(s->begun));
	json_put_u64(j, "process", s->process);
	json_put_u64(j, "thread", s->thread);
	for (size_t i = 0; i < p->metric_count; i++) {
		const struct probe_metric *m = &p->metrics[i];
		if (is_value(m))
			put_i64(j, m->name,
				measure_value(m, m->kind == PROBE_RETURN
							 ? s->result
							 : s->parameters[m->number - 1]));
	}
	if (!p->patched) {
		json_key(j, "registers");
		json_begin_array(j);
		for (size_t i = 0; i < PROBE_PARAMETERS; i++)
			json_address(j, s->parameters[i]);
		json_end_array(j);
	}
	path_json(profile, modules, s->node, j);
	json_end_object(j);
}

void metrics_show_slowest_json(const struct probes *p, const struct probe_function *f,
			       const struct profile *profile, struct modules *modules,
			       struct json *j)
{
	json_key(j, "slowest");
	json_begin_array(j);
	for (size_t i = 0; i < f->slow_count; i++)
		put_slow_json(p, &f->slowest[i], profile, modules, j);
	json_end_array(j);
}
