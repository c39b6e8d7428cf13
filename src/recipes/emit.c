/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of the file:
 *
 *     ELF header | program headers | .note.gnu.build-id | .debug_frame | .symtab | .strtab |
 *     .shstrtab | section headers
 *
 * Sections that the image has in memory stand in the section headers at their
 * addresses, without contents (SHT_NOBITS), as in files that hold debug
 * information apart from the program: debuggers match the two by them.
 */
#include "recipes/emit.h"

#include <elf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "recipes/emit_frames.h"
#include "recipes/procedures.h"
#include "recipes/rows.h"

#define SECTIONS_MAX 4096
#define NOTE_SECTION ".note.gnu.build-id"

struct emitter {
	const struct emit_input *input;
	const struct isa *isa;
	struct buf *out;
	size_t base; /* of the file in `out` */
	Elf64_Shdr *headers;
	size_t header_count, header_room;
	struct buf names;            /* .shstrtab */
	struct buf symbols, strings; /* .symtab, .strtab */
	struct emit_stats stats;
};

/* ---- sections ---- */

static uint64_t position(const struct emitter *m)
{
	return m->out->size - m->base;
}

static void align_to(struct emitter *m, unsigned alignment)
{
	static const char zeros[16];
	if (position(m) % alignment)
		buf_append(m->out, zeros, alignment - position(m) % alignment);
}

static uint32_t add_string(struct buf *strings, const char *text)
{
	size_t at = strings->size;
	buf_append(strings, text, strlen(text) + 1);
	return (uint32_t)at;
}

static Elf64_Shdr *add_section(struct emitter *m, const char *name, uint32_t type)
{
	Elf64_Shdr *h;
	if (m->header_count == m->header_room)
		return NULL;
	h = &m->headers[m->header_count++];
	*h = (Elf64_Shdr){.sh_name = add_string(&m->names, name),
			  .sh_type = type,
			  .sh_offset = position(m),
			  .sh_addralign = 1};
	return h;
}

/* A section that is contents of this file. */
static Elf64_Shdr *add_contents(struct emitter *m, const char *name, uint32_t type,
				const void *bytes, size_t size)
{
	Elf64_Shdr *h;
	align_to(m, 8);
	h = add_section(m, name, type);
	if (!h)
		return NULL;
	h->sh_size = size;
	buf_append(m->out, bytes, size);
	return h;
}

/* Where gdb and others look for the file that belongs to a program. */
static void add_build_id(struct emitter *m)
{
	struct image *image = m->input->image;
	const struct image_section *own = image_section(image, NOTE_SECTION);
	const uint8_t *id;
	size_t size = image_build_id(image, &id);
	Elf64_Nhdr note = {.n_namesz = 4, .n_descsz = (uint32_t)size, .n_type = NT_GNU_BUILD_ID};
	struct buf bytes = {0};
	Elf64_Shdr *h;
	if (!size)
		return;
	buf_append(&bytes, &note, sizeof note);
	buf_append(&bytes, "GNU", 4);
	buf_append(&bytes, id, size);
	buf_append(&bytes, "\0\0\0", -size % 4);
	h = add_contents(m, NOTE_SECTION, SHT_NOTE, bytes.data, bytes.size);
	if (h) {
		h->sh_addralign = 4;
		h->sh_flags = own ? SHF_ALLOC : 0;
		h->sh_addr = own ? own->address : 0;
	}
	m->out->failed |= bytes.failed;
	buf_free(&bytes);
}

static void add_nobits(struct emitter *m, const char *name, uint64_t address, uint64_t size,
		       uint64_t flags)
{
	Elf64_Shdr *h = add_section(m, name, SHT_NOBITS);
	if (!h)
		return;
	h->sh_flags = flags & (SHF_WRITE | SHF_ALLOC | SHF_EXECINSTR);
	h->sh_addr = address;
	h->sh_size = size;
	h->sh_addralign = m->isa->insn_min;
}

