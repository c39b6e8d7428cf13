/* SPDX-License-Identifier: Apache-2.0 */
#include "view/comparison.h"

#include "base/json.h"

uint32_t comparison_scope(const struct comparison *c, uint32_t scope)
{
	return c ? c->same[scope] : scope;
}

bool comparison_whole(const struct comparison *c, uint32_t scope)
{
	return c && c->whole[scope];
}

const char *comparison_name(const struct comparison *c, uint32_t scope, const char *own)
{
	return c && c->names[scope] ? c->names[scope] : own;
}

void comparison_json(const struct comparison *c, size_t thread_count, struct json *j)
{
	json_key(j, "comparison");
	json_begin_object(j);
	json_key(j, "runs");
	json_begin_array(j);
	for (size_t i = 0; i < c->count; i++) {
		json_begin_object(j);
		json_key(j, "path");
		json_string(j, c->runs[i].path);
		json_key(j, "samples");
		json_u64(j, c->runs[i].samples);
		json_key(j, "periods");
		json_begin_array(j);
		for (size_t m = 0; m < c->runs[i].period_count; m++)
			json_u64(j, c->runs[i].periods[m]);
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
	json_key(j, "old");
	json_u64(j, c->old_count);
	json_key(j, "threads");
	json_begin_array(j);
	for (size_t i = 0; i < thread_count; i++)
		json_u64(j, c->of_thread[i]);
	json_end_array(j);
	json_put_double(j, "alpha", c->alpha);
	json_put_double(j, "noise", c->noise);
	json_put_double(j, "min", c->min);
	json_end_object(j);
}
