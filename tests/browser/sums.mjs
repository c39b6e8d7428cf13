// SPDX-License-Identifier: Apache-2.0
// sums.mjs [PAGE]: sums that are looked up, and what is found with them, are those that are added up the simple way:
// row by row, each to all nodes above it. Of a page, or of trees by chance; filtered, zoomed, of some threads, of a
// part of the time, compared; before and after what the page prepares.
import assert from "node:assert/strict";
import {loadModules, readPage} from "./page.mjs";
import {randomModel, randomNumbers} from "./random_model.mjs";

const m = await loadModules("format", "events", "model", "times", "lists", "sums", "select", "formula", "columns", "levels", "views",
	"own", "pairs", "flat", "outline", "flame", "statistics", "compare_sides", "compare_find", "compare");
const FEW = 1000; // nodes that are all looked at
let checks = 0, where = "";

function equal(got, wanted, what) {
	checks++;
	const most = 1e-9 * Math.max(1, Math.abs(wanted)); // parts of spans are no whole numbers
	if (got !== wanted && !(Math.abs(got - wanted) <= most))
		assert.fail(`${where}, ${what}: ${got} is not ${wanted}`);
}

// The simple way

// By node, whether its samples count, told by the scopes on its path.
function keptNodes(model, filters, zoom) {
	const {parent, scope, end, count} = model.nodes;
	const matches = filters.map(({what, text}) => Array.from({length: model.scopes.count}, (_, s) => s > 0 &&
		m.compilePattern(text).test(what === "module" ? m.modulePath(model, s) : m.scopeName(model, s))));
	return Uint8Array.from({length: count}, (_, node) => {
		if (node < zoom || node >= end[zoom])
			return 0;
		return filters.every(({how}, f) => {
			let found = false;
			for (let at = node; at > 0 && !found; at = parent[at])
				found = matches[f][scope[at]];
			return found === (how === "keep");
		}) ? 1 : 0;
	});
}

// {self, total} by node, of the rows of some threads (a set, or null).
function simpleSums(model, counts, threads, kept, zoom) {
	const {node, thread} = model.rows, {parent, count} = model.nodes;
	const self = new Float64Array(count), total = new Float64Array(count);
	for (let r = 0; r < node.length; r++) {
		if (!kept[node[r]] || (threads && !threads.has(thread[r])))
			continue;
		self[node[r]] += counts[r];
		for (let at = node[r]; at >= zoom; at = parent[at])
			total[at] += counts[r];
	}
	return {self, total};
}

// A selection as the views need it, of such sums.
function simpleSelection({model, base, zoom}, simple) {
	const {end} = model.nodes, sums = simple.map(({self}) => {
		const upTo = new base.Type(model.nodes.count + 1);
		self.forEach((count, i) => { upTo[i + 1] = upTo[i] + count; });
		return {upTo, made: upTo, thread: -1, self: (node) => upTo[node + 1] - upTo[node],
			total: (node) => upTo[end[node]] - upTo[node]};
	});
	const numbers = (column, metric, nodes) => Float64Array.from(nodes, (node) => sums[metric][column](node));
	return {model, base, zoom, sums, numbers, views: {},
		any: (node) => sums.some((one) => one.total(node) > 0),
		values: (column, node) => sums.map((one) => one[column](node)),
		totals: (nodes) => sums.map((_, metric) => numbers("total", metric, nodes))};
}

// What is compared

const childrenOf = (model, node) => {
	const list = [];
	for (let c = node + 1; c < model.nodes.end[node]; c = model.nodes.end[c])
		list.push(c);
	return Int32Array.from(list);
};

