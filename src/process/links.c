/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A procedure is known by where it begins: symbols, and what flow/survey.h
 * finds. The callee "is" the procedure with the last known beginning at or
 * before its PC; a call of any address between the two calls it, because a
 * beginning that is not known may lie there.
 *
 * Instructions of x86-64 cannot be read backwards, so every length that a call
 * can have is tried. A wrong reading can make an invalid link look likely,
 * never a valid one invalid.
 */
#include "process/links.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "flow/survey.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "process/space.h"
#include "process/stacks.h"
#include "process/symbolize.h"

#define STUB_MAX 16          /* bytes of a stub of the procedure linkage table */
#define CALL_MAX 8           /* bytes of the longest call, with a prefix */
#define PROCEDURE_MAX 65536u /* bytes that are searched for a jump out */

struct beginnings {
	bool taken;
	struct survey survey;
};

struct links {
	struct space *space;
	struct symbolizer *symbolizer;
	const struct isa *isa;
	struct beginnings *modules;
	size_t module_count;
};

/* A place in a module. */
struct place {
	const struct space_module *module;
	uint64_t address; /* the module's own */
};

struct err *links_open(struct space *space, struct symbolizer *symbolizer, struct links **out)
{
	struct links *l = calloc(1, sizeof *l);
	*out = NULL;
	if (l)
		l->modules = calloc(space->module_count + 1, sizeof *l->modules);
	if (!l || !l->modules) {
		free(l);
		return err_new("out of memory");
	}
	l->space = space;
	l->symbolizer = symbolizer;
	l->isa = isa_for_machine(space->machine);
	l->module_count = space->module_count;
	*out = l;
	return NULL;
}

void links_close(struct links *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->module_count; i++)
		survey_free(&l->modules[i].survey);
	free(l->modules);
	free(l);
}

static const struct survey *survey_of(struct links *l, const struct space_module *module)
{
	struct beginnings *b = &l->modules[module - l->space->modules];
	if (!b->taken && module->image)
		err_free(survey_take(module->image, l->isa,
				     symbolizer_symbols(l->symbolizer, module), &b->survey));
	b->taken = true;
	return &b->survey;
}

