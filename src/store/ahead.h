/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The call paths of some spans, one epoch after the other. Another thread unpacks the next epoch while the
   caller works on this one: both take about as long, if there are very many paths. */
#include "store/calltree.h"
#include "store/reading.h"

struct ahead;

struct ahead_epoch {
	struct calltree tree;
	struct pack_path *rows; /* of all its spans; each has a node of the tree */
	size_t count;
	/* If rows are added up (see below): whose they were, each once for a span. */
	uint64_t *processes;
	size_t process_count;
};

/* `list` must stay, and is ordered by epoch. `shorten`: as store/shorten.h says. `add_up`: rows with the same
   node and event are one, of process 0. */
struct err *ahead_open(struct store *store, const struct span_list *list, bool shorten, bool add_up,
		       struct ahead **out);
/* The next epoch, valid until the next call; NULL at the end. */
struct err *ahead_next(struct ahead *ahead, const struct ahead_epoch **out);
void ahead_close(struct ahead *ahead); /* NULL is fine */
