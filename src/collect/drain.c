/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording that goes on for weeks is taken away in parts. The harvest becomes
 * the caller's and an empty one takes its place. What outlives that is told so:
 * threads and processes have no place in the new profile yet, frames that the
 * sampler will not send again get new nodes when they are needed, stacks that
 * still wait to be walked will look for their thread anew.
 *
 * A process may be long gone when its part is taken away, so whose it was is
 * noted when it gets its place in the profile.
 */
#include "collect/kernel_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "process/status.h"

#define CONTAINER_MAX 200
#define ID_DIGITS 64 /* of a container's id, as the engines make them */
#define ID_SHOWN 12  /* as they show it */
#define START_FIELD 22
#define HELD_MANY 65536

/* ---- whose it is ---- */

/* The id of a container within the path of a control group; NULL: there is none. */
static const char *find_id(const char *path)
{
	for (const char *at = path; *at;) {
		size_t digits = strspn(at, "0123456789abcdef");
		if (digits == ID_DIGITS)
			return at;
		at += digits ? digits : 1;
	}
	return NULL;
}

/* Lines are NUMBER:CONTROLLERS:PATH; number 0 is the one hierarchy of today, else systemd's counts. */
static char *read_container(pid_t pid)
{
	struct buf text = {0};
	struct err *e = process_file(pid, "cgroup", &text);
	const char *found = NULL;
	for (const char *line = e ? NULL : buf_text(&text); line && *line;) {
		const char *path = strchr(line, ':');
		bool wanted = path &&
			      (!strncmp(line, "0::", 3) || !strncmp(path, ":name=systemd:", 14));
		path = path ? strchr(path + 1, ':') : NULL;
		if (path && wanted && path[1] == '/' && path[2] && path[2] != '\n')
			found = path + 1;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	const char *id = found ? find_id(found) : NULL;
	size_t length = found ? strcspn(found, "\n") : 0;
	if (id && id < found + length) {
		found = id;
		length = ID_SHOWN;
	}
	char *out = found ? strndup(found, length < CONTAINER_MAX ? length : CONTAINER_MAX) : NULL;
	err_free(e);
	buf_free(&text);
	return out;
}

/* As everybody sees it: in ticks. */
static int64_t start_of(const struct session *s, uint64_t ticks)
{
	return s->boot_ms + (int64_t)(ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

void drain_born(const struct session *s, struct process *p, uint64_t boot_ns)
{
	p->start_ms = start_of(s, boot_ns / (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)));
}

/* One that is gone keeps what it had from its parent. */
void drain_describe(struct session *s, struct process *p)
{
	struct process_status status;
	long ticks = p->start_ms ? -1 : process_stat_field(p->pid, START_FIELD);
	if (ticks >= 0)
		p->start_ms = start_of(s, (uint64_t)ticks);
	if (!process_status(p->pid, &status))
		return;
	p->user = status.user; /* the folder in /proc may be root's, whoever it is */
	free(p->container);
	p->container = read_container(p->pid);
}

struct err *drain_note(struct session *s, const struct process *p)
{
	struct harvest *h = &s->harvest;
	size_t index = p->profile - 1;
	if (index >= h->owner_room) {
		size_t room = (index + 1) * 2;
		struct session_process *more = reallocarray(h->owners, room, sizeof *more);
		if (!more)
			return err_new("out of memory");
		memset(more + h->owner_room, 0, (room - h->owner_room) * sizeof *more);
		h->owners = more;
		h->owner_room = room;
	}
	struct session_process *x = &h->owners[index];
	if (x->container && x->user == p->user)
		return NULL;
	x->user = p->user;
	x->container = profile_string(h->profile, p->container ? p->container : "");
	x->start_ms = p->start_ms ? p->start_ms : s->boot_ms + (int64_t)(p->start_ns / 1000000);
	return NULL;
}

/* ---- taking it away ---- */

size_t session_held(struct session *s)
{
	struct profile *p = s->harvest.profile;
	if (p->value_count > HELD_MANY)
		err_free(profile_settle(p));
	return p->value_count > p->node_count ? p->value_count : p->node_count;
}

static void name_all(struct session *s)
{
	tasks_name(s);
	kernel_renew_names(s);
	harvest_name_kernel(&s->harvest, s->kernel->names);
	harvest_name_files(s, &s->harvest);
	for (const struct process *p = s->kernel->home->processes; p; p = p->next)
		if (p->unnamed_code && p->profile)
			harvest_name_code(&s->harvest, p);
}

/* Where memory ran out while it was noted, there is none. */
static struct err *owners_of(struct harvest *h, struct session_process **out)
{
	size_t count = h->profile->process_count;
	struct session_process *owners = calloc(count + 1, sizeof *owners);
	if (!owners)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++) {
		if (i < h->owner_room)
			owners[i] = h->owners[i];
		if (!owners[i].container)
			owners[i].container = "";
	}
	*out = owners;
	return NULL;
}

struct err *session_drain(struct session *s, bool last, struct session_drained *out)
{
	struct harvest fresh;
	*out = (struct session_drained){0};
	if (last)
		kernel_stop(s);
	else
		kernel_drain(s, true);
	struct err *e = harvest_begin(s, &fresh);
	if (!e)
		e = owners_of(&s->harvest, &out->processes);
	if (!e)
		e = profile_settle(s->harvest.profile);
	if (e) {
		harvest_end(&fresh);
		session_drained_free(out);
		return e;
	}
	kernel_lost(s);
	tasks_settle(s);
	name_all(s);
	session_cover(s, s->harvest.profile, true);
	session_complete(s, s->harvest.profile, true);
	out->counted = s->kernel->counted;
	s->kernel->counted = (struct session_counted){0};
	out->making = library_take_account(s->library);
	out->profile = s->harvest.profile;
	s->harvest.profile = NULL;
	harvest_end(&s->harvest);
	s->harvest = fresh;
	s->start_ns = now_ns();
	session_describe(s);
	tasks_restart(s);
	paths_restart(s->kernel);
	library_rest(s->library);
	return NULL;
}

void session_drained_free(struct session_drained *d)
{
	profile_free(d->profile);
	free(d->processes);
	*d = (struct session_drained){0};
}
