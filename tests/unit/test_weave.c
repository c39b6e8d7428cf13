/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "structure/weave.h"
#include "unit.h"

/* Trees are compared as text: "P(L10(A1(13)11)12)": the procedure with a loop that begins in line 10,
   in it the context 1 with line 13, and lines 11 and 12. Children in the order of their numbers. */

struct text {
	char bytes[1024];
	size_t size;
};

static void append(struct text *t, const char *word)
{
	size_t length = strlen(word);
	assert_true(t->size + length < sizeof t->bytes);
	memcpy(t->bytes + t->size, word, length + 1);
	t->size += length;
}

static void append_number(struct text *t, const char *before, uint32_t number, const char *after)
{
	char digits[16];
	snprintf(digits, sizeof digits, "%u", number);
	append(t, before);
	append(t, digits);
	append(t, after);
}

static void write_node(const struct weave *w, uint32_t n, struct text *t)
{
	const struct weave_node *node = &w->nodes[n];
	bool open = false;
	if (node->type == WEAVE_PROCEDURE)
		append(t, "P");
	else if (node->type == WEAVE_INLINE)
		append_number(t, "A", node->id, "");
	else
		append_number(t, node->type == WEAVE_LOOP ? "L" : "", node->line,
			      node->type == WEAVE_LOOP ? "" : " ");
	for (uint32_t c = 1; c < w->count; c++)
		if (w->nodes[c].parent == n) {
			append(t, open ? "" : "(");
			open = true;
			write_node(w, c, t);
		}
	append(t, open ? ")" : "");
}

static void expect_tree(const struct weave_input *in, bool normalize, const char *wanted)
{
	struct weave w;
	struct text t = {.size = 0};
	assert_true(weave_build(in, &w));
	if (normalize)
		assert_true(weave_normalize(in, &w));
	for (size_t i = 0; i < in->piece_count; i++)
		assert_true(w.of_piece[i] < w.count);
	for (uint32_t n = 1; n < w.count; n++)
		assert_true(w.nodes[n].parent < n);
	write_node(&w, 0, &t);
	assert_string_equal(t.bytes, wanted);
	weave_free(&w);
}

#define NONE WEAVE_NONE
#define COUNT(a) (sizeof a / sizeof(*(a)))

/* One piece of four bytes at each place. */
static void place(struct weave_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pieces[i].start = 4 * i;
		pieces[i].end = 4 * i + 4;
		pieces[i].file = 1;
		pieces[i].known = pieces[i].line != 0;
	}
}

static struct weave_input input_of(struct weave_piece *pieces, size_t piece_count,
				   const struct weave_context *contexts, size_t context_count,
				   const struct weave_loop *loops, size_t loop_count, bool flat)
{
	place(pieces, piece_count);
	return (struct weave_input){
		.pieces = pieces,
		.piece_count = piece_count,
		.contexts = contexts,
		.context_count = context_count,
		.loops = loops,
		.loop_count = loop_count,
		.flat = flat,
	};
}

#define INPUT(pieces, contexts, loops, flat) \
	input_of(pieces, COUNT(pieces), contexts, COUNT(contexts), loops, COUNT(loops), flat)

static const struct weave_context host_only[1];
/* 1 is inlined into the procedure by line 12, 2 into 1 by line 80. */
static const struct weave_context chain[] = {{0},
					     {.parent = 0, .call_file = 1, .call_line = 12},
					     {.parent = 1, .call_file = 1, .call_line = 80}};

static void loops_without_inlining(void **state)
{
	struct weave_piece pieces[] = {{.line = 9, .loop = NONE},
				       {.line = 11, .loop = 0},
				       {.line = 12, .loop = 1},
				       {.line = 11, .loop = 1, .control = true},
				       {.line = 10, .loop = 0, .control = true},
				       {.line = 14, .loop = NONE}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 4, .back = 16},
					   {.parent = 0, .header = 8, .back = 12}};
	struct weave_input in = INPUT(pieces, host_only, loops, false);
	(void)state;
	expect_tree(&in, false, "P(L10(L11(12 11 )11 10 )9 14 )");
}

