/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the kernel's sampler holds, part by part. Each part belongs to the file that it names. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/kernel/bpf/shared.h"
#include "collect/loop.h"
#include "harvest/recording.h"
#include "collect/tally.h"

struct bpf_object;
struct bpf_link;
struct kernel_names;
struct kernel_notes;
struct library_list;
struct process;
struct ring_buffer;

#define KERNEL_LISTS 4096u
#define KERNEL_BUCKETS 4096u

struct process_kernel {              /* tasks.c: more of a process */
	struct process *same_bucket; /* the next older one */
	bool attached;               /* it was there before us */
	bool undescribed;            /* nobody has asked yet what it is called */
	bool executed;               /* it has become a program of its own since it was forked */
	unsigned image;              /* times that it did */
	uint32_t changes;            /* how often it and its parents had, when it became this one */
	uint32_t counted;            /* index + 1 of the thread that counted samples are of */
	/* code.c */
	bool unlooked;  /* its code in memory is new */
	bool makeshift; /* the sampler has a list without all tables, and so has `list` */
	uint64_t list_ns, list_end_ns; /* between which it had what is in `list` */
	uint64_t
		doubtful_ns; /* since it has mapped something meanwhile, and the sampler does not use
				 that; 0: it does */
	uint64_t
		noted_ns; /* when its code was last taken from what was noted; 0: it was asked since */
	/* waiting.c */
	unsigned waiting; /* stacks of it that are not walked yet */
	uint64_t waiting_bytes;
	unsigned
		waits_for; /* library_builds: nothing is new to walk them with before that changes */
};

struct kernel_list { /* code.c: a list of modules as the sampler has it */
	const struct library_list *list;
	uint32_t first, count, serial;
	uint64_t jit_low, jit_high;
	bool jit_top;
};

struct kernel_thread {              /* tasks.c */
	struct kernel_thread *next; /* in its bucket */
	struct process *process;
	pid_t tid;
	uint32_t profile; /* its index there + 1; 0: not there yet */
	uint64_t start_ns, end_ns, cpu_ns, handler_ns, handled;
	uint64_t named_ns; /* when its name was looked at last */
	bool drained;      /* a part of its time is in another profile */
	char name[KERNEL_COMM + 1];
};

struct kernel_memo { /* paths.c: what the sampler's memo is in the profile */
	uint32_t thread, count, room;
	uint32_t placed; /* frames that have a node: a drain takes those of all */
	uint32_t end;    /* of the walk that its outermost frame is of */
	struct {
		uint64_t key;
		uint32_t node;
	} * frames; /* outermost first */
};

#define KERNEL_THREAD_NONE UINT32_MAX

/* copy.c: words of a process's memory, which the sampler copied. */
struct kernel_pieces {
	struct {
		uint64_t address, size;
	} pieces[KERNEL_GO + KERNEL_FAR_STACKS];
	uint32_t count;
	uint64_t bytes; /* of all */
	uint64_t g;     /* of Go: the thread's */
	uint64_t words[];
};

struct kernel_waiting { /* waiting.c: a stack that is walked when its code is known */
	struct kernel_waiting *next;
	struct process *process;
	const struct library_list
		*list;                 /* what the process had when it came, as far as was known */
	uint64_t list_ns, list_end_ns; /* as in the process */
	unsigned image;                /* of the process */
	uint32_t thread;               /* in the profile; KERNEL_THREAD_NONE: drained */
	pid_t tid;
	uint32_t event;
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t registers[KERNEL_REGISTERS], pc;
	uint64_t address, size;
	uint64_t copied; /* bytes that the sampler copied itself; the others were read later */
	uint64_t beyond; /* bytes of the stack that were not copied at first, as far as is known */
	uint64_t edge;   /* while it is walked: the outermost word that was taken of its bytes */
	const uint64_t *inner;        /* frames of the kernel, behind the bytes */
	struct kernel_pieces *pieces; /* what lies elsewhere, behind those; or NULL */
	uint32_t inner_count;
	enum kernel_unborn unborn;
	bool unlisted; /* the sampler did not know its modules */
	bool cut;      /* its stack was not kept */
	bool used;     /* while it is walked: words that were read later */
	bool strict;   /* it is walked without those */
	bool lacks; /* while it is walked: it came to what was not copied, and is not to be had any more */
	uint64_t bare; /* nobody wants its stack: it is only counted, so often */
	uint64_t holes[KERNEL_HOLES];
	uint8_t bytes[];
};

struct kernel_batch { /* records, one after another, each after its length */
	struct kernel_batch *next;
	size_t used, room;
	uint64_t bytes[]; /* the room */
};

