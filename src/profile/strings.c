/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's strings: in blocks that never move, equal ones once. */
#include "profile/own.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE 65536

static const char empty[] = ""; /* of every profile, so that equal strings are one here too */

struct string_block {
	struct string_block *next;
	size_t used, room;
	char text[];
};

static uint64_t hash_bytes(const char *text, size_t size)
{
	uint64_t hash = size, word;
	for (; size >= sizeof word; size -= sizeof word, text += sizeof word) {
		memcpy(&word, text, sizeof word);
		hash = own_mix(hash ^ word);
	}
	word = 0;
	memcpy(&word, text, size);
	return own_mix(hash ^ word);
}

static bool grow_table(struct profile_private *own)
{
	size_t room = own->string_room ? own->string_room * 2 : 256;
	struct string_slot *slots = calloc(room, sizeof *slots);
	if (!slots)
		return false;
	for (size_t i = 0; i < own->string_room; i++) {
		const struct string_slot *old = &own->strings[i];
		size_t at = old->hash & (room - 1);
		if (!old->text)
			continue;
		while (slots[at].text)
			at = (at + 1) & (room - 1);
		slots[at] = *old;
	}
	free(own->strings);
	own->strings = slots;
	own->string_room = room;
	return true;
}

static char *store(struct profile_private *own, const char *text, size_t size)
{
	struct string_block *block = own->blocks;
	char *place;
	if (!block || block->room - block->used <= size) {
		size_t room = size >= BLOCK_SIZE / 4 ? size + 1 : BLOCK_SIZE;
		block = malloc(sizeof *block + room);
		if (!block)
			return NULL;
		block->used = 0;
		block->room = room;
		block->next = own->blocks;
		own->blocks = block;
	}
	place = block->text + block->used;
	memcpy(place, text, size);
	place[size] = 0;
	block->used += size + 1;
	return place;
}

const char *own_string(struct profile *p, const char *text, size_t size)
{
	struct profile_private *own = p->own;
	uint64_t hash;
	size_t at;
	if (size == 0)
		return empty;
	if (size > PROFILE_STRING_MAX)
		size = PROFILE_STRING_MAX;
	if (own->string_count * 2 >= own->string_room && !grow_table(own))
		return NULL;
	hash = hash_bytes(text, size);
	for (at = hash & (own->string_room - 1); own->strings[at].text;
	     at = (at + 1) & (own->string_room - 1)) {
		const struct string_slot *slot = &own->strings[at];
		if (slot->hash == hash && !strncmp(slot->text, text, size) && !slot->text[size])
			return slot->text;
	}
	text = store(own, text, size);
	if (!text)
		return NULL;
	own->strings[at] = (struct string_slot){text, hash};
	own->string_count++;
	return text;
}

const char *profile_string(struct profile *p, const char *text)
{
	const char *own = text ? own_string(p, text, strlen(text)) : empty;
	return own ? own : empty;
}

bool own_keep(struct profile *p, const char **text)
{
	*text = *text ? own_string(p, *text, strlen(*text)) : empty;
	return *text != NULL;
}

void own_strings_free(struct profile_private *own)
{
	while (own->blocks) {
		struct string_block *next = own->blocks->next;
		free(own->blocks);
		own->blocks = next;
	}
	free(own->strings);
}
