// SPDX-License-Identifier: Apache-2.0
// The three views of a selection. Each gives rows lazily:
//
//     roots()       the rows of the top level
//     children(row) those below a row
//     rowOf(key)    the row of a key, or null; keys are texts that stay the same
//     parentKey(key)  "" for the top level
//
// A row is {key, scope, node, self, total, leaf}: self and total have a number for each metric; node
// is that of the tree, or -1; leaf: nothing is below.
//
// In bottom-up and flat, samples below a recursive function count once, and a function's own samples
// are also those in its loops, which are part of it.

import {KIND, cached, findOutermost, modulePath, scopeFile, scopeName} from "./model.js";
import {matchScopes} from "./select.js";

function valuesAt(arrays, i) {
	const values = new Array(arrays.length);
	for (let m = 0; m < arrays.length; m++)
		values[m] = arrays[m][i];
	return values;
}

function anyAt(arrays, i) {
	for (let m = 0; m < arrays.length; m++)
		if (arrays[m][i] > 0)
			return true;
	return false;
}

// What a search found: keys in order. Nodes are many, and become keys only where needed.
class Matches {
	constructor(list) {
		this.list = list;
		this.length = list.length;
		this.places = null;
	}
	key(i) {
		return String(this.list[i]);
	}
	indexOf(key) {
		if (!key)
			return -1;
		if (Array.isArray(this.list))
			return this.list.indexOf(key);
		const node = Number(key);
		let low = 0, high = this.length - 1;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.list[middle] < node)
				low = middle + 1;
			else
				high = middle;
		}
		return this.length && this.list[low] === node ? low : -1;
	}
}

export class TopDown {
	constructor(model, selection) {
		this.model = model;
		this.selection = selection;
		this.below = new Map(); // node -> rows below it
	}
	row(node) {
		return {
			key: String(node), node, scope: this.model.nodes.scope[node],
			self: valuesAt(this.selection.self, node), total: valuesAt(this.selection.total, node),
			leaf: !this.hasChildren(node),
		};
	}
	hasChildren(node) {
		const {end} = this.model.nodes, {any} = this.selection;
		for (let c = node + 1; c < end[node]; c = end[c])
			if (any[c])
				return true;
		return false;
	}
	roots() {
		return [this.row(this.selection.zoom)];
	}
	children(row) {
		const {end} = this.model.nodes, {any} = this.selection;
		let rows = this.below.get(row.node);
		if (rows)
			return rows;
		rows = [];
		for (let c = row.node + 1; c < end[row.node]; c = end[c])
			if (any[c])
				rows.push(this.row(c));
		this.below.set(row.node, rows);
		return rows;
	}
	rowOf(key) {
		const node = Number(key), {zoom, any} = this.selection;
		const inside = Number.isInteger(node) && node >= zoom && node < this.model.nodes.end[zoom];
		return inside && (node === zoom || any[node]) ? this.row(node) : null;
	}
	parentKey(key) {
		return Number(key) === this.selection.zoom ? "" : String(this.model.nodes.parent[Number(key)]);
	}
	// All rows whose name matches, in the tree's order.
	search(text) {
		const found = matchScopes(this.model, "name", text), {zoom, any} = this.selection;
		const {scope, end} = this.model.nodes;
		let count = 0;
		for (let i = zoom; i < end[zoom]; i++)
			count += found[scope[i]] & any[i];
		const nodes = new Int32Array(count);
		count = 0;
		for (let i = zoom; i < end[zoom]; i++)
			if (found[scope[i]] & any[i])
				nodes[count++] = i;
		return new Matches(nodes);
	}
}

// The selection's self, with that of loops in what they are part of.
function gatherLoops(model, selection) {
	const {scope, parent, end} = model.nodes, {kind} = model.scopes;
	if (!kind.includes(KIND.loop))
		return selection.self;
	return selection.self.map((self) => {
		const sum = self.slice();
		for (let i = end[selection.zoom] - 1; i > selection.zoom; i--)
			if (kind[scope[i]] === KIND.loop) {
				sum[parent[i]] += sum[i];
				sum[i] = 0;
			}
		return sum;
	});
}

