/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a name to what perf_event_open takes.
 *
 * With agents, a sample is a signal. Some events happen while the kernel puts a thread to sleep or acts on
 * a signal. If each of them were sampled, the signal of one would cause the next: a thread that goes to
 * sleep is woken by the signal, goes to sleep again, and so on for ever. Such events have a least period.
 *
 * Other events always happen in the kernel. If only user code may be watched, they would never be seen, so
 * they are refused.
 */
#include "collect/events.h"

#include "base/err.h"
#include "collect/event_pfm.h"
#include "collect/tally.h"
#include "harvest/probes.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define CLOCK_HZ_MAX 100000u       /* the kernel's clock events fire no more often */
#define ASSUMED_CPU_HZ 1000000000u /* if the machine does not tell */
#define PERIOD_MAX (UINT64_MAX >> 2)
#define SELF_CAUSED_LEAST 10u
#define HARDWARE_LEAST 1000u /* handling a sample causes more events than that */
#define HARDWARE_EVERY 1000000u

struct known {
	const char *name, *alias, *unit;
	uint32_t type;
	uint64_t config;
	uint64_t every; /* period without '@'; 0: a rate in samples per second */
	uint64_t least;
};

#define SOFTWARE(event) PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##event
#define HARDWARE(event) PERF_TYPE_HARDWARE, PERF_COUNT_HW_##event

static const struct known table[] = {
	{"cpu-clock", NULL, "ns", SOFTWARE(CPU_CLOCK), 0, 0},
	{"task-clock", NULL, "ns", SOFTWARE(TASK_CLOCK), 0, 0},
	{"page-faults", "faults", "faults", SOFTWARE(PAGE_FAULTS), 10, 1},
	{"minor-faults", NULL, "faults", SOFTWARE(PAGE_FAULTS_MIN), 10, 1},
	{"major-faults", NULL, "faults", SOFTWARE(PAGE_FAULTS_MAJ), 1, 1},
	{"context-switches", "cs", "switches", SOFTWARE(CONTEXT_SWITCHES), SELF_CAUSED_LEAST,
	 SELF_CAUSED_LEAST},
	{"cpu-migrations", "migrations", "migrations", SOFTWARE(CPU_MIGRATIONS), 1, 1},
	{"alignment-faults", NULL, "faults", SOFTWARE(ALIGNMENT_FAULTS), 1, 1},
	{"emulation-faults", NULL, "faults", SOFTWARE(EMULATION_FAULTS), 1, 1},
	{"cycles", "cpu-cycles", "cycles", HARDWARE(CPU_CYCLES), 0, 0},
	{"ref-cycles", NULL, "cycles", HARDWARE(REF_CPU_CYCLES), 0, 0},
	{"instructions", NULL, "instructions", HARDWARE(INSTRUCTIONS), HARDWARE_EVERY,
	 HARDWARE_LEAST},
	{"cache-references", NULL, "references", HARDWARE(CACHE_REFERENCES), 100000,
	 HARDWARE_LEAST},
	{"cache-misses", NULL, "misses", HARDWARE(CACHE_MISSES), 10000, HARDWARE_LEAST},
	{"branches", "branch-instructions", "branches", HARDWARE(BRANCH_INSTRUCTIONS), 100000,
	 HARDWARE_LEAST},
	{"branch-misses", NULL, "misses", HARDWARE(BRANCH_MISSES), 10000, HARDWARE_LEAST},
	{"bus-cycles", NULL, "cycles", HARDWARE(BUS_CYCLES), 100000, HARDWARE_LEAST},
	{"stalled-cycles-frontend", "idle-cycles-frontend", "cycles",
	 HARDWARE(STALLED_CYCLES_FRONTEND), HARDWARE_EVERY, HARDWARE_LEAST},
	{"stalled-cycles-backend", "idle-cycles-backend", "cycles",
	 HARDWARE(STALLED_CYCLES_BACKEND), HARDWARE_EVERY, HARDWARE_LEAST},
};

