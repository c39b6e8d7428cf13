/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single steps by ptrace. Of a program with several threads, the first is stepped and the others
 * run freely; children go their own way.
 */
#include "step/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "process/registers.h"
#include "process/remote.h"

size_t target_read(const struct target *target, uint64_t address, void *out, size_t size)
{
	struct iovec here = {out, size},
		     there = {(void *)(uintptr_t)(address + target->guest_base), size};
	ssize_t got = process_vm_readv(target->pid, &here, 1, &there, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

bool target_word(const struct target *target, uint64_t address, uint64_t *out)
{
	return target_read(target, address, out, sizeof *out) == sizeof *out;
}

/* Which of the kernel's words has the flags; and the thread pointer, if it is not a set of its own. */
#define WORDS_MAX 40u
#define FLAGS_AARCH64 33u
#define FLAGS_X86_64 18u
#define THREAD_X86_64 21u

static void read_flags(struct target *t)
{
	uint64_t words[WORDS_MAX] = {0};
	struct iovec all = {words, sizeof words}, thread = {&t->now.thread, sizeof t->now.thread};
	bool pushes = t->cpu->link == CPU_NO_REGISTER;
	if (ptrace(PTRACE_GETREGSET, t->pid, NT_PRSTATUS, &all))
		return;
	t->now.flags = words[pushes ? FLAGS_X86_64 : FLAGS_AARCH64];
	if (pushes)
		t->now.thread = words[THREAD_X86_64];
	else
		ptrace(PTRACE_GETREGSET, t->pid, NT_ARM_TLS, &thread);
}

static bool read_state(struct target *t)
{
	struct remote_thread thread = {.tid = t->pid};
	if (!registers_read(&thread))
		return false;
	memcpy(t->now.registers, thread.registers, sizeof t->now.registers);
	t->now.pc = thread.pc;
	read_flags(t);
	return true;
}

/* Waits for the next stop: what signal is to be delivered, 0 for none, -1 where it has ended. */
static int wait_stop(struct target *t)
{
	int status;
	pid_t got;
	do
		got = waitpid(t->pid, &status, __WALL);
	while (got < 0 && errno == EINTR);
	if (got != t->pid || !WIFSTOPPED(status)) {
		t->pid = got == t->pid ? 0 : t->pid;
		return -1;
	}
	return status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

static void run_child(const int *go, char **argv)
{
	char byte;
	if (read(go[0], &byte, 1) == 1) {
		execvp(argv[0], argv);
	}
	_exit(127);
}

static struct err *ptrace_start(struct target *t, char **argv)
{
	int go[2];
	if (pipe2(go, O_CLOEXEC))
		return err_errno("pipe");
	t->pid = fork();
	if (!t->pid)
		run_child(go, argv);
	close(go[0]);
	if (t->pid < 0 || ptrace(PTRACE_SEIZE, t->pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) {
		close(go[1]);
		return err_errno("cannot trace");
	}
	bool started = write(go[1], "", 1) == 1;
	close(go[1]);
	t->isa = isa_for_machine(native_machine);
	t->cpu = unwind_cpu_for(native_machine);
	if (!started || wait_stop(t) || !read_state(t))
		return err_new("%s: cannot be started", argv[0]);
	return NULL;
}

/*
 * Stepping an aarch64 load-exclusive would lose the reservation, and the loop around it would
 * never end: such sequences run in one go, up to a breakpoint after each of their exits.
 */
#define EXCLUSIVE_MAX 16

static bool is_exclusive(uint32_t word, bool load)
{
	return (word & 0x3fa00000) == 0x08000000 && !(word >> 22 & 1) == !load;
}

static size_t find_exits(struct target *t, uint64_t *exits)
{
	uint32_t code[EXCLUSIVE_MAX];
	struct insn insn;
	size_t count = 0, words = target_read(t, t->now.pc, code, sizeof code) / 4;
	if (t->cpu->link == CPU_NO_REGISTER || !words || !is_exclusive(code[0], true))
		return 0;
	for (size_t i = 1; i < words; i++) {
		uint64_t at = t->now.pc + 4 * i;
		t->isa->decode((const uint8_t *)&code[i], 4, at, &insn);
		if (insn.kind == INSN_BRANCH && (insn.target < t->now.pc || insn.target > at))
			exits[count++] = insn.target;
		if (is_exclusive(code[i], false)) {
			exits[count++] = at + 4;
			return count;
		}
	}
	return 0;
}

static bool swap_word(struct target *t, uint64_t at, long word, long *old)
{
	errno = 0;
	*old = ptrace(PTRACE_PEEKTEXT, t->pid, at, 0);
	return !errno && !ptrace(PTRACE_POKETEXT, t->pid, at, word);
}

static int step_exclusive(struct target *t, const uint64_t *exits, size_t count)
{
	long old[EXCLUSIVE_MAX], ignored;
	size_t set = 0;
	int got;
	for (; set < count; set++) {
		errno = 0;
		long word = ptrace(PTRACE_PEEKTEXT, t->pid, exits[set], 0);
		uint32_t brk = 0xd4200000;
		memcpy(&word, &brk, sizeof brk);
		if (errno || !swap_word(t, exits[set], word, &old[set]))
			break;
	}
	ptrace(PTRACE_CONT, t->pid, 0, 0);
	got = wait_stop(t);
	while (set-- && t->pid)
		swap_word(t, exits[set], old[set], &ignored);
	return got;
}

static enum target_event ptrace_step(struct target *t)
{
	uint64_t exits[EXCLUSIVE_MAX];
	size_t exit_count = t->signal ? 0 : find_exits(t, exits);
	int got;
	t->delivered = t->signal != 0;
	if (exit_count) {
		got = step_exclusive(t, exits, exit_count);
	} else {
		if (ptrace(PTRACE_SINGLESTEP, t->pid, 0, t->signal))
			return TARGET_ENDED;
		got = wait_stop(t);
	}
	t->signal = got > 0 ? got : 0;
	if (got < 0 || !read_state(t))
		return TARGET_ENDED;
	return got ? TARGET_SIGNAL : TARGET_STEPPED;
}

static uint64_t microseconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static enum target_event ptrace_run(struct target *t, unsigned microseconds)
{
	uint64_t until = microseconds_now() + microseconds;
	const struct timespec nap = {0, 200000};
	bool asked = false;
	if (ptrace(PTRACE_CONT, t->pid, 0, t->signal))
		return TARGET_ENDED;
	for (t->signal = 0;;) {
		siginfo_t info = {0};
		if (waitid(P_PID, (id_t)t->pid, &info, WSTOPPED | WEXITED | WNOWAIT | WNOHANG) &&
		    errno != EINTR)
			return TARGET_ENDED;
		if (info.si_pid) {
			int got = wait_stop(t);
			if (got < 0)
				return TARGET_ENDED;
			if (!got && asked)
				return read_state(t) ? TARGET_STEPPED : TARGET_ENDED;
			ptrace(PTRACE_CONT, t->pid, 0, got);
		} else if (!asked && microseconds_now() >= until) {
			asked = !ptrace(PTRACE_INTERRUPT, t->pid, 0, 0);
		} else {
			nanosleep(&nap, NULL);
		}
	}
}

static struct err *ptrace_refresh(struct target *t, enum recipes_mode mode, struct space *space)
{
	size_t added;
	return space->module_count ? space_refresh(t->pid, mode, space, &added)
				   : space_open(t->pid, mode, space);
}

static void ptrace_end(struct target *t)
{
	if (t->pid <= 0)
		return;
	kill(t->pid, SIGKILL);
	while (waitpid(t->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	t->pid = 0;
}

const struct target_ops target_ptrace = {
	.start = ptrace_start,
	.step = ptrace_step,
	.run = ptrace_run,
	.refresh = ptrace_refresh,
	.end = ptrace_end,
};
