/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/mark.h"

#include <string.h>

#include "base/clock.h"
#include "process/reach.h"

#define SOON_NS 1000000000u

void mark_make(struct mark *mark, uint64_t address, const uint8_t *stack, size_t size)
{
	uint64_t word = 0;
	size_t end = size / sizeof word * sizeof word;
	/* Zeros say nothing: fresh memory has them, too. */
	for (; end >= MARK_SIZE; end -= sizeof word) {
		memcpy(&word, stack + end - sizeof word, sizeof word);
		if (word)
			break;
	}
	*mark = (struct mark){0};
	if (end < MARK_SIZE)
		return;
	mark->address = address + end - MARK_SIZE;
	memcpy(mark->bytes, stack + end - MARK_SIZE, MARK_SIZE);
}

size_t mark_read(const struct mark *mark, pid_t pid, uint64_t ns, uint64_t address, void *out,
		 size_t size)
{
	uint8_t now[MARK_SIZE];
	const struct reach_piece pieces[] = {{mark->address, MARK_SIZE, now}, {address, size, out}};
	if (!mark->address || now_ns() - ns > SOON_NS)
		return 0;
	ssize_t got = reach_memory(pid, pieces, 2);
	if (got <= (ssize_t)MARK_SIZE || memcmp(now, mark->bytes, MARK_SIZE) != 0)
		return 0;
	return ((size_t)got - MARK_SIZE) / sizeof(uint64_t) * sizeof(uint64_t);
}
