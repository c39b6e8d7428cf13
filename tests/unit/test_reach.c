/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to other processes, looked at by a process of its own: this program, also where it is stopped or killed. */
#include "scratch.h"

#include "apart/apart.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/reach.h"
#include "process/status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PAGE 4096u

static pid_t other;
static char *words; /* of two pages, of which there is the first alone */

static int start_other(void **state)
{
	(void)state;
	words = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(words, MAP_FAILED);
	assert_int_equal(munmap(words + PAGE, PAGE), 0);
	for (unsigned i = 0; i < PAGE; i++)
		words[i] = (char)(i * 7);
	other = fork();
	if (!other)
		for (;;)
			pause();
	memset(words, 0, PAGE);
	return other < 0;
}

static int end_other(void **state)
{
	(void)state;
	reach_apart(NULL);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return 0;
}

static void set_apart(bool apart)
{
	reach_apart(apart ? "/proc/self/exe" : NULL);
}

/* Sends a signal to the processes that look at others for us; how many there are. */
static unsigned signal_workers(int signal)
{
	char path[64], line[4096] = "", *at = line;
	unsigned count = 0;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	if (!fgets(line, sizeof line, file))
		line[0] = '\0';
	fclose(file);
	for (pid_t pid; (pid = (pid_t)strtol(at, &at, 10));)
		if (pid != other) {
			kill(pid, signal);
			count++;
		}
	return count;
}

/* ---- memory ---- */

static void memory_is_read(void **state)
{
	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		char bytes[PAGE], first[8];
		uint64_t at = (uint64_t)(uintptr_t)words;
		const struct reach_piece pieces[] = {{at + 8, sizeof first, first},
						     {at, sizeof bytes, bytes}};
		set_apart(apart);
		assert_true(reach_bytes(other, at, bytes, sizeof bytes));
		for (unsigned i = 0; i < PAGE; i++)
			assert_int_equal(bytes[i], (char)(i * 7));
		memset(bytes, 0, sizeof bytes);
		assert_int_equal(reach_memory(other, pieces, 2), sizeof first + sizeof bytes);
		assert_memory_equal(first, bytes + 8, sizeof first);
		assert_int_equal(bytes[1], 7);
	}
}

static void missing_memory_is_told(void **state)
{
	(void)state;
	for (int apart = 0; apart < 2; apart++) {
		char bytes[2 * PAGE];
		uint64_t at = (uint64_t)(uintptr_t)words;
		const struct reach_piece beyond = {at + PAGE, 8, bytes}, first = {at, 8, bytes};
		const struct reach_piece both[] = {{at, 8, bytes}, {at + PAGE, 8, bytes + 8}};
		set_apart(apart);
		assert_false(reach_bytes(other, at, bytes, sizeof bytes));
		assert_int_equal(reach_memory(other, &beyond, 1), -1);
		assert_int_equal(errno, EFAULT);
		assert_int_equal(reach_memory(other, both, 2), 8);
		assert_int_equal(reach_memory(0x7ffffff, &first, 1), -1);
		assert_int_equal(errno, ESRCH);
	}
}

/* More than is read at once. */
static void large_memory_is_read(void **state)
{
	(void)state;
	size_t size = 3 * REACH_MAX + 5;
	char *bytes = malloc(size),
	     *zeros = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_non_null(bytes);
	assert_ptr_not_equal(zeros, MAP_FAILED);
	zeros[size - 1] = 9;
	pid_t child = fork();
	if (!child)
		for (;;)
			pause();
	set_apart(true);
	assert_true(reach_bytes(child, (uint64_t)(uintptr_t)zeros, bytes, size));
	assert_memory_equal(bytes, zeros, size);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(zeros, size);
	free(bytes);
}

/* ---- files ---- */

static bool is_same(int fd, const char *path)
{
	struct stat open, there;
	return !fstat(fd, &open) && !stat(path, &there) && open.st_ino == there.st_ino &&
	       open.st_dev == there.st_dev;
}

