/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/show.h"

#include "annotate/annotate.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "explain/machine.h"
#include "explain/program.h"
#include "profile/profile.h"

static void put_range(struct json *j, const struct range *r)
{
	json_begin_array(j);
	json_double(j, r->low);
	json_double(j, r->high);
	json_end_array(j);
}

static void put_causes(struct json *j, const struct range_sum *sum)
{
	json_key(j, "causes");
	json_begin_object(j);
	for (unsigned i = 0; i < CAUSES; i++) {
		if (sum->of[i].high <= 0)
			continue;
		json_key(j, cause_name((enum cause)i));
		put_range(j, &sum->of[i]);
	}
	json_end_object(j);
	json_key(j, "likely");
	json_begin_object(j);
	for (unsigned i = 0; i < CAUSES; i++)
		if (sum->of[i].high > 0)
			json_put_double(j, cause_name((enum cause)i), sum->of[i].likely);
	json_end_object(j);
}

static void put_frequency(struct json *j, const struct frequency *q)
{
	static const char *const words[] = {"low", "medium", "high"};
	json_put_double(j, "frequency", q->executions);
	json_put_double(j, "low", q->low);
	json_put_double(j, "high", q->high);
	json_put_string(j, "confidence", words[q->confidence]);
}

static void put_address(struct json *j, const char *key, uint64_t address)
{
	json_key(j, key);
	json_address(j, address);
}

static void put_graph(struct json *j, const struct function *f)
{
	json_key(j, "blocks");
	json_begin_array(j);
	for (size_t i = 0; i < f->graph.block_count; i++) {
		json_begin_object(j);
		put_address(j, "address", f->graph.blocks[i].start);
		put_address(j, "end", f->graph.blocks[i].end);
		put_frequency(j, &f->frequency.blocks[i]);
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "edges");
	json_begin_array(j);
	for (size_t i = 0; i < f->graph.edge_count; i++) {
		json_begin_object(j);
		put_address(j, "from", f->graph.blocks[f->graph.edges[i].from].last);
		put_address(j, "to", f->graph.blocks[f->graph.edges[i].to].start);
		put_frequency(j, &f->frequency.edges[i]);
		json_end_object(j);
	}
	json_end_array(j);
}

static uint32_t line_of(const struct function *f, size_t insn)
{
	return f->annotation->items[f->annotation->insns[insn].line].line;
}

static void put_line(struct json *j, uint32_t line)
{
	json_key(j, "line");
	if (line)
		json_u64(j, line);
	else
		json_null(j);
}

static void put_insn(struct json *j, const struct function *f, size_t index)
{
	const struct explain_insn *i = &f->insns[index];
	json_begin_object(j);
	put_address(j, "address", i->address);
	json_put_double(j, "samples", i->samples);
	json_put_double(j, "frequency", i->frequency);
	json_put_double(j, "cpi", i->cpi);
	json_put_double(j, "static", i->fixed);
	json_put_double(j, "dynamic", i->lost);
	json_put_string(j, "text", function_text(f, index));
	put_line(j, line_of(f, index));
	json_key(j, "culprits");
	json_begin_array(j);
	for (unsigned c = 0; i->stalls && c < i->culprit_count; c++) {
		json_begin_object(j);
		json_put_string(j, "cause", cause_name((enum cause)i->culprits[c].cause));
		json_put_double(j, "low", i->culprits[c].cycles.low);
		json_put_double(j, "high", i->culprits[c].cycles.high);
		json_put_double(j, "likely", i->culprits[c].cycles.likely);
		put_address(j, "by", f->insns[i->culprits[c].by].address);
		put_line(j, line_of(f, i->culprits[c].by));
		json_end_object(j);
	}
	json_end_array(j);
	json_end_object(j);
}

static void put_loop(struct json *j, const struct function *f, const struct explain_loop *l,
		     double whole)
{
	struct buf verdict = {0};
	loop_verdict(f, l, whole, &verdict);
	json_begin_object(j);
	put_address(j, "address", l->address);
	json_put_string(j, "file", l->file);
	put_line(j, l->line);
	json_put_double(j, "iterations", l->iterations);
	json_put_double(j, "entries", l->entries);
	json_put_double(j, "cycles", l->cycles);
	json_put_double(j, "total", l->own);
	json_put_double(j, "ports", l->ports);
	json_put_double(j, "chain", l->chain);
	put_causes(j, &l->causes);
	json_put_string(j, "cause", cause_name((enum cause)l->cause));
	json_put_double(j, "faster", l->faster);
	json_put_string(j, "verdict", buf_text(&verdict));
	json_end_object(j);
	buf_free(&verdict);
}

static void put_function(struct json *j, const struct program *program,
			 const struct program_function *p)
{
	const struct function *f = p->function;
	double whole = program->samples * program->cycles_per_sample;
	json_begin_object(j);
	json_put_string(j, "name", p->name);
	json_put_string(j, "module", program->profile->modules[p->module].path);
	put_address(j, "address", p->start);
	json_put_double(j, "samples", f->samples);
	json_put_double(j, "cycles", f->cycles);
	put_causes(j, &f->causes);
	put_graph(j, f);
	json_key(j, "instructions");
	json_begin_array(j);
	for (size_t i = 0; i < f->insn_count; i++)
		put_insn(j, f, i);
	json_end_array(j);
	json_key(j, "loops");
	json_begin_array(j);
	for (size_t i = 0; i < f->loops.count; i++)
		if (f->loop_list[i].own > 0)
			put_loop(j, f, &f->loop_list[i], whole);
	json_end_array(j);
	json_end_object(j);
}

void explain_json(const struct program *program, struct json *j)
{
	json_key(j, "machine");
	json_begin_object(j);
	machine_json(&program->machine, j);
	json_end_object(j);
	put_causes(j, &program->causes);
	json_key(j, "functions");
	json_begin_array(j);
	for (size_t i = 0; i < program->count; i++)
		put_function(j, program, &program->functions[i]);
	json_end_array(j);
}
