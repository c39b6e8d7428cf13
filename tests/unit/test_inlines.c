/* SPDX-License-Identifier: Apache-2.0 */
/* Procedures and inlining of programs as compilers, linkers and dwz leave them. */
#include "unit.h"

#include "image/inlines.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "image/symbols.h"
#include "inlines_reader.h"
#include "nested_program.h"
#include "open_image.h"
#include "scratch.h"

static uint64_t find_symbol(struct image *image, struct image *debug, const char *name)
{
	struct symbols *symbols;
	const struct symbol *all;
	uint64_t address = 0;
	size_t count;
	assert_null(symbols_read(image, debug, &symbols));
	count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			address = all[i].address;
	symbols_free(symbols);
	return address;
}

/* Takes over the images. */
static void check_outer(const char *source, struct image *image, struct image *debug)
{
	struct reader r = reader_of(image, debug);
	uint64_t address = find_symbol(image, debug, "outer");
	struct inline_procedure p;
	assert_true(address && find(&r, address, &p));
	assert_int_equal(p.ranges[p.scopes[0].first].start, address);
	assert_int_equal(p.entry, address);
	is_scope(&p, 0, "outer", 0, 0);
	assert_int_equal(p.scopes[0].line, 11);
	assert_int_equal(p.scope_count, 3);
	is_scope(&p, 1, "middle", 0, 14);
	assert_int_equal(p.scopes[1].line, 6);
	is_scope(&p, 2, "deep", 1, 9);
	assert_int_equal(p.scopes[2].line, 2);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(lines_file(r.lines, p.scopes[i].file), source);
		if (i > 0)
			assert_int_equal(p.scopes[i].call_file, p.scopes[0].file);
	}
	assert_true(p.records_inlining);
	inline_procedure_free(&p);
	assert_true(list_all(&r).procedures >= 2);
	assert_null(inlines_damage(r.inlines));
	reader_close(&r);
}

static void compiled(void **state)
{
	static const char *const flags[] = {
		"-gdwarf-2",
		"-gdwarf-3",
		"-gdwarf-4",
		"-gdwarf-5",
		"-gz",
		"-flto",
		"-gdwarf64",
		"-O3",
		"-no-pie",
		"-gdwarf-4 -gsplit-dwarf",
		"-gdwarf-5 -gsplit-dwarf",
		"-fdebug-types-section",
		"-ffunction-sections -Wl,--gc-sections",
		"-static",
	};
	static const char *const compilers[] = {"cc", "clang"};
	(void)state;
	for (size_t c = 0; c < 2; c++) {
		for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
			scratch_write("made.c", nested_program, strlen(nested_program));
			if (!scratch_run(scratch_format("%s -g -O2 %s -o made made.c", compilers[c],
							flags[i]))) {
				print_message("skipped: %s %s\n", compilers[c], flags[i]);
				continue;
			}
			check_outer(scratch("made.c"), open_image(scratch("made")), NULL);
		}
	}
}

static void from_a_debug_file(void **state)
{
	(void)state;
	scratch_compile("whole", nested_program, "-g -O2");
	assert_true(scratch_run("objcopy --only-keep-debug whole debug && strip -o bare whole"));
	check_outer(scratch("whole.c"), open_image(scratch("bare")), open_image(scratch("debug")));
}

/* In a package instead of .dwo files; and where neither is there any more. */
static void split_units(void **state)
{
	static const char *const ways[] = {"cc -gdwarf-4|dwp", "clang -gdwarf-4|llvm-dwp-14",
					   "clang -gdwarf-5|llvm-dwp-14"};
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		const char *bar = strchr(ways[i], '|');
		struct inline_procedure p;
		struct reader r;
		scratch_write("made.c", nested_program, strlen(nested_program));
		if (!scratch_run(scratch_format(
			    "rm -f *.dwo && %.*s -g -O2 -gsplit-dwarf -c made.c && %.*s -o made "
			    "made.o && timeout 20 %s -o made.dwp *.dwo && rm *.dwo",
			    (int)(bar - ways[i]), ways[i], (int)(strcspn(ways[i], " ")), ways[i],
			    bar + 1))) {
			print_message("skipped: %s\n", ways[i]);
			continue;
		}
		check_outer(scratch("made.c"), open_image(scratch("made")), NULL);
		assert_true(scratch_run("rm made.dwp"));
		r = reader_of(open_image(scratch("made")), NULL);
		assert_false(find(&r, find_symbol(r.image, NULL, "outer"), &p));
		assert_non_null(inlines_damage(r.inlines));
		assert_non_null(strstr(inlines_damage(r.inlines), "missing"));
		reader_close(&r);
	}
}

