/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each place of a probe is a uprobe of the kernel, to which our program is attached (uprobes.h). It belongs to a file,
 * and is either for one process, or for all processes that have the file in memory.
 *
 * The ends of a function are attached before its beginning, and detached after it. So each call that is counted can be
 * seen to end.
 */
#include "collect/kernel/probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/err.h"
#include "collect/kernel/frames.h"
#include "collect/kernel/measures.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "collect/kernel/uprobes.h"
#include "harvest/probes.h"
#include "harvest/recording.h"
#include "profile/profile.h"
#include "unwind/end.h"

#define SETTLE_NS 500000000ull
#define ALONE_MAX 32 /* functions of a file that are attached one by one */

_Static_assert(PROBE_TIMES == KERNEL_TIMES && (int)PROBE_BEGINS == KERNEL_PROBE_BEGINS &&
		       (int)PROBE_ENDS == KERNEL_PROBE_ENDS &&
		       (int)PROBE_THROWS == KERNEL_PROBE_THROWS &&
		       (int)PROBE_CATCHES == KERNEL_PROBE_CATCHES,
	       "the sampler has the same");

bool probes_wanted(const struct kernel *k)
{
	return k->recording->options.probes;
}

/* ---- putting them in place ---- */

static void choose(struct kernel *k, const char *name, bool wanted)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, name);
	if (program)
		bpf_program__set_autoload(program, wanted);
}

void probes_choose(struct kernel *k)
{
	struct bpf_program *probed = bpf_object__find_program_by_name(k->object, "probed");
	bool wanted = probes_wanted(k);
	choose(k, "probed", wanted);
	choose(k, "settle_calls", wanted);
	choose(k, "probe_left", wanted);
	measures_choose(k);
	struct bpf_program *left = bpf_object__find_program_by_name(k->object, "probe_left");
	if (probed && left && wanted) {
		uprobes_prepare(probed);
		uprobes_prepare(left);
	}
	if (wanted) /* nothing is sampled beside, and the kernel takes a while to load a program */
		choose(k, "sample", false);
}

/* Says why the kernel does not take a probe. */
static const char *why_not(int error)
{
	switch (error) {
	case EPERM:
	case EACCES:
		return "no permission: run as root, or with CAP_PERFMON and CAP_BPF";
	case ENOENT:
	case ENOEXEC:
		return "its file cannot be read";
	case EINVAL:
	case ENOTSUP:
	case 524: /* ENOTSUPP of the kernel */
		return "the kernel cannot put a probe on one of its instructions";
	case EMFILE:
	case ENFILE:
		return "too many files are open (ulimit -n)";
	case ESRCH:
		return "the process has ended";
	default:
		return strerror(error);
	}
}

/* The places of functions in one file, to be attached together. */
struct joint {
	const char *file;
	pid_t pid;
	uint32_t function, first; /* as in struct kernel_attached */
	struct uprobe_place *begins, *ends;
	size_t begin_count, end_count, begin_room, end_room;
};

/* Attaches its beginnings, or its ends, and keeps that. Returns 0, or the error. */
static int attach_places(struct kernel *k, const struct joint *j, bool begins)
{
	struct bpf_program *program = bpf_object__find_program_by_name(
		k->object, begins ? "probed" : "probe_left");
	if (!program || !ARRAY_ROOM(k->probes.all, k->probes.count, k->probes.room))
		return ENOMEM;
	struct kernel_attached *probe = &k->probes.all[k->probes.count];
	*probe = (struct kernel_attached){
		.begins = begins, .function = j->function, .first = j->first, .pid = j->pid};
	int error = uprobes_attach(program, j->file, begins ? j->begins : j->ends,
				   begins ? j->begin_count : j->end_count, j->pid, &probe->uprobes);
	k->probes.count += !error;
	return error;
}

