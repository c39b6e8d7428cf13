/* SPDX-License-Identifier: Apache-2.0 */
/* The time line of a profile: from samples to spans, in the file and back, when there are too many. */
#include "unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#define MS 1000000u /* in nanoseconds */

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state * 0x9e3779b97f4a7c15u >> 32) % limit);
}

static void ok(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* A clock of 1 kHz; nodes 1 … `nodes`. */
static struct profile *fresh(uint32_t threads, uint32_t nodes)
{
	struct profile *p;
	uint32_t index;
	random_state = 0x2545f4914f6cdd1du;
	ok(profile_new(&p));
	ok(profile_add_process(p, &(struct profile_process){.pid = 7, .name = "p"}, &index));
	ok(profile_add_metric(p, &(struct profile_metric){"cpu-clock", "ns", MS, false, {0, 0}},
			      &index));
	ok(profile_add_module(p, &(struct profile_module){.kind = PROFILE_FILE, .path = "/x"},
			      &index));
	for (uint32_t i = 0; i < threads; i++)
		ok(profile_add_thread(p, &(struct profile_thread){.tid = 7, .name = "t"}, &index));
	for (uint32_t i = 0; i < nodes; i++)
		ok(profile_child(p, 0, PROFILE_EXACT, 1, 16 * i, &index));
	p->timed = true;
	return p;
}

static void at(struct profile *p, uint32_t thread, uint32_t node, double ms)
{
	ok(profile_time(p, node, thread, 0, (uint64_t)(ms * MS + 0.5), 1));
}

static void is_span(const struct profile *p, size_t i, uint32_t node, uint64_t start_us,
		    uint64_t end_us, uint32_t samples)
{
	const struct profile_span *s = &p->spans[i];
	assert_true(i < p->span_count);
	assert_int_equal(s->node, node);
	assert_int_equal(s->start_us, start_us);
	assert_int_equal(s->start_us + s->duration_us, end_us);
	assert_int_equal(s->samples, samples);
}

/* As profile.h promises. */
static void assert_sane(const struct profile *p)
{
	assert_true(p->span_count <= PROFILE_SPAN_MAX);
	for (size_t i = 0; i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		assert_true(s->thread < p->thread_count && s->node < p->node_count &&
			    s->metric < p->metric_count && s->samples);
		if (i && s[-1].thread == s->thread)
			assert_true(s[-1].start_us + s[-1].duration_us <= s->start_us);
		else
			assert_true(!i || s[-1].thread < s->thread);
	}
}

static uint64_t sum(const struct profile *p)
{
	uint64_t samples = 0;
	for (size_t i = 0; i < p->span_count; i++)
		samples += p->spans[i].samples;
	return samples;
}

static void samples_become_spans(void **state)
{
	struct profile *p = fresh(2, 3);
	(void)state;
	for (int i = 1; i <= 5; i++)
		at(p, 0, 1, 10 + i);
	at(p, 1, 3, 12);
	at(p, 0, 2, 16.2); /* late: no gap */
	at(p, 0, 2, 16.9); /* early: no overlap */
	at(p, 0, 2, 18.8); /* one is missing, which is no gap */
	at(p, 0, 2, 22.1); /* two are */
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(p->span_count, 4);
	is_span(p, 0, 1, 10000, 15000, 5);
	is_span(p, 1, 2, 15000, 18800, 3);
	is_span(p, 2, 2, 21100, 22100, 1);
	is_span(p, 3, 3, 11000, 12000, 1);
	assert_int_equal(p->spans[3].thread, 1);
	assert_int_equal(p->coarse_us, 0);
	/* A sample of weight 3 stands for three periods; none begins before the recording. */
	ok(profile_time(p, 1, 0, 0, 30 * MS, 3));
	ok(profile_time(p, 1, 1, 0, MS / 2, 3));
	ok(profile_settle(p));
	assert_int_equal(p->span_count, 6);
	is_span(p, 3, 1, 27000, 30000, 3);
	is_span(p, 4, 1, 0, 500, 3);
	profile_free(p);
}

static void late_samples_find_their_place(void **state)
{
	struct profile *p = fresh(1, 3);
	(void)state;
	for (int i = 1; i <= 20; i++)
		if (i != 10 && i != 11)
			at(p, 0, 1, i);
	at(p, 0, 1, 21.5);
	ok(profile_settle(p));
	assert_int_equal(p->span_count, 2); /* two are missing in the midst: that is a gap */
	at(p, 0, 2, 10);
	at(p, 0, 3, 15); /* in the midst of a span: it was there, and the span goes on behind it */
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(sum(p), 21);
	is_span(p, 0, 1, 0, 9000, 9);
	is_span(p, 1, 2, 9000, 10000, 1);
	is_span(p, 2, 1, 10000, 14000, 5);
	is_span(p, 3, 3, 14000, 15000, 1);
	assert_int_equal(p->spans[4].node, 1);
	assert_int_equal(p->spans[4].start_us, 15000);
	profile_free(p);
}

static void samples_of_no_length(void **state)
{
	struct profile *p = fresh(1, 2);
	uint32_t faults;
	(void)state;
	ok(profile_add_metric(
		p, &(struct profile_metric){"page-faults", "faults", 1, false, {0, 0}}, &faults));
	assert_int_equal(profile_step_us(p, faults), 0);
	ok(profile_time(p, 1, 0, faults, 5 * MS, 1));
	ok(profile_time(p, 1, 0, faults, 5 * MS + 300000, 1));
	ok(profile_time(p, 2, 0, faults, 5 * MS + 400000, 1));
	ok(profile_time(p, 2, 0, faults, 9 * MS, 4));
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(p->span_count, 3);
	is_span(p, 0, 1, 5000, 5300, 2);
	is_span(p, 1, 2, 5400, 5400, 1);
	is_span(p, 2, 2, 9000, 9000, 4);
	p->hz = 500; /* asked for by rate: then a sample stands for the time between two */
	assert_int_equal(profile_step_us(p, faults), 2000);
	profile_free(p);
}

static void nonsense_is_refused(void **state)
{
	struct profile *p = fresh(1, 1);
	struct err *e[] = {profile_time(p, 2, 0, 0, 1, 1), profile_time(p, 1, 1, 0, 1, 1),
			   profile_time(p, 1, 0, 1, 1, 1)};
	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_non_null(e[i]);
		err_free(e[i]);
	}
	ok(profile_time(p, 1, 0, 0, UINT64_MAX, UINT64_MAX));
	ok(profile_time(p, 1, 0, 0, 5, 0));
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(p->span_count, 1);
	profile_free(p);
}

