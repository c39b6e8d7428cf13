/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the counter starts. Its constructor runs before those of all other libraries (it is linked with -z initfirst). It
 * asks the collector what is to be counted (safe/banks.h), loads the objects with the copies, and waits until the collector has
 * changed the program. Then it closes all its descriptors. If nobody answers, the program runs on as if we were not there.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "counter/counter.h"
#include "counter/contexts.h"
#include "counter/cpu.h"
#include "safe/syscall.h"

#define SEND_SECONDS 20
/* The copies of large programs may have to be made first, and those of other programs before them. */
#define ANSWER_SECONDS 1800

bool counter_on;

/* ---- the conversation ---- */

static void close_file(int file)
{
	if (file >= 0)
		SAFE_SYSCALL(SYS_close, file, 0, 0, 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = SEND_SECONDS};
	if (strlen(path) >= sizeof address.sun_path)
		return -1;
	memcpy(address.sun_path, path, strlen(path));
	int fd = (int)SAFE_SYSCALL(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0);
	if (fd < 0)
		return -1;
	safe_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&limit, sizeof limit, 0);
	limit.tv_sec = ANSWER_SECONDS;
	safe_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&limit, sizeof limit, 0);
	if (SAFE_SYSCALL(SYS_connect, fd, &address, sizeof address, 0) == 0)
		return fd;
	close_file(fd);
	return -1;
}

static int file_of(struct msghdr *message)
{
	int file = -1;
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof file))
		memcpy(&file, CMSG_DATA(head), sizeof file);
	return file;
}

static bool receive(int fd, struct banks_reply *reply, int *file)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
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
	*file = size > 0 ? file_of(&message) : -1;
	return size == (long)sizeof *reply && reply->magic == BANKS_MAGIC;
}

/* *file: what comes along; -1: nothing. */
static bool ask(int fd, enum banks_kind kind, const char *trouble, struct banks_reply *reply,
		int *file)
{
	struct banks_request request = {.magic = BANKS_MAGIC,
					.kind = kind,
					.atomics = cpu_has_atomics(),
					.contexts = contexts_known(),
					.thread_word = cpu_word()};
	*file = -1;
	if (trouble)
		snprintf(request.trouble, sizeof request.trouble, "%s", trouble);
	return safe_syscall6(SYS_sendto, fd, (long)&request, sizeof request, MSG_NOSIGNAL, 0, 0) ==
		       sizeof request &&
	       receive(fd, reply, file);
}

/* ---- objects ---- */

/* Where the first byte of an object is in memory. */
static uint64_t base_of(void *object)
{
	struct link_map *entry = NULL;
	Dl_info info;
	if (dlinfo(object, RTLD_DI_LINKMAP, &entry) || !dladdr(entry->l_ld, &info))
		return 0;
	return (uint64_t)info.dli_fbase;
}

/* False: `trouble` says why not. */
static bool load(const struct banks_reply *reply, char trouble[BANKS_TEXT])
{
	if (!memchr(reply->path, 0, sizeof reply->path))
		return false;
	void *object = dlopen(reply->path, RTLD_NOW | RTLD_LOCAL);
	if (!object) {
		const char *why = dlerror();
		snprintf(trouble, BANKS_TEXT, "%s", why ? why : "cannot be loaded");
		return false;
	}
	uint64_t base = base_of(object);
	if (base == reply->base)
		return true;
	snprintf(trouble, BANKS_TEXT, "it was loaded at %#llx instead of %#llx",
		 (unsigned long long)base, (unsigned long long)reply->base);
	dlclose(object);
	return false;
}

/* Loads what the collector wants. Returns whether all was told. */
static bool load_all(int fd)
{
	struct banks_reply reply;
	enum banks_kind kind = BANKS_NEXT;
	char trouble[BANKS_TEXT] = "";
	int file;
	while (ask(fd, kind, trouble, &reply, &file) && file < 0 && reply.kind == BANKS_OBJECT) {
		trouble[0] = 0;
		kind = load(&reply, trouble) ? BANKS_LOADED : BANKS_FAILED;
	}
	close_file(file);
	return file < 0 && reply.kind == BANKS_END;
}

/* No answer came. If the collector is at work in our memory, it ends that, or is ended. Returns whether it is. */
static bool leave(int fd)
{
	struct banks_reply reply;
	struct timeval never = {0};
	uint32_t stage = BANKS_WAITING;
	int file;
	if (atomic_compare_exchange_strong(&banks_header()->stage, &stage, BANKS_LEFT))
		return false;
	safe_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&never, sizeof never, 0);
	receive(fd, &reply, &file);
	close_file(file);
	return true;
}

/* Waits until the collector has changed the program. Returns whether it has. */
static bool wait_for_change(int fd)
{
	struct banks_reply reply = {0};
	int file;
	bool answered = ask(fd, BANKS_READY, NULL, &reply, &file) && reply.kind == BANKS_GO;
	close_file(file);
	return answered ? reply.changed : leave(fd);
}

/* ---- the beginning ---- */

static bool is_sane(const struct banks_reply *reply)
{
	return reply->kind == BANKS_PLAN && reply->slots && reply->stride > BANKS_PAGE &&
	       reply->slots_at >= sizeof(struct banks_header) &&
	       (reply->size - reply->slots_at) / reply->stride >= reply->slots &&
	       reply->arena < reply->stride;
}

/* Returns whether there is something to be counted. *memory: -1 if it did not come along. */
static bool hello(int fd, struct banks_reply *plan, int *memory)
{
	if (ask(fd, BANKS_HELLO, cpu_trouble(), plan, memory) && is_sane(plan))
		return true;
	close_file(*memory);
	return false;
}

/* Returns whether the program is counted from now on. */
static bool count(int fd)
{
	struct counter_room *room = banks_take(threads_stack_limit);
	if (room) {
		banks_begin(room);
		threads_start(); /* once the program is changed, this would be counted */
		if (wait_for_change(fd))
			return true;
	}
	banks_close(room);
	return false;
}

static bool begin(int fd)
{
	struct banks_reply plan = {0}, reply;
	int memory, file;
	if (!hello(fd, &plan, &memory))
		return false;
	bool loaded = memory >= 0 && load_all(fd), open = loaded && banks_open(memory, &plan);
	close_file(memory);
	if (open)
		return count(fd);
	if (loaded || memory < 0) {
		ask(fd, BANKS_UNABLE,
		    loaded ? "there is no room for its counters" : "it can open no more files",
		    &reply, &file);
		close_file(file);
	}
	return false;
}

static const char *variable(char **environment, const char *name)
{
	size_t length = strlen(name);
	for (; environment && *environment; environment++)
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static void know_limit(void)
{
	struct rlimit limit = {0};
	SAFE_SYSCALL(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
	threads_stack_limit = limit.rlim_cur;
}

__attribute__((constructor)) static void counter_start(int argc, char **argv, char **environment)
{
	const char *path = variable(environment, BANKS_SOCKET);
	int saved = errno;
	(void)argc;
	(void)argv;
	threads_find();
	know_limit();
	int fd = path ? connect_to(path) : -1;
	if (fd >= 0) {
		counter_on = begin(fd);
		close_file(fd);
	}
	errno = saved;
}
