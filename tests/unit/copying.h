/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies of x86-64 functions that do the same, for tests: NOPs before each instruction, and jumps in their long form.
 * Calls of functions that are copied too go to their copies. Jumps by tables go back to the functions. A copy can be
 * turned: all blocks but the first are in the opposite order.
 */
#include <stdlib.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "unit.h"

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "copies/copy.h"
#include "structure/control.h"
#include "structure/extents.h"

struct copying_form {
	unsigned nops; /* before each instruction */
	bool turned;
	bool early; /* an exception goes on at the NOPs before its landing pad */
};

struct copying_fix { /* a distance of 4 bytes that is not known yet */
	size_t copy;
	uint32_t at, behind; /* where it is; where the instruction ends that it counts from */
	uint64_t to;         /* in the module */
	bool control;        /* it is where control goes */
};

struct copying {
	struct image *image;
	struct symbols *symbols;
	struct control_module control;
	struct extents extents;
	struct copy *copies;
	struct graph_part **parts; /* of each copy */
	size_t count, room, parts_room;
	struct copying_fix *fixes;
	size_t fix_count, fix_room;
};

static inline void copying_must(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static inline void copying_open(struct copying *c, const char *path)
{
	memset(c, 0, sizeof *c);
	copying_must(image_open(path, &c->image));
	copying_must(symbols_read(c->image, NULL, &c->symbols));
	copying_must(control_open(c->image, c->symbols, &c->control));
	copying_must(extents_find(c->image, NULL, c->symbols, NULL, 0, &c->extents));
}

static inline void copying_drop(struct copying *c, size_t from)
{
	for (size_t i = from; i < c->count; i++) {
		free(c->copies[i].code);
		free(c->copies[i].steps);
		free(c->parts[i]);
	}
	c->count = from;
	c->fix_count = 0;
}

static inline void copying_close(struct copying *c)
{
	copying_drop(c, 0);
	free(c->copies);
	free(c->parts);
	free(c->fixes);
	extents_free(&c->extents);
	control_close(&c->control);
	symbols_free(c->symbols);
	image_close(c->image);
}

/* ---- instructions ---- */

static inline void copying_fix_later(struct copying *c, uint32_t at, uint32_t behind, uint64_t to,
				     bool control)
{
	assert_true(ARRAY_ROOM(c->fixes, c->fix_count, c->fix_room));
	c->fixes[c->fix_count++] = (struct copying_fix){c->count, at, behind, to, control};
}

/* Appends an instruction to the code; false if it is none that is understood here. */
static inline bool copying_instruction(struct copying *c, struct copy *copy, const uint8_t *bytes,
				       const struct insn *insn)
{
	uint8_t *out = copy->code + copy->size;
	ZydisDecoder decoder;
	ZydisDecodedInstruction in;
	uint32_t at = (uint32_t)copy->size, opcode = 1;
	bool jumps = insn->kind == INSN_JUMP || insn->kind == INSN_BRANCH;
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, insn->length, &in)))
		return false;
	if (jumps && in.raw.imm[0].size == 8) {
		if (insn->kind == INSN_JUMP)
			out[0] = 0xe9;
		else if ((in.opcode & 0xf0) != 0x70)
			return false;
		else
			memcpy(out, (uint8_t[]){0x0f, (uint8_t)(0x10 + in.opcode)}, opcode = 2);
		copy->size += opcode + 4;
		copying_fix_later(c, at + opcode, at + opcode + 4, insn->target, true);
		return true;
	}
	memcpy(out, bytes, insn->length);
	copy->size += insn->length;
	if (jumps || insn->kind == INSN_CALL)
		copying_fix_later(c, at + in.raw.imm[0].offset, at + insn->length, insn->target,
				  true);
	else if ((in.attributes & ZYDIS_ATTRIB_HAS_MODRM) && in.raw.modrm.mod == 0 &&
		 in.raw.modrm.rm == 5) {
		int32_t distance;
		memcpy(&distance, bytes + in.raw.disp.offset, sizeof distance);
		copying_fix_later(c, at + in.raw.disp.offset, at + insn->length,
				  insn->address + insn->length + (uint64_t)(int64_t)distance,
				  false);
	}
	return true;
}

static inline bool copying_block(struct copying *c, struct copy *copy,
				 const struct graph_block *block, const struct copying_form *form)
{
	for (uint64_t at = block->start; at < block->end;) {
		size_t size;
		const uint8_t *bytes = image_bytes_at(c->image, at, &size);
		struct insn insn;
		if (!bytes)
			return false;
		c->control.isa->decode(bytes, size, at, &insn);
		if (insn.kind == INSN_BAD)
			return false;
		if (form->early && block->landing && at == block->start)
			copy->steps[copy->step_count++] = (struct copy_step){at,
									     (uint32_t)copy->size};
		if (copy->step_count) {
			memset(copy->code + copy->size, 0x90, form->nops);
			copy->size += form->nops;
		}
		copy->steps[copy->step_count++] = (struct copy_step){at, (uint32_t)copy->size};
		if (!copying_instruction(c, copy, bytes, &insn))
			return false;
		at += insn.length;
	}
	return true;
}

