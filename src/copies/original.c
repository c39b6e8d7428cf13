/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/original.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "copies/use.h"
#include "image/image.h"
#include "image/relocs.h"
#include "image/symbols.h"
#include "isa/insn.h"

/* What neither symbols nor unwind information describe is left alone: it may be data. */
#define BLOCKS_MAX 20000u /* of a function */
#define GAP_BYTES_MAX 1u
#define PAGE_MASK (~UINT64_C(4095))

bool original_insn(const struct original *o, uint64_t address, struct insn *out)
{
	size_t size = 0;
	const uint8_t *code = image_bytes_at(o->image, address, &size);
	if (!code)
		return false;
	o->control.isa->decode(code, size, address, out);
	if (!out->length)
		out->length = 1;
	return true;
}

const char *original_stub(const struct original *o, uint64_t address)
{
	const struct survey *s = &o->control.survey;
	size_t at = FIRST_NOT(i, s->stub_count, s->stubs[i].address < address);
	return at < s->stub_count && s->stubs[at].address == address ? s->stubs[at].import : NULL;
}

/* ---- functions that return several times ---- */

static const char *const again_functions[] = {
	"setjmp",     "_setjmp",      "__setjmp", "sigsetjmp", "__sigsetjmp", "__sigsetjmp_cancel",
	"getcontext", "__getcontext", "vfork",    "__vfork",
};

bool original_returns_again(const char *name)
{
	for (size_t i = 0; name && i < sizeof again_functions / sizeof *again_functions; i++)
		if (!strcmp(name, again_functions[i]))
			return true;
	return false;
}

bool original_reads_again(const struct original *o, uint64_t address)
{
	for (size_t i = 0; i < o->again_count; i++)
		if (o->again_slots[i] == address || (o->again_slots[i] & PAGE_MASK) == address)
			return true;
	return false;
}

/* Of struct control_module. */
static bool returns_again(const void *context, const struct insn *call)
{
	const struct original *o = context;
	if (call->kind == INSN_CALL_INDIRECT) {
		size_t i = FIRST_NOT(k, o->again_count, o->again_slots[k] < call->target);
		return call->target && i < o->again_count && o->again_slots[i] == call->target;
	}
	const struct symbol *symbol = symbols_find(o->symbols, call->target);
	return original_returns_again(original_stub(o, call->target)) ||
	       (symbol && symbol->address == call->target && original_returns_again(symbol->name));
}

static bool has_stub(const struct original *o, const char *name)
{
	for (size_t i = 0; i < o->control.survey.stub_count; i++)
		if (!strcmp(o->control.survey.stubs[i].import, name))
			return true;
	return false;
}

static struct err *find_again_slots(struct original *o)
{
	struct reloc *relocs = NULL;
	size_t count = 0;
	struct err *e = relocs_read(o->image, &relocs, &count);
	for (size_t i = 0; i < count && !e; i++) {
		if (!original_returns_again(relocs[i].symbol) || has_stub(o, relocs[i].symbol))
			continue;
		if (ARRAY_ROOM(o->again_slots, o->again_count, o->again_room))
			o->again_slots[o->again_count++] = relocs[i].offset;
		else
			e = err_new("out of memory");
	}
	free(relocs);
	o->control.returns_again = returns_again;
	o->control.again_context = o;
	return e;
}

/* ---- runtimes ---- */

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

static bool has_runtime(const struct original *o)
{
	const struct symbol *all;
	size_t count = symbols_all(o->symbols, &all);
	if (image_section(o->image, ".gopclntab") || image_section(o->image, ".note.go.buildid"))
		return true;
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < sizeof runtimes / sizeof *runtimes; k++)
			if (!strcmp(all[i].name, runtimes[k]))
				return true;
	return false;
}

/* ---- guarded pages ---- */

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

/* ---- jumps from elsewhere ---- */

