/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lea disp(%rip), %reg takes the address of everything that is more than a
 * constant; where code has a fixed address, tables are read with disp(,%reg,8). The bytes of
 * those (REX.W 8d, modrm 00 reg 101, four of displacement; modrm 00 reg 100, sib 11 reg 101, four of
 * displacement) are looked for wherever they stand: decoding from the first byte to the last would take
 * fifty times as long, and what looks like one by accident hardly ever points into a table.
 */
#include "isa/references_cpu.h"

#include <string.h>

static int32_t word_at(const uint8_t *at)
{
	int32_t word;
	memcpy(&word, at, sizeof word);
	return word;
}

void x86_find_references(const uint8_t *code, size_t size, uint64_t address,
			 void (*each)(void *context, uint64_t to), void *context)
{
	for (size_t i = 1; i + 6 <= size; i++) {
		const uint8_t *at = code + i;
		if (at[0] == 0x8d && (at[1] & 0xc7) == 0x05 && (at[-1] & 0xf8) == 0x48)
			each(context, address + i + 6 + (uint64_t)(int64_t)word_at(at + 2));
		else if ((at[0] & 0xc7) == 0x04 && (at[1] & 0xc7) == 0xc5 && word_at(at + 2) > 0)
			each(context, (uint64_t)word_at(at + 2));
	}
}
