/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once
/*
 * What the sampler in the kernel (sample.bpf.c) and the collector (collect/kernel/) share: the contents of
 * the BPF maps, and the records that come out of the ring.
 *
 *    processes: tgid -> struct kernel_process      which processes to sample, and where their code is
 *    mappings: struct kernel_mappings[]            how many mappings processes have begun
 *    spans: struct kernel_span[]                   lists of code in memory, one after another
 *    modules: id -> struct kernel_module           where the table of a module is
 *    shards: words[]                               of tables: pages and rows, as in unwind/table.h;
 *                                                  of large tables only what was needed so far
 *    rules: struct recipe[]                        of all modules, each rule once
 *    places, workspaces                            the sampler's own memory, for each CPU
 *    memos                                         the same, for threads
 *    turns                                         whether the next sample is walked, for each CPU
 *    scripts: struct kernel_script[]               interpreters in processes
 *    codes                                         interpreted functions that the collector knows
 *    counters: struct kernel_counters[]            samples that are only counted, for each CPU
 *    objects, transfers                            what threads read and write, and how much (io.h)
 *    activities, timings                           calls of probed functions, and their times (probe.h)
 *    ring                                          records, for the collector
 *
 * The memo is the previous walk, of the same thread. If a walk meets a frame of its memo, the record says
 * only how many outer frames of the memo stay, and what is new. The collector keeps the same memo, as nodes
 * of its tree. If a record finds no room in the ring, the sampler drops its memo, too.
 *
 * If not all samples are walked, the others are counted by place, in tables that suit the cache: three
 * places in a line. If a place finds its line full, it takes the room of another one, which goes into the
 * ring. Each CPU has two tables: while the collector empties one, the sampler counts in the other.
 */
#include <stdbool.h>
#include <stdint.h>

#include "safe/python.h"
#include "unwind/cpu.h"

#define KERNEL_FRAMES 32768u  /* of a path, at most: a power of two */
#define KERNEL_MEMOS_MAX 256u /* several threads may share one, by their numbers */
#define KERNEL_PLACES 4096u   /* for each CPU: a power of two */
#define KERNEL_WINDOW 4096u   /* bytes of a stack that are read at once: a page */
#define KERNEL_STACK 524288u  /* bytes that are copied of a stack, at most */
#define KERNEL_HOLES (KERNEL_STACK / 4096 / 64 + 1)
#define KERNEL_GO 5u        /* structures of Go's runtime in a record */
#define KERNEL_GO_WORDS 32u /* of each */
#define KERNEL_FAR_STACKS 2u
#define KERNEL_SPANS 65536u
#define KERNEL_RULES 65536u   /* 3600 tables of Debian's programs have 24 000 different rules */
#define KERNEL_MODULES 32768u /* ids are smaller */
#define KERNEL_PROCESSES 65536u
#define KERNEL_MAPPINGS \
	16384u /* a power of two; several processes may share one, by their numbers */
#define KERNEL_SHARDS 4096u
#define KERNEL_SHARD (4u << 20) /* bytes; larger if it is made for a larger table */
#define KERNEL_BLOCK 16u        /* words in one value of a shard */
#define KERNEL_METRICS 8u
#define KERNEL_COMM 16u
#define KERNEL_REGISTERS 32u
#define KERNEL_OWN_FRAMES 127u /* frames of the kernel itself */
#define KERNEL_COUNTERS 2048u  /* lines of a table: a power of two */
#define KERNEL_WAYS 3u
#define KERNEL_SCRIPTS 1024u /* interpreters */
#define KERNEL_CALLS 4096u   /* of interpreted functions on a path: a power of two */
#define KERNEL_MARKS 1024u   /* frames on a path that run them: a power of two */
#define KERNEL_CODES 65536u
#define KERNEL_CODE 256u       /* bytes that are copied: of code objects, */
#define KERNEL_TEXT 512u       /* of names, */
#define KERNEL_LINES 4096u     /* and of tables of lines */
#define KERNEL_RING (1u << 24) /* bytes */
/* Until the code of a program is known, each of its calls leaves a copy. */
#define KERNEL_RING_IO (1u << 26)
#define KERNEL_IO_CALLS 512u /* numbers of system calls are smaller */
#define KERNEL_OBJECTS 65536u
#define KERNEL_TRANSFERS 65536u
#define KERNEL_OBJECT_NAME 1024u  /* bytes: a power of two */
#define KERNEL_ACTIVITIES 262144u /* calls of probed functions that have not ended */
#define KERNEL_SPARE_SPACES 8u    /* workspaces for probes, beside one for each CPU */
#define KERNEL_TIMES 320u         /* buckets of a histogram of times: kernel_time_bucket() */
#define KERNEL_MEASURES 6u        /* metrics of a call, beside its time */
#define KERNEL_PARAMETERS 6u      /* arguments in registers that are read */
#define KERNEL_OCTAVES (KERNEL_TIMES / 8)
#define KERNEL_MEASURE_SUMS 262144u
#define KERNEL_SLOWEST 32u     /* calls of a function that are kept: a power of two */
#define KERNEL_FUNCTIONS 1024u /* numbers of probed functions are smaller */

