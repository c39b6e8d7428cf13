/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose banks are counted in, by a copy of one function that stands for all: tests/targets/counted_paths.c calls it
   and tells how often. */
#include "scratch.h"

#include "base/err.h"
#include "collect/paths/counting.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BASE UINT64_C(0x10000000000)
#define WORDS 5000u
#define FIRST \
	1u /* counters of the copy: each call; calls with a wrong path stack; each call again, on another page */
#define WRONG 2u
#define LAST 4999u

static const char copy[] = "__asm__(\".globl copy\\ncopy:\\n\"\n"
			   "\"mov %gs:-8, %rax\\n\"\n"
			   "\"cmpq $-1, -8(%rax)\\n\"\n"
			   "\"je good\\n\"\n"
			   "\"cmpq %rsp, -8(%rax)\\n\"\n" /* interrupted by a signal */
			   "\"ja good\\n\"\n"
			   "\"incq %gs:16\\n\"\n"
			   "\"good: mov %rsp, 8(%rax)\\n\"\n"
			   "\"addq $16, %gs:-8\\n\"\n"
			   "\"incq %gs:8\\n\"\n"
			   "\"incq %gs:39992\\n\"\n"
			   "\"subq $16, %gs:-8\\n\"\n"
			   "\"ret\\n\");\n";

static const char *program = "fixed"; /* which build of the program */
static useconds_t slowness;
static enum { GOOD, ELSEWHERE, BROKEN, OTHER_BYTES, REFUSED, ANY_PROGRAM } kind;

/* ---- the maker ---- */

static uint64_t symbol(const char *path, const char *name)
{
	char line[400], found[100];
	uint64_t value = 0, at;
	FILE *list = popen(scratch_format("nm '%s'", path), "r");
	assert_non_null(list);
	while (fgets(line, sizeof line, list))
		if (sscanf(line, "%" SCNx64 " %*c %99s", &at, found) == 2 && !strcmp(found, name))
			value = at;
	pclose(list);
	assert_true(value);
	return value;
}

/* Where the program itself is in memory: the copies are for it alone. */
static uint64_t start_of(pid_t pid, const char *name)
{
	char line[4400];
	uint64_t start = 0, at;
	FILE *maps = fopen(scratch_format("/proc/%d/maps", (int)pid), "r");
	while (maps && fgets(line, sizeof line, maps))
		if (!start && strstr(line, name) && sscanf(line, "%" SCNx64, &at) == 1)
			start = at;
	if (maps)
		fclose(maps);
	return start;
}

static void add_object(struct counting_plan *plan)
{
	struct counting_object *o = calloc(1, sizeof *o);
	o->name = strdup("a name/with all");
	o->bytes = scratch_read("copy.so", &o->size);
	o->base = kind == ELSEWHERE ? BASE + 0x10000 : BASE;
	if (kind == BROKEN)
		memset(o->bytes, 0x55, o->size);
	plan->objects = o;
	plan->object_count = 1;
}

