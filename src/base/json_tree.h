/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A tree as JSON, in one of two forms. Nested, each node has its "children". As rows, nodes follow each other, each with its
 * "depth" and its "parent", which is the index of a row (null for the first); for readers that do not take hundreds of levels.
 *
 *     json_tree_begin(&t, &j, true, "tree");
 *     json_tree_open(&t);
 *     json_put_string(&j, "name", "main"); …
 *     json_tree_children(&t);
 *     … the children, in the same way
 *     json_tree_close(&t);
 *     json_tree_end(&t);
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

struct json_tree {
	struct json *j;
	bool rows;
	uint64_t *open; /* rows whose children come now */
	size_t count, room;
	uint64_t next; /* row */
	bool failed;   /* no memory: parents are not known any more */
};

/* Writes the key for the tree, or "rows". */
void json_tree_begin(struct json_tree *t, struct json *j, bool rows, const char *key);
void json_tree_open(struct json_tree *t);
void json_tree_children(struct json_tree *t);
void json_tree_close(struct json_tree *t);
/* False: there was no memory, and some rows have no parents. */
bool json_tree_end(struct json_tree *t);
