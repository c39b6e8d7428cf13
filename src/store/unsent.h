/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a server for many hosts has not got yet. A database that is sent on knows
 * how far that came; spans after that are neither merged nor removed, so that
 * each is sent as it was counted, and the file is where they wait while the
 * server is away.
 *
 *    unsent_begin(store, &state);                       the one who writes
 *    unsent_list(reader, state.sent, …);  unsent_read   the one who sends, with a store of its own
 *    unsent_note(store, &state);                        the one who writes
 */
#include "store/read.h"

struct unsent_state {
	uint64_t source;   /* this file's number among all files: by chance */
	int64_t sent;      /* the last span that the server has, or that was given up */
	uint64_t given_up; /* samples that no span says yet: the next after `sent` will, as lost */
};

/* From now on spans wait to be sent: those that are new, or that waited already. A file that came to another
   machine as a copy becomes another source, so that a server does not take one for the other. */
struct err *unsent_begin(struct store *store, const char *machine, struct unsent_state *out);
struct err *unsent_note(struct store *store, const struct unsent_state *state);
/* Nothing is sent on any more. */
struct err *unsent_end(struct store *store);

struct unsent_span {
	int64_t id, start_ms;
	uint64_t bytes; /* in the file */
	uint64_t samples;
};
/* Those after `after`, oldest first, at most `room`; *bytes of all that wait. */
struct err *unsent_list(struct store *store, int64_t after, struct unsent_span *out, size_t room,
			size_t *count, uint64_t *bytes);

struct unsent_path {
	uint32_t node, process, event;
	uint64_t count;
};
struct unsent_node {
	uint32_t parent, image;
	uint64_t address;
	uint8_t kind;
};

/* One span with all that it refers to. Images and processes are places in `names`, whose first of each
   stands for "none"; events are places in epoch.totals. */
struct unsent {
	int64_t id, start_ms, end_ms, intervals;
	struct store_cost cost;
	struct read_epoch epoch; /* attributes; `totals` are those of the span */
	struct read_samples
		names; /* images with their symbols, processes, counts, losses, strings */
	struct unsent_path *paths;
	size_t path_count;
	struct unsent_node *nodes; /* of the whole epoch; [0] is the root; parents come first */
	size_t node_count;
};
struct err *unsent_read(struct store *store, int64_t id, struct unsent *out);
void unsent_free(struct unsent *unsent);
/* Gives the memory back that reading one after the other takes. */
void unsent_forget(struct store *store);
