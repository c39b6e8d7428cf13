// SPDX-License-Identifier: Apache-2.0
// Which samples count: filters by name, module and thread, and the subtree that is zoomed into.
//
// A filter is {how: "keep" | "hide", what: "name" | "module", text}: paths with a scope that
// matches the regular expression are the only ones that count, or do not count.

import {cached, inBlocks, modulePath, scopeName, sumsType} from "./model.js";
import {timeCounts} from "./times.js";

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

function scatter(from, to, node, counts, wanted, upTo) {
	for (let r = from; r < to; r++)
		if (wanted[r])
			upTo[node[r] + 1] += counts[r];
}

function addUp(from, to, upTo) {
	let sum = upTo[from - 1];
	for (let i = from; i < to; i++)
		upTo[i] = sum += upTo[i];
}

// Which rows count: of chosen threads, in nodes from `first` to `last` that are not dropped.
function choose(from, to, {node, thread}, chosen, first, last, dropped, wanted) {
	for (let r = from; r < to; r++) {
		const at = node[r];
		wanted[r] = at >= first && at < last && dropped[at] === 0 ? chosen[thread[r]] : 0;
	}
}

// The samples of one metric. Nodes are in preorder, so sums over all before each of them give those of any
// subtree: of node i, self is upTo[i + 1] - upTo[i] and total upTo[end[i]] - upTo[i].
export class Sums {
	// counts: of the rows; null where upTo has each node's own already, one place further.
	constructor(model, counts, wanted, upTo) {
		const {node} = model.rows, {count} = model.nodes;
		this.end = model.nodes.end;
		this.upTo = upTo;
		if (counts) {
			upTo.fill(0);
			inBlocks(0, node.length, (from, to) => scatter(from, to, node, counts, wanted, upTo));
		}
		inBlocks(1, count + 1, (from, to) => addUp(from, to, upTo));
	}
	self(node) {
		return this.upTo[node + 1] - this.upTo[node];
	}
	total(node) {
		return this.upTo[this.end[node]] - this.upTo[node];
	}
}

// threads: a Set of indices, or null for all. zoom: a node. time: [from, to), or null for all; then samples
// are those of the time line. The result has `sums` of each metric, in which nodes outside of the zoom have
// none; `wanted`: whether a row counts; `counts`: of each metric, the samples of the rows.
// `counted`: what is summed, if not all metrics: arrays of a number for each row.
// `reuse`: a selection that is no longer needed, whose memory may be taken.
export function computeSelection(model, options = {}, reuse = null) {
	const {filters = [], threads = null, zoom = 0, time = null} = options;
	if (!threads && !zoom && !time && !filters.some((f) => compilePattern(f.text)))
		return cached(model, "whole selection", () => new Selection(model, {}, null));
	return new Selection(model, options, reuse && reuse.narrowed ? reuse : null);
}

class Selection {
	constructor(model, {filters = [], threads = null, zoom = 0, time = null,
		counted = time ? timeCounts(model, time) : model.rows.counts}, reuse) {
		const {end, count} = model.nodes, {node} = model.rows;
		const dropped = findDropped(model, filters) || cached(model, "none dropped", () => new Uint8Array(count));
		const chosen = new Uint8Array(model.header.threads.length).fill(threads ? 0 : 1);
		for (const index of threads || [])
			chosen[index] = 1;
		const last = end[zoom];
		this.model = model;
		this.zoom = zoom;
		this.counts = counted;
		this.narrowed = Boolean(filters.length || threads || zoom || time);
		this.wanted = reuse ? reuse.wanted : new Uint8Array(node.length);
		if (!this.narrowed)
			this.wanted.fill(1);
		else
			inBlocks(0, node.length, (from, to) => choose(from, to, model.rows, chosen, zoom, last,
				dropped, this.wanted));
		const Type = time ? Float64Array : sumsType(model.metrics); // a span may lie inside of it in part
		const again = (m) => reuse && reuse.sums[m] && reuse.sums[m].upTo instanceof Type;
		this.sums = counted.map((counts, m) => new Sums(model, counts, this.wanted,
			again(m) ? reuse.sums[m].upTo : new Type(count + 1)));
	}
	// The same samples, summed otherwise.
	withSums(sums) {
		return Object.assign(Object.create(Selection.prototype), this, {sums});
	}
	// Whether a node has a total of some metric.
	any(node) {
		for (let m = 0; m < this.sums.length; m++)
			if (this.sums[m].total(node) > 0)
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

// Rows by line: those of line l are order[starts[l]] .. order[starts[l + 1] - 1].
function partByLine(model) {
	const {line, count} = model.rows;
	const starts = new Int32Array(model.lines.count + 1), order = new Int32Array(count);
	for (let r = 0; r < count; r++)
		starts[line[r] + 1]++;
	for (let l = 0; l < model.lines.count; l++)
		starts[l + 1] += starts[l];
	const next = starts.slice();
	for (let r = 0; r < count; r++)
		order[next[line[r]]++] = r;
	return {starts, order};
}

export const rowsByLine = (model) => cached(model, "rows by line", () => partByLine(model));

// Self samples of a line, of the rows that count.
export function lineSelf(model, selection, metric, line) {
	const {starts, order} = rowsByLine(model), counts = selection.counts[metric] || model.rows.counts[metric];
	let sum = 0;
	for (let i = starts[line]; i < starts[line + 1]; i++)
		if (selection.wanted[order[i]])
			sum += counts[order[i]];
	return sum;
}

// Samples by thread, of all filters but the threads'.
export function threadTotals(model, filters, metric, zoom = 0, time = null) {
	const {wanted, counts} = computeSelection(model, {filters, zoom, time});
	const sums = new Float64Array(model.header.threads.length);
	const {thread} = model.rows;
	for (let r = 0; r < thread.length; r++)
		if (wanted[r])
			sums[thread[r]] += counts[metric][r];
	return sums;
}
