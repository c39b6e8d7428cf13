/* SPDX-License-Identifier: Apache-2.0 */
/* What a process has in memory, by the records that the kernel made of it. */
#include "unit.h"

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/state.h"
#include "process/maps.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define PID 4711
#define MS 1000000ull

static struct kernel kernel;
static uint64_t start; /* of a test, when the first record is of */

static int open_notes(void **state)
{
	(void)state;
	kernel = (struct kernel){.epoll = -1};
	assert_null(mapped_open(&kernel)); /* without CPUs: nothing comes by itself */
	start = now_ns() - 500 * MS;
	return 0;
}

static int close_notes(void **state)
{
	(void)state;
	mapped_close(&kernel);
	return 0;
}

struct tail {
	uint32_t pid, tid;
	uint64_t time;
};

static void take(uint32_t type, uint16_t misc, pid_t pid, unsigned ms, const void *body,
		 size_t size)
{
	char record[sizeof(struct perf_event_header) + 4096 + sizeof(struct tail)] = {0};
	struct perf_event_header *header = (struct perf_event_header *)record;
	struct tail tail = {(uint32_t)pid, (uint32_t)pid, start + ms * MS};
	assert_true(size <= 4096);
	*header = (struct perf_event_header){
		.type = type,
		.misc = misc,
		.size = (uint16_t)(sizeof *header + size + sizeof tail)};
	memcpy(record + sizeof *header, body, size);
	memcpy(record + sizeof *header + size, &tail, sizeof tail);
	mapped_take(&kernel, header);
}

static void executes(pid_t pid, unsigned ms)
{
	const uint32_t body[4] = {(uint32_t)pid, (uint32_t)pid};
	take(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, pid, ms, body, sizeof body);
}

static void loses(unsigned ms)
{
	const uint64_t body[2] = {1, 1};
	take(PERF_RECORD_LOST, 0, PID, ms, body, sizeof body);
}

static uint32_t inode_of(const char *path)
{
	uint32_t inode = 0;
	while (*path)
		inode = inode * 31 + (unsigned char)*path++;
	return inode;
}

static void maps_code(pid_t pid, unsigned ms, uint64_t address, uint64_t length, uint64_t offset,
		      const char *path)
{
	struct {
		uint32_t pid, tid;
		uint64_t address, length, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t protection, flags;
		char path[1024];
	} body = {(uint32_t)pid, (uint32_t)pid, address, length, offset, 8, 1, 0, 0, 5, 2, ""};
	body.inode = inode_of(path);
	strncpy(body.path, path, sizeof body.path - 1);
	take(PERF_RECORD_MMAP2, 0, pid, ms, &body,
	     offsetof(typeof(body), path) + (strlen(path) + 8) / 8 * 8);
}

static void check(const struct map *m, uint64_t begin, uint64_t end, uint64_t offset,
		  const char *path)
{
	assert_int_equal(m->start, begin);
	assert_int_equal(m->end, end);
	assert_int_equal(m->offset, offset);
	assert_string_equal(m->path, path);
	assert_true(m->executable && m->inode == inode_of(path) && m->device == makedev(8, 1));
}

static bool is_young(pid_t pid)
{
	struct maps maps;
	if (!mapped_young(&kernel, pid, &maps))
		return false;
	maps_free(&maps);
	return true;
}

