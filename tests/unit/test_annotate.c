/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples put onto the instructions of real programs, compiled for this CPU and
 * the other one: what an annotation makes of them.
 */
#include "scratch.h"

#include "annotate/annotate.h"

#include "annotate/find.h"
#include "annotate/show.h"
#include "analyze/modules.h"
#include "annotate/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "profile/profile.h"

static const char program[] =
	"volatile int sink;\n"                                              /* 1 */
	"static inline __attribute__((always_inline)) void leaf(int n)\n"   /* 2 */
	"{\n"                                                               /* 3 */
	"	sink = n;\n"                                                /* 4 */
	"}\n"                                                               /* 5 */
	"static inline __attribute__((always_inline)) void middle(int n)\n" /* 6 */
	"{\n"                                                               /* 7 */
	"	leaf(n);\n"                                                 /* 8 */
	"}\n"                                                               /* 9 */
	"__attribute__((noinline)) int descend(int n)\n"                    /* 10 */
	"{\n"                                                               /* 11 */
	"	if (n == 0)\n"                                              /* 12 */
	"		return sink;\n"                                     /* 13 */
	"	for (int i = 0; i < n; i++)\n"                              /* 14 */
	"		middle(i);\n"                                       /* 15 */
	"	return descend(n - 1) + sink;\n"                            /* 16 */
	"}\n"                                                               /* 17 */
	"int main(void)\n"                                                  /* 18 */
	"{\n"                                                               /* 19 */
	"	return descend(3);\n"                                       /* 20 */
	"}\n";                                                              /* 21 */

struct world {
	struct profile *profile;
	struct modules *modules;
	struct image *image;
	const struct isa *isa;
	uint64_t descend, descend_end, main, main_end;
};

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void find_function(struct image *image, const char *name, uint64_t *start, uint64_t *end)
{
	const struct symbol *all;
	struct symbols *symbols;
	good(symbols_read(image, NULL, &symbols));
	size_t count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name)) {
			*start = all[i].address;
			*end = all[i].address + all[i].size;
		}
	symbols_free(symbols);
	assert_true(*start < *end);
}

static void add_names(struct profile *p)
{
	uint32_t index;
	good(profile_add_process(
		p, &(struct profile_process){.pid = 1, .name = "app", .command = "app", .rank = -1},
		&index));
	for (int i = 0; i < 2; i++)
		good(profile_add_thread(p, &(struct profile_thread){.tid = 1 + i, .name = "app"},
					&index));
	good(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	good(profile_add_metric(
		p, &(struct profile_metric){"page-faults", "faults", 1, false, {0, 0}}, &index));
}

/* A profile without samples, of a program compiled by `compiler`; false where there is none. */
static bool start_world(struct world *w, const char *compiler)
{
	char id[2 * BUILD_ID_MAX + 1];
	uint32_t index;
	*w = (struct world){0};
	scratch_write("app.c", program, sizeof program - 1);
	if (!scratch_run(scratch_format(
		    "%s -O2 -g -fno-optimize-sibling-calls -Wl,--build-id -o app app.c", compiler)))
		return false;
	setenv("XDG_CACHE_HOME", scratch("cache"), 1);
	good(image_open(scratch("app"), &w->image));
	w->isa = isa_for_machine(image_machine(w->image));
	find_function(w->image, "descend", &w->descend, &w->descend_end);
	find_function(w->image, "main", &w->main, &w->main_end);
	image_build_id_hex(w->image, id);
	good(profile_new(&w->profile));
	add_names(w->profile);
	good(profile_add_module(w->profile,
				&(struct profile_module){.kind = PROFILE_FILE,
							 .path = scratch("app"),
							 .build_id = id,
							 .problem = ""},
				&index));
	assert_int_equal(index, 1);
	return true;
}

static void end_world(struct world *w)
{
	modules_close(w->modules);
	profile_free(w->profile);
	image_close(w->image);
}

static uint32_t step(struct world *w, uint32_t parent, enum profile_node_kind kind,
		     uint64_t address)
{
	uint32_t node;
	good(profile_child(w->profile, parent, kind, 1, address, &node));
	return node;
}

static void sample(struct world *w, uint32_t node, uint32_t thread, uint32_t metric, uint64_t count)
{
	good(profile_count(w->profile, node, thread, metric, count));
}

/* The call of a function in [start, end): its address and what follows. */
static uint64_t find_call(struct world *w, uint64_t start, uint64_t end, uint64_t to,
			  uint64_t *after)
{
	size_t size;
	const uint8_t *code = image_bytes_at(w->image, start, &size);
	for (uint64_t at = start; at < end;) {
		struct insn insn;
		w->isa->decode(code + (at - start), size - (at - start), at, &insn);
		if (insn.kind == INSN_CALL && insn.target == to) {
			*after = at + insn.length;
			return at;
		}
		at += insn.length;
	}
	fail_msg("there is no call");
	return 0;
}

static void annotate(struct world *w, uint64_t address, const bool *thread, struct annotation *out)
{
	good(profile_settle(w->profile));
	if (!w->modules)
		good(modules_open(w->profile, false, &w->modules));
	good(annotate_make(w->profile, w->modules, 1, address, thread, out));
}

static uint32_t find_line(const struct annotation *a, uint32_t context, uint32_t line)
{
	for (uint32_t i = 0; i < a->item_count; i++)
		if (a->items[i].kind == ANNOTATE_LINE && a->items[i].context == context &&
		    a->items[i].line == line)
			return i;
	fail_msg("there is no line %u", line);
	return 0;
}

static uint32_t find_context(const struct annotation *a, const char *name)
{
	for (uint32_t i = 0; i < a->item_count; i++)
		if (a->items[i].kind == ANNOTATE_CONTEXT && !strcmp(a->items[i].name, name))
			return i;
	fail_msg("nothing called %s", name);
	return 0;
}

static uint32_t find_insn(const struct annotation *a, uint64_t address)
{
	for (uint32_t i = 0; i < a->insn_count; i++)
		if (a->insns[i].address == address)
			return i;
	fail_msg("no instruction there");
	return 0;
}

/* Each compiler that there is. */
static void for_each_compiler(void (*test)(struct world *w))
{
	static const char *const compilers[] = {"cc", "gcc", "clang", "x86_64-linux-gnu-gcc",
						"aarch64-linux-gnu-gcc"};
	for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
		struct world w;
		if (start_world(&w, compilers[i])) {
			test(&w);
			end_world(&w);
		}
	}
}

