/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Everything that the kernel's sampler holds in our process, part by part. Each part belongs to the file
   that its comment names. Only files of this folder include it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/kernel/bpf/shared.h"
#include "collect/kernel/uprobes.h"
#include "collect/loop.h"
#include "harvest/recording.h"
#include "collect/tally.h"

struct bpf_object;
struct bpf_link;
struct kernel_histories;
struct library_list;
struct process;
struct ring_buffer;
struct script_calls;

#define KERNEL_LISTS 4096u
#define KERNEL_BUCKETS 4096u

struct process_kernel {              /* tasks.c: what the kernel's sampler adds to a process */
	struct process *same_bucket; /* the next older one in the hash bucket */
	bool attached;               /* it started before us */
	bool undescribed;            /* its name was not read from /proc yet */
	bool executed;               /* it has exec'd since it was forked */
	unsigned execs;              /* how often it did */
	/* How often it and its parents had exec'd when it became this program. */
	uint32_t changes;
	uint32_t script; /* number of its interpreter + 1; 0: it has none */
	/* Index + 1 of the thread that counted samples go to; 0: none yet. */
	uint32_t counted;
	/* code.c */
	bool unlooked; /* it has new code in memory, which was not looked at yet */
	/* `list` was made, and given to the sampler, without waiting for all tables */
	bool without_tables;
	uint64_t list_ns, list_end_ns; /* it had what is in `list` between these times */
	/* Since when its list is doubtful: it mapped something while we looked, so the sampler does not
	   use the list. 0: the sampler uses it. */
	uint64_t doubtful_ns;
	/* When its list was last made from its history (mapped.c); 0: its memory map was read since. */
	uint64_t by_history_ns;
	/* waiting.c */
	unsigned waiting; /* copies of its stacks that are not walked yet */
	uint64_t waiting_bytes;
	/* library_builds: its copies wait until that changes, since there are no new tables before. */
	unsigned waits_for;
	struct kernel_waiting *parked, **parked_end; /* those of them, oldest first */
	struct process *next_parked;                 /* the next process that has such */
};

struct kernel_interpreters {       /* interpreters.c */
	struct kernel_script *all; /* memory of the BPF map */
	struct python *known;      /* the same, all of it */
	uint32_t count;
};

struct kernel_list { /* code.c: a list of modules as the sampler has it */
	const struct library_list *list;
	uint32_t first, count, serial;
	uint64_t jit_low, jit_high;
	bool jit_top;
};

struct kernel_absence { /* absences.c: samples of the time that a thread was off the CPU */
	uint64_t blocked, queued;
	uint64_t blocked_ns, queued_ns; /* the time itself; it could run at its end */
	/* Who has ended the wait: 1 + enum profile_waker; 0: not known. And which part of the wait the waker has
	   waited itself. */
	uint32_t waker;
	double waited;
};

#define KERNEL_WAITED 32u
struct kernel_waited { /* absences.c: how much of the time a thread has waited, until some moments */
	uint32_t count;
	struct {
		uint64_t time, waited_ns;
	} at[KERNEL_WAITED]; /* in order; the older ones are farther apart */
};

#define KERNEL_ENDED 32u
struct kernel_ended { /* tasks.c: a thread that has ended a moment ago; it may still have woken another */
	pid_t process, tid;
	uint32_t profile; /* index + 1 in the profile; 0: none */
	struct kernel_waited *waits;
};

struct kernel_thread {              /* tasks.c: a thread of a process that is sampled */
	struct kernel_thread *next; /* in the hash bucket */
	struct process *process;
	pid_t tid;
	uint32_t profile; /* index + 1 in the profile; 0: not there yet */
	uint64_t start_ns, end_ns, cpu_ns, handler_ns, handled;
	uint64_t named_ns; /* when its name was last read */
	bool drained;      /* a part of its time is in an earlier profile */
	char name[KERNEL_COMM + 1];
	/* interpreters.c: calls of the sample at that time, which is still to come */
	struct script_calls *calls;
	uint64_t calls_time;
	/* absences.c: time off the CPU, of the sample at that time, which is still to come */
	struct kernel_absence absence;
	uint64_t absence_time;
	struct kernel_waited *waits; /* or NULL */
	struct kernel_io
		io; /* io.c: what it has read or written, of a path that is still to come */
	/* all its time, as far as the sampler has told it, and when it did so last */
	struct kernel_sums sums;
	uint64_t sums_time;
};

