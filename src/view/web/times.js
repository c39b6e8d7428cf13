// SPDX-License-Identifier: Apache-2.0
// The time line without drawing it: spans by thread, what is in a part of the time, and what to
// paint in how many pixels. Times are microseconds since the recording began.

import {KIND, cached} from "./model.js";

export function hasTimeline(model) {
	return model.spans.count > 0;
}

// How long a sample of a metric stands for; 0: it is a moment.
export function stepOf(model, metric) {
	const {unit, period} = model.metrics[metric];
	const {hz} = model.header.summary;
	return unit === "ns" ? period / 1000 : hz ? 1e6 / hz : 0;
}

// From the beginning of the recording to the end of the last span.
export function wholeTime(model) {
	return cached(model, "whole time", () => {
		const {end, count} = model.spans;
		let last = model.header.timeline.duration;
		for (let i = 0; i < count; i++)
			if (end[i] > last)
				last = end[i];
		return [0, Math.max(1, last)];
	});
}

// The first span in [low, high) that ends after a time.
export function spanAfter(model, low, high, time) {
	const {end} = model.spans;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (end[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The span of a thread at a time, or the nearest one no more than `near` away; -1: none.
export function spanAt(model, thread, time, near = 0) {
	const {first, start, end} = model.spans, last = first[thread + 1];
	const at = spanAfter(model, first[thread], last, time);
	const away = (i) => i < first[thread] || i >= last ? Infinity :
		Math.max(0, start[i] - time, time - end[i]);
	const best = away(at - 1) < away(at) ? at - 1 : at;
	return away(best) <= near ? best : -1;
}

// What a span counts of [from, to): all of it, or the part that lies inside.
function share(spans, i, from, to) {
	const start = spans.start[i], end = spans.end[i];
	if (end === start)
		return start >= from && start < to ? 1 : 0;
	const inside = Math.min(end, to) - Math.max(start, from);
	return inside > 0 ? inside / (end - start) : 0;
}

// For each metric the samples of each row in [from, to), from the time line alone.
export function timeCounts(model, [from, to]) {
	const {spans, rows} = model;
	const counts = model.header.metrics.map(() => new Float64Array(rows.count));
	for (let t = 0; t + 1 < spans.first.length; t++) {
		const last = spans.first[t + 1];
		let i = spanAfter(model, spans.first[t], last, from);
		while (i > spans.first[t] && spans.start[i - 1] >= from) // moments have no length
			i--;
		for (; i < last && spans.start[i] < to; i++)
			counts[spans.metric[i]][spans.row[i]] += spans.samples[i] * share(spans, i, from, to);
	}
	for (const {of, chosen} of model.metrics.slice(counts.length)) // groups of threads
		counts.push(counts[of].map((count, r) => chosen[rows.thread[r]] ? count : 0));
	return counts;
}

// By node: the function that stands for it, which is the innermost one (level 0) or that of a level
// of the tree. Loops belong to the function that they are in.
export function shownNodes(model, level) {
	return cached(model, "shown at " + level, () => {
		const {parent, depth, scope, count} = model.nodes, {kind} = model.scopes;
		const shown = new Int32Array(count);
		for (let i = 1; i < count; i++)
			shown[i] = kind[scope[i]] === KIND.loop || (level && depth[i] > level) ? shown[parent[i]] || i : i;
		return shown;
	});
}

// The rows of the picture: threads with spans, by process; {process} alone is a heading. `threads`: a
// list of those to show, or null.
export function timeRows(model, threads) {
	const {first} = model.spans, {header} = model;
	const groups = new Map();
	header.threads.forEach(({process}, t) => {
		if (first[t] === first[t + 1] || (threads && !threads.includes(t)))
			return;
		if (!groups.has(process))
			groups.set(process, []);
		groups.get(process).push({process, thread: t});
	});
	for (const list of groups.values())
		list.sort((a, b) => header.threads[a.thread].tid - header.threads[b.thread].tid);
	const headed = groups.size > 1;
	return [...groups].flatMap(([process, list]) => headed ? [{process, thread: -1}, ...list] : list);
}

// A thread's spans in [from, to) as boxes on `width` pixels, from the left: {x, w, span, busy}, where
// busy is the share of the time that samples stand for. Short ones in a pixel are one box, with the
// span that has most samples; so there are no more than about two for each pixel. There may be a
// million spans: the loop does little for each.
export function timeBoxes(model, thread, from, to, width) {
	const {first, start, end, samples, metric} = model.spans, last = first[thread + 1];
	const scale = width / (to - from), steps = model.metrics.map((_, m) => stepOf(model, m));
	const out = [];
	let pixel = -1, best = -1, most = 0, work = 0; // work: in pixels
	const flush = () => {
		if (best >= 0)
			out.push({x: pixel, w: 1, span: best, busy: Math.min(1, work)});
		best = -1;
		most = work = 0;
	};
	for (let i = spanAfter(model, first[thread], last, from); i < last && start[i] < to; i++) {
		const x = (start[i] - from) * scale, w = (end[i] - start[i]) * scale;
		const step = steps[metric[i]], done = step ? samples[i] * step * scale : 1;
		if (w >= 1) {
			flush();
			out.push({x, w, span: i, busy: Math.min(1, done / w)});
			continue;
		}
		const at = x > 0 ? Math.floor(x) : 0;
		if (at !== pixel) {
			flush();
			pixel = at;
		}
		work += done;
		if (samples[i] > most) {
			most = samples[i];
			best = i;
		}
	}
	flush();
	return out;
}

// Times of an axis: round numbers, about `wanted` of them.
export function timeTicks(from, to, wanted) {
	const rough = (to - from) / Math.max(1, wanted), power = 10 ** Math.floor(Math.log10(rough));
	const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
	const ticks = [];
	for (let k = Math.ceil(from / step); k * step <= to; k++)
		ticks.push(k * step);
	return {step, ticks};
}
