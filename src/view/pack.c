/* SPDX-License-Identifier: Apache-2.0 */
#include "view/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/derived.h"
#include "analyze/memory_hints.h"
#include "analyze/modules.h"
#include "analyze/reasons.h"
#include "analyze/scopes.h"
#include "analyze/shorten.h"
#include "analyze/strings.h"
#include "analyze/summary.h"
#include "analyze/tree.h"
#include "annotate/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/leb.h"
#include "explain/function.h"
#include "profile/profile.h"
#include "view/calls.h"
#include "view/code.h"
#include "view/comparison.h"
#include "view/contexts.h"
#include "view/counted.h"
#include "view/explained.h"
#include "view/lines.h"
#include "view/texts.h"
#include "view/timeline.h"
#include "view/wakes.h"

struct packer {
	const struct pack_input *in;
	const struct profile *p;
	struct strings strings;
	struct lines lines;
	struct contexts contexts;
	struct calls calls; /* of a comparison: none */
	struct code code;
	struct timeline timeline;
	struct view_wakes wakes;
	struct explained explained;
	struct counted counted;
	struct buf columns, list; /* list: the array "columns" */
	struct json names;
	size_t start, count; /* of the column that is written */
};

/* ---- columns ---- */

static void put(struct packer *k, uint64_t value)
{
	leb_put(&k->columns, value);
	k->count++;
}

static void end_column(struct packer *k, const char *name)
{
	json_begin_array(&k->names);
	json_string(&k->names, name);
	json_u64(&k->names, k->count);
	json_u64(&k->names, k->columns.size - k->start);
	json_end_array(&k->names);
	k->start = k->columns.size;
	k->count = 0;
}

static void end_metric_column(struct packer *k, const char *name, size_t metric)
{
	char text[64];
	snprintf(text, sizeof text, "%s.%zu", name, metric);
	end_column(k, text);
}

/* ---- scopes ---- */

enum { FLAG_NAMELESS = 1, FLAG_GUESSED = 2 };

static void put_texts(struct packer *k)
{
	const struct scopes *scopes = k->in->attribution->scopes;
	static const char *const names[] = {"scope.name", "scope.short", "scope.file"};
	for (size_t column = 0; column < 3; column++) {
		for (uint32_t i = 0; i < scopes_count(scopes); i++) {
			const struct scope *s = scopes_get(scopes, i);
			const char *full = comparison_name(k->in->comparison, i, s->name);
			struct buf name = {0};
			if (column == 1 && !s->object &&
			    (s->kind == SCOPE_FUNCTION || s->kind == SCOPE_INLINE))
				name_shorten(full, &name);
			bool placed = !comparison_whole(k->in->comparison, i);
			put(k, strings_add(&k->strings, column == 2 ? placed ? s->file : ""
							: name.size ? buf_text(&name)
								    : full));
			buf_free(&name);
		}
		end_column(k, names[column]);
	}
}

static uint64_t scope_number(const struct packer *k, uint32_t scope, size_t column)
{
	const struct scope *s = scopes_get(k->in->attribution->scopes, scope);
	if (column >= 2 && comparison_whole(k->in->comparison, scope))
		return 0; /* what it says is of one of its functions */
	switch (column) {
	case 0:
		return s->kind;
	case 1:
		return s->module;
	case 2:
		return s->line > 0 ? (uint64_t)s->line : 0;
	case 3:
		return s->last_line > 0 ? (uint64_t)s->last_line : 0;
	case 4:
		return (s->nameless ? FLAG_NAMELESS : 0) | (s->guessed ? FLAG_GUESSED : 0);
	case 5:
		return comparison_scope(k->in->comparison, s->function);
	case 6:
		return comparison_scope(k->in->comparison, s->inlined);
	case 7:
		return (uint32_t)s->address;
	default:
		return s->address >> 32;
	}
}

static void put_scopes(struct packer *k)
{
	static const char *const names[] = {"kind",     "module",  "line", "last", "flags",
					    "function", "inlined", "low",  "high"};
	const struct scopes *scopes = k->in->attribution->scopes;
	put_texts(k);
	for (size_t column = 0; column < sizeof names / sizeof *names; column++) {
		char name[32];
		for (uint32_t i = 0; i < scopes_count(scopes); i++)
			put(k, scope_number(k, i, column));
		snprintf(name, sizeof name, "scope.%s", names[column]);
		end_column(k, name);
	}
}

/* ---- nodes, rows, lines ---- */