/* Tracepoints that the kernel passes when it delivers a signal or puts a thread to sleep. */
static const char *const self_caused[] = {"sched", "syscalls",    "raw_syscalls", "signal",
					  "irq",   "irq_vectors", "ipi",          "timer",
					  "power", "rcu",         "preemptirq"};

static const char *const tracefs_places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static bool read_number(const char *path, int64_t *out)
{
	FILE *file = fopen(path, "re");
	bool read = file && fscanf(file, "%" SCNd64, out) == 1;
	if (file)
		fclose(file);
	return read;
}

static bool is_cycles(const struct recording_event *e)
{
	return e->type == PERF_TYPE_HARDWARE &&
	       (e->config == PERF_COUNT_HW_CPU_CYCLES || e->config == PERF_COUNT_HW_REF_CPU_CYCLES);
}

static void set_names(struct recording_event *e, const char *name, const char *unit)
{
	snprintf(e->name, sizeof e->name, "%s", name);
	snprintf(e->unit, sizeof e->unit, "%s", unit);
}

/* ---- by name ---- */

static const struct known *find_known(const char *name)
{
	size_t i;
	for (i = 0; i < sizeof table / sizeof table[0]; i++)
		if (!strcmp(table[i].name, name) ||
		    (table[i].alias && !strcmp(table[i].alias, name)))
			return &table[i];
	return NULL;
}

static void fill_known(const struct known *known, struct recording_event *out)
{
	set_names(out, known->name, known->unit);
	out->type = known->type;
	out->config = known->config;
	out->clock = !strcmp(known->unit, "ns");
}

bool event_known(const char *name, struct recording_event *out)
{
	const struct known *known = find_known(name);
	if (!known)
		return false;
	*out = (struct recording_event){0};
	fill_known(known, out);
	return true;
}

bool event_same(const struct recording_event *a, const struct recording_event *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->user_only == b->user_only && a->off == b->off &&
	       a->call == b->call && a->io == b->io;
}

/* "r1a8": a number from the CPU's manual. */
static bool parse_raw(const char *name, struct recording_event *out)
{
	char *end;
	if (name[0] != 'r' || !isxdigit((unsigned char)name[1]))
		return false;
	errno = 0;
	out->config = strtoull(name + 1, &end, 16);
	if (*end || errno)
		return false;
	out->type = PERF_TYPE_RAW;
	set_names(out, name, "events");
	return true;
}

/* ---- tracepoints ---- */

