/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent: a library in somebody else's program. It samples, walks and
 * counts, and does nothing else; it must never be noticed.
 *
 * It keeps no descriptor, allocates nothing, creates no thread, takes no lock.
 * All that it has is three mappings and one signal handler:
 *
 *    start.c     the constructor: HELLO to the collector, mappings; fork
 *    threads.c   a record in the arena for each thread: pthread_create
 *    sample.c    the handler: from registers to a path, from a path to a node
 *    signals.c   keeps our signal deliverable, and the program's view of signals as it was
 *    room.c      room for our signal where the program's stack has none
 *    waits.c     keeps our signal from interrupting the program's waits
 *    exec.c      keeps a late signal from hitting a new program
 *
 * Where anything fails, the program runs on without being sampled.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "cct/cct.h"
#include "safe/arena.h"
#include "safe/wire.h"
#include "unwind/step.h"

#define AGENT_EXPORT __attribute__((visibility("default")))

/* The libc's own function behind one of ours. */
#define REAL(name) ((__typeof__(&name))real_function(&real_##name, #name))
#define REAL_SLOT(name)                            \
	static void *_Atomic real_##name;          \
	static struct real_entry real_entry_##name \
		__attribute__((section("culprit_real"), used)) = {&real_##name, #name}
struct real_entry {
	void *_Atomic *slot;
	const char *name;
};
void *real_resolve(void *_Atomic *slot, const char *name);
void real_resolve_all(void); /* so that none is looked up in a handler of the program */
static inline void *real_function(void *_Atomic *slot, const char *name)
{
	void *found = atomic_load_explicit(slot, memory_order_relaxed);
	return __builtin_expect(found != NULL, 1) ? found : real_resolve(slot, name);
}

struct agent {
	_Atomic bool on; /* the mappings are there, the handler is installed */
	bool interrupts; /* samples may come while the kernel works for the program: see waits.c */
	bool chance;     /* the first event has a sample by chance, too */
	uint32_t sampler;
	uint32_t event_count, max_depth;
	bool collapse, frame_pointers, timeline;
	struct wire_event events[ARENA_METRICS_MAX];
	struct arena_header *arena;
	const char *tables;
	uint64_t tables_map;
	uint64_t space; /* the first list of modules */
	_Atomic uint32_t *bell;
	uint64_t ticks_at_start, ns_at_start;
	uint64_t
		stack_limit; /* of the first thread's stack, and others where nothing else is said */
	uint64_t clock_ticks;      /* what it costs to read a thread's CPU clock */
	_Atomic uint64_t ms_ticks; /* a millisecond; 0: not known yet */
};
extern struct agent agent;

/* A list of frames in scratch chunks of the arena. */
#define FRAMES_PER_CHUNK ((uint32_t)(ARENA_CHUNK / sizeof(struct agent_frame) - 1))
#define FRAMES_CHUNKS 128u

#define FRAME_EXACT (UINT64_C(1) << 63)

struct agent_frame {
	uint64_t sp;
	uint64_t pc;   /* FRAME_EXACT: it was interrupted there, and did not call from there */
	uint64_t slot; /* where the PC was found; 0: not in memory */
	union {
		uint64_t key;  /* fresh: for cct_child */
		uint32_t node; /* memo: in the tree */
	};
};

struct agent_frames {
	uint32_t count, chunk_count;
	uint32_t chunks[FRAMES_CHUNKS];
};

/* A thread's record: what the collector reads, then our own. */
struct agent_thread {
	struct arena_thread shared;

	/* from the creating thread to the new one */
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
	bool masked; /* the program believes that it has blocked our signal */

	struct cct tree;
	uint64_t space; /* shared.space, as the cache and the memo know it */
	const struct wire_space *modules;
	bool has_jit; /* some of them were made at run time */
	bool jit_top; /* WIRE_MODULE_TOP */
	uint64_t cpu_last;
	bool ticked;          /* the first tick of the first event's period has come */
	uint32_t unasked;     /* samples since the CPU clock was read */
	int64_t credit;       /* CPU time that no sample stands for yet */
	uint64_t stack_low;   /* up to shared.stack_top the thread's stack is known to be mapped */
	uint64_t stack_reach; /* farther below its beginning it is somebody else's */
	uint64_t low, high;   /* memory that the walk at hand may read */
	uint64_t walk_end, walk_ticks;       /* of the last walk, for the brake */
	uint32_t walked, reused;             /* its frames */
	uint32_t skipped[ARENA_METRICS_MAX]; /* samples that came too early after it */
	uint32_t unknown,
		patience; /* samples in unknown code, and how many until the next snapshot */
	int timer;
	uint32_t vain_first, vain; /* shared.vain: when the modules changed; when we looked last */
	bool rings;                /* there is something for the collector */
	uint8_t memo_end;          /* enum walk_end of the walk that the memo is of */
	uint32_t times;            /* chunk of the time line that is written to; 0: none yet */
	uint64_t registers[CPU_REGISTERS];
	struct agent_frames memo; /* the walk before, outermost first */
	struct agent_frames
		fresh; /* the walk at hand, innermost first, up to where it meets the memo */
	struct step_cache cache;
};
_Static_assert(sizeof(struct agent_thread) <= ARENA_CHUNK, "a thread's record is one chunk");

/* A thread's own. The handler must find it without a call of libc: the library is there from the start, so that its place is
   fixed then. Definitions say so too: gcc goes by the last declaration that it saw. */
#define AGENT_OWN __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))

extern AGENT_OWN struct agent_thread *agent_self;

/* start.c */
void agent_ring(void); /* tells the collector that the arena has something new */
uint64_t agent_ns(int clock);

/* threads.c */
struct agent_thread *thread_take(void);
/* Makes the record that of the calling thread, and lets it be sampled. Its stack_reach is that of its stack,
   as far as known. */
void thread_begin(struct agent_thread *thread, uint64_t stack_top);

/* waits.c */
long wait_futex(__typeof__(&syscall) real, long a, long b, long c, long d, long e, long f);

/* handler_CPU.S: the handler itself */
void handler_entry(int signal, siginfo_t *info, void *context);
/* The calling thread's stack for the handler: the address above it; 0 where there is none. */
extern AGENT_OWN uint64_t agent_stack;

/* sample.c. True where the signal is not from us: then it is the program's. */
bool sample_on_signal(int signal, siginfo_t *info, void *context);

/* signals.c */
void signals_install(void);
void signals_leave_room(void); /* that of room.c */
void signals_leave(bool come); /* nothing is sampled; signals may come all the same */
/* A handler of the program runs on a stack that it made for that, which may have no room for ours: our signal is
   blocked, and stays so. */
bool signals_on_own_stack(void);
void signals_unblock(void);
/* A signal of ours that is not from us. */
void signals_forward(int signal, siginfo_t *info, void *context);

/* room.c. Our signal comes on a stack of its own, in the first thread and until the program might notice. */
void room_make(void);
void room_give_up(void);
/* In a child: the stack is in memory that it shares with its parent, who needs it. False: there was none. */
bool room_leave_parents(void);

/* sandbox.c. Before the program restricts its system calls: what seccomp(2) gets. */
void sandbox_begin(unsigned mode, unsigned flags, const void *arguments);
