/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/reasons.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/term.h"
#include "profile/profile.h"

#define FEW_SAMPLES 100

const char *summary_count(char out[SUMMARY_COUNT_MAX], uint64_t count)
{
	char digits[SUMMARY_COUNT_MAX];
	int length = snprintf(digits, sizeof digits, "%" PRIu64, count), to = 0;
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			out[to++] = ' ';
		out[to++] = digits[i];
	}
	out[to] = 0;
	return out;
}

/* For each node, why its path is partial; WALK_COMPLETE where it is not. NULL without memory. */
static uint8_t *ends_of_nodes(const struct profile *p)
{
	uint8_t *ends = malloc(p->node_count + 1);
	for (size_t i = 0; ends && i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i];
		if (n->kind == PROFILE_PARTIAL)
			ends[i] = n->address < SUMMARY_ENDS ? (uint8_t)n->address : WALK_ON;
		else
			ends[i] = i && n->parent < i ? ends[n->parent] : WALK_COMPLETE;
	}
	return ends;
}

static void count_samples(const struct profile *p, uint32_t metric, struct summary *s)
{
	uint8_t *ends = ends_of_nodes(p);
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (v->metric != metric || v->node >= p->node_count)
			continue;
		s->samples += v->count;
		s->by_reason[ends ? ends[v->node] : WALK_COMPLETE] += v->count;
	}
	free(ends);
	s->complete = s->by_reason[WALK_COMPLETE];
	s->by_reason[WALK_COMPLETE] = 0;
	s->partial = s->samples - s->complete;
}

static void count_cost(const struct profile *p, struct summary *s)
{
	double handler = 0, cpu = 0, handled = 0;
	for (size_t i = 0; i < p->thread_count; i++) {
		handler += (double)p->threads[i].handler_ns;
		handled += (double)p->threads[i].handled;
		cpu += (double)p->threads[i].cpu_ns;
	}
	s->handler_ns = handled > 0 ? handler / handled : 0;
	s->overhead = cpu > 0 ? (handler + handled * (double)p->delivery_ns) / cpu : -1;
	if (s->overhead > 1) /* of threads that ran on, the CPU time is not known without a clock */
		s->overhead = -1;
}

/* What the threads did all the time, whatever the samples say. */
static void sum_times(const struct profile *p, uint32_t metric, struct summary *s)
{
	s->by_samples = -1;
	for (size_t i = 0; i < p->thread_count; i++) {
		s->blocked_ns += p->threads[i].blocked_ns;
		s->queued_ns += p->threads[i].queued_ns;
		s->cpu_ns += p->threads[i].cpu_ns;
	}
	s->timed = s->blocked_ns || s->queued_ns;
	if (metric < p->metric_count && reason_is_told(&p->metrics[metric]))
		s->by_samples = (double)s->samples * (double)profile_period(p, metric) / 1e9;
}

void summary_make(const struct profile *p, uint32_t shown, struct summary *s)
{
	uint32_t metric = profile_sampled(p, shown);
	*s = (struct summary){
		.metric = metric < p->metric_count ? p->metrics[metric].name : "",
		.processes = p->process_count,
		.threads = p->thread_count,
		.seconds = (double)p->duration_ns / 1e9,
		.hz = p->hz,
	};
	count_samples(p, metric, s);
	for (size_t i = 0; i < p->lost_count; i++)
		s->lost += p->lost[i].count;
	count_cost(p, s);
	sum_times(p, metric, s);
}

static const char *end_name(unsigned end)
{
	return end == WALK_ON ? "unknown" : walk_end_name((enum walk_end)end);
}

static const char *plural(uint64_t count, const char *one, const char *many)
{
	return count == 1 ? one : many;
}

static void print_reasons(const struct summary *s, struct buf *out)
{
	char n[SUMMARY_COUNT_MAX];
	const char *before = " (";
	for (unsigned i = 0; i < SUMMARY_ENDS; i++) {
		if (!s->by_reason[i])
			continue;
		buf_printf(out, "%s%s %s", before, summary_count(n, s->by_reason[i]), end_name(i));
		before = ", ";
	}
	if (s->partial)
		buf_puts(out, ")");
}

