/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdio.h>

#include "base/err.h"
#include "collect/events.h"

#include <linux/perf_event.h>
#include <string.h>

static struct recording_event event;

/* Whether the machine lets us; where it does not, only the name and the rate can be tested. */
static bool parse(const char *text)
{
	struct err *e = event_parse(text, 1000, &event);
	if (e)
		print_message("%s\n", err_text(e));
	err_free(e);
	return !e;
}

static void assert_refused(const char *text, const char *part)
{
	struct err *e = event_parse(text, 1000, &event);
	assert_non_null(e);
	if (!strstr(err_text(e), part))
		fail_msg("%s: '%s' does not say '%s'", text, err_text(e), part);
	err_free(e);
}

static bool clocks_work(void)
{
	struct event_answer said;
	assert_true(event_known("cpu-clock", &event));
	event_ask(&event, &said);
	return said.available && !said.user_only;
}

static void names_and_aliases(void **state)
{
	static const struct {
		const char *typed, *name, *unit;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{"cpu-clock", "cpu-clock", "ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
		{"task-clock", "task-clock", "ns", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
		{"faults", "page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
		{"cs", "context-switches", "switches", PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_CONTEXT_SWITCHES},
		{"migrations", "cpu-migrations", "migrations", PERF_TYPE_SOFTWARE,
		 PERF_COUNT_SW_CPU_MIGRATIONS},
		{"cpu-cycles", "cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		{"branch-instructions", "branches", "branches", PERF_TYPE_HARDWARE,
		 PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	};
	size_t i;
	(void)state;
	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_true(event_known(cases[i].typed, &event));
		assert_string_equal(event.name, cases[i].name);
		assert_string_equal(event.unit, cases[i].unit);
		assert_int_equal(event.type, cases[i].type);
		assert_int_equal(event.config, cases[i].config);
		assert_int_equal(event.clock, !strcmp(cases[i].unit, "ns"));
	}
	assert_false(event_known("cpu", &event));
	assert_false(event_known("", &event));
	assert_false(event_known("cpu-clock:u", &event));
}

static void rates(void **state)
{
	(void)state;
	if (!clocks_work()) {
		printf("# the kernel allows no perf events here\n");
		skip();
	}
	assert_true(parse("cpu-clock"));
	assert_int_equal(event.hz, 1000);
	assert_int_equal(event.period, 1000000);
	assert_true(parse("task-clock@250"));
	assert_int_equal(event.hz, 250);
	assert_int_equal(event.period, 4000000);
	assert_true(event.clock);
	assert_true(parse("page-faults"));
	assert_int_equal(event.period, 10);
	assert_int_equal(event.hz, 0);
	assert_true(parse("page-faults@1"));
	assert_int_equal(event.period, 1);
	assert_true(parse("cs@10"));
	assert_int_equal(event.period, 10);
	assert_true(parse("cs"));
	assert_int_equal(event.period, 10);
	assert_string_equal(event.name, "context-switches");
}

static void rates_that_cannot_be(void **state)
{
	(void)state;
	assert_refused("cpu-clock@0", "a rate of 0");
	assert_refused("page-faults@0", "a rate of 0");
	assert_refused("page-faults@9223372036854775807", "too seldom");
	assert_refused("cpu-clock@", "a number, not ''");
	assert_refused("cpu-clock@-1", "a number, not '-1'");
	assert_refused("cpu-clock@1k", "a number, not '1k'");
	assert_refused("cpu-clock@99999999999999999999999", "a number");
	assert_refused("cpu-clock@100000000", "at most 100000 samples per second");
	assert_refused("cycles@100000000", "kernel.perf_event_max_sample_rate=100000000");
	assert_refused("cycles@100000000", "kernel.perf_cpu_time_max_percent");
	assert_refused("cs@9", "at least @10");
	assert_refused("context-switches@1", "a sample is a signal");
	assert_refused("instructions@999", "at least @1000");
	assert_refused("r11@5", "at least @1000");
}

static void names_that_are_none(void **state)
{
	char name[300];
	(void)state;
	assert_refused("", "event '': no name");
	assert_refused("@5", "no name");
	assert_refused("no-such-thing", "event 'no-such-thing': unknown");
	assert_refused("cpu-clock:x", "event 'cpu-clock:x'");
	assert_refused("rxyz", "unknown");
	assert_refused("r", "unknown");
	assert_refused("r11111111111111111", "unknown");
	assert_refused("cs:u", "leave out ':u'");
	assert_refused("../../etc:passwd", "unknown");
	assert_refused("sched:../sched_switch", "unknown");
	assert_refused("%s%n:%s", "unknown");
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = 0;
	assert_refused(name, "so long a name");
}

static void user_code_only(void **state)
{
	(void)state;
	if (!clocks_work()) {
		printf("# the kernel allows no perf events here\n");
		skip();
	}
	assert_true(parse("page-faults:u@3"));
	assert_true(event.user_only);
	assert_string_equal(event.name, "page-faults:u");
	assert_int_equal(event.period, 3);
	assert_true(parse("page-faults"));
	assert_false(event.user_only);
}

static void raw_and_hardware(void **state)
{
	struct event_answer said;
	(void)state;
	/* Where the machine counts nothing, the error says so; the numbers are filled in anyway. */
	parse("r1A8");
	assert_int_equal(event.type, PERF_TYPE_RAW);
	assert_int_equal(event.config, 0x1a8);
	assert_int_equal(event.period, 1000000);
	assert_true(event_known("cycles", &event));
	event_ask(&event, &said);
	if (!said.available)
		assert_refused("cycles", said.fix);
	else
		assert_true(parse("cycles"));
	assert_true(event.period > 0 && event.hz == 1000);
}

static void tracepoints(void **state)
{
	struct event_answer said;
	(void)state;
	event_ask_tracepoints(&said);
	assert_true(said.state[0]);
	if (!said.available) {
		assert_true(said.fix[0]);
		assert_refused("sched:sched_switch", said.state);
		printf("# %s\n", said.state);
		skip();
	}
	assert_true(parse("sched:sched_switch"));
	assert_int_equal(event.type, PERF_TYPE_TRACEPOINT);
	assert_int_equal(event.period, 10);
	assert_string_equal(event.name, "sched:sched_switch");
	assert_refused("sched:sched_switch@9", "at least @10");
	assert_refused("raw_syscalls:sys_enter@1", "at least @10");
	assert_refused("sched:no_such", "no such tracepoint");
	assert_true(parse("kmem:mm_page_alloc@1"));
	assert_int_equal(event.period, 1);
}

static void names_of_libpfm(void **state)
{
	(void)state;
	if (!clocks_work()) {
		printf("# the kernel allows no perf events here\n");
		skip();
	}
	assert_true(parse("perf::PERF_COUNT_SW_PAGE_FAULTS"));
	assert_int_equal(event.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(event.config, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(event.period, 10);
	assert_refused("perf::PERF_COUNT_SW_CONTEXT_SWITCHES@1", "at least @10");
	assert_true(parse("PERF_COUNT_SW_CPU_CLOCK@100"));
	assert_true(event.clock);
	assert_int_equal(event.period, 10000000);
}

static void sameness(void **state)
{
	struct recording_event a, b;
	(void)state;
	assert_true(event_known("faults", &a));
	assert_true(event_known("page-faults", &b));
	b.period = 5;
	assert_true(event_same(&a, &b));
	b.user_only = true;
	assert_false(event_same(&a, &b));
	assert_true(event_known("minor-faults", &b));
	assert_false(event_same(&a, &b));
}

static void what_record_takes_by_itself(void **state)
{
	bool timers = true;
	char why[400];
	struct err *e;
	(void)state;
	assert_null(event_default(500, &event, &timers, why, sizeof why));
	assert_int_equal(event.hz, 500);
	assert_int_equal(timers, why[0] != 0);
	assert_true(!strcmp(event.name, "cycles") || !strcmp(event.name, "cpu-clock"));
	e = event_default(0, &event, &timers, why, sizeof why);
	assert_non_null(e);
	assert_string_equal(err_text(e), "-F 0: a rate of 0 gives no samples");
	err_free(e);
	assert_true(event_tick_hz() >= 50 && event_tick_hz() <= 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_aliases),
		cmocka_unit_test(rates),
		cmocka_unit_test(rates_that_cannot_be),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(user_code_only),
		cmocka_unit_test(raw_and_hardware),
		cmocka_unit_test(tracepoints),
		cmocka_unit_test(names_of_libpfm),
		cmocka_unit_test(sameness),
		cmocka_unit_test(what_record_takes_by_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
