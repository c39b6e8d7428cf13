// SPDX-License-Identifier: Apache-2.0
// diff_logic.mjs PAGE DIFF [SHARES]: the numbers that a page with two sides shows are those of `culprit diff
// --json` (DIFF; SHARES with --share): samples, costs, shares, ratios, intervals, chances.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {loadModules, readPage} from "./page.mjs";

const [page, ...diffs] = process.argv.slice(2);
const m = await loadModules("format", "events", "model", "lists", "sums", "select", "formula", "columns", "levels", "views", "own", "pairs", "flat", "outline", "flame",
	"dom", "statistics", "compare_sides", "compare_find", "compare", "compare_state", "compare_show", "own_code", "memory", "waits", "state");
const model = m.parseModel(readPage(page).bytes);
let checks = 0;

function close(got, wanted, what, tolerance = 1e-9) {
	checks++;
	const off = Math.abs(got - wanted) / Math.max(Math.abs(wanted), 1e-280);
	assert.ok(got === wanted || off <= tolerance, `${what}: ${got} is not ${wanted}`);
}

// The end of an interval reads as 0 only if it is 0.
assert.deepEqual([1.1, 1.0002, 1, 0.9998, 0].map(m.formatEnd), ["+10.0%", "+0.02%", "±0.0%", "\u22120.02%", "\u2212100.0%"]);

function compareWith(shares, metric) {
	const compare = new m.Comparison(model, m.fileSides(model), {shares, metric});
	const selection = compare.select();
	return {compare, callers: new m.BottomUp(model, selection), flat: new m.Flat(model, selection),
		tree: new m.TopDown(model, selection)};
}

function checkRow(compare, counts, {p, tests}, wanted, all) {
	const {name} = wanted, measure = compare.measure(counts);
	["old", "new"].forEach((side, s) => {
		assert.equal(measure.samples[s], wanted[side].samples, `${name}: ${side} samples`);
		close(measure.cost[s], wanted[side].cost, `${name}: ${side} cost`);
		close(measure.share[s], wanted[side].share, `${name}: ${side} share`);
	});
	close(measure.difference, wanted.difference, `${name}: difference`);
	close(measure.shareDifference, wanted.share_difference, `${name}: difference of shares`, 1e-6);
	if (wanted.ratio === null)
		assert.ok(Number.isNaN(measure.ratio));
	else
		close(measure.ratio, wanted.ratio, `${name}: ratio`);
	assert.equal(compare.isTested(counts, all), wanted.tested, `${name}: tested`);
	assert.equal(p >= 0, wanted.tested, `${name}: has a chance`);
	assert.equal(p >= 0 && p <= compare.limits.alpha, wanted.changed, `${name}: changed`);
	assert.equal(compare.verdict(measure, p), wanted.verdict, `${name}: verdict`);
	if (!wanted.tested)
		return;
	close(compare.chance(counts, all), wanted.p, `${name}: p`, 1e-8);
	close(p, wanted.p_corrected, `${name}: corrected p`, 1e-8);
	const [low, high] = compare.interval(counts, tests);
	assert.equal(low > 1 || high < 1, wanted.changed, `${name}: the interval says something else than the verdict`);
	close(low, wanted.interval[0], `${name}: interval`, 1e-8);
	if (wanted.interval[1] === null)
		assert.equal(high, Infinity);
	else
		close(high, wanted.interval[1], `${name}: interval`, 1e-8);
}

// No row with the numbers of a row of `culprit diff` says another thing than that, wherever it stands, and every row's
// verdict is that of its interval.
function checkSaying(compare, {callers, flat, tree}, diff) {
	const said = new Map(), key = (samples) => samples.join(" ");
	const counts = (row, base) => row[base].join(" ");
	for (const row of callers.level(null).rows()) {
		const {p} = compare.judge(row, "self", callers, () => callers);
		if (p >= 0)
			said.set(counts(row, "self"), compare.verdict(compare.measure(row.self), p));
	}
	if (diff.total.tested)
		said.set(counts(tree.level(null).rows()[0], "total"), diff.total.verdict);
	const check = (row, base, view) => {
		const {p, tests} = compare.judge(row, base, view, () => callers), verdict = compare.verdict(compare.measure(row[base]), p);
		if (p < 0)
			return;
		checks++;
		assert.equal(verdict, said.get(counts(row, base)) ?? verdict, `${m.rowName(model, row)}: other than diff says`);
		const [low, high] = compare.interval(row[base], tests);
		assert.equal(low > 1 || high < 1, verdict !== "noise", `${m.rowName(model, row)}: ${verdict}, ${low} to ${high}`);
		said.set(counts(row, base), verdict);
	};
	for (const base of ["self", "total"]) {
		for (let node = 0; node < model.nodes.count; node++)
			check(tree.row(node), base, tree);
		for (const view of [callers, flat])
			for (const row of view.level(null).rows().slice(0, 30)) {
				check(row, base, view);
				if (row.leaf)
					continue;
				const below = view.level(row);
				compare.remember(view, below, () => callers);
				below.rows().slice(0, 30).forEach((one) => check(one, base, view));
			}
	}
}

// Functions, by what tells them apart in both.
function rowsByName(rows) {
	const found = new Map();
	for (const row of rows)
		if (row.scope >= 0)
			found.set(`${m.scopeName(model, row.scope)} ${m.baseName(m.modulePath(model, row.scope))}`, row);
	return found;
}