enum kernel_measured {
	KERNEL_MEASURED_CPU = 1,
	KERNEL_MEASURED_BLOCKED,
	KERNEL_MEASURED_PARAMETER,
	KERNEL_MEASURED_RESULT,
	KERNEL_MEASURED_EVENT,
};

struct kernel_measuring {  /* what is measured of each call */
	uint8_t kind;      /* enum kernel_measured */
	uint8_t number;    /* of the argument, from 0 on */
	uint8_t unused;    /* upper bits of the register that are none of the value's */
	uint8_t is_signed; /* the value may be negative */
};

struct kernel_settings {
	struct unwind_cpu cpu;
	uint32_t max_depth;
	uint32_t memo_bits; /* there are 1 << memo_bits memos */
	/* All processes are sampled, and what the kernel does for them or for itself. */
	uint32_t whole;
	uint32_t kernel_frames; /* frames of the kernel are sent, too */
	uint32_t every; /* one of so many samples is walked, at least 1; the others are counted */
	uint32_t cpus;
	uint64_t walk_ns; /* CPU time from one walk of a thread to the next, about; never 0 */
	uint64_t off_ns;  /* time off the CPU from sample to sample; 0: it is not sampled */
	/* Bytes from a CPU's run queue to its preempt_count, where that is a variable; 0: not known. */
	int64_t preempt_count;
	uint64_t
		begun; /* CLOCK_BOOTTIME: threads that started before are not known from their start */
	uint32_t ring;   /* bytes */
	uint32_t io;     /* reads and writes, or calls are counted by path */
	uint32_t probes; /* calls of chosen functions are counted */
	uint32_t spaces; /* workspaces; the first, one for each CPU, are for its clock */
	uint32_t measure_count;
	uint32_t switches; /* of threads with probes it is known when they are on a CPU */
	uint32_t slowest;  /* calls that are kept of each function */
	struct kernel_measuring measures[KERNEL_MEASURES];
	uint8_t io_calls[KERNEL_IO_CALLS]; /* by number: KERNEL_IO_CALL; 0: none that moves bytes */
};

/* What a system call does, and which of its arguments is the descriptor. */
#define KERNEL_IO_CALL(act, argument) (uint8_t)((act) | (argument) << 4)
#define KERNEL_IO_ACT(call) ((call)&15)
#define KERNEL_IO_ARGUMENT(call) ((call) >> 4)
enum kernel_io_act {
	KERNEL_IO_NONE,
	KERNEL_IO_READ,
	KERNEL_IO_WRITE,
	KERNEL_IO_READ_MANY, /* recvmmsg */
	KERNEL_IO_WRITE_MANY,
	KERNEL_IO_COPY, /* sendfile and the like: to the descriptor, from another one */
	KERNEL_IO_SYNC,
	KERNEL_IO_UNSEEN, /* it begins or awaits work that we do not see */
	KERNEL_IO_PROBE,  /* no system call: a function was called */
};

struct kernel_counts {
	uint64_t lost_records, lost_copies; /* those that found no room in the ring */
	uint64_t io_unseen;                 /* calls of KERNEL_IO_UNSEEN */
	uint64_t calls_untimed;    /* calls of probed functions whose ends are not seen: no room */
	uint64_t calls_unmeasured; /* values of measures that found no room */
};

