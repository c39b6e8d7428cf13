/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Profiles with counted paths, for the commands that show them. */
#include <stddef.h>

#include "paths/result.h"

struct buf;
struct err;
struct profile;

struct stored_paths {
	struct profile *profile;
	struct path_result result;
};

/* Reads them, and adds them up. Appends lines to `notes` about what is damaged, and about files that functions are of but that are not
   the same any more. To be freed in any case. */
struct err *stored_paths_read(const char *const *paths, size_t count, struct stored_paths *out,
			      struct buf *notes);
void stored_paths_free(struct stored_paths *stored);
