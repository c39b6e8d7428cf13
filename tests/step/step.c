/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: the truth test of the unwinder. Runs a program instruction by instruction, keeps a shadow
 * of its calls and returns (shadow.h), and at every step walks the stack with the unwind tables
 * and compares: each return address, each SP, the number of frames, and that the walk ends
 * complete.
 *
 * A program is stepped in windows. Between them it runs freely for a random while; then one walk
 * gives the shadow to begin with, which the returns that follow confirm or refute.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "step/report.h"
#include "step/shadow.h"
#include "step/target.h"

#define PAGE 4096u
#define PAGES 64u
#define INSNS (1u << 16)
#define PENDING 8192u
#define UNWOUND_MIN 1024u /* bytes */
#define OVERTIME 20000u
#define FRAMES_MAX (1u << 16)

struct options {
	uint64_t steps, windows, seed, skip, run_us, limit, shown;
	int unwind;
	bool json;
	const char *emulator, *root;
};

struct page {
	uint64_t address;
	bool readable;
	uint8_t bytes[PAGE];
};

struct run {
	struct options options;
	struct target target;
	struct space space;
	struct shadow shadow;
	struct report report;
	bool maps_changed;
	bool seeded;
	uint64_t sp_before; /* the step before the last */
	struct page *pages; /* of the stack, as read in this step */
	size_t page_count;
	struct insn *insns;   /* decoded, by address */
	struct miss *pending; /* whose frame still lives */
	size_t pending_count;
	uint64_t random;
};

static volatile sig_atomic_t out_of_time;

static void note_time(int signal)
{
	(void)signal;
	out_of_time = 1;
}

/* ---- memory ---- */

static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	struct run *r = context;
	uint64_t start = address & ~(uint64_t)(PAGE - 1);
	size_t i = 0;
	if (address - start > PAGE - sizeof *out)
		return target_word(&r->target, address, out);
	while (i < r->page_count && r->pages[i].address != start)
		i++;
	if (i == r->page_count) {
		if (i == PAGES)
			return target_word(&r->target, address, out);
		r->page_count++;
		r->pages[i].address = start;
		r->pages[i].readable = target_read(&r->target, start, r->pages[i].bytes, PAGE) ==
				       PAGE;
	}
	memcpy(out, r->pages[i].bytes + (address - start), sizeof *out);
	return r->pages[i].readable;
}

static const struct insn *decode(struct run *r, uint64_t pc)
{
	struct insn *insn = &r->insns[(pc ^ pc >> 16) % INSNS];
	uint8_t code[16];
	if (insn->address != pc || !insn->length) {
		size_t size = target_read(&r->target, pc, code, sizeof code);
		r->target.isa->decode(code, size, pc, insn);
		insn->address = pc;
	}
	return insn;
}

static void refresh(struct run *r)
{
	struct err *e = r->target.ops->refresh(&r->target, (enum recipes_mode)r->options.unwind,
					       &r->space);
	r->maps_changed = false;
	memset(r->insns, 0, INSNS * sizeof *r->insns);
	if (e)
		fprintf(stderr, "step: %s\n", err_text(e));
	err_free(e);
}

/* Differences. They wait until the frame whose recipe led astray has returned. */

static void commit(struct run *r, size_t depth)
{
	size_t kept = 0;
	for (size_t i = 0; i < r->pending_count; i++) {
		if (r->pending[i].depth < depth)
			r->pending[kept++] = r->pending[i];
		else
			report_add(&r->report, r->target.isa, &r->space, &r->pending[i]);
	}
	r->pending_count = kept;
}

#define OTHERS_START 0xcbf29ce484222325u

static uint64_t add_other(uint64_t others, uint64_t pc, uint64_t sp)
{
	return ((others ^ pc) * 0x100000001b3u ^ sp) * 0x100000001b3u;
}

/*
 * longjmp, or the unwinder of exceptions, has left for another frame: from when it began to fill
 * in where it would go, its own frame had two callers, and both answers were right. But the other
 * one had to be all of it: the frame that has been reached now, and `others`, those beyond it. A
 * mix of both stacks was wrong, and less than all was partial.
 */
