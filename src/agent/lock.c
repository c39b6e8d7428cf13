/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for locks, and for what else threads wait for each other. These functions are only in the agent for events
 * (libculprit-events.so).
 *
 * A lock that is free costs little more than without us: it is tried first. Who must wait notes that in a slot for the
 * lock (struct slot), and counts the time at its own path when it has the lock (`ns`). Who lets a lock go looks whether
 * somebody waits, which is one load. If so, it counts at its own path what they have waited while it had the lock
 * (`held`). So the two sums are nearly equal: one tells who waits, the other who is to blame.
 *
 *    a waits       |------------------------->|            ns of a: both parts
 *    b has it    ======|        c has it  ====|
 *                      held of b              held of c
 *
 * The same holds for whoever signals a condition, posts a semaphore or comes to a barrier: those that wait could not
 * go on before. For time off the CPU (pauses.c), the slot tells who let the lock go last: that one has ended the wait.
 *
 * Programs also make locks themselves, on the futex system call (Rust's, absl's, std::atomic's). What the word at a
 * futex's address means, only they know: such a lock is never tried. But who wakes those that wait there has let it go.
 */
#include "agent/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "agent/cpu.h"
#include "agent/guard.h"
#include "agent/pauses.h"

#define SLOT_BITS 10

/* Threads that wait for one lock. If two locks have the same slot, the second one to be waited for is not in it, and
   nobody is blamed for it. */
struct slot {
	_Atomic uint32_t guard;
	uint32_t waiters;
	const void *lock; /* NULL: nobody waits */
	/* Sum of the times from which on the waiters' time is not yet blamed on anybody; when that was last. */
	uint64_t since, last;
	/* Time of waits that came to their limit: it is blamed on whoever lets the lock go next. */
	uint64_t unblamed;
	/* Who let it go last, and when that one had waited itself. */
	int32_t waker;
	struct agent_wait waits[AGENT_WAITS];
};
static struct slot slots[1u << SLOT_BITS];
/* Waiters of each slot, also those that are not in it, and one more if it has unblamed time: for one look. */
static _Atomic uint16_t waiting[1u << SLOT_BITS];

static size_t place_of(const void *lock)
{
	return (uint64_t)lock * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS);
}

static struct slot *slot_lock(const void *lock)
{
	struct slot *s = &slots[place_of(lock)];
	guard_lock(&s->guard);
	return s;
}

void lock_after_fork(void)
{
	memset(slots, 0, sizeof slots);
	memset((void *)waiting, 0, sizeof waiting);
}

/* ---- waiting ---- */

struct wait {
	const void *lock;
	uint64_t start; /* 0: it is not counted */
	bool noted;     /* in the slot */
	bool in_vain;   /* its limit of time has come */
};

/* For blocked time, too, locks are tried first. */
static inline bool is_wanted(void)
{
	return __builtin_expect(agent.locks.wanted || agent.pauses.off, 0) && agent_self;
}

/* Whether a wait has ended because its limit of time has come. */
static inline bool is_late(int result)
{
	_Static_assert(thrd_timedout != ETIMEDOUT && thrd_timedout > 0, "and no error of a lock");
	return result == ETIMEDOUT || result == thrd_timedout ||
	       (result == -1 && errno == ETIMEDOUT);
}

/* Nobody waits for its lock any more. */
static void slot_clear(struct slot *s)
{
	if (s->unblamed)
		atomic_fetch_sub(&waiting[s - slots], 1);
	s->lock = NULL;
	s->since = s->last = s->unblamed = 0;
	s->waker = 0;
}

static void wait_begin(struct wait *w, const void *lock)
{
	*w = (struct wait){.lock = lock};
	struct agent_thread *t = call_enter();
	if (!t)
		return;
	w->start = agent_ns(CLOCK_MONOTONIC);
	struct slot *s = slot_lock(lock);
	if (s->lock != lock && !s->waiters)
		slot_clear(s);
	w->noted = !s->lock || s->lock == lock;
	if (w->noted) {
		s->lock = lock;
		s->waiters++;
		s->since += w->start;
	}
	guard_unlock(&s->guard);
	t->awaited = w->noted ? lock : NULL;
	atomic_fetch_add(&waiting[place_of(lock)], 1);
	call_leave();
}

