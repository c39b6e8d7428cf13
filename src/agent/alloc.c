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
#include <link.h>
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
REAL_SLOT(malloc_usable_size);

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
static inline __attribute__((always_inline)) void *noted_growth(void *block, size_t size,
								bool grown)
{
	struct agent_thread *t = block ? heap_enter() : NULL;
	if (t)
		heap_note(t, cpu_capture(t->registers), block, size, grown);
	return block;
}

static inline __attribute__((always_inline)) void *noted(void *block, size_t size)
{
	return noted_growth(block, size, false);
}

/* What is seldom needed is apart, so that the usual way needs no stack. malloc and free do not even ask whether the real
   functions are known: until then, the first ones are in their place. */

static void *malloc_first(size_t size);
static void free_first(void *block);
static __typeof__(&malloc) _Atomic usual_malloc = malloc_first;
static __typeof__(&free) _Atomic usual_free = free_first;

static __attribute__((noinline)) void *malloc_first(size_t size)
{
	if (!find_real(&real_malloc, "malloc"))
		return take_early(size);
	atomic_store_explicit(&usual_malloc, KNOWN(malloc), memory_order_relaxed);
	return malloc(size);
}

static __attribute__((noinline)) void *malloc_noted(size_t size)
{
	__typeof__(&malloc) real = KNOWN(malloc);
	return real ? noted(real(size), size) : malloc_first(size);
}

AGENT_EXPORT void *malloc(size_t size)
{
	if (heap_count(size))
		return malloc_noted(size);
	return atomic_load_explicit(&usual_malloc, memory_order_relaxed)(size);
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
	if (!find_real(&real_free, "free"))
		return;
	atomic_store_explicit(&usual_free, KNOWN(free), memory_order_relaxed);
	free(block);
}

static __attribute__((noinline)) void free_known(void *block)
{
	if (!block || is_early(block))
		return;
	struct agent_thread *t = heap_enter_free();
	if (t)
		heap_free(t, cpu_capture(t->registers), block);
	atomic_load_explicit(&usual_free, memory_order_relaxed)(block);
}

AGENT_EXPORT void free(void *block)
{
	if (heap_may_know(block))
		return free_known(block);
	return atomic_load_explicit(&usual_free, memory_order_relaxed)(block);
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

static inline __attribute__((always_inline)) void realloc_freed(const struct heap_taken *taken)
{
	struct agent_thread *t = heap_enter_free();
	if (t)
		heap_freed(t, cpu_capture(t->registers), taken);
}

AGENT_EXPORT void *realloc(void *block, size_t size)
{
	if (is_early(block))
		return move_early(block, size);
	__typeof__(&realloc) real = KNOWN(realloc);
	if (UNLIKELY(!real))
		real = find_real(&real_realloc, "realloc");
	if (!real) /* the linker asks for more; it has nothing yet */
		return block ? NULL : take_early(size);
	/* Taken before the call: then another thread may have memory at the same address. */
	struct heap_taken taken;
	bool known = block && heap_may_know(block) && heap_take(block, &taken);
	bool sampled = heap_count(size);
	size_t room = sampled && block ? alloc_usable(block) : 0;
	void *moved = real(block, size);
	if (known && !moved && size)
		heap_keep(&taken);
	else if (known)
		realloc_freed(&taken);
	return sampled ? noted_growth(moved, size, room && size > room) : moved;
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

/* The allocator: where its code is, and whether it tells how large its blocks are. */
static struct {
	uint64_t start, end;
	bool tells_sizes;
} maker;

/* A library's first page has its program headers. */
static uint64_t end_of_library(const char *base)
{
	const ElfW(Ehdr) *header = (const void *)base;
	const ElfW(Phdr) *segments = (const void *)(base + header->e_phoff);
	uint64_t end = 0;
	for (int i = 0; i < header->e_phnum; i++)
		if (segments[i].p_type == PT_LOAD &&
		    segments[i].p_vaddr + segments[i].p_memsz > end)
			end = segments[i].p_vaddr + segments[i].p_memsz;
	return (uint64_t)base + end;
}

void alloc_start(void)
{
	Dl_info library, other;
	if (!REAL(malloc) || !dladdr((void *)KNOWN(malloc), &library))
		return;
	maker.start = (uint64_t)library.dli_fbase;
	maker.end = end_of_library(library.dli_fbase);
	maker.tells_sizes = REAL(malloc_usable_size) &&
			    dladdr((void *)KNOWN(malloc_usable_size), &other) &&
			    other.dli_fbase == library.dli_fbase;
}

bool alloc_has_code(const void *address)
{
	return (uint64_t)address - maker.start < maker.end - maker.start;
}

size_t alloc_usable(void *block)
{
	return maker.tells_sizes ? KNOWN(malloc_usable_size)(block) : 0;
}

const char *alloc_other(void)
{
	Dl_info ours, called;
	ElfW(Sym) *symbol = NULL;
	if (!dladdr((void *)is_early, &ours) ||
	    !dladdr1((void *)malloc, &called, (void **)&symbol, RTLD_DL_SYMENT))
		return NULL;
	/* An executable at a fixed address that takes the address of malloc has a stub, which stands for it everywhere. */
	if (symbol && symbol->st_shndx == SHN_UNDEF)
		return NULL;
	return called.dli_fbase == ours.dli_fbase ? NULL : called.dli_fname;
}
