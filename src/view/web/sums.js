// SPDX-License-Identifier: Apache-2.0
// Sums of samples. Nodes are in preorder, so sums over all before each of them give those of any subtree: of node i,
// self is upTo[i + 1] - upTo[i] and total upTo[end[i]] - upTo[i].
//
// To add up a million nodes for each of many threads takes longer than people wait, and few of them are seen. So sums
// are looked up where that can be done (LateSums; lists.js): those of one thread in the list of its rows, those without
// what filters leave out by where these begin and end to do so. Where all are needed, all are made.

import {cached, inBlocks} from "./model.js";
import {Grouped, Kept, Listed, changesOf, findInThread, findsThreads, hasLists, listOf, topTotals} from "./lists.js";

const LONG_ENOUGH = 32; // nodes, to be gone through by themselves
const LOOKUPS_MAX = 200000; // in lists of threads: then it is better to have all sums

// All sums

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

// Both in one go, for a list: what comes between two places of it has the sum of all before. state: {at: the next
// place of upTo, sum: what was before it}
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

// Puts the samples of rows where they belong. chosen: by thread, or null for all.
function scatter(model, counts, chosen, upTo) {
	const {node, thread, count} = model.rows;
	if (!chosen)
		return inBlocks(0, count, (from, to) => scatterAll(from, to, node, counts, upTo));
	if (!hasLists(model, counts))
		return inBlocks(0, count, (from, to) => scatterChosen(from, to, node, thread, chosen, counts, upTo));
	chosen.forEach((yes, t) => {
		const {places, sums} = yes ? listOf(model, counts, t) : {places: []};
		inBlocks(0, places.length, (from, to) => scatterList(from, to, places, sums, upTo));
	});
}

// Sums of the samples of rows, up to each node, into `upTo`. chosen: by thread, or null for all; dropped: by node.
function addUp(model, counts, chosen, dropped, upTo) {
	const alone = aloneOf(chosen), whole = upTo instanceof Uint32Array;
	if (alone >= 0) {
		const state = {at: 0, sum: 0}, {places, sums} = listOf(model, counts, alone);
		const add = whole ? accumulateListWhole : accumulateList;
		inBlocks(0, places.length, (from, to) => add(from, to, places, sums, dropped, upTo, state));
		return upTo.fill(state.sum, state.at);
	}
	upTo.fill(0);
	scatter(model, counts, chosen, upTo);
	const add = whole ? accumulateWhole : accumulate;
	inBlocks(1, upTo.length, (from, to) => add(from, to, dropped, upTo));
	return upTo;
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

function takeLess(from, to, all, less, upTo) {
	for (let i = from; i < to; i++)
		upTo[i] = all[i] - less;
}

// From one place where that changes to the next: `places`, as changesOf gives them.
function leaveOutParts(all, places, upTo) {
	let at = 0, gone = 0;
	for (let k = 0; k <= places.length; k++) {
		const next = k < places.length ? places[k] : upTo.length - 1;
		if (k % 2) {
			upTo.fill(upTo[at], at + 1, next + 1);
			gone += all[next] - all[at];
		} else {
			inBlocks(at + 1, next + 1, (from, to) => takeLess(from, to, all, gone, upTo));
		}
		at = next;
	}
	return upTo;
}

function leaveOutAll(all, dropped, upTo) {
	const leave = upTo instanceof Uint32Array ? leaveOutWhole : leaveOut, {places} = changesOf(dropped);
	upTo[0] = 0;
	if (places.length * LONG_ENOUGH < upTo.length)
		return leaveOutParts(all, places, upTo);
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

// Finds what is left of `all` (sums up to each node) without those of others (LateSums).
class Left {
	constructor(all, others) {
		this.all = all;
		this.others = others;
	}
	before(place) {
		return this.all[place] - this.others.before(place);
	}
	numbersOf(nodes, ends, less) {
		const numbers = new Float64Array(nodes.length);
		inBlocks(0, nodes.length, (from, to) => {
			takeNumbers(from, to, nodes, ends, this.all, numbers);
			subtract(from, to, numbers, less, numbers);
		});
		return numbers;
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
	before(place) {
		return this.upTo[place];
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
// are, where these are all of it, or else -1. cost: how many lists are looked into for each.
class LateSums {
	constructor(model, counts, thread, prepare, make, cost = 0) {
		this.model = model;
		this.end = model.nodes.end;
		this.counts = counts;
		this.thread = thread;
		this.prepare = prepare;
		this.found = null;
		this.make = make;
		this.made = null;
		this.cost = cost;
		this.spent = 0;
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
	// Whether all sums are there, also because so many more are asked for that it is better to make them.
	isMade(more) {
		this.spent += more * this.cost;
		return Boolean(this.made || (this.spent > LOOKUPS_MAX && this.upTo));
	}
	before(place) {
		return this.isMade(1) ? this.made[place] : this.finder.before(place);
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
		if (this.made)
			return this.numbers("total", nodes);
		const {finder} = this;
		return finder instanceof Left ? finder.numbersOf(nodes, this.end, finder.others.siblings(nodes, ends)) :
			finder instanceof Listed || finder instanceof Grouped ? finder.siblings(nodes, ends, new Float64Array(nodes.length)) :
			this.numbers("total", nodes);
	}
	numbers(column, nodes) {
		if (this.isMade(2 * nodes.length))
			return Sums.prototype.numbers.call(this, column, nodes);
		const {finder} = this, numbers = new Float64Array(nodes.length), ends = column === "total" ? this.end : null;
		if (finder instanceof Left)
			return finder.numbersOf(nodes, ends, finder.others.numbers(column, nodes));
		inBlocks(0, nodes.length, (from, to) => finder.numbers(from, to, nodes, ends, numbers));
		return numbers;
	}
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
		if (alone < 0 && chosen && !dropped && findsThreads(model, counts)) {
			const threads = [...chosen.keys()].filter((thread) => chosen[thread]);
			return new LateSums(model, counts, -1, () => new Grouped(model, counts, threads), make, threads.length);
		}
		if (alone < 0)
			return new Sums(model, make());
		return new LateSums(model, counts, dropped ? -1 : alone, () => findInThread(model, counts, alone, dropped), make);
	}
	// Of all samples of a column. Those of all threads are kept with what was counted.
	all(k) {
		const {model} = this, {counts, threads, empty} = this.columns[k];
		if (empty || (threads && !threads.includes(1)))
			return this.none();
		const kept = cached(model, "sums of columns", () => new WeakMap());
		const known = this.whole[k] || (threads ? null : kept.get(counts));
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
		return new LateSums(this.model, counts, -1, () => new Left(all, others), () =>
			subtractAll(all, others.upTo, this.make(this.spare)));
	}
	// The sums of a column that has just what this one lacks, if they are found more easily.
	others(k) {
		const {counts, threads} = this.columns[k];
		return this.whole.find((sums, j) => {
			const other = this.columns[j];
			return sums && (sums.made || sums.cost) && j !== k && other.counts === counts && other.threads && // null: it has all
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
