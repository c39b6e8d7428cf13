/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the agent starts. Its constructor runs before those of all other libraries (it is linked with -z
 * initfirst), and even before libc has set up `environ`. So it uses system calls and its arguments, and
 * little else.
 *
 * It has one conversation with the collector, makes three mappings and installs one handler. Then it closes
 * all its descriptors. If the program cannot reach the collector (it has ended, or is out of reach after
 * chroot), the program runs on as if we were not there.
 */
#include "agent/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/cpu.h"
#include "agent/late.h"
#include "agent/probes.h"
#include "agent/sentinel.h"
#include "safe/syscall.h"
#include "safe/ticks.h"

#define DESCRIPTORS 3
#define BELL_SIZE 4096
#define HELLO_SECONDS 120 /* the collector may have to make tables of large programs first */
#define MODULES_SECONDS 2
#define FORKS_ALONE (AGENT_LATE && AGENT_PROBES) /* see late_forks */

struct agent agent;
static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

extern void *__libc_stack_end; /* of ld.so: upper end of the first thread's stack */

void *real_resolve(void *_Atomic *slot, const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	atomic_store_explicit(slot, found, memory_order_relaxed);
	return found;
}

extern struct real_entry __start_culprit_real[],
	__stop_culprit_real[] __attribute__((visibility("hidden")));

void real_resolve_all(void)
{
	for (struct real_entry *e = __start_culprit_real; e < __stop_culprit_real; e++)
		real_resolve(e->slot, e->name);
}

uint64_t agent_ns(int clock)
{
	struct timespec t;
	if (AGENT_PROBES) /* libc's function may be probed, or use vector registers */
		SAFE_SYSCALL(SYS_clock_gettime, clock, &t, 0, 0);
	else
		clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void agent_ring(void)
{
	atomic_fetch_add(&agent.arena->changes, 1);
	atomic_fetch_add(agent.bell, 1);
	SAFE_SYSCALL(SYS_futex, agent.bell, FUTEX_WAKE, 1, 0);
}

/* ---- a conversation ---- */

/* Connects to the collector. `patience`: seconds that an answer may take. */
static int converse_open(time_t patience)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = patience};
	int fd = (int)SAFE_SYSCALL(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0);
	memcpy(address.sun_path, socket_path, sizeof address.sun_path);
	for (int i = 0; fd >= 0 && i < 2; i++)
		safe_syscall6(SYS_setsockopt, fd, SOL_SOCKET, i ? SO_RCVTIMEO : SO_SNDTIMEO,
			      (long)&limit, sizeof limit, 0);
	if (fd >= 0 && SAFE_SYSCALL(SYS_connect, fd, &address, sizeof address, 0) == 0)
		return fd;
	if (fd >= 0)
		SAFE_SYSCALL(SYS_close, fd, 0, 0, 0);
	return -1;
}

static bool receive(int fd, struct wire_reply *reply, int *descriptors)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {reply, sizeof *reply};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof control};
	long size;
	do
		size = SAFE_SYSCALL(SYS_recvmsg, fd, &message, MSG_CMSG_CLOEXEC, 0);
	while (size == -EINTR);
	struct cmsghdr *head = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_type == SCM_RIGHTS && descriptors)
		memcpy(descriptors, CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	return size == (long)sizeof *reply && reply->magic == WIRE_MAGIC;
}

static bool converse(uint32_t kind, struct wire_reply *reply, int *descriptors)
{
	struct wire_request request = {
		.magic = WIRE_MAGIC,
		.kind = kind,
		.process = getpid(),
		.machine = CPU_HERE.elf_machine,
	};
	int fd = converse_open(kind == WIRE_HELLO ? HELLO_SECONDS : MODULES_SECONDS);
	if (fd < 0)
		return false;
	bool good = SAFE_SYSCALL(SYS_sendto, fd, &request, sizeof request, MSG_NOSIGNAL) ==
			    sizeof request &&
		    receive(fd, reply, descriptors);
	SAFE_SYSCALL(SYS_close, fd, 0, 0, 0);
	return good;
}

bool agent_ask_modules(void)
{
	struct wire_reply reply;
	return converse(WIRE_MODULES, &reply, NULL);
}

/* Before a library goes away, the copies that wait must be walked: its code is needed for that. Afterwards
   the collector must forget it. */

REAL_SLOT(dlclose);

static bool is_sampling(void)
{
	return atomic_load(&agent.on) && !agent.arena->stop;
}

static bool has_copies(void)
{
	int32_t process = getpid();
	for (uint32_t number = agent.arena->threads; number;) {
		const struct arena_thread *t = arena_at(agent.arena, number);
		for (int i = 0; t->process == process && i < ARENA_COPIES; i++)
			if (t->copies[i])
				return true;
		number = t->chunk.next;
	}
	return false;
}

static void hand_over_copies(void)
{
	struct wire_reply reply;
	if (is_sampling() && has_copies())
		converse(WIRE_MODULES, &reply, NULL);
}

