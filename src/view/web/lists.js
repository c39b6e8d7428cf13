// SPDX-License-Identifier: Apache-2.0
// Finds sums of samples without adding up all: in lists of places with samples, as each thread has one, or of places
// where filters begin and end to leave nodes out. What they give is the sum of all before a place, from wherever: only
// differences of two tell something.

import {cached, inBlocks, partBy} from "./model.js";

const LOOKUP = 6; // bits: places are looked up among 64

// Finds how many of ascending places lie before one: marks[i >> LOOKUP] of them before i with its last bits 0.
function markPlaces(places, limit) {
	const marks = new Int32Array((limit >> LOOKUP) + 2);
	inBlocks(0, places.length, (from, to) => countPlaces(from, to, places, marks));
	for (let i = 1; i < marks.length; i++)
		marks[i] += marks[i - 1];
	return marks;
}

function countPlaces(from, to, places, marks) {
	for (let i = from; i < to; i++)
		marks[(places[i] >> LOOKUP) + 1]++;
}

function countBefore(places, marks, place) {
	let at = marks[place >> LOOKUP];
	while (at < places.length && places[at] < place)
		at++;
	return at;
}

// The same where `least` of them are known to.
function countFrom(places, marks, place, least) {
	let at = marks[place >> LOOKUP];
	if (at < least)
		at = least;
	while (at < places.length && places[at] < place)
		at++;
	return at;
}

// Adds samples to those of groups. groups: by node its number, in 31 bits.
const GROUP = 0x7fffffff;

function addOwnListed(from, to, places, sums, groups, own) {
	for (let i = from; i < to; i++)
		own[groups[places[i]] & GROUP] += sums[i + 1] - sums[i];
}

// Finds sums in a list: of the samples at places, ascending, those before each and before the end.
export class Listed {
	constructor({places, sums, marks}) {
		this.places = places;
		this.sums = sums;
		this.marks = marks;
	}
	before(place) {
		return this.sums[countBefore(this.places, this.marks, place)];
	}
	numbers(from, to, nodes, ends, numbers) {
		const {places, sums, marks} = this;
		for (let i = from; i < to; i++) {
			const node = nodes[i], first = countBefore(places, marks, node);
			numbers[i] = sums[countFrom(places, marks, ends ? ends[node] : node + 1, first)] - sums[first];
		}
	}
	addOwn(groups, own) {
		const {places, sums} = this;
		inBlocks(0, places.length, (from, to) => addOwnListed(from, to, places, sums, groups, own));
		return own;
	}
	// Of siblings: each begins where the one before it ends, so there is nothing to look up.
	siblings(nodes, ends, numbers) {
		const {places, sums, marks} = this;
		let at = countBefore(places, marks, nodes[0]);
		inBlocks(0, nodes.length, (from, to) => { at = takeSiblings(from, to, ends, places, sums, at, numbers); });
		return numbers;
	}
}

// Returns where the last ends.
function takeSiblings(from, to, ends, places, sums, at, numbers) {
	const {length} = places;
	let before = sums[at];
	for (let i = from; i < to; i++) {
		const next = ends[i];
		while (at < length && (places[at] | 0) < next)
			at++;
		const now = sums[at];
		numbers[i] = now - before;
		before = now;
	}
	return at;
}

function countChanges(from, to, dropped) {
	let count = 0, last = from ? dropped[from - 1] : 0;
	for (let i = from; i < to; i++) {
		count += dropped[i] ^ last;
		last = dropped[i];
	}
	return count;
}

function listChanges(from, to, dropped, places, used) {
	let last = from ? dropped[from - 1] : 0;
	for (let i = from; i < to; i++) {
		const now = dropped[i];
		if (now !== last)
			places[used++] = i;
		last = now;
	}
	return used;
}

const changes = new WeakMap();

// The nodes from which on nodes are left out, and those from which on they count again, in turn.
export function changesOf(dropped) {
	if (!changes.has(dropped)) {
		let count = 0, used = 0;
		inBlocks(0, dropped.length, (from, to) => { count += countChanges(from, to, dropped); });
		const places = new Int32Array(count);
		inBlocks(0, dropped.length, (from, to) => { used = listChanges(from, to, dropped, places, used); });
		changes.set(dropped, {places, marks: markPlaces(places, dropped.length)});
	}
	return changes.get(dropped);
}

