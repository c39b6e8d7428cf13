/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latencies are those of a chase: a ring of pointers in random order through as much memory as fits into the
 * cache that is asked for, but not into the smaller one. A page walk is what a ring costs more if each of its
 * lines is in another page; both rings have as many lines.
 *
 * Where samples of a slow instruction fall is seen by sampling a loop with one slow instruction and 12 that
 * wait for nothing, with the kernel's own clock of samples, as a recording does.
 */
#include "explain/calibrate.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cachedir.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "explain/calibrate_cpu.h"

#define VERSION 2
#define LINE 64
#define PAGE 4096
#define REPEATS 4
#define CLOCK_REPEATS 40 /* of short runs: all else is told in cycles */
#define DRAM_SIZE ((size_t)96 << 20)
#define WALK_PAGES 8192
#define PERIOD_NS 50000
#define RING_PAGES 32
#define SAMPLES_MIN 200 /* fewer tell nothing */

static volatile uint64_t sink;

/* ---- time ---- */

struct task {
	void (*run)(const struct task *task);
	void *memory;
	uint64_t rounds, number;
};

/* Nanoseconds of CPU time for a round, at best. */
static double fastest_of(const struct task *task, int repeats)
{
	double best = INFINITY;
	for (int i = 0; i < repeats; i++) {
		uint64_t before = own_cpu_ns();
		task->run(task);
		double took = (double)(own_cpu_ns() - before) / (double)task->rounds;
		if (took < best)
			best = took;
	}
	return best;
}

static double fastest(const struct task *task)
{
	return fastest_of(task, REPEATS);
}

static void run_chain(const struct task *t)
{
	sink = calibrate_chain(t->rounds);
}

static void run_plain(const struct task *t)
{
	sink = calibrate_plain(t->rounds);
}

static void run_divide(const struct task *t)
{
	sink = calibrate_divide(t->rounds);
}

static void run_atomic(const struct task *t)
{
	sink = calibrate_atomic(t->memory, t->rounds);
}

static void run_chase(const struct task *t)
{
	void **at = t->memory;
	for (uint64_t i = 0; i < t->rounds; i++)
		at = *(void **volatile *)at;
	sink = (uintptr_t)at;
}

/* Branches that go by `number`, a mask of random bits: 0 makes them go one way. */
static void run_branches(const struct task *t)
{
	uint64_t random = 88172645463325252u, heads = 1, tails = 1;
	for (uint64_t i = 0; i < t->rounds; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		if (random & t->number) {
			heads += i;
			__asm__ volatile("" : "+r"(heads));
		} else {
			tails ^= i;
			__asm__ volatile("" : "+r"(tails));
		}
	}
	sink = heads + tails;
}

/* A store to each of `number` bytes' lines, in steps that no prefetcher likes. */
static void run_stores(const struct task *t)
{
	size_t at = 0;
	for (uint64_t i = 0; i < t->rounds; i++) {
		*(volatile uint64_t *)((char *)t->memory + at) = i;
		at = (at + 9 * LINE) & (t->number - 1);
	}
}

/* Two halves are stored and read as one; or, without a `number`, each for itself. */
static void run_forward(const struct task *t)
{
	volatile uint32_t *half = t->memory;
	volatile uint64_t *whole = t->memory;
	uint64_t value = 1;
	if (t->number)
		for (uint64_t i = 0; i < t->rounds; i++) {
			half[0] = (uint32_t)value;
			half[1] = (uint32_t)i;
			value = whole[0] + 1;
		}
	else
		for (uint64_t i = 0; i < t->rounds; i++) {
			whole[0] = value;
			whole[1] = i;
			value = whole[0] + 1;
		}
	sink = value;
}

/* ---- memory ---- */

static void *get_memory(size_t size, bool huge)
{
	size_t align = (size_t)2 << 20;
	char *at = aligned_alloc(align, (size + align - 1) / align * align);
	if (!at)
		return NULL;
	madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(at, 0, size);
	return at;
}

