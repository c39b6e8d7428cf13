/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `culprit probe add`, `remove`, `list` and `show`: what they say, and what the `culprit probe` that is at work answers
   (probe/steer.h). cmd/probe.c uses it. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct steer;
struct probes;
struct recorder;

struct probe_live {
	struct probes *probes;
	struct recorder *recorder;
	struct steer *steer; /* NULL: nobody can ask */
	pid_t *pids;
	size_t pid_count;
	bool children;
	bool fixed; /* what is probed cannot be changed */
	uint64_t limit;
};

/* Lets others ask. If that cannot be, counting goes on without. */
void probe_live_open(struct probe_live *live);
/* Brings the numbers up to date. */
void probe_live_refresh(struct probe_live *live);
/* Answers those who have asked. */
void probe_live_serve(struct probe_live *live);
void probe_live_close(struct probe_live *live);

/* Whether the first word behind `probe` is one of these commands. */
bool probe_live_is_command(const char *word);
/* Does what it says. Returns the exit status. */
int probe_live_ask(int argc, char **argv);
