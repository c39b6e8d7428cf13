/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of a session share.
 *
 *    session.c    opening, the event loop, snapshots, the end
 *    sampler.h    who samples: agents.c, or kernel.c (collect/kernel.h)
 *    door.c       how agents find it
 *    bell.c       what targets ring when there is something to look at
 *    talk.c       the socket: HELLO and MODULES
 *    library.c    modules, their tables, lists of them
 *    arenas.c     the memory that targets count in: looking for what has changed
 *    processes.c  who they are, when they end
 *    sampling.c   the perf events of a thread
 *    inside.c     those of them that come while the kernel works for it
 *    harvest.c    from a thread's tree to the profile
 *    unwalked.c   samples that a target left for us to walk
 *    times.c      the time lines of threads
 *    drain.c      what came until now as a profile of its own
 *
 *    session --< arena --< process          a program image and the children that it forked
 *                     \--< thread           for each record in the arena that is in use
 *
 * A process belongs to one arena. When it execs, the new image says HELLO and is a
 * process of its own, in a new arena, with the same pid; the old one has ended.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "collect/session.h"
#include "collect/tally.h"
#include "library/library.h"
#include "profile/profile.h"
#include "safe/wire.h"

#define SESSION_ARENA_SIZE (128ull << 20)
/* More where there is a time line. So many chunks are more than there can be threads with samples:
   then some can always be given back, however many are full. */
#define SESSION_TIMES_SIZE (32ull << 20)
#define SESSION_DEPTH 32768u /* frames of a path, unless told */
#define SESSION_TICK_NS 100000000ull

/* What an entry of the epoll belongs to: each such object begins with one. */
enum watch {
	WATCH_SOCKET,
	WATCH_CLIENT,
	WATCH_TIMER,
	WATCH_BELL,
	WATCH_PROCESS,
	WATCH_KERNEL,
	WATCH_INSIDE,
};

struct client {
	enum watch watch;
	struct client *next;
	int fd;
	uint64_t since_ns;
};

struct events { /* of a thread: descriptors */
	bool open;
	int periodic[ARENA_METRICS_MAX];
	int once;              /* the first event's sample by chance; -1: none (any more) */
	struct inside *inside; /* NULL: none */
};

struct process {
	enum watch watch;
	struct process *next, *previous; /* in the arena */
	struct arena *arena;
	pid_t pid; /* as we see it */
	pid_t own; /* as it sees itself: another one in a namespace of its own */
	pid_t parent;
	int pidfd;        /* -1: there was no descriptor for it */
	bool gone;        /* ended, or replaced */
	bool replaced;    /* by a new image: the process goes on as another one of ours */
	uint16_t machine; /* ELF machine of its code: another one than ours in an emulator */
	bool foreign; /* a number that is not one of ours: in a namespace that we do not see into */
	uid_t user;
	char name[96]; /* profile/process_name.h */
	char file[64]; /* the name of its file, when it was named */
	bool named;    /* it goes on with that name, whatever it calls itself */
	char *command;
	int32_t rank, status;
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
	int64_t start_ms;          /* since 1970; 0: nobody has asked yet */
	char *container;           /* the same; NULL: none */
	uint64_t described_ns;     /* when its name was looked at last */
	const struct library_list *list;
	uint64_t looked_ns;    /* when its memory was looked at for the sake of a sample */
	uint32_t useless;      /* how often in a row nothing was new */
	uint32_t profile;      /* its index there + 1; 0: not there yet */
	uint32_t more_threads; /* index + 1 of what stands for the threads beyond the limit */
	bool unnamed_code;     /* it ran code of no module */
	/* for the kernel's side */
	bool unlooked;                 /* its code in memory is new */
	uint64_t list_ns, list_end_ns; /* between which it had what is in `list` */
	uint64_t
		doubtful_ns; /* since it has mapped something meanwhile, and the sampler does not use
				 that; 0: it does */
	uint64_t
		noted_ns; /* when its code was last taken from what was noted; 0: it was asked since */
	bool attached;    /* it was there before us */
	struct process *same_bucket; /* the next older one */
	bool undescribed;            /* nobody has asked yet what it is called */
	unsigned waiting;            /* stacks of it that are not walked yet */
	uint64_t waiting_bytes;
	bool makeshift; /* the sampler has a list without all tables, and so has `list` */
	unsigned
		waits_for; /* library_builds: nothing is new to walk them with before that changes */
	bool executed;     /* it has become a program of its own since it was forked */
	uint32_t changes;  /* how often it and its parents had, when it became this one */
	uint32_t counted;  /* index + 1 of the thread that counted samples are of */
	unsigned image;    /* times that it did */
	struct events early; /* of its first thread, until its record is there */
};