/* Parts of what was mapped are mapped anew; records of other CPUs come late. */
static void a_program_that_begins(void **state)
{
	struct maps maps;
	(void)state;
	assert_false(is_young(PID));
	maps_code(PID, 1, 0x9000, 0x1000, 0, "/bin/before");
	executes(PID, 10);
	maps_code(PID, 13, 0x22000, 0x2000, 0x5000, "/lib/new\nline.so");
	maps_code(PID, 11, 0x1000, 0x4000, 0, "/bin/program");
	maps_code(PID, 12, 0x20000, 0x8000, 0, "/lib/whole.so");
	maps_code(PID, 14, 0x80000, 0x1000, 0, "[vdso]");
	assert_true(mapped_young(&kernel, PID, &maps));
	assert_int_equal(maps.count, 5);
	check(&maps.items[0], 0x1000, 0x5000, 0, "/bin/program");
	check(&maps.items[1], 0x20000, 0x22000, 0, "/lib/whole.so");
	check(&maps.items[2], 0x22000, 0x24000, 0x5000, "/lib/new\nline.so");
	check(&maps.items[3], 0x24000, 0x28000, 0x4000, "/lib/whole.so");
	check(&maps.items[4], 0x80000, 0x81000, 0, "[vdso]");
	maps_free(&maps);
	executes(PID, 20); /* and nothing of that is left */
	assert_false(is_young(PID));
	maps_code(PID, 21, 0x3000, 0x1000, 0, "/bin/next");
	assert_true(mapped_young(&kernel, PID, &maps));
	assert_int_equal(maps.count, 1);
	check(&maps.items[0], 0x3000, 0x4000, 0, "/bin/next");
	maps_free(&maps);
	/* What it had then is still known. */
	assert_true(mapped_at(&kernel, PID, start + 15 * MS, &maps));
	assert_int_equal(maps.count, 5);
	maps_free(&maps);
}

/* A child has what its parent had, which may have unmapped some of it. */
static void a_child_is_asked(void **state)
{
	struct maps maps;
	(void)state;
	executes(PID, 10);
	maps_code(PID, 11, 0x1000, 0x1000, 0, "/bin/program");
	mapped_forked(&kernel, PID + 1, PID, start + 12 * MS);
	maps_code(PID + 1, 13, 0x3000, 0x1000, 0, "/lib/loaded.so");
	assert_false(is_young(PID + 1));
	assert_true(is_young(PID));
	assert_true(mapped_at(&kernel, PID + 1, UINT64_MAX, &maps));
	assert_int_equal(maps.count, 2);
	maps_free(&maps);
	mapped_forked(&kernel, PID, 1, start + 30 * MS); /* the number is another one's */
	assert_false(is_young(PID));
}

/* Nor is it known for long what it has unmapped or moved. */
static void an_old_one_is_asked(void **state)
{
	(void)state;
	start -= 600 * MS;
	executes(PID, 10);
	maps_code(PID, 1090, 0x1000, 0x1000, 0, "/bin/program");
	assert_false(is_young(PID));
}

static void nothing_may_be_lost(void **state)
{
	(void)state;
	executes(PID, 10);
	maps_code(PID, 11, 0x1000, 0x1000, 0, "/bin/program");
	assert_true(is_young(PID));
	loses(20);
	assert_false(is_young(PID));
	assert_int_equal(mapped_lost(&kernel), 1);
	assert_int_equal(mapped_lost(&kernel), 0);
	executes(PID, 30);
	maps_code(PID, 31, 0x1000, 0x1000, 0, "/bin/program");
	assert_true(is_young(PID));
}

/* Memory that is of no file, or of one that cannot be found by its name. */
static void what_is_in_no_file_is_asked(void **state)
{
	static const char *const paths[] = {
		"//anon",     "//toolong",           "/dev/zero", "/memfd:it",
		"/SYSV00001", "/bin/gone (deleted)", "[heap]",    ""};
	(void)state;
	for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
		pid_t pid = PID + (pid_t)i;
		executes(pid, 10);
		maps_code(pid, 11, 0x1000, 0x1000, 0, "/bin/program");
		assert_true(is_young(pid));
		maps_code(pid, 12, 0x9000, 0x1000, 0, paths[i]);
		assert_false(is_young(pid));
		maps_code(pid, 13, 0x8000, 0x4000, 0, "/lib/over.so"); /* in its place */
		assert_true(is_young(pid));
	}
}

static bool is_nobody(const struct kernel *k, pid_t pid)
{
	(void)k;
	(void)pid;
	return false;
}

/* Of a process that has just begun nobody has told us yet. */
static void what_is_nobodys_is_kept_for_a_while(void **state)
{
	uint64_t begun = now_ns();
	struct maps maps;
	(void)state;
	executes(PID, 10);
	maps_code(PID, 11, 0x1000, 0x1000, 0, "/bin/program");
	mapped_sweep(&kernel, begun, is_nobody);
	assert_true(mapped_at(&kernel, PID, UINT64_MAX, &maps));
	maps_free(&maps);
	mapped_sweep(&kernel, begun + 4000 * MS, is_nobody);
	assert_false(mapped_at(&kernel, PID, UINT64_MAX, &maps));
}

