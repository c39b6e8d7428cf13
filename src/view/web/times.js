// SPDX-License-Identifier: Apache-2.0
// The time line without drawing it: spans by thread, what is in a part of the time, and what to
// paint in how many pixels. Times are microseconds since the recording began.

import {KIND, cached, inBlocks} from "./model.js";

const SPAN_WAKERS = 3; // who wakes and is no thread: an interrupt, the kernel, somebody who is not recorded

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

// By row: nothing, of a metric that the time line does not have.
export function noCounts(model) {
	return cached(model, "no counts", () => new Float64Array(model.rows.count));
}

function addSpans(from, to, {row, samples, metric}, wanted, counts, sign) {
	for (let i = from; i < to; i++)
		if (metric[i] === wanted)
			counts[row[i]] += sign * samples[i];
}

// For each metric the samples of each row on the time line, or null.
function allTimeCounts(model) {
	return cached(model, "all time counts", () => model.header.metrics.map((_, m) => {
		if (!model.spans.metric.includes(m))
			return null;
		const counts = new Float64Array(model.rows.count);
		inBlocks(0, model.spans.count, (a, b) => addSpans(a, b, model.spans, m, counts, 1));
		return counts;
	}));
}

// Of a thread: the spans low .. high - 1 lie in [from, to), those of `cut` in part.
function spansIn(model, thread, from, to) {
	const {spans} = model, {first, start, end} = spans, last = first[thread + 1], cut = [];
	let low = spanAfter(model, first[thread], last, from);
	while (low > first[thread] && start[low - 1] >= from) // moments have no length
		low--;
	let high = spanAfter(model, low, last, to);
	while (high > low && start[high - 1] >= to)
		high--;
	if (high < last && start[high] < to)
		high++;
	const isCut = (i) => end[i] > start[i] && (start[i] < from || end[i] > to);
	if (low < high && isCut(low))
		cut.push(low++);
	if (low < high && isCut(high - 1))
		cut.push(--high);
	return {low, high, cut};
}

