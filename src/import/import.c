/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "base/term.h"
#include "import/binaries.h"
#include "import/bytes.h"
#include "import/internal.h"
#include "process/kernel_names.h"
#include "import/perf_format.h"
#include "import/perf_info.h"
#include "import/registers.h"
#include "import/input.h"
#include "import/perf_tasks.h"
#include "process/registers.h"
#include "profile/profile.h"

#define LISTED_MAX 4
#define PROGRESS_EVERY 4096u /* records */
#define COPY_MAX 60000u      /* bytes of a stack: a record has no room for many more */

/* ---- events ---- */

static const char *const hardware[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};
static const char *const software[] = {
	"cpu-clock",        "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",        "bpf-output",   "cgroup-switches",
};
enum { TYPE_HARDWARE, TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK = 0, SOFTWARE_TASK_CLOCK = 1 };

static const char *usual_name(const struct perf_event *e, char *room, size_t size)
{
	if (e->type == TYPE_HARDWARE && e->config < sizeof hardware / sizeof *hardware)
		return hardware[e->config];
	if (e->type == TYPE_SOFTWARE && e->config < sizeof software / sizeof *software)
		return software[e->config];
	snprintf(room, size, "event %" PRIu32 ":0x%" PRIx64, e->type, e->config);
	return room;
}

/* How precise it was asked to be says nothing here: "cycles:ppp" is "cycles". */
static void name_event(const struct perf_event *e, char *out, size_t size)
{
	const char *name = e->name && e->name[0] ? e->name : usual_name(e, out, size);
	if (name != out)
		snprintf(out, size, "%s", name);
	char *colon = strrchr(out, ':');
	if (!colon || strspn(colon + 1, "ukhpPGHIDS") != strlen(colon + 1))
		return;
	bool user = strchr(colon, 'u'), kernel = strchr(colon, 'k');
	*colon = 0;
	if (user != kernel && strlen(out) + 3 < size)
		strcat(out, user ? ":u" : ":k");
}

static const char *unit_of(const struct perf_event *e, const char *name)
{
	if (e->type == TYPE_SOFTWARE &&
	    (e->config == SOFTWARE_CPU_CLOCK || e->config == SOFTWARE_TASK_CLOCK))
		return "ns";
	return strstr(name, "faults") ? "faults" : strstr(name, "cycles") ? "cycles" : "events";
}

/* Its metric, made at its first sample: events that only keep records coming have none. */
static struct err *keep_event(struct import *i, const struct perf_event *e)
{
	uint32_t number = perf_info_event_number(i->info, e), metric;
	char name[256];
	if (i->metrics[number])
		return NULL;
	name_event(e, name, sizeof name);
	struct err *error = profile_add_metric(
		i->profile,
		&(struct profile_metric){.name = name,
					 .unit = unit_of(e, name),
					 .period = e->frequency ? 0 : e->period,
					 .user_only = e->no_kernel},
		&metric);
	if (!error)
		i->metrics[number] = metric + 1;
	if (!error && !metric && e->frequency)
		i->profile->hz = e->period;
	return error;
}

/* In their order, those that may have samples. */
static struct err *keep_events(struct import *i)
{
	struct err *e = NULL;
	for (size_t at = 0; !e && at < i->info->event_count; at++) {
		const struct perf_event *event = &i->info->events[at];
		bool dummy = event->type == TYPE_SOFTWARE && event->config == 9;
		if (!dummy || i->info->event_count == 1)
			e = keep_event(i, event);
	}
	return e;
}

/* ---- records ---- */

static bool is_code_of_file(const char *path)
{
	if (!strcmp(path, "[vdso]"))
		return true;
	return path[0] == '/' && path[1] != '/' && strncmp(path, "/dev/", 5) != 0 &&
	       strncmp(path, "/memfd:", 7) != 0 && strncmp(path, "/SYSV", 5) != 0 &&
	       strncmp(path, "/anon_hugepage", 14) != 0;
}