/* Contexts and threads by chance, with gaps. `order`: as they come. */
static struct profile *random_line(uint32_t threads, uint32_t nodes, size_t samples, bool order)
{
	struct profile *p = fresh(threads, nodes);
	uint64_t *now = calloc(threads, sizeof *now);
	assert_non_null(now);
	for (size_t i = 0; i < samples; i++) {
		uint32_t t = below(threads), node = 1 + below(nodes);
		now[t] += below(20) ? 900000 + below(200000) : below(50) * MS;
		ok(profile_time(p, node, t, 0, order ? now[t] : below(400) * (uint64_t)MS,
				1 + below(2)));
		ok(profile_count(p, node, t, 0, 1));
	}
	free(now);
	ok(profile_settle(p));
	assert_sane(p);
	return p;
}

static struct buf pack(const struct profile *p)
{
	struct buf bytes = {0};
	ok(profile_pack(p, &bytes));
	return bytes;
}

static void assert_same(const struct profile *a, const struct profile *b)
{
	assert_int_equal(a->span_count, b->span_count);
	for (size_t i = 0; i < a->span_count; i++) {
		const struct profile_span *x = &a->spans[i], *y = &b->spans[i];
		assert_true(x->start_us == y->start_us && x->duration_us == y->duration_us &&
			    x->thread == y->thread && x->node == y->node &&
			    x->metric == y->metric && x->samples == y->samples);
	}
	assert_int_equal(a->coarse_us, b->coarse_us);
	assert_int_equal(a->timed, b->timed);
	assert_int_equal(a->untimed, b->untimed);
}