static void forgive(struct run *r, size_t depth, uint64_t others)
{
	uint64_t pc = r->target.now.pc, sp = r->target.now.registers[r->target.cpu->sp];
	size_t kept = 0;
	for (size_t i = 0; i < r->pending_count; i++) {
		struct miss *miss = &r->pending[i];
		if (miss->depth < depth) {
			r->pending[kept++] = *miss;
			continue;
		}
		miss->forgiven = (miss->other_pc == pc || miss->other_pc == pc + 1) &&
				 miss->other_sp == sp && miss->others == others;
		r->report.consistent += miss->forgiven;
		report_add(&r->report, r->target.isa, &r->space, miss);
	}
	r->report.transitions += r->pending_count - kept;
	r->pending_count = kept;
}

static uint64_t others_of_shadow(const struct run *r)
{
	uint64_t others = OTHERS_START;
	for (size_t i = r->shadow.count; i--;)
		others = add_other(others,
				   r->shadow.entries[i].address & r->target.cpu->address_bits,
				   r->shadow.entries[i].cfa);
	return add_other(others, WALK_COMPLETE, 0);
}

static void add_miss(struct run *r, struct miss miss)
{
	if (r->pending_count == PENDING)
		commit(r, 0);
	miss.step = r->report.steps;
	miss.pc = r->target.now.pc;
	miss.depth = r->shadow.count -
		     (miss.frame < r->shadow.count ? miss.frame : r->shadow.count);
	r->pending[r->pending_count++] = miss;
}

/* ---- walks ---- */

static void begin_walk(struct run *r, struct walk *w)
{
	r->page_count = 0;
	walk_begin(w, r->target.cpu, r->target.now.registers, r->target.now.pc);
}

/* The file's own unwind information says that nobody wants to know who called this; or a thread of Go's
   has given up the goroutine for which it began this. */
static bool is_declared_root(const struct run *r, const struct recipe *recipe, size_t left)
{
	bool root = recipe && (recipe->cfa == RECIPE_PARKED ||
			       (recipe->cfa == RECIPE_ROOT && recipe->source == RECIPE_FROM_CFI));
	for (size_t i = 0; i < left; i++)
		root = root && !r->shadow.entries[i].signal;
	return root;
}

/* All frames beyond the one that the walk stands on. */
static uint64_t others_of_walk(struct run *r, struct walk *w)
{
	const struct walk_reader reader = {read_word, r};
	uint64_t others = OTHERS_START;
	enum walk_end end = WALK_ON;
	for (size_t frame = 0; frame < FRAMES_MAX; frame++) {
		end = walk_step(w, &r->space.walk, &reader);
		if (end != WALK_ON)
			break;
		others = add_other(others, w->pc, w->sp);
	}
	return add_other(others, end, 0);
}

/* The walk has left the truth: perhaps for another one, which comes later. */
static bool leave(struct run *r, struct walk *w, struct miss *miss)
{
	miss->other_pc = w->pc;
	miss->other_sp = w->sp;
	miss->others = others_of_walk(r, w);
	return false;
}

/* Compares; false with the first difference in *miss. */
static bool compare(struct run *r, struct miss *miss)
{
	const struct walk_reader reader = {read_word, r};
	size_t left = r->shadow.count;
	struct walk w;
	begin_walk(r, &w);
	for (size_t frame = 0;; frame++) {
		uint64_t at = w.pc - !w.exact;
		enum walk_end end = walk_step(&w, &r->space.walk, &reader);
		*miss = (struct miss){.at = at, .frame = frame, .end = end};
		if (w.recipe)
			miss->recipe = *w.recipe;
		if (end == WALK_COMPLETE && !left) {
			r->report.frames += frame + 1;
			if (frame + 1 > r->report.deepest)
				r->report.deepest = frame + 1;
			return true;
		}
		if (end == WALK_COMPLETE && is_declared_root(r, w.recipe, left)) {
			r->report.declared++;
			r->report.frames += frame + 1;
			return true;
		}
		if (end != WALK_ON) {
			miss->reason = end == WALK_COMPLETE ? MISS_SHORT : MISS_PARTIAL;
			return false;
		}
		const struct shadow_entry *e = left ? &r->shadow.entries[--left] : NULL;
		miss->got = w.pc;
		miss->wanted = e ? e->address : 0;
		miss->reason = e ? MISS_ADDRESS : MISS_LONG;
		if (!e || w.pc != (e->address & r->target.cpu->address_bits))
			return leave(r, &w, miss);
		miss->got = w.sp;
		miss->wanted = e->cfa;
		miss->reason = MISS_CFA;
		if (w.sp != e->cfa)
			return leave(r, &w, miss);
	}
}