static void shared_by_dwz(void **state)
{
	static const char *const ways[] = {"-gdwarf-4|", "-gdwarf-5|", "-gdwarf-5|-5"};
	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		const char *bar = strchr(ways[i], '|');
		scratch_write("one.c", nested_program, strlen(nested_program));
		if (!scratch_run(scratch_format("cc -g -O2 %.*s -o one one.c && cp one two && "
						"dwz %s -m shared.dwz one two",
						(int)(bar - ways[i]), ways[i], bar + 1))) {
			print_message("skipped: dwz %s\n", ways[i]);
			continue;
		}
		check_outer(scratch("one.c"), open_image(scratch("one")), NULL);
	}
}

/* Members, overloads, constructors: linkage names, through specifications. */
static void cplusplus(void **state)
{
	static const char program[] =
		"volatile int sink;\n"
		"namespace space { struct thing {\n"
		"	int v;\n"
		"	__attribute__((always_inline)) thing(int a) : v(a) { sink = a; }\n"
		"	__attribute__((always_inline)) int twice() const { sink = v; return v * 2; }\n"
		"	__attribute__((noinline)) int used(int a);\n"
		"}; }\n"
		"int space::thing::used(int a) { thing t(a); return t.twice() + v; }\n"
		"int main(int argc, char **) { space::thing t(argc); return t.used(argc); }\n";
	struct inline_procedure p;
	struct reader r;
	(void)state;
	scratch_write("thing.cc", program, strlen(program));
	if (!scratch_run("c++ -g -O2 -o thing thing.cc"))
		skip();
	r = reader_of(open_image(scratch("thing")), NULL);
	assert_true(find(&r, find_symbol(r.image, NULL, "_ZN5space5thing4usedEi"), &p));
	is_scope(&p, 0, "_ZN5space5thing4usedEi", 0, 0);
	assert_string_equal(p.scopes[0].plain, "used");
	assert_int_equal(p.scope_count, 3);
	assert_string_equal(p.scopes[1].plain, "thing");
	assert_int_equal(p.scopes[1].line, 4);
	assert_int_equal(p.scopes[1].call_line, 8);
	is_scope(&p, 2, "_ZNK5space5thing5twiceEv", 0, 8);
	assert_int_equal(p.scopes[2].line, 5);
	inline_procedure_free(&p);
	reader_close(&r);
}

/* Without a linkage name a function is told by what it lies in. */
static void lambdas(void **state)
{
	static const char program[] =
		"volatile int sink;\n"
		"namespace space { namespace {\n"
		"struct hidden { __attribute__((always_inline)) int get(int a) { sink = a; return a; } };\n"
		"} }\n"
		"extern \"C\" __attribute__((noinline)) int outer(int a) {\n"
		"	auto f = [=](int b) __attribute__((always_inline)) { sink = b; return a + b; };\n"
		"	return f(3) + space::hidden().get(a);\n"
		"}\n"
		"int main(int argc, char **) { return outer(argc); }\n";
	struct inline_procedure p;
	bool lambda = false, hidden = false;
	struct reader r;
	(void)state;
	scratch_write("lambda.cc", program, strlen(program));
	if (!scratch_run("c++ -g -O2 -o lambda lambda.cc"))
		skip();
	r = reader_of(open_image(scratch("lambda")), NULL);
	assert_true(find(&r, find_symbol(r.image, NULL, "outer"), &p));
	for (size_t i = 1; i < p.scope_count; i++) {
		const char *name = p.scopes[i].name;
		lambda |= strncmp(name, "outer::", 7) == 0 && strstr(name, "::operator()") &&
			  strcmp(p.scopes[i].plain, "operator()") == 0;
		hidden |= strcmp(p.scopes[i].plain, "get") == 0 &&
			  (strcmp(name, "space::(anonymous namespace)::hidden::get") == 0 ||
			   strncmp(name, "_ZN5space", 9) == 0);
	}
	assert_true(lambda && hidden);
	inline_procedure_free(&p);
	reader_close(&r);
}

static struct err *find_inner(void *context, const struct inline_procedure *p)
{
	if (strcmp(p->scopes[0].plain, "inner") == 0)
		*(uint32_t *)context = p->scopes[0].line;
	return NULL;
}

