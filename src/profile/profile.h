/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording: what was run and where, modules, metrics, processes and
 * threads, one context tree, and for each node the values of each thread. The
 * same struct is built by a collector, written to a file (doc/format.md), read
 * back, merged. Strings and arrays belong to the profile.
 *
 * Invariants: node 0 is the root; a node's parent has a smaller index; indices
 * into modules, threads, processes, metrics and nodes are in range (checked by
 * profile_read). Module 0 is "no module".
 *
 * Counting appends; `values`, `spans`, `wakes`, `edges` and `counted` are ordered, each key once, after profile_settle (and
 * after profile_read, profile_parse, profile_write and profile_pack). profile_child and
 * the others that add may move the arrays.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/coverage.h"

struct buf;
struct err;
struct profile;

/* More than this of each is refused: by what adds, and by readers. */
#define PROFILE_METRIC_MAX 256
#define PROFILE_LOST_MAX 1024 /* further reasons are counted as "other" */
#define PROFILE_NODE_MAX (1u << 25)
#define PROFILE_VALUE_MAX (1u << 26)
#define PROFILE_SPAN_MAX (1u << 20)     /* more become fewer: see profile_time */
#define PROFILE_WAKE_MAX (1u << 20)     /* of more, it is not known who woke */
#define PROFILE_EDGE_MAX (1u << 21)     /* more are left out */
#define PROFILE_COUNTED_MAX (1u << 22)  /* functions whose paths were counted */
#define PROFILE_PATH_MAX (1u << 20)     /* paths of a function that were taken */
#define PROFILE_PATH_SUM_MAX (1u << 26) /* of all functions and contexts of a file */
#define PROFILE_CONTEXT_MAX (1u << 22)  /* calling contexts of functions with paths */
#define PROFILE_GRAPH_MAX (1u << 24)    /* bytes of what says how a function is made */
#define PROFILE_TABLE_MAX (1u << 24)    /* modules, processes, threads; names of all modules */
#define PROFILE_STRING_MAX (1u << 20)   /* bytes; what is longer is cut */

enum profile_module_kind {
	PROFILE_NONE, /* code of no module; with the path "(lost)": of one that was damaged */
	PROFILE_FILE,
	PROFILE_VDSO,
	PROFILE_JIT, /* made at run time; `names` tells what is known; belongs to `process` */
	PROFILE_KERNEL,
	/* A file of source that an interpreter runs. Of an address, the upper half stands for the function, and the
	   lower half is the line; `names` has the functions. Its nodes are PROFILE_EXACT. */
	PROFILE_SCRIPT,
	/* No code, but what a program reads and writes: its path says what kind it is, and which ("file /etc/hosts",
	   "pipe"). Its nodes are PROFILE_EXACT; `names` says what was done, by address. */
	PROFILE_OBJECT,
	PROFILE_KINDS,
};
#define PROFILE_SCRIPT_LINE(address) ((uint32_t)(address))
#define PROFILE_SCRIPT_HOST \
	"_PyEval_EvalFrameDefault" /* runs such functions; they stand in its place */

struct profile_name { /* a function of a JIT module; of others for when their file is gone */
	uint64_t start, size;
	const char *name;
};

struct profile_module {
	uint8_t kind;
	const char *path;           /* as the process saw it */
	const char *build_id;       /* hex; "" where there is none */
	uint32_t process;           /* JIT: whose; else 0 */
	const char *problem;        /* why it could not be unwound, or "" */
	uint64_t until;             /* in memory only, where several are one: its own profile_end */
	struct profile_name *names; /* ascending by start */
	size_t name_count;
};

struct profile_metric {
	const char *name;         /* "cpu-clock" */
	const char *unit;         /* what is counted: "ns", "faults", … */
	uint64_t period;          /* of that unit per sample; what one stands for: profile_period */
	bool user_only;           /* code in the kernel was not counted */
	struct coverage coverage; /* what share of the time it was counted */
};

struct profile_process {
	int32_t pid, parent;
	const char *name;          /* what it is called: profile/process_name.h */
	const char *command;       /* its arguments joined by spaces */
	int32_t rank;              /* MPI; -1: none */
	uint64_t start_ns, end_ns; /* since the recording began */
	int32_t status;            /* as waitpid gives it; -1: not known */
};

struct profile_thread {
	uint32_t process;
	int32_t tid;
	const char *name;
	uint64_t start_ns, end_ns;
	uint64_t cpu_ns;     /* while it was sampled */
	uint64_t handler_ns; /* in our handler */
	uint64_t handled;    /* samples */
	/* Off the CPU, exactly: waiting, and able to run. 0: not counted. */
	uint64_t blocked_ns, queued_ns;
};

