/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals, between the program and us. Our signal has our handler, and the program cannot block it. The
 * program sees what it would see without us: we remember what it asks for, and give that back. For its other
 * signals we only make sure that their handlers do not block ours.
 *
 * Functions that change the mask for a wait are in waits.c. System calls that the program makes itself are
 * not seen here. The worst effect is that samples are missed.
 */
#include "agent/agent.h"

#include <setjmp.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/sentinel.h"
#include "safe/syscall.h"

#define SIGNALS 65

REAL_SLOT(sigaction);
REAL_SLOT(signal);
REAL_SLOT(sysv_signal);
REAL_SLOT(ssignal);
REAL_SLOT(sigset);
REAL_SLOT(siginterrupt);
REAL_SLOT(sigprocmask);
REAL_SLOT(pthread_sigmask);

/* What the program wants to be done with our signal. */
static struct sigaction wanted;
/* For each signal: whether the program wants our signal blocked while its handler runs. */
static _Atomic bool handler_masks[SIGNALS];

/* The program has handlers that run on alternate stacks of its own, and wants our signal blocked in one of
   them. */
static _Atomic bool uses_alternate_stacks, masks_on_alternate_stacks;

static bool is_on(void)
{
	return atomic_load_explicit(&agent.on, memory_order_relaxed);
}

static void install(int more_flags, struct sigaction *old)
{
	struct sigaction action = {.sa_sigaction = handler_entry,
				   .sa_flags = SA_SIGINFO | SA_RESTART | more_flags};
	/* No handler may jump out of a sample that is half counted. The program's handlers could, and so
	   could libc's: it cancels a thread with a signal that sigfillset leaves out. So all bits are
	   set here. */
	memset(&action.sa_mask, 0xff, sizeof action.sa_mask);
	REAL(sigaction)(WIRE_SIGNAL, &action, old);
}

void signals_install(void)
{
	install(AGENT_LATE ? 0 : SA_ONSTACK, &wanted);
	/* exec.c had it ignored, so that it could not hit this program before now */
	if (!AGENT_LATE && wanted.sa_handler == SIG_IGN)
		wanted.sa_handler = SIG_DFL;
}

void signals_use_program_stack(void)
{
	install(0, NULL);
}

void signals_uninstall(bool may_come)
{
	static const struct sigaction ignore = {.sa_handler = SIG_IGN};
	REAL(sigaction)(WIRE_SIGNAL, may_come ? &ignore : &wanted, NULL);
}

void signals_unblock(void)
{
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, WIRE_SIGNAL);
	REAL(pthread_sigmask)(SIG_UNBLOCK, &ours, NULL);
}

/* The program, or another process, sends the signal that we use. */
void signals_forward(int signal, siginfo_t *info, void *context)
{
	struct agent_thread *t = agent_self;
	if (wanted.sa_handler == SIG_IGN || (t && t->masked))
		return;
	if (wanted.sa_handler != SIG_DFL) {
		if (wanted.sa_flags & SA_SIGINFO)
			wanted.sa_sigaction(signal, info, context);
		else
			wanted.sa_handler(signal);
		return;
	}
	/* The default is to die of it: send it again, so that the program dies when this handler returns. */
	struct sigaction action = {.sa_handler = SIG_DFL};
	REAL(sigaction)(signal, &action, NULL);
	SAFE_SYSCALL(SYS_tgkill, getpid(), SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0), signal, 0);
}

/* ---- handlers ---- */

/* Finds the alternate stack of the program that the thread is on; false: it is on none. */
static bool find_alternate_stack(stack_t *stack)
{
	return atomic_load_explicit(&uses_alternate_stacks, memory_order_relaxed) && is_on() &&
	       SAFE_SYSCALL(SYS_sigaltstack, 0, stack, 0, 0) == 0 && stack->ss_flags & SS_ONSTACK;
}