static void files_are_opened(void **state)
{
	(void)state;
	const char *file = scratch("file"), *fifo = scratch("fifo");
	struct stat st;
	scratch_write("file", "contents", 8);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (int apart = 0; apart < 2; apart++) {
		char bytes[16], longer[2 * PATH_MAX];
		set_apart(apart);
		int fd = reach_open(file, 0, &st);
		assert_true(fd >= 0);
		assert_true(is_same(fd, file)); /* no copy: its file system answers */
		assert_int_equal(st.st_size, 8);
		assert_int_equal(read(fd, bytes, sizeof bytes), 8);
		close(fd);
		fd = reach_open(fifo, 0, &st); /* at once */
		assert_true(S_ISFIFO(st.st_mode));
		assert_int_equal(read(fd, bytes, 1), -1);
		close(fd);
		assert_int_equal(reach_open(scratch("none"), 0, &st), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(reach_stat(file, &st), 0);
		assert_int_equal(st.st_size, 8);
		assert_int_equal(reach_stat(scratch("none"), &st), -1);
		assert_int_equal(errno, ENOENT);
		memset(longer, 'x', sizeof longer - 1);
		longer[sizeof longer - 1] = '\0';
		assert_int_equal(reach_stat(longer, &st), -1);
		assert_int_equal(errno, ENAMETOOLONG);
	}
}

/* A link in another root leads to where it leads there. */
static void roots_hold(void **state)
{
	struct stat st;
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(scratch("top"), 0755), 0);
	scratch_write("outside", "x", 1);
	scratch_write("top/inside", "two", 3);
	assert_int_equal(symlink(scratch("outside"), scratch("top/out")), 0);
	assert_int_equal(symlink("/inside", scratch("top/in")), 0);
	pid_t child = fork();
	if (!child) {
		if (chroot(scratch("top")) || chdir("/"))
			_exit(1);
		for (;;)
			pause();
	}
	char link[64], where[PATH_MAX];
	snprintf(link, sizeof link, "/proc/%d/root", (int)child);
	for (int i = 0; i < 1000; i++) {
		ssize_t length = readlink(link, where, sizeof where - 1);
		if (length > 1)
			break;
		usleep(10000);
	}
	for (int apart = 0; apart < 2; apart++) {
		set_apart(apart);
		assert_int_equal(reach_stat(scratch_format("%s/in", link), &st), 0);
		assert_int_equal(st.st_size, 3);
		assert_int_equal(reach_stat(scratch_format("%s/out", link), &st), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(reach_open(scratch_format("%s/out", link), 0, &st), -1);
		assert_int_equal(reach_open(scratch_format("%s/in", link), O_NOFOLLOW, &st) >= 0,
				 1);
		assert_true(S_ISLNK(st.st_mode));
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* What the kernel tells comes as a copy, which nobody takes for a file of ours. */
static void copies_are_whole(void **state)
{
	char path[64];
	struct buf here = {0}, apart = {0};
	struct stat st, copy;
	(void)state;
	set_apart(false);
	assert_null(process_file(other, "maps", &here));
	set_apart(true);
	assert_null(process_file(other, "maps", &apart));
	assert_string_equal(buf_text(&here), buf_text(&apart));
	snprintf(path, sizeof path, "/proc/%d/maps", (int)other);
	int fd = reach_open(path, 0, &st);
	assert_true(fd >= 0 && !fstat(fd, &copy));
	assert_int_equal(copy.st_size, here.size);
	assert_int_equal(copy.st_mode & 0777, 0777);
	assert_int_not_equal(copy.st_ino, st.st_ino);
	close(fd);
	buf_free(&here);
	buf_free(&apart);
}

/* ---- no answer ---- */

static void its_death_is_survived(void **state)
{
	char word[8];
	(void)state;
	set_apart(true);
	assert_true(reach_bytes(other, (uint64_t)(uintptr_t)words, word, sizeof word));
	assert_int_not_equal(signal_workers(SIGKILL), 0);
	usleep(100000);
	assert_true(reach_bytes(other, (uint64_t)(uintptr_t)words, word, sizeof word));
	assert_int_equal(reach_take_account().late, 0);
}

/* The one that was left behind, a rest for what there was no answer for, and all others have theirs. */
static void nobody_waits_for_ever(void **state)
{
	struct stat st;
	char word[8];
	(void)state;
	const char *file = scratch("slow");
	scratch_write("slow", "x", 1);
	set_apart(true);
	assert_int_equal(reach_stat(file, &st), 0);
	signal_workers(SIGSTOP);
	uint64_t begun = now_ms();
	assert_int_equal(reach_stat(file, &st), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_in_range(now_ms() - begun, 900, 60000);
	struct reach_account account = reach_take_account();
	assert_int_equal(account.late, 1);
	assert_string_equal(account.newest, file);
	assert_int_equal(reach_stat(file, &st), -1); /* it rests: that was not asked */
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(reach_take_account().late, 0);
	assert_int_equal(reach_stat("/proc/self/stat", &st), 0);
	assert_false(reach_bytes(other, (uint64_t)(uintptr_t)words, word, sizeof word));
	account = reach_take_account();
	assert_int_equal(account.late, 1);
	assert_non_null(
		strstr(account.newest, scratch_format("the memory of process %d", (int)other)));
}

int main(int argc, char **argv)
{
	if (argc == REACH_ARGUMENTS + 1 && !strcmp(argv[1], REACH_COMMAND))
		return reach_main(argc - 1, argv + 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read),
		cmocka_unit_test(missing_memory_is_told),
		cmocka_unit_test(large_memory_is_read),
		cmocka_unit_test(files_are_opened),
		cmocka_unit_test(roots_hold),
		cmocka_unit_test(copies_are_whole),
		cmocka_unit_test(its_death_is_survived),
		cmocka_unit_test(nobody_waits_for_ever),
	};
	return cmocka_run_group_tests(tests, start_other, end_other);
}