static bool add_begin(struct joint *j, const struct probe_function *f, uint32_t number)
{
	uint64_t kind = KERNEL_PROBE_BEGINS;
	kind |= f->state == PROBE_ON ? KERNEL_PROBE_TIMED : 0;
	kind |= f->loops ? KERNEL_PROBE_LOOPS : 0;
	if (!ARRAY_ROOM(j->begins, j->begin_count, j->begin_room))
		return false;
	j->begins[j->begin_count++] = (struct uprobe_place){f->sites[0].offset,
							    KERNEL_PROBE_COOKIE(kind, number)};
	return true;
}

static bool add_ends(struct joint *j, const struct probe_function *f, uint32_t number)
{
	for (size_t i = 1; i < f->site_count && f->state == PROBE_ON; i++) {
		if (!ARRAY_ROOM(j->ends, j->end_count, j->end_room))
			return false;
		j->ends[j->end_count++] = (struct uprobe_place){
			f->sites[i].offset, KERNEL_PROBE_COOKIE(KERNEL_PROBE_ENDS, number)};
	}
	return true;
}

static bool add_marks(struct joint *j, const struct probe_marks *m)
{
	for (size_t i = 0; i < m->site_count; i++) {
		if (!ARRAY_ROOM(j->ends, j->end_count, j->end_room))
			return false;
		j->ends[j->end_count++] = (struct uprobe_place){
			m->sites[i].offset, KERNEL_PROBE_COOKIE(m->sites[i].kind, 0)};
	}
	return true;
}

static void free_joint(struct joint *j)
{
	free(j->begins);
	free(j->ends);
}

/* One function by itself. If one of its ends cannot be attached, its calls are only counted. */
static void attach_function(struct kernel *k, struct probe_function *f, uint32_t number, pid_t pid)
{
	struct joint j = {.file = f->file, .pid = pid, .function = number, .first = number};
	int error = add_ends(&j, f, number) ? attach_places(k, &j, false) : ENOMEM;
	if (error)
		probes_refuse(f, PROBE_COUNTING, why_not(error));
	error = add_begin(&j, f, number) ? attach_places(k, &j, true) : ENOMEM;
	if (error)
		probes_refuse(f, PROBE_REFUSED, why_not(error));
	free_joint(&j);
}

static bool belongs(const struct probe_function *f, const struct joint *j)
{
	return f->everywhere == (j->pid < 0) && f->state != PROBE_REFUSED && f->site_count &&
	       !f->removed && !strcmp(f->file, j->file);
}

/* All functions of a file at once. False: the kernel refuses one of them. */
static bool attach_jointly(struct kernel *k, const char *file, pid_t pid, bool fresh)
{
	struct probes *p = k->recording->options.probes;
	struct joint j = {.file = file, .pid = pid};
	bool good = true;
	for (size_t i = 0; i < p->count; i++)
		if (belongs(&p->functions[i], &j) && p->functions[i].fresh >= fresh) {
			good = good && add_ends(&j, &p->functions[i], (uint32_t)i + 1) &&
			       add_begin(&j, &p->functions[i], (uint32_t)i + 1);
			j.first = (uint32_t)i + 1;
		}
	size_t before = k->probes.count;
	good = good && !attach_places(k, &j, false) && !attach_places(k, &j, true);
	while (!good && k->probes.count > before)
		uprobes_detach(&k->probes.all[--k->probes.count].uprobes);
	free_joint(&j);
	return good;
}

/* All functions of a file. A few are attached one by one, so that each can be taken away. `fresh`: only such. */
static void attach_file(struct kernel *k, const char *file, pid_t pid, bool fresh)
{
	struct probes *p = k->recording->options.probes;
	const struct joint j = {.file = file, .pid = pid};
	size_t count = 0;
	for (size_t i = 0; i < p->count; i++)
		count += belongs(&p->functions[i], &j) && p->functions[i].fresh >= fresh;
	if (count > ALONE_MAX && attach_jointly(k, file, pid, fresh))
		return;
	for (size_t i = 0; i < p->count; i++)
		if (belongs(&p->functions[i], &j) && p->functions[i].fresh >= fresh)
			attach_function(k, &p->functions[i], (uint32_t)i + 1, pid);
}

