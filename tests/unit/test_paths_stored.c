/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of paths in a profile: what is read is what was written; what is damaged is left out; equal functions add up. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "made_graph.h"
#include "path_walker.h"
#include "paths/graph_bytes.h"
#include "paths/show.h"
#include "paths/spots.h"
#include "paths/stored.h"
#include "profile/format.h"
#include "profile/profile.h"

#define BLOCKS_MAX 30u

static uint64_t state;

static uint32_t by_chance(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct profile *new_profile(void)
{
	struct profile *p;
	good(profile_new(&p));
	p->complete = true;
	return p;
}

/* ---- functions ---- */

static struct graph graph_by_chance(void)
{
	struct pair pairs[BLOCKS_MAX * 4];
	size_t blocks = 2 + by_chance(BLOCKS_MAX - 2), count = 0;
	for (uint32_t i = 0; i + 1 < blocks; i++) {
		pairs[count++] = (struct pair){i, i + 1};
		for (unsigned k = by_chance(3); k; k--)
			pairs[count++] = (struct pair){i, by_chance((uint32_t)blocks)};
	}
	struct graph g = graph_make(blocks, pairs, count, 16);
	for (size_t i = 0; i < g.edge_count; i++)
		if (!by_chance(8) && g.edges[i].to != g.edges[i].from + 1)
			g.edges[i].kind = EDGE_LANDING;
	for (size_t i = 0; i < blocks; i++) {
		g.blocks[i].start += UINT64_C(0x7fff00000000);
		g.blocks[i].end += UINT64_C(0x7fff00000000) - by_chance(3);
		g.blocks[i].last += UINT64_C(0x7fff00000000);
		g.blocks[i].landing = by_chance(2);
		g.blocks[i].again = !by_chance(10);
		if (!by_chance(8))
			g.blocks[i].ends = GRAPH_STOPS;
	}
	return g;
}

static struct path_function function_by_chance(uint64_t address)
{
	static const uint64_t mosts[] = {1, 2, 7, 100, 0};
	struct path_function f = walker_function(by_chance(9) ? "f" : "", graph_by_chance(),
						 mosts[by_chance(5)]);
	struct walker w = walker_open(&f, state);
	for (unsigned k = by_chance(30); k; k--) {
		struct walk walk = walker_call(&w);
		walker_go(&w, &walk, by_chance(4) ? 400 : by_chance(20));
	}
	walker_close(&w);
	f.address = address;
	f.unknown = by_chance(3);
	f.build_id = strdup("0123456789abcdef");
	return f;
}

static struct path_function refused(const char *name, uint64_t address)
{
	return (struct path_function){.name = strdup(name),
				      .module = strdup("/nowhere/lib.so"),
				      .address = address,
				      .state = PATH_REFUSED,
				      .reason = "a jump that is \"not\" known"};
}

/* Samples at places that need not be where a path comes by. */
static void sample_by_chance(struct path_function *f, uint32_t metrics)
{
	struct path_spots spots = {0};
	for (unsigned k = metrics ? by_chance(40) : 0; k; k--) {
		struct path_spot spot = {.block = by_chance(BLOCKS_MAX)};
		if (by_chance(3))
			spot = (struct path_spot){by_chance((uint32_t)f->numbering.path_count),
						  1 + by_chance(9), 0};
		f->numbering.graph = &f->graph;
		assert_true(path_spots_add(&spots, &spot, by_chance(metrics), 1000));
	}
	good(path_spots_give(&spots, metrics, f));
	path_spots_free(&spots);
}

/* Functions at addresses of their own, ascending. */
static struct path_result result_by_chance(void)
{
	struct path_result r = {.forks = by_chance(3)};
	uint32_t metrics = by_chance(3);
	for (uint32_t i = 0; i < metrics; i++)
		assert_int_equal(path_result_metric(&r, i ? "misses" : "cpu-clock", i ? "" : "ns"),
				 i);
	for (uint64_t i = 1 + by_chance(6); i; i--) {
		struct path_function f = by_chance(5) ? function_by_chance(i << 40)
						      : refused("g", i);
		if (f.state == PATH_EXACT)
			sample_by_chance(&f, metrics);
		good(path_result_add(&r, &f));
	}
	path_result_join(&r);
	return r;
}

/* ---- out again ---- */

static struct profile *pack_and_parse(struct profile *p)
{
	struct buf bytes = {0};
	struct profile *again;
	char *damage;
	good(profile_pack(p, &bytes));
	good(profile_parse(bytes.data, bytes.size, &again, &damage));
	assert_null(damage);
	buf_free(&bytes);
	profile_free(p);
	return again;
}

static struct profile *store(const struct path_result *r)
{
	struct profile *p = new_profile();
	good(path_result_store(r, p));
	return pack_and_parse(p);
}

static void same_numbering(const struct numbering *x, const struct numbering *y)
{
	struct numbering_path a = {0}, b = {0};
	assert_int_equal(x->path_count, y->path_count);
	assert_int_equal(x->start_count, y->start_count);
	for (size_t i = 0; i < x->start_count; i++) {
		assert_int_equal(x->starts[i].block, y->starts[i].block);
		assert_int_equal(x->starts[i].first, y->starts[i].first);
	}
	for (size_t i = 0; i < x->graph->edge_count; i++)
		assert_true(x->edges[i].cut == y->edges[i].cut &&
			    x->edges[i].thrown == y->edges[i].thrown);
	for (uint64_t i = 0; i < x->path_count; i++) {
		good(numbering_decode(x, i, &a));
		good(numbering_decode(y, i, &b));
		assert_int_equal(a.count, b.count);
		assert_int_equal(a.edge, b.edge);
		assert_memory_equal(a.blocks, b.blocks, a.count * sizeof *a.blocks);
	}
	numbering_path_free(&a);
	numbering_path_free(&b);
}

static void same_function(const struct path_function *x, const struct path_function *y)
{
	assert_string_equal(x->name, y->name);
	assert_string_equal(x->module, y->module);
	assert_string_equal(x->build_id ? x->build_id : "", y->build_id);
	assert_true(x->address == y->address && x->state == y->state);
	if (x->state == PATH_REFUSED) {
		assert_string_equal(x->reason, y->reason);
		return;
	}
	assert_true(x->entries == y->entries && x->unknown == y->unknown);
	assert_int_equal(x->graph.block_count, y->graph.block_count);
	for (size_t i = 0; i < x->graph.block_count; i++) {
		const struct graph_block *a = &x->graph.blocks[i], *b = &y->graph.blocks[i];
		assert_true(a->start == b->start && a->end == b->end && a->last == b->last);
		assert_true(a->count == b->count && (!a->count || a->first == b->first));
		assert_true(a->ends == b->ends && a->landing == b->landing && a->again == b->again);
		assert_int_equal(y->lengths[i], 4);
	}
	same_numbering(&x->numbering, &y->numbering);
	assert_memory_equal(x->counts, y->counts, x->numbering.path_count * sizeof *x->counts);
}

/* `times`: how often the second has what the first has. */
static void same_samples(const struct path_function *x, const struct path_function *y,
			 uint64_t times)
{
	for (size_t i = 0; i < PATH_METRICS_MAX; i++) {
		const struct path_metered *a = path_function_metered(x, i),
					  *b = path_function_metered(y, i);
		assert_true(!a == !b);
		if (!a)
			continue;
		assert_true(b->samples == times * a->samples && b->placed == times * a->placed &&
			    b->sure == times * a->sure && b->value == times * a->value);
		for (uint64_t k = 0; k < x->numbering.path_count; k++) {
			assert_int_equal(b->paths[k].value, times * a->paths[k].value);
			assert_int_equal(b->paths[k].sure, times * a->paths[k].sure);
		}
	}
}

static char *text_of(const struct path_result *r)
{
	struct buf out = {0};
	struct path_show show = {.name = "culprit: ", .notes = ""};
	good(path_show_text(r, &show, &out));
	struct json j = json_to_buf(&out);
	json_begin_object(&j);
	good(path_show_json(r, &show, &j));
	json_end_object(&j);
	return buf_take(&out);
}

static void forget_metrics(struct path_result *r)
{
	for (; r->metric_count; r->metric_count--) {
		free(r->metrics[r->metric_count - 1].name);
		free(r->metrics[r->metric_count - 1].unit);
	}
}

static void what_is_read_is_what_was_written(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 400; round++) {
		state = round;
		struct path_result r = result_by_chance(), again;
		struct profile *p = store(&r);
		size_t left_out;
		good(path_result_restore(p, &again, &left_out));
		assert_int_equal(left_out, 0);
		assert_int_equal(again.count, r.count);
		assert_int_equal(again.forks, r.forks);
		for (size_t i = 0; i < r.count; i++) {
			same_function(&r.functions[i], &again.functions[i]);
			same_samples(&r.functions[i], &again.functions[i], 1);
		}
		for (size_t i = 0; i < again.metric_count; i++)
			assert_string_equal(again.metrics[i].name, r.metrics[i].name);
		if (!again.metric_count) /* nothing was sampled */
			forget_metrics(&r);
		char *before = text_of(&r), *after = text_of(&again);
		assert_string_equal(before, after);
		free(before);
		free(after);
		path_result_free(&r);
		path_result_free(&again);
		profile_free(p);
	}
}