/* A loop of the procedure whose body is inlined; a loop that is itself inlined, with its test. */
static void loops_find_their_context(void **state)
{
	struct weave_piece outer[] = {{.line = 90, .context = 1, .loop = 0},
				      {.line = 91, .context = 2, .loop = 0},
				      {.line = 11, .loop = 0, .control = true}};
	struct weave_piece inner[] = {{.line = 90, .context = 1, .loop = 0},
				      {.line = 91, .context = 2, .loop = 0, .control = true},
				      {.line = 12, .loop = NONE}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 8}};
	const struct weave_loop short_loops[] = {{.parent = NONE, .header = 0, .back = 4}};
	struct weave_input in = INPUT(outer, chain, loops, false);
	(void)state;
	expect_tree(&in, false, "P(L11(A1(90 A2(91 ))11 ))");
	in = INPUT(inner, chain, short_loops, false);
	/* Its jump back is in 2, which line 80 of 1 calls: that is where the loop is. */
	expect_tree(&in, false, "P(A1(L80(90 A2(91 )))12 )");
}

/* One instruction of the procedure among many, that decides nothing, does not pull the loop out. */
static void strangers_are_ignored(void **state)
{
	struct weave_piece pieces[60];
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 4 * 59}};
	uint32_t *contexts;
	struct weave_input in;
	(void)state;
	for (size_t i = 0; i < 60; i++)
		pieces[i] = (struct weave_piece){.line = 90, .context = 1, .loop = 0};
	pieces[59].control = true;
	pieces[7].context = 0;
	in = INPUT(pieces, chain, loops, false);
	contexts = weave_loop_contexts(&in);
	assert_non_null(contexts);
	assert_int_equal(contexts[0], 1);
	free(contexts);
	pieces[7].control = true;
	contexts = weave_loop_contexts(&in);
	assert_int_equal(contexts[0], 0);
	free(contexts);
}

/* It stays in its own function, and so out of the loop; in an outer one of that function it remains. */
static void strangers_keep_their_function(void **state)
{
	struct weave_piece pieces[62];
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 4 * 61},
					   {.parent = 0, .header = 0, .back = 4 * 59}};
	struct weave_input in;
	(void)state;
	for (size_t i = 0; i < 60; i++)
		pieces[i] = (struct weave_piece){.line = 90, .context = 2, .loop = 1};
	pieces[7].context = 1;
	pieces[7].line = 81;
	pieces[8].context = 0;
	pieces[8].line = 0;
	pieces[59].control = true;
	pieces[60] = (struct weave_piece){.line = 15, .loop = 0};
	pieces[61] = (struct weave_piece){.line = 14, .loop = 0, .control = true};
	in = INPUT(pieces, chain, loops, false);
	expect_tree(&in, true, "P(L14(A1(A2(L90(90 ))81 )15 14 ))");
}

/* The literature's example: the jump back is inlined code, a later statement is the procedure's own,
   so the loop is, too. */
static void a_wrong_guess_is_corrected(void **state)
{
	struct weave_piece pieces[] = {{.line = 82, .context = 1, .loop = NONE},
				       {.line = 158, .loop = 0},
				       {.line = 83, .context = 1, .loop = 0, .control = true}};
	struct weave_piece alien[] = {{.line = 82, .context = 1, .loop = NONE},
				      {.line = 84, .context = 1, .loop = 0},
				      {.line = 83, .context = 1, .loop = 0, .control = true}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 4, .back = 8}};
	struct weave_input in = INPUT(pieces, chain, loops, true);
	(void)state;
	expect_tree(&in, false, "P(L158(158 A1(83 ))A1(82 ))");
	in = INPUT(alien, chain, loops, true);
	expect_tree(&in, false, "P(A1(L83(84 83 )82 ))");
}

/* What is inlined by what is not known: contexts nest only where loops are between them. */
static void flat_contexts_do_not_nest(void **state)
{
	struct weave_piece pieces[] = {{.line = 20, .context = 1, .loop = 0},
				       {.line = 30, .context = 2, .loop = 0},
				       {.line = 21, .context = 1, .loop = 0, .control = true},
				       {.line = 30, .context = 2, .loop = NONE}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 8}};
	struct weave_input in = INPUT(pieces, chain, loops, true);
	(void)state;
	expect_tree(&in, false, "P(A1(L20(20 A2(30 )21 ))A2(30 ))");
}

static void do_while_begins_with_its_body(void **state)
{
	struct weave_piece pieces[] = {{.line = 10, .loop = 0},
				       {.line = 11, .loop = 0},
				       {.line = 12, .loop = 0, .control = true}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 8}};
	struct weave_input in = INPUT(pieces, host_only, loops, false);
	(void)state;
	expect_tree(&in, false, "P(L10(10 11 12 ))");
}

