/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/kernel_internal.h"
#include "collect/sampler.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/bpf/kernel_object.h" /* made by the build */
#include "collect/events.h"
#include "process/kernel_names.h"
#include "process/reach.h"
#include "process/registers.h"
#include "process/status.h"
#include "unwind/cpu.h"

#define CALIBRATE_SAMPLES 500        /* of fewer the cost is of no interest */
#define LAST_TABLES_NS 5000000000ull /* at the end, for tables that are being made */
#define NAME_NS 20000000000ull

/* ---- the program ---- */

__attribute__((format(printf, 2, 0))) static int keep_quiet(enum libbpf_print_level level,
							    const char *format, va_list arguments)
{
	if (getenv("CULPRIT_BPF_LOG"))
		return vfprintf(stderr, format, arguments);
	(void)level;
	return 0;
}

static bool set(struct bpf_object *object, const struct kernel_settings *settings)
{
	size_t size = 0;
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata.settings");
	void *bytes = map ? (void *)bpf_map__initial_value(map, &size) : NULL;
	if (!bytes || size < sizeof *settings)
		return false;
	memcpy(bytes, settings, sizeof *settings);
	return true;
}

static bool set_size(struct bpf_object *object, const char *name, uint32_t entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	return map && !bpf_map__set_max_entries(map, entries);
}

static struct err *load(struct kernel *k)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "culprit");
	libbpf_set_print(keep_quiet);
	k->object = bpf_object__open_mem(kernel_object, sizeof kernel_object, &opts);
	if (!k->object)
		return err_errno("cannot open the sampler for the kernel");
	struct kernel_settings settings = {
		.cpu = *unwind_cpu_for(native_machine),
		.max_depth = k->max_depth,
		.memo_bits = k->memo_bits,
		.whole = k->whole,
		.every = k->every,
	};
	if (!set(k->object, &settings) || !set_size(k->object, "workspaces", k->cpus) ||
	    !set_size(k->object, "memos", 1u << k->memo_bits) ||
	    !set_size(k->object, "places", k->cpus * KERNEL_PLACES) ||
	    !set_size(k->object, "turns", k->cpus) || !set_size(k->object, "rules", KERNEL_RULES) ||
	    (k->every > 1 && !set_size(k->object, "counters", k->cpus * 2 * KERNEL_COUNTERS)))
		return err_new("the sampler for the kernel is not as it should be");
	if (bpf_object__load(k->object))
		return err_errno(
			"the kernel does not take the sampler (CULPRIT_BPF_LOG=1 shows why)");
	k->processes = bpf_object__find_map_fd_by_name(k->object, "processes");
	k->shards = bpf_object__find_map_fd_by_name(k->object, "shards");
	return NULL;
}

static struct err *keep_link(struct kernel *k, struct bpf_link *link, const char *what)
{
	if (!link)
		return err_errno("cannot attach the sampler to %s", what);
	struct bpf_link **more = reallocarray(k->links, k->link_count + 1, sizeof *more);
	if (!more) {
		bpf_link__destroy(link);
		return err_new("out of memory");
	}
	k->links = more;
	k->links[k->link_count++] = link;
	return NULL;
}

static struct err *attach_tasks(struct kernel *k)
{
	static const char *const names[] = {"forked", "executed", "exited", "mapped"};
	struct err *e = NULL;
	for (size_t i = 0; !e && i < sizeof names / sizeof *names; i++) {
		struct bpf_program *program = bpf_object__find_program_by_name(k->object, names[i]);
		e = keep_link(k, program ? bpf_program__attach(program) : NULL, names[i]);
	}
	return e;
}

/* ---- the events ---- */