/* paths.c: a memo of the sampler (bpf/memo.h), with its nodes in the profile */
struct kernel_memo {
	uint32_t thread, count, room;
	uint32_t with_nodes; /* frames that have a node; a drain sets it to 0 */
	uint32_t end; /* how the walk ended that its outermost frame is from (enum walk_end) */
	struct {
		uint64_t key;
		uint32_t node;
	} * frames; /* outermost first */
};

#define KERNEL_THREAD_NONE UINT32_MAX

/* copy.c: memory of a process that the sampler copied besides the stack: Go's structures and other
   stacks. */
struct kernel_pieces {
	struct {
		uint64_t address, size;
	} pieces[KERNEL_GO + KERNEL_FAR_STACKS];
	uint32_t count;
	uint64_t bytes; /* of all pieces */
	uint64_t g;     /* Go's g of the thread */
	uint64_t words[];
};

struct kernel_waiting { /* waiting.c: a sample that is walked when its code is known */
	struct kernel_waiting *next;
	struct process *process;
	/* The list of the process when the sample came, as far as it was known. */
	const struct library_list *list;
	uint64_t list_ns, list_end_ns; /* as in the process */
	unsigned execs;                /* as in the process, when the sample came */
	/* Index in the profile; KERNEL_THREAD_NONE: not in this profile yet. */
	uint32_t thread;
	pid_t tid;
	uint32_t event;
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t registers[KERNEL_REGISTERS], pc;
	uint64_t address, size;
	uint64_t copied; /* bytes that the sampler copied itself; the others were read later */
	uint64_t beyond; /* bytes of the stack that were not copied at first, as far as is known */
	uint64_t edge;   /* during a walk: the outermost word that was read from `bytes` */
	const uint64_t *kernel_frames; /* frames of the kernel, behind the bytes */
	struct kernel_pieces *pieces;  /* what lies elsewhere, behind `kernel_frames`; or NULL */
	uint32_t kernel_frame_count;
	enum kernel_unborn unborn;
	bool unlisted;    /* the sampler had no list of its modules */
	bool cut;         /* its stack was not kept */
	bool used;        /* during a walk: it has read words that were not copied at once */
	bool copied_only; /* it is walked without such words */
	/* During a walk: it needed words that were not copied, and cannot be read any more. */
	bool missing;
	struct kernel_absence absence; /* of KERNEL_EVENT_OFF */
	struct kernel_io io;           /* of KERNEL_EVENT_IO and KERNEL_EVENT_PROBE */
	uint64_t count; /* not 0: it has no stack, and stands for so many samples of a place */
	struct script_calls *calls; /* of interpreted functions; or NULL */
	uint64_t holes[KERNEL_HOLES];
	uint8_t bytes[];
};

struct kernel_batch { /* records, one after another, each behind its length */
	struct kernel_batch *next;
	size_t used, room;
	uint64_t bytes[]; /* `room` of them */
};

/* reader.c: a thread of its own empties the ring, so that the ring never waits for what we do with the
   records. */
struct kernel_reader {
	struct ring_buffer *ring;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	pthread_mutex_t reading; /* only one thread may read the ring at a time */
	pthread_mutex_t lock;
	struct kernel_batch *first, *last; /* oldest first */
	struct kernel_batch *spare;        /* a free batch for the next records; or NULL */
	void *scratch;                     /* a record whose stack is being completed; or NULL */
	size_t scratch_room;               /* bytes */
	size_t bytes, bytes_max;
	uint64_t missed; /* records that were lost for lack of memory */
	bool relaxed;    /* only copies are urgent */
	int urgent;      /* an eventfd: something urgent has come */
	int wake;        /* an eventfd: wakes the thread */
};

