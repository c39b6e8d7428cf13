/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The database of continuous profiling: one SQLite file that a daemon writes
 * into all the time and that people ask later (store/read.h).
 *
 *    store_open(path, STORE_WRITE, &store);
 *    store_begin_epoch(store, &attributes, &epoch);
 *    for each drained interval:
 *            store_add(store, epoch, &interval, &added);
 *            store_tidy(store, &policy, now_ms, 1, &tidied);
 *
 * Samples belong to an *epoch*: a while in which host, kernel and events were
 * the same. What one drain brought is an *interval*: one transaction, kept
 * whole or not at all. Intervals of an epoch are numbered upwards from 1; one
 * with a number that was there already counts nothing, so a writer that does
 * not know whether it got through adds it again. Older intervals are merged,
 * step by step, into coarser spans of time (store_tidy), so that no moment has
 * much to write.
 *
 * Times are milliseconds since 1970. Numbers of images, processes, nodes and
 * events are places in the arrays of that call; the store finds out which of
 * them it knows.
 *
 * One process at a time should add; others may read and prune meanwhile. A
 * store is for one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/coverage.h"

struct err;
struct store;

enum store_mode {
	STORE_READ,
	STORE_WRITE,  /* must be there */
	STORE_CREATE, /* made where it is not there, for its owner only */
};

/* A file of a newer version is refused; one of an older version is migrated when it is opened to
   be written, and refused otherwise. */
struct err *store_open(const char *path, enum store_mode mode, struct store **out);
/* One in memory, of which errors speak by this name. Its intervals may have more rows. */
struct err *store_open_memory(const char *name, struct store **out);
#define STORE_MEMORY_ROWS_MAX (1u << 22)
void store_close(struct store *store); /* NULL is fine */
/* The same without touching the files again: they are damaged. */
void store_abandon(struct store *store);
/* The same where another file has taken its place (store_look): it is completed wherever it is now. */
void store_leave(struct store *store);
/* Whether what was opened is still what stands there: the file, and what is not merged into it yet. False
   where either was removed, moved or replaced. An error where somebody wrote over the file: it is
   damaged then, even if not everywhere. */
struct err *store_look(struct store *store, bool *same);

/* The file that is meant where none is named: $CULPRIT_DB, else /var/lib/culprit/culprit.db. */
const char *store_default_path(void);

/* What kind the last error of this store was, for a writer that goes on. */
enum store_trouble {
	STORE_FINE,
	STORE_FULL,       /* no room on the disk: wait, and add the same interval again */
	STORE_BUSY,       /* another process writes for long: likewise */
	STORE_EPOCH_FULL, /* too many call paths: begin another epoch, and add it there */
	STORE_DAMAGED,    /* the file is damaged, or no database of ours */
	STORE_OTHER,
};
enum store_trouble store_trouble(const struct store *store);

/* ---- epochs ---- */

struct store_event {
	const char *name; /* "cycles" */
	const char *unit; /* what a sample times `period` counts: "ns", "cycles", … */
	uint64_t period;
	uint64_t every; /* one of so many samples has its call path; 0: none has */
	bool user_only; /* code in the kernel is not counted */
};

#define STORE_EVENT_MAX 64

struct store_epoch {
	const char *host, *kernel, *machine /* "aarch64" */, *cpu, *version;
	const char *note; /* what readers must know about reliability, or "" */
	uint32_t cpus;
	uint64_t hz; /* samples per second and CPU, as asked for */
	int64_t start_ms;
	const struct store_event *events;
	size_t event_count;
	bool continues; /* the one before was full (STORE_EPOCH_FULL): both become one later */
};

struct err *store_begin_epoch(struct store *store, const struct store_epoch *epoch, int64_t *id);

/* When the newest span ends; INT64_MIN: there is none. */
struct err *store_newest(struct store *store, int64_t *end_ms);
/* The number of the last interval that an epoch has; 0: none. */
struct err *store_last_interval(struct store *store, int64_t epoch, uint64_t *number);

/* ---- intervals ---- */

/* Numbers of images, processes and nodes count from 1, in the order of the arrays: image 0 is "no
   image", node 0 the root. Events count from 0, as in the epoch. Strings may not be NULL. */
struct store_image {
	uint8_t kind;         /* enum profile_module_kind */
	const char *path;     /* as the process saw it */
	const char *build_id; /* hex; "" where there is none */
	uint32_t process;     /* JIT: whose; else 0 */
};

