/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "base/err.h"
#include "collect/target.h"

#include <elf.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char hello[] = "int main(void) { return 7; }\n";

static void assert_good(const char *command)
{
	struct err *e = target_check(command, TARGET_SAMPLED);
	if (e)
		fail_msg("%s", err_text(e));
}

static void assert_refused(const char *command, const char *part)
{
	struct err *e = target_check(command, TARGET_SAMPLED);
	assert_non_null(e);
	if (!strstr(err_text(e), part) || strncmp(err_text(e), command, strlen(command)) != 0)
		fail_msg("'%s' does not say '%s: … %s'", err_text(e), command, part);
	err_free(e);
}

static void script(const char *name, const char *text)
{
	scratch_write(name, text, strlen(text));
	assert_int_equal(chmod(scratch(name), 0755), 0);
}

/* ---- finding ---- */

static void found_as_a_shell_does(void **state)
{
	(void)state;
	assert_good("ls");
	assert_good("/bin/ls");
	assert_refused("no-such-command-anywhere", "not found in PATH");
	assert_refused("/no/such/file", "no such file");
	assert_refused("/etc/passwd/x", "no such file");
	assert_refused("", "the command's name is empty");
	assert_refused("/", "a directory");
	assert_refused("/dev/null", "not a program");
	scratch_write("text", "hello", 5);
	assert_refused(scratch("text"), "not executable");
}

static void found_in_path(void **state)
{
	char *before = strdup(getenv("PATH"));
	(void)state;
	script("only-here", "#!/bin/sh\n");
	scratch_write("plain", "hello", 5);
	assert_refused("only-here", "not found in PATH");
	setenv("PATH", scratch_format("/no/where:%s", scratch_dir), 1);
	assert_good("only-here");
	assert_refused("plain", "found in PATH, but not executable");
	assert_int_equal(chdir(scratch_dir), 0);
	setenv("PATH", "/no/where:", 1); /* an empty part is the current directory */
	assert_good("only-here");
	setenv("PATH", "/no/where", 1);
	assert_refused("only-here", "./ before it");
	unsetenv("PATH");
	assert_good("ls");
	setenv("PATH", before, 1);
	assert_int_equal(chdir("/"), 0);
	free(before);
}

/* ---- looking ---- */

static void scripts_by_their_interpreter(void **state)
{
	char text[512];
	int i;
	(void)state;
	script("sh", "#!/bin/sh -e\necho\n");
	assert_good(scratch("sh"));
	script("env", "#! /usr/bin/env python3\n");
	assert_good(scratch("env"));
	script("bare", "echo a text that execvp gives to the shell\n");
	assert_good(scratch("bare"));
	script("none", "#!\n");
	assert_refused(scratch("none"), "names no interpreter");
	script("gone", "#!/no/such/interpreter\n");
	assert_refused(scratch("gone"), "its interpreter /no/such/interpreter: no such file");
	for (i = 0; i < 8; i++) {
		snprintf(text, sizeof text, "#!%s\n",
			 i ? scratch(scratch_format("deep%d", i - 1)) : "/bin/sh");
		script(scratch_format("deep%d", i), text);
	}
	assert_good(scratch("deep3"));
	assert_refused(scratch("deep7"), "scripts run by scripts");
	snprintf(text, sizeof text, "#!%s\n", scratch("self"));
	script("self", text);
	assert_refused(scratch("self"), "scripts run by scripts");
	memset(text, 'x', 400);
	memcpy(text, "#!/", 3);
	text[400] = 0;
	script("long", text);
	assert_refused(scratch("long"), "its interpreter /xxx");
}

static void what_is_no_program(void **state)
{
	(void)state;
	scratch_write("bytes", "a\0b", 3);
	chmod(scratch("bytes"), 0755);
	assert_refused(scratch("bytes"), "neither an ELF file nor a script");
	scratch_write("cut", "\177ELF", 4);
	chmod(scratch("cut"), 0755);
	assert_refused(scratch("cut"), "a damaged ELF file");
}

/* The program with a byte changed. */
static void patched(const char *from, const char *to, size_t at, uint8_t value)
{
	size_t size;
	uint8_t *bytes = scratch_read(from, &size);
	bytes[at] = value;
	scratch_write(to, bytes, size);
	free(bytes);
	chmod(scratch(to), 0755);
}