/* Two profiles of the same functions as one have twice the counts. */
static void equal_functions_add_up(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 50; round++) {
		state = round;
		struct path_result r = result_by_chance(), again;
		struct profile *p = store(&r), *q = store(&r);
		size_t left_out;
		good(profile_merge(p, q));
		p = pack_and_parse(p);
		good(path_result_restore(p, &again, &left_out));
		assert_int_equal(again.count, r.count);
		assert_int_equal(again.forks, 2 * r.forks);
		for (size_t i = 0; i < r.count; i++) {
			const struct path_function *x = &r.functions[i], *y = &again.functions[i];
			assert_true(y->entries == 2 * x->entries && y->unknown == 2 * x->unknown);
			for (uint64_t k = 0; x->counts && k < x->numbering.path_count; k++)
				assert_int_equal(y->counts[k], 2 * x->counts[k]);
			same_samples(x, y, 2);
		}
		path_result_free(&r);
		path_result_free(&again);
		profile_free(p);
		profile_free(q);
	}
}

/* Paths that were taken in only one of them. */
static void different_paths_of_one_function(void **unused)
{
	(void)unused;
	struct profile *p = new_profile();
	uint32_t module;
	uint8_t graph[] = {1};
	struct profile_path first[] = {{1, 10}, {5, 20}}, second[] = {{0, 1}, {5, 2}, {9, 3}};
	struct profile_counted f = {
		.name = "f", .reason = "", .graph = graph, .graph_size = 1, .entries = 30};
	good(profile_add_module(
		p,
		&(struct profile_module){
			.kind = PROFILE_FILE, .path = "/a", .build_id = "", .problem = ""},
		&module));
	f.module = module;
	f.paths = first;
	f.path_count = 2;
	good(profile_count_paths(p, &f));
	f.paths = second;
	f.path_count = 3;
	good(profile_count_paths(p, &f));
	graph[0] = 2; /* another one */
	good(profile_count_paths(p, &f));
	good(profile_settle(p));
	assert_int_equal(p->counted_count, 2);
	assert_int_equal(p->counted[0].entries, 60);
	assert_int_equal(p->counted[0].path_count, 4);
	const uint64_t wanted[][2] = {{0, 1}, {1, 10}, {5, 22}, {9, 3}};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(p->counted[0].paths[i].number, wanted[i][0]);
		assert_int_equal(p->counted[0].paths[i].count, wanted[i][1]);
	}
	f.module = 7;
	struct err *e = profile_count_paths(p, &f);
	assert_non_null(e);
	err_free(e);
	f.module = module;
	second[1].number = 0; /* twice */
	e = profile_count_paths(p, &f);
	assert_non_null(e);
	err_free(e);
	profile_free(p);
}

