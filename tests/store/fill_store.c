/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_store [OPTION VALUE]... DATABASE PROFILE...: writes intervals into a database, made of
 * recordings, in the way in which a daemon does. Each interval has all samples of the profiles, or a
 * part of them by chance.
 *
 *    --start S          when the first interval begins, in seconds since 1970 (1800000000)
 *    --length S         of an interval (60)
 *    --intervals N      how many (1)
 *    --first N          the number of the first (1); the epoch goes on where this is not 1
 *    --epoch-every N    a new epoch after so many intervals (none)
 *    --every N          one of so many samples has a call path (1)
 *    --samples N        about so many samples in each interval, by chance (as in the profiles)
 *    --programs N       of so many of the programs, some often and most seldom (all); then the samples
 *                       are those of a full load, of which the time of the day has its part
 *    --seed N           of chance
 *    --steps N          of tidying after each interval (0)
 *    --user N, --container TEXT   of all processes
 *    --host TEXT        of the epoch (here)
 *    --pause MS         after each interval (0)
 *    --lost N           samples lost in each interval (0)
 *    --times 1          at the end, the longest times of adding and of a step of tidying, on stderr
 *
 * Prints the epoch and the number of each interval when it is in the file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyze/modules.h"
#include "base/err.h"
#include "image/symbols.h"
#include "profile/profile.h"
#include "store/store.h"

static struct options {
	uint64_t start, length, intervals, first, epoch_every, every, samples, programs, seed,
		steps, user, lost, times, pause;
	const char *container, *host;
} o = {.start = 1800000000,
       .length = 60,
       .intervals = 1,
       .first = 1,
       .every = 1,
       .seed = 1,
       .user = 1000,
       .container = "",
       .host = "here"};

static struct profile *all; /* the profiles together */
static struct store_interval interval;
static struct store_image *images;
static struct store_symbol *symbols;
static struct store_process *processes;
static struct store_node *nodes;
static struct store_count *counts;
static struct store_path *paths;
static uint32_t *places;    /* of the profile's nodes in the interval; 0: not in it */
static uint32_t *functions; /* of each node, its symbol + 1; 0: none */
static struct store_symbol *all_symbols;
static bool *given;                             /* symbols that the interval has */
static uint32_t *image_places, *process_places; /* in the interval; 0: not in it */

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "fill_store: %s\n", err_text(e));
	exit(1);
}

static void *need(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (!memory)
		check(err_new("out of memory"));
	return memory;
}

/* ---- chance ---- */

