/* SPDX-License-Identifier: Apache-2.0 */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "inject/borrow.h"
#include "inject/cpu.h"
#include "inject/spot.h"
#include "process/status.h"
#include "safe/late.h"

#define PATIENCE_NS 2000000000ull
#define LOAD_NS 10000000000ull
#define PAUSE_NS 1000000
#define CODE_SIZE 4096u
#define DATA_SIZE 8192u
#define LEFT_PAGES 256u /* more than these are no collectors that were killed */
_Static_assert(sizeof(struct late) <= DATA_SIZE, "");

/* ---- refusals ---- */

static const char *otherwise(const struct inject *what)
{
	return what->otherwise ? what->otherwise : "--collector=kernel can sample it (as root)";
}

static long status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	return line ? strtol(line + strlen(key), NULL, 10) : 0;
}

static struct err *refuse_sandbox(pid_t pid, const struct inject *what)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "status", &text);
	long mode = e ? 0 : status_number(buf_text(&text), "\nSeccomp:\t");
	buf_free(&text);
	if (e || !mode)
		return e;
	return err_new(
		"process %d: a seccomp filter restricts its system calls, and the agent's might "
		"kill it: %s",
		(int)pid, otherwise(what));
}

/* A child of vfork runs in the memory of its parent. */
static struct err *refuse_vfork(pid_t pid, pid_t parent)
{
	if (parent > 0 && syscall(SYS_kcmp, pid, parent, KCMP_VM, 0, 0) == 0)
		return err_new(
			"process %d: it shares its memory with its parent (vfork): try again when "
			"it has called exec",
			(int)pid);
	return NULL;
}

/* The process must see our library, at its path. */
static struct err *refuse_file(pid_t pid, const struct inject *what)
{
	const char *library = what->library;
	char path[PATH_MAX];
	struct stat ours, theirs;
	int length = snprintf(path, sizeof path, "/proc/%d/root%s", (int)process_task(pid),
			      library);
	if (length < 0 || (size_t)length >= sizeof path || stat(library, &ours))
		return err_errno("%s", library);
	if (!stat(path, &theirs) && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
		return NULL;
	if (errno == EACCES)
		return process_forbidden(pid, pid);
	return err_new(
		"process %d: it does not see %s, because it has other file systems (a container?): %s",
		(int)pid, library, otherwise(what));
}

static struct err *refuse(pid_t pid, const struct inject *what)
{
	struct process_status s;
	struct err *e = process_refusal(pid);
	if (e)
		return e;
	if (!process_status(pid, &s))
		return err_new("no such process: %d", (int)pid);
	if (pid == getpid())
		return err_new("process %d is this one", (int)pid);
	if (s.tracer || (geteuid() && s.user != geteuid()))
		return process_forbidden(pid, pid);
	if (s.state == 'T')
		return err_new("process %d is stopped: 'kill -CONT %d' lets it go on", (int)pid,
			       (int)pid);
	e = refuse_sandbox(pid, what);
	if (!e)
		e = refuse_vfork(pid, s.parent);
	return e ? e : refuse_file(pid, what);
}

/* ---- the call ---- */

static struct err *fill(struct borrow *b, const struct spot_functions *f, const struct inject *what,
			uint64_t code, uint64_t data)
{
	size_t size = (size_t)(inject_code_end - inject_code);
	uint8_t bytes[CODE_SIZE] = {0};
	struct late late = {
		.dlopen = f->dlopen,
		.dlsym = f->dlsym,
		.dlerror = f->dlerror,
		.code = code,
		.code_size = CODE_SIZE,
		.data = data,
		.data_size = DATA_SIZE,
	};
	if (strlen(what->text) >= sizeof late.text ||
	    strlen(what->library) >= sizeof late.library ||
	    strlen(what->function) >= sizeof late.function)
		return err_new("%s: its path is too long", what->library);
	strcpy(late.text, what->text);
	strcpy(late.library, what->library);
	strcpy(late.function, what->function);
	memcpy(bytes, inject_code, size);
	cpu_fill_saved(&b->state, bytes + (inject_saved - inject_code));
	if (!borrow_write(b, data, &late, sizeof late) || !borrow_write(b, code, bytes, size))
		return err_errno("process %d: its memory cannot be written", (int)b->pid);
	return NULL;
}

/* The thread is held at a safe place. *data: where struct late is. */
static struct err *begin_thread(struct borrow *b, const struct spot_functions *f,
				const struct inject *what, uint64_t *data)
{
	uint64_t code = 0, result = 0;
	struct err *e = borrow_map(b, f->mmap, f->restorer, CODE_SIZE, PROT_READ | PROT_EXEC,
				   &code);
	if (!e)
		e = borrow_map(b, f->mmap, f->restorer, DATA_SIZE, PROT_READ | PROT_WRITE, data);
	if (!e)
		e = fill(b, f, what, code, *data);
	if (e)
		return e;
	const uint64_t arguments[6] = {*data + offsetof(struct late, thread), 0, code, *data, 0, 0};
	e = borrow_call(b, f->pthread_create, arguments,
			code + (uint64_t)(inject_done - inject_code), &result);
	if (!e && result)
		e = err_new("process %d: it cannot begin a thread: %s", (int)b->pid,
			    strerror((int)result));
	return e;
}

/* ---- finding a thread ---- */

struct search {
	pid_t pid;
	struct spots *spots;
	const struct inject *what;
	struct inject_report *report;
	const char *why; /* what the last thread was refused for */
	bool done;
	uint64_t data;
};

static char state_of(pid_t pid, pid_t tid)
{
	char name[32], *end;
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/stat", (int)tid);
	struct err *e = process_file(pid, name, &text);
	end = e ? NULL : strrchr(buf_text(&text), ')');
	char state = end && end[1] ? end[2] : 'X';
	err_free(e);
	buf_free(&text);
	return state;
}

static void say_back(const struct search *s)
{
	char path[64];
	const uint32_t back = 1;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process_task(s->pid));
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (pwrite(fd, &back, sizeof back, (off_t)(s->data + offsetof(struct late, back))) < 0)
		errno = 0; /* it has ended */
	close(fd);
}

