/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * What the sampler in the kernel (sample.bpf.c) and its loader (collect/kernel/object.c)
 * share: the contents of the maps, and the records that come out of the ring.
 *
 *    processes: tgid -> struct kernel_process      whom to sample, and where its code is
 *    spans: struct kernel_span[]                   lists of code in memory, one after another
 *    modules: id -> struct kernel_module           where a module's table is
 *    shards: words[]                               of tables: pages and rows, as in unwind/table.h;
 *                                                  of large ones only what was needed so far
 *    rules: struct recipe[]                        of all modules, each of them once
 *    places, workspaces                            the sampler's own, for each CPU
 *    memos                                         the same, for threads
 *    turns                                         whether the next sample is walked, for each CPU
 *    counters: struct kernel_counters[]            samples that are only counted, for each CPU
 *    ring                                          records, for the collector
 *
 * A sample that meets the memo (the walk before, of the same thread) says only which of that
 * walk's outer frames stay and what is new: the collector keeps the same memo, as
 * nodes of its tree. A record that finds no room in the ring takes its memo with it.
 *
 * Where not all samples are walked, the others are counted by where they are, in tables as the first
 * caches have them: three places to a line. A place that finds its line full takes the room of another
 * one, which goes into the ring. Each CPU has two tables: while the collector empties one, the sampler
 * counts in the other.
 */
#include <stdbool.h>
#include <stdint.h>

#include "unwind/cpu.h"

#define KERNEL_FRAMES 32768u  /* of a path, at most: a power of two */
#define KERNEL_MEMOS_MAX 256u /* threads share them by their numbers */
#define KERNEL_PLACES 4096u   /* of each CPU: a power of two */
#define KERNEL_WINDOW 4096u   /* bytes of a stack that are read at once: a page */
#define KERNEL_STACK 524288u  /* of a stack that is left for the collector to walk */
#define KERNEL_HOLES (KERNEL_STACK / 4096 / 64 + 1)
#define KERNEL_GO 5u        /* structs of Go's runtime */
#define KERNEL_GO_WORDS 32u /* of each */
#define KERNEL_FAR_STACKS 2u
#define KERNEL_SPANS 65536u
#define KERNEL_RULES 65536u   /* 3600 tables of Debian's programs have 24 000 different ones */
#define KERNEL_MODULES 32768u /* ids are below */
#define KERNEL_PROCESSES 65536u
#define KERNEL_ROOMS 16384u /* a power of two: processes share them by their numbers */
#define KERNEL_SHARDS 4096u
#define KERNEL_SHARD (4u << 20) /* bytes; one that is made for a larger table is larger */
#define KERNEL_BLOCK 16u        /* words in one value of a shard */
#define KERNEL_METRICS 8u
#define KERNEL_COMM 16u
#define KERNEL_REGISTERS 32u
#define KERNEL_INNER 127u     /* frames of the kernel's own */
#define KERNEL_COUNTERS 2048u /* lines of a table: a power of two */
#define KERNEL_WAYS 3u

struct kernel_settings {
	struct unwind_cpu cpu;
	uint32_t max_depth;
	uint32_t memo_bits; /* there are 1 << memo_bits memos */
	uint32_t whole; /* all processes are sampled, and what the kernel does for them or itself */
	uint32_t every; /* one of so many samples is walked, at least 1; the others are counted */
};

struct kernel_counts {
	uint64_t lost_records, lost_snapshots; /* there was no room in the ring */
};

/* Keys of frames, as in cct/cct.h. */
#define KERNEL_KEY_CALL (1ull << 63)
#define KERNEL_KEY_BITS 48
#define KERNEL_KEY_KERNEL (0x7ffeull << KERNEL_KEY_BITS)

#define KERNEL_SIMPLE 1 /* recipe.reserved: see step_simple in sample.bpf.c */

#define KERNEL_SPAN_JIT 1u       /* frame pointers are followed there */
#define KERNEL_SPAN_LOST 2u      /* a module without a table */
#define KERNEL_SPAN_ELSEWHERE 4u /* there is no room for its table: the collector walks there */

