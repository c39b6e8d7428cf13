/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/packet.h"
#include "image/image.h"
#include "image/name_table.h"

/* The descriptors of the other process. */
#define MAKER_FILE 3
#define MAKER_ANSWER 4
#define MAKER_NAMES 5
#define MAKER_FREE 6 /* from here on */

#define NO_TABLE (-1) /* in the place of a mode: only names are wanted */

#define ACCESS_FS_TRUNCATE \
	(UINT64_C(1) << 14) /* LANDLOCK_ACCESS_FS_TRUNCATE, which older headers lack */

#define SMALL_FILE (256 << 10) /* bytes: takes a megabyte or two here */
#define NAMED_FILE (16 << 20)  /* bytes: its names are written here, where there is a table */
#define MEMORY_MAX (UINT64_C(2) << 30) /* the largest programs known take 1.5 */
#define CPU_SECONDS_MAX 300
#define WALL_MS_MAX (15 * 60 * 1000) /* others go first */
#define FIRST_TO_GO "500"            /* where the machine's memory runs out; 0: as others */

struct answer {
	uint64_t memory; /* that it had at most */
	char text[1000]; /* why there is no table */
};

/* ---- who asks ---- */

#define HANDED 3 /* files: those that MAKER_FILE and the next ones are */

struct child {
	pid_t pid;
	int answer;
};

static void argument(char *out, size_t size, int value)
{
	snprintf(out, size, "%d", value);
}

/* A number that does not get into the way of MAKER_FILE and the others. */
static int copy_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, MAKER_FREE);
}

/* What is asked for. */
struct order {
	struct image *image;
	int mode; /* enum recipes_mode, or NO_TABLE */
	enum cache_debug debug;
	int names; /* a file for them, or -1 */
};

static struct err *start(const struct maker *maker, const int files[HANDED],
			 const struct order *order, pid_t *pid)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	char mode[16], debug[16], parent[16];
	argument(mode, sizeof mode, order->mode);
	argument(debug, sizeof debug, (int)order->debug);
	argument(parent, sizeof parent, (int)getpid());
	char program[] = "culprit", command[] = MAKER_COMMAND, yes[] = "1", no[] = "0";
	char *names = files[MAKER_NAMES - MAKER_FILE] >= 0 ? yes : no;
	char *argv[] = {program, command, mode,  (char *)image_path(order->image),
			parent,  names,   debug, NULL};
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int problem = 0;
	for (int i = 0; i < HANDED && !problem; i++)
		if (files[i] >= 0)
			problem = posix_spawn_file_actions_adddup2(&actions, files[i],
								   MAKER_FILE + i);
	if (!problem)
		problem = posix_spawn(pid, maker->program, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	errno = problem;
	return problem ? err_errno("cannot start '%s'", maker->program) : NULL;
}

static struct err *start_child(const struct maker *maker, const struct order *order,
			       struct child *out)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return err_errno("cannot make a socket");
	const int files[HANDED] = {copy_up(image_descriptor(order->image)), copy_up(ends[1]),
				   order->names >= 0 ? copy_up(order->names) : -1};
	struct err *e = files[0] < 0 || files[1] < 0 ? err_errno("cannot hand over a file")
						     : start(maker, files, order, &out->pid);
	for (int i = 0; i < HANDED; i++)
		if (files[i] >= 0)
			close(files[i]);
	close(ends[1]);
	out->answer = ends[0];
	if (e)
		close(ends[0]);
	return e;
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Until it answers or is gone; else why nobody waits any longer. */
static struct err *wait_for(const struct maker *maker, const struct child *c)
{
	uint64_t until = now_ms() + WALL_MS_MAX;
	for (;;) {
		struct pollfd ready[] = {{c->answer, POLLIN, 0}, {maker->stop, POLLIN, 0}};
		uint64_t now = now_ms();
		if (now >= until)
			return err_new("making it took more than %d minutes", WALL_MS_MAX / 60000);
		if (poll(ready, 2, (int)(until - now)) < 0 && errno != EINTR)
			return err_errno("cannot wait");
		if (ready[0].revents)
			return NULL;
		if (ready[1].revents)
			return err_new("there is no time to make it");
	}
}