/* "[kernel.kallsyms]_text": where that symbol was, so that the kernel's place is known. */
static void note_kernel(struct import *i, const char *name, uint64_t address)
{
	const char *symbol = strchr(name, ']');
	if (strncmp(name, "[kernel.kallsyms]", 17) != 0 || !symbol[1] || i->kernel_symbol[0])
		return;
	snprintf(i->kernel_symbol, sizeof i->kernel_symbol, "%s", symbol + 1);
	i->kernel_address = address;
}

static struct err *take_map(struct import *i, const struct perf_record *r)
{
	struct bytes b = bytes_of(r->body, r->size);
	int32_t pid = (int32_t)bytes_u32(&b);
	char hex[41] = "", *path;
	bytes_u32(&b);
	uint64_t start = bytes_u64(&b), size = bytes_u64(&b), offset = bytes_u64(&b);
	if (r->type == PERF_KERNEL_MMAP2) {
		const uint8_t *id = bytes_take(&b, 24);
		if (id && r->misc & PERF_MISC_HAS_BUILD_ID && id[0] <= 20)
			for (unsigned at = 0; at < id[0]; at++)
				snprintf(hex + 2 * at, 3, "%02x", id[4 + at]);
		bytes_take(&b, 8); /* protection and flags */
	}
	if (b.bad || r->misc & PERF_MISC_DATA)
		return NULL;
	path = strndup((const char *)b.at, bytes_left(&b));
	if (!path)
		return err_new("out of memory");
	struct err *e = NULL;
	if ((r->misc & PERF_MISC_MODE) == PERF_MODE_KERNEL) {
		note_kernel(i, path, offset);
	} else {
		size_t length = strlen(path);
		const char *id = hex[0] ? hex : perf_info_build_id(i->info, path);
		if (length > 10 && !strcmp(path + length - 10, " (deleted)"))
			path[length - 10] = 0;
		struct binary *binary = is_code_of_file(path)
						? binaries_find(i->binaries, path, id ? id : "")
						: NULL;
		e = perf_tasks_map(i->tasks, pid, start, size, offset, binary);
	}
	free(path);
	return e;
}

static struct err *take_name(struct import *i, const struct perf_record *r)
{
	struct bytes b = bytes_of(r->body, r->size);
	int32_t pid = (int32_t)bytes_u32(&b), tid = (int32_t)bytes_u32(&b);
	char name[64] = "";
	if (b.bad)
		return NULL;
	size_t left = bytes_left(&b);
	memcpy(name, b.at, left < sizeof name - 1 ? left : sizeof name - 1);
	return perf_tasks_name(i->tasks, pid, tid, name, r->misc & PERF_MISC_EXEC, r->time);
}

static struct err *take_task(struct import *i, const struct perf_record *r)
{
	struct bytes b = bytes_of(r->body, r->size);
	int32_t pid = (int32_t)bytes_u32(&b), parent = (int32_t)bytes_u32(&b);
	int32_t tid = (int32_t)bytes_u32(&b);
	if (b.bad)
		return NULL;
	if (r->type == PERF_KERNEL_FORK)
		return perf_tasks_fork(i->tasks, pid, parent, tid, r->misc & PERF_MISC_EXEC,
				       r->time);
	perf_tasks_exit(i->tasks, pid, tid, r->time);
	return NULL;
}

static struct err *take_lost(struct import *i, const struct perf_record *r)
{
	struct bytes b = bytes_of(r->body, r->size);
	if (r->type == PERF_KERNEL_LOST)
		bytes_u64(&b); /* the id of an event */
	return profile_lose(i->profile, "not written by perf in time", bytes_u64(&b));
}

