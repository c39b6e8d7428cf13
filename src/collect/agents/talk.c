/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations with agents. A request is one packet, and so is the answer, which always fits: so nobody can
 * keep us waiting. We believe the kernel, not the request, about who is talking. A connection without a
 * request is closed after a while, one with an invalid request at once.
 */
#include "collect/agents/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/agents/arenas.h"
#include "collect/agents/heaps.h"
#include "collect/agents/patches.h"
#include "collect/agents/programs.h"
#include "collect/agents/sampling.h"
#include "collect/agents/scan.h"
#include "collect/agents/state.h"
#include "collect/agents/unseen.h"
#include "collect/agents/unsignalled.h"
#include "collect/agents/waiting.h"
#include "collect/events.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/status.h"
#include "safe/wire.h"
#include "unwind/cpu.h"

#define CLIENTS_MAX 256u
#define ACCEPTED_AT_ONCE 64
#define SILENCE_NS 5000000000ull

static void hear(void *context);

static void hang_up(struct agents *agents, struct client *client)
{
	struct client **link = &agents->clients;
	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	agents->client_count--;
	close(client->fd);
	free(client);
}

void talk_close_silent(struct agents *agents, bool all)
{
	uint64_t now = now_ns();
	for (struct client *c = agents->clients, *next; c; c = next) {
		next = c->next;
		if (all || now - c->since_ns > SILENCE_NS)
			hang_up(agents, c);
	}
}

/* Only connections without a request are kept, so the oldest is the most suspicious: it is closed. */
static void make_room(struct agents *agents)
{
	struct client *last = agents->clients;
	while (last && last->next)
		last = last->next;
	if (agents->client_count >= CLIENTS_MAX && last)
		hang_up(agents, last);
}

static bool add_client(struct agents *agents, int fd)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client)
		return false;
	*client = (struct client){{hear, client}, agents, agents->clients, fd, now_ns()};
	struct err *e = loop_watch(agents->loop, fd, &client->watch);
	if (e) {
		err_free(e);
		free(client);
		return false;
	}
	agents->clients = client;
	agents->client_count++;
	return true;
}

void talk_accept(struct agents *agents)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		int fd = accept4(agents->door.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return;
		make_room(agents);
		if (!add_client(agents, fd)) {
			close(fd);
			return;
		}
	}
}

/* ---- answers ---- */

static void answer(const struct client *client, const struct wire_reply *reply,
		   const int *descriptors, size_t count)
{
	packet_send(client->fd, reply, sizeof *reply, descriptors, count, MSG_DONTWAIT);
}

static void refuse(struct agents *agents, const struct client *client, struct err *why)
{
	struct wire_reply reply = {.magic = WIRE_MAGIC, .sampler = WIRE_NONE};
	if (why) {
		agents->recording->notes.refused_processes++;
		if (!agents->recording->notes.refused_why)
			agents->recording->notes.refused_why = strdup(err_text(why));
	}
	err_free(why);
	answer(client, &reply, NULL, 0);
}

/* Whether the kernel lets it make only some system calls. Ours may not be among them. */
static bool is_filtered(pid_t pid)
{
	struct process_status status;
	return !process_status(pid, &status) || status.filtered;
}

static struct wire_reply settings(const struct agents *agents, const struct process *p)
{
	const struct recording_options *o = &agents->recording->options;
	struct wire_reply reply = {
		.magic = WIRE_MAGIC,
		.sampler = o->timers ? WIRE_TIMERS : WIRE_EVENTS,
		.tables_map = LIBRARY_SIZE,
		.event_count = (uint32_t)o->event_count,
		.max_depth = o->max_depth,
		.collapse = o->collapse,
		.frame_pointers = o->frame_pointers,
		.timeline = o->timeline,
		.follow = o->follow && !is_filtered(p->pid),
		.calls = o->calls,
		.chance = sampling_is_split(agents, p) && o->events[0].clock &&
			  !o->events[0].user_only,
		.heap = heaps_settings(agents->recording),
	};
	for (size_t i = 0; i < o->event_count; i++) {
		const struct recording_event *e = &o->events[i];
		if (e->call == RECORDING_LOCK_WAITS)
			reply.locks = (struct wire_locks){true, (uint32_t)i, (uint32_t)i + 1,
							  (uint32_t)i + 2};
		if (e->call == RECORDING_MPI_CALLS)
			reply.mpi = (struct wire_mpi){
				.wanted = true, .calls = (uint32_t)i, .ns = (uint32_t)i + 1};
		if (e->off && e->off != RECORDING_QUEUED && reply.pauses.off < WIRE_OFF_MAX) {
			reply.pauses.metrics[reply.pauses.off].metric = (uint32_t)i;
			reply.pauses.metrics[reply.pauses.off++].period = e->period;
		}
		if (e->io == RECORDING_IO_SAMPLES)
			reply.pauses.io = (uint32_t)i + 1;
		if (!event_is_sampled(e))
			continue;
		reply.events[i] = (struct wire_event){
			.period = e->period,
			.clock = e->clock && sampling_signals_bring_all(agents, p, e),
			.interrupts = sampling_interrupts(agents, p, e)};
	}
	return reply;
}

