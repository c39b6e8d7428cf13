// SPDX-License-Identifier: Apache-2.0
// Where a program allocates: the places in its own code, with what each allocated, what of that lived at the peak and
// what was never freed. A place
// is the innermost function that is its own code (own_code.js), and the line from which it allocates. It is a view as those of
// views.js; below a place are its callers.

import {metricEvent, metricShort} from "./events.js";
import {formatCount, formatPercent, formatSize, formatTime} from "./format.js";
import {Level, numbersOf} from "./levels.js";
import {cached, inBlocks, partBy} from "./model.js";
import {ownNodes} from "./own_code.js";
import {Pairs} from "./pairs.js";
import {matchScopes} from "./select.js";
import {Matches, PathView, homeOf, markSome, placesWith, valuesAt} from "./views.js";

const CHURN = "alloc.calls", PEAK = "alloc.peak", LEAKS = "alloc.live", FREES = "alloc.released", MAPPED = "alloc.mapped";

// What places may be ordered by: [word, metric, what it tells].
export const MEMORY_ORDERS = [
	["Peak", PEAK, "what was alive when the program had the most memory"],
	["Leaks", LEAKS, "what was still alive when the program ended"],
	["Churn", CHURN, "how often memory was allocated; temporary: freed before anything else was allocated"],
	["Frees", FREES, "what these places freed, whoever had allocated it"],
	["Mapped", MAPPED, "what the program mapped by itself (mmap)"],
];
const MEMORY_COLUMNS = [PEAK, LEAKS, "alloc.bytes", CHURN, "alloc.temporary"];

const metricCalled = (model, name) => model.recorded.metrics.findIndex((metric) => metric.name === name);

export function hasMemory(model) {
	return model.header.metrics.some(({name}) => name === "alloc.bytes");
}

export const isMemoryMetric = (model, m) => metricEvent(model.recorded.metrics[m] || {name: ""}) === "Memory";

// The metric of an order, or -1.
export const memoryMetric = metricCalled;

// The usual ones. If places are ordered by another one, that comes first, and the last one has no room.
export function memoryColumns(model, chosen) {
	const usual = MEMORY_COLUMNS.map((name) => metricCalled(model, name)).filter((metric) => metric >= 0);
	const all = usual.includes(chosen) || !isMemoryMetric(model, chosen) ? usual : [chosen, ...usual.slice(0, -1)];
	return all.map((metric) => ({metric, column: "self"}));
}

// Whether places can be ordered by it. Few programs map memory by themselves.
export function hasMemoryOrder(model, name) {
	const metric = metricCalled(model, name);
	return metric >= 0 && (name !== MAPPED || model.whole[metric] > 0);
}

// Lines of [name, text] about a place.
export function memoryLines(model, row) {
	const {metrics} = model.recorded, count = (name) => row.self[metricCalled(model, name)] || 0, lines = [];
	for (const name of [PEAK, LEAKS, "alloc.bytes"]) {
		const m = metricCalled(model, name);
		if (m >= 0)
			lines.push([metricShort(metrics[m]), `${formatPercent(row.self[m], model.whole[m]) || "0%"} · ${formatSize(row.self[m])}`]);
	}
	const calls = count(CHURN), bytes = count("alloc.bytes");
	const ofCalls = (amount) => `${formatPercent(amount, calls) || "0%"} of them`;
	if (calls)
		lines.push(["allocations", `${formatCount(calls)}, ${formatSize(bytes / calls)} each`], ["temporary", ofCalls(count("alloc.temporary"))]);
	if (count("alloc.freed"))
		lines.push(["lifetime", `${formatTime(count("alloc.lifetime") / count("alloc.freed") / 1e9)} on average`],
			["short-lived", `${ofCalls(count("alloc.brief"))}: freed within 10 µs`]);
	if (count("alloc.elsewhere"))
		lines.push(["freed elsewhere", `${ofCalls(count("alloc.elsewhere"))}: by another thread`]);
	if (count("alloc.grown"))
		lines.push(["grown", `${formatCount(count("alloc.grown"))} times by realloc`]);
	if (count("alloc.wasted"))
		lines.push(["wasted", `${formatSize(count("alloc.wasted"))}: blocks are larger than was asked for`]);
	if (count(FREES))
		lines.push(["frees", formatSize(count(FREES))]);
	if (count(MAPPED))
		lines.push(["mapped", `${formatSize(count(MAPPED))}, ${formatSize(count("alloc.kept"))} still at the end`]);
	return lines;
}

// What could be done about a place, in plain words. The rules are those of `culprit report` (analyze/memory_hints.c).
export function memoryHints(model, row) {
	const count = (name) => row.self[metricCalled(model, name)] || 0, hints = [];
	let held = false;
	for (const {part, whole, times, of, least, otherwise, text} of model.header.memoryRules || []) {
		const holds = count(of) >= least && count(whole) > 0 && count(part) * times >= count(whole) && !(otherwise && held);
		held = holds || (otherwise && held);
		if (holds)
			hints.push(text.replace("{share}", formatPercent(count(part), count(whole))).replace("{part}", formatCount(count(part)))
				.replace("{whole}", formatCount(count(whole))));
	}
	return hints;
}

