/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What the sampler is built on: its settings, its own structs, and its BPF maps. All other files of the
   sampler include it. */
#include "collect/kernel/bpf/shared.h"
#include "collect/kernel/bpf/types.h"
#include "unwind/end.h"
#include "unwind/made.h"
#include "unwind/table.h"

#define NO_RULE UINT32_MAX
#define ADDRESS ((1ull << KERNEL_KEY_BITS) - 1)
#define ENDING 4           /* PF_EXITING */
#define OF_KERNEL 0x204010 /* PF_KTHREAD, PF_USER_WORKER, PF_IO_WORKER: run no code of a program */
#define UNBORN_NS 1000000u /* of CPU time: a thread that had more has run */
#define LINE 64            /* bytes of a cache line */
#define FIRST_WINDOW 256   /* bytes of the stack that are read first */
#define LARGE_FRAME 384    /* bytes: of larger frames less is read */
#define STACK_REACH (1u << 30) /* bytes: what is farther away is another stack */
#define HOLES_MAX 32           /* pages in a row that cannot be read: the stack ends there */
#define COMPARED_AT_ONCE 16    /* frames of the memo */
/* If more frames are to be compared, whole pages of the stack are read. */
#define WORTH_A_PAGE 64
#define COPIED_AT_ONCE 1024 /* frames that are copied into the memo */
#define FRAME_EXACT (1ull << 63)
#define STEPS_AT_ONCE 4
#define SPAN_STEPS 17 /* of the binary search among KERNEL_SPANS */
#define ROW_STEPS 11  /* of that among the rows of a page */

/* Set before the program is loaded. Each of these variables is the only one of its section, so that the
   loader finds it. */
const volatile struct kernel_settings settings SEC(".rodata.settings");
#define CPU settings.cpu

struct kernel_counts counts SEC(".data.counts");
/* Set by the collector: in which of its two tables a CPU counts. */
volatile uint32_t side SEC(".data.side");
/* Set by the collector, from 1 on: what is known of modules by their ids is valid only as long as this
   does not change. */
volatile uint32_t generation SEC(".data.generation");

/* The cost of a sample depends most on how many cache lines it touches, since programs push ours out of
   the caches. So a frame has 16 bytes, and a place has a line of its own. */

struct frame { /* stack addresses are offsets from the memo's base */
	/* With FRAME_EXACT: it was interrupted there; without: it is a return address. */
	uint64_t pc;
	uint32_t sp, slot; /* slot: where the PC was read, a whole word; 0: not in memory */
};

struct memo {
	uint32_t busy; /* it is in use: threads on two CPUs may share a memo */
	uint32_t thread, count, serial, end;
	uint64_t base;
	uint64_t rest;          /* samples until the next walk: see brake.h */
	uint64_t script_thread; /* the interpreter's; 0: none */
	uint64_t script_rest;   /* samples that are left until its calls are read again */
	/* Innermost first. The outermost frame is always number KERNEL_FRAMES - 1, so that frames that
	   stay need not be moved. The additional ones are for the verifier, which adds the largest start
	   and the largest size. */
	struct frame frames[KERNEL_FRAMES + COPIED_AT_ONCE];
};

/* A walk in progress. It has no pointers, so that it can be passed to functions that the verifier checks
   by themselves (CHECKED). */
struct walk {
	uint64_t pc, sp, fp, extra, slot;
	/* Where they are saved, if not read yet; 0: they are known, or lost. */
	uint64_t fp_at, extra_at;
	uint64_t span_start, span_size, span_bias; /* the span that was met last */
	uint32_t span_module, span_flags;
	uint32_t span_serial; /* of its list; 0: none */
	uint64_t word;        /* what was read last */
	uint64_t at;          /* address of `bytes` */
	uint64_t have;        /* how many `bytes` are valid */
	uint64_t base;        /* of the memo */
	uint64_t next;        /* SP of the frame of the memo that may be met next */
	uint32_t known;       /* frames of the memo that may still be met */
	uint32_t known_first;
	uint32_t fresh;
	uint32_t hosts; /* frames that run interpreted functions */
	uint16_t end;
	uint8_t exact, near, still, fp_lost, extra_lost, in_signal, met, by_pointer;
	uint8_t retries;
	uint8_t far;           /* a frame is too far from `base` for the memo */
	uint8_t all_registers; /* `registers` were read */
	uint8_t returning;     /* the thread is in sigreturn */
	uint8_t elsewhere;     /* the table that is needed is not here, but the collector has it */
	uint64_t link;         /* the link register, if there is one */
	uint64_t first_pc;
	uint32_t to_compare;   /* frames of the memo that are still to be compared */
	uint32_t done;         /* frames that were copied into the memo */
	uint64_t window;       /* how many bytes are read at once: more, the deeper it goes */
	uint64_t signal_sp;    /* in a frame that a signal interrupted: where its registers are */
	uint64_t g, left, cfa; /* Go: as in unwind/walk.h; cfa: the g whose stack comes next */
	uint8_t bytes[KERNEL_WINDOW]; /* a piece of the stack */
	uint32_t made, made_at;       /* enum made_frame; where the next instruction is in `code` */
	uint8_t code[MADE_BYTES];     /* the code at the PC */
	uint64_t registers[KERNEL_REGISTERS + 1]; /* by DWARF number, then the PC */
};

