// SPDX-License-Identifier: Apache-2.0
// The views of a selection that are trees of calls; the flat one is in flat.js. Each gives:
//
//     level(row)    the rows below a row (levels.js), those of the top for null
//     rowOf(key)    the row of a key, or null; keys are texts that stay the same
//     parentKey(key)  "" for the top level
//     idOf(key)     the number that stands for it in its level
//     search(text)  what matches (Matches)
//
// A row is {key, scope, node, self, total, leaf}: self and total have a number for each metric; node
// is that of the tree, or -1; leaf: nothing is below.
//
// In bottom-up and flat, samples below a recursive function count once, and a function's own samples
// are also those in its loops, which are part of it.

import {KIND, cached, findOutermost, scopeName} from "./model.js";
import {Level, numbersOf} from "./levels.js";
import {matchScopes} from "./select.js";

export function valuesAt(arrays, i) {
	const values = new Array(arrays.length);
	for (let m = 0; m < arrays.length; m++)
		values[m] = arrays[m][i];
	return values;
}

export function rowName(model, row) {
	return row.scope < 0 ? row.label : scopeName(model, row.scope);
}

// What a search found: the numbers of rows, ascending, which become keys only where needed.
export class Matches {
	constructor(list) {
		this.list = list;
		this.length = list.length;
	}
	key(i) {
		return String(this.list[i]);
	}
	indexOf(key) {
		const wanted = key ? Number(key) : NaN;
		let low = 0, high = this.length - 1;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.list[middle] < wanted)
				low = middle + 1;
			else
				high = middle;
		}
		return this.length && this.list[low] === wanted ? low : -1;
	}
}

export class TopDown {
	constructor(model, selection) {
		this.model = model;
		this.selection = selection;
		this.levels = new Map(); // by node
	}
	row(node) {
		return {
			key: String(node), node, scope: this.model.nodes.scope[node],
			self: this.selection.values("self", node), total: this.selection.values("total", node),
			leaf: !this.hasChildren(node),
		};
	}
	hasChildren(node) {
		const {end} = this.model.nodes;
		for (let c = node + 1; c < end[node]; c = end[c])
			if (this.selection.any(c))
				return true;
		return false;
	}
	childrenOf(node) {
		const {end} = this.model.nodes, list = [];
		for (let c = node + 1; c < end[node]; c = end[c])
			if (this.selection.any(c))
				list.push(c);
		return Int32Array.from(list);
	}
	level(row) {
		const node = row ? row.node : -1;
		let level = this.levels.get(node);
		if (!level) {
			const ids = row ? this.childrenOf(node) : Int32Array.of(this.selection.zoom);
			const {scope} = this.model.nodes;
			level = new Level(ids, {
				of: (id) => this.row(id),
				numbers: (column, metric) => this.selection.numbers(column, metric, ids),
				scopes: ids.map((id) => scope[id]),
			});
			this.levels.set(node, level);
		}
		return level;
	}
	rowOf(key) {
		const node = Number(key), {zoom} = this.selection;
		const inside = Number.isInteger(node) && node >= zoom && node < this.model.nodes.end[zoom];
		return inside && (node === zoom || this.selection.any(node)) ? this.row(node) : null;
	}
	parentKey(key) {
		const node = Number(key), {zoom} = this.selection;
		return node > zoom && node < this.model.nodes.end[zoom] ? String(this.model.nodes.parent[node]) : "";
	}
	idOf(key) {
		return Number(key);
	}
	// All rows whose name matches, in the tree's order.
	search(text) {
		const found = matchScopes(this.model, "name", text), {zoom} = this.selection;
		const {scope, end} = this.model.nodes, last = end[zoom];
		let nodes = new Int32Array(1024), count = 0;
		for (let i = zoom; i < last; i++) {
			if (!found[scope[i]] || !this.selection.any(i))
				continue;
			if (count === nodes.length) {
				const more = new Int32Array(2 * count);
				more.set(nodes);
				nodes = more;
			}
			nodes[count++] = i;
		}
		return new Matches(nodes.subarray(0, count));
	}
}

// Bottom-up

