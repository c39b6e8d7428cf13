/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "explain/classes.h"
#include "explain/frequency.h"
#include "explain/sparse.h"
#include "flow/graph.h"
#include "isa/insn.h"
#include "made_graph.h"

#define BLOCK_BYTES 64
#define BLOCK_INSNS (BLOCK_BYTES / GRAPH_INSN)

static uint32_t seed = 1;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 8) % limit;
}

static struct graph make(size_t blocks, const struct pair *pairs, size_t count)
{
	return graph_make(blocks, pairs, count, BLOCK_BYTES);
}

#define MAKE(blocks, ...)                                \
	make(blocks, (const struct pair[]){__VA_ARGS__}, \
	     sizeof((const struct pair[]){__VA_ARGS__}) / sizeof(struct pair))

/* ---- the classes ---- */

static struct network network_of(const struct graph *g)
{
	struct network n;
	assert_null(network_make(g, &n));
	return n;
}

static uint32_t *classes_of(const struct network *n)
{
	uint32_t *class;
	size_t count;
	assert_null(network_classes(n, &class, &count));
	for (size_t i = 0; i < n->arc_count; i++)
		assert_true(class[i] < count);
	return class;
}

/* Whether a walk from one node to another exists that leaves out an arc. */
static bool reaches(const struct network *n, uint32_t from, uint32_t to, size_t without)
{
	bool *seen = calloc(n->node_count, sizeof *seen);
	seen[from] = true;
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < n->arc_count; i++)
			if (i != without && seen[n->arcs[i].from] && !seen[n->arcs[i].to])
				more = seen[n->arcs[i].to] = true;
	}
	bool found = seen[to];
	free(seen);
	return found;
}

/* By the definition: no cycle has one of them without the other. */
static bool on_same_cycles(const struct network *n, size_t a, size_t b)
{
	return !reaches(n, n->arcs[a].to, n->arcs[a].from, b) &&
	       !reaches(n, n->arcs[b].to, n->arcs[b].from, a);
}

static void check_classes(const struct graph *g)
{
	struct network n = network_of(g);
	uint32_t *class = classes_of(&n);
	for (uint32_t i = 0; i < n.node_count; i++) { /* strongly connected */
		assert_true(reaches(&n, 0, i, SIZE_MAX));
		assert_true(reaches(&n, i, 0, SIZE_MAX));
	}
	for (size_t a = 0; a < n.arc_count; a++)
		for (size_t b = 0; b < a; b++)
			assert_int_equal(class[a] == class[b], on_same_cycles(&n, a, b));
	free(class);
	network_free(&n);
}

static void free_graph(struct graph *g)
{
	free(g->blocks);
	free(g->edges);
}

static void diamond(void **state)
{
	(void)state;
	struct graph g = MAKE(4, {0, 1}, {0, 2}, {1, 3}, {2, 3});
	struct network n = network_of(&g);
	uint32_t *class = classes_of(&n);
	assert_int_equal(class[0], class[3]);
	assert_int_equal(class[0], class[n.entry]);
	assert_int_not_equal(class[0], class[1]);
	assert_int_not_equal(class[1], class[2]);
	assert_int_equal(class[1], class[4 + 0]); /* its edges */
	assert_int_equal(class[1], class[4 + 2]);
	free(class);
	network_free(&n);
	check_classes(&g);
	free_graph(&g);
}

static void infinite_loop(void **state)
{
	(void)state;
	struct graph g = MAKE(4, {0, 1}, {1, 2}, {2, 3}, {3, 1});
	struct network n = network_of(&g);
	uint32_t *class = classes_of(&n);
	assert_int_equal(class[1], class[2]);
	assert_int_equal(class[1], class[3]);
	assert_int_not_equal(class[0], class[1]);
	free(class);
	network_free(&n);
	check_classes(&g);
	free_graph(&g);
}

static void special_graphs(void **state)
{
	(void)state;
	struct graph graphs[] = {
		MAKE(1, {0, 0}),                                         /* all of it a loop */
		make(1, NULL, 0),                                        /* one block */
		MAKE(3, {0, 1}, {0, 2}, {1, 2}, {2, 1}),                 /* irreducible, endless */
		MAKE(4, {0, 1}, {0, 2}, {1, 2}, {2, 1}, {1, 3}),         /* irreducible */
		make(3, NULL, 0),                                        /* nothing leads to two */
		MAKE(4, {0, 1}, {2, 3}, {3, 2}),                         /* nor to a loop */
		MAKE(5, {0, 1}, {1, 1}, {1, 2}, {2, 3}, {3, 2}, {3, 4}), /* two loops */
		MAKE(6, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 5}, {2, 5}, {3, 5}, {4, 5}),
	};
	for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
		check_classes(&graphs[i]);
		free_graph(&graphs[i]);
	}
}