enum profile_node_kind {
	PROFILE_ROOT,
	PROFILE_CALL,    /* `address` is a return address: the call is right before it */
	PROFILE_EXACT,   /* `address` is the instruction that was interrupted */
	PROFILE_PARTIAL, /* below the root: the callers of its children are not known; `address`
			    is the reason (enum walk_end) */
};

struct profile_node {
	uint32_t parent;
	uint32_t module;
	uint64_t address; /* the module's own; of module 0 and JIT modules the process's */
	uint8_t kind;
};

/* Samples (sums of weights) of one node in one thread. Ordered by node, thread, metric. */
struct profile_value {
	uint32_t node, thread, metric;
	uint64_t count;
};

/* The time line: a while in which a thread was in one context, by its samples of one metric. Ordered
   by thread and start; those of a thread do not overlap. A thread was not seen to work where it has
   none. */
struct profile_span {
	uint64_t start_us, duration_us; /* since the recording began */
	uint32_t thread, node, metric;
	uint32_t samples; /* by weight */
	uint32_t waker;   /* of a wait: 1 + enum profile_waker, who ended it; 0: not known */
};

/* Who ended the waits of one node in one thread: who woke the thread. Ordered by node, thread, metric, waker. */
enum profile_waker {
	PROFILE_WAKER_INTERRUPT, /* of a timer or another device */
	PROFILE_WAKER_KERNEL,    /* a thread of the kernel */
	PROFILE_WAKER_OUTSIDER,  /* a thread that is not recorded */
	PROFILE_WAKERS,          /* from here on: + the index of a thread */
};
struct profile_wake {
	uint32_t node, thread, metric;
	uint32_t waker;  /* enum profile_waker */
	uint64_t count;  /* samples; a part of the node's value */
	uint64_t waited; /* of these: while the waker waited itself */
};

/* Where threads went next after a sample, as far as their code was followed (a trail). Of the trails that began at
   one instruction: how often they went from a branch to another instruction of the same module. Where `module`
   is 0: how many trails began there. Ordered by begin_module, begin, module, from, to. */
struct profile_edge {
	uint32_t begin_module, module;
	uint64_t begin, from, to; /* addresses of the modules */
	uint64_t count;
};

/* A function whose paths were counted, or that was to be. Ordered by module, address, reason and graph. */
struct profile_path {
	uint64_t number, count; /* at least 1 */
};
struct profile_sampled_path {
	uint64_t number, value;
	uint64_t
		sure; /* of the value: samples that were on this path for sure. The rest was shared out by counts */
};
struct profile_sampled { /* of a function, what was sampled meanwhile, without what it calls */
	const char *metric, *unit;
	uint64_t samples;
	uint64_t placed;                    /* of these: on paths that were taken */
	uint64_t sure;                      /* of these: on a path that is known */
	uint64_t value;                     /* of all samples */
	struct profile_sampled_path *paths; /* that have any, ascending by number */
	size_t path_count;
};
#define PROFILE_SAMPLED_MAX 8u /* metrics of a function */

struct profile_counted {
	uint32_t module;
	uint64_t address;   /* its entry, of the module */
	const char *name;   /* as symbols have it, or "" */
	const char *reason; /* why it was refused, and the rest is empty; "": it was counted */
	uint64_t entries;   /* calls */
	uint64_t unknown;   /* paths of which it is not known which ones they were */
	uint8_t *
		graph; /* its blocks, edges and cuts, as doc/format.md says: paths/graph_bytes.h reads it */
	size_t graph_size;
	struct profile_path *paths; /* those that were taken, ascending by number */
	size_t path_count;
	struct profile_sampled *sampled; /* each metric once */
	size_t sampled_count;
};

/* A function that was counted, as it was called: a tree, each after its caller. Its counts are in those of the function, too. */
#define PROFILE_CONTEXT_OUTSIDE 0u /* called by nobody that was counted */
#define PROFILE_CONTEXT_ASTRAY 1u  /* it is not known by whom */
#define PROFILE_CONTEXT_FIRST 2u   /* and from here on, index of the caller */
struct profile_context {
	uint32_t parent;
	uint32_t module;  /* of the function */
	uint64_t address; /* its entry */
	uint64_t
		site; /* the address of the call in the caller; 0: code that is not counted called, and the caller called that */
	uint64_t entries, unknown;  /* as in struct profile_counted */
	struct profile_path *paths; /* ascending by number */
	size_t path_count;
};

