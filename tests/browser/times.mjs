// SPDX-License-Identifier: Apache-2.0
// times.mjs PAGE: what the page computes from its time line, which has every sample.
import assert from "node:assert/strict";
import {loadModules, readPage} from "./page.mjs";

const m = await loadModules("format", "events", "model", "times", "lists", "sums", "select", "formula", "columns", "levels", "views", "own", "pairs", "flat",
	"statistics", "compare_sides", "compare_find", "compare", "compare_state", "own_code", "memory", "waits", "state");
const model = m.parseModel(readPage(process.argv[2]).bytes);
const {spans, rows} = model, metric = spans.metric[0];
assert.ok(m.hasTimeline(model));
const [first, last] = m.wholeTime(model);
const sum = (list) => list.reduce((a, b) => a + b, 0);

// Spans of a thread are in order and do not overlap.
for (let t = 0; t < model.header.threads.length; t++)
	for (let i = spans.first[t]; i < spans.first[t + 1]; i++) {
		assert.equal(rows.thread[spans.row[i]], t);
		assert.ok(spans.end[i] >= spans.start[i]);
		assert.ok(i === spans.first[t] || spans.start[i] >= spans.end[i - 1]);
	}
assert.equal(spans.first[model.header.threads.length], spans.count);

// The whole time has all samples, each in its row; parts of it add up, wherever they are cut.
const whole = m.timeCounts(model, [first, last + 1]);
assert.deepEqual([...whole[metric]], [...rows.counts[metric]]);
let seed = 12345;
const random = (limit) => (seed = (seed * 1103515245 + 12345) % 2147483648) % limit;
for (let round = 0; round < 20; round++) {
	const cuts = [first, random(last), random(last), last + 1].sort((a, b) => a - b);
	const parts = cuts.slice(1).map((to, i) => m.timeCounts(model, [cuts[i], to])[metric]);
	whole[metric].forEach((count, r) => assert.ok(Math.abs(count - sum(parts.map((p) => p[r]))) < 1e-6));
}

// A part by hand: each span counts with what lies inside.
const starts = [...spans.start].slice(0, spans.count).sort((a, b) => a - b);
const [from, to] = [0.3, 0.6].map((share) => starts[Math.floor(starts.length * share)]);
let wanted = 0;
for (let i = 0; i < spans.count; i++) {
	const length = spans.end[i] - spans.start[i];
	const inside = Math.min(to, spans.end[i]) - Math.max(from, spans.start[i]);
	wanted += inside > 0 && length ? spans.samples[i] * inside / length : 0;
}
const part = m.computeSelection(model, {time: [from, to]});
const total = part.sums[metric].total(0);
assert.ok(Math.abs(total - wanted) < 1e-6 * wanted + 1e-9, `${total} ${wanted}`);
assert.ok(part.narrowed && wanted > 0 && wanted < model.whole[metric]);
const lines = Array.from({length: model.lines.count}, (_, line) => m.lineSelf(model, part, metric, line));
assert.ok(Math.abs(sum(lines) - wanted) < 1e-6);
const view = new m.TopDown(model, part), flat = new m.Flat(model, part, 0);
assert.ok(Math.abs(sum(flat.level(null).rows().map((r) => r.self[metric])) - wanted) < 1e-6);
assert.equal(view.level(null).rows()[0].total[metric], total);
assert.ok(Math.abs(sum([...m.threadTotals(model, [], metric, 0, [from, to])]) - wanted) < 1e-6);
// Memory that is used again gives the same.
const again = m.computeSelection(model, {time: [from, to]}, m.computeSelection(model));
assert.deepEqual(again.sums.map((s) => s.upTo), part.sums.map((s) => s.upTo));

// Spans are found by their time.
for (let t = 0; t < model.header.threads.length; t++)
	for (let i = spans.first[t]; i < spans.first[t + 1]; i += 7)
		if (spans.end[i] > spans.start[i]) {
			assert.equal(m.spanAt(model, t, spans.start[i]), i);
			assert.equal(m.spanAt(model, t, spans.end[i] - 0.5), i);
			if (i + 1 < spans.first[t + 1] && spans.start[i + 1] > spans.end[i] + 2)
				assert.equal(m.spanAt(model, t, spans.end[i] + 1), -1, "a gap");
		}
assert.equal(m.spanAt(model, 0, last + 1e9), -1);
assert.ok(m.spanAt(model, 0, last + 1e9, Infinity) >= 0);

// Boxes: inside of the picture, beside each other, no more than two for a pixel.
for (const width of [7, 300, 5000])
	for (const [a, b] of [[first, last], [from, to], [from, from + 50]])
		for (let t = 0; t < model.header.threads.length; t++) {
			const boxes = m.timeBoxes(model, t, a, b, width);
			assert.ok(boxes.length <= 2 * width + 2);
			boxes.forEach((box, i) => {
				assert.ok(box.busy > 0 && box.busy <= 1 && box.w >= 1 && box.x < width && box.x + box.w > 0);
				assert.ok(!i || box.x >= boxes[i - 1].x);
				assert.ok(box.span >= spans.first[t] && box.span < spans.first[t + 1]);
			});
		}

// What stands for a context: itself, or what is above it at a level; never a loop.
for (const level of [0, 1, 3]) {
	const shown = m.shownNodes(model, level);
	for (let i = 1; i < model.nodes.count; i++) {
		assert.ok(shown[i] > 0 && i >= shown[i] && i < model.nodes.end[shown[i]]);
		assert.ok(!level || model.nodes.depth[shown[i]] <= level);
		assert.ok(model.scopes.kind[model.nodes.scope[shown[i]]] !== m.KIND.loop ||
			model.nodes.parent[shown[i]] <= 0);
	}
}
const {step, ticks} = m.timeTicks(0, 2e6, 8);
assert.deepEqual([step, ticks.length], [500000, 5]);

// Rows: threads with spans, those of several processes under a heading.
const list = m.timeRows(model, null);
assert.deepEqual(list.filter((r) => r.thread >= 0).map((r) => r.thread).sort(),
	model.header.threads.map((_, t) => t).filter((t) => spans.first[t] < spans.first[t + 1]).sort());
assert.ok(m.timeRows(model, [list.find((r) => r.thread >= 0).thread]).length === 1);

// In the address.
const state = m.newState();
Object.assign(state, {view: "time", time: [5, 2000], window: [0, 900000], moment: [0, 77], level: 3});
assert.deepEqual(m.decodeState(m.encodeState(state), model), state);
for (const bad of ["time=9-3", "time=x", "moment=9999-1", "window=1-1", "level=99", "time=1-2-3", "time=-1-5"]) {
	const read = m.decodeState("v=time&" + bad, model);
	assert.deepEqual([read.time, read.window, read.moment, read.level], [null, null, null, 0], bad);
}
console.log(`${spans.count} spans`);