/* Links `count` cells into a ring in random order; returns one. NULL without memory. */
static void **link_ring(char *memory, size_t count, size_t cell)
{
	uint32_t *order = malloc(count * sizeof *order);
	uint64_t random = 88172645463325252u;
	if (!order)
		return NULL;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count - 1; i > 0; i--) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		size_t j = random % (i + 1);
		uint32_t other = order[i];
		order[i] = order[j];
		order[j] = other;
	}
	for (size_t i = 0; i < count; i++)
		*(void **)(memory + order[i] * cell) = memory + order[(i + 1) % count] * cell;
	void **first = (void **)(memory + order[0] * cell);
	free(order);
	return first;
}

static double chase(char *memory, size_t count, size_t cell, uint64_t rounds)
{
	void **first = link_ring(memory, count, cell);
	if (!first)
		return 0;
	struct task warm = {
		.run = run_chase, .memory = first, .rounds = count < rounds ? count : rounds};
	warm.run(&warm);
	return fastest(&(struct task){.run = run_chase, .memory = first, .rounds = rounds});
}

/* Of a data cache: bytes, or 0. */
static double cache_size(int level)
{
	for (int i = 0; i < 8; i++) {
		char path[96], kind[32] = "";
		int at = 0;
		unsigned long size = 0;
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
		FILE *file = fopen(path, "re");
		if (!file)
			return 0;
		if (fscanf(file, "%d", &at) != 1)
			at = 0;
		fclose(file);
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", i);
		file = fopen(path, "re");
		if (file && fscanf(file, "%31s", kind) != 1)
			kind[0] = 0;
		if (file)
			fclose(file);
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		file = at == level && strcmp(kind, "Instruction") != 0 ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		if (fscanf(file, "%luK", &size) != 1)
			size = 0;
		fclose(file);
		return 1024.0 * (double)size;
	}
	return 0;
}

static size_t between(double smaller, double larger, size_t usual)
{
	if (smaller <= 0 || larger <= 0)
		return usual;
	double size = 2 * smaller < larger / 2 ? larger / 3 : sqrt(smaller * larger);
	return (size_t)size / LINE * LINE;
}

static void measure_memory(struct calibration *c)
{
	char *memory = get_memory(DRAM_SIZE, true);
	char *pages = get_memory((size_t)WALK_PAGES * (PAGE + LINE), false);
	c->l1_size = cache_size(1);
	c->l2_size = cache_size(2);
	c->l3_size = cache_size(3);
	if (memory && pages) {
		double per_ns = c->hz / 1e9;
		size_t l2 = between(c->l1_size, c->l2_size, 256 << 10);
		size_t l3 = between(c->l2_size, c->l3_size < 12e6 ? c->l3_size : 12e6, 3 << 20);
		c->l1 = per_ns * chase(memory, (8 << 10) / LINE, LINE, 200000);
		c->l2 = per_ns * chase(memory, l2 / LINE, LINE, 100000);
		c->l3 = c->l3_size > 0 ? per_ns * chase(memory, l3 / LINE, LINE, 60000) : 0;
		c->dram = per_ns * chase(memory, DRAM_SIZE / LINE, LINE, 60000);
		double far = chase(pages, WALK_PAGES, PAGE + LINE, 60000);
		double near = chase(memory, WALK_PAGES, LINE, 60000);
		c->walk = far > near ? per_ns * (far - near) : 0;
		struct task stores = {.run = run_stores, .memory = memory, .rounds = 400000};
		stores.number = 16 << 10;
		double cached = fastest(&stores);
		stores.number = 64 << 20;
		c->store = per_ns * fmax(0, fastest(&stores) - cached);
	} else {
		snprintf(c->problem, sizeof c->problem,
			 "there is no memory to measure caches with");
	}
	free(memory);
	free(pages);
}

static void measure_core(struct calibration *c)
{
	static _Alignas(LINE) uint64_t cell[8];
	struct task chain = {.run = run_chain, .rounds = 20000};
	double step = fastest_of(&chain, CLOCK_REPEATS) / CALIBRATE_CHAIN;
	c->hz = 1e9 / step;
	double per_ns = c->hz / 1e9;
	c->width = CALIBRATE_PLAIN /
		   (per_ns *
		    fastest_of(&(struct task){.run = run_plain, .rounds = 20000}, CLOCK_REPEATS));
	c->division = per_ns * fastest(&(struct task){.run = run_divide, .rounds = 300000});
	c->atomic = per_ns *
		    fastest(&(struct task){.run = run_atomic, .memory = cell, .rounds = 200000});
	struct task branches = {.run = run_branches, .rounds = 500000, .number = 1 << 20};
	double wrong = fastest(&branches);
	branches.number = 0;
	c->mispredict = 2 * per_ns * fmax(0, wrong - fastest(&branches));
	struct task forward = {.run = run_forward, .memory = cell, .rounds = 500000, .number = 1};
	double late = fastest(&forward);
	forward.number = 0;
	double handed = fastest(&forward);
	c->forward = per_ns * fmax(0, late - handed);
	c->handed = per_ns * handed;
}

