// SPDX-License-Identifier: Apache-2.0
// The flat view: modules, files, functions, and the loops and inlined functions in these.

import {KIND, cached, inBlocks, modulePath, scopeFile} from "./model.js";
import {Level, numbersOf} from "./levels.js";
import {Matches, markSome, pairSteps, valuesAt} from "./views.js";
import {Pairs} from "./pairs.js";
import {matchScopes} from "./select.js";

// The static structure: modules, files, functions, and below these the loops and inlined functions in
// them, taken from all nodes step by step. `of` has the element of each node. Levels: 0 module, 1 file, 2 function, 3 … inside.
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
		this.insides = new Pairs(); // by parent and scope
		this.of = new Int32Array(model.nodes.count);
		this.next = 1;
	}
	// Takes in some more nodes. Returns whether there are others.
	advance(limit) {
		const {scope, parent, count} = this.model.nodes, {kind} = this.model.scopes, {of} = this;
		const last = Math.min(count, this.next + limit);
		if (this.parentOf)
			return false;
		for (let i = this.next; i < last; i++) {
			const inside = kind[scope[i]] === KIND.loop || kind[scope[i]] === KIND.inline;
			of[i] = inside && parent[i] ? this.inside(of[parent[i]], scope[i]) : this.function(scope[i]);
		}
		this.next = last;
		if (last < count)
			return true;
		this.parentOf = Int32Array.from(this.parent);
		this.levelOf = Int32Array.from(this.level);
		this.scopeOf = Int32Array.from(this.scope);
		this.fileOf = new Int32Array(this.parentOf.length); // of what is in one
		for (let id = 0; id < this.fileOf.length; id++)
			this.fileOf[id] = this.levelOf[id] <= 1 ? id : this.fileOf[this.parentOf[id]];
		return false;
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
	inside(parent, scope) {
		const known = this.insides.get(parent, scope);
		return known >= 0 ? known :
			this.insides.add(parent, scope, this.add(parent, this.level[parent] + 1, scope, "", this.module[parent]));
	}
}

const ELEMENT = 1 << 29, FILE = 1 << 30, MODULE = 1 << 31, NUMBER = ELEMENT - 1;

// By node: its element, and of what it is the outermost: of that, of the file or the module of its function.
// Where a zoom begins inside of a function, that counts as its beginning.
function findBeginnings(model, structure, zoom) {
	const {end} = model.nodes, {of, parentOf, levelOf, fileOf} = structure;
	const openEnd = new Int32Array(parentOf.length), beginnings = new Int32Array(model.nodes.count);
	for (let i = zoom || 1; i < end[zoom]; i++) {
		const id = of[i];
		beginnings[i] = id;
		if (i >= openEnd[id]) {
			beginnings[i] |= ELEMENT;
			openEnd[id] = end[i];
		}
		if (levelOf[id] !== 2 && i !== zoom)
			continue;
		const file = fileOf[id];
		if (i >= openEnd[file]) {
			beginnings[i] |= FILE;
			openEnd[file] = end[i];
		}
		if (i >= openEnd[parentOf[file]]) {
			beginnings[i] |= MODULE;
			openEnd[parentOf[file]] = end[i];
		}
	}
	return beginnings;
}

const STEP = 100000; // nodes

function begunStructure(model) {
	return cached(model, "structure", () => new Structure(model));
}

function structureOf(model) {
	const structure = begunStructure(model);
	structure.advance(Infinity);
	return structure;
}

const beginningsOf = (model) => cached(model, "beginnings", () => findBeginnings(model, structureOf(model), 0));

// What has no samples is left out with all below it.
function sumElements(from, to, end, beginnings, a, b, [self, total]) {
	for (let i = from; i < to; i++) {
		const next = end[i], before = a[i], value = a[next] - before;
		if (value === 0) {
			i = next - 1;
			continue;
		}
		const beginning = beginnings[i], id = beginning & NUMBER, own = a[i + 1] - before;
		if (own > 0)
			self[id] += own;
		if (beginning & ELEMENT)
			total[id] += value;
	}
}

