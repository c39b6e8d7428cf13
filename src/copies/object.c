/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is laid out as it is in memory: what is at base + n is n bytes from its begin.
 *
 *     0                 ELF header, program headers, build-id         read
 *     OBJECT_TABLES     tables for the code                           read
 *     (page)            code of the copies                            read, run
 *     (page)            exception tables, unwind information          read
 *                       symbols, their hash table and names           read
 *     (page)            what the dynamic linker is told               read, written
 *                       section headers and their names               not loaded
 *
 * The dynamic linker of glibc adds the load bias to what it is told in place, even if it is 0, so that must be in memory
 * that can be written.
 */
#include "copies/object.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/siphash.h"
#include "image/image.h"
#include "copies/frames.h"
#include "copies/dynamic_symbols.h"
#include "copies/unwind_copy.h"

#define PAGE OBJECT_TABLES
#define SIZE_MAX_OBJECT (UINT32_C(1) << 31)
#define BUILD_ID_SIZE SIPHASH_SIZE
#define TRAP_X86_64 0xcc

enum { /* sections */
       NONE,
       NOTE,
       TABLES,
       TEXT,
       EXCEPTIONS,
       FRAMES,
       SEARCH,
       SYMBOLS,
       HASH,
       NAMES,
       DYNAMIC,
       SECTION_NAMES,
       SECTION_COUNT
};

enum { /* program headers */
       LOAD_TABLES,
       LOAD_TEXT,
       LOAD_CONSTANTS,
       LOAD_DYNAMIC,
       SEGMENT_DYNAMIC,
       SEGMENT_SEARCH,
       SEGMENT_STACK,
       SEGMENT_NOTE,
       SEGMENT_COUNT
};

static const char *const section_names[SECTION_COUNT] = {
	"",          ".note.gnu.build-id", ".rodata", ".text", ".gcc_except_table",
	".eh_frame", ".eh_frame_hdr",      ".dynsym", ".hash", ".dynstr",
	".dynamic",  ".shstrtab",
};

struct note {
	Elf64_Nhdr head;
	char name[4];
	uint8_t build_id[BUILD_ID_SIZE];
};

struct writer {
	const struct object_input *input;
	uint64_t address; /* of the first byte, in memory */
	struct buf *out;
	Elf64_Shdr sections[SECTION_COUNT];
};

#define HEADERS_SIZE (sizeof(Elf64_Ehdr) + SEGMENT_COUNT * sizeof(Elf64_Phdr))

static void pad_with(struct buf *out, uint64_t to, uint8_t byte)
{
	uint64_t size = to > out->size ? to - out->size : 0;
	if (!size || !buf_reserve(out, size))
		return;
	memset(out->data + out->size, byte, size);
	out->size += size;
}

static void align(struct buf *out, uint64_t unit)
{
	pad_with(out, (out->size + unit - 1) / unit * unit, 0);
}

/* Says that a section is what was written from `offset` on. */
static void section_set(struct writer *w, int section, uint32_t type, uint64_t flags,
			uint64_t offset, uint64_t size)
{
	w->sections[section] = (Elf64_Shdr){
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = flags & SHF_ALLOC ? w->address + offset : 0,
		.sh_offset = offset,
		.sh_size = size,
		.sh_addralign = 1,
	};
}

/* ---- contents ---- */

static struct err *check_input(const struct object_input *input)
{
	uint64_t end = input->base + OBJECT_TABLES + input->table_size;
	if ((input->base | input->bias) % PAGE)
		return err_new("its address 0x%" PRIx64 " does not begin a page", input->base);
	if (!input->copy_count)
		return err_new("no copies");
	if (input->copies[0].address % PAGE)
		return err_new("the first copy does not begin a page");
	for (size_t i = 0; i < input->copy_count; i++) {
		const struct copy *copy = &input->copies[i];
		if (copy->address < end || copy->address - input->base > SIZE_MAX_OBJECT ||
		    copy->size > SIZE_MAX_OBJECT)
			return err_new("the copy at 0x%" PRIx64 " lies elsewhere", copy->address);
		end = copy->address + copy->size;
	}
	return NULL;
}

static void write_tables(struct writer *w)
{
	const struct object_input *input = w->input;
	pad_with(w->out, OBJECT_TABLES, 0);
	section_set(w, NOTE, SHT_NOTE, SHF_ALLOC, HEADERS_SIZE, sizeof(struct note));
	w->sections[NOTE].sh_addralign = 4;
	section_set(w, TABLES, SHT_PROGBITS, SHF_ALLOC, OBJECT_TABLES, input->table_size);
	w->sections[TABLES].sh_addralign = 8;
	if (input->table_size)
		buf_append(w->out, input->tables, input->table_size);
}

