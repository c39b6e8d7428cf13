/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon's settings: a file of lines "name = value", with comments after
 * '#'. What is not said is as in config_default.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define CONFIG_EVENTS_MAX 8
#define CONFIG_EVENT_SIZE 64
#define CONFIG_PATH_SIZE 4096
#define CONFIG_HZ_MAX 20000u
#define CONFIG_EVERY_MAX 1000u
#define CONFIG_INTERVAL_MAX 3600u

enum config_log { CONFIG_ERROR, CONFIG_WARNING, CONFIG_INFO, CONFIG_DEBUG };

struct config {
	char database[CONFIG_PATH_SIZE], socket[CONFIG_PATH_SIZE];
	uint64_t hz;         /* samples per second and CPU */
	uint64_t every;      /* one of so many samples has its call path */
	uint64_t interval_s; /* between two drains */
	uint64_t keep_s, max_bytes;
	char events[CONFIG_EVENTS_MAX][CONFIG_EVENT_SIZE]; /* none: what record uses */
	size_t event_count;
	enum config_log log;
	char fleet[CONFIG_PATH_SIZE];             /* address of a server; "": none */
	char fleet_credentials[CONFIG_PATH_SIZE]; /* "": as fleet/server.h says */
	char fleet_ca[CONFIG_PATH_SIZE];          /* the same */
	uint64_t fleet_every_s;                   /* between two sendings */
	uint64_t fleet_spool;                     /* bytes that may wait */
	uint64_t fleet_patience_ms;               /* with a server that says nothing */
};

void config_default(struct config *config);
/* One setting by its name; an error says what is wrong with the value. */
struct err *config_set(struct config *config, const char *name, const char *value);
/* All lines of a file. After an error the settings are as they were. */
struct err *config_read(struct config *config, const char *path);
