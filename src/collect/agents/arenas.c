/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/agents/arenas.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "collect/agents/state.h"
#include "harvest/process.h"
#include "harvest/recording.h"

#define ARENAS_MAX 65536u
#define ARENA_SIZE (128ull << 20)
/* Additional size for time lines. These are more chunks than there can be threads with samples. So not
   every chunk can be one that a thread still writes to: some can always be given back. */
#define TIMES_SIZE (32ull << 20)

static bool map_arena(struct arena *a)
{
	void *at = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, a->fd,
			0);
	a->header = at == MAP_FAILED ? NULL : at;
	return a->header;
}

struct err *arena_open(struct agents *agents, struct arena **out)
{
	struct stat st;
	struct arena *a = agents->arena_count < ARENAS_MAX ? calloc(1, sizeof *a) : NULL;
	*out = NULL;
	if (!a)
		return err_new("there are too many programs, or no memory");
	a->size = ARENA_SIZE + (agents->recording->options.timeline ? TIMES_SIZE : 0);
	a->fd = memfd_create("culprit-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	a->thread_of = calloc(a->size >> ARENA_CHUNK_BITS, sizeof *a->thread_of);
	if (a->fd < 0 || !a->thread_of || ftruncate(a->fd, (off_t)a->size) ||
	    fcntl(a->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) || fstat(a->fd, &st) ||
	    !map_arena(a)) {
		struct err *e = err_errno("cannot make memory to count in");
		if (a->fd >= 0)
			close(a->fd);
		free(a->thread_of);
		free(a);
		return e;
	}
	a->inode = st.st_ino;
	arena_format(a->header, a->size, recording_metrics(agents->recording));
	if (agents->recording->options.timeline)
		a->header->times_max = TIMES_SIZE >> ARENA_CHUNK_BITS;
	a->next = agents->arenas;
	agents->arenas = a;
	agents->arena_count++;
	*out = a;
	return NULL;
}

struct arena_thread *arena_record(const struct arena *a, uint32_t chunk)
{
	return chunk && chunk < a->size >> ARENA_CHUNK_BITS ? arena_at(a->header, chunk) : NULL;
}

struct thread *arena_thread_of(const struct arena *a, uint32_t chunk)
{
	return a->thread_of[chunk] ? &a->threads[a->thread_of[chunk] - 1] : NULL;
}

void arena_each(struct agents *agents, struct arena *a, const struct process *process,
		arena_visit *each, void *context)
{
	uint64_t left = a->size >> ARENA_CHUNK_BITS; /* a target may have overwritten the list */
	uint32_t chunk = atomic_load(&a->header->threads), next;
	for (struct arena_thread *r; left && (r = arena_record(a, chunk)); left--, chunk = next) {
		next = atomic_load(&r->chunk.next);
		uint32_t state = atomic_load(&r->state);
		if (state != ARENA_FREE && (!process || r->process == process->namespace_pid))
			each(agents, a, chunk, r, context);
	}
}

/* The kernel refuses to seal memory against writing while somebody else could write to it. */
bool arena_is_abandoned(struct arena *a)
{
	munmap(a->header, a->size);
	a->header = NULL;
	if (!fcntl(a->fd, F_ADD_SEALS, F_SEAL_WRITE)) {
		a->header = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
				 a->fd, 0);
		if (a->header == MAP_FAILED)
			a->header = NULL;
		return true;
	}
	return !map_arena(a);
}

void arena_close(struct agents *agents, struct arena *a)
{
	struct arena **link = &agents->arenas;
	if (a->header)
		munmap(a->header, a->size);
	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	agents->arena_count--;
	close(a->fd);
	free(a->threads);
	free(a->thread_of);
	free(a);
}