static void in_the_file_and_back(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		struct profile *p = random_line(1 + (uint32_t)i % 7, 1 + (uint32_t)i % 11,
						(size_t)i * 1500, i & 1),
			       *q;
		struct buf bytes, again;
		char *damage;
		p->untimed = (uint64_t)i;
		p->coarse_us = (uint64_t)i * 100;
		if (!p->span_count)
			p->coarse_us = 0;
		bytes = pack(p);
		ok(profile_parse(bytes.data, bytes.size, &q, &damage));
		assert_null(damage);
		assert_same(p, q);
		again = pack(q);
		assert_int_equal(bytes.size, again.size);
		assert_memory_equal(bytes.data, again.data, bytes.size);
		profile_free(p);
		profile_free(q);
		buf_free(&bytes);
		buf_free(&again);
	}
}

/* The n-th section of a type, by its offset. */
static size_t find_section(const struct buf *bytes, uint32_t type, int n, struct format_section *s)
{
	size_t at = FORMAT_HEADER_SIZE;
	while (at < bytes->size) {
		assert_true(format_get_section((const uint8_t *)bytes->data + at, s));
		if (s->type == type && n-- == 0)
			return at;
		at += FORMAT_SECTION_SIZE + s->stored;
	}
	fail_msg("no such section");
	return 0;
}

static struct profile *damage_section(const struct buf *bytes, uint32_t type, int n,
				      const char *part)
{
	struct buf copy = {0};
	struct format_section s;
	struct profile *q;
	char *damage;
	size_t at = find_section(bytes, type, n, &s);
	buf_append(&copy, bytes->data, bytes->size);
	copy.data[at + FORMAT_SECTION_SIZE + s.stored / 2] ^= 4;
	ok(profile_parse(copy.data, copy.size, &q, &damage));
	assert_sane(q);
	if (!damage || !strstr(damage, part))
		fail_msg("'%s' is not in: %s", part, damage ? damage : "(no damage)");
	free(damage);
	buf_free(&copy);
	return q;
}

static void damage_costs_its_own_rows(void **state)
{
	struct profile *p = random_line(3, 50, 60000, true), *q;
	struct buf bytes = pack(p);
	size_t lost = 0;
	(void)state;
	assert_true(p->span_count > 2 * FORMAT_ROWS);
	q = damage_section(&bytes, FORMAT_SPANS, 1,
			   "parts of the time line: checksum wrong: 16384 of ");
	assert_int_equal(q->span_count, p->span_count - FORMAT_ROWS);
	for (size_t i = 0; i < FORMAT_ROWS; i++)
		assert_int_equal(q->spans[i].start_us, p->spans[i].start_us);
	assert_int_equal(profile_samples(q, 0), profile_samples(p, 0));
	profile_free(q);
	q = damage_section(&bytes, FORMAT_NODES, 0,
			   "parts of the time line: their contexts are missing");
	assert_int_equal(q->span_count, 0);
	profile_free(q);
	q = damage_section(&bytes, FORMAT_THREADS, 0, "3 shown as (lost)");
	assert_same(p, q); /* they are in the same order */
	assert_int_equal(q->threads[q->spans[0].thread].tid, -1);
	profile_free(q);
	q = damage_section(&bytes, FORMAT_INFO, 0, "info: checksum wrong");
	assert_true(q->timed);
	for (size_t i = 0; i < q->span_count; i++)
		lost += q->spans[i].samples;
	assert_int_equal(lost, sum(p));
	profile_free(q);
	profile_free(p);
	buf_free(&bytes);
}

/* The profile with its time line replaced by these bytes. */
static struct profile *with_section(const char *raw, size_t size, const char *part)
{
	struct profile *p = fresh(3, 4), *q;
	struct buf bytes = pack(p), file = {0};
	struct format_section end;
	size_t at = find_section(&bytes, FORMAT_END, 0, &end);
	struct format_section s = {FORMAT_SPANS, 0, size, size, format_checksum(raw, size)};
	uint8_t header[FORMAT_SECTION_SIZE];
	char *damage;
	format_put_section(header, &s);
	buf_append(&file, bytes.data, at);
	buf_append(&file, header, sizeof header);
	buf_append(&file, raw, size);
	ok(profile_parse(file.data, file.size, &q, &damage));
	assert_sane(q);
	if (!damage || !strstr(damage, part))
		fail_msg("'%s' is not in: %s", part, damage ? damage : "(no damage)");
	free(damage);
	profile_free(p);
	buf_free(&bytes);
	buf_free(&file);
	return q;
}

