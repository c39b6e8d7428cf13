/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's sampler as the session sees it (collect/sampler.h). It opens and closes all parts, and
   says what is done in which order. catch_up() is the center: whenever records have come, and at each
   tick, it reads them and passes each one on to the file that handles it. */
#include "collect/kernel/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/absences.h"
#include "collect/kernel/code.h"
#include "collect/kernel/copy.h"
#include "collect/kernel/cost.h"
#include "collect/kernel/counters.h"
#include "collect/kernel/cpus.h"
#include "collect/kernel/governor.h"
#include "collect/kernel/interpreters.h"
#include "collect/kernel/io.h"
#include "collect/kernel/mapped.h"
#include "collect/kernel/object.h"
#include "collect/kernel/off.h"
#include "collect/kernel/paths.h"
#include "collect/kernel/periods.h"
#include "collect/kernel/probes.h"
#include "collect/kernel/reader.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tables.h"
#include "collect/kernel/tasks.h"
#include "collect/kernel/waiting.h"
#include "collect/kernel/walks.h"
#include "collect/sampler.h"
#include "harvest/kernel_frames.h"
#include "harvest/names.h"
#include "harvest/probes.h"
#include "harvest/process.h"
#include "harvest/recording.h"
#include "library/library.h"
#include "process/reach.h"
#include "process/status.h"

/* The longest wait at the end for tables that are being made. */
#define LAST_TABLES_NS 5000000000ull
/* The least time from naming the functions of files to doing it again. */
#define NAME_NS 20000000000ull

/* ---- records ---- */

/* Handles a record. The kernel wrote it, so its contents are trusted, but it must be as long as it says. */
static void take(struct kernel *k, const void *data, size_t size)
{
	k->records++;
	k->record_bytes += size;
	const struct kernel_head *head = data;
	const struct kernel_path *path = data;
	const struct kernel_calls *calls = data;
	const struct kernel_copy *copy;
	size_t before;
	switch (size >= sizeof *head ? head->kind : 0) {
	case KERNEL_PATH:
		if (size >= sizeof *path && (uint64_t)path->fresh + path->kernel_frames <=
						    (size - sizeof *path) / sizeof(uint64_t))
			paths_take(k, path, (const uint64_t *)(path + 1));
		break;
	case KERNEL_FUNCTION:
		if (size >= sizeof(struct kernel_function))
			interpreters_learn(k, data);
		break;
	case KERNEL_OFF:
		if (size >= sizeof(struct kernel_off))
			absences_note(k, data);
		break;
	case KERNEL_IO:
		if (size >= sizeof(struct kernel_io))
			io_note(k, data);
		break;
	case KERNEL_OBJECT:
		if (size >= sizeof(struct kernel_object))
			io_learn(k, data);
		break;
	case KERNEL_CALLED:
		if (size >= sizeof *calls &&
		    calls->count <= (size - sizeof *calls) / sizeof(struct python_call))
			interpreters_take(k, calls);
		break;
	case KERNEL_COPY:
	case KERNEL_FAR:
		copy = copy_in(data, size, &before);
		if (copy)
			waiting_add(k, copy, (const uint8_t *)(copy + 1), before ? data : NULL);
		break;
	case KERNEL_COUNTED:
		counters_take_one(k, data, code_key);
		break;
	case KERNEL_PLACE:
		waiting_add_place(k, data);
		break;
	case KERNEL_FORK:
		tasks_forked(k, data);
		break;
	case KERNEL_EXEC:
		tasks_executed(k, data);
		break;
	case KERNEL_EXIT:
		io_end_thread(k, head->thread);
		probes_end_thread(k, head->thread);
		tasks_exited(k, data);
		break;
	default:
		break;
	}
}

/* Looks again at the processes that wait for tables, if new tables are ready. */
static void look_again(struct kernel *k)
{
	unsigned builds = library_builds(k->recording->library);
	if (builds == k->builds)
		return;
	k->builds = builds;
	for (struct process *p = k->recording->processes; p; p = p->next)
		if (p->kernel->without_tables && p->gone)
			p->kernel->without_tables = false; /* its history (mapped.c) must do */
		else if (p->kernel->without_tables)
			code_look(k, p);
}