static void slot_leave(const struct wait *w)
{
	struct slot *s = slot_lock(w->lock);
	if (s->lock == w->lock && s->waiters) {
		uint64_t since = w->start > s->last ? w->start : s->last;
		uint64_t now = w->in_vain ? agent_ns(CLOCK_MONOTONIC) : since;
		s->since -= since;
		s->waiters--;
		if (now > since && !s->unblamed)
			atomic_fetch_add(&waiting[s - slots], 1);
		s->unblamed += now > since ? now - since : 0;
		if (!s->waiters && !s->unblamed)
			slot_clear(s);
	}
	guard_unlock(&s->guard);
}

/* It does not wait any more; also if the thread is cancelled. */
static void wait_leave(void *wait)
{
	const struct wait *w = wait;
	struct agent_thread *t = w->noted ? call_enter() : NULL;
	if (t) { /* else nothing is counted any more */
		slot_leave(w);
		t->awaited = NULL;
		call_leave();
	}
	if (w->start)
		atomic_fetch_sub(&waiting[place_of(w->lock)], 1);
}

/* The walk begins in the function that the program has called, so that one captures its registers. */
static void wait_count(const struct wait *w, uint64_t pc)
{
	int saved = errno;
	struct agent_thread *t = agent.locks.wanted ? call_enter() : NULL;
	if (t) {
		const struct sample_value values[] = {
			{agent.locks.waits, 1},
			{agent.locks.ns, agent_ns(CLOCK_MONOTONIC) - w->start}};
		sample_values(t, pc, 0, values, 2);
		call_leave();
	}
	errno = saved;
}

