/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stored_paths.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "paths/files.h"
#include "paths/stored.h"
#include "profile/profile.h"

static struct err *read_one(const char *path, struct profile **out, struct buf *notes)
{
	char *damage = NULL;
	struct err *e = profile_read(path, out, &damage);
	if (damage)
		buf_printf(notes, "damaged: %s\n", damage);
	free(damage);
	if (e)
		return e;
	if (!(*out)->counted_count)
		return err_new("%s has no counts of paths: culprit paths -o FILE -- COMMAND makes "
			       "such a profile",
			       path);
	if (*(*out)->note)
		buf_printf(notes, "%s\n", (*out)->note);
	return NULL;
}

static struct err *read_all(const char *const *paths, size_t count, struct stored_paths *out,
			    struct buf *notes)
{
	struct err *e = read_one(paths[0], &out->profile, notes);
	for (size_t i = 1; i < count && !e; i++) {
		struct profile *more = NULL;
		e = read_one(paths[i], &more, notes);
		if (!e)
			e = profile_append(out->profile, more);
		profile_free(more);
	}
	return e ? e : profile_settle(out->profile);
}

struct err *stored_paths_read(const char *const *paths, size_t count, struct stored_paths *out,
			      struct buf *notes)
{
	size_t left_out = 0;
	*out = (struct stored_paths){0};
	struct err *e = read_all(paths, count, out, notes);
	if (e)
		return e;
	e = path_result_restore(out->profile, &out->result, &left_out);
	if (left_out)
		buf_printf(notes,
			   "damaged, or too large: the counts of %zu function%s are left out\n",
			   left_out, left_out == 1 ? "" : "s");
	if (!e)
		path_files_note(&out->result, notes);
	return e;
}

void stored_paths_free(struct stored_paths *s)
{
	path_result_free(&s->result);
	profile_free(s->profile);
	*s = (struct stored_paths){0};
}
