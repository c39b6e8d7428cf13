/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/table.h"

#include <string.h>

/* Four lanes, so that a table of several megabytes is checked at memory speed. */
uint64_t table_checksum(const void *bytes, size_t size)
{
	uint64_t lanes[4] = {1, 2, 3, 4}, word[4];
	const uint8_t *at = bytes;
	for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
		memcpy(word, at, sizeof word);
		for (int i = 0; i < 4; i++) {
			lanes[i] = (lanes[i] ^ word[i]) * 0x9fb21c651e98df25u;
			lanes[i] ^= lanes[i] >> 29;
		}
	}
	for (; size; size--, at++)
		lanes[0] = (lanes[0] ^ *at) * 0x9fb21c651e98df25u;
	return lanes[0] ^ (lanes[1] << 1) ^ (lanes[2] << 2) ^ (lanes[3] << 3);
}

static bool rows_are_sane(const struct table *t)
{
	if (t->pages[0] != 0 || t->pages[t->page_count] != t->row_count)
		return false;
	for (uint32_t p = 0; p < t->page_count; p++) {
		if (t->pages[p] >= t->pages[p + 1] || t->pages[p + 1] > t->row_count)
			return false;
		if (t->rows[t->pages[p]] >> TABLE_RULE_BITS)
			return false;
	}
	for (uint32_t i = 0; i < t->row_count; i++)
		if ((t->rows[i] & TABLE_RULE_MASK) >= t->rule_count)
			return false;
	return true;
}

bool table_adopt(struct table *table, const void *bytes, size_t size)
{
	struct table_header h;
	memset(table, 0, sizeof *table);
	if (size < sizeof h || (uintptr_t)bytes % 8)
		return false;
	memcpy(&h, bytes, sizeof h);
	uint64_t words = (uint64_t)h.page_count + 1 + h.row_count;
	words += words & 1; /* rules are aligned to 8 bytes */
	uint64_t expected = sizeof h + words * 4 + (uint64_t)h.rule_count * sizeof(struct recipe);
	if (h.magic != TABLE_MAGIC || h.version != TABLE_VERSION || h.start % TABLE_PAGE ||
	    !h.rule_count || expected != size)
		return false;
	table->start = h.start;
	table->page_count = h.page_count;
	table->row_count = h.row_count;
	table->rule_count = h.rule_count;
	table->pages = (const uint32_t *)((const char *)bytes + sizeof h);
	table->rows = table->pages + h.page_count + 1;
	table->rules = (const struct recipe *)(table->pages + words);
	return true;
}

bool table_open(struct table *table, const void *bytes, size_t size)
{
	return table_adopt(table, bytes, size) && rows_are_sane(table);
}