/* A function that has samples. Those that are known already cost little. */
struct store_symbol {
	uint32_t image;
	uint64_t start, size;
	const char *name; /* as people read it */
};

/* With `pid` 0 it stands for all processes of that name, user and container. */
struct store_process {
	int32_t pid;
	int64_t start_ms;
	const char *name;    /* of its executable, without folders */
	const char *command; /* its arguments joined by spaces; what is long is cut */
	uint32_t user;
	const char *container; /* its id or control group; "" where it is in none */
};

/* A frame of a call path; its parent comes before it. */
struct store_node {
	uint32_t parent, image;
	uint8_t kind; /* enum profile_node_kind, but for the root */
	uint64_t address;
};

/* Samples at an instruction: all of them, whether they have a path or not. An address is the
   image's own; of image 0 and JIT images the process's. */
struct store_count {
	uint32_t process, image, event;
	uint64_t address, count;
};

/* Samples whose call path ends in a node. */
struct store_path {
	uint32_t node, process, event;
	uint64_t count;
};

enum store_loss_kind {
	STORE_LOST,    /* samples that are nowhere else */
	STORE_UNKNOWN, /* samples that are counted, though it is not known whose code they met */
};
struct store_loss {
	enum store_loss_kind kind;
	const char *reason;
	uint64_t samples;
};

/* What collecting cost during the interval. */
struct store_cost {
	uint64_t cpu_ns;      /* of the daemon */
	uint64_t memory;      /* resident bytes of the daemon, at the end */
	uint64_t kernel_ns;   /* in the kernel's part */
	uint64_t kernel_runs; /* how often that ran */
};

struct store_interval {
	uint64_t number; /* greater than that of the interval before */
	int64_t start_ms, end_ms;
	const struct store_image *images;
	size_t image_count;
	const struct store_symbol *symbols;
	size_t symbol_count;
	const struct store_process *processes;
	size_t process_count;
	const struct store_node *nodes;
	size_t node_count;
	const struct store_count *counts; /* in any order; what is equal is added up */
	size_t count_count;
	const struct store_path *paths; /* likewise */
	size_t path_count;
	const struct coverage *coverage; /* by event; further ones were counted all of the time */
	size_t coverage_count;
	const struct store_loss *losses;
	size_t loss_count;
	struct store_cost cost;
};

/* More rows than this in an array of an interval are refused, so that a transaction stays small:
   drain earlier. */
#define STORE_INTERVAL_ROWS_MAX STORE_EPOCH_NODES_MAX
/* With the root and one that is too many there are 2^18, which is what the tree has room for. */
#define STORE_EPOCH_NODES_MAX ((1u << 18) - 2)

/* Adds it, all of it or nothing. *added: false where its number was there already. */
struct err *store_add(struct store *store, int64_t epoch, const struct store_interval *interval,
		      bool *added);

/* ---- keeping it small ---- */

struct store_level {
	uint64_t after_s; /* what is older than this … */
	uint64_t width_s; /* … is merged into spans of this length */
};

#define STORE_LEVELS 4
#define STORE_KEEP_MAX (UINT64_C(10000) * 365 * 86400) /* seconds */
struct store_policy {
	struct store_level levels[STORE_LEVELS]; /* ascending; width 0 ends them */
	uint64_t join_epochs_after_s; /* epochs that ended so long ago become one; 0: never */
	uint64_t keep_s;              /* what is older is removed; 0: nothing */
	uint64_t max_bytes;           /* the oldest is removed until it is smaller; 0: nothing */
};
/* What is done unless told. */
extern const struct store_policy store_policy;

struct store_tidied {
	uint64_t steps;
	uint64_t merged;  /* spans that became part of others */
	uint64_t removed; /* spans that are gone */
	uint64_t joined;  /* epochs that became part of others */
	bool more;        /* there may be more to do */
};

/* Does at most `steps` small transactions of what is due: merging, removing, giving room back.
   Spans of an hour and more no longer tell processes of the same name, user and container apart.
   Adds to *tidied. */
struct err *store_tidy(struct store *store, const struct store_policy *policy, int64_t now_ms,
		       uint64_t steps, struct store_tidied *tidied);

/* Checks everything: the file's pages, and what is packed in it. NULL: all is well; the error says
   what is first found wrong. */
struct err *store_check(struct store *store);
