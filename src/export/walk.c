/* SPDX-License-Identifier: Apache-2.0 */
#include "export/walk.h"

#include "analyze/attribution.h"
#include "analyze/tree.h"
#include "export/job.h"

struct err *walk_view(struct job *j, enum view view, enum view_group group, struct tree **out)
{
	struct view_options v = {
		.view = view,
		.group = group,
		.metric = j->metric_count ? j->metrics[0] : 0,
		.thread = j->o->thread,
	};
	return view_make(j->a, &v, out);
}

uint32_t tree_walk_first(struct tree_walk *w, const struct tree *tree, uint32_t top)
{
	*w = (struct tree_walk){.tree = tree, .top = top, .at = top};
	return top;
}

uint32_t tree_walk_next(struct tree_walk *w)
{
	const struct tree_node *nodes = w->tree->nodes;
	if (nodes[w->at].child != TREE_NONE) {
		w->depth++;
		return w->at = nodes[w->at].child;
	}
	while (w->at != w->top && nodes[w->at].next == TREE_NONE) {
		w->at = nodes[w->at].parent;
		w->depth--;
	}
	if (w->at == w->top)
		return TREE_NONE;
	return w->at = nodes[w->at].next;
}

size_t tree_walk_depth(const struct tree *t, uint32_t top)
{
	struct tree_walk w;
	size_t depth = 0;
	for (uint32_t n = tree_walk_first(&w, t, top); n != TREE_NONE; n = tree_walk_next(&w))
		depth = w.depth > depth ? w.depth : depth;
	return depth;
}

uint64_t tree_walk_frames(const struct tree *t, uint32_t metric)
{
	struct tree_walk w;
	uint64_t frames = 0;
	for (uint32_t n = tree_walk_first(&w, t, 0); n != TREE_NONE; n = tree_walk_next(&w))
		frames += tree_self(t, n, metric) ? w.depth : 0;
	return frames;
}
