/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/events.h"
#include "fleet/server.h"
#include "harvest/recording.h"

#define CONFIG_FILE (CULPRIT_SYSCONFDIR "/culprit/daemon.conf")

struct err *daemon_settings(const struct daemon_options *o, struct config *c)
{
	static const char *const levels[] = {NULL, "error", "warning", "info", "debug"};
	const char *file = o->config ? o->config : CONFIG_FILE;
	char hz[32], every[32];
	struct err *e = NULL;
	config_default(c);
	if (o->config || !access(file, F_OK) || errno != ENOENT)
		e = config_read(c, file);
	snprintf(hz, sizeof hz, "%" PRIu64, o->hz);
	snprintf(every, sizeof every, "%" PRIu64, o->every);
	const struct {
		const char *name, *value;
	} given[] = {{"database", o->database},           {"socket", o->socket},
		     {"interval", o->interval},           {"frequency", o->hz ? hz : NULL},
		     {"stacks", o->every ? every : NULL}, {"log", levels[o->log]}};
	for (size_t i = 0; !e && i < sizeof given / sizeof *given; i++)
		if (given[i].value)
			e = config_set(c, given[i].name, given[i].value);
	if (!e && o->events.count)
		c->event_count = 0;
	for (size_t i = 0; !e && i < o->events.count; i++)
		e = config_set(c, "event", o->events.values[i]);
	if (!e && server_is_address(c->database)) /* as $CULPRIT_DB may be */
		e = config_set(c, "database", c->database);
	return e;
}

/* Adds an event, and others that come with it. */
static struct err *add_event(const struct config *c, const char *name, struct recording_options *s)
{
	struct recording_event event, more[EVENT_COMPANIONS];
	struct err *e = event_parse(name, c->hz, &event);
	if (e)
		return e;
	if (event.off && event.clock)
		return err_new(
			"event '%s': the daemon keeps time on and off the CPU apart: cpu-clock "
			"and blocked",
			event.name);
	if (event.call)
		return err_new("event '%s': only the agent in a program that record starts sees it",
			       event.name);
	if (event.io)
		return err_new("event '%s': the daemon does not keep it: culprit record -a does",
			       event.name);
	size_t companions = event_companions(&event, more);
	if (s->event_count + 1 + companions > CONFIG_EVENTS_MAX)
		return err_new("at most %d events at once", CONFIG_EVENTS_MAX);
	s->events[s->event_count++] = event;
	for (size_t i = 0; i < companions; i++)
		s->events[s->event_count++] = more[i];
	return NULL;
}

struct err *daemon_events(const struct config *c, struct recording_options *s)
{
	char why[400] = "";
	struct err *e = NULL;
	*s = (struct recording_options){.hz = c->hz,
					.kernel_frames = true,
					.kernel = true,
					.whole = true,
					.drained = true,
					.every = (uint32_t)c->every,
					.maker = "/proc/self/exe",
					.reacher = "/proc/self/exe"};
	for (size_t i = 0; !e && i < c->event_count; i++)
		e = add_event(c, c->events[i], s);
	if (e || c->event_count)
		return e;
	s->event_count = 1;
	e = event_default(c->hz, &s->events[0], &s->timers, why, sizeof why);
	return e || !s->timers ? e : err_new("%s", why);
}