// Parts places 0 .. groups.length - 1 by their group (a number below `count`, or -1: none). Returns
// where each group begins in `order`, and the places in order of their groups.
function partByGroup(groups, count) {
	const starts = new Int32Array(count + 1);
	for (let i = 0; i < groups.length; i++)
		if (groups[i] >= 0)
			starts[groups[i] + 1]++;
	for (let g = 0; g < count; g++)
		starts[g + 1] += starts[g];
	const order = new Int32Array(starts[count]), next = starts.slice();
	for (let i = 0; i < groups.length; i++)
		if (groups[i] >= 0)
			order[next[groups[i]]++] = i;
	return {starts, order};
}

export class BottomUp {
	constructor(model, selection) {
		this.model = model;
		this.selection = selection;
		this.self = gatherLoops(model, selection);
		const find = () =>
			findOutermost(model, model.nodes.scope, model.scopes.count, selection.zoom);
		this.outermost = selection.zoom ? find() : cached(model, "outermost scopes", find);
		this.top = null;
	}
	// A row has the nodes (origins) that it stands for, and how far up each has come (at).
	make(key, scope, origins, at, self, total) {
		return {key, scope, node: -1, origins, at, self, total, leaf: !this.hasCallers(at)};
	}
	// Sums of self and total over nodes.
	sums(origins) {
		const self = [], total = [];
		for (let m = 0; m < this.self.length; m++) {
			const own = this.self[m], all = this.selection.total[m];
			let ownSum = 0, allSum = 0;
			for (let i = 0; i < origins.length; i++) {
				ownSum += own[origins[i]];
				allSum += this.outermost[origins[i]] ? all[origins[i]] : 0;
			}
			self.push(ownSum);
			total.push(allSum);
		}
		return [self, total];
	}
	caller(node) {
		if (node === this.selection.zoom)
			return -1;
		const up = this.model.nodes.parent[node];
		return up <= 0 ? -1 : up;
	}
	hasCallers(at) {
		for (let i = 0; i < at.length; i++)
			if (this.caller(at[i]) >= 0)
				return true;
		return false;
	}
	// The nodes that the rows of the top level stand for are found when first needed: their sums do
	// not need them.
	originsOf(scope) {
		if (!this.parted) {
			const groups = new Int32Array(this.counted.length).fill(-1);
			for (let i = 0; i < groups.length; i++)
				if (this.counted[i])
					groups[i] = this.model.nodes.scope[i];
			this.parted = partByGroup(groups, this.model.scopes.count);
		}
		const {starts, order} = this.parted;
		return order.subarray(starts[scope], starts[scope + 1]);
	}
	roots() {
		if (this.top)
			return this.top;
		const {scope, end, parent} = this.model.nodes, {kind, count} = this.model.scopes;
		const {zoom, any, total} = this.selection, {outermost} = this, first = zoom || 1, last = end[zoom];
		const counted = this.counted = new Uint8Array(last), called = new Uint8Array(count);
		for (let i = first; i < last; i++) {
			const s = scope[i];
			if (any[i] && kind[s] !== KIND.loop && (outermost[i] || anyAt(this.self, i))) {
				counted[i] = 1;
				called[s] |= i !== zoom && parent[i] > 0 ? 3 : 1;
			}
		}
		const selfSums = [], totalSums = [];
		for (let m = 0; m < total.length; m++) {
			const own = this.self[m], all = total[m];
			const self = new Float64Array(count), sum = new Float64Array(count);
			for (let i = first; i < last; i++)
				if (counted[i]) {
					self[scope[i]] += own[i];
					if (outermost[i])
						sum[scope[i]] += all[i];
				}
			selfSums.push(self);
			totalSums.push(sum);
		}
		this.top = [];
		for (let s = 1; s < count; s++)
			if (called[s])
				this.top.push({key: String(s), scope: s, node: -1, self: valuesAt(selfSums, s),
					total: valuesAt(totalSums, s), leaf: called[s] === 1});
		return this.top;
	}
	// One step up from all that a row stands for, parted by where that leads.
	children(row) {
		if (row.below)
			return row.below;
		const {scope} = this.model.nodes;
		const origins = row.origins || this.originsOf(row.scope);
		const at = (row.at || origins).map((node) => this.caller(node));
		const numbers = new Map(), groups = new Int32Array(at.length);
		for (let i = 0; i < at.length; i++) {
			const s = at[i] < 0 ? -1 : scope[at[i]];
			if (s >= 0 && !numbers.has(s))
				numbers.set(s, numbers.size);
			groups[i] = s < 0 ? -1 : numbers.get(s);
		}
		const {starts, order} = partByGroup(groups, numbers.size);
		row.below = [];
		for (const [s, g] of numbers) {
			const places = order.subarray(starts[g], starts[g + 1]);
			const from = places.map((i) => origins[i]);
			row.below.push(this.make(`${row.key}.${s}`, s, from, places.map((i) => at[i]),
				...this.sums(from)));
		}
		row.below = row.below.filter((r) => r.self.some((v) => v > 0) || r.total.some((v) => v > 0));
		return row.below;
	}
	rowOf(key) {
		let rows = this.roots(), row = null, path = "";
		for (const part of key.split(".")) {
			path = path ? path + "." + part : part;
			row = rows.find((r) => r.key === path);
			if (!row)
				return null;
			rows = path === key ? [] : this.children(row);
		}
		return row;
	}
	parentKey(key) {
		const dot = key.lastIndexOf(".");
		return dot < 0 ? "" : key.slice(0, dot);
	}
	search(text) {
		const found = matchScopes(this.model, "name", text);
		return new Matches(this.roots().filter((row) => found[row.scope]).map((row) => row.key));
	}
}