static bool is_plain_name(const char *text, size_t length)
{
	size_t i;
	for (i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
			return false;
	return length > 0;
}

/* Whether it can be a tracepoint: SUBSYSTEM:NAME. */
static bool looks_like_tracepoint(const char *name)
{
	size_t length = strcspn(name, ":");
	return name[length] && is_plain_name(name, length) &&
	       is_plain_name(name + length + 1, strlen(name + length + 1));
}

static struct err *no_tracefs(int error)
{
	if (error == EACCES || error == EPERM)
		return err_new("tracepoints are for root here: sudo mount -o remount,mode=755 "
			       "/sys/kernel/tracing, or run culprit with sudo");
	return err_new("the kernel's list of tracepoints is not mounted: sudo mount -t tracefs "
		       "tracefs /sys/kernel/tracing");
}

/* Sets `id` to the number of a tracepoint. Returns an error if there is none, or if we may not know. */
static struct err *tracepoint_id(const char *name, uint64_t *id)
{
	int width = (int)strcspn(name, ":"), error = ENOENT;
	const char *mounted = NULL;
	char path[256];
	int64_t number;
	size_t i;
	for (i = 0; i < sizeof tracefs_places / sizeof tracefs_places[0]; i++) {
		snprintf(path, sizeof path, "%s/events", tracefs_places[i]);
		if (access(path, X_OK)) {
			if (errno == EACCES)
				error = EACCES;
			continue;
		}
		mounted = tracefs_places[i];
		snprintf(path, sizeof path, "%s/events/%.*s/%s/id", mounted, width, name,
			 name + width + 1);
		if (read_number(path, &number) && number >= 0) {
			*id = (uint64_t)number;
			return NULL;
		}
		if (errno == EACCES)
			return no_tracefs(EACCES);
	}
	if (!mounted)
		return no_tracefs(error);
	return err_new("no such tracepoint (see %s/available_events)", mounted);
}

static struct err *parse_tracepoint(const char *name, struct recording_event *out)
{
	uint64_t id;
	struct err *e = tracepoint_id(name, &id);
	if (e)
		return e;
	out->type = PERF_TYPE_TRACEPOINT;
	out->config = id;
	set_names(out, name, "events");
	return NULL;
}

static bool is_self_caused(const char *name)
{
	size_t width = strcspn(name, ":"), i;
	for (i = 0; i < sizeof self_caused / sizeof self_caused[0]; i++)
		if (strlen(self_caused[i]) == width && !memcmp(self_caused[i], name, width))
			return true;
	return false;
}

/* ---- what the kernel says ---- */

static bool happens_in_kernel(const struct recording_event *e)
{
	return e->type == PERF_TYPE_TRACEPOINT ||
	       (e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						  e->config == PERF_COUNT_SW_CPU_MIGRATIONS));
}

struct perf_event_attr event_attr(const struct recording_event *event)
{
	return (struct perf_event_attr){
		.type = event->type,
		.size = sizeof(struct perf_event_attr),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.read_format = TALLY_FORMAT,
		.disabled = 1,
	};
}

/* Returns 0 if the event can be sampled in this process, else the error number. */
static int try_event(const struct recording_event *event, bool user_only)
{
	struct perf_event_attr attr = event_attr(event);
	attr.sample_period = event->period ? event->period : HARDWARE_EVERY;
	attr.exclude_kernel = attr.exclude_hv = user_only;
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	close((int)fd);
	return 0;
}

static void answer(struct event_answer *out, bool available, const char *state, const char *fix)
{
	out->available = available;
	snprintf(out->state, sizeof out->state, "%s", state);
	snprintf(out->fix, sizeof out->fix, "%s", fix);
}

int event_paranoid(void)
{
	int64_t paranoid = 0;
	read_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
	return (int)paranoid;
}

static void answer_refused(struct event_answer *out)
{
	int paranoid = event_paranoid();
	char state[160];
	if (paranoid > 2) {
		snprintf(state, sizeof state, "kernel.perf_event_paranoid is %d", paranoid);
		answer(out, false, state, "sudo sysctl kernel.perf_event_paranoid=2");
	} else {
		answer(out, false, "refused by a security filter, as containers have",
		       "docker run --cap-add PERFMON --security-opt seccomp=unconfined ...");
	}
}

static bool is_counted_by_cpu(const struct recording_event *event)
{
	return event->type != PERF_TYPE_SOFTWARE && event->type != PERF_TYPE_TRACEPOINT;
}

static void answer_error(const struct recording_event *event, struct event_answer *out)
{
	bool software = !is_counted_by_cpu(event);
	char state[160];
	switch (out->error) {
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		if (software)
			answer(out, false, "this kernel has no such event", "a newer kernel");
		else
			answer(out, false, "this machine has no such counter",
			       "in a virtual machine: expose the CPU's counters (qemu -cpu "
			       "host,pmu=on; a bare-metal instance)");
		return;
	case ENOSYS:
		answer(out, false, "this kernel has no perf events",
		       "a kernel with CONFIG_PERF_EVENTS=y");
		return;
	case EACCES:
	case EPERM:
		answer_refused(out);
		return;
	case EINVAL:
		answer(out, false, "the kernel or the CPU does not know it",
		       "check its number or name with the CPU's manual");
		return;
	default:
		snprintf(state, sizeof state, "perf_event_open: %s", strerror(out->error));
		answer(out, false, state, "see dmesg for the reason");
	}
}

