/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of real functions, loaded from an object: exceptions, walks and debuggers go through them as through the
 * functions.
 */
#include "unit.h"

#ifdef __x86_64__
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "copying.h"
#include "open_image.h"
#include "copies/frames.h"
#include "copies/object.h"
#include "recipes/cfi.h"
#include "recipes/rows.h"
#include "scratch.h"

#define PAGE 4096u
#define FIXED_BASE UINT64_C(0x40000000)

static const struct copying_form padded = {.nops = 2};
static const uint8_t tables[] = "what code reads";

/* ---- making objects ---- */

static uint32_t procedure_named(const struct copying *c, const char *name)
{
	for (uint32_t i = 0; i < c->extents.procedure_count; i++)
		if (c->extents.procedures[i].name && !strcmp(c->extents.procedures[i].name, name))
			return i;
	fail_msg("no function %s", name);
	return 0;
}

/* Copies all functions whose names begin with path_. */
static void copy_all(struct copying *c, uint64_t address, const struct copying_form *form)
{
	for (uint32_t i = 0; i < c->extents.procedure_count; i++) {
		const char *name = c->extents.procedures[i].name;
		if (!name || strncmp(name, "path_", 5) != 0)
			continue;
		if (!copying_add(c, i, address, form))
			fail_msg("no copy of %s", name);
		const struct copy *copy = &c->copies[c->count - 1];
		address = (copy->address + copy->size + 15) & ~UINT64_C(15);
	}
	assert_true(c->count > 8);
	copying_finish(c);
}

/* Writes the object for copies of all functions of the module at `path`. */
static void make_object(const char *path, const char *name, uint64_t base, uint64_t bias,
			const struct copying_form *form, struct copying *c)
{
	struct buf out = {0};
	copying_open(c, path);
	copy_all(c, base + 2 * PAGE, form);
	struct object_input input = {
		.image = c->image,
		.name = name,
		.base = base,
		.bias = bias,
		.tables = tables,
		.table_size = sizeof tables,
		.copies = c->copies,
		.copy_count = c->count,
	};
	copying_must(object_write(&input, &out));
	scratch_write(name, out.data, out.size);
	buf_free(&out);
}

/* ---- what the object says ---- */

/* The compiler and its flags. */
static const char *const ways[] = {
	"c++ -std=c++14 -O2",
	"c++ -std=c++14 -O0",
	"c++ -std=c++17 -O3 -fno-omit-frame-pointer -fcf-protection=full",
	"c++ -std=c++14 -Os -fno-reorder-blocks-and-partition",
	"clang++ -std=c++14 -O2",
	"clang++ -std=c++17 -O1",
};

static bool compile(const char *way, const char *flags, const char *output)
{
	const char *targets = scratch_format("%s/tests/targets", getenv("SOURCE_ROOT"));
	return scratch_run(
		scratch_format("cc -O2 -fPIC -fexceptions -c -o cleans.o %s/path_cleans.c && "
			       "%s %s -g -w -fno-jump-tables -o %s %s/path_throws.cc cleans.o",
			       targets, way, flags, output, targets));
}

static struct rows read_rows(struct image *image)
{
	struct cfi_stats stats;
	struct rows rows;
	rows_init(&rows);
	copying_must(cfi_read(image, NULL, &rows, &stats));
	assert_int_equal(stats.bad_entries, 0);
	rows_finish(&rows);
	return rows;
}

static const struct recipe *recipe_at(const struct rows *rows, uint64_t address)
{
	return &rows->rules[rows_find(rows, address)];
}

/* Each instruction of a copy, and the NOPs behind it, are unwound as the instruction that it was made from. */
static void same_rows(const struct copying *c, struct image *object, uint64_t bias)
{
	struct rows module = read_rows(c->image), own = read_rows(object);
	for (size_t i = 0; i < c->count; i++) {
		const struct copy *copy = &c->copies[i];
		for (size_t k = 0; k < copy->step_count; k++) {
			uint64_t from = copy->steps[k].from;
			uint64_t end = k + 1 < copy->step_count ? copy->steps[k + 1].to
								: copy->size;
			uint64_t first = copy->address + copy->steps[k].to + bias;
			uint64_t last = copy->address + end - 1 + bias;
			const struct recipe *wanted = recipe_at(&module, from);
			assert_memory_equal(recipe_at(&own, first), wanted, sizeof *wanted);
			assert_memory_equal(recipe_at(&own, last), wanted, sizeof *wanted);
		}
	}
	rows_free(&module);
	rows_free(&own);
}

static const struct cfi_landing *landing_at(const struct cfi_landing *landings, size_t count,
					    uint64_t address)
{
	for (size_t i = 0; i < count; i++)
		if (landings[i].start <= address && address < landings[i].end)
			return &landings[i];
	return NULL;
}

static uint64_t place_of(const struct copy *copy, uint64_t address)
{
	for (size_t i = 0; i < copy->step_count; i++)
		if (copy->steps[i].from == address)
			return copy->address + copy->steps[i].to;
	return 0;
}

