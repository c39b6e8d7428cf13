/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a descriptor stands for is known by its device and inode. Asking the kernel for these takes as long as a short
 * write, so a thread keeps what it was told last for each number (struct recall). That holds until the number is closed.
 * Functions that close one are called through ours: they raise the serial of the number before and after, so that
 * whatever a thread was told meanwhile is forgotten. A number may also be closed in ways that are not seen, so the kernel
 * is asked again after a while (RECALL_NS).
 */
#undef _FILE_OFFSET_BITS /* else freopen would be freopen64, and there would be no freopen */
#include "agent/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/frames.h"
#include "safe/syscall.h"

#define RECALL_NS 10000000u

/* ---- names ---- */

/* What a thread has met, in a chunk. */
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
	t->random += UINT64_C(0x9e3779b97f4a7c15);
	old->reference = 0;
	return old;
}

/* ---- numbers ---- */

#define RECALLS 512u
struct recall {
	uint64_t ns; /* when the kernel told it */
	int32_t fd;
	uint32_t serial;
	uint32_t reference; /* 0: nothing */
	uint32_t reserved;
};
_Static_assert(RECALLS * sizeof(struct recall) + sizeof(struct arena_chunk) <= ARENA_CHUNK,
	       "they are in a chunk");

#define SERIALS 1024u
static _Atomic uint32_t serials[SERIALS]; /* raised when a number is closed */

static _Atomic uint32_t *serial_of(int fd)
{
	return &serials[(unsigned)fd % SERIALS];
}

static uint32_t ask(struct agent_thread *t, int fd)
{
	struct stat st;
	if (SAFE_SYSCALL(SYS_fstat, fd, &st, 0, 0))
		return 0;
	struct known *k = find_known(t, &st);
	if (k && !k->reference)
		*k = (struct known){st.st_dev, st.st_ino, describe(t, fd, &st), 0};
	return k ? k->reference : 0;
}

static struct recall *recall_of(struct agent_thread *t, int fd)
{
	if (!t->recalls) {
		t->recalls = scratch_take(t);
		if (!t->recalls)
			return NULL;
		memset((char *)arena_at(agent.arena, t->recalls) + sizeof(struct arena_chunk), 0,
		       RECALLS * sizeof(struct recall));
	}
	struct recall *all = (void *)((char *)arena_at(agent.arena, t->recalls) +
				      sizeof(struct arena_chunk));
	return &all[(unsigned)fd % RECALLS];
}

uint32_t descriptor_object(struct agent_thread *t, int fd, uint64_t now)
{
	if (fd < 0)
		return 0;
	struct recall *r = recall_of(t, fd);
	uint32_t serial = atomic_load_explicit(serial_of(fd), memory_order_acquire);
	if (r && r->reference && r->fd == fd && r->serial == serial && now - r->ns < RECALL_NS)
		return r->reference;
	uint32_t reference = ask(t, fd);
	if (r)
		*r = (struct recall){now, fd, serial, reference, 0};
	return reference;
}

/* ---- functions that close ---- */

REAL_SLOT(close);
REAL_SLOT(close_range);
REAL_SLOT(closefrom);
REAL_SLOT(dup2);
REAL_SLOT(dup3);
REAL_SLOT(fclose);
REAL_SLOT(pclose);
REAL_SLOT(freopen);
REAL_SLOT(freopen64);
REAL_SLOT(closedir);

static void forget(int fd)
{
	if (agent.pauses.io && fd >= 0)
		atomic_fetch_add_explicit(serial_of(fd), 1, memory_order_release);
}

static void forget_all(void)
{
	for (int i = 0; i < (int)SERIALS; i++)
		forget(i);
}

/* A stream without a descriptor says so in errno. */
static int number_of(FILE *stream)
{
	int saved = errno, fd = agent.pauses.io && stream ? fileno(stream) : -1;
	errno = saved;
	return fd;
}

#define CLOSES(fd, call)                      \
	({                                    \
		int fd_ = (fd);               \
		forget(fd_);                  \
		__auto_type result_ = (call); \
		forget(fd_);                  \
		result_;                      \
	})

AGENT_EXPORT int close(int fd)
{
	return CLOSES(fd, REAL(close)(fd));
}

AGENT_EXPORT int dup2(int from, int to)
{
	return CLOSES(to, REAL(dup2)(from, to));
}

AGENT_EXPORT int dup3(int from, int to, int flags)
{
	return CLOSES(to, REAL(dup3)(from, to, flags));
}

AGENT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	forget_all();
	int result = REAL(close_range)(first, last, flags);
	forget_all();
	return result;
}

AGENT_EXPORT void closefrom(int first)
{
	forget_all();
	REAL(closefrom)(first);
	forget_all();
}

AGENT_EXPORT int fclose(FILE *stream)
{
	return CLOSES(number_of(stream), REAL(fclose)(stream));
}

AGENT_EXPORT int pclose(FILE *stream)
{
	return CLOSES(number_of(stream), REAL(pclose)(stream));
}

AGENT_EXPORT FILE *freopen(const char *restrict path, const char *restrict mode,
			   FILE *restrict stream)
{
	return CLOSES(number_of(stream), REAL(freopen)(path, mode, stream));
}

AGENT_EXPORT FILE *freopen64(const char *restrict path, const char *restrict mode,
			     FILE *restrict stream)
{
	return CLOSES(number_of(stream), REAL(freopen64)(path, mode, stream));
}

AGENT_EXPORT int closedir(DIR *folder)
{
	return CLOSES(agent.pauses.io ? dirfd(folder) : -1, REAL(closedir)(folder));
}
