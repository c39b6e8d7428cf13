/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/paths/counting.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file_limit.h"
#include "collect/agent_path.h"
#include "collect/paths/work.h"
#include "safe/banks.h"

#define TICK_MS 200
#define CLIENTS_FROM 4 /* in the list for poll */

static bool any(const char *name)
{
	return strcmp(name, ".") && strcmp(name, "..");
}

/* For our own user only. The sticky bit is as for agents. */
static const struct door_kind door_for_counters = {"culprit-paths-", 01700, 0600, BANKS_SOCKET,
						   any};
/* A process that runs already may be another user's. Only those who know the name of the socket can connect. */
static const struct door_kind door_for_running = {"culprit-paths-", 01711, 0666, BANKS_SOCKET, any};

/* ---- while the command runs ---- */

/* Those whose copies are being made have nothing to say. */
static size_t list_clients(struct counting_work *work, struct pollfd *ready, struct client **of)
{
	size_t count = 0;
	for (struct client *c = work->clients; c; c = c->next) {
		if (c->state == CLIENT_MAKING)
			continue;
		of[count] = c;
		ready[count++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
	}
	return count;
}

static void attend(struct counting_work *work, const struct pollfd *ready, struct client **of,
		   size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (ready[CLIENTS_FROM + i].revents)
			client_hear(work, of[i]);
	if (ready[2].revents)
		making_take(work);
	if (ready[1].revents)
		clients_accept(work);
	clients_end_silent(work);
	meter_read(work);
	programs_read(work, false);
}

static int tick_ms(const struct counting_work *work)
{
	uint64_t now = now_ns(), end = work->running.end_ns;
	uint64_t left = end > now ? (end - now) / 1000000 + 1 : 0;
	return end && left < TICK_MS ? (int)left : TICK_MS;
}

/* False: there is no memory. */
static bool turn(struct counting_work *work)
{
	struct pollfd *ready = calloc(CLIENTS_FROM + work->client_count, sizeof *ready);
	struct client **of = calloc(work->client_count + 1, sizeof *of);
	if (ready && of) {
		ready[0] = (struct pollfd){.fd = work->target.signals, .events = POLLIN};
		bool room = work->client_count < CLIENTS_MAX;
		ready[1] = (struct pollfd){.fd = room ? work->door.listener : -1, .events = POLLIN};
		ready[2] = (struct pollfd){.fd = work->making.bell, .events = POLLIN};
		ready[3] = (struct pollfd){.fd = meter_fd(work), .events = POLLIN};
		size_t count = list_clients(work, ready + CLIENTS_FROM, of);
		int got = poll(ready, CLIENTS_FROM + count, tick_ms(work));
		target_handle(&work->target);
		if (got >= 0 && !work->target.ended)
			attend(work, ready, of, count);
	}
	free(ready);
	free(of);
	return ready && of;
}

static void wait_for_process(struct counting_work *work)
{
	while (!running_is_over(work) && turn(work))
		;
}

static void wait_for_command(struct counting_work *work)
{
	while (!work->target.ended && turn(work))
		;
	while (!work->target.ended) { /* nobody else is heard any more */
		struct pollfd signals = {.fd = work->target.signals, .events = POLLIN};
		poll(&signals, 1, -1);
		target_handle(&work->target);
	}
}

/* ---- the beginning and the end ---- */

static void restore_limit(void *context)
{
	(void)context;
	file_limit_restore();
}

static struct err *open_door(struct counting_work *work)
{
	char library[PATH_MAX];
	struct err *e = agent_path_find(COUNTING_LIBRARY, work->counting->libdir, library);
	if (!e)
		e = door_open(&work->door,
			      work_is_late(work) ? &door_for_running : &door_for_counters, library);
	if (!e)
		e = meter_open(work);
	return e ? e : making_open(work);
}

static struct err *start(struct counting_work *work)
{
	const struct target_hooks hooks = {.in_child = restore_limit};
	char **environment = door_environment(&work->door, environ);
	if (!environment)
		return err_new("out of memory");
	struct err *e = target_start(&work->target, work->counting->command, environment, &hooks);
	free(environment);
	return e;
}

static struct err *begin(struct counting_work *work)
{
	file_limit_ignore(); /* we must not be killed while the command runs */
	struct err *e = work_is_late(work)
				? NULL
				: target_check(work->counting->command[0], TARGET_COUNTED);
	if (!e)
		e = target_prepare(&work->target);
	if (e)
		return e;
	work->prepared = true;
	e = open_door(work);
	if (e)
		return e;
	return work_is_late(work) ? running_begin(work) : start(work);
}

static void end(struct counting_work *work)
{
	work->counting->over = true;
	close(work->door.listener);
	work->door.listener = -1;
	making_close(work);
	while (work->clients)
		client_end(work, work->clients);
	running_end(work);
	programs_read(work, true);
	if (meter_lost(work))
		buf_printf(&work->counting->notes, "%" PRIu64 " samples were lost\n",
			   meter_lost(work));
	work->counting->status = work->target.status;
}

/* Why a process that runs was not counted; NULL: it was. */
static struct err *why_not_counted(struct counting_work *work)
{
	struct counting *c = work->counting;
	const struct program *p = work->running.program;
	struct err *e = work->running.e;
	work->running.e = NULL;
	if (e || (p && p->face.changed))
		return e;
	if (!c->notes.size || c->notes.failed)
		return p && !p->plan_had
			       ? NULL
			       : err_new("process %d: it has ended, or counting was ended, before it began",
					 (int)c->pid);
	e = err_new("%.*s", (int)(c->notes.size - 1), buf_text(&c->notes));
	buf_clear(&c->notes);
	return e;
}

struct err *counting_run(struct counting *c)
{
	struct counting_work *work = calloc(1, sizeof *work);
	if (!work)
		return err_new("out of memory");
	*work = (struct counting_work){
		.counting = c,
		.door = {.lock = -1, .listener = -1},
		.making = {.bell = -1},
		.running = {.descriptor = -1},
	};
	c->work = work;
	struct err *e = begin(work);
	if (e)
		return e;
	if (work_is_late(work))
		wait_for_process(work);
	else
		wait_for_command(work);
	end(work);
	return work_is_late(work) ? why_not_counted(work) : NULL;
}

bool counting_interrupted(const struct counting *c)
{
	return target_interrupted(&c->work->target);
}

void counting_free(struct counting *c)
{
	struct counting_work *work = c->work;
	if (work) {
		making_close(work);
		meter_close(work);
		door_close(&work->door);
		if (work->running.descriptor >= 0)
			close(work->running.descriptor);
		if (work->prepared)
			target_release(&work->target);
	}
	for (size_t i = 0; i < c->program_count; i++)
		program_free((struct program *)c->programs[i]);
	free(c->programs);
	buf_free(&c->notes);
	free(work);
	c->work = NULL;
	c->programs = NULL;
	c->program_count = c->program_room = 0;
}

int counting_exit(const struct counting *c)
{
	return target_exit(&(struct target){.status = c->status});
}