// Finds, of the samples `all` (sums up to each node), those without what is dropped.
export class Kept {
	constructor(all, dropped) {
		const {places, marks} = changesOf(dropped), gone = new Float64Array(places.length + 1); // before each change
		for (let i = 1; i < places.length; i++)
			gone[i + 1] = gone[i] + (i % 2 ? all[places[i]] - all[places[i - 1]] : 0);
		this.all = all;
		this.places = places;
		this.marks = marks;
		this.gone = gone;
	}
	// The sum up to a place after as many changes.
	after(count, place) {
		return this.all[count % 2 ? this.places[count - 1] : place] - this.gone[count];
	}
	before(place) {
		return this.after(countBefore(this.places, this.marks, place), place);
	}
	numbers(from, to, nodes, ends, numbers) {
		const {places, marks} = this;
		for (let i = from; i < to; i++) {
			const node = nodes[i], next = ends ? ends[node] : node + 1, count = countBefore(places, marks, node);
			numbers[i] = this.after(countFrom(places, marks, next, count), next) - this.after(count, node);
		}
	}
}

// Finds sums of several threads, each in its own list.
export class Grouped {
	constructor(model, counts, threads) {
		this.model = model;
		this.counts = counts;
		this.threads = threads;
		this.lists = threads.map((thread) => findInThread(model, counts, thread, null));
		this.top = null; // totals of the root's children
		this.one = null; // memory for what one thread has
	}
	before(place) {
		let sum = 0;
		for (let k = 0; k < this.lists.length; k++)
			sum += this.lists[k].before(place);
		return sum;
	}
	numbers(from, to, nodes, ends, numbers) {
		const one = this.one?.length === numbers.length ? this.one : this.one = new Float64Array(numbers.length);
		for (const list of this.lists) {
			list.numbers(from, to, nodes, ends, one);
			addNumbers(from, to, one, numbers);
		}
	}
	siblings(nodes, ends) {
		if (nodes[0] !== 1)
			return addAll(nodes.length, this.lists, (list) => list.siblings(nodes, ends, new Float64Array(nodes.length)));
		this.top = this.top || addAll(nodes.length, this.threads, (thread) => topTotals(this.model, this.counts, thread));
		return this.top;
	}
}

function addNumbers(from, to, numbers, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i];
}

// The sums of as many numbers that each of a list has.
export function addAll(length, list, numbersOfOne) {
	const sums = new Float64Array(length);
	for (const one of list) {
		const numbers = numbersOfOne(one);
		inBlocks(0, length, (from, to) => addNumbers(from, to, numbers, sums));
	}
	return sums;
}

// The nodes below one.
export function childrenOf(model, node) {
	const {end} = model.nodes, list = [];
	if (!node && model.cache.has("children of the root"))
		return model.cache.get("children of the root");
	for (let c = node + 1; c < end[node]; c = end[c])
		list.push(c);
	const children = Int32Array.from(list);
	return node ? children : cached(model, "children of the root", () => children);
}

// Rows of each thread

// As partBy of model.js gives them.
export const rowsByThread = (model) => cached(model, "rows by thread", () =>
	partBy(model.rows.thread, model.header.threads.length));

function takeInOrder(from, to, order, values, sorted, first) {
	for (let i = from; i < to; i++)
		sorted[i - first] = values[order[i]];
}

function sumInOrder(from, to, order, counts, sums, first) {
	for (let i = from; i < to; i++)
		sums[i - first + 1] = sums[i - first] + counts[order[i]];
}

const THREADS_STEP = 250000; // rows
const THREADS_AT_ONCE = 8;
const KEPT_FOR_THREADS = 4e6; // numbers

// In the order of their threads, as far as they are there already, the nodes of rows, or the samples before each of
// them: {sorted, used}.
function begunByThread(model, values) {
	const kept = cached(model, "columns by thread", () => new WeakMap());
	if (!kept.has(values))
		kept.set(values, {sorted: new values.constructor(values.length + 1), used: 0});
	return kept.get(values);
}

// Takes some more. Returns whether there are others.
function advanceByThread(model, values) {
	const known = begunByThread(model, values), {order} = rowsByThread(model);
	const last = Math.min(order.length, known.used + THREADS_STEP);
	const take = values === model.rows.node ? takeInOrder : sumInOrder;
	inBlocks(known.used, last, (from, to) => take(from, to, order, values, known.sorted, 0));
	known.used = last;
	return last < order.length;
}