/* One sample on each instruction: every sum is the number of instructions. */
static void check_sums(struct world *w)
{
	struct annotation a;
	uint64_t lines = 0, insns = 0, whole = 0;
	size_t size;
	const uint8_t *code = image_bytes_at(w->image, w->descend, &size);
	for (uint64_t at = w->descend; at < w->descend_end; whole++) {
		struct insn insn;
		size_t skip = (size_t)(at - w->descend);
		w->isa->decode(code + skip, size - skip, at, &insn);
		sample(w, step(w, 0, PROFILE_EXACT, at), 0, 0, 1);
		at += insn.length;
	}
	annotate(w, w->descend, NULL, &a);
	for (uint32_t i = 0; i < a.item_count; i++)
		lines += a.items[i].kind == ANNOTATE_LINE ? annotate_self(&a, i, 0) : 0;
	for (size_t i = 0; i < a.insn_count; i++) {
		insns += annotate_insn_self(&a, i, 0);
		assert_true(annotate_insn_self(&a, i, 0) <= 1);
		assert_int_equal(annotate_insn_self(&a, i, 0), annotate_insn_total(&a, i, 0));
	}
	assert_true(whole > 5);
	assert_int_equal(annotate_self(&a, 0, 0), whole);
	assert_int_equal(annotate_total(&a, 0, 0), whole);
	assert_int_equal(lines, whole);
	assert_int_equal(insns, whole);
	assert_int_equal(a.whole[0], whole);
	assert_int_equal(annotate_self(&a, 0, 1), 0);
	assert_true(a.has_lines);
	annotate_free(&a);
}

static void sums_are_whole(void **state)
{
	(void)state;
	for_each_compiler(check_sums);
}

