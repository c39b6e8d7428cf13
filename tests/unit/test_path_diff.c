/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of two builds of a function, made by chance: what moved is the same, and what changed does not hide the rest. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "compare/block_pairs.h"
#include "compare/path_diff.h"
#include "made_graph.h"
#include "path_walker.h"

#define BLOCKS_MAX 24u
#define GRAPHS 300u

static uint64_t state = 1;

static uint32_t by_chance(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33) % below;
}

struct made { /* a build of a function */
	struct pair pairs[BLOCKS_MAX * 4];
	size_t blocks, count;
	uint32_t lengths[BLOCKS_MAX + 1];
};

static struct made make(void)
{
	struct made m = {.blocks = 4 + by_chance(BLOCKS_MAX - 5)};
	for (uint32_t i = 0; i + 1 < m.blocks; i++) {
		m.pairs[m.count++] = (struct pair){i, i + 1};
		for (unsigned k = by_chance(3); k; k--)
			m.pairs[m.count++] = (struct pair){i, by_chance((uint32_t)m.blocks)};
	}
	for (size_t i = 0; i < m.blocks; i++)
		m.lengths[i] = 1 + by_chance(20);
	return m;
}

static struct graph graph_of(const struct made *m, uint64_t address)
{
	struct graph g = graph_make(m->blocks, m->pairs, m->count, 100);
	for (size_t i = 0; i < m->blocks; i++) {
		g.blocks[i].start += address;
		g.blocks[i].end = g.blocks[i].start + 4 * m->lengths[i];
		g.blocks[i].last = g.blocks[i].end - 4;
	}
	return g;
}

/* The same with another block on one of its ways: block `at` is new, and all behind it are one further. */
static struct made insert(const struct made *m, uint32_t *at)
{
	struct made n = *m;
	uint32_t edge = by_chance((uint32_t)m->count);
	*at = 1 + by_chance((uint32_t)m->blocks - 1);
	for (size_t i = 0; i < n.count; i++) {
		n.pairs[i].from += n.pairs[i].from >= *at;
		n.pairs[i].to += n.pairs[i].to >= *at;
	}
	n.pairs[n.count++] = (struct pair){*at, n.pairs[edge].to};
	n.pairs[edge].to = *at;
	memmove(n.lengths + *at + 1, n.lengths + *at, (n.blocks - *at) * sizeof *n.lengths);
	n.lengths[*at] = 1 + by_chance(20);
	n.blocks++;
	return n;
}

static void check_mutual(const struct block_pairs *p, const struct graph *old,
			 const struct graph *new)
{
	size_t count = 0;
	for (uint32_t i = 0; i < old->block_count; i++) {
		if (p->to_new[i] == BLOCK_ALONE)
			continue;
		assert_true(p->to_new[i] < new->block_count);
		assert_int_equal(p->to_old[p->to_new[i]], i);
		count++;
	}
	for (uint32_t i = 0; i < new->block_count; i++)
		if (p->to_old[i] != BLOCK_ALONE)
			assert_int_equal(p->to_new[p->to_old[i]], i);
	assert_int_equal(p->count, count);
}

static void test_moved(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < GRAPHS; round++) {
		struct made m = make();
		struct graph old = graph_of(&m, 0x1000), new = graph_of(&m, 0x7760);
		struct block_side x = {&old, m.lengths, NULL}, y = {&new, m.lengths, NULL};
		struct block_pairs p;
		assert_null(block_pairs_find(&x, &y, &p));
		assert_true(p.alike);
		for (uint32_t i = 0; i < old.block_count; i++)
			assert_int_equal(p.to_new[i], i);
		check_mutual(&p, &old, &new);
		assert_int_equal(block_shape(&x), block_shape(&y));
		block_pairs_free(&p);
		/* By their addresses, they have nothing in common. */
		assert_null(block_pairs_by_address(&x, &x, &p));
		assert_true(p.alike && p.count == old.block_count);
		block_pairs_free(&p);
		assert_null(block_pairs_by_address(&x, &y, &p));
		assert_true(!p.alike && !p.count);
		block_pairs_free(&p);
		graph_free(&old);
		graph_free(&new);
	}
}