/* Keys of frames, as in cct/cct.h. */
#define KERNEL_KEY_CALL (1ull << 63)
#define KERNEL_KEY_BITS 48
#define KERNEL_KEY_KERNEL (0x7ffeull << KERNEL_KEY_BITS)
#define KERNEL_KEY_HOST (1ull << 47)

#define KERNEL_SIMPLE 1 /* recipe.reserved: step_simple() in step.h can apply it */

#define KERNEL_SPAN_JIT 1u       /* there is no table: frame pointers are followed */
#define KERNEL_SPAN_LOST 2u      /* a module without a table */
#define KERNEL_SPAN_ELSEWHERE 4u /* there is no room for its table: the collector walks there */

struct kernel_span {
	uint64_t start, end, bias;
	uint32_t module, flags;
};

struct kernel_module {
	uint64_t start;       /* address of the table's first page */
	uint32_t page_count;  /* 0: there is no table */
	uint32_t shard;       /* the one that has it */
	uint32_t pages, rows; /* where they begin in the shard, in words */
	uint32_t parts;       /* not 0: only pages that were needed are here, see KERNEL_PART */
};

/* Entry of a page in a table that is given in parts: where the number of its rows is, with the rows
   behind it; 0: the page is not here yet. */
#define KERNEL_PART_BITS 20
#define KERNEL_PART(shard, row) ((uint32_t)(shard) << KERNEL_PART_BITS | (uint32_t)(row))
#define KERNEL_PART_SHARD(part) ((part) >> KERNEL_PART_BITS)
#define KERNEL_PART_ROW(part) ((part) & ((1u << KERNEL_PART_BITS) - 1))

struct kernel_process {
	uint32_t first, count; /* its spans */
	uint32_t serial; /* of the list; 0: not known yet, samples are left to the collector */
	/* As in its kernel_mappings; if it differs, a library of the list may be gone. */
	uint32_t over_code;
	uint32_t doubtful; /* a library may have gone since the list was made: it is not used yet */
	/* Code of no module stays unknown: it is not worth a copy of the stack. */
	uint32_t resigned;
	uint32_t asleep;           /* until it execs: it is still our own process */
	uint32_t changes;          /* how often it and its parents have exec'd */
	uint64_t born_pc, born_sp; /* where a child begins, which has touched no memory yet */
	uint64_t jit_low, jit_high;
	uint64_t jit_top; /* not 0: WIRE_MODULE_TOP */
	uint32_t script;  /* number of its interpreter + 1; 0: it has none */
	uint32_t reserved;
};

struct kernel_script {    /* an interpreter: processes that have it at the same place share it */
	uint64_t runtime; /* its address */
	struct python_layout layout;
	uint32_t code_name, code_file, code_line, code_lines; /* as in struct python */
};

/* How many mappings a process has begun: how often the kernel has found free addresses for one. Only the
   sampler changes it, and only counts up. So the collector, which gives a list meanwhile, can neither miss a
   change nor overwrite it. */
struct kernel_mappings {
	uint32_t begun;
	/* Of these, at addresses where its list had code: a library is gone. Each exec counts, too. */
	uint32_t over_code;
};

/* Three places and how often they were sampled. The collector finds the code by the serial of the
   process's list. `changes` of the process is a part of the place, since an exec gives the process
   another name. An entry is free if its count is 0. */
struct kernel_counters {
	uint64_t places[KERNEL_WAYS]; /* KERNEL_COUNTER_PLACE */
	uint32_t processes[KERNEL_WAYS];
	uint32_t serials[KERNEL_WAYS]; /* KERNEL_SERIAL_KERNEL: the place is in the kernel */
	uint32_t counts[KERNEL_WAYS];
	uint32_t next; /* which one must go next if there is no room */
};
#define KERNEL_SERIAL_KERNEL UINT32_MAX
#define KERNEL_COUNTER_PLACE(address, event, changes)                                           \
	(((address) & ((1ull << KERNEL_KEY_BITS) - 1)) | (uint64_t)(event) << KERNEL_KEY_BITS | \
	 (uint64_t)(changes) << (KERNEL_KEY_BITS + 3))
#define KERNEL_COUNTER_EVENT(place) ((uint32_t)((place) >> KERNEL_KEY_BITS) & (KERNEL_METRICS - 1))
#define KERNEL_COUNTER_CHANGES(place) ((uint32_t)((place) >> (KERNEL_KEY_BITS + 3)))
#define KERNEL_CHANGES_BITS 13