for (const [i, path] of diffs.entries()) {
	const diff = JSON.parse(readFileSync(path, "utf8"));
	const {compare, callers, flat, tree} = compareWith(i === 1, model.metrics.findIndex(({name}) => name === diff.metric));
	assert.equal(diff.test.compared, compare.shares ? "share" : "cost");
	assert.equal(diff.test.statistic, compare.untestable ? "none" : compare.hasReplicates ? "welch" : "poisson");
	assert.deepEqual([...diff.old, ...diff.new].map((run) => [run.samples, run.period]),
		compare.runs.map((run) => [run.samples, run.period]));
	const family = compare.functions("self", callers), rows = callers.level(null).rows();
	const found = rowsByName(rows), inFlat = rowsByName(flat.level(null).rows().filter((row) => row.level === 2));
	const own = rows.filter((row) => row.self.some((count) => count > 0));
	assert.equal(own.length, diff.rows.length, "other functions have samples");
	for (const wanted of diff.rows) {
		const name = `${wanted.name} ${wanted.module || ""}`, row = found.get(name);
		assert.ok(row, `${name} is not in the page`);
		checkRow(compare, row.self, compare.judge(row, "self", callers, () => callers), wanted, false);
		const flatRow = inFlat.get(name); // functions that are only inlined stand in others there
		if (!flatRow)
			continue;
		assert.deepEqual(flatRow.self, row.self, `${name} in flat`);
		assert.equal(compare.judge(flatRow, "self", flat, () => callers).p, family.chances[row.scope]);
	}
	const [top] = tree.level(null).rows();
	checkRow(compare, top.total, {p: family.total, tests: family.tests}, {name: "(all)", ...diff.total}, true);
	assert.equal(diff.test.tests, family.tests);
	checkSaying(compare, {callers, flat, tree}, diff);
	// What is shown of the whole tree adds up.
	for (const side of [0, 1]) {
		const sum = rows.reduce((s, row) => s + compare.rowMeasure(row, "self").cost[side], 0);
		close(sum, compare.whole[side], `side ${side} adds up`);
	}
	// Contexts: a chance is at least what it is alone, and a child never has more than its parent.
	const contexts = compare.contexts("total"), chances = [...model.nodes.parent].map((_, node) => contexts.get(node)?.p ?? -1);
	for (let node = 1; node < model.nodes.count; node++) {
		const row = tree.row(node), up = tree.row(model.nodes.parent[node]);
		const counts = row.total, above = up.total;
		counts.forEach((count, r) => assert.ok(count <= above[r]));
		if (chances[node] >= 0)
			assert.ok(chances[node] >= compare.chance(counts) * (1 - 1e-12) && chances[node] <= 1);
		assert.equal(chances[node] >= 0, compare.isTested(counts));
		const strength = compare.strength(node), {by} = compare.measure(counts);
		assert.ok(strength === 0 || Math.sign(strength) === Math.sign(by), "the colour is of the other way");
		assert.equal(strength !== 0, chances[node] >= 0 && chances[node] <= compare.limits.alpha);
	}
}

// Groups of threads: the sums are those of the threads alone; exchanging the sides exchanges the numbers.
const threads = model.header.threads.map((_, i) => i), half = Math.ceil(threads.length / 2);
// Recordings with other periods have a metric each, of the same name.
const alike = model.metrics.flatMap(({name}, i) => name === model.metrics[0].name ? [i] : []);
const groups = [threads.slice(0, half), threads.slice(half)];
for (const per of ["thread", "process", "group"]) {
	const make = (a, b) => {
		const compare = new m.Comparison(model, {a, b, per});
		const selection = compare.select();
			return {compare, tree: new m.TopDown(model, selection)};
	};
	const [one, other] = [make(...groups), make(groups[1], groups[0])];
	groups.forEach((group, side) => {
		const alone = m.computeSelection(model, {threads: new Set(group)});
		for (let node = 0; node < model.nodes.count; node += 7) {
			const {samples} = one.compare.measure(one.tree.row(node).total);
			assert.equal(samples[side], alike.reduce((sum, metric) => sum + alone.sums[metric].total(node), 0));
			const turned = other.compare.measure(other.tree.row(node).total);
			assert.equal(turned.samples[1 - side], samples[side]);
			checks++;
		}
	});
}

// The state of a comparison comes back from the address; nonsense in it does no harm.
const state = m.newState();
Object.assign(state, {compare: {a: [0, 1], b: [2], per: "process"}, base: "both", shares: true, width: "old", noise: 3.5,
	min: 0, unsure: true, sorts: {...m.newState().sorts, tree: {column: "change-self", metric: 0, up: false}}});
if (threads.length > 2 && !m.mainMetric(model.header.metrics))
	assert.deepEqual(m.decodeState(m.encodeState(state), model), state);
for (const bad of ["a=0&b=0", "a=1-999999999&b=0", "a=x&b=-1", "a=0", "per=all&a=0&b=1", "base=no&w=up&noise=-1&min=a"]) {
	const read = m.decodeState(bad, model);
	assert.ok(read.compare === null || (read.compare.a.length && read.compare.b.length));
	assert.deepEqual([read.noise, read.min], [null, null]);
}

// Statistics by themselves, against tables.
close(m.normalAbove(1.959963984540054), 0.025, "normal", 1e-12);
close(m.normalAbove(-1), 0.8413447460685429, "normal", 1e-12);
close(m.normalAbove(10), 7.619853024160527e-24, "normal", 1e-12);
close(m.normalAbove(37), 5.725571222524577e-300, "normal", 1e-10);
close(m.studentAbove(2.228138851964939, 10), 0.025, "Student", 1e-10);
close(m.studentAbove(1, 1), 0.25, "Student", 1e-12);
close(m.studentAbove(1.959963984540054, Infinity), 0.025, "Student", 1e-12);
assert.deepEqual(m.correct([0.01, -1, 0.04, 0.5]), {tests: 3, chances: [0.03, -1, 0.12, 1]});
console.log(`${checks} numbers compared`);