static bool has_other_threads(void)
{
	int32_t process = getpid();
	for (uint32_t number = agent.arena->threads; number;) {
		const struct arena_thread *t = arena_at(agent.arena, number);
		if (t->process == process && t->state == ARENA_LIVE && !t->end_ns &&
		    t != &agent_self->shared)
			return true;
		number = t->chunk.next;
	}
	return false;
}

/* The process ends. If other threads are left, the collector looks where they wait, and how much CPU time they had: in a
   moment, nobody can tell. */
static void hand_over_waits(void)
{
	struct wire_reply reply;
	pause_end_thread(agent_self);
	if (has_other_threads() || has_copies())
		converse(WIRE_MODULES, &reply, NULL);
}

AGENT_EXPORT int dlclose(void *handle)
{
	struct wire_reply reply;
	hand_over_copies();
	int result = REAL(dlclose)(handle);
	if (result == 0 && is_sampling())
		converse(WIRE_MODULES, &reply, NULL);
	return result;
}

__attribute__((destructor)) static void agent_end(void)
{
	if (AGENT_CALLS)
		sentinel_withdraw((uint64_t)__builtin_frame_address(0));
	if (is_sampling() && agent.pauses.off && agent_self)
		hand_over_waits();
	else
		hand_over_copies();
}

/* ---- the beginning ---- */

static void *map(int fd, uint64_t size, int protection)
{
	void *at = mmap(NULL, size, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, size, MADV_DONTDUMP); /* core files of the program do not get larger */
	return at;
}

/* The arena must be mapped whole, because all processes share it. For the tables a part is enough. */
static bool map_all(const struct wire_reply *reply, const int *descriptors)
{
	uint64_t tables = reply->tables_map;
	agent.arena = map(descriptors[0], reply->arena_size, PROT_READ | PROT_WRITE);
	while (agent.arena && tables >= 1 << 20 && !agent.tables) {
		agent.tables = map(descriptors[1], tables, PROT_READ);
		if (!agent.tables)
			tables /= 2;
	}
	agent.tables_map = tables;
	agent.bell = map(descriptors[2], BELL_SIZE, PROT_READ | PROT_WRITE);
	return agent.arena && agent.tables && agent.bell &&
	       arena_is_sane(agent.arena, reply->arena_size);
}

static void take_settings(const struct wire_reply *reply)
{
	agent.interrupts = false;
	agent.sampler = reply->sampler;
	agent.event_count = reply->event_count < ARENA_METRICS_MAX ? reply->event_count
								   : ARENA_METRICS_MAX;
	agent.max_depth = reply->max_depth;
	if (!agent.max_depth || agent.max_depth > FRAMES_PER_CHUNK * FRAMES_CHUNKS)
		agent.max_depth = FRAMES_PER_CHUNK * FRAMES_CHUNKS;
	agent.collapse = reply->collapse;
	agent.frame_pointers = reply->frame_pointers;
	agent.timeline = reply->timeline;
	agent.follow = reply->follow;
	agent.calls = AGENT_CALLS && reply->calls;
	memcpy(agent.events, reply->events, sizeof agent.events);
	agent.heap = reply->heap;
	agent.locks = reply->locks;
	if (agent.locks.waits >= agent.event_count || agent.locks.ns >= agent.event_count ||
	    agent.locks.held >= agent.event_count)
		agent.locks.wanted = false;
	agent.pauses = reply->pauses;
	if (!pause_start || agent.pauses.off > WIRE_OFF_MAX ||
	    (agent.pauses.io && agent.pauses.io + 3 > agent.event_count))
		agent.pauses = (struct wire_pauses){0};
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		if (agent.pauses.metrics[i].metric >= agent.event_count ||
		    !agent.pauses.metrics[i].period)
			agent.pauses = (struct wire_pauses){0};
	agent.mpi = reply->mpi;
	if (agent.mpi.calls >= agent.event_count || agent.mpi.ns >= agent.event_count)
		agent.mpi.wanted = false;
	if (agent.heap.samples >= agent.event_count || agent.heap.site >= agent.event_count ||
	    agent.heap.released >= agent.event_count)
		agent.heap.wanted = false;
	agent.chance = reply->chance;
	for (uint32_t i = 0; i < agent.event_count; i++)
		agent.interrupts |= agent.events[i].interrupts;
}

/* *asked: the collector may believe that this program is sampled, and may send signals. */
static bool hello(bool *asked)
{
	int descriptors[DESCRIPTORS] = {-1, -1, -1};
	struct wire_reply reply = {0};
	bool answered = converse(WIRE_HELLO, &reply, descriptors);
	bool good = answered && reply.arena_size && reply.sampler != WIRE_NONE &&
		    map_all(&reply, descriptors);
	*asked = !answered || reply.sampler != WIRE_NONE;
	for (int i = 0; i < DESCRIPTORS; i++)
		if (descriptors[i] >= 0)
			SAFE_SYSCALL(SYS_close, descriptors[i], 0, 0, 0);
	if (!good)
		return false;
	take_settings(&reply);
	agent.list_place = reply.list_place;
	return true;
}

