/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libc that allocate and free memory. These are only in the agent for events
 * (libculprit-events.so): in others, calls of malloc go to libc directly.
 *
 * Whoever else defines malloc, such as jemalloc, is called by REAL(malloc), if it is a library. If it is in the
 * executable, the program calls that one, and not us.
 */
#include "agent/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "agent/heap.h"

REAL_SLOT(malloc);
REAL_SLOT(calloc);
REAL_SLOT(realloc);
REAL_SLOT(free);
REAL_SLOT(posix_memalign);
REAL_SLOT(aligned_alloc);
REAL_SLOT(memalign);
REAL_SLOT(valloc);
REAL_SLOT(pvalloc);

/* While the real functions are looked up, the dynamic linker may allocate, and so call us. It gets memory from
   here, which is never freed. */
static _Alignas(16) char early[16384];
static _Atomic size_t early_used;
static __thread bool resolving __attribute__((tls_model("initial-exec")));

static bool is_early(const void *block)
{
	return (size_t)((const char *)block - early) < sizeof early;
}

static void *take_early(size_t size)
{
	size_t need = (size + 31) & ~(size_t)15; /* with its size, 16 bytes before */
	size_t at = size < sizeof early ? atomic_fetch_add(&early_used, need) : sizeof early;
	if (at + need > sizeof early) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(early + at, &size, sizeof size);
	return early + at + 16;
}

/* Whether the real functions can be called. */
static bool is_ready(void)
{
	if (__builtin_expect(atomic_load_explicit(&real_malloc, memory_order_relaxed) != NULL, 1))
		return true;
	if (resolving)
		return false;
	resolving = true;
	REAL(free);
	REAL(calloc);
	REAL(realloc);
	REAL(malloc);
	resolving = false;
	return true;
}

static inline void *noted(void *block, size_t size)
{
	if (block)
		heap_note(block, size);
	return block;
}

AGENT_EXPORT void *malloc(size_t size)
{
	if (!is_ready())
		return take_early(size);
	if (heap_count(size))
		return noted(REAL(malloc)(size), size);
	return REAL(malloc)(size);
}

AGENT_EXPORT void *calloc(size_t count, size_t size)
{
	if (!is_ready())
		return take_early(count * size); /* it is zero */
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = 0; /* it fails */
	if (heap_count(bytes))
		return noted(REAL(calloc)(count, size), bytes);
	return REAL(calloc)(count, size);
}

AGENT_EXPORT void free(void *block)
{
	struct heap_block known;
	if (is_early(block) || !is_ready())
		return;
	if (heap_may_know(block))
		heap_forget(block, &known);
	REAL(free)(block);
}

static void *move_early(void *block, size_t size)
{
	size_t before;
	memcpy(&before, (char *)block - 16, sizeof before);
	void *moved = malloc(size);
	if (moved)
		memcpy(moved, block, before < size ? before : size);
	return moved;
}

AGENT_EXPORT void *realloc(void *block, size_t size)
{
	struct heap_block known;
	if (is_early(block))
		return move_early(block, size);
	if (!is_ready())
		return take_early(size);
	bool was_known = block && heap_may_know(block) && heap_forget(block, &known);
	bool sampled = heap_count(size);
	void *moved = REAL(realloc)(block, size);
	if (!moved && size && was_known)
		heap_keep(&known);
	return sampled ? noted(moved, size) : moved;
}

AGENT_EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(block, bytes);
}

AGENT_EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	bool sampled = heap_count(size);
	int error = REAL(posix_memalign)(out, alignment, size);
	if (!error && sampled)
		noted(*out, size);
	return error;
}

AGENT_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	bool sampled = heap_count(size);
	void *block = REAL(aligned_alloc)(alignment, size);
	return sampled ? noted(block, size) : block;
}

AGENT_EXPORT void *memalign(size_t alignment, size_t size)
{
	bool sampled = heap_count(size);
	void *block = REAL(memalign)(alignment, size);
	return sampled ? noted(block, size) : block;
}

AGENT_EXPORT void *valloc(size_t size)
{
	bool sampled = heap_count(size);
	void *block = REAL(valloc)(size);
	return sampled ? noted(block, size) : block;
}

AGENT_EXPORT void *pvalloc(size_t size)
{
	bool sampled = heap_count(size);
	void *block = REAL(pvalloc)(size);
	return sampled ? noted(block, size) : block;
}

const char *alloc_other(void)
{
	Dl_info ours, called;
	if (!dladdr((void *)is_early, &ours) || !dladdr((void *)malloc, &called))
		return NULL;
	return called.dli_fbase == ours.dli_fbase ? NULL : called.dli_fname;
}