/* Replaces a string in it by one of the same length. */
static void replaced(const char *from, const char *to, const char *old, const char *new)
{
	size_t size;
	uint8_t *bytes = scratch_read(from, &size), *at = memmem(bytes, size, old, strlen(old));
	assert_non_null(at);
	assert_int_equal(strlen(old), strlen(new));
	memcpy(at, new, strlen(new));
	scratch_write(to, bytes, size);
	free(bytes);
	chmod(scratch(to), 0755);
}

static void programs_that_cannot_be_preloaded(void **state)
{
	(void)state;
	scratch_compile("dynamic", hello, "");
	assert_good(scratch("dynamic"));
	scratch_compile("static", hello, "-static");
	assert_refused(scratch("static"), "a static program");
	if (scratch_try_compile("static-pie", hello, "-static-pie -fPIE"))
		assert_refused(scratch("static-pie"), "a static program");
	patched("dynamic", "other", offsetof(Elf64_Ehdr, e_machine),
#ifdef __x86_64__
		EM_AARCH64
#else
		EM_X86_64
#endif
	);
	assert_refused(scratch("other"), "a program for");
	patched("dynamic", "class", EI_CLASS, ELFCLASS32);
	assert_refused(scratch("class"), "32-bit");
	replaced("dynamic", "musl", "/ld-linux-", "/ld-musl-x");
	assert_refused(scratch("musl"), "musl");
	replaced("dynamic", "odd", "/ld-linux-", "/linker64x");
	assert_refused(scratch("odd"), "linker64x");
	script("by-static", scratch_format("#!%s\n", scratch("static")));
	assert_refused(scratch("by-static"), "a static program");
}

static void rights_of_others(void **state)
{
	(void)state;
	if (getuid())
		skip();
	scratch_compile("setuid", hello, "");
	assert_int_equal(chmod(scratch("setuid"), 04755), 0);
	assert_good(scratch("setuid")); /* it is ours, so nothing is gained */
	assert_int_equal(chown(scratch("setuid"), 65534, 65534), 0);
	assert_int_equal(chmod(scratch("setuid"), 04755), 0);
	assert_refused(scratch("setuid"), "rights of its owner");
	assert_int_equal(chmod(scratch("setuid"), 02755), 0);
	assert_refused(scratch("setuid"), "rights of its owner");
	assert_int_equal(chmod(scratch("setuid"), 02745), 0);
	assert_good(scratch("setuid"));
}

/* ---- running ---- */

static struct target target;

static void run(char **arguments)
{
	static char *const empty[] = {NULL};
	assert_null(target_start(&target, arguments, (char **)empty, &(struct target_hooks){0}));
	while (!target.ended) {
		struct pollfd ready = {.fd = target.signals, .events = POLLIN};
		assert_int_equal(poll(&ready, 1, 10000), 1);
		target_handle(&target);
	}
}

static void run_shell(const char *text)
{
	char shell[] = "/bin/sh", flag[] = "-c", *copy = strdup(text);
	char *arguments[] = {shell, flag, copy, NULL};
	assert_null(target_prepare(&target));
	run(arguments);
	free(copy);
}

static void exit_status_passes_through(void **state)
{
	(void)state;
	run_shell("exit 42");
	assert_int_equal(target_exit(&target), 42);
	target_release(&target);
	run_shell("kill -TERM $$");
	assert_true(WIFSIGNALED(target.status) && WTERMSIG(target.status) == SIGTERM);
	target_release(&target);
}