static bool is_known(const struct run *r, uint64_t address)
{
	return walk_find_module(&r->space.walk, address) != NULL;
}

static void judge(struct run *r)
{
	struct miss miss;
	bool good;
	if (r->maps_changed && !is_known(r, r->target.now.pc))
		refresh(r);
	good = compare(r, &miss);
	if (!good && r->maps_changed) {
		refresh(r);
		good = compare(r, &miss);
	}
	r->report.consistent += good;
	r->report.complete += good || miss.reason != MISS_PARTIAL;
	if (!good)
		add_miss(r, miss);
}

/* The shadow from one walk. A walk that is not complete is a difference, and no seed. */
static void seed(struct run *r)
{
	const struct walk_reader reader = {read_word, r};
	struct walk w;
	enum walk_end end;
	if (r->maps_changed)
		refresh(r);
	r->shadow.count = 0;
	begin_walk(r, &w);
	uint64_t at = w.pc;
	size_t frame = 0;
	while (at = w.pc - !w.exact,
	       (end = walk_step(&w, &r->space.walk, &reader)) == WALK_ON && frame++ < FRAMES_MAX)
		shadow_push(&r->shadow, (struct shadow_entry){w.pc, w.sp, w.exact});
	for (size_t i = 0, k = r->shadow.count; i + 1 < k; i++) {
		struct shadow_entry kept = r->shadow.entries[i];
		r->shadow.entries[i] = r->shadow.entries[--k];
		r->shadow.entries[k] = kept;
	}
	r->seeded = end == WALK_COMPLETE;
	r->report.complete += r->seeded;
	r->report.consistent += r->seeded;
	if (!r->seeded)
		add_miss(r, (struct miss){.at = at,
					  .frame = frame,
					  .end = end,
					  .reason = MISS_PARTIAL,
					  .recipe = w.recipe ? *w.recipe : (struct recipe){0}});
}

/* ---- steps ---- */

static void apply(struct run *r, const struct insn *insn, const struct target_state *before)
{
	struct target *t = &r->target;
	size_t had = r->shadow.count;
	switch (shadow_apply(&r->shadow, t, insn, before)) {
	case SHADOW_SAME:
		break;
	case SHADOW_MOVED:
		if (r->pending_count && r->shadow.count < had)
			commit(r, had);
		r->report.signals += t->delivered && r->shadow.count == had + 2;
		break;
	case SHADOW_UNWOUND:
		forgive(r, had ? had - 1 : 0, others_of_shadow(r));
		commit(r, r->shadow.count + 1);
		r->report.unwound++;
		break;
	case SHADOW_LOST: {
		struct walk w;
		begin_walk(r, &w);
		forgive(r, had, others_of_walk(r, &w));
		commit(r, 0);
		r->report.lost++;
		r->seeded = false;
		break;
	}
	case SHADOW_WRONG:
		add_miss(r, (struct miss){.at = insn->address,
					  .reason = MISS_RETURN,
					  .got = t->now.pc,
					  .wanted = had ? r->shadow.entries[had - 1].address : 0});
		commit(r, 0);
		r->seeded = false;
		break;
	}
}

/* A window may begin inside the unwinder of exceptions: see forgive(). It leaves by a jump that
   comes right after SP went far up. */
static void reseed(struct run *r, const struct insn *insn)
{
	uint64_t sp = r->target.now.registers[r->target.cpu->sp];
	bool jumped = insn->kind == INSN_JUMP_INDIRECT || insn->kind == INSN_RETURN;
	if (jumped && sp > r->sp_before && sp - r->sp_before >= UNWOUND_MIN) {
		struct walk w;
		begin_walk(r, &w);
		forgive(r, 0, others_of_walk(r, &w));
	}
	seed(r);
}

static bool step_once(struct run *r)
{
	struct target *t = &r->target;
	struct target_state before = t->now;
	struct insn insn = *decode(r, before.pc);
	enum target_event event = t->ops->step(t);
	if (event == TARGET_ENDED)
		return false;
	if (shadow_maps(t, &insn, &before))
		r->maps_changed = true;
	if (event == TARGET_SIGNAL && t->now.pc == before.pc)
		return true;
	r->report.steps++;
	if (r->seeded)
		apply(r, &insn, &before);
	if (r->seeded)
		judge(r);
	else
		reseed(r, &insn);
	r->sp_before = before.registers[t->cpu->sp];
	return true;
}

