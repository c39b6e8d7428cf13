/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's settings. */
#include "scratch.h"

#include "base/err.h"
#include "daemon/config.h"

static void assert_refused(struct config *c, const char *name, const char *value)
{
	struct config before = *c;
	struct err *e = config_set(c, name, value);
	assert_non_null(e);
	err_free(e);
	assert_memory_equal(c, &before, sizeof before);
}

static void reads_values(void **state)
{
	struct config c;
	(void)state;
	config_default(&c);
	assert_int_equal(c.interval_s, 60);
	assert_null(config_set(&c, "interval", "5min"));
	assert_int_equal(c.interval_s, 300);
	assert_null(config_set(&c, "interval", "7"));
	assert_int_equal(c.interval_s, 7);
	assert_null(config_set(&c, "keep", "30 days"));
	assert_int_equal(c.keep_s, 30 * 86400);
	assert_null(config_set(&c, "keep", "0"));
	assert_int_equal(c.keep_s, 0);
	assert_null(config_set(&c, "max-size", "2G"));
	assert_int_equal(c.max_bytes, 2ull << 30);
	assert_null(config_set(&c, "frequency", "97Hz"));
	assert_int_equal(c.hz, 97);
	assert_null(config_set(&c, "log", "debug"));
	assert_int_equal(c.log, CONFIG_DEBUG);
	assert_true(!*c.fleet && c.fleet_every_s == 60 && c.fleet_patience_ms == 60000);
	assert_null(config_set(&c, "fleet", "http://profiles:8123/culprit"));
	assert_string_equal(c.fleet, "http://profiles:8123/culprit");
	assert_null(config_set(&c, "fleet-credentials", "/etc/culprit/fleet"));
	assert_string_equal(c.fleet_credentials, "/etc/culprit/fleet");
	assert_null(config_set(&c, "fleet-ca", "/etc/culprit/ca.pem"));
	assert_string_equal(c.fleet_ca, "/etc/culprit/ca.pem");
	assert_null(config_set(&c, "fleet-every", "0"));
	assert_int_equal(c.fleet_every_s, 0);
	assert_null(config_set(&c, "fleet-spool", "1G"));
	assert_int_equal(c.fleet_spool, 1u << 30);
	assert_null(config_set(&c, "fleet-patience", "5s"));
	assert_int_equal(c.fleet_patience_ms, 5000);
}

static void refuses_nonsense(void **state)
{
	static const char *const pairs[][2] = {
		{"interval", "0"},
		{"interval", "2h"},
		{"interval", "-1"},
		{"interval", "1.5s"},
		{"interval", ""},
		{"keep", "3 moons"},
		{"keep", "99999999999999999999d"},
		{"keep", "9999999999999w"}, /* more milliseconds than there is room for */
		{"max-size", "20 elephants"},
		{"max-size", "18446744073709551615G"},
		{"frequency", "0"},
		{"frequency", "20001"},
		{"frequency", "fast"},
		{"log", "loud"},
		{"database", ""},
		{"event", ""},
		{"colour", "blue"},
		{"database", "http://profiles:8123/culprit"},
		{"fleet", "profiles:8123"},
		{"fleet", ""},
		{"fleet-credentials", ""},
		{"fleet-every", "2d"},
		{"fleet-spool", "much"},
		{"fleet-patience", "0"},
		{"fleet-patience", "2h"},
		{"fleet-colour", "blue"},
	};
	struct config c;
	(void)state;
	config_default(&c);
	for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
		assert_refused(&c, pairs[i][0], pairs[i][1]);
	for (int i = 0; i < CONFIG_EVENTS_MAX; i++)
		assert_null(config_set(&c, "event", "cpu-clock"));
	assert_refused(&c, "event", "cpu-clock");
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* All of it, or nothing. */
static void reads_files(void **state)
{
	struct config c, before;
	const char *path = scratch("daemon.conf");
	struct err *e;
	(void)state;
	config_default(&c);
	write_text(
		path,
		"# first\n\n  frequency=  250 # of them\n\tevent = cycles\nevent = page-faults@100\n");
	assert_null(config_read(&c, path));
	assert_int_equal(c.hz, 250);
	assert_int_equal(c.event_count, 2);
	assert_string_equal(c.events[1], "page-faults@100");

	before = c;
	write_text(path, "frequency = 300\ninterval 5\n");
	e = config_read(&c, path);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "line 2"));
	err_free(e);
	assert_memory_equal(&c, &before, sizeof before);
	e = config_read(&c, "/nowhere/daemon.conf");
	assert_non_null(e);
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_values),
		cmocka_unit_test(refuses_nonsense),
		cmocka_unit_test(reads_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
