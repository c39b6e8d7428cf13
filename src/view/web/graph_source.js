// SPDX-License-Identifier: Apache-2.0
// What the flame graph shows, and what its boxes do: the profile's tree as it is, with recursion folded, or inverted:
// each function as wide as its own samples, with its callers below. Where two sides are compared it is the tree as it is.

import {comparedWidths} from "./compare_graph.js";
import {NodeTree, ViewTree} from "./flame_trees.js";

export class GraphSource {
	constructor(app) {
		this.app = app;
		this.made = {};
	}
	// The view that it draws (app.view).
	name() {
		const {inverted, folded} = this.app.state;
		if (this.app.comparison || !(inverted || folded))
			return "tree";
		return inverted ? folded ? "foldedCallers" : "callers" : "folded";
	}
	// Whether boxes are nodes of the profile's tree.
	isPlain() {
		return this.name() === "tree";
	}
	icicle() {
		return this.app.state.icicle;
	}
	tree() {
		const {app} = this, {state, selection, model} = app, name = this.name();
		const sums = app.comparison ? comparedWidths(app) : selection.sums[state.metric];
		const key = [name, state.metric, state.zoom, state.inside].join();
		if (this.made.sums !== sums || this.made.key !== key || this.made.model !== model)
			this.made = {sums, key, model,
				tree: name === "tree" ? new NodeTree(model, sums, state.zoom) : this.viewTree(name, sums)};
		return this.made.tree;
	}
	viewTree(name, sums) {
		const {app} = this, {state} = app, view = app.view(name);
		return new ViewTree(view, {column: name === "folded" ? "total" : "self", metric: state.metric,
			root: state.inside ? view.rowOf(state.inside) : null, whole: sums.total(state.zoom)});
	}
	selectedKey() {
		return this.app.selectedBy[this.name()] || "";
	}
	select(key) {
		if (this.isPlain())
			this.app.selectNode(Number(key));
		else
			this.app.selectBox(this.name(), key);
	}
	// Whether a box is what the graph is zoomed to.
	isRoot(key) {
		return key === (this.isPlain() ? String(this.app.state.zoom) : this.app.state.inside);
	}
	zoom(key) {
		if (this.isPlain())
			this.app.zoomTo(Number(key));
		else
			this.app.setInside(key);
	}
}