const char *event_refused(int error)
{
	switch (error) {
	case ENOSPC:
		return "other events have all counters of its kind: record fewer at once, or end "
		       "who else profiles";
	case EBUSY:
		return "another profiler has it for itself: end that one";
	case EINVAL:
		return "the kernel does not take it beside the others, or not of a whole CPU: "
		       "record it by itself";
	case ENOENT:
	case EOPNOTSUPP:
		return "this CPU has no such counter: record other events";
	case EMFILE:
	case ENFILE:
		return "the limit on open files is too low (ulimit -n)";
	default:
		return strerror(error);
	}
}

void event_ask(const struct recording_event *event, struct event_answer *out)
{
	*out = (struct event_answer){.error = try_event(event, event->user_only),
				     .user_only = event->user_only};
	if (!out->error) {
		answer(out, true, event->user_only ? "user code only" : "user and kernel code", "");
		return;
	}
	if (out->error == EACCES || out->error == EPERM) {
		int error = try_event(event, true);
		out->user_only = !error;
		if (error)
			out->error = error;
	}
	if (!out->user_only)
		answer_error(event, out);
	else if (happens_in_kernel(event))
		answer(out, false, "it happens in the kernel, which this user may not watch",
		       "sudo sysctl kernel.perf_event_paranoid=1");
	else
		answer(out, true, "user code only",
		       "for kernel code: sudo sysctl kernel.perf_event_paranoid=1");
}

void event_ask_tracepoints(struct event_answer *out)
{
	struct recording_event event = {.period = SELF_CAUSED_LEAST};
	struct err *e = parse_tracepoint("sched:sched_switch", &event);
	char *colon;
	if (!e) {
		event_ask(&event, out);
		return;
	}
	*out = (struct event_answer){0};
	snprintf(out->state, sizeof out->state, "%s", err_text(e));
	err_free(e);
	colon = strchr(out->state, ':');
	if (colon) {
		snprintf(out->fix, sizeof out->fix, "%s", colon + 2);
		*colon = 0;
	} else {
		snprintf(out->fix, sizeof out->fix, "a kernel with CONFIG_EVENT_TRACING=y");
	}
}

static struct err *open_event(struct recording_event *event)
{
	struct event_answer said;
	if (!event_is_sampled(event))
		return NULL;
	if (event->user_only && happens_in_kernel(event))
		return err_new("it happens in the kernel: leave out ':u'");
	event_ask(event, &said);
	if (!said.available)
		return err_new("%s: %s", said.state, said.fix);
	event->user_only = said.user_only;
	event->counter = is_counted_by_cpu(event);
	return NULL;
}

/* ---- rates ---- */

static uint64_t cpu_hz(void)
{
	static const char *const places[] = {
		"/sys/devices/system/cpu/cpu0/cpufreq/base_frequency",
		"/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"};
	int64_t khz;
	size_t i;
	for (i = 0; i < sizeof places / sizeof places[0]; i++)
		if (read_number(places[i], &khz) && khz > 0 && khz < 100000000)
			return (uint64_t)khz * 1000;
	return ASSUMED_CPU_HZ;
}

uint64_t event_tick_hz(void)
{
	struct timespec tick;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || tick.tv_nsec <= 0)
		return 1;
	return (SECOND_NS + (uint64_t)tick.tv_nsec / 2) / (uint64_t)tick.tv_nsec;
}

