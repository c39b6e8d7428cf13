/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "analyze/waits.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

enum { MAIN, LOADER, WORKER, THREADS };
enum { LOCK, SLEEP, DISK, WAITS };

struct made {
	struct profile *p;
	uint32_t nodes[WAITS]; /* of a function of the kernel for each reason */
};

static struct made new_profile(void)
{
	static const char *const threads[] = {"main", "loader", "worker"};
	static const char *const functions[] = {"down_read", "do_nanosleep", "submit_bio_wait"};
	struct made m;
	uint32_t index;
	good(profile_new(&m.p));
	good(profile_add_process(
		m.p,
		&(struct profile_process){.pid = 10, .name = "app", .command = "app", .rank = -1},
		&index));
	for (int i = 0; i < THREADS; i++)
		good(profile_add_thread(
			m.p, &(struct profile_thread){.tid = 10 + i, .name = threads[i]}, &index));
	good(profile_add_module(
		m.p,
		&(struct profile_module){
			.kind = PROFILE_KERNEL, .path = "[kernel]", .build_id = "", .problem = ""},
		&index));
	good(profile_add_metric(
		m.p, &(struct profile_metric){.name = "blocked", .unit = "ns", .period = 1000000},
		&index));
	for (unsigned i = 0; i < WAITS; i++) {
		good(profile_name_function(m.p, 1, 0x1000 + 0x100 * i, 0x100, functions[i]));
		good(profile_child(m.p, 0, PROFILE_CALL, 1, 0x1010 + 0x100 * i, &m.nodes[i]));
	}
	m.p->complete = true;
	return m;
}

/* A thread waits for `samples`, of which the waker waits for `waited` itself. */
static void wait_for(struct made *m, uint32_t thread, int reason, uint32_t waker, unsigned samples,
		     unsigned waited)
{
	good(profile_count(m->p, m->nodes[reason], thread, 0, samples));
	good(profile_wake(
		m->p, &(struct profile_wake){m->nodes[reason], thread, 0, waker, samples, waited}));
}

static void expect(struct made *m, const bool *threads, const char *expected)
{
	struct modules *modules;
	struct attribution a;
	struct waits waits;
	struct buf out = {0};
	uint32_t metric = 0;
	good(profile_settle(m->p));
	good(modules_open(m->p, false, &modules));
	good(attribution_make(m->p, modules, &(struct attribution_options){.by = BY_FUNCTION}, &a));
	assert_true(waits_metric(m->p, &metric));
	good(waits_make(&a, metric, threads, &waits));
	waits_print(&waits, m->p, metric, 0, 0, &out);
	assert_string_equal(buf_text(&out), expected);
	buf_free(&out);
	waits_free(&waits);
	attribution_free(&a);
	modules_close(modules);
	profile_free(m->p);
}

static void follows_who_waits_itself(void **state)
{
	struct made m = new_profile();
	(void)state;
	wait_for(&m, MAIN, LOCK, PROFILE_WAKERS + LOADER, 60, 40);
	wait_for(&m, MAIN, LOCK, PROFILE_WAKERS + LOADER, 20, 20);
	wait_for(&m, LOADER, LOCK, PROFILE_WAKERS + WORKER, 50, 50);
	wait_for(&m, LOADER, SLEEP, PROFILE_WAKER_INTERRUPT, 10, 0);
	wait_for(&m, WORKER, DISK, PROFILE_WAKER_INTERRUPT, 40, 0);
	wait_for(&m, WORKER, LOCK, PROFILE_WAKER_OUTSIDER, 15, 0);
	good(profile_count(m.p, m.nodes[SLEEP], WORKER, 0, 5)); /* until the end */
	expect(&m, NULL,
	       "      time   share\n"
	       "   80.0 ms  40.00%  main (thread 10) waited for loader (thread 11): kernel lock; that one waited itself for 75% of it\n"
	       "   50.0 ms  25.00%  loader (thread 11) waited for worker (thread 12): kernel lock; that one waited itself for 100% of it\n"
	       "   40.0 ms  20.00%  worker (thread 12) waited for an interrupt: disk\n"
	       "   15.0 ms   7.50%  worker (thread 12) waited for a thread that is not recorded: kernel lock\n"
	       "   10.0 ms   5.00%  loader (thread 11) waited for an interrupt: sleep\n"
	       "   5.00 ms   2.50%  worker (thread 12) waited for what is not known: sleep\n"
	       "\nchains:\n"
	       "   80.0 ms  main (thread 10) <- loader (thread 11) <- worker (thread 12) <- disk\n"
	       "   50.0 ms  loader (thread 11) <- worker (thread 12) <- disk\n");
}

static void ends_with_who_runs(void **state)
{
	const bool main_only[THREADS] = {true};
	struct made m = new_profile();
	(void)state;
	wait_for(&m, MAIN, LOCK, PROFILE_WAKERS + LOADER, 60, 10);
	wait_for(&m, LOADER, DISK, PROFILE_WAKER_KERNEL, 50, 0);
	expect(&m, main_only,
	       "      time   share\n"
	       "   60.0 ms 100.00%  main (thread 10) waited for loader (thread 11): kernel lock; that one waited itself for 17% of it\n"
	       "\nchains:\n"
	       "   60.0 ms  main (thread 10) <- loader (thread 11), which runs\n");
}

static void ends_with_a_circle(void **state)
{
	struct made m = new_profile();
	(void)state;
	wait_for(&m, MAIN, LOCK, PROFILE_WAKERS + LOADER, 60, 60);
	wait_for(&m, LOADER, LOCK, PROFILE_WAKERS + MAIN, 20, 20);
	expect(&m, NULL,
	       "      time   share\n"
	       "   60.0 ms  75.00%  main (thread 10) waited for loader (thread 11): kernel lock; that one waited itself for 100% of it\n"
	       "   20.0 ms  25.00%  loader (thread 11) waited for main (thread 10): kernel lock; that one waited itself for 100% of it\n"
	       "\nchains:\n"
	       "   60.0 ms  main (thread 10) <- loader (thread 11), for each other\n"
	       "   20.0 ms  loader (thread 11) <- main (thread 10), for each other\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_who_waits_itself),
		cmocka_unit_test(ends_with_who_runs),
		cmocka_unit_test(ends_with_a_circle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