// The static structure: modules, files, functions, and below these the loops and inlined functions in
// them. `of` has the element of each node. Levels: 0 module, 1 file, 2 function, 3 … inside.
class Structure {
	constructor(model) {
		this.model = model;
		this.parent = [];
		this.level = [];
		this.scope = []; // -1 for modules and files
		this.label = [];
		this.module = [];
		this.children = [];
		this.tops = [];
		this.groups = new Map();
		this.functions = new Int32Array(model.scopes.count).fill(-1); // by scope
		this.slots = new Int32Array(1024).fill(-1); // those inside, by hash of parent and scope
		this.used = 0;
		const {scope, parent, count} = model.nodes, {kind} = model.scopes;
		this.of = new Int32Array(count);
		for (let i = 1; i < count; i++) {
			const inside = kind[scope[i]] === KIND.loop || kind[scope[i]] === KIND.inline;
			this.of[i] = inside && parent[i] ? this.inside(this.of[parent[i]], scope[i]) :
				this.function(scope[i]);
		}
		this.parentOf = Int32Array.from(this.parent);
		this.levelOf = Int32Array.from(this.level);
	}
	add(parent, level, scope, label, module) {
		const id = this.parent.length;
		this.parent.push(parent);
		this.level.push(level);
		this.scope.push(scope);
		this.label.push(label);
		this.module.push(module);
		this.children.push([]);
		(parent < 0 ? this.tops : this.children[parent]).push(id);
		return id;
	}
	group(parent, key, level, label, module) {
		if (!this.groups.has(key))
			this.groups.set(key, this.add(parent, level, -1, label, module));
		return this.groups.get(key);
	}
	function(scope) {
		if (this.functions[scope] >= 0)
			return this.functions[scope];
		const {model} = this, number = model.scopes.module[scope];
		const partial = model.scopes.kind[scope] === KIND.partial;
		const path = partial ? "(callers not known)" : modulePath(model, scope) || "(no module)";
		const module = this.group(-1, (partial ? "p" : "m") + number, 0, path, number);
		const file = this.group(module, `f${module} ${model.scopes.file[scope]}`, 1,
			scopeFile(model, scope) || "(no file known)", number);
		this.functions[scope] = this.add(file, 2, scope, "", number);
		return this.functions[scope];
	}
	slot(parent, scope) {
		const mask = this.slots.length - 1;
		let at = (Math.imul(parent, 0x9e3779b1) ^ Math.imul(scope, 0x85ebca6b)) & mask;
		while (this.slots[at] >= 0 &&
		       (this.parent[this.slots[at]] !== parent || this.scope[this.slots[at]] !== scope))
			at = (at + 1) & mask;
		return at;
	}
	inside(parent, scope) {
		const at = this.slot(parent, scope);
		if (this.slots[at] >= 0)
			return this.slots[at];
		const id = this.add(parent, this.level[parent] + 1, scope, "", this.module[parent]);
		this.slots[at] = id;
		if (++this.used * 2 > this.slots.length) {
			const before = this.slots;
			this.slots = new Int32Array(before.length * 2).fill(-1);
			for (const known of before)
				if (known >= 0)
					this.slots[this.slot(this.parent[known], this.scope[known])] = known;
		}
		return id;
	}
}