struct kernel_turn {
	/* Samples until the next one that is walked, for each event. */
	uint32_t left[KERNEL_METRICS];
	uint64_t counting; /* not 0: the CPU is counting just now, in either table */
	uint64_t runs, ns; /* samples that were counted, and the time that took */
	uint64_t reserved;
};

enum kernel_record {
	KERNEL_PATH = 1,
	KERNEL_COPY, /* registers and stack of a sample that was not walked */
	KERNEL_FORK,
	KERNEL_EXEC,
	KERNEL_EXIT,
	KERNEL_COUNTED,  /* a count that made room for another one */
	KERNEL_PLACE,    /* a place to be counted when its code is known */
	KERNEL_CALLED,   /* calls of interpreted functions, of the path or copy that follows */
	KERNEL_FUNCTION, /* an interpreted function that was not called before */
	KERNEL_OFF,      /* time off the CPU, of the path or copy that follows */
	KERNEL_FAR,      /* memory that is not on the stack, followed by a copy */
	KERNEL_IO,       /* what was read or written, of the path or copy that follows */
	KERNEL_OBJECT,   /* what a descriptor stands for */
};

struct kernel_head {
	uint32_t kind; /* enum kernel_record */
	uint32_t process, thread;
	uint32_t event;
	uint64_t time; /* CLOCK_MONOTONIC, ns */
};

#define KERNEL_EVENT_OFF UINT32_MAX      /* head.event: none of the CPU's, but time off the CPU */
#define KERNEL_EVENT_IO (UINT32_MAX - 1) /* the same: a system call that has read or written */
#define KERNEL_EVENT_PROBE (UINT32_MAX - 2) /* the same: a call of a function */
#define KERNEL_NO_MEMO 0xffffu
struct kernel_path {
	struct kernel_head head;
	uint16_t memo;         /* its number; KERNEL_NO_MEMO: none was free, all frames are new */
	uint8_t end;           /* enum walk_end, of the whole path */
	uint8_t kernel_frames; /* frames of the kernel, if it was there */
	uint32_t kept;         /* outermost frames of the memo that stay */
	uint32_t fresh;        /* new frames that follow, innermost first */
	uint32_t ns;           /* time that the sampler took */
	/* uint64_t keys[fresh], as in cct/cct.h; uint64_t addresses[kernel_frames], innermost first */
};

/*
 * Whether a thread has run at all. If it has not, it is where it begins, and its path is the kernel's.
 *
 *    KERNEL_UNBORN_COPY  a copy of its parent: it is where the parent was, and its memory may be out of reach
 *    KERNEL_UNBORN       a thread with a stack of its own, behind the system call that made it and returned 0.
 *                        Its stack is empty, but a walk would take what lies there, or its maker, for callers.
 *    KERNEL_RETURNING    on its way back from a signal handler: it may have registers of two places
 */
enum kernel_unborn { KERNEL_BORN, KERNEL_UNBORN_COPY, KERNEL_UNBORN, KERNEL_RETURNING };
#define KERNEL_IS_NOWHERE(end) \
	((end) == WALK_BAD_MEMORY || (end) == WALK_NO_MODULE || (end) == WALK_BAD_FRAME)

struct kernel_copy {
	struct kernel_head head;
	uint64_t registers[KERNEL_REGISTERS]; /* by DWARF number */
	uint64_t pc;
	uint64_t address; /* of the stack bytes */
	uint64_t size;
	uint64_t unborn;   /* enum kernel_unborn */
	uint64_t unlisted; /* the sampler has no list of its modules */
	uint64_t copied;   /* how many of these bytes the sampler copied itself */
	uint64_t beyond;   /* bytes of the stack that were not copied, as far as is known */
	uint64_t kernel_frame_count;
	uint64_t kernel_frames[KERNEL_OWN_FRAMES]; /* as in struct kernel_path */
	/* A bit for each page that could not be read. The first one is the page of `address`. */
	uint64_t holes[KERNEL_HOLES];
	/* uint8_t bytes[size] */
};

/* KERNEL_FAR: goroutines have stacks of their own, and Go's runtime works for them on those of threads
   and of signals (RECIPE_PARKED). So a walk may need several stacks. Behind this follow a copy, and
   the bytes of the other stacks. */