/* Calls of interpreted functions: script.h. */
struct calls {
	uint64_t interpreter, thread, record, frame; /* what is being read */
	uint64_t seen;                               /* threads that were looked at */
	uint64_t marks;                              /* groups of calls */
	uint64_t at[KERNEL_MARKS]; /* where on the C stack each group belongs, innermost first */
	uint8_t bytes[128];        /* of a frame */
	uint64_t name[PYTHON_NAME_WORDS]; /* of a function: from its length on */
	struct kernel_calls head;         /* this and what follows is a record */
	struct python_call all[KERNEL_CALLS];
};

struct workspace {
	uint64_t busy; /* a probe uses it: another thread may run on the same CPU meanwhile */
	struct walk walk;
	/* Innermost first; larger for the verifier, as in the memo. */
	struct frame fresh[KERNEL_FRAMES + COPIED_AT_ONCE];
	struct kernel_path path;
	uint64_t keys[KERNEL_FRAMES + KERNEL_OWN_FRAMES];
	struct calls calls;
	struct kernel_function function;
	uint64_t hash,
		hash_at; /* io.h: of the path, as far as it is hashed; where it begins in the memo */
	struct kernel_object object;
	struct kernel_io
		io; /* what is counted: programs that walk have little room on their own stack */
	uint64_t behind, most; /* bytes of copied stacks: those that are there, and the limit */
	uint64_t other;        /* index in far.stacks of the stack that is being copied */
	uint64_t other_high;   /* where that stack ends for Go */
	uint64_t other_end;    /* where it ends with what C has beyond */
	uint64_t go;           /* the thread runs Go: `far` is filled */
	struct kernel_far far; /* this and what follows may be sent as one record */
	struct kernel_copy copy;
	uint8_t stack[KERNEL_STACK];
};

struct place {               /* what is known about an address */
	uint64_t key;        /* the module, and the address in it */
	uint32_t generation; /* as the variable above; 0: not valid */
	uint32_t by_pointer; /* there is no recipe: frame pointers are followed */
	uint64_t reserved[2];
	struct recipe recipe;
};

struct block {
	uint32_t words[KERNEL_BLOCK];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KERNEL_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, uint32_t);
	__type(value, struct kernel_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_MAPPINGS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_mappings);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_SPANS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_span);
} spans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_MODULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_module);
} modules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct recipe);
} rules SEC(".maps");

struct shard {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct block));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, KERNEL_SHARDS);
	__type(key, uint32_t);
	__array(values, struct shard);
} shards SEC(".maps");

/* One for each CPU: the loader sets the number of entries. The values are too large for per-CPU maps.
   Maps that can be mapped into memory begin on a page, so that their values begin on a cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct workspace);
} workspaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct memo);
} memos SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_PLACES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct place);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_turn);
} turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KERNEL_SCRIPTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_script);
} scripts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KERNEL_CODES);
	__type(key, uint64_t);
	__type(value, uint64_t);
} codes SEC(".maps");

/* Two tables for each CPU, one after the other. If no samples are only counted, there is one line. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, KERNEL_RING);
} ring SEC(".maps");

/* MASK bounds a value in a way that the compiler cannot remove: the verifier does not know what the
   compiler knows. */
#define INLINE static inline __attribute__((always_inline))
#define MASK(value, mask) asm volatile("%0 &= %1" : "+r"(value) : "i"(mask))
/* KEEP makes the compiler compute a value now. Later it would take more registers than there are. */
#define KEEP(value) asm volatile("" : "+r"(value))

#define CHECKED __attribute__((noinline)) /* the verifier checks such a function once, by itself */
/* Such a function has its part of the stack only while it runs: a function and all that it calls have 512 bytes. */
#define APART static __attribute__((noinline))
