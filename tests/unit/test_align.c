/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of two builds, made by hand and at random, as one. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "base/buf.h"
#include "base/err.h"
#include "view/align.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* A tree of a few nodes: paths as "main l:12 i:find dot" (l: a loop, i: an inlined function) and their samples
   on either side. */
struct path {
	const char *names;
	uint64_t old, new;
};

struct made {
	struct scopes *scopes;
	struct tree *draft, *tree;
	uint64_t (*own)[2], (*aligned)[2];
	uint32_t *places;
};

#define NODES_MAX 4096

static uint32_t scope_named(struct scopes *scopes, const char *name)
{
	enum scope_kind kind = !strncmp(name, "l:", 2)   ? SCOPE_LOOP
			       : !strncmp(name, "i:", 2) ? SCOPE_INLINE
							 : SCOPE_FUNCTION;
	uint32_t number;
	uint64_t address = 0;
	for (const char *at = name; *at; at++)
		address = address * 131 + (unsigned char)*at;
	good(scopes_add(scopes, &(struct scope){.kind = kind, .address = address, .name = name},
			&number));
	return number;
}

static uint32_t place_path(struct made *m, const char *names)
{
	char text[1024];
	uint32_t at = 0;
	snprintf(text, sizeof text, "%s", names);
	for (char *save, *name = strtok_r(text, " ", &save); name;
	     name = strtok_r(NULL, " ", &save))
		good(tree_child(m->draft, at, scope_named(m->scopes, name), &at));
	return at;
}

static void begin(struct made *m)
{
	*m = (struct made){.own = calloc(NODES_MAX, sizeof *m->own)};
	good(scopes_new(&m->scopes));
	good(tree_new(m->scopes, 1, &m->draft));
}

static void align(struct made *m)
{
	assert_true(m->draft->count <= NODES_MAX);
	m->places = calloc(m->draft->count, sizeof *m->places);
	good(align_make(m->draft, (const uint64_t(*)[2])m->own, &m->tree, m->places));
	m->aligned = calloc(m->tree->count, sizeof *m->aligned);
	for (size_t i = 0; i < m->draft->count; i++)
		for (int s = 0; s < 2; s++)
			m->aligned[m->places[i]][s] += m->own[i][s];
}

