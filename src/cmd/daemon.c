/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit daemon`: its options and settings. */
#include "cmd/daemon.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "collect/events.h"
#include "fleet/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define CONFIG_FILE (CULPRIT_SYSCONFDIR "/culprit/daemon.conf")

/* Settings */

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

struct err *daemon_events(const struct config *c, struct recording_options *s)
{
	char why[400] = "";
	struct err *e = NULL;
	*s = (struct recording_options){.hz = c->hz,
					.kernel = true,
					.whole = true,
					.drained = true,
					.every = (uint32_t)c->every,
					.maker = "/proc/self/exe",
					.reacher = "/proc/self/exe",
					.event_count = c->event_count};
	for (size_t i = 0; !e && i < c->event_count; i++)
		e = event_parse(c->events[i], c->hz, &s->events[i]);
	if (e || c->event_count)
		return e;
	s->event_count = 1;
	e = event_default(c->hz, &s->events[0], &s->timers, why, sizeof why);
	return e || !s->timers ? e : err_new("%s", why);
}

/* Also as another user than the daemon's: what is counted by default is not asked for. */
static int check_settings(const struct daemon_options *o)
{
	struct config c;
	struct recording_options session;
	struct err *e = daemon_settings(o, &c);
	if (!e && c.event_count)
		e = daemon_events(&c, &session);
	return e ? cmd_fail("daemon", e) : CMD_OK;
}

int cmd_daemon(int argc, char **argv)
{
	struct daemon_options o = {0};
	const struct arg options[] = {
		{0, "config", "FILE",
		 "settings; " CULPRIT_SYSCONFDIR "/culprit/daemon.conf unless told", ARG_STRING,
		 &o.config},
		{0, "db", "FILE",
		 "the database; $CULPRIT_DB or /var/lib/culprit/culprit.db unless told", ARG_STRING,
		 &o.database},
		{'F', "frequency", "HZ", "samples per second and CPU (199)", ARG_U64, &o.hz},
		{0, "stacks", "N", "one of N samples has its call path (1)", ARG_U64, &o.every},
		{'e', "event", "EVENT[@RATE]", "what to sample; may be given several times",
		 ARG_LIST, &o.events},
		{0, "interval", "SECONDS", "between two writes into the database (60)", ARG_STRING,
		 &o.interval},
		{0, "socket", "PATH", "the control socket; /run/culprit/control unless told",
		 ARG_STRING, &o.socket},
		{0, "log", "config|error|warning|info|debug", "what is said on stderr", ARG_CHOICE,
		 &o.log},
		{0, "check", NULL, "only say what is wrong with the settings", ARG_FLAG, &o.check},
		{0},
	};
	struct args args = {
		.command = "daemon",
		.usage = "[options]",
		.summary =
			"Samples the whole machine all the time, into a database that culprit db "
			"shows.",
		.options = options,
		.examples = "  systemctl enable --now culprit\n"
			    "  culprit daemon --db /tmp/culprit.db --interval 10\n",
	};
	int status = cmd_parse(&args, argc, argv);
	if (status >= 0)
		return status;
	if (args.count)
		return cmd_misused("daemon", "what is '%s'?", args.operands[0]);
	return o.check ? check_settings(&o) : daemon_run(&o);
}
