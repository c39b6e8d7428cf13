/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs are switched on and off while a machine runs, virtual ones above all. So the list of CPUs is read
   again each second, and events are opened and closed accordingly. */
#include "collect/kernel/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/events.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/object.h"
#include "collect/kernel/state.h"
#include "harvest/recording.h"

#define ONLINE "/sys/devices/system/cpu/online"
#define LOOK_NS 1000000000ull

/* ---- which CPUs are on ---- */

/* Parses numbers and ranges: "0-3,5". */
static void read_list(const char *text, bool *online, unsigned cpus)
{
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;
		if (end == text)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < cpus; i++)
			online[i] = true;
		text = end + (*end == ',');
	}
}

/* If nothing says which CPUs are on, all are tried. */
static void read_online(const struct kernel *k, bool *online)
{
	char text[4096] = "";
	FILE *file = fopen(ONLINE, "re");
	memset(online, 0, k->cpus * sizeof *online);
	if (file && !fgets(text, sizeof text, file))
		text[0] = 0;
	if (file)
		fclose(file);
	if (text[0])
		read_list(text, online, k->cpus);
	else
		memset(online, 1, k->cpus * sizeof *online);
}

/* ---- events of a CPU ---- */

int cpus_open_event(const struct recording_event *event, pid_t pid, int cpu)
{
	struct perf_event_attr attr = event_attr(event);
	attr.sample_period = event->period;
	attr.exclude_kernel = attr.exclude_hv = event->user_only;
	/* Hardware counters of aarch64 refuse this. They nearly stand still on an idle CPU anyway. */
	attr.exclude_idle = event->type == PERF_TYPE_SOFTWARE;
	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void tally_one(struct kernel *k, size_t index, struct tally *tallies, bool anew)
{
	struct tally_reading now, *before = &k->events.readings[index];
	if (!tally_read(k->events.fds[index], &now))
		return;
	tally_add(&tallies[index % k->recording->options.event_count], before, &now);
	if (anew)
		*before = now;
}

static void close_event(struct kernel *k, size_t index)
{
	struct bpf_link *link = k->events.links[index];
	tally_one(k, index, k->events.tallies, false);
	k->events.readings[index] = (struct tally_reading){0};
	object_drop(k, link); /* closes its descriptor, too */
	k->events.links[index] = NULL;
	k->events.fds[index] = -1;
}

static struct err *open_cpu(struct kernel *k, unsigned cpu)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, "sample");
	size_t count = k->recording->options.event_count;
	for (size_t i = 0; i < count; i++) {
		LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = i);
		if (event_is_off(&k->recording->options.events[i]) ||
		    k->recording->options.events[i].io || k->recording->options.events[i].probe)
			continue;
		int fd = cpus_open_event(&k->recording->options.events[i], -1, (int)cpu);
		if (fd < 0 && errno == ENODEV) /* the CPU is off */
			return NULL;
		if (fd < 0)
			return err_new("%s: cannot be sampled on CPU %u: %s",
				       k->recording->options.events[i].name, cpu,
				       event_refused(errno));
		struct bpf_link *link = bpf_program__attach_perf_event_opts(program, fd, &opts);
		struct err *e = object_keep(k, link, k->recording->options.events[i].name);
		if (e)
			return e;
		k->events.fds[cpu * count + i] = fd; /* the link closes it */
		k->events.paces[cpu * count + i] = (struct kernel_pace){
			k->recording->options.events[i].period, 0, 0};
		k->events.links[cpu * count + i] = link;
	}
	k->events.online[cpu] = true;
	return NULL;
}

