// SPDX-License-Identifier: Apache-2.0
// The first screen: the flame graph above, all functions below (the table of the bottom-up view), and beside them the
// source of what was selected last in either. What is selected in one is selected in the other: a function stands for
// its widest box, a box for its function.

import {KIND} from "./model.js";
import {homeOf, nodesOfScope, originsOfRow} from "./views.js";

// Of nodes, the one with the largest total that is in the selection; 0: none is.
function widestOf(app, nodes) {
	const sums = app.comparison ? null : app.selection.sums[app.state.metric], {zoom} = app.state;
	const last = app.model.nodes.end[zoom];
	let best = 0, most = 0;
	for (const node of nodes) {
		if (node < zoom || node >= last)
			continue;
		const total = sums ? sums.total(node) : app.selection.values("total", node).reduce((a, b) => a + b, 0);
		if (total > most)
			[best, most] = [node, total];
	}
	return best;
}

// The node that stands for a row of the bottom-up view; 0: none does.
export function nodeOfFunction(app, row) {
	return row && row.scope > 0 ? widestOf(app, originsOfRow(row) || nodesOfScope(app.model, row.scope)) : 0;
}

// The key of the row of the bottom-up view that a node belongs to: that of its function.
export function functionOfNode(app, node) {
	return node > 0 ? String(app.model.nodes.scope[homeOf(app.model, node)]) : "";
}

// The same of a scope: that of a loop is in what it is in.
export function functionOfScope(model, scope) {
	const {kind, function: inside, inlined} = model.scopes;
	return String(kind[scope] === KIND.loop ? inlined[scope] || inside[scope] || scope : scope);
}

// The function that is first in the bottom-up view; "": there is none.
export function firstFunction(app) {
	const outline = app.outlineOf("callers");
	return outline.length ? outline.entry(0).row.key : "";
}
