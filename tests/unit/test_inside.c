/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and lines of functions, in builds made by hand: which are the same. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/scopes.h"
#include "base/err.h"
#include "compare/inside.h"
#include "structure/structure.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* A procedure: each scope by its depth in the tree, its type and lines. */
struct line {
	int depth;
	uint8_t type;
	const char *name; /* of inlined functions */
	uint32_t first, last;
};
#define LOOP(depth, first, last)                         \
	{                                                \
		depth, STRUCTURE_LOOP, NULL, first, last \
	}
#define LINE(depth, line)                               \
	{                                               \
		depth, STRUCTURE_LINE, NULL, line, line \
	}
#define INLINE(depth, name, line)                         \
	{                                                 \
		depth, STRUCTURE_INLINE, name, line, line \
	}

#define SCOPES 32

struct build {
	struct structure_scope scopes[SCOPES];
	struct structure_procedure p;
	int first_line;
	bool placed; /* it has lines */
};

static void make_build(struct build *b, int first_line, bool placed, const struct line *lines)
{
	uint32_t parents[8] = {0};
	*b = (struct build){.first_line = first_line, .placed = placed};
	b->scopes[0] = (struct structure_scope){.type = STRUCTURE_PROCEDURE, .name = "f"};
	b->p = (struct structure_procedure){.scopes = b->scopes, .scope_count = 1, .start = 0x1000};
	for (; lines->depth; lines++) {
		uint32_t i = (uint32_t)b->p.scope_count++;
		assert_true(i < SCOPES && lines->depth < 8);
		bool inlined = lines->type == STRUCTURE_INLINE;
		b->scopes[i] = (struct structure_scope){
			.type = lines->type,
			.parent = parents[lines->depth - 1],
			.name = lines->name,
			.file = placed && !inlined ? "f.c" : NULL,
			.line = placed && !inlined ? lines->first : 0,
			.last_line = placed && !inlined ? lines->last : 0,
			.call_file = placed && inlined ? "f.c" : NULL,
			.call_line = placed && inlined ? lines->first : 0,
			.header = 0x1000 + 16 * (uint64_t)lines->first,
		};
		parents[lines->depth] = i;
	}
}

/* Adds a loop or line of a build; its number. */
static uint32_t add(struct inside *in, const struct build *b, uint32_t module, uint32_t at)
{
	const struct structure_scope *x = &b->scopes[at];
	bool loop = x->type == STRUCTURE_LOOP;
	struct answer answer = {.procedure = &b->p, .scope = at, .count = 1};
	struct inside_where where = {
		.function = 7,
		.module = module,
		.last_run = module,
		.first_file = b->placed ? "f.c" : NULL,
		.first_line = b->placed ? b->first_line : 0,
		.answer = &answer,
	};
	struct scope s = {.kind = loop ? SCOPE_LOOP : SCOPE_LINE,
			  .module = module,
			  .address = x->header,
			  .file = x->file,
			  .line = (int)x->line,
			  .last_line = (int)x->last_line};
	uint32_t number;
	if (loop)
		good(inside_add_loop(in, &s, &where, &number));
	else
		good(inside_add_line(in, &s, 0, &where, &number));
	return number;
}

/* The line of the other build that is the same as each of `type`, or 0: as text. */
static void describe(const struct build *old, const struct build *new, uint8_t type, bool turned,
		     char *text, size_t size)
{
	struct inside in = {0};
	uint32_t numbers[2][SCOPES] = {{0}};
	const struct build *builds[2] = {old, new};
	size_t used = 0;
	for (int b = 0; b < 2; b++)
		for (uint32_t i = 1; i < builds[b]->p.scope_count; i++)
			if (builds[b]->scopes[i].type == type)
				numbers[b][i] = add(&in, builds[b],
						    (uint32_t)(turned ? 2 - b : 1 + b), i);
	good(inside_match(&in));
	const struct pieces *pieces = type == STRUCTURE_LOOP ? &in.loops : &in.lines;
	*text = 0;
	for (uint32_t i = 1; i < old->p.scope_count; i++) {
		uint64_t found = 0;
		if (old->scopes[i].type != type)
			continue;
		for (uint32_t j = 1; j < new->p.scope_count; j++)
			if (new->scopes[j].type == type &&
			    pieces->all[numbers[0][i]].same == pieces->all[numbers[1][j]].same)
				found = (new->scopes[j].header - 0x1000) / 16;
		used += (size_t)snprintf(text + used, size - used, "%s%llu:%llu", used ? " " : "",
					 (unsigned long long)(old->scopes[i].header - 0x1000) / 16,
					 (unsigned long long)found);
	}
	inside_free(&in);
}

