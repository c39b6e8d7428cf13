/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread is borrowed:
 *
 *    SEIZE, INTERRUPT     it stops. If it waited in a system call, cpu_settle knows which one
 *    a signal frame       below its stack's red zone, as if a signal had come; it leads back by rt_sigreturn
 *    registers            those of a call of mmap that returns to rt_sigreturn. From now on it could go on without us
 *    the signal mask      everything is blocked
 *    SYSCALL …            it runs to the exit of mmap, twice: memory for code, memory for data
 *    registers            those of a call of pthread_create that returns to inject_done
 *    SYSCALL …            it runs to the entry of rt_sigreturn there
 *    the way back         that entry becomes the entry of the call that it waited in. Or, if it was in none, the
 *                         call is left out, and the thread gets its own registers at the exit
 *    DETACH
 *
 * No step leaves a state from which the thread could not go on alone, because we may be killed at any moment. The one gap
 * is between two writes at the end on aarch64 (cpu_enter_call).
 */
#include "inject/borrow.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/status.h"

#define STOP_NS 2000000000ull /* for a stop, on a busy machine */
#define CALL_NS 5000000000ull /* for a step of a call: others may hold what it waits for */
#define POLLS 200
#define STEPS_BACK 64
#define SYSCALL_STOP (SIGTRAP | 0x80)

/* ---- stops ---- */

/* Waits until the thread stops. Returns false if it did not in time, or has ended (*status is -1 then). */
static bool wait_stop(pid_t tid, uint64_t patience, int *status)
{
	uint64_t start = now_ns();
	for (unsigned turn = 0;; turn++) {
		pid_t got = waitpid(tid, status, __WALL | WNOHANG);
		if (got == tid && WIFSTOPPED(*status))
			return true;
		if (got == tid || (got < 0 && errno != EINTR)) {
			*status = -1;
			return false;
		}
		if (now_ns() - start > patience) {
			*status = 0;
			return false;
		}
		if (turn > POLLS)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	}
}

static int event_of(int status)
{
	return status >> 16;
}

void borrow_look(pid_t pid, pid_t tid, struct cpu_seen *out)
{
	char path[64], text[256] = "";
	uint64_t *a = out->arguments;
	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	*out = (struct cpu_seen){.number = -1};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	char *at;
	if (size <= 0 || text[0] < '0' || text[0] > '9')
		return;
	out->number = strtol(text, &at, 10);
	for (int i = 0; i < 6; i++)
		a[i] = strtoull(at, &at, 16);
	out->sp = strtoull(at, &at, 16);
	out->pc = strtoull(at, &at, 16);
}

static bool read_memory(const struct borrow *b, uint64_t address, void *out, size_t size)
{
	return pread(b->memory, out, size, (off_t)address) == (ssize_t)size;
}

bool borrow_write(struct borrow *b, uint64_t address, const void *bytes, size_t size)
{
	return pwrite(b->memory, bytes, size, (off_t)address) == (ssize_t)size;
}

static void detach(pid_t tid, int signal)
{
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)signal);
}

/* A critical section of restartable sequences (rseq(2)) would be continued where it must begin again. */
static bool is_in_sequence(const struct borrow *b)
{
	struct __ptrace_rseq_configuration c = {0};
	uint64_t section = 0;
	return ptrace(PTRACE_GET_RSEQ_CONFIGURATION, b->tid, sizeof c, &c) > 0 &&
	       c.rseq_abi_pointer &&
	       read_memory(b, c.rseq_abi_pointer + 8, &section, sizeof section) && section;
}

static void settle(struct borrow *b, const struct cpu_seen *seen)
{
	uint8_t code[8] = {0};
	uint64_t pc = cpu_pc(&b->state);
	if (!read_memory(b, pc - 4, code, sizeof code))
		read_memory(b, pc - 4, code, 4);
	cpu_settle(&b->state, seen, code, &b->call);
}

