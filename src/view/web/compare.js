// SPDX-License-Identifier: Apache-2.0
// Two sides compared: recordings before and after, or threads of one recording. A side has runs: files,
// processes or threads; the samples of each are counted apart (`select`), as if they were metrics, so that
// every view has them for its rows.
//
// What a row took is the mean of a side's runs, and whether that changed is tested as by `culprit diff`
// (statistics.js). Many rows are looked at, so chances are corrected (Holm) among
//
//     functions          all of them and all together, for their own samples: what `culprit diff` has
//     contexts           all of the tree; one with just the samples of its caller is the same test
//     others             those beside it: callers of a function, loops in it, files, modules

import {KIND, cached, inBlocks, sumsType, threadLabel} from "./model.js";
import {Base, Selection, compilePattern, computeSelection, rowsByLine, samplesByThread} from "./select.js";
import {BottomUp, TopDown} from "./views.js";
import {TEST_LEAST, holm, testChance, testInterval} from "./statistics.js";
import {baseName, plural} from "./format.js";

// Columns may have been added to those that were recorded (columns.js).
function metricsOf(model) {
	return model.recorded ? model.recorded.metrics : model.metrics;
}

export const PERS = ["file", "process", "thread", "group"]; // what a run is
const CELLS_MAX = 32e6; // numbers for the runs of groups

export function defaultLimits(model) {
	const {alpha = 0.05, noise = 0.02, min = 0.001} = model.header.comparison || {};
	return {alpha, noise, min};
}

// The sides that the page was made for, or null.
export function fileSides(model) {
	const {comparison} = model.header;
	if (!comparison)
		return null;
	const sides = {a: [], b: [], per: "file", files: true};
	comparison.threads.forEach((run, thread) => sides[run < comparison.old ? "a" : "b"].push(thread));
	return sides;
}

// What is compared, or null: {a, b: threads, per, files: whether they are those of the page}.
export function chosenSides(model, state) {
	if (state.compare === "off")
		return null;
	return state.compare || fileSides(model);
}

// The runs of a side: [{label, threads}…].
function splitRuns(model, threads, per) {
	const {header} = model, runs = new Map();
	for (const thread of threads) {
		const {process} = header.threads[thread];
		const key = per === "file" ? header.comparison.threads[thread] : per === "process" ? process :
			per === "thread" ? thread : 0;
		if (!runs.has(key))
			runs.set(key, {threads: [], label: per === "file" ? baseName(header.comparison.runs[key].path) :
				per === "process" ? processLabel(model, process) :
				per === "thread" ? threadLabel(model, thread) : plural(threads.length, "thread")});
		runs.get(key).threads.push(thread);
	}
	return [...runs.values()];
}

// "app (process 12, rank 3)", and of which file where there are several.
export function processLabel(model, index) {
	const {processes, threads, comparison} = model.header, process = processes[index];
	if (!process)
		return `process ${index}`;
	const thread = comparison ? threads.findIndex((t) => t.process === index) : -1;
	return `${process.name} (process ${process.pid}${process.rank >= 0 ? `, rank ${process.rank}` : ""}` +
		`${thread >= 0 ? ` of ${comparison.runs[comparison.threads[thread]].path}` : ""})`;
}

// Files that have no threads with samples are runs all the same.
function fileRuns(model) {
	const {runs, old, threads} = model.header.comparison;
	const all = runs.map(({path}, i) => ({label: baseName(path), side: i < old ? 0 : 1, threads: []}));
	threads.forEach((run, thread) => all[run].threads.push(thread));
	return all;
}

// How much is wanted of a side's name: "worker (thread 12)", "3 threads", "old.prof and 2 more".
function sideText(runs, threads) {
	return runs.length === 1 ? runs[0].label : runs.length <= threads ?
		`${runs[0].label} and ${runs.length - 1} more` : plural(threads, "thread");
}

// For each list of numbers the index of the first one that is equal.
function firstOfEach(lists) {
	const known = new Map();
	return lists.map((list, i) => {
		const key = list.join(" ");
		if (!known.has(key))
			known.set(key, i);
		return known.get(key);
	});
}

function addScaled(from, to, numbers, factor, part, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i] * factor / part;
}

function addWeighted(from, to, numbers, weight, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i] * weight;
}

function takeChances(from, to, scopes, chances, result) {
	for (let i = from; i < to; i++)
		result[i] = chances[scopes[i]];
}

function listLeast(from, to, shares, least, list) {
	for (let i = from; i < to; i++)
		if (shares[i] >= least)
			list.push(i);
}

