/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two parts, found by what they are:
 *
 *   the table, among constants: for each builtin some words, of which the first two are where it begins in
 *   the code and how long it is. Versions differ in how many words there are.
 *
 *        0 32c ...   340 32c ...   680 7f0 ...   e80 550 ...
 *
 *   the code: at some place the bytes between all of them are padding (0xcc on every CPU).
 *
 * Versions that keep the code in another order than the table are not understood; nothing is found then.
 */
#include "image/v8tab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"

#define BUILTINS_MIN 100u
#define BUILTINS_MAX 65536u
#define WORDS_MIN 2u /* of a builtin in the table */
#define WORDS_MAX 16u
#define ALIGN 32u      /* of builtins */
#define CODE_ALIGN 64u /* of all of them */
#define PADDING_MAX 128u
#define WORD 4u
#define LOOKS_MAX \
	(1u << 24) /* at padding, until the code is given up: it may be made to be found nowhere */

struct bytes {
	const uint8_t *all;
	size_t size;
	uint64_t address;
};

struct layout {
	const uint8_t *entries; /* of little-endian words */
	size_t words, count;
};

static uint32_t word_at(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t start_of(const struct layout *l, size_t i)
{
	return word_at(l->entries + i * l->words * WORD);
}

static uint32_t size_of(const struct layout *l, size_t i)
{
	return word_at(l->entries + i * l->words * WORD + WORD);
}

/* Whether the second of two entries is of the code behind the first. */
static bool follows(const uint8_t *first, const uint8_t *second)
{
	uint32_t start = word_at(first), size = word_at(first + WORD), next = word_at(second);
	return size && word_at(second + WORD) && next > start && next - start >= size &&
	       next - start - size < PADDING_MAX && !(start % ALIGN) && !(next % ALIGN);
}

/* How many entries there are from here on, of so many words. */
static size_t count_entries(const uint8_t *at, size_t size, size_t words)
{
	size_t count = 1, step = words * WORD;
	while (count < BUILTINS_MAX && size >= step + 2 * WORD && follows(at, at + step)) {
		count++;
		at += step;
		size -= step;
	}
	return count;
}

static bool find_layout(const struct bytes *in, struct layout *out)
{
	for (size_t at = 0; in->size - at >= WORDS_MAX * WORD; at += WORD) {
		const uint8_t *first = in->all + at;
		if (word_at(first) || !word_at(first + WORD))
			continue;
		for (size_t words = WORDS_MIN; words <= WORDS_MAX; words++) {
			size_t count = count_entries(first, in->size - at, words);
			*out = (struct layout){first, words, count};
			if (count >= BUILTINS_MIN)
				return true;
		}
	}
	return false;
}

static bool is_padding(const uint8_t *bytes, size_t size)
{
	while (size && *bytes == V8TAB_PADDING) {
		bytes++;
		size--;
	}
	return !size;
}

static bool is_code(const struct layout *l, const uint8_t *code, size_t *looks)
{
	for (size_t i = 0; i + 1 < l->count; i++, ++*looks) {
		uint32_t end = start_of(l, i) + size_of(l, i);
		if (!is_padding(code + end, start_of(l, i + 1) - end))
			return false;
	}
	return true;
}

static bool find_code(const struct layout *l, const struct bytes *in, size_t *out)
{
	uint64_t size = (uint64_t)start_of(l, l->count - 1) + size_of(l, l->count - 1);
	size_t at = -in->address % CODE_ALIGN, looks = 0;
	for (; at < in->size && in->size - at >= size && looks < LOOKS_MAX; at += CODE_ALIGN) {
		*out = at;
		if (is_code(l, in->all + at, &looks))
			return true;
	}
	return false;
}

static void describe(const struct layout *l, uint64_t address, struct v8tab_builtin *out)
{
	for (size_t i = 0; i < l->count; i++)
		out[i] = (struct v8tab_builtin){address + start_of(l, i), size_of(l, i)};
}

static bool read_section(struct image *image, const char *name, struct bytes *out)
{
	const struct image_section *section = image_section(image, name);
	out->all = section ? image_section_bytes(image, section, &out->size) : NULL;
	out->address = section ? section->address : 0;
	return out->all;
}

size_t v8tab_read(struct image *image, struct v8tab_builtin **out)
{
	struct bytes names, constants, code;
	struct layout layout;
	size_t at;
	*out = NULL;
	if (!read_section(image, ".dynstr", &names) ||
	    !memmem(names.all, names.size, V8TAB_EXPORTED, strlen(V8TAB_EXPORTED)) ||
	    !read_section(image, ".rodata", &constants) || !read_section(image, ".text", &code) ||
	    !find_layout(&constants, &layout) || !find_code(&layout, &code, &at))
		return 0;
	*out = calloc(layout.count, sizeof **out);
	if (!*out)
		return 0;
	describe(&layout, code.address + at, *out);
	return layout.count;
}
