// SPDX-License-Identifier: Apache-2.0
// Which samples count: filters by name, module and thread, and the subtree that is zoomed into.
//
// A filter is {how: "keep" | "hide", what: "name" | "module", text}: paths with a scope that
// matches the regular expression are the only ones that count, or do not count.

import {cached, inBlocks, modulePath, partBy, scopeName, sumsType} from "./model.js";
import {noCounts, timeCounts} from "./times.js";

const MATCHES_KEPT = 16;

// Small letters match capitals, too. NULL where it is no regular expression.
export function compilePattern(text) {
	try {
		return new RegExp(text, /[A-Z]/.test(text) ? "" : "i");
	} catch {
		return null;
	}
}

// Modules are few.
function matchModules(model, pattern, found) {
	const {module} = model.scopes, known = new Map();
	for (let i = 1; i < found.length; i++) {
		if (!known.has(module[i]))
			known.set(module[i], pattern.test(modulePath(model, i)) ? 1 : 0);
		found[i] = known.get(module[i]);
	}
}

// By scope: 1 where name or module matches. The last few are kept.
export function matchScopes(model, what, text) {
	const kept = cached(model, "matches", () => new Map()), key = what + " " + text;
	if (kept.has(key))
		return kept.get(key);
	const pattern = compilePattern(text);
	const found = new Uint8Array(model.scopes.count);
	if (pattern && what === "module")
		matchModules(model, pattern, found);
	for (let i = 1; pattern && what !== "module" && i < found.length; i++)
		found[i] = pattern.test(scopeName(model, i)) ? 1 : 0;
	if (kept.size >= MATCHES_KEPT)
		kept.delete(kept.keys().next().value);
	kept.set(key, found);
	return found;
}

// By node: 1 where its samples are left out. NULL where none are.
function findDropped(model, filters) {
	const active = filters.filter((f) => compilePattern(f.text));
	if (!active.length)
		return null;
	const {scope, parent, count} = model.nodes;
	const dropped = new Uint8Array(count);
	for (const filter of active) {
		const found = matchScopes(model, filter.what, filter.text);
		const below = new Uint8Array(count);
		const wrong = filter.how === "keep" ? 0 : 1;
		inBlocks(1, count, (from, to) => drop(from, to, parent, scope, found, below, wrong, dropped));
		dropped[0] |= wrong ? 0 : 1;
	}
	return dropped;
}

// below: whether a node or one above it is found; wrong: what that must not be.
function drop(from, to, parent, scope, found, below, wrong, dropped) {
	for (let i = from; i < to; i++) {
		below[i] = below[parent[i]] | found[scope[i]];
		if (below[i] === wrong)
			dropped[i] = 1;
	}
}

// Samples of rows, each one place after its node.
function scatterAll(from, to, node, counts, upTo) {
	for (let r = from; r < to; r++)
		upTo[node[r] + 1] += counts[r];
}

function scatterChosen(from, to, node, thread, chosen, counts, upTo) {
	for (let r = from; r < to; r++)
		if (chosen[thread[r]])
			upTo[node[r] + 1] += counts[r];
}

// What sums whole numbers of 32 bits says so (| 0), and does without jumps: engines take other numbers, and ten
// times as long, where they cannot tell.
function accumulateWhole(from, to, dropped, upTo) {
	let sum = upTo[from - 1] | 0;
	for (let i = from; i < to; i++) {
		sum = (sum + (upTo[i] & (dropped[i - 1] - 1))) | 0;
		upTo[i] = sum;
	}
}

function accumulate(from, to, dropped, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = dropped[i - 1] ? sum : sum += upTo[i];
}

// Both in one go, for rows that are few: these are in the order of their nodes, and what comes between two of them
// has the sum of all before it. state: {at: the next place of upTo, sum: what was before it}
function accumulateFew(from, to, nodes, counts, dropped, upTo, state) {
	let {at, sum} = state;
	for (let i = from; i < to; i++) {
		const place = nodes[i];
		while (at <= place)
			upTo[at++] = sum;
		if (dropped[place] === 0)
			sum += counts[i];
	}
	state.at = at;
	state.sum = sum;
}