static void put_nodes(struct packer *k)
{
	const struct contexts *c = &k->contexts;
	const struct tree *t = c->tree;
	for (size_t i = 0; i < t->count; i++)
		put(k, i ? c->depths[i - 1] + 1 - c->depths[i] : 0);
	end_column(k, "node.up");
	for (size_t i = 0; i < t->count; i++)
		put(k, t->nodes[c->order[i]].scope);
	end_column(k, "node.scope");
	for (size_t i = 0; i < t->count; i++) {
		const struct tree_node *n = &t->nodes[c->order[i]];
		put(k, n->call_line > 0 && n->call_file
			       ? strings_add_fixed(&k->strings, n->call_file)
			       : 0);
	}
	end_column(k, "node.call_file");
	for (size_t i = 0; i < t->count; i++) {
		const struct tree_node *n = &t->nodes[c->order[i]];
		put(k, n->call_line > 0 && n->call_file ? (uint64_t)n->call_line : 0);
	}
	end_column(k, "node.call_line");
	for (size_t i = 0; i < t->count; i++)
		put(k, k->calls.line ? k->calls.line[i] : 0);
	end_column(k, "node.call");
}

static bool same_call(const struct call_row *a, const struct call_row *b)
{
	return a->node == b->node && a->line == b->line;
}

static void put_calls(struct packer *k)
{
	const struct calls *c = &k->calls;
	for (size_t i = 0; i < c->row_count; i++)
		if (!i || !same_call(&c->rows[i - 1], &c->rows[i]))
			put(k, c->rows[i].node);
	end_column(k, "call.node");
	for (size_t i = 0; i < c->row_count; i++)
		if (!i || !same_call(&c->rows[i - 1], &c->rows[i]))
			put(k, c->rows[i].line);
	end_column(k, "call.line");
	for (size_t m = 0; m < k->p->metric_count; m++) {
		for (size_t i = 0; i < c->row_count;) {
			const struct call_row *first = &c->rows[i];
			uint64_t count = 0;
			for (; i < c->row_count && same_call(first, &c->rows[i]); i++)
				count += c->rows[i].metric == m ? c->rows[i].count : 0;
			put(k, count);
		}
		end_metric_column(k, "call", m);
	}
}

/* One number for each place (node, thread, line), of the rows of which each has one metric. */
static void put_row_column(struct packer *k, uint64_t (*number)(const struct context_row *row,
								const struct context_row *before))
{
	const struct contexts *c = &k->contexts;
	const struct context_row *before = NULL;
	for (size_t i = 0; i < c->row_count; i++) {
		const struct context_row *row = &c->rows[i];
		if (before && !contexts_compare(before, row))
			continue;
		put(k, number(row, before));
		before = row;
	}
}

static uint64_t node_number(const struct context_row *row, const struct context_row *before)
{
	return row->node - (before ? before->node : 0);
}

static uint64_t thread_number(const struct context_row *row, const struct context_row *before)
{
	(void)before;
	return row->thread;
}

static uint64_t line_number(const struct context_row *row, const struct context_row *before)
{
	(void)before;
	return row->line;
}

static uint64_t reason_number(const struct context_row *row, const struct context_row *before)
{
	(void)before;
	return row->reason;
}

static void put_counts(struct packer *k, size_t metric)
{
	const struct contexts *c = &k->contexts;
	for (size_t i = 0; i < c->row_count;) {
		const struct context_row *first = &c->rows[i];
		uint64_t count = 0;
		for (; i < c->row_count && !contexts_compare(first, &c->rows[i]); i++)
			count += c->rows[i].metric == metric ? c->rows[i].count : 0;
		put(k, count);
	}
	end_metric_column(k, "row", metric);
}

static void put_rows(struct packer *k)
{
	put_row_column(k, node_number);
	end_column(k, "row.node");
	put_row_column(k, thread_number);
	end_column(k, "row.thread");
	put_row_column(k, line_number);
	end_column(k, "row.line");
	put_row_column(k, reason_number);
	end_column(k, "row.reason");
	for (size_t m = 0; m < k->p->metric_count; m++)
		put_counts(k, m);
}

static void put_wakes(struct packer *k)
{
	const struct view_wakes *w = &k->wakes;
	for (size_t i = 0; i < w->count; i++)
		put(k, w->all[i].row - (i ? w->all[i - 1].row : 0));
	end_column(k, "wake.row");
	for (size_t i = 0; i < w->count; i++)
		put(k, w->all[i].metric);
	end_column(k, "wake.metric");
	for (size_t i = 0; i < w->count; i++)
		put(k, w->all[i].waker);
	end_column(k, "wake.waker");
	for (size_t i = 0; i < w->count; i++)
		put(k, w->all[i].count);
	end_column(k, "wake.samples");
	for (size_t i = 0; i < w->count; i++)
		put(k, w->all[i].waited);
	end_column(k, "wake.waited");
}

