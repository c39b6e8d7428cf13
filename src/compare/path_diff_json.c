/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/err.h"
#include "base/json.h"
#include "compare/path_diff.h"
#include "paths/numbering.h"
#include "paths/result.h"
#include "paths/show_parts.h"

static void put_side(struct json *j, const char *key, const char *path, const struct ranking *r)
{
	json_key(j, key);
	json_begin_object(j);
	json_put_string(j, "path", path);
	json_put_u64(j, "functions", r->count - r->refused);
	json_put_u64(j, "refused", r->refused);
	json_put_u64(j, "violated", r->wrong);
	json_put_u64(j, "instructions", r->instructions);
	json_end_object(j);
}

static void put_function_side(struct json *j, const char *key, const struct ranked_function *f)
{
	json_key(j, key);
	if (!f) {
		json_null(j);
		return;
	}
	json_begin_object(j);
	json_key(j, "address");
	json_address(j, f->function->address);
	bool counted = f->function->state == PATH_EXACT;
	json_put_string(j, "reason", counted ? NULL : f->function->reason);
	if (counted) {
		json_put_u64(j, "entries", f->function->entries);
		json_put_u64(j, "instructions", f->instructions);
		json_put_u64(j, "possible", f->function->numbering.path_count);
		json_put_u64(j, "taken", f->flow.taken);
	}
	json_end_object(j);
}

static struct err *put_path_side(struct json *j, const char *key, const struct path_diff_side *side,
				 const struct ranked_function *f)
{
	struct numbering_path path = {0};
	struct err *e = NULL;
	json_key(j, key);
	json_begin_object(j);
	json_put_u64(j, "count", side->count);
	json_put_u64(j, "instructions", side->cost);
	json_put_u64(j, "paths", side->paths);
	if (side->paths) {
		const struct ranked_path *p = &f->paths[side->path];
		json_put_u64(j, "id", p->number);
		json_put_u64(j, "length", p->length);
		e = numbering_decode(&f->function->numbering, p->number, &path);
		if (!e)
			show_way_json(f, &path, j);
	}
	numbering_path_free(&path);
	json_end_object(j);
	return e;
}

static struct err *put_paths(struct json *j, const struct path_diff_function *f, uint64_t limit)
{
	struct err *e = NULL;
	json_key(j, "paths");
	json_begin_array(j);
	for (size_t i = 0; i < f->count && (!limit || i < limit) && !e; i++) {
		const struct path_diff_row *row = &f->rows[i];
		json_begin_object(j);
		json_put_string(j, "verdict", path_diff_verdict(row));
		e = put_path_side(j, "old", &row->old, f->old);
		if (!e)
			e = put_path_side(j, "new", &row->new, f->new);
		json_end_object(j);
	}
	json_end_array(j);
	return e;
}

static struct err *put_function(struct json *j, const struct path_diff *d,
				const struct path_diff_function *f, uint64_t limit)
{
	const struct ranked_function *shown = f->new ? f->new : f->old;
	struct err *e = NULL;
	json_begin_object(j);
	json_put_string(j, "name", shown->name);
	json_put_string(j, "module", shown->function->module);
	put_function_side(j, "old", f->old);
	put_function_side(j, "new", f->new);
	json_put_string(j, "verdict", path_diff_function_verdict(f));
	if (f->counted) {
		json_put_bool(j, "other_code", f->other_code);
		json_put_double(j, "ratio",
				f->old_cost ? (double)f->new_cost / (double)f->old_cost : NAN);
		if (d->options.fail_above >= 0)
			json_put_bool(j, "too_slow", f->too_slow);
		e = put_paths(j, f, limit);
	}
	json_end_object(j);
	return e;
}

struct err *path_diff_json(const struct path_diff *d, uint64_t limit, struct json *j)
{
	struct err *e = NULL;
	put_side(j, "old", d->old_name, d->old);
	put_side(j, "new", d->new_name, d->new);
	if (d->options.fail_above >= 0) {
		json_put_double(j, "fail_above", 100 * d->options.fail_above);
		json_put_bool(j, "too_slow", d->too_slow);
	}
	json_put_u64(j, "changed", d->changed);
	json_key(j, "functions");
	json_begin_array(j);
	for (size_t i = 0; i < d->count && !e; i++)
		e = put_function(j, d, &d->functions[i], limit);
	json_end_array(j);
	return e;
}