static struct err *make(void *context, struct counting_program *face, struct counting_plan *plan)
{
	uint64_t start = start_of(face->pid, scratch_format("/%s\n", program));
	(void)context;
	usleep(slowness);
	if (kind == REFUSED)
		return err_new("nobody wants it");
	plan->words = WORDS;
	if (!start && kind != ANY_PROGRAM)
		return NULL; /* a shell */
	add_object(plan);
	struct counting_patch *p = calloc(1, sizeof *p);
	plan->patches = p;
	plan->patch_count = 1;
	if (kind == ANY_PROGRAM) { /* nothing is counted, but all is as if it were */
		p->at = start_of(face->pid, "/");
		p->length = 4;
		memcpy(p->expected, "\177ELF", 4);
		memcpy(p->bytes, p->expected, 4);
		return NULL;
	}
	p->at = symbol(scratch(program), "counted") + (strcmp(program, "fixed") ? start : 0);
	p->length = 14; /* jmp *(%rip) */
	memset(p->expected, kind == OTHER_BYTES ? 0x91 : 0x90, p->length);
	memcpy(p->bytes, (uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6);
	uint64_t target = symbol(scratch("copy.so"), "copy");
	memcpy(p->bytes + 6, &target, sizeof target);
	return NULL;
}

/* ---- running ---- */

static struct counting counting;

static void run(const char *way, const char *number)
{
	static char *command[5];
	static char paths[2][PATH_MAX];
	snprintf(paths[0], PATH_MAX, "%s", scratch(program));
	snprintf(paths[1], PATH_MAX, "%s", scratch("told"));
	unlink(paths[1]);
	command[0] = paths[0];
	command[1] = paths[1];
	command[2] = (char *)way;
	command[3] = (char *)number;
	counting = (struct counting){.command = command, .libdir = "lib", .make = make};
	struct err *e = counting_run(&counting);
	if (e)
		fail_msg("%s", err_text(e));
}

static uint64_t told(void)
{
	uint64_t value = 0;
	int fd = open(scratch("told"), O_RDONLY);
	assert_true(fd >= 0 && read(fd, &value, sizeof value) == sizeof value);
	close(fd);
	return value;
}

static uint64_t sum(size_t word)
{
	uint64_t all = 0;
	for (size_t i = 0; i < counting.program_count; i++)
		if (counting.programs[i]->counts)
			all += counting.programs[i]->counts[word];
	return all;
}

static void end(void)
{
	char directories[200];
	counting_free(&counting);
	snprintf(directories, sizeof directories, "ls -d %s/culprit-paths-??????",
		 getenv("TMPDIR"));
	assert_false(scratch_run(directories));
}

static void assert_exact(const char *way, const char *number, size_t programs)
{
	run(way, number);
	if (counting.status || counting.notes.size)
		fail_msg("%s: status %x: %s", way, (unsigned)counting.status,
			 buf_text(&counting.notes));
	assert_true(told());
	assert_int_equal(sum(FIRST), told());
	assert_int_equal(sum(LAST), told());
	assert_int_equal(sum(WRONG), 0);
	assert_int_equal(counting.program_count, programs);
	end();
}

/* ---- what is exact ---- */

static void threads_are_counted(void **state)
{
	(void)state;
	assert_exact("one", "1000000", 1);
	assert_exact("together", NULL, 1);
	assert_exact("short", "1000", 1);
	assert_exact("detached", NULL, 1);
	assert_exact("many", "3000", 1);
	assert_exact("exit", "12345", 1);
}

static void processes_are_counted(void **state)
{
	(void)state;
	assert_exact("fork", "500", 1);
	assert_exact("storm", NULL, 1);
	assert_exact("exec", "5", 2);
	assert_exact("spawn", NULL, 12); /* and a shell */
}

static void signals_come_at_any_time(void **state)
{
	(void)state;
	assert_exact("signals", NULL, 1);
}

static void programs_may_be_anywhere(void **state)
{
	(void)state;
	program = "anywhere";
	assert_exact("together", NULL, 1);
	program = "fixed";
}

static void paths_with_blanks(void **state)
{
	char *before = strdup(getenv("CULPRIT_AGENT"));
	(void)state;
	assert_true(scratch_run(scratch_format("mkdir 'a b' && cp '%s' 'a b'", before)));
	setenv("CULPRIT_AGENT", scratch("a b/" COUNTING_LIBRARY), 1);
	setenv("LD_PRELOAD", "libm.so.6", 1);
	assert_exact("short", "3", 1);
	unsetenv("LD_PRELOAD");
	setenv("CULPRIT_AGENT", before, 1);
	free(before);
}

static void memory_that_is_locked(void **state)
{
	(void)state;
	assert_exact("locked", "20", 1);
}

/* ---- programs that must not notice ---- */

static void run_shell(const char *line, bool counted)
{
	char *whole = strdup(scratch_format("cd '%s'; exec >%s 2>&1; %s", scratch_dir,
					    counted ? "with" : "without", line));
	char *command[] = {(char *)"/bin/sh", (char *)"-c", whole, NULL};
	if (!counted) {
		assert_int_equal(system(whole), 0);
	} else {
		counting = (struct counting){.command = command, .libdir = "lib", .make = make};
		struct err *e = counting_run(&counting);
		assert_null(e);
		assert_int_equal(counting.status, 0);
		assert_string_equal(buf_text(&counting.notes), "");
		assert_true(counting.program_count);
		for (size_t i = 0; i < counting.program_count; i++)
			assert_true(counting.programs[i]->changed);
		end();
	}
	free(whole);
}

static void assert_same(const char *line)
{
	run_shell(line, false);
	run_shell(line, true);
	if (!scratch_run("cmp with without"))
		fail_msg("other output: %s", line);
}

static void programs_do_not_notice(void **state)
{
	(void)state;
	kind = ANY_PROGRAM;
	assert_same("env | grep -v -e ^LD_PRELOAD= -e ^CULPRIT_PATHS= | sort");
	assert_same("ls /proc/self/fd");
	assert_same("for i in $(seq 20); do (echo $i; (echo a | cat; trap)); done");
	assert_same("ulimit -v 4000000; ./fixed told together; echo $?");
	assert_same("ulimit -v 300000; ./fixed told short 30; echo $?");
	assert_same("ulimit -d 100000; ./fixed told fork 30; echo $?");
	assert_same("ulimit -f 10; ./fixed told storm; echo $?");
	assert_same("ulimit -s unlimited; ./anywhere told together; echo $?");
	assert_same("ulimit -s 2000000; ./anywhere told detached; echo $?");
	assert_same("ulimit -n 6; ./fixed told short 2; echo $?");
	assert_same(
		"echo 'import os, subprocess, threading\n"
		"t = [threading.Thread(target=os.getpid) for i in range(50)]\n"
		"[x.start() for x in t]; [x.join() for x in t]\n"
		"print(subprocess.check_output([\"echo\", \"1\"]), os.listdir(\"/proc/self/task\")[1:])\n"
		"os.fork() or os._exit(3); print(os.wait()[1])' | python3 -");
	kind = GOOD;
}

/* ---- what goes wrong ---- */

static void assert_unharmed(const char *note)
{
	run("one", "100");
	assert_int_equal(counting.status, 0);
	assert_int_equal(told(), 100);
	assert_int_equal(sum(FIRST), 0);
	assert_int_equal(counting.program_count, 1);
	if (!strstr(buf_text(&counting.notes), note))
		fail_msg("'%s' does not say '%s'", buf_text(&counting.notes), note);
}

static void objects_that_cannot_be_loaded(void **state)
{
	(void)state;
	kind = ELSEWHERE;
	assert_unharmed("");
	assert_non_null(counting.programs[0]->troubles);
	assert_non_null(strstr(counting.programs[0]->troubles[0], "instead of"));
	end();
	kind = BROKEN;
	assert_unharmed("");
	assert_non_null(strstr(counting.programs[0]->troubles[0], "invalid ELF header"));
	end();
	kind = OTHER_BYTES;
	assert_unharmed("1 of 1 functions could not be changed");
	assert_int_equal(counting.programs[0]->unchanged_count, 1);
	end();
	kind = REFUSED;
	assert_unharmed("nobody wants it");
	end();
	kind = GOOD;
}

static void wait_until_told(uint64_t least)
{
	for (int i = 0; i < 10000; i++) {
		uint64_t value = 0;
		int fd = open(scratch("told"), O_RDONLY);
		if (fd >= 0 && read(fd, &value, sizeof value) < 0)
			value = 0;
		if (fd >= 0)
			close(fd);
		if (value >= least)
			return;
		usleep(1000);
	}
	fail_msg("the program counts nothing");
}

/* A process of our own that ends another one, once that has counted. */
static pid_t killer(void)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	wait_until_told(100000);
	_exit(!scratch_run(scratch_format("kill -9 $(pgrep -f -x '%s %s endless 1')",
					  scratch(program), scratch("told"))));
}

