/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to its function and what was inlined: what DWARF says, what source.h says of
   an address and what structure.h says of a procedure are the same chain, in every instruction. */
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/source.h"
#include "image/symbols.h"
#include "inlines_reader.h"
#include "scratch.h"
#include "structure/structure.h"

#define PLACES 64

/* Lines matter. A function of one line that calls itself; two functions that share a line; one whose part
   gcc splits off and inlines again. */
static const char text[] =
	/* 1 */ "volatile int sink;\n"
		/* 2 */ "static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
		/* 3 */ "#define IN static inline __attribute__((always_inline)) int\n"
		/* 4 */ "#define OUT __attribute__((noinline)) int\n"
		/* 5 */
		"IN in(int a) { return sink = a; } OUT out(int a) { return in(a) + sink; }\n"
		/* 6 */ "OUT many(int n)\n"
		/* 7 */ "{\n"
		/* 8 */ "	return fib(n) + fib(n / 2);\n"
		/* 9 */ "}\n"
		/* 10 */ "int main(int c, char **v) { (void)v; return out(c) + many(c); }\n";

struct chain {
	const char *names[PLACES];
	uint32_t lines[PLACES];
	size_t count;
};

static void push(struct chain *c, const char *name, uint32_t line)
{
	assert_true(c->count < PLACES);
	c->names[c->count] = name;
	c->lines[c->count++] = line;
}

static bool has(const struct inline_procedure *p, size_t scope, uint64_t address)
{
	for (uint32_t k = 0; k < p->scopes[scope].count; k++) {
		const struct inline_range *r = &p->ranges[p->scopes[scope].first + k];
		if (address >= r->start && address < r->end)
			return true;
	}
	return false;
}

/* By the record itself, told in the plainest way. */
static struct chain recorded(struct reader *r, const struct inline_procedure *p, uint64_t address)
{
	struct chain c = {.count = 0};
	struct line_row *rows;
	size_t count, at = 0;
	uint32_t line;
	assert_null(lines_range(r->lines, address, address + 1, &rows, &count));
	line = count ? rows[0].line : 0;
	free(rows);
	for (size_t i = 1; i < p->scope_count; i++)
		if (has(p, i, address) && p->scopes[i].depth >= p->scopes[at].depth)
			at = i;
	assert_null(lines_range(r->lines, p->entry, p->entry + 64, &rows, &count));
	if (address >= p->entry && address < inline_procedure_opening(p, rows, count))
		at = 0;
	free(rows);
	for (;; at = p->scopes[at].parent) {
		if (!p->scopes[at].own) {
			push(&c, p->scopes[at].name, line);
			line = p->scopes[at].call_line;
		}
		if (!at)
			return c;
	}
}

static struct chain by_source(struct source *s, uint64_t address)
{
	struct source_place places[PLACES];
	struct chain c = {.count = 0};
	size_t count = source_places(s, address, places, PLACES);
	for (size_t i = 0; i < count; i++)
		push(&c, places[i].function, (uint32_t)places[i].line);
	return c;
}

static struct chain by_structure(struct structure *s, uint64_t address)
{
	const struct structure_procedure *p = structure_find(s, address);
	struct chain c = {.count = 0};
	uint32_t at, line;
	assert_non_null(p);
	at = structure_scope_at(p, address);
	line = p->scopes[at].type == STRUCTURE_LINE ? p->scopes[at].line : 0;
	for (; at; at = p->scopes[at].parent) {
		if (p->scopes[at].type != STRUCTURE_INLINE)
			continue;
		push(&c, p->scopes[at].name, line);
		line = p->scopes[at].call_line;
	}
	push(&c, p->scopes[0].name, line);
	return c;
}

static void same_chain(const struct chain *a, const struct chain *b)
{
	assert_int_equal(a->count, b->count);
	for (size_t i = 0; i < a->count; i++) {
		/* The outermost may be named by its symbol: fib.constprop.0 */
		if (i + 1 < a->count)
			assert_string_equal(a->names[i], b->names[i]);
		assert_int_equal(a->lines[i], b->lines[i]);
	}
}

struct asked {
	struct reader reader;
	struct source *source;
	struct structure *structure;
};

