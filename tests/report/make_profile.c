/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_profile OUT: writes the profile that the lines on stdin describe, for tests of what reads
 * profiles. Numbers of modules, processes and so on count from 0 in the order of their lines
 * (modules from 1).
 *
 *    command TEXT | note TEXT | hz N | seconds N | incomplete
 *    lost N REASON
 *    metric NAME UNIT PERIOD [ENABLED RUNNING]   the last two: nanoseconds that it was to be counted, and was
 *    module file|vdso|jit|kernel BUILD_ID|- PATH
 *    name MODULE START SIZE NAME         of a jit module, or the kernel; before any path
 *    process PID RANK NAME
 *    thread PROCESS TID NAME
 *    path THREAD METRIC COUNT FRAME…     outermost first: MODULE:ADDRESS, or !REASON (a number)
 *                                        first; all but the last are return addresses
 *    during THREAD METRIC FROM TO FRAME…  a sample each millisecond after FROM until TO, on the time
 *                                        line too
 *    waiting THREAD METRIC FROM TO WAKER WAITED FRAME…  the same of a wait, which WAKER ended (the number of a thread,
 *                                        interrupt, kernel, outsider or -: not known), having waited itself for
 *                                        WAITED milliseconds of it
 *    joined MICROSECONDS | untimed N     of the time line
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "profile/profile.h"

#define MODULES_MAX 64

static struct profile *profile;
static struct profile_module modules[MODULES_MAX]; /* added when the first path comes */
static size_t module_count;
static unsigned line_number;

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "make_profile: line %u: %s\n", line_number, err_text(e));
	exit(1);
}

static char *word(char **rest)
{
	char *w;
	while ((w = strsep(rest, " ")) && !*w)
		;
	if (!w)
		check(err_new("words are missing"));
	return w;
}

static uint64_t number(char **rest)
{
	return strtoull(word(rest), NULL, 0);
}

static void add_name(char *rest)
{
	struct profile_module *m = &modules[number(&rest) - 1];
	m->names = reallocarray(m->names, m->name_count + 1, sizeof *m->names);
	struct profile_name *name = &m->names[m->name_count++];
	*name = (struct profile_name){.start = number(&rest)};
	name->size = number(&rest);
	name->name = strdup(rest);
}

static void add_modules(void)
{
	static bool done;
	uint32_t index;
	for (size_t i = 0; i < module_count && !done; i++)
		check(profile_add_module(profile, &modules[i], &index));
	done = true;
}

static void add_module(char *rest)
{
	const char *kind = word(&rest), *id = word(&rest);
	modules[module_count++] = (struct profile_module){
		.kind = !strcmp(kind, "file")     ? PROFILE_FILE
			: !strcmp(kind, "jit")    ? PROFILE_JIT
			: !strcmp(kind, "kernel") ? PROFILE_KERNEL
						  : PROFILE_VDSO,
		.build_id = strdup(strcmp(id, "-") ? id : ""),
		.path = strdup(rest),
		.problem = "",
	};
}

static uint32_t add_frames(char *rest)
{
	uint32_t node = 0;
	add_modules();
	while (rest && *rest) {
		char *frame = word(&rest), *colon = strchr(frame, ':');
		bool last = !rest || !*rest;
		if (frame[0] == '!')
			check(profile_child(profile, node, PROFILE_PARTIAL, 0,
					    strtoull(frame + 1, NULL, 0), &node));
		else
			check(profile_child(profile, node, last ? PROFILE_EXACT : PROFILE_CALL,
					    (uint32_t)strtoul(frame, NULL, 0),
					    strtoull(colon ? colon + 1 : "0", NULL, 0), &node));
	}
	return node;
}

static void add_path(char *rest)
{
	uint32_t thread = (uint32_t)number(&rest), metric = (uint32_t)number(&rest);
	uint64_t count = number(&rest);
	check(profile_count(profile, add_frames(rest), thread, metric, count));
}

static void add_time(char *rest)
{
	uint32_t thread = (uint32_t)number(&rest), metric = (uint32_t)number(&rest), node;
	uint64_t from = number(&rest), to = number(&rest);
	node = add_frames(rest);
	profile->timed = true;
	for (; from < to; from++) {
		check(profile_count(profile, node, thread, metric, 1));
		check(profile_time(profile, node, thread, metric, (from + 1) * 1000000, 1));
	}
}

