/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations. A request is one packet and so is the answer, which always
 * fits: nobody can keep us waiting. Who we talk to is what the kernel says, not
 * what the request does. Those that say nothing are hung up on after a while,
 * those that say nonsense at once.
 */
#include "collect/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/status.h"

#define CLIENTS_MAX 256u
#define ACCEPTED_AT_ONCE 64
#define SILENCE_NS 5000000000ull

static void hang_up(struct session *s, struct client *client)
{
	struct client **link = &s->clients;
	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	s->client_count--;
	close(client->fd);
	free(client);
}

void talk_hang_up(struct session *s, bool all)
{
	uint64_t now = now_ns();
	for (struct client *c = s->clients, *next; c; c = next) {
		next = c->next;
		if (all || now - c->since_ns > SILENCE_NS)
			hang_up(s, c);
	}
}

/* Only those that have not said anything yet are kept, so the oldest is the most suspect. */
static void make_room(struct session *s)
{
	struct client *last = s->clients;
	while (last && last->next)
		last = last->next;
	if (s->client_count >= CLIENTS_MAX && last)
		hang_up(s, last);
}

void talk_accept(struct session *s)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return;
		struct client *client = calloc(1, sizeof *client);
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
		make_room(s);
		if (!client || epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event)) {
			free(client);
			close(fd);
			return;
		}
		*client = (struct client){WATCH_CLIENT, s->clients, fd, now_ns()};
		s->clients = client;
		s->client_count++;
	}
}

/* ---- answers ---- */

static void answer(const struct client *client, const struct wire_reply *reply,
		   const int *descriptors, size_t count)
{
	packet_send(client->fd, reply, sizeof *reply, descriptors, count, MSG_DONTWAIT);
}

static void refuse(struct session *s, const struct client *client, struct err *why)
{
	struct wire_reply reply = {.magic = WIRE_MAGIC, .sampler = WIRE_NONE};
	if (why) {
		s->notes.refused_processes++;
		if (!s->notes.refused_why)
			s->notes.refused_why = strdup(err_text(why));
	}
	err_free(why);
	answer(client, &reply, NULL, 0);
}

static struct wire_reply settings(const struct session *s, const struct process *p)
{
	const struct session_options *o = &s->options;
	struct wire_reply reply = {
		.magic = WIRE_MAGIC,
		.sampler = o->timers ? WIRE_TIMERS : WIRE_EVENTS,
		.tables_map = LIBRARY_SIZE,
		.event_count = (uint32_t)o->event_count,
		.max_depth = o->max_depth ? o->max_depth : SESSION_DEPTH,
		.collapse = o->collapse,
		.frame_pointers = o->frame_pointers,
		.timeline = o->timeline,
		.chance = sampling_is_split(s, p) && o->events[0].clock && !o->events[0].user_only,
	};
	for (size_t i = 0; i < o->event_count; i++) {
		const struct session_event *e = &o->events[i];
		reply.events[i] = (struct wire_event){.period = e->period,
						      .clock = e->clock &&
							       sampling_is_whole(s, p, e),
						      .interrupts = sampling_interrupts(s, p, e)};
	}
	return reply;
}

/* ---- who may join ---- */

#define GENERATIONS_MAX 256

static pid_t parent_of(pid_t pid)
{
	struct process_status status;
	return process_status(pid, &status) ? status.parent : 0;
}

/* What we started, and what that starts. One whose parent has ended is known if it was before; else nobody
   can tell whose it is. */
static bool descends(struct session *s, pid_t pid)
{
	for (int i = 0; pid > 1 && i < GENERATIONS_MAX; i++, pid = parent_of(pid)) {
		const struct process *p = process_find(s, pid);
		if (pid == getpid() || (p && process_is_alive(p)))
			return true;
	}
	return false;
}

/* The socket's name is a secret, but may get around. Whoever has our own rights could look into us anyway. */
static bool may_join(struct session *s, const struct ucred *peer)
{
	return peer->uid == geteuid() || descends(s, peer->pid);
}

/* ---- requests ---- */

/* Go's runtime takes every signal for itself, and dies of those that it does not expect. */
static bool is_go(struct session *s, const struct process *p,
		  const struct library_module *executable)
{
	if (!executable || !executable->go)
		return false;
	s->notes.go_programs++;
	memcpy(s->notes.go_name, p->name, sizeof s->notes.go_name);
	return true;
}

static void hello(struct session *s, const struct client *client, const struct ucred *peer,
		  const struct wire_request *request)
{
	struct process *before = process_find(s, peer->pid), *p = NULL;
	const struct library_module *executable = NULL;
	struct arena *a;
	pid_t own = request->process > 0 ? request->process : peer->pid;
	s->process_count += !before;
	if (before) { /* exec: the same process, another program */
		before->replaced = before->gone = true;
		process_end(s, before);
	}
	struct err *e = arena_open(s, &a);
	if (e) {
		refuse(s, client, e);
		return;
	}
	p = process_add(s, a, peer->pid, own);
	if (p && unwind_cpu_for((uint16_t)request->machine))
		p->machine = (uint16_t)request->machine;
	e = p ? process_look(s, p, &executable) : err_new("out of memory");
	if (e || is_go(s, p, executable)) {
		refuse(s, client, e);
		return; /* it stays, as a process without samples */
	}
	struct wire_reply reply = settings(s, p);
	reply.space = p->list->place;
	reply.arena_size = a->size;
	sampling_open_early(s, p);
	const int descriptors[] = {a->fd, library_file(s->library), s->bell.fd};
	answer(client, &reply, descriptors, 3);
}

/* A library is about to go, or the process: what was sampled in its code is walked while it is
   still there. */
static void modules(struct session *s, const struct client *client, const struct ucred *peer)
{
	struct wire_reply reply = {.magic = WIRE_MAGIC};
	struct process *p = process_find(s, peer->pid);
	if (p)
		p->useless = 0;
	inside_take_all(s);
	for (struct arena *a = s->arenas; a; a = a->next)
		if (!p || a == p->arena) /* else a child that nobody has looked at yet */
			arena_scan(s, a);
	p = process_find(s, peer->pid);
	if (p)
		err_free(process_look(s, p, NULL));
	answer(client, &reply, NULL, 0);
}

void talk_hear(struct session *s, struct client *client)
{
	struct wire_request request;
	struct ucred peer;
	socklen_t length = sizeof peer;
	ssize_t size = recv(client->fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size == (ssize_t)sizeof request && request.magic == WIRE_MAGIC &&
	    !getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.pid > 0 &&
	    may_join(s, &peer)) {
		if (request.kind == WIRE_HELLO)
			hello(s, client, &peer, &request);
		else if (request.kind == WIRE_MODULES)
			modules(s, client, &peer);
	}
	hang_up(s, client);
}
