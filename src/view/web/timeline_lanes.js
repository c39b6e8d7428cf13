// SPDX-License-Identifier: Apache-2.0
// How high the rows of the time line are: lanes take the room that there is, headings do not; the lane of one thread
// may be as high as its stacks are deep.

import {KIND, cached} from "./model.js";

export const HEADING = 24;
const LANE_MOST = 72, LEVEL = 16, STACK_PART = 0.6; // of what is in sight

// Functions on the path of a node, the outermost first: nodes.
export function stackNodes(model, node) {
	const {parent, scope} = model.nodes, {kind} = model.scopes, path = [];
	for (; node > 0; node = parent[node])
		if (kind[scope[node]] !== KIND.loop)
			path.push(node);
	return path.reverse();
}

// By node: how many functions its path has.
export function stackDepths(model) {
	return cached(model, "stack depths", () => {
		const {parent, scope, count} = model.nodes, {kind} = model.scopes, depths = new Int32Array(count);
		for (let i = 1; i < count; i++)
			depths[i] = depths[parent[i]] + (kind[scope[i]] === KIND.loop ? 0 : 1);
		return depths;
	});
}

// How deep the stacks of a thread are.
function deepest(model, thread) {
	return cached(model, "deepest stack " + thread, () => {
		const {first, row} = model.spans, depths = stackDepths(model);
		let most = 1;
		for (let span = first[thread]; span < first[thread + 1]; span++)
			most = Math.max(most, depths[model.rows.node[row[span]]]);
		return most;
	});
}

// Where each row begins, and the last one ends. opened: the thread whose stacks are shown, or -1.
export function laneTops(model, rows, room, opened) {
	const lanes = rows.filter((row) => row.thread >= 0 && row.thread !== opened).length;
	const headings = rows.filter((row) => row.thread < 0).length;
	const open = rows.some((row) => row.thread === opened && opened >= 0);
	const stack = open ? Math.max(HEADING, Math.min(deepest(model, opened) * LEVEL + 6, Math.floor(room * STACK_PART))) : 0;
	const each = lanes ? Math.floor((room - HEADING * headings - stack) / lanes) : HEADING;
	const lane = Math.max(HEADING, Math.min(LANE_MOST, each)), tops = new Float64Array(rows.length + 1);
	rows.forEach((row, i) => {
		tops[i + 1] = tops[i] + (row.thread < 0 ? HEADING : row.thread === opened ? stack : lane);
	});
	return tops;
}

// The row at a height, or -1.
export function laneAt(tops, y) {
	let low = 0, high = tops.length - 1;
	if (y < 0 || y >= tops[high])
		return -1;
	while (high - low > 1) {
		const middle = (low + high) >> 1;
		if (tops[middle] <= y)
			low = middle;
		else
			high = middle;
	}
	return low;
}

// The level of a stack at a height of its lane, which is `high`; depth: of the stack. -1: none.
export function stackLevel(y, high, depth) {
	const level = Math.floor((y - 2) / levelHigh(high, depth));
	return level >= 0 && level < depth ? level : -1;
}

// How high a level is, so that all of them have room.
export function levelHigh(high, depth) {
	return Math.min(LEVEL, (high - 5) / Math.max(1, depth));
}