static void copies_of_a_loop_become_one(void **state)
{
	struct weave_piece pieces[] = {{.line = 11, .loop = 0},
				       {.line = 10, .loop = 0, .control = true},
				       {.line = 12, .loop = NONE},
				       {.line = 11, .loop = 1},
				       {.line = 10, .loop = 1, .control = true},
				       {.line = 13, .loop = NONE}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 4},
					   {.parent = NONE, .header = 12, .back = 16}};
	struct weave_input in = INPUT(pieces, host_only, loops, false);
	(void)state;
	expect_tree(&in, false, "P(L10(11 10 )L10(11 10 )12 13 )");
	expect_tree(&in, true, "P(L10(11 10 )12 13 )");
}

/* By the line map alone: nests that share a statement, and at last their inner loops. */
static void split_nests_are_fused(void **state)
{
	struct weave_piece pieces[] = {{.line = 11, .loop = 0},
				       {.line = 12, .loop = 1},
				       {.line = 11, .loop = 1, .control = true},
				       {.line = 10, .loop = 0, .control = true},
				       {.line = 13, .loop = 3},
				       {.line = 12, .loop = 3},
				       {.line = 12, .loop = 3, .control = true},
				       {.line = 10, .loop = 2, .control = true}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 0, .back = 12},
					   {.parent = 0, .header = 4, .back = 8},
					   {.parent = NONE, .header = 16, .back = 28},
					   {.parent = 2, .header = 16, .back = 24}};
	struct weave_input in = INPUT(pieces, host_only, loops, true);
	(void)state;
	expect_tree(&in, true, "P(L10(L11(12 11 13 )10 ))");
}

static void hoisted_statements_go_back(void **state)
{
	struct weave_piece pieces[] = {{.line = 11, .loop = NONE},
				       {.line = 5, .loop = NONE},
				       {.line = 11, .loop = 0},
				       {.line = 5, .loop = 0},
				       {.line = 10, .loop = 0, .control = true}};
	const struct weave_loop loops[] = {{.parent = NONE, .header = 8, .back = 16}};
	struct weave_input in = INPUT(pieces, host_only, loops, true);
	(void)state;
	/* Line 5 is before the loop: it was moved in, not out. */
	expect_tree(&in, true, "P(L10(11 5 10 )5 )");
	in.flat = false;
	expect_tree(&in, true, "P(L10(11 5 10 )11 5 )");
}

static void wrong_input_is_refused(void **state)
{
	struct weave_piece pieces[] = {{.line = 1, .loop = 7}};
	const struct weave_loop loops[] = {{.parent = 0}};
	struct weave_input in = INPUT(pieces, host_only, loops, false);
	struct weave w;
	(void)state;
	assert_false(weave_build(&in, &w)); /* a loop around itself */
	in.loop_count = 0;
	assert_false(weave_build(&in, &w)); /* a loop that is not there */
	pieces[0].loop = NONE;
	pieces[0].context = 1;
	assert_false(weave_build(&in, &w));
	in.context_count = 0;
	assert_false(weave_build(&in, &w));
}

/* Ten thousand loops, one in the other, in the time of a few. */
static void deep_nests_are_quick(void **state)
{
	enum { DEPTH = 10000 };
	struct weave_piece *pieces = calloc(DEPTH, sizeof *pieces);
	struct weave_loop *loops = calloc(DEPTH, sizeof *loops);
	struct weave_input in;
	struct weave w;
	(void)state;
	assert_true(pieces && loops);
	for (uint32_t i = 0; i < DEPTH; i++) {
		pieces[i] = (struct weave_piece){.line = 10 + i, .loop = i, .control = true};
		loops[i] = (struct weave_loop){
			.parent = i ? i - 1 : NONE, .header = 4 * i, .back = 4 * i};
	}
	for (int flat = 0; flat < 2; flat++) {
		in = input_of(pieces, DEPTH, host_only, 1, loops, DEPTH, flat);
		assert_true(weave_build(&in, &w));
		assert_true(weave_normalize(&in, &w));
		assert_int_equal(w.count, 2 * DEPTH + 1);
		weave_free(&w);
	}
	free(pieces);
	free(loops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_without_inlining),
		cmocka_unit_test(loops_find_their_context),
		cmocka_unit_test(strangers_are_ignored),
		cmocka_unit_test(strangers_keep_their_function),
		cmocka_unit_test(a_wrong_guess_is_corrected),
		cmocka_unit_test(flat_contexts_do_not_nest),
		cmocka_unit_test(do_while_begins_with_its_body),
		cmocka_unit_test(copies_of_a_loop_become_one),
		cmocka_unit_test(split_nests_are_fused),
		cmocka_unit_test(hoisted_statements_go_back),
		cmocka_unit_test(wrong_input_is_refused),
		cmocka_unit_test(deep_nests_are_quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