// For each recorded metric the samples of each row in [from, to), from the time line alone. What lies outside is taken
// away where that is less.
export function timeCounts(model, [from, to]) {
	const {spans, rows} = model, {first} = spans, parts = [];
	let inside = 0;
	for (let t = 0; t + 1 < first.length; t++) {
		parts.push(spansIn(model, t, from, to));
		inside += parts[t].high - parts[t].low;
	}
	const less = inside > spans.count / 2;
	return allTimeCounts(model).map((all, m) => {
		if (!all)
			return noCounts(model);
		const result = less ? all.slice() : new Float64Array(rows.count);
		const add = (low, high, sign) => inBlocks(low, high, (a, b) => addSpans(a, b, spans, m, result, sign));
		parts.forEach(({low, high}, t) => {
			if (!less)
				return add(low, high, 1);
			add(first[t], low, -1);
			add(high, first[t + 1], -1);
		});
		for (const i of parts.flatMap((part) => part.cut))
			if (spans.metric[i] === m)
				result[spans.row[i]] += spans.samples[i] * share(spans, i, from, to);
		return result;
	});
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

// By span: why the thread waited then; 0: it did not.
export function spanReason(model, span) {
	return model.rows.reason[model.spans.row[span]];
}

// Spans in blocks of 8, of 64 and so on, so that there is little to do for many of them in one pixel: of each block
// the longest; and of those that run, and those that wait (lists of both), the time that their samples stand for
// (moments: any), and the first of those with most samples.
const BLOCK_BITS = 3, BLOCK_LEVELS = 5;

function joinSpans(from, to, {start, end, samples, metric, row}, reason, steps, level) {
	for (let i = from; i < to; i++) {
		const block = i >> BLOCK_BITS, length = end[i] - start[i], step = steps[metric[i]], waits = reason[row[i]] ? 1 : 0;
		const best = level.best[waits];
		if (length > level.longest[block])
			level.longest[block] = length;
		level.work[waits][block] += step ? samples[i] * step : Infinity;
		if (best[block] < 0 || samples[i] > samples[best[block]])
			best[block] = i;
	}
}

function joinBlocks(below, level, samples) {
	for (let i = 0; i < below.longest.length; i++) {
		const block = i >> BLOCK_BITS;
		level.longest[block] = Math.max(level.longest[block], below.longest[i]);
		for (const waits of [0, 1]) {
			const best = level.best[waits], candidate = below.best[waits][i];
			level.work[waits][block] += below.work[waits][i];
			if (candidate >= 0 && (best[block] < 0 || samples[candidate] > samples[best[block]]))
				best[block] = candidate;
		}
	}
}

function spanBlocks(model) {
	return cached(model, "span blocks", () => {
		const {spans} = model, steps = model.header.metrics.map((_, m) => stepOf(model, m)), levels = [];
		for (let k = 0, count = spans.count; k < BLOCK_LEVELS; k++) {
			count = (count + (1 << BLOCK_BITS) - 1) >> BLOCK_BITS;
			const level = {longest: new Float64Array(count), work: [0, 1].map(() => new Float64Array(count)),
				best: [0, 1].map(() => new Int32Array(count).fill(-1))};
			if (k)
				joinBlocks(levels[k - 1], level, spans.samples);
			else
				inBlocks(0, spans.count, (from, to) => joinSpans(from, to, spans, model.rows.reason, steps, level));
			levels.push(level);
		}
		return levels;
	});
}

// Spans that begin in one pixel and are shorter than that become one box: of those that run, and those that wait, {work:
// µs, best}.
class Pixel {
	constructor(model, scale, last, end) {
		this.levels = spanBlocks(model);
		this.spans = model.spans;
		this.reason = model.rows.reason;
		this.steps = model.header.metrics.map((_, m) => stepOf(model, m));
		this.longest = 1 / scale; // what is as long or longer is a box of its own
		this.last = last;
		this.end = end;
	}
	begin(until) {
		this.until = until; // the time at which it ends
		this.work = [0, 0];
		this.best = [-1, -1];
	}
	fits(i, level, size) {
		const {start} = this.spans, last = i + size - 1;
		return (i & (size - 1)) === 0 && last < this.last && start[last] < this.until && start[last] < this.end &&
			this.levels[level].longest[i / size] < this.longest;
	}
	// Takes span i, or the largest block that begins with it and fits; returns what comes after it.
	take(i) {
		const {samples, metric, row} = this.spans, {levels} = this;
		let level = -1, size = 1;
		while (level + 1 < levels.length && this.fits(i, level + 1, size << BLOCK_BITS)) {
			level++;
			size <<= BLOCK_BITS;
		}
		if (level >= 0) {
			for (const waits of [0, 1])
				this.add(waits, levels[level].best[waits][i / size], levels[level].work[waits][i / size]);
			return i + size;
		}
		const step = this.steps[metric[i]];
		this.add(this.reason[row[i]] ? 1 : 0, i, step ? samples[i] * step : Infinity);
		return i + 1;
	}
	add(waits, best, work) {
		const {samples} = this.spans, known = this.best[waits];
		this.work[waits] += work;
		if (best >= 0 && (known < 0 || samples[best] > samples[known]))
			this.best[waits] = best;
	}
	// {span, busy, waits, wait}: the span that runs most, for which part of the pixel some do; the same of waits.
	box(scale) {
		const [span, waits] = this.best, [busy, wait] = this.work.map((work) => Math.min(1, work * scale));
		return {span: span < 0 ? waits : span, busy, waits, wait: Math.min(wait, 1 - busy)};
	}
}

// A thread's spans in [from, to) as boxes on `width` pixels, from the left: {x, w, span, busy, waits, wait}, where
// busy is the share of the time that samples stand for, and wait the same of waits, of which `waits` is a span (-1: there
// is none). Short ones in a pixel are one box, with the spans that have most samples; so there are no more than
// about two for each pixel.
export function timeBoxes(model, thread, from, to, width) {
	const {first, start, end, samples, metric} = model.spans, last = first[thread + 1];
	const scale = width / (to - from), pixel = new Pixel(model, scale, last, to), out = [];
	for (let i = spanAfter(model, first[thread], last, from); i < last && start[i] < to;) {
		const x = (start[i] - from) * scale, w = (end[i] - start[i]) * scale;
		if (w >= 1) {
			const step = pixel.steps[metric[i]], done = step ? samples[i] * step * scale : 1, waits = spanReason(model, i) > 0;
			out.push({x, w, span: i, busy: waits ? 0 : Math.min(1, done / w), waits: waits ? i : -1, wait: waits ? 1 : 0});
			i++;
			continue;
		}
		const at = x > 0 ? Math.floor(x) : 0;
		pixel.begin(from + (at + 1) / scale);
		do
			i = pixel.take(i);
		while (i < last && start[i] < to && start[i] < pixel.until && end[i] - start[i] < pixel.longest);
		out.push({x: at, w: 1, ...pixel.box(scale)});
	}
	return out;
}

// The thread that ended a wait; -1: it was no thread, or is not known.
export function spanWaker(model, span) {
	const waker = model.spans.waker[span] - 1 - SPAN_WAKERS;
	return waker >= 0 ? waker : -1;
}

// Spans that a thread's waking ended, by when: an array of their numbers.
export function wokenBy(model, thread) {
	const byWaker = cached(model, "woken by thread", () => {
		const {end, count} = model.spans, lists = new Map();
		for (let i = 0; i < count; i++)
			if (spanWaker(model, i) >= 0) {
				if (!lists.has(spanWaker(model, i)))
					lists.set(spanWaker(model, i), []);
				lists.get(spanWaker(model, i)).push(i);
			}
		lists.forEach((list) => list.sort((a, b) => end[a] - end[b]));
		return lists;
	});
	return byWaker.get(thread) || [];
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

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do.
export function prepareTimes(model) {
	return hasTimeline(model) ? [() => { wholeTime(model); }, () => { spanBlocks(model); }, () => { shownNodes(model, 0); },
		() => { allTimeCounts(model); }, () => { wokenBy(model, 0); }] : [];
}