static struct err *set_rate(struct recording_event *e, uint64_t hz)
{
	int64_t most;
	if (!hz)
		return err_new("a rate of 0 gives no samples");
	if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &most) && most > 0 &&
	    hz > (uint64_t)most && (!e->clock || hz <= CLOCK_HZ_MAX))
		return err_new("the kernel allows %" PRId64 " samples per second now: sudo sysctl "
			       "kernel.perf_event_max_sample_rate=%" PRIu64
			       " (it lowers this by itself where samples take more than "
			       "kernel.perf_cpu_time_max_percent of the time)",
			       most, hz);
	if (e->clock && hz > CLOCK_HZ_MAX)
		return err_new("the kernel's clocks give at most %u samples per second",
			       CLOCK_HZ_MAX);
	e->hz = hz;
	e->period = (e->clock ? SECOND_NS : cpu_hz()) / hz;
	if (!e->period)
		e->period = 1;
	return NULL;
}

/* Sets how often the event is sampled by default, and the least period that it may have. */
static void period_bounds(const struct recording_event *e, uint64_t *every, uint64_t *least)
{
	size_t i;
	*every = HARDWARE_EVERY;
	*least = HARDWARE_LEAST;
	if (e->type == PERF_TYPE_TRACEPOINT)
		*every = *least = is_self_caused(e->name) ? SELF_CAUSED_LEAST : 1;
	for (i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (table[i].type == e->type && table[i].config == e->config) {
			*every = table[i].every;
			*least = table[i].least;
		}
	}
}

static struct err *too_often(const struct recording_event *e, uint64_t least)
{
	if (happens_in_kernel(e))
		return err_new("at least @%" PRIu64
			       ": a sample is a signal, and delivering it causes "
			       "such events again, so with fewer between samples the program would "
			       "hardly get on",
			       least);
	return err_new("at least @%" PRIu64 ": taking a sample itself takes more than that", least);
}

/* `given`: the number after '@', or NULL. */
static struct err *set_period(struct recording_event *e, const uint64_t *given, uint64_t hz)
{
	uint64_t every, least;
	period_bounds(e, &every, &least);
	if (given && e->io)
		return err_new("each call is counted: leave out '@'");
	if (!every && !e->call && !e->io)
		return set_rate(e, given ? *given : hz);
	if (given && e->call == RECORDING_LOCK_WAITS)
		return err_new("each wait is counted: leave out '@'");
	if (given && e->call == RECORDING_MPI_CALLS)
		return err_new("each call is counted: leave out '@'");
	if (given && !*given)
		return err_new("a rate of 0 gives no samples");
	if (given && *given > PERIOD_MAX)
		return err_new("@%" PRIu64 " is too seldom to ever happen", *given);
	if (given && *given < least)
		return too_often(e, least);
	e->period = given ? *given : every; /* 0, for allocations: as it fits */
	return NULL;
}

static bool parse_count(const char *text, uint64_t *out)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !*end && !errno;
}

/* ---- names with their rates ---- */

/* Events of time off the CPU. `wall` is the CPU's clock, and goes on there. */
static bool parse_off(const char *name, struct recording_event *out)
{
	bool wall = !strcmp(name, "wall");
	if (!wall && strcmp(name, "blocked"))
		return false;
	event_known("cpu-clock", out);
	set_names(out, name, "ns");
	out->off = wall ? RECORDING_BLOCKED | RECORDING_QUEUED : RECORDING_BLOCKED;
	out->clock = wall;
	return true;
}

bool event_is_off(const struct recording_event *event)
{
	return event->off && !event->clock;
}

bool event_is_sampled(const struct recording_event *event)
{
	return !event->call && !event->io && !event->probe && !event_is_off(event);
}

/* Allocations, waits for locks, calls of MPI. No perf event tells of them. */
static bool parse_call(const char *name, struct recording_event *out)
{
	static const struct {
		const char *name, *unit;
		enum recording_call call;
	} all[] = {{"alloc", "allocations", RECORDING_HEAP_SAMPLES},
		   {"lock", "waits", RECORDING_LOCK_WAITS},
		   {"mpi", "calls", RECORDING_MPI_CALLS}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcmp(name, all[i].name))
			continue;
		set_names(out, name, all[i].unit);
		out->call = all[i].call;
		return true;
	}
	return false;
}