// By node: itself, or of a loop the function that it is in.
function findHomes(model, zoom) {
	const {scope, parent, end} = model.nodes, {kind} = model.scopes;
	const homes = new Int32Array(model.nodes.count);
	homes[zoom] = zoom;
	for (let i = zoom + 1; i < end[zoom]; i++)
		homes[i] = kind[scope[i]] === KIND.loop ? homes[parent[i]] : i;
	return homes;
}

// By node: 1 where it has the outermost call of its function. Loops have none.
function findFirst(model, zoom) {
	const {scope, end} = model.nodes, {kind} = model.scopes;
	const first = findOutermost(model, scope, model.scopes.count, zoom);
	for (let i = zoom + 1; i < end[zoom]; i++)
		if (kind[scope[i]] === KIND.loop)
			first[i] = 0;
	return first;
}

// Nodes by scope: those of scope s are order[starts[s]] .. order[starts[s + 1] - 1], ascending.
function partByScope(model) {
	const {scope, count} = model.nodes;
	const starts = new Int32Array(model.scopes.count + 1), order = new Int32Array(count);
	for (let i = 0; i < count; i++)
		starts[scope[i] + 1]++;
	for (let s = 0; s < model.scopes.count; s++)
		starts[s + 1] += starts[s];
	const next = starts.slice();
	for (let i = 0; i < count; i++)
		order[next[scope[i]]++] = i;
	return {starts, order};
}

const homesOf = (model) => cached(model, "homes", () => findHomes(model, 0));
const firstOf = (model) => cached(model, "outermost scopes", () => findFirst(model, 0));
const partsOf = (model) => cached(model, "nodes by scope", () => partByScope(model));