function checkSums(model, selection, simple) {
	const {zoom} = selection, last = model.nodes.end[zoom], random = randomNumbers(last), step = last - zoom > FEW ? 7 : 1;
	const some = Int32Array.from({length: 60}, () => zoom + random(last - zoom)); // in no order
	const wide = [zoom, ...some].map((node) => childrenOf(model, node)).filter((list) => list.length);
	const check = (how) => {
		selection.sums.forEach((sums, k) => checkNumbers(sums, simple[k], how));
		for (const list of wide)
			selection.totals(list).forEach((totals, k) => totals.forEach((value, i) =>
				equal(value, simple[k].total[list[i]], `totals of siblings ${how}`)));
	};
	const checkNumbers = (sums, wanted, how) => {
		const {self, total} = wanted;
		for (let node = zoom; node < last; node += step) {
			equal(sums.self(node), self[node], `self of ${node} ${how}`);
			equal(sums.total(node), total[node], `total of ${node} ${how}`);
		}
		for (const column of ["self", "total"])
			sums.numbers(column, some).forEach((value, i) => equal(value, wanted[column][some[i]], `${column}s ${how}`));
	};
	check("looked up");
	selection.sums.forEach((sums, k) => {
		for (let node = zoom; node < last; node += step)
			equal(sums.upTo[node + 1] - sums.upTo[node], simple[k].self[node], `sum up to ${node}`);
	});
	check("made");
}

const rounded = (values) => values.map((value) => +value.toFixed(6));
const textOf = (row) => `${row.key} ${row.scope} ${rounded(row.self)} ${rounded(row.total)} ${row.leaf}`;

function checkRows(view, simple, row, other, depth) {
	const [level, wanted] = [view.level(row), simple.level(other)];
	const sorted = (one) => one.rows().sort((x, y) => x.key < y.key ? -1 : 1);
	const [rows, others] = [sorted(level), sorted(wanted)];
	assert.deepEqual(rows.map(textOf), others.map(textOf), `${where}: ${view.constructor.name}`);
	for (const column of ["self", "total"])
		for (let k = 0; k < rows[0]?.self.length; k++) {
			level.numbers(column, k).forEach((value, place) => equal(value, level.row(place)[column][k], `${column} of a level`));
			m.sortLevel(view.model, level, {metric: Math.min(k, view.model.metrics.length - 1), column, up: false});
			level.numbers(column, k).forEach((value, place) => equal(value, level.row(place)[column][k], "after it was sorted"));
		}
	checks += rows.length;
	if (depth)
		rows.slice(0, 12).forEach((one, i) => one.leaf || checkRows(view, simple, one, others[i], depth - 1));
}

function checkViews(model, selection, simple) {
	const other = simpleSelection(selection, simple);
	for (const View of [m.TopDown, m.BottomUp, m.Flat])
		checkRows(new View(model, selection), new View(model, other), null, null, 2);
	const [flat, wanted] = [selection, other].map((one) => new m.Flat(model, one, 0));
	checkRows(flat, wanted, null, null, 1);
}

// Chances, from those of all nodes and of all functions.
function simpleContexts(comparison, simple) {
	const {selection: {zoom}, shares} = comparison, {parent, end} = comparison.model.nodes, tests = [];
	const {known} = comparison.functions("self"), result = {total: new Map(), self: new Map()};
	for (const base of ["total", "self"])
		for (let node = zoom; node < end[zoom]; node++) {
			const counts = simple.map((one) => one[base][node]), key = counts.join(" ");
			if (!comparison.isTested(counts) || (!node && shares))
				continue;
			const up = result.total.get(base === "self" ? node : parent[node]);
			const test = up && up.key === key ? up : {key, p: comparison.chance(counts), known: known.get(key)};
			result[base].set(node, test);
			if (test !== up && !test.known)
				tests.push(test);
		}
	const chanceOf = (test) => test.known ? test.known.p : Math.min(1, test.p * tests.length);
	const byNode = (map) => new Map([...map].map(([node, test]) => [node, chanceOf(test)]));
	return {total: byNode(result.total), self: byNode(result.self)};
}