/* ---- functions ---- */

static inline struct graph_part *copying_parts(struct copying *c, uint32_t procedure)
{
	const struct extents_procedure *p = &c->extents.procedures[procedure];
	struct graph_part *parts = calloc(p->count, sizeof *parts);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part =
			&c->extents.parts[c->extents.by_procedure[p->first + i]];
		parts[i] = (struct graph_part){part->start, part->end};
	}
	return parts;
}

/* Appends a jump to where control goes on from a block. */
static inline void copying_jump(struct copying *c, struct copy *copy, uint64_t to)
{
	uint32_t at = (uint32_t)copy->size;
	copy->code[at] = 0xe9;
	copy->size += 5;
	copying_fix_later(c, at + 1, at + 5, to, true);
}

static inline bool copying_falls(const struct graph_block *block)
{
	return block->ends == GRAPH_FALLS || block->ends == GRAPH_BRANCHES ||
	       block->ends == GRAPH_CALLS;
}

static inline bool copying_part(struct copying *c, struct copy *copy, const struct graph *graph,
				size_t part, const struct copying_form *form)
{
	for (size_t k = 0; k < graph->block_count; k++) {
		const struct graph_block *block =
			&graph->blocks[form->turned && !part ? graph->block_count - 1 - k : k];
		if (!block->reached || block->start < copy->parts[part].start ||
		    block->start >= copy->parts[part].end ||
		    (form->turned && block->start == copy->entry))
			continue;
		if (!copying_block(c, copy, block, form))
			return false;
		if (form->turned && copying_falls(block))
			copying_jump(c, copy, block->end);
	}
	return true;
}

static inline bool copying_blocks(struct copying *c, struct copy *copy, const struct graph *graph,
				  const struct copying_form *form)
{
	const struct graph_block *first = &graph->blocks[graph->entry];
	if (form->turned && !copying_block(c, copy, first, form))
		return false;
	if (form->turned && copying_falls(first))
		copying_jump(c, copy, first->end);
	for (size_t i = 0; i < copy->part_count; i++)
		if (!copying_part(c, copy, graph, i, form))
			return false;
	return copy->step_count > 0;
}

/* Adds a copy of a procedure that is to lie at `address`, in this form. False if there can be none. */
static inline bool copying_add(struct copying *c, uint32_t procedure, uint64_t address,
			       const struct copying_form *form)
{
	const struct extents_procedure *p = &c->extents.procedures[procedure];
	struct graph graph;
	struct copy copy = {.name = p->name,
			    .entry = extents_start(&c->extents, procedure),
			    .address = address,
			    .part_count = p->count};
	size_t bytes = 0, fixes = c->fix_count;
	copying_must(control_graph(&c->control, &c->extents, procedure, 0, &graph));
	for (size_t i = 0; i < graph.block_count; i++)
		bytes += graph.blocks[i].end - graph.blocks[i].start;
	copy.code = malloc(bytes * (form->nops + 6) + graph.block_count * 5 + 16);
	copy.steps = malloc((bytes + graph.block_count + 1) * sizeof *copy.steps);
	assert_true(ARRAY_ROOM(c->copies, c->count, c->room));
	assert_true(ARRAY_ROOM(c->parts, c->count, c->parts_room));
	copy.parts = c->parts[c->count] = copying_parts(c, procedure);
	bool done = copying_blocks(c, &copy, &graph, form);
	c->copies[c->count++] = copy;
	graph_free(&graph);
	if (!done) {
		copying_drop(c, c->count - 1);
		c->fix_count = fixes;
	}
	return done;
}

/* ---- where control goes ---- */

static inline uint64_t copying_target(const struct copying *c, const struct copying_fix *fix)
{
	const struct copy *copy = &c->copies[fix->copy];
	if (!fix->control)
		return fix->to;
	for (size_t i = 0; i < c->count; i++)
		if (c->copies[i].entry == fix->to)
			return c->copies[i].address;
	for (size_t i = 0; i < copy->step_count; i++)
		if (copy->steps[i].from == fix->to)
			return copy->address + copy->steps[i].to;
	return fix->to;
}

static inline void copying_finish(struct copying *c)
{
	for (size_t i = 0; i < c->fix_count; i++) {
		const struct copying_fix *fix = &c->fixes[i];
		struct copy *copy = &c->copies[fix->copy];
		int32_t distance = (int32_t)(copying_target(c, fix) -
					     (copy->address + fix->behind));
		memcpy(copy->code + fix->at, &distance, sizeof distance);
	}
}
