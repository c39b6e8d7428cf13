// SPDX-License-Identifier: Apache-2.0
// Functions whose paths were counted, and their paths: in order, with what they cost, and by which blocks, lines and instructions
// they come. Costs are instructions: how often a path was taken, times its length.

import {flowGraph} from "./flow.js";
import {cached} from "./model.js";

export const PATH_ORDERS = [["cost", "instructions"], ["count", "count"]];

export const pathCost = ({runs, length}, p) => runs[p] * length[p];

// The function whose control flow is model.flow[index]; -1: its paths were not counted.
export function countedOfFlow(model, index) {
	const of = cached(model, "counted functions", () => new Map(Array.from(model.paths.flow, (flow, f) => [flow, f])));
	return of.get(index) ?? -1;
}

export function functionOfPath(model, p) {
	const {first, count} = model.paths;
	let low = 0, high = count - 1;
	while (low < high) {
		const middle = low + high + 1 >> 1;
		if (first[middle] <= p)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

// All functions: those with the most instructions first, or with the most calls.
export function functionOrder(model, order) {
	return cached(model, "counted functions by " + order, () => {
		const {count, calls} = model.paths, list = Array.from({length: count}, (_, f) => f);
		return order === "count" ? list.sort((a, b) => calls[b] - calls[a] || a - b) : list;
	});
}

// The paths of a function in an order, and the share of its instructions that each has, with all before it: {list, upTo}.
export function pathOrder(model, f, order) {
	return cached(model, `paths of ${f} by ${order}`, () => {
		const {paths} = model, list = [], upTo = [];
		for (let p = paths.first[f]; p < paths.first[f + 1]; p++)
			list.push(p);
		if (order === "count")
			list.sort((a, b) => paths.runs[b] - paths.runs[a] || a - b);
		let sum = 0;
		for (const p of list)
			upTo.push((sum += pathCost(paths, p)) / (paths.instructions[f] || 1));
		return {list, upTo};
	});
}

// Paths that were taken, but that are not in the page, and their instructions.
export function pathsLeftOut(model, f) {
	const {paths} = model, count = paths.taken[f] - (paths.first[f + 1] - paths.first[f]);
	let cost = paths.instructions[f];
	for (let p = paths.first[f]; p < paths.first[f + 1]; p++)
		cost -= pathCost(paths, p);
	return {count, cost: Math.max(0, cost)};
}

export function allInstructions(model) {
	return cached(model, "counted instructions", () => model.paths.instructions.reduce((sum, n) => sum + n, 0));
}

// Hot paths: those with at least this part of all instructions that were counted. How many they are, of all that were taken, and their
// part: {count, of, part}.
export const HOT_PART = 0.01;
export function hotPaths(model) {
	return cached(model, "hot paths", () => {
		const {paths} = model, whole = allInstructions(model);
		let count = 0, cost = 0;
		for (let p = 0; p < paths.runs.length; p++)
			if (pathCost(paths, p) >= HOT_PART * whole) {
				count++;
				cost += pathCost(paths, p);
			}
		return {count, of: paths.taken.reduce((sum, n) => sum + n, 0), part: whole ? cost / whole : 0};
	});
}

// The blocks of a path, in its order.
export function pathBlocks({paths}, p) {
	return Array.from(paths.block.subarray(paths.firstBlock[p], paths.firstBlock[p + 1]));
}

// By which blocks and edges of the control flow a path comes: sets of numbers. The edge that ends it is one of them.
export function pathWay(model, p) {
	const f = functionOfPath(model, p), {edges} = flowGraph(model, model.paths.flow[f]), blocks = pathBlocks(model, p);
	const steps = new Set(blocks.slice(1).map((to, i) => blocks[i] + " " + to)), next = model.paths.next[p];
	if (next)
		steps.add(blocks[blocks.length - 1] + " " + (next - 1));
	return {blocks: new Set(blocks), edges: new Set(edges.flatMap(({from, to}, i) => steps.has(from + " " + to) ? [i] : []))};
}

// The lines of a path, by file; and its addresses: [[from, to]...].
export function pathLines(model, p) {
	const {flow} = model, start = flow.first[model.paths.flow[functionOfPath(model, p)]], lines = new Map();
	for (const block of pathBlocks(model, p))
		for (let i = flow.firstLine[start + block]; i < flow.firstLine[start + block + 1]; i++)
			lines.set(flow.lineFile[i], (lines.get(flow.lineFile[i]) || new Set()).add(flow.line[i]));
	return lines;
}

export function pathRanges(model, p) {
	const {flow} = model, start = flow.first[model.paths.flow[functionOfPath(model, p)]];
	return pathBlocks(model, p).map((block) => [flow.address[start + block], flow.address[start + block] + flow.size[start + block]]);
}
