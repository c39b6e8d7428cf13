/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Hashes for tables in memory: begin with HASH_START, and mix in one thing after
 * another. They are in no file.
 */
#include <stddef.h>
#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_number(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash_number(hash, size);
}

/* NULL is another text than "". */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	size_t size = 0;
	for (; text && text[size]; size++)
		hash = (hash ^ (unsigned char)text[size]) * 0x100000001b3u;
	return hash_number(hash, text ? size + 1 : 0);
}