function shareOf(node, sums, weights) {
	let share = 0;
	for (let r = 0; r < sums.length; r++)
		share += sums[r].total(node) * weights[r];
	return share;
}

function walkLarge(end, zoom, arrays, weights, least, list) {
	for (let i = zoom; i < end[zoom];) {
		const next = end[i];
		let share = 0;
		for (let r = 0; r < arrays.length; r++)
			share += (arrays[r][next] - arrays[r][i]) * weights[r];
		if (share >= least)
			list.push(i);
		i = share >= least ? i + 1 : next;
	}
}

// The same where sums are looked up (select.js): most nodes are too small even if all samples were of the run whose
// samples count most. all: arrays that have all samples up to each node.
function walkLargeFew(end, zoom, all, sums, weights, least, list) {
	const most = all.map(() => Math.max(...weights));
	for (let i = zoom; i < end[zoom];) {
		let bound = 0;
		for (let k = 0; k < all.length; k++)
			bound += (all[k][end[i]] - all[k][i]) * most[k];
		const large = bound >= least && shareOf(i, sums, weights) >= least;
		if (large)
			list.push(i);
		i = large ? i + 1 : end[i];
	}
}

export class Comparison {
	// sides: of chosenSides; limits: {alpha, noise, min}; shares: whether shares are compared, not costs.
	constructor(model, sides, {metric = 0, shares = false, limits = defaultLimits(model)} = {}) {
		this.model = model;
		this.shares = shares;
		this.limits = limits;
		this.threads = [...sides.a, ...sides.b];
		this.names = sides.files ? ["old", "new"] : ["A", "B"];
		this.per = sides.per;
		this.makeRuns(sides);
		this.setMetric(metric);
	}
	makeRuns(sides) {
		const {model} = this, {per} = sides;
		const split = (how) => [sides.a, sides.b].flatMap((threads, side) => {
			const runs = splitRuns(model, threads, how);
			return (runs.length ? runs : [{label: "nothing", threads: []}]).map((run) => ({...run, side}));
		});
		this.runs = sides.files ? fileRuns(model) : split(per);
		if (!sides.files && this.runs.length * model.nodes.count > CELLS_MAX)
			this.runs = split(this.per = "group");
		this.oldCount = this.runs.filter((run) => run.side === 0).length;
		this.counts = [this.oldCount, this.runs.length - this.oldCount];
		this.labels = [sides.a, sides.b].map((threads, s) =>
			sideText(this.runs.filter((run) => run.side === s), threads.length));
		this.runOf = new Int32Array(model.header.threads.length).fill(-1);
		this.runs.forEach((run, r) => run.threads.forEach((t) => { this.runOf[t] = r; }));
	}
	// The metric of a run: of those with the name and unit of `metric` the one that it has samples of
	// (recordings with other periods have one each).
	setMetric(metric) {
		const {model} = this, metrics = metricsOf(model), {name, unit} = metrics[metric];
		const alike = metrics.map((_, m) => m).filter((m) => metrics[m].name === name && metrics[m].unit === unit);
		const sums = alike.map((m) => this.runs.map(({threads}) =>
			threads.reduce((sum, thread) => sum + samplesByThread(model, m)[thread], 0)));
		this.unit = unit;
		this.runs.forEach((run, r) => {
			const own = Math.max(0, alike.findIndex((_, i) => sums[i][r] > 0));
			run.metric = alike[own];
			run.period = metrics[run.metric].period;
			run.samples = sums[own][r];
		});
		this.whole = [0, 1].map((side) => this.costOf(this.runs.map((run) => run.samples), side));
		this.setScales();
	}
	setScales() {
		// About what a sample of a run adds to the mean of both shares.
		this.weights = this.runs.map(({period, side}) =>
			this.whole[side] > 0 ? period / this.counts[side] / this.whole[side] / 2 : 0);
		this.scales = this.runs.map((run) => this.shares ? 1 / Math.max(1, run.samples) : run.period);
		this.options = {noise: this.limits.noise, confidence: 1 - this.limits.alpha, shares: this.shares};
		this.hasReplicates = this.counts.some((count) => count > 1);
	}
	// What is summed in place of metrics: the samples of each run.
	get base() {
		const {model} = this, of = (threads) => {
			const chosen = new Uint8Array(model.header.threads.length);
			threads.forEach((thread) => { chosen[thread] = 1; });
			return chosen;
		};
		if (!this.columns)
			this.columns = new Base(model, this.runs.map(({metric, threads}) =>
				({counts: model.rows.counts[metric], threads: of(threads)})), sumsType(model.header.metrics), of(this.threads));
		return this.columns;
	}
	// threads: a set of those that count, or null. What is not narrowed is kept. `reuse`: as in select.js.
	select({filters = [], zoom = 0, threads = null} = {}, reuse = null) {
		const all = !zoom && !threads && !filters.some((f) => compilePattern(f.text));
		this.selection = all && this.all || new Selection(this.model, this.base, {filters, zoom,
			threads: threads ? this.among(threads) : null}, reuse);
		this.selection.narrowed = true; // it is another thing than what was recorded
		if (all)
			this.all = this.selection;
		return this.selection;
	}
	setShares(shares) {
		this.shares = shares;
		this.setScales();
	}
	// What was computed of a selection, by name.
	get families() {
		const {selection} = this;
		selection.families = selection.families || [new Map(), new Map()];
		return selection.families[this.shares ? 1 : 0];
	}
	// The threads that count: of both sides, and chosen (a set; null: all are).
	among(chosen) {
		return new Set(this.threads.filter((thread) => !chosen || chosen.has(thread)));
	}
	// Samples of all runs of a side, whatever is filtered.
	sideSamples(side) {
		return this.runs.reduce((sum, run) => sum + (run.side === side ? run.samples : 0), 0);
	}
	// Self samples of a line, of one side: lines of the other may be those of another text.
	lineSelf(line, side) {
		const {thread} = this.model.rows, {starts, order} = rowsByLine(this.model), {counts} = this.model.rows;
		let sum = 0;
		for (let i = starts[line]; i < starts[line + 1]; i++) {
			const r = order[i], run = this.runs[this.runOf[thread[r]]];
			if (run && run.side === side && this.selection.wanted[r])
				sum += counts[run.metric][r];
		}
		return sum;
	}

