/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/attach.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/programs.h"
#include "collect/agents/state.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "inject/inject.h"

#define FUNCTION "culprit_late"
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

struct err *attach_to(struct agents *agents, pid_t pid)
{
	const struct inject what = {.library = agents->recording->options.agent,
				    .function = FUNCTION,
				    .text = agents->door.socket};
	struct err *e = refuse_timers(agents, pid);
	agents->attached = pid;
	if (!e)
		e = inject_library(pid, &what, NULL);
	if (!e)
		e = wait_for_hello(agents, pid);
	agents->attached = 0;
	return e;
}
