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
 *    --programs N       of so many of the processes (all)
 *    --seed N           of chance
 *    --steps N          of tidying after each interval (0)
 *    --user N, --container TEXT   of all processes
 *    --lost N           samples lost in each interval (0)
 *
 * Prints the epoch and the number of each interval when it is in the file.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "base/err.h"
#include "image/symbols.h"
#include "profile/profile.h"
#include "store/store.h"

static struct options {
	uint64_t start, length, intervals, first, epoch_every, every, samples, programs, seed,
		steps, user, lost;
	const char *container;
} o = {.start = 1800000000, .length = 60, .intervals = 1, .first = 1, .every = 1, .seed = 1,
       .user = 1000, .container = ""};

static struct profile *all; /* the profiles together */
static struct store_interval interval;
static struct store_image *images;
static struct store_symbol *symbols;
static struct store_process *processes;
static struct store_node *nodes;
static struct store_count *counts;
static struct store_path *paths;

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

/* Chance */

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

/* What does not change from interval to interval */

static void make_images(void)
{
	images = need(all->module_count, sizeof *images);
	for (size_t i = 1; i < all->module_count; i++) {
		const struct profile_module *m = &all->modules[i];
		images[i - 1] = (struct store_image){m->kind, m->path, m->build_id,
						     m->kind == PROFILE_JIT ? m->process + 1 : 0};
	}
	interval.images = images;
	interval.image_count = all->module_count - 1;
}

static void make_processes(void)
{
	processes = need(all->process_count, sizeof *processes);
	for (size_t i = 0; i < all->process_count; i++) {
		const struct profile_process *p = &all->processes[i];
		processes[i] = (struct store_process){
			p->pid,         (int64_t)o.start * 1000, p->name, p->command,
			(uint32_t)o.user, o.container};
	}
	interval.processes = processes;
	interval.process_count = all->process_count;
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

static void make_nodes(void)
{
	struct modules *ms;
	check(modules_open(all, false, &ms));
	nodes = need(all->node_count, sizeof *nodes);
	symbols = need(all->node_count, sizeof *symbols);
	for (size_t i = 1; i < all->node_count; i++) {
		const struct profile_node *n = &all->nodes[i];
		struct modules_function f = {0};
		nodes[i - 1] = (struct store_node){n->parent, n->module, n->kind, n->address};
		if (n->kind != PROFILE_PARTIAL && n->module)
			modules_function(ms, n->module, n->address, n->kind == PROFILE_EXACT, &f);
		if (f.name)
			symbols[interval.symbol_count++] =
				(struct store_symbol){n->module, f.start,
						      size_of(ms, n->module, f.start),
						      profile_string(all, f.name)};
	}
	modules_close(ms);
	interval.nodes = nodes;
	interval.node_count = all->node_count - 1;
	interval.symbols = symbols;
}

/* The samples of an interval */

static void choose_programs(double *share)
{
	for (size_t i = 0; i < all->process_count; i++)
		share[i] = o.programs ? 0 : 1;
	for (uint64_t i = 0; i < o.programs; i++)
		share[random_number() % all->process_count] += -log(uniform());
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
	return sum > 0 ? (double)o.samples / sum : 1;
}

static void make_counts(void)
{
	static uint64_t seen;
	double *share = need(all->process_count, sizeof *share);
	choose_programs(share);
	double scale = scale_of(share);
	interval.count_count = interval.path_count = 0;
	for (size_t i = 0; i < all->value_count; i++) {
		const struct profile_value *v = &all->values[i];
		const struct profile_node *n = &all->nodes[v->node];
		uint32_t process = all->threads[v->thread].process + 1;
		uint64_t count = draw(v, share, scale), walked = (seen + count) / o.every - seen / o.every;
		seen += count;
		if (count)
			counts[interval.count_count++] = (struct store_count){
				process, n->module, v->metric, n->address, count};
		if (walked)
			paths[interval.path_count++] =
				(struct store_path){v->node, process, v->metric, walked};
	}
	free(share);
	interval.counts = counts;
	interval.paths = paths;
}

/* Writing */

static int64_t begin_epoch(struct store *s, int64_t start_ms)
{
	struct store_event *events = need(all->metric_count, sizeof *events);
	int64_t id;
	for (size_t i = 0; i < all->metric_count; i++) {
		const struct profile_metric *m = &all->metrics[i];
		events[i] = (struct store_event){m->name, m->unit, m->period, o.every,
						 m->user_only};
	}
	struct store_epoch epoch = {.host = "here",
				    .kernel = all->kernel,
				    .machine = all->machine,
				    .cpu = "cpu",
				    .version = all->version,
				    .note = "",
				    .cpus = 2,
				    .hz = all->hz,
				    .start_ms = start_ms,
				    .events = events,
				    .event_count = all->metric_count};
	check(store_begin_epoch(s, &epoch, &id));
	free(events);
	return id;
}

static void write_all(struct store *s, int64_t epoch)
{
	struct store_loss losses[] = {{STORE_LOST, "ring full", o.lost},
				      {STORE_UNKNOWN, "process gone", o.lost / 2}};
	interval.losses = losses;
	interval.loss_count = 2;
	interval.cost = (struct store_cost){30000000, 20000000, 15000000, 10000};
	for (uint64_t i = 0; i < o.intervals; i++) {
		struct store_tidied tidied = {0};
		bool added;
		int64_t start_ms = (int64_t)(o.start + (o.first - 1 + i) * o.length) * 1000;
		if (o.epoch_every && i && i % o.epoch_every == 0)
			epoch = begin_epoch(s, start_ms);
		interval.number = o.first + i;
		interval.start_ms = start_ms;
		interval.end_ms = start_ms + (int64_t)o.length * 1000;
		make_counts();
		check(store_add(s, epoch, &interval, &added));
		printf("%lld %llu%s\n", (long long)epoch, (unsigned long long)interval.number,
		       added ? "" : " again");
		fflush(stdout);
		if (o.steps)
			check(store_tidy(s, &store_policy, interval.end_ms, o.steps, &tidied));
	}
}

static void read_option(const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *out;
	} numbers[] = {{"--start", &o.start},       {"--length", &o.length},
		       {"--intervals", &o.intervals}, {"--first", &o.first},
		       {"--epoch-every", &o.epoch_every}, {"--every", &o.every},
		       {"--samples", &o.samples},   {"--programs", &o.programs},
		       {"--seed", &o.seed},         {"--steps", &o.steps},
		       {"--user", &o.user},         {"--lost", &o.lost}};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].out = strtoull(value, NULL, 10);
			return;
		}
	if (strcmp(name, "--container") != 0)
		check(err_new("what is %s?", name));
	o.container = value;
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
	make_images();
	make_processes();
	make_nodes();
	counts = need(all->value_count, sizeof *counts);
	paths = need(all->value_count, sizeof *paths);
	check(store_open(argv[at], STORE_CREATE, &s));
	if (o.first == 1)
		epoch = begin_epoch(s, (int64_t)o.start * 1000);
	write_all(s, epoch);
	store_close(s);
	free(images);
	free(processes);
	free(nodes);
	free(symbols);
	free(counts);
	free(paths);
	profile_free(all);
	return 0;
}
