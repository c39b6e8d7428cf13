/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/err.h"
#include "fleet/server.h"
#include "store/store.h"

#define LINE_MAX_BYTES 8192
#define SOCKET "/run/culprit/control"

void config_default(struct config *c)
{
	*c = (struct config){.hz = 199,
			     .every = 1,
			     .interval_s = 60,
			     .keep_s = store_policy.keep_s,
			     .max_bytes = store_policy.max_bytes,
			     .log = CONFIG_INFO,
			     .fleet_every_s = 60,
			     .fleet_spool = UINT64_C(64) << 20,
			     .fleet_patience_ms = 60000};
	snprintf(c->database, sizeof c->database, "%s", store_default_path());
	snprintf(c->socket, sizeof c->socket, "%s", SOCKET);
}

/* ---- values ---- */

static struct err *set_path(char *to, const char *value)
{
	if (!*value || strlen(value) >= CONFIG_PATH_SIZE)
		return err_new("'%.200s' is not the path of a file", value);
	strcpy(to, value);
	return NULL;
}

static struct err *set_number(uint64_t *to, const char *value, uint64_t most, const char *what)
{
	static const struct amount_unit units[] = {{"", 1}, {"Hz", 1}, {0}};
	uint64_t number;
	if (!amount_read(value, units, &number) || !number || number > most)
		return err_new("'%.64s' is not %s between 1 and %llu", value, what,
			       (unsigned long long)most);
	*to = number;
	return NULL;
}

static struct err *set_time(uint64_t *to, const char *value, uint64_t most)
{
	uint64_t seconds;
	if (!amount_read(value, amount_times, &seconds) || seconds > most)
		return err_new("'%.64s' is not a time as 90s, 5min, 12h or 30d", value);
	*to = seconds;
	return NULL;
}

static struct err *set_size(uint64_t *to, const char *value)
{
	uint64_t bytes;
	if (!amount_read(value, amount_sizes, &bytes))
		return err_new("'%.64s' is not a size as 200M or 2G", value);
	*to = bytes;
	return NULL;
}

static struct err *add_event(struct config *c, const char *value)
{
	if (c->event_count == CONFIG_EVENTS_MAX)
		return err_new("at most %d events at once", CONFIG_EVENTS_MAX);
	if (!*value || strlen(value) >= CONFIG_EVENT_SIZE)
		return err_new("'%.64s' is no event", value);
	strcpy(c->events[c->event_count++], value);
	return NULL;
}

static struct err *set_log(struct config *c, const char *value)
{
	static const char *const names[] = {"error", "warning", "info", "debug"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(value, names[i])) {
			c->log = (enum config_log)i;
			return NULL;
		}
	return err_new("'%.64s' is not one of error, warning, info, debug", value);
}

static struct err *set_interval(struct config *c, const char *value)
{
	uint64_t seconds = 0;
	struct err *e = set_time(&seconds, value, CONFIG_INTERVAL_MAX);
	if (!e && !seconds)
		e = err_new("an interval has at least one second");
	if (!e)
		c->interval_s = seconds;
	return e;
}

static struct err *set_patience(struct config *c, const char *value)
{
	uint64_t seconds = 0;
	struct err *e = set_time(&seconds, value, 3600);
	if (!e && !seconds)
		e = err_new("a server needs at least one second");
	if (!e)
		c->fleet_patience_ms = seconds * 1000;
	return e;
}

/* A server for many hosts. */
static struct err *set_fleet(struct config *c, const char *name, const char *value, bool *known)
{
	*known = true;
	if (!strcmp(name, "fleet"))
		return server_is_address(value)
			       ? set_path(c->fleet, value)
			       : err_new("it is http://HOST:PORT/DATABASE, or https");
	if (!strcmp(name, "fleet-credentials"))
		return set_path(c->fleet_credentials, value);
	if (!strcmp(name, "fleet-ca"))
		return set_path(c->fleet_ca, value);
	if (!strcmp(name, "fleet-every"))
		return set_time(&c->fleet_every_s, value, 86400);
	if (!strcmp(name, "fleet-spool"))
		return set_size(&c->fleet_spool, value);
	if (!strcmp(name, "fleet-patience"))
		return set_patience(c, value);
	*known = false;
	return NULL;
}

struct err *config_set(struct config *c, const char *name, const char *value)
{
	bool known;
	struct err *e = set_fleet(c, name, value, &known);
	if (known)
		return err_context(e, "%s", name);
	if (!strcmp(name, "database"))
		e = server_is_address(value) ? err_new("the daemon writes a file; 'fleet' names a "
						       "server that it sends to")
					     : set_path(c->database, value);
	else if (!strcmp(name, "socket"))
		e = set_path(c->socket, value);
	else if (!strcmp(name, "frequency"))
		e = set_number(&c->hz, value, CONFIG_HZ_MAX, "a rate");
	else if (!strcmp(name, "stacks"))
		e = set_number(&c->every, value, CONFIG_EVERY_MAX, "a number");
	else if (!strcmp(name, "interval"))
		e = set_interval(c, value);
	else if (!strcmp(name, "keep"))
		e = set_time(&c->keep_s, value, STORE_KEEP_MAX);
	else if (!strcmp(name, "max-size"))
		e = set_size(&c->max_bytes, value);
	else if (!strcmp(name, "event"))
		e = add_event(c, value);
	else if (!strcmp(name, "log"))
		e = set_log(c, value);
	else
		return err_new("there is no setting '%.64s'", name);
	return err_context(e, "%s", name);
}

/* ---- the file ---- */

static char *strip(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = 0;
	return text;
}

static struct err *read_line(struct config *c, char *line)
{
	line[strcspn(line, "#")] = 0;
	char *name = strip(line), *value = strchr(name, '=');
	if (!*name)
		return NULL;
	if (!value)
		return err_new("'%.64s' is not of the form name = value", name);
	*value = 0;
	return config_set(c, strip(name), strip(value + 1));
}

struct err *config_read(struct config *c, const char *path)
{
	char line[LINE_MAX_BYTES];
	struct config read = *c;
	struct err *e = NULL;
	unsigned number = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return err_errno("%s: cannot open", path);
	while (!e && fgets(line, sizeof line, file)) {
		number++;
		if (!strchr(line, '\n') && !feof(file))
			e = strlen(line) < sizeof line - 1
				    ? err_new("a NUL is in it: this is no text file")
				    : err_new("the line is too long");
		else
			e = read_line(&read, line);
	}
	if (!e && ferror(file))
		e = err_errno("cannot read");
	fclose(file);
	if (!e)
		*c = read;
	return number ? err_context(e, "%s, line %u", path, number) : err_context(e, "%s", path);
}
