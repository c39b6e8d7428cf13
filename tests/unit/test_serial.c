/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "analyze/serial.h"

#include <string.h>

#include "base/err.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

enum { ALONE, BESIDE, WAITS, NODES };

struct made {
	struct profile *p;
	uint32_t nodes[NODES];
};

/* Two threads, and a metric. */
static struct made new_profile(const char *event)
{
	struct made m;
	uint32_t index;
	good(profile_new(&m.p));
	good(profile_add_process(
		m.p,
		&(struct profile_process){.pid = 10, .name = "app", .command = "app", .rank = -1},
		&index));
	for (int i = 0; i < 3; i++)
		good(profile_add_thread(m.p, &(struct profile_thread){.tid = 10 + i, .name = "t"},
					&index));
	for (uint8_t kind = PROFILE_FILE; kind <= PROFILE_OBJECT;
	     kind = (uint8_t)(kind + PROFILE_OBJECT - PROFILE_FILE))
		good(profile_add_module(
			m.p,
			&(struct profile_module){
				.kind = kind, .path = "x", .build_id = "", .problem = ""},
			&index));
	good(profile_add_metric(
		m.p, &(struct profile_metric){.name = event, .unit = "ns", .period = 1000000},
		&index));
	good(profile_child(m.p, 0, PROFILE_EXACT, 1, 0x10, &m.nodes[ALONE]));
	good(profile_child(m.p, 0, PROFILE_EXACT, 1, 0x20, &m.nodes[BESIDE]));
	good(profile_child(m.p, 0, PROFILE_EXACT, 2, 1, &m.nodes[WAITS]));
	m.p->timed = m.p->complete = true;
	return m;
}

static void add_span(struct made *m, int node, uint32_t thread, uint64_t start, uint64_t duration)
{
	good(profile_count(m->p, m->nodes[node], thread, 0, duration / 1000));
	good(profile_time_span(m->p,
			       &(struct profile_span){.start_us = start,
						      .duration_us = duration,
						      .thread = thread,
						      .node = m->nodes[node],
						      .samples = (uint32_t)(duration / 1000)}));
}

static uint64_t serial_of(const struct made *m, int node, uint32_t metric)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < m->p->value_count; i++)
		if (m->p->values[i].node == m->nodes[node] && m->p->values[i].metric == metric)
			sum += m->p->values[i].count;
	return sum;
}

/* One thread runs alone for 10 ms, then three for 30 ms, then two of them for 5 ms. */
static void shares(void **unused)
{
	struct made m = new_profile("cpu-clock");
	uint32_t metric;
	(void)unused;
	add_span(&m, ALONE, 0, 1000, 10000);
	add_span(&m, BESIDE, 0, 11000, 30000);
	add_span(&m, BESIDE, 1, 11000, 35000);
	add_span(&m, BESIDE, 2, 11000, 35000);
	good(profile_settle(m.p));
	assert_true(serial_is_telling(m.p));
	good(serial_add(m.p, &metric));
	assert_string_equal(m.p->metrics[metric].name, "cpu-clock.serial");
	assert_int_equal(serial_of(&m, ALONE, metric), 10000000);
	assert_int_equal(serial_of(&m, BESIDE, metric), 35000000);
	assert_int_equal(profile_sampled(m.p, metric), 0);
	assert_int_equal(profile_main(m.p), 0);
	profile_free(m.p);
}

/* Spans of one thread that overlap partly with another's. */
static void parts(void **unused)
{
	struct made m = new_profile("cpu-clock");
	uint32_t metric;
	(void)unused;
	add_span(&m, ALONE, 0, 0, 12000);
	add_span(&m, BESIDE, 1, 4000, 8000);
	good(profile_settle(m.p));
	good(serial_add(m.p, &metric));
	assert_int_equal(serial_of(&m, ALONE, metric), 8000000);
	assert_int_equal(serial_of(&m, BESIDE, metric), 4000000);
	profile_free(m.p);
}

/* Who waits does not run. */
static void waits(void **unused)
{
	struct made m = new_profile("wall");
	uint32_t metric;
	(void)unused;
	add_span(&m, ALONE, 0, 0, 20000);
	add_span(&m, WAITS, 1, 0, 20000);
	good(profile_settle(m.p));
	assert_false(serial_is_telling(m.p));
	good(serial_add(m.p, &metric));
	assert_int_equal(serial_of(&m, ALONE, metric), 20000000);
	assert_int_equal(serial_of(&m, WAITS, metric), 0);
	profile_free(m.p);
}

static void without_time_line(void **unused)
{
	struct made m = new_profile("cpu-clock");
	uint32_t metric;
	(void)unused;
	struct err *e = serial_add(m.p, &metric);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "--timeline"));
	err_free(e);
	assert_int_equal(m.p->metric_count, 1);
	profile_free(m.p);
}

static void names(void **unused)
{
	(void)unused;
	assert_true(serial_is_wanted("serial"));
	assert_true(serial_is_wanted("cpu-clock.serial"));
	assert_false(serial_is_wanted("cpu-clock"));
	assert_false(serial_is_wanted("lock.held"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares), cmocka_unit_test(parts),
		cmocka_unit_test(waits),  cmocka_unit_test(without_time_line),
		cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