/* Each instruction of a copy goes on at the same landing pad. */
static void same_landings(const struct copying *c, struct image *object, uint64_t bias)
{
	struct cfi_landing *module, *own;
	size_t module_count, own_count;
	unsigned seen = 0;
	copying_must(cfi_landings(c->image, &module, &module_count));
	copying_must(cfi_landings(object, &own, &own_count));
	for (size_t i = 0; i < c->count; i++) {
		const struct copy *copy = &c->copies[i];
		for (size_t k = 0; k < copy->step_count; k++) {
			const struct cfi_landing *wanted = landing_at(module, module_count,
								      copy->steps[k].from);
			const struct cfi_landing *got = landing_at(
				own, own_count, copy->address + copy->steps[k].to + bias);
			assert_int_equal(wanted != NULL, got != NULL);
			if (!wanted)
				continue;
			assert_int_equal(got->landing_pad,
					 place_of(copy, wanted->landing_pad) + bias);
			seen++;
		}
	}
	assert_true(seen > 10);
	free(module);
	free(own);
}

static void says_the_same(const struct copying *c, const char *name, uint64_t bias)
{
	struct image *object = open_image(scratch(name));
	struct symbols *symbols;
	const uint8_t *id;
	assert_int_equal(image_build_id(object, &id), 16);
	same_rows(c, object, bias);
	same_landings(c, object, bias);
	copying_must(symbols_read(object, NULL, &symbols));
	for (size_t i = 0; i < c->count; i++) {
		const struct symbol *s = symbols_find(symbols, c->copies[i].address + bias);
		assert_non_null(s);
		assert_string_equal(s->name, scratch_format("%s.paths", c->copies[i].name));
		assert_int_equal(s->size, c->copies[i].size);
	}
	symbols_free(symbols);
	image_close(object);
	assert_null(image_damage(c->image));
}

/* ---- running them ---- */

struct run { /* a program that is told an object */
	pid_t pid;
	FILE *to, *from;
	uint64_t bias, base; /* what it says */
};

static void run_begin(struct run *run)
{
	int to[2], from[2];
	const char *program = scratch("program");
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	run->pid = fork();
	if (!run->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	run->to = fdopen(to[1], "w");
	run->from = fdopen(from[0], "r");
	if (fscanf(run->from, "%" SCNx64 " %" SCNx64, &run->bias, &run->base) != 2)
		fail_msg("the program says nothing");
}

static void run_end(struct run *run, const char *object)
{
	char answer[200] = "nothing";
	int status;
	fprintf(run->to, "%s\n", object);
	fclose(run->to);
	if (fscanf(run->from, " %199[^\n]", answer) != 1)
		strcpy(answer, "nothing");
	fclose(run->from);
	waitpid(run->pid, &status, 0);
	assert_string_equal(answer, "good");
	assert_int_equal(status, 0);
}

static void run_copies(const struct copying_form *form)
{
	struct copying c;
	struct run run;
	run_begin(&run);
	make_object(scratch("program"), "copies.so", run.base - run.bias, run.bias, form, &c);
	says_the_same(&c, "copies.so", run.bias);
	copying_close(&c);
	run_end(&run, scratch("copies.so"));
}

static void run_all(const char *flags)
{
	static const struct copying_form forms[] = {
		{.nops = 0}, {.nops = 70}, {.nops = 3, .turned = true}, {.nops = 2, .early = true}};
	unsigned runs = 0;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		if (!compile(ways[i], flags, "program"))
			continue;
		for (size_t k = 0; k < sizeof forms / sizeof *forms; k++, runs++) {
			print_message("%s %s, %u NOPs%s%s\n", ways[i], flags, forms[k].nops,
				      forms[k].turned ? ", turned" : "",
				      forms[k].early ? ", early" : "");
			run_copies(&forms[k]);
		}
	}
	assert_true(runs > 0);
}

static void moved_program(void **state)
{
	(void)state;
	run_all("-pie -fPIE");
}

/* Its tables have addresses as they are. */
static void fixed_program(void **state)
{
	(void)state;
	run_all("-no-pie -fno-pie");
}

static void debugger(void **state)
{
	struct copying c;
	(void)state;
	if (!scratch_run("gdb --version && c++ --version"))
		skip();
	assert_true(compile(ways[0], "-no-pie -fno-pie", "program"));
	make_object(scratch("program"), "fixed.so", FIXED_BASE, 0, &padded, &c);
	copying_close(&c);
	static const char commands[] = "set breakpoint pending on\nbreak 'path_throw.paths'\n"
				       "run ./fixed.so\nbacktrace\n";
	scratch_write("commands", commands, sizeof commands - 1);
	/* Names of clones are shown with their suffix in brackets. */
	assert_true(scratch_run("gdb -batch -nx -x commands ./program >stack 2>&1; "
				"for f in throw clean rethrow room many top; do "
				"grep -q \" in path_$f[.[]paths[]]* ()\" stack || exit 1; "
				"done; grep -q ' main (' stack"));
}

