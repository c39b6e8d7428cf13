/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "analyze/reasons.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/reason_totals.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

/* Functions by number, in a module of the kernel, in the C library, and in a program. All of them have their names
   in the profile. */

enum module { KERNEL = 1, LIBRARY, PROGRAM };
enum metric { CLOCK, BLOCKED, QUEUED, WALL };

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void add_module(struct profile *p, uint8_t kind, const char *path)
{
	uint32_t index;
	good(profile_add_module(
		p,
		&(struct profile_module){.kind = kind, .path = path, .build_id = "", .problem = ""},
		&index));
}

static struct profile *new_profile(void)
{
	static const char *const metrics[] = {"cpu-clock", "blocked", "blocked.queued", "wall"};
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	good(profile_add_process(
		p,
		&(struct profile_process){.pid = 10, .name = "app", .command = "app", .rank = -1},
		&index));
	good(profile_add_thread(p, &(struct profile_thread){.tid = 10, .name = "app"}, &index));
	add_module(p, PROFILE_KERNEL, "[kernel]");
	add_module(p, PROFILE_JIT, "libc");
	add_module(p, PROFILE_JIT, "app");
	for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
		good(profile_add_metric(p,
					&(struct profile_metric){.name = metrics[i],
								 .unit = "ns",
								 .period = 1000000},
					&index));
	p->complete = true;
	return p;
}

/* The address of a function of a module, which gets one when it is met first. */
static uint64_t address_of(struct profile *p, uint32_t module, const char *name)
{
	const struct profile_module *m = &p->modules[module];
	uint64_t start = 0x1000 + 0x100 * m->name_count;
	for (size_t i = 0; i < m->name_count; i++)
		if (!strcmp(m->names[i].name, name))
			return m->names[i].start + 0x10;
	good(profile_name_function(p, module, start, 0x100, name));
	return start + 0x10;
}

/* Counts a path, outermost first, that ends by waiting in the kernel: "main libc:read kernel:vfs_read". */
static void count_path(struct profile *p, const char *path, bool waits, enum metric metric,
		       unsigned samples)
{
	char text[256], *rest = text;
	uint32_t node = 0;
	snprintf(text, sizeof text, "%s", path);
	for (char *word; (word = strsep(&rest, " "));) {
		uint32_t module = !strncmp(word, "libc:", 5)     ? LIBRARY
				  : !strncmp(word, "kernel:", 7) ? KERNEL
								 : PROGRAM;
		const char *name = module == PROGRAM ? word : strchr(word, ':') + 1;
		good(profile_child(p, node, rest || waits ? PROFILE_CALL : PROFILE_EXACT, module,
				   address_of(p, module, name), &node));
	}
	good(profile_count(p, node, 0, metric, samples));
}

/* What report says. */
static void expect(struct profile *p, enum metric metric, const char *expected)
{
	struct modules *modules;
	struct attribution a;
	struct reason_totals totals;
	struct buf out = {0};
	good(profile_settle(p));
	good(modules_open(p, false, &modules));
	good(attribution_make(p, modules, &(struct attribution_options){.by = BY_FUNCTION}, &a));
	good(reason_totals_make(&a, NULL, &totals));
	reason_totals_print(&totals, p, metric, &out);
	assert_string_equal(buf_text(&out), expected);
	buf_free(&out);
	reason_totals_free(&totals);
	attribution_free(&a);
	modules_close(modules);
	profile_free(p);
}

static void expect_reason(const char *path, const char *reason)
{
	char expected[64];
	struct profile *p = new_profile();
	snprintf(expected, sizeof expected, "waited for: %s 100%%\n", reason);
	count_path(p, path, true, BLOCKED, 10);
	expect(p, BLOCKED, expected);
}

static void functions_of_the_kernel_say_it(void **state)
{
	(void)state;
	expect_reason("main libc:read kernel:vfs_read kernel:anon_pipe_read", "pipe");
	expect_reason("main libc:read kernel:vfs_read kernel:pipe_read", "pipe");
	expect_reason(
		"main libc:read kernel:vfs_read kernel:tty_read kernel:n_tty_read kernel:wait_woken",
		"terminal");
	expect_reason(
		"main libc:read kernel:__x64_sys_read kernel:sock_read_iter kernel:tcp_recvmsg "
		"kernel:sk_wait_data kernel:wait_woken",
		"socket");
	expect_reason("main libc:accept kernel:__arm64_sys_accept kernel:do_accept", "socket");
	expect_reason("main libc:poll kernel:do_sys_poll kernel:poll_schedule_timeout.constprop.0",
		      "poll");
	expect_reason("main libc:x kernel:__x64_sys_wait4 kernel:do_wait", "child process");
	expect_reason("main libc:read kernel:vfs_read kernel:eventfd_read kernel:do_wait_intr_irq",
		      "event");
	expect_reason("main libc:read kernel:nobody_knows_it", "other");
	/* perf has the functions that switch, too */
	expect_reason("main libc:read kernel:pipe_read kernel:schedule kernel:__schedule", "pipe");
	expect_reason(
		"main kernel:vm_mmap_pgoff kernel:down_write_killable kernel:rwsem_down_write_slowpath "
		"kernel:schedule",
		"kernel lock");
}