static void end(struct made *m)
{
	tree_free(m->draft);
	tree_free(m->tree);
	scopes_free(m->scopes);
	free(m->own);
	free(m->aligned);
	free(m->places);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "main(dot[3,4] l:12(…))", in the order of names; sides exchanged: [4,3]. */
static char *draw(const struct made *m, uint32_t node, bool exchanged)
{
	const struct tree *t = m->tree;
	char *below[256];
	size_t count = 0;
	struct buf b = {0};
	buf_puts(&b, scopes_get(m->scopes, t->nodes[node].scope)->name);
	if (m->aligned[node][0] || m->aligned[node][1])
		buf_printf(&b, "[%" PRIu64 ",%" PRIu64 "]", m->aligned[node][exchanged],
			   m->aligned[node][!exchanged]);
	for (uint32_t c = t->nodes[node].child; c != TREE_NONE; c = t->nodes[c].next) {
		assert_true(c > node && count < 256);
		below[count++] = draw(m, c, exchanged);
	}
	qsort(below, count, sizeof *below, compare_texts);
	for (size_t i = 0; i < count; i++) {
		buf_puts(&b, i ? " " : "(");
		buf_puts(&b, below[i]);
		free(below[i]);
	}
	buf_puts(&b, count ? ")" : "");
	return buf_take(&b);
}

/* Both ways: exchanging the sides exchanges nothing but the numbers. */
static void expect(const struct path *paths, const char *wanted)
{
	for (int exchanged = 0; exchanged < 2; exchanged++) {
		struct made m;
		begin(&m);
		for (const struct path *p = paths; p->names; p++) {
			uint32_t node = place_path(&m, p->names);
			m.own[node][exchanged] += p->old;
			m.own[node][!exchanged] += p->new;
		}
		align(&m);
		char *got = draw(&m, 0, exchanged);
		/* The root is "(all)". */
		assert_string_equal(got + strlen("(all)"), wanted);
		free(got);
		end(&m);
	}
}

/* ---- levels that one side has ---- */

static void equal_paths_are_one(void **state)
{
	(void)state;
	expect(
		(struct path[]){
			{"main solve", 10, 12}, {"main gone", 3, 0}, {"main extra", 0, 4}, {0}},
		"(main(extra[0,4] gone[3,0] solve[10,12]))");
}

static void inserted_loop_is_passed(void **state)
{
	(void)state;
	expect((struct path[]){{"main solve dot", 10, 0},
			       {"main solve", 5, 0},
			       {"main l:12 solve dot", 0, 12},
			       {"main l:12 solve", 0, 6},
			       {"main l:12", 0, 1},
			       {0}},
	       "(main(l:12[0,1](solve[5,6](dot[10,12]))))");
}

static void several_levels_are_passed(void **state)
{
	(void)state;
	expect((struct path[]){{"main dot", 10, 0},
			       {"main read", 5, 0},
			       {"main l:12 i:solve l:14 dot", 0, 12},
			       {"main l:12 read", 0, 6},
			       {0}},
	       "(main(l:12(i:solve(l:14(dot[10,12])) read[5,6])))");
}

/* A loop around the whole, and one that is gone inside. */
static void levels_of_both_sides(void **state)
{
	(void)state;
	expect((struct path[]){{"main solve l:20 dot", 10, 0}, {"main l:5 solve dot", 0, 12}, {0}},
	       "(main(l:5(solve(l:20(dot[10,12])))))");
	/* Each side has a level of its own: the loop is put around the other. */
	expect((struct path[]){{"main l:5 dot", 10, 0}, {"main i:run dot", 0, 12}, {0}},
	       "(main(l:5(i:run(dot[10,12]))))");
	expect((struct path[]){{"main l:5 dot", 10, 0},
			       {"main l:5 add", 10, 0},
			       {"main i:run l:9 dot", 0, 12},
			       {"main i:run l:9 add", 0, 11},
			       {"main i:run", 0, 2},
			       {0}},
	       "(main(l:5(i:run[0,2](l:9(add[10,11] dot[10,12])))))");
}

static void wrapper_is_passed(void **state)
{
	(void)state;
	expect(
		(struct path[]){
			{"main solve", 90, 0}, {"main run solve", 0, 80}, {"main run", 0, 10}, {0}},
		"(main(run[0,10](solve[90,80])))");
	/* One that mostly does something else is no wrapper. */
	expect(
		(struct path[]){
			{"main alloc", 9, 0}, {"main run alloc", 0, 8}, {"main run", 0, 100}, {0}},
		"(main(alloc[9,0] run[0,100](alloc[0,8])))");
}

/* What happens to call the same is not the same. */
static void different_functions_stay_apart(void **state)
{
	(void)state;
	expect((struct path[]){{"main parse alloc", 10, 0}, {"main print alloc", 0, 12}, {0}},
	       "(main(parse(alloc[10,0]) print(alloc[0,12])))");
	expect((struct path[]){{"main i:parse alloc", 10, 0}, {"main i:print alloc", 0, 12}, {0}},
	       "(main(i:parse(alloc[10,0]) i:print(alloc[0,12])))");
}

/* The one beside is nearer than the one below a level. */
static void same_level_comes_first(void **state)
{
	(void)state;
	expect((struct path[]){{"main solve", 10, 4}, {"main l:12 solve", 0, 12}, {0}},
	       "(main(l:12(solve[0,12]) solve[10,4]))");
	expect((struct path[]){{"main solve", 10, 0},
			       {"main l:12 solve", 0, 3},
			       {"main l:20 l:21 solve", 0, 30},
			       {0}},
	       "(main(l:12(solve[10,3]) l:20(l:21(solve[0,30]))))");
}

static void recursion_is_not_passed(void **state)
{
	(void)state;
	expect((struct path[]){{"main fib fib", 10, 10},
			       {"main fib leaf", 5, 0},
			       {"main fib fib fib leaf", 0, 5},
			       {0}},
	       "(main(fib(fib[10,10](fib(leaf[0,5])) leaf[5,0])))");
	/* A loop within each call, on one side. */
	expect((struct path[]){{"main fib fib fib", 10, 0},
			       {"main fib", 1, 0},
			       {"main fib l:3 fib l:3 fib", 0, 12},
			       {"main fib l:3", 0, 1},
			       {0}},
	       "(main(fib[1,0](l:3[0,1](fib(l:3(fib[10,12]))))))");
}

/* A call at the end of a function became a jump: its frame is not there when what it called runs. */
static void calls_that_became_jumps(void **state)
{
	(void)state;
	expect((struct path[]){{"main run solve", 90, 0},
			       {"main run", 10, 9},
			       {"main solve", 0, 85},
			       {"main solve dot", 0, 5},
			       {"main run solve dot", 5, 0},
			       {0}},
	       "(main(run[10,9](solve[90,85](dot[5,5]))))");
	/* Much less is not the same call. */
	expect((struct path[]){{"main run solve", 90, 0},
			       {"main run", 10, 9},
			       {"main solve", 0, 20},
			       {"main read", 0, 71},
			       {0}},
	       "(main(read[0,71] run[10,9](solve[90,0]) solve[0,20]))");
}

static void empty_sides(void **state)
{
	(void)state;
	expect((struct path[]){{"main solve", 10, 0}, {"main l:1 solve", 3, 0}, {0}},
	       "(main(l:1(solve[3,0]) solve[10,0]))");
	expect((struct path[]){{0}}, "");
}

/* ---- at random ---- */

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)((random_state * 0x9e3779b97f4a7c15u >> 33) % limit);
}

