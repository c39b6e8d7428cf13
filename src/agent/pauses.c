/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time off the CPU, and reads and writes.
 *
 * Whether a call has waited, only the thread's CPU clock tells, and asking for that is a system call. So it is asked for
 * at the end of calls that took long enough. All time off the CPU until then is known:
 *
 *    off the CPU = since the thread's beginning - CPU time
 *
 * What is new since the last look belongs to this call, but at most as much as the call took. The rest is time in which
 * the thread had no CPU, or waited in ways that are not seen. The collector adds that, as a row of its own. A call that
 * moves many bytes takes long without waiting. There, the clock is asked for at the beginning, too.
 *
 * Samples: in each period of time off the CPU, one moment is chosen at random. The wait that has this moment is walked
 * and gets one sample. So the number of samples is right but for one in each thread, and programs that wait in step with
 * the period are sampled fairly.
 *
 * Reads and writes are all walked and counted. What a descriptor stands for is asked for at each call, because it may
 * have been closed and opened again, in ways that are not seen. Its name is asked for once.
 */
#include "agent/pauses.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "agent/frames.h"
#include "safe/syscall.h"

#define SHORT_NS 1000u    /* nobody goes to sleep and is back sooner */
#define LARGE (64u << 10) /* bytes that take a while to copy */

/* ---- beginning and end of threads ---- */

static pthread_key_t at_end;
static bool has_key;

static uint64_t next_random(struct agent_thread *t)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return t->random;
}

static uint64_t random_below(struct agent_thread *t, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)next_random(t) * limit >> 64);
}

/* libc calls it once more as long as it sets the value again, after the destructors of the program. */
static void note_end(void *thread)
{
	if (agent_self != thread)
		return;
	pause_end_thread(thread);
	pthread_setspecific(at_end, thread);
}

