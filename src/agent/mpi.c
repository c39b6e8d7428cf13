/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of MPI, and the time that they take. These functions are only in the agent for MPI (libculprit-mpi.so), because
 * a program may look for them to find out whether it was started as a part of a job.
 *
 * Each library for MPI has all functions twice: MPI_Send and PMPI_Send are the same. So ours take the place of the first,
 * and call the second. How their arguments are to be understood does not matter, and each library has its own way. All
 * of them are numbers or addresses, so they are passed on as words. A function may have fewer arguments than we pass on:
 * then we read words of its caller's stack, which nobody looks at.
 *
 * A library may be loaded where only some modules see it, as Python's mpi4py does. Then it is looked for by its name.
 */
#include "agent/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <time.h>

#include "agent/cpu.h"

#define OTHER_ERROR 16 /* MPI_ERR_OTHER of Open MPI; others have an error there, too */

/* MPI_Rget_accumulate has 13, and one more in Fortran. */
#define ARGUMENTS                                                                               \
	long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, \
		long l, long m, long n
#define PASSED a, b, c, d, e, f, g, h, i, j, k, l, m, n
typedef long mpi_function(ARGUMENTS);

/* ---- the real functions ---- */

#define LIBRARIES_MAX 8

struct libraries {
	const char *files[LIBRARIES_MAX];
	size_t count;
};

static int note_library(struct dl_phdr_info *info, size_t size, void *libraries)
{
	struct libraries *all = libraries;
	const char *file = strrchr(info->dlpi_name, '/');
	(void)size;
	if (all->count < LIBRARIES_MAX && file && !strncmp(file, "/libmpi", strlen("/libmpi")))
		all->files[all->count++] = info->dlpi_name;
	return 0;
}

/* The linker's lock is not held any more when the libraries are looked into: it would be taken in another order. */
static void *find_in_libraries(const char *name)
{
	struct libraries all = {.count = 0};
	void *found = NULL;
	dl_iterate_phdr(note_library, &all);
	for (size_t i = 0; i < all.count && !found; i++) {
		void *library = dlopen(all.files[i], RTLD_LAZY | RTLD_NOLOAD);
		found = library ? dlsym(library, name) : NULL;
		if (library)
			dlclose(library);
	}
	return found;
}

static mpi_function *real_mpi(void *_Atomic *slot, const char *name)
{
	void *found = atomic_load_explicit(slot, memory_order_relaxed);
	if (found)
		return (mpi_function *)found;
	found = dlsym(RTLD_NEXT, name);
	if (!found)
		found = find_in_libraries(name);
	atomic_store_explicit(slot, found, memory_order_relaxed);
	return (mpi_function *)found;
}

/* ---- counting ---- */

/* The frame of the outermost call of MPI that the thread is in. What a library calls itself is not counted. A call that
   was left by an exception has a frame that is gone: the next call is not inside of it. */
static __thread uintptr_t outermost __attribute__((tls_model("initial-exec")));

/* Returns when the call began; 0: it is not counted. */
static uint64_t begin(uintptr_t frame)
{
	if (!agent.mpi.wanted || !agent_self || (outermost && frame < outermost))
		return 0;
	outermost = frame;
	return agent_ns(CLOCK_MONOTONIC);
}

/* The walk begins in the function that the program has called, so that one captures its registers. */
static void end(uint64_t start, uint64_t pc, mpi_function *called)
{
	int saved = errno;
	uint64_t now = agent_ns(CLOCK_MONOTONIC);
	struct agent_thread *t = call_enter();
	outermost = 0;
	if (t) {
		const struct sample_value values[] = {{agent.mpi.calls, 1},
						      {agent.mpi.ns, now - start}};
		sample_values(t, pc, (uintptr_t)called, values, 2);
		call_leave();
	}
	errno = saved;
}

#define WRAP(name, real_name)                                                  \
	AGENT_EXPORT long name(ARGUMENTS);                                     \
	AGENT_EXPORT long name(ARGUMENTS)                                      \
	{                                                                      \
		static void *_Atomic slot;                                     \
		mpi_function *real = real_mpi(&slot, real_name);               \
		if (!real)                                                     \
			return OTHER_ERROR;                                    \
		uint64_t start = begin((uintptr_t)__builtin_frame_address(0)); \
		long result = real(PASSED);                                    \
		if (start)                                                     \
			end(start, cpu_capture(agent_self->registers), real);  \
		return result;                                                 \
	}
