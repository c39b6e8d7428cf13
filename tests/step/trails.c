/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trails: the truth test of trail/trail.h. Runs a program instruction by instruction. At many of them, it follows the
 * code, and then compares with what the program really does: each branch, and at the end all registers and flags
 * that are said to be known. A branch that is not as it was said is a failure; a trail that ends early is not.
 *
 *     trails [--emulator=QEMU [--root=DIR]] [--steps=N] [--run-us=N] [--seconds=N] [--seed=N] -- COMMAND...
 *
 * The exit status is 1 if anything was wrong.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "step/target.h"
#include "trail/trail.h"

#define OPEN_MAX 12u /* trails at once */
#define FLAGS_AARCH64 0xf0000000u
#define FLAGS_X86_64 0x8d5u
#define SHOWN 20u

struct ahead { /* a trail that the program has yet to go */
	struct trail trail;
	uint64_t begin;
	uint32_t edge, steps;
	bool in_use;
};

struct run {
	struct target target;
	uint64_t steps, run_us, seconds, seed, random;
	struct ahead ahead[OPEN_MAX];
	uint64_t stepped, trails, edges, ends[8], wrong, compared, dropped, lengths;
};

static uint64_t random_below(struct run *r, uint64_t limit)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (r->random >> 33) % limit;
}

static size_t read_memory(void *context, uint64_t address, void *out, size_t size)
{
	struct run *r = context;
	return target_read(&r->target, address, out, size);
}

static bool is_x86_64(const struct run *r)
{
	return r->target.isa->elf_machine == EM_X86_64;
}

static void begin_trail(struct run *r, struct ahead *a)
{
	struct trail *t = &a->trail;
	memcpy(t->registers, r->target.now.registers, sizeof t->registers);
	t->pc = a->begin = r->target.now.pc;
	t->flags = r->target.now.flags;
	t->thread = r->target.now.thread;
	t->read_code = t->read_data = read_memory;
	t->context = r;
	uint32_t steps = 1 + (uint32_t)random_below(r, TRAIL_STEPS);
	if (is_x86_64(r))
		trail_follow_x86_64(t, steps);
	else
		trail_follow_aarch64(t, steps);
	a->edge = a->steps = 0;
	a->in_use = t->steps;
	r->trails++;
	r->ends[t->end & 7]++;
	r->edges += t->edge_count;
	r->lengths += t->steps;
}

static void complain(struct run *r, const struct ahead *a, uint64_t pc, const char *what,
		     uint64_t said, uint64_t is)
{
	uint8_t code[16] = {0};
	if (r->wrong++ >= SHOWN)
		return;
	target_read(&r->target, pc, code, sizeof code);
	printf("trail from %" PRIx64 ", step %u, at %" PRIx64 " (", a->begin, a->steps, pc);
	for (unsigned i = 0; i < 8; i++)
		printf("%02x", code[i]);
	printf("): %s: said %" PRIx64 ", is %" PRIx64 "\n", what, said, is);
}

static void compare_registers(struct run *r, const struct ahead *a, uint64_t before)
{
	const struct trail *t = &a->trail;
	const struct target_state *now = &r->target.now;
	unsigned count = is_x86_64(r) ? 16 : 32;
	uint64_t flags = is_x86_64(r) ? FLAGS_X86_64 : FLAGS_AARCH64;
	char name[16];
	r->compared++;
	for (unsigned i = 0; i < count; i++) {
		if (t->unknown >> i & 1 || t->registers[i] == now->registers[i])
			continue;
		snprintf(name, sizeof name, "register %u", i);
		complain(r, a, before, name, t->registers[i], now->registers[i]);
	}
	flags &= ~(uint64_t)t->unknown_flags;
	if ((t->flags ^ now->flags) & flags)
		complain(r, a, before, "flags", t->flags & flags, now->flags & flags);
}

/* The program went from `before` to where it is now. */
static void compare(struct run *r, struct ahead *a, uint64_t before, bool whole)
{
	const struct trail *t = &a->trail;
	uint64_t now = r->target.now.pc;
	if (a->edge < t->edge_count && t->edges[a->edge].from == before) {
		if (t->edges[a->edge].to != now) {
			complain(r, a, before, "next", t->edges[a->edge].to, now);
			a->in_use = false;
			return;
		}
		a->edge++;
	}
	if (!whole) { /* several instructions at once: steps cannot be counted any more */
		a->in_use = false;
		r->dropped++;
		return;
	}
	if (++a->steps < t->steps)
		return;
	a->in_use = false;
	if (now != t->pc)
		complain(r, a, before, "pc", t->pc, now);
	else if (a->edge != t->edge_count)
		complain(r, a, before, "edges", t->edge_count, a->edge);
	else if (t->end == TRAIL_LONG && t->edge_count < TRAIL_EDGES)
		compare_registers(r, a, before);
}

