/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files that read have in common. */
#include "store/internal.h"
#include "store/read.h"

/* The rows (kind, reason, samples) of a statement, appended. */
struct err *losses_read(struct store *store, struct profile *strings, sqlite3_stmt *rows,
			struct store_loss **list, size_t *count);

/* The spans of a choice, ordered by epoch and start; *ids malloc'ed. */
struct span_list {
	struct span_item {
		int64_t id, epoch, start_ms, end_ms;
	} * items;
	size_t count;
	int64_t from_ms, to_ms, longest_ms;
};
struct err *spans_list(struct store *store, const struct read_choice *choice,
		       struct span_list *out);

/* How much of the time events were counted in all of them. */
struct covered;
struct err *covered_spans(struct store *store, const struct span_list *list, struct covered *out);

/* Tables of what rows refer to, filled as it is asked for. */
struct names {
	struct store *store;
	struct profile *strings;
	struct read_image *images; /* [0]: no image */
	size_t image_count;
	struct read_process *processes; /* [0]: nobody known */
	size_t process_count;
	struct store_event *events;
	size_t event_count;
	struct number_map {
		struct number_slot *slots; /* a power of two */
		size_t count, room;
	} image_map, process_map, event_map;
};
struct err *names_open(struct names *names, struct store *store);
void names_close(struct names *names);
/* Gives them to `out`, and closes the rest. */
void names_hand_over(struct names *names, struct read_samples *out);
/* Places of numbers of the database; what it does not have any more gets a row that says so. */
struct err *names_image(struct names *names, uint64_t id, uint32_t *place);
struct err *names_process(struct names *names, uint64_t id, uint32_t *place);
struct err *names_event(struct names *names, uint64_t id, uint32_t *place);

/* Is a sample there wanted? */
struct wanted {
	const struct read_choice *choice;
	signed char *images, *processes; /* by place: 0 not known yet, 1 yes, -1 no */
	size_t image_room, process_room;
};
bool wanted_sample(struct wanted *wanted, const struct names *names, uint32_t process,
		   uint32_t image, uint64_t address);
void wanted_free(struct wanted *wanted);
