/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Samples of functions whose paths were counted: in a profile, and at the end of a section "paths" of a file (doc/format.md). */
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct cursor;
struct decoder;
struct profile;
struct profile_counted;

/* Frees what a function has of them. */
void sampled_free(struct profile_counted *function);
/* Gives `to` copies of those that `from` has. False: there is no memory; what it has is to be freed. */
bool sampled_copy(struct profile *p, const struct profile_counted *from,
		  struct profile_counted *to);
/* Whether they can be joined: they are not of too many metrics. */
bool sampled_may_join(const struct profile_counted *x, const struct profile_counted *y);
/* Adds those of the same function. False: there is no memory, and some may be added already. */
bool sampled_join(struct profile_counted *into, struct profile_counted *from);
/* Whether they fit the function. */
bool sampled_is_good(const struct profile_counted *function);

/* Appends those of a function, which is the `index`th of its section, with the index of the one before. Returns how many. */
size_t sampled_put(struct buf *raw, const struct profile_counted *function, size_t index,
		   size_t *last);
/* Reads what sampled_put has written, for functions of the profile from the one at `first` on. */
void sampled_read(struct decoder *d, struct cursor *c, size_t first);
