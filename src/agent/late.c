/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent in a process that ran before it came (inject/). Its function runs in a thread of its own, as long as the
 * recording goes on:
 *
 *    a table of descriptors of its own    so nothing that it opens is seen by the program
 *    HELLO, mappings                      as in start.c
 *    late_serve                           late_samples.c, or late_probes.c
 */
#include "agent/late.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <string.h>

#include "safe/late.h"
#include "safe/syscall.h"

#define KNOCK_NS 1000000000ull /* between two looks at the collector */
#define BACK_NS 2000000000ull  /* for the borrowed thread */

_Atomic uint32_t late_recording;
AGENT_OWN uint32_t late_own;
int32_t late_process;
AGENT_OWN struct agent_thread *late_forks;

/* ---- threads ---- */

struct task_entry { /* struct linux_dirent64 */
	uint64_t inode, offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

static bool is_dead(int fd, const char *name)
{
	char path[32], text[256];
	size_t length = strlen(name);
	memcpy(path, name, length);
	memcpy(path + length, "/stat", 6);
	long file = SAFE_SYSCALL(SYS_openat, fd, path, O_RDONLY | O_CLOEXEC, 0);
	long size = file < 0 ? 0 : SAFE_SYSCALL(SYS_read, file, text, sizeof text - 1, 0);
	if (file >= 0)
		SAFE_SYSCALL(SYS_close, file, 0, 0, 0);
	text[size > 0 ? size : 0] = 0;
	const char *end = strrchr(text, ')');
	return size <= 0 || (end && (end[2] == 'Z' || end[2] == 'X'));
}

unsigned late_look(int32_t own)
{
	char bytes[4096] __attribute__((aligned(8)));
	unsigned others = 0;
	bool met = false;
	long got, fd = SAFE_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/task",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int32_t process = getpid();
	if (fd < 0)
		return 1;
	while ((got = SAFE_SYSCALL(SYS_getdents64, fd, bytes, sizeof bytes, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct task_entry *entry = (const void *)(bytes + at);
			int32_t tid = 0;
			for (const char *c = entry->name; *c >= '0' && *c <= '9'; c++)
				tid = tid * 10 + (*c - '0');
			at += entry->size;
			if (!tid || tid == own || (tid == process && is_dead((int)fd, entry->name)))
				continue;
			others++;
			late_meet(tid, &met);
		}
	}
	SAFE_SYSCALL(SYS_close, fd, 0, 0, 0);
	if (agent.sampler == WIRE_TIMERS)
		timers_reap();
	if (met)
		agent_ring();
	return others;
}

/* ---- the thread ---- */

void late_sleep(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	SAFE_SYSCALL(SYS_nanosleep, &t, 0, 0, 0);
}

void late_rest(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	SAFE_SYSCALL(SYS_futex, &agent.arena->stop, FUTEX_WAIT, 0, &t);
}

/* Takes over what inject/ has mapped, and gives it back when the borrowed thread has left it. */
static void give_back(struct late *late)
{
	struct late own;
	uint64_t start = agent_ns(CLOCK_MONOTONIC);
	while (!__atomic_load_n(&late->back, __ATOMIC_ACQUIRE)) {
		if (agent_ns(CLOCK_MONOTONIC) - start > BACK_NS)
			return; /* the collector was killed: it stays */
		late_sleep(1000000);
	}
	memcpy(&own, late, offsetof(struct late, more));
	SAFE_SYSCALL(SYS_munmap, own.code, own.code_size, 0, 0);
	SAFE_SYSCALL(SYS_munmap, own.data, own.data_size, 0, 0);
}

/* The program may end its threads with their numbers counted: so this thread blocks all signals but libc's own. */
static void unblock_own(void)
{
	const uint64_t all_but_own = ~(UINT64_C(3) << 31); /* 32 and 33 */
	SAFE_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all_but_own, 0, 8);
}

bool late_is_gone(uint64_t *knocked)
{
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	if (now - *knocked < KNOCK_NS)
		return false;
	*knocked = now;
	long result = agent_knock();
	return result == -ECONNREFUSED || result == -ENOENT;
}

static pthread_mutex_t at_work = PTHREAD_MUTEX_INITIALIZER; /* one recording at a time */

void late_after_fork(void)
{
	late_process = getpid();
	at_work = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

AGENT_EXPORT void *culprit_late(struct late *late);

AGENT_EXPORT void *culprit_late(struct late *late)
{
	char path[LATE_TEXT_SIZE];
	int32_t own = (int32_t)SAFE_SYSCALL(SYS_gettid, 0, 0, 0, 0);
	unblock_own();
	pthread_detach(pthread_self());
	memcpy(path, late->text, sizeof path);
	path[sizeof path - 1] = 0;
	SAFE_SYSCALL(SYS_prctl, PR_SET_NAME, "culprit", 0, 0);
	give_back(late);
	if (SAFE_SYSCALL(SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE, 0) ||
	    SAFE_SYSCALL(SYS_unshare, CLONE_FS, 0, 0, 0))
		return NULL;
	pthread_mutex_lock(&at_work);
	late_process = getpid();
	atomic_store(&agent.on, false); /* in a child, it may be as its parent had it */
	if (agent_begin(path)) {
		atomic_fetch_add(&late_recording, 1);
		late_serve(own);
	} else {
		late_fail();
	}
	pthread_mutex_unlock(&at_work);
	return NULL;
}