export class BottomUp {
	constructor(model, selection) {
		const {zoom} = selection;
		this.model = model;
		this.selection = selection;
		this.homes = zoom ? findHomes(model, zoom) : homesOf(model);
		this.first = zoom ? findFirst(model, zoom) : firstOf(model);
		this.levels = new Map(); // by key
		this.sums = {self: [], total: []};
		for (const sums of selection.sums)
			this.sum(sums.upTo);
	}
	// Self and total of each scope, of one metric.
	sum(upTo) {
		const {homes, first} = this, {scope, end} = this.model.nodes, {zoom} = this.selection;
		const self = new Float64Array(this.model.scopes.count), total = new Float64Array(self.length);
		const last = end[zoom];
		for (let i = zoom || 1; i < last; i++) {
			const before = upTo[i], own = upTo[i + 1] - before;
			if (own > 0)
				self[scope[homes[i]]] += own;
			if (first[i])
				total[scope[i]] += upTo[end[i]] - before;
		}
		this.sums.self.push(self);
		this.sums.total.push(total);
	}
	// Whether the row of its scope stands for a node: where it is outermost or has samples of its own.
	counts(node) {
		const {zoom} = this.selection;
		if (node < zoom || node >= this.model.nodes.end[zoom])
			return false;
		return this.first[node] ? this.selection.any(node) :
			this.homes[node] === node && this.gathered().some((own) => own[node] > 0);
	}
	// The nodes that a row of the top level stands for.
	originsOf(scope) {
		const {starts, order} = partsOf(this.model);
		return order.subarray(starts[scope], starts[scope + 1]).filter((node) => this.counts(node));
	}
	isCalled(scope) {
		const {starts, order} = partsOf(this.model);
		for (let i = starts[scope]; i < starts[scope + 1]; i++)
			if (this.caller(order[i]) >= 0 && this.counts(order[i]))
				return true;
		return false;
	}
	// Own samples of a node with those of its loops, of each metric: made when first needed.
	gathered() {
		if (!this.own) {
			const {homes} = this, {zoom} = this.selection, last = this.model.nodes.end[zoom];
			this.own = this.selection.sums.map(({upTo}) => {
				const own = new Float64Array(last);
				for (let i = zoom; i < last; i++)
					if (upTo[i + 1] > upTo[i])
						own[homes[i]] += upTo[i + 1] - upTo[i];
				return own;
			});
		}
		return this.own;
	}
	topLevel() {
		const {sums} = this, some = new Uint8Array(this.model.scopes.count);
		for (const list of [...sums.self, ...sums.total])
			for (let s = 1; s < some.length; s++)
				some[s] |= list[s] > 0;
		const list = [];
		for (let s = 1; s < some.length; s++)
			if (some[s])
				list.push(s);
		const ids = Int32Array.from(list);
		return new Level(ids, {
			of: (s) => ({key: String(s), scope: s, node: -1, self: valuesAt(sums.self, s),
				total: valuesAt(sums.total, s), leaf: !this.isCalled(s)}),
			numbers: (column, metric) => numbersOf(ids, sums[column][metric]),
			scopes: ids,
		});
	}
	caller(node) {
		if (node === this.selection.zoom)
			return -1;
		const up = this.model.nodes.parent[node];
		return up <= 0 ? -1 : up;
	}
	// One step up from all that a row stands for, parted by where that leads. A row has the nodes
	// (origins) that it stands for, and how far up each has come (at).
	lowerLevel(row) {
		const {scope} = this.model.nodes;
		const origins = row.origins || this.originsOf(row.scope), before = row.at || origins;
		const at = new Int32Array(origins.length), group = new Int32Array(origins.length);
		const numbers = this.numbers || (this.numbers = new Int32Array(this.model.scopes.count).fill(-1));
		const found = [], counts = [];
		for (let i = 0; i < at.length; i++) {
			at[i] = this.caller(before[i]);
			if (at[i] < 0) {
				group[i] = -1;
				continue;
			}
			const s = scope[at[i]];
			if (numbers[s] < 0) {
				numbers[s] = found.push(s) - 1;
				counts.push(0);
			}
			group[i] = numbers[s];
			counts[group[i]]++;
		}
		for (const s of found)
			numbers[s] = -1;
		const parts = counts.map((count) => ({origins: new Int32Array(count), at: new Int32Array(count), used: 0}));
		for (let i = 0; i < at.length; i++)
			if (group[i] >= 0) {
				const part = parts[group[i]];
				part.origins[part.used] = origins[i];
				part.at[part.used++] = at[i];
			}
		return this.makeLevel(row.key, found, parts, this.sumParts(origins, group, found.length));
	}
	sumParts(origins, group, count) {
		const {first} = this, sums = {self: [], total: []};
		this.gathered().forEach((own, m) => {
			const all = this.selection.sums[m];
			const self = new Float64Array(count), total = new Float64Array(count);
			for (let i = 0; i < origins.length; i++)
				if (group[i] >= 0) {
					self[group[i]] += own[origins[i]];
					total[group[i]] += first[origins[i]] ? all.total(origins[i]) : 0;
				}
			sums.self.push(self);
			sums.total.push(total);
		});
		return sums;
	}
	makeLevel(key, found, parts, sums) {
		const some = (g) => sums.self.some((list) => list[g] > 0) || sums.total.some((list) => list[g] > 0);
		const groups = Int32Array.from(found, (_, g) => g).filter(some);
		const ids = groups.map((g) => found[g]);
		return new Level(ids, {
			of: (s, place) => {
				const g = groups[place], {origins, at} = parts[g];
				return {key: `${key}.${s}`, scope: s, node: -1, origins, at, self: valuesAt(sums.self, g),
					total: valuesAt(sums.total, g), leaf: !at.some((node) => this.caller(node) >= 0)};
			},
			numbers: (column, metric) => numbersOf(groups, sums[column][metric]),
			scopes: ids,
		});
	}
	level(row) {
		const key = row ? row.key : "";
		let level = this.levels.get(key);
		if (!level) {
			level = row ? this.lowerLevel(row) : this.topLevel();
			this.levels.set(key, level);
		}
		return level;
	}
	rowOf(key) {
		let row = null;
		for (const part of key.split(".")) {
			const level = this.level(row), place = level.placeOf(Number(part));
			if (place < 0)
				return null;
			row = level.row(place);
		}
		return row;
	}
	parentKey(key) {
		const dot = key.lastIndexOf(".");
		return dot < 0 ? "" : key.slice(0, dot);
	}
	idOf(key) {
		return Number(key.slice(key.lastIndexOf(".") + 1));
	}
	search(text) {
		const found = matchScopes(this.model, "name", text);
		return new Matches(this.level(null).ids.filter((s) => found[s]));
	}
}

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do.
export function prepareCallers(model) {
	return [() => { homesOf(model); }, () => { firstOf(model); }, () => { partsOf(model); }];
}