function accumulateFewWhole(from, to, nodes, counts, dropped, upTo, state) {
	let at = state.at | 0, sum = state.sum | 0;
	for (let i = from; i < to; i++) {
		const place = nodes[i] | 0;
		for (; at <= place; at++)
			upTo[at] = sum;
		sum = (sum + (counts[i] & (dropped[place] - 1))) | 0;
	}
	state.at = at;
	state.sum = sum;
}

// By node: 0.
const noneDropped = (model) => cached(model, "none dropped", () => new Uint8Array(model.nodes.count));

// The thread that alone is chosen, or -1.
function aloneOf(chosen) {
	const first = chosen ? chosen.indexOf(1) : -1;
	return first >= 0 && first === chosen.lastIndexOf(1) ? first : -1;
}

// Sums of the samples of rows, up to each node, into `upTo`. chosen: by thread, or null for all; dropped: by node.
function addUp(model, counts, chosen, dropped, upTo) {
	const {node, thread, count} = model.rows, alone = aloneOf(chosen), whole = upTo instanceof Uint32Array;
	if (alone >= 0) {
		const state = {at: 0, sum: 0};
		const few = whole ? accumulateFewWhole : accumulateFew;
		const nodes = ofThread(model, node, alone), own = ofThread(model, counts, alone);
		inBlocks(0, nodes.length, (from, to) => few(from, to, nodes, own, dropped, upTo, state));
		return upTo.fill(state.sum, state.at);
	}
	upTo.fill(0);
	inBlocks(0, count, (from, to) => chosen ? scatterChosen(from, to, node, thread, chosen, counts, upTo) :
		scatterAll(from, to, node, counts, upTo));
	const all = whole ? accumulateWhole : accumulate;
	inBlocks(1, upTo.length, (from, to) => all(from, to, dropped, upTo));
	return upTo;
}

// From sums of all to those without what is dropped.
function leaveOut(from, to, all, dropped, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = dropped[i - 1] ? sum : sum += all[i] - all[i - 1];
}

function leaveOutAll(all, dropped, upTo) {
	const leave = upTo instanceof Uint32Array ? leaveOutWhole : leaveOut;
	upTo[0] = 0;
	inBlocks(1, upTo.length, (from, to) => leave(from, to, all, dropped, upTo));
	return upTo;
}

function leaveOutWhole(from, to, all, dropped, upTo) {
	let sum = upTo[from - 1] | 0, before = all[from - 1] | 0;
	for (let i = from; i < to; i++) {
		const now = all[i] | 0;
		sum = (sum + ((now - before) & (dropped[i - 1] - 1))) | 0;
		upTo[i] = sum;
		before = now;
	}
}

// Which rows count: of chosen threads, in nodes from `first` to `last` that are not dropped.
function choose(from, to, {node, thread}, chosen, first, last, dropped, wanted) {
	for (let r = from; r < to; r++) {
		const at = node[r];
		wanted[r] = at >= first && at < last && dropped[at] === 0 ? chosen[thread[r]] : 0;
	}
}

// Samples of one kind. Nodes are in preorder, so sums over all before each of them give those of any
// subtree: of node i, self is upTo[i + 1] - upTo[i] and total upTo[end[i]] - upTo[i].
class Sums {
	constructor(model, upTo) {
		this.end = model.nodes.end;
		this.upTo = upTo;
		this.made = upTo;
	}
	self(node) {
		return this.upTo[node + 1] - this.upTo[node];
	}
	total(node) {
		return this.upTo[this.end[node]] - this.upTo[node];
	}
}

// The same where few are asked for: prepare() gives what finds the sum up to a place without those of all others,
// make() these, once somebody wants them.
class LateSums {
	constructor(model, prepare, make) {
		this.end = model.nodes.end;
		this.prepare = prepare;
		this.find = null;
		this.make = make;
		this.made = null;
		this.lastPlace = -1;
		this.last = 0;
	}
	get upTo() {
		if (!this.made)
			this.made = this.make();
		return this.made;
	}
	// Siblings that are asked for in turn begin where the last one ended.
	before(place) {
		if (this.made)
			return this.made[place];
		if (place !== this.lastPlace) {
			this.find = this.find || this.prepare();
			this.lastPlace = place;
			this.last = this.find(place);
		}
		return this.last;
	}
	self(node) {
		return -this.before(node) + this.before(node + 1);
	}
	total(node) {
		return -this.before(node) + this.before(this.end[node]);
	}
}

const LOOKUP = 6; // bits: places are looked up among 64

