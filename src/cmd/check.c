/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit check`: how well a binary can be unwound. The two sources of recipes,
 * CFI and the analysis of the code, know nothing of each other (but for the
 * landing pads of exceptions), so each is the test of the other.
 */
#include "cmd/cmd.h"

#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/names.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/build.h"
#include "recipes/cfi.h"
#include "recipes/compare.h"
#include "recipes/emit.h"
#include "recipes/procedures.h"
#include "recipes/rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct options {
	bool json, stripped, bounds;
	uint64_t list;
	const char *emit;
	int unwind; /* 0: auto, 1: analysis */
};

/* All that is found out about one binary. */
struct check {
	const char *path;
	struct image *image, *debug;
	struct symbols *names; /* all there are */
	struct symbols *given; /* what the analysis gets to see */
	struct rows cfi;
	struct cfi_stats cfi_stats;
	struct analysis analysis;
	struct compare compare;
	uint64_t by_symbol, inferred; /* procedures */
	bool has_bounds, bounds_by_cfi;
	struct procedures truth;
	struct procedures_match match;
	struct emit_stats emitted;
};

struct totals {
	uint64_t binaries, compared, agree, explained;
};

/* ---- finding out ---- */

static bool has_frames(const struct image *image)
{
	return image_section(image, ".eh_frame") || image_section(image, ".debug_frame") ||
	       image_section(image, ".sframe");
}

static bool has_names(const struct image *image)
{
	return image && (image_section(image, ".symtab") || image_section(image, ".gnu_debugdata"));
}

static struct err *open_all(struct check *c, const struct options *o)
{
	struct err *e = image_open(c->path, &c->image);

	if (e)
		return e;
	if (!has_frames(c->image) || !has_names(c->image))
		e = debug_find(c->image, false, &c->debug);
	if (!e)
		e = symbols_read(c->image, c->debug, &c->names);
	if (!e)
		e = o->stripped ? symbols_read_dynamic(c->image, &c->given)
				: symbols_read(c->image, NULL, &c->given);
	return e;
}

static bool has_symbol_at(const struct symbols *symbols, uint64_t address)
{
	const struct symbol *symbol = symbols_find(symbols, address);

	return symbol && symbol->address == address;
}

/* Procedures by symbols, and those that only the analysis knows of. */
static struct err *count_procedures(struct check *c)
{
	struct procedures named;
	struct err *e = procedures_from_symbols(c->image, c->given, &named);
	const uint64_t *starts;
	size_t count = trace_starts(c->analysis.trace, &starts);

	if (e)
		return e;
	c->by_symbol = named.count;
	procedures_free(&named);
	for (size_t i = 0; i < count; i++)
		c->inferred += !has_symbol_at(c->given, starts[i]) &&
			       !procedures_is_stub(c->image, starts[i]);
	return NULL;
}

static struct err *match_bounds(struct check *c)
{
	const uint64_t *starts;
	size_t count = trace_starts(c->analysis.trace, &starts);
	struct err *e;

	c->has_bounds = true;
	c->bounds_by_cfi = !has_names(c->image) && !has_names(c->debug);
	if (c->bounds_by_cfi)
		e = procedures_from_cfi(c->image, c->debug, &c->cfi, &c->truth);
	else
		e = procedures_from_symbols(c->image, c->names, &c->truth);
	if (!e)
		procedures_compare(c->image, &c->truth, c->names, starts, count, &c->match);
	return e;
}

static struct err *look_at(struct check *c, const struct options *o)
{
	struct err *e = open_all(c, o);

	if (!e)
		e = cfi_read(c->image, has_frames(c->image) ? NULL : c->debug, &c->cfi,
			     &c->cfi_stats);
	if (e)
		return e;
	rows_finish(&c->cfi);
	if (c->cfi.failed)
		return err_new("%s: out of memory", c->path);
	e = analysis_run(c->image, c->given, &c->analysis);
	if (!e)
		e = compare_sources(&c->analysis, &c->cfi, o->list, &c->compare);
	if (!e)
		e = count_procedures(c);
	if (!e && (o->bounds || o->stripped))
		e = match_bounds(c);
	return e;
}

static void check_free(struct check *c)
{
	procedures_free(&c->truth);
	compare_free(&c->compare);
	analysis_free(&c->analysis);
	rows_free(&c->cfi);
	symbols_free(c->given);
	symbols_free(c->names);
	image_close(c->debug);
	image_close(c->image);
}

/* ---- the debug file ---- */

static struct err *save(const char *path, const struct buf *bytes)
{
	FILE *file = fopen(path, "we");
	struct stat st;
	struct err *e = NULL;
	bool is_file, good;

	if (!file)
		return err_errno("%s: cannot write", path);
	is_file = fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode);
	good = fwrite(bytes->data, 1, bytes->size, file) == bytes->size;
	if (fclose(file) != 0 || !good)
		e = err_errno("%s: cannot write", path);
	if (e && is_file) /* half a file is worse than none; a device stays */
		unlink(path);
	return e;
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static struct err *emit(struct check *c, const struct options *o)
{
	struct emit_input input = {.image = c->image, .symbols = c->names};
	struct buf bytes = {0};
	struct rows rows;
	struct err *e;

	if (same_file(c->path, o->emit))
		return err_new("%s: is the binary itself: choose another name for the debug file",
			       o->emit);
	rows_init(&rows);
	e = recipes_rows(c->image, has_frames(c->image) ? NULL : c->debug,
			 o->unwind ? RECIPES_ANALYSIS : RECIPES_AUTO, &rows);
	input.rows = &rows;
	input.start_count = trace_starts(c->analysis.trace, &input.starts);
	if (!e)
		e = emit_debug_file(&input, &bytes, &c->emitted);
	if (!e)
		e = save(o->emit, &bytes);
	buf_free(&bytes);
	rows_free(&rows);
	return e;
}

/* ---- printing ---- */

#define NUMBER_MAX 32

/* "11 203 417" */
static const char *number(uint64_t value, char out[NUMBER_MAX])
{
	char digits[NUMBER_MAX];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, value), to = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			out[to++] = ' ';
		out[to++] = digits[i];
	}
	out[to] = 0;
	return out;
}

/* Rounded down: 100% means all. */
static const char *percent(uint64_t part, uint64_t whole, char out[NUMBER_MAX])
{
	uint64_t thousandths = whole ? (uint64_t)((long double)part * 100000 / whole) : 0;

	if (!whole)
		return "-";
	snprintf(out, NUMBER_MAX, "%" PRIu64 ".%03" PRIu64 "%%", thousandths / 1000,
		 thousandths % 1000);
	return out;
}

static char *place_name(const struct check *c, uint64_t address)
{
	const struct symbol *symbol = symbols_find(c->names, address);
	struct buf text = {0};
	char *name = symbol ? name_demangle(symbol->name) : NULL;

	if (name && address == symbol->address)
		buf_puts(&text, name);
	else if (name)
		buf_printf(&text, "%s+0x%" PRIx64, name, address - symbol->address);
	else
		buf_puts(&text, "?");
	free(name);
	return buf_take(&text);
}

static void print_list(const struct check *c, enum compare_cause cause)
{
	const struct isa *isa = c->analysis.isa;
	char words[COMPARE_WORDS_MAX];

	for (size_t i = 0; i < c->compare.run_count; i++) {
		const struct compare_run *run = &c->compare.runs[i];
		char *name;

		if (run->cause != cause)
			continue;
		name = place_name(c, run->address);
		printf("      0x%" PRIx64 " %s (%" PRIu64 " instruction%s)\n", run->address,
		       term_text(name ? name : "?"), run->instructions,
		       run->instructions == 1 ? "" : "s");
		free(name);
		printf("        CFI   %s\n", compare_words(isa, &run->cfi, words));
		printf("        code  %s\n", compare_words(isa, &run->code, words));
	}
}

static const char *cause_help(enum compare_cause cause)
{
	static const char *const help[COMPARE_CAUSES] = {
		[COMPARE_EPILOGUE] = "the CFI is wrong: it does not fit the return that follows",
		[COMPARE_LATE] = "the CFI is wrong: it does not follow a change of the stack",
		[COMPARE_CLOBBER] = "the CFI is wrong: the code overwrites the frame pointer",
		[COMPARE_ROOT] = "the CFI ends the stack here, the code does not (yet)",
		[COMPARE_UNREACHED] = "code that the analysis did not come to",
		[COMPARE_NO_STATE] = "the analysis lost the frame",
		[COMPARE_CFA] = "they differ in the CFA",
		[COMPARE_RA] = "they differ in where the return address is",
		[COMPARE_FP] = "they differ in where the caller's frame pointer is",
		[COMPARE_EXPRESSION] = "CFI that no recipe can say",
		[COMPARE_CFI_ABSENT] = "code without CFI; not compared",
	};

	return help[cause];
}

static void print_causes(const struct check *c)
{
	char text[NUMBER_MAX];

	for (int cause = COMPARE_AGREE + 1; cause < COMPARE_CAUSES; cause++) {
		if (!c->compare.count[cause])
			continue;
		printf("    %11s  %-15s %s%s%s\n", number(c->compare.count[cause], text),
		       compare_cause_name(cause), term_style(STDOUT_FILENO, TERM_DIM),
		       cause_help(cause), term_style(STDOUT_FILENO, TERM_PLAIN));
		print_list(c, cause);
	}
}

static void print_bounds(const struct check *c)
{
	const struct procedures_match *m = &c->match;
	char found[NUMBER_MAX], all[NUMBER_MAX], share[NUMBER_MAX];

	printf("  bounds      found %s of %s starts by %s (%s), missed %" PRIu64 ", false %" PRIu64
	       " (%" PRIu64 " inside a procedure)\n",
	       number(m->found, found), number(c->truth.count, all),
	       c->bounds_by_cfi ? "CFI" : "symbols", percent(m->found, c->truth.count, share),
	       m->missed, m->benign + m->malignant, m->malignant);
}

static void print_text(const struct check *c, const struct options *o)
{
	const struct compare *k = &c->compare;
	uint64_t explained = compare_explained(k);
	char a[NUMBER_MAX], b[NUMBER_MAX], size[TERM_UNIT_MAX];

	printf("%s%s%s\n", term_style(STDOUT_FILENO, TERM_BOLD), term_text(c->path),
	       term_style(STDOUT_FILENO, TERM_PLAIN));
	printf("  code        %s of %s; CFI describes %s, the analysis %s of it\n",
	       term_size(size, k->code_bytes), c->analysis.isa->name,
	       percent(k->cfi_bytes, k->code_bytes, a),
	       percent(k->analysis_bytes, k->code_bytes, b));
	printf("  compared    %s of %s instructions\n", number(k->compared, a),
	       number(k->instructions, b));
	printf("  agree       %s", percent(k->count[COMPARE_AGREE], k->compared, a));
	if (explained)
		printf("; %s with those where the CFI is at fault",
		       percent(k->count[COMPARE_AGREE] + explained, k->compared, b));
	printf("\n");
	print_causes(c);
	printf("  procedures  %s by symbols, %s more inferred\n", number(c->by_symbol, a),
	       number(c->inferred, b));
	if (c->has_bounds)
		print_bounds(c);
	if (c->cfi_stats.bad_entries)
		printf("  damaged     %" PRIu64 " of %" PRIu64 " entries of its CFI\n",
		       c->cfi_stats.bad_entries, c->cfi_stats.entries);
	if (o->emit)
		printf("  written     %s: %s pieces of code, %s names\n", term_text(o->emit),
		       number(c->emitted.entries, a), number(c->emitted.symbols, b));
}

static void json_count(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void json_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void json_procedures(struct json *j, const struct check *c)
{
	json_key(j, "procedures");
	json_begin_object(j);
	json_count(j, "symbols", c->by_symbol);
	json_count(j, "inferred", c->inferred);
	json_end_object(j);
	if (!c->has_bounds)
		return;
	json_key(j, "bounds");
	json_begin_object(j);
	json_text(j, "truth", c->bounds_by_cfi ? "cfi" : "symbols");
	json_count(j, "procedures", c->truth.count);
	json_count(j, "found", c->match.found);
	json_count(j, "missed", c->match.missed);
	json_count(j, "false_benign", c->match.benign);
	json_count(j, "false_malignant", c->match.malignant);
	json_end_object(j);
}

static void json_runs(struct json *j, const struct check *c)
{
	char words[COMPARE_WORDS_MAX];

	json_key(j, "list");
	json_begin_array(j);
	for (size_t i = 0; i < c->compare.run_count; i++) {
		const struct compare_run *run = &c->compare.runs[i];
		char *name = place_name(c, run->address);

		json_begin_object(j);
		json_key(j, "address");
		json_address(j, run->address);
		json_text(j, "function", name);
		json_text(j, "cause", compare_cause_name(run->cause));
		json_count(j, "instructions", run->instructions);
		json_text(j, "cfi", compare_words(c->analysis.isa, &run->cfi, words));
		json_text(j, "code", compare_words(c->analysis.isa, &run->code, words));
		json_end_object(j);
		free(name);
	}
	json_end_array(j);
}

static void print_json(const struct check *c, const struct options *o)
{
	const struct compare *k = &c->compare;
	struct json j = json_to_file(stdout);
	char id[2 * BUILD_ID_MAX + 1];

	image_build_id_hex(c->image, id);
	json_begin_object(&j);
	json_text(&j, "path", c->path);
	json_text(&j, "build_id", *id ? id : NULL);
	json_text(&j, "machine", c->analysis.isa->name);
	json_count(&j, "code_bytes", k->code_bytes);
	json_count(&j, "cfi_bytes", k->cfi_bytes);
	json_count(&j, "analysis_bytes", k->analysis_bytes);
	json_count(&j, "instructions", k->instructions);
	json_count(&j, "compared", k->compared);
	json_count(&j, "agree", k->count[COMPARE_AGREE]);
	json_key(&j, "disagree");
	json_begin_object(&j);
	for (int cause = COMPARE_AGREE + 1; cause < COMPARE_CFI_ABSENT; cause++)
		if (k->count[cause])
			json_count(&j, compare_cause_name(cause), k->count[cause]);
	json_end_object(&j);
	json_count(&j, "explained", compare_explained(k));
	json_count(&j, "cfi_absent", k->count[COMPARE_CFI_ABSENT]);
	json_count(&j, "cfi_damaged", c->cfi_stats.bad_entries);
	json_procedures(&j, c);
	if (o->list)
		json_runs(&j, c);
	json_end_object(&j);
	json_newline(&j);
}

static void print_totals(const struct totals *t)
{
	char binaries[NUMBER_MAX], compared[NUMBER_MAX], agree[NUMBER_MAX], with[NUMBER_MAX];

	printf("%s binaries, %s instructions compared: agree %s; %s with those where the CFI is at fault\n",
	       number(t->binaries, binaries), number(t->compared, compared),
	       percent(t->agree, t->compared, agree),
	       percent(t->agree + t->explained, t->compared, with));
}

/* ---- the command ---- */

static int check_one(const char *path, const struct options *o, struct totals *totals)
{
	struct check c = {.path = path};
	struct err *e;
	int status = CMD_OK;

	rows_init(&c.cfi);
	e = look_at(&c, o);
	if (!e && o->emit)
		e = emit(&c, o);
	if (e) {
		status = cmd_fail("check", e);
	} else {
		totals->binaries++;
		totals->compared += c.compare.compared;
		totals->agree += c.compare.count[COMPARE_AGREE];
		totals->explained += compare_explained(&c.compare);
		if (o->json)
			print_json(&c, o);
		else
			print_text(&c, o);
		fflush(stdout);
	}
	check_free(&c);
	return status;
}

int cmd_check(int argc, char **argv)
{
	struct options o = {0};
	const struct arg options[] = {
		{0, "list", "N", "show the first N disagreements of each cause", ARG_U64, &o.list},
		{0, "stripped", NULL, "ignore its symbol table in the analysis; implies --bounds",
		 ARG_FLAG, &o.stripped},
		{0, "bounds", NULL,
		 "compare where procedures begin with its symbols, or with its CFI", ARG_FLAG,
		 &o.bounds},
		{0, "emit-cfi", "FILE", "write unwind information as a debug file for gdb",
		 ARG_STRING, &o.emit},
		{0, "unwind", "auto|analysis",
		 "what --emit-cfi writes: the best there is, or the analysis", ARG_CHOICE,
		 &o.unwind},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "check",
		.usage = "[options] BINARY...",
		.summary =
			"Shows how well a binary can be unwound: how much of its code unwind information\n"
			"(CFI) and analysis of the code describe, and where the two disagree.",
		.options = options,
		.examples = "  culprit check --list 3 ./program\n"
			    "  culprit check --emit-cfi program.debug ./program\n"
			    "  gdb -s program.debug -e ./program\n",
	};
	int status = cmd_parse(&args, argc, argv);
	struct totals totals = {0};

	if (status >= 0)
		return status;
	if (!args.count)
		return cmd_misused("check", "which binary?");
	if (o.emit && args.count > 1)
		return cmd_misused("check", "--emit-cfi takes one binary at a time");
	if (o.unwind && !o.emit)
		return cmd_misused("check", "--unwind only says what --emit-cfi writes");
	status = CMD_OK;
	for (int i = 0; i < args.count; i++) {
		if (check_one(args.operands[i], &o, &totals) != CMD_OK)
			status = CMD_FAILED;
	}
	if (totals.binaries > 1 && !o.json)
		print_totals(&totals);
	return cmd_finish("check", status);
}
