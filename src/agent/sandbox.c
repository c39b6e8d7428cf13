/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that restricts its own system calls (seccomp) does not expect ours, and may be killed for one of
 * them. So we first try its filter on our calls. If the filter refuses one of them, we leave the program
 * alone from then on: our signal is ignored, and the agent makes no system calls any more.
 */
#include "agent/agent.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/cpu.h"
#include "agent/sentinel.h"
#include "safe/readable.h"

#define PAGE 4096u

REAL_SLOT(prctl);

/* Our system calls, with the arguments that a filter may look at. The last ones are needed for POSIX
   timers only. */
#define OF_TIMERS 4
/* The first ones are needed for reads and writes only. */
#define OF_TRANSFERS 5
static const struct {
	int number;
	uint64_t first, second;
} ours[] = {
	{SYS_fstat, 3, 0},
	{SYS_readlinkat, (uint32_t)-100, 0},
	{SYS_getsockname, 3, 0},
	{SYS_getpeername, 3, 0},
	{SYS_getsockopt, 3, 1},
	{SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, 0},
	{SYS_rt_sigprocmask, 0, 0},
	{SYS_rt_sigreturn, 0, 0},
	{SYS_rt_sigaction, WIRE_SIGNAL, 0},
	{SYS_sigaltstack, 0, 0},
	{SYS_gettid, 0, 0},
	{SYS_getpid, 0, 0},
	{SYS_futex, 0, 1},
	{SYS_socket, 1, 1},
	{SYS_connect, 3, 0},
	{SYS_sendto, 3, 0},
	{SYS_recvmsg, 3, 0},
	{SYS_close, 3, 0},
	{SYS_tgkill, 0, 0},
	{SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, 0},
	{SYS_timer_settime, 0, 0},
	{SYS_timer_delete, 0, 0},
};

static uint32_t calculate(uint16_t operation, uint32_t a, uint32_t by)
{
	switch (operation) {
	case BPF_ADD:
		return a + by;
	case BPF_SUB:
		return a - by;
	case BPF_MUL:
		return a * by;
	case BPF_DIV:
		return by ? a / by : 0;
	case BPF_OR:
		return a | by;
	case BPF_AND:
		return a & by;
	case BPF_XOR:
		return a ^ by;
	case BPF_LSH:
		return by < 32 ? a << by : 0;
	case BPF_RSH:
		return by < 32 ? a >> by : 0;
	default: /* BPF_NEG */
		return -a;
	}
}

/* How many instructions a jump skips. */
static uint32_t jump(const struct sock_filter *f, uint32_t a, uint32_t by)
{
	switch (BPF_OP(f->code)) {
	case BPF_JA:
		return f->k;
	case BPF_JEQ:
		return a == by ? f->jt : f->jf;
	case BPF_JGT:
		return a > by ? f->jt : f->jf;
	case BPF_JGE:
		return a >= by ? f->jt : f->jf;
	default: /* BPF_JSET */
		return a & by ? f->jt : f->jf;
	}
}

static uint32_t load(const struct sock_filter *f, const struct seccomp_data *call,
		     const uint32_t *memory)
{
	uint32_t word = 0;
	switch (BPF_MODE(f->code)) {
	case BPF_ABS:
		if (f->k <= sizeof *call - sizeof word)
			memcpy(&word, (const char *)call + f->k, sizeof word);
		return word;
	case BPF_MEM:
		return memory[f->k % BPF_MEMWORDS];
	case BPF_LEN:
		return sizeof *call;
	default: /* BPF_IMM */
		return f->k;
	}
}

/* What the filter decides about a system call. Filters only jump forward, so this ends. */
static uint32_t judge(const struct sock_fprog *program, const struct seccomp_data *call)
{
	uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = {0};
	for (uint64_t at = 0; at < program->len; at++) {
		const struct sock_filter *f = &program->filter[at];
		uint32_t by = BPF_SRC(f->code) == BPF_X ? x : f->k;
		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			a = load(f, call, memory);
			break;
		case BPF_LDX:
			x = load(f, call, memory);
			break;
		case BPF_ST:
			memory[f->k % BPF_MEMWORDS] = a;
			break;
		case BPF_STX:
			memory[f->k % BPF_MEMWORDS] = x;
			break;
		case BPF_ALU:
			a = calculate(BPF_OP(f->code), a, by);
			break;
		case BPF_JMP:
			at += jump(f, a, by);
			break;
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? a : f->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(f->code) == BPF_TAX)
				x = a;
			else
				a = x;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static bool can_read(const void *from, size_t size)
{
	uint64_t at = (uint64_t)from & ~(uint64_t)7, end = (uint64_t)from + size;
	for (; at < end; at = (at | (PAGE - 1)) + 1)
		if (!readable_word(at))
			return false;
	return true;
}

static bool lets_us(const struct sock_fprog *program)
{
	if (!can_read(program, sizeof *program) ||
	    !can_read(program->filter, program->len * sizeof *program->filter))
		return true; /* the kernel will refuse such a filter */
	size_t count = sizeof ours / sizeof *ours - (agent.sampler == WIRE_TIMERS ? 0 : OF_TIMERS);
	for (size_t i = agent.watches_pauses ? 0 : OF_TRANSFERS; i < count; i++) {
		struct seccomp_data call = {.nr = ours[i].number,
					    .arch = CPU_AUDIT,
					    .args = {ours[i].first, ours[i].second}};
		uint32_t action = judge(program, &call) & SECCOMP_RET_ACTION_FULL;
		if (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG)
			return false;
	}
	return true;
}

/* Ends sampling in this program. */
static void leave_alone(void)
{
	/* A child of vfork is not sampled, and shares its parent's memory: nothing to do. */
	if (agent_self && agent_self->shared.process != getpid())
		return;
	if (!atomic_exchange(&agent.on, false))
		return;
	agent.interrupts = false;
	if (AGENT_CALLS)
		sentinel_withdraw((uint64_t)__builtin_frame_address(0));
	agent_self = NULL;
	signals_uninstall(true);
	atomic_fetch_add(&agent.arena->restricted, 1);
}

void sandbox_begin(unsigned mode, unsigned flags, const void *arguments)
{
	bool strict = mode == SECCOMP_SET_MODE_STRICT && !flags;
	bool filter = mode == SECCOMP_SET_MODE_FILTER && arguments && atomic_load(&agent.on);
	alternate_stack_give_up(); /* later it might not be allowed */
	agent.follow = false;      /* nor would its system call be */
	if (strict || (filter && !lets_us(arguments)))
		leave_alone();
}

AGENT_EXPORT int prctl(int option, ...)
{
	unsigned long a[4];
	va_list list;
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_FILTER)
		sandbox_begin(SECCOMP_SET_MODE_FILTER, 0, (const void *)a[1]);
	else if (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_STRICT)
		sandbox_begin(SECCOMP_SET_MODE_STRICT, 0, NULL);
	return REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}
