/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/measures.h"

#define SUBS 8u /* buckets from each power of two to the next */
#define SUB_BITS 3u

uint32_t probes_bucket(uint64_t ns)
{
	if (ns < SUBS)
		return (uint32_t)ns;
	uint32_t power = 63 - (uint32_t)__builtin_clzll(ns);
	uint32_t bucket = (power - SUB_BITS + 1) * SUBS +
			  ((uint32_t)(ns >> (power - SUB_BITS)) & (SUBS - 1));
	return bucket < PROBE_TIMES ? bucket : PROBE_TIMES - 1;
}

uint64_t probes_bucket_start(uint32_t bucket)
{
	if (bucket < SUBS)
		return bucket;
	return (uint64_t)(SUBS + bucket % SUBS) << (bucket / SUBS - 1);
}

void measure_add(struct probe_measure *to, uint32_t octave, const struct probe_octave *more)
{
	uint64_t calls = 0;
	for (uint32_t i = 0; i < 8 && octave < PROBE_OCTAVES; i++) {
		const struct probe_bucket *from = &more->eighths[i];
		struct probe_bucket *b = &to->buckets[octave * 8 + i];
		b->calls += from->calls;
		b->sum += from->sum;
		b->ns += from->ns;
		b->cpu_ns += from->cpu_ns;
		to->sum += from->sum;
		calls += from->calls;
	}
	if (!calls)
		return;
	if (!to->calls || more->least < to->least)
		to->least = more->least;
	if (!to->calls || more->most > to->most)
		to->most = more->most;
	to->calls += calls;
}

int64_t measure_bucket_start(uint32_t bucket)
{
	if (bucket >= PROBE_TIMES)
		return -1 - (int64_t)(bucket - PROBE_TIMES);
	return (int64_t)probes_bucket_start(bucket);
}

/* Buckets in the order of their values. */
static uint32_t bucket_at(uint32_t i)
{
	return i < PROBE_NEGATIVE ? PROBE_VALUES - 1 - i : i - PROBE_NEGATIVE;
}

int64_t measure_quantile(const struct probe_measure *m, double part)
{
	uint64_t wanted = (uint64_t)(part * (double)m->calls + 0.5), seen = 0;
	if (!m->calls)
		return 0;
	wanted = wanted ? wanted : 1;
	uint32_t i = 0;
	while (i < PROBE_VALUES - 1 && (seen += m->buckets[bucket_at(i)].calls) < wanted)
		i++;
	const struct probe_bucket *b = &m->buckets[bucket_at(i)];
	return b->calls ? b->sum / (int64_t)b->calls : 0;
}

int64_t measure_value(const struct probe_metric *m, uint64_t word)
{
	uint32_t unused = 64 - m->bits;
	return m->is_signed ? (int64_t)(word << unused) >> unused
			    : (int64_t)(word << unused >> unused);
}