void pause_end_thread(struct agent_thread *t)
{
	atomic_store_explicit(&t->shared.cpu_ns, agent_ns(CLOCK_THREAD_CPUTIME_ID),
			      memory_order_relaxed);
	atomic_store_explicit(&t->shared.end_ns, agent_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

void pause_start(void)
{
	agent.watches_pauses = agent.pauses.off || agent.pauses.io;
	has_key = agent.pauses.off && !pthread_key_create(&at_end, note_end);
}

void pause_begin_thread(struct agent_thread *t)
{
	t->random = (t->shared.start_ns * UINT64_C(0x9e3779b97f4a7c15)) ^ (uint64_t)t->shared.tid;
	t->random = t->random ? t->random : 1;
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		t->off[i].chance = random_below(t, agent.pauses.metrics[i].period);
	if (has_key)
		pthread_setspecific(at_end, t);
}

/* ---- samples of time off the CPU ---- */

/* Adds time, and returns how many samples it has. */
static uint32_t ring(struct agent_thread *t, uint32_t i, uint64_t ns)
{
	struct agent_off *o = &t->off[i];
	uint64_t period = agent.pauses.metrics[i].period;
	uint64_t before = o->off, after = before + ns, turn = before / period,
		 last = after / period;
	uint64_t chance = turn * period + o->chance, count = 0;
	o->off = after;
	if (turn == last)
		return before <= chance && chance < after;
	count = (before <= chance) + (last - turn - 1); /* in each period between them, one */
	o->chance = random_below(t, period);
	count += last * period + o->chance < after;
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* How much of a call was off the CPU. */
static uint64_t off_time(struct agent_thread *t, const struct pause *p, uint64_t now)
{
	uint64_t cpu = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t lived = now - t->shared.start_ns, ran = cpu - t->shared.cpu_start_ns;
	uint64_t all = lived > ran ? lived - ran : 0;
	uint64_t off = all > t->off_known ? all - t->off_known : 0, most = p->ns;
	if (p->cpu)
		most = cpu - p->cpu < most ? most - (cpu - p->cpu) : 0;
	if (all > t->off_known)
		t->off_known = all;
	atomic_store_explicit(&t->shared.cpu_ns, cpu, memory_order_relaxed);
	return off < most ? off : most;
}

static bool count_off(struct agent_thread *t, struct pause *p, uint64_t now)
{
	bool any = false;
	if (!agent.pauses.off || !p->open || p->ns < SHORT_NS)
		return false;
	uint64_t off = off_time(t, p, now);
	counter_add(&t->shared.waited_ns, off);
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		any |= (p->rings[i] = ring(t, i, off)) != 0;
	return any;
}

/* ---- what descriptors stand for ---- */

/* Those that a thread has met, in a chunk. */
#define KNOWN ((uint32_t)((ARENA_CHUNK - sizeof(struct arena_chunk)) / sizeof(struct known)))
#define TRIES 4u /* places for each */
struct known {
	uint64_t device, inode;
	uint32_t reference; /* in units of 8 bytes from the arena's start */
	uint32_t reserved;
};

static void *text_room(struct agent_thread *t, size_t size)
{
	struct arena_chunk *chunk = t->object_text ? arena_at(agent.arena, t->object_text) : NULL;
	uint32_t used = chunk ? (atomic_load(&chunk->used) + 7) & ~7u : ARENA_CHUNK;
	if (used + size > ARENA_CHUNK) {
		t->object_text = scratch_take(t);
		if (!t->object_text)
			return NULL;
		chunk = arena_at(agent.arena, t->object_text);
		used = sizeof *chunk;
	}
	atomic_store(&chunk->used, used + (uint32_t)size);
	return (char *)chunk + used;
}

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
	struct sockaddr_un local;
};

static uint16_t port_of(const union address *a)
{
	uint16_t port = a->any.sa_family == AF_INET    ? a->ipv4.sin_port
			: a->any.sa_family == AF_INET6 ? a->ipv6.sin6_port
						       : 0;
	return ntohs(port);
}

static void copy_name(struct arena_object *o, const char *from, size_t size)
{
	o->size = (uint16_t)(size < ARENA_OBJECT_NAME ? size : ARENA_OBJECT_NAME);
	memcpy(o->name, from, o->size);
}

/* The name of a socket of this machine is a path, or begins with a zero. */
static void name_local(struct arena_object *o, const union address *a, socklen_t length)
{
	size_t head = offsetof(struct sockaddr_un, sun_path), size = 0;
	size_t most = length > head ? length - head : 0;
	const char *name = a->local.sun_path;
	if (most && !*name) {
		name++;
		most--;
	}
	while (size < most && size < sizeof a->local.sun_path - 1 && name[size])
		size++;
	copy_name(o, name, size);
}

static void describe_socket(struct arena_object *o, int fd)
{
	union address own = {0}, other = {0};
	socklen_t own_size = sizeof own, other_size = sizeof other, size = sizeof(int);
	int type = 0;
	SAFE_SYSCALL(SYS_getsockname, fd, &own, &own_size, 0);
	bool connected = SAFE_SYSCALL(SYS_getpeername, fd, &other, &other_size, 0) == 0;
	safe_syscall6(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&size, 0);
	o->family = own.any.sa_family;
	o->type = (uint16_t)type;
	o->port = port_of(&own);
	o->other_port = connected ? port_of(&other) : 0;
	/* Of the two ports, the smaller one says which service it is. The other one was given by chance. */
	if (o->port < o->other_port)
		o->other_port = 0;
	else if (o->other_port)
		o->port = 0;
	if (other.any.sa_family == AF_INET)
		memcpy(o->address, &other.ipv4.sin_addr, sizeof other.ipv4.sin_addr);
	else if (other.any.sa_family == AF_INET6)
		memcpy(o->address, &other.ipv6.sin6_addr, sizeof other.ipv6.sin6_addr);
	if (o->family == AF_UNIX) {
		if (connected)
			name_local(o, &other, other_size);
		if (!o->size)
			name_local(o, &own, own_size);
	}
}

static void name_descriptor(struct arena_object *o, int fd)
{
	char link[sizeof "/proc/self/fd/" + 12] = "/proc/self/fd/", digits[12],
					    text[ARENA_OBJECT_NAME];
	size_t at = strlen(link), count = 0;
	do
		digits[count++] = (char)('0' + fd % 10);
	while (fd /= 10);
	while (count)
		link[at++] = digits[--count];
	link[at] = 0;
	long size = SAFE_SYSCALL(SYS_readlinkat, -100 /* AT_FDCWD */, link, text, sizeof text);
	if (size > 0)
		copy_name(o, text, (size_t)size);
}

/* Returns a reference; 0: there is no room. */
static uint32_t describe(struct agent_thread *t, int fd, const struct stat *st)
{
	union {
		struct arena_object object;
		char room[sizeof(struct arena_object) + ARENA_OBJECT_NAME];
	} made;
	memset(&made.object, 0, sizeof made.object);
	made.object.mode = st->st_mode;
	if (S_ISSOCK(st->st_mode))
		describe_socket(&made.object, fd);
	else
		name_descriptor(&made.object, fd);
	size_t size = sizeof made.object + made.object.size;
	void *kept = text_room(t, size);
	if (!kept)
		return 0;
	memcpy(kept, &made.object, size);
	return (uint32_t)((uint64_t)((char *)kept - (char *)agent.arena) / 8);
}

/* The place of a thing in the table: its own, or that of one that has to go. */
static struct known *find_known(struct agent_thread *t, const struct stat *st)
{
	if (!t->objects) {
		t->objects = scratch_take(t);
		if (!t->objects)
			return NULL;
		memset((char *)arena_at(agent.arena, t->objects) + sizeof(struct arena_chunk), 0,
		       KNOWN * sizeof(struct known));
	}
	struct known *all = (void *)((char *)arena_at(agent.arena, t->objects) +
				     sizeof(struct arena_chunk));
	uint64_t hash = (st->st_ino + st->st_dev * 31) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct known *old = &all[(hash + t->random % TRIES) % KNOWN];
	for (uint32_t i = 0; i < TRIES; i++) {
		struct known *k = &all[(hash + i) % KNOWN];
		if (k->reference && k->device == st->st_dev && k->inode == st->st_ino)
			return k;
		if (!k->reference)
			old = k;
	}
	next_random(t);
	old->reference = 0;
	return old;
}

static uint32_t find_object(struct agent_thread *t, int fd)
{
	struct stat st;
	if (fd < 0 || SAFE_SYSCALL(SYS_fstat, fd, &st, 0, 0))
		return 0;
	struct known *k = find_known(t, &st);
	if (k && !k->reference)
		*k = (struct known){st.st_dev, st.st_ino, describe(t, fd, &st), 0};
	return k ? k->reference : 0;
}

/* For what a thread waits that reads or writes. */
static uint32_t act_of(int fd)
{
	struct stat st;
	if (fd < 0 || SAFE_SYSCALL(SYS_fstat, fd, &st, 0, 0))
		return ARENA_WAITS_OTHER;
	switch (st.st_mode & S_IFMT) {
	case S_IFSOCK:
		return ARENA_WAITS_SOCKET;
	case S_IFIFO:
		return ARENA_WAITS_PIPE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return ARENA_WAITS_DISK;
	case S_IFCHR:
		return ARENA_WAITS_TERMINAL;
	default: /* eventfd and the like have no kind */
		return ARENA_WAITS_EVENT;
	}
}

/* ---- one call ---- */

/* Whether it runs a handler of the program on a stack that may have no room for us. If it is surely on its own stack,
   that need not be asked. */
static bool is_on_small_stack(const struct agent_thread *t, uint64_t frame)
{
	bool own = frame >= t->stack_low && frame < t->shared.stack_top;
	return !own && signals_must_stay_blocked();
}

bool pause_begin(struct pause *p, uint32_t act, int descriptor, size_t size, void *function)
{
	struct agent_thread *t = agent_self;
	uint64_t frame = (uint64_t)__builtin_frame_address(0);
	if ((act >= ARENA_WAITS && !agent.pauses.off) || is_on_small_stack(t, frame))
		return false;
	*p = (struct pause){.start = agent_ns(CLOCK_MONOTONIC),
			    .function = (uint64_t)function,
			    .act = act,
			    .descriptor = descriptor};
	/* A handler may wait while the thread waits already: then all of it is the first wait's. That one may have been
	   left behind by a jump: then its frame is gone. */
	uint64_t since = atomic_load_explicit(&t->shared.wait.since, memory_order_relaxed);
	p->open = agent.pauses.off && (!since || frame >= t->wait_frame);
	if (!p->open)
		return false;
	if (size >= LARGE || act == ARENA_SYNC)
		p->cpu = agent_ns(CLOCK_THREAD_CPUTIME_ID);
	atomic_store_explicit(&t->shared.wait.since, 0, memory_order_relaxed);
	t->wait_frame = frame;
	return true;
}

void pause_note(const struct pause *p, uint64_t pc)
{
	struct arena_wait *w = &agent_self->shared.wait;
	w->pc = pc;
	w->function = p->function;
	w->act = p->act;
	w->descriptor = p->descriptor;
	atomic_store_explicit(&w->since, p->start, memory_order_release);
}

bool pause_end(struct pause *p, int64_t bytes)
{
	struct agent_thread *t = agent_self;
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	if (!t) /* the program has restricted its system calls */
		return false;
	p->ns = now - p->start;
	p->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	if (p->open &&
	    atomic_load_explicit(&t->shared.wait.since, memory_order_relaxed) == p->start)
		atomic_store_explicit(&t->shared.wait.since, 0, memory_order_relaxed);
	else
		p->open = false;
	bool sampled = count_off(t, p, now);
	if (!sampled && (!agent.pauses.io || p->act >= ARENA_WAITS))
		return false;
	return call_enter() != NULL;
}

static void count_waits(struct agent_thread *t, const struct pause *p, uint64_t pc)
{
	struct sample_value values[WIRE_OFF_MAX];
	size_t count = 0;
	uint32_t act = p->act <= ARENA_WAITS_DESCRIPTOR ? act_of(p->descriptor) : p->act;
	for (uint32_t i = 0; i < agent.pauses.off; i++)
		if (p->rings[i])
			values[count++] = (struct sample_value){agent.pauses.metrics[i].metric,
								p->rings[i]};
	const uint64_t below[2] = {sample_function_key(t, p->function),
				   cct_key(false, CCT_OBJECT, act)};
	if (count)
		sample_values_below(t, pc, below, values, count);
}

static void count_transfer(struct agent_thread *t, const struct pause *p, uint64_t pc)
{
	uint32_t first = agent.pauses.io - 1;
	uint64_t object = find_object(t, p->descriptor);
	const uint64_t below[2] = {sample_function_key(t, p->function),
				   cct_key(false, CCT_OBJECT, object << CCT_OBJECT_BITS | p->act)};
	const struct sample_value values[] = {
		{first, 1}, {first + 1, p->bytes}, {first + 2, 1}, {first + 3, p->ns}};
	sample_values_below(t, pc, below, values, sizeof values / sizeof *values);
}

void pause_count(const struct pause *p, uint64_t pc)
{
	struct agent_thread *t = agent_self;
	count_waits(t, p, pc);
	if (agent.pauses.io && p->act < ARENA_WAITS)
		count_transfer(t, p, pc);
	if (t->rings)
		agent_ring();
	t->rings = false;
	call_leave();
}