	// Numbers

	// The mean cost of a side's runs, from samples by run.
	costOf(counts, side) {
		let cost = 0;
		for (let r = 0; r < this.runs.length; r++)
			if (this.runs[r].side === side)
				cost += counts[r] * this.runs[r].period / this.counts[side];
		return cost;
	}
	measure(counts) {
		const cost = [this.costOf(counts, 0), this.costOf(counts, 1)];
		const share = cost.map((c, s) => this.whole[s] > 0 ? c / this.whole[s] : 0);
		const samples = [0, 0];
		for (let r = 0; r < counts.length; r++)
			samples[this.runs[r].side] += counts[r];
		const [old, now] = this.shares ? share : cost;
		return {
			cost, share, samples, difference: cost[1] - cost[0], shareDifference: share[1] - share[0],
			by: now - old, ratio: old > 0 ? now / old : NaN,
		};
	}
	// base: "total" or "self".
	rowMeasure(row, base) {
		return this.measure(row[base]);
	}
	// Of all rows of a level: what they took on each side, as costs or as shares of the whole.
	levelCosts(level, base) {
		const sides = [0, 1].map(() => new Float64Array(level.length));
		this.runs.forEach(({side, period}, r) => {
			const numbers = level.numbers(base, r);
			inBlocks(0, level.length, (from, to) => addScaled(from, to, numbers, period, this.counts[side], sides[side]));
		});
		if (this.shares)
			sides.forEach((sum, side) => {
				for (let i = 0; i < sum.length; i++)
					sum[i] = this.whole[side] > 0 ? sum[i] / this.whole[side] : 0;
			});
		return sides;
	}
	sides(counts) {
		const old = this.oldCount;
		return [{counts: counts.slice(0, old), scales: this.scales.slice(0, old)},
			{counts: counts.slice(old), scales: this.scales.slice(old)}];
	}
	// Whether it is large enough; all together always is, but has no share.
	isTested(counts, all = false) {
		const {runs, whole} = this;
		let samples = 0, old = 0, now = 0;
		for (let r = 0; r < counts.length; r++) {
			const {side, period} = runs[r], cost = counts[r] * period / this.counts[side];
			samples += counts[r];
			if (side)
				now += cost;
			else
				old += cost;
		}
		return samples >= TEST_LEAST && (all ? !this.shares :
			((whole[0] > 0 ? old / whole[0] : 0) + (whole[1] > 0 ? now / whole[1] : 0)) / 2 >= this.limits.min);
	}
	// The chance of such a difference by itself; -1: it is not tested.
	chance(counts, all = false) {
		return this.isTested(counts, all) ? testChance(...this.sides(counts), this.options) : -1;
	}
	interval(counts) {
		return testInterval(...this.sides(counts), this.options);
	}

	// Corrected chances

