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

// By scope: 1 where name or module matches. The last few are kept.
export function matchScopes(model, what, text) {
	const kept = cached(model, "matches", () => new Map()), key = what + " " + text;
	if (kept.has(key))
		return kept.get(key);
	const pattern = compilePattern(text);
	const found = new Uint8Array(model.scopes.count);
	for (let i = 1; pattern && i < found.length; i++)
		found[i] = pattern.test(what === "module" ? modulePath(model, i) : scopeName(model, i)) ? 1 : 0;
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

function accumulate(from, to, dropped, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = dropped[i - 1] ? sum : sum += upTo[i];
}

// Both in one go, for rows that are few: these are in the order of their nodes, and what comes between two of them
// has the sum of all before it. state: {at: the next place of upTo, sum: what was before it}
function accumulateFew(from, to, order, node, counts, dropped, upTo, state) {
	let {at, sum} = state;
	for (let i = from; i < to; i++) {
		const r = order[i], place = node[r];
		while (at <= place)
			upTo[at++] = sum;
		if (dropped[place] === 0)
			sum += counts[r];
	}
	state.at = at;
	state.sum = sum;
}

// By node: 0.
const noneDropped = (model) => cached(model, "none dropped", () => new Uint8Array(model.nodes.count));

// Sums of the samples of rows, up to each node, into `upTo`. chosen: by thread, or null for all; dropped: by node.
function addUp(model, counts, chosen, dropped, upTo) {
	const {node, thread, count} = model.rows, alone = chosen ? chosen.indexOf(1) : -1;
	if (alone >= 0 && alone === chosen.lastIndexOf(1)) {
		const {starts, order} = rowsByThread(model), state = {at: 0, sum: 0};
		inBlocks(starts[alone], starts[alone + 1], (from, to) =>
			accumulateFew(from, to, order, node, counts, dropped, upTo, state));
		return upTo.fill(state.sum, state.at);
	}
	upTo.fill(0);
	inBlocks(0, count, (from, to) => chosen ? scatterChosen(from, to, node, thread, chosen, counts, upTo) :
		scatterAll(from, to, node, counts, upTo));
	inBlocks(1, upTo.length, (from, to) => accumulate(from, to, dropped, upTo));
	return upTo;
}

// From sums of all to those without what is dropped.
function leaveOut(from, to, all, dropped, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = dropped[i - 1] ? sum : sum += all[i] - all[i - 1];
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
	}
	self(node) {
		return this.upTo[node + 1] - this.upTo[node];
	}
	total(node) {
		return this.upTo[this.end[node]] - this.upTo[node];
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
		return [...this.spare, ...this.whole.filter(Boolean).map((sums) => sums.upTo)];
	}
	none() {
		const {model, Type} = this;
		return new Sums(model, cached(model, "no sums " + Type.name, () => new Type(model.nodes.count + 1)));
	}
	make(spare) {
		const at = spare.findIndex((array) => array instanceof this.Type);
		return at < 0 ? new this.Type(this.model.nodes.count + 1) : spare.splice(at, 1)[0];
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
		this.whole[k] = new Sums(model, addUp(model, counts, threads, noneDropped(model), this.make(this.spare)));
		if (!threads)
			kept.set(counts, this.whole[k]);
		if (this.columns.every((_, i) => this.whole[i]))
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
		const upTo = this.make(spare);
		taken.push(upTo);
		if (both)
			return new Sums(model, addUp(model, counts, both, dropped || noneDropped(model), upTo));
		const all = this.all(k).upTo;
		upTo[0] = 0;
		inBlocks(1, upTo.length, (from, to) => leaveOut(from, to, all, dropped, upTo));
		return new Sums(model, upTo);
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
		for (let i = 0; i < nodes.length; i++)
			numbers[i] = column === "self" ? sums.self(nodes[i]) : sums.total(nodes[i]);
		return numbers;
	}
}

// Rows of each line, and of each thread (model.js: partBy).
export const rowsByLine = (model) => cached(model, "rows by line", () => partBy(model.rows.line, model.lines.count));
export const rowsByThread = (model) => cached(model, "rows by thread", () =>
	partBy(model.rows.thread, model.header.threads.length));

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