struct kernel_span {
	uint64_t start, end, bias;
	uint32_t module, flags;
};

struct kernel_module {
	uint64_t start;       /* of the table's first page */
	uint32_t page_count;  /* 0: there is no table */
	uint32_t shard;       /* in which it is */
	uint32_t pages, rows; /* where they begin there, in words */
	uint32_t parts;       /* not 0: only pages that were needed are here, as KERNEL_PART says */
};

/* A page of a table that is given in parts: where its rows are, which their number precedes; 0: not
   here yet. */
#define KERNEL_PART_BITS 20
#define KERNEL_PART(shard, row) ((uint32_t)(shard) << KERNEL_PART_BITS | (uint32_t)(row))
#define KERNEL_PART_SHARD(part) ((part) >> KERNEL_PART_BITS)
#define KERNEL_PART_ROW(part) ((part) & ((1u << KERNEL_PART_BITS) - 1))

struct kernel_process {
	uint32_t first, count; /* of its spans */
	uint32_t serial; /* of the list: 0: not known yet, samples are left to the collector */
	uint32_t taken;  /* as in its kernel_room: otherwise a library of the list may have gone */
	uint32_t doubtful; /* the list may be of before a library went: it is not used yet */
	uint32_t resigned; /* code of no module stays so: it is not worth a copy of the stack */
	uint32_t asleep;   /* until it execs: it is still us */
	uint32_t changes;  /* times that it became another program, with its parents' */
	uint64_t born_pc, born_sp; /* where a child begins, which has touched no memory yet */
	uint64_t jit_low, jit_high;
	uint64_t jit_top; /* WIRE_MODULE_TOP */
};

/* How often the kernel has found room for what a process maps. Only ever counted up, by the sampler: the
   collector, which puts a list in place meanwhile, can neither miss one nor write over it. */
struct kernel_room {
	uint32_t found;
	uint32_t taken; /* of these, where its list had code: a library has gone; and each exec */
};

/* Three places and how often they were sampled. Code is found by the serial of the process's list, which
   the collector has; `changes` is that of the process: exec gives it another name. A count of 0 is
   free. */
struct kernel_counters {
	uint64_t places[KERNEL_WAYS]; /* KERNEL_COUNTER_PLACE */
	uint32_t processes[KERNEL_WAYS];
	uint32_t serials[KERNEL_WAYS]; /* KERNEL_INSIDE: the place is the kernel's */
	uint32_t counts[KERNEL_WAYS];
	uint32_t next; /* which is to go if there is no room */
};
#define KERNEL_INSIDE UINT32_MAX
#define KERNEL_COUNTER_PLACE(address, event, changes)                                           \
	(((address) & ((1ull << KERNEL_KEY_BITS) - 1)) | (uint64_t)(event) << KERNEL_KEY_BITS | \
	 (uint64_t)(changes) << (KERNEL_KEY_BITS + 3))
#define KERNEL_COUNTER_EVENT(place) ((uint32_t)((place) >> KERNEL_KEY_BITS) & (KERNEL_METRICS - 1))
#define KERNEL_COUNTER_CHANGES(place) ((uint32_t)((place) >> (KERNEL_KEY_BITS + 3)))
#define KERNEL_CHANGES_BITS 13

struct kernel_turn {
	uint32_t left[KERNEL_METRICS]; /* samples until the next one that is walked */
	uint64_t counting;             /* just now, in either table */
	uint64_t runs, ns;             /* samples that were counted, and what that took */
	uint64_t reserved;
};

enum kernel_record {
	KERNEL_PATH = 1,
	KERNEL_SNAPSHOT,
	KERNEL_FORK,
	KERNEL_EXEC,
	KERNEL_EXIT,
	KERNEL_COUNTED, /* made room for another one */
	KERNEL_PLACE,   /* to be counted where its code is known */
	KERNEL_FAR,     /* a snapshot, after memory that is not on that stack */
};

