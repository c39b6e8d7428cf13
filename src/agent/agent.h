/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The agent: a library that is loaded into the target. It samples, walks and counts, and does nothing else.
 * The target must not notice it. All files of agent/ include this header; nobody else does.
 *
 * The agent keeps no descriptor, allocates nothing, creates no thread and takes no lock. All that it has is
 * three mappings and one signal handler:
 *
 *    start.c             the constructor: HELLO to the collector, mappings; fork
 *    threads.c           a record in the arena for each thread: pthread_create
 *    sample.c            the handler: from registers to a path, from a path to a node
 *    heap.c              allocations that are sampled; alloc.c: malloc, free and so on
 *    maps.c              memory that the program maps by itself
 *    lock.c              waits for locks, and who let them wait
 *    pauses.c            time off the CPU, and reads and writes; transfers.c: read, write and so on
 *    mpi.c               calls of MPI
 *    weights.c           how many periods a sample stands for
 *    time_line.c         when each sample came
 *    follow.c            where the thread goes next after a sample
 *    script.c            calls of interpreted functions, in place of the frames that run them
 *    signals.c           keeps our signal deliverable, and hides it from the program
 *    alternate_stack.c   a stack for our signal if the program's stack has no room for it
 *    waits.c             keeps our signal from interrupting the program's waits
 *    exec.c              keeps a late signal from killing a new program
 *    sandbox.c           leaves programs alone whose seccomp filter refuses our system calls
 *    late.c              the same in a process that ran before. Only in the libraries for that
 *    probes.c            calls of chosen functions. Only in the libraries for `culprit probe`
 *    sentinel.c          counts returns; leaves.c: when that must pause. Only in the library for --calls
 *
 * If anything fails, the program runs on without being sampled.
 */
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "cct/cct.h"
#include "safe/arena.h"
#include "safe/wire.h"
#include "unwind/step.h"

#define AGENT_EXPORT __attribute__((visibility("default")))

/* 1 in the library that is loaded into a process that runs already (late.c). */
#ifndef AGENT_LATE
#define AGENT_LATE 0
#endif
/* 1 in the libraries for `culprit probe`: probes.h. */
#ifndef AGENT_PROBES
#define AGENT_PROBES 0
#endif
/* Whether our signal may come: in a program that runs already, calls are counted without. */
#define AGENT_SIGNALS (!AGENT_LATE || !AGENT_PROBES)

/* The agent exports functions with the names of libc's (sigaction, poll, …). REAL(name) is libc's own one.
   Every file that uses REAL(name) declares REAL_SLOT(name). */
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
void real_resolve_all(void); /* early, so that no lookup happens in a signal handler */
static inline void *real_function(void *_Atomic *slot, const char *name)
{
	void *found = atomic_load_explicit(slot, memory_order_relaxed);
	return __builtin_expect(found != NULL, 1) ? found : real_resolve(slot, name);
}

struct agent {
	_Atomic bool on; /* the arena is mapped and the handler is installed */
	bool interrupts; /* samples may come while the kernel works for the program: see waits.c */
	bool chance;     /* the first event has one sample by chance, too: see sample.c */
	uint32_t sampler;
	uint32_t event_count, max_depth;
	bool collapse, frame_pointers, timeline;
	bool calls;          /* count returns: sentinel.h */
	_Atomic bool follow; /* follow.c */
	bool signs;          /* the CPU has pointer authentication */
	struct wire_event events[ARENA_METRICS_MAX];
	struct wire_heap heap;
	struct wire_locks locks;
	struct wire_mpi mpi;
	struct wire_pauses pauses;
	bool watches_pauses; /* one of these is wanted */
	struct arena_header *arena;
	const char *tables;
	uint64_t tables_map;
	uint64_t list_place; /* offset of the first list of modules */
	_Atomic uint32_t *bell;
	uint64_t ticks_at_start, ns_at_start;
	/* RLIMIT_STACK: the limit of the first thread's stack, and of others that were created without
	   a size. */
	uint64_t stack_limit;
	uint64_t clock_ticks;      /* cost of reading a thread's CPU clock, in ticks */
	_Atomic uint64_t ms_ticks; /* ticks per millisecond; 0: not known yet */
};
extern struct agent agent;

/* A list of frames, stored in scratch chunks of the arena. */
#define FRAMES_PER_CHUNK ((uint32_t)(ARENA_CHUNK / sizeof(struct agent_frame) - 1))
#define FRAMES_CHUNKS 128u

#define FRAME_EXACT (UINT64_C(1) << 63)

