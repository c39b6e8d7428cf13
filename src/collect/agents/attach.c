/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/attach.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/left.h"
#include "collect/agents/moving.h"
#include "collect/agents/programs.h"
#include "collect/agents/state.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "inject/inject.h"
#include "process/maps.h"

#define FUNCTION "culprit_late"
#define UPROBES "--engine=uprobe can probe it (as root)"
#define HELLO_NS 20000000000ull
#define WAIT_MS 20

/* POSIX timers of older kernels interrupt the program's system calls. An agent that was there from the beginning hides
   that; one that comes late cannot. */
static struct err *refuse_timers(const struct agents *agents, pid_t pid)
{
	if (!agents->recording->options.timers || !agents->sampling.timers_interrupt)
		return NULL;
	return err_new(
		"process %d: without perf events its system calls would be interrupted: 'sysctl "
		"kernel.perf_event_paranoid=2', or be root",
		(int)pid);
}

static struct err *wait_for_hello(struct agents *agents, pid_t pid)
{
	uint64_t start = now_ns();
	struct err *e = NULL;
	const struct process *p;
	while (!e && !(p = program_find(agents, pid)) && now_ns() - start < HELLO_NS) {
		struct pollfd ready = {.fd = agents->loop->epoll, .events = POLLIN};
		poll(&ready, 1, WAIT_MS);
		e = loop_run(agents->loop);
	}
	if (!e && !p)
		e = err_new(
			"process %d: it has loaded the agent, but that cannot reach us: do both see "
			"the same /tmp?",
			(int)pid);
	return e;
}

/* Code that is made at run time may be moved, or walked by its return addresses. */
static struct err *refuse_made_code(pid_t pid)
{
	struct maps maps;
	struct err *e = maps_read(pid, &maps);
	for (size_t i = 0; !e && i < maps.count; i++) {
		const struct map *m = &maps.items[i];
		bool made = !*m->path || !strncmp(m->path, "[anon", 5) ||
			    !strncmp(m->path, "/memfd:", 7);
		if (m->executable && made && !inject_has_left(pid, m->start, m->end) &&
		    !left_has_islands(pid, m->start, m->end))
			e = err_new(
				"process %d: it makes code at run time, which may look at return "
				"addresses: " UPROBES,
				(int)pid);
	}
	maps_free(&maps);
	return e;
}

struct err *attach_check(pid_t pid, const char *agent)
{
	const struct inject what = {
		.library = agent, .function = FUNCTION, .text = "", .otherwise = UPROBES};
	struct err *e = inject_check(pid, &what);
	return e ? e : refuse_made_code(pid);
}

struct err *attach_to(struct agents *agents, pid_t pid)
{
	const struct inject what = {.library = agents->recording->options.agent,
				    .function = FUNCTION,
				    .text = agents->door.socket,
				    .otherwise = agents->recording->options.probes ? UPROBES
										   : NULL};
	struct err *e = refuse_timers(agents, pid);
	agents->attached = pid;
	if (!e)
		e = inject_library(pid, &what, NULL);
	if (!e)
		e = wait_for_hello(agents, pid);
	struct process *p = e ? NULL : program_find(agents, pid);
	if (p && agents->recording->options.probes)
		e = moving_put_in(agents, p);
	agents->attached = 0;
	return e;
}