static int open_event(const struct session_event *event, pid_t pid, int cpu)
{
	struct perf_event_attr attr = event_attr(event);
	attr.sample_period = event->period;
	attr.exclude_kernel = attr.exclude_hv = event->user_only;
	/* Counters of aarch64 refuse to. They stand still then anyway, nearly. */
	attr.exclude_idle = event->type == PERF_TYPE_SOFTWARE;
	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void tally_one(struct session *s, size_t index, struct tally *tallies, bool anew)
{
	struct tally_reading now, *before = &s->kernel->readings[index];
	if (!tally_read(s->kernel->events[index], &now))
		return;
	tally_add(&tallies[index % s->options.event_count], before, &now);
	if (anew)
		*before = now;
}

static void close_event(struct session *s, size_t index)
{
	struct kernel *k = s->kernel;
	struct bpf_link *link = k->event_links[index];
	tally_one(s, index, s->tallies, false);
	k->readings[index] = (struct tally_reading){0};
	for (size_t i = 0; link && i < k->link_count; i++)
		if (k->links[i] == link)
			k->links[i--] = k->links[--k->link_count];
	bpf_link__destroy(link); /* with its descriptor */
	k->event_links[index] = NULL;
	k->events[index] = -1;
}

static struct err *open_cpu(struct session *s, unsigned cpu)
{
	struct kernel *k = s->kernel;
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, "sample");
	size_t count = s->options.event_count;
	for (size_t i = 0; i < count; i++) {
		LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = i);
		int fd = open_event(&s->options.events[i], -1, (int)cpu);
		if (fd < 0 && errno == ENODEV) /* it is switched off */
			return NULL;
		if (fd < 0)
			return err_new("%s: cannot be sampled on CPU %u: %s",
				       s->options.events[i].name, cpu, event_refused(errno));
		struct bpf_link *link = bpf_program__attach_perf_event_opts(program, fd, &opts);
		struct err *e = keep_link(k, link, s->options.events[i].name);
		if (e)
			return e;
		k->events[cpu * count + i] = fd; /* the link closes it */
		k->paces[cpu * count + i] = (struct kernel_pace){s->options.events[i].period, 0, 0};
		k->event_links[cpu * count + i] = link;
	}
	k->online[cpu] = true;
	return NULL;
}

static struct err *open_events(struct session *s, struct kernel *k)
{
	size_t count = (size_t)k->cpus * s->options.event_count;
	struct err *e = NULL;
	bool *online = calloc(k->cpus, sizeof *online), any = false;
	k->events = calloc(count, sizeof *k->events);
	k->readings = calloc(count, sizeof *k->readings);
	k->paces = calloc(count, sizeof *k->paces);
	k->event_links = calloc(count, sizeof *k->event_links);
	k->online = calloc(k->cpus, sizeof *k->online);
	k->enabled_ns = calloc(k->cpus, sizeof *k->enabled_ns);
	if (!online || !k->events || !k->readings || !k->paces || !k->event_links || !k->online ||
	    !k->enabled_ns) {
		free(online);
		return err_new("out of memory");
	}
	memset(k->events, -1, count * sizeof *k->events);
	cpus_read(k, online);
	for (unsigned cpu = 0; !e && cpu < k->cpus; cpu++)
		if (online[cpu]) {
			e = open_cpu(s, cpu);
			any |= k->online[cpu];
		}
	free(online);
	return e || any ? e : err_new("no CPU can be sampled");
}

static void each_event(const struct session *s, unsigned long request, void *argument)
{
	const struct kernel *k = s->kernel;
	for (size_t i = 0; i < k->cpus * s->options.event_count; i++)
		if (k->events[i] >= 0)
			ioctl(k->events[i], request, argument);
}

static void kernel_tally(struct session *s, struct tally *tallies, bool anew)
{
	for (size_t i = 0; i < s->kernel->cpus * s->options.event_count; i++)
		tally_one(s, i, tallies, anew);
}

/* ---- what it costs ---- */

#define CALIBRATE_NS 20000ull /* period of the clock while its cost is measured */
#define CALIBRATE_MEMORY (1u << 20)
#define CALIBRATE_ROUNDS 24
#define CALIBRATE_TRIES 9

/* Some time with memory that does not stay in the nearest caches, as programs have it. */
static uint64_t work(volatile uint8_t *memory)
{
	uint64_t start = now_ns(), at = 1;
	for (int round = 0; round < CALIBRATE_ROUNDS; round++)
		for (unsigned i = 0; i < CALIBRATE_MEMORY / 64; i++) {
			at = at * 6364136223846793005u + 1442695040888963407u;
			memory[at >> 44]++;
		}
	return now_ns() - start;
}