	family(name, make) {
		if (!this.families.has(name))
			this.families.set(name, make());
		return this.families.get(name);
	}
	// Of functions, by scope, and of all together: {total, chances}. `callers`: the view of that name.
	// Functions with the same samples are different ones, but totals with the same are mostly those of one
	// call chain: a test each.
	functions(base, callers) {
		return this.family("functions " + base, () => {
			const arrays = callers.sums[base], chances = new Float64Array(this.model.scopes.count).fill(-1);
			const {zoom, sums} = this.selection, total = sums.map((one) => one.total(zoom));
			const tested = this.largeScopes(callers).filter((s) => this.isTested(arrays.map((array) => array[s])));
			const counts = tested.map((scope) => arrays.map((array) => array[scope]));
			const first = base === "self" ? counts.map((_, i) => i) : firstOfEach(counts);
			const adjusted = holm([this.chance(total, true),
				...counts.map((c, i) => first[i] === i ? this.chance(c) : -1)]);
			tested.forEach((scope, i) => { chances[scope] = adjusted[first[i] + 1]; });
			return {total: adjusted[0], chances, tested: tested.length};
		});
	}
	// Scopes that may be large enough: those with such totals.
	largeScopes(callers) {
		const {selection} = this;
		if (!selection.largeScopes)
			selection.largeScopes = this.findShares(callers.sums.total, 1, this.model.scopes.count);
		return selection.largeScopes;
	}
	// Places that may be large enough, of arrays by run.
	findShares(arrays, from, to) {
		const list = [], shares = new Float64Array(to), least = 0.999 * this.limits.min;
		arrays.forEach((array, r) => inBlocks(from, to, (a, b) => addWeighted(a, b, array, this.weights[r], shares)));
		inBlocks(from, to, (a, b) => listLeast(a, b, shares, least, list));
		return list;
	}
	// Those that are.
	findTested(arrays, length) {
		return this.findShares(arrays, 0, length).filter((i) => this.isTested(arrays.map((array) => array[i])));
	}
	// Nodes of the tree that may be large enough, in its order. Where one is too small, so is all below it.
	findLarge() {
		const {selection, weights} = this, least = 0.999 * this.limits.min;
		if (!selection.large) {
			const {sums, zoom} = selection, {end} = this.model.nodes, among = this.all && this.all.large;
			if (among) // what is narrowed has no others
				selection.large = among.filter((i) => i >= zoom && i < end[zoom] && shareOf(i, sums, weights) >= least);
			else
				selection.large = this.walk(selection, least);
		}
		return selection.large;
	}
	walk({sums, zoom}, least) {
		const {model, weights, runs} = this, {end} = model.nodes, list = [], [{metric}] = runs;
		if (sums.some((one) => !one.made) && runs.every((run) => run.metric === metric))
			walkLargeFew(end, zoom, this.around(metric), sums, weights, least, list);
		else
			walkLarge(end, zoom, sums.map((one) => one.upTo), weights, least, list);
		return list;
	}
	// Sums that have all samples of a metric that are compared, and few others: those of the files, where these were
	// compared just before, or of all.
	around(metric) {
		const {model, threads} = this, {comparison} = model.header, fits = ({per, all, runs}) =>
			per === "file" && all && runs.length === comparison.runs.length && runs.every((run) => run.metric === metric);
		const files = comparison && [...cached(model, "comparisons", () => new Map()).values()].find(fits);
		return files ? [...new Set(threads.map((thread) => files.runOf[thread]))].map((run) => files.all.sums[run].upTo) :
			[computeSelection(model).sums[metric].upTo];
	}
	// Of contexts, by node: those that are tested.
	contexts(base) {
		return this.family("contexts " + base, () => {
			const {model, selection} = this, {zoom, sums} = selection, {parent} = model.nodes;
			const of = new Map(), list = []; // of: node -> its test
			const isLike = (i, up) => sums.every((one) => one.total(i) === one.total(up));
			for (const i of this.findLarge()) {
				const counts = selection.values(base, i);
				if (!this.isTested(counts))
					continue;
				const same = base === "total" && i > zoom && isLike(i, parent[i]);
				of.set(i, same ? of.get(parent[i]) : list.length);
				if (!same)
					list.push(this.chance(counts, i === 0 && base === "total"));
			}
			const adjusted = holm(list);
			return new Map([...of].map(([node, test]) => [node, adjusted[test]]));
		});
	}
	// The corrected chances of all rows of a level; -1: not tested. callers(): the view of that name.
	levelChances(view, level, base, callers) {
		if (view instanceof TopDown) {
			const chances = new Float64Array(level.length).fill(-1);
			for (const [node, p] of this.contexts(base)) {
				const place = level.placeOf(node);
				if (place >= 0)
					chances[place] = p;
			}
			return chances;
		}
		const known = this.family(level, () => ({}));
		known[base] = known[base] || this.otherChances(view, level, base, callers);
		return known[base];
	}
	// Functions among functions, others among those beside them. Rows remember what they got.
	otherChances(view, level, base, callers) {
		const result = new Float64Array(level.length).fill(-1);
		const known = this.functionsOf(view, level), others = [];
		const {chances} = known.includes(1) ? this.functions(base, callers()) : {};
		if (!known.includes(0)) { // their numbers are those of the functions
			inBlocks(0, level.length, (from, to) => takeChances(from, to, level.scopes, chances, result));
			return result;
		}
		const arrays = this.runs.map((_, r) => level.numbers(base, r));
		for (const place of this.findTested(arrays, level.length)) {
			if (known[place])
				result[place] = chances[level.scopes[place]];
			else
				others.push(place);
		}
		const adjusted = holm(others.map((place) => this.chance(arrays.map((array) => array[place]))));
		others.forEach((place, i) => {
			const row = level.row(place);
			result[place] = adjusted[i];
			this.family(row, () => ({}))[base] = adjusted[i];
		});
		return result;
	}
	// Makes rows remember what they got; functions need not.
	remember(view, level, callers) {
		if (!this.functionsOf(view, level).includes(0))
			return;
		this.levelChances(view, level, "total", callers);
		this.levelChances(view, level, "self", callers);
	}
	// By place: 1 where a row stands for a function as a whole.
	functionsOf(view, level) {
		const known = this.family(level, () => ({}));
		known.functions = known.functions || this.findFunctions(view, level);
		return known.functions;
	}
	findFunctions(view, level) {
		const {kind} = this.model.scopes, flags = new Uint8Array(level.length);
		if (view instanceof BottomUp)
			return level === view.level(null) ? flags.fill(1) : flags;
		const {levelOf} = view.structure;
		for (let place = 0; place < flags.length; place++)
			flags[place] = levelOf[level.ids[place]] === 2 && kind[level.scopes[place]] !== KIND.loop ? 1 : 0;
		return flags;
	}
	// The corrected chance of a row; -1: it is not tested.
	corrected(row, base, view, callers) {
		if (row.node >= 0)
			return this.contexts(base).get(row.node) ?? -1;
		const isFunction = view instanceof BottomUp ? !row.key.includes(".") :
			row.level === 2 && this.model.scopes.kind[row.scope] !== KIND.loop;
		if (isFunction)
			return this.functions(base, callers()).chances[row.scope];
		const judged = this.families.get(row);
		return judged && base in judged ? judged[base] : this.chance(row[base]);
	}
	verdict(measure, p) {
		if (p < 0)
			return "too few";
		if (p > this.limits.alpha)
			return "noise";
		if (!measure.samples[0])
			return this.names[0] === "old" ? "new" : `${this.names[1]} only`;
		if (!measure.samples[1])
			return this.names[0] === "old" ? "gone" : `${this.names[0]} only`;
		const more = measure.by > 0;
		if (this.shares || this.unit !== "ns" || this.names[0] !== "old")
			return more ? "more" : "less";
		return more ? "slower" : "faster";
	}
	// What nodes took on a side (0, 1) or, with 2, the mean of both.
	widths(side) {
		return this.family("widths " + side, () => {
			const {sums} = this.selection, scales = this.runs.map((run) => side < 2 && run.side !== side ? 0 :
				run.period / this.counts[run.side] / (this.shares ? this.whole[run.side] || 1 : 1) / (side < 2 ? 1 : 2));
			return {total: (node) => {
				let sum = 0;
				for (let r = 0; r < scales.length; r++)
					sum += sums[r].total(node) * scales[r];
				return sum;
			}};
		});
	}
	isSure(node) {
		const p = this.contexts("total").get(node) ?? -1;
		return p >= 0 && p <= this.limits.alpha;
	}
	// How much a node changed for certain, from -5 to 5: 0 is not told from chance. `all`: or perhaps.
	strength(node, all = false) {
		if (!all && !this.isSure(node))
			return 0;
		const old = this.widths(0).total(node), now = this.widths(1).total(node);
		if (old === now)
			return 0;
		const part = Math.abs(now - old) / Math.max(now, old);
		const level = 1 + [0.05, 0.1, 0.25, 0.5].filter((limit) => part >= limit).length;
		return now > old ? level : -level;
	}
}