static void write_code(struct writer *w)
{
	const struct object_input *input = w->input;
	uint8_t filler = image_machine(input->image) == EM_X86_64 ? TRAP_X86_64 : 0;
	uint64_t begin = input->copies[0].address - input->base;
	pad_with(w->out, begin, 0);
	for (size_t i = 0; i < input->copy_count; i++) {
		const struct copy *copy = &input->copies[i];
		pad_with(w->out, copy->address - input->base, filler);
		buf_append(w->out, copy->code, copy->size);
	}
	section_set(w, TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, begin, w->out->size - begin);
	w->sections[TEXT].sh_addralign = 16;
}

static struct err *write_unwind(struct writer *w, const struct frames *frames)
{
	const struct object_input *input = w->input;
	struct unwind_copy unwind;
	align(w->out, PAGE);
	uint64_t at = w->out->size;
	struct err *e = unwind_copy_write(frames, input->copies, input->copy_count,
					  input->base + at, &unwind);
	if (e)
		return e;
	buf_append(w->out, unwind.bytes.data, unwind.bytes.size);
	section_set(w, EXCEPTIONS, SHT_PROGBITS, SHF_ALLOC, at, unwind.exceptions_size);
	section_set(w, FRAMES, SHT_PROGBITS, SHF_ALLOC, at + unwind.frames, unwind.frames_size);
	section_set(w, SEARCH, SHT_PROGBITS, SHF_ALLOC, at + unwind.search, unwind.search_size);
	w->sections[FRAMES].sh_addralign = 8;
	w->sections[SEARCH].sh_addralign = 4;
	unwind_copy_free(&unwind);
	return NULL;
}

static struct err *write_symbols(struct writer *w, uint32_t *soname)
{
	const struct object_input *input = w->input;
	struct dynamic_symbols tables;
	struct err *e = dynamic_symbols_write(input->copies, input->copy_count, input->bias, TEXT,
					      input->name, &tables);
	if (e)
		return e;
	align(w->out, 8);
	section_set(w, SYMBOLS, SHT_DYNSYM, SHF_ALLOC, w->out->size, tables.symbols.size);
	buf_append(w->out, tables.symbols.data, tables.symbols.size);
	section_set(w, HASH, SHT_HASH, SHF_ALLOC, w->out->size, tables.hash.size);
	buf_append(w->out, tables.hash.data, tables.hash.size);
	section_set(w, NAMES, SHT_STRTAB, SHF_ALLOC, w->out->size, tables.names.size);
	buf_append(w->out, tables.names.data, tables.names.size);
	w->sections[SYMBOLS].sh_link = NAMES;
	w->sections[SYMBOLS].sh_info = 1; /* the first that is not local */
	w->sections[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);
	w->sections[SYMBOLS].sh_addralign = 8;
	w->sections[HASH].sh_link = SYMBOLS;
	w->sections[HASH].sh_entsize = sizeof(uint32_t);
	w->sections[HASH].sh_addralign = 4;
	*soname = tables.soname;
	dynamic_symbols_free(&tables);
	return NULL;
}

static void write_dynamic(struct writer *w, uint32_t soname)
{
	const Elf64_Dyn entries[] = {
		{DT_SONAME, {soname}},
		{DT_HASH, {w->sections[HASH].sh_addr}},
		{DT_STRTAB, {w->sections[NAMES].sh_addr}},
		{DT_SYMTAB, {w->sections[SYMBOLS].sh_addr}},
		{DT_STRSZ, {w->sections[NAMES].sh_size}},
		{DT_SYMENT, {sizeof(Elf64_Sym)}},
		{DT_NULL, {0}},
	};
	align(w->out, PAGE);
	section_set(w, DYNAMIC, SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, w->out->size, sizeof entries);
	w->sections[DYNAMIC].sh_link = NAMES;
	w->sections[DYNAMIC].sh_entsize = sizeof entries[0];
	w->sections[DYNAMIC].sh_addralign = 8;
	buf_append(w->out, entries, sizeof entries);
}

/* ---- headers ---- */

static uint64_t write_sections(struct writer *w)
{
	uint32_t names[SECTION_COUNT];
	size_t begin = w->out->size;
	for (int i = 0; i < SECTION_COUNT; i++) {
		names[i] = (uint32_t)(w->out->size - begin);
		buf_append(w->out, section_names[i], strlen(section_names[i]) + 1);
	}
	section_set(w, SECTION_NAMES, SHT_STRTAB, 0, begin, w->out->size - begin);
	for (int i = 1; i < SECTION_COUNT; i++)
		w->sections[i].sh_name = names[i];
	align(w->out, 8);
	uint64_t offset = w->out->size;
	buf_append(w->out, w->sections, sizeof w->sections);
	return offset;
}

