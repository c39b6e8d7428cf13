/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a thread of aarch64 stops for an interrupt, the kernel has set PC back to the `svc` already, and x0 to what it was
 * before the call. x7 tells tracers whether the stop is at the entry or the exit of a call, and gets its former value after
 * it: so it must be right before (inject_saved).
 */
#include "inject/cpu.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <asm/ptrace.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>

#define SVC 0xd4000001u
#define BTYPE (3ull << 10) /* of pstate: the last branch was an indirect one */
#define SVE_LIVE 1u
#define REGSET_SVE 0x405
#define REGSET_STREAMING 0x40b
#define REGSET_ZA 0x40c
#define REGSET_GCS 0x410

enum { SP = 31, PC = 32, PSTATE = 33, GENERAL = 34 };

const bool cpu_restorer_in_vdso = true;

/* struct rt_sigframe of the kernel */
struct frame {
	siginfo_t info;
	ucontext_t context;
};

struct vector_record {
	uint32_t magic, size;
};
#define FPSIMD_RECORD 0x46508001u

struct vector_header { /* struct user_sve_header */
	uint32_t size, max_size;
	uint16_t length, max_length, flags, reserved;
};

static bool read_set(pid_t tid, unsigned set, void *out, size_t *size)
{
	struct iovec all = {out, *size};
	if (ptrace(PTRACE_GETREGSET, tid, set, &all))
		return false;
	*size = all.iov_len;
	return true;
}

static bool write_set(pid_t tid, unsigned set, const void *bytes, size_t size)
{
	struct iovec all = {(void *)(uintptr_t)bytes, size};
	return !ptrace(PTRACE_SETREGSET, tid, set, &all);
}

/* Long vectors in use: their upper parts would be lost by a call. */
static bool has_long_vectors(pid_t tid)
{
	struct vector_header h = {0};
	size_t size = sizeof h;
	if (read_set(tid, REGSET_SVE, &h, &size) && size >= sizeof h && h.flags & SVE_LIVE)
		return true;
	size = sizeof h;
	if (read_set(tid, REGSET_STREAMING, &h, &size) && size >= sizeof h && h.flags & SVE_LIVE)
		return true;
	size = sizeof h;
	return read_set(tid, REGSET_ZA, &h, &size) && size >= sizeof h && h.size > sizeof h;
}

const char *cpu_read(pid_t tid, struct cpu_state *s)
{
	uint64_t guarded[3] = {0};
	size_t size = sizeof guarded;
	s->general_size = GENERAL * 8;
	s->vector_size = sizeof(struct user_fpsimd_state);
	if (!read_set(tid, NT_PRSTATUS, s->general, &s->general_size) ||
	    s->general_size != GENERAL * 8 ||
	    !read_set(tid, NT_PRFPREG, s->vector, &s->vector_size))
		return "its registers cannot be read";
	if (read_set(tid, REGSET_GCS, guarded, &size) && guarded[0] & 1)
		return "it has a guarded control stack";
	return has_long_vectors(tid) ? "it uses long vectors" : NULL;
}

bool cpu_write_general(pid_t tid, const struct cpu_state *s)
{
	return write_set(tid, NT_PRSTATUS, s->general, s->general_size);
}

bool cpu_write_vectors(pid_t tid, const struct cpu_state *s)
{
	return write_set(tid, NT_PRFPREG, s->vector, s->vector_size);
}

uint64_t cpu_pc(const struct cpu_state *s)
{
	return s->general[PC];
}

uint64_t cpu_sp(const struct cpu_state *s)
{
	return s->general[SP];
}

uint64_t cpu_done_result(const struct cpu_state *s)
{
	return s->general[10];
}

static bool is_svc(const uint8_t *code)
{
	uint32_t word;
	memcpy(&word, code, sizeof word);
	return word == SVC;
}

/* Calls that wait, have done nothing yet if they end with EINTR, and do not begin again by themselves. */
static bool ends_with_eintr(long number)
{
	switch (number) {
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_msgrcv:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_read:
		return true;
	default:
		return false;
	}
}

void cpu_settle(struct cpu_state *s, const struct cpu_seen *seen, const uint8_t code[8],
		struct cpu_call *out)
{
	*out = (struct cpu_call){-1, -1, false};
	if (is_svc(code + 4)) {
		out->number = out->first = (long)s->general[8];
		if (out->number == SYS_restart_syscall && seen->number >= 0)
			out->first = seen->number;
		s->general[PC] += 4;
	} else if (is_svc(code) && (long)s->general[0] == -EINTR && seen->pc == s->general[PC] &&
		   seen->sp == s->general[SP] && seen->number == (long)s->general[8] &&
		   ends_with_eintr(seen->number)) {
		*out = (struct cpu_call){seen->number, seen->number, true};
		s->general[0] = seen->arguments[0];
	}
}

