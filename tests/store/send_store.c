/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_store [--patience MS] [--every S] [--spool BYTES] [--seconds S] [--from-start 1] [--until PID]
 * DATABASE ADDRESS: sends the spans of a database to a server, as a daemon does beside its sampling, until all are
 * there or the time (60 s) is over; what the daemon would say is on stderr. With --from-start spans that
 * the database has already are sent, too; with --until it goes on while that process runs. Exit status 0: all are sent.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "daemon/shipper.h"
#include "daemon/writer.h"
#include "store/unsent.h"

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "send_store: %s\n", err_text(e));
	exit(1);
}

static void say(void *context, enum config_log level, const char *text)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	(void)context;
	fprintf(stderr, "%s: %s\n", names[level], text);
}

static char machine[64]; /* as the daemon has it */

/* How many wait; how far it is noted. */
static size_t waiting(const char *path, struct writer *writer)
{
	struct unsent_span spans[1];
	struct unsent_state state;
	struct store *store;
	uint64_t bytes;
	size_t count;
	check(writer_send_begin(writer, machine, &state));
	check(store_open(path, STORE_READ, &store));
	check(unsent_list(store, state.sent, spans, 1, &count, &bytes));
	store_close(store);
	return count;
}

int main(int argc, char **argv)
{
	struct config config;
	struct writer *writer;
	struct shipper *shipper;
	struct unsent_state state;
	long seconds = 60, until = 0;
	bool from_start = false;
	int i = 1;
	FILE *id = fopen("/etc/machine-id", "re");
	if (id && fgets(machine, sizeof machine, id))
		machine[strcspn(machine, "\n")] = 0;
	config_default(&config);
	config.fleet_every_s = 0;
	for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
		if (!strcmp(argv[i], "--seconds"))
			seconds = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--until"))
			until = strtol(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--from-start"))
			from_start = true;
		else if (!strcmp(argv[i], "--patience"))
			config.fleet_patience_ms = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--every"))
			check(config_set(&config, "fleet-every", argv[i + 1]));
		else if (!strcmp(argv[i], "--spool"))
			check(config_set(&config, "fleet-spool", argv[i + 1]));
		else
			check(err_new("what is %s?", argv[i]));
	}
	if (argc - i != 2)
		check(err_new("a database and an address"));
	config.keep_s = 0;
	check(config_set(&config, "database", argv[i]));
	check(config_set(&config, "fleet", argv[i + 1]));
	check(writer_open(argv[i], &writer));
	if (from_start) {
		check(writer_send_begin(writer, machine, &state));
		state.sent = 0;
		check(writer_send_note(writer, &state));
	}
	check(shipper_open(&config, writer, &shipper));
	for (time_t end = time(NULL) + seconds;
	     time(NULL) < end && ((until && !kill((pid_t)until, 0)) || waiting(argv[i], writer));) {
		shipper_tick(shipper, say, NULL);
		usleep(50000);
	}
	shipper_finish(shipper, say, NULL);
	size_t left = waiting(argv[i], writer);
	shipper_close(shipper);
	writer_close(writer);
	return left ? 1 : 0;
}