function checkFunctions(comparison, callers, wanted) {
	for (const base of ["self", "total"]) {
		const {chances, total, tested, changed} = comparison.functions(base, callers);
		const rows = wanted.level(null).rows().filter((row) => comparison.isTested(row[base]));
		const counts = rows.map((row) => row[base]), keys = counts.map((list) => list.join());
		const first = keys.map((key, i) => base === "self" ? i : keys.indexOf(key));
		const all = comparison.selection.values("total", comparison.selection.zoom);
		const known = base === "self" ? new Map() : comparison.allContexts.known;
		const isTest = (key, i) => first[i] === i && !known.has(counts[i].join(" "));
		const raw = [...base === "self" ? [comparison.chance(all, true)] : [],
			...keys.map((key, i) => isTest(key, i) ? comparison.chance(counts[i]) : -1)];
		const {length} = raw.filter((p) => p >= 0), adjusted = raw.map((p) => p < 0 ? p : Math.min(1, p * length));
		const shift = base === "self" ? 1 : 0;
		equal(tested, rows.length, `functions tested by ${base}`);
		equal(total, shift ? adjusted[0] : comparison.functions("self").total, "all together");
		equal(chances.filter((p) => p >= 0).length, rows.length, `functions with a chance by ${base}`);
		rows.forEach((row, i) => equal(chances[row.scope],
			known.get(counts[i].join(" "))?.p ?? adjusted[first[i] + shift], `chance of function ${row.scope}`));
		equal(changed, rows.filter((row) => chances[row.scope] <= comparison.limits.alpha).length, "functions that changed");
	}
}

function checkComparison(model, comparison, simple) {
	const {selection} = comparison, tree = new m.TopDown(model, selection), [top] = tree.level(null).rows();
	const contexts = simpleContexts(comparison, simple);
	for (const base of ["total", "self"]) {
		const wanted = contexts[base], got = comparison.contexts(base);
		assert.deepEqual([...got.keys()], [...wanted.keys()], `${where}: contexts tested by ${base}`);
		wanted.forEach((p, node) => equal(got.get(node).p, p, `chance of node ${node}`));
		const level = tree.level(top), costs = comparison.levelCosts(level, base);
		const chances = comparison.levelChances(tree, level, base, null);
		level.ids.forEach((node, place) => {
			const {cost, share} = comparison.measure(simple.map((one) => one[base][node]));
			[0, 1].forEach((side) => equal(costs[side][place], (comparison.shares ? share : cost)[side], "cost of a row"));
			equal(chances[place], wanted.get(node) ?? -1, "chance of a row");
		});
	}
	const other = simpleSelection(selection, simple);
	checkFunctions(comparison, new m.BottomUp(model, selection), new m.BottomUp(model, other));
}

// What it is done with

// States of a model: [{filters, zoom, threads}…], the filters by what its hottest functions are called.
function statesOf(model) {
	const {scope, end, count} = model.nodes, {counts} = model.rows;
	const {self} = simpleSums(model, counts[0], null, new Uint8Array(count).fill(1), 0);
	const order = [...self.keys()].slice(1).sort((x, y) => self[y] - self[x]);
	const name = (i) => m.scopeName(model, scope[order[i]]).match(/\w{3,}/g)?.pop() || "a";
	const module = m.modulePath(model, scope[order[0]]).split("/").pop().slice(0, 8).replace(/[^\w]/g, ".");
	const filter = (how, what, text) => ({how, what, text});
	const wide = [...self.keys()].slice(1).sort((x, y) => end[y] - y - end[x] + x)[1];
	return [
		{}, {zoom: wide}, {filters: [filter("hide", "name", name(0))]}, {filters: [filter("keep", "name", name(1))]},
		{filters: [filter("hide", "module", module)]}, {filters: [filter("keep", "module", module)], zoom: wide},
		{filters: [filter("keep", "name", name(0)), filter("hide", "name", name(2))]},
		{filters: [filter("hide", "name", ".")]}, {threads: [0]}, {threads: [1], filters: [filter("hide", "name", name(0))]},
		{threads: [0, 1]}, {threads: [model.header.threads.length - 1], zoom: wide},
		{threads: [0, 1], filters: [filter("keep", "name", name(1))], zoom: wide},
	];
}

const describe = ({filters = [], zoom = 0, threads = null, time = null}) => [
	...filters.map((f) => `${f.how} ${f.what} /${f.text}/`), zoom ? `zoom ${zoom}` : "",
	threads ? `threads ${threads}` : "", time ? `time ${time}` : "",
].filter(Boolean).join(", ") || "all";

// The threads of a column that are chosen, too (a set, or null for all).
function both(chosen, threads) {
	return new Set([...chosen.keys()].filter((t) => chosen[t] && (!threads || threads.has(t))));
}