/* Reads and writes. The kernel's sampler sees the system calls, an agent the functions that make them. */
static bool parse_io(const char *name, struct recording_event *out)
{
	if (strcmp(name, "io"))
		return false;
	set_names(out, name, "calls");
	out->io = RECORDING_IO_SAMPLES;
	return true;
}

static size_t io_companions(const struct recording_event *event, struct recording_event *out)
{
	static const char *const all[][2] = {
		{"io.bytes", "bytes"}, {"io.calls", "calls"}, {"io.ns", "ns"}};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		out[i] = *event;
		out[i].io = (uint8_t)(RECORDING_IO_BYTES + i);
		set_names(&out[i], all[i][0], all[i][1]);
	}
	return sizeof all / sizeof *all;
}

/* "arg:2" becomes "probe.arg2". */
static void name_metric(const struct probe_metric *m, char *out, size_t size)
{
	size_t at = (size_t)snprintf(out, size, "probe.");
	for (const char *c = m->name; *c && at + 1 < size; c++)
		if (*c != ':')
			out[at++] = *c;
	out[at] = 0;
}

size_t event_probes(const struct probes *probes, struct recording_event out[EVENT_PROBES])
{
	out[0] = (struct recording_event){.period = 1, .probe = RECORDING_PROBE_CALLS};
	out[1] = (struct recording_event){.period = 1, .probe = RECORDING_PROBE_NS};
	set_names(&out[0], "probe", "calls");
	set_names(&out[1], "probe.ns", "ns");
	for (size_t i = 0; i < probes->metric_count; i++) {
		char name[64];
		out[2 + i] = (struct recording_event){
			.period = 1, .probe = (uint8_t)(RECORDING_PROBE_METRIC + i)};
		name_metric(&probes->metrics[i], name, sizeof name);
		set_names(&out[2 + i], name,
			  *probes->metrics[i].unit ? probes->metrics[i].unit : "sum");
	}
	return 2 + probes->metric_count;
}

static size_t call_companions(const struct recording_event *event, struct recording_event *out)
{
	static const struct {
		enum recording_call of, call;
		const char *name, *unit;
	} all[] = {{RECORDING_HEAP_SAMPLES, RECORDING_HEAP_BYTES, "alloc.bytes", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_CALLS, "alloc.calls", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_LIVE, "alloc.live", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_PEAK, "alloc.peak", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_TEMPORARY, "alloc.temporary", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_BRIEF, "alloc.brief", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_FREED, "alloc.freed", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_LIFETIME, "alloc.lifetime", "ns"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_ELSEWHERE, "alloc.elsewhere", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_RELEASED, "alloc.released", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_WASTED, "alloc.wasted", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_GROWN, "alloc.grown", "calls"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_MAPPED, "alloc.mapped", "bytes"},
		   {RECORDING_HEAP_SAMPLES, RECORDING_HEAP_KEPT, "alloc.kept", "bytes"},
		   {RECORDING_LOCK_WAITS, RECORDING_LOCK_NS, "lock.ns", "ns"},
		   {RECORDING_LOCK_WAITS, RECORDING_LOCK_HELD, "lock.held", "ns"},
		   {RECORDING_MPI_CALLS, RECORDING_MPI_NS, "mpi.ns", "ns"}};
	size_t count = 0;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i].of != event->call)
			continue;
		out[count] = *event;
		out[count].call = all[i].call;
		set_names(&out[count++], all[i].name, all[i].unit);
	}
	return count;
}

size_t event_companions(const struct recording_event *event,
			struct recording_event out[EVENT_COMPANIONS])
{
	if (event->call)
		return call_companions(event, out);
	if (event->io)
		return io_companions(event, out);
	if (event->off != RECORDING_BLOCKED)
		return 0;
	*out = *event;
	set_names(out, "blocked.queued", "ns");
	out->off = RECORDING_QUEUED;
	return 1;
}