/* *answered is false where it is gone without a word. */
static struct err *hear(const struct child *c, struct maker_report *report, int *table,
			bool *answered)
{
	struct answer a;
	ssize_t got = packet_receive(c->answer, &a, sizeof a, table, MSG_DONTWAIT);
	*answered = got == (ssize_t)sizeof a;
	if (!*answered)
		return got > 0 ? err_new("the process that made it answers nonsense") : NULL;
	a.text[sizeof a.text - 1] = '\0';
	report->memory = a.memory > report->memory ? a.memory : report->memory;
	return *table < 0 && a.text[0] ? err_new("%s", a.text) : NULL;
}

static struct err *say_death(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return err_new("making it took more than %d seconds of CPU time", CPU_SECONDS_MAX);
	if (WIFSIGNALED(status))
		return err_new("the process that made it ended by signal %d (%s)", WTERMSIG(status),
			       strsignal(WTERMSIG(status)));
	return err_new("the process that made it ended with status %d", WEXITSTATUS(status));
}

/* Whatever it does now, nobody needs it: the answer was the last thing. */
static int end(const struct child *c, struct maker_report *report)
{
	struct rusage usage = {0};
	int status = 0;
	kill(c->pid, SIGKILL);
	while (wait4(c->pid, &status, 0, &usage) < 0 && errno == EINTR)
		;
	close(c->answer);
	const struct timeval user = usage.ru_utime, system = usage.ru_stime;
	report->cpu_ns += (uint64_t)(user.tv_sec + system.tv_sec) * 1000000000u +
			  (uint64_t)(user.tv_usec + system.tv_usec) * 1000u;
	return status;
}

/* *table is -1 where there is none. */
static struct err *carry_out(const struct maker *maker, const struct order *order, int *table,
			     struct maker_report *report)
{
	struct child c;
	bool answered = false;
	*table = -1;
	struct err *e = start_child(maker, order, &c);
	if (!e) {
		e = wait_for(maker, &c);
		if (!e)
			e = hear(&c, report, table, &answered);
		int status = end(&c, report);
		if (!e && !answered)
			e = say_death(status);
	}
	report->died = !answered;
	return answered ? e : err_context(e, "unwind table of '%s'", image_path(order->image));
}

static struct err *have_made(const struct maker *maker, struct image *image, enum recipes_mode mode,
			     int names, struct module_table *out, struct maker_report *report)
{
	struct cache_job *job;
	int table;
	struct err *e = cache_begin(image, mode, out, &job);
	if (e || (out->bytes && names < 0)) {
		cache_end(job);
		return e;
	}
	const struct order order = {.image = cache_image(job),
				    .mode = out->bytes ? NO_TABLE : (int)mode,
				    .debug = cache_debug(job),
				    .names = names};
	e = carry_out(maker, &order, &table, report);
	if (!e && !out->bytes && !cache_adopt(job, table, out))
		e = err_new("unwind table of '%s': what was made is none", image_path(image));
	if (out->bytes && e) { /* it has no names, then */
		err_free(e);
		e = NULL;
	}
	if (table >= 0)
		close(table);
	cache_end(job);
	return e;
}

static bool is_stopped(const struct maker *maker)
{
	struct pollfd ready = {maker->stop, POLLIN, 0};
	return poll(&ready, 1, 0) > 0;
}

static off_t size_of(const struct image *image)
{
	struct stat st;
	int fd = image_descriptor(image);
	return fd < 0 || fstat(fd, &st) ? 0 : st.st_size;
}

bool maker_find(struct image *image, enum recipes_mode mode, struct module_table *out)
{
	return cache_find(image, mode, true, out);
}

static struct err *make_apart(const struct maker *maker, struct image *image,
			      enum recipes_mode mode, int names, struct module_table *out,
			      struct maker_report *report)
{
	struct err *e = have_made(maker, image, mode, names, out, report);
	if (e && mode == RECIPES_AUTO && !is_stopped(maker))
		err_free(have_made(maker, image, RECIPES_CFI, names, out, report));
	return e;
}