struct kernel_shard {
	uint32_t *words;
	size_t room, used; /* in words */
};

struct kernel_tables {             /* tables.c: unwind tables in the sampler's memory */
	int shards;                /* descriptor of the BPF map */
	struct kernel_shard *list; /* the last one is being filled */
	uint32_t count;
	uint64_t bytes, begun_ns; /* of all shards; when the tables were last begun anew */
	bool full;
	struct kernel_module *modules; /* memory of the BPF maps */
	struct recipe *rules;
	uint32_t rules_used;
	uint32_t *rule_slots;               /* a hash table of the rules, by number */
	uint8_t loaded[KERNEL_MODULES / 8]; /* a bit for each module whose table the sampler has */
};

struct kernel_code {               /* code.c: lists in the sampler's memory */
	struct kernel_span *spans; /* memory of the BPF maps */
	struct kernel_mappings *mappings;
	uint32_t *generation; /* changes when ids of modules get new meanings */
	uint32_t spans_used, serial;
	struct kernel_list lists[KERNEL_LISTS];
	uint32_t list_count;
	/* library_builds() when a look last met tables that were not ready; 0: none did. */
	unsigned waits_for;
	bool vdso_known; /* the library has looked at the vDSO */
};

struct kernel_pace {            /* an event on a CPU */
	uint64_t period, count; /* the period now; events that had happened when it was set */
	double owed;            /* samples that were missing until then */
};

struct kernel_events { /* cpus.c: arrays with `event_count` entries for each CPU */
	int *fds;
	struct tally_reading *readings; /* when the tallies began */
	struct kernel_pace *paces;
	struct bpf_link **links;
	struct tally tallies[ARENA_METRICS_MAX]; /* of events that are closed */
	bool *online;                            /* CPUs that are sampled */
	/* For each CPU: how long its first event had been enabled at the last look. */
	uint64_t *enabled_ns;
	uint64_t looked_ns; /* when that was */
	/* periods.c */
	double swing; /* by which part the clock's rate is higher now, or lower */
	/* The sum until now: `swing` times the time it was used, in units of CHANGE_NS. */
	double ahead;
	/* When periods were last changed: of clocks, and of events that a CPU counts. */
	uint64_t changed_ns, paced_ns;
};

struct kernel_counting {                  /* counters.c: samples that are only counted */
	struct kernel_counters *counters; /* memory of the BPF map: two tables for each CPU */
	struct kernel_turn *turns;
	uint32_t *side; /* which of the two the sampler counts in */
	bool flipped;   /* the other table is to be emptied */
	/* When the sampler was last told to count in the other one. */
	uint64_t flipped_ns;
	uint64_t runs, ns;              /* of all turns, until then */
	uint64_t mean_ns;               /* what counting a sample took lately */
	struct recording_counted since; /* totals since the last drain */
};

/* tasks.c: processes and threads by their numbers */
struct kernel_tasks {
	struct process *by_pid[KERNEL_BUCKETS]; /* newest first */
	struct kernel_thread *threads[KERNEL_BUCKETS];
	struct kernel_ended ended[KERNEL_ENDED]; /* in a circle */
	uint32_t ended_next;
	uint64_t reaped_ns, checked_ns;
};

struct kernel_paths {               /* paths.c: the sampler's memos */
	struct kernel_memo **memos; /* by number; allocated when first used */
	unsigned memo_bits;
};

struct kernel_queue {                        /* waiting.c: samples that wait to be walked */
	struct kernel_waiting *first, **end; /* that are new, oldest first */
	struct process *parked;              /* processes whose others wait for tables */
	uint64_t bytes;
};

struct kernel_io_object {                          /* io.c: what a descriptor stands for */
	struct kernel_io_object *next, *same_name; /* in their hash buckets */
	uint64_t id;
	const char *name; /* a string of the profile */
	uint32_t module;  /* its index there; 0: none yet */
};