/* Exceptions are told apart from other ends, if the kernel lets us see them. */
static void attach_marks(struct kernel *k, const struct probe_marks *m, pid_t pid)
{
	struct joint j = {.file = m->file, .pid = pid};
	if (m->everywhere == (pid < 0) && add_marks(&j, m))
		attach_places(k, &j, false);
	free_joint(&j);
}

static bool is_first_of_file(const struct probes *p, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(p->functions[i].file, p->functions[index].file))
			return false;
	return true;
}

/* Attaches all that are for this process; -1: those for all processes. `fresh`: as above. */
static struct err *attach_all(struct kernel *k, pid_t pid, bool fresh)
{
	struct probes *p = k->recording->options.probes;
	for (size_t i = 0; !fresh && i < p->mark_count; i++)
		attach_marks(k, &p->marks[i], pid);
	for (size_t i = 0; i < p->count; i++)
		if (is_first_of_file(p, i))
			attach_file(k, p->functions[i].file, pid, fresh);
	for (size_t i = 0; i < p->count; i++)
		if (p->functions[i].state != PROBE_REFUSED)
			return NULL;
	return p->count ? err_new("%s: %s", p->functions[0].name,
				  p->functions[0].reason ? p->functions[0].reason : "refused")
			: NULL;
}

/* What finds no room for a sum of its own goes to that of its function alone. */
static struct err *make_rest(struct kernel *k, size_t first)
{
	const struct probes *p = k->recording->options.probes;
	struct err *e = NULL;
	struct kernel_timing *none = calloc(1, sizeof *none);
	const struct kernel_transfer nothing = {0};
	bool good = none;
	for (size_t i = first; good && i < p->count; i++) {
		const struct kernel_transfer_key key = {.object = i + 1, .act = KERNEL_IO_PROBE};
		good = !bpf_map_update_elem(k->probes.calls, &key, &nothing, BPF_ANY) &&
		       !bpf_map_update_elem(k->probes.timings, &key, none, BPF_ANY);
		if (good && !e)
			e = measures_add_function(k, (uint32_t)i + 1);
	}
	free(none);
	return good ? e : err_errno("cannot make room for the calls of functions");
}

struct err *probes_open(struct kernel *k)
{
	if (!probes_wanted(k))
		return NULL;
	k->probes.calls = bpf_object__find_map_fd_by_name(k->object, "transfers");
	k->probes.timings = bpf_object__find_map_fd_by_name(k->object, "timings");
	struct err *e = measures_open(k);
	if (!e)
		e = make_rest(k, 0);
	return e ? e : attach_all(k, -1, false);
}

struct err *probes_attach(struct kernel *k, pid_t pid)
{
	if (!probes_wanted(k))
		return NULL;
	if (!ARRAY_ROOM(k->probes.pids, k->probes.pid_count, k->probes.pid_room))
		return err_new("out of memory");
	k->probes.pids[k->probes.pid_count++] = pid;
	return attach_all(k, pid, false);
}

struct err *probes_extend(struct kernel *k, size_t first)
{
	struct probes *p = k->recording->options.probes;
	struct err *e = make_rest(k, first);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->functions[i].fresh)
			probes_limit(k, i + 1, p->functions[i].dropped ? KERNEL_LIMIT_UNTIMED : 0);
	err_free(e ? NULL : attach_all(k, -1, true));
	for (size_t i = 0; !e && i < k->probes.pid_count; i++)
		err_free(attach_all(k, k->probes.pids[i], true));
	for (size_t i = 0; i < p->count; i++)
		p->functions[i].fresh = false;
	return e;
}

/* ---- taking them away ---- */

static void detach(struct kernel *k, bool begins)
{
	for (size_t i = 0; i < k->probes.count; i++)
		if (k->probes.all[i].begins == begins)
			uprobes_detach(&k->probes.all[i].uprobes);
}