static struct err *find_or_make(const struct maker *maker, struct image *image,
				enum recipes_mode mode, int names, struct module_table *out,
				struct maker_report *report)
{
	off_t size = size_of(image);
	struct err *e = NULL;
	if (size <= SMALL_FILE)
		e = cache_table(image, mode, out);
	else if ((names >= 0 && size > NAMED_FILE) || !cache_find(image, mode, false, out))
		return make_apart(maker, image, mode, names, out, report);
	if (names >= 0)
		err_free(name_table_write(image, names));
	return e;
}

void maker_table(const struct maker *maker, struct image *image, enum recipes_mode mode, int names,
		 struct module_table *out, struct maker_report *report)
{
	*report = (struct maker_report){0};
	memset(out, 0, sizeof *out);
	struct err *e = find_or_make(maker, image, mode, names, out, report);
	if (e)
		report->reason = strdup(err_text(e));
	err_free(e);
}

/* ---- who makes it ---- */

/* A line of /proc/self/status, in bytes; 0: it cannot be read. */
static uint64_t own_status(const char *name)
{
	char line[128];
	size_t length = strlen(name);
	uint64_t kilobytes = 0;
	FILE *file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, length) && line[length] == ':')
			kilobytes = strtoull(line + length + 1, NULL, 10);
	if (file)
		fclose(file);
	return kilobytes * 1024;
}

static void limit(int what, uint64_t most)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)what, &limit) || limit.rlim_cur <= most)
		return;
	limit.rlim_cur = most;
	setrlimit((__rlimit_resource_t)what, &limit);
}

/* Half of the machine's at most. */
static uint64_t memory_bound(void)
{
	uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
	uint64_t half = pages / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
	return half && half < MEMORY_MAX ? half : MEMORY_MAX;
}

static void set_bounds(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, FIRST_TO_GO, strlen(FIRST_TO_GO)) < 0)
			errno = 0; /* as others, then */
		close(fd);
	}
	setpriority(PRIO_PROCESS, 0, MAKER_NICE);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, CPU_SECONDS_MAX);
	limit(RLIMIT_DATA, own_status("VmData") + memory_bound());
}

/* It needs none: its files are open. */
static void give_up_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	syscall(SYS_capset, &head, none);
}

/* It parses foreign bytes, and its user may be root: no file can be opened for writing, made, removed or cut short, the cache's
   neither, where the kernel can see to that (Linux 5.13; files cut short: 6.2). */
static void write_nowhere(void)
{
	struct landlock_ruleset_attr writing = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			       LANDLOCK_CREATE_RULESET_VERSION);
	if (version >= 3)
		writing.handled_access_fs |= ACCESS_FS_TRUNCATE;
	int rules = (int)syscall(SYS_landlock_create_ruleset, &writing,
				 sizeof writing.handled_access_fs, 0);
	if (rules < 0)
		return;
	syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
}

static void answer(int table, const char *text)
{
	/* What wait4 says has a part that was the daemon's, before exec. */
	struct answer a = {.memory = own_status("VmHWM")};
	snprintf(a.text, sizeof a.text, "%s", text);
	packet_send(MAKER_ANSWER, &a, sizeof a, &table, table >= 0, 0);
}

static struct err *make(int mode, const char *name, bool names, enum cache_debug debug, int *table)
{
	struct image *image;
	struct err *e = image_open_fd(MAKER_FILE, name, &image);
	if (e)
		return e;
	if (mode != NO_TABLE)
		e = cache_make(image, (enum recipes_mode)mode, debug, table);
	if (names)
		err_free(name_table_write(image, MAKER_NAMES));
	image_close(image);
	return e;
}

int maker_main(int argc, char **argv)
{
	int table = -1;
	if (argc != MAKER_ARGUMENTS)
		return EXIT_FAILURE;
	prctl(PR_SET_NAME, "culprit");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != (pid_t)atoi(argv[3])) /* it is gone already */
		return EXIT_FAILURE;
	bool names = !strcmp(argv[4], "1");
	syscall(SYS_close_range, names ? MAKER_FREE : MAKER_NAMES, ~0u, 0);
	set_bounds();
	give_up_privileges();
	write_nowhere();
	struct err *e = make(atoi(argv[1]), argv[2], names, (enum cache_debug)atoi(argv[5]),
			     &table);
	answer(table, e ? err_text(e) : "");
	_exit(EXIT_SUCCESS); /* what it has is the kernel's to tidy up */
}
