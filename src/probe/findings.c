/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/findings.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "harvest/probes.h"
#include "probe/fit.h"
#include "probe/paths.h"
#include "profile/profile.h"

#define CALLS_MIN 20    /* of a function of which anything is said */
#define SURE_MIN 0.6    /* of a shape that is named */
#define COVERED_MIN 0.6 /* of a time that is said not to depend on a value */
#define TAIL 0.99       /* the slowest calls are those beyond this part */
#define TAIL_SHARE 0.5  /* of them by one caller */
#define TAIL_OVER 1.5   /* and so many times as many as of all calls */
#define INPUT_GAIN 0.5  /* share of the time less share of the calls */
#define PATH_SLOW 2.0   /* times as slow as others with the same arguments */
#define PATH_PART 0.1 /* of its calls: fewer may have lost their CPU, and say nothing of the path */
#define JUMP_SLOW 3.0 /* times as slow as for the value before, */
#define JUMP_NEAR 1.5 /* which is at most so many times less */
#define JUMP_CALLS 3  /* for each of them */

struct finder {
	const struct probes *probes;
	const struct profile *profile;
	struct modules *modules;
	struct findings *out;
	char **callers;  /* by path; NULL: not known yet */
	double *weights; /* by path, for the largest caller */
};

static struct err *add(struct finder *f, const struct finding *finding)
{
	if (!ARRAY_ROOM(f->out->all, f->out->count, f->out->room))
		return err_new("out of memory");
	f->out->all[f->out->count++] = *finding;
	return NULL;
}

/* ---- callers ---- */

/* The function that makes the calls of a path. */
static const char *caller_of(struct finder *f, size_t path)
{
	if (!f->callers[path])
		f->callers[path] = path_caller(f->profile, f->modules, f->probes->paths[path].node);
	return f->callers[path] ? f->callers[path] : "?";
}

struct weighed {
	const char *caller;
	double weight;
	size_t path;
};

static int by_caller(const void *a, const void *b)
{
	return strcmp(((const struct weighed *)a)->caller, ((const struct weighed *)b)->caller);
}

/* Finds the caller with the largest sum of weights. Returns its share of all, and one of its paths. */
static double largest(struct finder *f, uint32_t function, size_t *path)
{
	const struct probes *p = f->probes;
	struct weighed *all = calloc(p->path_count + 1, sizeof *all);
	double whole = 0, sum = 0, most = 0;
	size_t count = 0;
	*path = SIZE_MAX;
	for (size_t i = 0; all && i < p->path_count; i++)
		if (p->paths[i].function == function && f->weights[i] > 0)
			all[count++] = (struct weighed){caller_of(f, i), f->weights[i], i};
	if (count)
		qsort(all, count, sizeof *all, by_caller);
	for (size_t i = 0; i < count; i++) {
		whole += all[i].weight;
		sum = i && !by_caller(&all[i - 1], &all[i]) ? sum + all[i].weight : all[i].weight;
		if (sum > most) {
			most = sum;
			*path = all[i].path;
		}
	}
	free(all);
	return whole > 0 ? most / whole : 0;
}

/* ---- the slowest calls ---- */

static uint64_t calls_from(const struct probe_sums *s, uint32_t bucket)
{
	uint64_t sum = 0;
	for (uint32_t i = bucket; i < PROBE_TIMES; i++)
		sum += s->times[i];
	return sum;
}

static double share_of_calls(struct finder *f, uint32_t function, const char *caller)
{
	const struct probes *p = f->probes;
	double sum = 0, all = 0;
	for (size_t i = 0; i < p->path_count; i++) {
		if (p->paths[i].function != function)
			continue;
		all += (double)p->paths[i].sums.returned;
		if (!strcmp(caller_of(f, i), caller))
			sum += (double)p->paths[i].sums.returned;
	}
	return all > 0 ? sum / all : 1;
}

