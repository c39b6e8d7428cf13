/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/module.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/graph.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "paths/choice.h"
#include "copies/frames.h"
#include "copies/object.h"
#include "copies/write.h"
#include "structure/control.h"
#include "structure/extents.h"

#define PAGE 4096u
#define BLOCKS_MAX 20000u /* of a function */
/* What neither symbols nor unwind information describe is left alone: it may be data. */
#define GAP_BYTES_MAX 1u
#define COPY_ALIGNMENT 16u
#define WORDS_MAX (1u << 27) /* so that counters are in reach of instructions */

struct maker {
	const struct path_module_input *in;
	struct path_module *out;
	const struct use_cpu *cpu;
	uint16_t machine;
	bool guarded; /* as in struct write_entry */
	struct symbols *symbols;
	struct extents extents;
	struct control_module control;
	struct frames frames;
	bool runtime; /* there is such a runtime: has_runtime() */
	struct buf tables;
	uint64_t table_room; /* bytes of tables, at most */
	/* Where jumps go from one procedure to another, but to its beginning; ascending. */
	uint64_t *targets;
	size_t target_count, target_room;
};

/* ---- functions that are none of ours ---- */

/* Those that libc calls in a new thread before it can have counters of its own. */
static const char *const early_functions[] = {
	"__ctype_init",
	"__lll_lock_wait_private",
	"__lll_lock_wake_private",
};

/* Those that return twice. */
static const char *const twice_functions[] = {
	"setjmp",     "_setjmp",      "__setjmp", "sigsetjmp", "__sigsetjmp", "__sigsetjmp_cancel",
	"getcontext", "__getcontext", "vfork",    "__vfork",
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

static const char *name_of_stub(const struct maker *m, uint64_t address)
{
	const struct survey *s = &m->control.survey;
	for (size_t i = 0; i < s->stub_count; i++)
		if (s->stubs[i].address == address)
			return s->stubs[i].import;
	return NULL;
}

static bool returns_twice(const struct maker *m, const struct live_insn *call)
{
	const struct symbol *symbol = symbols_find(m->symbols, call->target);
	return IS_AMONG(name_of_stub(m, call->target), twice_functions) ||
	       (symbol && symbol->address == call->target &&
		IS_AMONG(symbol->name, twice_functions));
}

static bool calls_twice(const struct maker *m, const struct live *live)
{
	for (size_t i = 0; i < live->insn_count; i++)
		if (live->insns[i].kind == INSN_CALL && returns_twice(m, &live->insns[i]))
			return true;
	return false;
}

/* Whether it ends the thread by a system call of its own, as where libc begins and ends threads: there the thread has no
   counters of its own. */
static bool ends_thread(const struct maker *m, const struct graph *graph)
{
	for (size_t b = 0; b < graph->block_count; b++) {
		int64_t number = -1;
		for (uint64_t at = graph->blocks[b].start; at < graph->blocks[b].end;) {
			struct insn insn;
			size_t size = 0;
			const uint8_t *code = image_bytes_at(m->in->image, at, &size);
			if (!code)
				break;
			m->control.isa->decode(code, size, at, &insn);
			if (syscall_ends(m->control.isa, &insn, &number))
				return true;
			at += insn.length ? insn.length : 1;
		}
	}
	return false;
}

/* Languages whose runtimes know the code by its addresses: for what is on the stack of each call, they look up its return
   address in a table. They would not find a copy. */
static const char *const runtimes[] = {
	"caml_frametable",
	"caml_garbage_collection", /* OCaml */
	"hs_main",
	"stg_ap_0_fast", /* Haskell */
	"graal_create_isolate",
	"RhpGcAlloc", /* .NET */
	"Dart_Initialize",
};

static bool has_runtime(const struct maker *m)
{
	const struct symbol *all;
	size_t count = symbols_all(m->symbols, &all);
	if (image_section(m->in->image, ".gopclntab") ||
	    image_section(m->in->image, ".note.go.buildid"))
		return true;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof runtimes / sizeof *runtimes; k++)
			if (!strcmp(all[i].name, runtimes[k]))
				return true;
	return false;
}

/* The same of single functions: those of V8 that are made before it runs. */
static bool is_of_runtime(const char *name)
{
	return name && !strncmp(name, "Builtins_", 9);
}

/* Whether it is what signal handlers return to. The kernel and debuggers know it by its bytes. */
static bool is_for_signals(const struct maker *m, const struct path_item *item)
{
	const struct frames_entry *entry = frames_find(&m->frames, item->entry);
	struct frames_common common;
	struct err *e = entry ? frames_read_common(&m->frames, entry, &common) : NULL;
	bool is = entry && !e && common.is_signal;
	err_free(e);
	return is;
}