/* ---- who may connect ---- */

#define GENERATIONS_MAX 256

static pid_t parent_of(pid_t pid)
{
	struct process_status status;
	return process_status(pid, &status) ? status.parent : 0;
}

/* Whether the process is one that we started, or a descendant of such a one. If its parent has ended, that
   is known only if the process itself was known before. */
static bool descends(struct agents *agents, pid_t pid)
{
	for (int i = 0; pid > 1 && i < GENERATIONS_MAX; i++, pid = parent_of(pid)) {
		const struct process *p = program_find(agents, pid);
		if (pid == getpid() || (p && process_is_alive(p)))
			return true;
	}
	return false;
}

/* The name of the socket is secret, but may become known. Processes of our own user are trusted: they
   could look into our memory anyway. */
static bool may_join(struct agents *agents, const struct ucred *peer)
{
	return peer->uid == geteuid() || peer->pid == agents->attached ||
	       descends(agents, peer->pid);
}

/* ---- requests ---- */

/* Go's runtime handles all signals itself, and dies of unexpected ones. */
static bool is_go(struct agents *agents, const struct process *p,
		  const struct library_module *executable)
{
	if (!executable || !executable->go)
		return false;
	agents->recording->notes.go_programs++;
	memcpy(agents->recording->notes.go_name, p->name, sizeof agents->recording->notes.go_name);
	return true;
}

static void hello(struct agents *agents, const struct client *client, const struct ucred *peer,
		  const struct wire_request *request)
{
	struct process *before = program_find(agents, peer->pid), *p = NULL;
	const struct library_module *executable = NULL;
	struct arena *a;
	pid_t namespace_pid = request->process > 0 ? request->process : peer->pid;
	agents->recording->process_count += !before;
	if (before) { /* exec: the same process, another program */
		before->replaced = before->gone = true;
		scan_end(before);
	}
	struct err *e = arena_open(agents, &a);
	if (e) {
		refuse(agents, client, e);
		return;
	}
	p = scan_add_program(agents, a, peer->pid, namespace_pid);
	if (p)
		p->agent->late = p->agent->served = peer->pid == agents->attached;
	if (p && unwind_cpu_for((uint16_t)request->machine))
		p->machine = (uint16_t)request->machine;
	e = p ? program_look(agents, p, &executable) : err_new("out of memory");
	if (!e)
		e = patches_ask(agents, p);
	if (e || is_go(agents, p, executable)) {
		refuse(agents, client, e);
		return; /* it stays, as a process without samples */
	}
	struct wire_reply reply = settings(agents, p);
	reply.list_place = p->list->place;
	reply.arena_size = a->size;
	sampling_open_early(agents, p);
	unseen_begin(p);
	const int descriptors[] = {a->fd, library_file(agents->recording->library),
				   agents->bell.fd};
	answer(client, &reply, descriptors, 3);
}

/* A library is about to go, or the process is about to end. Copies are walked now, while the code is
   still there. */
static void modules(struct agents *agents, const struct client *client, const struct ucred *peer)
{
	struct wire_reply reply = {.magic = WIRE_MAGIC};
	struct process *p = program_find(agents, peer->pid);
	if (p)
		p->useless = 0;
	unsignalled_take_all(agents);
	if (p)
		waiting_look(agents, p);
	for (struct arena *a = agents->arenas; a; a = a->next)
		if (!p || a == p->agent->arena) /* else it is a child that we have not seen yet */
			scan_arena(agents, a);
	p = program_find(agents, peer->pid);
	if (p)
		err_free(program_look(agents, p, NULL));
	answer(client, &reply, NULL, 0);
}

static void hear(void *context)
{
	struct client *client = context;
	struct agents *agents = client->agents;
	struct wire_request request;
	struct ucred peer;
	socklen_t length = sizeof peer;
	ssize_t size = recv(client->fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size == (ssize_t)sizeof request && request.magic == WIRE_MAGIC &&
	    !getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid > 0 &&
	    may_join(agents, &peer)) {
		if (request.kind == WIRE_HELLO)
			hello(agents, client, &peer, &request);
		else if (request.kind == WIRE_MODULES)
			modules(agents, client, &peer);
	}
	hang_up(agents, client);
}
