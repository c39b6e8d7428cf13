/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/program.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "annotate/annotate.h"
#include "annotate/find.h"
#include "base/array.h"
#include "base/err.h"
#include "base/parallel.h"
#include "explain/frequency.h"
#include "explain/seen.h"
#include "image/image.h"
#include "isa/insn.h"
#include "profile/profile.h"

#define FUNCTIONS_MAX 60
#define EVERY_FUNCTION_MAX 100000
#define SHARE_MIN 0.002 /* of all samples: a smaller function does not matter */
#define CODE_LINE 64
#define CODE_PAGE 4096

/* ---- the machine ---- */

static const struct isa *isa_of(const struct profile *p)
{
	return isa_for_machine(!strcmp(p->machine, "x86_64") ? EM_X86_64 : EM_AARCH64);
}

struct err *program_open(const struct profile *p, const struct program_options *o,
			 struct program *out)
{
	*out = (struct program){.profile = p, .metric = o->metric};
	const struct profile_metric *m = &p->metrics[o->metric];
	bool cycles = !strncmp(m->name, "cycles", 6) || !strncmp(m->name, "cpu-cycles", 10);
	if (strcmp(m->name, "cpu-clock") != 0 && strcmp(m->name, "task-clock") != 0 && !cycles)
		return err_new(
			"samples of %s do not tell where time goes: record cpu-clock or cycles",
			m->name);
	struct err *e = machine_open(p, isa_of(p), &out->machine);
	if (e)
		return e;
	double period = (double)profile_period(p, o->metric);
	out->cycles_per_sample = cycles ? period : period * out->machine.numbers.hz / 1e9;
	return NULL;
}

static void free_function(struct program_function *f)
{
	if (f->function) {
		function_free(f->function);
		free(f->function);
	}
	if (f->annotation) {
		annotate_free(f->annotation);
		free(f->annotation);
	}
}

void program_close(struct program *program)
{
	for (size_t i = 0; i < program->count; i++)
		free_function(&program->functions[i]);
	free(program->functions);
	annotate_samples_free(program->own_samples);
	spots_free(&program->spots);
	machine_close(&program->machine);
	*program = (struct program){0};
}

/* ---- how much code runs ---- */

struct piece {
	uint64_t number, samples;
};