static void fortran(void **state)
{
	static const char program[] = "subroutine outer(a, n)\n"
				      "  integer, intent(in) :: n\n"
				      "  real, intent(inout) :: a(n)\n"
				      "  call inner(2.0)\n"
				      "  call inner(3.0)\n"
				      "contains\n"
				      "  subroutine inner(f)\n"
				      "    real, intent(in) :: f\n"
				      "    a(1:n) = a(1:n) * f\n"
				      "    print *, a(1)\n"
				      "  end subroutine\n"
				      "end subroutine\n"
				      "program main\n"
				      "  real :: a(10)\n"
				      "  a = 1\n"
				      "  call outer(a, 10)\n"
				      "end program\n";
	struct inline_procedure p;
	struct reader r;
	uint32_t inner = 0;
	(void)state;
	scratch_write("nest.f90", program, strlen(program));
	if (!scratch_run("gfortran -g -O0 -o nest nest.f90"))
		skip();
	r = reader_of(open_image(scratch("nest")), NULL);
	assert_true(find(&r, find_symbol(r.image, NULL, "outer_"), &p));
	assert_string_equal(p.scopes[0].plain, "outer");
	assert_int_equal(p.scope_count, 1);
	inline_procedure_free(&p);
	/* The contained one is a procedure of its own. */
	assert_null(inlines_each(r.inlines, find_inner, &inner));
	assert_int_equal(inner, 7);
	reader_close(&r);
	assert_true(scratch_run("gfortran -g -O3 -o nest nest.f90"));
	r = reader_of(open_image(scratch("nest")), NULL);
	assert_true(list_all(&r).scopes >= 3);
	reader_close(&r);
}

/* What is seldom run lies elsewhere, mostly before all else: it belongs to its function. */
static void cold_parts(void **state)
{
	static const char program[] =
		"volatile int sink;\n"
		"__attribute__((noinline, cold, noreturn)) void die(int a) { for (;;) sink = a; }\n"
		"static inline __attribute__((always_inline)) void fail(int a) {\n"
		"	sink = a * 3;\n"
		"	die(a);\n"
		"}\n"
		"__attribute__((noinline)) int outer(int a) {\n"
		"	sink = 1;\n"
		"	if (a == 77)\n"
		"		fail(a);\n"
		"	return sink;\n"
		"}\n"
		"int main(int argc, char **argv) { (void)argv; return outer(argc); }\n";
	static const char *const compilers[] = {"cc", "x86_64-linux-gnu-gcc"};
	uint64_t address = 0, cold = 0;
	struct inline_procedure p;
	struct reader r;
	(void)state;
	scratch_write("cold.c", program, strlen(program));
	for (int i = 0; i < 2 && !cold; i++) { /* not for every CPU are there any */
		if (!scratch_run(scratch_format("%s -g -O2 -o cold cold.c", compilers[i])))
			continue;
		r = reader_of(open_image(scratch("cold")), NULL);
		address = find_symbol(r.image, NULL, "outer");
		cold = find_symbol(r.image, NULL, "outer.cold");
		if (!cold)
			reader_close(&r);
	}
	if (!cold)
		skip();
	assert_true(find(&r, cold, &p));
	is_scope(&p, 0, "outer", 0, 0);
	assert_int_equal(p.entry, address);
	assert_int_equal(p.scopes[0].count, 2);
	assert_true(p.scope_count >= 2);
	is_scope(&p, 1, "fail", 0, 10);
	inline_procedure_free(&p);
	reader_close(&r);
}

static void rust(void **state)
{
	static const char program[] =
		"#[inline(always)] fn twice(a: u64) -> u64 { std::hint::black_box(a) * 2 }\n"
		"#[inline(never)] #[no_mangle] pub fn outer(a: u64) -> u64 { twice(a) + 1 }\n"
		"fn main() { println!(\"{}\", outer(std::env::args().count() as u64)); }\n";
	struct inline_procedure p;
	struct reader r;
	(void)state;
	scratch_write("r.rs", program, strlen(program));
	if (!scratch_run("rustc -g -C opt-level=2 -o r r.rs"))
		skip();
	r = reader_of(open_image(scratch("r")), NULL);
	assert_true(find(&r, find_symbol(r.image, NULL, "outer"), &p));
	is_scope(&p, 0, "outer", 0, 0);
	assert_true(p.scope_count >= 2);
	assert_string_equal(p.scopes[1].plain, "twice");
	assert_int_equal(p.scopes[1].call_line, 2);
	inline_procedure_free(&p);
	assert_true(list_all(&r).procedures > 100);
	assert_null(inlines_damage(r.inlines));
	reader_close(&r);
}