static uint64_t next_random(struct run *r)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return r->random >> 33;
}

static void run_windows(struct run *r)
{
	const struct options *o = &r->options;
	bool alive = true;
	if (o->skip)
		alive = r->target.ops->run(&r->target, (unsigned)o->skip) != TARGET_ENDED;
	for (uint64_t window = 0; alive && window < o->windows && !out_of_time; window++) {
		if (window)
			alive = r->target.ops->run(&r->target,
						   (unsigned)(next_random(r) % o->run_us + 1)) !=
				TARGET_ENDED;
		if (!alive)
			break;
		refresh(r);
		r->seeded = false;
		r->report.windows++;
		/* A little longer where it is not yet known what a difference is worth. */
		for (uint64_t i = 0;
		     alive && !out_of_time &&
		     (i < o->steps || (r->pending_count && i < o->steps + OVERTIME));
		     i++)
			alive = step_once(r);
		commit(r, 0);
	}
}

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_program(const struct options *o, char **argv)
{
	static struct run r;
	double start;
	r.options = *o;
	r.random = o->seed;
	r.pages = calloc(PAGES, sizeof *r.pages);
	r.insns = calloc(INSNS, sizeof *r.insns);
	r.pending = calloc(PENDING, sizeof *r.pending);
	r.target.ops = o->emulator ? &target_gdb : &target_ptrace;
	r.target.emulator = o->emulator;
	r.target.root = o->root;
	struct err *e = r.pages && r.insns && r.pending ? r.target.ops->start(&r.target, argv)
							: err_new("out of memory");
	if (e) {
		fprintf(stderr, "step: %s\n", err_text(e));
		err_free(e);
		return 1;
	}
	signal(SIGALRM, note_time);
	alarm((unsigned)o->limit);
	start = seconds_now();
	run_windows(&r);
	r.report.seconds = seconds_now() - start;
	r.target.ops->end(&r.target);
	if (o->json) {
		struct json j = json_to_file(stdout);
		report_json(&r.report, &j);
	} else {
		report_text(&r.report, o->shown);
	}
	report_free(&r.report);
	space_close(&r.space);
	free(r.shadow.entries);
	free(r.pages);
	free(r.insns);
	free(r.pending);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {
		.steps = 100000, .windows = 1, .run_us = 30000, .limit = 600, .shown = 12};
	const struct arg options[] = {
		{0, "unwind", "auto|cfi|analysis", "where recipes come from", ARG_CHOICE,
		 &o.unwind},
		{0, "steps", "N", "instructions per window (100000)", ARG_U64, &o.steps},
		{0, "windows", "N", "windows (1)", ARG_U64, &o.windows},
		{0, "skip", "US", "run freely so long at first", ARG_U64, &o.skip},
		{0, "run", "US", "run freely at most so long between windows (30000)", ARG_U64,
		 &o.run_us},
		{0, "seed", "N", "of the random numbers", ARG_U64, &o.seed},
		{0, "limit", "S", "end after so many seconds (600)", ARG_U64, &o.limit},
		{0, "show", "N", "so many groups of differences (12)", ARG_U64, &o.shown},
		{0, "emulator", "QEMU", "the program that runs it, for another CPU", ARG_STRING,
		 &o.emulator},
		{0, "root", "DIR", "where the emulated program's libraries are", ARG_STRING,
		 &o.root},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {.command = "step",
			    .usage = "[options] -- COMMAND...",
			    .summary = "Compares the unwinder with the truth at every instruction.",
			    .options = options};
	struct err *e = args_parse(&args, argc, argv);
	if (!e && (args.help || !args.count || !o.run_us || !o.windows))
		e = err_new("usage: step [options] -- COMMAND...");
	if (e) {
		fprintf(stderr, "step: %s\n", err_text(e));
		err_free(e);
		return 2;
	}
	char **command = calloc((size_t)args.count + 1, sizeof *command);
	if (!command)
		return 1;
	memcpy(command, args.operands, (size_t)args.count * sizeof *command);
	int status = run_program(&o, command);
	free(command);
	return status;
}
