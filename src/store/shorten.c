/* SPDX-License-Identifier: Apache-2.0 */
#include "store/shorten.h"

#include <stdlib.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/calltree.h"

#define PATH_SHARE 4096
#define CALLER_SHARE 1024
#define FAR 16 /* callers between two calls that are the same, at most */

struct shortening {
	const struct calltree *tree;
	uint64_t *sums;        /* samples in each node and below it */
	uint32_t *caller;      /* of each node, among those that are left */
	uint32_t *to;          /* its number there; before that: whether it is wanted */
	uint32_t *again;       /* how often the frame is on the path above it */
	uint64_t least, usual; /* what is less is rare; callers that stay have as much */
};

static bool make_room(struct shortening *x)
{
	x->sums = calloc(x->tree->count, sizeof *x->sums);
	x->caller = calloc(x->tree->count, sizeof *x->caller);
	x->to = calloc(x->tree->count, sizeof *x->to);
	x->again = calloc(x->tree->count, sizeof *x->again);
	return x->sums && x->caller && x->to && x->again;
}

static void sum_up(struct shortening *x, const struct pack_path *rows, size_t count)
{
	const struct pack_node *nodes = x->tree->nodes;
	for (size_t i = 0; i < count; i++) {
		x->sums[rows[i].node] += rows[i].count;
		x->to[rows[i].node] = 1;
	}
	for (uint32_t i = x->tree->count; i-- > 1;)
		x->sums[nodes[i].parent] += x->sums[i];
	x->least = x->sums[0] / PATH_SHARE;
	x->usual = x->sums[0] / CALLER_SHARE;
}

/* What is not known of the callers stays that way. */
static void find_callers(struct shortening *x)
{
	const struct pack_node *nodes = x->tree->nodes;
	for (uint32_t i = 1; i < x->tree->count; i++) {
		uint32_t parent = nodes[i].parent;
		bool stays = !parent || x->sums[parent] >= x->usual ||
			     nodes[parent].kind == PROFILE_PARTIAL;
		/* Of a rare node, the caller of its parent is that of a rare one, too, or stays. */
		x->again[i] = stays ? parent : x->again[parent];
		x->caller[i] = x->sums[i] < x->least ? x->again[i] : parent;
	}
	for (uint32_t i = x->tree->count; i-- > 1;)
		if (x->to[i])
			x->to[x->caller[i]] = 1;
	for (uint32_t i = 0; i < x->tree->count; i++)
		x->again[i] = 0;
}

static bool same_frame(const struct pack_node *a, const struct pack_node *b)
{
	return a->address == b->address && a->image == b->image && a->kind == b->kind;
}

/* The call before this one that is the same; 0: none. */
static uint32_t find_same(const struct shortening *x, uint32_t node)
{
	uint32_t at = x->caller[node];
	for (int i = 0; at && i < FAR; i++, at = x->caller[at])
		if (same_frame(&x->tree->nodes[at], &x->tree->nodes[node]))
			return at;
	return 0;
}

static bool keep_wanted(struct shortening *x, struct calltree *out)
{
	x->to[0] = 0;
	for (uint32_t i = 1; i < x->tree->count; i++) {
		struct pack_node node = x->tree->nodes[i];
		if (!x->to[i])
			continue;
		uint32_t same = x->sums[i] < x->least ? 0 : find_same(x, i);
		x->again[i] = same ? x->again[same] + 1 : 0;
		if (x->again[i] >= SHORTEN_REPEATED) {
			x->to[i] = x->to[same];
			continue;
		}
		node.parent = x->to[x->caller[i]];
		x->to[i] = calltree_child(out, &node);
		if (x->to[i] == UINT32_MAX)
			return false;
	}
	return true;
}

struct err *shorten_paths(const struct calltree *tree, struct pack_path *rows, size_t count,
			  struct calltree *out)
{
	struct shortening x = {.tree = tree};
	bool good = make_room(&x) && calltree_clear(out);
	if (good) {
		sum_up(&x, rows, count);
		find_callers(&x);
		good = keep_wanted(&x, out);
	}
	for (size_t i = 0; good && i < count; i++)
		rows[i].node = x.to[rows[i].node];
	free(x.sums);
	free(x.caller);
	free(x.to);
	free(x.again);
	return good ? NULL : err_new("out of memory");
}