static void killed_programs_keep_their_counts(void **state)
{
	int status;
	(void)state;
	unlink(scratch("told"));
	pid_t pid = killer();
	run("endless", "1");
	assert_true(waitpid(pid, &status, 0) == pid && status == 0);
	assert_int_equal(counting.status, SIGKILL);
	assert_true(sum(FIRST) == told() || sum(FIRST) == told() + 1);
	end();
}

static void children_may_live_on(void **state)
{
	(void)state;
	run("outlive", "1000");
	assert_int_equal(sum(FIRST), 1000);
	assert_true(counting.programs[0]->runs_on);
	assert_non_null(strstr(buf_text(&counting.notes), "still run"));
	end();
}

static size_t endings;

static void note_end(void *context, struct counting_program *p)
{
	(void)context;
	endings += p->counts && p->counts[FIRST] == 17;
}

/* Each is told of when it has ended, not at the end of all: that would need too many descriptors. */
static void programs_end_one_by_one(void **state)
{
	static char *command[] = {(char *)"/bin/sh", (char *)"-c", NULL, NULL};
	(void)state;
	char *line = strdup(scratch_format("for i in $(seq 60); do %s %s one 17; done",
					   scratch(program), scratch("told")));
	command[2] = line;
	endings = 0;
	counting = (struct counting){
		.command = command, .libdir = "lib", .make = make, .ended = note_end};
	struct err *e = counting_run(&counting);
	assert_null(e);
	assert_int_equal(endings, 60);
	assert_string_equal(buf_text(&counting.notes), "");
	end();
	free(line);
}