/* Of a pipe the CPU and the events are known only once records come. */
static struct err *prepare(struct import *i)
{
	uint64_t mask = 0;
	for (size_t at = 0; at < i->info->event_count; at++)
		mask |= i->info->events[at].registers;
	if (i->info->arch) {
		i->cpu = perf_cpu_named(i->info->arch);
		if (!i->cpu)
			return err_new("it is of a machine (%.32s) that is not supported",
				       i->info->arch);
	} else { /* only one of the two has so many registers */
		i->cpu = mask >> perf_cpu_aarch64.pc & 1 ? &perf_cpu_aarch64
			 : mask                          ? &perf_cpu_x86_64
							 : perf_cpu_for(native_machine);
	}
	i->binaries = binaries_new(i->options->sysroot, i->cpu->elf_machine, i->recorded);
	i->tasks = i->binaries ? perf_tasks_new(i->binaries) : NULL;
	return i->tasks ? keep_events(i) : err_new("out of memory");
}

static struct err *take(void *context, const struct perf_record *r)
{
	struct import *i = context;
	struct err *e = i->tasks ? NULL : prepare(i);
	if (!e && r->type == PERF_KERNEL_SAMPLE)
		e = keep_event(i, r->event);
	if (e)
		return e;
	if (++i->records % PROGRESS_EVERY == 0)
		term_progress_update(&i->progress, input_place(i->input), input_size(i->input));
	if (r->time && (!i->first_time || r->time < i->first_time))
		i->first_time = r->time;
	if (r->time > i->last_time)
		i->last_time = r->time;
	switch (r->type) {
	case PERF_KERNEL_MMAP:
	case PERF_KERNEL_MMAP2:
		return take_map(i, r);
	case PERF_KERNEL_COMM:
		return take_name(i, r);
	case PERF_KERNEL_FORK:
	case PERF_KERNEL_EXIT:
		return take_task(i, r);
	case PERF_KERNEL_LOST:
	case PERF_KERNEL_LOST_SAMPLES:
		return take_lost(i, r);
	default:
		return import_sample(i, r);
	}
}

/* ---- the whole ---- */

static void describe(struct import *i)
{
	struct profile *p = i->profile;
	const struct perf_info *info = i->info;
	p->command = profile_string(p, info->command ? info->command : "");
	p->host = profile_string(p, info->host ? info->host : "");
	p->kernel = profile_string(p, info->release ? info->release : "");
	p->machine = profile_string(p, info->arch ? info->arch : "");
	p->directory = profile_string(p, "");
	p->version = profile_string(p, "");
	p->complete = !info->cut_short;
	p->duration_ns = i->last_time - i->first_time;
	if (i->recorded > p->duration_ns / 1000000000)
		p->start_time = i->recorded - p->duration_ns / 1000000000;
	for (uint32_t m = 0; m < p->metric_count; m++) {
		uint64_t samples = profile_samples(p, m);
		if (!p->metrics[m].period && samples)
			p->metrics[m].period = i->periods[m] / samples;
		if (!p->metrics[m].period)
			p->metrics[m].period = 1;
	}
}

/* "libx.so, app and 3 more: not found …", once for all. */
static void note_missing(const struct import *i, struct buf *notes)
{
	struct buf names = {0};
	const char *why = NULL;
	size_t count = 0;
	for (uint32_t at = 1; i->binaries && at <= binaries_count(i->binaries); at++) {
		const struct binary *b = binaries_get(i->binaries, at);
		if (!b->profile || !b->problem)
			continue;
		if (count++ < LISTED_MAX)
			buf_printf(&names, "%s%s", count > 1 ? ", " : "", path_file(b->path));
		if (!why)
			why = b->problem;
	}
	if (count > LISTED_MAX)
		buf_printf(&names, " and %zu more", count - LISTED_MAX);
	if (count)
		buf_printf(
			notes,
			"%s: not to be had as recorded (%s), so that functions are addresses and "
			"stacks end there: --sysroot names the directory where they are\n",
			buf_text(&names), why);
	buf_free(&names);
}