/* ---- samples ---- */

struct sampled {
	double at[CALIBRATE_LOOP]; /* samples of each instruction of the loop */
	double total;
};

static int open_event(uint64_t hz, struct calibration *c)
{
	struct perf_event_attr attr = {
		.size = sizeof attr,
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = hz / (1000000000u / PERIOD_NS),
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	snprintf(c->clock, sizeof c->clock, "cycles");
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		return fd;
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = PERIOD_NS;
	snprintf(c->clock, sizeof c->clock, "cpu-clock");
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void read_samples(const struct perf_event_mmap_page *ring, size_t size, const char *loop,
			 struct sampled *out)
{
	const char *data = (const char *)ring + ring->data_offset;
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	for (uint64_t at = ring->data_tail; at + sizeof(struct perf_event_header) <= head;) {
		struct perf_event_header header;
		uint64_t ip = 0;
		for (size_t i = 0; i < sizeof header; i++)
			((char *)&header)[i] = data[(at + i) % size];
		if (header.size < sizeof header)
			break;
		for (size_t i = 0; header.type == PERF_RECORD_SAMPLE && i < sizeof ip; i++)
			((char *)&ip)[i] = data[(at + sizeof header + i) % size];
		uint64_t index = (ip - (uint64_t)(uintptr_t)loop) / 4;
		if (header.type == PERF_RECORD_SAMPLE && ip >= (uint64_t)(uintptr_t)loop &&
		    index < CALIBRATE_LOOP) {
			out->at[index]++;
			out->total++;
		}
		at += header.size;
	}
}

static bool sample_loop(struct calibration *c, const char *loop, const struct task *task,
			struct sampled *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = RING_PAGES * page;
	*out = (struct sampled){0};
	int fd = open_event((uint64_t)c->hz, c);
	if (fd < 0)
		return false;
	void *ring = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring != MAP_FAILED) {
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		task->run(task);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		read_samples(ring, size, loop, out);
		munmap(ring, page + size);
	}
	close(fd);
	return out->total >= SAMPLES_MIN;
}

static void run_load(const struct task *t)
{
	sink = (uintptr_t)calibrate_load(t->memory, t->rounds);
}

static void run_slow(const struct task *t)
{
	sink = calibrate_slow(t->rounds);
}

/* What the plain instructions far behind the slow one have is what any has; the rest is skid. */
static void find_skid(const struct sampled *s, double skid[CALIBRATE_SKID])
{
	double others = 0, sum = 0;
	for (unsigned i = CALIBRATE_SKID + 2; i < CALIBRATE_LOOP - 2; i++)
		others += s->at[i] / (CALIBRATE_LOOP - CALIBRATE_SKID - 4);
	for (unsigned i = 0; i < CALIBRATE_SKID; i++) {
		skid[i] = fmax(0, s->at[i] - others);
		sum += skid[i];
	}
	for (unsigned i = 0; i < CALIBRATE_SKID; i++)
		skid[i] = sum > 0 ? skid[i] / sum : i == 0;
}

static double plain_share(const struct sampled *s)
{
	double others = 0;
	for (unsigned i = CALIBRATE_SKID + 2; i < CALIBRATE_LOOP - 2; i++)
		others += s->at[i];
	return others / (CALIBRATE_LOOP - CALIBRATE_SKID - 4) / s->total;
}

static void measure_skid(struct calibration *c)
{
	char *memory = get_memory(2 << 20, true);
	void **ring = memory ? link_ring(memory, between(c->l1_size, c->l2_size, 256 << 10) / LINE,
					 LINE)
			     : NULL;
	double wait = c->l2 > 0 ? c->l2 : 14;
	struct task loads = {
		.run = run_load, .memory = ring, .rounds = (uint64_t)(c->hz * 0.25 / wait)};
	struct task slow = {.run = run_slow, .rounds = (uint64_t)(c->hz * 0.12 / 12)};
	struct sampled s;
	if (ring && sample_loop(c, calibrate_load_loop, &loads, &s)) {
		find_skid(&s, c->skid_load);
		uint64_t before = own_cpu_ns();
		loads.rounds /= 4;
		loads.run(&loads);
		double cycles = (double)(own_cpu_ns() - before) * c->hz / 1e9 /
				(double)loads.rounds;
		c->plain = plain_share(&s) * cycles;
	} else {
		c->clock[0] = 0;
		snprintf(c->problem, sizeof c->problem,
			 "where samples fall could not be measured: perf events are not allowed");
	}
	if (c->clock[0] && sample_loop(c, calibrate_slow_loop, &slow, &s))
		find_skid(&s, c->skid_other);
	else
		c->skid_other[0] = 1;
	free(memory);
}

void calibrate_now(struct calibration *out)
{
	*out = (struct calibration){0};
	cpu_id(out->cpu);
	measure_core(out);
	measure_memory(out);
	measure_skid(out);
}

unsigned calibrate_skid_of_loads(const struct calibration *c)
{
	unsigned best = 0;
	for (unsigned i = 1; i < CALIBRATE_SKID; i++)
		if (c->skid_load[i] > c->skid_load[best])
			best = i;
	return best;
}

/* ---- the cache ---- */

#define AT(member) offsetof(struct calibration, member)

static const struct field {
	const char *key, *title, *unit;
	size_t offset;
	unsigned count;
} fields[] = {
	{"hz", "clock", "GHz", AT(hz), 1},
	{"width", "instructions a cycle", "", AT(width), 1},
	{"l1", "first cache", "cycles", AT(l1), 1},
	{"l2", "second cache", "cycles", AT(l2), 1},
	{"l3", "third cache", "cycles", AT(l3), 1},
	{"dram", "memory", "cycles", AT(dram), 1},
	{"walk", "page in no TLB", "cycles", AT(walk), 1},
	{"mispredict", "wrong branch", "cycles", AT(mispredict), 1},
	{"division", "division", "cycles", AT(division), 1},
	{"store", "store to memory", "cycles a line", AT(store), 1},
	{"forward", "failed forwarding", "cycles", AT(forward), 1},
	{"handed", "store, then load", "cycles", AT(handed), 1},
	{"atomic", "atomic addition", "cycles", AT(atomic), 1},
	{"plain", NULL, NULL, AT(plain), 1},
	{"skid_load", NULL, NULL, AT(skid_load), CALIBRATE_SKID},
	{"skid_other", NULL, NULL, AT(skid_other), CALIBRATE_SKID},
	{"l1_size", NULL, NULL, AT(l1_size), 1},
	{"l2_size", NULL, NULL, AT(l2_size), 1},
	{"l3_size", NULL, NULL, AT(l3_size), 1},
};
#define FIELD_COUNT (sizeof fields / sizeof *fields)

static const double *field_of(const struct calibration *c, const struct field *f)
{
	return (const double *)(const void *)((const char *)c + f->offset);
}

void calibrate_write(const struct calibration *c, struct buf *out)
{
	buf_printf(out, "calibration %d\ncpu %s\nclock %s\nproblem %s\n", VERSION, c->cpu, c->clock,
		   c->problem);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		buf_puts(out, fields[i].key);
		for (unsigned k = 0; k < fields[i].count; k++)
			buf_printf(out, " %.17g", field_of(c, &fields[i])[k]);
		buf_puts(out, "\n");
	}
}

