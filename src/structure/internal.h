/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of structure/ know of each other. */
#include <pthread.h>

#include "structure/control.h"
#include "structure/descriptors.h"
#include "structure/extents.h"
#include "structure/store.h"
#include "structure/structure.h"

struct inlines;
struct lines;
struct symbols;

struct structure {
	struct image *image, *debug;
	struct structure_options options;
	struct extents extents;
	struct store store;
	struct structure_procedure **found; /* by procedure: what structure_find gave out */
	/* What is needed to find out more than the cache knows. */
	bool ready;
	struct symbols *symbols;
	struct lines *lines;
	struct inlines *inlines;
	struct control_module control;
	pthread_mutex_t lock; /* of what follows */
	bool described;
	struct descriptors descriptors;
	char damage[200];
};

/* One procedure, from scratch. The result is the caller's (structure_procedure_free); its strings
   are owned by `structure`. Several threads may do this at once. */
struct err *structure_analyze(struct structure *structure, uint32_t procedure,
			      struct structure_procedure **out);

/* Where all procedures of the module are written; read when first asked for. */
struct err *structure_descriptors(struct structure *structure, const struct descriptors **out);
