/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view_make [--run N] [--changed] [--spans N] [--events] OUT NODES [IN]: a large profile, to see what looking at one
 * costs.
 *
 * With IN, a recording, copies of its tree until there are NODES nodes. Each stands below a
 * function of its own (phase_0, phase_1, …) in a process and thread of its own, has other counts, and
 * lacks other subtrees. Every second one has its functions under other names, in a module of its own;
 * the others keep their modules, and with them their loops and inlined functions.
 *
 * Without IN, a tree by chance of 40 000 functions in 20 modules: a fifth of it a chain of 2000
 * calls with what hangs on that, the rest wide.
 *
 * Runs of different numbers have the same tree with other counts, and lack some. With --changed, some
 * functions take half as much again, others a third less. With --spans, as many are on a time line.
 * With --events, a tree by chance has waits and allocations, too.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/modules.h"
#include "base/err.h"
#include "profile/profile.h"

#define MODULES 20
#define FUNCTIONS 2000 /* of each */
#define THREADS 16
#define DEEP 2000

static struct {
	uint32_t run;
	bool changed, events;
	size_t spans;
} options;

static uint64_t tree_state = 88172645463325252, count_state;

static uint32_t draw(uint64_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % below;
}

/* For the tree, which is the same in all runs. */
static uint32_t chance(uint32_t below)
{
	return draw(&tree_state, below);
}

/* What a run counts where the first one counted `wanted`. */
static uint64_t vary(uint64_t wanted, uint64_t function)
{
	if (!options.run && !options.changed)
		return wanted;
	if (!draw(&count_state, 50))
		return 0;
	wanted = wanted * (90 + draw(&count_state, 21)) / 100 + draw(&count_state, 2);
	if (options.changed && function % 40 < 2)
		wanted = function % 40 ? wanted * 2 / 3 : wanted * 3 / 2;
	return wanted;
}

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "view_make: %s\n", err_text(e));
	exit(1);
}

static void *get(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (!p)
		check(err_new("out of memory"));
	return p;
}

static uint32_t add_thread(struct profile *p, uint32_t number)
{
	char name[32];
	uint32_t process, thread;
	snprintf(name, sizeof name, "worker-%u", number);
	struct profile_process x = {.pid = (int32_t)(1000 + number),
				    .parent = 1,
				    .name = name,
				    .command = "",
				    .rank = -1};
	check(profile_add_process(p, &x, &process));
	struct profile_thread t = {
		.process = process, .tid = x.pid, .name = name, .cpu_ns = 1000000000};
	check(profile_add_thread(p, &t, &thread));
	return thread;
}

/* ---- a tree by chance ---- */

static void add_functions(struct profile *p)
{
	for (uint32_t m = 0; m < MODULES; m++) {
		char path[64], *texts = get(FUNCTIONS, 64);
		uint32_t index;
		struct profile_name *names = get(FUNCTIONS, sizeof *names);
		for (uint32_t i = 0; i < FUNCTIONS; i++) {
			snprintf(texts + i * 64, 64, "space%u::Type%u::step_%u(int, char const*)",
				 m, i / 10, i);
			names[i] = (struct profile_name){i * 256, 256, texts + i * 64};
		}
		snprintf(path, sizeof path, "[lib%u.so]", m);
		struct profile_module module = {.kind = PROFILE_JIT,
						.path = path,
						.build_id = "",
						.problem = "",
						.names = names,
						.name_count = FUNCTIONS};
		check(profile_add_module(p, &module, &index));
		free(names);
		free(texts);
	}
}

enum { BLOCKED = 2, ALLOC };

/* Each context waits for another thread, and every third one allocates. */
static void count_events(struct profile *p, uint32_t node, uint32_t thread)
{
	uint64_t waits = 1 + chance(9), calls = 1 + chance(1000), bytes = calls * (16 + chance(99));
	check(profile_count(p, node, thread, BLOCKED, waits));
	check(profile_wake(p, &(struct profile_wake){node, thread, BLOCKED,
						     PROFILE_WAKERS + chance(THREADS), waits,
						     chance((uint32_t)waits)}));
	const uint64_t counts[] = {1 + chance(20), bytes,        calls, chance(5) ? 0 : bytes / 2,
				   bytes / 3,      calls / 2 + 1};
	for (uint32_t i = 0; !chance(3) && i < sizeof counts / sizeof *counts; i++)
		check(profile_count(p, node, thread, ALLOC + i, counts[i]));
}

static void add_events(struct profile *p)
{
	static const struct profile_metric all[] = {
		{"blocked", "ns", 1000000, false, {0, 0}},
		{"alloc", "allocations", 1, false, {0, 0}},
		{"alloc.bytes", "bytes", 1, false, {0, 0}},
		{"alloc.calls", "calls", 1, false, {0, 0}},
		{"alloc.live", "bytes", 1, false, {0, 0}},
		{"alloc.peak", "bytes", 1, false, {0, 0}},
		{"alloc.temporary", "calls", 1, false, {0, 0}},
	};
	uint32_t index;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		check(profile_add_metric(p, &all[i], &index));
}

