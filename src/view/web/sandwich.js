// SPDX-License-Identifier: Apache-2.0
// The callers and the callees of one function, as two views like those of views.js, each with the function as its only
// row at the top. Calls of it by itself, also by way of others, count once: only its outermost calls are looked at.

import {Level} from "./levels.js";
import {matchScopes} from "./select.js";
import {PathView, valuesAt} from "./views.js";

const MATCHES_MAX = 5000; // rows that a search goes through

// One row at the top of a level.
function alone(row) {
	return new Level(row ? Int32Array.of(row.scope) : new Int32Array(0), {
		of: () => row, numbers: (column, metric) => Float64Array.of(...(row ? [row[column][metric]] : [])),
		scopes: row ? Int32Array.of(row.scope) : new Int32Array(0),
	});
}

// What both have. up: the bottom-up view of the selection.
class Half extends PathView {
	constructor(up, center) {
		super(up.model, up.selection);
		this.up = up;
		this.center = center;
	}
	get listsFunctions() {
		return true;
	}
	topLevel() {
		return alone(this.top());
	}
	// The first rows, level by level.
	search(text) {
		const found = matchScopes(this.model, "name", text), rows = this.level(null).rows(), keys = [];
		for (let i = 0; i < rows.length && i < MATCHES_MAX; i++) { // those below are added meanwhile
			if (found[rows[i].scope])
				keys.push(rows[i].key);
			if (!rows[i].leaf && rows.length < MATCHES_MAX)
				rows.push(...this.level(rows[i]).rows());
		}
		return {length: keys.length, key: (i) => keys[i], indexOf: (key) => keys.indexOf(key)};
	}
}

// The bottom-up view has these rows already.
export class CallersOf extends Half {
	top() {
		return this.up.rowOf(String(this.center));
	}
	lowerLevel(row) {
		return this.up.level(row);
	}
}

// A row has the nodes that it stands for.
export class CalleesOf extends Half {
	top() {
		const nodes = this.up.originsOf(this.center).filter((node) => this.up.isFirst(node));
		const known = this.up.rowOf(String(this.center));
		return known && {...known, nodes, leaf: this.isLeaf(nodes)};
	}
	isLeaf(nodes) {
		const {end} = this.model.nodes;
		return !nodes.some((node) => {
			for (let c = node + 1; c < end[node]; c = end[c])
				if (this.selection.any(c))
					return true;
			return false;
		});
	}
	// What the nodes of a row call, parted by scope: {ids, lists: their nodes, self, total: sums by metric}.
	part(nodes) {
		const {scope, end} = this.model.nodes, {sums} = this.selection, ids = [], lists = [], groups = new Map();
		const self = sums.map(() => []), total = sums.map(() => []);
		for (const node of nodes)
			for (let c = node + 1; c < end[node]; c = end[c]) {
				if (!this.selection.any(c))
					continue;
				let group = groups.get(scope[c]);
				if (group === undefined) {
					group = ids.push(scope[c]) - 1;
					groups.set(scope[c], group);
					lists.push([]);
					[...self, ...total].forEach((list) => list.push(0));
				}
				lists[group].push(c);
				for (let m = 0; m < sums.length; m++) {
					self[m][group] += sums[m].self(c);
					total[m][group] += sums[m].total(c);
				}
			}
		return {ids: Int32Array.from(ids), lists, self, total};
	}
	lowerLevel(row) {
		const {ids, lists, self, total} = this.part(row.nodes);
		return new Level(ids, {
			of: (id, place) => ({key: `${row.key}.${id}`, scope: id, node: -1, nodes: lists[place],
				self: valuesAt(self, place), total: valuesAt(total, place), leaf: this.isLeaf(lists[place])}),
			numbers: (column, metric) => Float64Array.from((column === "self" ? self : total)[metric]),
			scopes: ids,
		});
	}
}