static struct graph random_graph(size_t most)
{
	size_t blocks = 1 + random_below((uint32_t)most),
	       count = random_below(2 * (uint32_t)blocks + 1);
	struct pair *pairs = calloc(count + 1, sizeof *pairs);
	for (size_t i = 0; i < count; i++)
		pairs[i] = (struct pair){random_below((uint32_t)blocks),
					 random_below((uint32_t)blocks)};
	struct graph g = make(blocks, pairs, count);
	free(pairs);
	return g;
}

static void random_classes(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		struct graph g = random_graph(9);
		check_classes(&g);
		free_graph(&g);
	}
}

/* Where a jump may go anywhere, nothing is known to run equally often. */
static void missing_edges(void **state)
{
	(void)state;
	struct graph g = MAKE(3, {0, 1}, {1, 2});
	g.blocks[2].ends = GRAPH_UNRESOLVED;
	g.unresolved = 1;
	struct network n = network_of(&g);
	uint32_t *class = classes_of(&n);
	assert_true(n.incomplete);
	assert_int_not_equal(class[0], class[1]);
	assert_int_not_equal(class[1], class[2]);
	free(class);
	network_free(&n);
	free_graph(&g);
}

/* ---- systems ---- */

static void solves_systems(void **state)
{
	(void)state;
	enum { SIZE = 30 };
	double full[SIZE][SIZE] = {0}, wanted[SIZE], right[SIZE] = {0}, diagonal[SIZE], unit[SIZE];
	struct sparse_pair pairs[3 * SIZE];
	struct sparse *s;
	for (size_t i = 0; i < 3 * SIZE; i++) {
		uint32_t row = random_below(SIZE), column = random_below(SIZE);
		pairs[i] = (struct sparse_pair){row, column == row ? (row + 1) % SIZE : column};
		double value = (double)random_below(100) / 50 - 1;
		row = pairs[i].row;
		column = pairs[i].column;
		full[row][column] += value;
		full[column][row] += value;
		full[row][row] += fabs(value) + 0.1;
		full[column][column] += fabs(value) + 0.1;
	}
	for (size_t i = 0; i < SIZE; i++)
		wanted[i] = random_below(100) - 50.0;
	for (size_t i = 0; i < SIZE; i++)
		for (size_t k = 0; k < SIZE; k++)
			right[i] += full[i][k] * wanted[k];
	assert_null(sparse_open(SIZE, pairs, 3 * SIZE, &s));
	assert_non_null(s);
	sparse_clear(s);
	for (uint32_t i = 0; i < SIZE; i++)
		for (uint32_t k = 0; k <= i; k++)
			if (full[i][k])
				sparse_add(s, i, k, full[i][k]);
	sparse_factor(s);
	sparse_solve(s, right);
	for (size_t i = 0; i < SIZE; i++)
		assert_true(fabs(right[i] - wanted[i]) < 1e-8);
	double columns[SIZE];
	for (size_t i = 0; i < SIZE; i++) {
		memset(unit, 0, sizeof unit);
		unit[i] = 1;
		sparse_solve(s, unit);
		columns[i] = unit[i];
	}
	sparse_invert(s, diagonal);
	for (size_t i = 0; i < SIZE; i++)
		assert_true(fabs(diagonal[i] - columns[i]) < 1e-9);
	sparse_close(s);
}

/* ---- estimates ---- */

/* Samples of a program whose blocks ran so often: each instruction takes `cost` cycles, every fifth one
   waits for longer. */
static struct frequency_insn *sample(const struct graph *g, const double *ran, double cost)
{
	struct frequency_insn *insns = calloc(g->block_count * BLOCK_INSNS + 1, sizeof *insns);
	for (size_t i = 0; i < g->block_count * BLOCK_INSNS; i++) {
		double rate = ran[i / BLOCK_INSNS] * cost * (i % 5 == 4 ? 20 + i % 7 : 1);
		insns[i] = (struct frequency_insn){i * GRAPH_INSN, floor(rate + 0.5),
						   FREQUENCY_LOAD};
	}
	return insns;
}

static struct frequency_costs *usual; /* costs, made once for those that are not about learning */

