/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records a program of the other CPU, which an emulator runs, with timers: for emulators know
 * nothing of perf events.
 *
 *    foreign AGENT HZ OUTPUT EMULATOR [OPTION...] -- PROGRAM [ARGUMENT...]
 *
 * With the agent for probes, $FOREIGN_PROBES has the functions of the program that are probed. If $FOREIGN_COUNTED is set,
 * their calls are only counted. What was counted is written to standard error, for each of them: NAME CALLS RETURNED UNWOUND
 * ABANDONED ACTIVE PATHS.
 *
 * AGENT is the library for that CPU: the emulator is told to preload it, and must not do so itself.
 * The program's exit status is ours, 128 and the signal where one killed it; 125 if we fail.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/events.h"
#include "collect/session.h"
#include "harvest/probes.h"
#include "probe/choose.h"
#include "probe/modules.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define FAILED 125
#define SLOWEST 5 /* calls of each function */
#define WAIT_MS 100
#define LATE_ROUNDS 100 /* for processes that outlive the first one */

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "foreign: %s\n", err_text(e));
	exit(FAILED);
}

/* "NAME=VALUE" of the environment that the session made. */
static char *find_variable(char **environment, const char *name)
{
	size_t length = strlen(name);
	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment;
	check(err_new("the session has no %s", name));
	return NULL;
}

/* Its options, the two variables, the program. */
static char **make_command(char **environment, char **argv)
{
	static char set[] = "-E";
	size_t count = 0, used = 0;
	while (argv[count])
		count++;
	char **command = calloc(count + 5, sizeof *command);
	if (!command)
		check(err_new("out of memory"));
	for (; *argv && strcmp(*argv, "--") != 0; argv++)
		command[used++] = *argv;
	if (!*argv)
		check(err_new("no --"));
	command[used++] = set;
	command[used++] = find_variable(environment, "LD_PRELOAD");
	command[used++] = set;
	command[used++] = find_variable(environment, WIRE_SOCKET);
	while (*++argv)
		command[used++] = *argv;
	return command;
}

static pid_t start(struct session *session, char **command)
{
	pid_t pid = fork();
	if (pid < 0)
		check(err_errno("cannot make a process"));
	if (pid)
		return pid;
	unsetenv("LD_PRELOAD");
	unsetenv(WIRE_SOCKET);
	session_child(session);
	execvp(command[0], command);
	perror(command[0]);
	_exit(FAILED);
}

static void handle(struct session *session)
{
	struct pollfd ready = {.fd = session_fd(session), .events = POLLIN};
	poll(&ready, 1, WAIT_MS);
	check(session_handle(session));
}

/* Until it has ended, and what it left behind too. */
static int follow(struct session *session, pid_t pid)
{
	struct recording_state state;
	siginfo_t ended = {0};
	int status;
	while (!ended.si_pid) {
		handle(session);
		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT))
			check(err_errno("cannot wait"));
	}
	for (int i = 0; i < LATE_ROUNDS; i++) {
		session_status(session, &state);
		if (!state.live)
			break;
		handle(session);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* All allocations, instead of samples by a timer. */
static void count_allocations(struct recording_options *options)
{
	options->timers = false;
	check(event_parse("alloc@1", 0, &options->events[0]));
	options->event_count = 1 + event_companions(&options->events[0], options->events + 1);
}

/* ---- probes ---- */

/* As after probes had taken too much time: calls are only counted. */
static void drop_all(struct probes *probes)
{
	for (size_t i = 0; i < probes->count; i++) {
		probes_refuse(&probes->functions[i], PROBE_COUNTING, "dropped");
		probes->functions[i].dropped = true;
	}
}

static void probe(struct recording_options *options, char **argv, struct probes *probes)
{
	struct probe_modules modules = {0};
	char *names = strdup(getenv("FOREIGN_PROBES") ? getenv("FOREIGN_PROBES") : ""),
	     *rest = names;
	size_t program;
	while (*argv && strcmp(*argv, "--") != 0)
		argv++;
	if (!*argv || !names)
		check(err_new("no --"));
	check(probe_modules_add_file(&modules, argv[1], &program));
	for (char *name; (name = strsep(&rest, " "));)
		check(probe_choose(&modules, name, probes));
	for (size_t i = 0; i < probes->count; i++)
		if (probes->functions[i].state == PROBE_COUNTING)
			probes->functions[i].state = PROBE_ON;
	if (getenv("FOREIGN_COUNTED"))
		drop_all(probes);
	probe_modules_free(&modules);
	free(names);
	options->timers = false;
	options->event_count = event_probes(probes, options->events);
	options->probes = probes;
}

/* NAME slowest KEPT RETURNED MOST FIRST: how many of the slowest calls are kept; the longest time, and that of the first.
   NAME counted CALLS UNTIMED - -: how many calls were only counted. */
static void print_more(const struct probe_function *f)
{
	fprintf(stderr, "%s slowest %zu %llu %llu %llu\n", f->name, f->slow_count,
		(unsigned long long)f->sums.returned, (unsigned long long)f->sums.most,
		(unsigned long long)(f->slow_count ? f->slowest[0].ns : 0));
	fprintf(stderr, "%s counted %llu %llu - -\n", f->name, (unsigned long long)f->sums.calls,
		(unsigned long long)f->sums.untimed);
}

static void print_probes(const struct probes *p)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_function *f = &p->functions[i];
		const struct probe_sums *s = &f->sums;
		unsigned long long paths = 0;
		for (size_t k = 0; k < p->path_count; k++)
			paths += p->paths[k].function == i ? p->paths[k].sums.calls : 0;
		fprintf(stderr, "%s %llu %llu %llu %llu %llu %llu%s%s\n", f->name,
			(unsigned long long)s->calls, (unsigned long long)s->returned,
			(unsigned long long)s->unwound, (unsigned long long)s->abandoned,
			(unsigned long long)probes_active(s), paths, f->reason ? " " : "",
			f->reason ? f->reason : "");
		print_more(f);
	}
}

int main(int argc, char **argv)
{
	struct recording_options options = {.timers = true, .event_count = 1};
	struct probes probes = {.slowest = SLOWEST};
	struct session *session;
	struct profile *profile;
	unsigned living;
	if (argc < 6)
		check(err_new("usage: foreign AGENT HZ OUTPUT EMULATOR [OPTION...] -- PROGRAM..."));
	options.agent = argv[1];
	options.calls = strstr(argv[1], "-calls") != NULL;
	options.hz = strtoull(argv[2], NULL, 10);
	options.events[0] = (struct recording_event){.name = "cpu-clock",
						     .unit = "ns",
						     .period = 1000000000u /
							       (options.hz ? options.hz : 1),
						     .hz = options.hz,
						     .clock = true};
	if (strstr(argv[1], "-events"))
		count_allocations(&options);
	if (strstr(argv[1], "-probes"))
		probe(&options, argv + 4, &probes);
	check(session_open(&options, &session));
	char *none[] = {NULL}, **environment = session_environment(session, none);
	if (!environment)
		check(err_new("out of memory"));
	char **command = make_command(environment, argv + 4);
	int status = follow(session, start(session, command));
	check(session_finish(session, &profile, &living));
	check(profile_write(profile, argv[3]));
	print_probes(&probes);
	probes_free(&probes);
	profile_free(profile);
	session_close(session);
	free(command);
	free(environment);
	return status;
}
