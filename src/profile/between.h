/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two snapshots of one recording, of which `now` is the later: what is where,
 * and what was counted in between. The same thread or path may have another
 * index in each, though mostly it has not.
 */
#include <stddef.h>
#include <stdint.h>

struct err;
struct profile;
struct profile_value;

#define BETWEEN_NONE UINT32_MAX

/* Where each module, or thread, of `before` is in `now`; BETWEEN_NONE: nowhere. Malloc'ed; NULL without
   memory. */
uint32_t *between_modules(const struct profile *before, const struct profile *now);
uint32_t *between_threads(const struct profile *before, const struct profile *now);

/* The values of `now` less those of `before`, malloc'ed, ordered as in a profile. The values of both
   must be in order (profile_settle). */
struct err *between_values(const struct profile *before, const struct profile *now,
			   struct profile_value **values, size_t *count);
