/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel/measures.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "collect/events.h"
#include "collect/kernel/state.h"
#include "harvest/probes.h"
#include "harvest/recording.h"
#include "profile/profile.h"

_Static_assert(PROBE_METRICS == KERNEL_MEASURES && PROBE_PARAMETERS == KERNEL_PARAMETERS &&
		       PROBE_OCTAVES == KERNEL_OCTAVES + 1 &&
		       (int)PROBE_CPU == KERNEL_MEASURED_CPU &&
		       (int)PROBE_BLOCKED == KERNEL_MEASURED_BLOCKED &&
		       (int)PROBE_ARGUMENT == KERNEL_MEASURED_PARAMETER &&
		       (int)PROBE_RETURN == KERNEL_MEASURED_RESULT &&
		       (int)PROBE_EVENT == KERNEL_MEASURED_EVENT &&
		       sizeof(struct probe_octave) == sizeof(struct kernel_measure),
	       "the sampler has the same");

static const struct probes *probes_of(const struct kernel *k)
{
	return k->recording->options.probes;
}

static bool has_kind(const struct kernel *k, enum probe_metric_kind kind)
{
	const struct probes *p = probes_of(k);
	for (size_t i = 0; p && i < p->metric_count; i++)
		if (p->metrics[i].kind == kind)
			return true;
	return false;
}

static bool needs_switches(const struct kernel *k)
{
	return has_kind(k, PROBE_CPU) || has_kind(k, PROBE_BLOCKED) || has_kind(k, PROBE_EVENT);
}

static void size_map(struct kernel *k, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(k->object, name);
	if (map)
		bpf_map__set_max_entries(map, entries);
}

void measures_choose(struct kernel *k)
{
	struct bpf_program *switched = bpf_object__find_program_by_name(k->object,
									"probe_switched");
	const struct probes *p = probes_of(k);
	if (switched)
		bpf_program__set_autoload(switched, needs_switches(k));
	size_map(k, "measures", p && p->metric_count ? KERNEL_MEASURE_SUMS : 1);
	size_map(k, "slows_of_functions", p ? KERNEL_FUNCTIONS : 1);
	size_map(k, "limits", p ? KERNEL_FUNCTIONS : 1);
	size_map(k, "probe_counters", has_kind(k, PROBE_EVENT) ? k->cpus * KERNEL_MEASURES : 1);
}

void measures_fill(const struct kernel *k, struct kernel_settings *settings)
{
	const struct probes *p = probes_of(k);
	if (!p)
		return;
	settings->measure_count = (uint32_t)p->metric_count;
	settings->switches = needs_switches(k);
	settings->slowest = p->slowest < KERNEL_SLOWEST ? p->slowest : KERNEL_SLOWEST;
	for (size_t i = 0; i < p->metric_count; i++)
		settings->measures[i] = (struct kernel_measuring){
			.kind = p->metrics[i].kind,
			.number = (uint8_t)(p->metrics[i].number - 1),
			.unused = (uint8_t)(p->metrics[i].bits ? 64 - p->metrics[i].bits : 0),
			.is_signed = p->metrics[i].is_signed};
}

/* ---- events ---- */

/* Each CPU counts for itself. One that is not there has none. */
static struct err *open_counters(struct kernel *k, uint32_t metric)
{
	const struct probe_metric *m = &probes_of(k)->metrics[metric];
	int map = bpf_object__find_map_fd_by_name(k->object, "probe_counters");
	struct recording_event event = {.type = m->type,
					.config = m->config,
					.config1 = m->config1,
					.config2 = m->config2,
					.user_only = m->user_only};
	struct perf_event_attr attr = event_attr(&event);
	attr.pinned = 1; /* it counts all the time, or not at all */
	attr.disabled = 0;
	size_t opened = 0;
	for (uint32_t cpu = 0; cpu < k->cpus; cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1,
				      PERF_FLAG_FD_CLOEXEC);
		uint32_t key = metric * k->cpus + cpu;
		if (fd < 0)
			continue;
		if (!ARRAY_ROOM(k->probes.counters, k->probes.counter_count,
				k->probes.counter_room)) {
			close(fd);
			return err_new("out of memory");
		}
		k->probes.counters[k->probes.counter_count++] = fd;
		if (bpf_map_update_elem(map, &key, &fd, BPF_ANY))
			return err_errno("--metric %s", m->name);
		opened++;
	}
	return opened ? NULL : err_errno("--metric %s: it cannot be counted here", m->name);
}

