/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit daemon`: its options. */
#include "daemon/daemon.h"

#include "base/err.h"
#include "cmd/cmd.h"
#include "harvest/recording.h"

/* Also as another user than the daemon's: what is counted by default is not asked for. */
static struct err *check_settings(const struct daemon_options *o)
{
	struct config c;
	struct recording_options session;
	struct err *e = daemon_settings(o, &c);
	if (!e && c.event_count)
		e = daemon_events(&c, &session);
	return e;
}

int cmd_daemon(int argc, char **argv)
{
	struct daemon_options o = {0};
	const struct arg options[] = {
		{0, "config", "FILE",
		 "settings; " CULPRIT_SYSCONFDIR "/culprit/daemon.conf by default", ARG_STRING,
		 &o.config},
		{0, "db", "FILE",
		 "the database; $CULPRIT_DB or /var/lib/culprit/culprit.db by default", ARG_STRING,
		 &o.database},
		{'F', "frequency", "HZ", "samples per second and CPU (199)", ARG_U64, &o.hz},
		{0, "stacks", "N", "one of N samples has its call path (1)", ARG_U64, &o.every},
		{'e', "event", "EVENT[@RATE]", "what to sample; may be given several times",
		 ARG_LIST, &o.events},
		{0, "interval", "TIME", "between two writes into the database (60)", ARG_STRING,
		 &o.interval},
		{0, "socket", "PATH", "the control socket; /run/culprit/control by default",
		 ARG_STRING, &o.socket},
		{0, "log", "config|error|warning|info|debug", "which messages go to stderr",
		 ARG_CHOICE, &o.log},
		{0, "check", NULL, "only check the settings", ARG_FLAG, &o.check},
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
		return cmd_misused("daemon", "unexpected argument '%s'", args.operands[0]);
	struct err *e = o.check ? check_settings(&o) : daemon_run(&o);
	return e ? cmd_fail("daemon", e) : CMD_OK;
}