#define SECTION(bytes, part) with_section(bytes, sizeof bytes - 1, part)
#define MALFORMED "parts of the time line: malformed"

static void contents_are_not_believed(void **state)
{
	/* coarse, count | threads | starts | durations | nodes (signed) | metrics | samples */
	struct profile *q = SECTION("\0\2"
				    "\0\1"
				    "\5\6"
				    "\1\2"
				    "\2\2"
				    "\0\0"
				    "\1\3",
				    "the file's end is missing");

	(void)state;
	assert_int_equal(q->span_count, 2);
	is_span(q, 0, 1, 5, 6, 1);
	is_span(q, 1, 2, 6, 8, 3);
	profile_free(q);
	q = SECTION("\0\2"
		    "\0\0"
		    "\5\6"
		    "\1\2"
		    "\2\2"
		    "\0\0"
		    "\1\0",
		    MALFORMED); /* no samples */
	assert_int_equal(q->span_count, 1);
	profile_free(q);
	q = SECTION("\0\2"
		    "\0\0"
		    "\5\6"
		    "\1\2"
		    "\2\20"
		    "\0\0"
		    "\1\1",
		    "contexts are missing");
	assert_int_equal(q->span_count, 1);
	profile_free(q);
	q = SECTION("\0\2"
		    "\0\7"
		    "\5\6"
		    "\1\2"
		    "\2\2"
		    "\0\0"
		    "\1\1",
		    "1 shown as (lost)");
	assert_int_equal(q->span_count, 2);
	profile_free(q);
	q = SECTION("\0\2"
		    "\0\0"
		    "\5\6"
		    "\1\2"
		    "\2\2"
		    "\0\3"
		    "\1\1",
		    "1 shown as (lost)");
	assert_int_equal(q->metric_count, 2);
	profile_free(q);
	q = SECTION("\0\1"
		    "\0"
		    "\1"
		    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
		    "\2"
		    "\0"
		    "\1",
		    MALFORMED); /* it never ends */
	assert_int_equal(q->span_count, 0);
	profile_free(q);
	q = SECTION("\0\1"
		    "\xff\xff\xff\xff\xff\1"
		    "\1"
		    "\1"
		    "\2"
		    "\0"
		    "\1",
		    MALFORMED);
	profile_free(q);
	q = SECTION("\0\xff\xff\xff\x7f"
		    "\0\0\0\0\0\0\0\0",
		    MALFORMED); /* they cannot be there */
	profile_free(q);
	q = SECTION("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"
		    "\1"
		    "\0"
		    "\1"
		    "\1"
		    "\2"
		    "\0"
		    "\1",
		    MALFORMED);
	assert_int_equal(q->coarse_us, 0);
	profile_free(q);
	q = SECTION("", MALFORMED);
	profile_free(q);
}

/* Two sections of a thread that overlap: the second one is left out. */
static void sections_are_in_order(void **state)
{
	struct profile *p = random_line(1, 30, 30000, true), *q;
	struct buf bytes = pack(p), turned = {0};
	struct format_section a, b;
	size_t first = find_section(&bytes, FORMAT_SPANS, 0, &a),
	       second = find_section(&bytes, FORMAT_SPANS, 1, &b);
	char *damage;
	(void)state;
	buf_append(&turned, bytes.data, first);
	buf_append(&turned, bytes.data + second, FORMAT_SECTION_SIZE + b.stored);
	buf_append(&turned, bytes.data + first, FORMAT_SECTION_SIZE + a.stored);
	second += FORMAT_SECTION_SIZE + b.stored;
	buf_append(&turned, bytes.data + second, bytes.size - second);
	ok(profile_parse(turned.data, turned.size, &q, &damage));
	assert_sane(q);
	assert_non_null(strstr(damage, MALFORMED));
	assert_true(q->span_count && q->span_count <= p->span_count - FORMAT_ROWS);
	free(damage);
	profile_free(p);
	profile_free(q);
	buf_free(&bytes);
	buf_free(&turned);
}