// Columns of some threads beside those of all.
function checkColumns(model, states) {
	const threads = model.header.threads.map((_, t) => t), {length: metrics} = model.metrics;
	for (const [by, some, metric] of [["thread", threads.slice(0, 3), 0], ["process", threads, metrics - 1]]) {
		m.setColumns(model, {compared: {by, threads: some}, metric, derived: []});
		assert.ok(model.metrics.length > metrics);
		checkSelections(model, states);
	}
	m.setColumns(model, {compared: null, metric: 0, derived: []});
	assert.equal(model.metrics.length, metrics);
}

function checkSelections(model, states) {
	let reuse = null;
	for (const state of states) {
		const {filters = [], zoom = 0, time = null} = state, threads = state.threads ? new Set(state.threads) : null;
		where = `${describe(state)}; columns: ${model.metrics.map(({name}) => name)}`;
		const counts = time ? m.timeCounts(model, time) : model.rows.counts, kept = keptNodes(model, filters, zoom);
		const simple = model.metrics.map(({of, chosen}, k) =>
			simpleSums(model, counts[of ?? k], chosen ? both(chosen, threads) : threads, kept, zoom));
		checkViews(model, m.computeSelection(model, {filters, zoom, threads, time}), simple);
		reuse = m.computeSelection(model, {filters, zoom, threads, time}, reuse); // with the memory of the one before
		checkSums(model, reuse, simple);
	}
}

function checkComparisons(model, sides, states) {
	for (const [shares, metric] of [[false, 0], [true, model.header.metrics.length - 1]]) {
		const comparison = new m.Comparison(model, sides, {shares, metric});
		let reuse = null;
		for (const state of states) {
			const {filters = [], zoom = 0} = state, chosen = state.threads ? new Set(state.threads) : null;
			where = `per ${sides.per}, ${sides.a.length} with ${sides.b.length}, ${describe(state)}`;
			const kept = keptNodes(model, filters, zoom), simple = comparison.runs.map((run) => simpleSums(model,
				model.rows.counts[run.metric], new Set(run.threads.filter((t) => !chosen || chosen.has(t))), kept, zoom));
			const selection = comparison.select({filters, zoom, threads: chosen}, reuse);
			checkComparison(model, comparison, simple);
			checkViews(model, selection, simple);
			checkSums(model, selection, simple);
			reuse = selection === comparison.all ? null : selection;
		}
	}
}

// brief: one comparison alone.
function checkModel(model, brief = false) {
	const states = statesOf(model), threads = model.header.threads.map((_, t) => t), half = threads.length >> 1;
	const part = m.hasTimeline(model) ? [0, m.wholeTime(model)[1] >> 1] : null;
	const times = part ? states.slice(0, 9).map((state) => ({...state, time: part})) : [];
	const few = states.filter((_, i) => i % 2 === 0 || i === 1);
	const [first, last] = [threads.slice(0, half), threads.slice(half)];
	const all = [{a: first, b: last, per: "thread"}, {a: [0], b: [threads.length > 2 ? 2 : 1], per: "thread"},
		{a: first, b: last, per: "process"}, {a: first, b: last, per: "group"}, {a: last, b: [0], per: "group"}];
	const check = (sides) => {
		checkSelections(model, [...states, ...times]);
		checkColumns(model, [...few, ...times.slice(0, 2)]);
		for (const one of [...sides, ...(m.fileSides(model) ? [m.fileSides(model)] : [])])
			if (threads.length > 1)
				checkComparisons(model, one, few);
	};
	check(brief ? [] : all.slice(0, 1));
	for (const step of [...m.prepareThreads(model), ...m.prepareCallers(model), ...m.prepareOwn(model), ...m.prepareCommon(model)])
		while (step())
			;
	check(brief ? all.slice(0, 1) : all);
}

const [page] = process.argv.slice(2);
if (page) {
	const model = m.parseModel(readPage(page).bytes);
	m.setColumns(model, {compared: null, metric: 0, derived: []});
	checkModel(model);
} else {
	checkModel(randomModel(m, 1, {count: 5000}), true); // more than are taken at a time (model.js)
	checkModel(randomModel(m, 2, {count: 800, scale: 2e6}));
	checkModel({...randomModel(m, 3, {count: 500}), roomForThreads: 0}); // nothing is kept
}
console.log(`${checks} numbers compared`);