/* Lets the thread begin its call again, and stops it there. False if something else happens first: then it is let go. */
static bool look_again(struct borrow *b)
{
	int status;
	if (ptrace(PTRACE_SYSCALL, b->tid, NULL, NULL) || !wait_stop(b->tid, STOP_NS, &status))
		return false;
	if (!event_of(status) && WSTOPSIG(status) == SYSCALL_STOP) {
		ptrace(PTRACE_INTERRUPT, b->tid, NULL, NULL);
		ptrace(PTRACE_CONT, b->tid, NULL, NULL);
		if (!wait_stop(b->tid, STOP_NS, &status))
			return false;
		if (event_of(status) == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
			return true;
	}
	detach(b->tid, event_of(status) ? 0 : WSTOPSIG(status));
	b->tid = 0;
	return false;
}

static bool read_state(struct borrow *b, const struct cpu_seen *seen)
{
	b->why = cpu_read(b->tid, &b->state);
	if (!b->why)
		settle(b, seen);
	return !b->why;
}

/* It is stopped by our interrupt. */
static bool take_state(struct borrow *b, const struct cpu_seen *seen)
{
	if (ptrace(PTRACE_SETOPTIONS, b->tid, NULL, PTRACE_O_TRACESYSGOOD) || !read_state(b, seen))
		return false;
	if (cpu_must_look_again(seen, &b->call) && (!look_again(b) || !read_state(b, seen)))
		return false;
	if (is_in_sequence(b))
		b->why = "it is in a restartable sequence";
	return !b->why && !ptrace(PTRACE_GETSIGMASK, b->tid, sizeof b->mask, &b->mask);
}

static enum borrow_stop held(struct borrow *b, const struct cpu_seen *seen)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/mem", (int)b->pid, (int)b->tid);
	b->memory = open(path, O_RDWR | O_CLOEXEC);
	if (b->memory >= 0 && take_state(b, seen))
		return BORROW_HELD;
	if (b->memory >= 0)
		close(b->memory);
	if (b->tid)
		detach(b->tid, 0);
	return BORROW_BUSY;
}

/* Whether an earlier try has seized the thread, which could not be stopped then. */
static bool is_ours(pid_t tid)
{
	struct process_status s;
	int error = errno;
	bool ours = error == EPERM && process_status(tid, &s) && s.tracer == getpid();
	errno = error;
	return ours;
}

enum borrow_stop borrow_stop(pid_t pid, pid_t tid, struct borrow *b)
{
	struct cpu_seen seen;
	int status;
	*b = (struct borrow){.pid = pid, .tid = tid, .memory = -1};
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) && !is_ours(tid))
		return errno == EPERM ? BORROW_FORBIDDEN : BORROW_GONE;
	/* From here on, no signal comes to the thread that we do not see. */
	borrow_look(pid, tid, &seen);
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	if (!wait_stop(tid, STOP_NS, &status))
		return status ? BORROW_GONE : BORROW_BUSY;
	if (event_of(status) == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP)
		return held(b, &seen);
	detach(tid, event_of(status) ? 0 : WSTOPSIG(status));
	return event_of(status) == PTRACE_EVENT_STOP ? BORROW_STOPPED : BORROW_BUSY;
}

/* ---- calls ---- */

static struct err *lost(const struct borrow *b, const char *what)
{
	return err_new("process %d: %s", (int)b->pid, what);
}

/* Runs on to the entry or exit of the next system call. */
static struct err *run_on(struct borrow *b, struct __ptrace_syscall_info *info)
{
	int status;
	do {
		if (ptrace(PTRACE_SYSCALL, b->tid, NULL, NULL) ||
		    !wait_stop(b->tid, CALL_NS, &status)) {
			b->changed = false; /* it finds its way alone, or is gone */
			return lost(b,
				    "it ended, or its borrowed thread did not come back in time");
		}
		/* Signals are blocked: what comes nevertheless is a fault, or a stop of the process. */
		if (!event_of(status) && WSTOPSIG(status) != SYSCALL_STOP)
			return lost(b, "the borrowed thread met a fault");
	} while (event_of(status));
	if (ptrace(PTRACE_GET_SYSCALL_INFO, b->tid, sizeof *info, info) <= 0)
		return lost(b, "its system calls cannot be seen: Linux 5.3 can");
	return NULL;
}

static struct err *prepare(struct borrow *b, uint64_t restorer)
{
	uint8_t frame[CPU_FRAME_MAX] __attribute__((aligned(64)));
	b->frame_size = cpu_frame_size(&b->state);
	b->frame = (cpu_sp(&b->state) - CPU_RED_ZONE - b->frame_size) & ~(uint64_t)63;
	if (b->frame_size > sizeof frame)
		return lost(b, "its registers are too large");
	cpu_frame(&b->state, &b->call, b->mask, b->frame, restorer, frame);
	if (!borrow_write(b, b->frame, frame, b->frame_size))
		return lost(b, "its stack cannot be written");
	return NULL;
}

