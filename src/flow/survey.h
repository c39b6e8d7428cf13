/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a module tells about where its procedures begin, before any code is
 * followed: symbols, the entry point, initialisers, pointers to code in its
 * data, the stubs of imported functions and where these go before they are
 * bound; and which of these never return.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct image;
struct isa;
struct symbols;
struct trace_slot;

struct survey_stub { /* a PLT stub */
	uint64_t address;
	const char *import; /* the function it jumps to; owned by the image */
};

struct survey {
	uint64_t *entries, *hints, *noreturn; /* ascending, without repeats */
	size_t entry_count, hint_count, noreturn_count;
	struct survey_stub *stubs; /* ascending */
	size_t stub_count;
	struct trace_slot
		*slots; /* ascending; of the module's own procedures and those that never return */
	size_t slot_count;
};

/* `symbols` may be NULL: only what the dynamic linker needs is used. */
struct err *survey_take(struct image *image, const struct isa *isa, const struct symbols *symbols,
			struct survey *out);
void survey_free(struct survey *survey);