static void grow_randomly(struct made *m, size_t count)
{
	static const char *const names[] = {"a", "b", "c", "d", "l:1", "l:2", "i:e", "i:f"};
	for (size_t i = 0; i < count; i++) {
		uint32_t at = 0;
		for (uint32_t depth = 1 + below(7); depth--;)
			good(tree_child(m->draft, at, scope_named(m->scopes, names[below(8)]),
					&at));
		uint32_t sides = 1 + below(3);
		m->own[at][0] += sides & 1 ? 1 + below(50) : 0;
		m->own[at][1] += sides & 2 ? 1 + below(50) : 0;
	}
}

/* Whether the path of a node of the draft is in that of its place: levels come in between, none goes, and
   none is exchanged. */
static bool is_contained(const struct made *m, uint32_t node)
{
	uint32_t place = m->places[node];
	while (node && place) {
		if (m->draft->nodes[node].scope == m->tree->nodes[place].scope)
			node = m->draft->nodes[node].parent;
		place = m->tree->nodes[place].parent;
	}
	return !node;
}

static void check_random(struct made *m)
{
	size_t scopes = scopes_count(m->scopes);
	int64_t(*sums)[2] = calloc(scopes, sizeof *sums);
	for (size_t i = 0; i < m->draft->count; i++) {
		assert_true(is_contained(m, (uint32_t)i));
		assert_int_equal(m->draft->nodes[i].scope, m->tree->nodes[m->places[i]].scope);
		for (int s = 0; s < 2; s++)
			sums[m->draft->nodes[i].scope][s] += (int64_t)m->own[i][s];
	}
	/* Every sample of either side is in one node, of the same scope. */
	for (size_t i = 0; i < m->tree->count; i++)
		for (int s = 0; s < 2; s++)
			sums[m->tree->nodes[i].scope][s] -= (int64_t)m->aligned[i][s];
	for (size_t i = 0; i < scopes; i++)
		for (int s = 0; s < 2; s++)
			assert_int_equal(sums[i][s], 0);
	/* No node has two children of a scope. */
	for (uint32_t i = 0; i < m->tree->count; i++)
		for (uint32_t c = m->tree->nodes[i].child; c != TREE_NONE;
		     c = m->tree->nodes[c].next)
			for (uint32_t d = m->tree->nodes[c].next; d != TREE_NONE;
			     d = m->tree->nodes[d].next)
				assert_true(m->tree->nodes[c].scope != m->tree->nodes[d].scope);
	free(sums);
}