/* ---- what is refused ---- */

static void refuses_without_pad(void **state)
{
	struct copying c;
	struct frames frames;
	struct cfi_landing *landings;
	size_t count;
	(void)state;
	if (!compile(ways[0], "-pie -fPIE", "program"))
		skip();
	copying_open(&c, scratch("program"));
	assert_true(copying_add(&c, procedure_named(&c, "path_catch"), 0x100000, &padded));
	struct copy *copy = &c.copies[0];
	copying_must(frames_open(c.image, &frames));
	copying_must(object_check(&frames, copy));
	copying_must(cfi_landings(c.image, &landings, &count));
	const struct cfi_landing *landing = NULL;
	for (size_t i = 0; !landing && i < copy->step_count; i++)
		landing = landing_at(landings, count, copy->steps[i].from);
	assert_non_null(landing);
	for (size_t i = 0; i < copy->step_count; i++)
		if (copy->steps[i].from == landing->landing_pad)
			copy->steps[i].from++;
	free(landings);
	struct err *e = object_check(&frames, copy);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "path_catch: exception table at 0x"));
	assert_non_null(strstr(err_text(e), "is not in the copy"));
	err_free(e);
	frames_close(&frames);
	copying_close(&c);
}

/* What object_check says of a copy of `path_odd`, which has this in its unwind information; "" if nothing. */
static const char *check_odd(const char *frames_text)
{
	struct copying c;
	struct frames frames;
	const char *said = "";
	const char *text = scratch_format("__asm__(\".globl path_odd\\n.type path_odd, @function\\n"
					  "path_odd: .cfi_startproc\\nnop\\n%s\\nnop\\nret\\n"
					  ".cfi_endproc\\n.size path_odd, .-path_odd\");",
					  frames_text);
	scratch_compile("odd.so", text, "-shared -nostdlib");
	copying_open(&c, scratch("odd.so"));
	assert_true(copying_add(&c, procedure_named(&c, "path_odd"), 0x100000, &padded));
	copying_must(frames_open(c.image, &frames));
	struct err *e = object_check(&frames, &c.copies[0]);
	if (e)
		said = scratch_format("%s", err_text(e));
	err_free(e);
	frames_close(&frames);
	copying_close(&c);
	return said;
}

#define REFUSED "path_odd: unwind information: "

static void refuses_frames(void **state)
{
	(void)state;
	assert_string_equal(check_odd(".cfi_def_cfa_offset 24"), "");
	/* CFA = rsp + 8 as an expression; of r12: at CFA - 16 */
	assert_string_equal(check_odd(".cfi_escape 0x0f, 2, 0x77, 8"), "");
	assert_string_equal(check_odd(".cfi_escape 0x10, 12, 2, 0x77, 0x70"), "");
	assert_string_equal(check_odd(".cfi_escape 0x0f, 2, 0x80, 8"),
			    REFUSED "an expression that reads the PC, or is not known");
	assert_string_equal(check_odd(".cfi_escape 0x16, 12, 3, 0x92, 16, 8"),
			    REFUSED "an expression that reads the PC, or is not known");
	assert_string_equal(check_odd(".cfi_escape 0x0f, 9, 0x77, 8"),
			    REFUSED "a damaged expression");
	assert_string_equal(check_odd(".cfi_escape 0x3b"),
			    REFUSED "instruction 0x3b is not supported");
	/* Saved arguments of GNU, and an advance of two bytes: 0 is its upper one. */
	assert_string_equal(check_odd(".cfi_escape 0x2e, 16\\n.cfi_escape 3, 1, 0"), "");
}

static void refuses_places(void **state)
{
	static uint8_t code[16];
	static struct copy_step steps[] = {{0x1000, 0}};
	struct copy copy = {
		.address = 0x900000, .code = code, .size = 1, .steps = steps, .step_count = 1};
	struct object_input input = {
		.name = "o", .base = 0x900000, .copies = &copy, .copy_count = 1};
	struct buf out = {0};
	(void)state;
	struct err *e = object_write(&input, &out);
	assert_string_equal(err_text(e), "object 'o': the copy at 0x900000 lies elsewhere");
	err_free(e);
	input.base = 0x800010;
	e = object_write(&input, &out);
	assert_string_equal(err_text(e), "object 'o': its address 0x800010 does not begin a page");
	err_free(e);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moved_program),  cmocka_unit_test(fixed_program),
		cmocka_unit_test(debugger),       cmocka_unit_test(refuses_without_pad),
		cmocka_unit_test(refuses_frames), cmocka_unit_test(refuses_places),
	};
	return cmocka_run_group_tests_name("paths_object", tests, NULL, NULL);
}
#else
int main(void)
{
	return 77;
}
#endif