static void put_lines(struct packer *k)
{
	const struct lines *l = &k->lines;
	for (size_t i = 0; i < l->count; i++)
		put(k, l->all[i].file);
	end_column(k, "line.file");
	for (size_t i = 0; i < l->count; i++)
		put(k, l->all[i].line);
	end_column(k, "line.line");
	for (size_t m = 0; m < l->metric_count; m++) {
		for (size_t i = 0; i < l->count; i++)
			put(k, l->total[i * l->metric_count + m]);
		end_metric_column(k, "line.total", m);
	}
}

/* ---- instructions ---- */

static uint64_t insn_number(const struct code *c, size_t i, size_t column)
{
	const struct code_insn *insn = &c->insns[i];
	bool first = !i || insn[-1].function != insn->function;
	switch (column) {
	case 0:
		return insn->function;
	case 1:
		return insn->address - (first ? 0 : insn[-1].address);
	case 2:
		return insn->text;
	case 3:
		return insn->file;
	case 4:
		return insn->line;
	case 5:
		return insn->intel;
	default:
		return insn->gap;
	}
}

static void put_code(struct packer *k)
{
	static const char *const names[] = {"insn.function", "insn.address", "insn.text",
					    "insn.file",     "insn.line",    "insn.intel",
					    "insn.gap"};
	const struct code *c = &k->code;
	for (size_t i = 0; i < c->function_count; i++)
		put(k, c->functions[i].module);
	end_column(k, "code.module");
	for (size_t i = 0; i < c->function_count; i++)
		put(k, (uint32_t)c->functions[i].start);
	end_column(k, "code.low");
	for (size_t i = 0; i < c->function_count; i++)
		put(k, c->functions[i].start >> 32);
	end_column(k, "code.high");
	for (size_t column = 0; column < sizeof names / sizeof *names; column++) {
		for (size_t i = 0; i < c->count; i++)
			put(k, insn_number(c, i, column));
		end_column(k, names[column]);
	}
	for (size_t m = 0; m < c->metric_count; m++) {
		for (size_t i = 0; i < c->count; i++)
			put(k, c->self[i * c->metric_count + m]);
		end_metric_column(k, "insn", m);
	}
}

static void put_timeline(struct packer *k)
{
	const struct timeline *t = &k->timeline;
	for (enum timeline_column c = 0; c < TIMELINE_COLUMNS; c++) {
		for (size_t i = 0; i < t->count; i++)
			put(k, timeline_number(t, i, c));
		end_column(k, timeline_columns[c]);
	}
}

static void put_explained(struct packer *k)
{
	for (size_t c = 0; c < EXPLAINED_COLUMNS; c++) {
		const struct explained_numbers *n = &k->explained.columns[c];
		for (size_t i = 0; i < n->count; i++)
			put(k, n->all[i]);
		end_column(k, explained_columns[c]);
	}
}

static void put_counted(struct packer *k)
{
	for (size_t c = 0; c < COUNTED_COLUMNS; c++) {
		const struct counted_numbers *n = &k->counted.columns[c];
		for (size_t i = 0; i < n->count; i++)
			put(k, n->all[i]);
		end_column(k, counted_columns[c]);
	}
}

/* ---- the header ---- */

static void key_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text ? text : "");
}

static void key_number(struct json *j, const char *key, int64_t number)
{
	json_key(j, key);
	json_i64(j, number);
}

static void put_text_lines(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	json_begin_array(j);
	while (text && *text) {
		struct buf line = {0};
		size_t length = strcspn(text, "\n");
		buf_append(&line, text, length);
		json_string(j, buf_text(&line));
		buf_free(&line);
		text += length + (text[length] == '\n');
	}
	json_end_array(j);
}

static void put_metrics(const struct packer *k, struct json *j)
{
	json_key(j, "metrics");
	json_begin_array(j);
	for (size_t i = 0; i < k->p->metric_count; i++) {
		const struct profile_metric *m = &k->p->metrics[i];
		json_begin_object(j);
		key_text(j, "name", m->name);
		key_text(j, "unit", m->unit);
		json_key(j, "period");
		json_u64(j, profile_period(k->p, (uint32_t)i));
		json_key(j, "userOnly");
		json_bool(j, m->user_only);
		json_key(j, "total");
		json_u64(j, k->contexts.tree->whole[i]);
		json_key(j, "waits"); /* it tells of waiting */
		json_bool(j, reason_is_told(m));
		json_end_object(j);
	}
	json_end_array(j);
}

