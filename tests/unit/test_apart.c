/* SPDX-License-Identifier: Apache-2.0 */
/* What a process that reads foreign bytes can do, and what it cannot. */
#include "scratch.h"

#include "apart/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const struct apart_bounds bounds = {
	.memory = 64 << 20, .cpu_seconds = 1, .file_size = 4096, .files = 16};

/* The status of a process that tries it: 1 << 8 where it is possible. */
static int try(bool (*possible)(void))
{
	int status = 0;
	pid_t parent = getpid(), child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (!apart_enter(parent, 0, &bounds))
			_exit(2);
		_exit(possible());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static bool opens_a_file(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char byte;
	return fd >= 0 && read(fd, &byte, 1) == 1;
}

static bool has_memory(void)
{
	volatile char *memory = malloc(16 << 20);
	for (size_t i = 0; memory && i < 16 << 20; i += 4096)
		memory[i] = 1;
	return memory;
}

static void *nothing(void *argument)
{
	return argument;
}

static bool has_threads(void)
{
	pthread_t thread;
	return !pthread_create(&thread, NULL, nothing, NULL) && !pthread_join(thread, NULL);
}

static bool has_a_file_in_memory(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd >= 0 && write(fd, "x", 1) == 1 && !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
}

static void it_can_do_its_work(void **state)
{
	(void)state;
	assert_int_equal(try(opens_a_file), 1 << 8);
	assert_int_equal(try(has_memory), 1 << 8);
	assert_int_equal(try(has_threads), 1 << 8);
	assert_int_equal(try(has_a_file_in_memory), 1 << 8);
}

static bool opens_a_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != ENOSYS;
}

static bool forks(void)
{
	return fork() >= 0 || errno != ENOSYS;
}

static bool starts_a_program(void)
{
	char name[] = "true";
	char *arguments[] = {name, NULL}, *environment[] = {NULL};
	execve("/bin/true", arguments, environment);
	return errno != ENOSYS;
}

static bool signals_others(void)
{
	return !kill(getppid(), 0) || errno != ENOSYS ||
	       !syscall(SYS_tgkill, getppid(), getppid(), 0) || errno != ENOSYS;
}

static bool traces(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) >= 0 || errno != ENOSYS;
}

static bool raises_its_limits(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_DATA, &limit))
		return true;
	limit.rlim_cur = limit.rlim_max = limit.rlim_cur + (256 << 20);
	return !setrlimit(RLIMIT_DATA, &limit);
}

static bool takes_much_memory(void)
{
	return mmap(NULL, 128 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED;
}

static bool writes_to_files(void)
{
	return open(scratch("made"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ||
	       open(scratch("there"), O_WRONLY | O_CLOEXEC) >= 0;
}

static void it_can_do_nothing_else(void **state)
{
	(void)state;
	if (prctl(PR_GET_SECCOMP) < 0) {
		printf("# system calls cannot be restricted here\n");
		skip();
	}
	assert_int_equal(try(opens_a_socket), 0);
	assert_int_equal(try(forks), 0);
	assert_int_equal(try(starts_a_program), 0);
	assert_int_equal(try(signals_others), 0);
	assert_int_equal(try(traces), 0);
	assert_int_equal(try(raises_its_limits), 0);
	assert_int_equal(try(takes_much_memory), 0);
}

static void it_can_write_nowhere(void **state)
{
	(void)state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 0) {
		printf("# the kernel has no Landlock\n");
		skip();
	}
	scratch_write("there", "x", 1);
	assert_int_equal(try(writes_to_files), 0);
}

static bool spins(void)
{
	for (volatile unsigned i = 0;; i++)
		;
}

static void too_much_time_is_told(void **state)
{
	(void)state;
	int status = try(spins);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_can_do_its_work),
		cmocka_unit_test(it_can_do_nothing_else),
		cmocka_unit_test(it_can_write_nowhere),
		cmocka_unit_test(too_much_time_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