static struct frequency_result estimate(const struct graph *g, const struct frequency_insn *insns)
{
	struct frequency_input in = {.graph = g,
				     .insns = insns,
				     .insn_count = g->block_count * BLOCK_INSNS,
				     .costs = usual};
	struct frequency_result r;
	struct err *e = frequency_estimate(&in, &r);
	assert_null(e);
	return r;
}

/* What comes in goes out, for blocks that are no entry, exit or landing pad of some kind. */
static void check_conserved(const struct graph *g, const struct frequency_result *r)
{
	double *in = calloc(g->block_count, sizeof *in), *out = calloc(g->block_count, sizeof *out);
	for (size_t i = 0; i < g->edge_count; i++) {
		in[g->edges[i].to] += r->edges[i].executions;
		out[g->edges[i].from] += r->edges[i].executions;
	}
	for (size_t i = 0; i < g->block_count; i++) {
		double ran = r->blocks[i].executions;
		assert_true(ran > 0 && isfinite(ran));
		assert_true(r->blocks[i].low <= ran && ran <= r->blocks[i].high);
		/* Who is sure says so with a narrow interval, too. */
		assert_true(r->blocks[i].confidence != FREQUENCY_HIGH ||
			    r->blocks[i].high < 1.3 * ran);
		assert_true(in[i] < ran * 1.01);
		assert_true(out[i] < ran * 1.01);
	}
	assert_true(fabs(in[g->entry] + r->entries.executions - r->blocks[g->entry].executions) <
		    0.01 * r->blocks[g->entry].executions);
	free(in);
	free(out);
}

static bool is_about(double a, double b, double part)
{
	return fabs(a - b) <= part * b;
}

/* Frequencies within a procedure are to each other as they ran. */
static void estimates_a_loop(void **state)
{
	(void)state;
	/*      0 -> 1 -> (2 | 3) -> 4 -> 1, 4 -> 5 */
	struct graph g = MAKE(6, {0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 1}, {4, 5});
	double ran[] = {1e4, 1e6, 7e5, 3e5, 1e6, 1e4};
	struct frequency_insn *insns = sample(&g, ran, 0.07);
	struct frequency_result r = estimate(&g, insns);
	check_conserved(&g, &r);
	double scale = ran[1] / r.blocks[1].executions;
	for (size_t i = 0; i < 6; i++)
		assert_true(is_about(r.blocks[i].executions * scale, ran[i], 0.1));
	for (size_t i = 0; i < g.edge_count; i++)
		if (g.edges[i].from == 1)
			assert_true(
				is_about(r.edges[i].executions * scale, ran[g.edges[i].to], 0.1));
	assert_int_equal(r.blocks[1].class, r.blocks[4].class);
	assert_int_equal(r.blocks[1].confidence, FREQUENCY_HIGH);
	frequency_free(&r);
	free(insns);
	free_graph(&g);
}

/* Code that waits for nothing costs what the CPU's width says: so executions are not only to each other as they
   are, but are numbers. */
static void executions_by_width(void **state)
{
	(void)state;
	struct graph g = MAKE(3, {0, 1}, {1, 1}, {1, 2});
	double ran[] = {1e4, 1e6, 1e4};
	for (double width = 4; width <= 8; width += 4) {
		/* `sample` counts in cycles: as many samples as executions have cycles. */
		struct frequency_insn *insns = sample(&g, ran, 1.1 / width);
		struct frequency_input in = {.graph = &g,
					     .insns = insns,
					     .insn_count = 3 * BLOCK_INSNS,
					     .cycles_per_sample = 1,
					     .width = width};
		struct frequency_result r;
		assert_null(frequency_estimate(&in, &r));
		assert_true(is_about(r.blocks[1].executions, ran[1], 0.2));
		frequency_free(&r);
		free(insns);
	}
	free_graph(&g);
}

/* A CPU that finishes four at once is interrupted between them: one of four has all their samples, and the others
   have none. Where instructions are looked at alone, few of them tell. */
