/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the program maps by itself: anonymous memory of mmap and mremap. There are few such calls, and each is a
 * system call, so each is counted. Its site (safe/heap.h) is that of the path that has mapped.
 *
 * What allocators map does not count: it is counted as what the program allocates from them. libc calls its own mmap,
 * which we do not see. Other allocators are known by the addresses of their code.
 *
 * What is mapped is in a list of intervals, by address. As that of the blocks (heap.c), it is private memory.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "agent/cpu.h"
#include "agent/guard.h"
#include "agent/heap.h"
#include "safe/heap.h"
#include "safe/syscall.h"

REAL_SLOT(mmap);
REAL_SLOT(munmap);
REAL_SLOT(mremap);

/* ---- the list ---- */

#define INTERVALS_MAX 65536u

struct interval {
	uint64_t start, end;
	uint64_t site;
};

static struct {
	_Atomic uint32_t guard;
	uint32_t count;
	struct interval *all; /* ascending, disjoint; room for INTERVALS_MAX */
} list;

/* The first interval that ends behind an address. */
static uint32_t list_find(uint64_t address)
{
	uint32_t low = 0, high = list.count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (list.all[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void list_move(uint32_t from, uint32_t to)
{
	memmove(&list.all[to], &list.all[from], (list.count - from) * sizeof *list.all);
	list.count = list.count - from + to;
}

static bool list_has_room(void)
{
	if (list.all)
		return list.count < INTERVALS_MAX;
	/* Most of it is never touched. */
	long at = safe_syscall6(SYS_mmap, 0, INTERVALS_MAX * sizeof *list.all,
				PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	list.all = at < 0 && at > -4096 ? NULL : (struct interval *)at;
	return list.all;
}

static bool list_add(struct interval new)
{
	if (!list_has_room())
		return false;
	uint32_t at = list_find(new.start);
	list_move(at, at + 1);
	list.all[at] = new;
	return true;
}

static void site_unmapped(uint64_t site, uint64_t bytes)
{
	atomic_fetch_add(&arena_site(agent.arena, site)->unmapped, bytes);
}

/* Takes a range out. Returns how many bytes of it were in the list; *site: the first one's. */
static uint64_t list_cut(uint64_t start, uint64_t end, uint64_t *site)
{
	uint64_t bytes = 0;
	uint32_t at = list_find(start);
	while (at < list.count && list.all[at].start < end) {
		struct interval *old = &list.all[at], rest = {end, old->end, old->site};
		uint64_t from = old->start > start ? old->start : start;
		uint64_t to = old->end < end ? old->end : end;
		if (!bytes)
			*site = old->site;
		bytes += to - from;
		site_unmapped(old->site, to - from);
		if (old->start < start) {
			old->end = start;
			at++;
		} else {
			list_move(at + 1, at);
		}
		if (rest.end > end && !list_add(rest))
			site_unmapped(rest.site, rest.end - end);
	}
	return bytes;
}

void maps_after_fork(void)
{
	list.count = 0;
	atomic_store(&list.guard, 0);
}

/* ---- what is counted ---- */

static uint64_t page;

void maps_start(void)
{
	page = getauxval(AT_PAGESZ);
}

static uint64_t page_up(uint64_t size)
{
	return (size + page - 1) & ~(page - 1);
}

/* The caller has mapped memory. */
static void note_mapped(struct agent_thread *t, uint64_t pc, const void *at, uint64_t size)
{
	uint64_t before, start = (uint64_t)at, end = start + page_up(size);
	struct arena_heap *h = heap_here();
	uint64_t site = h ? sample_by_call(t, pc, h) : 0;
	guard_lock(&list.guard);
	list_cut(start, end, &before);
	bool listed = site && list_add((struct interval){start, end, site});
	guard_unlock(&list.guard);
	if (listed)
		atomic_fetch_add(&arena_site(agent.arena, site)->mapped, end - start);
	else
		atomic_fetch_add(h ? &h->untracked : &agent.arena->unsampled, 1);
}

/* Memory is about to be unmapped. Returns how much of it was counted. */
static uint64_t note_unmapped(const void *at, uint64_t size, uint64_t *site)
{
	uint64_t start = (uint64_t)at, bytes = 0;
	if (!list.count || start & (page - 1) || !size || size > UINT64_MAX / 2 ||
	    !heap_enter_free())
		return 0;
	guard_lock(&list.guard);
	bytes = list_cut(start, start + page_up(size), site);
	guard_unlock(&list.guard);
	call_leave();
	return bytes;
}

/* It was not unmapped after all. */
static void note_kept(const void *at, uint64_t bytes, uint64_t site)
{
	uint64_t start = (uint64_t)at;
	if (!heap_enter_free())
		return;
	guard_lock(&list.guard);
	if (list_add((struct interval){start, start + bytes, site}))
		site_unmapped(site, -bytes);
	guard_unlock(&list.guard);
	call_leave();
}

/* Whether the calling thread's memory is counted, as that of this caller. */
static struct agent_thread *enter(const void *caller)
{
	return alloc_has_code(caller) ? NULL : heap_enter_free();
}

static inline __attribute__((always_inline)) void noted(const void *caller, const void *at,
							size_t size)
{
	int saved = errno;
	struct agent_thread *t = enter(caller);
	if (!t)
		return;
	note_mapped(t, cpu_capture(t->registers), at, size);
	call_leave();
	errno = saved;
}

/* ---- libc's functions ---- */

/* The result of a system call, as libc returns it. */
static long returned(long result)
{
	if (result >= 0 || result <= -4096)
		return result;
	errno = (int)-result;
	return -1;
}

static void *real_map(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	__typeof__(&mmap) real = (__typeof__(&mmap))atomic_load_explicit(&real_mmap,
									 memory_order_relaxed);
	if (real)
		return real(at, size, protection, flags, fd, offset);
	/* The dynamic linker looks functions up, and an allocator needs memory for that. */
	return (void *)returned(
		safe_syscall6(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset));
}

/* libc has two names for it, and its header may turn one into the other. */
void *maps_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");

AGENT_EXPORT void *maps_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	uint64_t site;
	if (flags & MAP_FIXED)
		note_unmapped(at, size, &site);
	void *mapped = real_map(at, size, protection, flags, fd, offset);
	if (mapped != MAP_FAILED && flags & MAP_ANONYMOUS && protection != PROT_NONE)
		noted(__builtin_return_address(0), mapped, size);
	return mapped;
}

AGENT_EXPORT void *maps_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64")
	__attribute__((alias("mmap")));

AGENT_EXPORT int munmap(void *at, size_t size)
{
	uint64_t site;
	/* Before the call: then another thread may have mapped something there. */
	note_unmapped(at, size, &site);
	return real_munmap ? REAL(munmap)(at, size)
			   : (int)returned(SAFE_SYSCALL(SYS_munmap, at, size, 0, 0));
}

AGENT_EXPORT void *mremap(void *at, size_t size, size_t new_size, int flags, ...)
{
	va_list more;
	uint64_t site = 0, bytes = note_unmapped(at, size, &site);
	va_start(more, flags);
	void *target = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
	va_end(more);
	if (target)
		note_unmapped(target, new_size, &(uint64_t){0});
	void *mapped = REAL(mremap)(at, size, new_size, flags, target);
	if (bytes && mapped == MAP_FAILED)
		note_kept(at, bytes, site);
	else if (bytes)
		noted(__builtin_return_address(0), mapped, new_size);
	return mapped;
}