const ELEMENT = 1, FILE = 2, MODULE = 4;

// By node: of what it is the outermost, of its element, the file or the module of its function. Where a
// zoom begins inside of a function, that counts as its beginning.
function findBeginnings(model, structure, zoom) {
	const {end} = model.nodes, {of, parentOf, levelOf} = structure;
	const openEnd = new Int32Array(parentOf.length), flags = new Uint8Array(model.nodes.count);
	for (let i = zoom || 1; i < end[zoom]; i++) {
		const id = of[i];
		if (i >= openEnd[id]) {
			flags[i] |= ELEMENT;
			openEnd[id] = end[i];
		}
		if (levelOf[id] !== 2 && i !== zoom)
			continue;
		let file = parentOf[id];
		while (levelOf[file] > 1)
			file = parentOf[file];
		if (i >= openEnd[file]) {
			flags[i] |= FILE;
			openEnd[file] = end[i];
		}
		if (i >= openEnd[parentOf[file]]) {
			flags[i] |= MODULE;
			openEnd[parentOf[file]] = end[i];
		}
	}
	return flags;
}

export class Flat {
	constructor(model, selection, flatten = 2) {
		this.model = model;
		this.flatten = flatten;
		this.structure = cached(model, "structure", () => new Structure(model));
		const find = () => findBeginnings(model, this.structure, selection.zoom);
		const flags = selection.zoom ? find() : cached(model, "beginnings", find);
		this.self = selection.self.map((self) => this.sumSelf(self, selection.zoom));
		this.total = selection.total.map((total) => this.sumTotal(total, selection.zoom, flags));
	}
	// Own samples; functions and inlined ones have those of their loops, files and modules all.
	sumSelf(self, zoom) {
		const s = this.structure, {end} = this.model.nodes, {kind} = this.model.scopes;
		const own = new Float64Array(s.parent.length);
		for (let i = zoom || 1; i < end[zoom]; i++)
			own[s.of[i]] += self[i];
		const withLoops = own.slice(), all = own.slice();
		for (let id = own.length - 1; id >= 0; id--) {
			if (s.parent[id] < 0)
				continue;
			all[s.parent[id]] += all[id];
			if (s.scope[id] >= 0 && kind[s.scope[id]] === KIND.loop)
				withLoops[s.parent[id]] += withLoops[id];
		}
		return withLoops.map((value, id) => s.scope[id] < 0 ? all[id] :
			kind[s.scope[id]] === KIND.loop ? own[id] : value);
	}
	sumTotal(total, zoom, flags) {
		const {of, parentOf, levelOf} = this.structure, {end} = this.model.nodes;
		const sums = new Float64Array(parentOf.length);
		for (let i = zoom || 1; i < end[zoom]; i++) {
			const flag = flags[i];
			if (!flag)
				continue;
			let id = of[i];
			if (flag & ELEMENT)
				sums[id] += total[i];
			if (!(flag & (FILE | MODULE)))
				continue;
			while (levelOf[id] > 1)
				id = parentOf[id];
			if (flag & FILE)
				sums[id] += total[i];
			if (flag & MODULE)
				sums[parentOf[id]] += total[i];
		}
		return sums;
	}
	row(id) {
		const s = this.structure;
		return {
			key: String(id), scope: s.scope[id], node: -1, label: s.label[id], level: s.level[id],
			module: s.module[id],
			self: valuesAt(this.self, id), total: valuesAt(this.total, id),
			leaf: !s.children[id].some((c) => anyAt(this.total, c)),
		};
	}
	setFlatten(level) {
		this.flatten = level;
		this.topSet = null;
	}
	// The top level, as often as wanted replaced by what is below it; what has nothing below stays.
	top() {
		const s = this.structure;
		const shown = (id) => anyAt(this.total, id);
		let ids = s.tops.filter(shown);
		for (let i = 0; i < this.flatten; i++)
			ids = ids.flatMap((id) => {
				const below = s.children[id].filter(shown);
				return below.length ? below : [id];
			});
		return ids;
	}
	roots() {
		return this.top().map((id) => this.row(id));
	}
	children(row) {
		return this.structure.children[Number(row.key)].filter((c) => anyAt(this.total, c))
			.map((c) => this.row(c));
	}
	rowOf(key) {
		const id = Number(key);
		return Number.isInteger(id) && id >= 0 && id < this.structure.parent.length &&
			anyAt(this.total, id) ? this.row(id) : null;
	}
	parentKey(key) {
		this.topSet = this.topSet || new Set(this.top());
		const id = Number(key), up = this.structure.parent[id];
		return this.topSet.has(id) || up < 0 ? "" : String(up);
	}
	// Rows above the level that is shown are no rows.
	isShown(key) {
		this.topSet = this.topSet || new Set(this.top());
		for (let id = Number(key); id >= 0; id = this.structure.parent[id])
			if (this.topSet.has(id))
				return true;
		return false;
	}
	search(text) {
		const found = matchScopes(this.model, "name", text), s = this.structure;
		const keys = [];
		for (let id = 0; id < s.parent.length; id++)
			if (s.scope[id] >= 0 && found[s.scope[id]] && anyAt(this.total, id) && this.isShown(id))
				keys.push(String(id));
		return new Matches(keys);
	}
}

