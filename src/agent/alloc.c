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

#include "agent/cpu.h"
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
   here, which is never freed. The filter knows it, so that free and realloc need not look here each time. */
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
	heap_always_ask(early + at + 16);
	return early + at + 16;
}

/* Returns a real function by its slot; NULL: they are being looked up. */
static __attribute__((noinline)) void *find_real(void *_Atomic *slot, const char *name)
{
	if (resolving)
		return NULL;
	resolving = true;
	void *found = real_resolve(slot, name);
	resolving = false;
	return found;
}

/* Returns a real function that is known; NULL: it is not, or not yet. */
#define KNOWN(name) ((__typeof__(&name))atomic_load_explicit(&real_##name, memory_order_relaxed))
#define UNLIKELY(condition) __builtin_expect((condition), 0)

/* Notes an allocation. The walk of the stack begins here, in the function that the program has called. */
static inline __attribute__((always_inline)) void *noted(void *block, size_t size)
{
	struct agent_thread *t = block ? heap_enter() : NULL;
	if (t)
		heap_note(t, cpu_capture(t->registers), block, size);
	return block;
}

/* What is seldom needed is apart, so that the usual way needs no stack. */

static __attribute__((noinline)) void *malloc_first(size_t size)
{
	return find_real(&real_malloc, "malloc") ? malloc(size) : take_early(size);
}

static __attribute__((noinline)) void *malloc_noted(size_t size)
{
	return noted(KNOWN(malloc)(size), size);
}

AGENT_EXPORT void *malloc(size_t size)
{
	__typeof__(&malloc) real = KNOWN(malloc);
	if (UNLIKELY(!real))
		return malloc_first(size);
	if (heap_count(size))
		return malloc_noted(size);
	return real(size);
}

static __attribute__((noinline)) void *calloc_first(size_t count, size_t size)
{
	return find_real(&real_calloc, "calloc") ? calloc(count, size) : take_early(count * size);
}

static __attribute__((noinline)) void *calloc_noted(size_t count, size_t size)
{
	return noted(KNOWN(calloc)(count, size), count * size);
}

AGENT_EXPORT void *calloc(size_t count, size_t size)
{
	__typeof__(&calloc) real = KNOWN(calloc);
	size_t bytes;
	if (UNLIKELY(!real))
		return calloc_first(count, size);
	if (!__builtin_mul_overflow(count, size, &bytes) && heap_count(bytes))
		return calloc_noted(count, size);
	return real(count, size);
}

static __attribute__((noinline)) void free_first(void *block)
{
	if (find_real(&real_free, "free"))
		free(block);
}

static __attribute__((noinline)) void free_known(void *block)
{
	struct heap_block known;
	if (is_early(block))
		return;
	heap_forget(block, &known);
	KNOWN(free)(block);
}

AGENT_EXPORT void free(void *block)
{
	__typeof__(&free) real = KNOWN(free);
	if (UNLIKELY(!real))
		return free_first(block);
	if (heap_may_know(block))
		return free_known(block);
	return real(block);
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
	bool was_known = false;
	if (is_early(block))
		return move_early(block, size);
	__typeof__(&realloc) real = KNOWN(realloc);
	if (UNLIKELY(!real))
		real = find_real(&real_realloc, "realloc");
	if (!real) /* the linker asks for more; it has nothing yet */
		return block ? NULL : take_early(size);
	if (block && heap_may_know(block))
		was_known = heap_forget(block, &known);
	bool sampled = heap_count(size);
	void *moved = real(block, size);
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
