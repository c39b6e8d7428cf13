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

import {KIND, cached, inBlocks, partBy, scopeName} from "./model.js";
import {Level, numbersOf} from "./levels.js";
import {childrenOf} from "./lists.js";
import {matchScopes} from "./select.js";

export function valuesAt(arrays, i) {
	const values = new Array(arrays.length);
	for (let m = 0; m < arrays.length; m++)
		values[m] = arrays[m][i];
	return values;
}

// Sums of all columns, two at a time where they are whole numbers of 32 bits: going through all nodes is what takes
// the time. sum(a, b) gives self and total of one, then of the other; b may be null.
// As steps, which may be taken one by one.
export function pairSteps({sums, base}, length, sum, out) {
	const columns = sums.map((_, m) => m).filter((m) => !base.columns[m].empty), steps = [];
	sums.forEach((_, m) => { out.self[m] = out.total[m] = new Float64Array(base.columns[m].empty ? length : 0); });
	while (columns.length) {
		const a = columns.shift(), b = base.Type === Uint32Array ? columns.shift() ?? a : a;
		steps.push(...[...new Set([a, b])].filter((m) => !sums[m].made).map((m) => () => { sums[m].upTo; }), () => {
			const [selfA, totalA, selfB = selfA, totalB = totalA] = sum(sums[a].upTo, b === a ? null : sums[b].upTo);
			[out.self[a], out.total[a], out.self[b], out.total[b]] = [selfA, totalA, selfB, totalB];
		});
	}
	return steps;
}

export function rowName(model, row) {
	return row.scope < 0 ? row.label : scopeName(model, row.scope);
}

// Keeps of places those where a list has nothing; returns how many that are.
function keepEmpty(list, places, count) {
	let used = 0;
	for (let i = 0; i < count; i++) {
		const place = places[i];
		places[used] = place;
		used += list[place] === 0 ? 1 : 0;
	}
	return used;
}

// Places from .. to - 1 where some of the lists have something.
export function placesWith(lists, from, to) {
	const empty = new Int32Array(to - from), places = new Int32Array(to - from);
	for (let i = 0; i < empty.length; i++)
		empty[i] = from + i;
	let left = empty.length;
	for (const list of lists)
		left = keepEmpty(list, empty, left);
	return places.subarray(0, listOthers(from, to, empty, left, places));
}

