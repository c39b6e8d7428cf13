/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/refusal.h"

#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/live.h"
#include "copies/copy.h"
#include "copies/original.h"
#include "flow/graph.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"

/* ---- functions that are none of ours ---- */

/* Those that libc calls in a new thread before it can have counters of its own. */
static const char *const early_functions[] = {
	"__ctype_init",
	"__lll_lock_wait_private",
	"__lll_lock_wake_private",
};

/* Those that go on where nobody has called. */
static const char *const odd_functions[] = {
	"longjmp",     "_longjmp",    "siglongjmp",   "__longjmp",    "setcontext",
	"swapcontext", "makecontext", "clone",        "__clone",      "clone3",
	"__clone3",    "_start",      "__restore_rt", "start_thread",
};

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}
#define IS_AMONG(name, names) is_among(name, names, sizeof names / sizeof *names)

/* Whether it may call such a function by a register: that is not seen at the call. */
static bool calls_again_by_register(const struct original *o, const struct live *live)
{
	bool reads = false, calls = false;
	for (size_t i = 0; i < live->insn_count; i++) {
		const struct live_insn *insn = &live->insns[i];
		bool indirect = insn->kind == INSN_CALL_INDIRECT;
		calls |= indirect && !insn->target;
		reads |= !indirect && insn->refers && original_reads_again(o, insn->refers);
	}
	return reads && calls;
}

/* Whether a register gets the number of a system call that ends the thread. */
static bool sets_end(const struct original *o, const struct insn *insn)
{
	const struct insn call = {.kind = INSN_SYSCALL};
	for (unsigned i = 0; i < insn->effect_count; i++) {
		int64_t number = insn->effects[i].imm;
		if (insn->effects[i].op == EFFECT_CONST &&
		    syscall_ends(o->control.isa, &call, &number))
			return true;
	}
	return false;
}

/* Whether it ends the thread by a system call of its own, as where libc begins and ends threads: there the thread has no
   counters of its own. The number may have been set in another block. */
static bool ends_thread(const struct original *o, const struct graph *graph)
{
	bool sets = false, calls_unknown = false;
	for (size_t b = 0; b < graph->block_count; b++) {
		int64_t number = -1;
		for (uint64_t at = graph->blocks[b].start; at < graph->blocks[b].end;) {
			struct insn insn;
			if (!original_insn(o, at, &insn))
				break;
			if (syscall_ends(o->control.isa, &insn, &number))
				return true;
			calls_unknown |= insn.kind == INSN_SYSCALL && number == -1;
			sets |= sets_end(o, &insn);
			at += insn.length;
		}
	}
	return sets && calls_unknown;
}

/* Functions of V8 that were compiled before it runs: it knows them by their addresses. */
static bool is_of_runtime(const char *name)
{
	return name && !strncmp(name, "Builtins_", 9);
}

/* Whether it is what signal handlers return to. The kernel and debuggers know it by its bytes. */
static bool is_for_signals(const struct original *o, const struct copy *copy)
{
	const struct frames_entry *entry = frames_find(&o->frames, copy->entry);
	struct frames_common common;
	struct err *e = entry ? frames_read_common(&o->frames, entry, &common) : NULL;
	bool is = entry && !e && common.is_signal;
	err_free(e);
	return is;
}

/* Code that the linker makes for calls into other files. */
static bool is_stub_code(const struct original *o, uint64_t address)
{
	const struct image_section *sections;
	size_t count = image_sections(o->image, &sections);
	for (size_t i = 0; i < count; i++)
		if (address >= sections[i].address &&
		    address - sections[i].address < sections[i].size &&
		    (!strncmp(sections[i].name, ".plt", 4) || !strcmp(sections[i].name, ".init") ||
		     !strcmp(sections[i].name, ".fini")))
			return true;
	return false;
}

bool refusal_leaves_out(const struct original *o, uint32_t procedure)
{
	const char *name = o->extents.procedures[procedure].name;
	return is_of_runtime(name) || IS_AMONG(name, early_functions) ||
	       IS_AMONG(name, odd_functions) || original_returns_again(name) ||
	       (name && !strncmp(name, "_Unwind_", 8)) ||
	       is_stub_code(o, extents_start(&o->extents, procedure));
}

/* ---- jumps ---- */

/* Whether another procedure jumps into the middle of it. What it does there would not be counted, and where we write our
   jump it would meet the middle of that. */
static bool is_jumped_into(const struct original *o, const struct copy *copy)
{
	for (size_t k = 0; k < copy->part_count; k++) {
		const struct graph_part *part = &copy->parts[k];
		size_t i = FIRST_NOT(n, o->target_count, o->targets[n] < part->start);
		if (i < o->target_count && o->targets[i] < part->end)
			return true;
	}
	return false;
}