/* Waits by a call of a function, and gives its result. */
#define WAIT(kind, address, function, arguments)                                           \
	({                                                                                 \
		struct wait wait_;                                                         \
		wait_begin(&wait_, (address));                                             \
		int result_ = PAUSE(ARENA_WAITS_##kind, -1, function, function arguments); \
		wait_.in_vain = is_late(result_);                                          \
		wait_leave(&wait_);                                                        \
		if (wait_.start)                                                           \
			wait_count(&wait_, cpu_capture(agent_self->registers));            \
		result_;                                                                   \
	})

/* The same for calls that the program may cancel. */
#define WAIT_CANCELLED(kind, address, function, arguments)                             \
	({                                                                             \
		struct wait wait_;                                                     \
		int result_;                                                           \
		wait_begin(&wait_, (address));                                         \
		pthread_cleanup_push(wait_leave, &wait_);                              \
		result_ = PAUSE(ARENA_WAITS_##kind, -1, function, function arguments); \
		wait_.in_vain = is_late(result_);                                      \
		pthread_cleanup_pop(1);                                                \
		if (wait_.start)                                                       \
			wait_count(&wait_, cpu_capture(agent_self->registers));        \
		result_;                                                               \
	})

/* ---- letting go ---- */

static inline bool has_waiters(const void *lock)
{
	return __builtin_expect(
		atomic_load_explicit(&waiting[place_of(lock)], memory_order_relaxed) != 0, 0);
}

static void let_go(const void *lock, uint64_t pc)
{
	int saved = errno;
	struct agent_thread *t = call_enter();
	uint64_t now = agent_ns(CLOCK_MONOTONIC), held = 0;
	if (!t)
		return;
	struct slot *s = slot_lock(lock);
	if (s->lock == lock && s->waiters * now >= s->since) {
		held = s->waiters * now - s->since + s->unblamed;
		if (s->unblamed)
			atomic_fetch_sub(&waiting[s - slots], 1);
		s->unblamed = 0;
		s->since = s->waiters * now;
		s->last = now;
		s->waker = t->shared.tid;
		memcpy(s->waits, t->waits, sizeof s->waits);
		if (!s->waiters)
			slot_clear(s);
	}
	guard_unlock(&s->guard);
	if (held && agent.locks.wanted)
		sample_values(t, pc, 0, &(struct sample_value){agent.locks.held, held}, 1);
	call_leave();
	errno = saved;
}

#define LET_GO(address)                                                        \
	do {                                                                   \
		if (has_waiters(address) && is_wanted())                       \
			let_go((address), cpu_capture(agent_self->registers)); \
	} while (0)

int32_t lock_waker(struct agent_thread *t, uint64_t since, uint64_t *waited)
{
	struct slot *s = slot_lock(t->awaited);
	int32_t waker = s->lock == t->awaited && s->last >= since ? s->waker : 0;
	*waited = 0;
	for (uint32_t i = 0; waker && i < AGENT_WAITS; i++) {
		uint64_t start = s->waits[i].start > since ? s->waits[i].start : since;
		uint64_t end = s->waits[i].end < s->last ? s->waits[i].end : s->last;
		*waited += end > start ? end - start : 0;
	}
	guard_unlock(&s->guard);
	return waker;
}

/* ---- mutexes ---- */

REAL_SLOT(pthread_mutex_lock);
REAL_SLOT(pthread_mutex_trylock);
REAL_SLOT(pthread_mutex_timedlock);
REAL_SLOT(pthread_mutex_clocklock);
REAL_SLOT(pthread_mutex_unlock);

AGENT_EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	if (!is_wanted())
		return REAL(pthread_mutex_lock)(m);
	int error = REAL(pthread_mutex_trylock)(m);
	return error == EBUSY ? WAIT(LOCK, m, REAL(pthread_mutex_lock), (m)) : error;
}

AGENT_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_mutex_timedlock)(m, until);
	int error = REAL(pthread_mutex_trylock)(m);
	return error == EBUSY ? WAIT(LOCK, m, REAL(pthread_mutex_timedlock), (m, until)) : error;
}

AGENT_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
					 const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_mutex_clocklock)(m, clock, until);
	int error = REAL(pthread_mutex_trylock)(m);
	return error == EBUSY ? WAIT(LOCK, m, REAL(pthread_mutex_clocklock), (m, clock, until))
			      : error;
}

AGENT_EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
	LET_GO(m);
	return REAL(pthread_mutex_unlock)(m);
}

/* ---- locks for readers and writers ---- */

REAL_SLOT(pthread_rwlock_rdlock);
REAL_SLOT(pthread_rwlock_tryrdlock);
REAL_SLOT(pthread_rwlock_wrlock);
REAL_SLOT(pthread_rwlock_trywrlock);
REAL_SLOT(pthread_rwlock_timedrdlock);
REAL_SLOT(pthread_rwlock_timedwrlock);
REAL_SLOT(pthread_rwlock_clockrdlock);
REAL_SLOT(pthread_rwlock_clockwrlock);
REAL_SLOT(pthread_rwlock_unlock);

AGENT_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_rdlock)(l);
	int error = REAL(pthread_rwlock_tryrdlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_rdlock), (l)) : error;
}

AGENT_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_wrlock)(l);
	int error = REAL(pthread_rwlock_trywrlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_wrlock), (l)) : error;
}

AGENT_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_timedrdlock)(l, until);
	int error = REAL(pthread_rwlock_tryrdlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_timedrdlock), (l, until)) : error;
}

AGENT_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_timedwrlock)(l, until);
	int error = REAL(pthread_rwlock_trywrlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_timedwrlock), (l, until)) : error;
}

AGENT_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock,
					    const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_clockrdlock)(l, clock, until);
	int error = REAL(pthread_rwlock_tryrdlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_clockrdlock), (l, clock, until))
			      : error;
}