static struct err *find_tail(struct finder *f, uint32_t function)
{
	const struct probes *p = f->probes;
	const struct probe_sums *s = &p->functions[function].sums;
	uint32_t bucket = probes_bucket(probes_quantile(s, TAIL));
	size_t path;
	for (size_t i = 0; i < p->path_count; i++)
		f->weights[i] = p->paths[i].function == function
					? (double)calls_from(&p->paths[i].sums, bucket)
					: 0;
	double share = largest(f, function, &path);
	if (path == SIZE_MAX || share < TAIL_SHARE)
		return NULL;
	const char *caller = caller_of(f, path);
	if (share < TAIL_OVER * share_of_calls(f, function, caller))
		return NULL;
	const struct finding x = {.kind = FINDING_TAIL,
				  .function = function,
				  .caller = strdup(caller),
				  .share = share};
	return add(f, &x);
}

/* ---- arguments ---- */

static double cost_of(const struct probe_bucket *b, bool cpu)
{
	return (double)(cpu ? b->cpu_ns : b->ns);
}

static bool has_cpu(const struct probe_measure *m)
{
	for (uint32_t i = 0; i < PROBE_VALUES; i++)
		if (m->buckets[i].cpu_ns)
			return true;
	return false;
}

/* Without what stopping at a probe takes in each call. */
static double own_cost(const struct finder *f, const struct probe_bucket *b, bool cpu)
{
	double cost = cost_of(b, cpu) - (double)b->calls * (double)f->probes->trap_ns;
	return cost > 0 ? cost : 0;
}

/* Finds the value beyond which the fewest calls take the most time. */
static uint32_t split(const struct finder *f, const struct probe_measure *m, bool cpu,
		      struct finding *x)
{
	double all = 0, calls = 0, ns = 0, above = 0, best = 0;
	uint32_t at = 0;
	for (uint32_t i = 0; i < PROBE_TIMES; i++) {
		all += own_cost(f, &m->buckets[i], cpu);
		calls += (double)m->buckets[i].calls;
	}
	for (uint32_t i = PROBE_TIMES; all > 0 && i-- > 1;) {
		ns += own_cost(f, &m->buckets[i], cpu);
		above += (double)m->buckets[i].calls;
		if (m->buckets[i].calls && ns / all - above / calls > best) {
			best = ns / all - above / calls;
			at = i;
			x->time_share = ns / all;
			x->call_share = above / calls;
		}
	}
	return best >= INPUT_GAIN ? at : 0;
}

/* The largest value below a bucket that a call had, about: people are told a round number. */
static int64_t round_below(uint32_t bucket)
{
	int64_t start = measure_bucket_start(bucket) - 1, unit = 1;
	while (start / unit >= 100)
		unit *= 10;
	return start / unit * unit;
}

static struct err *find_input(struct finder *f, uint32_t function, uint32_t metric)
{
	const struct probes *p = f->probes;
	const struct probe_measure *m = &p->functions[function].measures[metric];
	struct finding x = {.kind = FINDING_INPUT, .function = function, .metric = metric};
	bool cpu = has_cpu(m);
	uint32_t at = split(f, m, cpu, &x);
	size_t path;
	if (!at)
		return NULL;
	for (size_t i = 0; i < p->path_count; i++) {
		f->weights[i] = 0;
		for (uint32_t k = at; p->paths[i].measures && k < PROBE_TIMES; k++)
			f->weights[i] += own_cost(f, &p->paths[i].measures[metric].buckets[k], cpu);
	}
	x.above = round_below(at);
	x.share = largest(f, function, &path);
	x.caller = path == SIZE_MAX ? NULL : strdup(caller_of(f, path));
	return add(f, &x);
}

/* Calls that are slower than those of other paths with the same argument. */
static struct err *find_slow_path(struct finder *f, size_t path, uint32_t metric)
{
	const struct probes *p = f->probes;
	uint32_t function = p->paths[path].function;
	const struct probe_measure *mine = &p->paths[path].measures[metric],
				   *all = &p->functions[function].measures[metric];
	bool cpu = has_cpu(all);
	double ns = 0, expected = 0, calls = 0;
	for (uint32_t i = 0; i < PROBE_VALUES; i++) {
		const struct probe_bucket *a = &all->buckets[i], *b = &mine->buckets[i];
		if (!b->calls || a->calls <= b->calls)
			continue;
		ns += cost_of(b, cpu);
		calls += (double)b->calls;
		expected += (double)b->calls * (cost_of(a, cpu) - cost_of(b, cpu)) /
			    (double)(a->calls - b->calls);
	}
	if (calls < CALLS_MIN || expected <= 0 || ns < PATH_SLOW * expected)
		return NULL;
	double rather = (double)probes_quantile(&p->paths[path].sums, 1 - PATH_PART);
	if (!cpu && rather < PATH_SLOW * expected / calls)
		return NULL;
	const struct finding x = {.kind = FINDING_PATH,
				  .function = function,
				  .metric = metric,
				  .node = p->paths[path].node,
				  .factor = ns / expected};
	return add(f, &x);
}