static bool note_target(struct original *o, uint32_t procedure, uint64_t target)
{
	uint32_t to = extents_at(&o->extents, target);
	if (to == EXTENT_NONE || to == procedure || extents_start(&o->extents, to) == target)
		return true;
	if (!ARRAY_ROOM(o->targets, o->target_count, o->target_room))
		return false;
	o->targets[o->target_count++] = target;
	return true;
}

uint32_t original_callee(const struct original *o, uint32_t from, uint8_t kind, uint64_t target)
{
	bool jumps = kind == INSN_JUMP || kind == INSN_BRANCH;
	if (kind != INSN_CALL && !jumps)
		return EXTENT_NONE;
	uint32_t to = extents_at(&o->extents, target);
	bool other = to != EXTENT_NONE && extents_start(&o->extents, to) == target;
	return other && !(jumps && to == from) ? to : EXTENT_NONE;
}

static bool note_call(struct original *o, uint32_t procedure, const struct insn *insn)
{
	uint32_t to = original_callee(o, procedure, insn->kind, insn->target);
	if (to == EXTENT_NONE)
		return true;
	if (!ARRAY_ROOM(o->calls, o->call_count, o->call_room))
		return false;
	o->calls[o->call_count++] = (struct original_call){procedure, to};
	o->called[to]++;
	o->jumped_to[to] |= insn->kind != INSN_CALL;
	return true;
}

static bool note_targets(struct original *o, const struct extent *part)
{
	bool code = true; /* what comes after data in the code may be none */
	for (uint64_t at = part->start; at < part->end;) {
		struct insn insn;
		if (!original_insn(o, at, &insn)) {
			code = false;
			at += o->machine == EM_AARCH64 ? 4 : 1;
			continue;
		}
		bool jumps = insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH;
		if (!note_call(o, part->procedure, &insn))
			return false;
		if (jumps && code && !note_target(o, part->procedure, insn.target))
			return false;
		at += insn.length;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static int by_caller(const void *a, const void *b)
{
	const struct original_call *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

static struct err *find_targets(struct original *o)
{
	o->called = calloc(o->extents.procedure_count + 1, sizeof *o->called);
	o->jumped_to = calloc(o->extents.procedure_count + 1, sizeof *o->jumped_to);
	if (!o->called || !o->jumped_to)
		return err_new("out of memory");
	for (size_t i = 0; i < o->extents.part_count; i++)
		if (!note_targets(o, &o->extents.parts[i]))
			return err_new("out of memory");
	if (o->target_count)
		qsort(o->targets, o->target_count, sizeof *o->targets, by_address);
	if (o->call_count)
		qsort(o->calls, o->call_count, sizeof *o->calls, by_caller);
	return NULL;
}

/* ---- all of it ---- */

struct err *original_graph(const struct original *o, uint32_t procedure, struct graph *out)
{
	return control_graph(&o->control, &o->extents, procedure, BLOCKS_MAX, out);
}

static struct err *read_all(struct original *o)
{
	struct err *e = symbols_read(o->image, NULL, &o->symbols);
	if (!e)
		e = extents_find(o->image, NULL, o->symbols, NULL, GAP_BYTES_MAX, &o->extents);
	if (!e)
		e = frames_open(o->image, &o->frames);
	if (!e)
		e = control_open(o->image, o->symbols, &o->control);
	if (!e)
		e = find_again_slots(o);
	return e ? e : find_targets(o);
}

struct err *original_open(struct image *image, struct original *out)
{
	*out = (struct original){.image = image, .machine = image_machine(image)};
	out->cpu = use_cpu_for(out->machine);
	if (!out->cpu)
		return NULL;
	struct err *e = read_all(out);
	if (e) {
		original_close(out);
		return e;
	}
	out->guarded = is_guarded(image, out->machine);
	out->runtime = has_runtime(out);
	return NULL;
}

void original_close(struct original *o)
{
	control_close(&o->control);
	frames_close(&o->frames);
	extents_free(&o->extents);
	symbols_free(o->symbols);
	free(o->targets);
	free(o->calls);
	free(o->called);
	free(o->jumped_to);
	free(o->again_slots);
	*o = (struct original){0};
}