void probes_limit(struct kernel *k, uint32_t number, uint32_t flags)
{
	bpf_map_update_elem(k->probes.limits, &number, &flags, BPF_ANY);
}

static void drop_attached(struct kernel *k, size_t index)
{
	uprobes_detach(&k->probes.all[index].uprobes);
	k->probes.all[index] = k->probes.all[--k->probes.count];
}

/* Attaches the ends that were attached together again, without those that are not wanted any more. An end that is seen
   twice meanwhile counts once. */
static void renew_ends(struct kernel *k, size_t index)
{
	struct probes *p = k->recording->options.probes;
	const struct kernel_attached old = k->probes.all[index];
	struct joint j = {
		.file = p->functions[old.first - 1].file, .pid = old.pid, .first = old.first};
	bool good = true;
	for (size_t i = 0; i < p->count; i++)
		if (belongs(&p->functions[i], &j) && !p->functions[i].dropped)
			good = good && add_ends(&j, &p->functions[i], (uint32_t)i + 1);
	if (good && !attach_places(k, &j, false))
		drop_attached(k, index);
	free_joint(&j);
}

void probes_drop_ends(struct kernel *k, uint32_t number)
{
	const struct probes *p = k->recording->options.probes;
	const char *file = p->functions[number - 1].file;
	for (size_t i = k->probes.count; i-- > 0;) {
		const struct kernel_attached *a = &k->probes.all[i];
		if (a->begins)
			continue;
		if (a->function == number)
			drop_attached(k, i);
		else if (!a->function && a->first && !strcmp(p->functions[a->first - 1].file, file))
			renew_ends(k, i);
	}
}

void probes_remove(struct kernel *k, uint32_t number)
{
	probes_limit(k, number, KERNEL_LIMIT_REMOVED);
	for (size_t i = k->probes.count; i-- > 0;)
		if (k->probes.all[i].begins && k->probes.all[i].function == number)
			drop_attached(k, i);
	probes_drop_ends(k, number);
}

/* Threads that wait tell by their stacks which calls they have left. */
static void settle_calls(struct kernel *k)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, "settle_calls");
	struct bpf_link *link = program ? bpf_program__attach_iter(program, NULL) : NULL;
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	char nothing[64];
	while (fd >= 0 && read(fd, nothing, sizeof nothing) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
}

void probes_detach(struct kernel *k)
{
	if (!probes_wanted(k) || !k->probes.all)
		return;
	detach(k, true);
	detach(k, false);
	settle_calls(k);
	free(k->probes.all);
	k->probes.all = NULL;
	k->probes.count = k->probes.room = 0;
}

static void free_sum(struct kernel_probe_sum *s)
{
	free(s->pieces);
	free(s);
}

void probes_close(struct kernel *k)
{
	detach(k, true);
	detach(k, false);
	free(k->probes.all);
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		for (struct kernel_probe_sum *s = k->probes.sums[i], *next; s; s = next) {
			next = s->next;
			free_sum(s);
		}
	measures_close(k);
	free(k->probes.pids);
}

/* ---- counting ---- */

/* Counts at a node; node 0: it is not known. */
static struct err *count(struct kernel *k, uint64_t function, uint32_t node, uint32_t thread,
			 uint32_t end, const struct probe_sums *more)
{
	struct recording *r = k->recording;
	struct err *e = probes_add(r->options.probes, (uint32_t)function - 1, node, more);
	for (uint32_t i = 0; !e && i < r->options.event_count; i++) {
		uint8_t what = r->options.events[i].probe;
		uint64_t n = what == RECORDING_PROBE_CALLS ? more->calls
			     : what == RECORDING_PROBE_NS  ? more->ns
							   : 0;
		e = n ? profile_count(r->harvest.profile, node, thread, i, n) : NULL;
	}
	r->samples += more->calls;
	r->partial += end != WALK_COMPLETE ? more->calls : 0;
	return e;
}