bool signals_must_stay_blocked(void)
{
	stack_t stack;
	return find_alternate_stack(&stack);
}

static int set_wanted(const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before = wanted;
	if (action) {
		alternate_stack_give_up(); /* the program's handler needs more room */
		wanted = *action;
	}
	if (old)
		*old = before;
	return 0;
}

/* The same action, but its handler does not block our signal. If it runs on an alternate stack of the
   program, it does: that stack has no room for our signal on top of the handler's. */
static struct sigaction for_kernel(const struct sigaction *action)
{
	struct sigaction changed = *action;
	if (changed.sa_flags & SA_ONSTACK) {
		alternate_stack_give_up();
		atomic_store(&uses_alternate_stacks, true);
		sigaddset(&changed.sa_mask, WIRE_SIGNAL);
	} else {
		sigdelset(&changed.sa_mask, WIRE_SIGNAL);
	}
	return changed;
}

AGENT_EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	if (!is_on() || signal <= 0 || signal >= SIGNALS)
		return REAL(sigaction)(signal, action, old);
	if (signal == WIRE_SIGNAL)
		return set_wanted(action, old);
	bool masked_before = handler_masks[signal], masks = false;
	struct sigaction changed;
	if (action) {
		masks = sigismember(&action->sa_mask, WIRE_SIGNAL) == 1;
		if (masks && action->sa_flags & SA_ONSTACK)
			atomic_store(&masks_on_alternate_stacks, true);
		changed = for_kernel(action);
		action = &changed; /* the program's own may be in the same place as `old` */
	}
	int result = REAL(sigaction)(signal, action, old);
	if (result != 0)
		return result;
	if (action)
		handler_masks[signal] = masks;
	if (old)
		(masked_before ? sigaddset : sigdelset)(&old->sa_mask, WIRE_SIGNAL);
	return result;
}

/* The older functions that set a handler. Warnings that they are deprecated are of no use here. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static sighandler_t set_handler(__typeof__(&signal) real, int number, sighandler_t handler)
{
	if (!is_on() || number != WIRE_SIGNAL)
		return real(number, handler);
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
	set_wanted(&action, &old);
	return old.sa_handler;
}

AGENT_EXPORT sighandler_t signal(int number, sighandler_t handler)
{
	return set_handler(REAL(signal), number, handler);
}

AGENT_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_handler(REAL(sysv_signal), number, handler);
}

AGENT_EXPORT sighandler_t ssignal(int number, sighandler_t handler)
{
	return set_handler(REAL(ssignal), number, handler);
}

AGENT_EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
	return set_handler(REAL(sigset), number, handler);
}

AGENT_EXPORT int siginterrupt(int number, int interrupts)
{
	return is_on() && number == WIRE_SIGNAL ? 0 : REAL(siginterrupt)(number, interrupts);
}

/* ---- masks ---- */

/*
 * A thread has two masks: the one that the kernel has, and the one that the program believes in. They differ
 * only in our signal. For the program, it is blocked if the program said so (t->masked). For the kernel, it
 * is unblocked, unless it must stay blocked.
 */

/* Whether the program believes our signal to be blocked after this change of its mask. */
static bool is_masked_after(int how, const sigset_t *set, bool masked)
{
	bool in_set = sigismember(set, WIRE_SIGNAL) == 1;
	switch (how) {
	case SIG_BLOCK:
		return masked || in_set;
	case SIG_UNBLOCK:
		return masked && !in_set;
	default:
		return in_set;
	}
}

/* Whether our signal belongs in the set that the kernel gets. SIG_BLOCK without it changes nothing. Whatever
   else the program does, our signal becomes unblocked, or stays blocked if it must: SIG_UNBLOCK unblocks what
   is in the set, SIG_SETMASK what is not. */
static bool is_in_kernels_set(int how)
{
	switch (how) {
	case SIG_BLOCK:
		return false;
	case SIG_UNBLOCK:
		return !signals_must_stay_blocked();
	default:
		return signals_must_stay_blocked();
	}
}