AGENT_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock,
					    const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_rwlock_clockwrlock)(l, clock, until);
	int error = REAL(pthread_rwlock_trywrlock)(l);
	return error == EBUSY ? WAIT(LOCK, l, REAL(pthread_rwlock_clockwrlock), (l, clock, until))
			      : error;
}

AGENT_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	LET_GO(l);
	return REAL(pthread_rwlock_unlock)(l);
}

/* ---- conditions ---- */

/* On x86-64 there is an old version of each, and dlsym may find that. */
static void *cond_function(void *_Atomic *slot, const char *name)
{
	void *found = atomic_load_explicit(slot, memory_order_relaxed);
	if (found)
		return found;
	found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	if (!found)
		found = dlsym(RTLD_NEXT, name);
	atomic_store_explicit(slot, found, memory_order_relaxed);
	return found;
}
#define COND_SLOT(name) static void *_Atomic real_##name
#define COND(name) ((__typeof__(&name))cond_function(&real_##name, #name))
COND_SLOT(pthread_cond_wait);
COND_SLOT(pthread_cond_timedwait);
COND_SLOT(pthread_cond_signal);
COND_SLOT(pthread_cond_broadcast);
REAL_SLOT(pthread_cond_clockwait);

/* A wait lets the mutex go, too. */
AGENT_EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (!is_wanted())
		return COND(pthread_cond_wait)(c, m);
	LET_GO(m);
	return WAIT_CANCELLED(CONDITION, c, COND(pthread_cond_wait), (c, m));
}

AGENT_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
					const struct timespec *until)
{
	if (!is_wanted())
		return COND(pthread_cond_timedwait)(c, m, until);
	LET_GO(m);
	return WAIT_CANCELLED(CONDITION, c, COND(pthread_cond_timedwait), (c, m, until));
}

AGENT_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
					const struct timespec *until)
{
	if (!is_wanted())
		return REAL(pthread_cond_clockwait)(c, m, clock, until);
	LET_GO(m);
	return WAIT_CANCELLED(CONDITION, c, REAL(pthread_cond_clockwait), (c, m, clock, until));
}

AGENT_EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	LET_GO(c);
	return COND(pthread_cond_signal)(c);
}

AGENT_EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	LET_GO(c);
	return COND(pthread_cond_broadcast)(c);
}

/* ---- semaphores and barriers ---- */

REAL_SLOT(sem_wait);
REAL_SLOT(sem_trywait);
REAL_SLOT(sem_timedwait);
REAL_SLOT(sem_clockwait);
REAL_SLOT(sem_post);
REAL_SLOT(pthread_barrier_wait);

AGENT_EXPORT int sem_wait(sem_t *s)
{
	int saved = errno;
	if (!is_wanted())
		return REAL(sem_wait)(s);
	if (!REAL(sem_trywait)(s))
		return 0;
	errno = saved;
	return WAIT_CANCELLED(SEMAPHORE, s, REAL(sem_wait), (s));
}

/* sem_timedwait and sem_clockwait are in waits.c, because they may be interrupted. */
int lock_sem_timed(sem_t *s, clockid_t clock, const struct timespec *until)
{
	int saved = errno;
	if (!REAL(sem_trywait)(s))
		return 0;
	errno = saved;
	if (clock == CLOCK_REALTIME)
		return WAIT_CANCELLED(SEMAPHORE, s, REAL(sem_timedwait), (s, until));
	return WAIT_CANCELLED(SEMAPHORE, s, REAL(sem_clockwait), (s, clock, until));
}

AGENT_EXPORT int sem_post(sem_t *s)
{
	LET_GO(s);
	return REAL(sem_post)(s);
}

/* Those that wait at a barrier wait for whoever comes next. */
AGENT_EXPORT int pthread_barrier_wait(pthread_barrier_t *b)
{
	if (!is_wanted())
		return REAL(pthread_barrier_wait)(b);
	LET_GO(b);
	return WAIT(BARRIER, b, REAL(pthread_barrier_wait), (b));
}

/* ---- C11 ---- */