/* In a child: dies as the command did. */
static int die_as(const char *text)
{
	pid_t child = fork();
	int status;
	assert_true(child >= 0);
	if (!child) {
		run_shell(text);
		target_release(&target);
		_exit(target_exit(&target));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void so_does_death_by_a_signal(void **state)
{
	int status;
	(void)state;
	status = die_as("exit 3");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	status = die_as("kill -KILL $$");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	status = die_as("kill -INT $$");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	status = die_as("ulimit -c 0; kill -ABRT $$");
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_false(WCOREDUMP(status));
}

/* A signal to us reaches the command, and we live. */
static void signals_are_handed_on(void **state)
{
	static const int numbers[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
	char shell[] = "/bin/sh", flag[] = "-c", text[256];
	char *arguments[] = {shell, flag, text, NULL};
	size_t i;
	(void)state;
	for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		snprintf(text, sizeof text, "trap 'exit 9' %d; : >%s; while :; do sleep 0.01; done",
			 numbers[i], scratch("ready"));
		unlink(scratch("ready"));
		assert_null(target_prepare(&target));
		assert_null(target_start(&target, arguments, environ, &(struct target_hooks){0}));
		while (access(scratch("ready"), F_OK))
			usleep(1000);
		kill(getpid(), numbers[i]);
		while (!target.ended) {
			struct pollfd ready = {.fd = target.signals, .events = POLLIN};
			assert_int_equal(poll(&ready, 1, 10000), 1);
			target_handle(&target);
		}
		assert_int_equal(target_exit(&target), 9);
		target_release(&target);
	}
}

/* Not system(3), which leaves traces in the signals of the child. */
static void run_plainly(const char *text)
{
	pid_t child = fork();
	int status;
	assert_true(child >= 0);
	if (!child) {
		execl("/bin/sh", "sh", "-c", text, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* What /proc says about signals of the command, against that of a plain child. */
static void signals_are_as_without_us(void **state)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
	static const char show[] = "exec grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
	sigset_t blocked, before;
	size_t plain_size, ours_size;
	uint8_t *plain, *ours;
	(void)state;
	sigaction(SIGCHLD, &usual, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	run_plainly(scratch_format("%s >%s", show, scratch("plain-signals")));
	run_shell(scratch_format("%s >%s", show, scratch("our-signals")));
	assert_int_equal(target_exit(&target), 0);
	target_release(&target);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGHUP, &usual, NULL);
	plain = scratch_read("plain-signals", &plain_size);
	ours = scratch_read("our-signals", &ours_size);
	assert_int_equal(plain_size, ours_size);
	assert_memory_equal(plain, ours, plain_size);
	free(plain);
	free(ours);
}

static void lower_files(void *context)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = *(rlim_t *)context;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void limits_of_the_child(void **state)
{
	char shell[] = "/bin/sh", flag[] = "-c", text[] = "test $(ulimit -Sn) = 123";
	char *arguments[] = {shell, flag, text, NULL};
	rlim_t wanted = 123;
	(void)state;
	assert_null(target_prepare(&target));
	assert_null(
		target_start(&target, arguments, environ,
			     &(struct target_hooks){.in_child = lower_files, .context = &wanted}));
	assert_int_equal(waitpid(target.pid, &target.status, 0), target.pid);
	assert_int_equal(target_exit(&target), 0);
	target_release(&target);
}

static void cannot_execute(void **state)
{
	char path[] = "/etc", missing[] = "/no/such/file";
	char *directory[] = {path, NULL}, *nothing[] = {missing, NULL};
	struct err *e;
	(void)state;
	assert_null(target_prepare(&target));
	e = target_start(&target, directory, environ, &(struct target_hooks){0});
	assert_non_null(e);
	assert_string_equal(err_text(e), "/etc: cannot execute it: Permission denied");
	err_free(e);
	e = target_start(&target, nothing, environ, &(struct target_hooks){0});
	assert_non_null(e);
	assert_string_equal(err_text(e),
			    "/no/such/file: cannot execute it: No such file or directory");
	err_free(e);
	assert_int_equal(target.pid, 0);
	target_release(&target);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_as_a_shell_does),
		cmocka_unit_test(found_in_path),
		cmocka_unit_test(scripts_by_their_interpreter),
		cmocka_unit_test(what_is_no_program),
		cmocka_unit_test(programs_that_cannot_be_preloaded),
		cmocka_unit_test(rights_of_others),
		cmocka_unit_test(exit_status_passes_through),
		cmocka_unit_test(so_does_death_by_a_signal),
		cmocka_unit_test(signals_are_handed_on),
		cmocka_unit_test(signals_are_as_without_us),
		cmocka_unit_test(limits_of_the_child),
		cmocka_unit_test(cannot_execute),
	};
	/* whoever runs the tests may ignore these, and a shell cannot trap what is ignored */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