/* 1 + enum profile_waker; 0: not known. */
static uint32_t find_waker(const char *name)
{
	return !strcmp(name, "-")           ? 0
	       : !strcmp(name, "interrupt") ? 1 + PROFILE_WAKER_INTERRUPT
	       : !strcmp(name, "kernel")    ? 1 + PROFILE_WAKER_KERNEL
	       : !strcmp(name, "outsider")  ? 1 + PROFILE_WAKER_OUTSIDER
					    : 1 + PROFILE_WAKERS + (uint32_t)strtoul(name, NULL, 0);
}

static void add_wait(char *rest)
{
	struct profile_span span = {.thread = (uint32_t)number(&rest)};
	span.metric = (uint32_t)number(&rest);
	uint64_t from = number(&rest), to = number(&rest);
	span.waker = find_waker(word(&rest));
	uint64_t waited = number(&rest);
	span.node = add_frames(rest);
	span.start_us = from * 1000;
	span.duration_us = (to - from) * 1000;
	span.samples = (uint32_t)(to - from);
	profile->timed = true;
	check(profile_count(profile, span.node, span.thread, span.metric, span.samples));
	check(profile_time_span(profile, &span));
	if (span.waker)
		check(profile_wake(profile, &(struct profile_wake){.node = span.node,
								   .thread = span.thread,
								   .metric = span.metric,
								   .waker = span.waker - 1,
								   .count = span.samples,
								   .waited = waited}));
}

static void add_others(const char *kind, char *rest)
{
	uint32_t index;
	if (!strcmp(kind, "metric")) {
		struct profile_metric m = {.name = word(&rest)};
		m.unit = word(&rest);
		m.period = number(&rest);
		if (rest) {
			m.coverage.enabled_ns = number(&rest);
			m.coverage.running_ns = number(&rest);
		}
		check(profile_add_metric(profile, &m, &index));
	} else if (!strcmp(kind, "process")) {
		struct profile_process p = {.pid = (int32_t)number(&rest),
					    .rank = (int32_t)strtol(word(&rest), NULL, 0),
					    .command = ""};
		p.name = rest;
		check(profile_add_process(profile, &p, &index));
	} else if (!strcmp(kind, "thread")) {
		struct profile_thread t = {.process = (uint32_t)number(&rest),
					   .tid = (int32_t)number(&rest),
					   .cpu_ns = 1000000000,
					   .handler_ns = 2000000,
					   .handled = 1000};
		t.name = rest;
		check(profile_add_thread(profile, &t, &index));
	} else {
		check(err_new("what is '%s'?", kind));
	}
}

static void read_line(char *text)
{
	char *rest = text, *kind = word(&rest);
	if (!strcmp(kind, "command"))
		profile->command = profile_string(profile, rest);
	else if (!strcmp(kind, "note"))
		profile->note = profile_string(profile, rest);
	else if (!strcmp(kind, "hz"))
		profile->hz = number(&rest);
	else if (!strcmp(kind, "seconds"))
		profile->duration_ns = number(&rest) * 1000000000;
	else if (!strcmp(kind, "incomplete"))
		profile->complete = false;
	else if (!strcmp(kind, "module"))
		add_module(rest);
	else if (!strcmp(kind, "name"))
		add_name(rest);
	else if (!strcmp(kind, "path"))
		add_path(rest);
	else if (!strcmp(kind, "during"))
		add_time(rest);
	else if (!strcmp(kind, "waiting"))
		add_wait(rest);
	else if (!strcmp(kind, "joined"))
		profile->coarse_us = number(&rest);
	else if (!strcmp(kind, "untimed"))
		profile->untimed = number(&rest);
	else if (!strcmp(kind, "lost")) {
		uint64_t count = number(&rest);
		check(profile_lose(profile, rest, count));
	} else {
		add_others(kind, rest);
	}
}

int main(int argc, char **argv)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t size;
	check(profile_new(&profile));
	profile->complete = true;
	while ((size = getline(&text, &room, stdin)) > 0) {
		line_number++;
		text[strcspn(text, "\n")] = 0;
		if (text[0] && text[0] != '#')
			read_line(text);
	}
	free(text);
	check(argc == 2 ? profile_write(profile, argv[1]) : err_new("usage: make_profile OUT"));
	return 0;
}