struct kernel_far {
	struct kernel_head head;
	/* Addresses of what follows: the g whose stack it is on, its m, m.g0, m.curg, m.gsignal; 0:
	   none. */
	uint64_t go_at[KERNEL_GO];
	uint64_t go[KERNEL_GO][KERNEL_GO_WORDS];
	struct {
		uint64_t address, size;
	} stacks[KERNEL_FAR_STACKS]; /* of m.g0 and m.curg; if the size is 0, there is none */
};

struct kernel_calls { /* KERNEL_CALLED: has the thread and the time of its path or copy */
	struct kernel_head head;
	uint64_t count;
	/* struct python_call calls[count] */
};

struct kernel_function { /* KERNEL_FUNCTION: copies as in struct python_piece */
	struct kernel_head head;
	uint64_t code, identity; /* as in struct python_call */
	struct {
		uint64_t address, size;
		uint8_t bytes[KERNEL_CODE];
	} object;
	struct {
		uint64_t address, size;
		uint8_t bytes[KERNEL_TEXT];
	} name, file;
	struct {
		uint64_t address, size;
		uint8_t bytes[KERNEL_LINES];
	} lines;
};

enum kernel_waker {
	KERNEL_WAKER_NONE, /* nobody: it has not waited, or it is not known */
	KERNEL_WAKER_INTERRUPT,
	KERNEL_WAKER_KERNEL, /* a thread of the kernel */
	KERNEL_WAKER_THREAD,
};

struct kernel_off { /* KERNEL_OFF: has the thread and the time of its path or copy */
	struct kernel_head head;
	uint64_t ns;             /* since the thread left the CPU */
	uint64_t queued_ns;      /* of these it could have run, but had no CPU */
	uint64_t blocked_before; /* its time off the CPU, waiting, before this */
	/* who has ended its wait; of a thread: process and number */
	uint32_t waker, waker_process, waker_thread;
	uint32_t rarity; /* each sample of it counts as 2^rarity: bpf/off.h */
};

struct kernel_transfer_key {
	uint64_t path;   /* a hash of its frames; 0: not known */
	uint64_t object; /* `id` of a kernel_object; KERNEL_IO_PROBE: number of the function */
	uint32_t process, thread;
	uint32_t act;     /* enum kernel_io_act */
	uint32_t changes; /* of the process */
};

struct kernel_transfer {           /* all calls with the same key */
	uint64_t calls, bytes, ns; /* KERNEL_IO_PROBE: bytes are calls whose ends are not seen */
	uint64_t own_ns;           /* that counting them took */
	uint64_t sent;             /* its path was sent */
};

struct kernel_io { /* KERNEL_IO: has the thread and the time of its path or copy */
	struct kernel_head head;
	struct kernel_transfer_key key;
	struct kernel_transfer sum; /* no calls: they are in the map */
};

/* What happens at the place of a probe. Its cookie has this, the number of the function, and whether the ends of its
   calls are seen. */
enum kernel_probe {
	KERNEL_PROBE_BEGINS,
	KERNEL_PROBE_ENDS,
	KERNEL_PROBE_THROWS,  /* an exception */
	KERNEL_PROBE_CATCHES, /* the thread has gone on where it is handled */
};
#define KERNEL_PROBE_TIMED 8u
#define KERNEL_PROBE_LOOPS 16u /* the function jumps to its own beginning: that is no call */
#define KERNEL_PROBE_KINDS 7u
#define KERNEL_PROBE_COOKIE(kind, function) ((uint64_t)(kind) << 32 | (function))

enum kernel_call_end {
	KERNEL_CALL_RETURNED = 1,
	KERNEL_CALL_UNWOUND,   /* left by an exception */
	KERNEL_CALL_ABANDONED, /* left by longjmp, or in another way that is not known */
};

struct kernel_timing { /* all calls with the same key that have ended */
	uint64_t returned, unwound, abandoned;
	uint64_t ns;                       /* of those that returned */
	uint64_t least, most;              /* least: one more than that; 0: none */
	uint64_t own_ns;                   /* that probes took, of those that returned */
	uint64_t octaves[KERNEL_MEASURES]; /* of each measure: bits of those that have any */
	uint64_t times[KERNEL_TIMES];
};

/* Values of a measure have buckets as times have; eight of these are an octave. The last octave has negative ones: -1,
   -2 and so on; the last bucket has all that are less. */