/* main -> descend -> descend -> descend: what is on a path several times counts once. */
static void check_recursion(struct world *w)
{
	struct annotation a;
	uint64_t from_main, from_descend;
	uint64_t call = find_call(w, w->descend, w->descend_end, w->descend, &from_descend);
	find_call(w, w->main, w->main_end, w->descend, &from_main);
	uint32_t node = step(w, 0, PROFILE_CALL, from_main);
	sample(w, step(w, node, PROFILE_EXACT, w->descend), 0, 0, 5);
	for (int i = 0; i < 3; i++)
		node = step(w, node, PROFILE_CALL, from_descend);
	sample(w, step(w, node, PROFILE_EXACT, w->descend), 0, 0, 10);
	sample(w, step(w, node, PROFILE_EXACT, w->descend), 1, 1, 7);
	annotate(w, w->descend, NULL, &a);
	assert_int_equal(annotate_self(&a, 0, 0), 15);
	assert_int_equal(annotate_total(&a, 0, 0), 15);
	assert_int_equal(annotate_total(&a, 0, 1), 7);
	uint32_t at_call = find_insn(&a, call), first = find_insn(&a, w->descend);
	assert_int_equal(annotate_insn_self(&a, at_call, 0), 0);
	assert_int_equal(annotate_insn_total(&a, at_call, 0), 10);
	assert_int_equal(annotate_insn_self(&a, first, 0), 15);
	assert_int_equal(annotate_insn_total(&a, first, 0), 15);
	assert_int_equal(a.items[a.insns[at_call].line].line, 16);
	assert_int_equal(annotate_total(&a, a.insns[at_call].line, 0), 10);
	/* The return address lies behind the call: nothing belongs to it. */
	assert_int_equal(annotate_insn_total(&a, at_call + 1, 0), 0);
	annotate_free(&a);
	const bool second[] = {false, true};
	annotate(w, w->descend, second, &a);
	assert_int_equal(annotate_total(&a, 0, 0), 0);
	assert_int_equal(annotate_total(&a, 0, 1), 7);
	assert_int_equal(a.whole[0], 15);
	annotate_free(&a);

	annotate(w, w->main, NULL, &a);
	assert_int_equal(annotate_self(&a, 0, 0), 0);
	assert_int_equal(annotate_total(&a, 0, 0), 15);
	assert_int_equal(annotate_total(&a, find_line(&a, 0, 20), 0), 15);
	annotate_free(&a);
}

static void recursion_counts_once(void **state)
{
	(void)state;
	for_each_compiler(check_recursion);
}

/* The instruction of a line in a loop, in whatever was inlined. */
static uint64_t address_of_line(const struct annotation *a, uint32_t line)
{
	for (size_t i = 0; i < a->insn_count; i++)
		if (a->items[a->insns[i].line].line == line && a->insns[i].loop != ANNOTATE_NONE)
			return a->insns[i].address;
	fail_msg("no code of line %u", line);
	return 0;
}

static void check_inlined(struct world *w)
{
	struct annotation a;
	struct buf out = {0};
	struct sources *sources;
	sample(w, step(w, 0, PROFILE_EXACT, w->descend), 0, 0, 20);
	annotate(w, w->descend, NULL, &a);
	uint64_t inside = address_of_line(&a, 4);
	annotate_free(&a);
	modules_close(w->modules);
	w->modules = NULL;
	sample(w, step(w, 0, PROFILE_EXACT, inside), 0, 0, 100);
	annotate(w, w->descend, NULL, &a);
	/* descend:15 -> middle:8 -> leaf:4 */
	uint32_t middle = find_context(&a, "middle"), leaf = find_context(&a, "leaf");
	uint32_t call = find_line(&a, 0, 15), inner_call = find_line(&a, middle, 8);
	uint32_t line = find_line(&a, leaf, 4);
	assert_int_equal(a.items[middle].parent, call);
	assert_int_equal(a.items[middle].call_line, 15);
	assert_int_equal(a.items[leaf].parent, inner_call);
	assert_int_equal(a.items[leaf].line, 2);
	assert_int_equal(annotate_self(&a, line, 0), 100);
	assert_int_equal(annotate_self(&a, leaf, 0), 100);
	assert_int_equal(annotate_self(&a, inner_call, 0), 0);
	assert_int_equal(annotate_total(&a, inner_call, 0), 100);
	assert_int_equal(annotate_total(&a, call, 0), 100);
	assert_int_equal(annotate_total(&a, middle, 0), 100);
	assert_int_equal(annotate_self(&a, 0, 0), 120);

	good(sources_open(&(struct sources_options){0}, &sources));
	struct annotate_show show = {.context = 3, .sources = sources};
	good(annotate_show_source(&a, &show, &out));
	const char *text = buf_text(&out);
	const char *at_loop = strstr(text, "loop at app.c:14\n");
	const char *at_call = strstr(text, "middle(i);\n");
	const char *at_middle = strstr(text, "↳ middle  app.c:6 (inlined)\n");
	const char *at_leaf = strstr(text, "↳ leaf  app.c:2 (inlined)\n");
	const char *at_line = strstr(text, "4  sink = n;\n");
	if (!at_loop || !at_call || !at_middle || !at_leaf || !at_line)
		fail_msg("%s", text);
	assert_true(at_loop < at_call && at_call < at_middle && at_middle < at_leaf &&
		    at_leaf < at_line);
	assert_non_null(strstr(text, "\n  83.33%   83.33%      100 │"));
	buf_clear(&out);
	good(annotate_show_asm(&a, &show, &out));
	assert_non_null(strstr(buf_text(&out), "app.c:4  sink = n;  (leaf < middle, inlined)\n"));
	assert_non_null(strstr(buf_text(&out), "╭ loop at app.c:14\n"));
	buf_free(&out);
	sources_close(sources);
	annotate_free(&a);
}