struct thread {
	struct process *process;
	uint32_t chunk, generation; /* of its record */
	pid_t tid;                  /* as we see it */
	struct events events;
	uint64_t opened_ns, attended_ns, changed_ns;
	uint64_t samples;
	uint64_t clock_samples, clock_count; /* when a sample was missed first */
	bool clock_watched, clock_known;
	unsigned clock_renewed; /* times since the last sample */
	uint32_t profile;       /* its index there + 1; 0: not there yet */
	uint32_t times_read;    /* bytes of the first chunk of its time line */
	char name[16];
};

struct arena {
	struct arena *next;
	int fd;
	struct arena_header *header;
	uint64_t size;
	uint32_t changes;                /* of the header, as seen last */
	uint64_t lost[ARENA_LOST_KINDS]; /* of the header, in the profile already */
	bool kernel;                     /* a home of processes that the kernel samples */
	bool namespaced;                 /* numbers of processes in it may mean others to us */
	struct process *processes;
	struct thread *threads;
	size_t thread_count, thread_room;
	uint16_t *thread_of; /* for each chunk the index in `threads` + 1 */
	uint64_t inode;      /* of the memory: how to tell who has it mapped */
	uint64_t checked_ns; /* whether threads have ended, last */
	uint64_t tried_ns;   /* to give it back, last */
};

/* Where trees are put together. */
#define HARVEST_USERS 64
struct harvest {
	struct profile *profile;
	uint32_t *modules;                /* by module id: index in the profile + 1 */
	uint32_t jit_process, jit_module; /* the last one asked for: index + 1 */
	uint32_t kernel_module;           /* index */
	bool kernel;                      /* there is one */
	struct session_process *owners; /* of the profile's processes, where there will be drains */
	size_t owner_room;
	bool bounded; /* there will be drains: what processes write of themselves is not all read */
	struct harvest_budget {
		uint32_t user;
		size_t left;      /* bytes */
	} budgets[HARVEST_USERS]; /* the last one is for all others */
	size_t budget_count;
};

struct bell {         /* what targets ring: waited for by a small thread */
	int fd, ring; /* ring: an eventfd */
	_Atomic uint32_t *word;
	pthread_t waiter;
	bool waiting;
	_Atomic bool stop;
	_Atomic uint32_t pause_us; /* between two rings at least */
};

struct session {
	struct session_options options;
	const struct sampler *sampler;
	enum watch socket_watch, timer_watch, bell_watch, kernel_watch, inside_watch;
	char *directory, *socket, *preload;
	int lock; /* the directory, which nobody else may take for a dead one's */
	int epoll, listener, timer;
	struct rlimit files;
	bool files_raised;
	struct bell bell;
	struct library *library;
	struct kernel *kernel; /* NULL: agents sample */
	struct arena *arenas;
	size_t arena_count;
	struct client *clients; /* oldest last */
	size_t client_count;
	struct harvest harvest;
	struct unwalked *unwalked;      /* NULL: none is waiting */
	struct times *times;            /* NULL: none was on a time line yet */
	uint64_t walking_ns;            /* CPU time that they took */
	uint64_t start_ns, start_ticks; /* of the recording, or what comes after the last drain */
	int64_t boot_ms;                /* since 1970 */
	uint64_t random;
	uint64_t busy_threads;

	struct inside_rings *inside_rings; /* NULL: nothing is sampled by events in agents */
	bool few_counters;                 /* of the CPU: for one of each event at most */
	size_t inside_count;               /* of threads */
	bool timers_interrupt;             /* those of this kernel end calls of the program */

	struct tally tallies[ARENA_METRICS_MAX]; /* of events that are closed */
	uint64_t due[ARENA_METRICS_MAX];         /* samples, by what was counted */

	/* for session_status and the notes */
	uint64_t samples, partial, lost;
	unsigned process_count, thread_count, idle_threads;
	struct {
		unsigned unsampled_threads, refused_processes, go_programs, damaged_trees, unkept;
		unsigned restricted_programs, lost_maps, outside_threads;
		const char *nameless_kernel; /* why its functions have no names */
		int unsampled_error;
		char go_name[64];
		char *refused_why;
	} notes;
};