static void executions_in_groups(void **state)
{
	(void)state;
	struct graph g = MAKE(4, {0, 1}, {1, 2}, {1, 1}, {2, 1}, {1, 3});
	double ran[] = {1e4, 1e6, 2e5, 1e4};
	struct frequency_insn insns[4 * BLOCK_INSNS];
	for (size_t i = 0; i < 4 * BLOCK_INSNS; i++) {
		size_t at = i % BLOCK_INSNS;
		/* Twice as long where one waits. */
		double cycles = at % 4 != 1 ? 0 : at == 1 ? 2.2 : 1.1;
		insns[i] = (struct frequency_insn){
			.address = i * GRAPH_INSN,
			.samples = floor(1e-3 * ran[i / BLOCK_INSNS] * cycles),
			.kind = FREQUENCY_PLAIN};
	}
	struct frequency_input in = {.graph = &g,
				     .insns = insns,
				     .insn_count = 4 * BLOCK_INSNS,
				     .cycles_per_sample = 1000,
				     .isa = &isa_x86_64,
				     .width = 4};
	struct frequency_result r;
	assert_null(frequency_estimate(&in, &r));
	for (size_t i = 1; i < 3; i++)
		assert_true(is_about(r.blocks[i].executions, ran[i], 0.2));
	frequency_free(&r);
	free_graph(&g);
}

/* A loop that waits for memory: one instruction has nearly all samples, and the few of the others tell how often it
   ran. (Seen in a chase through memory, of 30 million rounds.) */
static void waits_for_memory(void **state)
{
	(void)state;
	static const struct {
		uint8_t kind;
		double samples;
	} loop[] = {{FREQUENCY_LOAD, 8},  {FREQUENCY_PLAIN, 12},    {FREQUENCY_PLAIN, 0},
		    {FREQUENCY_LOAD, 6},  {FREQUENCY_PLAIN, 23063}, {FREQUENCY_PLAIN, 10},
		    {FREQUENCY_BRANCH, 0}};
	struct graph g = MAKE(3, {0, 1}, {1, 1}, {1, 2});
	double ran[] = {0, 0, 0};
	struct frequency_insn *insns = sample(&g, ran, 1);
	for (size_t i = 0; i < BLOCK_INSNS; i++) {
		insns[BLOCK_INSNS + i].kind = loop[i % 7].kind;
		insns[BLOCK_INSNS + i].samples = loop[i % 7].samples;
	}
	struct frequency_input in = {.graph = &g,
				     .insns = insns,
				     .insn_count = 3 * BLOCK_INSNS,
				     .cycles_per_sample = 512000,
				     .width = 7.7};
	struct frequency_result r;
	assert_null(frequency_estimate(&in, &r));
	assert_true(is_about(r.blocks[1].executions, 30e6, 0.4));
	frequency_free(&r);
	free(insns);
	free_graph(&g);
}

/* Blocks of one instruction that waits tell nothing: the edges that were seen do. */
static void uses_what_was_seen(void **state)
{
	(void)state;
	struct graph g = MAKE(4, {0, 1}, {0, 2}, {1, 3}, {2, 3});
	double ran[] = {1e6, 0, 0, 1e6};
	struct frequency_insn *insns = sample(&g, ran, 0.07);
	struct frequency_observation seen[] = {{g.blocks[0].last, g.blocks[1].start, 900, 900},
					       {g.blocks[0].last, g.blocks[2].start, 100, 100}};
	struct frequency_input in = {.graph = &g, .insns = insns, .insn_count = BLOCK_INSNS};
	in.observations = seen;
	in.observation_count = 2;
	struct frequency_result r;
	assert_null(frequency_estimate(&in, &r));
	assert_true(is_about(r.blocks[1].executions / r.blocks[0].executions, 0.9, 0.05));
	assert_true(is_about(r.blocks[2].executions / r.blocks[0].executions, 0.1, 0.15));
	frequency_free(&r);
	free(insns);
	free_graph(&g);
}

static void uses_anchors(void **state)
{
	(void)state;
	struct graph g = MAKE(2, {0, 1});
	double ran[] = {1e4, 1e4};
	struct frequency_insn *insns = sample(&g, ran, 0.5);
	struct frequency_anchor anchor = {g.blocks[1].start + GRAPH_INSN, 123456};
	struct frequency_input in = {.graph = &g,
				     .insns = insns,
				     .insn_count = 2 * BLOCK_INSNS,
				     .cycles_per_sample = 1000,
				     .anchors = &anchor,
				     .anchor_count = 1};
	struct frequency_result r;
	assert_null(frequency_estimate(&in, &r));
	assert_true(is_about(r.blocks[0].executions, 123456, 0.05));
	assert_true(is_about(r.entries.executions, 123456, 0.05));
	frequency_free(&r);
	free(insns);
	free_graph(&g);
}