static Elf64_Phdr segment(const struct writer *w, uint32_t type, uint32_t flags, uint64_t offset,
			  uint64_t end, uint64_t alignment)
{
	return (Elf64_Phdr){
		.p_type = type,
		.p_flags = flags,
		.p_offset = offset,
		.p_vaddr = w->address + offset,
		.p_paddr = w->address + offset,
		.p_filesz = end - offset,
		.p_memsz = end - offset,
		.p_align = alignment,
	};
}

/* From the first byte of a section to the last of another. */
static Elf64_Phdr segment_of(const struct writer *w, uint32_t type, uint32_t flags, int first,
			     int last)
{
	const Elf64_Shdr *begin = &w->sections[first], *end = &w->sections[last];
	return segment(w, type, flags, begin->sh_offset, end->sh_offset + end->sh_size,
		       type == PT_LOAD ? PAGE : begin->sh_addralign);
}

static void fill_segments(const struct writer *w, Elf64_Phdr *out)
{
	const Elf64_Shdr *tables = &w->sections[TABLES];
	out[LOAD_TABLES] = segment(w, PT_LOAD, PF_R, 0, tables->sh_offset + tables->sh_size, PAGE);
	out[LOAD_TEXT] = segment_of(w, PT_LOAD, PF_R | PF_X, TEXT, TEXT);
	out[LOAD_CONSTANTS] = segment_of(w, PT_LOAD, PF_R, EXCEPTIONS, NAMES);
	out[LOAD_DYNAMIC] = segment_of(w, PT_LOAD, PF_R | PF_W, DYNAMIC, DYNAMIC);
	out[SEGMENT_DYNAMIC] = segment_of(w, PT_DYNAMIC, PF_R | PF_W, DYNAMIC, DYNAMIC);
	out[SEGMENT_SEARCH] = segment_of(w, PT_GNU_EH_FRAME, PF_R, SEARCH, SEARCH);
	out[SEGMENT_STACK] = (Elf64_Phdr){
		.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W, .p_align = 16};
	out[SEGMENT_NOTE] = segment_of(w, PT_NOTE, PF_R, NOTE, NOTE);
}

static Elf64_Ehdr file_header(const struct writer *w, uint64_t sections)
{
	return (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT,
			    ELFOSABI_SYSV},
		.e_type = ET_DYN,
		.e_machine = image_machine(w->input->image),
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = sections,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENT_COUNT,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTION_COUNT,
		.e_shstrndx = SECTION_NAMES,
	};
}

/* The build-id is a hash of all the rest. */
static void fill_headers(const struct writer *w, uint64_t sections)
{
	static const uint8_t no_secret[SIPHASH_SIZE];
	Elf64_Ehdr header = file_header(w, sections);
	Elf64_Phdr segments[SEGMENT_COUNT];
	struct note note = {{sizeof note.name, sizeof note.build_id, NT_GNU_BUILD_ID}, "GNU", {0}};
	struct siphash hash;
	fill_segments(w, segments);
	memcpy(w->out->data, &header, sizeof header);
	memcpy(w->out->data + sizeof header, segments, sizeof segments);
	siphash_start(&hash, no_secret);
	siphash_add(&hash, w->out->data, w->out->size);
	siphash_end(&hash, note.build_id);
	memcpy(w->out->data + HEADERS_SIZE, &note, sizeof note);
}

static struct err *write_all(struct writer *w, const struct frames *frames)
{
	uint32_t soname;
	write_tables(w);
	write_code(w);
	struct err *e = write_unwind(w, frames);
	if (!e)
		e = write_symbols(w, &soname);
	if (e)
		return e;
	write_dynamic(w, soname);
	uint64_t sections = write_sections(w);
	if (w->out->failed)
		return err_new("out of memory");
	fill_headers(w, sections);
	return NULL;
}

struct err *object_write(const struct object_input *input, struct buf *out)
{
	struct writer w = {.input = input, .address = input->base + input->bias, .out = out};
	struct frames frames;
	struct err *e = check_input(input);
	if (!e)
		e = frames_open(input->image, &frames);
	if (e)
		return err_context(e, "object '%s'", input->name);
	buf_clear(out);
	e = write_all(&w, &frames);
	frames_close(&frames);
	return err_context(e, "object '%s'", input->name);
}

struct err *object_check(const struct frames *frames, const struct copy *copy)
{
	uint64_t behind = (copy->address + copy->size + PAGE - 1) / PAGE * PAGE;
	struct unwind_copy unwind;
	struct err *e = unwind_copy_write(frames, copy, 1, behind, &unwind);
	if (!e)
		unwind_copy_free(&unwind);
	return e;
}