/* The collector, in a process of its own, which is killed. */
static pid_t collector(const char *way, const char *number)
{
	pid_t pid = fork();
	if (!pid) {
		run(way, number);
		_exit(0);
	}
	return pid;
}

static void killed_collectors_do_no_harm(void **state)
{
	(void)state;
	run("one", "1"); /* removes the file of others */
	end();
	unlink(scratch("told"));
	pid_t pid = collector("many", "500");
	wait_until_told(100);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	wait_until_told(500 * 6);
	unlink(scratch("told"));
	slowness = 500000;
	pid = collector("one", "77"); /* its program waits for the copies */
	usleep(250000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	slowness = 0;
	wait_until_told(77);
	assert_exact("one", "5", 1); /* what they have left is gone */
}

static void refused_commands(void **state)
{
	static char *command[] = {(char *)"/no/such/command", NULL};
	(void)state;
	counting = (struct counting){.command = command, .libdir = "lib", .make = make};
	struct err *e = counting_run(&counting);
	assert_non_null(e);
	err_free(e);
	end();
}

/* ---- building ---- */

static int prepare(void **state)
{
	char self[PATH_MAX], directory[PATH_MAX];
	const char *source = scratch_format("%s/tests/targets/counted_paths.c",
					    getenv("SOURCE_ROOT") ? getenv("SOURCE_ROOT") : ".");
	(void)state;
	for (int fd = 3; fd < 64; fd++) /* the program finds out which ones it has from us */
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(length > 0);
	self[length] = 0;
	*strrchr(self, '/') = 0;
	setenv("CULPRIT_AGENT", scratch_format("%s/../../src/counter/" COUNTING_LIBRARY, self), 1);
	snprintf(directory, sizeof directory, "%s", scratch("tmp"));
	assert_int_equal(mkdir(directory, 0700), 0);
	char *full = realpath(source, NULL);
	assert_non_null(full);
	assert_true(scratch_run(
		scratch_format("gcc -D_GNU_SOURCE -O2 -no-pie -pthread -o fixed '%s'", full)));
	assert_true(scratch_run(scratch_format(
		"gcc -D_GNU_SOURCE -O2 -fpie -pie -pthread -o anywhere '%s'", full)));
	free(full);
	scratch_compile("copy.so", copy,
			scratch_format("-shared -nostdlib -Wl,-Ttext-segment=%#" PRIx64, BASE));
	setenv("TMPDIR", directory, 1);
	return 0;
}

int main(void)
{
#if !defined(__x86_64__)
	puts("1..0 # SKIP only on x86-64");
	return 0;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_are_counted),
		cmocka_unit_test(processes_are_counted),
		cmocka_unit_test(signals_come_at_any_time),
		cmocka_unit_test(programs_may_be_anywhere),
		cmocka_unit_test(paths_with_blanks),
		cmocka_unit_test(memory_that_is_locked),
		cmocka_unit_test(programs_do_not_notice),
		cmocka_unit_test(objects_that_cannot_be_loaded),
		cmocka_unit_test(killed_programs_keep_their_counts),
		cmocka_unit_test(children_may_live_on),
		cmocka_unit_test(programs_end_one_by_one),
		cmocka_unit_test(killed_collectors_do_no_harm),
		cmocka_unit_test(refused_commands),
	};
	return cmocka_run_group_tests(tests, prepare, NULL);
}
