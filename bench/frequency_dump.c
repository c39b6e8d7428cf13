/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frequency_dump PROFILE [MIN_SAMPLES [EDGES]]: what explain/frequency.h estimates, for bench/frequency to compare. A
 * line for each thing; addresses in hexadecimal:
 *
 *     function MODULE ENTRY SAMPLES INCOMPLETE NAME
 *     insn ADDRESS KIND SAMPLES
 *     block START END LAST ENDS CLASS EXECUTIONS LOW HIGH CONFIDENCE
 *     edge FROM TO CLASS EXECUTIONS LOW HIGH CONFIDENCE
 *     seconds SECONDS      to learn and estimate
 *
 * EDGES has edges that were seen, for experiments: lines of MODULE FROM TO COUNT, with the base name of a module.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyze/modules.h"
#include "base/array.h"
#include "base/err.h"
#include "explain/frequency.h"
#include "explain/machine.h"
#include "explain/seen.h"
#include "flow/graph.h"
#include "image/image.h"
#include "isa/insn.h"
#include "profile/profile.h"
#include "structure/structure.h"

struct place { /* samples of an instruction */
	uint32_t module;
	uint64_t address, count;
};

struct function {
	uint32_t module;
	uint64_t samples;
	struct graph graph;
	struct frequency_insn *insns;
	size_t insn_count, room;
	struct frequency_observation *seen;
	size_t seen_count, seen_room;
	const char *name;
};

static struct place *places;
static size_t place_count;
static struct function *functions;
static struct frequency_input *inputs;
static size_t function_count, function_room;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void stop(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "%s\n", err_text(e));
	exit(1);
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void gather_places(const struct profile *p)
{
	uint32_t metric = profile_main(p);
	places = calloc(p->value_count + 1, sizeof *places);
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		const struct profile_node *n = &p->nodes[v->node];
		if (v->metric == metric && n->kind == PROFILE_EXACT &&
		    p->modules[n->module].kind == PROFILE_FILE)
			places[place_count++] = (struct place){n->module, n->address, v->count};
	}
	qsort(places, place_count, sizeof *places, by_place);
	size_t kept = 0;
	for (size_t i = 0; i < place_count; i++)
		if (kept && !by_place(&places[kept - 1], &places[i]))
			places[kept - 1].count += places[i].count;
		else
			places[kept++] = places[i];
	place_count = kept;
}

static uint64_t samples_at(uint32_t module, uint64_t start, uint64_t end)
{
	struct place from = {.module = module, .address = start};
	uint64_t sum = 0;
	for (size_t i = FIRST_NOT(k, place_count, by_place(&places[k], &from) < 0);
	     i < place_count && places[i].module == module && places[i].address < end; i++)
		sum += places[i].count;
	return sum;
}

static void read_block(struct function *f, struct image *image, const struct isa *isa,
		       const struct graph_block *b)
{
	size_t size = 0;
	const uint8_t *bytes = image_bytes_at(image, b->start, &size);
	if (!bytes)
		return;
	if (size > b->end - b->start)
		size = b->end - b->start;
	for (uint64_t at = b->start; at < b->end;) {
		struct insn insn;
		const uint8_t *code = bytes + (at - b->start);
		isa->decode(code, b->end - at, at, &insn);
		uint64_t end = at + (insn.length ? insn.length : 1);
		double count = (double)samples_at(f->module, at, end);
		if (!ARRAY_ROOM(f->insns, f->insn_count, f->room))
			exit(1);
		f->insns[f->insn_count++] = (struct frequency_insn){
			at, count, (uint8_t)frequency_kind_of(isa, code, b->end - at)};
		f->samples += (uint64_t)count;
		at = end;
	}
}

static void add_function(struct modules *modules, const struct place *place, uint64_t min)
{
	struct structure *s = modules_structure(modules, place->module);
	struct image *image = modules_image(modules, place->module);
	const struct isa *isa = image ? isa_for_machine(image_machine(image)) : NULL;
	struct function f = {.module = place->module};
	if (!s || !isa)
		return;
	for (size_t i = 0; i < function_count; i++)
		if (functions[i].module == place->module &&
		    graph_find(&functions[i].graph, place->address) != GRAPH_NONE)
			return;
	struct err *e = structure_graph(s, place->address, &f.graph);
	if (e) {
		err_free(e);
		return;
	}
	for (size_t i = 0; i < f.graph.block_count; i++)
		read_block(&f, image, isa, &f.graph.blocks[i]);
	struct modules_function named;
	modules_function(modules, place->module, place->address, true, &named);
	f.name = named.name ? named.name : "?";
	if (f.samples < min || f.graph.entry == GRAPH_NONE ||
	    graph_find(&f.graph, place->address) == GRAPH_NONE ||
	    !ARRAY_ROOM(functions, function_count, function_room)) {
		graph_free(&f.graph);
		free(f.insns);
		return;
	}
	functions[function_count++] = f;
}