/* Another block in one place: nearly all others are found, without lines. */
static void test_inserted(void **unused)
{
	(void)unused;
	size_t right = 0, all = 0;
	for (unsigned round = 0; round < GRAPHS; round++) {
		uint32_t at;
		struct made m = make(), n = insert(&m, &at);
		struct graph old = graph_of(&m, 0x1000), new = graph_of(&n, 0x2000);
		struct block_side x = {&old, m.lengths, NULL}, y = {&new, n.lengths, NULL};
		struct block_pairs p;
		assert_null(block_pairs_find(&x, &y, &p));
		assert_false(p.alike);
		check_mutual(&p, &old, &new);
		assert_int_not_equal(block_shape(&x), block_shape(&y));
		for (uint32_t i = 0; i < old.block_count; i++)
			right += p.to_new[i] == i + (i >= at);
		all += old.block_count;
		block_pairs_free(&p);
		graph_free(&old);
		graph_free(&new);
	}
	assert_true(100 * right > 97 * all);
}

static void test_strangers(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < GRAPHS; round++) {
		struct made m = make(), n = make();
		struct graph old = graph_of(&m, 0), new = graph_of(&n, 0);
		struct block_pairs p;
		assert_null(block_pairs_find(&(struct block_side){&old, m.lengths, NULL},
					     &(struct block_side){&new, n.lengths, NULL}, &p));
		check_mutual(&p, &old, &new);
		block_pairs_free(&p);
		graph_free(&old);
		graph_free(&new);
	}
}

/* ---- whole recordings ---- */

/* A function with counts of many walks. */
static void add(struct path_result *r, const char *name, const struct made *m, uint64_t address,
		unsigned calls)
{
	struct path_function f = walker_function(name, graph_of(m, address), 0);
	struct walker w = walker_open(&f, address);
	f.lengths = calloc(m->blocks + 1, sizeof *f.lengths);
	memcpy(f.lengths, m->lengths, m->blocks * sizeof *f.lengths);
	for (unsigned i = 0; i < calls; i++) {
		struct walk k = walker_call(&w);
		walker_go(&w, &k, 200);
	}
	walker_close(&w);
	assert_null(path_result_add(r, &f));
}

struct sides {
	struct path_result old, new;
	struct ranking old_ranking, new_ranking;
	struct path_diff diff;
};

static void compare(struct sides *s)
{
	const struct path_diff_options options = {.fail_above = -1};
	assert_null(ranking_make(&s->old, &s->old_ranking));
	assert_null(ranking_make(&s->new, &s->new_ranking));
	assert_null(path_diff_make(&s->old_ranking, &s->new_ranking, &options, &s->diff));
}

static void close_sides(struct sides *s)
{
	path_diff_free(&s->diff);
	ranking_free(&s->old_ranking);
	ranking_free(&s->new_ranking);
	path_result_free(&s->old);
	path_result_free(&s->new);
}

static void check_sums(const struct path_diff *d)
{
	uint64_t old = 0, new = 0, paths = 0, wanted = 0;
	for (size_t i = 0; i < d->count; i++) {
		const struct path_diff_function *f = &d->functions[i];
		size_t changed = f->fresh + f->gone + f->more + f->fewer;
		for (size_t k = 0; k < f->count; k++) {
			const struct path_diff_row *row = &f->rows[k];
			assert_true(row->old.paths + row->new.paths > 0);
			assert_int_equal(k < changed, row->old.count != row->new.count);
			old += row->old.cost;
			new += row->new.cost;
			paths += row->old.paths + row->new.paths;
		}
		wanted += (f->old ? f->old->path_count : 0) + (f->new ? f->new->path_count : 0);
	}
	assert_int_equal(old, d->old->instructions);
	assert_int_equal(new, d->new->instructions);
	assert_int_equal(paths, wanted);
}