/* Reading from a disk is how a fault, a file system or the search for free memory goes on. */
static void means_are_no_reasons(void **state)
{
	(void)state;
	expect_reason(
		"main libc:read kernel:ext4_file_read_iter kernel:filemap_read kernel:folio_wait_bit_common",
		"disk");
	expect_reason("main kernel:exc_page_fault kernel:handle_mm_fault kernel:filemap_fault "
		      "kernel:folio_wait_bit_common",
		      "page fault");
	expect_reason("main libc:read kernel:vfs_read kernel:copy_to_user kernel:do_page_fault "
		      "kernel:handle_mm_fault kernel:do_swap_page kernel:folio_wait_bit_common",
		      "page fault");
	expect_reason(
		"main libc:read kernel:nfs_file_read kernel:filemap_read kernel:folio_wait_bit_common",
		"file system");
	expect_reason("main kernel:handle_mm_fault kernel:try_to_free_pages kernel:shrink_node "
		      "kernel:blk_mq_get_tag",
		      "memory");
	/* but a lock is one */
	expect_reason("main kernel:handle_mm_fault kernel:ext4_fault kernel:down_read",
		      "kernel lock");
}

static void the_library_says_what_a_futex_is(void **state)
{
	static const char futex[] =
		"kernel:__x64_sys_futex kernel:do_futex kernel:futex_wait kernel:futex_wait_queue";
	static const struct {
		const char *calls, *reason;
	} all[] = {
		{"main libc:___pthread_mutex_lock libc:__lll_lock_wait", "lock"},
		{"main libc:pthread_rwlock_rdlock", "lock"},
		{"main libc:pthread_cond_wait@@GLIBC_2.17 libc:__futex_abstimed_wait_common",
		 "condition"},
		{"main libc:__new_sem_wait_slow64.constprop.0 libc:__futex_abstimed_wait_common",
		 "semaphore"},
		{"main libc:pthread_barrier_wait", "barrier"},
		{"main libc:__pthread_clockjoin_ex", "end of a thread"},
		{"main libc:syscall", "futex"},
		/* a lock that is made of a condition */
		{"take_gil libc:pthread_cond_timedwait libc:__futex_abstimed_wait_common", "lock"},
		{"runtime.mcall runtime.notesleep runtime.futexsleep runtime.futex", "condition"},
		{"main std::sys::sync::mutex::futex::Mutex::lock_contended", "lock"},
		/* what waits here is a program's own function */
		{"main libc:pthread_cond_wait handler libc:syscall", "futex"},
		{"main libc:nanosleep", "futex"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		char path[512];
		snprintf(path, sizeof path, "%s %s", all[i].calls, futex);
		expect_reason(path, all[i].reason);
	}
}

static void the_library_says_it_alone(void **state)
{
	(void)state;
	expect_reason("main libc:__clock_nanosleep", "sleep");
	expect_reason("main libc:clock_nanosleep kernel:(kernel)", "sleep");
	expect_reason("main libc:__wait4", "child process");
	expect_reason("main libc:read", "other");
	expect_reason("main libc:poll handler", "other");
}

static void waits_for_a_cpu(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count_path(p, "main libc:read kernel:pipe_read", true, QUEUED, 5);
	expect(p, QUEUED, "waited for: a CPU 100%\n");
	expect_reason(
		"main kernel:asm_sysvec_apic_timer_interrupt kernel:irqentry_exit_to_user_mode",
		"a CPU");
	expect_reason(
		"main kernel:el0t_64_irq kernel:exit_to_user_mode_loop kernel:schedule kernel:__schedule",
		"a CPU");
	/* on its way back to the program, the kernel may do other things */
	expect_reason(
		"main kernel:exit_to_user_mode_loop kernel:task_work_run kernel:nobody_knows_it",
		"other");
	expect_reason("main kernel:exit_to_user_mode_loop kernel:get_signal kernel:do_signal_stop",
		      "stopped");
}

/* All time: a path that ends with an instruction ran. */
static void all_time_has_both(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count_path(p, "main", false, WALL, 30);
	count_path(p, "main libc:read kernel:pipe_read", false, WALL, 10);
	count_path(p, "main libc:read kernel:pipe_read", true, WALL, 40);
	count_path(p, "main kernel:hrtimer_nanosleep", true, WALL, 20);
	count_path(p, "main kernel:pipe_read", true, CLOCK, 70);
	expect(p, WALL, "on a CPU: 40%, waited for: pipe 40%, sleep 20%\n");
	/* a wait is over, but there is no CPU */
	p = new_profile();
	count_path(p, "main libc:read kernel:pipe_read", true, WALL, 30);
	count_path(p, "main libc:read kernel:pipe_read kernel:schedule", true, WALL, 70);
	expect(p, WALL, "waited for: a CPU 70%, pipe 30%\n");
	p = new_profile();
	count_path(p, "main", false, CLOCK, 70);
	expect(p, CLOCK, "");
}

static void small_ones_are_one(void **state)
{
	struct profile *p = new_profile();
	(void)state;
	count_path(p, "main kernel:pipe_read", true, BLOCKED, 995);
	count_path(p, "main kernel:do_wait", true, BLOCKED, 3);
	count_path(p, "main kernel:do_select", true, BLOCKED, 2);
	expect(p, BLOCKED, "waited for: pipe 100%, 2 more 0.5%\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_the_kernel_say_it),
		cmocka_unit_test(means_are_no_reasons),
		cmocka_unit_test(the_library_says_what_a_futex_is),
		cmocka_unit_test(the_library_says_it_alone),
		cmocka_unit_test(waits_for_a_cpu),
		cmocka_unit_test(all_time_has_both),
		cmocka_unit_test(small_ones_are_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