/* Notes where a sum belongs. The sampler tells of each one once. */
static struct err *add_sum(struct kernel *k, const struct kernel_transfer_key *key, uint32_t node,
			   uint32_t thread, uint32_t end)
{
	struct kernel_probe_sum **bucket = &k->probes.sums[key->thread % KERNEL_BUCKETS];
	struct kernel_probe_sum *s = calloc(1, sizeof *s);
	if (!s)
		return err_new("out of memory");
	*s = (struct kernel_probe_sum){
		.next = *bucket, .key = *key, .node = node, .thread = thread, .end = end};
	*bucket = s;
	return NULL;
}

struct err *probes_count(struct kernel *k, const struct kernel_io *io, uint32_t thread,
			 uint32_t node, uint32_t end)
{
	const struct probe_sums one = {
		.calls = io->sum.calls, .untimed = io->sum.bytes, .least = UINT64_MAX};
	if (!io->head.time)
		return NULL;
	return one.calls ? count(k, io->key.object, node, thread, end, &one)
			 : add_sum(k, &io->key, node, thread, end);
}

/* ---- sums ---- */

/* Sets what was added to a sum since then. */
static void subtract(const struct kernel_timing *now, const struct kernel_timing *then,
		     struct probe_sums *out)
{
	out->returned = now->returned - then->returned;
	out->unwound = now->unwound -
		       then->unwound; /* may be less than nothing: it was taken back */
	out->abandoned = now->abandoned - then->abandoned;
	out->ns = now->ns - then->ns;
	out->most = now->most;
	out->least = now->least ? now->least - 1 : UINT64_MAX;
	for (uint32_t i = 0; i < KERNEL_TIMES; i++)
		out->times[i] = now->times[i] - then->times[i];
}

static int look_up(int map, const void *key, void *value, bool last)
{
	return last ? bpf_map_lookup_and_delete_elem(map, key, value)
		    : bpf_map_lookup_elem(map, key, value);
}

/* Takes what was added since the last time. */
static struct err *take_sum(struct kernel *k, struct kernel_probe_sum *s, bool last)
{
	struct kernel_transfer calls;
	struct kernel_timing timing;
	struct probe_sums more = {.least = UINT64_MAX};
	struct kernel_thread *t = tasks_has_thread(k, (pid_t)s->key.thread)
					  ? tasks_find(k, (pid_t)s->key.process,
						       (pid_t)s->key.thread)
					  : NULL;
	struct err *e = NULL;
	uint64_t load = 0;
	if (!look_up(k->probes.calls, &s->key, &calls, last)) {
		more.calls = calls.calls - s->calls.calls;
		more.untimed = calls.bytes - s->calls.bytes;
		load += more.untimed ? calls.own_ns - s->calls.own_ns : 0;
		if (t)
			t->handler_ns += calls.own_ns - s->calls.own_ns;
		s->calls = calls;
	}
	if (!look_up(k->probes.timings, &s->key, &timing, last)) {
		subtract(&timing, &s->timing, &more);
		load += timing.own_ns - s->timing.own_ns;
		s->timing = timing;
		e = measures_take(k, s, timing.octaves, last);
	}
	struct probes *p = k->recording->options.probes;
	p->functions[s->key.object - 1].load_ns += load + p->trap_ns * (more.calls + more.returned);
	struct err *uncounted = count(k, s->key.object, s->node, s->thread, s->end, &more);
	if (e)
		err_free(uncounted);
	return e ? e : uncounted;
}

static void take_bucket(struct kernel *k, struct kernel_probe_sum **link, uint32_t thread)
{
	for (struct kernel_probe_sum *s; (s = *link);) {
		if (thread && s->key.thread != thread) {
			link = &s->next;
			continue;
		}
		recording_note_error(k->recording, take_sum(k, s, true));
		measures_keep_slowest(k, s);
		*link = s->next;
		free_sum(s);
	}
}