/* A value beyond which all calls are much slower, all at once. */
static struct err *find_jump(struct finder *f, size_t path, uint32_t metric)
{
	const struct probe_measure *m = &f->probes->paths[path].measures[metric];
	bool cpu = has_cpu(m);
	double before = 0, before_n = 0, most = 0, after = 0, after_calls = 0;
	unsigned below = 0, above = 0;
	uint32_t at = 0;
	for (uint32_t i = 0; i < PROBE_TIMES; i++) {
		const struct probe_bucket *b = &m->buckets[i];
		if (b->calls < JUMP_CALLS)
			continue;
		double ns = cost_of(b, cpu) / (double)b->calls,
		       n = (double)b->sum / (double)b->calls;
		bool jumps = !at && below > 1 && ns > JUMP_SLOW * most && n < JUMP_NEAR * before_n;
		if (jumps)
			at = i;
		if (at && ns < PATH_SLOW * most)
			return NULL;
		above += at != 0;
		below += !at;
		after += at ? cost_of(b, cpu) : 0;
		after_calls += at ? (double)b->calls : 0;
		most = !at && ns > most ? ns : most;
		before = at ? before : ns;
		before_n = n;
	}
	if (!at || above < 2)
		return NULL;
	const struct finding x = {.kind = FINDING_JUMP,
				  .function = f->probes->paths[path].function,
				  .metric = metric,
				  .node = f->probes->paths[path].node,
				  .above = round_below(at),
				  .factor = after / after_calls / before};
	return add(f, &x);
}

static struct err *find_by_value(struct finder *f, uint32_t function, uint32_t metric)
{
	const struct probes *p = f->probes;
	const struct probe_measure *m = &p->functions[function].measures[metric];
	struct err *e = NULL;
	const struct fit fit = fit_make(m);
	bool told = fit.shape != FIT_NONE && fit.sure >= SURE_MIN &&
		    (fit.shape != FIT_CONSTANT || fit.covered > COVERED_MIN);
	if (told) {
		const struct finding x = {
			.kind = FINDING_GROWS, .function = function, .metric = metric};
		e = add(f, &x);
	}
	if (!e)
		e = find_input(f, function, metric);
	for (size_t i = 0; i < p->path_count && !e; i++) {
		if (p->paths[i].function != function || !p->paths[i].measures)
			continue;
		e = find_slow_path(f, i, metric);
		if (!e)
			e = find_jump(f, i, metric);
	}
	return e;
}

/* ---- all ---- */

static struct err *find(struct finder *f)
{
	const struct probes *p = f->probes;
	struct err *e = NULL;
	for (uint32_t i = 0; i < p->count && !e; i++) {
		const struct probe_function *x = &p->functions[i];
		if (x->sums.returned < CALLS_MIN || !probes_are_timed(x))
			continue;
		e = find_tail(f, i);
		for (uint32_t k = 0; k < p->metric_count && x->measures && !e; k++)
			if (p->metrics[k].kind == PROBE_ARGUMENT)
				e = find_by_value(f, i, k);
	}
	return e;
}

struct err *findings_make(const struct probes *p, const struct profile *profile,
			  struct modules *modules, struct findings *out)
{
	struct finder f = {.probes = p, .profile = profile, .modules = modules, .out = out};
	f.callers = calloc(p->path_count + 1, sizeof *f.callers);
	f.weights = calloc(p->path_count + 1, sizeof *f.weights);
	struct err *e = f.callers && f.weights ? find(&f) : err_new("out of memory");
	for (size_t i = 0; f.callers && i < p->path_count; i++)
		free(f.callers[i]);
	free(f.callers);
	free(f.weights);
	return e;
}

void findings_free(struct findings *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->all[i].caller);
	free(f->all);
	*f = (struct findings){0};
}

/* ---- words ---- */