/* Waits for a descriptor, too; the object that it belongs to begins with `watch`. */
struct err *session_watch(struct session *s, int fd, enum watch *watch);
/* As a profile has it: since the recording began. */
uint64_t session_since(const struct session *s, uint64_t ns);
void session_set_tick(struct session *s, uint64_t ns);
/* What a profile says of itself, at its beginning and its end. */
void session_describe(struct session *s);
void session_complete(struct session *s, struct profile *p, bool complete);
/* How much of the time its events were counted; `anew`: what comes now is for the next profile. */
void session_cover(struct session *s, struct profile *p, bool anew);

/* drain.c */
/* When it began, as the kernel tells it at a fork. */
void drain_born(const struct session *s, struct process *p, uint64_t boot_ns);
/* Whose the process is. */
void drain_describe(struct session *s, struct process *p);
/* Notes that, for the process's place in the profile. */
struct err *drain_note(struct session *s, const struct process *p);

/* bell.c */
struct err *bell_open(struct bell *bell);
void bell_hear(struct bell *bell);       /* so that its descriptor is quiet until it rings again */
void bell_ring_again(struct bell *bell); /* for what was heard and not done yet */
void bell_close(struct bell *bell);
void bell_hurry(void);

/* door.c */
struct err *door_open(struct session *s);
/* Nobody comes in any more. */
void door_close(struct session *s);

/* talk.c */
void talk_accept(struct session *s);
void talk_hear(struct session *s, struct client *client);
/* Those that have been silent for too long (all: whoever is there). */
void talk_hang_up(struct session *s, bool all);

/* arenas.c */
struct err *arena_open(struct session *s, struct arena **out);
/* Looks at every record of an arena: new threads, ended ones, samples to walk. */
void arena_scan(struct session *s, struct arena *a);
/* While we wait for tables: new threads are sampled, samples to walk put aside. */
void arena_greet(struct session *s, struct arena *a);
/* Harvests and gives back all records of a process. */
void arena_finish(struct session *s, struct process *p);
/* Frees those that nobody uses any more. */
void arena_sweep(struct session *s);
void arena_close(struct session *s, struct arena *a);
/* The record in a chunk, or NULL where there can be none. */
struct arena_thread *arena_record(const struct arena *a, uint32_t chunk);
/* Calls `each` for the records of one process (NULL: of all) that are in use. */
void arena_each(struct session *s, struct arena *a, const struct process *process,
		void (*each)(struct session *s, struct arena *a, uint32_t chunk,
			     struct arena_thread *record, void *context),
		void *context);
struct thread *arena_thread_of(const struct arena *a, uint32_t chunk);

/* processes.c */
/* The program that said HELLO. */
struct process *process_add(struct session *s, struct arena *a, pid_t pid, pid_t own);
/* A child that one of the arena's processes forked, as its record names it. */
struct process *process_add_forked(struct session *s, struct arena *a, pid_t own, pid_t parent);
/* One that the kernel samples: how it ends is told by its records. `parent` may be NULL. */
struct process *process_add_sampled(struct session *s, struct arena *a, pid_t pid,
				    const struct process *parent);
struct process *process_find(struct session *s, pid_t pid); /* alive, of any arena; or NULL */
bool process_is_alive(const struct process *p);
/* The number that we know a thread by. */
pid_t process_tid(const struct process *p, pid_t own);
/* Field `number` (from 1) of /proc/PID/stat, or -1. The name before may hold anything. */
long process_stat_field(pid_t pid, unsigned number);
/* Its name as the kernel has it. */
void process_read_comm(struct process *p);
/* Reads anew what the process is called, if it can still be read. */
void process_describe(struct session *s, struct process *p, bool first);
/* Harvests everything that it counted and forgets it. */
void process_end(struct session *s, struct process *p);
/* Looks at names again, of some at a time. */
void process_tick(struct session *s, uint64_t now);
/* Makes its list of modules the present one and tells all of its threads. */
struct err *process_look(struct session *s, struct process *p,
			 const struct library_module **executable);
/* Its index in the profile. */
struct err *process_keep(struct session *s, struct process *p, uint32_t *index);

/* sampling.c */
/* What comes in the process's own code is told apart from what comes while the kernel works for it. */
bool sampling_is_split(const struct session *s, const struct process *p);
/* Samples of the event that a signal brings are all that there are. */
bool sampling_is_whole(const struct session *s, const struct process *p,
		       const struct session_event *event);
/* A signal may come while the kernel works for the process. */
bool sampling_interrupts(const struct session *s, const struct process *p,
			 const struct session_event *event);