/* All of a function's code; the longest chain. */
static size_t check_function(struct asked *x, uint64_t from, uint64_t to, bool *in_out)
{
	struct inline_procedure p;
	size_t longest = 0;
	if (!find(&x->reader, from, &p))
		return 0;
	for (uint64_t at = from; at < to; at++) {
		struct chain a = recorded(&x->reader, &p, at), b = by_source(x->source, at),
			     c = by_structure(x->structure, at);
		same_chain(&a, &b);
		same_chain(&a, &c);
		longest = a.count > longest ? a.count : longest;
		*in_out |= a.count == 2 && strcmp(a.names[0], "in") == 0 && a.lines[0] == 5 &&
			   strcmp(a.names[1], "out") == 0 && a.lines[1] == 5;
	}
	inline_procedure_free(&p);
	return longest;
}

/* The longest chain of any `fib`. Closes the images. */
static size_t check(struct image *image, struct image *debug)
{
	struct asked x = {.reader = reader_of(image, debug)};
	const struct structure_options options = {0};
	struct symbols *symbols;
	const struct symbol *all;
	size_t longest = 0;
	bool in_out = false;
	assert_null(source_open(image, debug, &x.source));
	assert_null(structure_open(image, &options, &x.structure));
	assert_null(symbols_read(image, debug, &symbols));
	for (size_t i = 0, count = symbols_all(symbols, &all); i < count; i++) {
		size_t n = 0;
		if (strncmp(all[i].name, "fib", 3) == 0 || strcmp(all[i].name, "out") == 0 ||
		    strcmp(all[i].name, "many") == 0)
			n = check_function(&x, all[i].address, all[i].address + all[i].size,
					   &in_out);
		if (strncmp(all[i].name, "fib", 3) == 0 && n > longest)
			longest = n;
	}
	assert_true(in_out);
	symbols_free(symbols);
	structure_close(x.structure);
	source_close(x.source);
	reader_close(&x.reader);
	return longest;
}

static size_t check_file(const char *name)
{
	struct image *image, *debug;
	assert_null(image_open(scratch(name), &image));
	assert_null(debug_find(image, false, &debug));
	return check(image, debug);
}

static void of_compilers(void **state)
{
	static const char *const flags[] = {
		"-gdwarf-5",
		"-gdwarf-4",
		"-gdwarf-5 -gsplit-dwarf",
		"-gdwarf-4 -gsplit-dwarf",
		"-gno-column-info",
		"-gdwarf-5 -O3",
		"-flto",
	};
	static const char *const compilers[] = {"gcc", "clang"};
	bool recursive = false;
	(void)state;
	scratch_write("made.c", text, strlen(text));
	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
			if (!scratch_run(
				    scratch_format("%s -O2 -g %s -Wl,--build-id -o made made.c",
						   compilers[c], flags[i]))) {
				print_message("skipped: %s %s\n", compilers[c], flags[i]);
				continue;
			}
			recursive |= check_file("made") > 2;
		}
	}
	/* gcc inlines such a function into itself. */
	assert_true(recursive || !scratch_run("gcc --version"));
}

static void shared_by_dwz(void **state)
{
	(void)state;
	scratch_write("one.c", text, strlen(text));
	if (!scratch_run("cc -O2 -g -o one one.c && cp one two && dwz -m shared.dwz one two"))
		skip();
	check_file("one");
}

/* ---- where a procedure opens ---- */

static void opening_code(void **state)
{
	/* `outer` begins in line 10 and opens in 11. What begins at its entry was inlined. */
	struct inline_range ranges[] = {{100, 200}, {100, 150}};
	struct inline_scope scopes[] = {{.file = 1, .line = 10, .first = 0, .count = 1},
					{.file = 1, .line = 2, .first = 1, .count = 1, .depth = 1}};
	struct inline_procedure p = {scopes, 2, ranges, 2, true, 0, 100};
	struct line_row rows[] = {{.address = 100, .end = 108, .file = 1, .line = 11},
				  {.address = 108, .end = 120, .file = 1, .line = 3, .column = 7}};

	(void)state;
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 108);
	assert_int_equal(inline_procedure_opening(&p, rows, 1), 0);
	scopes[1].line = 11; /* line 11 is rather that of the other one */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
	scopes[1].file = 2;
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 108);
	rows[0].file = 2; /* a line of the other's file */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
	rows[0].file = 1;
	rows[0].column = 3; /* a statement */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
	rows[0].column = rows[1].column = 0; /* a compiler without columns */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
	rows[1].column = 7;
	rows[0].line = 9; /* before the procedure begins */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
	rows[0].line = 11;
	p.entry = 96; /* not its entry */
	assert_int_equal(inline_procedure_opening(&p, rows, 2), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_compilers),
		cmocka_unit_test(shared_by_dwz),
		cmocka_unit_test(opening_code),
	};
	setenv("XDG_CACHE_HOME", scratch("."), 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