/* Looks at processes that have new code. For the whole machine, only at those that were looked at
   before, because of a sample. */
static void look_at_new(struct kernel *k)
{
	bool whole = k->whole;
	uint64_t now = now_ns();
	if (whole)
		look_again(k);
	if (whole && now - k->looked_ns < SAMPLER_TICK_NS)
		return;
	k->looked_ns = now;
	for (struct process *p = k->recording->processes; p; p = p->next) {
		if (p->kernel->by_history_ns && !p->gone)
			code_confirm(k, p);
		code_check_doubtful(k, p);
		if (p->kernel->unlooked ||
		    (!p->gone && (!whole || p->list) && mapped_changed(k, p->pid))) {
			p->kernel->unlooked = false;
			walks_allow_looks(k, p);
			code_look(k, p);
		}
	}
}

/* Frees what is not used any more, if there is much of it. */
static void sweep(struct kernel *k)
{
	if (tables_are_full(k))
		code_forget_tables(k);
	if (!library_has_many(k->recording->library))
		return;
	code_take_counts(k);
	for (const struct process *p = k->recording->processes; p; p = p->next)
		library_mark_used(p->list);
	waiting_mark_used(k);
	paths_mark_used(k);
	code_sweep(k);
}

/* Reads what has come, and does what it asks for. `all`: also takes what was counted a moment ago. */
static void catch_up(struct kernel *k, bool all)
{
	uint64_t begun = now_ns();
	bool counted = counters_switch(k, all);
	if (counted)
		reader_sync(k);
	if (!reader_take(k, take) && k->sampling) {
		/* The sampler sends only what is new since the previous walk, and that may be lost. New
		   lists make it send whole paths again. */
		paths_forget(k);
		code_forget_lists(k);
	}
	if (counted)
		counters_take(k, code_key);
	if (counted || k->every == 1)
		library_end_round(k->recording->library, now_ns());
	mapped_read(k); /* after the records, so that the code of each sample is there */
	look_at_new(k);
	walks_all(k);
	tasks_reap(k);
	mapped_sweep(k, begun, tasks_has_process);
	sweep(k);
}

static void on_records(void *self)
{
	catch_up(self, false);
}

/* ---- opening and closing ---- */

/* Without names, the kernel's work is one frame on each path. */
static void look_for_names(struct kernel *k)
{
	kernel_frames_open(k->recording);
	if (k->whole) /* before sampling: our own work would be in it */
		kernel_frames_names(k->recording);
	if (!k->recording->kernel_frames)
		k->recording->notes.nameless_kernel =
			"functions of the kernel have no names: /proc/kallsyms shows no addresses "
			"(sysctl kernel.kptr_restrict=1 shows them to root)";
}

/* Tables are made in the background. When some are ready, there are stacks to walk. */
static struct err *watch_tables(struct kernel *k)
{
	struct epoll_event event = {.events = EPOLLIN};
	const struct recording_options *o = &k->recording->options;
	struct library *l = k->recording->library;
	struct err *e = library_set_background(l, o->drained, o->maker);
	if (!e && epoll_ctl(k->epoll, EPOLL_CTL_ADD, library_built_fd(l), &event))
		e = err_errno("cannot watch descriptors");
	return e;
}

/* The library calls it while it waits for a table. */
static bool wait_for_tables(void *self, int until, const char *what)
{
	struct kernel *k = self;
	struct pollfd ready = {until, POLLIN, 0};
	return recording_wait(k->recording, what, &ready, 1, NULL, NULL);
}

