/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread of x86-64 stops for an interrupt, rax tells whether and how the kernel will begin its call again. */
#include "inject/cpu.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#define REGSET_SHADOW 0x204
#define DIRECTION 0x400u /* of eflags */
#define CODE_64 0x33u

/* The kernel's own, which programs never see. */
#define RESTART_SYS (-512)
#define RESTART_NO_INTR (-513)
#define RESTART_NO_HAND (-514)
#define RESTART_BLOCK (-516)

#define XSTATE_MAGIC1 0x46505853u
#define XSTATE_MAGIC2 0x46505845u
#define XSTATE_SOFTWARE 464 /* bytes of the area that belong to software */
#define FRAME_FLAGS 7       /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */

const bool cpu_restorer_in_vdso = false;

struct context { /* struct sigcontext_64 */
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, fault, vectors, reserved[8];
};

/* struct rt_sigframe of the kernel */
struct frame {
	uint64_t restorer;
	uint64_t flags, link;
	struct {
		uint64_t sp;
		uint32_t flags, reserved;
		uint64_t size;
	} stack;
	struct context context;
	uint64_t mask;
	siginfo_t info;
};

struct software { /* struct _fpx_sw_bytes */
	uint32_t magic1, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

static struct user_regs_struct *general(const struct cpu_state *s)
{
	return (struct user_regs_struct *)(uintptr_t)s->general;
}

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

const char *cpu_read(pid_t tid, struct cpu_state *s)
{
	uint64_t shadow;
	size_t size = sizeof shadow;
	s->general_size = sizeof(struct user_regs_struct);
	s->vector_size = sizeof s->vector;
	if (!read_set(tid, NT_PRSTATUS, s->general, &s->general_size) ||
	    s->general_size != sizeof(struct user_regs_struct) || general(s)->cs != CODE_64 ||
	    !read_set(tid, NT_X86_XSTATE, s->vector, &s->vector_size) ||
	    s->vector_size == sizeof s->vector)
		return "its registers cannot be read";
	return read_set(tid, REGSET_SHADOW, &shadow, &size) ? "it has a shadow stack" : NULL;
}

bool cpu_write_general(pid_t tid, const struct cpu_state *s)
{
	return write_set(tid, NT_PRSTATUS, s->general, s->general_size);
}

bool cpu_write_vectors(pid_t tid, const struct cpu_state *s)
{
	return write_set(tid, NT_X86_XSTATE, s->vector, s->vector_size);
}

uint64_t cpu_pc(const struct cpu_state *s)
{
	return general(s)->rip;
}

uint64_t cpu_sp(const struct cpu_state *s)
{
	return general(s)->rsp;
}

uint64_t cpu_done_result(const struct cpu_state *s)
{
	return general(s)->r10;
}

/* Calls that wait, have done nothing yet if they end with EINTR, and do not begin again by themselves. */
static bool ends_with_eintr(long number)
{
	switch (number) {
	case SYS_epoll_wait:
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
	struct user_regs_struct *r = general(s);
	long number = (long)r->orig_rax, result = (long)r->rax;
	*out = (struct cpu_call){-1, -1, false};
	bool in_call = number >= 0 && code[2] == 0x0f && code[3] == 0x05;
	if (in_call && (result == RESTART_SYS || result == RESTART_NO_INTR ||
			result == RESTART_NO_HAND || result == RESTART_BLOCK)) {
		out->first = number;
		if (number == SYS_restart_syscall && seen->number >= 0)
			out->first = seen->number;
		out->number = result == RESTART_BLOCK ? SYS_restart_syscall : number;
	} else if (in_call && result == -EINTR && seen->number == number && seen->pc == r->rip &&
		   seen->sp == r->rsp && ends_with_eintr(number)) {
		*out = (struct cpu_call){number, number, true};
	}
	r->orig_rax = (unsigned long long)-1;
}

void cpu_settle_ended(struct cpu_state *s, const struct cpu_seen *seen, const uint8_t code[8],
		      struct cpu_call *out)
{
	const struct user_regs_struct *r = general(s);
	(void)seen;
	cpu_settle(s, &(struct cpu_seen){.number = (long)r->orig_rax, .pc = r->rip, .sp = r->rsp},
		   code, out);
}

bool cpu_must_look_again(const struct cpu_seen *seen, const struct cpu_call *call)
{
	(void)seen;
	(void)call;
	return false; /* rax has told it */
}

static size_t vector_room(const struct cpu_state *s)
{
	return (s->vector_size + 4 + 63) & ~(size_t)63;
}

/* The frame itself begins at 8 beyond a multiple of 16, as after a call. */
#define FRAME_ROOM 512u
#define FRAME_AT 8u
_Static_assert(sizeof(struct frame) + FRAME_AT <= FRAME_ROOM, "");

size_t cpu_frame_size(const struct cpu_state *s)
{
	return FRAME_ROOM + vector_room(s);
}

static void fill_vectors(const struct cpu_state *s, uint8_t *out)
{
	const uint32_t end = XSTATE_MAGIC2;
	struct software software = {.magic1 = XSTATE_MAGIC1};
	memcpy(out, s->vector, s->vector_size);
	/* In the register set, the kernel's features stand where the frame has this. */
	memcpy(&software.features, s->vector + XSTATE_SOFTWARE, sizeof software.features);
	software.size = (uint32_t)s->vector_size;
	software.extended_size = software.size + sizeof end;
	memcpy(out + XSTATE_SOFTWARE, &software, sizeof software);
	memcpy(out + s->vector_size, &end, sizeof end);
}

void cpu_frame(const struct cpu_state *s, const struct cpu_call *call, uint64_t mask, uint64_t at,
	       uint64_t restorer, void *out)
{
	const struct user_regs_struct *r = general(s);
	struct frame frame = {
		.restorer = restorer,
		.flags = FRAME_FLAGS,
		.stack.flags = 0xbad, /* the kernel keeps the thread's alternate stack then */
		.mask = mask,
		.context = {.r8 = r->r8,
			    .r9 = r->r9,
			    .r10 = r->r10,
			    .r11 = r->r11,
			    .r12 = r->r12,
			    .r13 = r->r13,
			    .r14 = r->r14,
			    .r15 = r->r15,
			    .di = r->rdi,
			    .si = r->rsi,
			    .bp = r->rbp,
			    .bx = r->rbx,
			    .dx = r->rdx,
			    .ax = r->rax,
			    .cx = r->rcx,
			    .sp = r->rsp,
			    .ip = r->rip,
			    .flags = r->eflags,
			    .cs = (uint16_t)r->cs,
			    .ss = (uint16_t)r->ss,
			    .vectors = at + FRAME_ROOM},
	};
	if (call->number >= 0) { /* the rest of a time is lost by rt_sigreturn: it begins anew */
		frame.context.ip -= 2;
		frame.context.ax = (uint64_t)call->first;
	}
	memset(out, 0, cpu_frame_size(s));
	memcpy((uint8_t *)out + FRAME_AT, &frame, sizeof frame);
	fill_vectors(s, (uint8_t *)out + FRAME_ROOM);
}

void cpu_set_function(struct cpu_state *s, uint64_t frame, uint64_t restorer, uint64_t function,
		      const uint64_t arguments[6])
{
	struct user_regs_struct *r = general(s);
	(void)restorer; /* it is in the frame, where a call would have put it */
	r->rdi = arguments[0];
	r->rsi = arguments[1];
	r->rdx = arguments[2];
	r->rcx = arguments[3];
	r->r8 = arguments[4];
	r->r9 = arguments[5];
	r->rax = 0;
	r->rbp = 0;
	r->rsp = frame + FRAME_AT;
	r->rip = function;
	r->eflags &= ~(unsigned long long)DIRECTION;
	r->orig_rax = (unsigned long long)-1;
}

bool cpu_enter_call(pid_t tid, const struct cpu_state *s, const struct cpu_call *call)
{
	struct cpu_state entered = *s;
	general(&entered)->orig_rax = (unsigned long long)call->number;
	general(&entered)->rax = (unsigned long long)-ENOSYS;
	return cpu_write_general(tid, &entered);
}

bool cpu_begin_again(pid_t tid, const struct cpu_state *s, const struct cpu_call *call,
		     bool interrupted)
{
	struct cpu_state again = *s;
	struct user_regs_struct *r = general(&again);
	r->orig_rax = (unsigned long long)-1;
	r->rax = (unsigned long long)(interrupted ? -EINTR : call->number);
	if (!interrupted)
		r->rip -= 2;
	return cpu_write_general(tid, &again);
}

bool cpu_skip_call(pid_t tid)
{
	struct cpu_state now;
	now.general_size = sizeof(struct user_regs_struct);
	if (!read_set(tid, NT_PRSTATUS, now.general, &now.general_size))
		return false;
	general(&now)->orig_rax = (unsigned long long)-1;
	return cpu_write_general(tid, &now);
}

/* mov $15, %rax; syscall */
long cpu_find_restorer(const uint8_t *bytes, size_t size)
{
	static const uint8_t wanted[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	for (size_t at = 0; at + sizeof wanted <= size; at++)
		if (!memcmp(bytes + at, wanted, sizeof wanted))
			return (long)at;
	return -1;
}

void cpu_fill_saved(const struct cpu_state *s, void *out)
{
	(void)s;
	(void)out; /* the whole state is set at once */
}

/* ---- GS ---- */

const bool cpu_has_segment = true;

bool cpu_segment(pid_t tid, uint64_t *base)
{
	errno = 0;
	*base = (uint64_t)ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user, regs.gs_base), 0);
	long selector = ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user, regs.gs), 0);
	return !errno && !selector;
}

bool cpu_set_segment(pid_t tid, uint64_t base)
{
	return !ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.gs_base), base);
}