static void add_image_sections(struct emitter *m)
{
	const struct image_section *sections;
	const struct image_segment *segments;
	size_t count = image_sections(m->input->image, &sections);
	bool has_code = false;
	for (size_t i = 0; i < count; i++) {
		const struct image_section *s = &sections[i];
		if (!(s->flags & SHF_ALLOC) || (s->flags & SHF_TLS) ||
		    !strcmp(s->name, NOTE_SECTION))
			continue;
		if (!strncmp(s->name, ".eh_frame", 9)) /* tools complain where it is empty */
			continue;
		add_nobits(m, s->name, s->address, s->size, s->flags);
		has_code |= (s->flags & SHF_EXECINSTR) != 0;
	}
	count = image_segments(m->input->image, &segments);
	for (size_t i = 0; i < count && !has_code; i++)
		if (segments[i].executable)
			add_nobits(m, ".text", segments[i].address, segments[i].size,
				   SHF_ALLOC | SHF_EXECINSTR);
}

/* ---- symbols ---- */

static uint16_t section_of(const struct emitter *m, uint64_t address)
{
	for (size_t i = 1; i < m->header_count; i++) {
		const Elf64_Shdr *h = &m->headers[i];
		if ((h->sh_flags & SHF_EXECINSTR) && address >= h->sh_addr &&
		    address - h->sh_addr < h->sh_size)
			return (uint16_t)i;
	}
	return SHN_UNDEF;
}

static void add_symbol(struct emitter *m, const char *name, uint64_t address, uint64_t size,
		       bool global)
{
	Elf64_Sym symbol = {
		.st_value = address, .st_size = size, .st_shndx = section_of(m, address)};
	const Elf64_Shdr *section;
	if (!symbol.st_shndx)
		return;
	section = &m->headers[symbol.st_shndx];
	if (size > section->sh_size - (address - section->sh_addr))
		symbol.st_size = section->sh_size - (address - section->sh_addr);
	symbol.st_info = ELF64_ST_INFO(global ? STB_GLOBAL : STB_LOCAL, STT_FUNC);
	symbol.st_name = add_string(&m->strings, name);
	buf_append(&m->symbols, &symbol, sizeof symbol);
	m->stats.symbols++;
}

/* The end of what has recipes in [start, limit). */
static uint64_t code_end(const struct rows *rows, uint64_t start, uint64_t limit)
{
	size_t found = FIRST_NOT(i, rows->count, rows->rows[i].address < limit);
	while (found && !rows->rows[found - 1].rule) {
		limit = rows->rows[found - 1].address;
		found--;
	}
	return limit > start ? limit : start;
}

static void add_invented(struct emitter *m)
{
	const struct emit_input *in = m->input;
	for (size_t i = 0; i < in->start_count; i++) {
		uint64_t at = in->starts[i];
		uint64_t limit = i + 1 < in->start_count ? in->starts[i + 1] : UINT64_MAX;
		const struct symbol *known = symbols_find(in->symbols, at);
		char name[40];
		if ((known && (known->address == at || known->size)) ||
		    procedures_is_stub(in->image, at))
			continue;
		snprintf(name, sizeof name, "culprit_proc_%" PRIx64, at);
		add_symbol(m, name, at, code_end(in->rows, at, limit) - at, false);
		m->stats.invented++;
	}
}

static void add_known(struct emitter *m, bool global)
{
	const struct symbol *all;
	size_t count = symbols_all(m->input->symbols, &all);
	for (size_t i = 0; i < count; i++) {
		uint64_t limit = i + 1 < count ? all[i + 1].address : UINT64_MAX;
		uint64_t size = all[i].size;
		if (all[i].global != global)
			continue;
		if (!size)
			size = code_end(m->input->rows, all[i].address, limit) - all[i].address;
		add_symbol(m, all[i].name, all[i].address, size, global);
	}
}

/* Symbol tables have the local ones first. */
static void add_symbols(struct emitter *m)
{
	static const Elf64_Sym none;
	size_t locals;
	Elf64_Shdr *h;
	buf_append(&m->symbols, &none, sizeof none);
	buf_append(&m->strings, "", 1);
	add_known(m, false);
	add_invented(m);
	locals = m->symbols.size / sizeof(Elf64_Sym);
	add_known(m, true);
	h = add_contents(m, ".symtab", SHT_SYMTAB, m->symbols.data, m->symbols.size);
	if (h) {
		h->sh_info = (uint32_t)locals;
		h->sh_link = (uint32_t)m->header_count;
		h->sh_entsize = sizeof(Elf64_Sym);
		h->sh_addralign = 8;
	}
	add_contents(m, ".strtab", SHT_STRTAB, m->strings.data, m->strings.size);
}