/* Tries one thread. */
static struct err *try_thread(struct search *s, pid_t tid)
{
	struct borrow b;
	uint64_t start = now_ns();
	switch (borrow_stop(s->pid, tid, &b)) {
	case BORROW_FORBIDDEN:
		return process_forbidden(s->pid, tid);
	case BORROW_STOPPED:
		return err_new("process %d is stopped: 'kill -CONT %d' lets it go on", (int)s->pid,
			       (int)s->pid);
	case BORROW_BUSY:
		s->why = b.why ? b.why : s->why;
		return NULL;
	case BORROW_GONE:
		return NULL;
	case BORROW_HELD:
		break;
	}
	s->report->looks++;
	struct err *e = NULL;
	if (spot_is_good(s->spots, &b, &s->why)) {
		e = begin_thread(&b, spots_functions(s->spots), s->what, &s->data);
		s->done = !e;
	}
	borrow_end(&b);
	if (s->done)
		say_back(s);
	s->report->tid = tid;
	s->report->held_ns = now_ns() - start;
	return e;
}

/* Threads that wait come first: they are disturbed least, and most of them are at a safe place. */
static struct err *try_all(struct search *s)
{
	pid_t *tids;
	size_t count;
	struct err *e = process_tasks(s->pid, &tids, &count);
	for (int running = 0; running < 2 && !e && !s->done; running++)
		for (size_t i = 0; i < count && !e && !s->done; i++) {
			char state = state_of(s->pid, tids[i]);
			if (running ? state == 'R' : state == 'S')
				e = try_thread(s, tids[i]);
		}
	free(tids);
	return e;
}

static struct err *search(struct search *s)
{
	uint64_t start = now_ns();
	struct process_status status;
	struct err *e = NULL;
	s->why = "all its threads wait in the kernel";
	while (!e && !s->done && now_ns() - start < PATIENCE_NS) {
		e = try_all(s);
		s->report->waiting_ns = now_ns() - start;
		if (!e && !s->done)
			nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	if (e || s->done)
		return e;
	if (!process_status(s->pid, &status))
		return err_new("process %d has ended", (int)s->pid);
	return err_new(
		"process %d: no thread was at a safe place for 2 seconds (of the last one: %s): try "
		"again",
		(int)s->pid, s->why);
}

/* ---- loading ---- */

static bool read_late(pid_t pid, uint64_t at, struct late *out)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process_task(pid));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0 && pread(fd, out, sizeof *out, (off_t)at) == (ssize_t)sizeof *out;
	if (fd >= 0)
		close(fd);
	return good;
}

/* ---- what is left of it ---- */

/* The code as it is copied, but for what differs each time; or a page into which it was to be copied. */
static bool is_left(const uint8_t *page)
{
	static const uint8_t empty[CODE_SIZE];
	return !memcmp(page, inject_code, (size_t)(inject_saved - inject_code)) ||
	       !memcmp(page, empty, sizeof empty);
}

bool inject_has_left(pid_t pid, uint64_t start, uint64_t end)
{
	const uint64_t step = (uint64_t)sysconf(_SC_PAGESIZE);
	uint8_t page[CODE_SIZE];
	char path[64];
	bool good = start < end && start % step == 0 && end - start <= LEFT_PAGES * step;
	snprintf(path, sizeof path, "/proc/%d/mem", (int)process_task(pid));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	for (uint64_t at = start; good && at < end; at += step)
		good = fd >= 0 && pread(fd, page, sizeof page, (off_t)at) == (ssize_t)sizeof page &&
		       is_left(page);
	if (fd >= 0)
		close(fd);
	return good;
}

/* ---- waiting ---- */

/* Waits until the new thread has loaded the library: its function gives back the memory. */
static struct err *wait_loaded(const struct search *s)
{
	uint64_t start = now_ns();
	struct late late;
	struct process_status status;
	while (now_ns() - start < LOAD_NS) {
		if (!read_late(s->pid, s->data, &late))
			return process_status(process_task(s->pid), &status) && status.state != 'Z'
				       ? NULL
				       : err_new("process %d has ended", (int)s->pid);
		if (late.state == LATE_LOADED)
			return NULL;
		late.why[sizeof late.why - 1] = 0;
		if (late.state == LATE_FAILED)
			return err_new("process %d: it cannot load the agent: %s", (int)s->pid,
				       late.why);
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	return err_new(
		"process %d: it does not finish loading the agent: does a thread hang in dlopen?",
		(int)s->pid);
}

struct err *inject_library(pid_t pid, const struct inject *what, struct inject_report *report)
{
	struct inject_report own;
	struct search s = {.pid = pid, .what = what, .report = report ? report : &own};
	*s.report = (struct inject_report){0};
	struct err *e = refuse(pid, what);
	if (!e)
		e = spots_open(pid, otherwise(what), &s.spots);
	if (!e)
		e = search(&s);
	spots_close(s.spots);
	return e ? e : wait_loaded(&s);
}

struct err *inject_check(pid_t pid, const struct inject *what)
{
	struct spots *spots = NULL;
	struct err *e = refuse(pid, what);
	if (!e)
		e = spots_open(pid, otherwise(what), &spots);
	spots_close(spots);
	return e;
}