/* reader.c: a thread of its own empties the ring, so that it never waits for what we do with it. */
struct kernel_reader {
	struct ring_buffer *ring;
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	pthread_mutex_t reading; /* the ring has one reader at a time */
	pthread_mutex_t lock;
	struct kernel_batch *first, *last; /* oldest first */
	struct kernel_batch *spare;        /* for the next one; or NULL */
	void *scratch;                     /* a record with a stack that is completed; or NULL */
	size_t scratch_room;               /* bytes */
	size_t bytes, bytes_max;
	uint64_t missed; /* records for which there was no memory */
	bool relaxed;    /* only stacks to walk are urgent */
	int urgent;      /* an eventfd, for others to wait on */
	int wake;        /* an eventfd, to end its own waiting */
};

struct kernel_shard {
	uint32_t *words;
	size_t room, used; /* words */
};

struct kernel_tables {             /* tables.c */
	int shards;                /* descriptor of the map */
	struct kernel_shard *list; /* the last one is being filled */
	uint32_t count;
	uint64_t bytes, begun_ns; /* of all; when they were begun */
	bool full;
	struct kernel_module *modules; /* the maps' memory */
	struct recipe *rules;
	uint32_t rules_used;
	uint32_t *rule_slots;               /* hash of the rules: their numbers */
	uint8_t loaded[KERNEL_MODULES / 8]; /* modules whose tables the sampler has */
};

struct kernel_code {               /* code.c */
	struct kernel_span *spans; /* the maps' memory */
	struct kernel_room *rooms;
	uint32_t *generation; /* of what it knows by ids of modules */
	uint32_t spans_used, serial;
	struct kernel_list lists[KERNEL_LISTS];
	uint32_t list_count;
	bool vdso_known; /* by the library */
};

struct kernel_pace {            /* of an event on a CPU */
	uint64_t period, count; /* now; events before that */
	double owed;            /* samples that there should have been besides, until then */
};

struct kernel_events { /* cpus.c: one after another for each CPU */
	int *fds;
	struct tally_reading *readings; /* when tallies began */
	struct kernel_pace *paces;
	struct bpf_link **links;
	struct tally tallies[ARENA_METRICS_MAX]; /* of those that are closed */
	bool *online;                            /* CPUs that are sampled */
	uint64_t *enabled_ns; /* for each: how long its first event was when we looked */
	uint64_t looked_ns;   /* when that was last looked at */
	/* periods.c */
	double swing; /* of the rate now: so much of it higher, or lower */
	double ahead; /* of all until now: so much of a usual time between two changes */
	uint64_t changed_ns, paced_ns;
};

struct kernel_counting {                  /* counters.c */
	struct kernel_counters *counters; /* the map's memory: two tables for each CPU */
	struct kernel_turn *turns;
	uint32_t *side;                 /* which of the two the sampler counts in */
	bool flipped;                   /* the other one is to be emptied */
	uint64_t flipped_ns;            /* when that was last */
	uint64_t runs, ns;              /* of all turns, until then */
	uint64_t mean_ns;               /* what counting a sample took lately */
	struct recording_counted since; /* the last drain */
};

struct kernel_tasks {                           /* tasks.c */
	struct process *by_pid[KERNEL_BUCKETS]; /* newest first */
	struct kernel_thread *threads[KERNEL_BUCKETS];
	uint64_t reaped_ns, checked_ns;
};

struct kernel_paths {               /* paths.c */
	struct kernel_memo **memos; /* by number; made when first used */
	unsigned memo_bits;
};

struct kernel_queue {                        /* waiting.c */
	struct kernel_waiting *first, **end; /* oldest first */
	uint64_t bytes;
};

struct kernel {
	struct recording *recording;
	bool whole;         /* the whole machine is sampled */
	uint32_t max_depth; /* frames of a path */
	uint32_t every;     /* one of so many samples is walked */
	unsigned cpus;
	bool sampling;
	int epoll; /* readable when there is something urgent to do */
	struct watch watch;

	struct bpf_object *object; /* object.c */
	struct bpf_link **links;
	size_t link_count;
	int processes; /* descriptor of the map */

	struct kernel_reader reader;
	struct kernel_events events;
	struct kernel_tables tables;
	struct kernel_code code;
	struct kernel_counting counting;
	struct kernel_notes *notes; /* mapped.c */
	struct kernel_tasks tasks;
	struct kernel_paths paths;
	struct kernel_queue waiting;
	struct kernel_names *names; /* of the kernel's functions; NULL: not known */
	uint64_t names_stamp;

	uint64_t confused; /* records that made no sense */
	uint64_t lost;     /* samples that are in the profile as such already */
	uint64_t records, record_bytes, copies;
	unsigned builds; /* library_builds, as it was last */
	uint64_t named_ns, looked_ns;
};