struct kernel_measure_key {
	struct kernel_transfer_key sum;
	uint32_t measure, octave;
};

struct kernel_measure {
	int64_t least, most; /* 0 if there are no calls */
	struct {
		uint64_t calls;
		int64_t sum;         /* of values */
		uint64_t ns, cpu_ns; /* of these calls; cpu_ns: 0 if it is not known */
	} eighths[8];
};

struct kernel_slow {    /* one of the slowest calls of a function */
	uint64_t ns;    /* 0: none */
	uint64_t begun; /* CLOCK_MONOTONIC */
	struct kernel_transfer_key sum;
	uint64_t parameters[KERNEL_PARAMETERS], result;
	uint64_t same_ns; /* as `ns`, written last: else somebody is writing it now */
};

struct kernel_slows {   /* of a function */
	uint64_t floor; /* faster calls are not kept */
	struct kernel_slow all[KERNEL_SLOWEST];
};

/* What a function's probes are not to do: flags in the map `limits`. */
#define KERNEL_LIMIT_UNTIMED 1u /* calls are only counted from now on */
#define KERNEL_LIMIT_REMOVED 2u /* they are not even counted */

/* Times have eight buckets from each power of two to the next. */
static inline __attribute__((always_inline)) uint32_t kernel_time_bucket(uint64_t ns)
{
	uint32_t power = 0;
	uint64_t rest = ns;
	for (uint32_t step = 32; step; step /= 2) {
		if (!(rest >> step))
			continue;
		rest >>= step;
		power += step;
	}
	if (power < 3)
		return (uint32_t)ns;
	uint32_t bucket = (power - 2) * 8 + ((uint32_t)(ns >> (power - 3)) & 7);
	return bucket < KERNEL_TIMES ? bucket : KERNEL_TIMES - 1;
}

struct kernel_object { /* KERNEL_OBJECT */
	struct kernel_head head;
	uint64_t id;
	uint32_t mode; /* of its inode: what kind it is */
	/* Of a socket: its family and type, ports and the other side's address. */
	uint16_t family, type, port, other_port;
	uint8_t address[16];
	/* Names on its path, the innermost first, each with its end; of a socket: where it is bound. */
	uint32_t size;
	uint32_t rooted; /* the outermost name is in the root directory */
	char name[KERNEL_OBJECT_NAME];
};

struct kernel_sums {         /* all time of a thread */
	uint64_t begun;      /* since when, CLOCK_MONOTONIC; 0: it is not counted */
	uint64_t blocked_ns; /* off the CPU, waiting */
	uint64_t queued_ns;  /* off the CPU, able to run */
	uint64_t cpu_ns;
};

struct kernel_told { /* no record: what tell_sums() says of a thread */
	uint64_t process, thread;
	uint64_t time;
	struct kernel_sums sums;
};

struct kernel_waits { /* no record: what tell_waiting() says of a thread that is off the CPU */
	struct kernel_off off;
	uint64_t since;                           /* when it left */
	uint64_t registers[KERNEL_REGISTERS + 1]; /* by DWARF number, then the PC */
	uint64_t kernel_frame_count, kernel_frames[KERNEL_OWN_FRAMES];
};

struct kernel_counted { /* KERNEL_COUNTED: as in struct kernel_counters */
	struct kernel_head head;
	uint64_t place;
	uint32_t serial, count;
};

struct kernel_place { /* KERNEL_PLACE: as a copy without a stack */
	struct kernel_head head;
	uint64_t pc;
	uint64_t changes; /* of the process */
};

struct kernel_task { /* KERNEL_FORK, KERNEL_EXEC, KERNEL_EXIT */
	struct kernel_head head;
	uint32_t child_process, child_thread; /* FORK */
	uint32_t last;                        /* EXIT: it was the last thread of the process */
	int32_t status;                       /* EXIT: as wait gives it */
	uint64_t cpu_ns;                      /* EXIT: time on a CPU */
	uint64_t start_ns;                    /* FORK: of the child, CLOCK_BOOTTIME */
	/* FORK, EXEC: as in struct kernel_process, of the child or the process */
	uint64_t changes;
	struct kernel_sums sums; /* EXIT; EXEC: of the program before */
	char comm[KERNEL_COMM];
};