static uint64_t random_number(void)
{
	uint64_t x = (o.seed += 0x9e3779b97f4a7c15u);
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static double uniform(void)
{
	return ((double)(random_number() >> 11) + 0.5) * 0x1p-53;
}

/* Of a Poisson distribution; large ones are nearly normal. */
static uint64_t poisson(double mean)
{
	if (mean > 50) {
		double normal = sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
		double value = mean + sqrt(mean) * normal;
		return value < 0 ? 0 : (uint64_t)(value + 0.5);
	}
	uint64_t count = 0;
	for (double left = exp(-mean), p = uniform(); p > left; p *= uniform())
		count++;
	return count;
}

/* ---- an interval has what has samples, and nothing else ---- */

static uint32_t place_process(uint32_t process)
{
	const struct profile_process *p = &all->processes[process];
	if (!process_places[process]) {
		processes[interval.process_count++] = (struct store_process){
			p->pid,           o.programs ? interval.start_ms : (int64_t)o.start * 1000,
			p->name,          p->command,
			(uint32_t)o.user, o.container};
		process_places[process] = (uint32_t)interval.process_count;
	}
	return process_places[process];
}

static uint32_t place_image(uint32_t module)
{
	const struct profile_module *m = &all->modules[module];
	if (module && !image_places[module]) {
		uint32_t process = m->kind == PROFILE_JIT ? place_process(m->process) : 0;
		images[interval.image_count++] = (struct store_image){m->kind, m->path, m->build_id,
								      process};
		image_places[module] = (uint32_t)interval.image_count;
	}
	return image_places[module];
}

/* A name of the profile's own says how large its function is; of others the symbols do. */
static uint64_t size_of(struct modules *ms, uint32_t module, uint64_t start)
{
	const struct symbols *table = modules_symbols(ms, module);
	const struct symbol *s = table ? symbols_find(table, start) : NULL;
	const struct profile_module *m = &all->modules[module];
	for (size_t i = 0; !s && i < m->name_count; i++)
		if (m->names[i].start == start)
			return m->names[i].size;
	return s ? s->address + s->size - start : 0;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct store_symbol *x = &all_symbols[*(const uint32_t *)a];
	const struct store_symbol *y = &all_symbols[*(const uint32_t *)b];
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* all_symbols by node, then of equal ones the first for each. */
static void make_functions(void)
{
	struct modules *ms;
	uint32_t *order = need(all->node_count, sizeof *order), count = 0;
	check(modules_open(all, false, &ms));
	functions = need(all->node_count, sizeof *functions);
	all_symbols = need(all->node_count, sizeof *all_symbols);
	for (uint32_t i = 1; i < all->node_count; i++) {
		const struct profile_node *n = &all->nodes[i];
		struct modules_function f = {0};
		if (n->kind != PROFILE_PARTIAL && n->module)
			modules_function(ms, n->module, n->address, n->kind == PROFILE_EXACT, &f);
		if (!f.name)
			continue;
		all_symbols[i] = (struct store_symbol){n->module, f.start,
						       size_of(ms, n->module, f.start),
						       profile_string(all, f.name)};
		order[count++] = i;
	}
	qsort(order, count, sizeof *order, compare_symbols);
	for (uint32_t i = 0; i < count; i++)
		functions[order[i]] = i && !compare_symbols(&order[i - 1], &order[i])
					      ? functions[order[i - 1]]
					      : order[i];
	modules_close(ms);
	free(order);
}

static void place_function(uint32_t node)
{
	uint32_t function = functions[node];
	if (function && !given[function]) {
		struct store_symbol *made = &symbols[interval.symbol_count++];
		*made = all_symbols[function];
		made->image = place_image(made->image);
	}
	given[function] = true;
}

/* The node and its callers in the interval, with their functions. */
static uint32_t place_node(uint32_t node)
{
	const struct profile_node *n = &all->nodes[node];
	if (!node || places[node])
		return places[node];
	uint32_t parent = place_node(n->parent);
	nodes[interval.node_count++] = (struct store_node){parent, place_image(n->module), n->kind,
							   n->address};
	place_function(node);
	return places[node] = (uint32_t)interval.node_count;
}

/* ---- the samples of an interval ---- */

/* Programs by their samples: processes of one name are one program. */
static struct program {
	const char *name;
	uint32_t *processes;
	size_t count;
	uint64_t samples;
} * programs;
static size_t program_count;

static int compare_programs(const void *a, const void *b)
{
	const struct program *x = a, *y = b;
	return x->samples > y->samples ? -1 : x->samples < y->samples;
}

static struct program *find_program(const char *name)
{
	for (size_t i = 0; i < program_count; i++)
		if (!strcmp(programs[i].name, name))
			return &programs[i];
	programs[program_count] = (struct program){.name = name};
	return &programs[program_count++];
}

static void make_programs(void)
{
	uint64_t *samples = need(all->process_count, sizeof *samples);
	programs = need(all->process_count, sizeof *programs);
	for (size_t i = 0; i < all->value_count; i++)
		samples[all->threads[all->values[i].thread].process] += all->values[i].count;
	for (uint32_t i = 0; i < all->process_count; i++) {
		struct program *p = find_program(all->processes[i].name);
		p->samples += samples[i];
		p->processes = reallocarray(p->processes, p->count + 1, sizeof *p->processes);
		if (!p->processes)
			check(err_new("out of memory"));
		p->processes[p->count++] = i;
	}
	qsort(programs, program_count, sizeof *programs, compare_programs);
	free(samples);
}

/* As people and machines do: few programs often, most seldom (the chance of the one at rank n is
   1/n), each for a while that is by chance. */
static void choose_programs(double *share)
{
	if (!programs)
		make_programs();
	for (size_t i = 0; i < all->process_count; i++)
		share[i] = o.programs ? 0 : 1;
	for (uint64_t i = 0; i < o.programs; i++) {
		size_t rank = (size_t)exp(uniform() * log((double)program_count));
		const struct program *p = &programs[rank < program_count ? rank : 0];
		share[p->processes[random_number() % p->count]] += -log(uniform());
	}
}

/* The load of a day: least at four in the morning, most at four in the afternoon. */
static double load_at(int64_t ms)
{
	double hour = (double)(ms / 1000 % 86400) / 3600;
	return 0.4 - 0.35 * cos((hour - 4) / 24 * 6.283185307179586);
}

static uint64_t draw(const struct profile_value *v, const double *share, double scale)
{
	double part = share[all->threads[v->thread].process];
	if (!o.samples && !o.programs)
		return v->count;
	return poisson((double)v->count * part * scale);
}

static double scale_of(const double *share)
{
	double sum = 0;
	if (!o.samples)
		return 1;
	for (size_t i = 0; i < all->value_count; i++)
		sum += share[all->threads[all->values[i].thread].process] *
		       (double)all->values[i].count;
	double load = o.programs ? load_at(interval.start_ms) : 1;
	return sum > 0 ? (double)o.samples * load / sum : 1;
}

static void make_counts(void)
{
	static uint64_t seen;
	double *share = need(all->process_count, sizeof *share);
	choose_programs(share);
	double scale = scale_of(share);
	interval.count_count = interval.path_count = interval.node_count = 0;
	interval.symbol_count = interval.image_count = interval.process_count = 0;
	memset(image_places, 0, all->module_count * sizeof *image_places);
	memset(process_places, 0, all->process_count * sizeof *process_places);
	memset(places, 0, all->node_count * sizeof *places);
	memset(given, 0, all->node_count * sizeof *given);
	for (size_t i = 0; i < all->value_count; i++) {
		const struct profile_value *v = &all->values[i];
		const struct profile_node *n = &all->nodes[v->node];
		uint64_t count = draw(v, share, scale);
		uint64_t walked = (seen + count) / o.every - seen / o.every;
		seen += count;
		if (!count)
			continue;
		uint32_t process = place_process(all->threads[v->thread].process);
		place_function(v->node);
		counts[interval.count_count++] = (struct store_count){
			process, place_image(n->module), v->metric, n->address, count};
		if (walked)
			paths[interval.path_count++] = (struct store_path){
				place_node(v->node), process, v->metric, walked};
	}
	free(share);
	interval.counts = counts;
	interval.paths = paths;
	interval.nodes = nodes;
	interval.symbols = symbols;
	interval.images = images;
	interval.processes = processes;
}

/* ---- writing ---- */

static int64_t begin_epoch(struct store *s, int64_t start_ms, bool continues)
{
	struct store_event *events = need(all->metric_count, sizeof *events);
	int64_t id;
	for (size_t i = 0; i < all->metric_count; i++) {
		const struct profile_metric *m = &all->metrics[i];
		events[i] = (struct store_event){m->name, m->unit, m->period, o.every,
						 m->user_only};
	}
	struct store_epoch epoch = {.host = o.host,
				    .kernel = all->kernel,
				    .machine = all->machine,
				    .cpu = "cpu",
				    .version = all->version,
				    .note = "",
				    .cpus = 2,
				    .hz = all->hz,
				    .start_ms = start_ms,
				    .events = events,
				    .event_count = all->metric_count,
				    .continues = continues};
	check(store_begin_epoch(s, &epoch, &id));
	free(events);
	return id;
}

static double longest_add, longest_step; /* ms */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void tidy(struct store *s, struct store_tidied *tidied)
{
	tidied->more = true;
	for (uint64_t i = 0; i < o.steps && tidied->more; i++) {
		double start = now_ms();
		check(store_tidy(s, &store_policy, interval.end_ms, 1, tidied));
		longest_step = fmax(longest_step, now_ms() - start);
	}
}

static void write_all(struct store *s, int64_t epoch)
{
	struct store_loss losses[] = {{STORE_LOST, "ring full", o.lost},
				      {STORE_UNKNOWN, "process gone", o.lost / 2}};
	struct coverage *coverage = need(all->metric_count, sizeof *coverage);
	for (size_t i = 0; i < all->metric_count; i++)
		coverage[i] = all->metrics[i].coverage;
	interval.coverage = coverage;
	interval.coverage_count = all->metric_count;
	interval.losses = losses;
	interval.loss_count = 2;
	interval.cost = (struct store_cost){30000000, 20000000, 15000000, 10000};
	for (uint64_t i = 0; i < o.intervals; i++) {
		struct store_tidied tidied = {0};
		bool added;
		int64_t start_ms = (int64_t)(o.start + (o.first - 1 + i) * o.length) * 1000;
		if (o.epoch_every && i && i % o.epoch_every == 0)
			epoch = begin_epoch(s, start_ms, false);
		interval.number = o.first + i;
		interval.start_ms = start_ms;
		interval.end_ms = start_ms + (int64_t)o.length * 1000;
		make_counts();
		double start = now_ms();
		struct err *e = store_add(s, epoch, &interval, &added);
		longest_add = fmax(longest_add, now_ms() - start);
		if (e && store_trouble(s) == STORE_EPOCH_FULL) {
			err_free(e);
			epoch = begin_epoch(s, start_ms, true);
			e = store_add(s, epoch, &interval, &added);
		}
		check(e);
		printf("%lld %llu%s\n", (long long)epoch, (unsigned long long)interval.number,
		       added ? "" : " again");
		fflush(stdout);
		if (o.steps)
			tidy(s, &tidied);
		usleep((useconds_t)o.pause * 1000);
	}
	free(coverage);
}

static void read_option(const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *out;
	} numbers[] = {{"--start", &o.start},
		       {"--length", &o.length},
		       {"--intervals", &o.intervals},
		       {"--first", &o.first},
		       {"--epoch-every", &o.epoch_every},
		       {"--every", &o.every},
		       {"--samples", &o.samples},
		       {"--programs", &o.programs},
		       {"--seed", &o.seed},
		       {"--steps", &o.steps},
		       {"--user", &o.user},
		       {"--lost", &o.lost},
		       {"--times", &o.times},
		       {"--pause", &o.pause}};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].out = strtoull(value, NULL, 10);
			return;
		}
	if (!strcmp(name, "--container"))
		o.container = value;
	else if (!strcmp(name, "--host"))
		o.host = value;
	else
		check(err_new("what is %s?", name));
}

