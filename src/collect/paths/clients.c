/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations with counters. A packet has one answer, which always fits: so nobody can keep us waiting.
 *
 *    SILENT --HELLO--> MAKING --made--> TALKING --NEXT, LOADED, …, READY--> GO
 *
 * Who connects must be of our own user. The name of the socket is secret, and only the command and its descendants know it. A
 * process whose parents have ended could not be told from others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apart/packet.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/paths/work.h"
#include "process/status.h"
#include "safe/banks.h"

#define ACCEPTED_AT_ONCE 64
#define SILENCE_NS 30000000000ull

/* ---- connections ---- */

static void add_client(struct counting_work *work, int fd)
{
	struct client *client = calloc(1, sizeof *client);
	if (!client) {
		close(fd);
		return;
	}
	*client = (struct client){.next = work->clients, .fd = fd, .since_ns = now_ns()};
	work->clients = client;
	work->client_count++;
}

void clients_accept(struct counting_work *work)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE && work->client_count < CLIENTS_MAX; i++) {
		int fd = accept4(work->door.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			add_client(work, fd);
		else if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

void client_end(struct counting_work *work, struct client *client)
{
	struct client **link = &work->clients;
	while (*link != client)
		link = &(*link)->next;
	*link = client->next;
	work->client_count--;
	if (client->program)
		program_settle(client->program);
	close(client->fd);
	free(client);
}

void clients_end_silent(struct counting_work *work)
{
	uint64_t now = now_ns();
	for (struct client *c = work->clients, *next; c; c = next) {
		next = c->next;
		if (c->state == CLIENT_SILENT && now - c->since_ns > SILENCE_NS)
			client_end(work, c);
	}
}

bool client_waits(const struct client *client)
{
	char nothing;
	return recv(client->fd, &nothing, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

/* ---- answers ---- */

static bool answer(const struct client *client, struct banks_reply *reply, const int *file)
{
	reply->magic = BANKS_MAGIC;
	return packet_send(client->fd, reply, sizeof *reply, file, file ? 1 : 0, MSG_DONTWAIT) ==
	       (ssize_t)sizeof *reply;
}

static void let_go(struct counting_work *work, struct client *client, bool changed)
{
	struct banks_reply reply = {.kind = BANKS_GO, .changed = changed};
	answer(client, &reply, NULL);
	client_end(work, client);
}

static void tell_object(struct counting_work *work, struct client *client)
{
	struct program *p = client->program;
	struct banks_reply reply = {.kind = BANKS_END};
	while (client->object < p->plan.object_count && !p->paths[client->object])
		client->object++;
	if (!client->hooked) {
		reply.kind = BANKS_HOOKS;
		reply.base = p->hooks_base;
		memcpy(reply.bodies, p->bodies, sizeof reply.bodies);
		strcpy(reply.path, p->hooks_path);
	} else if (client->object < p->plan.object_count) {
		reply.kind = BANKS_OBJECT;
		reply.base = p->plan.objects[client->object].base;
		strcpy(reply.path, p->paths[client->object]);
	}
	if (!answer(client, &reply, NULL))
		client_end(work, client);
}

static void ask_for_more(struct counting_work *work, struct client *client, uint64_t count)
{
	struct banks_reply reply = {.kind = BANKS_MORE, .count = count};
	if (!answer(client, &reply, NULL))
		client_end(work, client);
}

static void finish(struct counting_work *work, struct client *client,
		   const struct banks_request *request)
{
	struct program *p = client->program;
	uint64_t more = 0;
	if (p->face.late)
		more = running_change(work, client, request, &p->face.changed);
	else
		p->face.changed = change_code(work, client);
	if (more) {
		ask_for_more(work, client, more);
		return;
	}
	if (p->face.changed)
		meter_begin(work, p);
	let_go(work, client, p->face.changed);
}

void client_made(struct counting_work *work, struct client *client)
{
	struct program *p = client->program;
	struct banks_reply reply = {
		.kind = BANKS_PLAN,
		.slots = p->slots,
		.slots_at = p->slots_at,
		.stride = p->stride,
		.size = p->size,
		.arena = p->arena,
	};
	if (p->problem)
		program_note(work, client->program, "%s", err_text(p->problem));
	if (p->problem || !p->plan.patch_count) {
		let_go(work, client, false);
		return;
	}
	client->state = CLIENT_TALKING;
	if (!answer(client, &reply, &p->memory))
		client_end(work, client);
}

/* ---- requests ---- */

static bool may_join(const struct counting_work *work, struct client *client)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.pid <= 0 ||
	    (work_is_late(work) ? peer.pid != work->running.pid : peer.uid != geteuid()))
		return false;
	client->pid = peer.pid;
	return true;
}

/* Why it cannot be counted; NULL: it can. */
static const char *refusal(const struct counting_work *work, const struct client *client,
			   const struct banks_request *request)
{
	struct process_status status;
	if (request->trouble[0])
		return request->trouble;
	if (work_is_late(work) != (request->late != 0))
		return "it has loaded the counter by itself";
	if (work->counting->emulated || request->late)
		return NULL;
	if (!process_status(client->pid, &status) || status.threads != 1)
		return "it has other threads before its beginning";
	return NULL;
}

static bool hello(struct counting_work *work, struct client *client,
		  const struct banks_request *request)
{
	if (!may_join(work, client))
		return false;
	client->program = programs_add(work, client->pid);
	if (!client->program)
		return false;
	client->program->face.thread_word = request->thread_word;
	client->program->face.atomics = request->atomics;
	if (request->late) {
		client->program->face.late = true;
		client->program->plan.words = request->first_word;
		memcpy(client->program->functions, request->hooks, sizeof request->hooks);
		work->running.program = client->program;
	}
	client->hooked = !request->late;
	client->program->face.can_contexts = request->contexts;
	const char *why = refusal(work, client, request);
	if (why) {
		program_note(work, client->program, "%s", why);
		let_go(work, client, false);
		return true;
	}
	client->state = CLIENT_MAKING;
	making_add(work, client);
	return true;
}

/* Returns false if the request is none that may come now. */
static bool obey(struct counting_work *work, struct client *client,
		 const struct banks_request *request)
{
	struct program *p = client->program;
	if (client->state == CLIENT_SILENT)
		return request->kind == BANKS_HELLO && hello(work, client, request);
	if (request->kind == BANKS_UNABLE) {
		program_note(work, client->program, "%s", request->trouble);
		let_go(work, client, false);
		return true;
	}
	bool all = client->object == p->plan.object_count;
	bool of_object = request->kind == BANKS_LOADED || request->kind == BANKS_FAILED;
	if (request->kind == BANKS_READY ? !all
					 : request->kind != BANKS_NEXT && (!of_object || all))
		return false;
	if (of_object && !client->hooked) {
		client->hooked = true;
		if (request->kind == BANKS_FAILED) {
			program_note(work, p, "%s", request->trouble);
			let_go(work, client, false);
			return true;
		}
	} else {
		if (request->kind == BANKS_FAILED)
			program_trouble(p, client->object, request->trouble);
		client->object += of_object;
	}
	if (request->kind == BANKS_READY)
		finish(work, client, request);
	else
		tell_object(work, client);
	return true;
}

void client_hear(struct counting_work *work, struct client *client)
{
	struct banks_request request;
	ssize_t size = recv(client->fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	bool good = size == (ssize_t)sizeof request && request.magic == BANKS_MAGIC;
	request.trouble[sizeof request.trouble - 1] = 0;
	if (size == 0 && client->state == CLIENT_TALKING)
		program_note(work, client->program, "%s",
			     "it went on, or ended, before its functions could be changed");
	if (!good || !obey(work, client, &request))
		client_end(work, client);
}
