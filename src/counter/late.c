/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter in a process that runs already (inject/). A thread of its own has the conversation with the collector, with a
 * table of descriptors of its own, and ends then. Nothing of ours needs to run afterwards, also if the collector is killed.
 *
 *    the first object     code by which functions of libc lead to ours: for new threads and processes
 *    READY                with banks for all threads. While these stand still, the collector gives them one each
 *
 * It may be so often for a process, but one collector at a time. Banks of an earlier one stay where they are, and so do its
 * copies: threads may still be in there. They get the new banks then. There, the first counters are theirs, and mean nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "counter/counter.h"
#include "counter/cpu.h"
#include "safe/late.h"
#include "safe/syscall.h"

#define WAIT_MS 2000u /* for the borrowed thread, and for threads that begin */
#define BANKS_MORE_MAX (1u << 20)

static void sleep_ms(void)
{
	struct timespec t = {0, 1000000};
	SAFE_SYSCALL(SYS_nanosleep, &t, 0, 0, 0);
}

/* Gives back what inject/ has mapped, when the borrowed thread has left it. */
static void give_back(struct late *late)
{
	struct late own;
	for (unsigned i = 0; !__atomic_load_n(&late->back, __ATOMIC_ACQUIRE); i++) {
		if (i > WAIT_MS)
			return; /* the collector was killed: it stays */
		sleep_ms();
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

static uint64_t count_threads(void)
{
	char bytes[4096] __attribute__((aligned(8)));
	long got, fd = SAFE_SYSCALL(SYS_openat, AT_FDCWD, "/proc/self/task",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	uint64_t count = 0;
	while (fd >= 0 && (got = SAFE_SYSCALL(SYS_getdents64, fd, bytes, sizeof bytes, 0)) > 0)
		for (long at = 0; at < got; count++)
			at += *(const uint16_t *)(bytes + at + 16); /* struct linux_dirent64 */
	talk_close((int)fd);
	return count;
}

/* ---- banks ---- */

/* NULL: no memory. */
static uint64_t *take_banks(uint64_t count)
{
	long at = safe_syscall6(SYS_mmap, 0, (long)(count * sizeof(uint64_t)),
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *banks = at < 0 && at > -4096 ? NULL : (uint64_t *)at;
	for (uint64_t i = 0; banks && i < count; i++) {
		const struct counter_room *room = banks_take(threads_stack_limit);
		if (!room) {
			SAFE_SYSCALL(SYS_munmap, at, count * sizeof *banks, 0, 0);
			return NULL;
		}
		banks[i] = room->bank;
	}
	return banks;
}

/* Banks that no thread got are free again. Of the others, the owners are known from now on, if they have the same numbers for us
   (PID namespaces). */
static void settle(const uint64_t *banks, uint64_t count)
{
	int32_t process = (int32_t)SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0);
	for (uint64_t i = 0; i < count; i++) {
		struct counter_room *room = (struct counter_room *)(banks[i] - BANKS_PAGE);
		if (!room->given)
			banks_give_back(room);
		else if (room->slot >= 0 && !SAFE_SYSCALL(SYS_tgkill, process, room->given, 0, 0))
			atomic_store(&banks_header()->slots[room->slot].thread, room->given);
	}
}

/* Until the collector has changed the program, or will not. */
static bool wait_for_change(int fd, struct banks_request *request)
{
	struct banks_reply reply = {.kind = BANKS_MORE, .count = count_threads() * 5 / 4 + 8};
	int file = -1;
	while (reply.kind == BANKS_MORE && reply.count <= BANKS_MORE_MAX) {
		uint64_t count = reply.count, *banks = take_banks(count);
		if (!banks) {
			talk_refuse(fd, request, "there is no room for its counters");
			return false;
		}
		request->banks = (uint64_t)banks;
		request->bank_count = count;
		banks_memory(&request->memory, &request->size);
		bool answered = talk_ask(fd, request, BANKS_READY, &reply, &file);
		talk_close(file);
		settle(banks, count);
		SAFE_SYSCALL(SYS_munmap, banks, count * sizeof *banks, 0, 0);
		if (!answered)
			return talk_leave(fd);
	}
	return reply.kind == BANKS_GO && reply.changed;
}

static bool count(int fd, struct banks_request *request)
{
	threads_start();
	counter_on = true;
	return wait_for_change(fd, request);
}

static bool begin(int fd, struct banks_request *request)
{
	struct banks_reply plan = {0};
	int memory;
	if (!talk_hello(fd, request, &plan, &memory))
		return false;
	bool loaded = memory >= 0 && talk_load_all(fd, request),
	     open = loaded && banks_open(memory, &plan);
	talk_close(memory);
	if (open)
		return count(fd, request);
	if (loaded || memory < 0)
		talk_refuse(fd, request,
			    loaded ? "there is no room for its counters"
				   : "it can open no more files");
	return false;
}

/* ---- the thread ---- */

static bool nobody_begins(void)
{
	for (unsigned i = 0; atomic_load(&threads_beginning); i++) {
		if (i > WAIT_MS)
			return false;
		sleep_ms();
	}
	return true;
}

/* Why nothing can be counted; NULL: it can. */
static const char *prepare(struct banks_request *request)
{
	const struct banks_header *before = banks_header();
	if (before && !atomic_load(&before->over))
		return "culprit paths counts there already";
	counter_on = false;
	banks_apart = true;
	if (!nobody_begins())
		return "threads that are about to begin do not: try again";
	request->first_word = banks_words();
	threads_functions(request->hooks);
	return request->hooks[BANKS_HOOK_THREAD].at ? NULL : "its C library is none of glibc";
}

static void converse(const char *path)
{
	static _Atomic int32_t at_work; /* which process; a child has its parent's */
	struct banks_request request = {.late = 1};
	int32_t own = (int32_t)SAFE_SYSCALL(SYS_getpid, 0, 0, 0, 0), before = atomic_load(&at_work);
	int fd = talk_connect(path);
	if (fd < 0)
		return;
	bool busy = before == own || !atomic_compare_exchange_strong(&at_work, &before, own);
	const char *why = busy ? "another culprit paths is about to count there"
			       : prepare(&request);
	if (why)
		strncpy(request.trouble, why, sizeof request.trouble - 1);
	bool counts = begin(fd, &request);
	if (!busy && !counts)
		counter_on = false;
	if (!busy)
		atomic_store(&at_work, 0);
	talk_close(fd);
}

COUNTER_EXPORT void *culprit_paths_late(struct late *late);

COUNTER_EXPORT void *culprit_paths_late(struct late *late)
{
	char path[LATE_TEXT_SIZE];
	unblock_own();
	pthread_detach(pthread_self());
	memcpy(path, late->text, sizeof path);
	path[sizeof path - 1] = 0;
	SAFE_SYSCALL(SYS_prctl, PR_SET_NAME, "culprit", 0, 0);
	give_back(late);
	if (!SAFE_SYSCALL(SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE, 0) &&
	    !SAFE_SYSCALL(SYS_unshare, CLONE_FS, 0, 0, 0))
		converse(path);
	return NULL;
}
