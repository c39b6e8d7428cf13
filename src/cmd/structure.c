/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `culprit structure`: the procedures of a binary with their loops, inlined code
 * and lines, each with the addresses that it covers.
 */
#include "cmd/cmd.h"
#include "cmd/options.h"

#include "base/args.h"
#include "base/err.h"
#include "base/json.h"
#include "base/json_tree.h"
#include "base/path.h"
#include "base/term.h"
#include "image/image.h"
#include "image/names.h"
#include "structure/shown.h"
#include "structure/structure.h"
#include "structure/wanted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *scope_name(const struct structure_scope *scope)
{
	return scope->name ? name_demangle(scope->name) : NULL;
}

/* ---- text ---- */

#define RANGES_SHOWN 3

static void print_ranges(const struct shown *s, uint32_t scope)
{
	unsigned shown = 0, more = 0;
	printf("%s", term_style(STDOUT_FILENO, TERM_DIM));
	for (uint32_t i = s->first[scope]; i; i = s->pieces[i].next)
		if (shown++ < RANGES_SHOWN)
			printf(" 0x%" PRIx64 "-0x%" PRIx64, s->pieces[i].start, s->pieces[i].end);
		else
			more++;
	if (more)
		printf(" and %u more", more);
	printf("%s\n", term_style(STDOUT_FILENO, TERM_PLAIN));
}

static void print_lines(const struct structure_scope *scope)
{
	if (!scope->line)
		return;
	printf(" %" PRIu32, scope->line);
	if (scope->last_line > scope->line)
		printf("-%" PRIu32, scope->last_line);
}

static const char *base_name(const char *path)
{
	return path ? path_file(path) : "?";
}

static void text_open(void *context, struct shown *s, uint32_t at, unsigned depth)
{
	const struct structure_scope *scope = &s->p->scopes[at];
	const struct structure_scope *parent = &s->p->scopes[scope->parent];
	char *name = scope_name(scope);
	(void)context;
	printf("%*s", (int)(depth < 100 ? depth : 100) * 2 + 4, "");
	switch (scope->type) {
	case STRUCTURE_PROCEDURE:
		printf("%s%s%s", term_style(STDOUT_FILENO, TERM_BOLD), term_text(name ? name : "?"),
		       term_style(STDOUT_FILENO, TERM_PLAIN));
		print_lines(scope);
		if (s->p->over_budget)
			printf(" (too large: loops left out)");
		else if (s->p->unresolved)
			printf(" (%" PRIu32 " unresolved jump%s)", s->p->unresolved,
			       s->p->unresolved == 1 ? "" : "s");
		break;
	case STRUCTURE_INLINE:
		printf("inlined %s%s%s %s", term_style(STDOUT_FILENO, TERM_CYAN),
		       term_text(name ? name : "?"), term_style(STDOUT_FILENO, TERM_PLAIN),
		       term_text(base_name(scope->file)));
		print_lines(scope);
		if (scope->call_line)
			printf(" (called at %s %" PRIu32 ")",
			       term_text(base_name(scope->call_file)), scope->call_line);
		else if (scope->guessed)
			printf(" (by its lines)");
		break;
	case STRUCTURE_LOOP:
		printf("%sloop%s", term_style(STDOUT_FILENO, TERM_YELLOW),
		       term_style(STDOUT_FILENO, TERM_PLAIN));
		print_lines(scope);
		if (scope->irreducible)
			printf(" (several entries)");
		break;
	default:
		printf("line");
		print_lines(scope);
		if (scope->file != parent->file && scope->file && parent->file &&
		    strcmp(scope->file, parent->file) != 0)
			printf(" of %s", term_text(base_name(scope->file)));
	}
	print_ranges(s, at);
	free(name);
}

static void text_close(void *context, struct shown *s, uint32_t at)
{
	(void)context, (void)s, (void)at;
}

/* ---- JSON ---- */

static void json_open_scope(struct json_tree *t, const char *kind, const char *name,
			    const char *file)
{
	struct json *j = t->j;
	json_tree_open(t);
	json_put_string(j, "kind", kind);
	json_put_string(j, "name", name);
	json_put_string(j, "file", file);
}

static void json_ranges(struct json *j, const struct shown *s, uint32_t scope)
{
	json_key(j, "ranges");
	json_begin_array(j);
	for (uint32_t i = s->first[scope]; i; i = s->pieces[i].next) {
		json_begin_array(j);
		json_address(j, s->pieces[i].start);
		json_address(j, s->pieces[i].end);
		json_end_array(j);
	}
	json_end_array(j);
}

static void json_details(struct json *j, const struct structure_procedure *p,
			 const struct structure_scope *scope)
{
	if (scope->type == STRUCTURE_PROCEDURE) {
		json_put_string(j, "symbol", scope->name);
		json_key(j, "unresolved");
		json_u64(j, p->unresolved);
		json_key(j, "over_budget");
		json_bool(j, p->over_budget);
		json_key(j, "lines_only");
		json_bool(j, p->lines_only);
	} else if (scope->type == STRUCTURE_INLINE) {
		json_put_string(j, "call_file", scope->call_file);
		json_key(j, "call_line");
		json_u64(j, scope->call_line);
		json_key(j, "guessed");
		json_bool(j, scope->guessed);
	} else if (scope->type == STRUCTURE_LOOP) {
		json_key(j, "header");
		json_address(j, scope->header);
		json_key(j, "irreducible");
		json_bool(j, scope->irreducible);
	}
}