static struct err *open_parts(struct kernel *k)
{
	struct err *e = paths_open(k);
	if (!e)
		e = object_open(k);
	if (!e) {
		off_choose(k);
		io_choose(k);
		probes_choose(k);
		e = object_load(k);
	}
	if (!e)
		e = tables_open(k);
	if (!e)
		e = code_open(k);
	if (!e)
		e = interpreters_open(k);
	if (!e)
		e = counters_open(k);
	if (!e)
		e = mapped_open(k);
	if (!e && k->whole)
		e = watch_tables(k);
	if (!e)
		e = reader_open(k);
	if (!e)
		e = object_attach(k);
	/* Before the events are opened, since samples come at once then. */
	if (!e && k->recording->options.kernel_frames)
		look_for_names(k);
	if (!e && k->whole)
		tasks_scan(k);
	if (!e)
		e = off_open(k);
	if (!e)
		e = io_open(k);
	if (!e)
		e = probes_open(k);
	if (!e)
		governor_open(k);
	return e ? e : cpus_open(k);
}

static void start(struct kernel *k)
{
	periods_change(k);
	if (k->whole)
		off_begin(k);
	cpus_enable(k);
	k->sampling = true;
}

static struct err *open_kernel(struct recording *r, struct loop *loop, void **self)
{
	struct kernel *k = calloc(1, sizeof *k);
	*self = k;
	if (!k)
		return err_new("out of memory");
	reach_apart(r->options.reacher);
	k->recording = r;
	k->whole = r->options.whole;
	k->kernel_frames = k->whole || r->options.kernel_frames;
	k->max_depth = r->options.max_depth < KERNEL_FRAMES ? r->options.max_depth : KERNEL_FRAMES;
	k->every = r->options.every > 1 ? r->options.every : 1;
	k->cpus = (unsigned)libbpf_num_possible_cpus();
	k->code.serial = 1;
	k->waiting.end = &k->waiting.first;
	k->reader.urgent = k->reader.wake = k->off.event = -1;
	k->watch = (struct watch){on_records, k};
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	struct err *e = k->epoll < 0 ? err_errno("cannot make a sampler") : open_parts(k);
	if (!e)
		e = loop_watch(loop, k->epoll, &k->watch);
	if (e)
		return e;
	library_set_meanwhile(r->library, wait_for_tables, k);
	start(k);
	return NULL;
}

static void close_kernel(void *self)
{
	struct kernel *k = self;
	object_detach(k);
	reader_close(k);
	mapped_close(k);
	counters_close(k);
	code_close(k);
	tables_close(k);
	waiting_close(k);
	paths_close(k);
	interpreters_close(k);
	tasks_close(k);
	cpus_close(k);
	off_close(k);
	io_close(k);
	probes_close(k);
	kernel_frames_close(k->recording);
	bpf_object__close(k->object);
	if (k->epoll >= 0)
		close(k->epoll);
	free(k);
}

static void tick(void *self)
{
	struct kernel *k = self;
	catch_up(k, false);
	probes_tick(k);
	governor_tick(k);
	cpus_follow(k);
	if (periods_due(k))
		periods_change(k);
}

/* Adds the samples that were lost since the last call to the profile. */
static void take_lost(struct kernel *k)
{
	struct kernel_counts counts;
	if (!object_read_counts(k, &counts))
		return;
	uint64_t all = counts.lost_records + counts.lost_copies + k->unusable;
	uint64_t lost = all > k->lost ? all - k->lost : 0;
	k->lost += lost;
	recording_lose(k->recording, "no room", lost);
	k->recording->notes.unseen_io = counts.io_unseen;
	if (k->recording->options.probes)
		k->recording->options.probes->untimed = counts.calls_untimed;
	if (k->recording->options.probes)
		k->recording->options.probes->unmeasured = counts.calls_unmeasured;
	k->recording->notes.lost_maps = (unsigned)mapped_lost(k); /* since the last profile */
}