/* Whichever is the older one. */
static void expect(const struct build *old, const struct build *new, uint8_t type,
		   const char *wanted)
{
	for (int turned = 0; turned < 2; turned++) {
		char text[512];
		describe(old, new, type, turned, text, sizeof text);
		assert_string_equal(text, wanted);
	}
}

/* Two loops, the second with another in it and a function that is inlined there. */
static const struct line plain[] = {
	LOOP(1, 12, 14), LINE(2, 12), LINE(2, 13),          LINE(2, 14),
	LOOP(1, 16, 22), LINE(2, 16), INLINE(2, "dot", 17), LOOP(2, 18, 21),
	LINE(3, 18),     LINE(3, 20), LINE(2, 22),          {0},
};

static void moved_as_a_whole(void **state)
{
	static const struct line moved[] = {
		LOOP(1, 112, 114), LINE(2, 112), LINE(2, 113),          LINE(2, 114),
		LOOP(1, 116, 122), LINE(2, 116), INLINE(2, "dot", 117), LOOP(2, 118, 121),
		LINE(3, 118),      LINE(3, 120), LINE(2, 122),          {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, plain);
	make_build(&new, 110, true, moved);
	expect(&old, &new, STRUCTURE_LOOP, "12:112 16:116 18:118");
	expect(&old, &new, STRUCTURE_LINE, "12:112 13:113 14:114 16:116 18:118 20:120 22:122");
}

/* A loop before the others: they are not counted from the beginning. */
static void loop_before(void **state)
{
	static const struct line before[] = {
		LOOP(1, 12, 13),      LINE(2, 12),     LINE(2, 13),
		LOOP(1, 15, 17),      LINE(2, 15),     LINE(2, 16),
		LINE(2, 17),          LOOP(1, 19, 25), LINE(2, 19),
		INLINE(2, "dot", 20), LOOP(2, 21, 24), LINE(3, 21),
		LINE(3, 23),          LINE(2, 25),     {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, plain);
	make_build(&new, 10, true, before);
	expect(&old, &new, STRUCTURE_LOOP, "12:15 16:19 18:21");
	expect(&new, &old, STRUCTURE_LOOP, "12:0 15:12 19:16 21:18");
	expect(&old, &new, STRUCTURE_LINE, "12:15 13:16 14:17 16:19 18:21 20:23 22:25");
}

/* A loop around all of it. */
static void loop_around(void **state)
{
	static const struct line around[] = {
		LOOP(1, 11, 25), LINE(2, 11), LOOP(2, 12, 14),
		LINE(3, 12),     LINE(3, 13), LINE(3, 14),
		LOOP(2, 16, 22), LINE(3, 16), INLINE(3, "dot", 17),
		LOOP(3, 18, 21), LINE(4, 18), LINE(4, 20),
		LINE(3, 22),     {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, plain);
	make_build(&new, 10, true, around);
	expect(&old, &new, STRUCTURE_LOOP, "12:12 16:16 18:18");
	expect(&new, &old, STRUCTURE_LOOP, "11:0 12:12 16:16 18:18");
}

/* A compiler unrolled the inner one, and another begins a line later. */
static void other_optimisation(void **state)
{
	static const struct line other[] = {
		LOOP(1, 13, 14),      LINE(2, 13), LINE(2, 14), LOOP(1, 16, 22), LINE(2, 16),
		INLINE(2, "dot", 17), LINE(2, 18), LINE(2, 20), LINE(2, 22),     {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, plain);
	make_build(&new, 10, true, other);
	expect(&old, &new, STRUCTURE_LOOP, "12:13 16:16 18:0");
	expect(&old, &new, STRUCTURE_LINE, "12:0 13:13 14:14 16:16 18:18 20:20 22:22");
}

/* Nearly all of a function went elsewhere: what is left is at its line, not at the end. */
static void little_is_left(void **state)
{
	static const struct line all[] = {LINE(1, 11), LOOP(1, 13, 14), LINE(2, 13),
					  LINE(2, 14), LINE(1, 16),     {0}};
	static const struct line left[] = {LINE(1, 14), {0}};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, all);
	make_build(&new, 10, true, left);
	expect(&old, &new, STRUCTURE_LINE, "11:0 13:0 14:14 16:0");
}

/* Without lines there is the nesting, and what is inlined. */
static void without_lines(void **state)
{
	static const struct line before[] = {
		LOOP(1, 5, 5),   LINE(2, 5), LOOP(1, 12, 14), LOOP(1, 16, 22), INLINE(2, "dot", 17),
		LOOP(2, 18, 21), {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 0, false, plain);
	make_build(&new, 0, false, before);
	expect(&old, &new, STRUCTURE_LOOP, "12:5 16:16 18:18");
}

/* Lines that were added in the middle shift those behind them, not those before. */
static void lines_between(void **state)
{
	static const struct line between[] = {
		LOOP(1, 12, 14), LINE(2, 12), LINE(2, 13),     LINE(2, 14), LINE(1, 15),
		LINE(1, 16),     LINE(1, 17), LOOP(1, 20, 26), LINE(2, 20), INLINE(2, "dot", 21),
		LOOP(2, 22, 25), LINE(3, 22), LINE(3, 24),     LINE(2, 26), {0},
	};
	struct build old, new;
	(void)state;
	make_build(&old, 10, true, plain);
	make_build(&new, 10, true, between);
	expect(&old, &new, STRUCTURE_LINE, "12:12 13:13 14:14 16:20 18:22 20:24 22:26");
	expect(&old, &new, STRUCTURE_LOOP, "12:12 16:20 18:22");
}

/* More than two builds: each is laid beside those before. */
static void three_builds(void **state)
{
	static const struct line first[] = {
		LOOP(1, 12, 14), LINE(2, 12), LINE(2, 13), LINE(2, 14), {0}};
	struct build builds[3];
	struct inside in = {0};
	uint32_t numbers[3];
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct line moved[5];
		memcpy(moved, first, sizeof first);
		for (int k = 0; k < 4; k++) {
			moved[k].first += (uint32_t)i * 100;
			moved[k].last += (uint32_t)i * 100;
		}
		make_build(&builds[i], 10 + i * 100, true, moved);
		numbers[i] = add(&in, &builds[i], (uint32_t)i + 1, 1);
	}
	good(inside_match(&in));
	assert_int_equal(in.loops.all[numbers[0]].same, in.loops.all[numbers[2]].same);
	assert_int_equal(in.loops.all[numbers[1]].same, in.loops.all[numbers[2]].same);
	inside_free(&in);
}

/* Too many for a look at each pair: those that are as far from the first line are the same. */
static void many_lines(void **state)
{
	const uint32_t count = 2000;
	static const struct piece_weights weights = {.traits = {[PIECE_OFFSET] = 200},
						     .least = 200};
	struct pieces pieces = {0};
	uint32_t numbers[2][2000];
	(void)state;
	for (uint32_t build = 0; build < 2; build++)
		for (uint32_t i = 0; i < count; i++) {
			struct piece piece = {.function = 1,
					      .module = build + 1,
					      .last_run = build,
					      .file = 1 + i % 3,
					      .position = 100 * build + i};
			for (int t = 0; t < PIECE_TRAITS; t++)
				piece.traits[t] = PIECE_UNKNOWN;
			piece.traits[PIECE_OFFSET] = i;
			numbers[build][i] = UINT32_MAX;
			if (build || i % 10) /* the newer one has more */
				good(pieces_add(&pieces, &piece, &numbers[build][i]));
		}
	good(pieces_match(&pieces, &weights));
	for (uint32_t i = 0; i < count; i++)
		if (i % 10)
			assert_int_equal(pieces.all[numbers[0][i]].same,
					 pieces.all[numbers[1][i]].same);
	pieces_free(&pieces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moved_as_a_whole), cmocka_unit_test(loop_before),
		cmocka_unit_test(loop_around),      cmocka_unit_test(other_optimisation),
		cmocka_unit_test(without_lines),    cmocka_unit_test(lines_between),
		cmocka_unit_test(three_builds),     cmocka_unit_test(many_lines),
		cmocka_unit_test(little_is_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
