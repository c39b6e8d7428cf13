/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function is left by its return instructions, and by jumps to other functions (tail calls). At all of these SP is what
 * it was at its first instruction: so a call and its end are told to belong together (collect/kernel/bpf/probe.h).
 *
 * A function that is jumped to returns for the one that has jumped. So its returns are ends of both. If it is not known
 * where a jump goes to, or how the function there ends, the jump is the end.
 *
 * All of this hangs on the control flow that the machine code shows. Where that is not known as a whole, an end might be
 * missed. Then calls are counted, and no times are told.
 */
#include "probe/sites.h"

#include <elf.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "harvest/probes.h"
#include "image/image.h"
#include "isa/insn.h"
#include "probe/modules.h"
#include "structure/structure.h"

#define FOLLOWED_MAX 16
#define WINDOW_MAX 32u /* bytes that may be replaced at a function's beginning */

uint64_t probe_offset(const struct image *image, uint64_t address)
{
	const struct image_segment *all;
	size_t count = image_segments(image, &all);
	for (size_t i = 0; i < count; i++)
		if (all[i].executable && address >= all[i].address &&
		    address - all[i].address < all[i].file_size)
			return address - all[i].address + all[i].offset;
	return UINT64_MAX;
}

/* Whether the symbol at this address stands for one that the dynamic linker chooses when it loads the file. */
static bool is_resolver(struct image *image, uint64_t address)
{
	const struct image_section *sections;
	size_t count = image_sections(image, &sections);
	for (size_t i = 0; i < count; i++) {
		size_t size;
		if (sections[i].type != SHT_DYNSYM && sections[i].type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *s = (const void *)image_section_bytes(image, &sections[i], &size);
		for (size_t k = 0; s && k < size / sizeof *s; k++)
			if (s[k].st_value == address &&
			    ELF64_ST_TYPE(s[k].st_info) == STT_GNU_IFUNC)
				return true;
	}
	return false;
}

/* Whether a conditional jump goes to another function: it has no edge, and is not there. */
static bool leaves_by_branch(const struct graph *g, const struct graph_block *b)
{
	bool jumps = false;
	for (uint32_t i = 0; i < b->count; i++)
		jumps |= g->edges[b->first + i].kind == EDGE_JUMP;
	return b->ends == GRAPH_BRANCHES && !jumps && b->count < 2;
}

const char *probe_judge(const struct graph *g, uint64_t entry)
{
	if (g->entry == GRAPH_NONE || !g->block_count)
		return "its machine code cannot be read";
	if (g->blocks[g->entry].start != entry)
		return "it begins within another function";
	if (g->unresolved || g->truncated)
		return "it jumps to where is not known, so that not all its ends are";
	for (size_t i = 0; i < g->block_count; i++) {
		const struct graph_block *b = &g->blocks[i];
		if (b->reached && b->ends == GRAPH_BAD)
			return "its machine code cannot be read as a whole";
		if (leaves_by_branch(g, b))
			return "it goes to another function by a conditional jump";
	}
	return NULL;
}

/* ---- ends ---- */

struct following { /* from function to function */
	struct probe_module *module;
	struct probe_function *function;
	uint64_t seen[FOLLOWED_MAX]; /* functions whose ends are among those of the first */
	size_t seen_count;
	size_t room; /* of function->sites */
};

static struct err *add_site(struct following *f, uint64_t address, enum probe_kind kind)
{
	struct probe_function *to = f->function;
	uint64_t offset = probe_offset(f->module->image, address);
	if (offset == UINT64_MAX)
		return NULL;
	if (!ARRAY_ROOM(to->sites, to->site_count, f->room))
		return err_new("out of memory");
	to->sites[to->site_count++] = (struct probe_site){.offset = offset, .kind = (uint8_t)kind};
	return NULL;
}

/* Returns where a jump goes to; 0: that is not known. */
static uint64_t target_of(struct image *image, uint64_t address)
{
	const struct isa *isa = isa_for_machine(image_machine(image));
	struct insn insn;
	size_t size;
	const uint8_t *code = image_bytes_at(image, address, &size);
	if (!isa || !code)
		return 0;
	isa->decode(code, size, address, &insn);
	return insn.kind == INSN_JUMP ? insn.target : 0;
}

static struct err *add_ends(struct following *f, const struct graph *g);

/* The ends of a function that is jumped to become ends of the first. *known: whether they are known. */
static struct err *follow(struct following *f, uint64_t target, bool *known)
{
	struct graph graph = {0};
	*known = true;
	for (size_t i = 0; i < f->seen_count; i++)
		if (f->seen[i] == target)
			return NULL;
	*known = false;
	if (!target || f->seen_count == FOLLOWED_MAX)
		return NULL;
	struct err *e = structure_graph(f->module->structure, target, &graph);
	if (e) {
		err_free(e);
		return NULL;
	}
	*known = !probe_judge(&graph, target);
	if (*known) {
		f->seen[f->seen_count++] = target;
		e = add_ends(f, &graph);
	}
	graph_free(&graph);
	return e;
}

static struct err *add_ends(struct following *f, const struct graph *g)
{
	struct err *e = NULL;
	for (size_t i = 0; i < g->block_count && !e; i++) {
		const struct graph_block *b = &g->blocks[i];
		bool known = false;
		if (b->ends == GRAPH_TAIL_CALLS)
			e = follow(f, target_of(f->module->image, b->last), &known);
		else if (b->ends != GRAPH_RETURNS)
			continue;
		if (e || known)
			continue;
		f->function->jumps |= b->ends == GRAPH_TAIL_CALLS;
		e = add_site(f, b->last, PROBE_ENDS);
	}
	return e;
}

/* Whether it jumps to its own first instruction. */
static bool loops_at_entry(const struct graph *g)
{
	for (size_t i = 0; i < g->edge_count; i++)
		if (g->edges[i].to == g->entry)
			return true;
	return false;
}

/* What may be replaced at the beginning, and which jumps go there. */
static void note_room(struct probe_function *f, const struct graph *g)
{
	uint64_t end = f->address;
	for (size_t i = g->entry; i < g->block_count && g->blocks[i].start == end; i++)
		end = g->blocks[i].end;
	f->room = end - f->address < UINT32_MAX ? (uint32_t)(end - f->address) : UINT32_MAX;
	for (size_t i = 0; i < g->edge_count; i++) {
		uint64_t to = g->blocks[g->edges[i].to].start - f->address;
		if (g->edges[i].kind == EDGE_FALL || to >= f->room || to >= WINDOW_MAX)
			continue;
		if (f->target_count == PROBE_TARGETS)
			f->unpatched = "too many jumps go to where the jump of the probe would be";
		else
			f->targets[f->target_count++] = (uint32_t)to;
	}
	if (g->unresolved || g->truncated)
		f->unpatched = "it jumps to where is not known, perhaps to where the jump of the "
			       "probe would be";
}

struct err *probe_find_sites(struct probe_module *m, struct probe_function *f, bool named)
{
	struct graph graph = {0};
	uint64_t offset = probe_offset(m->image, f->address);
	if (offset == UINT64_MAX || is_resolver(m->image, f->address)) {
		probes_refuse(
			f, PROBE_REFUSED,
			offset == UINT64_MAX
				? "there is no code of the file at its address"
				: "the dynamic linker chooses one of several functions in its "
				  "place (ifunc): probe that one");
		return NULL;
	}
	struct following following = {.module = m, .function = f};
	struct err *e = add_site(&following, f->address, PROBE_BEGINS);
	if (e)
		return e;
	e = probe_module_structure(m);
	if (!e)
		e = structure_graph(m->structure, f->address, &graph);
	if (e) {
		probes_refuse(f, PROBE_REFUSED, err_text(e));
		err_free(e);
		return NULL;
	}
	const char *why = probe_judge(&graph, f->address);
	bool inside = graph.entry == GRAPH_NONE || graph.blocks[graph.entry].start != f->address;
	if (inside && !named) { /* it may even be within an instruction */
		probes_refuse(f, PROBE_REFUSED, "no function is known to begin there");
		graph_free(&graph);
		return NULL;
	}
	f->loops = loops_at_entry(&graph);
	if (!inside)
		note_room(f, &graph);
	if (why && f->loops)
		probes_refuse(f, PROBE_REFUSED,
			      "it jumps to its own beginning, so that calls cannot be counted");
	else if (why)
		probes_refuse(f, PROBE_COUNTING, why);
	else
		e = add_ends(&following, &graph);
	graph_free(&graph);
	return e;
}