struct kernel_io_sum {              /* io.c: where the sum of the calls of a path belongs */
	struct kernel_io_sum *next; /* in the hash bucket */
	struct kernel_transfer_key key;
	struct kernel_transfer taken; /* what is in the profile already */
	uint32_t node, thread, end;   /* end: how the walk of the path has ended */
};

struct kernel_io_state { /* io.c: reads and writes */
	struct bpf_link *links[2];
	int transfers; /* descriptor of the BPF map */
	struct kernel_io_object *objects[KERNEL_BUCKETS], *named[KERNEL_BUCKETS];
	struct kernel_io_sum *sums[KERNEL_BUCKETS]; /* by thread */
	size_t object_count;
};

struct kernel_attached { /* probes.c: places that were attached together */
	struct uprobes uprobes;
	bool begins;       /* they are beginnings of functions */
	uint32_t function; /* of this one alone, by number; 0: of several, or of none */
	uint32_t first;    /* of several: one of them, by number; 0: of none */
	pid_t pid;         /* -1: in all processes */
};

struct kernel_piece { /* measures.c: what was taken of a measure */
	uint32_t measure, octave;
	struct kernel_measure then;
};

struct kernel_probe_sum {              /* probes.c: where the sum of the calls of a path belongs */
	struct kernel_probe_sum *next; /* in the hash bucket */
	struct kernel_transfer_key key;
	struct kernel_transfer calls; /* what is in the profile already */
	struct kernel_timing timing;
	uint32_t node, thread, end; /* end: how the walk of the path has ended */
	struct kernel_piece *pieces;
	size_t piece_count, piece_room;
};

struct kernel_probes { /* probes.c: calls of chosen functions */
	struct kernel_attached *all;
	size_t count, room;
	int calls, timings, measures, slows, limits; /* descriptors of the BPF maps */
	struct bpf_link *switched;                   /* measures.c */
	int *counters;                               /* measures.c: perf events */
	size_t counter_count, counter_room;
	pid_t *pids; /* the processes that probes were put into */
	size_t pid_count, pid_room;
	uint64_t judged_ns, judged_cpu_ns; /* governor.c */
	uint64_t settled_ns;
	struct kernel_probe_sum *sums[KERNEL_BUCKETS]; /* by thread */
};

struct kernel_off_events {     /* off.c: time off the CPU */
	int event;             /* one that does nothing; -1: none */
	int64_t preempt_count; /* as in struct kernel_settings */
	struct bpf_link *links[3];
	size_t link_count;
	uint64_t sleepers, sleepers_end; /* the kernel's functions that put threads to sleep */
	uint64_t schedule;               /* the outermost of them; 0: not known */
};

struct kernel {
	struct recording *recording;
	bool whole;         /* the whole machine is sampled */
	bool kernel_frames; /* the kernel's functions are frames, too */
	uint32_t max_depth; /* frames of a path */
	uint32_t every;     /* one of so many samples is walked, the others are counted */
	unsigned cpus;
	bool sampling;
	int epoll; /* readable when there is something urgent to do */
	struct watch watch;

	struct bpf_object *object; /* object.c */
	struct bpf_link **links;
	size_t link_count;
	int processes; /* descriptor of the BPF map */

	struct kernel_reader reader;
	struct kernel_events events;
	struct kernel_tables tables;
	struct kernel_code code;
	struct kernel_counting counting;
	struct kernel_histories *histories; /* mapped.c */
	struct kernel_interpreters interpreters;
	struct kernel_tasks tasks;
	struct kernel_paths paths;
	struct kernel_queue waiting;
	struct kernel_off_events off;
	struct kernel_io_state io;
	struct kernel_probes probes;

	uint64_t unusable; /* samples that could not be used */
	uint64_t lost;     /* lost samples that are in the profile already */
	uint64_t records, record_bytes, copies;
	unsigned builds; /* library_builds, at the last look */
	uint64_t named_ns, looked_ns;
};
