/* SPDX-License-Identifier: Apache-2.0 */
/* A function of a process with busy threads is patched and taken out again, many times: its results stay right, its calls
   are counted, and its code is as before. */
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "patch/patcher.h"

#define THREADS 4
#define CYCLES 200 /* the variable CYCLES gives another number */

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

static pid_t start(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_true(shared != MAP_FAILED);
	pid_t pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, call, NULL))
			_exit(2);
	for (int i = 0; i < THREADS; i++)
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
	munmap(shared, sizeof *shared);
}

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static const struct patcher_function *function(void)
{
	static struct patcher_function f;
	f = (struct patcher_function){.address = (uintptr_t)victim,
				      .size = (size_t)(victim_end - (const uint8_t *)victim)};
	return &f;
}

/* The code of the process, by another way. */
static void same_code(pid_t pid, bool same)
{
	char path[64];
	uint8_t now[64];
	size_t size = function()->size;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)(uintptr_t)victim, SEEK_SET), 0);
	assert_int_equal(fread(now, 1, size, file), size);
	fclose(file);
	assert_true(!memcmp(now, (const void *)victim, size) == same);
}

/* The rest of a page may be too small for it: then there is nothing to test here. */
static struct patcher *open_patcher(pid_t pid)
{
	struct patcher *p;
	size_t id;
	good(patcher_open(pid, &p));
	struct err *e = patcher_add(p, function(), &id);
	if (e && strstr(err_text(e), "no room")) {
		err_free(e);
		patcher_close(p);
		finish(pid);
		skip();
	}
	good(e);
	good(patcher_remove(p, id));
	return p;
}

static void cycles_leave_nothing(void **state)
{
	pid_t pid = start();
	struct patcher *p = open_patcher(pid);
	uint64_t counted = 0, most = 0;
	const char *given = getenv("CYCLES");
	int cycles = given ? atoi(given) : CYCLES;
	(void)state;
	for (int i = 0; i < cycles; i++) {
		size_t id;
		good(patcher_add(p, function(), &id));
		if (i % 100 == 0) {
			same_code(pid, false);
			usleep(1000);
		}
		uint64_t calls;
		good(patcher_calls(p, id, &calls));
		most = calls > most ? calls : most;
		counted += calls;
		good(patcher_remove(p, id));
		if (i % 100 == 0)
			same_code(pid, true);
	}
	patcher_close(p);
	same_code(pid, true);
	uint64_t before = shared->calls;
	usleep(20000);
	assert_true(shared->calls > before); /* it goes on */
	assert_true(counted > 0 && most > 0);
	finish(pid);
}

/* Every call is counted: those that the threads made meanwhile, but for the ones that were under way. */
static void all_calls_are_counted(void **state)
{
	pid_t pid = start();
	struct patcher *p = open_patcher(pid);
	size_t id;
	(void)state;
	uint64_t first = shared->calls;
	good(patcher_add(p, function(), &id));
	uint64_t inner_first = shared->calls, counted;
	usleep(50000);
	uint64_t inner_last = shared->calls;
	good(patcher_calls(p, id, &counted));
	good(patcher_remove(p, id));
	uint64_t last = shared->calls;
	assert_true(counted + THREADS >= inner_last - inner_first);
	assert_true(counted <= last - first + THREADS);
	patcher_close(p);
	same_code(pid, true);
	finish(pid);
}

/* What another has changed is not touched. */
static void foreign_changes_stay(void **state)
{
	pid_t pid = start();
	struct patcher *p = open_patcher(pid), *other;
	size_t id, second;
	(void)state;
	good(patcher_open(pid, &other));
	good(patcher_add(p, function(), &id));
	struct err *e = patcher_remove(other, 0);
	assert_non_null(e);
	err_free(e);
	assert_non_null(e = patcher_calls(p, id + 1, &(uint64_t){0}));
	err_free(e);
	good(patcher_remove(p, id));
	assert_non_null(e = patcher_remove(p, id));
	err_free(e);
	same_code(pid, true);
	struct patcher_function nowhere = {.address = 64, .size = 32};
	assert_non_null(e = patcher_add(p, &nowhere, &second));
	err_free(e);
	patcher_close(other);
	patcher_close(p);
	finish(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cycles_leave_nothing),
		cmocka_unit_test(all_calls_are_counted),
		cmocka_unit_test(foreign_changes_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