/* Samples that are in no tree, by reason. */
struct profile_lost {
	const char *reason;
	uint64_t count;
};

struct profile {
	/* what was run */
	const char *command; /* as typed, joined by spaces */
	const char *directory, *host, *kernel, *machine /* "aarch64" */, *version;
	const char *cpu;     /* as base/cpu_id.h says it; "": not known */
	uint64_t start_time; /* seconds since 1970 */
	uint64_t duration_ns;
	uint64_t hz;          /* as asked for */
	uint64_t delivery_ns; /* what a sample costs outside of the handler, measured */
	uint64_t stolen_ns;   /* of all CPUs, while their host ran something else; 0: not known */
	uint32_t unwind;      /* enum recipes_mode */
	bool complete;        /* false: written while the command was still running */
	bool shortened; /* its source left callers of rare samples out (store/shorten.h); in no file */
	const char *note; /* what the reader must know about reliability, or "" */
	bool timed;       /* a time line was asked for */
	uint64_t
		untimed; /* samples that are not on it: there was no room, or they came while it was read */
	uint64_t forks;     /* processes that were forked while paths were counted */
	uint64_t coarse_us; /* shorter whiles of the time line were joined; 0: none */

	struct profile_module *modules;
	size_t module_count;
	struct profile_metric *metrics;
	size_t metric_count;
	struct profile_process *processes;
	size_t process_count;
	struct profile_thread *threads;
	size_t thread_count;
	struct profile_node *nodes;
	size_t node_count;
	struct profile_value *values;
	size_t value_count;
	struct profile_span *spans;
	size_t span_count;
	struct profile_wake *wakes;
	size_t wake_count;
	struct profile_edge *edges;
	size_t edge_count;
	struct profile_counted *counted;
	size_t counted_count;
	struct profile_context *contexts;
	size_t context_count;
	struct profile_lost *lost;
	size_t lost_count;

	struct profile_private *own; /* hash of nodes, memory of strings */
};

/* An empty profile: a root and module 0. */
struct err *profile_new(struct profile **out);
void profile_free(struct profile *profile); /* NULL is fine */
/* When the recording ended, in seconds since 1970; 0: not known. */
uint64_t profile_end(const struct profile *profile);

/* Says where it is made, and when: on this host, in this directory, from now on. */
void profile_set_origin(struct profile *profile);

/* A string of the profile's own, equal ones once; never NULL ("" where memory runs out). */
const char *profile_string(struct profile *profile, const char *text);

/* Each appends a copy (its strings are copied too) and sets *index. */
struct err *profile_add_module(struct profile *p, const struct profile_module *m, uint32_t *index);
struct err *profile_add_metric(struct profile *p, const struct profile_metric *m, uint32_t *index);
struct err *profile_add_process(struct profile *p, const struct profile_process *x,
				uint32_t *index);
struct err *profile_add_thread(struct profile *p, const struct profile_thread *t, uint32_t *index);

/* The child of `parent` that is this frame, made where there was none. */
struct err *profile_child(struct profile *p, uint32_t parent, enum profile_node_kind kind,
			  uint32_t module, uint64_t address, uint32_t *node);
/* Adds many: nodes[0] is the root, and the parent of each other is an earlier one of these. to[i] becomes its number
   in the profile. Faster than one by one if the profile is large. */
struct err *profile_add_tree(struct profile *p, const struct profile_node *nodes, size_t count,
			     uint32_t *to);
/* Names for those functions of a module that have nodes: `find` tells the one at an address, NULL
   where there is none. Names that it had before go. */
typedef const char *profile_find_name(const void *context, uint64_t address, uint64_t *start,
				      uint64_t *size);
void profile_name_module(struct profile *p, uint32_t module, profile_find_name *find,
			 const void *context);
/* Adds the name of one function, if the module does not have it. */
struct err *profile_name_function(struct profile *p, uint32_t module, uint64_t start, uint64_t size,
				  const char *name);
/* Adds to a value (which ends at UINT64_MAX). Nothing is added where `count` is 0. */
struct err *profile_count(struct profile *p, uint32_t node, uint32_t thread, uint32_t metric,
			  uint64_t count);
