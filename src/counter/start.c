/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the counter starts. Its constructor runs before those of all other libraries (it is linked with -z initfirst). It
 * asks the collector what is to be counted (safe/banks.h), loads the objects with the copies, and waits until the collector has
 * changed the program. Then it closes all its descriptors. If nobody answers, the program runs on as if we were not there.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "counter/counter.h"
#include "counter/contexts.h"
#include "counter/cpu.h"
#include "safe/syscall.h"

_Atomic bool counter_on;

/* Waits until the collector has changed the program. Returns whether it has. */
static bool wait_for_change(int fd, struct banks_request *request)
{
	struct banks_reply reply = {0};
	int file;
	bool answered = talk_ask(fd, request, BANKS_READY, &reply, &file) && reply.kind == BANKS_GO;
	talk_close(file);
	return answered ? reply.changed : talk_leave(fd);
}

/* ---- the beginning ---- */

/* Returns whether the program is counted from now on. */
static bool count(int fd, struct banks_request *request)
{
	struct counter_room *room = banks_take(threads_stack_limit);
	if (room) {
		banks_begin(room);
		threads_start(); /* once the program is changed, this would be counted */
		if (wait_for_change(fd, request))
			return true;
	}
	banks_close(room);
	return false;
}

static bool begin(int fd)
{
	struct banks_request request = {0};
	struct banks_reply plan = {0};
	int memory;
	if (!talk_hello(fd, &request, &plan, &memory))
		return false;
	bool loaded = memory >= 0 && talk_load_all(fd, &request),
	     open = loaded && banks_open(memory, &plan);
	talk_close(memory);
	if (open)
		return count(fd, &request);
	if (loaded || memory < 0)
		talk_refuse(fd, &request,
			    loaded ? "there is no room for its counters"
				   : "it can open no more files");
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
	int fd = path ? talk_connect(path) : -1;
	if (fd >= 0) {
		counter_on = begin(fd);
		talk_close(fd);
	}
	errno = saved;
}