REAL_SLOT(mtx_lock);
REAL_SLOT(mtx_trylock);
REAL_SLOT(mtx_timedlock);
REAL_SLOT(mtx_unlock);
REAL_SLOT(cnd_wait);
REAL_SLOT(cnd_timedwait);
REAL_SLOT(cnd_signal);
REAL_SLOT(cnd_broadcast);

AGENT_EXPORT int mtx_lock(mtx_t *m)
{
	if (!is_wanted())
		return REAL(mtx_lock)(m);
	int result = REAL(mtx_trylock)(m);
	return result == thrd_busy ? WAIT(LOCK, m, REAL(mtx_lock), (m)) : result;
}

AGENT_EXPORT int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict until)
{
	if (!is_wanted())
		return REAL(mtx_timedlock)(m, until);
	int result = REAL(mtx_trylock)(m);
	return result == thrd_busy ? WAIT(LOCK, m, REAL(mtx_timedlock), (m, until)) : result;
}

AGENT_EXPORT int mtx_unlock(mtx_t *m)
{
	LET_GO(m);
	return REAL(mtx_unlock)(m);
}

AGENT_EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
	if (!is_wanted())
		return REAL(cnd_wait)(c, m);
	LET_GO(m);
	return WAIT_CANCELLED(CONDITION, c, REAL(cnd_wait), (c, m));
}

AGENT_EXPORT int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m,
			       const struct timespec *restrict until)
{
	if (!is_wanted())
		return REAL(cnd_timedwait)(c, m, until);
	LET_GO(m);
	return WAIT_CANCELLED(CONDITION, c, REAL(cnd_timedwait), (c, m, until));
}

AGENT_EXPORT int cnd_signal(cnd_t *c)
{
	LET_GO(c);
	return REAL(cnd_signal)(c);
}

AGENT_EXPORT int cnd_broadcast(cnd_t *c)
{
	LET_GO(c);
	return REAL(cnd_broadcast)(c);
}

/* ---- locks of the program's own ---- */

static bool futex_waits(int what)
{
	return what == FUTEX_WAIT || what == FUTEX_WAIT_BITSET || what == FUTEX_LOCK_PI ||
	       what == FUTEX_LOCK_PI2 || what == FUTEX_WAIT_REQUEUE_PI;
}

static bool futex_wakes(int what)
{
	return what == FUTEX_WAKE || what == FUTEX_WAKE_BITSET || what == FUTEX_WAKE_OP ||
	       what == FUTEX_UNLOCK_PI || what == FUTEX_REQUEUE || what == FUTEX_CMP_REQUEUE ||
	       what == FUTEX_CMP_REQUEUE_PI;
}

/* A wait that did not begin is none: the word had changed before. */
static long futex_wait(__typeof__(&syscall) real, const void *word, long b, long c, long d, long e,
		       long f)
{
	struct wait wait;
	wait_begin(&wait, word);
	long result = PAUSE(ARENA_WAITS_FUTEX, -1, real,
			    real(SYS_futex, (long)word, b, c, d, e, f));
	bool none = result == -1 && errno != ETIMEDOUT && errno != EINTR;
	wait.in_vain = result == -1 && errno == ETIMEDOUT;
	wait_leave(&wait);
	if (wait.start && !none)
		wait_count(&wait, cpu_capture(agent_self->registers));
	return result;
}

long lock_futex(__typeof__(&syscall) real, long a, long b, long c, long d, long e, long f)
{
	const void *word = (const void *)a, *other = (const void *)e;
	int what = (int)b & FUTEX_CMD_MASK;
	if (!is_wanted())
		return real(SYS_futex, a, b, c, d, e, f);
	if (futex_waits(what))
		return futex_wait(real, word, b, c, d, e, f);
	if (futex_wakes(what))
		LET_GO(word);
	if (what == FUTEX_WAKE_OP)
		LET_GO(other);
	return real(SYS_futex, a, b, c, d, e, f);
}
