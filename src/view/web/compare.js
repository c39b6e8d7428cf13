// SPDX-License-Identifier: Apache-2.0
// Two sides compared: recordings before and after, or threads of one recording. A side has runs: files,
// processes or threads; the samples of each are counted apart (`select`), as if they were metrics, so that
// every view has them for its rows.
//
// What a row took is the mean of a side's runs, and whether that changed is tested as by `culprit diff`
// (statistics.js). Many rows are looked at, so chances and intervals are corrected for how many are tested of
//
//     functions          all of them and all together, for their own samples: what `culprit diff` has
//     contexts           all of the tree; one with just the samples of its caller is the same test
//     others             those beside it: callers of a function, loops in it, files, modules
//
// Equal samples are the same test wherever they stand: a row with those of a function, or of all together, gets what
// the function got. So no two rows with the same numbers say different things, and none says another than `culprit diff`.

import {sampledMetric} from "./format.js";
import {KIND, inBlocks, sumsType} from "./model.js";
import {rowsByThread} from "./lists.js";
import {Base} from "./sums.js";
import {Selection, compilePattern, rowsByLine, samplesByThread, sumByThread} from "./select.js";
import {timeCounts} from "./times.js";
import {numbersOf} from "./levels.js";
import {TopDown, valuesAt} from "./views.js";
import {keepsOwn, nodesOfScopes, ownOfNodes, ownOfThreads} from "./own.js";
import {Side, TEST_LEAST, correct, testChance, testInterval} from "./statistics.js";
import {addScaled, addWeighted, areCommon, chancesOf, commonOfRuns, commonOwnOfRuns, findLeast, findLeastLate, findOwn,
	firstFrom, firstOfEach, listLeast, sumGroups, takeChances} from "./compare_find.js";
import {defaultLimits, fileRuns, sideText, splitRuns} from "./compare_sides.js";

const CELLS_MAX = 32e6; // numbers for the runs of groups
const ROWS_FEW_ENOUGH = 1e6; // to be gone through at once
const NOT_TESTED = {p: -1, tests: 0};
const LEAST = 0.999; // of what is large enough: weights are not exact

// Columns may have been added to those that were recorded (columns.js).
function metricsOf(model) {
	return model.recorded ? model.recorded.metrics : model.metrics;
}

function isLike(list, other) {
	for (let r = 0; r < list.length; r++)
		if (list[r] !== other[r])
			return false;
	return true;
}