/* The value of the line that begins with `key`; NULL: there is none. */
static const char *value_of(const char *text, const char *key)
{
	size_t size = strlen(key);
	for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (!strncmp(at, key, size) && at[size] == ' ')
			return at + size + 1;
	return NULL;
}

static bool copy_word(const char *text, const char *key, char *out, size_t size)
{
	const char *value = value_of(text, key);
	if (value)
		snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
	return value != NULL;
}

bool calibrate_read(const char *text, const char *cpu, struct calibration *out)
{
	const char *version = value_of(text, "calibration");
	*out = (struct calibration){0};
	if (!version || atoi(version) != VERSION ||
	    !copy_word(text, "cpu", out->cpu, sizeof out->cpu) || strcmp(out->cpu, cpu) != 0 ||
	    !copy_word(text, "clock", out->clock, sizeof out->clock) ||
	    !copy_word(text, "problem", out->problem, sizeof out->problem))
		return false;
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		const char *value = value_of(text, fields[i].key);
		double *to = (double *)(void *)((char *)out + fields[i].offset);
		for (unsigned k = 0; k < fields[i].count; k++) {
			char *end = NULL;
			to[k] = value ? strtod(value, &end) : NAN;
			if (!value || end == value || !isfinite(to[k]) || to[k] < 0)
				return false;
			value = end;
		}
	}
	return out->hz > 0;
}