/* Adds to a wake. Nothing is added where its count is 0. */
struct err *profile_wake(struct profile *p, const struct profile_wake *wake);
/* Adds to an edge. Nothing is added where its count is 0. */
struct err *profile_edge(struct profile *p, const struct profile_edge *edge);
/* Adds a function whose paths were counted, with copies of all it has. Functions with the same graph at the same place are one,
   after profile_settle. */
struct err *profile_count_paths(struct profile *p, const struct profile_counted *function);
/* Adds a calling context, with a copy of its paths. Its caller must be there. Equal ones are one, after profile_settle. */
struct err *profile_add_context(struct profile *p, const struct profile_context *context);
/* Moves the values of a metric from node i to to[i], of the first `count` nodes; 0: they stay. */
struct err *profile_move(struct profile *p, uint32_t metric, const uint32_t *to, size_t count);
/* Puts a sample on the time line: `weight` periods that ended at `ns` since the recording began. In
   any order. Those that follow each other in one context become one span; where no sample of the
   thread came for more than two periods, there is a gap. Where there are more than PROFILE_SPAN_MAX
   spans, those that lie within the same `coarse_us` become one, with all their samples and the
   context of one of them by chance, as if there had been fewer samples; that length is doubled until
   they are few enough. */
struct err *profile_time(struct profile *p, uint32_t node, uint32_t thread, uint32_t metric,
			 uint64_t ns, uint64_t weight);
/* The same of a while whose beginning and end are known. */
struct err *profile_time_span(struct profile *p, const struct profile_span *span);
/* How long a sample of the metric stands for, about; 0: it is a moment. */
uint64_t profile_step_us(const struct profile *p, uint32_t metric);
/* Puts `values` in order, each (node, thread, metric) once, and `spans`: to be called before reading
   them in a profile that was counted in. At once where there is nothing to do. */
struct err *profile_settle(struct profile *p);
struct err *profile_lose(struct profile *p, const char *reason, uint64_t count);

/* Everything of `from` into `into`: equal modules, metrics and paths become one, processes and
   threads stay apart; a metric that was not counted all of the time in one of them keeps its sum, and its
   parts about; times are since each recording began. Into an empty profile this is a
   copy. After an error `into` is sane, and has a part of it. */
struct err *profile_merge(struct profile *into, const struct profile *from);
/* The same without putting the values in order, for many in a row: profile_settle does it. */
struct err *profile_append(struct profile *into, const struct profile *from);

/* What a sample of the metric stands for, of its unit: its period, or more where it was not counted all
   of the time. */
uint64_t profile_period(const struct profile *p, uint32_t metric);

/* Some events have several metrics: `alloc` counts samples, and `alloc.bytes` what these stand for. Returns
   the metric that counts the samples of a metric's event; mostly that is itself. */
uint32_t profile_sampled(const struct profile *p, uint32_t metric);
/* Returns the metric that people want to see first: what samples stand for, if they do not stand for time. */
uint32_t profile_main(const struct profile *p);

/* Sums: samples of a metric in the tree; of those, with partial paths for one reason. */
uint64_t profile_samples(const struct profile *p, uint32_t metric);
uint64_t profile_partial(const struct profile *p, uint32_t metric, unsigned reason);

/* Writes the file as a whole: first beside it, then in its place, so that a reader (and a crash)
   sees the old one or the new one. */
struct err *profile_write(const struct profile *p, const char *path);
/* The same bytes appended to a buffer. */
struct err *profile_pack(const struct profile *p, struct buf *out);
/* Reads a file. What is damaged is left out and *damage (malloc'ed, NULL where all is well) says
   in one line what is missing; an error where nothing can be used. */
struct err *profile_read(const char *path, struct profile **out, char **damage);
/* What the reader can do without; NULL: nothing. A source that has much more than that is read faster. */
struct profile_spare {
	bool threads;  /* to which thread a sample belongs */
	bool pathless; /* metrics of samples without their call paths */
	/* These metrics, and the callers of rare samples, if there are more contexts than this; 0: neither. */
	size_t rare_above;
};
#define PROFILE_MANY 1000000 /* contexts, more than a person looks at */
struct err *profile_read_without(const char *path, const struct profile_spare *spare,
				 struct profile **out, char **damage);
/* Names that begin with `prefix` are no files: profile_read asks `read` for them. For one place, which
   is known when the program starts. */
typedef struct err *profile_reader(const char *name, const struct profile_spare *spare,
				   struct profile **out);
void profile_source(const char *prefix, profile_reader *read);
bool profile_has_source(const char *name);
/* The same from bytes. */
struct err *profile_parse(const void *bytes, size_t size, struct profile **out, char **damage);