// Finds how many of ascending places lie before one: marks[i >> LOOKUP] of them before i with its last bits 0.
function markPlaces(places, used, limit) {
	const marks = new Int32Array((limit >> LOOKUP) + 2);
	for (let i = 0; i < used; i++)
		marks[(places[i] >> LOOKUP) + 1]++;
	for (let i = 1; i < marks.length; i++)
		marks[i] += marks[i - 1];
	return marks;
}

function countBefore(places, used, marks, place) {
	let at = marks[place >> LOOKUP];
	while (at < used && places[at] < place)
		at++;
	return at;
}

// Nodes with rows of a thread, and the samples of all before each and of all: rows are in the order of their nodes.
function listThread(from, to, nodes, counts, dropped, places, sums, state) {
	let {used, sum, last} = state;
	for (let i = from; i < to; i++) {
		const place = nodes[i];
		if (dropped[place] !== 0)
			continue;
		if (place !== last)
			places[used++] = last = place;
		sum += counts[i];
		sums[used] = sum;
	}
	Object.assign(state, {used, sum, last});
}

// What finds the samples of one thread up to a place.
function threadBefore(model, counts, thread, dropped) {
	const nodes = ofThread(model, model.rows.node, thread), own = ofThread(model, counts, thread), {length} = nodes;
	const places = new Int32Array(length), sums = new Float64Array(length + 1), state = {used: 0, sum: 0, last: -1};
	inBlocks(0, length, (from, to) => listThread(from, to, nodes, own, dropped, places, sums, state));
	const {used} = state, marks = markPlaces(places, used, model.nodes.count);
	return (place) => sums[countBefore(places, used, marks, place)];
}

function listChanges(from, to, dropped, places, state) {
	let {used, last} = state;
	for (let i = from; i < to; i++) {
		const now = dropped[i];
		if (now !== last)
			places[used++] = i;
		last = now;
	}
	Object.assign(state, {used, last});
}

const changes = new WeakMap();

// The nodes from which on nodes are left out, and those from which on they count again, in turn.
function changesOf(dropped) {
	if (!changes.has(dropped)) {
		const places = new Int32Array(dropped.length), state = {used: 0, last: 0};
		inBlocks(0, dropped.length, (from, to) => listChanges(from, to, dropped, places, state));
		const {used} = state;
		changes.set(dropped, {places, used, marks: markPlaces(places, used, dropped.length)});
	}
	return changes.get(dropped);
}

// What finds, of the samples `all` (sums up to each node), those up to a place without what is dropped.
function keptBefore(all, dropped) {
	const {places, used, marks} = changesOf(dropped), gone = new Float64Array(used + 1); // before each part
	for (let i = 1; i < used; i++)
		gone[i + 1] = gone[i] + (i % 2 ? all[places[i]] - all[places[i - 1]] : 0);
	return (place) => {
		const part = countBefore(places, used, marks, place);
		return part % 2 ? all[places[part - 1]] - gone[part] : all[place] - gone[part];
	};
}

function ownNumbers(from, to, nodes, sums, numbers) {
	for (let i = from; i < to; i++)
		numbers[i] = sums.self(nodes[i]);
}

function allNumbers(from, to, nodes, sums, numbers) {
	for (let i = from; i < to; i++)
		numbers[i] = sums.total(nodes[i]);
}