/* ---- damage ---- */

/* Whatever is there can be told without harm. */
static void use(const struct path_result *r)
{
	for (size_t i = 0; i < r->count; i++)
		for (size_t k = 0; k < r->functions[i].graph.block_count; k++)
			assert_true(r->functions[i].graph.blocks[k].start <
				    r->functions[i].graph.blocks[k].end);
	free(text_of(r));
}

static size_t count_bad(struct profile *p)
{
	struct path_result r;
	size_t left_out;
	good(path_result_restore(p, &r, &left_out));
	use(&r);
	path_result_free(&r);
	return left_out;
}

static void graphs_may_be_damaged(void **unused)
{
	(void)unused;
	unsigned refused_ones = 0;
	for (unsigned round = 0; round < 4000; round++) {
		state = round;
		struct path_result r = {0};
		struct path_function f = function_by_chance(0x10);
		good(path_result_add(&r, &f));
		struct profile *p = store(&r);
		struct profile_counted *c = &p->counted[0];
		for (unsigned k = 1 + by_chance(3); k; k--)
			c->graph[by_chance((uint32_t)c->graph_size)] ^= (uint8_t)(1 +
										  by_chance(255));
		if (!by_chance(3))
			c->graph_size = by_chance((uint32_t)c->graph_size);
		refused_ones += count_bad(p) > 0;
		path_result_free(&r);
		profile_free(p);
	}
	assert_true(refused_ones > 2000);
}