static int compare_costs(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The interrupt of the clock, without what the program does in it: it is not in the time that the
   program takes for itself. */
static uint64_t kernel_delivery(void)
{
	const struct session_event clock = {.type = PERF_TYPE_SOFTWARE,
					    .config = PERF_COUNT_SW_CPU_CLOCK,
					    .period = CALIBRATE_NS};
	int64_t costs[CALIBRATE_TRIES];
	uint8_t *memory = calloc(1, CALIBRATE_MEMORY);
	int fd = memory ? open_event(&clock, 0, -1) : -1;
	if (fd < 0) {
		free(memory);
		return 0;
	}
	work(memory);
	for (int i = 0; i < CALIBRATE_TRIES; i++) {
		uint64_t count = 0;
		int64_t without = (int64_t)work(memory);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		int64_t with = (int64_t)work(memory);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		count = (uint64_t)with / CALIBRATE_NS;
		costs[i] = count ? (with - without) / (int64_t)count : 0;
	}
	close(fd);
	free(memory);
	qsort(costs, CALIBRATE_TRIES, sizeof *costs, compare_costs);
	int64_t cost = costs[CALIBRATE_TRIES / 2];
	return cost > 0 ? (uint64_t)cost : 0;
}

/* ---- the ring ---- */

/* The kernel's own words, but a record is as long as it says. */
static void take(struct session *s, const void *data, size_t size)
{
	s->kernel->records++;
	s->kernel->record_bytes += size;
	const struct kernel_head *head = data;
	const struct kernel_path *path = data;
	const struct kernel_snapshot *snapshot;
	size_t before;
	switch (size >= sizeof *head ? head->kind : 0) {
	case KERNEL_PATH:
		if (size >= sizeof *path &&
		    (uint64_t)path->fresh + path->inner <= (size - sizeof *path) / sizeof(uint64_t))
			paths_take(s, path, (const uint64_t *)(path + 1));
		break;
	case KERNEL_SNAPSHOT:
	case KERNEL_FAR:
		snapshot = copy_in(data, size, &before);
		if (snapshot)
			paths_take_snapshot(s, snapshot, (const uint8_t *)(snapshot + 1),
					    before ? data : NULL);
		break;
	case KERNEL_COUNTED:
		counters_take_one(s, data);
		break;
	case KERNEL_PLACE:
		paths_take_place(s, data);
		break;
	case KERNEL_FORK:
		tasks_forked(s, data);
		break;
	case KERNEL_EXEC:
		tasks_executed(s, data);
		break;
	case KERNEL_EXIT:
		tasks_exited(s, data);
		break;
	default:
		break;
	}
}

/* At those that wait for tables, when there are new ones. */
static void look_again(struct session *s)
{
	unsigned builds = library_builds(s->library);
	if (builds == s->kernel->builds)
		return;
	s->kernel->builds = builds;
	for (struct process *p = s->kernel->home->processes; p; p = p->next)
		if (p->makeshift && p->gone)
			p->makeshift = false; /* what was noted of it will do */
		else if (p->makeshift)
			code_look(s, p);
}

/* Of the whole machine's processes only those that were looked at before, for the sake of a sample. */
static void look_at_new(struct session *s)
{
	bool whole = s->kernel->whole;
	uint64_t now = now_ns();
	if (whole)
		look_again(s);
	if (whole && now - s->kernel->looked_ns < SESSION_TICK_NS)
		return;
	s->kernel->looked_ns = now;
	for (struct process *p = s->kernel->home->processes; p; p = p->next) {
		if (p->noted_ns && !p->gone)
			code_confirm(s, p);
		code_trust(s, p);
		if (p->unlooked ||
		    (!p->gone && (!whole || p->list) && maps_changed(s->kernel, p->pid))) {
			p->unlooked = false;
			paths_hope(s, p);
			code_look(s, p);
		}
	}
}

void kernel_drain(struct session *s, bool all)
{
	uint64_t begun = now_ns();
	bool counted = counters_flip(s->kernel, all);
	if (counted)
		reader_sync(s->kernel);
	reader_take(s, take);
	if (counted)
		counters_take(s);
	if (counted || s->kernel->every == 1)
		library_end_turn(s->library, now_ns());
	maps_note(s->kernel); /* after them, so that the code of each sample is there */
	look_at_new(s);
	paths_walk(s);
	tasks_reap(s);
	maps_sweep(s, begun);
	code_sweep(s);
}

static void kernel_status(const struct session *s, struct session_state *out)
{
	out->records = s->kernel->records;
	out->record_bytes = s->kernel->record_bytes;
	out->copies = s->kernel->copies;
}

static int kernel_fd(const struct session *s)
{
	return s->kernel->epoll;
}

/* ---- life ---- */

/* Of the kernel's functions. Without, its work is one line for each path. */
static void read_names(struct session *s)
{
	struct err *e = kernel_names_open("/proc/kallsyms", &s->kernel->names);
	if (e)
		s->notes.nameless_kernel =
			"functions of the kernel have no names: /proc/kallsyms shows no addresses "
			"(sysctl kernel.kptr_restrict=1 shows them to root)";
	err_free(e);
	kernel_renew_names(s);
}

void kernel_renew_names(struct session *s)
{
	kernel_names_renew(&s->kernel->names, &s->kernel->names_stamp, "/proc/kallsyms",
			   "/proc/modules");
}

/* They are made in the background: when some are ready, there are stacks to walk. */
static struct err *watch_tables(struct session *s)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct err *e = library_set_background(s->library, s->options.drained, s->options.maker);
	if (!e && epoll_ctl(s->kernel->epoll, EPOLL_CTL_ADD, library_built_fd(s->library), &event))
		e = err_errno("cannot watch descriptors");
	return e;
}