/* ---- threads ---- */

struct asking {
	struct reader *reader;
	uint64_t start, end, sum;
};

static void *ask(void *argument)
{
	struct asking *a = argument;
	for (uint64_t at = a->start; at < a->end; at += 4) {
		struct inline_procedure p;
		bool found;
		if (inlines_find(a->reader->inlines, at, &p, &found))
			return NULL;
		for (size_t i = 0; found && i < p.scope_count; i++)
			a->sum += p.scopes[i].call_line + p.scopes[i].file + p.scopes[i].count +
				  (p.scopes[i].name ? strlen(p.scopes[i].name) : 0);
		inline_procedure_free(&p);
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct asking asking[4];
	pthread_t threads[4];
	const struct image_section *code;
	struct reader r;
	(void)state;
	scratch_compile("threads", nested_program, "-g -O2");
	r = reader_of(open_image(scratch("threads")), NULL);
	code = image_section(r.image, ".text");
	for (int i = 0; i < 4; i++) {
		asking[i] = (struct asking){&r, code->address, code->address + code->size, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &asking[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(asking[0].sum > 0);
	for (int i = 1; i < 4; i++)
		assert_int_equal(asking[i].sum, asking[0].sum);
	reader_close(&r);
}

/* ---- damage ---- */

static struct err *stop(void *context, const struct inline_procedure *p)
{
	++*(int *)context;
	check_shape(p);
	return err_new("enough");
}

static void stops_where_told(void **state)
{
	struct reader r;
	struct err *e;
	int calls = 0;
	(void)state;
	scratch_compile("stop", nested_program, "-g -O2");
	r = reader_of(open_image(scratch("stop")), NULL);
	e = inlines_each(r.inlines, stop, &calls);
	assert_non_null(e);
	assert_string_equal(err_text(e), "enough");
	assert_int_equal(calls, 1);
	err_free(e);
	reader_close(&r);
	scratch_compile("bare", nested_program, "-O2 -s");
	r = reader_of(open_image(scratch("bare")), NULL);
	assert_int_equal(list_all(&r).procedures, 0);
	assert_null(inlines_damage(r.inlines));
	reader_close(&r);
}

static void ask_damaged(const uint8_t *bytes, size_t size)
{
	struct reader r;
	struct image *image;
	struct err *e = image_open_memory(bytes, size, "damaged", &image);
	if (e) {
		err_free(e);
		return;
	}
	r = reader_of(image, NULL);
	list_all(&r);
	reader_close(&r);
}

static void damaged(void **state)
{
	static const uint8_t flips[] = {0xff, 0x80, 0x01, 0x55};
	static const char *const flags[] = {"-gdwarf-4", "-gdwarf-5"};
	(void)state;
	for (int f = 0; f < 2; f++) {
		const struct image_section *sections;
		struct image *image;
		size_t size, count;
		uint8_t *bytes;
		scratch_compile("tiny", nested_program,
				scratch_format("-g -O2 %s -nostartfiles -Wl,-e,main", flags[f]));
		bytes = scratch_read("tiny", &size);
		image = open_image(scratch("tiny"));
		count = image_sections(image, &sections);
		for (size_t i = 0; i < count; i++) {
			if (strncmp(sections[i].name, ".debug_", 7) != 0)
				continue;
			for (uint64_t at = 0; at < sections[i].size; at++) {
				uint8_t *byte = &bytes[sections[i].offset + at];
				*byte ^= flips[at % sizeof flips];
				ask_damaged(bytes, size);
				*byte ^= flips[at % sizeof flips];
			}
		}
		image_close(image);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiled),
		cmocka_unit_test(from_a_debug_file),
		cmocka_unit_test(split_units),
		cmocka_unit_test(shared_by_dwz),
		cmocka_unit_test(cplusplus),
		cmocka_unit_test(lambdas),
		cmocka_unit_test(cold_parts),
		cmocka_unit_test(fortran),
		cmocka_unit_test(rust),
		cmocka_unit_test(many_threads),
		cmocka_unit_test(stops_where_told),
		cmocka_unit_test(damaged),
	};
	return cmocka_run_group_tests_name("inlines", tests, NULL, NULL);
}
