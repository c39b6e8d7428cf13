/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the kernel's side share. */
#include "collect/internal.h"
#include "collect/kernel.h"
#include "profile/profile.h"

struct bpf_object;
struct bpf_link;
struct maps;
struct kernel_names;
struct perf_event_header;
struct ring_buffer;

#define KERNEL_LISTS 4096u
#define KERNEL_BUCKETS 4096u
#define KERNEL_MORE (8u << 20) /* bytes that are read beyond a copy of a stack, at most */

struct kernel_list { /* a list of modules as the sampler has it */
	const struct library_list *list;
	uint32_t first, count, serial;
	uint64_t jit_low, jit_high;
	bool jit_top;
};

struct kernel_thread {
	struct kernel_thread *next; /* in its bucket */
	struct process *process;
	pid_t tid;
	uint32_t profile; /* its index there + 1; 0: not there yet */
	uint64_t start_ns, end_ns, cpu_ns, handler_ns, handled;
	uint64_t named_ns; /* when its name was looked at last */
	bool drained;      /* a part of its time is in another profile */
	char name[KERNEL_COMM + 1];
};

struct kernel_memo { /* what the sampler's memo is in the profile */
	uint32_t thread, count, room;
	uint32_t placed; /* frames that have a node: a drain takes those of all */
	uint32_t end;    /* of the walk that its outermost frame is of */
	struct {
		uint64_t key;
		uint32_t node;
	} * frames; /* outermost first */
};

#define KERNEL_THREAD_NONE UINT32_MAX

/* Words of a process's memory, which the sampler copied. */
struct kernel_pieces {
	struct {
		uint64_t address, size;
	} pieces[KERNEL_GO + KERNEL_FAR_STACKS];
	uint32_t count;
	uint64_t bytes; /* of all */
	uint64_t g;     /* of Go: the thread's */
	uint64_t words[];
};

struct kernel_waiting { /* a stack that is walked when its code is known */
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

/* A thread of its own empties the ring, so that it never waits for what we do with it. */
struct kernel_reader {
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

struct kernel {
	bool whole;         /* the whole machine is sampled */
	uint32_t max_depth; /* frames of a path */
	struct bpf_object *object;
	struct bpf_link **links;
	size_t link_count;
	struct ring_buffer *ring;
	struct kernel_reader reader;
	int processes, shards;           /* descriptors of maps */
	struct kernel_shard *shard_list; /* the last one is being filled */
	uint32_t shard_count;
	uint64_t shard_bytes, tables_ns; /* of all; when they were begun */
	bool tables_full;
	struct kernel_span *spans; /* the maps' memory */
	struct kernel_module *modules;
	struct recipe *rules;
	struct kernel_room *rooms;
	uint32_t *generation; /* of what it knows by ids of modules */
	unsigned cpus;
	int epoll;                      /* readable when there is something urgent to do */
	int *events;                    /* cpus * event_count descriptors */
	struct tally_reading *readings; /* the same: when tallies began */
	struct kernel_pace {
		uint64_t period, count; /* now; events before that */
		double owed;           /* samples that there should have been besides, until then */
	} * paces;                     /* the same */
	struct bpf_link **event_links; /* the same */
	bool *online;                  /* CPUs that are sampled */
	uint64_t *enabled_ns;          /* for each: how long its first event was when we looked */
	uint64_t cpus_ns;              /* when that was last looked at */
	bool sampling;
	double swing; /* of the rate now: so much of it higher, or lower */
	double ahead; /* of all until now: so much of a usual time between two changes */

	uint32_t every;                   /* one of so many samples is walked */
	struct kernel_counters *counters; /* the map's memory: two tables for each CPU */
	struct kernel_turn *turns;
	uint32_t *side;                 /* which of the two the sampler counts in */
	bool flipped;                   /* the other one is to be emptied */
	uint64_t flipped_ns;            /* when that was last */
	uint64_t count_runs, count_ns;  /* of all turns, until then */
	uint64_t count_mean_ns;         /* what counting a sample took lately */
	struct session_counted counted; /* since the last drain */