static void count(struct profile *p, uint32_t node, uint32_t thread)
{
	if (options.events)
		count_events(p, node, thread);
	uint64_t function = p->nodes[node].address / 256;
	check(profile_count(p, node, thread, 0, vary(1 + chance(20), function)));
	if (!chance(4))
		check(profile_count(p, node, thread, 1, vary(1 + chance(5), function)));
}

/* A call from a node to a function by chance, of few that are likely and many that are not. */
static uint32_t call(struct profile *p, uint32_t parent)
{
	uint32_t module = 1 + chance(MODULES), node;
	uint32_t function = chance(2) ? chance(FUNCTIONS) : chance(60);
	check(profile_child(p, parent, PROFILE_CALL, module, function * 256 + 16 + chance(3) * 16,
			    &node));
	return node;
}

static void make_by_chance(struct profile *p, size_t wanted)
{
	uint32_t index, threads[THREADS];
	check(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	check(profile_add_metric(
		p, &(struct profile_metric){"page-faults", "faults", 1, false, {0, 0}}, &index));
	if (options.events)
		add_events(p);
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = add_thread(p, i);
	add_functions(p);
	uint32_t at = 0, recent[64] = {0};
	for (uint32_t i = 0; i < DEEP; i++)
		at = call(p, at);
	for (uint32_t first = at, i = 0; p->node_count < wanted / 5; i++) {
		uint32_t parent = chance(3) ? 1 + chance(first) : 1 + chance(at);
		at = call(p, parent);
		count(p, at, threads[chance(THREADS)]);
	}
	for (uint32_t i = 0; p->node_count < wanted; i++) {
		uint32_t *place = &recent[chance(64)];
		*place = chance(9) ? call(p, *place) : 0;
		if (*place && chance(2))
			count(p, *place, threads[chance(THREADS)]);
	}
}

/* ---- copies of a recording ---- */

struct copier {
	const struct profile *from;
	struct modules *modules;
	struct profile *to;
	uint32_t *functions; /* by node: which */
	const char **names;  /* of functions */
	uint32_t function_count;
	uint32_t *places; /* by node: its copy */
};

/* Functions are told apart by module and where they begin; the first `known` that matches is taken
   from the parent's siblings only by a table sorted afterwards. */
struct found {
	uint32_t module, node;
	uint64_t start;
	const char *name;
};

static int compare_found(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void find_functions(struct copier *c)
{
	size_t count = c->from->node_count;
	struct found *all = get(count, sizeof *all);
	c->functions = get(count, sizeof *c->functions);
	c->names = get(count, sizeof *c->names);
	for (uint32_t i = 0; i < count; i++) {
		const struct profile_node *n = &c->from->nodes[i];
		struct modules_function f = {.start = n->address};
		if (n->kind == PROFILE_CALL || n->kind == PROFILE_EXACT)
			modules_function(c->modules, n->module, n->address,
					 n->kind == PROFILE_EXACT, &f);
		all[i] = (struct found){n->module, i, f.start, f.name ? strdup(f.name) : NULL};
	}
	qsort(all, count, sizeof *all, compare_found);
	for (size_t i = 0; i < count; i++) {
		if (!i || compare_found(&all[i - 1], &all[i]))
			c->names[c->function_count++] = all[i].name ? all[i].name : "(no name)";
		c->functions[all[i].node] = c->function_count - 1;
	}
	free(all);
}

/* The functions of the recording as a module, with `number` in their names; and phase_<number>. */
static uint32_t add_module(struct copier *c, uint32_t number, bool all)
{
	size_t used = all ? c->function_count : 0;
	struct profile_name *names = get(used + 1, sizeof *names);
	char path[64], phase[32];
	uint32_t index;
	for (uint32_t i = 0; i < used; i++) {
		size_t size = strlen(c->names[i]) + 32;
		char *text = get(1, size);
		snprintf(text, size, "copy%u::%s", number, c->names[i]);
		names[i] = (struct profile_name){i * 64u, 64, text};
	}
	snprintf(path, sizeof path, "[libcopy%u.so]", number);
	snprintf(phase, sizeof phase, "phase_%u", number);
	names[used] = (struct profile_name){used * 64u, 64, phase};
	struct profile_module module = {.kind = PROFILE_JIT,
					.path = path,
					.build_id = "",
					.process = number,
					.problem = "",
					.names = names,
					.name_count = used + 1};
	check(profile_add_module(c->to, &module, &index));
	for (uint32_t i = 0; i < used; i++)
		free((char *)names[i].name);
	free(names);
	return index;
}

static void copy(struct copier *c, uint32_t number)
{
	const struct profile *from = c->from;
	bool renamed = number % 2;
	uint32_t thread = add_thread(c->to, number), module = add_module(c, number, renamed);
	uint64_t phase = (renamed ? c->function_count : 0) * 64u + 16;
	for (uint32_t i = 0; i < from->node_count; i++) {
		const struct profile_node *n = &from->nodes[i];
		uint32_t parent = i ? c->places[n->parent] : 0;
		c->places[i] = UINT32_MAX;
		if (parent == UINT32_MAX || (i && !chance(100)) || n->kind == PROFILE_PARTIAL)
			continue;
		if (!i)
			check(profile_child(c->to, 0, PROFILE_CALL, module, phase, &c->places[i]));
		else if (renamed)
			check(profile_child(c->to, parent, n->kind, module,
					    c->functions[i] * 64u + 16, &c->places[i]));
		else
			check(profile_child(c->to, parent, n->kind, n->module, n->address,
					    &c->places[i]));
	}
	for (size_t i = 0; i < from->value_count; i++) {
		const struct profile_value *v = &from->values[i];
		if (c->places[v->node] == UINT32_MAX)
			continue;
		uint64_t wanted = v->count * (1 + chance(5));
		wanted += chance(3);
		check(profile_count(c->to, c->places[v->node], thread, v->metric,
				    vary(wanted, c->functions[v->node])));
	}
}

static void make_copies(struct profile *p, size_t wanted, const char *path)
{
	struct profile *from;
	char *damage = NULL;
	uint32_t index;
	check(profile_read(path, &from, &damage));
	struct copier c = {
		.from = from, .to = p, .places = get(from->node_count, sizeof *c.places)};
	check(modules_open(from, false, &c.modules));
	for (size_t i = 1; i < from->module_count; i++)
		check(profile_add_module(p, &from->modules[i], &index));
	for (size_t i = 0; i < from->metric_count; i++)
		check(profile_add_metric(p, &from->metrics[i], &index));
	p->command = profile_string(p, from->command);
	p->directory = profile_string(p, from->directory);
	find_functions(&c);
	for (uint32_t i = 0; p->node_count < wanted; i++)
		copy(&c, i);
}

/* ---- the time line ---- */

static int compare_thread(const void *a, const void *b)
{
	const struct profile_value *x = a, *y = b;
	return (x->thread > y->thread) - (x->thread < y->thread);
}

/* Each thread was in contexts that it has samples in, for some periods each, mostly in ones near to
   the one before; now and then it waited. */
static void add_spans(struct profile *p)
{
	check(profile_settle(p));
	size_t count = p->value_count, used = 0;
	struct profile_value *all = get(count, sizeof *all);
	for (size_t i = 0; i < count; i++)
		if (p->values[i].metric == 0)
			all[used++] = p->values[i];
	qsort(all, used, sizeof *all, compare_thread);
	for (size_t i = 0, end; i < used; i = end) {
		for (end = i; end < used && all[end].thread == all[i].thread; end++)
			;
		uint32_t own = (uint32_t)(end - i), at = chance(own);
		uint64_t ns = 0, period = p->metrics[0].period;
		for (size_t n = options.spans * own / used; n; n--) {
			uint64_t weight = 1 + chance(5);
			at = chance(20) ? (at + 1 + chance(8)) % own : chance(own);
			ns += (weight + (chance(30) ? 0 : chance(200))) * period;
			if (options.events && !chance(3))
				check(profile_time_span(
					p, &(struct profile_span){
						   .start_us = (ns - weight * period) / 1000,
						   .duration_us = weight * period / 1000,
						   .thread = all[i].thread,
						   .node = all[i + at].node,
						   .metric = BLOCKED,
						   .samples = (uint32_t)weight,
						   .waker = 1 + PROFILE_WAKERS + chance(THREADS)}));
			else
				check(profile_time(p, all[i + at].node, all[i].thread, 0, ns,
						   weight));
		}
		if (p->duration_ns < ns)
			p->duration_ns = ns;
	}
	p->timed = true;
	free(all);
}

/* Leaves what is no option. */
static int parse(int argc, char **argv)
{
	int left = 1;
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--changed"))
			options.changed = true;
		else if (!strcmp(argv[i], "--events"))
			options.events = true;
		else if (!strcmp(argv[i], "--run") && i + 1 < argc)
			options.run = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--spans") && i + 1 < argc)
			options.spans = strtoul(argv[++i], NULL, 10);
		else
			argv[left++] = argv[i];
	}
	return left;
}

int main(int argc, char **argv)
{
	struct profile *p;
	argc = parse(argc, argv);
	if (argc < 3 || argc > 4)
		check(err_new(
			"usage: view_make [--run N] [--changed] [--spans N] [--events] OUT NODES "
			"[IN]"));
	count_state = 0x9e3779b97f4a7c15 * (options.run + 1);
	size_t wanted = strtoul(argv[2], NULL, 10);
	check(profile_new(&p));
	p->complete = true;
	p->hz = 1000;
	p->duration_ns = 60000000000;
	if (argc == 4)
		make_copies(p, wanted, argv[3]);
	else
		make_by_chance(p, wanted);
	if (options.spans)
		add_spans(p);
	check(profile_write(p, argv[1]));
	return 0;
}