export class Comparison {
	// sides: of chosenSides; limits: {alpha, noise, min}; shares: whether shares are compared, not costs; time: [from, to)
	// of the time line, or null for all samples.
	constructor(model, sides, {metric = 0, shares = false, limits = defaultLimits(model), time = null} = {}) {
		this.model = model;
		this.time = time;
		this.rowCounts = time ? timeCounts(model, time) : model.rows.counts; // by metric
		this.shares = shares;
		this.limits = limits;
		this.threads = [...sides.a, ...sides.b];
		this.names = sides.files ? ["old", "new"] : ["A", "B"];
		this.per = sides.per;
		this.columns = null;
		this.large = null;
		this.known = null;
		this.measured = {};
		this.selection = null;
		this.all = null; // the selection of all
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
			threads.reduce((sum, thread) => sum + this.threadSamples(m)[thread], 0)));
		this.unit = unit;
		this.amounts = sampledMetric(metrics, metric) !== metric; // what samples stand for, such as bytes
		this.runs.forEach((run, r) => {
			const own = Math.max(0, alike.findIndex((_, i) => sums[i][r] > 0));
			run.metric = alike[own];
			// What was not counted all of the time stands for more, in each recording for as much as it does there.
			run.period = run.periods?.[run.metric] || metrics[run.metric].period;
			run.samples = sums[own][r];
		});
		this.whole = [0, 1].map((side) => this.costOf(this.runs.map((run) => run.samples), side));
		this.setScales();
	}
	// By thread.
	threadSamples(metric) {
		const {model, time} = this;
		return time ? sumByThread(model, this.rowCounts[metric]) : samplesByThread(model, metric);
	}
	setScales() {
		// About what a sample of a run adds to the mean of both shares.
		this.weights = this.runs.map(({period, side}) =>
			this.whole[side] > 0 ? period / this.counts[side] / this.whole[side] / 2 : 0);
		const scales = this.runs.map((run) => this.shares ? 1 / Math.max(1, run.samples) : run.period);
		this.sides = [new Side(0, scales.slice(0, this.oldCount)), new Side(this.oldCount, scales.slice(this.oldCount))];
		this.options = {noise: this.limits.noise, confidence: 1 - this.limits.alpha, shares: this.shares, amounts: this.amounts};
		this.hasReplicates = this.counts.some((count) => count > 1);
		this.untestable = this.amounts && this.counts.some((count) => count < 2);
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
				({counts: this.rowCounts[metric], threads: of(threads)})),
			this.time ? Float64Array : sumsType(model.header.metrics), of(this.threads));
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
		const {thread} = this.model.rows, {starts, order} = rowsByLine(this.model), counts = this.rowCounts;
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
		const last = this.measured; // cells of a row come one after the other
		if (last.row !== row || last.base !== base || last.shares !== this.shares)
			this.measured = {row, base, shares: this.shares, measure: this.measure(row[base])};
		return this.measured.measure;
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
		return !this.untestable && samples >= (this.amounts ? 1 : TEST_LEAST) && (all ? !this.shares :
			((whole[0] > 0 ? old / whole[0] : 0) + (whole[1] > 0 ? now / whole[1] : 0)) / 2 >= this.limits.min);
	}
	isLarge({samples, share}) {
		return samples[0] + samples[1] >= 1 && (share[0] + share[1]) / 2 >= this.limits.min;
	}
	// The chance of such a difference by itself; -1: it is not tested.
	chance(counts, all = false) {
		return this.isTested(counts, all) ? testChance(counts, this.sides, this.options) : -1;
	}
	// The interval of what changed, among so many tests.
	interval(counts, tests) {
		return testInterval(counts, this.sides, {...this.options, confidence: 1 - this.limits.alpha / Math.max(1, tests)});
	}

	// Corrected chances

	family(name, make) {
		if (!this.families.has(name))
			this.families.set(name, make());
		return this.families.get(name);
	}
	// Of functions, by scope: {chances, verdictOf}, how many are tested and changed, and `total`: the chance of all together.
	// `callers`: the view of that name.
	functions(base, callers = null) {
		return this.family("functions " + base, () => base === "self" ? this.ownFunctions(callers) : this.allOfFunctions(callers));
	}
	ownFunctions(callers) {
		const {zoom, sums} = this.selection, total = sums.map((one) => one.total(zoom)), {scopes, arrays} = this.ownOfLarge(callers);
		const places = this.findTested(arrays, scopes ? 0 : 1, arrays[0].length), all = this.isTested(total, true) ? [total] : [];
		const lists = [...all, ...places.map((place) => valuesAt(arrays, place))];
		const {verdicts, tests, known} = this.judgeTogether(lists, null, new Map());
		const {p} = all.length ? verdicts.shift() : NOT_TESTED;
		return {...this.byScope(scopes ? places.map((place) => scopes[place]) : places, verdicts), total: p, tests, known};
	}
	// Totals with the same samples are mostly those of one call chain: a test each.
	allOfFunctions(callers) {
		const arrays = callers.sums.total, tested = this.findTested(arrays, 1, arrays[0].length);
		const lists = tested.map((place) => valuesAt(arrays, place));
		const {verdicts, known} = this.judgeTogether(lists, firstOfEach(lists), this.allContexts.known);
		return {...this.byScope(tested, verdicts), total: this.functions("self").total, known};
	}
	byScope(tested, verdicts) {
		const chances = new Float64Array(this.model.scopes.count).fill(-1), of = new Map();
		tested.forEach((scope, i) => {
			chances[scope] = verdicts[i].p;
			of.set(scope, verdicts[i]);
		});
		const changed = verdicts.filter(({p}) => p <= this.limits.alpha).length;
		return {chances, tested: tested.length, changed, verdictOf: (scope) => of.get(scope) || NOT_TESTED};
	}
	// Tests lists of samples: {verdicts: {p: corrected chance, tests: of how many it is one}, by list; tests: how many were
	// made; known: with these}.
	// first: by list, the one that it is the same test as; null: each is one of its own. known: what was said before, by
	// samples, which stays.
	judgeTogether(lists, first, known) {
		const keys = lists.map((list) => list.join(" ")), isNew = (i) => (!first || first[i] === i) && !known.has(keys[i]);
		const {tests, chances} = correct(lists.map((list, i) => isNew(i) ? testChance(list, this.sides, this.options) : -1));
		const verdicts = keys.map((key, i) => known.get(key) || {p: chances[first ? first[i] : i], tests});
		return {verdicts, tests, get known() {
			return new Map([...keys.map((key, i) => [key, verdicts[i]]), ...known]);
		}};
	}
	// Functions that may be large enough by their own samples: {scopes, arrays: of these, by run}. They are among those
	// that are if all samples count. Where a zoom begins in a loop, that is a function, too: then all are looked at
	// (scopes: null).
	ownOfLarge(callers) {
		const {model, selection} = this, {zoom, sums} = selection, {scopes, arrays} = this.largeFunctions;
		if (selection === this.all)
			return {scopes, arrays};
		if (model.scopes.kind[model.nodes.scope[zoom]] === KIND.loop)
			return {scopes: null, arrays: (callers || new BottomUp(model, selection)).sums.self};
		const {nodes, groups} = this.nodesOfLarge, from = firstFrom(nodes, zoom), to = firstFrom(nodes, model.nodes.end[zoom]);
		const [inside, groupsInside] = [nodes.subarray(from, to), groups.subarray(from, to)];
		return {scopes, arrays: sums.map((one) => sumGroups(one.numbers("self", inside), groupsInside, scopes.length))};
	}
	ownOf(arrays) {
		const scopes = this.findShares(arrays, 1, this.model.scopes.count);
		return {scopes, arrays: arrays.map((array) => numbersOf(scopes, array))};
	}
	get nodesOfLarge() {
		const known = this.largeFunctions;
		known.places = known.places || nodesOfScopes(this.model, known.scopes);
		return known.places;
	}
	// Whether it is known without a look at all nodes which functions are large.
	get knowsFunctions() {
		const {starts} = rowsByThread(this.model), few = (sum, t) => sum + starts[t + 1] - starts[t];
		return Boolean(this.known) || this.isCommon || this.model.cache.has("own of threads") ||
			(this.model.cache.has("places") && (this.per === "group" || this.threads.reduce(few, 0) < ROWS_FEW_ENOUGH));
	}
	get largeFunctions() {
		if (!this.known) {
			const {model, base, weights, limits} = this, {columns} = base, all = columns.map((_, r) => base.all(r));
			const found = this.isCommon ? this.commonFunctions() :
				keepsOwn(model) ? this.ownOf(columns.map((column) => ownOfThreads(model, column))) :
				all.every((sums) => sums.made) ? this.ownOf(all.map((sums) => ownOfNodes(model, sums.made))) :
				findOwn(model, columns, weights, LEAST * limits.min);
			this.known = {...found, places: null};
		}
		return this.known;
	}
	// Whether all that may be large enough is among what is common of all samples, and known of each thread.
	get isCommon() {
		const [{metric}] = this.runs;
		return !this.time && this.runs.every((run) => run.metric === metric) &&
			areCommon(this.model, metric, Math.max(...this.weights), LEAST * this.limits.min);
	}
	commonFunctions() {
		const {scopes, arrays} = commonOwnOfRuns(this.model, this.runs[0].metric, this.runs);
		const places = this.findShares(arrays, 0, scopes.length);
		return {scopes: places.map((place) => scopes[place]), arrays: arrays.map((array) => numbersOf(places, array))};
	}
	// Of nodes those that may be large enough by what they have: {nodes, total, self}. self: null where it is not known.
	amongNodes({nodes, total, self}) {
		const places = this.findShares(total, 0, nodes.length), take = (one) => numbersOf(places, one);
		return {nodes: Int32Array.from(places, (place) => nodes[place]), total: total.map(take), self: self && self.map(take)};
	}
	// Places that may be large enough, of arrays by run.
	findShares(arrays, from, to) {
		const list = [], shares = new Float64Array(to), least = LEAST * this.limits.min;
		arrays.forEach((array, r) => inBlocks(from, to, (a, b) => addWeighted(a, b, array, this.weights[r], shares)));
		inBlocks(from, to, (a, b) => listLeast(a, b, shares, least, list));
		return list;
	}
	// Those that are.
	findTested(arrays, from, to) {
		return this.findShares(arrays, from, to).filter((i) => this.isTested(arrays.map((array) => array[i])));
	}
	// Nodes that may be large enough if all samples count, and what they have, if that is known (else null): {nodes, total,
	// self: by run}.
	get largeNodes() {
		if (!this.large && this.isCommon)
			this.large = this.amongNodes(commonOfRuns(this.model, this.runs[0].metric, this.runs));
		if (!this.large) {
			const {model, base, weights} = this, least = LEAST * this.limits.min, all = base.columns.map((_, r) => base.all(r));
			this.large = {total: null, self: null, nodes: all.every((sums) => sums.made) ?
				findLeast(model.nodes.end, all.map((sums) => sums.made), weights, least) :
				findLeastLate(model, this.runs.map((run) => run.metric), all, weights, least)};
		}
		return this.large;
	}
	// Those that may be with the samples that do, in the order of the tree, and what they have: {nodes, total, self}.
	findLarge() {
		const {selection, model} = this, {zoom, sums} = selection, {nodes, total} = this.largeNodes;
		if (selection === this.all && total)
			return this.largeNodes;
		if (!selection.large) {
			const inside = nodes.filter((i) => i >= zoom && i < model.nodes.end[zoom]);
			selection.large = this.amongNodes({nodes: inside, total: sums.map((one) => one.numbers("total", inside)), self: null});
		}
		return selection.large;
	}
	// The verdicts of contexts that are tested, by node.
	contexts(base) {
		return this.allContexts[base];
	}
	// Total and self are tested together: what calls nothing has the same.
	get allContexts() {
		return this.family("contexts", () => {
			const {nodes, total, ...large} = this.findLarge(), {parent} = this.model.nodes, lists = [], first = [];
			const self = large.self || this.selection.sums.map((one) => one.numbers("self", nodes));
			const totals = new Map(), selves = new Map();
			this.listContexts(nodes, total, {lists, first, places: totals}, (node) => totals.get(parent[node]));
			this.listContexts(nodes, self, {lists, first, places: selves}, (node) => totals.get(node));
			const judged = this.judgeTogether(lists, first, this.functions("self").known), {verdicts} = judged;
			const byNode = (places) => new Map([...places].map(([node, place]) => [node, verdicts[place]]));
			return {total: byNode(totals), self: byNode(selves), known: judged.known};
		});
	}
	// Appends the samples of nodes that are tested. places: gets where, by node; first: which they are the same test as.
	// sameAs(node): the place of samples that may be the same.
	listContexts(nodes, arrays, {lists, first, places}, sameAs) {
		for (let i = 0; i < nodes.length; i++) {
			const node = nodes[i], counts = valuesAt(arrays, i), same = sameAs(node);
			if (!this.isTested(counts) || (!node && this.shares)) // its share is always all
				continue;
			first.push(same !== undefined && isLike(counts, lists[same]) ? first[same] : lists.length);
			places.set(node, lists.length);
			lists.push(counts);
		}
	}
	// The corrected chances of all rows of a level; -1: not tested. callers(): the view of that name.
	levelChances(view, level, base, callers) {
		if (view instanceof TopDown)
			return chancesOf(level, this.contexts(base));
		const known = this.family(level, () => ({}));
		known.chances = known.chances || this.otherChances(view, level, callers);
		return known.chances[base];
	}
	// Functions among functions, others among those beside them, by total and self: {total, self}. Rows remember what they
	// got.
	otherChances(view, level, callers) {
		const isFunction = this.functionsOf(view, level), bases = ["total", "self"], lists = [], others = [];
		const result = {total: new Float64Array(level.length).fill(-1), self: new Float64Array(level.length).fill(-1)};
		for (const base of bases) {
			const {chances} = isFunction.includes(1) ? this.functions(base, callers()) : {};
			if (!isFunction.includes(0)) { // their numbers are those of the functions
				inBlocks(0, level.length, (from, to) => takeChances(from, to, level.scopes, chances, result[base]));
				continue;
			}
			const arrays = this.runs.map((_, r) => level.numbers(base, r));
			for (const place of this.findTested(arrays, 0, level.length)) {
				if (isFunction[place]) {
					result[base][place] = chances[level.scopes[place]];
					continue;
				}
				lists.push(valuesAt(arrays, place));
				others.push({place, base});
			}
		}
		if (!others.length)
			return result;
		const {verdicts} = this.judgeTogether(lists, firstOfEach(lists), this.functions("total", callers()).known);
		others.forEach(({place, base}, i) => {
			result[base][place] = verdicts[i].p;
			this.family(level.row(place), () => ({}))[base] = verdicts[i];
		});
		return result;
	}
	// Makes rows remember what they got; functions need not.
	remember(view, level, callers) {
		if (!this.functionsOf(view, level).includes(0))
			return;
		this.levelChances(view, level, "total", callers);
	}
	// By place: 1 where a row stands for a function as a whole.
	functionsOf(view, level) {
		const known = this.family(level, () => ({}));
		known.functions = known.functions || this.findFunctions(view, level);
		return known.functions;
	}
	findFunctions(view, level) {
		const {kind} = this.model.scopes, flags = new Uint8Array(level.length);
		if (view.listsFunctions)
			return level === view.level(null) ? flags.fill(1) : flags;
		const {levelOf} = view.structure;
		for (let place = 0; place < flags.length; place++)
			flags[place] = levelOf[level.ids[place]] === 2 && kind[level.scopes[place]] !== KIND.loop ? 1 : 0;
		return flags;
	}
	// The corrected chance of a row (-1: it is not tested), and of how many tests it is one: {p, tests}.
	judge(row, base, view, callers) {
		if (row.node >= 0)
			return this.contexts(base).get(row.node) || NOT_TESTED;
		const isFunction = view.listsFunctions ? !row.key.includes(".") :
			row.level === 2 && this.model.scopes.kind[row.scope] !== KIND.loop;
		if (isFunction)
			return this.functions(base, callers()).verdictOf(row.scope);
		return this.families.get(row)?.[base] || {p: this.chance(row[base]), tests: 1};
	}
	verdict(measure, p) {
		if (p < 0)
			return this.untestable && this.isLarge(measure) ? "untested" : "too few";
		if (p > this.limits.alpha)
			return "noise";
		if (!measure.samples[0])
			return this.names[0] === "old" ? "new" : `${this.names[1]} only`;
		if (!measure.samples[1])
			return this.names[0] === "old" ? "gone" : `${this.names[0]} only`;
		const more = measure.by > 0;
		if (this.shares || this.amounts || this.unit !== "ns" || this.names[0] !== "old")
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
		const {p} = this.contexts("total").get(node) || NOT_TESTED;
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
