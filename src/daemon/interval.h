/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What one drain brought, as the database takes it. */
#include <stddef.h>
#include <stdint.h>

#include "collect/session.h"
#include "store/store.h"

struct err;
struct namer;

#define INTERVAL_LOSSES 64

struct interval {
	struct store_interval rows;
	struct session_drained from; /* whose texts the rows have */
	struct store_image *images;
	struct store_symbol *symbols;
	struct store_process *processes;
	struct store_node *nodes;
	uint32_t *node_ids; /* of the profile's nodes: index + 1; 0: it is not among them */
	struct store_count *counts;
	struct store_path *paths;
	struct coverage *coverage;
	struct store_loss losses[INTERVAL_LOSSES];
	uint64_t samples; /* of all events */
};

/* Takes `from`, also where it fails. `boot` tells one boot of the machine from another. Number and
   times are the caller's to set. */
struct err *interval_make(struct session_drained *from, struct namer *namer, const char *boot,
			  struct interval *out);
void interval_free(struct interval *interval);
/* One more reason for samples that are nowhere, or of which something is not known. The text must live
   as long. */
void interval_lose(struct interval *interval, enum store_loss_kind kind, const char *reason,
		   uint64_t samples);