static void add_seen(const struct profile *p, const char *module,
		     const struct frequency_observation *seen)
{
	for (size_t i = 0; i < function_count; i++) {
		struct function *f = &functions[i];
		const char *path = p->modules[f->module].path, *name = strrchr(path, '/');
		if (strcmp(name ? name + 1 : path, module) != 0 ||
		    graph_find(&f->graph, seen->from) == GRAPH_NONE)
			continue;
		if (!ARRAY_ROOM(f->seen, f->seen_count, f->seen_room))
			exit(1);
		f->seen[f->seen_count++] = *seen;
	}
}

static void read_seen(const struct profile *p, const char *path)
{
	FILE *file = fopen(path, "r");
	struct frequency_observation seen;
	char module[256];
	if (!file)
		exit(1);
	while (fscanf(file, "%255s %" SCNx64 " %" SCNx64 " %lf", module, &seen.from, &seen.to,
		      &seen.count) == 4)
		add_seen(p, module, &seen);
	fclose(file);
}

static void print_function(const struct profile *p, const struct function *f,
			   const struct frequency_result *r)
{
	const struct graph *g = &f->graph;
	printf("function %s %" PRIx64 " %" PRIu64 " %d %s\n", p->modules[f->module].path,
	       g->blocks[g->entry].start, f->samples, r->incomplete, f->name);
	for (size_t i = 0; i < f->insn_count; i++)
		printf("insn %" PRIx64 " %u %.0f\n", f->insns[i].address, f->insns[i].kind,
		       f->insns[i].samples);
	for (size_t i = 0; i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		const struct frequency *x = &r->blocks[i];
		printf("block %" PRIx64 " %" PRIx64 " %" PRIx64 " %u %u %g %g %g %u\n", b->start,
		       b->end, b->last, b->ends, x->class, x->executions, x->low, x->high,
		       x->confidence);
	}
	for (size_t i = 0; i < g->edge_count; i++) {
		const struct graph_edge *d = &g->edges[i];
		const struct frequency *x = &r->edges[i];
		printf("edge %" PRIx64 " %" PRIx64 " %u %g %g %g %u\n", g->blocks[d->from].last,
		       g->blocks[d->to].start, x->class, x->executions, x->low, x->high,
		       x->confidence);
	}
}

/* What the recording itself has seen. */
static void take_seen(const struct seen *seen)
{
	for (size_t i = 0; seen && i < function_count; i++) {
		struct function *f = &functions[i];
		free(f->seen);
		stop(seen_list(seen, f->module, &f->graph, &f->seen, &f->seen_count));
		inputs[i].observations = f->seen;
		inputs[i].observation_count = f->seen_count;
	}
}

static void weigh_seen(struct seen *seen, const struct frequency_result *results)
{
	if (!seen)
		return;
	for (size_t i = 0; i < function_count; i++)
		seen_weigh(seen, functions[i].module, &functions[i].graph, functions[i].insns,
			   functions[i].insn_count, &results[i]);
	seen_settle(seen);
	take_seen(seen);
}

int main(int argc, char **argv)
{
	struct profile *p;
	struct modules *modules;
	char *damage = NULL;
	if (argc < 2)
		return 2;
	uint64_t min = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	stop(profile_read(argv[1], &p, &damage));
	stop(modules_open(p, false, &modules));
	const struct isa *isa = isa_for_machine(!strcmp(p->machine, "x86_64") ? EM_X86_64
									      : EM_AARCH64);
	struct machine machine;
	stop(machine_open(p, isa, &machine));
	gather_places(p);
	for (size_t i = 0; i < place_count; i++)
		add_function(modules, &places[i], min);
	if (argc > 3)
		read_seen(p, argv[3]);
	inputs = calloc(function_count + 1, sizeof *inputs);
	for (size_t i = 0; i < function_count; i++)
		inputs[i] = (struct frequency_input){.graph = &functions[i].graph,
						     .insns = functions[i].insns,
						     .isa = isa,
						     .width = machine.numbers.width,
						     .insn_count = functions[i].insn_count,
						     .observations = functions[i].seen,
						     .observation_count = functions[i].seen_count};
	double from = seconds();
	struct frequency_costs *costs = NULL;
	struct seen *seen = NULL;
	struct frequency_result *results = calloc(function_count + 1, sizeof *results);
	if (!getenv("BENCH_UNSEEN") && argc <= 3)
		stop(seen_open(p, &seen));
	take_seen(seen);
	stop(frequency_learn(inputs, function_count, &costs));
	for (int round = 0; round < (seen ? SEEN_ROUNDS : 1); round++) {
		for (size_t i = 0; i < function_count; i++) {
			inputs[i].costs = costs;
			frequency_free(&results[i]);
			stop(frequency_estimate(&inputs[i], &results[i]));
		}
		weigh_seen(seen, results);
	}
	double took = seconds() - from;
	for (size_t i = 0; i < function_count; i++) {
		print_function(p, &functions[i], &results[i]);
		frequency_free(&results[i]);
		graph_free(&functions[i].graph);
		free(functions[i].insns);
		free(functions[i].seen);
	}
	printf("seconds %.3f\n", took);
	seen_close(seen);
	frequency_forget(costs);
	free(results);
	free(inputs);
	free(functions);
	free(places);
	free(damage);
	machine_close(&machine);
	modules_close(modules);
	profile_free(p);
	return 0;
}