struct err *measures_open(struct kernel *k)
{
	const struct probes *p = probes_of(k);
	struct err *e = NULL;
	k->probes.measures = bpf_object__find_map_fd_by_name(k->object, "measures");
	k->probes.slows = bpf_object__find_map_fd_by_name(k->object, "slows_of_functions");
	k->probes.limits = bpf_object__find_map_fd_by_name(k->object, "limits");
	for (uint32_t i = 0; !e && i < p->metric_count; i++)
		if (p->metrics[i].kind == PROBE_EVENT)
			e = open_counters(k, i);
	struct bpf_program *switched = bpf_object__find_program_by_name(k->object,
									"probe_switched");
	if (e || !needs_switches(k))
		return e;
	k->probes.switched = switched ? bpf_program__attach(switched) : NULL;
	return k->probes.switched ? NULL : err_errno("cannot attach the sampler to sched_switch");
}

void measures_close(struct kernel *k)
{
	for (size_t i = 0; i < k->probes.counter_count; i++)
		close(k->probes.counters[i]);
	free(k->probes.counters);
	bpf_link__destroy(k->probes.switched);
}

/* ---- values ---- */

static struct kernel_piece *piece_of(struct kernel_probe_sum *s, uint32_t measure, uint32_t octave)
{
	for (size_t i = 0; i < s->piece_count; i++)
		if (s->pieces[i].measure == measure && s->pieces[i].octave == octave)
			return &s->pieces[i];
	if (!ARRAY_ROOM(s->pieces, s->piece_count, s->piece_room))
		return NULL;
	s->pieces[s->piece_count] = (struct kernel_piece){.measure = measure, .octave = octave};
	return &s->pieces[s->piece_count++];
}

static struct probe_octave added(const struct kernel_measure *now,
				 const struct kernel_measure *then)
{
	struct probe_octave out = {.least = now->least, .most = now->most};
	for (uint32_t i = 0; i < 8; i++)
		out.eighths[i] = (struct probe_bucket){
			.calls = now->eighths[i].calls - then->eighths[i].calls,
			.sum = now->eighths[i].sum - then->eighths[i].sum,
			.ns = now->eighths[i].ns - then->eighths[i].ns,
			.cpu_ns = now->eighths[i].cpu_ns - then->eighths[i].cpu_ns};
	return out;
}

/* Adds the values to the profile. That has no negative ones. */
static struct err *count(struct kernel *k, const struct kernel_probe_sum *s, uint32_t measure,
			 const struct probe_octave *more)
{
	struct recording *r = k->recording;
	int64_t sum = 0;
	for (uint32_t i = 0; i < 8; i++)
		sum += more->eighths[i].sum;
	for (uint32_t i = 0; sum > 0 && i < r->options.event_count; i++)
		if (r->options.events[i].probe == RECORDING_PROBE_METRIC + measure)
			return profile_count(r->harvest.profile, s->node, s->thread, i,
					     (uint64_t)sum);
	return NULL;
}

static struct err *take_octave(struct kernel *k, struct kernel_probe_sum *s, uint32_t measure,
			       uint32_t octave, bool last)
{
	const struct kernel_measure_key key = {s->key, measure, octave};
	struct kernel_measure now;
	struct kernel_piece *piece = piece_of(s, measure, octave);
	if (!piece)
		return err_new("out of memory");
	if (last ? bpf_map_lookup_and_delete_elem(k->probes.measures, &key, &now)
		 : bpf_map_lookup_elem(k->probes.measures, &key, &now))
		return NULL;
	const struct probe_octave more = added(&now, &piece->then);
	piece->then = now;
	struct err *e = probes_measure(k->recording->options.probes, (uint32_t)s->key.object - 1,
				       s->node, measure, octave, &more);
	return e ? e : count(k, s, measure, &more);
}

