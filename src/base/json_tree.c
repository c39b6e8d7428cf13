/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_tree.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/json.h"

void json_tree_begin(struct json_tree *t, struct json *j, bool rows, const char *key)
{
	*t = (struct json_tree){.j = j, .rows = rows};
	json_key(j, rows ? "rows" : key);
	if (rows)
		json_begin_array(j);
}

void json_tree_open(struct json_tree *t)
{
	json_begin_object(t->j);
	if (!t->rows)
		return;
	json_put_u64(t->j, "depth", t->count);
	json_key(t->j, "parent");
	if (t->count && !t->failed)
		json_u64(t->j, t->open[t->count - 1]);
	else
		json_null(t->j);
}

void json_tree_children(struct json_tree *t)
{
	if (!t->rows) {
		json_key(t->j, "children");
		json_begin_array(t->j);
		return;
	}
	json_end_object(t->j);
	t->failed = t->failed || !ARRAY_ROOM(t->open, t->count, t->room);
	if (!t->failed)
		t->open[t->count] = t->next;
	t->count++;
	t->next++;
}

void json_tree_close(struct json_tree *t)
{
	if (t->rows) {
		t->count--;
		return;
	}
	json_end_array(t->j);
	json_end_object(t->j);
}

bool json_tree_end(struct json_tree *t)
{
	if (t->rows)
		json_end_array(t->j);
	free(t->open);
	t->open = NULL;
	return !t->failed;
}
