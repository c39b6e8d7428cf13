/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "live/board.h"
#include "live/text.h"

/* Samples of one metric that go through the selected scope, for every node above it and for where it
   is outermost; 0 elsewhere. `reached`: those outermost ones. Parents come before their children. */
static uint64_t *count_through(const struct tree *t, uint32_t scope, uint32_t metric,
			       bool **reached)
{
	uint64_t *through = calloc(t->count, sizeof *through);
	bool *inside = calloc(t->count, sizeof *inside);
	*reached = calloc(t->count, sizeof **reached);
	bool good = through && inside && *reached;
	for (uint32_t i = 1; good && i < t->count; i++) {
		bool above = inside[t->nodes[i].parent];
		(*reached)[i] = !above && t->nodes[i].scope == scope;
		inside[i] = above || (*reached)[i];
		if ((*reached)[i])
			through[i] = tree_total(t, i, metric);
	}
	for (uint32_t i = (uint32_t)t->count; good && i-- > 1;)
		through[t->nodes[i].parent] += through[i];
	free(inside);
	if (good)
		return through;
	free(through);
	free(*reached);
	*reached = NULL;
	return NULL;
}

static uint32_t best_child(const struct tree *t, uint32_t node, const uint64_t *through,
			   uint32_t metric)
{
	uint32_t best = TREE_NONE;
	uint64_t most = 0;
	for (uint32_t c = t->nodes[node].child; c != TREE_NONE; c = t->nodes[c].next) {
		uint64_t value = through ? through[c] : tree_total(t, c, metric);
		if (value > most) {
			most = value;
			best = c;
		}
	}
	return best;
}

/* Below the selected one it goes on as long as one child has at least half. */
static uint32_t next_below(const struct tree *t, uint32_t node, uint32_t metric)
{
	uint32_t best = best_child(t, node, NULL, metric);
	return best != TREE_NONE && tree_total(t, best, metric) * 2 >= tree_total(t, node, metric)
		       ? best
		       : TREE_NONE;
}

static void add_step(const struct tree *t, uint32_t node, uint32_t now, uint32_t all, bool selected,
		     struct board *board)
{
	struct board_step *moved = reallocarray(board->steps, board->step_count + 1, sizeof *moved);
	if (!moved)
		return;
	board->steps = moved;
	moved[board->step_count++] = (struct board_step){
		.label = text_label(board, scopes_get(t->scopes, t->nodes[node].scope)),
		.selected = selected,
		.now_total = tree_total(t, node, now),
		.all_total = tree_total(t, node, all),
	};
}

static uint32_t find_scope(const struct tree *t, const struct profile *p, uint64_t identity)
{
	for (uint32_t i = 1; i < scopes_count(t->scopes); i++)
		if (scope_identity(p, scopes_get(t->scopes, i)) == identity)
			return i;
	return 0;
}

void path_make(const struct tree *t, const struct profile *p, uint32_t now, uint32_t all,
	       struct board *board)
{
	uint32_t scope = find_scope(t, p, board->wish.selected), at = 0, metric = now;
	bool *reached = NULL;
	uint64_t *through = scope ? count_through(t, scope, now, &reached) : NULL;
	if (through && !through[0]) { /* not now: then since the beginning */
		free(through);
		free(reached);
		metric = all;
		through = count_through(t, scope, all, &reached);
	}
	bool below = false;
	while (through && at != TREE_NONE) {
		at = below ? next_below(t, at, metric) : best_child(t, at, through, metric);
		if (at == TREE_NONE)
			break;
		bool selected = reached[at];
		below |= selected;
		add_step(t, at, now, all, selected, board);
	}
	free(through);
	free(reached);
}
