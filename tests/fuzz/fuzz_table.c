/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables, and walks by them. The first eight bytes are not the table's:
 * bit 0 of the first is the CPU, the others shuffle what memory holds. A table
 * that is refused for its lengths gets right ones, so that the rest is reached.
 */
#include <assert.h>
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cpu.h"
#include "unwind/table.h"
#include "unwind/walk.h"

#define STEPS 1000
#define STACK 0x7ff000000000u
#define STACK_SIZE (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *bytes;
	size_t size;
	uint64_t seed, code, code_size;
};

/* A stack whose words are the input's own, or addresses of code or stack made of them. */
static bool read_word(void *context, uint64_t address, uint64_t *out)
{
	const struct memory *m = context;
	uint64_t word = 0, at;
	if (address - STACK >= STACK_SIZE || m->size < 8)
		return false;
	at = (address ^ m->seed) % (m->size - 7);
	memcpy(&word, m->bytes + at, sizeof word);
	switch ((address >> 3 ^ m->seed) & 3) {
	case 0:
		break;
	case 1:
		word = STACK + word % STACK_SIZE;
		break;
	default:
		word = m->code + word % m->code_size;
	}
	*out = word;
	return true;
}

static void walk_from(const struct walk_space *space, const struct unwind_cpu *cpu,
		      struct memory *memory, uint64_t pc, uint64_t sp)
{
	const struct walk_reader reader = {.word = read_word, .context = memory};
	uint64_t registers[CPU_REGISTERS];
	struct walk walk;
	int steps = 0;
	for (size_t i = 0; i < CPU_REGISTERS; i++)
		registers[i] = sp + 8 * i;
	registers[cpu->sp] = sp;
	walk_begin(&walk, cpu, registers, pc);
	while (steps++ < STEPS) {
		uint64_t old_sp = walk.sp;
		bool may_stay = walk.exact || walk.near || !walk.still;
		enum walk_end end = walk_step(&walk, space, &reader);
		assert(walk_end_name(end)[0]);
		if (end != WALK_ON)
			break;
		/* Invariant 2 of unwind/walk.h. */
		if (walk.recipe->cfa != RECIPE_SIGNAL && walk.recipe->cfa < RECIPE_AWAY)
			assert(walk.sp > old_sp || (may_stay && walk.sp == old_sp));
	}
}

static void use_table(const struct table *table, const struct unwind_cpu *cpu,
		      struct memory *memory)
{
	uint64_t span = (uint64_t)table->page_count * TABLE_PAGE;
	uint64_t step = span / 4096 + 1;
	struct walk_module module = {.bias = 0x10000, .table = *table};
	const struct walk_space space = {.modules = &module, .count = 1};
	for (uint64_t at = 0; at < span; at += step)
		assert(table_find(table, table->start + at)->cfa <= UINT8_MAX);
	table_find(table, table->start - 1);
	table_find(table, table->start + span);
	table_find(table, 0);
	table_find(table, UINT64_MAX);
	module.start = table->start + module.bias;
	module.end = module.start + span;
	if (!span || module.end <= module.start)
		return;
	memory->code = module.start;
	memory->code_size = span;
	for (uint64_t i = 0; i < 16; i++)
		walk_from(&space, cpu, memory, module.start + span / 16 * i + (memory->seed & 15),
			  STACK + i * 0x1000);
}

/* The lengths in the header as the size demands them. */
static void mend_header(uint8_t *bytes, size_t size)
{
	struct table_header h;
	uint64_t words, rules;
	memcpy(&h, bytes, sizeof h);
	h.magic = TABLE_MAGIC;
	h.version = TABLE_VERSION;
	h.start &= ~(uint64_t)(TABLE_PAGE - 1);
	rules = (size - sizeof h) / sizeof(struct recipe);
	rules = rules ? 1 + h.rule_count % rules : 0;
	words = (size - sizeof h - rules * sizeof(struct recipe)) / 4;
	h.rule_count = (uint32_t)rules;
	h.page_count = words ? (uint32_t)(h.page_count % words) : 0;
	h.row_count = words ? (uint32_t)(words - 1 - h.page_count) : 0;
	memcpy(bytes, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_cpu *cpu;
	struct memory memory = {.bytes = data, .size = size};
	struct table table;
	uint8_t *bytes;
	if (size < 8)
		return 0;
	memcpy(&memory.seed, data, 8);
	cpu = unwind_cpu_for(data[0] & 1 ? EM_AARCH64 : EM_X86_64);
	data += 8;
	size -= 8;
	bytes = malloc(size + !size); /* aligned, as table_open wants it */
	assert(bytes);
	memcpy(bytes, data, size);
	if (!table_open(&table, bytes, size) && size >= sizeof(struct table_header)) {
		size -= (size - sizeof(struct table_header)) % 8;
		mend_header(bytes, size);
	}
	if (table_open(&table, bytes, size)) {
		table_checksum(bytes + sizeof(struct table_header),
			       size - sizeof(struct table_header));
		use_table(&table, cpu, &memory);
	}
	free(bytes);
	return 0;
}
