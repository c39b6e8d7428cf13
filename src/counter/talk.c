/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "counter/counter.h"
#include "counter/cpu.h"
#include "safe/syscall.h"

#define SEND_SECONDS 20
/* The copies of large programs may have to be made first, and those of other programs before them. */
#define ANSWER_SECONDS 1800

/* ---- the conversation ---- */

void talk_close(int file)
{
	if (file >= 0)
		SAFE_SYSCALL(SYS_close, file, 0, 0, 0);
}

int talk_connect(const char *path)
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
	talk_close(fd);
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

bool talk_receive(int fd, struct banks_reply *reply, int *file)
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

bool talk_ask(int fd, struct banks_request *request, enum banks_kind kind,
	      struct banks_reply *reply, int *file)
{
	*file = -1;
	request->magic = BANKS_MAGIC;
	request->kind = kind;
	return safe_syscall6(SYS_sendto, fd, (long)request, sizeof *request, MSG_NOSIGNAL, 0, 0) ==
		       sizeof *request &&
	       talk_receive(fd, reply, file);
}

void talk_refuse(int fd, struct banks_request *request, const char *why)
{
	struct banks_reply reply;
	int file;
	snprintf(request->trouble, sizeof request->trouble, "%s", why);
	talk_ask(fd, request, BANKS_UNABLE, &reply, &file);
	talk_close(file);
}

static bool is_sane(const struct banks_reply *reply)
{
	return reply->kind == BANKS_PLAN && reply->slots && reply->stride > BANKS_PAGE &&
	       reply->slots_at >= sizeof(struct banks_header) &&
	       (reply->size - reply->slots_at) / reply->stride >= reply->slots;
}

bool talk_hello(int fd, struct banks_request *request, struct banks_reply *plan, int *memory)
{
	const char *trouble = request->late ? NULL : cpu_trouble();
	request->atomics = cpu_has_atomics();
	request->thread_word = cpu_word();
	if (trouble)
		snprintf(request->trouble, sizeof request->trouble, "%s", trouble);
	if (talk_ask(fd, request, BANKS_HELLO, plan, memory) && is_sane(plan))
		return true;
	talk_close(*memory);
	return false;
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

/* Code of the collector that leads to functions of ours, and on to those of libc. Near the latter, for jumps. */
static bool map_hooks(const struct banks_reply *reply, char trouble[BANKS_TEXT])
{
	int file = memchr(reply->path, 0, sizeof reply->path)
			   ? (int)SAFE_SYSCALL(SYS_openat, AT_FDCWD, reply->path,
					       O_RDONLY | O_CLOEXEC, 0)
			   : -1;
	long at = file < 0 ? file
			   : safe_syscall6(SYS_mmap, (long)reply->base, BANKS_PAGE,
					   PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
					   file, 0);
	talk_close(file);
	if (at == (long)reply->base) {
		threads_hook(reply->bodies);
		return true;
	}
	snprintf(trouble, BANKS_TEXT,
		 "its functions cannot be entered: what it maps is in the way: try again");
	return false;
}

bool talk_load_all(int fd, struct banks_request *request)
{
	struct banks_reply reply;
	enum banks_kind kind = BANKS_NEXT;
	int file;
	request->trouble[0] = 0;
	while (talk_ask(fd, request, kind, &reply, &file) && file < 0 &&
	       (reply.kind == BANKS_OBJECT || (reply.kind == BANKS_HOOKS && request->late))) {
		request->trouble[0] = 0;
		bool good = reply.kind == BANKS_HOOKS ? map_hooks(&reply, request->trouble)
						      : load(&reply, request->trouble);
		kind = good ? BANKS_LOADED : BANKS_FAILED;
	}
	request->trouble[0] = 0;
	talk_close(file);
	return file < 0 && reply.kind == BANKS_END;
}

bool talk_leave(int fd)
{
	struct banks_reply reply;
	struct timeval never = {0};
	uint32_t stage = BANKS_WAITING;
	int file;
	if (atomic_compare_exchange_strong(&banks_header()->stage, &stage, BANKS_LEFT))
		return false;
	safe_syscall6(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, (long)&never, sizeof never, 0);
	talk_receive(fd, &reply, &file);
	talk_close(file);
	return true;
}