struct agent_frame {
	uint64_t sp;
	/* FRAME_EXACT is set if the thread was interrupted at this instruction; else it is a
	   return address. */
	uint64_t pc;
	uint64_t slot; /* where in memory the PC was found; 0: not in memory */
	union {
		uint64_t key;          /* in the list `fresh`: the key for cct_child */
		struct {               /* in the list `memo` */
			uint32_t node; /* in the tree */
			/* The node that gets the count if the callee returns (sentinel.h); 0: it
			   cannot be seen. */
			uint32_t returns;
		};
	};
};

struct agent_frames {
	uint32_t count, chunk_count;
	uint32_t chunks[FRAMES_CHUNKS];
};

#define SCRIPT_TABLES 16u
#define AGENT_WAITS 4u
#define CALLED_CHUNKS 4u

/* A thread's record: first the part that the collector reads, then the agent's own. */
struct agent_thread {
	struct arena_thread shared;

	/* handed from the creating thread to the new one */
	void *(*start)(void *);
	int (*start_c11)(void *);
	void *argument;
	bool masked; /* the program believes that our signal is blocked */
	/* The same within a handler on an alternate stack, if `in_handler`. */
	bool masked_in_handler, in_handler;

	struct cct tree;
	uint64_t list_place; /* value of shared.list_place for which cache and memo hold */
	const struct wire_list *modules;
	bool has_jit;      /* some of the modules are code made at run time */
	bool jit_top;      /* one of them has WIRE_MODULE_TOP */
	bool has_unwinder; /* one of them has WIRE_MODULE_OWN_UNWINDER */
	uint64_t cpu_last;
	/* The first tick of the first event's period has come. */
	bool ticked;
	uint32_t unasked; /* samples since the CPU clock was last read */
	int64_t credit;   /* CPU time that no sample stands for yet */
	/* The thread's stack is known to be mapped from here up to shared.stack_top. */
	uint64_t stack_low;
	/* The largest size of the stack: below stack_top - stack_reach, memory belongs to others. */
	uint64_t stack_reach;
	uint64_t stack_size;           /* the size of the stack, as far as it is known */
	uint64_t low, high;            /* bounds of the memory that the current walk may read */
	uint64_t walk_end, walk_ticks; /* of the last walk, for the brake (sample.c) */
	/* After a long one: the CPU time before which none begins. During the next one: the CPU time when it began. */
	uint64_t rests_until;
	uint32_t walked, reused;             /* frames of the last walk */
	uint32_t skipped[ARENA_METRICS_MAX]; /* samples that came too early after it */
	/* Samples in unknown code since the last copy; the next copy is left when they reach `patience`. */
	uint32_t unknown, patience;
	int timer;
	/* shared.vain: when the list of modules changed, and when it was last looked at. */
	uint32_t vain_first, vain;
	bool rings;             /* the collector must be told of something */
	_Atomic bool unclaimed; /* late.c: the thread has not come by yet */
	/* How the walk of the memo ended (enum walk_end). */
	uint8_t memo_end;
	uint32_t times;  /* chunk of the time line that is written to; 0: none yet */
	uint32_t follow; /* the chunk of follow.c; 0: none yet */
	uint32_t noted;  /* marks that were noted for the collector (sentinel.c) */
	uint64_t registers[CPU_REGISTERS];
	/* script.c: the interpreter's thread that this one is, tables of functions that were met, and
	   the chunk that they are copied to; 0: none */
	uint64_t script_thread;
	uint32_t script_tables[SCRIPT_TABLES], script_table_count, script_text;
	uint32_t script_rest; /* samples that are left until calls are read again */
	/* Calls of the sample before, outermost first, with their functions. */
	uint32_t called_count, called[CALLED_CHUNKS];
	struct agent_frames memo; /* the walk before, outermost frame first */
	/* The current walk, innermost frame first, up to the frame where it meets the memo. */
	struct agent_frames fresh;
	uint32_t recent,
		recent_next; /* recent.c: the chunk of recent paths, and which is the next to go */
	/* pauses.c */
	struct agent_off {
		uint64_t off;    /* time off the CPU until now */
		uint64_t chance; /* when it rings in the period that this is in */
	} off[WIRE_OFF_MAX];
	uint64_t off_known; /* all time off the CPU when it was last looked at */
	uint64_t random;
	uint64_t wait_frame; /* of the wait that the thread is in */
	const void *awaited; /* lock.c: the lock that it waits for; NULL: none, or it has no slot */
	/* Its last waits, for those that wait for it. */
	struct agent_wait {
		uint64_t start, end;
	} waits[AGENT_WAITS];
	uint32_t wait_next;
	uint32_t objects, object_text, recalls; /* descriptors.c: chunks */
	struct step_cache cache;
};
_Static_assert(sizeof(struct agent_thread) <= ARENA_CHUNK, "a thread's record is one chunk");

