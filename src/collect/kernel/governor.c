/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our program in the kernel measures its own time. It cannot see what the kernel takes to come to it and to go back to
 * the thread: the trap. So that is measured once, in a function of our own: our program does nothing there, because we are
 * not probed.
 *
 * The program's time is the time that has passed, or its CPU time if that is more: many threads may run at once.
 *
 * A function that is too dear first stops to time new calls. A while later the probes at its ends are taken away: so most
 * calls that were being timed are still seen to end.
 */
#include "collect/kernel/governor.h"

#include <bpf/libbpf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/kernel/probes.h"
#include "collect/kernel/state.h"
#include "harvest/probes.h"
#include "harvest/recording.h"

#define JUDGE_NS 1000000000ull
#define TRIES 5
#define CALLS 200

/* ---- the trap ---- */

static volatile unsigned touched;

static unsigned triple(unsigned x)
{
	return x * 3;
}

static unsigned (*volatile called)(unsigned) = triple;

/* It calls another function, so that it begins as most functions do. */
__attribute__((noinline)) static unsigned trapped(unsigned x)
{
	return called(x) + touched;
}

/* Finds the offset of our function in our own file. */
static int find_offset(struct dl_phdr_info *info, size_t size, void *out)
{
	uint64_t address = (uint64_t)(uintptr_t)trapped - info->dlpi_addr;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && address >= h->p_vaddr &&
		    address - h->p_vaddr < h->p_filesz) {
			*(uint64_t *)out = address - h->p_vaddr + h->p_offset;
			return 1;
		}
	}
	return 1; /* the first is the program itself */
}

static uint64_t time_calls(void)
{
	unsigned (*volatile f)(unsigned) = trapped;
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t start = now_ns();
		for (int k = 0; k < CALLS; k++)
			touched = f(touched);
		uint64_t ns = now_ns() - start;
		best = ns < best ? ns : best;
	}
	return best / CALLS;
}

void governor_open(struct kernel *k)
{
	struct bpf_program *program = bpf_object__find_program_by_name(k->object, "probe_left");
	struct probes *p = k->recording->options.probes;
	struct uprobe_place place = {.cookie = KERNEL_PROBE_COOKIE(KERNEL_PROBE_ENDS, 0)};
	struct uprobes uprobes;
	k->probes.judged_ns = now_ns();
	if (!p)
		return;
	uint64_t before = time_calls();
	dl_iterate_phdr(find_offset, &place.offset);
	if (p->only_calls || !program || !place.offset ||
	    uprobes_attach(program, "/proc/self/exe", &place, 1, getpid(), &uprobes))
		return;
	uint64_t with = time_calls();
	uprobes_detach(&uprobes);
	p->trap_ns = with > before ? with - before : 0;
}

/* ---- the budget ---- */

static uint64_t program_cpu_ns(const struct kernel *k)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < k->probes.pid_count; i++) {
		clockid_t id;
		struct timespec t;
		if (!clock_getcpuclockid(k->probes.pids[i], &id) && !clock_gettime(id, &t))
			sum += (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return sum;
}

/* Those that stopped to time calls a while ago. */
static void drop_ends(struct kernel *k)
{
	struct probes *p = k->recording->options.probes;
	for (uint32_t i = 0; i < p->count; i++)
		if (p->functions[i].dropped && p->functions[i].site_count > 1) {
			p->functions[i].site_count = 1;
			probes_drop_ends(k, i + 1);
		}
}

void governor_tick(struct kernel *k)
{
	struct probes *p = k->recording->options.probes;
	uint64_t now = now_ns(), passed = now - k->probes.judged_ns;
	if (!p || passed < JUDGE_NS)
		return;
	uint64_t cpu_ns = program_cpu_ns(k), cpu = cpu_ns - k->probes.judged_cpu_ns;
	bool first = !k->probes.judged_cpu_ns;
	drop_ends(k);
	k->probes.judged_ns = now;
	k->probes.judged_cpu_ns = cpu_ns;
	if (cpu_ns && !first && cpu > passed && cpu < cpu_ns + 1)
		passed = cpu;
	uint32_t dropped = probes_judge(p, passed);
	if (dropped)
		probes_limit(k, dropped, KERNEL_LIMIT_UNTIMED);
}
