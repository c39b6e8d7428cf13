/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts by number, equal ones once, as formats refer to them. Start with `= {0}`.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/lookup.h"

struct strings {
	struct string_entry *all;
	size_t count, room;
	struct lookup by_hash;    /* of the text -> the newest entry with it */
	struct lookup by_pointer; /* texts that stay where they are: quick */
	bool failed;              /* there was no memory: numbers since then are 0 */
};

/* The number of a text, which is copied; the first one has 0. NULL is "". */
uint32_t strings_add(struct strings *strings, const char *text);
/* The same for a text that stays as it is as long as `strings` is used. */
uint32_t strings_add_fixed(struct strings *strings, const char *text);
const char *strings_get(const struct strings *strings, uint32_t number);
void strings_free(struct strings *strings);