static void drop_all(struct run *r)
{
	for (unsigned i = 0; i < OPEN_MAX; i++) {
		r->dropped += r->ahead[i].in_use;
		r->ahead[i].in_use = false;
	}
}

/* One instruction, or a sequence that must not be interrupted. Returns false at the end. */
static bool step(struct run *r)
{
	for (unsigned i = 0; i < OPEN_MAX; i++)
		if (!r->ahead[i].in_use && !random_below(r, 8)) {
			begin_trail(r, &r->ahead[i]);
			break;
		}
	uint64_t before = r->target.now.pc;
	uint32_t word = 0;
	target_read(&r->target, before, &word, sizeof word);
	bool whole = is_x86_64(r) || (word & 0x3fa00000) != 0x08000000;
	enum target_event event = r->target.ops->step(&r->target);
	if (event == TARGET_ENDED)
		return false;
	r->stepped++;
	if (r->target.now.pc ==
	    before) /* stopped by something else, or a part of a loop in one instruction */
		return true;
	if (event == TARGET_SIGNAL || r->target.delivered) {
		drop_all(r);
		return true;
	}
	for (unsigned i = 0; i < OPEN_MAX; i++)
		if (r->ahead[i].in_use)
			compare(r, &r->ahead[i], before, whole);
	return true;
}

static void print(const struct run *r)
{
	static const char *const names[] = {"on",     "long",    "code",   "unknown",
					    "system", "strange", "memory", "full"};
	printf("%" PRIu64 " steps, %" PRIu64
	       " trails, %.1f instructions and %.2f edges each, %" PRIu64
	       " compared to their end, %" PRIu64 " dropped, %" PRIu64 " wrong\n",
	       r->stepped, r->trails, (double)r->lengths / (double)(r->trails + !r->trails),
	       (double)r->edges / (double)(r->trails + !r->trails), r->compared, r->dropped,
	       r->wrong);
	for (unsigned i = 1; i < 8; i++)
		printf("  %s %.1f %%", names[i],
		       100.0 * (double)r->ends[i] / (double)(r->trails + !r->trails));
	printf("\n");
}

static int run(struct run *r, char **argv)
{
	struct err *e = r->target.ops->start(&r->target, argv);
	struct timespec begin, now;
	bool on = !e;
	if (e) {
		fprintf(stderr, "trails: %s\n", err_text(e));
		err_free(e);
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		for (uint64_t i = 0; on && i < r->steps; i++)
			on = step(r);
		drop_all(r);
		if (on && r->run_us)
			on = r->target.ops->run(&r->target,
						1 + (unsigned)random_below(r, 2 * r->run_us)) !=
			     TARGET_ENDED;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (on && (uint64_t)(now.tv_sec - begin.tv_sec) < r->seconds);
	r->target.ops->end(&r->target);
	print(r);
	return r->wrong != 0;
}

int main(int argc, char **argv)
{
	struct run *r = calloc(1, sizeof *r);
	if (!r)
		return 2;
	*r = (struct run){.steps = 2000, .run_us = 2000, .seconds = 10, .seed = 1};
	r->target.ops = &target_ptrace;
	int at = 1;
	for (; at < argc && !strncmp(argv[at], "--", 2); at++) {
		const char *value = strchr(argv[at], '=');
		if (!strcmp(argv[at], "--")) {
			at++;
			break;
		}
		if (!value++)
			return 2;
		if (!strncmp(argv[at], "--emulator=", 11)) {
			r->target.ops = &target_gdb;
			r->target.emulator = value;
		} else if (!strncmp(argv[at], "--root=", 7)) {
			r->target.root = value;
		} else {
			uint64_t number = strtoull(value, NULL, 10);
			*(!strncmp(argv[at], "--steps=", 8)    ? &r->steps
			  : !strncmp(argv[at], "--run-us=", 9) ? &r->run_us
			  : !strncmp(argv[at], "--seed=", 7)   ? &r->seed
							       : &r->seconds) = number;
		}
	}
	if (at >= argc)
		return 2;
	r->random = r->seed;
	int status = run(r, argv + at);
	free(r);
	return status;
}