/* The child's record is made from that of the thread that forks, so this thread must have one. */
static void before_fork(void)
{
	if (AGENT_LATE && late_enter(NULL) == NULL)
		agent_self = NULL;
	if (AGENT_LATE)
		late_leave();
	if (FORKS_ALONE) {
		late_forks = agent_self;
		agent_self = NULL;
	}
}

static void after_fork_in_parent(void)
{
	agent_self = late_forks;
}

/* A forked child has its parent's mappings, so it counts in the same arena. It only needs a record for its
   one thread. No signal comes before the collector knows of that record. */
static void after_fork(void)
{
	struct agent_thread *parent = FORKS_ALONE ? late_forks : agent_self, *child;
	bool had_alternate_stack = alternate_stack_drop_inherited();
	if (AGENT_CALLS)
		sentinel_withdraw((uint64_t)__builtin_frame_address(0));
	agent_self = NULL;
	agent_stack = 0;
	call_leave();
	if (AGENT_PROBES)
		probe_after_fork();
	if (AGENT_LATE)
		late_after_fork();
	if (heap_after_fork)
		heap_after_fork();
	if (lock_after_fork)
		lock_after_fork();
	if (!parent || !atomic_load(&agent.on) || agent.arena->stop)
		return;
	child = thread_take();
	if (!child)
		return;
	child->shared.list_place = parent->shared.list_place;
	child->stack_low = parent->stack_low;
	child->stack_reach = parent->stack_size;
	child->masked = parent->masked;
	if (AGENT_CALLS && agent.calls)
		sentinel_begin_process();
	thread_begin(child, parent->shared.stack_top);
	if (had_alternate_stack)
		alternate_stack_make();
}

static void know_limit(void)
{
	struct rlimit limit = {0};
	SAFE_SYSCALL(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
	agent.stack_limit = limit.rlim_cur;
}

static void measure_clock(void)
{
	agent.clock_ticks = UINT64_MAX;
	for (int i = 0; i < 8; i++) {
		uint64_t start = ticks_now();
		agent_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t ticks = ticks_now() - start;
		if (ticks < agent.clock_ticks)
			agent.clock_ticks = ticks;
	}
}

static const char *variable(char **environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static void watch_forks(void)
{
	static bool watched;
	if (!watched)
		pthread_atfork(AGENT_LATE ? before_fork : NULL,
			       FORKS_ALONE ? after_fork_in_parent : NULL, after_fork);
	watched = true;
}

bool agent_begin(const char *path)
{
	bool asked;
	if (!path || strlen(path) >= sizeof socket_path)
		return false;
	strcpy(socket_path, path);
	agent.ticks_at_start = ticks_now();
	agent.ns_at_start = agent_ns(CLOCK_MONOTONIC);
	real_resolve_all();
	if (AGENT_SIGNALS)
		signals_install(); /* before HELLO: after its answer, signals may come */
	if (!hello(&asked)) {
		if (AGENT_SIGNALS)
			signals_uninstall(asked); /* signals may come although we do not sample */
		return false;
	}
	measure_clock();
	know_limit();
	if (AGENT_CALLS)
		sentinel_start();
	watch_forks();
	return true;
}

long agent_knock(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	long fd = SAFE_SYSCALL(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			       0, 0);
	memcpy(address.sun_path, socket_path, sizeof address.sun_path);
	if (fd < 0)
		return fd;
	long result = SAFE_SYSCALL(SYS_connect, fd, &address, sizeof address, 0);
	SAFE_SYSCALL(SYS_close, fd, 0, 0, 0);
	return result;
}

void agent_unmap(void)
{
	SAFE_SYSCALL(SYS_munmap, agent.arena, agent.arena->size, 0, 0);
	SAFE_SYSCALL(SYS_munmap, agent.tables, agent.tables_map, 0, 0);
	SAFE_SYSCALL(SYS_munmap, agent.bell, BELL_SIZE, 0, 0);
	agent.arena = NULL;
	agent.tables = NULL;
	agent.bell = NULL;
}

__attribute__((constructor)) static void agent_start(int argc, char **argv, char **environment)
{
	const char *path = variable(environment, WIRE_SOCKET);
	int saved = errno;
	(void)argc;
	(void)argv;
	if (!AGENT_LATE && agent_begin(path)) {
		struct agent_thread *first = thread_take();
		if (AGENT_PROBES)
			probe_start();
		atomic_store(&agent.on, true);
		if (heap_start)
			heap_start();
		if (pause_start)
			pause_start();
		if (first) {
			first->shared.list_place = agent.list_place;
			/* The kernel maps nothing else within this limit. */
			first->stack_reach = agent.stack_limit;
			thread_begin(first, (uint64_t)__libc_stack_end);
			alternate_stack_make();
		}
	}
	errno = saved;
}