static struct err *kernel_open(struct session *s)
{
	reach_apart(s->options.reacher);
	struct kernel *k = s->kernel = calloc(1, sizeof *k);
	if (!k)
		return err_new("out of memory");
	k->whole = s->options.whole;
	k->max_depth = s->options.max_depth ? s->options.max_depth : SESSION_DEPTH;
	if (k->max_depth > KERNEL_FRAMES)
		k->max_depth = KERNEL_FRAMES;
	k->every = s->options.every > 1 ? s->options.every : 1;
	k->cpus = (unsigned)libbpf_num_possible_cpus();
	k->serial = 1;
	k->waiting_end = &k->waiting;
	k->reader.urgent = k->reader.wake = -1;
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	k->memo_bits = 4;
	while (1u << k->memo_bits < 4 * k->cpus && 1u << k->memo_bits < KERNEL_MEMOS_MAX)
		k->memo_bits++;
	k->memos = calloc((1u << k->memo_bits) + 1, sizeof *k->memos);
	struct err *e = k->memos && k->epoll >= 0 ? load(k) : err_errno("cannot make a sampler");
	if (!e)
		e = code_open(k);
	if (!e)
		e = counters_open(k);
	if (!e)
		e = maps_open(k);
	if (!e && k->whole)
		e = watch_tables(s);
	if (!e)
		e = reader_open(s);
	if (!e)
		e = arena_open(s, &k->home);
	if (!e)
		k->home->kernel = true;
	if (!e)
		e = attach_tasks(k);
	if (!e && k->whole) { /* samples come as soon as there are events */
		read_names(s);
		tasks_scan(s);
	}
	return e ? e : open_events(s, k);
}

static void kernel_start(struct session *s)
{
	periods_change(s);
	each_event(s, PERF_EVENT_IOC_ENABLE, NULL);
	s->kernel->sampling = true;
}

static void kernel_join(struct session *s)
{
	uint32_t self = (uint32_t)getpid();
	struct kernel_process asleep = {.asleep = 1};
	if (s->kernel->whole)
		return;
	bpf_map_update_elem(s->kernel->processes, &self, &asleep, BPF_ANY);
}

static struct err *kernel_attach(struct session *s, pid_t pid)
{
	uint32_t number = (uint32_t)pid;
	struct kernel_process unknown = {0};
	struct process_status status;
	if (!process_status(pid, &status))
		return err_new("there is no process %d", (int)pid);
	if (status.kernel)
		return err_new("process %d is a thread of the kernel", (int)pid);
	if (!tasks_attach(s, pid))
		return err_new("out of memory");
	if (bpf_map_update_elem(s->kernel->processes, &number, &unknown, BPF_ANY))
		return err_errno("process %d cannot be sampled", (int)pid);
	maps_scan(s->kernel, pid);
	kernel_drain(s, false);
	return NULL;
}

static void kernel_name(struct session *s)
{
	tasks_name(s);
	kernel_renew_names(s);
	harvest_name_kernel(&s->harvest, s->kernel->names);
	/* That may take a while, and is of use for few. */
	if (s->kernel->sampling && now_ns() - s->kernel->named_ns < NAME_NS)
		return;
	s->kernel->named_ns = now_ns();
	harvest_name_files(s, &s->harvest);
}

/* Whether the CPU was off since we looked last: its events are no longer counted then. */
static bool is_dead(struct session *s, unsigned cpu)
{
	struct kernel *k = s->kernel;
	struct tally_reading now = {0};
	uint64_t before = k->enabled_ns[cpu];
	k->enabled_ns[cpu] = 0;
	if (!tally_read(k->events[cpu * s->options.event_count], &now))
		return false;
	k->enabled_ns[cpu] = now.enabled_ns;
	return before && now.enabled_ns == before;
}