// What is summed: columns of {counts: by row, threads: by thread, 1 where it is counted; null: all are}, or
// {counts, empty} where there is nothing. Sums of all that is in a column are made once.
export class Base {
	// threads: by thread, 1 where some column counts it; null: all are.
	constructor(model, columns, Type, threads = null) {
		this.model = model;
		this.columns = columns;
		this.Type = Type;
		this.threads = threads;
		this.whole = [];
		this.spare = []; // memory of others that may be taken
	}
	// Its memory, when it is not needed any more.
	release() {
		return [...this.spare, ...this.whole.filter((sums) => sums && sums.made).map((sums) => sums.upTo)];
	}
	none() {
		const {model, Type} = this;
		return new Sums(model, cached(model, "no sums " + Type.name, () => new Type(model.nodes.count + 1)));
	}
	make(spare) {
		const at = spare.findIndex((array) => array instanceof this.Type);
		return at < 0 ? new this.Type(this.model.nodes.count + 1) : spare.splice(at, 1)[0];
	}
	// Of rows of chosen threads (null: all); memory(): an array for the sums.
	rows(counts, chosen, dropped, memory) {
		const {model} = this, alone = aloneOf(chosen), make = () => addUp(model, counts, chosen, dropped, memory());
		if (alone < 0)
			return new Sums(model, make());
		return new LateSums(model, () => threadBefore(model, counts, alone, dropped), make);
	}
	// Of all samples of a column. Those of all threads are kept with what was counted.
	all(k) {
		const {model} = this, {counts, threads, empty} = this.columns[k];
		if (empty)
			return this.none();
		const kept = cached(model, "sums of columns", () => new WeakMap());
		const known = this.whole[k] || (threads ? null : kept.get(counts));
		if (known)
			return known;
		this.whole[k] = this.rows(counts, threads, noneDropped(model), () => this.make(this.spare));
		if (!threads)
			kept.set(counts, this.whole[k]);
		if (this.columns.every((_, i) => this.whole[i]?.made))
			this.spare = [];
		return this.whole[k];
	}
	// Of those of chosen threads (null: all) in nodes that are not dropped (null: none are). Memory is taken from
	// `spare`, and noted in `taken`.
	some(k, chosen, dropped, spare, taken) {
		const {model} = this, {counts, threads, empty = false} = this.columns[k];
		if (!chosen && !dropped)
			return this.all(k);
		const both = chosen && threads ? chosen.map((yes, t) => yes & threads[t]) : chosen;
		if (empty || (both && !both.includes(1)))
			return this.none();
		const memory = () => {
			const upTo = this.make(spare);
			taken.push(upTo);
			return upTo;
		};
		if (both || aloneOf(threads) >= 0)
			return this.rows(counts, both || threads, dropped || noneDropped(model), memory);
		const all = this.all(k).upTo;
		return new LateSums(model, () => keptBefore(all, dropped), () => leaveOutAll(all, dropped, memory()));
	}
}

// All metrics; with `time` ([from, to)), the samples of that part of the time line. The last one is kept.
function baseOf(model, time) {
	const columns = (list) => model.metrics.map(({of, chosen = null}, m) => {
		const counts = list[of ?? m];
		return {counts, threads: chosen, empty: Boolean(time) && counts === noCounts(model)};
	});
	if (!time)
		return cached(model, "base", () => new Base(model, columns(model.rows.counts), sumsType(model.metrics)));
	const kept = cached(model, "base of a time", () => ({})), key = time.join();
	if (kept.key !== key) {
		const base = new Base(model, columns(timeCounts(model, time)), Float64Array); // a span may lie in it in part
		base.spare = kept.base ? kept.base.release() : [];
		Object.assign(kept, {key, base});
	}
	return kept.base;
}

// threads: a Set of indices, or null for all. zoom: a node. time: [from, to), or null for all; then samples
// are those of the time line.
// `reuse`: a selection that is no longer needed, whose memory may be taken.
export function computeSelection(model, options = {}, reuse = null) {
	const {filters = [], threads = null, zoom = 0, time = null} = options;
	if (!threads && !zoom && !time && !filters.some((f) => compilePattern(f.text)))
		return cached(model, "whole selection", () => new Selection(model, baseOf(model, null), {}));
	return new Selection(model, baseOf(model, time), options, reuse);
}

