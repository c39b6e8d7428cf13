/* SPDX-License-Identifier: Apache-2.0 */
/* The whole machine, taken away in parts: each sample is in one of them, with its whole path. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/kernel.h"
#include "collect/session.h"
#include "profile/profile.h"
#include "unwind/end.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 40
#define HZ 2000

static volatile unsigned long sink;
static volatile bool ended;

/* Deep enough that most of a path is never sent again. */
__attribute__((noinline)) static unsigned long dig(unsigned depth)
{
	while (!depth && !ended)
		sink++;
	unsigned long below = depth ? dig(depth - 1) : 0;
	sink++;
	return below + sink;
}

static pid_t start_digging(void)
{
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dig(DEPTH);
	}
	return pid;
}

/* Ends while the next part is counted. */
static void run_short_ones(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();
		if (!pid) {
			for (unsigned long k = 0; k < 3000000; k++)
				sink += k;
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void handle_for(struct session *s, int milliseconds)
{
	uint64_t until = now_ns() + (uint64_t)milliseconds * 1000000u;
	while (now_ns() < until) {
		struct pollfd wait = {session_fd(s), POLLIN, 0};
		poll(&wait, 1, 10);
		struct err *e = session_handle(s);
		if (e)
			fail_msg("%s", err_text(e));
	}
}

struct sums {
	uint64_t samples, lost, handled; /* of all */
	/* Of the one that digs: with its whole path; without it because nobody had the time to keep its stack. */
	uint64_t dug, whole, unkept;
	int64_t start_ms;
};

/* 0: it is not whole, for *reason. */
static unsigned depth_of(const struct profile *p, uint32_t node, uint64_t *reason)
{
	unsigned depth = 0;
	for (uint32_t at = node; at; at = p->nodes[at].parent) {
		*reason = p->nodes[at].address;
		if (p->nodes[at].kind == PROFILE_PARTIAL)
			return 0;
		depth++;
	}
	return depth;
}

static void add(struct sums *sums, const struct session_drained *d, pid_t digger)
{
	const struct profile *p = d->profile;
	sums->samples += profile_samples(p, 0);
	for (size_t i = 0; i < p->lost_count; i++)
		sums->lost += p->lost[i].count;
	for (size_t i = 0; i < p->thread_count; i++)
		sums->handled += p->threads[i].handled;
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		uint32_t process = p->threads[v->thread].process;
		const struct process_owner *owner = &d->processes[process];
		if (p->processes[process].pid != digger)
			continue;
		uint64_t reason = 0;
		unsigned depth = depth_of(p, v->node, &reason);
		sums->dug += v->count;
		sums->whole += depth > DEPTH ? v->count : 0;
		sums->unkept += !depth && reason == WALK_NO_STACK ? v->count : 0;
		assert_int_equal(owner->user, getuid());
		assert_non_null(owner->container);
		if (!sums->start_ms)
			sums->start_ms = owner->start_ms;
		assert_int_equal(owner->start_ms, sums->start_ms);
	}
}

static void take(struct session *s, bool last, struct sums *sums, pid_t digger)
{
	struct session_drained d;
	struct err *e = session_drain(s, last, &d);
	if (e)
		fail_msg("%s", err_text(e));
	add(sums, &d, digger);
	session_drained_free(&d);
}

static struct session *open_whole(void)
{
	struct recording_options o = {
		.event_count = 1, .hz = HZ, .kernel = true, .whole = true, .drained = true};
	struct session *s;
	o.events[0] = (struct recording_event){.name = "cpu-clock",
					       .unit = "ns",
					       .type = PERF_TYPE_SOFTWARE,
					       .config = PERF_COUNT_SW_CPU_CLOCK,
					       .period = 1000000000 / HZ,
					       .hz = HZ,
					       .clock = true};
	struct err *e = session_open(&o, &s);
	if (e)
		fail_msg("%s", err_text(e));
	return s;
}

/* What came before they were ready waits, or is not whole. */
static void wait_for_tables(struct session *s, struct sums *sums, pid_t digger)
{
	uint64_t last = 1;
	for (int i = 0; i < 300 && (!sums->whole || last); i++) {
		uint64_t before = sums->dug - sums->whole - sums->unkept;
		handle_for(s, 300);
		take(s, false, sums, digger);
		last = sums->dug - sums->whole - sums->unkept - before;
	}
	sums->dug = sums->whole = sums->unkept = 0;
}

static void loses_and_doubles_nothing(void **state)
{
	char why[400];
	struct sums sums = {0};
	struct recording_state status;
	(void)state;
	if (!kernel_can_sample(why, sizeof why)) {
		print_message("skipped: %s\n", why);
		skip();
	}
	pid_t digger = start_digging();
	struct session *s = open_whole();
	wait_for_tables(s, &sums, digger);
	/* Some 3 s, and longer beside others. */
	for (int i = 0; i < 12 || (sums.dug <= HZ / 2 && i < 200); i++) {
		handle_for(s, 150 + 20 * (i % 12));
		if (i % 3 == 0)
			run_short_ones();
		take(s, false, &sums, digger);
		assert_int_equal(session_held(s), 1); /* the root */
	}
	handle_for(s, 200);
	take(s, true, &sums, digger);
	session_status(s, &status);
	kill(digger, SIGKILL);
	waitpid(digger, NULL, 0);
	assert_int_equal(sums.samples, status.samples);
	assert_int_equal(sums.lost, status.lost);
	assert_int_equal(sums.handled, sums.samples); /* as many as the sampler sent */
	assert_true(sums.dug > HZ / 2);
	assert_true(sums.whole > 0);
	assert_true(sums.whole + sums.unkept >= sums.dug - sums.dug / 100);
	/* Nothing is left. */
	take(s, true, &sums, digger);
	assert_int_equal(sums.samples, status.samples);
	session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(loses_and_doubles_nothing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
