/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A program with a table of Go's, of any version, and nothing else: no section has a name. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "unit.h"

#define GO_TEXT 0x1000u
#define GO_TABLE 0x40000u
#define GO_DATA 0x80000u /* the runtime's own description, and what was inlined */
#define GO_TREE (GO_DATA + 0x400u)
#define GO_ROOM 0x20000u
#define GO_FUNCTIONS_MAX 24

enum go_version { GO_V2, GO_V16, GO_V18, GO_V20, GO_VERSIONS };

struct go_value {
	int32_t value;
	uint32_t length; /* bytes of code; 0: no more */
};

struct go_function {
	const char *name;
	uint32_t size;
	uint8_t flags; /* 1: top, 2: writes SP */
	struct go_value sp[8], line[8], file[4], inlined[4];
};

struct go_table {
	enum go_version version;
	unsigned quantum;
	uint8_t bytes[GO_ROOM];
	size_t at;        /* where the next text or series goes */
	size_t size;      /* in the end */
	uint32_t inlined; /* the name of what was inlined */
};

#define GO_FUNCTAB 0x200u
#define GO_NAMES 0x400u
#define GO_RECORDS 0xa00u /* far enough for all that comes before */
#define GO_RECORD 0x80u

static inline void go_put(struct go_table *t, size_t at, uint64_t value, unsigned size)
{
	memcpy(t->bytes + at, &value, size);
}

static inline size_t go_text(struct go_table *t, const char *text)
{
	size_t at = t->at, size = strlen(text) + 1;
	memcpy(t->bytes + at, text, size);
	t->at += size;
	return at;
}

static inline void go_varint(struct go_table *t, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		t->bytes[t->at++] = (uint8_t)(value | 0x80);
	t->bytes[t->at++] = (uint8_t)value;
}

/* Where it begins, from `base` on. */
static inline uint32_t go_series(struct go_table *t, const struct go_value *v, size_t count,
				 size_t base)
{
	uint32_t at = (uint32_t)(t->at - base);
	int32_t before = -1;
	if (!v[0].length)
		return 0;
	for (size_t i = 0; i < count && v[i].length; i++) {
		int32_t by = v[i].value - before;
		go_varint(t, ((uint32_t)by << 1) ^ (uint32_t)(by >> 31));
		go_varint(t, v[i].length / t->quantum);
		before = v[i].value;
	}
	go_varint(t, 0);
	return at;
}

/* Its record, at `at`. `base`: what series are relative to. */
static inline void go_record(struct go_table *t, const struct go_function *f, uint64_t entry,
			     uint32_t name, size_t at, size_t base)
{
	const unsigned wide = t->version >= GO_V18 ? 4 : 8;
	const size_t count = t->version == GO_V2 ? 7 : t->version == GO_V20 ? 9 : 8;
	const uint32_t words[] = {name,
				  0,
				  0,
				  go_series(t, f->sp, 8, base),
				  go_series(t, f->file, 4, base),
				  go_series(t, f->line, 8, base),
				  3,
				  0,
				  77};
	go_put(t, at, t->version >= GO_V18 ? entry - GO_TEXT : entry, wide);
	at += wide;
	for (size_t i = 0; i < count; i++, at += 4)
		go_put(t, at, words[i], 4);
	go_put(t, at, 4u << 24 | (uint32_t)f->flags << 8, 4);
	/* three of pcdata, four of funcdata: the last of each are about inlining */
	const uint32_t tail[] = {
		0, 0, go_series(t, f->inlined, 4, base), UINT32_MAX, UINT32_MAX, UINT32_MAX, 0};
	for (size_t i = 0; i < sizeof tail / sizeof *tail; i++)
		go_put(t, at + 4 + 4 * i, tail[i], 4);
}

