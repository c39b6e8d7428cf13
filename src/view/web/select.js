// SPDX-License-Identifier: Apache-2.0
// Which samples count: filters by name, module and thread, and the subtree that is zoomed into.
//
// A filter is {how: "keep" | "hide", what: "name" | "module", text}: paths with a scope that
// matches the regular expression are the only ones that count, or do not count.

import {cached, inBlocks, modulePath, partBy, scopeName, sumsType} from "./model.js";
import {Base, noneDropped} from "./sums.js";
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

// Which rows count: of chosen threads, in nodes from `first` to `last` that are not dropped.
function choose(from, to, {node, thread}, chosen, first, last, dropped, wanted) {
	for (let r = from; r < to; r++) {
		const at = node[r];
		wanted[r] = at >= first && at < last && dropped[at] === 0 ? chosen[thread[r]] : 0;
	}
}

function keepReason(from, to, reason, wanted, counts, kept) {
	for (let r = from; r < to; r++)
		kept[r] = reason[r] === wanted ? counts[r] : 0;
}

// The samples of one reason to wait alone. The last one is kept.
function reasonBase(model, time, reason) {
	const all = baseOf(model, time), kept = cached(model, "base of a reason", () => ({}));
	if (kept.all !== all || kept.reason !== reason) {
		const {rows} = model, columns = all.columns.map((column, k) => {
			if (!model.metrics[model.metrics[k].of ?? k].waits) // it does not tell of waiting
				return {...column, counts: noCounts(model), empty: true};
			const counts = new column.counts.constructor(rows.count);
			inBlocks(0, rows.count, (from, to) => keepReason(from, to, rows.reason, reason, column.counts, counts));
			return {...column, counts};
		});
		Object.assign(kept, {all, reason, base: new Base(model, columns, all.Type)});
		kept.base.unmasked = all;
	}
	return kept.base;
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
// are those of the time line. reason: why threads waited (header.reasons), or 0 for all samples.
// `reuse`: a selection that is no longer needed, whose memory may be taken.
export function computeSelection(model, options = {}, reuse = null) {
	const {filters = [], threads = null, zoom = 0, time = null, reason = 0} = options;
	if (!threads && !zoom && !time && !reason && !filters.some((f) => compilePattern(f.text)))
		return cached(model, "whole selection", () => new Selection(model, baseOf(model, null), {}));
	return new Selection(model, reason ? reasonBase(model, time, reason) : baseOf(model, time), options, reuse);
}

// The samples that count: `sums` of each column of `base`, in which only nodes inside of the zoom are to be looked
// at; `wanted`: whether a row counts. What nobody asks for is not computed.
export class Selection {
	constructor(model, base, {filters = [], threads = null, zoom = 0, time = null, reason = 0}, reuse = null) {
		this.model = model;
		this.base = base;
		this.zoom = zoom;
		this.filtered = Boolean(filters.length || threads || time || reason);
		this.narrowed = Boolean(this.filtered || zoom);
		this.dropped = findDropped(model, filters);
		this.chosen = threads ? new Uint8Array(model.header.threads.length) : null;
		for (const index of threads || [])
			this.chosen[index] = 1;
		this.spare = reuse ? [...reuse.taken.splice(0), ...reuse.spare.splice(0)] : [];
		this.taken = [];
		this.views = {}; // that were made of it, by name
		this.made = null;
		this.flags = null;
		this.families = null; // of comparisons
		this.large = null;
	}
	get sums() {
		if (!this.made) {
			this.made = this.base.columns.map((_, k) => this.base.some(k, this.chosen, this.dropped, this.spare, this.taken));
			if (this.made.every((sums) => sums.made))
				this.spare.length = 0;
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
	get hasMemory() {
		return this.taken.length + this.spare.length > 0;
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
		return this.sums[metric].numbers(column, nodes);
	}
	// Totals of all that are below a node, in order, by metric.
	totals(nodes) {
		const ends = nodes.map((node) => this.model.nodes.end[node]);
		return this.sums.map((sums) => sums.siblings(nodes, ends));
	}
}

// Rows of each line (model.js: partBy).
export const rowsByLine = (model) => cached(model, "rows by line", () => partBy(model.rows.line, model.lines.count));

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

// Samples by thread of all rows.
export function sumByThread(model, counts) {
	const sums = new Float64Array(model.header.threads.length), {thread} = model.rows;
	for (let r = 0; r < thread.length; r++)
		sums[thread[r]] += counts[r];
	return sums;
}

// Of a recorded metric, whatever is filtered.
export function samplesByThread(model, metric) {
	return cached(model, "samples by thread " + metric, () => threadTotals(model, [], metric));
}
