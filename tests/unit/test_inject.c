/* SPDX-License-Identifier: Apache-2.0 */
/* Borrows a thread that waits in a system call, and is killed after each step: the thread must go on as if nothing had
   been. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "inject/borrow.h"
#include "inject/cpu.h"
#include "inject/inject.h"
#include "inject/spot.h"

enum step { STOP, MAP, MAP_TWICE, CALL, END, STEPS };

struct target {
	pid_t pid;
	int to, from;
};

/* Adds one to each byte. */
static void answer(int from, int to)
{
	unsigned char byte;
	while (read(from, &byte, 1) == 1) {
		byte++;
		if (write(to, &byte, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static struct target begin(void)
{
	int there[2], back[2];
	struct target t;
	assert_int_equal(pipe(there), 0);
	assert_int_equal(pipe(back), 0);
	t.pid = fork();
	assert_true(t.pid >= 0);
	if (!t.pid) {
		close(there[1]);
		answer(there[0], back[1]);
	}
	close(there[0]);
	close(back[1]);
	t.to = there[1];
	t.from = back[0];
	return t;
}

static void check_alive(const struct target *t)
{
	for (unsigned char byte = 1; byte < 20; byte++) {
		unsigned char got = 0;
		assert_int_equal(write(t->to, &byte, 1), 1);
		assert_int_equal(read(t->from, &got, 1), 1);
		assert_int_equal(got, byte + 1);
	}
}

/* In a process of its own, which is killed after this step. */
static void borrow_until(const struct target *t, enum step last)
{
	struct spots *spots;
	struct borrow b;
	uint64_t code = 0, more = 0, result;
	const uint64_t none[6] = {0};
	if (spots_open(t->pid, "", &spots) || borrow_stop(t->pid, t->pid, &b) != BORROW_HELD)
		_exit(1);
	const struct spot_functions *f = spots_functions(spots);
	uint8_t bytes[4096] = {0};
	memcpy(bytes, inject_code, (size_t)(inject_code_end - inject_code));
	cpu_fill_saved(&b.state, bytes + (inject_saved - inject_code));
	if (last >= MAP &&
	    borrow_map(&b, f->mmap, f->restorer, sizeof bytes, PROT_READ | PROT_EXEC, &code))
		_exit(2);
	if (last >= MAP_TWICE &&
	    borrow_map(&b, f->mmap, f->restorer, sizeof bytes, PROT_READ | PROT_WRITE, &more))
		_exit(3);
	if (last >= CALL && (!borrow_write(&b, code, bytes, sizeof bytes) ||
			     borrow_call(&b, f->dlerror, none,
					 code + (uint64_t)(inject_done - inject_code), &result) ||
			     result))
		_exit(4);
	if (last >= END)
		borrow_end(&b);
	kill(getpid(), SIGKILL);
}

static void test_killed_at_each_step(void **state)
{
	(void)state;
	for (int step = STOP; step < STEPS; step++)
		for (int times = 0; times < 5; times++) {
			struct target t = begin();
			int status;
			check_alive(&t);
			pid_t tracer = fork();
			if (!tracer)
				borrow_until(&t, (enum step)step);
			assert_int_equal(waitpid(tracer, &status, 0), tracer);
			if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
				skip(); /* ptrace is not allowed here */
			assert_true(WIFSIGNALED(status));
			check_alive(&t);
			close(t.to);
			assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
			assert_int_equal(status, 0);
			close(t.from);
		}
}

static void test_frame_holds_the_registers(void **state)
{
	static struct cpu_state s;
	static uint8_t frame[CPU_FRAME_MAX];
	const struct cpu_call none = {-1, -1, false};
	(void)state;
	s.vector_size = 640;
	for (size_t i = 0; i < sizeof s.general / sizeof *s.general; i++)
		s.general[i] = 0x1111111111111111ull * (i % 15 + 1);
	assert_true(cpu_frame_size(&s) <= sizeof frame);
	cpu_frame(&s, &none, 0xfeedfacecafe, 0x10000, 0x20000, frame);
	uint64_t sp = cpu_sp(&s), pc = cpu_pc(&s), mask = 0xfeedfacecafe;
	assert_non_null(memmem(frame, sizeof frame, &sp, sizeof sp));
	assert_non_null(memmem(frame, sizeof frame, &pc, sizeof pc));
	assert_non_null(memmem(frame, sizeof frame, &mask, sizeof mask));
}

/* A page of a killed collector is known again; others' code is not. */
static void test_what_is_left_is_known(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	uint64_t start = (uint64_t)at;
	(void)state;
	assert_true(at != MAP_FAILED);
	at[0] = 0xc3;
	assert_false(inject_has_left(getpid(), start, start + page)); /* others may write code */
	at[0] = 0;
	assert_true(inject_has_left(getpid(), start,
				    start + page)); /* it was killed before it wrote it */
	memcpy(at, inject_code, (size_t)(inject_code_end - inject_code));
	memcpy(at + page, inject_code, (size_t)(inject_code_end - inject_code));
	at[inject_saved - inject_code] ^= 1; /* registers of the borrowed thread */
	assert_true(inject_has_left(getpid(), start, start + 2 * page)); /* of two of them */
	at[3 * page - 1] = 1;
	assert_false(inject_has_left(getpid(), start, start + 3 * page));
	at[page] ^= 1;
	assert_false(inject_has_left(getpid(), start, start + 2 * page));
	assert_false(inject_has_left(getpid(), start + page, start + 2 * page));
	munmap(at, 3 * page);
	assert_false(inject_has_left(getpid(), start, start + page)); /* nothing is there */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_holds_the_registers),
		cmocka_unit_test(test_killed_at_each_step),
		cmocka_unit_test(test_what_is_left_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
