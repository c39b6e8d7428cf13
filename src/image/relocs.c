/* SPDX-License-Identifier: Apache-2.0 */
#include "image/relocs.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"

struct list {
	struct reloc *items;
	size_t count, capacity;
	bool failed;
};

struct names { /* .dynsym and .dynstr */
	const uint8_t *symbols;
	size_t symbols_size;
	const char *strings;
	size_t strings_size;
};

static void add(struct list *list, uint64_t offset, uint64_t value, const char *symbol)
{
	if (!ARRAY_ROOM(list->items, list->count, list->capacity)) {
		list->failed = true;
		return;
	}
	list->items[list->count++] = (struct reloc){offset, value, symbol};
}

static bool is_relative(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_RELATIVE || type == R_X86_64_IRELATIVE;
	return type == R_AARCH64_RELATIVE || type == R_AARCH64_IRELATIVE;
}

static bool is_address(uint16_t machine, uint64_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_JUMP_SLOT;
	return type == R_AARCH64_ABS64 || type == R_AARCH64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT;
}

static const char *symbol_of(const struct names *names, uint64_t index, uint64_t *value)
{
	Elf64_Sym symbol;
	if (index >= names->symbols_size / sizeof symbol)
		return NULL;
	memcpy(&symbol, names->symbols + index * sizeof symbol, sizeof symbol);
	*value = symbol.st_value;
	if (symbol.st_name >= names->strings_size)
		return NULL;
	const char *name = names->strings + symbol.st_name;
	return memchr(name, 0, names->strings_size - symbol.st_name) ? name : NULL;
}

static void read_rela(struct image *image, const struct names *names, const char *section,
		      struct list *list)
{
	size_t size;
	const struct image_section *s = image_section(image, section);
	const uint8_t *bytes = s ? image_section_bytes(image, s, &size) : NULL;
	uint16_t machine = image_machine(image);
	Elf64_Rela rela;
	for (size_t at = 0; bytes && size - at >= sizeof rela && !list->failed; at += sizeof rela) {
		memcpy(&rela, bytes + at, sizeof rela);
		uint64_t type = ELF64_R_TYPE(rela.r_info), value = 0;
		if (is_relative(machine, type)) {
			add(list, rela.r_offset, (uint64_t)rela.r_addend, NULL);
		} else if (is_address(machine, type)) {
			const char *name = symbol_of(names, ELF64_R_SYM(rela.r_info), &value);
			add(list, rela.r_offset, value ? value + (uint64_t)rela.r_addend : 0, name);
		}
	}
}

static uint64_t word_at(struct image *image, uint64_t address)
{
	size_t size;
	uint64_t word = 0;
	const uint8_t *bytes = image_bytes_at(image, address, &size);
	if (bytes && size >= sizeof word)
		memcpy(&word, bytes, sizeof word);
	return word;
}

/* Relative relocations packed as an address followed by bitmaps of the 63 words after it. */
static void read_relr(struct image *image, struct list *list)
{
	size_t size;
	const struct image_section *s = image_section(image, ".relr.dyn");
	const uint8_t *bytes = s ? image_section_bytes(image, s, &size) : NULL;
	uint64_t where = 0, entry;
	for (size_t at = 0; bytes && size - at >= sizeof entry && !list->failed;
	     at += sizeof entry) {
		memcpy(&entry, bytes + at, sizeof entry);
		if (!(entry & 1)) {
			add(list, entry, word_at(image, entry), NULL);
			where = entry + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++)
			if (entry >> bit & 1)
				add(list, where + (bit - 1) * 8,
				    word_at(image, where + (bit - 1) * 8), NULL);
		where += 63 * 8;
	}
}

/* ---- sorting ---- */

/* Linkers write few long runs that ascend: all relative ones, then those of each table. Merging such runs takes
   a few passes, where sorting compares millions of times. Equal offsets stay in their order. */

static size_t run_end(const struct reloc *items, size_t from, size_t count)
{
	size_t end = from + 1;
	while (end < count && items[end - 1].offset <= items[end].offset)
		end++;
	return end;
}

/* Merges items[0..half) and items[half..count), each of which ascends. */
static void merge(const struct reloc *items, size_t half, size_t count, struct reloc *out)
{
	size_t left = 0, right = half;
	while (left < half && right < count)
		*out++ = items[right].offset < items[left].offset ? items[right++] : items[left++];
	memcpy(out, items + left, (half - left) * sizeof *out);
	memcpy(out + (half - left), items + right, (count - right) * sizeof *out);
}

/* Merges each two neighbouring runs. */
static void merge_runs(const struct reloc *items, size_t count, struct reloc *out)
{
	for (size_t at = 0; at < count;) {
		size_t half = run_end(items, at, count);
		size_t end = half < count ? run_end(items, half, count) : half;
		merge(items + at, half - at, end - at, out + at);
		at = end;
	}
}

static void sort(struct list *list)
{
	if (!list->count || run_end(list->items, 0, list->count) == list->count)
		return;
	struct reloc *other = calloc(list->count, sizeof *other);
	list->failed |= !other;
	while (other && run_end(list->items, 0, list->count) < list->count) {
		struct reloc *before = list->items;
		merge_runs(before, list->count, other);
		list->items = other;
		other = before;
	}
	free(other);
}

struct err *relocs_read(struct image *image, struct reloc **out, size_t *count)
{
	struct names names = {0};
	struct list list = {0};
	const struct image_section *symbols = image_section(image, ".dynsym");
	const struct image_section *strings = image_section(image, ".dynstr");
	*out = NULL;
	*count = 0;
	if (symbols)
		names.symbols = image_section_bytes(image, symbols, &names.symbols_size);
	if (strings)
		names.strings = (const char *)image_section_bytes(image, strings,
								  &names.strings_size);
	read_rela(image, &names, ".rela.dyn", &list);
	read_rela(image, &names, ".rela.plt", &list);
	read_relr(image, &list);
	sort(&list);
	if (list.failed) {
		free(list.items);
		return err_new("out of memory");
	}
	*out = list.items;
	*count = list.count;
	return NULL;
}