static bool is_replaced(unsigned one, unsigned other)
{
	return mapped_replaced(&kernel, PID, start + one * MS, start + other * MS);
}

static void a_library_in_anothers_place(void **state)
{
	(void)state;
	maps_code(PID, 5, 0x20000, 0x2000, 0, "/lib/of_the_program_before.so");
	executes(PID, 10);
	maps_code(PID, 11, 0x1000, 0x8000, 0, "/bin/program");
	maps_code(PID, 12, 0x2000, 0x1000, 0, "/bin/program"); /* parts of it, anew */
	maps_code(PID, 13, 0x20000, 0x2000, 0, "/lib/one.so");
	maps_code(PID, 20, 0x30000, 0x2000, 0, "/lib/beside.so");
	assert_false(is_replaced(10, 30));
	maps_code(PID, 40, 0x21000, 0x4000, 0, "/lib/other.so");
	assert_true(is_replaced(30, 50));
	assert_true(is_replaced(50, 30)); /* whichever is first */
	assert_true(is_replaced(39, 40));
	assert_false(is_replaced(40, 50));
	assert_false(is_replaced(15, 39));
	assert_false(mapped_replaced(&kernel, PID + 1, 0, UINT64_MAX));
}

static const char *const turns[] = {"/lib/one.so", "/lib/two.so", "/lib/three.so"};

/* Each CPU's records come at once, those of the later times first. */
static void libraries_that_take_turns_on_two_cpus(void **state)
{
	(void)state;
	executes(PID, 10);
	for (unsigned ms = 12; ms <= 100; ms += 2)
		maps_code(PID, ms, 0x20000, 0x2000, 0, turns[ms % 3]);
	for (unsigned ms = 11; ms < 60; ms += 2)
		maps_code(PID, ms, 0x20000, 0x2000, 0, turns[ms % 3]);
	for (unsigned ms = 11; ms < 60; ms++) {
		assert_int_equal(is_replaced(ms, ms + 1), true);
		assert_int_equal(is_replaced(ms, 100), true);
	}
	assert_false(is_replaced(100, 200));
}

/* So many that not all are kept: what is told is right, or nothing is there. */
static void libraries_that_take_turns_for_long(void **state)
{
	const unsigned count = 6000;
	unsigned known = 0;
	(void)state;
	executes(PID, 10);
	maps_code(PID, 11, 0x1000, 0x8000, 0, "/bin/program");
	for (unsigned ms = 12; ms < count; ms++)
		maps_code(PID, ms, 0x20000, 0x2000, 0, turns[ms % 3]);
	for (unsigned ms = 12; ms < count - 1; ms += 7) {
		struct maps maps;
		assert_true(is_replaced(ms, count));
		assert_true(mapped_at(&kernel, PID, start + ms * MS, &maps));
		check(&maps.items[0], 0x1000, 0x9000, 0, "/bin/program");
		if (maps.count > 1)
			check(&maps.items[1], 0x20000, 0x22000, 0, turns[ms % 3]);
		known += maps.count > 1;
		maps_free(&maps);
	}
	assert_true(known >= 1000 / 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_library_in_anothers_place, open_notes,
						close_notes),
		cmocka_unit_test_setup_teardown(libraries_that_take_turns_on_two_cpus, open_notes,
						close_notes),
		cmocka_unit_test_setup_teardown(libraries_that_take_turns_for_long, open_notes,
						close_notes),
		cmocka_unit_test_setup_teardown(a_program_that_begins, open_notes, close_notes),
		cmocka_unit_test_setup_teardown(a_child_is_asked, open_notes, close_notes),
		cmocka_unit_test_setup_teardown(an_old_one_is_asked, open_notes, close_notes),
		cmocka_unit_test_setup_teardown(nothing_may_be_lost, open_notes, close_notes),
		cmocka_unit_test_setup_teardown(what_is_in_no_file_is_asked, open_notes,
						close_notes),
		cmocka_unit_test_setup_teardown(what_is_nobodys_is_kept_for_a_while, open_notes,
						close_notes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
