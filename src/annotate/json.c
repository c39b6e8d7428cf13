/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate/show.h"

#include <stdlib.h>
#include <string.h>

#include "annotate/annotate.h"
#include "annotate/targets.h"
#include "analyze/modules.h"
#include "annotate/sources.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "image/image.h"
#include "isa/insn.h"
#include "isa/text.h"
#include "profile/profile.h"

static void put_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	if (value)
		json_u64(j, value);
	else
		json_null(j);
}

/* Of an item, or of an instruction (then behind all items). */
static void put_values(struct json *j, const struct annotation *a, size_t index)
{
	const uint64_t *values[] = {a->self, a->total};
	static const char *const keys[] = {"self", "total"};
	for (size_t k = 0; k < 2; k++) {
		json_key(j, keys[k]);
		json_begin_array(j);
		for (size_t m = 0; m < a->metric_count; m++)
			json_u64(j, values[k][index * a->metric_count + m]);
		json_end_array(j);
	}
}

static void put_place(struct json *j, const struct annotate_item *i)
{
	json_put_string(j, "file", i->file);
	put_number(j, "line", i->line);
}

/* The functions that the code was inlined from, the innermost first. */
static void put_inlined(struct json *j, const struct annotation *a, uint32_t context)
{
	json_key(j, "inlined");
	json_begin_array(j);
	for (uint32_t at = context; at; at = a->items[at].parent) {
		const struct annotate_item *c = &a->items[at];
		if (c->kind != ANNOTATE_CONTEXT)
			continue;
		json_begin_object(j);
		json_put_string(j, "name", c->name);
		put_place(j, c);
		json_put_string(j, "call_file", c->call_file);
		put_number(j, "call_line", c->call_line);
		json_end_object(j);
	}
	json_end_array(j);
}

static uint64_t loop_depth(const struct annotation *a, uint32_t loop)
{
	return loop == ANNOTATE_NONE ? 0 : a->items[loop].depth + 1;
}

static void put_metrics(struct json *j, const struct annotation *a)
{
	json_key(j, "metrics");
	json_begin_array(j);
	for (size_t i = 0; i < a->metric_count; i++) {
		const struct profile_metric *m = &a->profile->metrics[i];
		json_begin_object(j);
		json_put_string(j, "name", m->name);
		json_put_string(j, "unit", m->unit);
		json_key(j, "period");
		json_u64(j, profile_period(a->profile, (uint32_t)i));
		json_put_double(j, "counted", coverage_share(m->coverage));
		json_key(j, "total");
		json_u64(j, a->whole[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_function(struct json *j, const struct annotation *a)
{
	const struct annotate_item *f = &a->items[0];
	json_key(j, "function");
	json_begin_object(j);
	json_put_string(j, "name", f->name);
	json_put_string(j, "symbol", a->symbol);
	json_put_string(j, "module", a->profile->modules[a->module].path);
	put_place(j, f);
	put_number(j, "last_line", f->last_line);
	json_key(j, "start");
	json_address(j, a->start);
	put_values(j, a, 0);
	json_end_object(j);
}

static void put_loops(struct json *j, const struct annotation *a)
{
	json_key(j, "loops");
	json_begin_array(j);
	for (size_t i = 0; i < a->item_count; i++) {
		const struct annotate_item *l = &a->items[i];
		if (l->kind != ANNOTATE_LOOP)
			continue;
		json_begin_object(j);
		put_place(j, l);
		put_number(j, "last_line", l->last_line);
		json_key(j, "header");
		json_address(j, l->header);
		json_key(j, "depth");
		json_u64(j, loop_depth(a, (uint32_t)i));
		put_values(j, a, i);
		put_inlined(j, a, l->context);
		json_end_object(j);
	}
	json_end_array(j);
}

/* The line's own text, as it is; left out where it is not known. */
static void put_source(struct json *j, struct sources *sources, const struct annotate_item *i)
{
	size_t size;
	const struct source_text *text = i->line ? sources_find(sources, i->file) : NULL;
	const char *line = text ? source_line(text, i->line, &size) : NULL;
	struct buf copy = {0};
	if (!line)
		return;
	buf_append(&copy, line, size);
	json_put_string(j, "text", buf_text(&copy));
	buf_free(&copy);
}

static void put_lines(struct json *j, const struct annotation *a, struct sources *sources)
{
	json_key(j, "lines");
	json_begin_array(j);
	for (size_t i = 0; i < a->item_count; i++) {
		if (a->items[i].kind != ANNOTATE_LINE)
			continue;
		json_begin_object(j);
		put_place(j, &a->items[i]);
		put_source(j, sources, &a->items[i]);
		put_values(j, a, i);
		put_inlined(j, a, a->items[i].context);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_insn(struct json *j, const struct annotation *a, struct text *text,
		     struct targets *targets, size_t index)
{
	const struct annotate_insn *i = &a->insns[index];
	size_t size = 0;
	const uint8_t *code = image_bytes_at(modules_image(a->modules, a->module), i->address,
					     &size);
	struct insn insn;
	json_begin_object(j);
	json_key(j, "address");
	json_address(j, i->address);
	if (code) {
		a->isa->decode(code, size, i->address, &insn);
		json_put_string(j, "text", text_insn(text, code, size, &insn, NULL));
	}
	if (i->target) {
		json_key(j, "target");
		json_address(j, i->target);
		const char *name = targets_name(targets, i->target);
		if (name && name[0] != '.')
			json_put_string(j, "target_name", name);
	}
	put_values(j, a, a->item_count + index);
	put_place(j, &a->items[i->line]);
	json_put_string(j, "function", a->items[a->items[i->line].context].name);
	json_key(j, "loop_depth");
	json_u64(j, loop_depth(a, i->loop));
	json_end_object(j);
}

static struct err *put_insns(struct json *j, const struct annotation *a)
{
	struct targets *targets = NULL;
	struct text *text = NULL;
	struct err *e = text_open(a->isa, &text);
	if (!e)
		e = targets_open(a, &targets);
	json_key(j, "instructions");
	json_begin_array(j);
	for (size_t i = 0; !e && i < a->insn_count; i++)
		put_insn(j, a, text, targets, i);
	json_end_array(j);
	targets_close(targets);
	text_close(text);
	return e;
}

struct err *annotate_show_json(const struct annotation *a, struct sources *sources, bool lines,
			       bool instructions, struct json *j)
{
	put_metrics(j, a);
	put_function(j, a);
	put_loops(j, a);
	if (lines)
		put_lines(j, a, sources);
	return instructions ? put_insns(j, a) : NULL;
}
