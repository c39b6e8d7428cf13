/* SPDX-License-Identifier: Apache-2.0 */
/* Where probes are put in: their islands, which are mapped within reach of their functions, and the jumps. */
#include <string.h>
#include <sys/mman.h>

#include "agent/probes.h"
#include "safe/syscall.h"

#define PAGE 4096u

static struct probe probes[ARENA_PROBES_MAX];

static bool protect(uint64_t at, uint64_t size, int protection)
{
	uint64_t start = at & ~(uint64_t)(PAGE - 1);
	return SAFE_SYSCALL(SYS_mprotect, start, at + size - start, protection, 0) == 0;
}

static void flush(uint64_t at, uint64_t size)
{
	__builtin___clear_cache((char *)at, (char *)at + size);
}

static bool map_block(const struct arena_probe *a)
{
	long at = safe_syscall6(SYS_mmap, (long)a->block, (long)a->block_size,
				PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (long)a->block) {
		if (at > 0)
			SAFE_SYSCALL(SYS_munmap, at, a->block_size, 0, 0);
		return false;
	}
	*(uint64_t *)a->block = (uint64_t)probe_entry;
	return true;
}

static enum arena_probe_state put_in(const struct arena_probe *a)
{
	if (!arena_probe_leads(a, (const uint8_t *)a->function) ||
	    memcmp((const void *)a->at, a->original, a->window))
		return ARENA_PROBE_CHANGED;
	if (!protect(a->at, a->length, PROT_READ | PROT_WRITE))
		return ARENA_PROBE_FIXED;
	memcpy((void *)a->at, a->jump, a->length);
	bool good = protect(a->at, a->length, PROT_READ | PROT_EXEC);
	flush(a->at, a->length);
	return good ? ARENA_PROBE_ON : ARENA_PROBE_FIXED;
}

static struct arena_probe *asked_at(uint32_t index)
{
	uint32_t chunk = agent.arena->probes;
	for (uint32_t i = 0; chunk && i < index / ARENA_PROBES_PER_CHUNK; i++)
		chunk = ((struct arena_chunk *)arena_at(agent.arena, chunk))->next;
	if (!chunk)
		return NULL;
	char *at = arena_at(agent.arena, chunk);
	return (struct arena_probe *)(at + sizeof(struct arena_chunk)) +
	       index % ARENA_PROBES_PER_CHUNK;
}

/* ---- their islands ---- */

/* Islands of one block follow each other. */
static void put_island(uint32_t index, struct arena_probe *a, uint64_t block, bool *mapped)
{
	if (a->block != block)
		*mapped = map_block(a);
	if (!*mapped) {
		a->state = ARENA_PROBE_NO_ROOM;
		return;
	}
	struct probe *p = &probes[index];
	struct arena_probe_sums *sums = (void *)((char *)agent.arena + a->sums * 8);
	*p = (struct probe){.function = a->function,
			    .body = a->body,
			    .asked = a,
			    .sums = sums,
			    .number = a->number,
			    .wrapped = a->wrapped,
			    .rare = atomic_load(&a->counted) ? PROBE_COUNTED : PROBE_MEASURED};
	memcpy((void *)a->island, a->code, a->island_size);
	*(uint64_t *)a->island = (uint64_t)p;
}

/* The blocks of probes from `first` on get their islands, and can be executed then. */
static void make_islands(uint32_t first, uint32_t count)
{
	uint64_t block = 0;
	bool mapped = false;
	for (uint32_t i = first; i < count; i++) {
		struct arena_probe *a = asked_at(i);
		if (a)
			put_island(i, a, block, &mapped);
		block = a ? a->block : 0;
	}
	block = 0;
	for (uint32_t i = first; i < count; i++) {
		struct arena_probe *a = asked_at(i);
		if (!a || a->state != ARENA_PROBE_ASKED)
			continue;
		if (a->block != block) {
			mapped = protect(a->block, a->block_size, PROT_READ | PROT_EXEC);
			flush(a->block, a->block_size);
		}
		block = a->block;
		atomic_store(&a->state, mapped ? ARENA_PROBE_READY : ARENA_PROBE_NO_ROOM);
	}
}

static uint32_t asked_count(void)
{
	uint32_t count = atomic_load(&agent.arena->probe_count);
	return count < ARENA_PROBES_MAX ? count : ARENA_PROBES_MAX;
}

void probe_start(void)
{
	uint32_t count = asked_count();
	make_islands(0, count);
	for (uint32_t i = 0; i < count; i++) {
		struct arena_probe *a = asked_at(i);
		if (a && a->state == ARENA_PROBE_READY)
			a->state = put_in(a);
	}
}

/* ---- in a process that runs ---- */

static struct block {
	uint64_t start, size;
} blocks[ARENA_PROBES_MAX];
static uint32_t block_count;

/* The arena is not believed when they are taken away. */
static void note_blocks(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < count; i++) {
		const struct arena_probe *a = asked_at(i);
		if (a && a->state == ARENA_PROBE_READY &&
		    (!block_count || blocks[block_count - 1].start != a->block))
			blocks[block_count++] = (struct block){a->block, a->block_size};
	}
}

void probe_prepare(void)
{
	uint32_t first = atomic_load(&agent.arena->probes_read), count = asked_count();
	if (first >= count)
		return;
	make_islands(first, count);
	note_blocks(first, count);
	atomic_store(&agent.arena->probes_read, count);
}

void probe_unmap(void)
{
	while (block_count) {
		const struct block *b = &blocks[--block_count];
		SAFE_SYSCALL(SYS_munmap, b->start, b->size, 0, 0);
	}
}
