/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "flow/tables.h"
#include "isa/insn.h"

#define CODE 0x1000 /* where the code of all examples is */

/* What compilers make of switch statements, up to the jump and a little further; tables are at
   0x2000 and above. */
/* clang-format off */
static const struct example {
	const struct isa *isa;
	const char *name;
	const char *code;
	size_t size;
	bool found;
	struct jump_table expected;
} examples[] = {
	{&isa_aarch64, "gcc: bytes",
	 "\x1f\x14\x00\x71\x08\x01\x00\x54\x01\x00\x00\xb0\x21\x00\x01\x91\x20\x48\x60\x38"
	 "\x61\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 40, true, {.table = 0x2040, .base = 0x1020, .count = 6, .entry_size = 1, .shift = 2, .is_signed = true, .exact = true}},
	{&isa_aarch64, "gcc: half words, index moved and shifted by a constant",
	 "\x03\x1c\x00\x51\xf4\x03\x03\x2a\x7f\xb0\x04\x71\x28\x01\x00\x54\x01\x00\x00\xb0"
	 "\x21\x00\x02\x91\xf5\x03\x05\xaa\x20\x58\x74\x78\x61\x00\x00\x10\x20\xa8\x20\x8b"
	 "\x00\x00\x1f\xd6\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 52, true, {.table = 0x2080, .base = 0x102c, .count = 301, .entry_size = 2, .shift = 2, .is_signed = true, .exact = true}},
	{&isa_aarch64, "gcc: the call that is jumped over does not return, the table's address is from before the loop",
	 "\x16\x00\x00\xb0\xd6\x42\x00\x91\x00\x00\x00\x94\x1f\x20\x00\x71\x69\x00\x00\x54"
	 "\x20\x00\x80\x52\x06\x00\x00\x94\xc0\x5a\x60\x78\x61\x00\x00\x10\x20\xa8\x20\x8b"
	 "\x00\x00\x1f\xd6\xf7\xff\xff\x17\xc0\x03\x5f\xd6",
	 52, true, {.table = 0x2010, .base = 0x102c, .count = 9, .entry_size = 2, .shift = 2, .is_signed = true, .exact = true}},
	{&isa_aarch64, "clang: bytes, unsigned",
	 "\x08\x0c\x00\x51\xfd\x03\x00\x91\x1f\x1d\x00\x71\x08\x01\x00\x54\x09\x00\x00\xb0"
	 "\x29\x01\x04\x91\x8a\x00\x00\x10\x2b\x69\x68\x38\x4a\x09\x0b\x8b\x40\x01\x1f\xd6"
	 "\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 48, true, {.table = 0x2100, .base = 0x1028, .count = 8, .entry_size = 1, .shift = 2, .is_signed = false, .exact = true}},
	{&isa_aarch64, "clang: words from the table on",
	 "\x1f\x7d\x00\xf1\xc2\x00\x00\x54\x09\x00\x00\xb0\x29\x21\x00\x91\x2a\x79\xa8\xb8"
	 "\x4a\x01\x09\x8b\x40\x01\x1f\xd6\xc0\x03\x5f\xd6",
	 32, true, {.table = 0x2008, .base = 0x2008, .count = 31, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_aarch64, "a constant too large for an immediate",
	 "\x29\x96\x85\x12\x09\x01\x09\x0b\x3f\x29\x01\x71\x08\x01\x00\x54\x08\x00\x00\xb0"
	 "\x08\x11\x00\x91\x8a\x00\x00\x10\x0b\x69\x69\x38\x4a\x09\x0b\x8b\x40\x01\x1f\xd6"
	 "\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 48, true, {.table = 0x2004, .base = 0x1028, .count = 75, .entry_size = 1, .shift = 2, .is_signed = false, .exact = true}},
	{&isa_aarch64, "dispatch in a loop that only the switch itself falls into",
	 "\x08\x00\x00\xb0\x08\xe1\x0c\x91\x03\x00\x00\x14\x29\xa1\x00\x91\x29\x01\x40\xf9"
	 "\x2a\x61\x40\x39\x5f\x19\x00\x71\xa8\x00\x00\x54\x6b\xff\xff\x10\x0c\x69\x6a\x38"
	 "\x6b\x09\x0c\x8b\x60\x01\x1f\xd6\xc0\x03\x5f\xd6",
	 52, true, {.table = 0x2338, .base = 0x100c, .count = 7, .entry_size = 1, .shift = 2, .is_signed = false, .exact = true}},
	{&isa_aarch64, "a conditional compare whose other outcome branches away",
	 "\x3f\x00\x00\x71\x02\x18\x45\x7a\x08\x01\x00\x54\x01\x00\x00\xb0\x21\x00\x00\x91"
	 "\x20\x48\x60\x38\x61\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6\x1f\x20\x03\xd5"
	 "\xc0\x03\x5f\xd6",
	 44, true, {.table = 0x2000, .base = 0x1024, .count = 6, .entry_size = 1, .shift = 2, .is_signed = true, .exact = true}},
	{&isa_aarch64, "a conditional compare that proves nothing",
	 "\x3f\x00\x00\x71\x04\x18\x45\x7a\x08\x01\x00\x54\x01\x00\x00\xb0\x21\x00\x00\x91"
	 "\x20\x48\x60\x38\x61\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6\x1f\x20\x03\xd5"
	 "\xc0\x03\x5f\xd6",
	 44, true, {.table = 0x2000, .base = 0x1024, .count = 0, .entry_size = 1, .shift = 2, .is_signed = true, .exact = false}},
	{&isa_aarch64, "flags of something else",
	 "\x1f\x14\x00\x71\x00\x20\x61\x1e\x08\x01\x00\x54\x01\x00\x00\xb0\x21\x00\x00\x91"
	 "\x20\x48\x60\x38\x61\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6\x1f\x20\x03\xd5"
	 "\xc0\x03\x5f\xd6",
	 44, true, {.table = 0x2000, .base = 0x1024, .count = 0, .entry_size = 1, .shift = 2, .is_signed = true, .exact = false}},
	{&isa_aarch64, "a signed compare is only a limit",
	 "\x28\x30\x40\x79\x1f\xe1\x03\x71\x2c\x01\x00\x54\x09\x00\x00\xb0\x08\x35\x00\x51"
	 "\x29\x0d\x11\x91\x8a\x00\x00\x10\x2b\x69\x68\x38\x4a\x09\x0b\x8b\x40\x01\x1f\xd6"
	 "\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 48, true, {.table = 0x2443, .base = 0x1028, .count = 236, .entry_size = 1, .shift = 2, .is_signed = false, .exact = false}},
	{&isa_aarch64, "so is one that a bit test followed",
	 "\x1f\xe1\x00\x71\x68\x01\x00\x54\x69\x20\xc8\x9a\x3f\x01\x0a\xea\x01\x01\x00\x54"
	 "\x09\x00\x00\xb0\x29\x05\x00\x91\x8a\x00\x00\x10\x2b\x69\x68\x38\x4a\x09\x0b\x8b"
	 "\x40\x01\x1f\xd6\x1f\x20\x03\xd5\xc0\x03\x5f\xd6",
	 52, true, {.table = 0x2001, .base = 0x102c, .count = 57, .entry_size = 1, .shift = 2, .is_signed = false, .exact = false}},
	{&isa_aarch64, "a masked index",
	 "\x08\x08\x00\x12\x09\x00\x00\xb0\x29\x01\x00\x91\x8a\x00\x00\x10\x2b\x69\x68\x38"
	 "\x4a\x09\x0b\x8b\x40\x01\x1f\xd6\x1f\x20\x03\xd5",
	 32, true, {.table = 0x2000, .base = 0x101c, .count = 8, .entry_size = 1, .shift = 2, .is_signed = false, .exact = false}},
	{&isa_aarch64, "a call through a table of methods",
	 "\x08\x00\x40\xf9\x01\x09\x40\xf9\x20\x00\x1f\xd6",
	 12, false, {0}},
	{&isa_aarch64, "the index was overwritten",
	 "\x1f\x14\x00\x71\x28\x01\x00\x54\x01\x00\x00\xb0\x21\x00\x00\x91\x06\x00\x00\x94"
	 "\x20\x48\x60\x38\x61\x00\x00\x10\x20\x88\x20\x8b\x00\x00\x1f\xd6\x1f\x20\x03\xd5"
	 "\xc0\x03\x5f\xd6",
	 44, false, {0}},
	{&isa_x86_64, "gcc, clang: position-independent",
	 "\x8d\x47\xfd\x83\xf8\x07\x77\x10\x48\x8d\x0d\xf1\x0f\x00\x00\x48\x63\x04\x81\x48"
	 "\x01\xc8\xff\xe0\xc3",
	 25, true, {.table = 0x2000, .base = 0x2000, .count = 8, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "with branch protection",
	 "\x40\x80\xff\x14\x77\x15\x48\x8d\x15\xf3\x0f\x00\x00\x40\x0f\xb6\xff\x48\x63\x04"
	 "\xba\x48\x01\xd0\x3e\xff\xe0\xc3",
	 28, true, {.table = 0x2000, .base = 0x2000, .count = 21, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "at a fixed address",
	 "\x89\xfa\x8d\x42\xfd\x83\xf8\x07\x77\x07\xff\x24\xc5\x00\x20\x00\x00\xc3",
	 18, true, {.table = 0x2000, .base = 0, .count = 8, .entry_size = 8, .shift = 0, .is_signed = false, .exact = true}},
	{&isa_x86_64, "at a fixed address, loaded",
	 "\x83\xff\x09\x73\x0c\x89\xf8\x48\x8b\x04\xc5\x10\x20\x00\x00\xff\xe0\xc3",
	 18, true, {.table = 0x2010, .base = 0, .count = 9, .entry_size = 8, .shift = 0, .is_signed = false, .exact = true}},
	{&isa_x86_64, "the compare is with memory",
	 "\x83\x7b\x10\x0c\x77\x13\x8b\x43\x10\x48\x8d\x15\xf0\x0f\x00\x00\x48\x63\x04\x82"
	 "\x48\x01\xd0\xff\xe0\xc3",
	 26, true, {.table = 0x2000, .base = 0x2000, .count = 13, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "hoisted out of a loop, and spilled",
	 "\x48\x8d\x0d\xfd\x0f\x00\x00\x48\x89\x4c\x24\x18\xeb\x05\xe8\x1c\x00\x00\x00\x41"
	 "\x0f\xb7\x2e\xe8\x13\x00\x00\x00\x83\xfd\x04\x77\xed\x48\x8b\x4c\x24\x18\x48\x63"
	 "\x04\xa9\x48\x01\xc8\xff\xe0\xc3",
	 48, true, {.table = 0x2004, .base = 0x2004, .count = 5, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "the dispatch stands elsewhere",
	 "\x83\xfe\x06\x76\x03\x31\xc0\xc3\x89\xf0\x48\x8d\x15\xef\x0f\x00\x00\x48\x63\x04"
	 "\x82\x48\x01\xd0\xff\xe0",
	 26, true, {.table = 0x2000, .base = 0x2000, .count = 7, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "clamped",
	 "\xb9\x09\x00\x00\x00\x83\xf8\x09\x0f\x43\xc1\x48\x8d\x15\xee\x0f\x00\x00\x48\x63"
	 "\x04\x82\x48\x01\xd0\xff\xe0",
	 27, true, {.table = 0x2000, .base = 0x2000, .count = 10, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "the index is a multiple, compared as such",
	 "\xc1\xe7\x03\x83\xff\x10\x77\x12\x48\x8d\x15\xf1\x0f\x00\x00\x89\xf8\x48\x63\x04"
	 "\x82\x48\x01\xd0\xff\xe0\xc3",
	 27, true, {.table = 0x2000, .base = 0x2000, .count = 17, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "the compare is with an element of an array",
	 "\x48\x63\xf6\x48\x8d\x0d\x06\x10\x00\x00\x83\x3c\xb1\x07\x77\x13\x8b\x04\xb1\x48"
	 "\x8d\x15\xe6\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xc3",
	 36, true, {.table = 0x2000, .base = 0x2000, .count = 8, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "the table has entries that another compare keeps from being used",
	 "\x83\xff\x08\x7f\x18\x8d\x47\x01\x83\xf8\x7f\x77\x10\x48\x8d\x15\xec\x0f\x00\x00"
	 "\x48\x63\x04\x82\x48\x01\xd0\xff\xe0\xc3",
	 30, true, {.table = 0x2000, .base = 0x2000, .count = 128, .entry_size = 4, .shift = 0, .is_signed = true, .exact = true}},
	{&isa_x86_64, "nothing but the width of the index",
	 "\x0f\xb6\x07\x48\x8d\x15\xf6\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0",
	 19, true, {.table = 0x2000, .base = 0x2000, .count = 256, .entry_size = 4, .shift = 0, .is_signed = true, .exact = false}},
	{&isa_x86_64, "no bound",
	 "\x8b\x07\x48\x8d\x15\xf7\x0f\x00\x00\x48\x63\x04\x82\x48\x01\xd0\xff\xe0",
	 18, true, {.table = 0x2000, .base = 0x2000, .count = 0, .entry_size = 4, .shift = 0, .is_signed = true, .exact = false}},
	{&isa_x86_64, "flags of something else",
	 "\x83\xf8\x07\x01\xce\x77\x10\x48\x8d\x0d\xf2\x0f\x00\x00\x48\x63\x04\x81\x48\x01"
	 "\xc8\xff\xe0\xc3",
	 24, true, {.table = 0x2000, .base = 0x2000, .count = 0, .entry_size = 4, .shift = 0, .is_signed = true, .exact = false}},
	{&isa_x86_64, "a method",
	 "\x48\x8b\x07\xff\x60\x10",
	 6, false, {0}},
	{&isa_x86_64, "a pointer variable",
	 "\xff\x25\xfa\x0f\x00\x00",
	 6, false, {0}},
};
/* clang-format on */

static uint8_t lengths[256];

static unsigned length_at(const void *context, uint64_t at)
{
	(void)context;
	return lengths[at - CODE];
}

/* The indirect jump of an example; its instructions go to `lengths`. */
static uint64_t find_jump(const struct example *x)
{
	struct insn insn;
	uint64_t jump = 0;
	assert_in_range(x->size, 1, sizeof lengths);
	memset(lengths, 0, sizeof lengths);
	for (size_t at = 0; at < x->size; at += insn.length) {
		x->isa->decode((const uint8_t *)x->code + at, x->size - at, CODE + at, &insn);
		lengths[at] = insn.length;
		if (insn.kind == INSN_JUMP_INDIRECT)
			jump = CODE + at;
	}
	assert_int_not_equal(jump, 0);
	return jump;
}

static void test_finds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		const struct example *x = &examples[i];
		const struct tables_code code = {
			.isa = x->isa,
			.bytes = (const uint8_t *)x->code,
			.start = CODE,
			.end = CODE + x->size,
			.length = length_at,
		};
		struct jump_table t;
		bool found = tables_find(&code, find_jump(x), &t);
		if (found != x->found ||
		    (found &&
		     (t.table != x->expected.table || t.base != x->expected.base ||
		      t.count != x->expected.count || t.exact != x->expected.exact ||
		      t.entry_size != x->expected.entry_size || t.shift != x->expected.shift ||
		      t.is_signed != x->expected.is_signed)))
			fail_msg(
				"%s, %s: found %d, table %lx, base %lx, %lu entries (exact %d) of %u, shift %u, signed %d",
				x->isa->name, x->name, found, (unsigned long)t.table,
				(unsigned long)t.base, (unsigned long)t.count, t.exact,
				t.entry_size, t.shift, t.is_signed);
	}
}

/* Code cut off anywhere, and code of the other CPU, is survived. */
static void test_survives(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		const struct example *x = &examples[i];
		const struct isa *all[] = {&isa_aarch64, &isa_x86_64};
		for (size_t cut = 0; cut <= x->size; cut++) {
			for (size_t k = 0; k < 2; k++) {
				struct code_run run = {(const uint8_t *)x->code, cut, CODE, false};
				struct jump_table t;
				all[k]->find_jump_table(&run, 1, &t);
				assert_false(all[k]->find_jump_table(&run, 0, &t));
			}
		}
	}
}

struct memory {
	uint64_t address;
	const uint8_t *bytes;
	size_t size;
};

static const uint8_t *memory_at(const void *context, uint64_t address, size_t *size)
{
	const struct memory *m = context;
	if (address < m->address || address - m->address >= m->size)
		return NULL;
	*size = m->size - (address - m->address);
	return m->bytes + (address - m->address);
}

static void test_reads(void **state)
{
	(void)state;
	static const uint8_t bytes[] = {0, 4, 4, 0xff, 2};
	static const uint8_t words[] = {0x00, 0xf0, 0xff, 0xff, 0x01, 0xf0,
					0xff, 0xff, 0x10, 0xf0, 0xff, 0xff};
	static const uint8_t addresses[] = {0x10, 0x10, 0, 0, 0, 0, 0, 0,
					    0x20, 0x10, 0, 0, 0, 0, 0, 0};
	const struct memory b = {0x2000, bytes, sizeof bytes}, w = {0x2000, words, sizeof words},
			    a = {0x2000, addresses, sizeof addresses};
	struct jump_table t = {.table = 0x2000,
			       .base = 0x1020,
			       .count = 5,
			       .entry_size = 1,
			       .shift = 2,
			       .is_signed = true,
			       .exact = true};
	uint64_t out[8];

	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1400, 4, out, 8), 4);
	assert_int_equal(out[0], 0x1020);
	assert_int_equal(out[1], 0x1030);
	assert_int_equal(out[2], 0x101c);
	assert_int_equal(out[3], 0x1028);
	t.is_signed = false;
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 8), 4);
	assert_int_equal(out[2], 0x141c);
	/* outside; too many; past the end of the data; no data; not exact and too dense to tell */
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1400, 4, out, 8), 0);
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 3), 0);
	t.count = 6;
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 8), 0);
	t.count = UINT64_MAX;
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 8), 0);
	t.count = 3;
	t.exact = false;
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 8), 0);
	t.table = 0x3000;
	assert_int_equal(tables_targets(&t, memory_at, &b, 0x1000, 0x1800, 4, out, 8), 0);

	t = (struct jump_table){.table = 0x2000,
				.base = 0x2000,
				.count = 3,
				.entry_size = 4,
				.is_signed = true,
				.exact = true};
	assert_int_equal(tables_targets(&t, memory_at, &w, 0x1000, 0x1400, 1, out, 8), 3);
	assert_int_equal(out[0], 0x1000);
	assert_int_equal(out[1], 0x1001);
	assert_int_equal(out[2], 0x1010);
	assert_int_equal(tables_targets(&t, memory_at, &w, 0x1000, 0x1400, 4, out, 8), 0);
	t.exact = false; /* then it ends where it stops making sense */
	t.count = 256;
	assert_int_equal(tables_targets(&t, memory_at, &w, 0x1000, 0x1010, 1, out, 8), 2);
	t.count = 0;
	assert_int_equal(tables_targets(&t, memory_at, &w, 0x1000, 0x1400, 1, out, 8), 0);

	t = (struct jump_table){.table = 0x2000, .count = 2, .entry_size = 8, .exact = true};
	assert_int_equal(tables_targets(&t, memory_at, &a, 0x1000, 0x1400, 1, out, 8), 2);
	assert_int_equal(out[0], 0x1010);
	assert_int_equal(out[1], 0x1020);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds),
		cmocka_unit_test(test_survives),
		cmocka_unit_test(test_reads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