// Lists what is not among `left` of those that are; returns how many that are.
function listOthers(from, to, those, left, others) {
	let used = 0, next = 0;
	for (let place = from; place < to; place++)
		if (next < left && those[next] === place)
			next++;
		else
			others[used++] = place;
	return used;
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

const MANY = 64; // rows, whose numbers are better found together

// What is open but out of sight needs no numbers: these are looked up when they are asked for.
class TreeRow {
	constructor(view, node) {
		this.view = view;
		this.key = String(node);
		this.node = node;
		this.scope = view.model.nodes.scope[node];
		this.found = {};
	}
	values(column) {
		const {found} = this;
		found[column] = found[column] || this.view.selection.values(column, this.node);
		return found[column];
	}
	get self() {
		return this.values("self");
	}
	get total() {
		return this.values("total");
	}
	get leaf() {
		const {found} = this;
		if (found.leaf === undefined)
			found.leaf = !this.view.hasChildren(this.node);
		return found.leaf;
	}
}

export class TopDown {
	constructor(model, selection) {
		this.model = model;
		this.selection = selection;
		this.levels = new Map(); // by node
	}
	row(node) {
		return new TreeRow(this, node);
	}
	hasChildren(node) {
		const {end} = this.model.nodes;
		for (let c = node + 1; c < end[node]; c = end[c])
			if (this.selection.any(c))
				return true;
		return false;
	}
	// Those with samples below a node, and where there are many their totals by metric, or else null.
	childrenOf(node) {
		const {selection} = this, ids = childrenOf(this.model, node);
		if (ids.length < MANY)
			return {ids: ids.filter((c) => selection.any(c)), totals: null};
		const totals = selection.totals(ids), places = placesWith(totals, 0, ids.length);
		if (places.length === ids.length)
			return {ids, totals};
		return {ids: places.map((place) => ids[place]), totals: totals.map((numbers) => numbersOf(places, numbers))};
	}
	level(row) {
		const node = row ? row.node : -1;
		let level = this.levels.get(node);
		if (!level) {
			const {ids, totals} = row ? this.childrenOf(node) : {ids: Int32Array.of(this.selection.zoom), totals: null};
			const {scope} = this.model.nodes;
			level = new Level(ids, {
				of: (id) => this.row(id),
				numbers: (column, metric) => totals && column === "total" ? totals[metric] :
					this.selection.numbers(column, metric, ids),
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

// A view in which a key has the ids of all rows on the way from the top, as in "12.7.3". It is told the levels:
// topLevel(), and lowerLevel(row), which has what is below a row.
export class PathView {
	constructor(model, selection) {
		this.model = model;
		this.selection = selection;
		this.first = null; // the top level
		this.levels = new WeakMap(); // by the row above: keys can be long
	}
	level(row) {
		if (!row)
			return this.first || (this.first = this.topLevel());
		let level = this.levels.get(row);
		if (!level) {
			level = this.lowerLevel(row);
			this.levels.set(row, level);
		}
		return level;
	}
	rowOf(key) {
		let row = null;
		for (const id of key.split(".")) {
			const level = this.level(row), place = level.placeOf(Number(id));
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

export const FIRST = 0x80000000 | 0;

// By node: the scope to which its own samples belong, and FIRST where it is the outermost call of that.
function findPlaces(model, homes, zoom) {
	const {scope, end} = model.nodes, {count} = model.scopes;
	const openEnd = new Int32Array(count), places = new Int32Array(model.nodes.count);
	for (let i = zoom; i < end[zoom]; i++) {
		const s = scope[homes[i]];
		places[i] = s;
		if (homes[i] === i && i >= openEnd[s]) {
			places[i] |= FIRST;
			openEnd[s] = end[i];
		}
	}
	return places;
}

// The function of a loop, or the node itself.
export function homeOf(model, node) {
	const {scope, parent} = model.nodes, {kind} = model.scopes;
	while (node > 0 && kind[scope[node]] === KIND.loop)
		node = parent[node];
	return node;
}

const homesOf = (model) => cached(model, "homes", () => findHomes(model, 0));
export const placesOf = (model) => cached(model, "places", () => findPlaces(model, homesOf(model), 0));
const partsOf = (model) => cached(model, "nodes by scope", () => partBy(model.nodes.scope, model.scopes.count));

export function nodesOfScope(model, scope) {
	const {starts, order} = partsOf(model);
	return order.subarray(starts[scope], starts[scope + 1]);
}

// What has no samples is left out with all below it.
function sumScopes(from, to, end, places, a, b, [self, total]) {
	for (let i = from; i < to; i++) {
		const next = end[i], before = a[i], value = a[next] - before;
		if (value === 0) {
			i = next - 1;
			continue;
		}
		const place = places[i], scope = place & ~FIRST, own = a[i + 1] - before;
		if (own > 0)
			self[scope] += own;
		if (place < 0)
			total[scope] += value;
	}
}

// The same of two, which are whole numbers of 32 bits: engines do without any other, then.
function sumScopesPair(from, to, end, places, a, b, [selfA, totalA, selfB, totalB]) {
	for (let i = from; i < to; i++) {
		const next = end[i], a0 = a[i], b0 = b[i], valueA = (a[next] - a0) | 0, valueB = (b[next] - b0) | 0;
		if ((valueA | valueB) === 0) {
			i = next - 1;
			continue;
		}
		const place = places[i], scope = place & ~FIRST, ownA = (a[i + 1] - a0) | 0, ownB = (b[i + 1] - b0) | 0;
		if ((ownA | ownB) !== 0) {
			selfA[scope] += ownA;
			selfB[scope] += ownB;
		}
		if (place < 0) {
			totalA[scope] += valueA;
			totalB[scope] += valueB;
		}
	}
}

// By place: 1 where a list has something.
export function markSome(from, to, list, some) {
	for (let s = from; s < to; s++)
		some[s] |= list[s] !== 0 ? 1 : 0;
}

// Sums of the origins in each group, by metric.
function sumOrigins(root, index, group, count) {
	const add = (values) => {
		const sums = new Float64Array(count);
		for (let i = 0; i < index.length; i++)
			if (group[i] >= 0)
				sums[group[i]] += values[index[i]];
		return sums;
	};
	return {self: root.self.map(add), total: root.total.map(add)};
}

// The nodes that a row stands for; null: all of its scope.
export function originsOfRow({root, index}) {
	return root ? index.map((i) => root.origins[i]) : null;
}

export class BottomUp extends PathView {
	// whole: the same of the selection, if callers that are already on the way are to be left out here
	constructor(model, selection, whole = null) {
		super(model, selection);
		this.whole = whole;
		this.found = {homes: null, places: null};
		this.hasLoops = model.scopes.kind.includes(KIND.loop);
		this.made = {self: [], total: []};
		this.steps = pairSteps(selection, model.scopes.count, (a, b) => this.sum(a, b), this.made);
	}
	// Whether rows of the top level are functions as a whole.
	get listsFunctions() {
		return true;
	}
	get homes() {
		if (this.whole)
			return this.whole.homes;
		const {model} = this, {zoom} = this.selection;
		this.found.homes = this.found.homes || (zoom ? findHomes(model, zoom) : homesOf(model));
		return this.found.homes;
	}
	get places() {
		if (this.whole)
			return this.whole.places;
		const {model} = this, {zoom} = this.selection;
		this.found.places = this.found.places || (zoom ? findPlaces(model, this.homes, zoom) : placesOf(model));
		return this.found.places;
	}
	// Takes a step of what is summed before it is needed. Returns whether there are others.
	advance() {
		if (this.steps.length)
			this.steps.shift()();
		return this.steps.length > 0;
	}
	// Of all columns, by scope: {self, total}.
	get sums() {
		if (this.whole)
			return this.whole.sums;
		while (this.advance())
			;
		return this.made;
	}
	// Self and total of each scope, of two columns or one.
	sum(a, b) {
		const {model, places} = this, {end} = model.nodes, {zoom} = this.selection;
		const lists = Array.from({length: b ? 4 : 2}, () => new a.constructor(model.scopes.count));
		const sum = b ? sumScopesPair : sumScopes;
		inBlocks(zoom || 1, end[zoom], (from, to) => sum(from, to, end, places, a, b, lists));
		return lists;
	}
	// Whether what a row of the top level stands for has a caller.
	isCalled(scope) {
		return nodesOfScope(this.model, scope).some((node) => this.caller(node) >= 0 && this.counts(node));
	}
	isFirst(node) {
		return this.places[node] < 0;
	}
	// Whether the row of its scope stands for a node: where it is outermost or has samples of its own.
	counts(node) {
		const {zoom} = this.selection;
		if (node < zoom || node >= this.model.nodes.end[zoom])
			return false;
		return this.selection.any(node) && (this.isFirst(node) ||
			(this.homes[node] === node && this.selection.sums.some((sums) => this.ownOf(sums, node) > 0)));
	}
	// The nodes that a row of the top level stands for.
	originsOf(scope) {
		return nodesOfScope(this.model, scope).filter((node) => this.counts(node));
	}
	// Own samples of a node with those of its loops, of one metric.
	ownOf(sums, node) {
		const {scope, end} = this.model.nodes, {kind} = this.model.scopes;
		let own = sums.self(node);
		for (let c = node + 1; this.hasLoops && c < end[node]; c = end[c])
			if (kind[scope[c]] === KIND.loop)
				own += this.ownOf(sums, c);
		return own;
	}
	topLevel() {
		const {sums} = this, ids = placesWith(sums.total, 1, this.model.scopes.count); // own samples are in totals, too
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
	// The same, where those on the way (a set of scopes) are left out.
	nextCaller(node, way) {
		let up = this.caller(node);
		while (up >= 0 && way && way.has(this.model.nodes.scope[up]))
			up = this.caller(up);
		return up;
	}
	// What a row of the top level stands for: the nodes (origins), and what each counts, by metric.
	rootOf(scope) {
		const origins = this.originsOf(scope), {sums} = this.selection;
		const first = origins.map((node) => this.isFirst(node) ? 1 : 0);
		return {origins, self: sums.map((all) => Float64Array.from(origins, (node) => this.ownOf(all, node))),
			total: sums.map((all) => Float64Array.from(origins, (node, i) => first[i] ? all.total(node) : 0))};
	}
	// One step up from all that a row stands for, parted by where that leads. A row has which of the origins of its root
	// it stands for (index), and how far up each has come (at).
	lowerLevel(row) {
		const {scope} = this.model.nodes, root = row.root || this.rootOf(row.scope);
		const index = row.index || root.origins.map((_, i) => i), before = row.at || root.origins;
		const way = this.whole ? new Set(row.key.split(".").map(Number)) : null;
		const at = new Int32Array(index.length), group = new Int32Array(index.length);
		const numbers = this.numbers || (this.numbers = new Int32Array(this.model.scopes.count).fill(-1));
		const found = [], counts = [];
		for (let i = 0; i < at.length; i++) {
			at[i] = this.nextCaller(before[i], way);
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
		const parts = counts.map((count) => ({root, index: new Int32Array(count), at: new Int32Array(count), used: 0}));
		for (let i = 0; i < at.length; i++)
			if (group[i] >= 0) {
				const part = parts[group[i]];
				part.index[part.used] = index[i];
				part.at[part.used++] = at[i];
			}
		return this.makeLevel(row.key, found, parts, sumOrigins(root, index, group, found.length));
	}
	makeLevel(key, found, parts, sums) {
		const some = (g) => sums.self.some((list) => list[g] > 0) || sums.total.some((list) => list[g] > 0);
		const groups = Int32Array.from(found, (_, g) => g).filter(some);
		const ids = groups.map((g) => found[g]);
		return new Level(ids, {
			of: (s, place) => {
				const g = groups[place], {root, index, at} = parts[g];
				return {key: `${key}.${s}`, scope: s, node: -1, root, index, at, self: valuesAt(sums.self, g),
					total: valuesAt(sums.total, g), leaf: !at.some((node) => this.caller(node) >= 0)};
			},
			numbers: (column, metric) => numbersOf(groups, sums[column][metric]),
			scopes: ids,
		});
	}
	search(text) {
		const found = matchScopes(this.model, "name", text);
		return new Matches(this.level(null).ids.filter((s) => found[s]));
	}
}

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do.
export function prepareCallers(model) {
	return [() => { homesOf(model); }, () => { placesOf(model); }, () => { partsOf(model); }];
}