/* ---- the file ---- */

/* What is loaded where; without contents. */
static uint16_t put_segments(struct emitter *m)
{
	const struct image_segment *segments;
	size_t count = image_segments(m->input->image, &segments);
	if (count >= PN_XNUM)
		return 0;
	for (size_t i = 0; i < count; i++) {
		Elf64_Phdr h = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | (segments[i].writable ? PF_W : 0u) |
				   (segments[i].executable ? PF_X : 0u),
			.p_offset = segments[i].address % 4096,
			.p_vaddr = segments[i].address,
			.p_paddr = segments[i].address,
			.p_memsz = segments[i].size,
			.p_align = 4096,
		};
		buf_append(m->out, &h, sizeof h);
	}
	return (uint16_t)count;
}

static void put_header(struct emitter *m, uint16_t segment_count, uint64_t headers_at)
{
	Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = image_type(m->input->image),
		.e_machine = image_machine(m->input->image),
		.e_version = EV_CURRENT,
		.e_entry = image_entry(m->input->image),
		.e_phoff = segment_count ? sizeof h : 0,
		.e_shoff = headers_at,
		.e_ehsize = sizeof h,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = segment_count,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)m->header_count,
		.e_shstrndx = (uint16_t)(m->header_count - 1),
	};
	if (!m->out->failed)
		memcpy(m->out->data + m->base, &h, sizeof h);
}

static void add_frames(struct emitter *m)
{
	const struct emit_input *in = m->input;
	Elf64_Shdr *h;
	align_to(m, 8);
	h = add_section(m, ".debug_frame", SHT_PROGBITS);
	m->stats.entries = emit_frames(m->isa, in->rows, in->starts, in->start_count, m->out);
	if (h) {
		h->sh_size = position(m) - h->sh_offset;
		h->sh_addralign = 8;
	}
}

static void write_file(struct emitter *m)
{
	static const Elf64_Ehdr blank;
	uint16_t segments;
	size_t own_name;
	buf_append(m->out, &blank, sizeof blank);
	segments = put_segments(m);
	add_section(m, "", SHT_NULL);
	m->headers[0] = (Elf64_Shdr){0};
	add_build_id(m);
	add_image_sections(m);
	add_frames(m);
	add_symbols(m);
	own_name = m->names.size;
	add_string(&m->names, ".shstrtab");
	if (add_contents(m, "", SHT_STRTAB, m->names.data, m->names.size))
		m->headers[m->header_count - 1].sh_name = (uint32_t)own_name;
	align_to(m, 8);
	put_header(m, segments, position(m));
	buf_append(m->out, m->headers, m->header_count * sizeof *m->headers);
}

struct err *emit_debug_file(const struct emit_input *input, struct buf *out,
			    struct emit_stats *stats)
{
	struct emitter m = {.input = input, .out = out, .base = out->size};
	const struct image_section *sections;
	const struct image_segment *segments;
	bool failed;
	m.isa = isa_for_machine(image_machine(input->image));
	if (!m.isa)
		return err_new("%s: no analysis for this CPU", image_path(input->image));
	/* null, build-id, .debug_frame, .symtab, .strtab, .shstrtab */
	m.header_room = 6 + image_sections(input->image, &sections) +
			image_segments(input->image, &segments);
	if (m.header_room > SECTIONS_MAX)
		return err_new("%s: too many sections", image_path(input->image));
	m.headers = calloc(m.header_room, sizeof *m.headers);
	if (m.headers)
		write_file(&m);
	failed = !m.headers || out->failed || m.names.failed || m.symbols.failed ||
		 m.strings.failed;
	buf_free(&m.names);
	buf_free(&m.symbols);
	buf_free(&m.strings);
	free(m.headers);
	if (failed)
		return err_new("out of memory");
	*stats = m.stats;
	return NULL;
}