static double runs_with_limit(const struct graph *g, struct frequency_insn *insns, double limit)
{
	struct frequency_anchor at = {g->blocks[1].start, limit};
	struct frequency_input in = {.graph = g,
				     .insns = insns,
				     .insn_count = g->block_count * BLOCK_INSNS,
				     .cycles_per_sample = 1000,
				     .limits = &at,
				     .limit_count = limit > 0};
	struct frequency_result r;
	assert_null(frequency_estimate(&in, &r));
	double runs = r.blocks[1].executions;
	frequency_free(&r);
	return runs;
}

/* A limit makes it less where it would be more, and changes nothing where it is far above. */
static void uses_limits(void **state)
{
	(void)state;
	struct graph g = MAKE(2, {0, 1});
	double ran[] = {1e4, 1e4};
	struct frequency_insn *insns = sample(&g, ran, 0.5);
	double runs = runs_with_limit(&g, insns, 0);
	assert_true(runs_with_limit(&g, insns, runs / 5) < 0.35 * runs);
	assert_true(is_about(runs_with_limit(&g, insns, runs * 10), runs, 0.01));
	free(insns);
	free_graph(&g);
}

/* No samples at all: something is said, and that it is not known. */
static void no_samples(void **state)
{
	(void)state;
	struct graph g = MAKE(4, {0, 1}, {0, 2}, {1, 3}, {2, 3});
	double ran[4] = {0};
	struct frequency_insn *insns = sample(&g, ran, 1);
	struct frequency_result r = estimate(&g, insns);
	check_conserved(&g, &r);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(r.blocks[i].confidence, FREQUENCY_LOW);
	frequency_free(&r);
	free(insns);
	free_graph(&g);
}

static void no_code(void **state)
{
	(void)state;
	struct graph g = {.entry = GRAPH_NONE};
	struct frequency_input in = {.graph = &g};
	struct frequency_result r;
	struct err *e = frequency_estimate(&in, &r);
	assert_non_null(e);
	err_free(e);
	frequency_free(&r);
}

static void random_estimates(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct graph g = random_graph(i % 10 ? 12 : 100);
		double *ran = calloc(g.block_count, sizeof *ran);
		for (size_t k = 0; k < g.block_count; k++)
			ran[k] = random_below(3) ? pow(10, random_below(6)) : 0;
		struct frequency_insn *insns = sample(&g, ran, 0.1);
		struct frequency_result r = estimate(&g, insns);
		check_conserved(&g, &r);
		frequency_free(&r);
		free(insns);
		free(ran);
		free_graph(&g);
	}
}

/* A procedure of many blocks is estimated in time that grows about as its size. */
static void many_blocks(void **state)
{
	(void)state;
	enum { BLOCKS = 3000 };
	struct pair *pairs = calloc(3 * BLOCKS, sizeof *pairs);
	size_t count = 0;
	for (uint32_t i = 0; i + 1 < BLOCKS; i++) {
		pairs[count++] = (struct pair){i, i + 1};
		if (i % 3 == 0 && i + 9 < BLOCKS)
			pairs[count++] = (struct pair){i, i + 2 + random_below(6)};
		if (i % 11 == 10)
			pairs[count++] = (struct pair){i, i - random_below(10)};
		if (i % 20 == 0) /* one way out for all */
			pairs[count++] = (struct pair){i, BLOCKS - 1};
		if (i && i % 30 == 0) /* a switch */
			pairs[count++] = (struct pair){0, i};
	}
	struct graph g = make(BLOCKS, pairs, count);
	double *ran = calloc(BLOCKS, sizeof *ran);
	for (size_t i = 0; i < BLOCKS; i++)
		ran[i] = 1000;
	struct frequency_insn *insns = sample(&g, ran, 0.1);
	struct frequency_result r = estimate(&g, insns);
	check_conserved(&g, &r);
	frequency_free(&r);
	free(insns);
	free(ran);
	free(pairs);
	free_graph(&g);
}

/* ---- kinds ---- */

