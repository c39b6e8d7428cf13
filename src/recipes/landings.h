/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One exception table at a time: inside recipes/, and for tests that make such
 * tables by hand. Users call cfi_landings.
 */
#include "recipes/cfi.h"
#include "recipes/cfi_section.h"

struct landings {
	struct image *image;
	const struct image_segment *segments; /* landing pads must be code */
	size_t segment_count;
	struct cfi_landing *items;
	size_t count, capacity;
	uint64_t sites_left; /* call sites that may still be read: entries may share tables */
	bool out_of_memory;
};

/* Adds the call sites of the table at `bytes`, entry->lsda is its address. Damage ends it. */
void landings_read_table(struct landings *landings, const struct cfi_entry *entry,
			 const uint8_t *bytes, size_t size);
void landings_sort(struct landings *landings);