/* A function with this graph, and one path. False: it is left out. */
static bool is_read(const uint8_t *graph, size_t size, uint64_t number)
{
	struct profile *p = new_profile();
	uint8_t copy[64];
	memcpy(copy, graph, size);
	good(profile_count_paths(
		p, &(struct profile_counted){.name = "f",
					     .reason = "",
					     .graph = copy,
					     .graph_size = size,
					     .paths = (struct profile_path[]){{number, 1}},
					     .path_count = 1}));
	bool good = !count_bad(p);
	profile_free(p);
	return good;
}

/* Each mistake by itself. The graph: two blocks of 4 bytes, with an edge on and an edge back. */
static void mistakes_of_graphs(void **unused)
{
	(void)unused;
	enum {
		ENTRY = 1,
		SIZE = 4,
		LAST = 6,
		ENDS = 10,
		FLAGS = 12,
		COUNT = 14,
		TO = 16,
		KIND = 18,
		STARTS = 20,
		START = 21
	};
	static const uint8_t right[] = {2,
					0,
					16,
					0,
					4,
					4,
					4,
					4,
					1,
					1,
					GRAPH_BRANCHES,
					GRAPH_BRANCHES,
					0,
					0,
					1,
					1,
					2,
					1,
					EDGE_JUMP,
					4 | EDGE_JUMP,
					1,
					0};
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {{0, 0},      {0, 100},      {ENTRY, 2},
		     {ENTRY, 1},  {SIZE, 0},     {LAST, 0},
		     {LAST, 5},   {ENDS, 10},    {FLAGS, 4},
		     {COUNT, 9},  {COUNT, 2},    {TO, 1},
		     {TO, 4},     {KIND + 1, 8}, {STARTS, 0},
		     {STARTS, 2}, {START, 1},    {KIND + 1, EDGE_JUMP} /* a circle */};
	assert_true(is_read(right, sizeof right, 0));
	assert_true(is_read(right, sizeof right, 2));
	assert_false(is_read(right, sizeof right, 3));
	assert_false(is_read(right, sizeof right, UINT64_MAX));
	for (size_t size = 1; size < sizeof right; size++)
		assert_false(is_read(right, size, 0));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		uint8_t graph[sizeof right];
		memcpy(graph, right, sizeof graph);
		graph[wrong[i].at] = wrong[i].value;
		if (is_read(graph, sizeof graph, 0))
			fail_msg("byte %zu = %u", wrong[i].at, wrong[i].value);
	}
}

#define FORKS 40u

/* Each way has two ways behind it. */
static void too_many_paths(void **unused)
{
	(void)unused;
	struct pair pairs[4 * FORKS];
	uint32_t lengths[3 * FORKS + 1] = {0};
	size_t count = 0;
	for (uint32_t i = 0; i < 3 * FORKS; i += 3)
		for (uint32_t k = 1; k < 3; k++) {
			pairs[count++] = (struct pair){i, i + k};
			pairs[count++] = (struct pair){i + k, i + 3};
		}
	struct path_function f = {.graph = graph_make(3 * FORKS + 1, pairs, count, 16)},
			     again = {0};
	struct buf bytes = {0};
	good(numbering_make(&(struct numbering_input){.graph = &f.graph, .most = 1000},
			    &f.numbering));
	graph_bytes_put(&f, lengths, &bytes);
	good(graph_bytes_read((uint8_t *)bytes.data, bytes.size, &again));
	path_function_free(&again);
	for (size_t i = 0; i < f.graph.edge_count; i++)
		f.numbering.edges[i].cut = false;
	buf_clear(&bytes);
	graph_bytes_put(&f, lengths, &bytes);
	struct err *e = graph_bytes_read((uint8_t *)bytes.data, bytes.size, &again);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "too many paths"));
	err_free(e);
	path_function_free(&again);
	path_function_free(&f);
	buf_free(&bytes);
}

/* ---- sections ---- */

static void add_section(struct buf *file, uint32_t type, const void *bytes, size_t size)
{
	struct format_section s = {type, 0, size, size, format_checksum(bytes, size)};
	uint8_t header[FORMAT_SECTION_SIZE];
	format_put_section(header, &s);
	buf_append(file, header, sizeof header);
	buf_append(file, bytes, size);
}