static int by_number(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Lines or pages of code that have samples. And how many more there likely are, by how many have one and two samples
   (Chao, 1984). */
static double count_pieces(const struct profile *p, uint32_t metric, uint64_t size, double *unseen)
{
	struct piece *all = calloc(p->value_count + 1, sizeof *all);
	size_t count = 0;
	double different = 0, once = 0, twice = 0;
	for (size_t i = 0; all && i < p->value_count; i++) {
		const struct profile_node *n = &p->nodes[p->values[i].node];
		if (p->values[i].metric == metric && n->kind == PROFILE_EXACT &&
		    p->modules[n->module].kind == PROFILE_FILE)
			all[count++] = (struct piece){(uint64_t)n->module << 48 ^ n->address / size,
						      p->values[i].count};
	}
	if (count)
		qsort(all, count, sizeof *all, by_number);
	for (size_t i = 0; i < count;) {
		uint64_t number = all[i].number, samples = 0;
		for (; i < count && all[i].number == number; i++)
			samples += all[i].samples;
		different++;
		once += samples == 1;
		twice += samples == 2;
	}
	free(all);
	*unseen = once > 0 ? once * (once - 1) / (2 * (twice + 1)) : 0;
	return different;
}

/* ---- functions ---- */

/* Reads a function behind those that are there. */
static struct err *read_function(struct program *program, struct modules *modules,
				 const struct annotate_function *f,
				 const struct function_options *options)
{
	struct program_function *to = &program->functions[program->count];
	*to = (struct program_function){.module = f->module, .start = f->start, .name = f->name};
	to->annotation = calloc(1, sizeof *to->annotation);
	to->function = calloc(1, sizeof *to->function);
	struct err *e = to->annotation && to->function ? NULL : err_new("out of memory");
	if (!e)
		e = annotate_make_self(program->profile, modules, f->module, f->start,
				       program->own_samples, to->annotation);
	if (!e)
		e = function_read(to->annotation, &program->machine, options, to->function);
	if (e)
		free_function(to);
	else
		program->count++;
	return e;
}

static void count_function(struct program *program, const struct function *f)
{
	program->explained += f->samples + f->faults;
	for (unsigned i = 0; i < CAUSES; i++) {
		program->causes.of[i].low += f->causes.of[i].low;
		program->causes.of[i].high += f->causes.of[i].high;
		program->causes.of[i].likely += f->causes.of[i].likely;
	}
}

struct explaining {
	struct program *program;
	const struct frequency_costs *costs;
	struct err **errors; /* of each function */
};

static void explain_at(void *context, size_t index)
{
	struct explaining *x = context;
	x->errors[index] = function_explain(x->program->functions[index].function, x->costs);
}

/* Explains functions beside each other, and adds them up one after the other: sums do not depend on who was first. */
static struct err *explain_all(struct program *program, const struct frequency_costs *costs)
{
	struct explaining x = {program, costs, calloc(program->count + 1, sizeof *x.errors)};
	struct err *e = NULL;
	if (!x.errors)
		return err_new("out of memory");
	parallel_for(program->count, explain_at, &x);
	for (size_t i = 0; i < program->count; i++) {
		if (e)
			err_free(x.errors[i]);
		else
			e = x.errors[i];
		if (!e)
			count_function(program, program->functions[i].function);
	}
	free(x.errors);
	return e;
}

/* ---- edges that were seen ---- */

/* Takes the edges that were seen, by the present weights. */
static struct err *see_all(struct program *program, const struct seen *seen)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < program->count; i++)
		e = function_see(program->functions[i].function, seen);
	return e;
}

struct guessing {
	struct program *program;
	const struct frequency_costs *costs;
	struct frequency_result *results; /* of each function */
	struct err **errors;
};

static void guess_at(void *context, size_t index)
{
	struct guessing *x = context;
	x->errors[index] = function_guess(x->program->functions[index].function, x->costs,
					  &x->results[index]);
}

/* Trails are weighed by estimates. Those of the last round are the explanation itself. */
static struct err *weigh_all(struct program *program, const struct frequency_costs *costs,
			     struct seen *seen)
{
	struct guessing x = {program, costs, calloc(program->count + 1, sizeof *x.results),
			     calloc(program->count + 1, sizeof *x.errors)};
	struct err *e = x.results && x.errors ? NULL : err_new("out of memory");
	for (int round = 1; !e && round < SEEN_ROUNDS; round++) {
		parallel_for(program->count, guess_at, &x);
		for (size_t i = 0; i < program->count; i++) {
			if (!e && !x.errors[i])
				function_weigh(program->functions[i].function, &x.results[i], seen);
			if (e)
				err_free(x.errors[i]);
			else
				e = x.errors[i];
			frequency_free(&x.results[i]);
		}
		seen_settle(seen);
		if (!e)
			e = see_all(program, seen);
	}
	free(x.results);
	free(x.errors);
	return e;
}

/* Learns from all functions that were read, keeps the first `most`, and explains these. */
static struct err *explain_read(struct program *program, size_t most)
{
	const struct function **all = calloc(program->count + 1, sizeof *all);
	struct frequency_costs *costs = NULL;
	struct seen *seen = NULL;
	if (!all)
		return err_new("out of memory");
	for (size_t i = 0; i < program->count; i++)
		all[i] = program->functions[i].function;
	struct err *e = seen_open(program->profile, &seen);
	if (!e && seen)
		e = see_all(program, seen);
	if (!e)
		e = function_learn(all, program->count, &costs);
	if (!e && seen)
		e = weigh_all(program, costs, seen);
	seen_close(seen);
	free(all);
	while (program->count > most)
		free_function(&program->functions[--program->count]);
	if (!e)
		e = explain_all(program, costs);
	frequency_forget(costs);
	return e;
}

