// SPDX-License-Identifier: Apache-2.0
// Waiting on the time line: pale colours by what a thread waits for, and arrows from the thread that woke another.

import {hslColour} from "./pixels.js";
import {spanWaker, wokenBy} from "./times.js";

// What is far apart in meaning has a hue far apart; others have one by their number.
const REASON_HUES = {"a CPU": 45, lock: 0, condition: 285, "end of a thread": 250, sleep: 215, poll: 200, pipe: 170,
	socket: 150, disk: 25, "page fault": 60};
const ARROW_HEAD = 5; // pixels
const ARROWS_MOST = 200;

// dark: whether the page is
export function reasonColour(model, reason, dark) {
	const hue = REASON_HUES[model.header.reasons[reason]] ?? (reason * 67) % 360;
	return hslColour(hue, dark ? 0.3 : 0.45, dark ? 0.24 : 0.88);
}

// The waits that arrows lead to: the selected one itself, if a thread ended it, and those that the selected thread ended
// in the time of the span. [from thread, to thread, time]
export function wakesOfSpan(model, span) {
	const {start, end, row} = model.spans, thread = model.rows.thread[row[span]], waker = spanWaker(model, span);
	const own = waker < 0 ? [] : [[waker, thread, end[span]]];
	const woken = wokenBy(model, thread), low = firstEnd(end, woken, start[span]), list = [];
	for (let i = low; i < woken.length && end[woken[i]] <= end[span] && list.length < ARROWS_MOST; i++)
		list.push([thread, model.rows.thread[row[woken[i]]], end[woken[i]]]);
	return [...own, ...list];
}

// The first of spans (in the order of their ends) that ends at a time or later.
function firstEnd(end, spans, time) {
	let low = 0, high = spans.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (end[spans[middle]] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// From one height to another, at x. c: the canvas's context
export function paintArrow(c, x, from, to) {
	const way = to > from ? 1 : -1;
	c.beginPath();
	c.moveTo(x, from);
	c.lineTo(x, to - way * ARROW_HEAD);
	c.stroke();
	c.beginPath();
	c.moveTo(x, to);
	c.lineTo(x - ARROW_HEAD, to - way * 2 * ARROW_HEAD);
	c.lineTo(x + ARROW_HEAD, to - way * 2 * ARROW_HEAD);
	c.fill();
}