/* Whether a POSIX timer of this kernel ends a transfer that has begun. */
bool sampling_timers_interrupt(void);
void sampling_open(struct session *s, struct thread *t);
void sampling_close(struct session *s, struct thread *t);
/* For the first thread of a program that waits for our answer; sampling_open adopts it. */
void sampling_open_early(struct session *s, struct process *p);
void sampling_close_early(struct session *s, struct process *p);
/* Every SESSION_TICK_NS: now and then another period, and events that went silent anew. */
void sampling_tick(struct session *s);
/* Adds what the events that are open have counted until now, to one for each event. */
void sampling_tally(const struct session *s, struct tally *tallies);
/* What a signal costs apart from its handler, in nanoseconds. */
uint64_t sampling_delivery(void);

/* inside.c */
/* Where the kernel tells what comes while it works for a target. */
struct err *inside_start(struct session *s);
int inside_fd(
	const struct session *s);    /* readable where something has come; -1: nothing ever does */
void inside_hear(struct session *s); /* takes that, to be walked */
void inside_stop(struct session *s);
/* For the thread, with these periods, one for each event; not enabled. `first`: of the first event's
   sample by chance; 0: none. NULL where it cannot be: errno says why. */
struct inside *inside_open(struct session *s, pid_t tid, const uint64_t *periods, uint64_t first);
/* All samples of the event come so, also those in the thread's own code. */
bool inside_is_whole(const struct session *s, size_t event);
void inside_enable(const struct inside *in);
/* Whose they are. Until this is known they wait. */
void inside_adopt(struct session *s, struct inside *in, struct arena *a, uint32_t owner);
void inside_change_period(const struct inside *in, size_t event, uint64_t period);
/* The sample by chance will not come any more. */
void inside_end_chance(struct inside *in);
uint64_t inside_samples(const struct inside *in);
int inside_event(const struct inside *in, size_t event); /* its descriptor */
/* Takes what has come, to be walked. */
void inside_take(struct session *s, struct inside *in);
/* The same for all threads. */
void inside_take_all(struct session *s);
/* Takes what is there and closes; NULL is fine. */
void inside_close(struct session *s, struct inside *in);

/* harvest.c */
struct err *harvest_begin(struct session *s, struct harvest *h);
void harvest_end(struct harvest *h);
/* Adds a record's tree. `last`: it is complete, the numbers for the summary are added too. */
void harvest_record(struct session *s, struct harvest *h, struct process *p, struct thread *t,
		    struct arena *a, const struct arena_thread *record, bool last);
void harvest_lost(struct session *s, struct harvest *h, struct arena *a, bool last);
/* The child of `parent` for a frame (cct/cct.h key) of this process. */
struct err *harvest_child(struct session *s, struct harvest *h, struct process *p, uint32_t parent,
			  uint64_t key, uint32_t *node);
struct err *harvest_thread(struct session *s, struct harvest *h, struct process *p,
			   struct thread *t, const struct arena_thread *record, uint32_t *index);
/* Where in the profile the samples of a thread that goes on go to; false where they cannot. */
bool harvest_find_thread(struct session *s, struct thread *t, const struct arena_thread *record,
			 uint32_t *index);
/* The same for a thread that is described already. */
struct err *harvest_add_thread(struct session *s, struct harvest *h, struct process *p,
			       struct profile_thread *wanted, uint32_t *index);
/* Names for functions of the kernel. */
struct kernel_names;
void harvest_name_kernel(struct harvest *h, const struct kernel_names *names);
/* Names for functions of files that nobody can open later. */
void harvest_name_files(struct session *s, struct harvest *h);
/* Names for code of no module that was met in the process. */
void harvest_name_code(struct harvest *h, const struct process *p);
/* Weights of the first event in the part of a tree that is partial. */
uint64_t harvest_count_partial(const struct arena *a, const struct arena_thread *record);

/* times.c */
/* Takes what a thread has noted since the last time. */
void times_take(struct session *s, struct arena *a, struct thread *t, struct arena_thread *record);
/* That of all live threads. */
void times_take_all(struct session *s);
void times_close(struct session *s);

/* unwalked.c */
/* Whether the record has such samples. */
bool unwalked_any(const struct arena_thread *record);
/* Takes them out of the arena, so that the thread can leave more. `owner`: the record's chunk. */
void unwalked_keep(struct session *s, struct arena *a, struct process *p, uint32_t owner,
		   struct arena_thread *record);
/* One of which the stack is here: `from` without its chunks. `copied`: bytes of it that are of the sample's time, the
   rest was read later. False where there is no room. */
bool unwalked_add(struct session *s, struct arena *a, uint32_t owner,
		  const struct arena_snapshot *from, const uint8_t *stack, size_t copied);
/* Walks all that were taken out. Threads may be elsewhere in memory afterwards. */
void unwalked_walk(struct session *s);