#define WAYS_BACK 64u

/* What an instruction does to a register: nothing, or it gives it a whole value from memory or from another register, as
   before a call of a function whose address was kept. Or it computes it, as switches do. */
enum setting { SETS_NOTHING, SETS_KEPT, SETS_COMPUTED };

static enum setting setting_of(const struct insn *insn, uint8_t reg)
{
	for (unsigned i = insn->effect_count; i-- > 0;) {
		const struct effect *e = &insn->effects[i];
		if (e->op == EFFECT_STORE || e->op == EFFECT_COMPARE || e->dst != reg)
			continue;
		return e->op == EFFECT_LOAD || (e->op == EFFECT_MOVE && !e->imm) ? SETS_KEPT
										 : SETS_COMPUTED;
	}
	return insn->writes >> reg & 1 ? SETS_COMPUTED : SETS_NOTHING;
}

/* The last that a block does to a register before `end`. */
static enum setting last_setting(const struct original *o, const struct graph_block *b,
				 uint64_t end, uint8_t reg)
{
	enum setting last = SETS_NOTHING;
	for (uint64_t at = b->start; at < end;) {
		struct insn insn;
		if (!original_insn(o, at, &insn))
			return SETS_COMPUTED;
		enum setting found = setting_of(&insn, reg);
		last = found ? found : last;
		at += insn.length;
	}
	return last;
}

/* Whether a register may have an address that was computed, where a block ends. */
static bool is_computed(const struct original *o, const struct graph *g, uint32_t block,
			uint8_t reg)
{
	uint32_t queue[WAYS_BACK] = {block}, count = 1;
	for (uint32_t at = 0; at < count; at++) {
		const struct graph_block *b = &g->blocks[queue[at]];
		enum setting set = last_setting(o, b, at ? b->end : b->last, reg);
		if (set == SETS_COMPUTED)
			return true;
		for (size_t i = 0; !set && i < g->edge_count; i++) {
			uint32_t k = 0;
			while (k < count && queue[k] != g->edges[i].from)
				k++;
			if (g->edges[i].to != queue[at] || k < count)
				continue;
			if (count == WAYS_BACK)
				return true;
			queue[count++] = g->edges[i].from;
		}
	}
	return false;
}

/* Whether a jump by register that looks like the call of another function may be the one of a switch. */
static bool has_unclear_jump(const struct original *o, const struct graph *g)
{
	for (uint32_t b = 0; b < g->block_count; b++) {
		struct insn insn;
		size_t size = 0;
		const uint8_t *code = g->blocks[b].reached && g->blocks[b].ends == GRAPH_TAIL_CALLS
					      ? image_bytes_at(o->image, g->blocks[b].last, &size)
					      : NULL;
		if (!code)
			continue;
		o->control.isa->decode(code, size, g->blocks[b].last, &insn);
		if (insn.kind == INSN_JUMP_INDIRECT && insn.reg != INSN_NO_REG &&
		    is_computed(o, g, b, insn.reg))
			return true;
	}
	return false;
}

/* Whether a jump goes to the middle of an instruction, as over the prefix of one that locks. */
static bool overlaps(const struct original *o, const struct graph *graph)
{
	for (size_t b = 0; b < graph->block_count; b++) {
		struct insn insn;
		uint64_t at = graph->blocks[b].start;
		while (at < graph->blocks[b].end && original_insn(o, at, &insn))
			at += insn.length;
		if (graph->blocks[b].reached && at > graph->blocks[b].end)
			return true;
	}
	return false;
}

/* ---- all of them ---- */

const char *refusal_of(const struct original *o, const struct graph *graph, const struct copy *copy,
		       const struct live *live)
{
	for (size_t i = 0; i < graph->block_count; i++)
		if (graph->blocks[i].reached && graph->blocks[i].ends == GRAPH_UNRESOLVED)
			return "where a jump goes is not known";
		else if (graph->blocks[i].reached && graph->blocks[i].ends == GRAPH_BAD)
			return "where its code ends is not known";
	if (graph->truncated || !graph->block_count)
		return "it is too large";
	if (overlaps(o, graph))
		return "a jump goes to the middle of an instruction";
	if (live->odd)
		return "it has an instruction that cannot be moved";
	if (has_unclear_jump(o, graph))
		return "where a jump goes is not known";
	if (is_jumped_into(o, copy))
		return "another function jumps into it";
	if (o->runtime)
		return "the runtime of its language knows code by its address";
	if (is_for_signals(o, copy))
		return "signal handlers return to it";
	if (calls_again_by_register(o, live))
		return "it calls a function that may return twice, by a register";
	return ends_thread(o, graph) ? "it ends threads by itself" : NULL;
}
