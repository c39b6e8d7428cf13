// SPDX-License-Identifier: Apache-2.0
// The callers and the callees of one function, as two views like those of views.js, each with the function as its only
// row at the top. Calls of it by itself, also by way of others, count once: only its outermost calls are looked at.

import {Level} from "./levels.js";
import {partBy} from "./model.js";
import {matchScopes} from "./select.js";
import {PathView} from "./views.js";

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
	// The one row at the top, or null.
	get top() {
		if (this.made === undefined)
			this.made = this.makeTop();
		return this.made;
	}
	topLevel() {
		return alone(this.top);
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
	makeTop() {
		return this.up.rowOf(String(this.center));
	}
	lowerLevel(row) {
		return this.up.level(row);
	}
}

// A row has the nodes that it stands for.
export class CalleesOf extends Half {
	makeTop() {
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
	// What the nodes of a row call, parted by scope: {ids, below: nodes, groups: of each of these its place in ids}.
	part(nodes) {
		const {scope, end} = this.model.nodes, ids = [], below = [], groups = [];
		const numbers = this.numbers || (this.numbers = new Int32Array(this.model.scopes.count).fill(-1));
		for (const node of nodes)
			for (let c = node + 1; c < end[node]; c = end[c]) {
				if (!this.selection.any(c))
					continue;
				if (numbers[scope[c]] < 0)
					numbers[scope[c]] = ids.push(scope[c]) - 1;
				below.push(c);
				groups.push(numbers[scope[c]]);
			}
		for (const id of ids)
			numbers[id] = -1;
		return {ids: Int32Array.from(ids), below, groups};
	}
	// Few of the rows are seen: what belongs to one alone is made with it.
	lowerLevel(row) {
		const {sums} = this.selection, {ids, below, groups} = this.part(row.nodes);
		let parts = null;
		const nodesAt = (place) => {
			parts = parts || partBy(groups, ids.length);
			const nodes = [];
			for (let i = parts.starts[place]; i < parts.starts[place + 1]; i++)
				nodes.push(below[parts.order[i]]);
			return nodes;
		};
		const sumOf = (nodes, column) => sums.map((all) => nodes.reduce((sum, node) => sum + all[column](node), 0));
		return new Level(ids, {
			of: (id, place) => {
				const nodes = nodesAt(place);
				return {key: `${row.key}.${id}`, scope: id, node: -1, nodes, self: sumOf(nodes, "self"),
					total: sumOf(nodes, "total"), leaf: this.isLeaf(nodes)};
			},
			numbers: (column, metric) => {
				const all = sums[metric], list = new Float64Array(ids.length);
				for (let i = 0; i < below.length; i++)
					list[groups[i]] += all[column](below[i]);
				return list;
			},
			scopes: ids,
		});
	}
}