struct err *measures_take(struct kernel *k, struct kernel_probe_sum *s, const uint64_t *octaves,
			  bool last)
{
	const struct probes *p = probes_of(k);
	struct err *e = NULL;
	for (uint32_t i = 0; i < p->metric_count; i++)
		for (uint32_t o = 0; !e && octaves[i] >> o && o < PROBE_OCTAVES; o++)
			if (octaves[i] >> o & 1)
				e = take_octave(k, s, i, o, last);
	return e;
}

void measures_forget(struct kernel *k, struct kernel_probe_sum *s)
{
	for (size_t i = 0; i < s->piece_count; i++) {
		const struct kernel_measure_key key = {s->key, s->pieces[i].measure,
						       s->pieces[i].octave};
		bpf_map_delete_elem(k->probes.measures, &key);
	}
}

/* ---- the slowest calls ---- */

struct err *measures_add_function(struct kernel *k, uint32_t number)
{
	struct kernel_slows *none = calloc(1, sizeof *none);
	int bad = !none || bpf_map_update_elem(k->probes.slows, &number, none, BPF_ANY);
	free(none);
	return bad ? err_errno("cannot make room for the slowest calls") : NULL;
}

static bool is_same_key(const struct kernel_transfer_key *a, const struct kernel_transfer_key *b)
{
	return a->path == b->path && a->object == b->object && a->process == b->process &&
	       a->thread == b->thread && a->changes == b->changes;
}

/* Returns the node of a sum; 0: it is not known, or not yet. */
static uint32_t node_of(const struct kernel *k, const struct kernel_transfer_key *key)
{
	const struct kernel_probe_sum *s = k->probes.sums[key->thread % KERNEL_BUCKETS];
	while (s && !is_same_key(&s->key, key))
		s = s->next;
	return s ? s->node : 0;
}

static uint32_t known_node(const struct probe_function *f, const struct kernel_slow *s)
{
	for (size_t i = 0; i < f->slow_count; i++)
		if (f->slowest[i].ns == s->ns && f->slowest[i].begun == s->begun &&
		    f->slowest[i].thread == s->sum.thread)
			return f->slowest[i].node;
	return 0;
}

static int slower_first(const void *a, const void *b)
{
	const struct probe_slow *x = a, *y = b;
	return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static void take_slowest_of(struct kernel *k, uint32_t number)
{
	struct probe_function *f = &k->recording->options.probes->functions[number - 1];
	struct kernel_slows slows;
	struct probe_slow *all = calloc(KERNEL_SLOWEST, sizeof *all);
	size_t count = 0;
	if (!all || bpf_map_lookup_elem(k->probes.slows, &number, &slows)) {
		free(all);
		return;
	}
	for (uint32_t i = 0; i < KERNEL_SLOWEST; i++) {
		const struct kernel_slow *s = &slows.all[i];
		if (!s->ns || s->ns != s->same_ns)
			continue;
		uint32_t node = known_node(f, s);
		all[count] = (struct probe_slow){.ns = s->ns,
						 .begun = s->begun,
						 .process = s->sum.process,
						 .thread = s->sum.thread,
						 .node = node ? node : node_of(k, &s->sum),
						 .result = s->result};
		memcpy(all[count++].parameters, s->parameters, sizeof s->parameters);
	}
	qsort(all, count, sizeof *all, slower_first);
	free(f->slowest);
	f->slowest = all;
	f->slow_count = count;
}

void measures_take_slowest(struct kernel *k)
{
	const struct probes *p = probes_of(k);
	for (uint32_t i = 0; p->slowest && i < p->count; i++)
		if (p->functions[i].sums.returned)
			take_slowest_of(k, i + 1);
}

void measures_keep_slowest(struct kernel *k, const struct kernel_probe_sum *s)
{
	const struct probes *p = probes_of(k);
	const struct probe_function *f = &p->functions[s->key.object - 1];
	if (p->slowest && s->timing.returned &&
	    (f->slow_count < p->slowest || s->timing.most >= f->slowest[f->slow_count - 1].ns))
		take_slowest_of(k, (uint32_t)s->key.object);
}