/* Whatever is compared, each path is in one row. */
static void test_sums(void **unused)
{
	(void)unused;
	for (unsigned round = 0; round < 60; round++) {
		struct sides s = {0};
		uint32_t at;
		struct made same = make(), before = make(), after = insert(&before, &at),
			    other = make();
		add(&s.old, "same", &same, 0x1000, 50);
		add(&s.old, "changed", &before, 0x8000, 30);
		add(&s.old, "gone", &other, 0x10000, 10);
		add(&s.new, "same", &same, 0x1000, 50);
		add(&s.new, "changed", &after, 0x8800, 40);
		add(&s.new, "fresh", &other, 0x20000, 10);
		compare(&s);
		assert_int_equal(s.diff.count, 4);
		assert_int_equal(s.diff.changed, 3);
		check_sums(&s.diff);
		const struct path_diff_function *last = &s.diff.functions[3];
		assert_string_equal(last->new->name, "same");
		assert_string_equal(path_diff_function_verdict(last), "same");
		close_sides(&s);
	}
}

/* Functions without a name are known by their shape, and between two that are known. */
static void test_nameless(void **unused)
{
	(void)unused;
	struct sides s = {0};
	uint32_t at;
	struct made all[5];
	for (size_t i = 0; i < 5; i++) {
		all[i] = make();
		add(&s.old, "", &all[i], 0x10000 * (i + 1), 20);
	}
	all[2] = insert(&all[2], &at);
	for (size_t i = 0; i < 5; i++)
		add(&s.new, "", &all[i], 0x10000 * (i + 1) + 0x500, 20);
	compare(&s);
	assert_int_equal(s.diff.count, 5);
	for (size_t i = 0; i < 5; i++) {
		const struct path_diff_function *f = &s.diff.functions[i];
		assert_non_null(f->old);
		assert_non_null(f->new);
		assert_int_equal(f->old->function->address + 0x500, f->new->function->address);
		assert_int_equal(f->other_code, f->old->function->address == 0x30000);
	}
	check_sums(&s.diff);
	close_sides(&s);
}

static void add_in(struct path_result *r, const char *module, const char *name,
		   const struct made *m)
{
	add(r, name, m, 0x1000, 5);
	free(r->functions[r->count - 1].module);
	r->functions[r->count - 1].module = strdup(module);
}

/* How many functions both sides have, if each has one "f" in each of these files. */
static size_t count_matched(const char *const *old, const char *const *new, const struct made *m)
{
	struct sides s = {0};
	size_t matched = 0;
	for (; *old; old++)
		add_in(&s.old, *old, "f", m);
	for (; *new; new ++)
		add_in(&s.new, *new, "f", m);
	compare(&s);
	for (size_t i = 0; i < s.diff.count; i++)
		matched += s.diff.functions[i].old && s.diff.functions[i].new;
	close_sides(&s);
	return matched;
}

#define FILES(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_files(void **unused)
{
	(void)unused;
	struct made m = make();
	assert_int_equal(
		count_matched(FILES("/a/app", "/a/libx.so.1"), FILES("/b/app", "/b/libx.so.1"), &m),
		2);
	assert_int_equal(count_matched(FILES("/a/app", "/a/libx.so.1.2"),
				       FILES("/b/tool", "/b/libx.so.1.3"), &m),
			 2);
	assert_int_equal(count_matched(FILES("/a/app", "/a/libc.so.6"),
				       FILES("/b/libapp.so", "/b/libc.so.6"), &m),
			 2);
	assert_int_equal(
		count_matched(FILES("/a/libx.so.1", "/a/libx.so.2"), FILES("/b/libx.so.3"), &m), 0);
	assert_int_equal(count_matched(FILES("/a/one", "/a/two"), FILES("/b/three", "/b/four"), &m),
			 0);
}

static void test_nothing(void **unused)
{
	(void)unused;
	struct sides s = {0};
	compare(&s);
	assert_int_equal(s.diff.count, 0);
	close_sides(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved),     cmocka_unit_test(test_inserted),
		cmocka_unit_test(test_strangers), cmocka_unit_test(test_sums),
		cmocka_unit_test(test_nameless),  cmocka_unit_test(test_files),
		cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