export function rowName(model, row) {
	return row.scope < 0 ? row.label : scopeName(model, row.scope);
}

// What views need of the model and make once, as steps that can be taken while nothing else is to do.
export function preparations(model) {
	return [
		() => nameRanks(model),
		() => cached(model, "outermost scopes",
			() => findOutermost(model, model.nodes.scope, model.scopes.count)),
		() => cached(model, "structure", () => new Structure(model)),
		() => cached(model, "beginnings", () => findBeginnings(model, cached(model, "structure"), 0)),
	];
}

// The place of each scope's name among all names.
function nameRanks(model) {
	return cached(model, "name ranks", () => {
		const names = Array.from({length: model.scopes.count}, (_, i) => scopeName(model, i));
		const order = names.map((_, i) => i).sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
		const ranks = new Int32Array(order.length);
		order.forEach((scope, i) => { ranks[scope] = i && names[order[i - 1]] === names[scope] ?
			ranks[order[i - 1]] : i; });
		return ranks;
	});
}

// sort: {metric, column: "total" | "self" | "name", up}. Equal numbers are ordered by the other column,
// then by name.
export function sortRows(model, rows, {metric, column, up}) {
	if (rows.length < 2)
		return rows;
	const ranks = nameRanks(model), sign = up ? 1 : -1;
	const byName = (a, b) => a.scope >= 0 && b.scope >= 0 ? ranks[a.scope] - ranks[b.scope] :
		rowName(model, a) < rowName(model, b) ? -1 : rowName(model, a) > rowName(model, b) ? 1 : 0;
	if (column === "name")
		return rows.sort((a, b) => sign * byName(a, b));
	const other = column === "total" ? "self" : "total";
	const first = Float64Array.from(rows, (row) => sign * row[column][metric]);
	const second = Float64Array.from(rows, (row) => sign * row[other][metric]);
	const order = Uint32Array.from(rows, (_, i) => i).sort((a, b) => first[a] - first[b] ||
		second[a] - second[b] || byName(rows[a], rows[b]));
	return Array.from(order, (i) => rows[i]);
}

