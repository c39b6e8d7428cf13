/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/survey.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "flow/builtins.h"
#include "flow/trace.h"
#include "image/image.h"
#include "image/relocs.h"
#include "image/symbols.h"
#include "isa/insn.h"

struct addresses {
	uint64_t *items;
	size_t count, capacity;
	bool failed;
};

static void add(struct addresses *list, uint64_t address)
{
	if (!ARRAY_ROOM(list->items, list->count, list->capacity)) {
		list->failed = true;
		return;
	}
	list->items[list->count++] = address;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void sort_unique(struct addresses *list)
{
	size_t kept = 0;
	if (list->count)
		qsort(list->items, list->count, sizeof *list->items, by_value);
	for (size_t i = 0; i < list->count; i++)
		if (!kept || list->items[kept - 1] != list->items[i])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* Functions of the usual libraries from which control does not come back. */
static const char *const noreturn_names[] = {
	"abort",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"pthread_exit",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp_chk",
	"__stack_chk_fail",
	"__fortify_fail",
	"__chk_fail",
	"__assert_fail",
	"__assert",
	"__assert_perror_fail",
	"__assert_rtn",
	"err",
	"errx",
	"verr",
	"verrx",
	"_Unwind_Resume",
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_throw_bad_array_new_length",
	"__cxa_pure_virtual",
	"__cxa_call_unexpected",
	"__cxa_call_terminate",
	"__clang_call_terminate",
	"_ZSt9terminatev",
	"_ZSt10unexpectedv",
	"__libc_fatal",
	"g_assertion_message",
	"g_assertion_message_expr",
	"_gfortran_stop_string",
	"_gfortran_error_stop_string",
	"_gfortran_stop_numeric",
	"_gfortran_runtime_error",
	"_gfortran_runtime_error_at",
	"_gfortran_os_error",
	"_gfortran_os_error_at",
	"rust_begin_unwind",
	"rust_panic",
	"Perl_croak",
	"Perl_croak_nocontext",
	"Perl_croak_no_modify",
	"Perl_my_exit",
	"Perl_my_failure_exit",
};

static bool is_noreturn_name(const char *name)
{
	if (!strncmp(name, "_ZSt", 4) && strstr(name, "__throw_"))
		return true;
	for (size_t i = 0; i < sizeof noreturn_names / sizeof *noreturn_names; i++)
		if (!strcmp(name, noreturn_names[i]))
			return true;
	return false;
}

/* A part of a procedure that was moved away from the rest is no procedure. */
static bool is_part(const char *name)
{
	const char *dot = strstr(name, ".cold");
	return dot && (dot[5] == 0 || dot[5] == '.');
}

/* What V8's own compiler made: procedures for certain, though most are only jumped to, from others with
   frames of all sizes. Some go on with a frame that was made for them. */
static bool is_builtin(enum builtin_kind kind)
{
	return kind != BUILTIN_NONE && kind != BUILTIN_CONTINUATION;
}

static void add_symbols(struct image *image, const struct isa *isa, const struct symbols *symbols,
			struct addresses *entries, struct addresses *hints,
			struct addresses *noreturn)
{
	const struct symbol *all;
	size_t count = symbols_all(symbols, &all);
	for (size_t i = 0; i < count; i++) {
		if (all[i].global || is_builtin(builtin_kind(image, isa, &all[i])))
			add(entries, all[i].address);
		else if (!is_part(all[i].name))
			add(hints, all[i].address);
		if (is_noreturn_name(all[i].name))
			add(noreturn, all[i].address);
	}
}

static void add_array(struct image *image, const char *section, struct addresses *entries)
{
	size_t size;
	const struct image_section *s = image_section(image, section);
	const uint8_t *bytes = s ? image_section_bytes(image, s, &size) : NULL;
	uint64_t word;
	for (size_t at = 0; bytes && size - at >= sizeof word; at += sizeof word) {
		memcpy(&word, bytes + at, sizeof word);
		if (word && word != UINT64_MAX && image_is_code(image, word))
			add(entries, word);
	}
}

/* Where a stub goes as long as its import is not bound: the word says so before anything is written
   there. On x86-64 that is the rest of the stub, from which the table's first entry is reached after
   a push: it is no procedure. */
static void add_unbound(struct image *image, uint64_t slot, struct addresses *hints)
{
	size_t size;
	uint64_t word;
	const uint8_t *bytes = image_bytes_at(image, slot, &size);
	if (!bytes || size < sizeof word)
		return;
	memcpy(&word, bytes, sizeof word);
	if (word && image_is_code(image, word))
		add(hints, word);
}

static const struct reloc *reloc_at(const struct reloc *relocs, size_t count, uint64_t offset)
{
	size_t found = FIRST_NOT(i, count, relocs[i].offset < offset);
	return found < count && relocs[found].offset == offset ? &relocs[found] : NULL;
}

/* The memory word that the stub's final jump goes through: from its address on x86-64, from the
   page address plus the load's offset on aarch64. */
static uint64_t stub_slot(const struct isa *isa, const struct insn *insn, uint64_t *page,
			  unsigned *page_reg)
{
	if (insn->kind == INSN_JUMP_INDIRECT && insn->target)
		return insn->target;
	for (unsigned i = 0; i < insn->effect_count; i++) {
		const struct effect *e = &insn->effects[i];
		if (e->op == EFFECT_CONST && insn->refers && isa->link != INSN_NO_REG) {
			*page = (uint64_t)e->imm;
			*page_reg = e->dst;
		} else if (e->op == EFFECT_LOAD && e->src == *page_reg && *page) {
			return *page + (uint64_t)e->imm;
		}
	}
	return 0;
}

static bool add_stub(struct survey *survey, size_t *capacity, uint64_t address, const char *import)
{
	if (survey->stub_count == *capacity) {
		size_t wanted = *capacity ? *capacity * 2 : 256;
		struct survey_stub *grown = realloc(survey->stubs, wanted * sizeof *grown);
		if (!grown)
			return false;
		survey->stubs = grown;
		*capacity = wanted;
	}
	survey->stubs[survey->stub_count++] = (struct survey_stub){address, import};
	return true;
}

/* Reads the stubs of one PLT section: each begins where the last one jumped away. */
static bool read_stubs(struct image *image, const struct isa *isa, const struct image_section *s,
		       const struct reloc *relocs, size_t reloc_count, struct survey *survey,
		       size_t *capacity)
{
	size_t size;
	const uint8_t *bytes = image_section_bytes(image, s, &size);
	uint64_t page = 0, slot = 0, begin = s->address;
	unsigned page_reg = INSN_NO_REG;
	struct insn insn;
	for (size_t at = 0; bytes && at < size; at += insn.length) {
		isa->decode(bytes + at, size - at, s->address + at, &insn);
		if (insn.kind == INSN_NOP || (insn.address % 16 == 0 && isa->link == INSN_NO_REG))
			begin = insn.kind == INSN_NOP ? insn.address + insn.length : insn.address;
		uint64_t found = stub_slot(isa, &insn, &page, &page_reg);
		slot = found ? found : slot;
		if (insn.kind != INSN_JUMP_INDIRECT)
			continue;
		const struct reloc *reloc = slot ? reloc_at(relocs, reloc_count, slot) : NULL;
		if (reloc && reloc->symbol && !add_stub(survey, capacity, begin, reloc->symbol))
			return false;
		begin = insn.address + insn.length;
		slot = page = 0;
	}
	return true;
}

static bool add_stubs(struct image *image, const struct isa *isa, const struct reloc *relocs,
		      size_t reloc_count, struct survey *survey)
{
	const struct image_section *sections;
	size_t count = image_sections(image, &sections), capacity = 0;
	for (size_t i = 0; i < count; i++)
		if (!strncmp(sections[i].name, ".plt", 4) && sections[i].type == SHT_PROGBITS &&
		    (sections[i].flags & SHF_EXECINSTR) &&
		    !read_stubs(image, isa, &sections[i], relocs, reloc_count, survey, &capacity))
			return false;
	return true;
}

static bool add_slots(struct image *image, const struct reloc *relocs, size_t count,
		      struct survey *survey)
{
	survey->slots = calloc(count ? count : 1, sizeof *survey->slots);
	for (size_t i = 0; survey->slots && i < count; i++) {
		uint64_t procedure = relocs[i].value;
		if (!procedure && relocs[i].symbol && is_noreturn_name(relocs[i].symbol))
			procedure = TRACE_NO_RETURN;
		else if (!procedure || !image_is_code(image, procedure))
			continue;
		survey->slots[survey->slot_count++] = (struct trace_slot){relocs[i].offset,
									  procedure};
	}
	return survey->slots != NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct survey_stub *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

struct err *survey_take(struct image *image, const struct isa *isa, const struct symbols *symbols,
			struct survey *out)
{
	struct addresses entries = {0}, hints = {0}, noreturn = {0};
	struct reloc *relocs;
	size_t reloc_count;
	memset(out, 0, sizeof *out);
	struct err *e = relocs_read(image, &relocs, &reloc_count);
	if (e)
		return e;
	if (symbols)
		add_symbols(image, isa, symbols, &entries, &hints, &noreturn);
	if (image_entry(image))
		add(&entries, image_entry(image));
	static const char *const arrays[] = {".init_array", ".fini_array", ".preinit_array",
					     ".ctors", ".dtors"};
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		add_array(image, arrays[i], &entries);
	static const char *const glue[] = {".init", ".fini"};
	for (size_t i = 0; i < sizeof glue / sizeof *glue; i++)
		if (image_section(image, glue[i]))
			add(&entries, image_section(image, glue[i])->address);
	for (size_t i = 0; i < reloc_count; i++)
		if (relocs[i].value && image_is_code(image, relocs[i].value))
			add(&hints, relocs[i].value);
		else if (!relocs[i].value && relocs[i].symbol)
			add_unbound(image, relocs[i].offset, &hints);
	bool good = add_stubs(image, isa, relocs, reloc_count, out) &&
		    add_slots(image, relocs, reloc_count, out);
	if (out->stub_count)
		qsort(out->stubs, out->stub_count, sizeof *out->stubs, by_address);
	for (size_t i = 0; i < out->stub_count; i++) {
		add(&entries, out->stubs[i].address);
		if (is_noreturn_name(out->stubs[i].import))
			add(&noreturn, out->stubs[i].address);
	}
	free(relocs);
	sort_unique(&entries);
	sort_unique(&hints);
	sort_unique(&noreturn);
	out->entries = entries.items, out->entry_count = entries.count;
	out->hints = hints.items, out->hint_count = hints.count;
	out->noreturn = noreturn.items, out->noreturn_count = noreturn.count;
	if (good && !entries.failed && !hints.failed && !noreturn.failed)
		return NULL;
	survey_free(out);
	return err_new("out of memory");
}

void survey_free(struct survey *survey)
{
	free(survey->entries);
	free(survey->hints);
	free(survey->noreturn);
	free(survey->stubs);
	free(survey->slots);
	memset(survey, 0, sizeof *survey);
}