/* What is said of a file with this section, and an intact one after it. */
static char *damage_of(const void *bytes, size_t size, size_t *functions)
{
	static const uint8_t modules[] = {1, 1, PROFILE_FILE, 2, '/', 'a', 0, 0, 0};
	static const uint8_t intact[] = {1, 1, 0x20, 1, 'g', 2, 'n', 'o', 0, 0, 0, 0};
	static const uint8_t end[] = {3, 2, FORMAT_MODULES, 1, FORMAT_PATHS, 2};
	struct buf file = {0};
	uint8_t header[FORMAT_HEADER_SIZE];
	struct profile *p;
	char *damage;
	format_put_header(header);
	buf_append(&file, header, sizeof header);
	add_section(&file, FORMAT_MODULES, modules, sizeof modules);
	add_section(&file, FORMAT_PATHS, bytes, size);
	add_section(&file, FORMAT_PATHS, intact, sizeof intact);
	add_section(&file, FORMAT_END, end, sizeof end);
	good(profile_parse(file.data, file.size, &p, &damage));
	*functions = p->counted_count;
	count_bad(p);
	profile_free(p);
	buf_free(&file);
	return damage ? damage : strdup("");
}

static void sections_may_be_wrong(void **unused)
{
	(void)unused;
	/* One function, of module 1: address, name, reason, calls, unknown, graph, two paths. */
	static const uint8_t right[] = {1, 1, 0x10, 1, 'f', 0, 5, 0, 2, 9, 9, 2, 3, 4, 5, 6};
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {{0, 2}, {5, 1}, {8, 0}, {8, 100}, {11, 9}, {13, 0}, {14, 0}, {15, 0x80}};
	size_t functions;
	char *damage = damage_of(right, sizeof right, &functions);
	assert_string_equal(damage, "");
	assert_int_equal(functions, 2);
	free(damage);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		uint8_t bytes[sizeof right];
		memcpy(bytes, right, sizeof bytes);
		bytes[wrong[i].at] = wrong[i].value;
		damage = damage_of(bytes, sizeof bytes, &functions);
		if (!strstr(damage, "functions with paths: malformed"))
			fail_msg("byte %zu = %u: %s", wrong[i].at, wrong[i].value, damage);
		free(damage);
	}
	for (size_t size = 1; size < sizeof right; size++) {
		damage = damage_of(right, size, &functions);
		assert_non_null(strstr(damage, "1 of 2 functions with paths left out"));
		assert_int_equal(functions, 1);
		free(damage);
	}
}

/* Its functions are of something that is called (lost). */
static void modules_may_be_missing(void **unused)
{
	(void)unused;
	static const uint8_t bytes[] = {1, 7, 0x20, 1, 'g', 2, 'n', 'o', 0, 0, 0, 0};
	size_t functions;
	char *damage = damage_of(bytes, sizeof bytes, &functions);
	assert_non_null(strstr(damage, "1 shown as (lost)"));
	assert_int_equal(functions, 2);
	free(damage);
}

/* A profile is foreign: what would steer a terminal is not passed on. */
static void text_is_harmless(void **unused)
{
	(void)unused;
	struct path_result r = {0}, again;
	struct path_function f = refused("evil\x1b[2J", 1), g = refused("g", 2);
	size_t left_out;
	f.reason = "odd\x1b]0;title\a";
	free(g.module);
	g.module = strdup("/tmp/\x1b[31m");
	good(path_result_add(&r, &f));
	good(path_result_add(&r, &g));
	struct profile *p = store(&r);
	good(path_result_restore(p, &again, &left_out));
	assert_int_equal(again.count, 2);
	char *text = text_of(&again);
	assert_null(strchr(text, '\x1b'));
	assert_null(strchr(text, '\a'));
	free(text);
	path_result_free(&r);
	path_result_free(&again);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_is_what_was_written),
		cmocka_unit_test(equal_functions_add_up),
		cmocka_unit_test(different_paths_of_one_function),
		cmocka_unit_test(graphs_may_be_damaged),
		cmocka_unit_test(mistakes_of_graphs),
		cmocka_unit_test(too_many_paths),
		cmocka_unit_test(sections_may_be_wrong),
		cmocka_unit_test(modules_may_be_missing),
		cmocka_unit_test(text_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
