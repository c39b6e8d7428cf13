/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A listing traced, and each line's state compared with what the listing says of it. */
#include "flow/trace.h"

#include <elf.h>
#include <stdlib.h>

#include "listing.h"
#include "made_image.h"

/* What is known before; lists end with 0. NULL: that a procedure begins at the first line. */
struct given {
	uint64_t entries[4], hints[4], noreturn[4];
	struct trace_landing landing;
	struct trace_slot slot;
	const char *data; /* at 0x2000 */
	size_t data_size;
};

static inline size_t list_length(const uint64_t *list)
{
	size_t n = 0;
	while (list[n])
		n++;
	return n;
}

static inline struct trace *run(struct image *image, const struct isa *isa,
				const struct trace_input *input)
{
	struct trace *t;
	struct err *e = trace_run(image, isa, input, &t);
	if (e)
		fail_msg("%s", err_text(e));
	return t;
}

static inline bool is_start(const struct trace *t, uint64_t at)
{
	const uint64_t *starts;
	size_t count = trace_starts(t, &starts);
	for (size_t i = 0; i < count; i++)
		if (starts[i] == at)
			return true;
	return false;
}

static inline void check(const struct trace *t, const struct isa *isa, const struct line *lines,
			 size_t count)
{
	const char *expected = "";
	char words[WORDS_MAX];
	uint64_t at = LISTING_START;
	for (size_t i = 0; i < count; at += strlen(lines[i++].bytes) / 2) {
		bool start = !strcmp(lines[i].expected, "start");
		expected = expected_words(isa, lines[i].expected, expected);
		if (!strcmp(expected, "?"))
			continue;
		if (strcmp(state_words(isa, trace_at(t, at), words), expected) != 0)
			fail_msg("%s: %s, expected %s", lines[i].text, words, expected);
		if (is_start(t, at) != start)
			fail_msg("%s: %s", lines[i].text, start ? "no start" : "a start");
	}
}

static inline void trace(const struct isa *isa, const struct line *lines, size_t count,
			 const struct given *given)
{
	static const struct given first = {.entries = {LISTING_START}};
	uint8_t code[LISTING_MAX];
	struct made_section sections[] = {
		{.name = ".text", .address = LISTING_START, .bytes = code, .code = true},
		{.name = ".rodata", .address = 0x2000},
	};
	struct image *image;
	struct trace *t;
	given = given ? given : &first;
	sections[0].size = listing_bytes(isa, lines, count, code);
	sections[1].bytes = given->data;
	sections[1].size = given->data_size;
	image = made_image(isa->elf_machine, 0, sections, given->data ? 2 : 1);
	t = run(image, isa,
		&(struct trace_input){
			.entries = given->entries,
			.entry_count = list_length(given->entries),
			.hints = given->hints,
			.hint_count = list_length(given->hints),
			.noreturn = given->noreturn,
			.noreturn_count = list_length(given->noreturn),
			.slots = &given->slot,
			.slot_count = given->slot.address != 0,
			.landings = &given->landing,
			.landing_count = given->landing.target != 0,
		});
	check(t, isa, lines, count);
	trace_free(t);
	image_close(image);
}