// The places of all samples: of each row its place (-1: it has no allocation) and node (origin); of each place its scope
// and line.
function allPlaces(model) {
	return cached(model, "memory places", () => {
		const {rows} = model, {node, line} = ownNodes(model), place = new Int32Array(rows.count).fill(-1);
		const origin = new Int32Array(rows.count), some = rowsWithMemory(model), places = new Pairs(); // by scope and line
		const take = (from, to) => takePlaces(from, to, model, node, line, some, places, place, origin);
		inBlocks(0, rows.count, take);
		return {place, origin, scopes: Int32Array.from(places.first), lines: Int32Array.from(places.second)};
	});
}

function takePlaces(from, to, model, node, line, some, places, place, origin) {
	const {rows, nodes} = model;
	for (let r = from; r < to; r++) {
		if (!some[r])
			continue;
		const at = rows.node[r], home = node[at] || homeOf(model, at), scope = nodes.scope[home];
		const of = !node[at] || line[at] < 0 ? rows.line[r] : line[at], known = places.get(scope, of);
		place[r] = known >= 0 ? known : places.add(scope, of, places.first.length);
		origin[r] = home;
	}
}

// By row: 1 where it has allocations.
function rowsWithMemory(model) {
	return cached(model, "rows with memory", () => {
		const {header, rows} = model, some = new Uint8Array(rows.count);
		header.metrics.forEach((metric, m) => {
			if (metricEvent(metric) === "Memory")
				inBlocks(0, rows.count, (from, to) => markSome(from, to, rows.counts[m], some));
		});
		return some;
	});
}

// Rows by place; those that have none come last.
function rowsByPlace(model) {
	return cached(model, "rows by place", () => {
		const {place, scopes} = allPlaces(model), count = scopes.length;
		return partBy(place.map((id) => id < 0 ? count : id), count + 1);
	});
}

// In the order of the rows: so memory is read from one end to the other.
function addPlaces(from, to, place, wanted, counts, threads, thread, sums) {
	for (let r = from; r < to; r++)
		if (place[r] >= 0 && counts[r] !== 0 && wanted[r] && (!threads || threads[thread[r]]))
			sums[place[r]] += counts[r];
}

export class MemoryPlaces extends PathView {
	// up: the bottom-up view of the selection
	constructor(up) {
		super(up.model, up.selection);
		this.up = up;
		this.all = allPlaces(up.model);
		this.made = [];
	}
	// Sums up another metric before it is needed. Returns whether there are others.
	advance() {
		const {columns} = this.selection.base, m = this.made.length;
		if (m < columns.length)
			this.made.push(this.sum(columns[m], m));
		return this.made.length < columns.length;
	}
	// By metric and place.
	get sums() {
		while (this.advance())
			;
		return this.made;
	}
	// By place; of what is no measure of memory nothing.
	sum({counts, threads}, m) {
		const {place, scopes} = this.all, {thread} = this.model.rows, {wanted} = this.selection;
		const sums = new Float64Array(scopes.length), end = isMemoryMetric(this.model, m) ? place.length : 0;
		inBlocks(0, end, (from, to) => addPlaces(from, to, place, wanted, counts, threads, thread, sums));
		return sums;
	}
	topLevel() {
		const {scopes} = this.all, metrics = this.sums.filter((_, m) => isMemoryMetric(this.model, m));
		const ids = placesWith(metrics, 0, scopes.length);
		return new Level(ids, {
			of: (id) => this.row(id),
			numbers: (column, metric) => numbersOf(ids, this.sums[metric]),
			scopes: ids.map((id) => scopes[id]),
		});
	}
	row(id) {
		const values = valuesAt(this.sums, id), root = this.rootOf(id);
		return {key: String(id), scope: this.all.scopes[id], line: this.all.lines[id], node: -1, root, at: Int32Array.from(root.origins),
			index: Int32Array.from(root.origins, (_, i) => i), self: values, total: values,
			leaf: !root.origins.some((node) => this.up.caller(node) >= 0)};
	}
	// The nodes that a place stands for, and what each has, by metric.
	rootOf(id) {
		const rows = rowsByPlace(this.model), {origin} = this.all, {wanted, base} = this.selection, numbers = new Map(), values = base.columns.map(() => []);
		for (const r of rows.order.subarray(rows.starts[id], rows.starts[id + 1])) {
			if (!wanted[r])
				continue;
			if (!numbers.has(origin[r])) {
				numbers.set(origin[r], numbers.size);
				values.forEach((list) => list.push(0));
			}
			base.columns.forEach(({counts, threads}, m) => {
				if (!threads || threads[this.model.rows.thread[r]])
					values[m][numbers.get(origin[r])] += counts[r];
			});
		}
		const lists = values.map((list) => Float64Array.from(list));
		return {origins: [...numbers.keys()], self: lists, total: lists};
	}
	lowerLevel(row) {
		return this.up.lowerLevel(row);
	}
	search(text) {
		const found = matchScopes(this.model, "name", text), {scopes} = this.all;
		return new Matches(this.level(null).ids.filter((id) => found[scopes[id]]));
	}
}

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do.
export function prepareMemory(model) {
	return hasMemory(model) ? [() => { ownNodes(model); }, () => { rowsWithMemory(model); }, () => { allPlaces(model); },
		() => { rowsByPlace(model); }] : [];
}