const ALONE = 0.25; // how far a row without siblings is indented: only forks need room

// The rows that are seen, in order: an array of {row, depth, indent, position, siblings}.
export class Outline {
	constructor(model, view, sort, open) {
		this.model = model;
		this.view = view;
		this.sort = sort;
		this.open = open; // keys of rows whose children are shown
		this.sorted = new Map();
		this.build();
	}
	below(row) {
		const key = row ? row.key : "";
		let rows = this.sorted.get(key);
		if (!rows) {
			rows = sortRows(this.model, (row ? this.view.children(row) : this.view.roots()).slice(), this.sort);
			this.sorted.set(key, rows);
		}
		return rows;
	}
	build() {
		this.list = [];
		this.places = null;
		const stack = [{rows: this.below(null), at: 0, indent: -1}];
		while (stack.length) {
			const top = stack[stack.length - 1];
			if (top.at === top.rows.length) {
				stack.pop();
				continue;
			}
			const row = top.rows[top.at++];
			const alone = top.rows.length === 1 && stack.length > 1;
			const indent = top.indent + (alone ? ALONE : 1);
			this.list.push({row, depth: stack.length - 1, indent, position: top.at, siblings: top.rows.length});
			if (this.open.has(row.key) && !row.leaf)
				stack.push({rows: this.below(row), at: 0, indent});
		}
	}
	placeOf(key) {
		if (!key)
			return -1;
		this.places = this.places || new Map(this.list.map(({row}, i) => [row.key, i]));
		const place = this.places.get(key);
		return place === undefined ? -1 : place;
	}
	// Opens all above a row.
	reveal(key) {
		for (let up = this.view.parentKey(key); up; up = this.view.parentKey(up))
			this.open.add(up);
		this.build();
		return this.placeOf(key);
	}
	// From a row down to the largest child, as long as that has at least half. Opens them and returns
	// the key of the last.
	hotPath(key, metric) {
		let row = key ? this.view.rowOf(key) : null;
		for (let steps = 0; steps < 10000; steps++) {
			const rows = this.below(row);
			let best = null;
			for (const child of rows)
				if (!best || child.total[metric] > best.total[metric])
					best = child;
			if (!best || (row && best.total[metric] * 2 < row.total[metric]))
				break;
			if (row)
				this.open.add(row.key);
			row = best;
			if (row.leaf)
				break;
		}
		this.build();
		return row ? row.key : "";
	}
	// Opens all below a row, level by level, until `limit` more rows are shown.
	openAll(key, limit = 2000) {
		let level = [this.view.rowOf(key)];
		for (let added = 0; level.length && added < limit;) {
			const next = [];
			for (const row of level) {
				if (!row || row.leaf || added >= limit)
					continue;
				this.open.add(row.key);
				const rows = this.below(row);
				added += rows.length;
				next.push(...rows);
			}
			level = next;
		}
		this.build();
	}
}