static bool may_keep_its_rest(const struct cpu_seen *seen)
{
	switch (seen->number) {
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return true;
	case SYS_futex:
		return seen->arguments[3];
	default:
		return false;
	}
}

void cpu_settle_ended(struct cpu_state *s, const struct cpu_seen *seen, const uint8_t code[8],
		      struct cpu_call *out)
{
	cpu_settle(s, seen, code, out); /* the first argument is where the result is now */
}

bool cpu_must_look_again(const struct cpu_seen *seen, const struct cpu_call *call)
{
	return call->number >= 0 && call->number != SYS_restart_syscall && may_keep_its_rest(seen);
}

size_t cpu_frame_size(const struct cpu_state *s)
{
	(void)s;
	return (sizeof(struct frame) + 63) & ~(size_t)63;
}

void cpu_frame(const struct cpu_state *s, const struct cpu_call *call, uint64_t mask, uint64_t at,
	       uint64_t restorer, void *out)
{
	struct frame *frame = out;
	ucontext_t *c = &frame->context;
	struct vector_record record = {FPSIMD_RECORD, 528};
	struct user_fpsimd_state vectors;
	(void)at;
	(void)restorer;
	memset(frame, 0, sizeof *frame);
	memcpy(&vectors, s->vector, sizeof vectors);
	c->uc_stack.ss_flags = 0xbad; /* the kernel keeps the thread's alternate stack then */
	memcpy(&c->uc_sigmask, &mask, sizeof mask);
	memcpy(c->uc_mcontext.regs, s->general, sizeof c->uc_mcontext.regs);
	c->uc_mcontext.sp = s->general[SP];
	c->uc_mcontext.pc = s->general[PC];
	c->uc_mcontext.pstate = s->general[PSTATE];
	if (call->number >= 0) { /* the rest of a time is lost by rt_sigreturn: it begins anew */
		c->uc_mcontext.pc -= 4;
		c->uc_mcontext.regs[8] = (uint64_t)call->first;
	}
	uint8_t *records = (uint8_t *)c->uc_mcontext.__reserved;
	memcpy(records, &record, sizeof record);
	memcpy(records + 8, &vectors.fpsr, 4);
	memcpy(records + 12, &vectors.fpcr, 4);
	memcpy(records + 16, vectors.vregs, sizeof vectors.vregs);
}

void cpu_set_function(struct cpu_state *s, uint64_t frame, uint64_t restorer, uint64_t function,
		      const uint64_t arguments[6])
{
	memcpy(s->general, arguments, 6 * sizeof *arguments);
	s->general[29] = 0;
	s->general[30] = restorer;
	s->general[SP] = frame;
	s->general[PC] = function;
	s->general[PSTATE] &= ~BTYPE;
}

static bool set_number(pid_t tid, int number)
{
	return write_set(tid, NT_ARM_SYSTEM_CALL, &number, sizeof number);
}

/* The number comes first: if we die between the two, inject_done has the arguments of the call, too. */
bool cpu_enter_call(pid_t tid, const struct cpu_state *s, const struct cpu_call *call)
{
	struct cpu_state entered = *s;
	entered.general[8] = (uint64_t)call->number;
	return set_number(tid, (int)call->number) && cpu_write_general(tid, &entered);
}

bool cpu_begin_again(pid_t tid, const struct cpu_state *s, const struct cpu_call *call,
		     bool interrupted)
{
	struct cpu_state again = *s;
	(void)call; /* x8 still has its number */
	if (interrupted)
		again.general[0] = (uint64_t)-EINTR;
	else
		again.general[PC] -= 4;
	return cpu_write_general(tid, &again);
}

bool cpu_skip_call(pid_t tid)
{
	return set_number(tid, -1);
}

/* mov x8, #139; svc #0 */
long cpu_find_restorer(const uint8_t *bytes, size_t size)
{
	static const uint32_t wanted[] = {0xd2801168u, SVC};
	for (size_t at = 0; at + sizeof wanted <= size; at += 4)
		if (!memcmp(bytes + at, wanted, sizeof wanted))
			return (long)at;
	return -1;
}

void cpu_fill_saved(const struct cpu_state *s, void *out)
{
	memcpy(out, s->general, 64);
}

/* ---- there is none ---- */

const bool cpu_has_segment = false;

bool cpu_segment(pid_t tid, uint64_t *base)
{
	(void)tid;
	*base = 0;
	return false;
}

bool cpu_set_segment(pid_t tid, uint64_t base)
{
	(void)tid;
	(void)base;
	return false;
}