static void spans_are_bounded(void **state)
{
	/* Of ten samples, seven are in node 1, two in node 2, one in node 3. */
	static const uint32_t nodes[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 3};
	struct profile *p = fresh(4, 3);
	double shares[4] = {0};
	size_t spans[4] = {0};
	uint64_t samples = 0, longest = 0;

	(void)state;
	for (uint32_t i = 0; i < 1500000; i++)
		for (uint32_t t = 0; t < 4; t++, samples++)
			ok(profile_time(p, nodes[below(10)], t, 0,
					(i + 1) * (uint64_t)MS + below(100000), 1));
	ok(profile_settle(p));
	assert_sane(p);
	assert_true(p->span_count > PROFILE_SPAN_MAX / 8);
	/* No coarser than need be: two spans for each interval are too many in half of it. */
	assert_true(p->coarse_us >= 2000 && p->coarse_us <= 16000 && p->coarse_us % 2000 == 0);
	assert_int_equal(sum(p), samples);
	assert_int_equal(p->untimed, 0);
	for (size_t i = 0; i < p->span_count; i++) {
		const struct profile_span *s = &p->spans[i];
		shares[s->node] += s->samples;
		spans[s->thread]++;
		longest = s->duration_us > longest ? s->duration_us : longest;
	}
	/* As many as before, on the average: the error is that of about 750 000 choices. */
	assert_true(shares[1] > 0.695 * (double)samples && shares[1] < 0.705 * (double)samples);
	assert_true(shares[2] > 0.195 * (double)samples && shares[2] < 0.205 * (double)samples);
	assert_true(shares[3] > 0.095 * (double)samples && shares[3] < 0.105 * (double)samples);
	for (int t = 0; t < 4; t++) /* no thread has more of it than another */
		assert_true(spans[t] > p->span_count / 5 && spans[t] < p->span_count * 3 / 10);
	assert_true(longest < 1000000);
	profile_free(p);
}

static void long_spans_stay(void **state)
{
	struct profile *p = fresh(2, 3);
	uint32_t i = 0;
	(void)state;
	/* A second of one thing; then two in turn, for ever; then nothing; a second of it again. */
	for (; i < 1000; i++)
		at(p, 0, 3, 1 + i);
	for (; i < 1301000; i++)
		at(p, 0, 1 + i % 2, 1 + i);
	for (i = 2000000; i < 2001000; i++)
		at(p, 0, 3, 1 + i);
	ok(profile_settle(p));
	assert_sane(p);
	assert_true(p->coarse_us);
	is_span(p, 0, 3, 0, 1000000, 1000);
	is_span(p, p->span_count - 1, 3, 2000000000, 2001000000, 1000);
	profile_free(p);
}

static void threads_beyond_number(void **state)
{
	const uint32_t threads = PROFILE_SPAN_MAX + 5000;
	struct profile *p = fresh(threads, 1);
	(void)state;
	for (uint32_t t = 0; t < threads; t++)
		at(p, t, 1, 5 + t % 100);
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(p->span_count, PROFILE_SPAN_MAX);
	assert_int_equal(p->untimed, 5000);
	profile_free(p);
}

static void merging_keeps_both(void **state)
{
	struct profile *a = random_line(3, 20, 5000, true), *b = random_line(2, 30, 7000, true),
		       *both;
	uint32_t other;
	size_t of_b;
	(void)state;
	b->coarse_us = 4000;
	b->untimed = 3;
	ok(profile_new(&both));
	ok(profile_merge(both, a));
	assert_same(a, both);
	ok(profile_merge(both, b));
	assert_sane(both);
	assert_int_equal(both->span_count, a->span_count + b->span_count);
	assert_int_equal(sum(both), sum(a) + sum(b));
	assert_int_equal(both->coarse_us, 4000);
	assert_int_equal(both->untimed, 3);
	assert_true(both->timed);
	of_b = a->span_count;
	for (size_t i = 0; i < b->span_count; i++) {
		const struct profile_span *x = &b->spans[i], *y = &both->spans[of_b + i];
		assert_int_equal(x->thread + 3, y->thread);
		assert_int_equal(x->start_us, y->start_us);
		assert_int_equal(b->nodes[x->node].address, both->nodes[y->node].address);
	}
	/* Another period is another metric. */
	b->metrics[0].period = 2 * MS;
	ok(profile_merge(both, b));
	assert_int_equal(both->metric_count, 2);
	other = both->spans[both->span_count - 1].metric;
	assert_int_equal(both->metrics[other].period, 2 * MS);
	profile_free(a);
	profile_free(b);
	profile_free(both);
}