struct kernel_head {
	uint32_t kind; /* enum kernel_record */
	uint32_t process, thread;
	uint32_t event;
	uint64_t time; /* CLOCK_MONOTONIC, ns */
};

#define KERNEL_NO_MEMO 0xffffu
struct kernel_path {
	struct kernel_head head;
	uint16_t memo;  /* its number; KERNEL_NO_MEMO: none was free, nothing is kept */
	uint8_t end;    /* enum walk_end: of the whole path */
	uint8_t inner;  /* frames of the kernel, which it was in */
	uint32_t kept;  /* outermost frames of the memo that stay */
	uint32_t fresh; /* frames that follow, innermost first */
	uint32_t ns;    /* that the sampler took */
	/* uint64_t keys[fresh], as in cct/cct.h; addresses[inner], innermost first */
};

/* A process or thread that has not yet run, and is where it begins: its path is the kernel's. A copy of its parent
   is where that was, and its memory may be out of reach. One with a stack of its own is after the system call that
   made it, which says 0 to it: there is nothing on that stack, but a walk takes it for who made it, and for what
   lies there. One that is on its way back from a signal handler may have registers of two places. */
enum kernel_unborn { KERNEL_BORN, KERNEL_UNBORN_COPY, KERNEL_UNBORN, KERNEL_RETURNING };
#define KERNEL_IS_NOWHERE(end) \
	((end) == WALK_BAD_MEMORY || (end) == WALK_NO_MODULE || (end) == WALK_BAD_FRAME)

struct kernel_snapshot {
	struct kernel_head head;
	uint64_t registers[KERNEL_REGISTERS]; /* by DWARF number */
	uint64_t pc;
	uint64_t address; /* of the stack bytes */
	uint64_t size;
	uint64_t unborn;   /* enum kernel_unborn */
	uint64_t unlisted; /* the sampler has no list of its modules */
	uint64_t copied;   /* of these, by the sampler itself */
	uint64_t beyond;   /* bytes of the stack that were not copied, as far as is known */
	uint64_t inner_count;
	uint64_t inner[KERNEL_INNER]; /* as in struct kernel_path */
	uint64_t holes[KERNEL_HOLES]; /* a bit for each page that could not be read, from the one of
					 `address` on */
				      /* uint8_t bytes[size] */
};

/*
 * FAR: goroutines have stacks of their own, and Go's runtime works for them on those of threads, and of signals: see
 * RECIPE_PARKED. So what a walk may need is on several stacks. A snapshot follows, then the bytes of the others.
 */
struct kernel_far {
	struct kernel_head head;
	uint64_t go_at
		[KERNEL_GO]; /* addresses of what follows: the g that it is, m, m.g0, m.curg, m.gsignal; 0: none */
	uint64_t go[KERNEL_GO][KERNEL_GO_WORDS];
	struct {
		uint64_t address, size;
	} stacks[KERNEL_FAR_STACKS]; /* of m.g0 and m.curg; a size of 0: none */
};

struct kernel_counted { /* COUNTED: as in struct kernel_counters */
	struct kernel_head head;
	uint64_t place;
	uint32_t serial, count;
};

struct kernel_place { /* PLACE: as a snapshot without a stack */
	struct kernel_head head;
	uint64_t pc;
	uint64_t changes; /* of the process */
};

struct kernel_task { /* FORK, EXEC, EXIT */
	struct kernel_head head;
	uint32_t child_process, child_thread; /* FORK */
	uint32_t last;                        /* EXIT: the process has no other thread */
	int32_t status;                       /* EXIT: as wait gives it */
	uint64_t cpu_ns;                      /* EXIT: time on a CPU */
	uint64_t start_ns;                    /* FORK: of the child, CLOCK_BOOTTIME */
	uint64_t changes;                     /* FORK, EXEC: of the process, or the child */
	char comm[KERNEL_COMM];
};
