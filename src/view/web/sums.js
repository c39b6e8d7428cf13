// SPDX-License-Identifier: Apache-2.0
// Sums of samples. Nodes are in preorder, so sums over all before each of them give those of any subtree: of node i,
// self is upTo[i + 1] - upTo[i] and total upTo[end[i]] - upTo[i].
//
// To add up a million nodes for each of many threads takes longer than people wait, and few of them are seen. So sums
// are looked up where that can be done (LateSums; lists.js): those of one thread in the list of its rows, those without
// what filters leave out by where these begin and end to do so. Where all are needed, all are made.

import {cached, inBlocks} from "./model.js";
import {Kept, Listed, findInThread, hasLists, listOf, rowsByThread, topTotals} from "./lists.js";

const FEW_ROWS = 1 / 8; // of all

// All sums

// Samples of rows in a list, each one place after its node.
function scatterList(from, to, places, sums, upTo) {
	for (let i = from; i < to; i++)
		upTo[places[i] + 1] += sums[i + 1] - sums[i];
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

// All in one go, for rows, which are in the order of their nodes: what comes between two of them has the sum of all
// before. state: {at: the next place of upTo, sum: what was before it}
function accumulateRows(from, to, {node, thread}, chosen, counts, dropped, upTo, state) {
	let {at, sum} = state;
	for (let r = from; r < to; r++) {
		const place = node[r];
		while (at <= place)
			upTo[at++] = sum;
		if (chosen[thread[r]] !== 0 && dropped[place] === 0)
			sum += counts[r];
	}
	state.at = at;
	state.sum = sum;
}

function accumulateRowsWhole(from, to, {node, thread}, chosen, counts, dropped, upTo, state) {
	let at = state.at | 0, sum = state.sum | 0;
	for (let r = from; r < to; r++) {
		const place = node[r] | 0;
		for (; at <= place; at++)
			upTo[at] = sum;
		sum = (sum + (counts[r] & -(chosen[thread[r]] & (dropped[place] - 1)))) | 0;
	}
	state.at = at;
	state.sum = sum;
}

// The same for a list.
function accumulateList(from, to, places, sums, dropped, upTo, state) {
	let {at, sum} = state;
	for (let i = from; i < to; i++) {
		const place = places[i];
		while (at <= place)
			upTo[at++] = sum;
		if (dropped[place] === 0)
			sum += sums[i + 1] - sums[i];
	}
	state.at = at;
	state.sum = sum;
}

function accumulateListWhole(from, to, places, sums, dropped, upTo, state) {
	let at = state.at | 0, sum = state.sum | 0, before = sums[from] | 0;
	for (let i = from; i < to; i++) {
		const place = places[i] | 0, next = sums[i + 1] | 0;
		for (; at <= place; at++)
			upTo[at] = sum;
		sum = (sum + ((next - before) & (dropped[place] - 1))) | 0;
		before = next;
	}
	state.at = at;
	state.sum = sum;
}

// By node: 0.
export const noneDropped = (model) => cached(model, "none dropped", () => new Uint8Array(model.nodes.count));

// The thread that alone is chosen, or -1.
function aloneOf(chosen) {
	const first = chosen ? chosen.indexOf(1) : -1;
	return first >= 0 && first === chosen.lastIndexOf(1) ? first : -1;
}

// Whether the rows of chosen threads are so few that it is better to fetch them from their lists.
function areFew(model, counts, chosen) {
	if (!hasLists(model, counts))
		return false;
	const {starts} = rowsByThread(model);
	return chosen.reduce((sum, yes, t) => sum + (yes ? starts[t + 1] - starts[t] : 0), 0) < model.rows.count * FEW_ROWS;
}

function addLists(model, counts, chosen, dropped, upTo) {
	upTo.fill(0);
	chosen.forEach((yes, t) => {
		const {places, sums} = yes ? listOf(model, counts, t) : {places: []};
		inBlocks(0, places.length, (from, to) => scatterList(from, to, places, sums, upTo));
	});
	const add = upTo instanceof Uint32Array ? accumulateWhole : accumulate;
	inBlocks(1, upTo.length, (from, to) => add(from, to, dropped, upTo));
	return upTo;
}

// Sums of the samples of rows, up to each node, into `upTo`. chosen: by thread, or null for all; dropped: by node.
function addUp(model, counts, chosen, dropped, upTo) {
	const {rows} = model, alone = aloneOf(chosen), whole = upTo instanceof Uint32Array, state = {at: 0, sum: 0};
	if (alone >= 0) {
		const {places, sums} = listOf(model, counts, alone), add = whole ? accumulateListWhole : accumulateList;
		inBlocks(0, places.length, (from, to) => add(from, to, places, sums, dropped, upTo, state));
	} else if (chosen && areFew(model, counts, chosen)) {
		return addLists(model, counts, chosen, dropped, upTo);
	} else {
		const those = chosen || new Uint8Array(model.header.threads.length).fill(1);
		const add = whole ? accumulateRowsWhole : accumulateRows;
		inBlocks(0, rows.count, (from, to) => add(from, to, rows, those, counts, dropped, upTo, state));
	}
	return upTo.fill(state.sum, state.at);
}

// From sums of all to those without what is dropped.
function leaveOut(from, to, all, dropped, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = dropped[i - 1] ? sum : sum += all[i] - all[i - 1];
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

function leaveOutAll(all, dropped, upTo) {
	const leave = upTo instanceof Uint32Array ? leaveOutWhole : leaveOut;
	upTo[0] = 0;
	inBlocks(1, upTo.length, (from, to) => leave(from, to, all, dropped, upTo));
	return upTo;
}

function subtract(from, to, all, some, upTo) {
	for (let i = from; i < to; i++)
		upTo[i] = all[i] - some[i];
}

function subtractAll(all, some, upTo) {
	inBlocks(0, upTo.length, (from, to) => subtract(from, to, all, some, upTo));
	return upTo;
}

// Finds what is left of `all` without `some`.
class Left {
	constructor(all, some) {
		this.all = all;
		this.some = some;
	}
	before(place) {
		return this.all[place] - this.some[place];
	}
	numbers(from, to, nodes, ends, numbers) {
		const {all, some} = this;
		for (let i = from; i < to; i++) {
			const node = nodes[i], next = ends ? ends[node] : node + 1;
			numbers[i] = all[next] - some[next] - (all[node] - some[node]);
		}
	}
}

// ends: by node where it ends, or null for the node alone.
function takeNumbers(from, to, nodes, ends, upTo, numbers) {
	for (let i = from; i < to; i++) {
		const node = nodes[i];
		numbers[i] = upTo[ends ? ends[node] : node + 1] - upTo[node];
	}
}

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
	// Totals of all nodes below one. ends: where they end
	siblings(nodes) {
		return this.numbers("total", nodes);
	}
	// Of many nodes. column: "self" or "total"
	numbers(column, nodes) {
		const numbers = new Float64Array(nodes.length), ends = column === "total" ? this.end : null;
		inBlocks(0, nodes.length, (from, to) => takeNumbers(from, to, nodes, ends, this.upTo, numbers));
		return numbers;
	}
}

// Sums of which few are asked for: prepare() gives what finds them, make() an array of all. thread: whose samples they
// are, where these are all of it, or else -1.
class LateSums {
	constructor(model, counts, thread, prepare, make) {
		this.model = model;
		this.end = model.nodes.end;
		this.counts = counts;
		this.thread = thread;
		this.prepare = prepare;
		this.found = null;
		this.make = make;
		this.made = null;
		this.without = null; // the sums of all others, where it is what these leave
	}
	get upTo() {
		if (!this.made)
			this.made = this.make();
		return this.made;
	}
	get finder() {
		if (!this.found)
			this.found = this.prepare();
		return this.found;
	}
	before(place) {
		return this.made ? this.made[place] : this.finder.before(place);
	}
	self(node) {
		return this.before(node + 1) - this.before(node);
	}
	total(node) {
		return this.before(this.end[node]) - this.before(node);
	}
	// Those of the root's children are kept for threads.
	siblings(nodes, ends) {
		if (this.thread >= 0 && nodes[0] === 1)
			return topTotals(this.model, this.counts, this.thread);
		if (this.made || !(this.finder instanceof Listed))
			return this.numbers("total", nodes);
		return this.finder.siblings(nodes, ends, new Float64Array(nodes.length));
	}
	numbers(column, nodes) {
		if (this.made)
			return Sums.prototype.numbers.call(this, column, nodes);
		const {finder} = this, numbers = new Float64Array(nodes.length), ends = column === "total" ? this.end : null;
		inBlocks(0, nodes.length, (from, to) => finder.numbers(from, to, nodes, ends, numbers));
		return numbers;
	}
}

// Of all threads, by what was counted.
export const keptSums = (model) => cached(model, "sums of columns", () => new WeakMap());

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
	// How many arrays it has.
	get madeCount() {
		return this.whole.filter((sums) => sums && sums.made).length;
	}
	none() {
		const {model, Type} = this;
		return new Sums(model, cached(model, "no sums " + Type.name, () => new Type(model.nodes.count + 1)));
	}
	make(spare) {
		const at = spare.findIndex((array) => array instanceof this.Type && array.length === this.model.nodes.count + 1);
		return at < 0 ? new this.Type(this.model.nodes.count + 1) : spare.splice(at, 1)[0];
	}
	// Of rows of chosen threads (null: all) that are not dropped (null: none are); memory(): an array for the sums.
	rows(counts, chosen, dropped, memory) {
		const {model} = this, alone = aloneOf(chosen);
		const make = () => addUp(model, counts, chosen, dropped || noneDropped(model), memory());
		if (alone < 0)
			return new Sums(model, make());
		return new LateSums(model, counts, dropped ? -1 : alone, () => findInThread(model, counts, alone, dropped), make);
	}
	// Of all samples of a column. Those of all threads are kept with what was counted.
	all(k) {
		const {model} = this, {counts, threads, empty} = this.columns[k];
		if (empty || (threads && !threads.includes(1)))
			return this.none();
		const kept = keptSums(model), known = this.whole[k] || (threads ? null : kept.get(counts));
		if (known)
			return known;
		const others = kept.has(counts) ? this.others(k) : null, memory = () => this.make(this.spare);
		this.whole[k] = others ? this.leftOf(counts, kept.get(counts).upTo, others) : this.rows(counts, threads, null, memory);
		if (!threads)
			kept.set(counts, this.whole[k]);
		if (this.columns.every((_, i) => this.whole[i]?.made))
			this.spare = [];
		return this.whole[k];
	}
	leftOf(counts, all, others) {
		const left = new LateSums(this.model, counts, -1, () => new Left(all, others.upTo), () =>
			subtractAll(all, others.upTo, this.make(this.spare)));
		left.without = others;
		return left;
	}
	// The sums of a column that has just what this one lacks, if they are made.
	others(k) {
		const {counts, threads} = this.columns[k];
		return this.whole.find((sums, j) => {
			const other = this.columns[j];
			return sums?.made && j !== k && other.counts === counts && other.threads && // null: it has all
				threads.every((yes, t) => yes !== other.threads[t]);
		}) || null;
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
			return this.rows(counts, both || threads, dropped, memory);
		const all = this.all(k).upTo;
		return new LateSums(model, counts, -1, () => new Kept(all, dropped), () => leaveOutAll(all, dropped, memory()));
	}
}