static void write_notes(struct import *i, struct buf *notes)
{
	struct perf_info *info = i->info;
	if (i->damaged)
		perf_info_damage(info, "%" PRIu64 " samples are damaged", i->damaged);
	if (i->tasks && perf_tasks_unkept(i->tasks))
		perf_info_damage(info, "%" PRIu64 " mappings are too many to keep",
				 perf_tasks_unkept(i->tasks));
	if (info->damage.size)
		buf_printf(notes, "damaged: %s\n", buf_text(&info->damage));
	if (i->flat)
		buf_puts(notes, "perf recorded no callers: perf record -g does, and more of them "
				"--call-graph dwarf\n");
	if (i->short_stacks)
		buf_printf(notes,
			   "%" PRIu64 " stacks are longer than the %" PRIu64
			   " bytes that perf copied, and end there: %s\n",
			   i->short_stacks, i->stack_wanted,
			   i->stack_wanted < COPY_MAX
				   ? "perf record --call-graph dwarf,65528 copies more"
				   : "perf can copy no more of them");
	if (i->narrow)
		buf_printf(notes, "%" PRIu64 " samples of 32-bit code have no callers\n",
			   i->narrow);
	note_missing(i, notes);
}

static struct err *finish(struct import *i, struct buf *notes)
{
	struct err *e = NULL;
	uint64_t unknown = perf_file_unknown(i->file);
	if (!i->tasks)
		e = i->info->event_count ? prepare(i) : err_new("it describes no events");
	if (!e && unknown)
		e = profile_lose(i->profile, "of an event that is not described", unknown);
	if (!e && i->damaged)
		e = profile_lose(i->profile, "damaged", i->damaged);
	if (!e)
		e = profile_settle(i->profile);
	if (e)
		return e;
	perf_tasks_finish(i->tasks, i->profile, i->first_time, i->last_time);
	import_names(i);
	describe(i);
	write_notes(i, notes);
	if (i->info->damage.size) {
		struct buf text = {0};
		buf_printf(&text, "imported from a damaged perf.data: %s",
			   buf_text(&i->info->damage));
		i->profile->note = profile_string(i->profile, buf_text(&text));
		buf_free(&text);
	}
	return NULL;
}

static struct err *import(struct input *input, const struct import_options *options,
			  struct profile **out, struct buf *notes)
{
	struct import i = {.options = options, .input = input, .recorded = input_modified(input)};
	struct err *e = perf_file_open(input, &i.file);
	*out = NULL;
	if (e)
		return e;
	i.info = perf_file_info(i.file);
	i.keys = calloc(3, IMPORT_FRAMES * sizeof *i.keys);
	e = i.keys ? profile_new(&i.profile) : err_new("out of memory");
	if (!e) {
		i.user = i.keys + IMPORT_FRAMES;
		i.kernel_chain = i.user + IMPORT_FRAMES;
		term_progress_start(&i.progress, "culprit: reading");
		e = perf_file_records(i.file, take, &i);
		term_progress_end(&i.progress);
	}
	if (!e)
		e = finish(&i, notes);
	if (e)
		profile_free(i.profile);
	else
		*out = i.profile;
	kernel_names_close(i.kernel);
	perf_tasks_free(i.tasks);
	binaries_free(i.binaries);
	perf_file_close(i.file);
	free(i.keys);
	return e;
}

struct err *import_perf(const char *path, const struct import_options *options,
			struct profile **out, struct buf *notes)
{
	struct input *input;
	struct err *e = input_open(path, &input);
	*out = NULL;
	if (e)
		return e;
	e = import(input, options, out, notes);
	input_close(input);
	return err_context(e, "%s", path);
}

struct err *import_perf_bytes(const void *bytes, size_t size, const struct import_options *options,
			      struct profile **out, struct buf *notes)
{
	struct input *input;
	struct err *e = input_open_memory(bytes, size, &input);
	*out = NULL;
	if (e)
		return e;
	e = import(input, options, out, notes);
	input_close(input);
	return e;
}
