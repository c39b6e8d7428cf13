/* SPDX-License-Identifier: Apache-2.0 */
/* `culprit check`: how well a binary can be unwound (recipes/check.h). */
#include "cmd/cmd.h"

#include "analyze/summary.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "image/image.h"
#include "image/names.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/check.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	struct check_options check;
	bool json;
};

struct totals {
	uint64_t binaries, compared, agree, explained;
};

/* ---- printing ---- */

/* Rounded down: 100% means all. */
static const char *percent(uint64_t part, uint64_t whole, char out[SUMMARY_COUNT_MAX])
{
	uint64_t thousandths = whole ? (uint64_t)((long double)part * 100000 / whole) : 0;
	if (!whole)
		return "-";
	snprintf(out, SUMMARY_COUNT_MAX, "%" PRIu64 ".%03" PRIu64 "%%", thousandths / 1000,
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
		[COMPARE_UNREACHED] = "code that the analysis did not reach",
		[COMPARE_NO_STATE] = "the analysis lost the frame",
		[COMPARE_CFA] = "they differ in the CFA",
		[COMPARE_RA] = "they differ in where the return address is",
		[COMPARE_FP] = "they differ in where the caller's frame pointer is",
		[COMPARE_EXPRESSION] = "CFI with an expression that a recipe cannot represent",
		[COMPARE_CFI_ABSENT] = "code without CFI; not compared",
	};
	return help[cause];
}

static void print_causes(const struct check *c)
{
	char text[SUMMARY_COUNT_MAX];
	for (int cause = COMPARE_AGREE + 1; cause < COMPARE_CAUSES; cause++) {
		if (!c->compare.count[cause])
			continue;
		printf("    %11s  %-15s %s%s%s\n", summary_count(text, c->compare.count[cause]),
		       compare_cause_name(cause), term_style(STDOUT_FILENO, TERM_DIM),
		       cause_help(cause), term_style(STDOUT_FILENO, TERM_PLAIN));
		print_list(c, cause);
	}
}

static void print_bounds(const struct check *c)
{
	const struct procedures_match *m = &c->match;
	char found[SUMMARY_COUNT_MAX], all[SUMMARY_COUNT_MAX], share[SUMMARY_COUNT_MAX];
	printf("  bounds      found %s of %s starts by %s (%s), missed %" PRIu64 ", false %" PRIu64
	       " (%" PRIu64 " inside a procedure)\n",
	       summary_count(found, m->found), summary_count(all, c->truth.count),
	       c->bounds_by_cfi ? "CFI" : "symbols", percent(m->found, c->truth.count, share),
	       m->missed, m->benign + m->malignant, m->malignant);
}

static void print_text(const struct check *c, const struct options *o)
{
	const struct compare *k = &c->compare;
	uint64_t explained = compare_explained(k);
	char a[SUMMARY_COUNT_MAX], b[SUMMARY_COUNT_MAX], size[TERM_UNIT_MAX];
	printf("%s%s%s\n", term_style(STDOUT_FILENO, TERM_BOLD), term_text(c->path),
	       term_style(STDOUT_FILENO, TERM_PLAIN));
	printf("  code        %s of %s; CFI describes %s, the analysis %s of it\n",
	       term_size(size, k->code_bytes), c->analysis.isa->name,
	       percent(k->cfi_bytes, k->code_bytes, a),
	       percent(k->analysis_bytes, k->code_bytes, b));
	printf("  compared    %s of %s instructions\n", summary_count(a, k->compared),
	       summary_count(b, k->instructions));
	printf("  agree       %s", percent(k->count[COMPARE_AGREE], k->compared, a));
	if (explained)
		printf("; %s with those where the CFI is at fault",
		       percent(k->count[COMPARE_AGREE] + explained, k->compared, b));
	printf("\n");
	print_causes(c);
	printf("  procedures  %s by symbols, %s more inferred\n", summary_count(a, c->by_symbol),
	       summary_count(b, c->inferred));
	if (c->has_bounds)
		print_bounds(c);
	if (c->cfi_stats.bad_entries)
		printf("  damaged     %" PRIu64 " of %" PRIu64 " entries of its CFI\n",
		       c->cfi_stats.bad_entries, c->cfi_stats.entries);
	if (o->check.emit)
		printf("  written     %s: %s pieces of code, %s names\n", term_text(o->check.emit),
		       summary_count(a, c->emitted.entries), summary_count(b, c->emitted.symbols));
}

