/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of ours must run where the kernel has put a thread back on a CPU. Since Linux 6.16 there is a
 * tracepoint. Before, there is a function, __perf_event_task_sched_in, if the kernel lets us attach to
 * functions. The kernel calls it only while some perf event belongs to a thread. So we open one that does
 * nothing. The last way is a kprobe on the function that calls it. It costs several times as much on aarch64.
 *
 * Threads may wait when sampling begins, or still wait when it ends. An iterator over all threads notes the
 * first (note_waiting), and tells of the others (tell_waiting), whose stacks we read here. A thread may come
 * back meanwhile. So the iterator is asked again afterwards, and what is not the same is left out.
 */
#include "collect/kernel/off.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "collect/kernel/absences.h"
#include "collect/kernel/age.h"
#include "collect/kernel/state.h"
#include "collect/kernel/tasks.h"
#include "collect/kernel/waiting.h"
#include "process/reach.h"
#include "process/registers.h"
#include "unwind/cpu.h"

#define STACK_READ (64u << 10)          /* bytes of a stack; more is read when it is needed */
#define STACKS_READ ((size_t)128 << 20) /* bytes of all stacks */

/* Whether the kernel lets us run a program where one of its functions begins. */
static bool takes_functions(const struct btf *btf)
{
	int function = btf__find_by_name_kind(btf, "__perf_event_task_sched_in", BTF_KIND_FUNC);
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY,
		    .attach_btf_id = (uint32_t)function);
	return function > 0 && kernel_takes_program(BPF_PROG_TYPE_TRACING, &opts);
}

/* Finds the function that finishes a switch. Compilers give it suffixes. */
static bool find_probed(char *name, size_t size)
{
	static const char stem[] = "finish_task_switch";
	FILE *file = access("/sys/bus/event_source/devices/kprobe", F_OK)
			     ? NULL
			     : fopen("/proc/kallsyms", "re");
	char line[512], *at = NULL;
	while (file && !at && fgets(line, sizeof line, file)) {
		at = strstr(line, stem);
		if (at && (at == line || at[-1] != ' ' || !strchr(".\n", at[sizeof stem - 1])))
			at = NULL;
	}
	if (file)
		fclose(file);
	if (at)
		snprintf(name, size, "%.*s", (int)strcspn(at, " \t\n"), at);
	return at;
}

/* Returns where a variable of each CPU is among all of them, or -1. */
static int64_t find_per_cpu(const struct btf *btf, const char *name)
{
	int variable = btf__find_by_name_kind(btf, name, BTF_KIND_VAR);
	int all = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *section = all > 0 ? btf__type_by_id(btf, (uint32_t)all) : NULL;
	for (uint32_t i = 0; variable > 0 && section && i < btf_vlen(section); i++)
		if (btf_var_secinfos(section)[i].type == (uint32_t)variable)
			return btf_var_secinfos(section)[i].offset;
	return -1;
}

/* Returns where a member of a structure is, also of the nameless ones in it, or -1. */
static int64_t find_member(const struct btf *btf, int number, const char *name, int deepest)
{
	const struct btf_type *type = number > 0 ? btf__type_by_id(btf, (uint32_t)number) : NULL;
	for (uint32_t i = 0; type && btf_is_composite(type) && i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *called = btf__name_by_offset(btf, member->name_off);
		int64_t at = btf_member_bit_offset(type, i) / 8, inside = -1;
		if (called && !strcmp(called, name))
			return at;
		if (called && !*called && deepest)
			inside = find_member(btf, (int)member->type, name, deepest - 1);
		if (inside >= 0)
			return at + inside;
	}
	return -1;
}

/* Linux 6.2 to 6.14 have it in a structure. */
static int64_t find_preempt_count(const struct btf *btf)
{
	int64_t queue = find_per_cpu(btf, "runqueues"), at = find_per_cpu(btf, "__preempt_count");
	if (at < 0) {
		int type = btf__find_by_name_kind(btf, "pcpu_hot", BTF_KIND_STRUCT);
		int64_t inside = find_member(btf, type, "preempt_count", 2);
		at = find_per_cpu(btf, "pcpu_hot");
		at = at < 0 || inside < 0 ? -1 : at + inside;
	}
	return at < 0 || queue < 0 ? 0 : at - queue;
}