struct err *cpus_open(struct kernel *k)
{
	size_t count = (size_t)k->cpus * k->recording->options.event_count;
	struct err *e = NULL;
	bool *online = calloc(k->cpus, sizeof *online), any = false;
	k->events.fds = calloc(count, sizeof *k->events.fds);
	k->events.readings = calloc(count, sizeof *k->events.readings);
	k->events.paces = calloc(count, sizeof *k->events.paces);
	k->events.links = calloc(count, sizeof *k->events.links);
	k->events.online = calloc(k->cpus, sizeof *k->events.online);
	k->events.enabled_ns = calloc(k->cpus, sizeof *k->events.enabled_ns);
	if (!online || !k->events.fds || !k->events.readings || !k->events.paces ||
	    !k->events.links || !k->events.online || !k->events.enabled_ns) {
		free(online);
		return err_new("out of memory");
	}
	memset(k->events.fds, -1, count * sizeof *k->events.fds);
	read_online(k, online);
	for (unsigned cpu = 0; !e && cpu < k->cpus; cpu++)
		if (online[cpu]) {
			e = open_cpu(k, cpu);
			any |= k->events.online[cpu];
		}
	free(online);
	return e || any ? e : err_new("no CPU can be sampled");
}

static void each_event(const struct kernel *k, unsigned long request)
{
	for (size_t i = 0; i < k->cpus * k->recording->options.event_count; i++)
		if (k->events.fds[i] >= 0)
			ioctl(k->events.fds[i], request, 0);
}

void cpus_enable(const struct kernel *k)
{
	each_event(k, PERF_EVENT_IOC_ENABLE);
}

void cpus_disable(const struct kernel *k)
{
	each_event(k, PERF_EVENT_IOC_DISABLE);
}

void cpus_tally(struct kernel *k, struct tally *tallies, bool anew)
{
	memcpy(tallies, k->events.tallies, sizeof k->events.tallies);
	if (anew)
		memset(k->events.tallies, 0, sizeof k->events.tallies);
	for (size_t i = 0; i < k->cpus * k->recording->options.event_count; i++)
		tally_one(k, i, tallies, anew);
}

void cpus_close(struct kernel *k)
{
	struct kernel_events *e = &k->events;
	free(e->fds);
	free(e->readings);
	free(e->paces);
	free(e->links);
	free(e->online);
	free(e->enabled_ns);
}

/* ---- CPUs that come and go ---- */

static bool is_due(struct kernel *k)
{
	uint64_t now = now_ns();
	if (now - k->events.looked_ns < LOOK_NS)
		return false;
	k->events.looked_ns = now;
	return true;
}

/* Whether the CPU was off since the last look: its events count nothing any more then. */
static bool is_dead(struct kernel *k, unsigned cpu)
{
	struct tally_reading now = {0};
	uint64_t before = k->events.enabled_ns[cpu];
	k->events.enabled_ns[cpu] = 0;
	if (!tally_read(k->events.fds[cpu * k->recording->options.event_count], &now))
		return false;
	k->events.enabled_ns[cpu] = now.enabled_ns;
	return before && now.enabled_ns == before;
}

/* Events that were opened before their CPU was switched off are dead. They are closed, and opened again. */
void cpus_follow(struct kernel *k)
{
	size_t count = k->recording->options.event_count;
	bool *online = k->sampling && is_due(k) ? calloc(k->cpus, sizeof *online) : NULL;
	if (!online)
		return;
	read_online(k, online);
	for (unsigned cpu = 0; cpu < k->cpus; cpu++) {
		if (online[cpu] == k->events.online[cpu] && !(online[cpu] && is_dead(k, cpu)))
			continue;
		for (size_t i = 0; i < count; i++)
			close_event(k, cpu * count + i);
		k->events.online[cpu] = false;
		k->events.enabled_ns[cpu] = 0;
		mapped_leave(k, cpu);
		if (!online[cpu])
			continue;
		err_free(open_cpu(k, cpu)); /* if that fails, it is tried again later */
		for (size_t i = 0; i < count; i++)
			if (k->events.fds[cpu * count + i] >= 0)
				ioctl(k->events.fds[cpu * count + i], PERF_EVENT_IOC_ENABLE, 0);
		mapped_watch(k, cpu);
	}
	free(online);
}
