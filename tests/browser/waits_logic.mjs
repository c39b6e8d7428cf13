// SPDX-License-Identifier: Apache-2.0
// waits_logic.mjs PAGE WAITS [timed]: what the page tells of waiting is what `report --json --view=waits` (WAITS) does.
// timed: PAGE is of a recording of wakers.c with a time line, which has waits as they were.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {loadModules, readPage} from "./page.mjs";

const [page, json, timed] = process.argv.slice(2);
const m = await loadModules("format", "events", "model", "times", "lists", "sums", "select", "formula", "columns", "levels", "views", "own",
	"pairs", "flat", "outline", "own_code", "waits", "pixels", "timeline_waits");
const model = m.parseModel(readPage(page).bytes), report = JSON.parse(readFileSync(json, "utf8"));
m.setColumns(model, {compared: null, metric: 0, derived: []});
const metric = m.waitMetrics(model)[0], all = m.waitsOf(model, m.computeSelection(model), metric);
const tid = (thread) => model.header.threads[thread].tid;

// Pairs, reasons and chains.
const kinds = ["interrupt", "kernel", "outsider"];
const pairs = all.pairs.map((pair) => [tid(pair.thread), m.threadOfWaker(pair.waker) < 0 ? kinds[pair.waker] || "unknown" : "thread",
	m.threadOfWaker(pair.waker) < 0 ? null : tid(m.threadOfWaker(pair.waker)), model.header.reasons[pair.reason], pair.count, pair.waited]);
assert.deepEqual(pairs.sort(), report.waits.map((w) => [w.thread.tid, w.by, w.waker ? w.waker.tid : null, w.reason, w.samples,
	w.waker_waited]).sort());
const number = report.metrics.findIndex(({name}) => name === model.header.metrics[metric].name);
assert.deepEqual(all.reasons.map(({reason, count}) => [model.header.reasons[reason], count]).sort(),
	report.reasons.map(({name, total}) => [name, total[number]]).filter(([name, total]) => name !== "on a CPU" && total).sort());
assert.deepEqual(all.chains.map(({threads, count, end}) => [threads.map(tid), count, end === m.EACH_OTHER ? "each other" :
	model.header.reasons[end]]), report.chains.map((c) => [c.threads.map((t) => t.tid), c.samples, c.end]));

// Threads of one name are told apart.
const same = {header: {threads: [{name: "a", tid: 1}, {name: "b", tid: 2}, {name: "a", tid: 3}], reasons: model.header.reasons}, cache: new Map()};
assert.equal(m.chainWords(same, {threads: [0, 1, 2], end: 0}), "a 1 ← b ← a 3, which runs");

// One reason alone: its samples are counted everywhere, and all reasons are still told.
for (const {reason, count} of all.reasons) {
	const some = m.computeSelection(model, {reason});
	assert.equal(some.sums[metric].total(0), count);
	assert.deepEqual(m.waitsOf(model, some, metric).reasons, all.reasons);
	assert.ok(m.waitsOf(model, some, metric).pairs.every((pair) => pair.reason === reason));
	assert.equal(m.waitsOf(model, some, metric).total, count);
}
assert.equal(m.computeSelection(model).sums[metric].total(0), model.whole[metric], "what was kept is another's");

// Where a pair waits, and where a thread is.
for (const pair of all.pairs) {
	const nodes = m.pairNodes(model, m.computeSelection(model), metric, pair, Infinity);
	assert.equal(nodes.reduce((sum, {count}) => sum + count, 0), pair.count);
}

// Waits on the time line are as long as they were, and lead to those who ended them.
const {spans} = model, waits = Array.from({length: spans.count}, (_, i) => i).filter((i) => m.spanReason(model, i));
assert.ok(waits.length > 5);
for (const i of waits) {
	const waker = m.spanWaker(model, i), thread = model.rows.thread[spans.row[i]];
	assert.ok(waker < 0 || (m.wokenBy(model, waker).includes(i) && waker !== thread));
	assert.deepEqual(m.wakesOfSpan(model, i).filter(([, to, time]) => to === thread && time === spans.end[i]).length, waker < 0 ? 0 : 1);
}
if (timed) {
	const name = (i) => model.header.threads[model.rows.thread[spans.row[i]]].name;
	const of = (thread, reason) => waits.filter((i) => name(i) === thread && model.header.reasons[m.spanReason(model, i)] === reason);
	const lengths = of("worker", "sleep").map((i) => (spans.end[i] - spans.start[i]) / 1000);
	assert.ok(lengths.length > 10 && lengths.every((ms) => ms > 19.9), `worker sleeps 20 ms each time, not ${lengths.join(" ")}`);
	const wakers = of("waiter", "condition").map((i) => m.spanWaker(model, i) < 0 ? "" : model.header.threads[m.spanWaker(model, i)].name);
	assert.ok(wakers.length > 10 && wakers.filter((waker) => waker === "worker").length > 0.8 * wakers.length, wakers.join(" "));
	assert.ok(Array.from(spans.row).some((row) => !model.rows.reason[row]), "nothing runs");
}
console.log(`${all.pairs.length} pairs, ${all.chains.length} chains`);
