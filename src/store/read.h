/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a database says. Time is stored in spans, fine ones for what is new and
 * coarser ones for what is old: a question about a while gets the spans whose
 * middle lies in it, and the answer says from when to when these are.
 */
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct profile;
struct profile_spare;

/* ---- epochs ---- */

struct read_total {
	struct store_event event; /* strings belong to the epochs */
	uint64_t samples, walked; /* all; those with a call path */
	struct coverage coverage; /* what share of the time it was counted */
};

struct read_epoch {
	int64_t id, start_ms, end_ms;
	const char *host, *kernel, *machine, *cpu, *version, *note;
	uint32_t cpus;
	uint64_t hz;
	uint64_t joined; /* how many epochs are in it */
	uint64_t spans;
	int64_t finest_ms, coarsest_ms; /* lengths of its spans */
	struct read_total *totals;      /* by event */
	size_t total_count;
	struct store_loss *losses;
	size_t loss_count;
	struct store_cost cost; /* sums; `memory` is the most */
	uint64_t busy_ms;       /* sum of the lengths of its spans */
};

struct read_epochs {
	struct read_epoch *items; /* by start */
	size_t count;
	uint64_t bytes; /* of the file, and what is not merged into it yet */
	struct profile *strings;
};

struct err *read_epochs(struct store *store, struct read_epochs *out);
void read_epochs_free(struct read_epochs *epochs);

/* ---- samples ---- */

struct read_choice {
	int64_t from_ms, to_ms;
	int64_t epoch;        /* 0: any */
	const char *host;     /* NULL: any */
	const regex_t *image; /* its path; NULL: any */
	const regex_t *procedure;
	const char *process;   /* name or number; NULL: any */
	const char *container; /* its beginning; NULL: any */
	int64_t user;          /* -1: any */
};

struct read_image {
	int64_t id;
	uint8_t kind;
	const char *path, *build_id;
	int64_t process;
	struct store_symbol *symbols; /* ascending by start; `image` is not set */
	size_t symbol_count;
};

struct read_process {
	int64_t id;
	int32_t pid;
	int64_t start_ms;
	const char *name, *command, *container;
	uint32_t user;
};

struct read_count {
	uint32_t process, image, event, host; /* places in the arrays below */
	uint64_t address, count;
};

/* Samples by place. Image 0 is "no image", process 0 nobody that is known. */
struct read_samples {
	int64_t from_ms, to_ms; /* what the spans that were used cover; equal: there are none */
	int64_t longest_ms;     /* of them */
	uint64_t spans;
	struct store_event *events;
	struct coverage *coverage; /* of them, of all processes, whatever was chosen */
	size_t event_count;
	struct read_image *images;
	size_t image_count;
	struct read_process *processes;
	size_t process_count;
	const char **hosts;
	size_t host_count;
	struct read_count *counts; /* ordered by image, address, process, event, host */
	size_t count_count;
	struct store_loss *losses; /* of all processes, whatever was chosen */
	size_t loss_count;
	struct profile *strings;
};

struct err *read_samples(struct store *store, const struct read_choice *choice,
			 struct read_samples *out);
void read_samples_free(struct read_samples *samples);

#define READ_NESTING 64 /* functions before an address that are looked at */
/* The function with this address, or NULL. */
const struct store_symbol *read_symbol(const struct read_image *image, uint64_t address);
/* The one that begins last at or before it, whether it reaches that far or not; NULL: none. */
const struct store_symbol *read_symbol_before(const struct read_image *image, uint64_t address);

/* A while as an ordinary recording: its first metrics are the samples that have call paths, with the
   period that stands for those without, too; then, where there are such, all samples by
   instruction alone, "cycles:all". `procedure` and `image` choose by where samples are. An error
   where there are no samples. */
struct err *read_profile(struct store *store, const struct read_choice *choice,
			 const struct profile_spare *spare, struct profile **out);

/* The process that `choice` asks for? */
bool read_wants_process(const struct read_choice *choice, const struct read_process *process);

/* ---- SQL ---- */

enum read_cell_kind { READ_NULL, READ_INTEGER, READ_REAL, READ_TEXT };
struct read_cell {
	enum read_cell_kind kind;
	int64_t integer;
	double real;
	const char *text; /* of each kind, as people read it; "" of READ_NULL */
};

/* Gets each row, and once, before the first, the names of the columns alone (`cells` NULL). */
typedef struct err *read_row(void *context, int columns, const char *const *names,
			     const struct read_cell *cells);

/* Runs one SELECT on the views that doc/culprit-db.1.md describes. The store must have been opened to be
   read; nothing but reading is allowed. */
struct err *read_sql(struct store *store, const char *sql, read_row *row, void *context);