static void print_times(const struct summary *s, struct buf *out)
{
	char time[TERM_UNIT_MAX];
	buf_printf(out, "times: waiting %s", term_time(time, (double)s->blocked_ns / 1e9));
	buf_printf(out, ", for a CPU %s", term_time(time, (double)s->queued_ns / 1e9));
	buf_printf(out, ", on a CPU %s", term_time(time, (double)s->cpu_ns / 1e9));
	buf_printf(out, "; by samples of %s %s\n", s->metric, term_time(time, s->by_samples));
}

/* Some events are not sampled, but counted one by one: few are as exact as many. */
static bool is_counted(const char *metric)
{
	static const char *const all[] = {"calls", "io", "lock", "mpi", "probe"};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(metric, all[i]))
			return true;
	return false;
}

/* Whether the samples are of threads that wait, for something or for a CPU. */
static bool is_wait(const char *metric)
{
	return !strncmp(metric, "blocked", strlen("blocked"));
}

void summary_print(const struct summary *s, const char *name, struct buf *out)
{
	char a[SUMMARY_COUNT_MAX], b[SUMMARY_COUNT_MAX], time[TERM_UNIT_MAX];
	/* They are counted, not sampled. */
	bool calls = !strcmp(s->metric, "calls") || !strcmp(s->metric, "probe");
	buf_printf(out, "%s%s %s", name, summary_count(a, s->samples),
		   calls ? plural(s->samples, "call", "calls")
			 : plural(s->samples, "sample", "samples"));
	if (s->metric[0] && !calls) {
		buf_puts(out, " of ");
		buf_put_clean(out, s->metric, strlen(s->metric));
	}
	if (s->hz && !is_counted(s->metric))
		buf_printf(out, " at %" PRIu64 " Hz", s->hz);
	buf_printf(out, " in %s, %s %s", term_time(time, s->seconds),
		   summary_count(a, s->processes), plural(s->processes, "process", "processes"));
	buf_printf(out, ", %s %s\n", summary_count(a, s->threads),
		   plural(s->threads, "thread", "threads"));
	buf_printf(out, "%*spaths: %s complete, %s partial", (int)strlen(name), "",
		   summary_count(a, s->complete), summary_count(b, s->partial));
	print_reasons(s, out);
	buf_printf(out, "; %s lost", summary_count(a, s->lost));
	if (s->overhead >= 0)
		buf_printf(out, "; overhead %.2f%% of CPU time", s->overhead * 100);
	buf_puts(out, "\n");
	if (s->timed && s->by_samples >= 0) {
		buf_printf(out, "%*s", (int)strlen(name), "");
		print_times(s, out);
	}
}