function sumElementsPair(from, to, end, beginnings, a, b, [selfA, totalA, selfB, totalB]) {
	for (let i = from; i < to; i++) {
		const next = end[i], a0 = a[i], b0 = b[i], valueA = (a[next] - a0) | 0, valueB = (b[next] - b0) | 0;
		if ((valueA | valueB) === 0) {
			i = next - 1;
			continue;
		}
		const beginning = beginnings[i], id = beginning & NUMBER, ownA = (a[i + 1] - a0) | 0, ownB = (b[i + 1] - b0) | 0;
		if ((ownA | ownB) !== 0) {
			selfA[id] += ownA;
			selfB[id] += ownB;
		}
		if (beginning & ELEMENT) {
			totalA[id] += valueA;
			totalB[id] += valueB;
		}
	}
}

function sumFiles(from, to, end, {parentOf, fileOf}, beginnings, sums, total) {
	for (let i = from; i < to; i++) {
		const beginning = beginnings[i], value = sums[end[i]] - sums[i];
		if (value === 0) {
			i = end[i] - 1;
			continue;
		}
		const file = fileOf[beginning & NUMBER];
		if (beginning & FILE)
			total[file] += value;
		if (beginning & MODULE)
			total[parentOf[file]] += value;
	}
}

// Of two, which are whole numbers of 32 bits.
function sumFilesPair(from, to, end, {parentOf, fileOf}, beginnings, a, b, totalA, totalB) {
	for (let i = from; i < to; i++) {
		const next = end[i], valueA = (a[next] - a[i]) | 0, valueB = (b[next] - b[i]) | 0;
		if ((valueA | valueB) === 0) {
			i = next - 1;
			continue;
		}
		const beginning = beginnings[i];
		if ((beginning & (FILE | MODULE)) === 0)
			continue;
		const file = fileOf[beginning & NUMBER];
		if (beginning & FILE) {
			totalA[file] += valueA;
			totalB[file] += valueB;
		}
		if (beginning & MODULE) {
			totalA[parentOf[file]] += valueA;
			totalB[parentOf[file]] += valueB;
		}
	}
}