static void read_profiles(char **names)
{
	check(profile_new(&all));
	for (; *names; names++) {
		struct profile *one;
		char *damage;
		check(profile_read(*names, &one, &damage));
		free(damage);
		check(profile_merge(all, one));
		profile_free(one);
	}
}

int main(int argc, char **argv)
{
	struct store *s;
	int at = 1;
	int64_t epoch = 1;
	for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2)
		read_option(argv[at], argv[at + 1]);
	if (at + 1 >= argc)
		check(err_new("DATABASE PROFILE..."));
	read_profiles(argv + at + 1);
	make_functions();
	images = need(all->module_count, sizeof *images);
	processes = need(all->process_count, sizeof *processes);
	image_places = need(all->module_count, sizeof *image_places);
	process_places = need(all->process_count, sizeof *process_places);
	nodes = need(all->node_count, sizeof *nodes);
	symbols = need(all->node_count, sizeof *symbols);
	places = need(all->node_count, sizeof *places);
	given = need(all->node_count, sizeof *given);
	counts = need(all->value_count, sizeof *counts);
	paths = need(all->value_count, sizeof *paths);
	check(store_open(argv[at], STORE_CREATE, &s));
	if (o.first == 1)
		epoch = begin_epoch(s, (int64_t)o.start * 1000, false);
	write_all(s, epoch);
	store_close(s);
	if (o.times)
		fprintf(stderr, "longest: add %.0f ms, step %.0f ms\n", longest_add, longest_step);
	free(images);
	free(processes);
	free(nodes);
	free(symbols);
	free(all_symbols);
	free(functions);
	free(places);
	free(image_places);
	free(process_places);
	free(given);
	free(counts);
	free(paths);
	profile_free(all);
	return 0;
}
