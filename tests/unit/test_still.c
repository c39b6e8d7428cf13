/* SPDX-License-Identifier: Apache-2.0 */
/* The code of a process with busy threads is changed while they stand still: they are moved away from what changes, and their
   results stay right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "inject/still.h"
#include "patch/plan.h"
#include "process/registers.h"

#define THREADS 4
#define CYCLES 200 /* the variable CYCLES gives another number */
#define PAGE 4096u

uint64_t victim(uint64_t x);
extern const uint8_t victim_end[];

#if defined(__x86_64__)
/* Several instructions in the first five bytes, so that threads are met between them. */
__asm__(".text\n.p2align 4\n.globl victim, victim_end\n.type victim, @function\nvictim:\n"
	"push %rbx\nmov %rdi, %rbx\nnop\nlea 7(%rbx,%rbx,2), %rax\npop %rbx\nret\nvictim_end:\n");
#else
__asm__(".text\n.p2align 4\n.globl victim, victim_end\n.type victim, %function\nvictim:\n"
	"adr x1, victim\nadr x2, victim\nsub x1, x1, x2\nadd x0, x0, x0, lsl 1\nadd x0, x0, 7\nadd x0, x0, x1\nret\n"
	"victim_end:\n");
#endif

struct shared {
	_Atomic uint64_t calls, wrong;
	_Atomic bool stop;
};
static struct shared *shared;
static uint8_t *island;
static struct still_write in, out;

/* ---- the process ---- */

static void *call(void *unused)
{
	(void)unused;
	for (uint64_t i = 0; !shared->stop; i++) {
		if (victim(i) != 3 * i + 7)
			shared->wrong++;
		shared->calls++;
	}
	return NULL;
}

/* No signal comes. So no wait ends with EINTR. */
static void *wait_for_nothing(void *unused)
{
	struct epoll_event event;
	int set = epoll_create1(EPOLL_CLOEXEC);
	(void)unused;
	while (!shared->stop)
		if (epoll_wait(set, &event, 1, 10))
			shared->wrong++;
	return NULL;
}

static pid_t start(void *(*function)(void *), int count)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_t threads[THREADS];
	for (int i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, function, NULL))
			_exit(2);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void finish(pid_t pid)
{
	int status;
	shared->stop = true;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(shared->wrong, 0);
}

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* ---- the change ---- */

/* Executable memory that the jump of the victim reaches. */
static bool map_island(void)
{
	uint64_t at = ((uint64_t)(uintptr_t)victim & ~(uint64_t)(PAGE - 1)) + (64u << 20);
	island = mmap((void *)(uintptr_t)at, PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return island != MAP_FAILED;
}

static void make_changes(void)
{
	struct patch_plan plan;
	const struct patch_input input = {
		.code = (const uint8_t *)(uintptr_t)victim,
		.size = (size_t)(victim_end - (const uint8_t *)(uintptr_t)victim),
		.address = (uintptr_t)victim,
		.island = (uintptr_t)island};
	assert_int_equal(patch_plan(patch_cpu_for(native_machine), &input, &plan), PATCH_NONE);
	memcpy(island, plan.island, plan.island_size);
	assert_int_equal(mprotect(island, PAGE, PROT_READ | PROT_EXEC), 0);
	__builtin___clear_cache((char *)island, (char *)island + plan.island_size);
	in = (struct still_write){.at = plan.at, .known = plan.window, .length = plan.length};
	out = (struct still_write){.at = plan.at, .known = plan.length, .length = plan.length};
	memcpy(in.expected, plan.original, sizeof in.expected);
	memcpy(in.bytes, plan.jump, sizeof in.bytes);
	memcpy(out.expected, plan.jump, sizeof out.expected);
	memcpy(out.bytes, plan.original, sizeof out.bytes);
	for (size_t i = 0; i < plan.step_count; i++) {
		in.steps[i].from = plan.steps[i].from;
		in.steps[i].to = (uintptr_t)island + plan.steps[i].to;
		in.step_count++;
	}
}

static int set_up(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || !map_island())
		return -1;
	make_changes();
	return 0;
}

/* ---- tests ---- */

static void threads_are_moved(void **state)
{
	struct still_report report = {0};
	const char *given = getenv("CYCLES");
	int cycles = given ? atoi(given) : CYCLES;
	pid_t pid = start(call, THREADS);
	(void)state;
	for (int i = 0; i < cycles; i++) {
		good(still_write(pid, &in, 1, &report));
		assert_int_equal(in.result, STILL_DONE);
		good(still_write(pid, &out, 1, &report));
		assert_int_equal(out.result, STILL_DONE);
	}
	assert_true(report.stops >= 2 * (unsigned)cycles && report.longest_ns > 0);
	finish(pid);
	assert_true(shared->calls > 0);
}

static void other_bytes_stay(void **state)
{
	struct still_report report = {0};
	(void)state;
	shared->stop = false;
	pid_t pid = start(call, 1);
	good(still_write(pid, &out, 1, &report)); /* the jump is not there */
	assert_int_equal(out.result, STILL_CHANGED);
	good(still_write(pid, &in, 1, &report));
	good(still_write(pid, &in, 1, &report));
	assert_int_equal(in.result, STILL_CHANGED);
	finish(pid);
}

static void waits_go_on(void **state)
{
	struct still_report report = {0};
	(void)state;
	shared->stop = false;
	pid_t pid = start(wait_for_nothing, THREADS);
	for (int i = 0; i < CYCLES; i++) {
		good(still_write(pid, i % 2 ? &out : &in, 1, &report));
		assert_int_equal(i % 2 ? out.result : in.result, STILL_DONE);
	}
	finish(pid);
}

static bool never(void *context, pid_t tid, uint64_t sp)
{
	(void)context;
	(void)tid;
	(void)sp;
	return false;
}

static bool always(void *context, pid_t tid, uint64_t sp)
{
	(void)context;
	(void)tid;
	(void)sp;
	return true;
}

static void who_is_inside(void **state)
{
	struct still_report report = {0};
	const struct still_place nowhere = {(uintptr_t)island, (uintptr_t)island + PAGE};
	const struct still_place everywhere = {0, UINT64_MAX};
	bool outside;
	(void)state;
	shared->stop = false;
	pid_t pid = start(call, THREADS);
	good(still_outside(pid, 0, &nowhere, 1, never, NULL, &report, &outside));
	assert_true(outside);
	good(still_outside(pid, 0, &everywhere, 1, never, NULL, &report, &outside));
	assert_false(outside);
	good(still_outside(pid, 0, &nowhere, 1, always, NULL, &report, &outside));
	assert_false(outside);
	finish(pid);
	struct err *e = still_outside(pid, 0, &nowhere, 1, never, NULL, &report, &outside);
	assert_non_null(e);
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_moved),
		cmocka_unit_test(other_bytes_stay),
		cmocka_unit_test(waits_go_on),
		cmocka_unit_test(who_is_inside),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