void probes_end_thread(struct kernel *k, uint32_t thread)
{
	if (probes_wanted(k))
		take_bucket(k, &k->probes.sums[thread % KERNEL_BUCKETS], thread);
}

/* Whether it is the sum of one call alone, which has ended: nothing will be added to it. */
static bool is_over(const struct kernel_probe_sum *s)
{
	const struct kernel_timing *t = &s->timing;
	return !(s->key.path & 1) && s->calls.calls && !t->unwound && !t->abandoned &&
	       t->returned == s->calls.calls;
}

static void settle_bucket(struct kernel *k, struct kernel_probe_sum **link)
{
	for (struct kernel_probe_sum *s; (s = *link);) {
		recording_note_error(k->recording, take_sum(k, s, false));
		if (!is_over(s)) {
			link = &s->next;
			continue;
		}
		bpf_map_delete_elem(k->probes.calls, &s->key);
		bpf_map_delete_elem(k->probes.timings, &s->key);
		measures_forget(k, s);
		measures_keep_slowest(k, s);
		*link = s->next;
		free_sum(s);
	}
}

void probes_settle(struct kernel *k)
{
	k->probes.settled_ns = now_ns();
	for (size_t i = 0; probes_wanted(k) && i < KERNEL_BUCKETS; i++)
		settle_bucket(k, &k->probes.sums[i]);
	if (probes_wanted(k))
		measures_take_slowest(k);
}

void probes_tick(struct kernel *k)
{
	if (probes_wanted(k) && now_ns() - k->probes.settled_ns >= SETTLE_NS)
		probes_settle(k);
}

/* Of calls whose path was lost, it is known who made them, or at least what was called. */
static struct err *take_pathless(struct kernel *k, const struct kernel_transfer_key *key,
				 const struct probe_sums *sums, const uint64_t *octaves)
{
	uint32_t thread = 0, node = 0;
	if (!sums->calls && !sums->returned && !sums->unwound && !sums->abandoned)
		return NULL;
	struct process *p = key->process ? tasks_process(k, (pid_t)key->process, key->changes)
					 : k->recording->processes;
	if (!p)
		return err_new("out of memory");
	struct err *e = key->thread ? tasks_place_ended(k, p, (pid_t)key->thread, &thread)
				    : tasks_place_process(k, p, &thread);
	if (!e)
		e = frames_add_root(k, p, WALK_NO_STACK, &node);
	struct kernel_probe_sum s = {.key = *key, .node = node, .thread = thread};
	if (!e)
		e = count(k, key->object, node, thread, WALK_NO_STACK, sums);
	if (!e)
		e = measures_take(k, &s, octaves, true);
	free(s.pieces);
	return e;
}

void probes_stop(struct kernel *k)
{
	struct kernel_transfer_key key;
	struct kernel_transfer calls;
	struct kernel_timing timing;
	const struct kernel_timing nothing = {0};
	if (!probes_wanted(k))
		return;
	for (size_t i = 0; i < KERNEL_BUCKETS; i++)
		take_bucket(k, &k->probes.sums[i], 0);
	measures_take_slowest(k);
	while (!bpf_map_get_next_key(k->probes.calls, NULL, &key) &&
	       !look_up(k->probes.calls, &key, &calls, true)) {
		struct probe_sums sums = {
			.calls = calls.calls, .untimed = calls.bytes, .least = UINT64_MAX};
		if (look_up(k->probes.timings, &key, &timing, true))
			timing = nothing;
		subtract(&timing, &nothing, &sums);
		recording_note_error(k->recording, take_pathless(k, &key, &sums, timing.octaves));
	}
	while (!bpf_map_get_next_key(k->probes.timings, NULL, &key) &&
	       !look_up(k->probes.timings, &key, &timing, true)) {
		struct probe_sums sums = {.least = UINT64_MAX};
		subtract(&timing, &nothing, &sums);
		recording_note_error(k->recording, take_pathless(k, &key, &sums, timing.octaves));
	}
}