/* Returns what the program believes now. A handler on an alternate stack has a mask of its own, which ends with
   it. That it has ended is seen when the mask is changed outside of it. The kernel has our signal blocked in all
   of them; the program in those that say so. */
static bool *current_belief(struct agent_thread *t)
{
	bool in_handler = signals_must_stay_blocked();
	if (in_handler && !t->in_handler)
		t->masked_in_handler = t->masked || atomic_load(&masks_on_alternate_stacks);
	t->in_handler = in_handler;
	return in_handler ? &t->masked_in_handler : &t->masked;
}

static int change_mask(__typeof__(&sigprocmask) real, int how, const sigset_t *set, sigset_t *old)
{
	struct agent_thread *t = agent_self;
	if (!is_on() || !t)
		return real(how, set, old);
	bool *belief = current_belief(t), masked = *belief, masked_after = masked;
	sigset_t changed;
	if (set) {
		masked_after = is_masked_after(how, set, masked);
		changed = *set;
		(is_in_kernels_set(how) ? sigaddset : sigdelset)(&changed, WIRE_SIGNAL);
		set = &changed;
	}
	int result = real(how, set, old);
	if (result != 0)
		return result;
	*belief = masked_after;
	if (old && masked)
		sigaddset(old, WIRE_SIGNAL);
	else if (old && t->in_handler)
		sigdelset(old, WIRE_SIGNAL);
	return result;
}

AGENT_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(REAL(sigprocmask), how, set, old);
}

AGENT_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	return change_mask(REAL(pthread_sigmask), how, set, old);
}

/* Jumps out of handlers. siglongjmp first restores the mask and then leaves the handler's stack. A sample
   that was held back would come between the two, on the handler's stack. If that stack has no room for it,
   our signal stays blocked. The next wait, or the next change of the mask, unblocks it. */

#define FRAME_MORE 512 /* bytes that our handler needs, beyond the kernel's frame */

static void prepare_jump(struct __jmp_buf_tag *place)
{
	stack_t stack;
	char here;
	if (agent_self) /* the wait that a handler has interrupted is left, too */
		atomic_store(&agent_self->shared.wait.since, 0);
	if (place->__mask_was_saved && find_alternate_stack(&stack) &&
	    (uint64_t)(&here - (char *)stack.ss_sp) < getauxval(AT_MINSIGSTKSZ) + FRAME_MORE)
		sigaddset((sigset_t *)&place->__saved_mask, WIRE_SIGNAL);
}

/* In each of the functions below: frames will be left. */
#define LEAVE()                                                                               \
	do {                                                                                  \
		if (AGENT_CALLS)                                                              \
			sentinel_leave(                                                       \
				(uint64_t)__builtin_dwarf_cfa(),                              \
				sentinel_see_through((uint64_t)__builtin_return_address(0))); \
	} while (0)

void __longjmp_chk(jmp_buf place, int value) __attribute__((noreturn));

REAL_SLOT(longjmp);
REAL_SLOT(_longjmp);
REAL_SLOT(siglongjmp);
REAL_SLOT(__longjmp_chk);

AGENT_EXPORT void longjmp(jmp_buf place, int value)
{
	LEAVE();
	prepare_jump(place);
	REAL(longjmp)(place, value);
}

AGENT_EXPORT void _longjmp(jmp_buf place, int value)
{
	LEAVE();
	prepare_jump(place);
	REAL(_longjmp)(place, value);
}

AGENT_EXPORT void siglongjmp(sigjmp_buf place, int value)
{
	LEAVE();
	prepare_jump(place);
	REAL(siglongjmp)(place, value);
}

AGENT_EXPORT void __longjmp_chk(jmp_buf place, int value)
{
	LEAVE();
	prepare_jump(place);
	REAL(__longjmp_chk)(place, value);
}