static uint64_t last_not_above(const uint64_t *sorted, size_t count, uint64_t address)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (sorted[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? sorted[low - 1] : 0;
}

/* Where the procedure that holds `at` begins, as far as known. */
static uint64_t beginning(struct links *l, const struct place *at)
{
	const struct survey *survey = survey_of(l, at->module);
	const struct symbols *symbols = symbolizer_symbols(l->symbolizer, at->module);
	const struct symbol *symbol = symbols ? symbols_find(symbols, at->address) : NULL;
	uint64_t entry = last_not_above(survey->entries, survey->entry_count, at->address);
	return symbol ? symbol->address : entry;
}

static bool calls(struct links *l, const struct place *target, const struct place *callee)
{
	return target->module == callee->module && target->address <= callee->address &&
	       target->address >= beginning(l, callee);
}

/* Could the procedure at `start` end by a jump to another? */
static bool jumps_on(struct links *l, const struct place *start)
{
	const struct symbols *symbols = symbolizer_symbols(l->symbolizer, start->module);
	const struct symbol *symbol = symbols ? symbols_find(symbols, start->address) : NULL;
	uint64_t end = symbol && symbol->size ? symbol->address + symbol->size
					      : start->address + PROCEDURE_MAX;
	size_t size, done = 0;
	const uint8_t *code = image_bytes_at(start->module->image, start->address, &size);
	if (end - start->address < size)
		size = (size_t)(end - start->address);
	while (code && done < size && done < PROCEDURE_MAX) {
		struct insn insn;
		l->isa->decode(code + done, size - done, start->address + done, &insn);
		if (insn.kind == INSN_JUMP_INDIRECT ||
		    ((insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH) &&
		     (insn.target < start->address || insn.target >= end)))
			return true;
		done += insn.length;
	}
	return false;
}

static const char *stub_import(struct links *l, const struct place *at)
{
	const struct survey *survey = survey_of(l, at->module);
	size_t low = 0, high = survey->stub_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (survey->stubs[middle].address < at->address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < survey->stub_count && survey->stubs[low].address == at->address
		       ? survey->stubs[low].import
		       : NULL;
}

/* The export of this name. `symbols` keep one name per address, so aliases are looked up in the
   file. *chosen: the dynamic linker asked a function for the address. */
static bool find_export(const struct space_module *module, const char *name, uint64_t *address,
			bool *chosen)
{
	size_t size = 0, text_size = 0, length = strcspn(name, "@");
	const struct image_section *table = module->image ? image_section(module->image, ".dynsym")
							  : NULL;
	const struct image_section *text = table ? image_section(module->image, ".dynstr") : NULL;
	const uint8_t *bytes = table ? image_section_bytes(module->image, table, &size) : NULL;
	const char *names = text ? (const char *)image_section_bytes(module->image, text,
								     &text_size)
				 : NULL;
	for (size_t at = 0; bytes && names && at + sizeof(Elf64_Sym) <= size;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		memcpy(&sym, bytes + at, sizeof sym);
		if (!sym.st_shndx || sym.st_name >= text_size ||
		    text_size - sym.st_name <= length ||
		    memcmp(names + sym.st_name, name, length) || names[sym.st_name + length])
			continue;
		*address = sym.st_value;
		*chosen = ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC;
		return true;
	}
	return false;
}

/* A call of an imported function: whichever module the linker took it from. */
static enum link classify_import(struct links *l, const char *import, const struct place *callee)
{
	enum link best = LINK_INVALID;
	for (size_t i = 0; i < l->module_count; i++) {
		struct place target = {.module = &l->space->modules[i]};
		bool chosen;
		if (!find_export(target.module, import, &target.address, &chosen))
			continue;
		if (!chosen && calls(l, &target, callee))
			return LINK_VALID;
		if (chosen || jumps_on(l, &target))
			best = LINK_LIKELY;
	}
	return best;
}

static enum link classify_call(struct links *l, const struct insn *insn,
			       const struct space_module *caller, const struct place *callee)
{
	if (insn->kind == INSN_CALL_INDIRECT)
		return LINK_LIKELY;
	struct place target = {caller, insn->target};
	const char *import = stub_import(l, &target);
	if (import && callee->module == caller && callee->address - insn->target < STUB_MAX)
		return LINK_VALID; /* still in the stub itself */
	if (import)
		return callee->module ? classify_import(l, import, callee) : LINK_LIKELY;
	if (calls(l, &target, callee))
		return LINK_VALID;
	return jumps_on(l, &target) ? LINK_LIKELY : LINK_INVALID;
}

/* The best that a call which ends at `ra` can mean. */
static enum link classify_before(struct links *l, const struct space_module *caller, uint64_t ra,
				 const struct place *callee)
{
	unsigned shortest = l->isa->insn_min > 2 ? l->isa->insn_min : 2;
	unsigned longest = l->isa->insn_min > 2 ? l->isa->insn_min : CALL_MAX;
	enum link best = LINK_INVALID;
	for (unsigned length = shortest; length <= longest && length <= ra; length++) {
		size_t size;
		struct insn insn;
		const uint8_t *code = image_bytes_at(caller->image, ra - length, &size);
		if (!code || size < length)
			continue;
		l->isa->decode(code, length, ra - length, &insn);
		if (insn.length != length ||
		    (insn.kind != INSN_CALL && insn.kind != INSN_CALL_INDIRECT))
			continue;
		enum link link = classify_call(l, &insn, caller, callee);
		if (link < best)
			best = link;
	}
	return best;
}

enum link links_classify(struct links *l, const struct stack *stack, size_t index)
{
	if (index + 1 >= stack->count)
		return LINK_NONE;
	const struct stack_frame *callee = &stack->frames[index],
				 *caller = &stack->frames[index + 1];
	/* Into a signal handler leads the kernel, out of it the frame that the kernel made. */
	if (caller->exact || callee->how == STACK_SIGNAL || caller->how == STACK_SIGNAL)
		return LINK_VALID;
	const struct space_module *module = space_find(l->space, caller->address - 1);
	if (!module || !module->image || !l->isa)
		return LINK_UNKNOWN;
	uint64_t at = callee->address - !callee->exact;
	struct place q = {space_find(l->space, at), 0};
	if (q.module)
		q.address = at - q.module->bias;
	return classify_before(l, module, caller->address - module->bias, &q);
}

const char *link_name(enum link link)
{
	static const char *const names[] = {"", "valid", "likely", "invalid", "unknown"};
	return names[link];
}