// The samples that count: `sums` of each column of `base`, in which only nodes inside of the zoom are to be looked
// at; `wanted`: whether a row counts. What nobody asks for is not computed.
export class Selection {
	constructor(model, base, {filters = [], threads = null, zoom = 0, time = null}, reuse = null) {
		this.model = model;
		this.base = base;
		this.zoom = zoom;
		this.narrowed = Boolean(filters.length || threads || zoom || time);
		this.dropped = findDropped(model, filters);
		this.chosen = threads ? new Uint8Array(model.header.threads.length) : null;
		for (const index of threads || [])
			this.chosen[index] = 1;
		this.spare = reuse ? [...reuse.taken, ...reuse.spare] : [];
		this.taken = [];
		this.views = {}; // that were made of it, by name
	}
	get sums() {
		if (!this.made) {
			this.made = this.base.columns.map((_, k) => this.base.some(k, this.chosen, this.dropped, this.spare, this.taken));
			if (this.made.every((sums) => sums.made))
				this.spare = [];
		}
		return this.made;
	}
	get wanted() {
		if (!this.flags) {
			const {model, zoom} = this, flags = new Uint8Array(model.rows.count);
			const dropped = this.dropped || noneDropped(model);
			const chosen = this.chosen || this.base.threads || new Uint8Array(model.header.threads.length).fill(1);
			inBlocks(0, flags.length, (from, to) => choose(from, to, model.rows, chosen, zoom, model.nodes.end[zoom],
				dropped, flags));
			this.flags = flags;
		}
		return this.flags;
	}
	// Whether a node has a total in some column.
	any(node) {
		const {sums} = this;
		for (let m = 0; m < sums.length; m++)
			if (sums[m].total(node) > 0)
				return true;
		return false;
	}
	// Numbers of a node, or of nodes. column: "self" or "total"
	values(column, node) {
		return this.sums.map((sums) => sums[column](node));
	}
	numbers(column, metric, nodes) {
		const sums = this.sums[metric], numbers = new Float64Array(nodes.length);
		const add = column === "self" ? ownNumbers : allNumbers;
		inBlocks(0, nodes.length, (from, to) => add(from, to, nodes, sums, numbers));
		return numbers;
	}
}

// Rows of each line, and of each thread (model.js: partBy).
export const rowsByLine = (model) => cached(model, "rows by line", () => partBy(model.rows.line, model.lines.count));
export const rowsByThread = (model) => cached(model, "rows by thread", () =>
	partBy(model.rows.thread, model.header.threads.length));

function takeInOrder(from, to, order, values, sorted, first) {
	for (let i = from; i < to; i++)
		sorted[i - first] = values[order[i]];
}

const THREADS_STEP = 250000; // rows

// Nodes or samples of rows in the order of their threads, as far as they are already: {sorted, used}.
function begunByThread(model, values) {
	const kept = cached(model, "columns by thread", () => new WeakMap());
	if (!kept.has(values))
		kept.set(values, {sorted: new values.constructor(values.length), used: 0});
	return kept.get(values);
}

// Takes some more. Returns whether there are others.
function advanceByThread(model, values) {
	const known = begunByThread(model, values), {order} = rowsByThread(model);
	const last = Math.min(order.length, known.used + THREADS_STEP);
	inBlocks(known.used, last, (from, to) => takeInOrder(from, to, order, values, known.sorted, 0));
	known.used = last;
	return last < order.length;
}

// Those of one thread. To have them beside each other is far quicker than to fetch them from among the others.
function ofThread(model, values, thread) {
	const {starts, order} = rowsByThread(model), first = starts[thread], last = starts[thread + 1];
	if (model.rows.node === values || model.rows.counts.includes(values)) {
		const {sorted, used} = begunByThread(model, values);
		if (used === order.length)
			return sorted.subarray(first, last);
	}
	const some = new values.constructor(last - first);
	inBlocks(first, last, (from, to) => takeInOrder(from, to, order, values, some, first));
	return some;
}

// What is made once for threads, as steps that can be taken while nothing else is to do.
export function prepareThreads(model) {
	const {node, counts} = model.rows;
	return [node, ...counts].map((values) => () => advanceByThread(model, values));
}

// Self samples of a line, of the rows that count.
export function lineSelf(model, selection, metric, line) {
	const {starts, order} = rowsByLine(model), {wanted} = selection, {counts, threads} = selection.base.columns[metric];
	let sum = 0;
	for (let i = starts[line]; i < starts[line + 1]; i++)
		if (wanted[order[i]] && (!threads || threads[model.rows.thread[order[i]]]))
			sum += counts[order[i]];
	return sum;
}

function sumThreads(from, to, thread, wanted, counts, sums) {
	for (let r = from; r < to; r++)
		if (wanted[r])
			sums[thread[r]] += counts[r];
}

// Samples by thread, of all filters but the threads'.
export function threadTotals(model, filters, metric, zoom = 0, time = null) {
	const {wanted, base} = computeSelection(model, {filters, zoom, time}), {counts} = base.columns[metric];
	const sums = new Float64Array(model.header.threads.length), {thread} = model.rows;
	inBlocks(0, thread.length, (from, to) => sumThreads(from, to, thread, wanted, counts, sums));
	return sums;
}

// Of a recorded metric, whatever is filtered.
export function samplesByThread(model, metric) {
	return cached(model, "samples by thread " + metric, () => threadTotals(model, [], metric));
}
