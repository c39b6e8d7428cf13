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
#include "flow/evidence.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/builtins.h"
#include "flow/survey.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"

#define STUB_MAX 16          /* bytes of a stub of the procedure linkage table */
#define HEAD_MAX 32          /* bytes of its first entry */
#define CALL_MAX 8           /* bytes of the longest call, with a prefix */
#define PROCEDURE_MAX 65536u /* bytes that are searched for a jump out */

struct exported {
	const char *name; /* the image's */
	uint64_t address;
	bool chosen; /* the dynamic linker asked a function for the address */
};

struct module {
	bool opened, surveyed, listed;
	struct image *image;
	const struct symbols *symbols;
	struct survey survey;
	struct exported *exports; /* by name */
	size_t export_count;
};

struct evidence {
	struct evidence_source source;
	const struct isa *isa;
	struct module *modules;
};

struct err *evidence_open(const struct evidence_source *source, const struct isa *isa,
			  struct evidence **out)
{
	struct evidence *e = calloc(1, sizeof *e);
	*out = NULL;
	if (e)
		e->modules = calloc(source->module_count + 1, sizeof *e->modules);
	if (!e || !e->modules) {
		free(e);
		return err_new("out of memory");
	}
	e->source = *source;
	e->isa = isa;
	*out = e;
	return NULL;
}

void evidence_close(struct evidence *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->source.module_count; i++) {
		survey_free(&e->modules[i].survey);
		free(e->modules[i].exports);
	}
	free(e->modules);
	free(e);
}

/* ---- modules ---- */

static struct module *open_module(struct evidence *e, size_t index)
{
	struct module *m = &e->modules[index];
	if (m->opened)
		return m;
	m->opened = true;
	m->image = e->source.image(e->source.context, index);
	m->symbols = m->image ? e->source.symbols(e->source.context, index) : NULL;
	return m;
}

static const struct survey *survey_of(struct evidence *e, size_t index)
{
	struct module *m = open_module(e, index);
	if (!m->surveyed && m->image)
		err_free(survey_take(m->image, e->isa, m->symbols, &m->survey));
	m->surveyed = true;
	return &m->survey;
}

static int compare_exports(const void *a, const void *b)
{
	const struct exported *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->address > y->address) - (x->address < y->address);
}

/* `symbols` keep one name per address, and none of data, so aliases are looked up in the file. */
static void list_exports(struct module *m)
{
	size_t size = 0, text_size = 0;
	const struct image_section *table = m->image ? image_section(m->image, ".dynsym") : NULL;
	const struct image_section *text = table ? image_section(m->image, ".dynstr") : NULL;
	const uint8_t *bytes = table ? image_section_bytes(m->image, table, &size) : NULL;
	const uint8_t *names = text ? image_section_bytes(m->image, text, &text_size) : NULL;
	m->listed = true;
	if (!bytes || !names)
		return;
	m->exports = calloc(size / sizeof(Elf64_Sym) + 1, sizeof *m->exports);
	for (size_t at = 0; m->exports && at + sizeof(Elf64_Sym) <= size; at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		memcpy(&sym, bytes + at, sizeof sym);
		if (!sym.st_shndx || sym.st_name >= text_size ||
		    !memchr(names + sym.st_name, 0, text_size - sym.st_name))
			continue;
		m->exports[m->export_count++] = (struct exported){
			(const char *)names + sym.st_name, sym.st_value,
			ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC};
	}
	if (m->export_count)
		qsort(m->exports, m->export_count, sizeof *m->exports, compare_exports);
}

/* The export of this name (up to its version), or NULL. */
static const struct exported *find_export(struct evidence *e, size_t index, const char *name)
{
	struct module *m = open_module(e, index);
	size_t length = strcspn(name, "@");
	if (!m->listed)
		list_exports(m);
	size_t found = FIRST_NOT(i, m->export_count, strncmp(m->exports[i].name, name, length) < 0);
	for (; found < m->export_count && !strncmp(m->exports[found].name, name, length); found++)
		if (!m->exports[found].name[length])
			return &m->exports[found];
	return NULL;
}

/* ---- procedures ---- */

static uint64_t last_not_above(const uint64_t *sorted, size_t count, uint64_t address)
{
	size_t after = FIRST_NOT(i, count, sorted[i] <= address);
	return after ? sorted[after - 1] : 0;
}

static const struct symbol *symbol_at(struct evidence *e, const struct evidence_address *at)
{
	const struct symbols *symbols = open_module(e, at->module)->symbols;
	return symbols ? symbols_find(symbols, at->address) : NULL;
}

/* Where the procedure that holds `at` begins, as far as known. */
static uint64_t beginning(struct evidence *e, const struct evidence_address *at)
{
	const struct symbol *symbol = symbol_at(e, at);
	const struct survey *survey = survey_of(e, at->module);
	return symbol ? symbol->address
		      : last_not_above(survey->entries, survey->entry_count, at->address);
}

static bool calls(struct evidence *e, const struct evidence_address *target,
		  const struct evidence_address *callee)
{
	return target->module == callee->module && target->address <= callee->address &&
	       target->address >= beginning(e, callee);
}