static void inlined_code_stands_at_its_call(void **state)
{
	(void)state;
	for_each_compiler(check_inlined);
}

static const char *found(const struct annotate_functions *all, const char *text)
{
	struct annotate_function f;
	bool inlined;
	struct err *e = annotate_functions_find(all, text, false, &f, &inlined);
	const char *answer = scratch_format("%s%s",
					    e        ? err_text(e)
					    : f.name ? f.name
						     : "?",
					    inlined ? " (inlined)" : "");
	err_free(e);
	return answer;
}

static void check_names(struct world *w)
{
	struct annotate_functions all;
	struct annotation a;
	uint64_t after;
	find_call(w, w->main, w->main_end, w->descend, &after);
	uint32_t node = step(w, 0, PROFILE_CALL, after);
	annotate(w, w->descend, NULL, &a);
	uint64_t inside = address_of_line(&a, 4);
	annotate_free(&a);
	sample(w, step(w, node, PROFILE_EXACT, inside), 0, 0, 9);
	good(profile_settle(w->profile));
	modules_close(w->modules);
	good(modules_open(w->profile, false, &w->modules));
	good(annotate_functions_list(w->profile, w->modules, 0, NULL, &all));
	assert_int_equal(all.count, 2);
	assert_string_equal(all.all[0].name, "descend");
	assert_int_equal(all.all[0].self, 9);
	assert_int_equal(all.all[1].self, 0);
	assert_string_equal(found(&all, "main"), "main");
	assert_string_equal(found(&all, "desc"), "descend");
	assert_string_equal(found(&all, "^d.*d$"), "descend");
	assert_string_equal(found(&all, "leaf"), "descend (inlined)");
	assert_string_equal(found(&all, scratch_format("app:0x%llx", (unsigned long long)inside)),
			    "descend");
	assert_string_equal(found(&all, scratch_format("app+0x%llx", (unsigned long long)w->main)),
			    "main");
	assert_non_null(strstr(found(&all, "main|descend"), "may be 2 functions: descend (app:0x"));
	assert_non_null(strstr(found(&all, "_start"), "there are no samples in '_start'"));
	assert_non_null(strstr(found(&all, "(("), "no function with samples is called '(('"));
	annotate_functions_free(&all);
}

static void functions_are_found_by_their_names(void **state)
{
	(void)state;
	for_each_compiler(check_names);
}

static void what_cannot_be_read_says_why(void **state)
{
	static const struct {
		uint8_t kind;
		const char *path, *why;
	} cases[] = {
		{PROFILE_JIT, "[jit]", "was made at run time"},
		{PROFILE_KERNEL, "[kernel]", "code of the kernel"},
		{PROFILE_FILE, "/gone/app", "/gone/app: the file is gone or has changed"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world w = {0};
		struct annotation a;
		uint32_t index;
		good(profile_new(&w.profile));
		add_names(w.profile);
		good(profile_add_module(w.profile,
					&(struct profile_module){.kind = cases[i].kind,
								 .path = cases[i].path,
								 .build_id = "",
								 .problem = ""},
					&index));
		sample(&w, step(&w, 0, PROFILE_EXACT, 0x1000), 0, 0, 1);
		good(profile_settle(w.profile));
		good(modules_open(w.profile, false, &w.modules));
		struct err *e = annotate_make(w.profile, w.modules, 1, 0x1000, NULL, &a);
		assert_non_null(e);
		assert_non_null(strstr(err_text(e), cases[i].why));
		err_free(e);
		end_world(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_are_whole),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(inlined_code_stands_at_its_call),
		cmocka_unit_test(functions_are_found_by_their_names),
		cmocka_unit_test(what_cannot_be_read_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