static void put_fit(const struct finding *x, const struct probes *p, struct buf *out)
{
	const struct fit fit = fit_make(&p->functions[x->function].measures[x->metric]);
	char base[TERM_UNIT_MAX], each[TERM_UNIT_MAX];
	const char *time = fit.cpu ? "CPU time" : "time";
	if (fit.shape == FIT_CONSTANT) {
		buf_printf(out, "its %s does not depend on %s (%.0f %% sure): %s a call", time,
			   p->metrics[x->metric].name, 100 * fit.sure,
			   term_time(base, fit.base_ns / 1e9));
		return;
	}
	buf_printf(out, "its %s grows with n = %s as %s (%.0f %% sure%s%s): ", time,
		   p->metrics[x->metric].name, fit_name(fit.shape), 100 * fit.sure,
		   fit.other ? "; else " : "", fit.other ? fit_name(fit.other) : "");
	buf_printf(out, "%s + %s * %s", term_time(base, fit.base_ns / 1e9),
		   term_time(each, fit.each_ns / 1e9), fit_name(fit.shape));
}

static void print_one(const struct finding *x, const struct probes *p,
		      const struct profile *profile, struct modules *modules, struct buf *out)
{
	const char *metric = x->kind == FINDING_TAIL ? "" : p->metrics[x->metric].name;
	const char *name = p->functions[x->function].name;
	buf_puts(out, " ");
	buf_put_clean(out, name, strlen(name));
	buf_puts(out, ": ");
	switch (x->kind) {
	case FINDING_TAIL:
		buf_printf(out, "%.0f %% of the slowest 1 %% of its calls come by ",
			   100 * x->share);
		buf_put_clean(out, x->caller, strlen(x->caller));
		break;
	case FINDING_GROWS:
		put_fit(x, p, out);
		break;
	case FINDING_INPUT:
		buf_printf(out,
			   "%.0f %% of its time is in the %.2g %% of its calls with %s > %" PRId64,
			   100 * x->time_share, 100 * x->call_share, metric, x->above);
		if (x->caller) {
			buf_printf(out, ": %.0f %% of that by ", 100 * x->share);
			buf_put_clean(out, x->caller, strlen(x->caller));
		}
		break;
	case FINDING_PATH:
		buf_printf(out, "%.1f times as slow as others with the same %s: ", x->factor,
			   metric);
		path_print(profile, modules, x->node, out);
		break;
	case FINDING_JUMP:
		buf_printf(out, "%.1f times as slow for %s > %" PRId64 ": ", x->factor, metric,
			   x->above);
		path_print(profile, modules, x->node, out);
		break;
	}
	buf_puts(out, "\n");
}

void findings_print(const struct findings *f, const struct probes *p, const struct profile *profile,
		    struct modules *modules, struct buf *out)
{
	for (size_t i = 0; i < f->count; i++)
		print_one(&f->all[i], p, profile, modules, out);
}

void findings_json(const struct findings *f, const struct probes *p, const struct profile *profile,
		   struct modules *modules, struct json *j)
{
	static const char *const kinds[] = {"tail", "grows", "input", "path", "jump"};
	json_key(j, "findings");
	json_begin_array(j);
	for (size_t i = 0; i < f->count; i++) {
		const struct finding *x = &f->all[i];
		json_begin_object(j);
		json_put_string(j, "kind", kinds[x->kind]);
		json_put_string(j, "function", p->functions[x->function].name);
		json_put_string(j, "metric",
				x->kind == FINDING_TAIL ? NULL : p->metrics[x->metric].name);
		if (x->kind == FINDING_TAIL || x->kind == FINDING_INPUT) {
			json_put_string(j, "caller", x->caller);
			json_put_double(j, "share", x->share);
		}
		if (x->kind == FINDING_INPUT || x->kind == FINDING_JUMP) {
			json_key(j, "above");
			json_i64(j, x->above);
		}
		if (x->kind == FINDING_INPUT) {
			json_put_double(j, "time_share", x->time_share);
			json_put_double(j, "call_share", x->call_share);
		}
		if (x->kind == FINDING_PATH || x->kind == FINDING_JUMP) {
			json_put_double(j, "factor", x->factor);
			path_json(profile, modules, x->node, j);
		}
		json_end_object(j);
	}
	json_end_array(j);
}
