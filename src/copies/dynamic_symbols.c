/* SPDX-License-Identifier: Apache-2.0 */
#include "copies/dynamic_symbols.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "copies/copy.h"

#define SUFFIX ".paths"

/* Of the ELF specification. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 0;
	for (; *name; name++) {
		hash = (hash << 4) + (uint8_t)*name;
		uint32_t high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	return hash;
}

static void put_name(const struct copy *copy, struct buf *names)
{
	if (copy->name)
		buf_puts(names, copy->name);
	else
		buf_printf(names, "function_at_%" PRIx64, copy->entry);
	buf_append(names, SUFFIX, sizeof SUFFIX);
}

static void put_symbols(const struct copy *copies, size_t count, uint64_t bias, uint16_t section,
			struct dynamic_symbols *out)
{
	buf_append(&out->symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol = {
			.st_name = (uint32_t)out->names.size,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_other = STV_PROTECTED,
			.st_shndx = section,
			.st_value = copies[i].address + bias,
			.st_size = copies[i].size,
		};
		put_name(&copies[i], &out->names);
		buf_append(&out->symbols, &symbol, sizeof symbol);
	}
}

/* How many buckets and symbols, then the first symbol of each bucket, then the next one after each symbol. */
static struct err *put_hash(size_t count, struct dynamic_symbols *out)
{
	const Elf64_Sym *symbols = (const Elf64_Sym *)out->symbols.data;
	uint32_t bucket_count = (uint32_t)count | 1, symbol_count = (uint32_t)count + 1;
	size_t words = 2 + (size_t)bucket_count + symbol_count;
	uint32_t *table = calloc(words, sizeof *table);
	if (!table)
		return err_new("out of memory");
	table[0] = bucket_count;
	table[1] = symbol_count;
	for (uint32_t i = 1; i < symbol_count; i++) {
		const char *name = out->names.data + symbols[i].st_name;
		uint32_t *bucket = &table[2 + hash_name(name) % bucket_count];
		table[2 + bucket_count + i] = *bucket;
		*bucket = i;
	}
	buf_append(&out->hash, table, words * sizeof *table);
	free(table);
	return NULL;
}

struct err *dynamic_symbols_write(const struct copy *copies, size_t count, uint64_t bias,
				  uint16_t section, const char *soname, struct dynamic_symbols *out)
{
	*out = (struct dynamic_symbols){0};
	buf_append(&out->names, "", 1);
	out->soname = (uint32_t)out->names.size;
	buf_append(&out->names, soname, strlen(soname) + 1);
	put_symbols(copies, count, bias, section, out);
	struct err *e = NULL;
	if (out->names.failed || out->symbols.failed)
		e = err_new("out of memory");
	if (!e)
		e = put_hash(count, out);
	if (!e && out->hash.failed)
		e = err_new("out of memory");
	if (e)
		dynamic_symbols_free(out);
	return e;
}

void dynamic_symbols_free(struct dynamic_symbols *tables)
{
	buf_free(&tables->symbols);
	buf_free(&tables->hash);
	buf_free(&tables->names);
}