static void kinds_aarch64(void **state)
{
	(void)state;
	static const struct {
		uint32_t word;
		enum frequency_kind kind;
	} cases[] = {
		{0x8b020020, FREQUENCY_PLAIN},  /* add x0, x1, x2 */
		{0x91000421, FREQUENCY_PLAIN},  /* add x1, x1, #1 */
		{0xf9400020, FREQUENCY_LOAD},   /* ldr x0, [x1] */
		{0x38401420, FREQUENCY_LOAD},   /* ldrb w0, [x1], #1 */
		{0xa9400440, FREQUENCY_LOAD},   /* ldp x0, x1, [x2] */
		{0x3dc00020, FREQUENCY_LOAD},   /* ldr q0, [x1] */
		{0x58000040, FREQUENCY_LOAD},   /* ldr x0, literal */
		{0xf9000020, FREQUENCY_STORE},  /* str x0, [x1] */
		{0xa9bf7bfd, FREQUENCY_STORE},  /* stp x29, x30, [sp, #-16]! */
		{0x3d800020, FREQUENCY_STORE},  /* str q0, [x1] */
		{0x54000040, FREQUENCY_BRANCH}, /* b.eq */
		{0xb4000040, FREQUENCY_BRANCH}, /* cbz */
		{0x14000002, FREQUENCY_JUMP},   /* b */
		{0x94000002, FREQUENCY_CALL},   /* bl */
		{0xd65f03c0, FREQUENCY_CALL},   /* ret */
		{0x1e622820, FREQUENCY_VECTOR}, /* fadd d0, d1, d2 */
		{0x4ea28420, FREQUENCY_VECTOR}, /* add v0.4s, v1.4s, v2.4s */
		{0x9b027c20, FREQUENCY_SLOW},   /* mul x0, x1, x2 */
		{0x9ac20c20, FREQUENCY_SLOW},   /* sdiv x0, x1, x2 */
		{0xc85ffc20, FREQUENCY_SLOW},   /* ldaxr x0, [x1] */
		{0xf8200041, FREQUENCY_SLOW},   /* ldadd x0, x1, [x2] */
		{0xd5033bbf, FREQUENCY_SLOW},   /* dmb ish */
		{0xd503201f, FREQUENCY_PLAIN},  /* nop */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(
			frequency_kind_of(&isa_aarch64, (const uint8_t *)&cases[i].word, 4),
			cases[i].kind);
}

static void kinds_x86_64(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t size;
		enum frequency_kind kind;
	} cases[] = {
		{"\x48\x01\xd8", 3, FREQUENCY_PLAIN},        /* add %rbx, %rax */
		{"\x48\x8d\x04\x19", 4, FREQUENCY_PLAIN},    /* lea (%rcx,%rbx), %rax */
		{"\x48\x8b\x03", 3, FREQUENCY_LOAD},         /* mov (%rbx), %rax */
		{"\x48\x01\x03", 3, FREQUENCY_LOAD},         /* add %rax, (%rbx) */
		{"\x48\x89\x03", 3, FREQUENCY_STORE},        /* mov %rax, (%rbx) */
		{"\x0f\x10\x03", 3, FREQUENCY_LOAD},         /* movups (%rbx), %xmm0 */
		{"\x74\x02", 2, FREQUENCY_BRANCH},           /* je */
		{"\xeb\x02", 2, FREQUENCY_JUMP},             /* jmp */
		{"\xe8\x00\x00\x00\x00", 5, FREQUENCY_CALL}, /* call */
		{"\xc3", 1, FREQUENCY_CALL},                 /* ret */
		{"\x0f\x58\xc1", 3, FREQUENCY_VECTOR},       /* addps %xmm1, %xmm0 */
		{"\x48\xf7\xf3", 3, FREQUENCY_SLOW},         /* div %rbx */
		{"\x48\x0f\xaf\xc3", 4, FREQUENCY_SLOW},     /* imul %rbx, %rax */
		{"\xf0\x48\x01\x03", 4, FREQUENCY_SLOW},     /* lock add %rax, (%rbx) */
		{"\x90", 1, FREQUENCY_PLAIN},                /* nop */
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(frequency_kind_of(&isa_x86_64, (const uint8_t *)cases[i].bytes,
						   cases[i].size),
				 cases[i].kind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diamond),
		cmocka_unit_test(infinite_loop),
		cmocka_unit_test(special_graphs),
		cmocka_unit_test(random_classes),
		cmocka_unit_test(missing_edges),
		cmocka_unit_test(solves_systems),
		cmocka_unit_test(estimates_a_loop),
		cmocka_unit_test(uses_what_was_seen),
		cmocka_unit_test(uses_anchors),
		cmocka_unit_test(uses_limits),
		cmocka_unit_test(no_samples),
		cmocka_unit_test(no_code),
		cmocka_unit_test(random_estimates),
		cmocka_unit_test(many_blocks),
		cmocka_unit_test(kinds_aarch64),
		cmocka_unit_test(kinds_x86_64),
		cmocka_unit_test(executions_by_width),
		cmocka_unit_test(executions_in_groups),
		cmocka_unit_test(waits_for_memory),
	};
	struct err *e = frequency_learn(NULL, 0, &usual);
	int failed = e ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
	err_free(e);
	frequency_forget(usual);
	return failed;
}