static void find_way(struct off_way *out)
{
	struct btf *btf = btf__load_vmlinux_btf();
	out->kind = OFF_NO_WAY;
	out->preempt_count = btf ? find_preempt_count(btf) : 0;
	if (btf && btf__find_by_name_kind(btf, "btf_trace_sched_exit_tp", BTF_KIND_TYPEDEF) > 0)
		out->kind = OFF_TRACEPOINT;
	else if (btf && takes_functions(btf))
		out->kind = OFF_FUNCTION;
	else if (find_probed(out->probed, sizeof out->probed))
		out->kind = OFF_PROBE;
	btf__free(btf);
}

const struct off_way *off_way(void)
{
	static struct off_way way;
	static bool known; /* to find it out takes a while, and it stays the same */
	if (!known)
		find_way(&way);
	known = true;
	return &way;
}

static const char *const back_programs[] = {
	[OFF_TRACEPOINT] = "back_by_tracepoint",
	[OFF_FUNCTION] = "back_by_function",
	[OFF_PROBE] = "back_by_probe",
};

static void choose_program(struct bpf_object *object, const char *name, bool wanted)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	if (program)
		bpf_program__set_autoload(program, wanted);
}

void off_choose(struct kernel *k)
{
	static const char *const programs[] = {"left", "woken", "note_waiting", "tell_waiting",
					       "tell_sums"};
	bool wanted = absences_period(k);
	enum off_kind kind = wanted ? off_way()->kind : OFF_NO_WAY;
	k->off.preempt_count = wanted ? off_way()->preempt_count : 0;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		choose_program(k->object, programs[i], wanted);
	for (size_t i = OFF_TRACEPOINT; i <= OFF_PROBE; i++)
		choose_program(k->object, back_programs[i], i == kind);
	struct bpf_map *told = bpf_object__find_map_by_name(k->object, "told");
	if (told)
		bpf_map__set_autocreate(told, wanted);
}

static struct err *attach(struct kernel *k, const char *name, const char *probed)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, name);
	struct bpf_link *link = !program ? NULL
				: probed ? bpf_program__attach_kprobe(program, false, probed)
					 : bpf_program__attach(program);
	if (!link)
		return err_errno("cannot attach the sampler to %s", name);
	k->off.links[k->off.link_count++] = link;
	return NULL;
}

struct err *off_open(struct kernel *k)
{
	struct perf_event_attr nothing = {.type = PERF_TYPE_SOFTWARE,
					  .size = sizeof nothing,
					  .config = PERF_COUNT_SW_DUMMY,
					  .exclude_kernel = 1};
	if (!absences_period(k))
		return NULL;
	const struct off_way *way = off_way();
	k->off.event = (int)syscall(SYS_perf_event_open, &nothing, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct err *e = k->off.event < 0 ? err_errno("cannot open an event")
					 : attach(k, "left", NULL);
	if (!e)
		e = attach(k, "woken", NULL);
	if (!e)
		e = way->kind ? attach(k, back_programs[way->kind],
				       way->kind == OFF_PROBE ? way->probed : NULL)
			      : err_new("the kernel does not tell it");
	return err_context(e, "time off the CPU");
}

static void detach(struct kernel *k)
{
	while (k->off.link_count)
		bpf_link__destroy(k->off.links[--k->off.link_count]);
}

void off_close(struct kernel *k)
{
	detach(k);
	if (k->off.event >= 0)
		close(k->off.event);
}

/* ---- threads that wait when sampling begins or ends ---- */

/* Runs an iterator, and appends what it writes. */
static void iterate(struct kernel *k, const char *name, struct buf *out)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, name);
	struct bpf_link *link = program ? bpf_program__attach_iter(program, NULL) : NULL;
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	char bytes[8192];
	ssize_t got;
	while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0)
		buf_append(out, bytes, (size_t)got);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
}