/* Thread-local data. The handler must reach it without a call of libc. That works because the library is
   loaded at program start, so its place is fixed then (initial-exec). Definitions repeat this: gcc takes
   the attributes of the last declaration that it saw. */
#define AGENT_OWN __thread __attribute__((tls_model("initial-exec"), visibility("hidden")))

extern AGENT_OWN struct agent_thread *agent_self;

/* Adds to a number that only this thread writes, and others read: so no atomic addition is needed. */
static inline void counter_add(_Atomic uint64_t *counter, uint64_t count)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + count,
			      memory_order_relaxed);
}

/* start.c */
void agent_ring(void); /* tells the collector that the arena has something new */
/* Asks the collector to look at the modules of the process, and waits until it has. */
bool agent_ask_modules(void);
/* Reads a clock, in nanoseconds. */
uint64_t agent_ns(int clock);

/* Talks to the collector at this socket, maps memory and installs the handler. False if nothing is to be sampled. */
bool agent_begin(const char *path);
/* Whether the collector still listens: 0, or the negative number of an error. */
long agent_knock(void);
void agent_unmap(void);

/* late.c: the record of the calling thread; NULL: there is none yet. Must be followed by late_leave(). */
struct agent_thread *late_enter(const void *context);
void late_leave(void);

/* threads.c */
/* A new record for a thread of this process; NULL if the arena is full. */
struct agent_thread *thread_take(void);
/* Makes the record that of the calling thread and starts its sampling. Before, the caller sets stack_reach
   to the size of the stack, if it knows that. */
void thread_begin(struct agent_thread *thread, uint64_t stack_top);
/* The same for another thread, whose record it becomes when it comes by (late.c). */
bool thread_begin_other(struct agent_thread *thread, int32_t tid);
void thread_claim(struct agent_thread *thread, uint64_t sp, uint64_t stack);
void timers_reap(void); /* deletes the timers of threads that have ended */
void timers_end(void);  /* deletes all of this process */

/* waits.c: the futex system call of a program that uses syscall() itself */
long wait_futex(__typeof__(&syscall) real, long a, long b, long c, long d, long e, long f);

/* handler_CPU.S: the entry of the signal handler. The kernel has put its frame on the program's stack, or on
   our small alternate stack (alternate_stack.c). There may be no room for more. So the rest runs on a stack
   of our own (agent_stack, one for each thread), if there is one. If sample_on_signal returns true, the
   signal is not ours. Then it goes to the program's handler, on the program's stack. */
void handler_entry(int signal, siginfo_t *info, void *context);
/* Upper end of the calling thread's stack for the handler; 0: there is none. */
extern AGENT_OWN uint64_t agent_stack;

/* sample.c: takes a sample. Returns true if the signal is not one of ours: then the program gets it. */
bool sample_on_signal(int signal, siginfo_t *info, void *context);
/* The recipe for the code at an address, and the flags of its module; NULL: there is none. */
const struct recipe *sample_code(struct agent_thread *t, uint64_t address, uint32_t *flags);

/* Whether the code at this address is such as compilers make. SAMPLE_MADE: a runtime has made it, and may look at the return
   addresses of what it calls. */
enum sample_caller { SAMPLE_UNKNOWN, SAMPLE_MADE, SAMPLE_PLAIN };
enum sample_caller sample_caller(struct agent_thread *t, uint64_t address);

/* Reads what has changed since the last sample: modules, and the memory that may be read for a walk from `sp`. */
void sample_prepare(struct agent_thread *t, uint64_t sp);
/* Walks the stack from these registers. *known: how many frames of the memo are the path's outermost ones. */
enum walk_end sample_walk(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
			  uint32_t *known);
/* The same from a call that returns to this address, with the registers as they are then: SP, FP and `extra`. */
enum walk_end sample_walk_caller(struct agent_thread *t, const uint64_t *registers,
				 uint64_t returns, uint32_t *known);
/* Returns the node of the path that was walked; 0 if there is no room. The path becomes the memo. */
uint32_t sample_node(struct agent_thread *t, uint32_t known, enum walk_end end,
		     const uint64_t *registers);
/* Returns the child of a node that stands for a function; the node itself if the function is not known. */
uint32_t sample_called(struct agent_thread *t, uint32_t node, uint64_t function);
/* Returns the key of a function as that of a caller; 0 if it is not known. */
uint64_t sample_function_key(struct agent_thread *t, uint64_t function);
/* Whether the outermost `count` frames of the memo, the last of which has this SP and node, are on the stack. */
bool sample_memo_holds(struct agent_thread *t, uint32_t count, uint64_t sp, uint32_t node);
/* Leaves a copy of the stack to the collector, if it is time for one. `site`: of an allocation, or 0. */
bool sample_leave_copy(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
		       uint32_t event, uint64_t weight, uint64_t site);
