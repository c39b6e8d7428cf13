/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/* What the sampler stands on: settings, its own structs, and the maps. */
#include "collect/kernel/bpf/shared.h"
#include "collect/kernel/bpf/types.h"
#include "unwind/end.h"
#include "unwind/made.h"
#include "unwind/table.h"

#define NO_RULE UINT32_MAX
#define ADDRESS ((1ull << KERNEL_KEY_BITS) - 1)
#define ENDING 4           /* PF_EXITING */
#define OF_KERNEL 0x204010 /* PF_KTHREAD, PF_USER_WORKER, PF_IO_WORKER: no code of a program */
#define UNBORN_NS 1000000u /* of CPU time: who had more has run */
#define RING_SIZE (1u << 24)
#define LINE 64                /* bytes of memory that come together */
#define FIRST_WINDOW 256       /* bytes of the stack */
#define LARGE_FRAME 384        /* bytes */
#define STACK_REACH (1u << 30) /* farther from its beginning a stack is another one */
#define HOLES_MAX 32           /* pages of a stack that are not there, one after another */
#define COMPARED_AT_ONCE 16    /* frames of the memo */
#define WORTH_A_PAGE 64        /* with more of them, whole pages of the stack are read */
#define COPIED_AT_ONCE 1024    /* the same, into it */
#define FRAME_EXACT (1ull << 63)
#define STEPS_AT_ONCE 4
#define SPAN_STEPS 17 /* of the search among KERNEL_SPANS */
#define ROW_STEPS 11  /* among the rows of a page */

/* Set before it is loaded. Each is the only variable of its section, so the loader finds it. */
const volatile struct kernel_settings settings SEC(".rodata.settings");
#define CPU settings.cpu

struct kernel_counts counts SEC(".data.counts");
/* The collector's: which of its two tables a CPU counts in. */
volatile uint32_t side SEC(".data.side");
/* The same: what is known of modules by their ids is only good for as long as this stays, from 1 on. */
volatile uint32_t generation SEC(".data.generation");

/* What a sample costs is above all how many lines of memory it touches: programs leave ours in no
   cache. So a frame has 16 bytes, and a place a line of its own. */

struct frame {             /* addresses of the stack are offsets from the memo's base */
	uint64_t pc;       /* FRAME_EXACT: it was interrupted there, and did not call from there */
	uint32_t sp, slot; /* slot: where the PC was read, a whole word; 0: nowhere */
};

struct memo {
	uint32_t busy; /* threads on two CPUs may have the same one */
	uint32_t thread, count, serial, end;
	uint64_t base;
	/* Innermost first; the outermost is KERNEL_FRAMES - 1, so that those that stay are where they
	   were. What follows is for the verifier, which adds the largest start and size. */
	struct frame frames[KERNEL_FRAMES + COPIED_AT_ONCE];
};

/* A walk under way: no pointers, so that functions which the verifier looks at once, each by itself,
   can be given it. */
struct walk {
	uint64_t pc, sp, fp, extra, slot;
	uint64_t fp_at, extra_at; /* where they are, not read yet; 0: they are known, or lost */
	uint64_t span_start, span_size, span_bias; /* of the span that was met last */
	uint32_t span_module, span_flags;
	uint32_t span_serial; /* of the list that it is of; 0: none */
	uint64_t word;        /* what was read last */
	uint64_t at;          /* of the bytes */
	uint64_t have;        /* bytes */
	uint64_t base;        /* of the memo */
	uint64_t next;        /* SP of the frame of the memo that may be met next */
	uint32_t known;       /* frames of the memo that are still possible */
	uint32_t known_first;
	uint32_t fresh;
	uint16_t end;
	uint8_t exact, near, still, fp_lost, extra_lost, in_signal, met, by_pointer;
	uint8_t retries;
	uint8_t far;           /* a frame is too far from the base to be remembered */
	uint8_t all_registers; /* were read */
	uint8_t returning;     /* from a signal handler */
	uint8_t elsewhere;     /* the table that is needed is not here, but the collector has it */
	uint64_t link;         /* the link register, where there is one */
	uint64_t first_pc;
	uint32_t to_compare;   /* frames of the memo that are still to be compared */
	uint32_t done;         /* frames that were copied into the memo */
	uint64_t window;       /* how many bytes are read at once: more, the deeper it goes */
	uint64_t signal_sp;    /* in a frame that a signal interrupted */
	uint64_t g, left, cfa; /* of Go: as in unwind/walk.h; where the caller's stack is */
	uint8_t bytes[KERNEL_WINDOW]; /* a piece of the stack */
	uint32_t made, made_at;       /* enum made_frame; the instruction that is looked at */
	uint8_t code[MADE_BYTES];     /* at the PC */
	uint64_t registers[KERNEL_REGISTERS + 1]; /* and the PC */
};

struct workspace {
	struct walk walk;
	struct frame fresh[KERNEL_FRAMES + COPIED_AT_ONCE]; /* innermost first; as in the memo */
	struct kernel_path path;
	uint64_t keys[KERNEL_FRAMES + KERNEL_INNER];
	uint64_t behind, most; /* bytes of copied stacks: those that are there, and may be */
	uint64_t other;        /* which of the others it is */
	uint64_t other_high;   /* where that ends for Go */
	uint64_t other_end;    /* and with what C has beyond */
	uint64_t go;           /* the thread runs Go: there is something in `far` */
	struct kernel_far far; /* this and what follows may be one record */
	struct kernel_snapshot snapshot;
	uint8_t stack[KERNEL_STACK];
};

struct place {               /* what is known about an address */
	uint64_t key;        /* the module and the address in it */
	uint32_t generation; /* 0: not to be relied on */
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
	__uint(max_entries, KERNEL_ROOMS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_room);
} rooms SEC(".maps");

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

/* One for each CPU, made as large as there are CPUs. Values are too large for maps per CPU. Maps that
   can be mapped begin on a page, so that their values begin on a line. */
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

/* Two tables for each CPU, one after the other; one line where nothing is only counted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, uint32_t);
	__type(value, struct kernel_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_SIZE);
} ring SEC(".maps");

/* Keeps the compiler from knowing more than the verifier does. */
#define INLINE static inline __attribute__((always_inline))
#define MASK(value, mask) asm volatile("%0 &= %1" : "+r"(value) : "i"(mask))
/* And from putting off what is to be done now, which takes more registers than there are. */
#define KEEP(value) asm volatile("" : "+r"(value))

#define CHECKED __attribute__((noinline)) /* once, by itself, by the verifier */