static inline void go_functions(struct go_table *t, const struct go_function *all, size_t count,
				const uint32_t *names, size_t pctab)
{
	const unsigned wide = t->version >= GO_V18 ? 4 : 8;
	const size_t functab = t->version == GO_V2 ? 16 : GO_FUNCTAB;
	uint64_t entry = GO_TEXT;
	for (size_t i = 0; i <= count; i++) {
		size_t record = GO_RECORDS + GO_RECORD * i, at = functab + 2 * wide * i;
		go_put(t, at, t->version >= GO_V18 ? entry - GO_TEXT : entry, wide);
		if (i == count)
			break;
		go_put(t, at + wide, t->version == GO_V2 ? record : record - functab, wide);
		go_record(t, &all[i], entry, names[i], record, t->version == GO_V2 ? 0 : pctab);
		entry += all[i].size;
	}
	t->size = GO_RECORDS + GO_RECORD * count;
	assert_true(t->at <= GO_RECORDS);
}

static inline void go_make(struct go_table *t, enum go_version version, unsigned quantum,
			   const struct go_function *all, size_t count)
{
	static const uint32_t magics[] = {0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1};
	const size_t base = version == GO_V2 ? 0 : GO_NAMES;
	uint32_t names[GO_FUNCTIONS_MAX];
	memset(t, 0, sizeof *t);
	*t = (struct go_table){.version = version, .quantum = quantum, .at = GO_NAMES};
	go_put(t, 0, magics[version], 4);
	go_put(t, 6, quantum, 1);
	go_put(t, 7, 8, 1);
	go_put(t, 8, count, 8);
	go_text(t, "");
	for (size_t i = 0; i < count; i++)
		names[i] = (uint32_t)(go_text(t, all[i].name) - base);
	t->inlined = (uint32_t)(go_text(t, "main.small") - base);
	const size_t files = t->at, path = go_text(t, "/src/a.go"), units = t->at;
	go_put(t, units, version == GO_V2 ? 2 : path - files, 4);
	go_put(t, units + 4, version == GO_V2 ? path : UINT32_MAX, 4);
	const size_t pctab = t->at = units + 8;
	t->at++;
	const uint64_t parts[] = {GO_NAMES, units, files, pctab, GO_FUNCTAB};
	for (size_t i = 0; version != GO_V2 && i < 5; i++)
		go_put(t, (version >= GO_V18 ? 32 : 24) + 8 * i, parts[i], 8);
	if (version >= GO_V18)
		go_put(t, 24, GO_TEXT, 8);
	go_functions(t, all, count, names, pctab);
	if (version == GO_V2)
		go_put(t, 16 + 16 * count + 8, units, 4);
}

static inline Elf64_Phdr go_segment(uint32_t flags, uint64_t address, size_t size)
{
	return (Elf64_Phdr){.p_type = PT_LOAD,
			    .p_flags = PF_R | flags,
			    .p_offset = address,
			    .p_vaddr = address,
			    .p_paddr = address,
			    .p_filesz = size,
			    .p_memsz = size,
			    .p_align = 0x1000};
}

/* With the runtime's description of the module, and one function that was inlined, called at the
   function's first byte. */
static inline struct image *go_image(uint16_t machine, const void *code, size_t size,
				     const struct go_table *t)
{
	const Elf64_Phdr segments[] = {go_segment(PF_X, GO_TEXT, size),
				       go_segment(0, GO_TABLE, t->size),
				       go_segment(PF_W, GO_DATA, 0x800)};
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};
	uint8_t *bytes = calloc(1, GO_DATA + 0x800);
	const uint64_t words[] = {GO_TABLE, GO_TEXT, GO_TREE};
	struct image *image;
	assert_non_null(bytes);
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, segments, sizeof segments);
	memcpy(bytes + GO_TEXT, code, size);
	memcpy(bytes + GO_TABLE, t->bytes, t->size);
	memcpy(bytes + GO_DATA, &words[0], 8);
	memcpy(bytes + GO_DATA + 22 * 8, &words[1], 8);
	memcpy(bytes + GO_DATA + (t->version == GO_V20 ? 40 : 38) * 8, &words[2], 8);
	memcpy(bytes + GO_TREE + (t->version == GO_V20 ? 4 : 12), &t->inlined, 4);
	struct err *e = image_open_memory(bytes, GO_DATA + 0x800, "go", &image);
	free(bytes);
	if (e)
		fail_msg("%s", err_text(e));
	return image;
}