static void json_procedures(struct json *j, const struct check *c)
{
	json_key(j, "procedures");
	json_begin_object(j);
	json_put_u64(j, "symbols", c->by_symbol);
	json_put_u64(j, "inferred", c->inferred);
	json_end_object(j);
	if (!c->has_bounds)
		return;
	json_key(j, "bounds");
	json_begin_object(j);
	json_put_string(j, "truth", c->bounds_by_cfi ? "cfi" : "symbols");
	json_put_u64(j, "procedures", c->truth.count);
	json_put_u64(j, "found", c->match.found);
	json_put_u64(j, "missed", c->match.missed);
	json_put_u64(j, "false_benign", c->match.benign);
	json_put_u64(j, "false_malignant", c->match.malignant);
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
		json_put_string(j, "function", name);
		json_put_string(j, "cause", compare_cause_name(run->cause));
		json_put_u64(j, "instructions", run->instructions);
		json_put_string(j, "cfi", compare_words(c->analysis.isa, &run->cfi, words));
		json_put_string(j, "code", compare_words(c->analysis.isa, &run->code, words));
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
	json_put_u64(&j, "culprit", 1);
	json_put_string(&j, "path", c->path);
	json_put_string(&j, "build_id", *id ? id : NULL);
	json_put_string(&j, "machine", c->analysis.isa->name);
	json_put_u64(&j, "code_bytes", k->code_bytes);
	json_put_u64(&j, "cfi_bytes", k->cfi_bytes);
	json_put_u64(&j, "analysis_bytes", k->analysis_bytes);
	json_put_u64(&j, "instructions", k->instructions);
	json_put_u64(&j, "compared", k->compared);
	json_put_u64(&j, "agree", k->count[COMPARE_AGREE]);
	json_key(&j, "disagree");
	json_begin_object(&j);
	for (int cause = COMPARE_AGREE + 1; cause < COMPARE_CFI_ABSENT; cause++)
		if (k->count[cause])
			json_put_u64(&j, compare_cause_name(cause), k->count[cause]);
	json_end_object(&j);
	json_put_u64(&j, "explained", compare_explained(k));
	json_put_u64(&j, "cfi_absent", k->count[COMPARE_CFI_ABSENT]);
	json_put_u64(&j, "cfi_damaged", c->cfi_stats.bad_entries);
	json_procedures(&j, c);
	if (o->check.list)
		json_runs(&j, c);
	json_end_object(&j);
	json_newline(&j);
}

static void print_totals(const struct totals *t)
{
	char binaries[SUMMARY_COUNT_MAX], compared[SUMMARY_COUNT_MAX], agree[SUMMARY_COUNT_MAX],
		with[SUMMARY_COUNT_MAX];
	printf("%s binaries, %s instructions compared: agree %s; %s with those where the CFI is at fault\n",
	       summary_count(binaries, t->binaries), summary_count(compared, t->compared),
	       percent(t->agree, t->compared, agree),
	       percent(t->agree + t->explained, t->compared, with));
}

/* ---- the command ---- */

static int check_one(const char *path, const struct options *o, struct totals *totals)
{
	struct check c;
	struct err *e = check_look(path, &o->check, &c);
	int status = CMD_OK;
	if (!e && o->check.emit)
		e = check_emit(&c, &o->check);
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
		{0, "list", "N", "show the first N disagreements of each cause", ARG_U64,
		 &o.check.list},
		{0, "stripped", NULL, "ignore its symbol table in the analysis; implies --bounds",
		 ARG_FLAG, &o.check.stripped},
		{0, "bounds", NULL,
		 "compare where procedures begin with its symbols, or with its CFI", ARG_FLAG,
		 &o.check.bounds},
		{0, "emit-cfi", "FILE", "write unwind information as a debug file for gdb",
		 ARG_STRING, &o.check.emit},
		{0, "unwind", "auto|analysis",
		 "what --emit-cfi writes: the best there is, or the analysis", ARG_CHOICE,
		 &o.check.unwind},
		{0, "json", NULL, "print JSON", ARG_FLAG, &o.json},
		{0},
	};
	struct args args = {
		.command = "check",
		.usage = "[options] BINARY...",
		.summary =
			"Shows how well the call stacks of a binary can be walked: how much of its code\n"
			"unwind information (CFI) and analysis describe, and where the two disagree.",
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
	if (o.check.emit && args.count > 1)
		return cmd_misused("check", "--emit-cfi takes one binary at a time");
	if (o.check.unwind && !o.check.emit)
		return cmd_misused("check", "--unwind needs --emit-cfi");
	status = CMD_OK;
	for (int i = 0; i < args.count; i++) {
		if (check_one(args.operands[i], &o, &totals) != CMD_OK)
			status = CMD_FAILED;
	}
	if (totals.binaries > 1 && !o.json)
		print_totals(&totals);
	return cmd_finish("check", status);
}
