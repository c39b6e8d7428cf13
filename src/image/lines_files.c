/* SPDX-License-Identifier: Apache-2.0 */
#include "image/lines_files.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((uint64_t)512 << 20)

void lines_files_init(struct lines_files *f)
{
	memset(f, 0, sizeof *f);
	pthread_mutex_init(&f->lock, NULL);
}

void lines_files_free(struct lines_files *f)
{
	for (uint32_t i = 0; i < f->count; i++)
		free(f->pages[i / FILES_PAGE][i % FILES_PAGE]);
	for (size_t i = 0; i < FILES_PAGES; i++)
		free(f->pages[i]);
	free(f->slots);
	pthread_mutex_destroy(&f->lock);
}

const char *lines_files_path(const struct lines_files *f, uint32_t number)
{
	if (number == 0 || number > FILES_PAGE * FILES_PAGES ||
	    !f->pages[(number - 1) / FILES_PAGE])
		return NULL;
	return f->pages[(number - 1) / FILES_PAGE][(number - 1) % FILES_PAGE];
}

static uint64_t hash_of(const char *path, size_t length)
{
	uint64_t hash = 1469598103934665603u;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)path[i]) * 1099511628211u;
	return hash ^ hash >> 29;
}

static bool grow_slots(struct lines_files *f)
{
	size_t count = f->slot_count ? f->slot_count * 2 : 1024;
	uint32_t *slots;
	if ((size_t)f->count * 2 < f->slot_count)
		return true;
	slots = calloc(count, sizeof *slots);
	if (!slots)
		return false;
	for (uint32_t number = 1; number <= f->count; number++) {
		const char *path = lines_files_path(f, number);
		size_t at = hash_of(path, strlen(path)) & (count - 1);
		while (slots[at])
			at = (at + 1) & (count - 1);
		slots[at] = number;
	}
	free(f->slots);
	f->slots = slots;
	f->slot_count = count;
	return true;
}

static uint32_t add_path(struct lines_files *f, const char *path, size_t length)
{
	char ***page = &f->pages[f->count / FILES_PAGE];
	char *copy;
	if (f->count == FILES_PAGE * FILES_PAGES || f->text + length > TEXT_MAX)
		return 0;
	if (!*page)
		*page = calloc(FILES_PAGE, sizeof(**page));
	copy = *page ? malloc(length + 1) : NULL;
	if (!copy)
		return 0;
	memcpy(copy, path, length);
	copy[length] = 0;
	f->text += length;
	(*page)[f->count % FILES_PAGE] = copy;
	return ++f->count;
}

static uint32_t find_or_add(struct lines_files *f, const char *path, size_t length)
{
	size_t at;
	if (!grow_slots(f))
		return 0;
	at = hash_of(path, length) & (f->slot_count - 1);
	for (; f->slots[at]; at = (at + 1) & (f->slot_count - 1)) {
		const char *known = lines_files_path(f, f->slots[at]);
		if (strncmp(known, path, length) == 0 && known[length] == 0)
			return f->slots[at];
	}
	f->slots[at] = add_path(f, path, length);
	return f->slots[at];
}

uint32_t lines_files_number(struct lines_files *f, const char *path, size_t length)
{
	uint32_t number;
	pthread_mutex_lock(&f->lock);
	number = find_or_add(f, path, length);
	pthread_mutex_unlock(&f->lock);
	return number;
}