static struct err *make_room(struct program *program, size_t count)
{
	program->functions = calloc(count, sizeof *program->functions);
	program->samples = (double)profile_samples(program->profile, program->metric);
	return program->functions ? NULL : err_new("out of memory");
}

/* ---- what the whole profile tells ---- */

static int by_start(const void *a, const void *b)
{
	const struct annotate_function *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static int by_self(const void *a, const void *b)
{
	const struct annotate_function *x = a, *y = b;
	return x->self < y->self ? 1 : x->self > y->self ? -1 : by_start(a, b);
}

/* The time of page faults is that of the functions whose instructions they are of. */
static void count_faults(const struct spots *spots, struct modules *modules,
			 struct annotate_functions *all)
{
	qsort(all->all, all->count, sizeof *all->all, by_start);
	for (size_t i = 0; i < spots->count; i++) {
		const struct spot *p = &spots->all[i];
		struct modules_function named;
		if (!p->faults)
			continue;
		modules_function(modules, p->module, p->address, true, &named);
		struct annotate_function wanted = {.module = p->module, .start = named.start};
		struct annotate_function *f = bsearch(&wanted, all->all, all->count,
						      sizeof *all->all, by_start);
		if (f)
			f->self += p->faults;
	}
	qsort(all->all, all->count, sizeof *all->all, by_self);
}

/* Lists the functions, that with the most samples first, and what each is to be read with. */
static struct err *look_around(struct program *program, struct modules *modules,
			       const struct program_options *o, struct annotate_functions *all,
			       struct function_options *out)
{
	const struct profile *p = program->profile;
	struct err *e = annotate_functions_list(p, modules, o->metric, o->thread, all);
	if (e)
		return e;
	e = spots_find(p, modules, o->metric, o->thread, &program->spots);
	if (e) {
		annotate_functions_free(all);
		return e;
	}
	e = annotate_samples_gather(p, o->thread, &program->own_samples);
	if (e) {
		annotate_functions_free(all);
		return e;
	}
	count_faults(&program->spots, modules, all);
	*out = (struct function_options){
		.metric = o->metric,
		.cycles_per_sample = program->cycles_per_sample,
		.spots = &program->spots,
	};
	double unseen_pages;
	out->hot_lines = count_pieces(p, o->metric, CODE_LINE, &out->unseen_lines);
	out->hot_pages = count_pieces(p, o->metric, CODE_PAGE, &unseen_pages);
	return NULL;
}

/* ---- which functions ---- */

/* How much longer a recording must be for so many more samples of a part of it. */
static struct err *too_few(const struct program *program, const char *what, double has)
{
	double seconds = (double)program->profile->duration_ns / 1e9;
	double more = has > 0 ? seconds * (PROGRAM_SAMPLES_MIN - has) / has : 0;
	if (has > 0 && more < 86400)
		return err_new(
			"%s has %.0f samples, too few to explain it: %.0f more are needed (about "
			"%.0f s more of recording, or a higher rate: record -F)",
			what, has, PROGRAM_SAMPLES_MIN - has, more < 1 ? 1 : more);
	return err_new("%s has %.0f samples, too few to explain it: %.0f more are needed", what,
		       has, PROGRAM_SAMPLES_MIN - has);
}

static bool is_read(const struct program *program, const struct annotate_function *f)
{
	return program->count && program->functions[0].module == f->module &&
	       program->functions[0].start == f->start;
}

/* How many functions are looked at. */
static size_t most_functions(const struct program_options *o, const struct annotate_functions *all)
{
	if (!o->every)
		return FUNCTIONS_MAX;
	return all->count < EVERY_FUNCTION_MAX ? all->count : EVERY_FUNCTION_MAX;
}

/* Reads those that matter, besides the one that may be there. `most` gets the samples of the largest. */
static void read_largest(struct program *program, struct modules *modules,
			 const struct annotate_functions *all, const struct program_options *o,
			 const struct function_options *with, double *most)
{
	double least = o->every ? 1 : SHARE_MIN * program->samples;
	size_t room = most_functions(o, all);
	*most = 0;
	for (size_t i = 0; i < all->count && program->count < room; i++) {
		const struct annotate_function *f = &all->all[i];
		if ((double)f->self < least)
			break;
		if (o->module && f->module != o->module)
			continue;
		if (!modules_image(modules, f->module)) {
			program->unread += (double)f->self;
			continue;
		}
		*most = *most < (double)f->self ? (double)f->self : *most;
		if (f->self < PROGRAM_SAMPLES_MIN && !o->every)
			break;
		if (!is_read(program, f))
			err_free(read_function(program, modules, f, with)); /* stubs and the like */
	}
}

struct err *program_explain_one(struct program *program, struct modules *modules, uint32_t module,
				uint64_t start, const struct program_options *o)
{
	struct modules_function named;
	struct annotate_functions all;
	struct function_options with;
	/* The others are for learning: those that matter, of the whole program. */
	struct program_options others = {.metric = o->metric, .thread = o->thread};
	double most;
	modules_function(modules, module, start, true, &named);
	struct annotate_function f = {.module = module, .start = start, .name = named.name};
	struct err *e = look_around(program, modules, o, &all, &with);
	if (e)
		return e;
	e = make_room(program, FUNCTIONS_MAX + 1);
	if (!e)
		e = read_function(program, modules, &f, &with);
	if (!e) {
		const struct function *read = program->functions[0].function;
		if (read->samples + read->faults < PROGRAM_SAMPLES_MIN)
			e = too_few(program, f.name ? f.name : "this function", read->samples);
	}
	if (!e) {
		read_largest(program, modules, &all, &others, &with, &most);
		program->unread = 0;
		e = explain_read(program, 1);
	}
	annotate_functions_free(&all);
	return e;
}

/* Faults are explained, although the kernel's code is not read. What was stolen is in no sample: all of it
   may have been the program's, or nothing. */
static void add_others(struct program *program)
{
	const struct profile *p = program->profile;
	double faults = 0, cycles = program->explained * program->cycles_per_sample;
	for (size_t i = 0; i < program->count; i++)
		faults += program->functions[i].function->faults;
	program->unread = program->unread > faults ? program->unread - faults : 0;
	if (p->stolen_ns && program->samples > 0) {
		double ns = (double)p->stolen_ns * program->explained / program->samples;
		double stolen = ns * program->machine.numbers.hz / 1e9;
		struct range *r = &program->causes.of[CAUSE_STOLEN];
		r->high = stolen < cycles ? stolen : cycles;
		r->likely = r->high / 2;
	}
}

struct err *program_explain(struct program *program, struct modules *modules,
			    const struct program_options *o)
{
	struct annotate_functions all;
	struct function_options with;
	double most;
	struct err *e = look_around(program, modules, o, &all, &with);
	if (e)
		return e;
	e = make_room(program, most_functions(o, &all) + 1);
	if (!e) {
		read_largest(program, modules, &all, o, &with, &most);
		if (program->count)
			e = explain_read(program, program->count);
		else
			e = most > 0 ? too_few(program, "the function with the most samples", most)
				     : err_new("there are no samples in code that can be read");
	}
	if (!e)
		add_others(program);
	annotate_functions_free(&all);
	return e;
}

/* ---- loops ---- */

size_t program_worst_loops(const struct program *program, struct program_loop *out, size_t most)
{
	size_t count = 0;
	for (size_t i = 0; i < program->count; i++) {
		const struct function *f = program->functions[i].function;
		for (size_t k = 0; k < f->loops.count; k++) {
			const struct explain_loop *l = &f->loop_list[k];
			size_t at = count < most ? count++ : most;
			if (l->own < 50 * program->cycles_per_sample) {
				count -= at + 1 == count;
				continue;
			}
			for (; at && l->lost > out[at - 1].loop->lost; at--)
				if (at < most)
					out[at] = out[at - 1];
			if (at < most)
				out[at] = (struct program_loop){&program->functions[i], l};
		}
	}
	return count;
}
