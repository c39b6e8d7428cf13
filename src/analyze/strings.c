// SPDX-License-Identifier: Apache-2.0
#include "analyze/strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct string_entry {
	char *text;
	uint32_t next; /* with the same hash; LOOKUP_NONE: none */
};

static bool grow(struct strings *s)
{
	if (s->count < s->room)
		return true;
	size_t room = s->room ? s->room * 2 : 64;
	struct string_entry *moved = reallocarray(s->all, room, sizeof *moved);
	if (!moved)
		return false;
	s->all = moved;
	s->room = room;
	return room < LOOKUP_NONE;
}

static uint32_t append(struct strings *s, const char *text, uint64_t hash)
{
	uint32_t number = (uint32_t)s->count;
	char *copy = grow(s) ? strdup(text) : NULL;
	if (copy) {
		s->all[number] = (struct string_entry){copy, lookup_find(&s->by_hash, hash)};
		if (lookup_put(&s->by_hash, hash, number)) {
			s->count++;
			return number;
		}
	}
	free(copy);
	s->failed = true;
	return 0;
}

uint32_t strings_add(struct strings *s, const char *text)
{
	text = text ? text : "";
	uint64_t hash = hash_text(HASH_START, text);
	uint32_t at = lookup_find(&s->by_hash, hash);
	while (at != LOOKUP_NONE && strcmp(s->all[at].text, text) != 0)
		at = s->all[at].next;
	return at != LOOKUP_NONE ? at : append(s, text, hash);
}

uint32_t strings_add_fixed(struct strings *s, const char *text)
{
	uint64_t key = (uint64_t)(uintptr_t)text;
	uint32_t number = lookup_find(&s->by_pointer, key);
	if (number != LOOKUP_NONE)
		return number;
	number = strings_add(s, text);
	if (!lookup_put(&s->by_pointer, key, number))
		s->failed = true;
	return number;
}

const char *strings_get(const struct strings *s, uint32_t number)
{
	return number < s->count ? s->all[number].text : "";
}

void strings_free(struct strings *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->all[i].text);
	free(s->all);
	lookup_free(&s->by_hash);
	lookup_free(&s->by_pointer);
	*s = (struct strings){0};
}