void off_begin(struct kernel *k)
{
	struct buf none = {0};
	if (absences_period(k))
		iterate(k, "note_waiting", &none);
	buf_free(&none);
}

/* Returns the first address of a thread's stack that its code may use. */
static uint64_t stack_of(const struct kernel_waits *w)
{
	const struct unwind_cpu *cpu = unwind_cpu_for(native_machine);
	return (w->registers[cpu->sp] & ~7ull) - cpu->kept_below;
}

/* Reads the inner part of each stack. `sizes`: how many bytes each one has; those without a sample or room
   have none. */
static void read_stacks(const struct kernel_waits *w, const bool *sampled, size_t count,
			struct buf *stacks, size_t *sizes)
{
	for (size_t i = 0; i < count && stacks->size < STACKS_READ; i++) {
		if (!sampled[i])
			continue;
		if (!buf_reserve(stacks, STACK_READ))
			return;
		const struct reach_piece piece = {stack_of(&w[i]), STACK_READ,
						  stacks->data + stacks->size};
		ssize_t got = reach_memory((pid_t)w[i].off.head.process, &piece, 1);
		sizes[i] = got > 0 ? (size_t)got & ~(size_t)7 : 0;
		stacks->size += sizes[i];
	}
}

/* Whether the thread is still off the CPU, since the same time. */
static bool is_among(const struct kernel_waits *one, const struct kernel_waits *all, size_t count)
{
	size_t i = 0;
	while (i < count &&
	       (all[i].off.head.thread != one->off.head.thread || all[i].since != one->since))
		i++;
	return i < count;
}

static void add_waiting(struct kernel *k, const struct kernel_waits *w, const char *stack,
			size_t size)
{
	struct kernel_copy s = {.head = w->off.head,
				.pc = w->registers[KERNEL_REGISTERS] &
				      unwind_cpu_for(native_machine)->address_bits,
				.address = stack_of(w),
				.size = size,
				.copied = size,
				.beyond = KERNEL_STACK,
				.kernel_frame_count = w->kernel_frame_count};
	memcpy(s.registers, w->registers, sizeof s.registers);
	memcpy(s.kernel_frames, w->kernel_frames, sizeof s.kernel_frames);
	absences_note(k, &w->off);
	waiting_add(k, &s, (const uint8_t *)stack, NULL);
}

static void take_waiting(struct kernel *k)
{
	struct buf first = {0}, second = {0}, stacks = {0};
	iterate(k, "tell_waiting", &first);
	size_t count = first.size / sizeof(struct kernel_waits);
	const struct kernel_waits *w = (const void *)first.data;
	size_t *sizes = calloc(count + 1, sizeof *sizes), at = 0;
	bool *sampled = calloc(count + 1, sizeof *sampled);
	if (sizes && sampled) {
		for (size_t i = 0; i < count; i++)
			sampled[i] = absences_have_sample(k, w[i].off.ns);
		read_stacks(w, sampled, count, &stacks, sizes);
		iterate(k, "tell_waiting", &second);
		for (size_t i = 0; i < count; at += sizes[i++])
			if (sampled[i] &&
			    is_among(&w[i], (const void *)second.data, second.size / sizeof *w))
				add_waiting(k, &w[i], stacks.data + at, sizes[i]);
	}
	free(sizes);
	free(sampled);
	buf_free(&first);
	buf_free(&second);
	buf_free(&stacks);
}

/* All time of the threads that are alive. */
static void take_sums(struct kernel *k)
{
	struct buf all = {0};
	iterate(k, "tell_sums", &all);
	const struct kernel_told *told = (const void *)all.data;
	for (size_t i = 0; i < all.size / sizeof *told; i++)
		tasks_add_sums(k, &told[i]);
	buf_free(&all);
}

void off_stop(struct kernel *k)
{
	detach(k);
	if (!absences_period(k))
		return;
	take_sums(k);
	/* A recording without end is not held up for the stacks of a whole machine. */
	if (!k->recording->options.drained)
		take_waiting(k);
}