static void stop(void *self)
{
	struct kernel *k = self;
	if (!k->sampling)
		return;
	k->sampling = false;
	cpus_disable(k);
	reader_flush(k);
	io_detach(k);
	probes_detach(k);
	catch_up(k, true);
	off_stop(k);
	catch_up(k, true);
	uint64_t until = now_ns() + LAST_TABLES_NS;
	while (waiting_any(k) && library_is_building(k->recording->library)) {
		library_wait(k->recording->library, until);
		catch_up(k, false);
	}
	walks_give_up(k);
	io_stop(k);
	probes_stop(k);
	tasks_finish(k, NULL);
	take_lost(k);
}

static void finish(void *self)
{
	tasks_forget_all(self);
}

/* ---- profiles ---- */

static void status(void *self, struct recording_state *out)
{
	const struct kernel *k = self;
	out->records = k->records;
	out->record_bytes = k->record_bytes;
	out->copies = k->copies;
}

static void tally(void *self, struct tally *tallies, bool anew)
{
	cpus_tally(self, tallies, anew);
}

static void prepare(void *self, bool all)
{
	struct kernel *k = self;
	tasks_name(k);
	io_settle(k);
	probes_settle(k);
	kernel_frames_name(k->recording);
	/* This may take a while, and few files need it. */
	if (!all && now_ns() - k->named_ns < NAME_NS)
		return;
	k->named_ns = now_ns();
	names_of_files(k->recording, &k->recording->harvest);
}

static void copy(void *self, struct harvest *copy)
{
	(void)self; /* everything is in the recording already */
	(void)copy;
}

static void take_all(void *self, struct recording_counted *counted)
{
	struct kernel *k = self;
	if (k->sampling)
		catch_up(k, true);
	take_lost(k);
	tasks_add_totals(k);
	*counted = counters_sum(k);
}

static void restart(void *self)
{
	tasks_restart(self);
	paths_restart(self);
	waiting_restart(self);
}

/* ---- whom to sample ---- */

/* Returns a copy: the command needs no variables of ours. */
static char **environment(void *self, char **of)
{
	size_t count = 0;
	(void)self;
	while (of[count])
		count++;
	char **out = reallocarray(NULL, count + 1, sizeof *out);
	if (out)
		memcpy(out, of, (count + 1) * sizeof *out);
	return out;
}

/* In the child that becomes the command: it is sampled from its exec on. */
static void join(void *self)
{
	const struct kernel *k = self;
	uint32_t number = (uint32_t)getpid();
	struct kernel_process asleep = {.asleep = 1};
	if (!k->whole)
		bpf_map_update_elem(k->processes, &number, &asleep, BPF_ANY);
}

static struct err *attach(void *self, pid_t pid)
{
	struct kernel *k = self;
	uint32_t number = (uint32_t)pid;
	struct kernel_process unknown = {0};
	struct process_status status;
	if (!process_status(pid, &status))
		return err_new("there is no process %d", (int)pid);
	if (status.kernel)
		return err_new("process %d is a thread of the kernel", (int)pid);
	if (!tasks_attach(k, pid))
		return err_new("out of memory");
	if (bpf_map_update_elem(k->processes, &number, &unknown, BPF_ANY))
		return err_errno("process %d cannot be sampled", (int)pid);
	off_begin(k);
	mapped_scan(k, pid);
	catch_up(k, false);
	return probes_attach(k, pid);
}

static struct err *probe(void *self, pid_t pid)
{
	return probes_attach(self, pid);
}

static struct err *probe_more(void *self, size_t first)
{
	return probes_extend(self, first);
}

static void probe_less(void *self, uint32_t number)
{
	probes_settle(self);
	probes_remove(self, number);
}

const struct sampler sampler_kernel = {
	.open = open_kernel,
	.close = close_kernel,
	.environment = environment,
	.join = join,
	.attach = attach,
	.probe = probe,
	.probe_more = probe_more,
	.probe_less = probe_less,
	.tick = tick,
	.status = status,
	.tally = tally,
	.prepare = prepare,
	.copy = copy,
	.stop = stop,
	.finish = finish,
	.take_all = take_all,
	.restart = restart,
	.delivery = cost_of_interrupt,
	.delivery_at_end = true,
};