static void wait(struct profile *p, uint32_t thread, uint64_t start_us, uint64_t end_us,
		 uint32_t waker)
{
	ok(profile_time_span(p, &(struct profile_span){.thread = thread,
						       .node = 1,
						       .start_us = start_us,
						       .duration_us = end_us - start_us,
						       .samples = 5,
						       .waker = waker}));
}

static void waits_have_wakers(void **state)
{
	struct profile *p = fresh(3, 2), *q, *both;
	const uint32_t thread = 1 + PROFILE_WAKERS;
	char *damage;
	(void)state;
	wait(p, 0, 0, 5000, thread + 2);
	wait(p, 0, 5000, 9000, thread + 2); /* another wait */
	wait(p, 0, 9000, 12000, 0);
	wait(p, 0, 12000, 15000, 0);
	wait(p, 1, 0, 10000, 1 + PROFILE_WAKER_INTERRUPT);
	at(p, 1, 2, 5); /* came late, in the midst of it */
	ok(profile_settle(p));
	assert_int_equal(p->span_count, 6);
	is_span(p, 0, 1, 0, 5000, 5);
	is_span(p, 2, 1, 9000, 15000, 10);
	const uint32_t wakers[] = {thread + 2, thread + 2, 0, 0, 0, 1 + PROFILE_WAKER_INTERRUPT};
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(p->spans[i].waker, wakers[i]);
	struct buf bytes = pack(p);
	ok(profile_parse(bytes.data, bytes.size, &q, &damage));
	assert_null(damage);
	assert_same(p, q);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(q->spans[i].waker, wakers[i]);
	ok(profile_new(&both));
	ok(profile_merge(both, p));
	ok(profile_merge(both, q));
	assert_int_equal(both->spans[0].waker, thread + 2);
	assert_int_equal(both->spans[6].waker, thread + 5);
	assert_int_equal(both->spans[11].waker, 1 + PROFILE_WAKER_INTERRUPT);
	struct err *e = profile_time_span(
		p, &(struct profile_span){.node = 1, .samples = 1, .waker = thread + 3});
	assert_non_null(e);
	err_free(e);
	profile_free(p);
	profile_free(q);
	profile_free(both);
	buf_free(&bytes);
}

static void merging_is_bounded(void **state)
{
	struct profile *p = random_line(4, 40, 700000, true), *both;
	uint64_t samples = sum(p);
	(void)state;
	assert_true(p->span_count > PROFILE_SPAN_MAX / 2 && !p->coarse_us);
	ok(profile_new(&both));
	for (int i = 0; i < 3; i++)
		ok(profile_append(both, p));
	ok(profile_settle(both));
	assert_sane(both);
	assert_true(both->coarse_us);
	assert_int_equal(sum(both), 3 * samples);
	profile_free(p);
	profile_free(both);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_become_spans),
		cmocka_unit_test(late_samples_find_their_place),
		cmocka_unit_test(samples_of_no_length),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(in_the_file_and_back),
		cmocka_unit_test(damage_costs_its_own_rows),
		cmocka_unit_test(contents_are_not_believed),
		cmocka_unit_test(sections_are_in_order),
		cmocka_unit_test(spans_are_bounded),
		cmocka_unit_test(long_spans_stay),
		cmocka_unit_test(threads_beyond_number),
		cmocka_unit_test(merging_keeps_both),
		cmocka_unit_test(waits_have_wakers),
		cmocka_unit_test(merging_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