/* Could the procedure at `start` end by a jump to another? */
static bool jumps_on(struct evidence *e, const struct evidence_address *start)
{
	const struct module *m = open_module(e, start->module);
	const struct symbol *symbol = symbol_at(e, start);
	uint64_t end = symbol && symbol->size ? symbol->address + symbol->size
					      : start->address + PROCEDURE_MAX;
	size_t size, done = 0;
	const uint8_t *code = m->image ? image_bytes_at(m->image, start->address, &size) : NULL;
	if (code && end - start->address < size)
		size = (size_t)(end - start->address);
	while (code && done < size && done < PROCEDURE_MAX) {
		struct insn insn;
		e->isa->decode(code + done, size - done, start->address + done, &insn);
		if (insn.kind == INSN_JUMP_INDIRECT ||
		    ((insn.kind == INSN_JUMP || insn.kind == INSN_BRANCH) &&
		     (insn.target < start->address || insn.target >= end)))
			return true;
		done += insn.length;
	}
	return false;
}

static const char *stub_import(struct evidence *e, const struct evidence_address *at)
{
	const struct survey *survey = survey_of(e, at->module);
	size_t found = FIRST_NOT(i, survey->stub_count, survey->stubs[i].address < at->address);
	return found < survey->stub_count && survey->stubs[found].address == at->address
		       ? survey->stubs[found].import
		       : NULL;
}

/* ---- calls ---- */

/* The dynamic linker, to which a stub leads until its function is bound. */
static bool is_linker(struct evidence *e, size_t module)
{
	return find_export(e, module, "_dl_mcount") != NULL;
}

/* Whether `callee` is still on its way from the stub at `target`: in it, or in the first entry of
   the table, by which a stub goes to the dynamic linker. */
static bool is_in_stub(struct evidence *e, const struct evidence_address *target,
		       const struct evidence_address *callee)
{
	const struct image_section *table;
	if (callee->module != target->module)
		return false;
	if (callee->address - target->address < STUB_MAX)
		return true;
	table = image_section(e->modules[target->module].image, ".plt");
	return table && callee->address - table->address < HEAD_MAX;
}

/* A call of an imported function: whichever module the linker took it from. */
static enum link classify_import(struct evidence *e, const char *import,
				 const struct evidence_address *callee)
{
	enum link best = is_linker(e, callee->module) ? LINK_LIKELY : LINK_UNKNOWN;
	for (size_t i = 0; i < e->source.module_count; i++) {
		const struct exported *found = find_export(e, i, import);
		if (!found)
			continue;
		struct evidence_address target = {i, found->address};
		if (!found->chosen && calls(e, &target, callee))
			return LINK_VALID;
		if (found->chosen || jumps_on(e, &target))
			best = LINK_LIKELY;
		else if (best != LINK_LIKELY)
			best = LINK_INVALID;
	}
	return best;
}

static enum link classify_call(struct evidence *e, const struct insn *insn, size_t caller,
			       const struct evidence_address *callee)
{
	if (insn->kind == INSN_CALL_INDIRECT)
		return LINK_LIKELY;
	struct evidence_address target = {caller, insn->target};
	const char *import = stub_import(e, &target);
	if (import && is_in_stub(e, &target, callee))
		return LINK_VALID;
	if (import)
		return callee->module != EVIDENCE_NOWHERE ? classify_import(e, import, callee)
							  : LINK_LIKELY;
	if (calls(e, &target, callee))
		return LINK_VALID;
	return jumps_on(e, &target) ? LINK_LIKELY : LINK_INVALID;
}

/* Of two readings of the same bytes. */
static enum link better(enum link a, enum link b)
{
	static const uint8_t rank[LINK_COUNT] = {
		[LINK_LIKELY] = 1, [LINK_UNKNOWN] = 2, [LINK_INVALID] = 3, [LINK_NONE] = 4};
	return rank[a] < rank[b] ? a : b;
}

/* The best that a call which ends at `ra` can mean; LINK_NONE: there is none. */
static enum link classify_before(struct evidence *e, const struct evidence_address *ra,
				 const struct evidence_address *callee)
{
	struct image *image = e->modules[ra->module].image;
	unsigned shortest = e->isa->insn_min > 2 ? e->isa->insn_min : 2;
	unsigned longest = e->isa->insn_min > 2 ? e->isa->insn_min : CALL_MAX;
	enum link best = LINK_NONE;
	for (unsigned length = shortest; length <= longest && length <= ra->address; length++) {
		size_t size;
		struct insn insn;
		const uint8_t *code = image_bytes_at(image, ra->address - length, &size);
		if (!code || size < length)
			continue;
		e->isa->decode(code, length, ra->address - length, &insn);
		if (insn.length == length &&
		    (insn.kind == INSN_CALL || insn.kind == INSN_CALL_INDIRECT))
			best = better(best, classify_call(e, &insn, ra->module, callee));
	}
	return best;
}

/* V8 turns frames of optimised code into such of its interpreter while they wait, with return
   addresses that no call left there. They are in its own procedures. */
static bool is_rewritten(struct evidence *e, const struct evidence_address *ra)
{
	const struct symbol *symbol = symbol_at(e, ra);
	struct image *image = e->modules[ra->module].image;
	return symbol && builtin_kind(image, e->isa, symbol) != BUILTIN_NONE;
}

enum link evidence_classify(struct evidence *e, const struct evidence_address *caller,
			    const struct evidence_address *callee)
{
	if (caller->module == EVIDENCE_NOWHERE || !e->isa || !open_module(e, caller->module)->image)
		return LINK_UNKNOWN;
	enum link link = classify_before(e, caller, callee);
	if (link == LINK_NONE)
		link = is_rewritten(e, caller) ? LINK_UNKNOWN : LINK_INVALID;
	return link;
}

const char *link_name(enum link link)
{
	static const char *const names[] = {"", "valid", "likely", "invalid", "unknown"};
	return names[link];
}