/* CPUs that were switched on or off: also when the machine slept. What was opened for one that was off meanwhile is
   dead. */
static void follow_cpus(struct session *s)
{
	struct kernel *k = s->kernel;
	size_t count = s->options.event_count;
	bool *online = k->sampling && cpus_due(k) ? calloc(k->cpus, sizeof *online) : NULL;
	if (!online)
		return;
	cpus_read(k, online);
	for (unsigned cpu = 0; cpu < k->cpus; cpu++) {
		if (online[cpu] == k->online[cpu] && !(online[cpu] && is_dead(s, cpu)))
			continue;
		for (size_t i = 0; i < count; i++)
			close_event(s, cpu * count + i);
		k->online[cpu] = false;
		k->enabled_ns[cpu] = 0;
		maps_leave(k, cpu);
		if (!online[cpu])
			continue;
		err_free(open_cpu(s, cpu)); /* it is tried again */
		for (size_t i = 0; i < count; i++)
			if (k->events[cpu * count + i] >= 0)
				ioctl(k->events[cpu * count + i], PERF_EVENT_IOC_ENABLE, 0);
		maps_watch(k, cpu);
	}
	free(online);
}

static void kernel_tick(struct session *s)
{
	kernel_drain(s, false);
	follow_cpus(s);
	if (periods_due(s))
		periods_change(s);
}

/* What the sampler could not say, as far as that is new. */
void kernel_lost(struct session *s)
{
	struct kernel *k = s->kernel;
	struct bpf_map *map = bpf_object__find_map_by_name(k->object, ".data.counts");
	uint32_t zero = 0;
	struct kernel_counts counts = {0};
	if (!map || bpf_map__value_size(map) != sizeof counts ||
	    bpf_map_lookup_elem(bpf_map__fd(map), &zero, &counts))
		return;
	uint64_t all = counts.lost_records + counts.lost_snapshots + k->confused;
	uint64_t lost = all > k->lost ? all - k->lost : 0;
	k->lost += lost;
	s->lost += lost;
	if (lost)
		err_free(profile_lose(s->harvest.profile, "no room", lost));
	s->notes.lost_maps = (unsigned)maps_lost(k); /* since the profile before */
}

void kernel_stop(struct session *s)
{
	struct kernel *k = s->kernel;
	if (!k->sampling)
		return;
	k->sampling = false;
	each_event(s, PERF_EVENT_IOC_DISABLE, NULL);
	reader_flush(s);
	kernel_drain(s, true);
	uint64_t until = now_ns() + LAST_TABLES_NS;
	while (k->waiting && library_is_building(s->library)) {
		library_wait(s->library, until);
		kernel_drain(s, false);
	}
	paths_give_up(s);
	tasks_finish(s, NULL);
	kernel_lost(s);
}

static void kernel_close(struct session *s)
{
	struct kernel *k = s->kernel;
	if (!k)
		return;
	for (size_t i = 0; i < k->link_count; i++)
		bpf_link__destroy(k->links[i]);
	reader_close(k);
	maps_close(k);
	counters_close(k);
	code_close(k);
	paths_close(k);
	tasks_close(k);
	kernel_names_close(k->names);
	bpf_object__close(k->object);
	if (k->epoll >= 0)
		close(k->epoll);
	free(k->links);
	free(k->events);
	free(k->readings);
	free(k->paces);
	free(k->event_links);
	free(k->online);
	free(k->enabled_ns);
	free(k->memos);
	free(k);
	s->kernel = NULL;
}

/* ---- as a sampler ---- */

static struct err *open_sampler(struct session *s)
{
	struct err *e = kernel_open(s);
	if (!e)
		e = session_watch(s, kernel_fd(s), &s->kernel_watch);
	if (!e)
		kernel_start(s);
	return e;
}

static void stop_sampler(struct session *s)
{
	kernel_stop(s);
	kernel_name(s);
	if (s->samples >= CALIBRATE_SAMPLES)
		s->harvest.profile->delivery_ns = kernel_delivery();
}

static uint64_t not_yet_known(void)
{
	return 0;
}

const struct sampler sampler_kernel = {
	.open = open_sampler,
	.join = kernel_join,
	.attach = kernel_attach,
	.tick = kernel_tick,
	.status = kernel_status,
	.tally = kernel_tally,
	.name = kernel_name,
	.stop = stop_sampler,
	.close = kernel_close,
	.delivery = not_yet_known,
};