// What is made once for threads, as steps that can be taken while nothing else is to do.
export function prepareThreads(model) {
	const {node, counts} = model.rows;
	return [...[node, ...counts].map((values) => () => advanceByThread(model, values)),
		...forThreads(model, model.nodes.count >> LOOKUP, (t) => marksOf(model, t)),
		...counts.flatMap((one) => forThreads(model, childrenOf(model, 0).length, (t) => topTotals(model, one, t)))];
}

// Whether there is room to keep as many numbers for each thread.
export function fitsThreads(model, count) {
	return model.header.threads.length * count <= (model.roomForThreads ?? KEPT_FOR_THREADS);
}

// Steps that make for each thread as many numbers to be kept, if there is room.
export function forThreads(model, count, run) {
	const {length} = model.header.threads, steps = [];
	for (let first = 0; first < length && fitsThreads(model, count); first += THREADS_AT_ONCE)
		steps.push(() => {
			for (let t = first; t < Math.min(length, first + THREADS_AT_ONCE); t++)
				run(t);
		});
	return steps;
}

// What was made of the samples of a thread, kept by name.
export function keptOfThread(model, name, counts, thread, make) {
	const kept = cached(model, name + " of threads", () => new WeakMap());
	if (!kept.has(counts))
		kept.set(counts, []);
	const known = kept.get(counts);
	known[thread] = known[thread] || make();
	return known[thread];
}

// Totals of a thread at the children of the root, which may be many thousands.
export function topTotals(model, counts, thread) {
	return keptOfThread(model, "totals", counts, thread, () => {
		const nodes = childrenOf(model, 0), ends = nodes.map((node) => model.nodes.end[node]);
		return findInThread(model, counts, thread, null).siblings(nodes, ends, new Float64Array(nodes.length));
	});
}

// What finds rows of a thread.
function marksOf(model, thread) {
	const {counts: [counts]} = model.rows;
	return keptOfThread(model, "marks", counts, thread, () =>
		markPlaces(listOf(model, counts, thread).places, model.nodes.count));
}

// Whether sums of any thread are found at once.
export function findsThreads(model, counts) {
	const known = model.cache.get("marks of threads")?.get(model.rows.counts[0]);
	return Boolean(known) && hasLists(model, counts) && model.header.threads.every((_, t) => known[t]);
}

// Whether the rows of threads are beside each other: to fetch them from among the others takes far longer.
export function hasLists(model, counts) {
	const {node, count} = model.rows;
	return model.rows.counts.includes(counts) && begunByThread(model, node).used === count &&
		begunByThread(model, counts).used === count;
}

// The rows of a thread: {places: their nodes, sums: the samples before each and before the end}.
export function listOf(model, counts, thread) {
	const {starts, order} = rowsByThread(model), first = starts[thread], last = starts[thread + 1];
	if (hasLists(model, counts))
		return {places: begunByThread(model, model.rows.node).sorted.subarray(first, last),
			sums: begunByThread(model, counts).sorted.subarray(first, last + 1)};
	const places = new Uint32Array(last - first), sums = new counts.constructor(last - first + 1);
	inBlocks(first, last, (from, to) => takeInOrder(from, to, order, model.rows.node, places, first));
	inBlocks(first, last, (from, to) => sumInOrder(from, to, order, counts, sums, first));
	return {places, sums};
}

// Without what is dropped.
function keepInList(from, to, {places, sums}, dropped, kept, state) {
	let {used} = state;
	for (let i = from; i < to; i++) {
		const place = places[i];
		if (dropped[place] !== 0)
			continue;
		kept.places[used] = place;
		kept.sums[used + 1] = kept.sums[used] + sums[i + 1] - sums[i];
		used++;
	}
	state.used = used;
}

// What finds sums of a thread. dropped: by node, or null
export function findInThread(model, counts, thread, dropped) {
	const list = listOf(model, counts, thread), {length} = list.places, {count} = model.nodes;
	if (!dropped)
		return new Listed({...list, marks: marksOf(model, thread)});
	const kept = {places: new Uint32Array(length), sums: new list.sums.constructor(length + 1)}, state = {used: 0};
	inBlocks(0, length, (from, to) => keepInList(from, to, list, dropped, kept, state));
	const places = kept.places.subarray(0, state.used);
	return new Listed({places, sums: kept.sums, marks: markPlaces(places, count)});
}