export class Flat {
	constructor(model, selection, flatten = 2) {
		this.model = model;
		this.flatten = flatten;
		this.structure = structureOf(model);
		const {zoom} = selection, {parentOf} = this.structure;
		this.selection = selection;
		this.beginnings = zoom ? findBeginnings(model, this.structure, zoom) : beginningsOf(model);
		this.made = {self: [], total: []};
		this.steps = pairSteps(selection, parentOf.length, (a, b) => this.sum(a, b), this.made);
		this.levels = new Map(); // by id
	}
	// Takes a step of what is summed before it is needed. Returns whether there are others.
	advance() {
		if (this.steps.length)
			this.steps.shift()();
		return this.steps.length > 0;
	}
	// Of all columns, by element: {self, total}.
	get sums() {
		while (this.advance())
			;
		return this.made;
	}
	// By element: 1 for those that have samples.
	get any() {
		if (!this.some) {
			const {parentOf} = this.structure, some = this.some = new Uint8Array(parentOf.length);
			for (const total of this.sums.total)
				inBlocks(0, total.length, (from, to) => markSome(from, to, total, some));
			for (let id = some.length - 1; id >= 0; id--) // files and modules: those of what is in them
				if (some[id] && parentOf[id] >= 0)
					some[parentOf[id]] = 1;
		}
		return this.some;
	}
	// Of two columns or one, by element.
	sum(a, b) {
		const lists = Array.from({length: b ? 4 : 2}, () => new a.constructor(this.structure.parentOf.length));
		const {end} = this.model.nodes, {beginnings} = this, {zoom} = this.selection, sum = b ? sumElementsPair : sumElements;
		inBlocks(zoom || 1, end[zoom], (from, to) => sum(from, to, end, beginnings, a, b, lists));
		return lists.map((list, i) => i % 2 ? list : this.spread(list));
	}
	// Totals of files and modules, which are seldom looked at: of two metrics or one. Returns whether there are others.
	advanceUpper() {
		const {sums, base} = this.selection, {total} = this.sums;
		const list = this.upper ??= total.map((_, m) => m).filter((m) => !base.columns[m].empty);
		if (list.length) {
			const a = list.shift(), b = base.Type === Uint32Array ? list.shift() ?? a : a;
			this.sumFiles(sums[a].upTo, a === b ? null : sums[b].upTo, total[a], total[b]);
		}
		return list.length > 0;
	}
	sumFiles(a, b, totalA, totalB) {
		const {end} = this.model.nodes, {structure, beginnings} = this, {zoom} = this.selection;
		inBlocks(zoom || 1, end[zoom], (from, to) => b ? sumFilesPair(from, to, end, structure, beginnings, a, b, totalA, totalB) :
			sumFiles(from, to, end, structure, beginnings, a, totalA));
	}
	sumUpper() {
		while (this.advanceUpper())
			;
	}
	// Functions and inlined ones have the own samples of their loops, too, files and modules all.
	spread(own) {
		const {parentOf, scopeOf} = this.structure, {kind} = this.model.scopes;
		const withLoops = own.slice(), all = own.slice(), result = own.slice();
		for (let id = own.length - 1; id >= 0; id--) {
			const up = parentOf[id], scope = scopeOf[id];
			const loop = scope >= 0 && kind[scope] === KIND.loop;
			if (up >= 0) {
				all[up] += all[id];
				if (loop)
					withLoops[up] += withLoops[id];
			}
			result[id] = scope < 0 ? all[id] : loop ? own[id] : withLoops[id];
		}
		return result;
	}
	row(id) {
		const s = this.structure, {any} = this;
		if (s.level[id] < 2)
			this.sumUpper();
		return {
			key: String(id), scope: s.scope[id], node: -1, label: s.label[id], level: s.level[id],
			module: s.module[id],
			self: valuesAt(this.sums.self, id), total: valuesAt(this.sums.total, id),
			leaf: !s.children[id].some((c) => any[c]),
		};
	}
	setFlatten(level) {
		this.flatten = level;
		this.topFlags = null;
		this.levels.delete(-1);
	}
	// The top level, as often as wanted replaced by what is below it; what has nothing below stays.
	top() {
		const s = this.structure, {any} = this;
		let ids = s.tops.filter((id) => any[id]);
		for (let i = 0; i < this.flatten; i++) {
			const next = [];
			for (const id of ids) {
				const before = next.length;
				for (const c of s.children[id])
					if (any[c])
						next.push(c);
				if (next.length === before)
					next.push(id);
			}
			ids = next;
		}
		return Int32Array.from(ids);
	}
	level(row) {
		const id = row ? Number(row.key) : -1, s = this.structure;
		let level = this.levels.get(id);
		if (!level) {
			const ids = row ? Int32Array.from(s.children[id].filter((c) => this.any[c])) : this.top();
			const scopes = numbersOf(ids, s.scopeOf);
			level = new Level(ids, {
				of: (one) => this.row(one),
				numbers: (column, metric) => {
					if (ids.some((one) => s.levelOf[one] < 2))
						this.sumUpper();
					return numbersOf(ids, this.sums[column][metric]);
				},
				scopes: Int32Array.from(scopes),
				label: scopes.includes(-1) ? (place) => s.label[ids[place]] : null,
			});
			this.levels.set(id, level);
		}
		return level;
	}
	rowOf(key) {
		const id = Number(key);
		return Number.isInteger(id) && this.any[id] ? this.row(id) : null;
	}
	idOf(key) {
		return Number(key);
	}
	// By element: 1 for those of the top level.
	topOf() {
		if (!this.topFlags) {
			this.topFlags = new Uint8Array(this.structure.parentOf.length);
			for (const id of this.level(null).ids)
				this.topFlags[id] = 1;
		}
		return this.topFlags;
	}
	parentKey(key) {
		const id = Number(key), up = this.structure.parentOf[id];
		return this.topOf()[id] || !(up >= 0) ? "" : String(up);
	}
	// Rows above the level that is shown are no rows.
	isShown(key) {
		const top = this.topOf(), {parentOf} = this.structure;
		for (let id = Number(key); id >= 0; id = parentOf[id])
			if (top[id])
				return true;
		return false;
	}
	search(text) {
		const found = matchScopes(this.model, "name", text), {scopeOf} = this.structure, {any} = this;
		const ids = [];
		for (let id = 0; id < scopeOf.length; id++)
			if (scopeOf[id] >= 0 && found[scopeOf[id]] && any[id] && this.isShown(id))
				ids.push(id);
		return new Matches(Int32Array.from(ids));
	}
}

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do. A step
// that returns true is to be taken again.
export function prepareFlat(model) {
	return [() => begunStructure(model).advance(STEP), () => { beginningsOf(model); }];
}