static void samples_are_conserved(void **state)
{
	size_t joined = 0;
	(void)state;
	random_state = 0x2545f4914f6cdd1du;
	for (int round = 0; round < 3000; round++) {
		struct made m, turned;
		char *texts[2];
		begin(&m);
		begin(&turned);
		uint64_t seed = random_state;
		uint32_t count = 1 + below(40);
		grow_randomly(&m, count);
		align(&m);
		check_random(&m);
		joined += m.draft->count - m.tree->count;
		texts[0] = draw(&m, 0, false);
		random_state = seed;
		count = 1 + below(40);
		grow_randomly(&turned, count);
		for (size_t i = 0; i < turned.draft->count; i++) {
			uint64_t old = turned.own[i][0];
			turned.own[i][0] = turned.own[i][1];
			turned.own[i][1] = old;
		}
		align(&turned);
		texts[1] = draw(&turned, 0, true);
		assert_string_equal(texts[0], texts[1]);
		free(texts[0]);
		free(texts[1]);
		end(&m);
		end(&turned);
	}
	assert_true(joined > 3000); /* or nothing was tested */
}

/* Long chains and wide nodes take no longer than their number. */
static void large_trees(void **state)
{
	const uint32_t count = 100000;
	(void)state;
	for (int shape = 0; shape < 2; shape++) {
		struct scopes *scopes;
		struct tree *draft, *tree;
		uint64_t(*own)[2] = calloc(3 * count + 2, sizeof *own);
		uint32_t *places = calloc(3 * count + 2, sizeof *places);
		good(scopes_new(&scopes));
		good(tree_new(scopes, 1, &draft));
		uint32_t loop = scope_named(scopes, "l:1"), f = scope_named(scopes, "f"), old = 0,
			 new = 0;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t scope = f, node;
			if (shape) /* all beside each other, on one side in a loop */
				good(scopes_add(scopes,
						&(struct scope){.kind = SCOPE_FUNCTION,
								.address = i + 1,
								.name = "g"},
						&scope));
			good(tree_child(draft, shape ? 0 : old, scope, &node));
			old = node;
			own[node][0] = 2;
			if (!shape || !i)
				good(tree_child(draft, new, loop, &new));
			good(tree_child(draft, new, scope, &node));
			own[node][1] = 3;
			new = shape ? new : node;
		}
		good(align_make(draft, (const uint64_t(*)[2])own, &tree, places));
		if (shape)
			assert_int_equal(tree->count, count + 2);
		else
			assert_int_equal(tree->count, 2 * count + 1);
		tree_free(draft);
		tree_free(tree);
		scopes_free(scopes);
		free(own);
		free(places);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_paths_are_one),
		cmocka_unit_test(inserted_loop_is_passed),
		cmocka_unit_test(several_levels_are_passed),
		cmocka_unit_test(levels_of_both_sides),
		cmocka_unit_test(wrapper_is_passed),
		cmocka_unit_test(different_functions_stay_apart),
		cmocka_unit_test(same_level_comes_first),
		cmocka_unit_test(recursion_is_not_passed),
		cmocka_unit_test(calls_that_became_jumps),
		cmocka_unit_test(empty_sides),
		cmocka_unit_test(samples_are_conserved),
		cmocka_unit_test(large_trees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