static bool load(int directory, const char *name, const char *cpu, struct calibration *out)
{
	char text[2048];
	int fd = cachedir_read(directory, name);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (size <= 0)
		return false;
	text[size] = 0;
	return calibrate_read(text, cpu, out);
}

static void keep(int directory, const char *name, const struct calibration *c)
{
	struct buf text = {0}, temporary = {0};
	calibrate_write(c, &text);
	int fd = text.failed ? -1 : cachedir_write(directory, name, &temporary);
	if (fd >= 0)
		cachedir_keep(directory, name, &temporary, fd,
			      write(fd, text.data, text.size) == (ssize_t)text.size);
	buf_free(&text);
	buf_free(&temporary);
}

void calibrate(struct calibration *out, bool progress)
{
	char cpu[CPU_ID_MAX];
	int directory = -1;
	cpu_id(cpu);
	err_free(cachedir_open("calibration", &directory));
	if (directory >= 0 && load(directory, "machine", cpu, out)) {
		close(directory);
		return;
	}
	bool shown = progress && term_is_tty(STDERR_FILENO);
	if (shown)
		fputs("measuring what this machine needs for things, once ...", stderr);
	calibrate_now(out);
	if (shown)
		fputs("\r\033[K", stderr);
	if (directory >= 0) {
		keep(directory, "machine", out);
		close(directory);
	}
}

/* ---- for people ---- */

static void put_skid(const struct calibration *c, struct buf *out)
{
	if (!c->clock[0])
		return;
	buf_printf(
		out,
		"samples of %s, of a slow load: %.0f%% at the load, %.0f%% at the next instruction, "
		"%.0f%% at the one behind\n",
		c->clock, 100 * c->skid_load[0], 100 * c->skid_load[1], 100 * c->skid_load[2]);
}

void calibrate_show(const struct calibration *c, struct buf *out)
{
	for (size_t i = 0; i < FIELD_COUNT && fields[i].title; i++) {
		double value = *field_of(c, &fields[i]);
		if (fields[i].offset == AT(hz))
			buf_printf(out, "%-22s %.2f GHz\n", fields[i].title, value / 1e9);
		else if (value > 0)
			buf_printf(out, "%-22s %.1f%s%s\n", fields[i].title, value,
				   *fields[i].unit ? " " : "", fields[i].unit);
		else
			buf_printf(out, "%-22s not measured\n", fields[i].title);
	}
	put_skid(c, out);
	if (c->problem[0])
		buf_printf(out, "%s\n", c->problem);
}

void calibrate_json(const struct calibration *c, struct json *j)
{
	json_put_string(j, "cpu", c->cpu);
	json_put_string(j, "clock", c->clock[0] ? c->clock : NULL);
	for (size_t i = 0; i < FIELD_COUNT; i++) {
		json_key(j, fields[i].key);
		if (fields[i].count > 1)
			json_begin_array(j);
		for (unsigned k = 0; k < fields[i].count; k++)
			if (fields[i].count == 1 && field_of(c, &fields[i])[k] <= 0)
				json_null(j);
			else
				json_double(j, field_of(c, &fields[i])[k]);
		if (fields[i].count > 1)
			json_end_array(j);
	}
	json_put_string(j, "problem", c->problem[0] ? c->problem : NULL);
}