	uint32_t spans_used, rules_used, serial;
	uint32_t *rule_slots; /* hash of the rules: their numbers */
	struct kernel_list lists[KERNEL_LISTS];
	uint32_t list_count;
	bool vdso_known;                    /* by the library */
	uint8_t loaded[KERNEL_MODULES / 8]; /* modules whose tables the sampler has */

	struct kernel_notes *notes;             /* of memory maps */
	struct arena *home;                     /* of the processes: nobody counts in it */
	struct process *by_pid[KERNEL_BUCKETS]; /* newest first */
	struct kernel_thread *threads[KERNEL_BUCKETS];
	struct kernel_names *names; /* of the kernel's functions; NULL: not known */
	uint64_t names_stamp;
	struct kernel_memo **memos; /* by number; made when first used */
	unsigned memo_bits;
	struct kernel_waiting *waiting, **waiting_end; /* oldest first */
	uint64_t waiting_bytes;
	uint64_t confused; /* records that made no sense */
	uint64_t lost;     /* samples that are in the profile as such already */
	uint64_t records, record_bytes, copies;
	unsigned builds; /* library_builds, as it was last */
	uint64_t changed_ns, paced_ns, swept_ns, reaped_ns, checked_ns, named_ns, looked_ns;
};

/* kernel_age.c. Whether it has what the sampler needs, for whoever may load programs; where not, `why`. */
bool kernel_is_new_enough(char *why, size_t size);

/* kernel_reader.c */
struct err *reader_open(struct session *s);
/* Gives each record to `take`, in the order in which they came. */
void reader_take(struct session *s, void (*take)(struct session *s, const void *data, size_t size));
/* What the ring gives us: it is kept. Less than 0: there is no room for more. */
int reader_hold(void *reader, void *data, size_t size);
/* Reads what is in the ring now, as far as there is room. */
void reader_sync(struct kernel *k);
/* Waits until the ring is empty. */
void reader_flush(struct session *s);
void reader_close(struct kernel *k);

/* kernel_cpus.c */
/* Which CPUs run now: `online` has k->cpus places. */
void cpus_read(const struct kernel *k, bool *online);
/* Whether it is time to look again. */
bool cpus_due(struct kernel *k);

/* kernel_periods.c */
/* Whether it is time for other periods. */
bool periods_due(const struct session *s);
/* The first time before anything is sampled. */
void periods_change(struct session *s);
/* Notes that the period changes after so many events, of which each `period`th should have been a sample:
   so much of the rate higher it makes good for those that there were not, where that can be. */
double periods_repay(struct kernel_pace *pace, uint64_t count, uint64_t period);

/* kernel_maps.c */
struct err *maps_open(struct kernel *k);
/* From now on what is mapped on this CPU is noted; also anew, where it was switched off meanwhile. */
void maps_watch(struct kernel *k, unsigned cpu);
void maps_leave(struct kernel *k, unsigned cpu);
void maps_close(struct kernel *k);
/* Notes what a record says: one of a mapping, of a new program, or that some were lost. */
void maps_take(struct kernel *k, const struct perf_event_header *header);
/* Notes what has been mapped since. */
void maps_note(struct kernel *k);
/* Keeps the kernel's memory for that from filling up while nobody notes it; for another thread. */
void maps_hold(struct kernel *k);
/* How many records found no room, since the last call. */
uint64_t maps_lost(struct kernel *k);
/* Notes what a process has now that was there before us. */
void maps_scan(struct kernel *k, pid_t pid);
/* Notes that a process began with what its parent had. */
void maps_forked(struct kernel *k, pid_t pid, pid_t parent, uint64_t time);
/* The code that a process had in memory at that time, as noted; false where nothing is. The caller
   frees it. */
bool maps_noted(const struct kernel *k, pid_t pid, uint64_t time, struct maps *out);
/* What a process has now, where that follows from the records alone: it became this program a moment ago,
   nothing was lost since, and all its code is of files. False: it must be asked itself. */
bool maps_young(const struct kernel *k, pid_t pid, struct maps *out);
/* Whether it has become another program since. */
bool maps_executed(const struct kernel *k, pid_t pid, uint64_t since);
/* Whether it has mapped code where other code had been, between two times: libraries that come and go. */
bool maps_replaced(const struct kernel *k, pid_t pid, uint64_t one, uint64_t other);
/* Whether it has mapped code since this was asked last. */
bool maps_changed(const struct kernel *k, pid_t pid);
/* Forgets those that are long gone. `now` is when we began to take records: who maps code after that may
   be told of in those that come next. */
void maps_sweep(struct session *s, uint64_t now);

/* kernel_tables.c */
enum kernel_given { KERNEL_GIVEN, KERNEL_NO_TABLE, KERNEL_NO_ROOM };
bool tables_begin(struct kernel *k); /* with none, at first or anew */
void tables_close(struct kernel *k);
/* A module's table to the sampler, or its beginning, unless it has it. */
enum kernel_given tables_give(struct kernel *k, const struct library_module *m);
/* What it took to walk these frames, where the sampler has tables only in part. */
void tables_need(struct session *s, const uint64_t *keys, uint32_t count);
void tables_take_back(struct kernel *k, uint32_t id);
/* Whether it is time to begin anew. */
bool tables_are_full(const struct kernel *k);

/* kernel_code.c */
/* The memory of a map; NULL: it cannot be had (errno). */
void *kernel_map(struct kernel *k, const char *name, size_t size);
struct err *code_open(struct kernel *k);
void code_close(struct kernel *k);
/* Takes away the lists that processes have in this map; false: none had any. */
bool code_take_lists(int processes);
/* The same for all, and what is known of them here. */
void code_forget_lists(struct session *s);
/* Looks at the code that the process has in memory, and tells the sampler. What was noted of a young one
   will do, which it is not to be relied on for long: code_confirm. */
void code_look(struct session *s, struct process *p);
/* The same by asking the process. */
void code_ask(struct session *s, struct process *p);
/* Asks a process that goes on, where that was put off. */
void code_confirm(struct session *s, struct process *p);
/* Lets the sampler use the list of a process that mapped something while we looked, once it is known that no
   library went meanwhile. */
void code_trust(struct session *s, struct process *p);
/* The same as code_look without waiting for tables: until they are there, samples are not whole, but cost
   little. */
void code_make_do(struct session *s, struct process *p);
/* The code that it had in memory at that time, as far as that was noted; NULL: not known. */
const struct library_list *code_then(struct session *s, const struct process *p, uint64_t time);
/* The key of a place in the code of a list; false where it has none there. */
bool code_key(const struct kernel *k, uint32_t serial, uint64_t address, uint64_t *key);
/* Gives back what is of no use any more, where much has come together. */
void code_sweep(struct session *s);
/* Code of no module will stay so: samples that meet it are not worth a copy of the stack. */
void code_resign(struct session *s, struct process *p);

/* kernel_counters.c */
struct err *counters_open(struct kernel *k);
void counters_close(struct kernel *k);
/* Every now and then, or now, lets the sampler count elsewhere; whether there is something to take. */
bool counters_flip(struct kernel *k, bool now);
void counters_take(struct session *s);
/* What had to make room. */
void counters_take_one(struct session *s, const struct kernel_counted *counted);

/* kernel_tasks.c */
/* A process that was there before us. */
bool tasks_attach(struct session *s, pid_t pid);
/* All of them. */
void tasks_scan(struct session *s);
void tasks_forked(struct session *s, const struct kernel_task *t);
void tasks_executed(struct session *s, const struct kernel_task *t);
void tasks_exited(struct session *s, const struct kernel_task *t);
/* What the process that forked this one has in memory; NULL: not known. */
const struct library_list *tasks_parent_list(struct session *s, const struct process *p);
/* The nearest one that it comes from and that lives: it sees the same files, most probably. 0: none. */
pid_t tasks_relative(const struct session *s, const struct process *p);
bool tasks_known(const struct session *s, pid_t thread);
/* Whether there is such a process, or was a moment ago. */
bool tasks_has(const struct session *s, pid_t process);
/* Forgets what has ended; in a recording of the whole machine a while after that, since the kernel
   goes on working for it. */
void tasks_reap(struct session *s);
/* The thread of a sample, made where it was not known; NULL where there is no memory. */
struct kernel_thread *tasks_find(struct session *s, pid_t process, pid_t thread);
/* Its index in the profile. */
void tasks_close(struct kernel *k);
/* Looks at the names of threads again, of some at a time. */
void tasks_name(struct session *s);
struct err *tasks_keep(struct session *s, struct kernel_thread *t, uint32_t *index);
/* The same for a thread that may have ended since. */
struct err *tasks_keep_again(struct session *s, struct process *p, pid_t tid, uint32_t *index);
/* What stands for a process whose threads are not told apart; NULL: no memory. `changes` tells which of
   the programs that it has been. */
struct process *tasks_process(struct session *s, pid_t process, uint32_t changes);
struct err *tasks_keep_process(struct session *s, struct process *p, uint32_t *index);
/* Samples of it that were handled elsewhere. */
void tasks_add_cost(struct session *s, struct process *p, uint64_t samples, uint64_t ns);
/* Ends all of a process's threads, or (NULL) of all. */
void tasks_finish(struct session *s, const struct process *p);
/* What threads that go on took until now goes into the profile. */
void tasks_settle(struct session *s);
/* The profile is another one from now on. */
void tasks_restart(struct session *s);

/* kernel_copy.c */
struct kernel_copy { /* a stack of which something may be missing */
	pid_t pid;
	uint64_t time, address, size;
	uint64_t *holes; /* KERNEL_HOLES */
	uint8_t *bytes;
};
/* Reads what is missing of it, if that is not too late; beyond its end as much as there is room for
   behind its bytes. */
void copy_complete(struct kernel_copy *copy, uint64_t room);
/* How many bytes the pieces of such a record take. */
uint64_t copy_far_size(const struct kernel_far *far);
/* Into so many bytes; `stacks`: what is behind the snapshot's own. */
void copy_far(const struct kernel_far *far, const uint8_t *stacks, struct kernel_pieces *out);
/* The snapshot in a record, and how many bytes come before it; NULL: there is none, or it is not whole. */
const struct kernel_snapshot *copy_in(const void *record, size_t size, size_t *before);
/* For a walk (struct walk_reader). */
bool copy_read(void *waiting, uint64_t address, uint64_t *out);

/* kernel_paths.c */
void paths_take(struct session *s, const struct kernel_path *path, const uint64_t *keys);
/* `far`: what was copied with it from elsewhere, or NULL. */
void paths_take_snapshot(struct session *s, const struct kernel_snapshot *snapshot,
			 const uint8_t *bytes, const struct kernel_far *far);
/* The same for one that is only counted. */
void paths_take_place(struct session *s, const struct kernel_place *place);
/* Counts of a place whose code is not known yet. */
struct err *paths_wait(struct session *s, struct process *p, uint64_t pc, uint32_t event,
		       uint64_t count);
/* Samples of a place whose callers nobody knows. */
struct err *paths_count_place(struct session *s, struct process *p, uint32_t thread, uint64_t key,
			      uint32_t event, uint64_t count);
/* The process has new code in memory: to look for what is not known may be of use again. */
void paths_hope(const struct session *s, struct process *p);
/* Walks the stacks that were left to us. */
void paths_walk(struct session *s);
/* At the end: those that still wait count without their callers. */
void paths_give_up(struct session *s);
/* The profile is another one from now on. */
void paths_restart(struct kernel *k);
/* Records were lost: no frame of a path before is known any more. */
void paths_forget(struct kernel *k);
/* Tells the library which lists and modules they need. */
void paths_use(struct session *s);
void paths_close(struct kernel *k);