static struct err *begin_call(struct borrow *b, uint64_t function, const uint64_t arguments[6],
			      uint64_t restorer)
{
	const uint64_t all = UINT64_MAX;
	struct cpu_state now = b->state;
	struct err *e = prepare(b, restorer);
	if (e)
		return e;
	cpu_set_function(&now, b->frame, restorer, function, arguments);
	if (!cpu_write_general(b->tid, &now))
		return lost(b, "its registers cannot be set");
	b->changed = true;
	if (ptrace(PTRACE_SETSIGMASK, b->tid, sizeof all, &all))
		return lost(b, "its signals cannot be blocked");
	return NULL;
}

struct err *borrow_map(struct borrow *b, uint64_t mmap, uint64_t restorer, size_t size,
		       int protection, uint64_t *out)
{
	const uint64_t arguments[6] = {
		0, size, (uint64_t)protection, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
	struct __ptrace_syscall_info info;
	struct err *e = begin_call(b, mmap, arguments, restorer);
	do
		e = e ? e : run_on(b, &info);
	while (!e && info.op != PTRACE_SYSCALL_INFO_EXIT);
	if (e)
		return e;
	if (info.exit.is_error)
		return err_new("process %d: it gets no memory: %s", (int)b->pid,
			       strerror((int)-info.exit.rval));
	*out = (uint64_t)info.exit.rval;
	return NULL;
}

struct err *borrow_call(struct borrow *b, uint64_t function, const uint64_t arguments[6],
			uint64_t done, uint64_t *result)
{
	struct __ptrace_syscall_info info;
	struct cpu_state now;
	struct err *e = begin_call(b, function, arguments, done);
	do
		e = e ? e : run_on(b, &info);
	while (!e && (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != SYS_rt_sigreturn));
	if (e)
		return e;
	if (cpu_read(b->tid, &now))
		return lost(b, "its registers cannot be read");
	*result = cpu_done_result(&now);
	return NULL;
}

/* ---- the way back ---- */

/* Brings a borrowed thread to the entry of rt_sigreturn, if it is not there yet: the way back begins there. */
static bool come_to_entry(struct borrow *b)
{
	struct __ptrace_syscall_info info;
	bool told = ptrace(PTRACE_GET_SYSCALL_INFO, b->tid, sizeof info, &info) > 0;
	for (int i = 0; told && i < STEPS_BACK; i++) {
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_rt_sigreturn)
			return true;
		struct err *e = run_on(b, &info);
		told = !e;
		err_free(e);
	}
	return false;
}

static uint64_t signals_of(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	return line ? strtoull(line + strlen(key), NULL, 16) : 0;
}

/* Those without a handler end no call; while a thread is traced, they wait, too. */
bool borrow_has_signal(pid_t pid, pid_t tid, const uint64_t *mask)
{
	char name[48];
	struct buf text = {0};
	snprintf(name, sizeof name, "task/%d/status", (int)tid);
	struct err *e = process_file(pid, name, &text);
	const char *status = e ? "" : buf_text(&text);
	uint64_t waiting = (signals_of(status, "\nSigPnd:\t") | signals_of(status, "\nShdPnd:\t")) &
			   signals_of(status, "\nSigCgt:\t");
	uint64_t blocked = mask ? *mask : signals_of(status, "\nSigBlk:\t");
	err_free(e);
	buf_free(&text);
	return waiting & ~blocked;
}

static bool restore_rest(struct borrow *b)
{
	return cpu_write_vectors(b->tid, &b->state) &&
	       !ptrace(PTRACE_SETSIGMASK, b->tid, sizeof b->mask, &b->mask);
}

/* A thread that is let go within a call finds a signal there that does not come: those calls that end with EINTR then must
   not be entered here. */
static bool go_back(struct borrow *b)
{
	struct __ptrace_syscall_info info;
	if (!come_to_entry(b))
		return false;
	if (b->call.number >= 0 && !b->call.ended)
		return restore_rest(b) && cpu_enter_call(b->tid, &b->state, &b->call);
	if (!cpu_skip_call(b->tid))
		return false;
	struct err *e = run_on(b, &info);
	err_free(e);
	if (e || !restore_rest(b))
		return false;
	return b->call.ended ? cpu_begin_again(b->tid, &b->state, &b->call,
					       borrow_has_signal(b->pid, b->tid, &b->mask))
			     : cpu_write_general(b->tid, &b->state);
}

/* If that is not possible, the thread goes on by itself: its call returns to rt_sigreturn. */
void borrow_end(struct borrow *b)
{
	if (b->changed)
		go_back(b);
	else if (b->call.ended)
		cpu_begin_again(b->tid, &b->state, &b->call, false);
	detach(b->tid, 0);
	if (b->memory >= 0)
		close(b->memory);
	b->memory = -1;
	b->changed = false;
}