/* In C, and in Fortran, where all arguments are addresses. */
#define MPI(name, fortran)              \
	WRAP(MPI_##name, "PMPI_" #name) \
	WRAP(mpi_##fortran##_, "pmpi_" #fortran "_")

/* ---- all functions that move data, wait or begin and end ---- */

MPI(Init, init)
MPI(Init_thread, init_thread)
MPI(Finalize, finalize)

MPI(Send, send)
MPI(Bsend, bsend)
MPI(Ssend, ssend)
MPI(Rsend, rsend)
MPI(Recv, recv)
MPI(Isend, isend)
MPI(Ibsend, ibsend)
MPI(Issend, issend)
MPI(Irsend, irsend)
MPI(Irecv, irecv)
MPI(Sendrecv, sendrecv)
MPI(Sendrecv_replace, sendrecv_replace)
MPI(Probe, probe)
MPI(Iprobe, iprobe)
MPI(Mprobe, mprobe)
MPI(Improbe, improbe)
MPI(Mrecv, mrecv)
MPI(Imrecv, imrecv)
MPI(Start, start)
MPI(Startall, startall)

MPI(Wait, wait)
MPI(Waitall, waitall)
MPI(Waitany, waitany)
MPI(Waitsome, waitsome)
MPI(Test, test)
MPI(Testall, testall)
MPI(Testany, testany)
MPI(Testsome, testsome)

MPI(Barrier, barrier)
MPI(Bcast, bcast)
MPI(Gather, gather)
MPI(Gatherv, gatherv)
MPI(Scatter, scatter)
MPI(Scatterv, scatterv)
MPI(Allgather, allgather)
MPI(Allgatherv, allgatherv)
MPI(Alltoall, alltoall)
MPI(Alltoallv, alltoallv)
MPI(Alltoallw, alltoallw)
MPI(Reduce, reduce)
MPI(Allreduce, allreduce)
MPI(Reduce_scatter, reduce_scatter)
MPI(Reduce_scatter_block, reduce_scatter_block)
MPI(Scan, scan)
MPI(Exscan, exscan)
MPI(Ibarrier, ibarrier)
MPI(Ibcast, ibcast)
MPI(Igather, igather)
MPI(Igatherv, igatherv)
MPI(Iscatter, iscatter)
MPI(Iscatterv, iscatterv)
MPI(Iallgather, iallgather)
MPI(Iallgatherv, iallgatherv)
MPI(Ialltoall, ialltoall)
MPI(Ialltoallv, ialltoallv)
MPI(Ialltoallw, ialltoallw)
MPI(Ireduce, ireduce)
MPI(Iallreduce, iallreduce)
MPI(Ireduce_scatter, ireduce_scatter)
MPI(Ireduce_scatter_block, ireduce_scatter_block)
MPI(Iscan, iscan)
MPI(Iexscan, iexscan)
MPI(Neighbor_allgather, neighbor_allgather)
MPI(Neighbor_allgatherv, neighbor_allgatherv)
MPI(Neighbor_alltoall, neighbor_alltoall)
MPI(Neighbor_alltoallv, neighbor_alltoallv)
MPI(Neighbor_alltoallw, neighbor_alltoallw)

MPI(Comm_dup, comm_dup)
MPI(Comm_create, comm_create)
MPI(Comm_split, comm_split)
MPI(Comm_split_type, comm_split_type)
MPI(Comm_free, comm_free)

MPI(Win_create, win_create)
MPI(Win_allocate, win_allocate)
MPI(Win_free, win_free)
MPI(Win_fence, win_fence)
MPI(Win_start, win_start)
MPI(Win_complete, win_complete)
MPI(Win_post, win_post)
MPI(Win_wait, win_wait)
MPI(Win_lock, win_lock)
MPI(Win_unlock, win_unlock)
MPI(Win_lock_all, win_lock_all)
MPI(Win_unlock_all, win_unlock_all)
MPI(Win_flush, win_flush)
MPI(Win_flush_all, win_flush_all)
MPI(Put, put)
MPI(Get, get)
MPI(Accumulate, accumulate)
MPI(Get_accumulate, get_accumulate)
MPI(Fetch_and_op, fetch_and_op)
MPI(Compare_and_swap, compare_and_swap)
MPI(Rput, rput)
MPI(Rget, rget)
MPI(Raccumulate, raccumulate)
MPI(Rget_accumulate, rget_accumulate)

MPI(File_read, file_read)
MPI(File_read_all, file_read_all)
MPI(File_read_at, file_read_at)
MPI(File_read_at_all, file_read_at_all)
MPI(File_write, file_write)
MPI(File_write_all, file_write_all)
MPI(File_write_at, file_write_at)
MPI(File_write_at_all, file_write_at_all)
MPI(File_sync, file_sync)
MPI(File_close, file_close)