static void json_open(void *context, struct shown *s, uint32_t at, unsigned depth)
{
	static const char *const kinds[] = {"procedure", "inline", "loop", "statement"};
	const struct structure_scope *scope = &s->p->scopes[at];
	struct json_tree *t = context;
	struct json *j = t->j;
	char *name = scope_name(scope);
	(void)depth;
	json_open_scope(t, kinds[scope->type], name, scope->file);
	json_key(j, "lines");
	json_begin_array(j);
	json_u64(j, scope->line);
	json_u64(j, scope->last_line);
	json_end_array(j);
	json_ranges(j, s, at);
	json_details(j, s->p, scope);
	json_tree_children(t);
	free(name);
}

static void json_close(void *context, struct shown *s, uint32_t at)
{
	(void)s, (void)at;
	json_tree_close(context);
}

/* ---- the command ---- */

static bool same_file(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static struct err *print_text(struct structure *structure, const struct wanted *list)
{
	struct err *e = NULL;
	for (size_t i = 0; !e && i < list->count; i++) {
		struct structure_procedure *p = structure_take(structure, list->items[i].entry);
		struct shown shown;
		if (!i || !same_file(list->items[i].file, list->items[i - 1].file))
			printf("  %s\n",
			       term_text(list->items[i].file ? list->items[i].file : "?"));
		if (!p)
			continue;
		e = shown_make(p, &shown);
		if (!e)
			shown_walk(&shown, text_open, text_close, NULL);
		shown_free(&shown);
		structure_procedure_free(p);
	}
	return e;
}

/* The tree is the document itself; as rows, it is in an object. */
static struct err *print_json(struct structure *structure, const char *path, bool rows,
			      const struct wanted *list)
{
	struct json j = json_to_file(stdout);
	struct json_tree t = {.j = &j};
	struct err *e = NULL;
	if (rows) {
		json_begin_object(&j);
		json_tree_begin(&t, &j, true, NULL);
	}
	json_open_scope(&t, "module", path, path);
	json_tree_children(&t);
	for (size_t i = 0; !e && i < list->count; i++) {
		struct structure_procedure *p = structure_take(structure, list->items[i].entry);
		const char *file = list->items[i].file;
		struct shown shown;
		if (!i || !same_file(file, list->items[i - 1].file)) {
			json_open_scope(&t, "file", file, file);
			json_tree_children(&t);
		}
		if (p) {
			e = shown_make(p, &shown);
			if (!e)
				shown_walk(&shown, json_open, json_close, &t);
			shown_free(&shown);
		}
		structure_procedure_free(p);
		if (i + 1 == list->count || !same_file(file, list->items[i + 1].file))
			json_tree_close(&t);
	}
	json_tree_close(&t);
	bool good = json_tree_end(&t);
	if (rows)
		json_end_object(&j);
	json_newline(&j);
	return e || good ? e : err_new("out of memory");
}

static struct err *run(const char *path, const char *function,
		       const struct structure_options *options, int json)
{
	struct image *image = NULL;
	struct structure *structure = NULL;
	struct wanted list = {0};
	struct err *e = image_open(path, &image);
	if (!e)
		e = structure_open(image, options, &structure);
	if (!e)
		e = wanted_find(structure, function, &list);
	if (!e && !json)
		printf("%s%s%s\n", term_style(STDOUT_FILENO, TERM_BOLD), term_text(path),
		       term_style(STDOUT_FILENO, TERM_PLAIN));
	if (!e)
		e = json ? print_json(structure, path, json == JSON_ROWS, &list)
			 : print_text(structure, &list);
	if (!e && structure_damage(structure))
		fprintf(stderr, "culprit structure: %s: %s\n", term_text(path),
			term_text(structure_damage(structure)));
	free(list.items);
	structure_close(structure);
	image_close(image);
	return e;
}

int cmd_structure(int argc, char **argv)
{
	bool lines_only = false;
	int known = 0, json = 0;
	const struct arg options[] = {
		{0, "lines-only", NULL,
		 "infer inlined code from its lines alone, as if no compiler recorded it", ARG_FLAG,
		 &lines_only},
		{0, "known", "all|code",
		 "with --lines-only: use all procedures, or only those with code of their own",
		 ARG_CHOICE, &known},
		OPTION_JSON_TREE(json),
		{0},
	};
	struct args args = {
		.command = "structure",
		.usage = "[options] BINARY [FUNCTION]",
		.summary =
			"Shows the procedures of a binary with their loops, inlined code and lines.",
		.options = options,
		.examples = "  culprit structure ./program main\n"
			    "  culprit structure --json ./program | jq '[.. | objects | "
			    "select(.kind == \"loop\")] | length'\n",
	};
	struct structure_options wanted = {0};
	int status = cmd_parse(&args, argc, argv);
	struct err *e;
	if (status >= 0)
		return status;
	if (args.count < 1)
		return cmd_misused("structure", "which binary?");
	if (args.count > 2)
		return cmd_misused("structure", "unexpected argument '%.64s'", args.operands[2]);
	if (known && !lines_only)
		return cmd_misused("structure", "--known needs --lines-only");
	wanted.source = !lines_only ? STRUCTURE_AUTO
			: known     ? STRUCTURE_LINES_CODE
				    : STRUCTURE_LINES_ONLY;
	e = run(args.operands[0], args.count > 1 ? args.operands[1] : NULL, &wanted, json);
	return cmd_finish("structure", e ? cmd_fail("structure", e) : CMD_OK);
}
