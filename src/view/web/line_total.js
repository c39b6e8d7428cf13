// SPDX-License-Identifier: Apache-2.0
// What a line has with all that was called from it, of the samples that count. A sample is in it where the line is that
// of its instruction, or a node on its path is called from the line; in recursion it counts once.
//
// Of nodes that are called from several lines it is known how many samples each line has (model.calls), but not which:
// where that would have to be known, nothing is told.

import {cached, partBy} from "./model.js";
import {rowsByLine} from "./select.js";

const nodesByCall = (model) => cached(model, "nodes by call", () => partBy(model.nodes.call, model.lines.count));
const callsByLine = (model) => cached(model, "calls by line", () => partBy(model.calls.line, model.lines.count));

function ofLine({starts, order}, line) {
	return order.subarray(starts[line], starts[line + 1]);
}

// Nodes of a selection that are called from the line alone, the outermost ones.
function outermost(model, selection, line) {
	const {end} = model.nodes, {zoom} = selection, list = [];
	let last = 0;
	for (const node of ofLine(nodesByCall(model), line))
		if (node >= Math.max(zoom, last) && node < end[zoom] && node > zoom) {
			list.push(node);
			last = end[node];
		}
	return list;
}

// Whether a node is in the subtree of one of others, which are ascending and beside each other.
function isInside(model, list, node) {
	let low = 0, high = list.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (list[middle] <= node)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && node < model.nodes.end[list[low - 1]];
}

// NaN: it cannot be told.
export function lineTotal(model, selection, metric, line) {
	const {end} = model.nodes, {zoom} = selection, sums = selection.sums[metric], whole = outermost(model, selection, line);
	const parts = [...ofLine(callsByLine(model), line)]
		.map((i) => ({node: model.calls.node[i], count: model.calls.counts[metric][i]}))
		.filter(({node}) => node > zoom && node < end[zoom] && !isInside(model, whole, node) && sums.total(node) > 0);
	const unclear = parts.map(({node}) => node);
	let sum = 0;
	if (parts.length && (selection.filtered || whole.some((node) => isInside(model, unclear, node)) ||
		unclear.some((node, i) => i && node < end[unclear[i - 1]])))
		return NaN;
	for (const node of whole)
		sum += sums.total(node);
	for (const {count} of parts)
		sum += count;
	const {wanted} = selection, {counts, threads} = selection.base.columns[metric], {node: nodeOf, thread} = model.rows;
	for (const r of ofLine(rowsByLine(model), line)) {
		if (!wanted[r] || !counts[r] || (threads && !threads[thread[r]]) || isInside(model, whole, nodeOf[r]))
			continue;
		if (isInside(model, unclear, nodeOf[r]))
			return NaN;
		sum += counts[r];
	}
	return sum;
}