/* A name that the kernel knows, or a raw number, with ":u" for user code only. */
static bool parse_known(const char *name, struct recording_event *out)
{
	const char *colon = strchr(name, ':');
	char bare[sizeof out->name];
	bool user = colon && !strcmp(colon, ":u");
	const struct known *known;
	snprintf(bare, sizeof bare, "%.*s", (int)(user ? colon - name : (long)strlen(name)), name);
	known = find_known(bare);
	if (known)
		fill_known(known, out);
	else if (parse_off(bare, out) || parse_call(bare, out) || parse_io(bare, out))
		return !colon;
	else if (!parse_raw(bare, out))
		return false;
	if (user) {
		out->user_only = true;
		strncat(out->name, ":u", sizeof out->name - strlen(out->name) - 1);
	}
	return true;
}

static struct err *parse_cpu_event(const char *name, struct recording_event *out)
{
	struct err *e = event_pfm_encode(name, out);
	if (e) {
		err_free(e);
		return err_new(
			"unknown: neither the kernel nor libpfm4 has an event of this name for "
			"this CPU (culprit list shows what can be counted)");
	}
	set_names(out, name, "events");
	out->clock = out->type == PERF_TYPE_SOFTWARE && (out->config == PERF_COUNT_SW_CPU_CLOCK ||
							 out->config == PERF_COUNT_SW_TASK_CLOCK);
	if (out->clock || is_cycles(out))
		set_names(out, name, out->clock ? "ns" : "cycles");
	return NULL;
}

static struct err *parse_name(const char *name, struct recording_event *out)
{
	struct err *e, *unknown;
	if (parse_known(name, out))
		return NULL;
	if (!looks_like_tracepoint(name))
		return parse_cpu_event(name, out);
	e = parse_tracepoint(name, out);
	if (!e)
		return NULL;
	unknown = parse_cpu_event(name, out); /* names of libpfm4 may look like tracepoints */
	err_free(unknown ? unknown : e);
	return unknown ? e : NULL;
}

static struct err *parse(const char *text, uint64_t hz, struct recording_event *out)
{
	const char *at = strrchr(text, '@');
	size_t length = at ? (size_t)(at - text) : strlen(text);
	char name[sizeof out->name];
	uint64_t rate;
	struct err *e;
	if (!length)
		return err_new("no name");
	if (length >= sizeof name)
		return err_new("unknown: no event has so long a name");
	memcpy(name, text, length);
	name[length] = 0;
	if (at && !parse_count(at + 1, &rate))
		return err_new("after '@' stands a number, not '%.32s'", at + 1);
	e = parse_name(name, out);
	if (!e)
		e = set_period(out, at ? &rate : NULL, hz);
	return e ? e : open_event(out);
}

struct err *event_parse(const char *text, uint64_t hz, struct recording_event *out)
{
	*out = (struct recording_event){0};
	return err_context(parse(text, hz, out), "event '%.80s'", text);
}

struct err *event_default(uint64_t hz, struct recording_event *out, bool *timers, char *why,
			  size_t size)
{
	static const char *const names[] = {"cycles", "cpu-clock"};
	struct event_answer said;
	struct err *e = NULL;
	size_t i;
	*timers = false;
	snprintf(why, size, "%s", "");
	for (i = 0; i < sizeof names / sizeof names[0]; i++) {
		event_known(names[i], out);
		e = set_rate(out, hz);
		if (e)
			return err_context(e, "-F %" PRIu64, hz);
		event_ask(out, &said);
		out->user_only = said.user_only;
		out->counter = is_counted_by_cpu(out);
		if (said.available)
			return NULL;
	}
	*timers = true;
	snprintf(why, size,
		 "no perf events (%s), so timers sample, at most %" PRIu64
		 " times per second; more by: %s",
		 said.state, event_tick_hz(), said.fix);
	return NULL;
}