/* Quotients of two metrics, by number. */
static void put_quotients(const struct packer *k, struct json *j)
{
	struct derived all[DERIVED_MAX];
	size_t count = derived_find(k->p, all);
	json_key(j, "quotients");
	json_begin_array(j);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(j);
		key_text(j, "name", all[i].name);
		key_text(j, "unit", all[i].unit);
		key_number(j, "over", all[i].over);
		key_number(j, "under", all[i].under);
		json_key(j, "ofCalls");
		json_bool(j, all[i].of_calls);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_memory_rules(const struct packer *k, struct json *j)
{
	for (size_t i = 0; i < k->p->metric_count; i++)
		if (!strcmp(k->p->metrics[i].name, "alloc.calls")) {
			memory_rules_json(j);
			return;
		}
}

static void put_reasons(struct json *j)
{
	json_key(j, "reasons");
	json_begin_array(j);
	for (enum reason r = 0; r < REASON_COUNT; r++)
		json_string(j, reason_name(r));
	json_end_array(j);
}

static void put_modules(const struct packer *k, struct json *j)
{
	static const char *const kinds[] = {
		[PROFILE_NONE] = "none",     [PROFILE_FILE] = "file",
		[PROFILE_VDSO] = "vdso",     [PROFILE_JIT] = "jit",
		[PROFILE_KERNEL] = "kernel", [PROFILE_SCRIPT] = "script",
		[PROFILE_OBJECT] = "object",
	};
	json_key(j, "modules");
	json_begin_array(j);
	for (size_t i = 0; i < k->p->module_count; i++) {
		const struct profile_module *m = &k->p->modules[i];
		json_begin_object(j);
		key_text(j, "path", m->path);
		key_text(j, "kind", m->kind < PROFILE_KINDS ? kinds[m->kind] : "none");
		key_text(j, "buildId", m->build_id);
		key_text(j, "problem", m->problem);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_threads(const struct packer *k, struct json *j)
{
	json_key(j, "processes");
	json_begin_array(j);
	for (size_t i = 0; i < k->p->process_count; i++) {
		const struct profile_process *x = &k->p->processes[i];
		json_begin_object(j);
		key_number(j, "pid", x->pid);
		key_text(j, "name", x->name);
		key_text(j, "command", x->command);
		key_number(j, "rank", x->rank);
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "threads");
	json_begin_array(j);
	for (size_t i = 0; i < k->p->thread_count; i++) {
		const struct profile_thread *t = &k->p->threads[i];
		json_begin_object(j);
		key_number(j, "process", t->process);
		key_number(j, "tid", t->tid);
		key_text(j, "name", t->name);
		json_end_object(j);
	}
	json_end_array(j);
}

/* Times are µs since the recording began. */
static void put_timeline_header(const struct packer *k, struct json *j)
{
	const struct profile *p = k->p;
	json_key(j, "timeline");
	json_begin_object(j);
	json_key(j, "recorded");
	json_bool(j, p->timed);
	json_key(j, "coarse");
	json_u64(j, p->coarse_us);
	json_key(j, "untimed"); /* samples */
	json_u64(j, p->untimed + k->timeline.unplaced);
	json_key(j, "duration");
	json_u64(j, p->duration_ns / 1000);
	json_key(j, "threads"); /* when each began and ended */
	json_begin_array(j);
	for (size_t i = 0; p->timed && i < p->thread_count; i++) {
		json_begin_array(j);
		json_u64(j, p->threads[i].start_ns / 1000);
		json_u64(j, p->threads[i].end_ns / 1000);
		json_end_array(j);
	}
	json_end_array(j);
	json_end_object(j);
}

/* For people. */
static void put_causes(struct json *j)
{
	json_key(j, "causes");
	json_begin_array(j);
	for (unsigned i = 0; i < CAUSES; i++)
		json_string(j, cause_title((enum cause)i));
	json_end_array(j);
}

static void put_recording(const struct packer *k, struct json *j)
{
	const struct profile *p = k->p;
	struct summary summary;
	summary_make(p, 0, &summary);
	key_text(j, "title", k->in->title);
	key_text(j, "tool", k->in->version);
	key_text(j, "host", p->host);
	key_text(j, "kernel", p->kernel);
	key_text(j, "machine", p->machine);
	key_text(j, "directory", p->directory);
	json_key(j, "startTime");
	json_u64(j, p->start_time);
	json_key(j, "summary");
	json_begin_object(j);
	summary_json(&summary, p, k->in->notes ? k->in->notes : "", j);
	json_end_object(j);
}

static struct err *put_sources(struct packer *k, struct json *j)
{
	struct err *e = NULL;
	struct buf notes = {0};
	json_key(j, "hasSources");
	json_bool(j, k->in->sources != NULL);
	if (k->in->sources) {
		json_key(j, "sources");
		e = texts_json(&k->lines, &k->strings, k->in->sources, j);
		sources_notes(k->in->sources, &notes);
		put_text_lines(j, "sourceNotes", buf_text(&notes));
	}
	buf_free(&notes);
	return e;
}

static struct err *put_header(struct packer *k, struct buf *out)
{
	struct json j = json_to_buf(out);
	struct buf notes = {0};
	json_begin_object(&j);
	json_key(&j, "format");
	json_u64(&j, 1);
	put_recording(k, &j);
	put_metrics(k, &j);
	put_quotients(k, &j);
	put_memory_rules(k, &j);
	put_reasons(&j);
	put_causes(&j);
	put_modules(k, &j);
	put_threads(k, &j);
	if (k->in->comparison)
		comparison_json(k->in->comparison, k->p->thread_count, &j);
	put_timeline_header(k, &j);
	modules_notes(k->in->modules, NULL, &notes);
	if (k->code.no_text)
		buf_printf(&notes, "%s\n", err_text(k->code.no_text));
	put_text_lines(&j, "moduleNotes", buf_text(&notes));
	buf_free(&notes);
	struct err *e = put_sources(k, &j);
	json_key(&j, "strings");
	json_begin_array(&j);
	for (uint32_t i = 0; i < k->strings.count; i++)
		json_string(&j, strings_get(&k->strings, i));
	json_end_array(&j);
	json_key(&j, "columns");
	buf_append(out, k->list.data, k->list.size);
	json_end_object(&j);
	return e;
}

/* ---- the face ---- */

static void put_columns(struct packer *k)
{
	k->names = json_to_buf(&k->list);
	json_begin_array(&k->names);
	put_scopes(k);
	put_nodes(k);
	put_rows(k);
	put_wakes(k);
	put_calls(k);
	put_lines(k);
	put_code(k);
	put_explained(k);
	put_counted(k);
	put_timeline(k);
	json_end_array(&k->names);
}

static struct err *join(struct packer *k, struct buf *out)
{
	struct buf header = {0};
	struct err *e = put_header(k, &header);
	if (!e && (header.failed || header.size > UINT32_MAX || k->columns.failed ||
		   k->list.failed || k->strings.failed))
		e = err_new("out of memory");
	if (!e) {
		unsigned char size[4];
		for (int i = 0; i < 4; i++)
			size[i] = (unsigned char)(header.size >> 8 * i);
		buf_append(out, size, sizeof size);
		buf_append(out, header.data, header.size);
		buf_append(out, k->columns.data, k->columns.size);
		if (out->failed)
			e = err_new("out of memory");
	}
	buf_free(&header);
	return e;
}

struct err *pack_make(const struct pack_input *in, struct buf *out)
{
	struct packer k = {.in = in, .p = in->profile};
	strings_add(&k.strings, ""); /* text 0 is none */
	struct err *e = lines_make(in->profile, in->modules, &k.strings, &k.lines);
	if (!e)
		e = contexts_make(in->attribution, &k.lines, in->comparison, &k.contexts);
	if (!e && !in->comparison)
		e = calls_make(in->attribution, &k.contexts, &k.lines, &k.strings, &k.calls);
	if (!e)
		e = code_make(in->profile, in->modules, &k.strings, &k.code);
	if (!e)
		e = explained_make(in->program, &k.code, &k.strings, &k.explained);
	if (!e)
		e = counted_make(in->counted, in->profile, &k.code, &k.strings, &k.explained,
				 &k.counted);
	if (!e)
		e = timeline_make(in->attribution, &k.contexts, &k.lines, &k.timeline);
	if (!e)
		e = view_wakes_make(in->attribution, &k.contexts, &k.lines, &k.wakes);
	if (!e) {
		put_columns(&k);
		e = join(&k, out);
	}
	strings_free(&k.strings);
	lines_free(&k.lines);
	contexts_free(&k.contexts);
	calls_free(&k.calls);
	code_free(&k.code);
	explained_free(&k.explained);
	counted_free(&k.counted);
	timeline_free(&k.timeline);
	view_wakes_free(&k.wakes);
	buf_free(&k.columns);
	buf_free(&k.list);
	return e;
}