/* Code that the linker makes for calls into other files. */
static bool is_stub_code(const struct maker *m, uint64_t address)
{
	const struct image_section *sections;
	size_t count = image_sections(m->in->image, &sections);
	for (size_t i = 0; i < count; i++)
		if (address >= sections[i].address &&
		    address - sections[i].address < sections[i].size &&
		    (!strncmp(sections[i].name, ".plt", 4) || !strcmp(sections[i].name, ".init") ||
		     !strcmp(sections[i].name, ".fini")))
			return true;
	return false;
}

/* ---- jumps from elsewhere ---- */

static bool note_target(struct maker *m, uint32_t procedure, uint64_t target)
{
	uint32_t to = extents_at(&m->extents, target);
	if (to == EXTENT_NONE || to == procedure || extents_start(&m->extents, to) == target)
		return true;
	if (!ARRAY_ROOM(m->targets, m->target_count, m->target_room))
		return false;
	m->targets[m->target_count++] = target;
	return true;
}

static bool note_targets(struct maker *m, const struct extent *part)
{
	for (uint64_t at = part->start; at < part->end;) {
		struct insn insn;
		size_t size = 0;
		const uint8_t *code = image_bytes_at(m->in->image, at, &size);
		if (!code)
			return true;
		m->control.isa->decode(code, size, at, &insn);
		bool jumps = insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH;
		if (jumps && !note_target(m, part->procedure, insn.target))
			return false;
		at += insn.length ? insn.length : 1;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static struct err *find_targets(struct maker *m)
{
	for (size_t i = 0; i < m->extents.part_count; i++)
		if (!note_targets(m, &m->extents.parts[i]))
			return err_new("out of memory");
	if (m->target_count)
		qsort(m->targets, m->target_count, sizeof *m->targets, by_address);
	return NULL;
}

/* Whether another procedure jumps into the middle of it. What it does there would not be counted, and where we write our
   jump it would meet the middle of that. */
static bool is_jumped_into(const struct maker *m, const struct path_item *item)
{
	for (size_t k = 0; k < item->copy.part_count; k++) {
		const struct graph_part *part = &item->parts[k];
		size_t i = FIRST_NOT(n, m->target_count, m->targets[n] < part->start);
		if (i < m->target_count && m->targets[i] < part->end)
			return true;
	}
	return false;
}

/* ---- the jump at the entry ---- */

/* Whether its pages are guarded as struct write_entry says: by its properties, a list of types, sizes and values. */
static bool is_guarded(struct image *image, uint16_t machine)
{
	static const uint32_t head[] = {4, 0, NT_GNU_PROPERTY_TYPE_0}; /* its name has 4 bytes */
	const struct image_section *sections;
	size_t count = image_sections(image, &sections), size = 0;
	const uint8_t *bytes = NULL;
	for (size_t i = 0; i < count && !bytes && machine == EM_AARCH64; i++)
		if (!strcmp(sections[i].name, ".note.gnu.property"))
			bytes = image_bytes_at(image, sections[i].address, &size);
	if (!bytes || size < 16 || memcmp(bytes, &head[0], 4) || memcmp(bytes + 8, &head[2], 4))
		return false;
	uint32_t left, property[3];
	memcpy(&left, bytes + 4, sizeof left);
	left = left < size - 16 ? left : (uint32_t)(size - 16);
	for (bytes += 16; left >= sizeof property; bytes += property[1], left -= property[1]) {
		memcpy(property, bytes, sizeof property);
		if (property[0] == GNU_PROPERTY_AARCH64_FEATURE_1_AND)
			return property[2] & GNU_PROPERTY_AARCH64_FEATURE_1_BTI;
		property[1] = ((property[1] + 7) & ~7u) + 8;
		if (property[1] < 8 || property[1] > left)
			return false;
	}
	return false;
}

/* Bytes of the function that can be overwritten, and of what fills the room behind it. */
static size_t find_room(const struct maker *m, const struct path_item *item)
{
	const struct graph_part *part = &item->parts[0];
	uint64_t end = part->end;
	while (end - item->entry < WRITE_JUMP_MAX) {
		struct insn insn;
		size_t size = 0;
		const uint8_t *code = image_bytes_at(m->in->image, end, &size);
		if (!code || extents_at(&m->extents, end) != EXTENT_NONE)
			break;
		m->control.isa->decode(code, size, end, &insn);
		if (insn.kind != INSN_NOP && insn.kind != INSN_TRAP)
			break;
		end += insn.length;
	}
	return end - item->entry;
}

static const char *make_jump(const struct maker *m, struct path_item *item)
{
	struct write_entry entry = {
		.address = item->entry, .copy = item->copy.address, .guarded = m->guarded};
	struct write_jump jump;
	size_t size = 0, room = find_room(m, item);
	entry.code = image_bytes_at(m->in->image, item->entry, &size);
	entry.size = size < room ? size : room;
	const char *reason = entry.code ? write_enter(m->machine, &entry, &jump)
					: "it is too small for a jump";
	if (reason)
		return reason;
	item->jump_at = jump.at;
	item->jump_size = jump.size;
	memcpy(item->original, entry.code + (jump.at - item->entry), jump.size);
	memcpy(item->jump, jump.bytes, jump.size);
	return NULL;
}

/* ---- jumps by register ---- */

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
static enum setting last_setting(const struct maker *m, const struct graph_block *b, uint64_t end,
				 uint8_t reg)
{
	enum setting last = SETS_NOTHING;
	for (uint64_t at = b->start; at < end;) {
		struct insn insn;
		size_t size = 0;
		const uint8_t *code = image_bytes_at(m->in->image, at, &size);
		if (!code)
			return SETS_COMPUTED;
		m->control.isa->decode(code, size, at, &insn);
		enum setting found = setting_of(&insn, reg);
		last = found ? found : last;
		at += insn.length ? insn.length : 1;
	}
	return last;
}

/* Whether a register may have an address that was computed, where a block ends. */
static bool is_computed(const struct maker *m, const struct graph *g, uint32_t block, uint8_t reg)
{
	uint32_t todo[WAYS_BACK] = {block}, count = 1;
	for (uint32_t at = 0; at < count; at++) {
		const struct graph_block *b = &g->blocks[todo[at]];
		enum setting set = last_setting(m, b, at ? b->end : b->last, reg);
		if (set == SETS_COMPUTED)
			return true;
		for (size_t i = 0; !set && i < g->edge_count; i++) {
			uint32_t k = 0;
			while (k < count && todo[k] != g->edges[i].from)
				k++;
			if (g->edges[i].to != todo[at] || k < count)
				continue;
			if (count == WAYS_BACK)
				return true;
			todo[count++] = g->edges[i].from;
		}
	}
	return false;
}

/* Whether a jump by register that looks like the call of another function may be the one of a switch. */
static bool has_unclear_jump(const struct maker *m, const struct graph *g)
{
	for (uint32_t b = 0; b < g->block_count; b++) {
		struct insn insn;
		size_t size = 0;
		const uint8_t *code = g->blocks[b].reached && g->blocks[b].ends == GRAPH_TAIL_CALLS
					      ? image_bytes_at(m->in->image, g->blocks[b].last,
							       &size)
					      : NULL;
		if (!code)
			continue;
		m->control.isa->decode(code, size, g->blocks[b].last, &insn);
		if (insn.kind == INSN_JUMP_INDIRECT && insn.reg != INSN_NO_REG &&
		    is_computed(m, g, b, insn.reg))
			return true;
	}
	return false;
}

/* ---- a function ---- */

static struct err *take_parts(const struct maker *m, uint32_t procedure, struct path_item *item)
{
	const struct extents_procedure *p = &m->extents.procedures[procedure];
	item->parts = calloc(p->count + 1, sizeof *item->parts);
	if (!item->parts)
		return err_new("out of memory");
	for (uint32_t i = 0; i < p->count; i++) {
		const struct extent *part =
			&m->extents.parts[m->extents.by_procedure[p->first + i]];
		item->parts[i] = (struct graph_part){part->start, part->end};
	}
	item->copy.parts = item->parts;
	item->copy.part_count = p->count;
	return NULL;
}

/* What callers must take to be changed by calls that the function makes. */
static uint32_t changed_by_calls(const struct maker *m, const struct graph *graph)
{
	uint32_t usual = m->cpu->all & ~m->cpu->kept;
	for (size_t b = 0; b < graph->block_count; b++)
		for (uint64_t at = graph->blocks[b].start; at < graph->blocks[b].end;) {
			struct insn insn;
			size_t size = 0;
			const uint8_t *code = image_bytes_at(m->in->image, at, &size);
			if (!code)
				break;
			m->control.isa->decode(code, size, at, &insn);
			if (insn.kind == INSN_CALL_INDIRECT ||
			    (insn.kind == INSN_CALL && name_of_stub(m, insn.target)))
				return usual;
			at += insn.length ? insn.length : 1;
		}
	return 0;
}

static void count_tables(struct maker *m, const struct graph *graph)
{
	for (size_t i = 0; i < graph->table_count; i++)
		m->table_room += (uint64_t)graph->tables[i].entries *
					 (graph->tables[i].entry_size == 8 ? 8 : 4) +
				 sizeof(uint64_t);
}

static const char *why_not(const struct maker *m, const struct path_item *item,
			   const struct live *live)
{
	const struct graph *graph = item->graph;
	for (size_t i = 0; i < graph->block_count; i++)
		if (graph->blocks[i].reached && graph->blocks[i].ends == GRAPH_UNRESOLVED)
			return "where a jump goes is not known";
		else if (graph->blocks[i].reached && graph->blocks[i].ends == GRAPH_BAD)
			return "where its code ends is not known";
	if (graph->truncated || !graph->block_count)
		return "it is too large";
	if (live->odd)
		return "it has an instruction that cannot be moved";
	if (has_unclear_jump(m, graph))
		return "where a jump goes is not known";
	if (is_jumped_into(m, item))
		return "another function jumps into it";
	if (m->runtime)
		return "the runtime of its language knows code by its address";
	if (is_for_signals(m, item))
		return "signal handlers return to it";
	if (ends_thread(m, graph))
		return "it ends threads by itself";
	return calls_twice(m, live) ? "it calls a function that may return twice" : NULL;
}

/* Exceptions and debuggers must find their way through the copy. */
static void check_frames(struct maker *m, struct path_item *item)
{
	struct err *e = object_check(&m->frames, &item->copy);
	if (!e)
		return;
	item->told = strdup(err_text(e));
	item->reason = item->told ? item->told : "its unwind information cannot be copied";
	err_free(e);
}

static struct err *write_item(struct maker *m, struct path_item *item, const struct live *live,
			      uint64_t *address)
{
	struct write_input input = {
		.image = m->in->image,
		.graph = item->graph,
		.live = live,
		.sums = &item->sums,
		.parts = item->parts,
		.part_count = item->copy.part_count,
		.address = *address,
		.tables = m->in->base + OBJECT_TABLES + m->tables.size,
		.bias = m->in->bias,
		.counters = 8 * m->out->words,
		.thread_word = m->in->thread_word,
		.atomics = m->in->atomics,
	};
	size_t tables = m->tables.size;
	item->copy.name = item->name;
	item->copy.entry = item->entry;
	item->copy.address = *address;
	struct err *e = write_copy(&input, &item->copy, &m->tables, &item->reason);
	if (e || item->reason)
		return e;
	item->reason = make_jump(m, item);
	if (!item->reason)
		check_frames(m, item);
	if (item->reason) {
		m->tables.size = tables;
		return NULL;
	}
	item->first_word = m->out->words;
	m->out->words += 1 + item->sums.words;
	*address = (*address + item->copy.size + COPY_ALIGNMENT - 1) &
		   ~(uint64_t)(COPY_ALIGNMENT - 1);
	return NULL;
}

static struct err *find_live(struct maker *m, struct path_item *item, struct live *out)
{
	const struct live_input input = {.image = m->in->image,
					 .isa = m->control.isa,
					 .cpu = m->cpu,
					 .graph = item->graph,
					 .others = changed_by_calls(m, item->graph)};
	return live_find(&input, out);
}

static struct err *make_item(struct maker *m, struct path_item *item, uint64_t *address)
{
	struct live live;
	struct err *e = find_live(m, item, &live);
	if (e)
		return e;
	item->reason = why_not(m, item, &live);
	if (!item->reason)
		e = sums_make(item->graph, &live, m->cpu, NULL, &item->sums);
	if (!e && !item->reason)
		item->reason = item->sums.refused;
	if (!e && !item->reason && m->out->words + item->sums.words > WORDS_MAX)
		item->reason = "there are too many counters";
	if (!e && !item->reason)
		e = write_item(m, item, &live, address);
	live_free(&live);
	return e;
}

/* ---- all of them ---- */

static bool is_wanted(const struct maker *m, uint32_t procedure)
{
	const char *name = m->extents.procedures[procedure].name;
	uint64_t entry = extents_start(&m->extents, procedure);
	return !is_of_runtime(name) && !IS_AMONG(name, early_functions) &&
	       !IS_AMONG(name, odd_functions) && !IS_AMONG(name, twice_functions) &&
	       !(name && !strncmp(name, "_Unwind_", 8)) && !is_stub_code(m, entry) &&
	       path_choice_has_function(m->in->choice, name);
}

static struct err *take_items(struct maker *m)
{
	struct err *e = NULL;
	m->out->items = calloc(m->extents.procedure_count + 1, sizeof *m->out->items);
	if (!m->out->items)
		return err_new("out of memory");
	for (uint32_t i = 0; i < m->extents.procedure_count && !e; i++) {
		if (!is_wanted(m, i))
			continue;
		const char *name = m->extents.procedures[i].name;
		struct path_item *item = &m->out->items[m->out->count++];
		item->name = strdup(name ? name : "");
		item->entry = extents_start(&m->extents, i);
		item->graph = calloc(1, sizeof *item->graph);
		if (!item->name || !item->graph)
			e = err_new("out of memory");
		if (!e)
			e = take_parts(m, i, item);
		if (!e)
			e = control_graph(&m->control, &m->extents, i, BLOCKS_MAX, item->graph);
		if (!e)
			count_tables(m, item->graph);
	}
	return e;
}

/* The function that begins there, if it has a copy; NULL: it has none. Items ascend by their entries, as procedures do. */
static const struct path_item *item_at(const struct path_module *m, uint64_t entry)
{
	size_t i = FIRST_NOT(k, m->count, m->items[k].entry < entry);
	return i < m->count && m->items[i].entry == entry && !m->items[i].reason ? &m->items[i]
										 : NULL;
}

/* Lets copies call each other at once, and not by the jump in the function. */
static void join_copies(struct path_module *m, uint16_t machine)
{
	for (size_t i = 0; i < m->count; i++) {
		struct copy *c = &m->items[i].copy;
		for (size_t k = 0; k < c->call_count; k++) {
			const struct path_item *to = item_at(m, c->calls[k].target);
			uint32_t at = c->calls[k].at;
			if (to)
				write_aim(machine, c->code + at, c->address + at, to->copy.address);
		}
	}
}

static struct err *write_object(struct maker *m)
{
	struct copy *copies = calloc(m->out->count + 1, sizeof *copies);
	size_t count = 0;
	if (!copies)
		return err_new("out of memory");
	for (size_t i = 0; i < m->out->count; i++)
		if (!m->out->items[i].reason)
			copies[count++] = m->out->items[i].copy;
	const struct object_input input = {.image = m->in->image,
					   .name = m->in->name,
					   .base = m->in->base,
					   .bias = m->in->bias,
					   .tables = (const uint8_t *)buf_text(&m->tables),
					   .table_size = m->tables.size,
					   .copies = copies,
					   .copy_count = count};
	struct err *e = count ? object_write(&input, &m->out->object) : NULL;
	free(copies);
	return e;
}

static struct err *make_all(struct maker *m)
{
	struct path_module *out = m->out;
	struct err *e = take_items(m);
	if (!e)
		e = find_targets(m);
	uint64_t room = (OBJECT_TABLES + m->table_room + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t address = m->in->base + room;
	for (size_t i = 0; i < out->count && !e; i++)
		e = make_item(m, &out->items[i], &address);
	if (!e)
		join_copies(out, m->machine);
	return e ? e : write_object(m);
}

static struct err *open_module(struct maker *m)
{
	struct err *e = symbols_read(m->in->image, NULL, &m->symbols);
	if (!e)
		e = extents_find(m->in->image, NULL, m->symbols, NULL, GAP_BYTES_MAX, &m->extents);
	if (!e)
		e = frames_open(m->in->image, &m->frames);
	return e ? e : control_open(m->in->image, m->symbols, &m->control);
}

struct err *path_module_make(const struct path_module_input *input, struct path_module *out)
{
	struct maker m = {.in = input, .out = out};
	*out = (struct path_module){.words = input->first_word};
	m.machine = image_machine(input->image);
	m.cpu = use_cpu_for(m.machine);
	m.guarded = is_guarded(input->image, m.machine);
	if (!m.cpu || (m.machine == EM_AARCH64 && !input->thread_word))
		return err_new("paths are not counted on this CPU yet");
	struct err *e = open_module(&m);
	if (!e) {
		m.runtime = has_runtime(&m);
		e = make_all(&m);
	}
	control_close(&m.control);
	frames_close(&m.frames);
	extents_free(&m.extents);
	symbols_free(m.symbols);
	buf_free(&m.tables);
	free(m.targets);
	if (e)
		path_module_free(out);
	return e;
}

void path_module_free(struct path_module *module)
{
	for (size_t i = 0; i < module->count; i++) {
		struct path_item *item = &module->items[i];
		free(item->name);
		free(item->told);
		free(item->parts);
		if (item->graph)
			graph_free(item->graph);
		free(item->graph);
		sums_free(&item->sums);
		copy_free(&item->copy);
	}
	free(module->items);
	buf_free(&module->object);
	*module = (struct path_module){0};
}
