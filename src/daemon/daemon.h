/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Continuous profiling of the whole machine, until somebody stops it. */
#include <stdbool.h>
#include <stdint.h>

#include "base/args.h"
#include "daemon/config.h"

struct recording_options;

struct daemon_options {
	const char *config, *database, *socket, *interval;
	uint64_t hz, every;
	struct arg_list events;
	int log;
	bool check;
};

/* The file, where there is one, and what the command line says instead. */
struct err *daemon_settings(const struct daemon_options *options, struct config *config);
/* What the session shall sample. */
struct err *daemon_events(const struct config *config, struct recording_options *out);
/* Until it is told to stop. */
struct err *daemon_run(const struct daemon_options *options);