void summary_print_file(const char *name, const char *path, uint64_t size, struct buf *out)
{
	char text[TERM_UNIT_MAX];
	bool usual = !strcmp(path, "culprit.prof");
	buf_printf(out, "%*s%s (%s)   next: culprit report%s%s\n", (int)strlen(name), "", path,
		   term_size(text, size), usual ? "" : " ", usual ? "" : path);
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void warn_lost(const struct summary *s, const struct profile *p, struct buf *out)
{
	buf_printf(out, "unreliable: %.1f%% of the samples were lost",
		   100 * share(s->lost, s->lost + s->samples));
	for (size_t i = 0; i < p->lost_count; i++)
		if (p->lost[i].count)
			buf_printf(out, "%s%" PRIu64 " %s", i ? ", " : ": ", p->lost[i].count,
				   p->lost[i].reason);
	buf_puts(out, "\n");
}

/* The module of the outermost frame of each node's path, where that is partial; 0: none. NULL without
   memory. */
static uint32_t *modules_of_ends(const struct profile *p)
{
	uint32_t *ends = calloc(p->node_count + 1, sizeof *ends);
	for (size_t i = 1; ends && i < p->node_count; i++) {
		const struct profile_node *n = &p->nodes[i];
		if (n->kind == PROFILE_PARTIAL || n->parent >= i)
			continue;
		ends[i] = p->nodes[n->parent].kind == PROFILE_PARTIAL ? n->module : ends[n->parent];
	}
	return ends;
}

/* For each module, the partial paths that end there. NULL without memory. */
static uint64_t *count_ends(const struct profile *p, const char *metric)
{
	uint32_t *ends = modules_of_ends(p);
	uint64_t *counts = ends ? calloc(p->module_count + 1, sizeof *counts) : NULL;
	for (size_t i = 0; counts && i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (v->node < p->node_count && ends[v->node] < p->module_count &&
		    v->metric < p->metric_count && !strcmp(p->metrics[v->metric].name, metric))
			counts[ends[v->node]] += v->count;
	}
	free(ends);
	return counts;
}

static bool is_made_so(const struct profile_module *m, const char *problem)
{
	return m->kind == PROFILE_JIT && m->problem && !strcmp(m->problem, problem);
}

/* Partial paths that end in code made at run time, by what is known of its makers: modules of several
   processes may say the same. */
static unsigned warn_makers(const struct profile *p, const char *metric, struct buf *out)
{
	char n[SUMMARY_COUNT_MAX];
	unsigned lines = 0;
	uint64_t *counts = count_ends(p, metric);
	for (size_t i = 0; counts && i < p->module_count; i++) {
		const char *problem = p->modules[i].problem;
		uint64_t count = 0;
		if (!problem || !*problem || !counts[i] || !is_made_so(&p->modules[i], problem))
			continue;
		for (size_t k = i; k < p->module_count; k++)
			if (is_made_so(&p->modules[k], problem)) {
				count += counts[k];
				counts[k] = 0;
			}
		buf_printf(out, "%s partial %s in code ", summary_count(n, count),
			   plural(count, "path ends", "paths end"));
		buf_put_clean(out, problem, strlen(problem));
		buf_puts(out, "\n");
		lines++;
	}
	free(counts);
	return lines;
}

/* Less than was asked for: the kernel did not allow more. */
static bool is_user_only(const struct profile *p)
{
	for (size_t i = 0; i < p->metric_count; i++)
		if (p->metrics[i].user_only && !strstr(p->metrics[i].name, ":u"))
			return true;
	return false;
}

unsigned summary_warn(const struct summary *s, const struct profile *p, struct buf *out)
{
	unsigned count = 0;
	char n[SUMMARY_COUNT_MAX], time[TERM_UNIT_MAX];
	if (is_user_only(p) && ++count)
		buf_puts(out,
			 "only user code was counted, not what the kernel did for it: sudo sysctl "
			 "kernel.perf_event_paranoid=1 allows both\n");
	for (size_t i = 0; i < p->metric_count; i++)
		count += coverage_note(p->metrics[i].coverage, p->metrics[i].name,
				       p->metrics[i].unit, p->metrics[i].period, out);
	if (p->note && p->note[0] && ++count)
		buf_printf(out, "%s\n", p->note);
	if (!p->complete && ++count)
		buf_puts(out,
			 "cut short: the recording did not end in order, samples up to its last "
			 "save are here\n");
	if (share(s->lost, s->lost + s->samples) > 0.01 && ++count)
		warn_lost(s, p, out);
	if (share(s->partial, s->samples) > 0.01 && ++count) {
		buf_printf(out, "unreliable: %.1f%% of the call paths are partial",
			   100 * share(s->partial, s->samples));
		print_reasons(s, out);
		buf_puts(out, "\n");
	}
	if (s->partial)
		count += warn_makers(p, s->metric, out);
	if (p->coarse_us && ++count)
		buf_printf(out, "the time line was too long: samples within %s were joined\n",
			   term_time(time, (double)p->coarse_us / 1e6));
	if (p->untimed && ++count)
		buf_printf(
			out,
			"%s samples are not on the time line: there was no room, or they came while it was read\n",
			summary_count(n, p->untimed));
	bool counted = is_counted(s->metric);
	if (!s->samples && counted && ++count)
		buf_printf(out, "no samples: nothing of the event %s happened\n", s->metric);
	else if (!s->samples && is_wait(s->metric) && ++count)
		buf_puts(out, "no samples: no thread waited\n");
	else if (!s->samples && ++count)
		buf_puts(out,
			 "no samples: the command took no CPU time to speak of, or nothing of it "
			 "could be sampled; a higher rate (record -F 10000) sees shorter runs\n");
	else if (s->samples && s->samples < FEW_SAMPLES && !counted && ++count)
		buf_printf(out,
			   "only %s sample%s: shares are rough; a longer run or a higher rate "
			   "(record -F) gives more\n",
			   summary_count(n, s->samples), s->samples == 1 ? "" : "s");
	return count;
}

static void json_lines(struct json *j, const char *text)
{
	json_begin_array(j);
	while (*text) {
		size_t length = strcspn(text, "\n");
		struct buf line = {0};
		buf_append(&line, text, length);
		json_string(j, buf_text(&line));
		buf_free(&line);
		text += length + (text[length] == '\n');
	}
	json_end_array(j);
}

/* NULL where none was recorded. */
static void json_timeline(struct json *j, const struct profile *p)
{
	uint64_t samples = 0;
	if (!p->timed)
		return;
	for (size_t i = 0; i < p->span_count; i++)
		samples += p->spans[i].samples;
	json_key(j, "timeline");
	json_begin_object(j);
	json_put_u64(j, "spans", p->span_count);
	json_put_u64(j, "samples", samples);
	json_put_u64(j, "missing", p->untimed);
	json_put_u64(j, "joined_within_us", p->coarse_us);
	json_end_object(j);
}

void summary_json(const struct summary *s, const struct profile *p, const char *notes,
		  struct json *j)
{
	json_put_u64(j, "samples", s->samples);
	json_put_u64(j, "lost", s->lost);
	json_put_u64(j, "complete", s->complete);
	json_key(j, "partial");
	json_begin_object(j);
	for (unsigned i = 0; i < SUMMARY_ENDS; i++)
		if (s->by_reason[i])
			json_put_u64(j, end_name(i), s->by_reason[i]);
	json_end_object(j);
	json_put_u64(j, "processes", s->processes);
	json_put_u64(j, "threads", s->threads);
	json_key(j, "seconds");
	json_double(j, s->seconds);
	json_put_u64(j, "hz", s->hz);
	json_key(j, "handler_ns");
	json_double(j, s->handler_ns);
	json_key(j, "overhead");
	if (s->overhead >= 0)
		json_double(j, s->overhead);
	else
		json_null(j);
	if (s->timed) {
		json_key(j, "times");
		json_begin_object(j);
		json_put_u64(j, "blocked_ns", s->blocked_ns);
		json_put_u64(j, "queued_ns", s->queued_ns);
		json_put_u64(j, "cpu_ns", s->cpu_ns);
		json_end_object(j);
	}
	json_timeline(j, p);
	json_key(j, "command");
	json_string(j, p->command);
	json_key(j, "notes");
	json_lines(j, notes);
}

void summary_json_metrics(const struct profile *p, struct json *j)
{
	json_key(j, "metrics");
	json_begin_array(j);
	for (uint32_t i = 0; i < p->metric_count; i++) {
		json_begin_object(j);
		json_put_string(j, "name", p->metrics[i].name);
		json_put_string(j, "unit", p->metrics[i].unit);
		json_put_u64(j, "period", profile_period(p, i));
		json_put_double(j, "counted", coverage_share(p->metrics[i].coverage));
		json_put_u64(j, "total", profile_samples(p, i));
		json_end_object(j);
	}
	json_end_array(j);
}