/* The same, with frames below the walk, and several values. */
struct sample_value;
bool sample_leave_values(struct agent_thread *t, const uint64_t *registers, uint64_t pc,
			 const uint64_t below[2], const struct sample_value *values, size_t count);

/* weights.c: returns how many periods this sample stands for. */
uint64_t weight_of(struct agent_thread *t, uint32_t event, bool by_chance);
/* time_line.c: notes when a sample came. Returns false if there is no room. */
bool time_line_add(struct agent_thread *t, uint32_t node, uint64_t weight);

/* follow.c: follows the code from a sample of the first event, if it is time for that. */
void follow_sample(struct agent_thread *t, const ucontext_t *context);
/* Returns the key of the code at an address; 0 if there is none that may be followed. *flags: of its module. */
uint64_t sample_key(struct agent_thread *t, uint64_t address, uint32_t *flags);

/* by_call.c: a sample of a thread that has called us, whose registers are in t->registers. Returns the reference of the
   site for its path, which is made if it is new; 0 if there is no room. */
struct arena_heap;
uint32_t sample_by_call(struct agent_thread *t, uint64_t pc, struct arena_heap *heap);

/* The same; adds to values of the path's node, or counts `lost`. `called`: a function that the program has called by
   ours, as the last frame; 0: there is none. */
struct sample_value {
	uint32_t metric;
	uint64_t more;
};
void sample_values(struct agent_thread *t, uint64_t pc, uint64_t called,
		   const struct sample_value *values, size_t count);

/* The same, with frames below the path as in struct arena_copy. */
void sample_values_below(struct agent_thread *t, uint64_t pc, const uint64_t below[2],
			 const struct sample_value *values, size_t count);

/* A thread that has called us is at work here: no sample comes meanwhile, and what a handler of the program does is
   not counted. Returns NULL if it is so already, or if nothing is counted. */
struct agent_thread *call_enter(void);
void call_leave(void);

/* heap.c and lock.c are only in the agent for events: elsewhere these are NULL. After a fork, they are called in the
   child. */
#define AGENT_OPTIONAL __attribute__((weak, visibility("hidden")))
void heap_start(void) AGENT_OPTIONAL;
void heap_after_fork(void) AGENT_OPTIONAL;
void lock_after_fork(void) AGENT_OPTIONAL;
void pause_start(void) AGENT_OPTIONAL;
void pause_begin_thread(struct agent_thread *t) AGENT_OPTIONAL;
void pause_end_thread(struct agent_thread *t) AGENT_OPTIONAL;
/* sem_timedwait and sem_clockwait, for threads whose waits are counted. */
int lock_sem_timed(sem_t *s, clockid_t clock, const struct timespec *until) AGENT_OPTIONAL;
/* The same for the futex system call, with all its arguments. */
long lock_futex(__typeof__(&syscall) real, long a, long b, long c, long d, long e,
		long f) AGENT_OPTIONAL;
/* Who has let go the lock that the calling thread waits for, since it began to wait: its tid; 0: nobody. *waited: how
   long of that it waited itself. The caller is in call_enter. */
int32_t lock_waker(struct agent_thread *t, uint64_t since, uint64_t *waited) AGENT_OPTIONAL;

/* script.c: the node of a sample whose walk is in the memo and has the node `native`. */
uint32_t script_insert(struct agent_thread *t, uint32_t native);

/* signals.c */
/* Installs our handler. Until signals_use_program_stack, it uses the alternate stack if there is one. */
void signals_install(void);
void signals_use_program_stack(void);
/* Sampling ends. `may_come`: our signal may still come, so it is ignored. Else it is handled as the
   program wants. */
void signals_uninstall(bool may_come);
/* Whether the thread runs a handler of the program on an alternate stack of the program. Such a stack may
   have no room for our handler. So our signal is blocked there and must stay blocked. */
bool signals_must_stay_blocked(void);
void signals_unblock(void);
/* Hands a signal that uses our number, but is not from us, on to the program. */
void signals_forward(int signal, siginfo_t *info, void *context);

/* alternate_stack.c: an alternate stack (sigaltstack) for our signal. Only the first thread has it, and
   only until the program might notice. */
void alternate_stack_make(void);
void alternate_stack_give_up(void);
/* In a forked child: gives up the stack that it has from its parent. It lies in shared memory and the
   parent still uses it. Returns whether there was one. */
bool alternate_stack_drop_inherited(void);

/* sandbox.c: is called before the program restricts its system calls, with the arguments of seccomp(2). */
void sandbox_begin(unsigned mode, unsigned flags, const void *arguments);
