// SPDX-License-Identifier: Apache-2.0
// logic.mjs PAGE FOLDER: the views that the page computes are those of `culprit report --json`, whose
// output is in FOLDER: tree, callers, flat, modules, hot, and focus, ignore, thread, each .json.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {loadModules, readPage} from "./page.mjs";

const [page, folder] = process.argv.slice(2);
const m = await loadModules("format", "events", "model", "times", "lists", "sums", "select", "formula", "columns", "levels", "views", "own", "pairs", "flat", "outline", "folded", "flame",
	"flame_trees", "sandwich", "line_total",
	"statistics", "compare_sides", "compare_find", "compare", "compare_state", "own_code", "memory", "waits", "state");
const rootsOf = (view) => view.level(null).rows();
const model = m.parseModel(readPage(page).bytes);
const report = (name) => JSON.parse(readFileSync(join(folder, name + ".json"), "utf8"));
const kinds = Object.fromEntries(Object.entries(m.KIND).map(([name, number]) => [number, name]));
const kindOf = (row) => kinds[model.scopes.kind[row.scope]];
const text = (name, kind, self, total) => `${kind} ${name} ${self.join(",")}/${total.join(",")}`;
const ofRow = (row) => text(m.rowName(model, row), kindOf(row), row.self, row.total);
const ofReport = (node) => text(node.name, node.kind, node.self, node.total);

// A tree as text, whatever the order of siblings.
let checks = 0;
function lines(node, describe, children, depth, indent = "") {
	const below = depth ? children(node).map((c) => lines(c, describe, children, depth - 1, indent + " ")) : [];
	checks++;
	return indent + describe(node) + "\n" + below.sort().join("");
}
function compareTrees(view, rows, nodes, depth, where) {
	const ours = (row) => {
		const below = view.level(row).rows();
		assert.equal(row.leaf, below.length === 0, where);
		return below;
	};
	assert.equal(rows.map((r) => lines(r, ofRow, ours, depth)).sort().join(""),
		nodes.map((n) => lines(n, ofReport, (node) => node.children, depth)).sort().join(""), where);
}

// Zero totals of a metric are rows for the report where another filter left them out.
function some(node) {
	return node.total.some((v) => v > 0) || node.self.some((v) => v > 0);
}
function shown(node) {
	return {...node, children: (node.children || []).filter(some).map(shown)};
}

const all = m.computeSelection(model);
const top = new m.TopDown(model, all);
compareTrees(top, rootsOf(top), [shown(report("tree").tree)], 200, "top-down");

const up = new m.BottomUp(model, all);
compareTrees(up, rootsOf(up), shown(report("callers").tree).children, 6, "bottom-up");
assert.deepEqual(rootsOf(up).map(ofRow).sort(), report("flat").rows.filter(some).map(ofReport).sort());

const flat = new m.Flat(model, all, 2);
const isFunction = (node) => node.kind === "function" || node.kind === "kernel" || node.kind === "partial";
assert.deepEqual(rootsOf(flat).map(ofRow).sort(),
	report("flat").rows.filter((r) => some(r) && isFunction(r)).map(ofReport).sort(), "flat");
flat.setFlatten(0);
assert.deepEqual(rootsOf(flat).filter((r) => r.module).map((r) => `${r.label} ${r.total}`).sort(),
	report("modules").rows.filter((r) => some(r) && r.module).map((r) => `${r.module} ${r.total}`).sort(),
	"modules");
assert.deepEqual(sums(rootsOf(flat)), model.whole, "modules together have all samples");
function sums(rows) {
	return model.whole.map((_, i) => rows.reduce((sum, row) => sum + row.self[i], 0));
}
flat.setFlatten(3);
if (model.scopes.kind.includes(m.KIND.loop))
	assert.ok(rootsOf(flat).some((r) => r.scope >= 0 && model.scopes.kind[r.scope] === m.KIND.loop), "loops as peers");

// Hot path
const outline = new m.Outline(model, top, {metric: 0, column: "total", up: false}, new Set());
const end = outline.hotPath("", 0);
let hot = shown(report("hot").tree), names = [hot.name];
while (hot.children.length === 1)
	names.push((hot = hot.children[0]).name);
const mine = [];
for (let key = end; key; key = top.parentKey(key))
	mine.unshift(m.rowName(model, top.rowOf(key)));
assert.deepEqual(mine, names, "hot path");
for (const key of outline.list.map((e) => e.row.key))
	assert.equal(outline.list[outline.placeOf(key)].row.key, key);

// What is seen is each level in order, with the levels of open rows in between; by place and by key it is
// the same.
for (const [view, column] of [[top, "total"], [top, "name"], [up, "self"], [flat, "total"]]) {
	const sort = {metric: 0, column, up: column === "name"}, seen = new m.Outline(model, view, sort, new Set());
	seen.openAll(seen.entry(0).row.key, 300);
	const keys = [...seen.open];
	keys.filter((_, i) => i % 3 === 1).forEach((key) => seen.open.delete(key));
	seen.open.add("999999").add("no key").add("1.2.3");
	seen.build();
	const wanted = [];
	const walk = (row) => {
		const level = view.level(row);
		for (const place of m.sortLevel(model, level, sort)) {
			wanted.push(level.row(place).key);
			if (seen.open.has(level.row(place).key))
				walk(level.row(place));
		}
	};
	walk(null);
	assert.deepEqual(seen.list.map((e) => e.row.key), wanted, "outline");
	wanted.forEach((key, i) => assert.equal(seen.placeOf(key), i));
	assert.equal(seen.entry(seen.length), null);
	assert.equal(seen.placeOf("999999"), -1);
	// Levels are put in order when they are looked at, wherever that begins.
	for (let i = 0; i < wanted.length; i += 9) {
		const at = i * 37 % wanted.length, fresh = new m.Outline(model, view, sort, seen.open);
		assert.equal(i % 2 ? fresh.placeOf(wanted[at]) : fresh.entry(at).row.key, i % 2 ? at : wanted[at]);
		assert.equal(fresh.entry(wanted.length - 1 - at).row.key, wanted[wanted.length - 1 - at]);
		assert.equal(fresh.placeOf(wanted[i]), i);
	}
}

// Many rows are sorted another way than few, with the same result.
const many = Array.from({length: 5000}, (_, i) => ({self: [i * 7919 % 13], total: [i % 5 ? i * 31 % 97 - 9.5 : NaN], i}));
const level = new m.Level(Int32Array.from(many, (_, i) => i), {of: (i) => many[i],
	numbers: (column, metric) => Float64Array.from(many, (row) => row[column][metric]),
	scopes: Int32Array.from(many, (_, i) => i % model.scopes.count)});
const ranks = m.nameRanks(model), number = (v) => v || 0;
for (const direction of [true, false]) {
	const sign = direction ? 1 : -1;
	const byHand = many.map((_, i) => i).sort((a, b) => sign * (number(many[a].total[0]) - number(many[b].total[0])) ||
		sign * (many[a].self[0] - many[b].self[0]) || ranks[level.scopes[a]] - ranks[level.scopes[b]] || a - b);
	assert.deepEqual([...m.sortLevel(model, level, {metric: 0, column: "total", up: direction})], byHand);
}

// Formulas
const values = (i) => [6, 3][i], wholes = (i) => [100, 10][i];
for (const [formula, result] of [["$1 / $2", 2], ["1 + 2 * 3 - 4", 3], ["-(2 ^ 3) ^ 2", -64], ["2 ^ -1", 0.5], ["100*$1/@1", 6],
	["max($1, @2, 7) - min(1e1, 20)", 0], ["sqrt(16) + abs(-.5)", 4.5], ["1 - 1 - 1", -1], ["8 / 4 / 2", 1]])
	assert.equal(m.compileFormula(formula, 2)(values, wholes), result, formula);
for (const [formula, why] of [["", /missing at the end/], ["1 +", /missing at the end/], ["$3", /no metric \$3/], ["$0", /no metric/],
	["(1", /"\)" is missing at the end/], ["1 2", /what is "2"/], ["constructor(1)", /what is "constructor"/],
	["alert(1)", /what is "alert"/], ["$1 ; 2", /what is ";"/], ["(".repeat(500) + "1", /in each other/]])
	assert.throws(() => m.compileFormula(formula, 2), why, formula);

// Columns of threads have together what all have, and go away again.
const threads = model.header.threads.map((_, i) => i);
assert.ok(m.setColumns(model, {compared: {by: "thread", threads}, metric: 0, derived: [{name: "d", formula: "$1 * 2"},
	{name: "bad", formula: "$1 *"}]}));
assert.equal(m.columnCount(model), model.recorded.metrics.length + Math.min(threads.length, 8) + 1);
const compared = new m.TopDown(model, m.computeSelection(model)).rowOf("0").total;
assert.equal(compared.slice(model.recorded.metrics.length).reduce((x, y) => x + y, 0), compared[0]);
const root = new m.TopDown(model, m.computeSelection(model)).rowOf("0");
assert.ok(Math.abs(m.valueOf(model, root, "total", m.columnCount(model) - 1) -
	2 * root.total[0] * model.metrics[0].period / 1e9) < 1e-9);
assert.ok(m.setColumns(model, {compared: null, metric: 0, derived: []}));
assert.equal(m.columnCount(model), model.recorded.metrics.length);

// Filters and threads
const settings = JSON.parse(readFileSync(join(folder, "settings.json"), "utf8"));
for (const [name, selection] of [
	["focus", {filters: [{how: "keep", what: "name", text: settings.function}]}],
	["ignore", {filters: [{how: "hide", what: "name", text: settings.function}]}],
	["thread", {threads: new Set([settings.thread])}],
]) {
	const view = new m.TopDown(model, m.computeSelection(model, selection));
	const wanted = shown(report(name).tree);
	assert.ok(wanted.total[0] > 0 && wanted.total[0] < model.whole[0], `${name} leaves some out`);
	compareTrees(view, rootsOf(view), [wanted], 200, name);
}

// Zoom: a subtree has its totals; flat and bottom-up count recursion once from there.
const zoomed = Number(top.level(rootsOf(top)[0]).row(0).key);
const part = m.computeSelection(model, {zoom: zoomed});
assert.deepEqual(part.values("total", zoomed), all.values("total", zoomed));
const below = rootsOf(new m.BottomUp(model, part));
assert.deepEqual(sums(below), all.values("total", zoomed), "bottom-up of a subtree");

// Lines: all self samples are in some line, or in none that is known.
model.whole.forEach((whole, metric) => {
	const lines = model.lines.line.length ? Array.from(model.lines.line, (_, i) => m.lineSelf(model, all, metric, i)) : [];
	assert.equal(lines.reduce((a, b) => a + b, 0), whole);
	lines.forEach((self, i) => i && assert.ok(self <= model.lines.total[metric][i]));
});
// Totals that are found in a part are those that the program counted, where that part is all; parts add up.
{
	const threads = model.header.threads.map((_, t) => m.computeSelection(model, {threads: new Set([t])}));
	let told = 0, untold = 0, parted = 0;
	for (let line = 1; line < model.lines.count; line++) {
		const total = m.lineTotal(model, all, 0, line), where = `${model.strings[model.lines.file[line]]}:${model.lines.line[line]}`;
		if (Number.isNaN(total)) {
			untold++;
			continue;
		}
		told++;
		assert.equal(total, model.lines.total[0][line], where);
		const parts = threads.map((one) => m.lineTotal(model, one, 0, line));
		if (parts.some(Number.isNaN))
			continue;
		parted++;
		assert.equal(parts.reduce((a, b) => a + b, 0), total, `${where} by thread`);
	}
	assert.ok(told > 5 * untold && parted > told / 2, `${told} told, ${untold} not, ${parted} parted`);
	const main = m.childrenOf(model, 0).reduce((a, b) => all.sums[0].total(a) > all.sums[0].total(b) ? a : b);
	const inside = m.computeSelection(model, {zoom: main});
	let some = 0;
	for (let line = 1; line < model.lines.count; line++) {
		const total = m.lineTotal(model, inside, 0, line);
		assert.ok(Number.isNaN(total) || (total <= all.sums[0].total(main) && total <= model.lines.total[0][line]));
		some += total > 0 ? 1 : 0;
	}
	assert.ok(some > 5, "no line has a total in a zoom");
}
// A line's total is at most all, and what the first function of the tree calls from is that.
assert.ok(model.lines.total[0].every((t) => t <= model.whole[0]));

// Search
const found = top.search(settings.function);
assert.ok(found.length > 0);
for (let i = 0; i < found.length; i++) {
	assert.match(m.rowName(model, top.rowOf(found.key(i))), new RegExp(settings.function));
	assert.equal(found.indexOf(found.key(i)), i);
}
assert.equal(top.search("no such name at all").length, 0);
assert.equal(top.search("(").length, 0);

// Flame graph: boxes are inside of their parents and beside each other.
const layout = m.layoutFlame(new m.NodeTree(model, all.sums[0], 0), 1000, 0);
const levels = m.flameLevels(layout);
for (let b = 1; b < layout.item.length; b++) {
	const p = layout.parent[b];
	assert.ok(layout.x[b] >= layout.x[p] - 1e-6 && layout.x[b] + layout.w[b] <= layout.x[p] + layout.w[p] + 1e-6);
	if (layout.w[b] > 1e-3)
		assert.equal(m.flameHit(layout, levels, layout.depth[b], layout.x[b] + layout.w[b] / 2), b);
}

// Boxes that are too small stand together: what is drawn and what is not is all that is below.
let drawnTogether = 0;
const narrow = new m.NodeTree(model, all.sums[0], 0), coarse = m.layoutFlame(narrow, 300, 4);
coarse.item.forEach((item, b) => {
	const below = coarse.parent.flatMap((up, i) => up === b ? [i] : []), small = below.filter((i) => coarse.small[i]);
	const {totals, count, rest} = narrow.children(item, 4 * all.sums[0].total(0) / 300);
	if (coarse.small[b])
		return assert.equal(below.length, 0);
	assert.equal(below.length - small.length, totals.length);
	assert.ok(small.length <= 1 && (small.length === 1) === (rest * 300 / all.sums[0].total(0) >= 4));
	drawnTogether += small.length;
	const children = m.childrenOf(model, item).filter((c) => all.sums[0].total(c) > 0).length;
	assert.equal(totals.length + count, children);
	const wide = below.reduce((sum, i) => sum + coarse.w[i], 0);
	assert.ok(wide <= coarse.w[b] + 1e-6);
});
assert.ok(drawnTogether > 0, "no boxes are drawn together");

// Trees of paths, added up by hand: key -> sum, for the scopes on the way from the top.
function addPath(sums, path, amount) {
	for (let i = 1; i <= path.length; i++) {
		const key = path.slice(0, i).join(".");
		sums.set(key, (sums.get(key) || 0) + amount);
	}
}
function addView(view, column, row, sums) {
	const level = view.level(row);
	for (let i = 0; i < level.length; i++) {
		const one = level.row(i);
		assert.equal(level.numbers(column, 0)[i], one[column][0]);
		assert.deepEqual(view.rowOf(one.key).total, one.total);
		if (one[column][0] > 0)
			sums.set(one.key, one[column][0]);
		if (!one.leaf)
			addView(view, column, one, sums);
	}
	return sums;
}
const {scope: scopeAt, parent: parentAt, count: nodeCount} = model.nodes;
const pathOf = (node) => node > 0 ? [...pathOf(parentAt[node]), scopeAt[node]] : [];
const sorted = (sums) => [...sums].sort(([a], [b]) => a < b ? -1 : 1);
const firstThread = m.computeSelection(model, {threads: new Set([0])});
for (const selection of [all, firstThread]) {
	const own = selection.sums[0], byHand = new Map();
	for (let i = 1; i < nodeCount; i++) {
		const path = [];
		for (const s of pathOf(i))
			path.includes(s) ? path.splice(path.indexOf(s) + 1) : path.push(s);
		if (own.self(i))
			addPath(byHand, path, own.self(i));
	}
	assert.deepEqual(sorted(addView(new m.Folded(model, selection), "total", null, new Map())), sorted(byHand), "folded");
}

// Inverted with recursion folded: callers that are on the way are left out.
{
	const byHand = new Map(), whole = new m.BottomUp(model, all);
	for (let i = 1; i < nodeCount; i++) {
		const way = [], home = m.homeOf(model, i);
		for (const s of pathOf(home).reverse())
			if (!way.includes(s))
				way.push(s);
		if (all.sums[0].self(i))
			addPath(byHand, way, all.sums[0].self(i));
	}
	assert.deepEqual(sorted(addView(new m.BottomUp(model, all, whole), "self", null, new Map())), sorted(byHand), "inverted and folded");
}

// Callers and callees of a function, recursion once: paths from its outermost call.
for (const name of ["fib", "work", "fill"]) {
	const center = Array.from({length: model.scopes.count}, (_, s) => s).find((s) => s && m.scopeShort(model, s) === name);
	const up = new m.BottomUp(model, all), callees = new Map(), callers = new Map();
	for (let i = 1; i < nodeCount; i++) {
		const path = pathOf(i), at = path.indexOf(center), self = all.sums[0].self(i);
		if (at < 0 || !self)
			continue;
		addPath(callees, path.slice(at), self);
		addPath(callers, path.slice(0, at + 1).reverse(), self);
	}
	assert.ok(callees.size > 1 && callers.size > 1, name);
	assert.deepEqual(sorted(addView(new m.CalleesOf(up, center), "total", null, new Map())), sorted(callees), `callees of ${name}`);
	assert.deepEqual(sorted(addView(new m.CallersOf(up, center), "total", null, new Map())), sorted(callers), `callers of ${name}`);
}

// The state comes back from the address; nonsense in it does no harm.
const state = m.newState();
Object.assign(state, {view: "callers", metric: model.metrics.length - 1, zoom: 1, search: "a&b=c", icicle: false,
	selected: "3.4", threads: [0], theme: "dark", pane: false, flatten: 4,
	sorts: {tree: {column: "self", metric: 0, up: true}, callers: m.usualSort("callers", model.metrics.length - 1),
		flat: {column: "total", metric: 0, up: false}, sandwich: {column: "name", metric: 0, up: true}, memory: m.usualSort("memory", model.metrics.length - 1)}, center: 2, tables: true, inverted: true, folded: true, inside: "3.4", node: 1, open: {tree: ["0", "1", "3"], callers: ["1", "1.2"], flat: [], memory: ["1"]},
	filters: [{how: "hide", what: "module", text: "lib.c\\.so#&%"}], instructions: true,
	compared: {by: "process", threads: [0, 1]}, derived: [{name: "a b", formula: "$1 = & + #"}]});
assert.deepEqual(m.decodeState(m.encodeState(state), model), state);
for (const bad of ["v=none&m=99&z=-1&s=x.y&l=1e9&r=<b>&ot=k__&f=keep&t=a.b.99", "%%%", "z=1.5&c=7", "ot=nzzz_%",
	"by=planet.1&d==&d=x&s=total.99&insn=2", "by=rank.7.-1.x"])
	assert.equal(typeof m.encodeState(m.decodeState(bad, model)), "string");

// Sums of many samples have room.
assert.equal(m.sumsType([{total: 5e9}]), Float64Array);
assert.equal(m.sumsType([{total: 4e9}, {total: 1}]), Uint32Array);

// Numbers for people
assert.equal(m.formatCount(1234567), "1\u202f234\u202f567");
assert.equal(m.formatTime(0.0123), "12.3\u202fms");
assert.equal(m.formatError(100), "100 ± 10 samples (± 10%)");
assert.deepEqual([0, 999, 1000, 12345, 999999, 1.5e9].map((bytes) => m.formatSize(bytes).replace("\u202f", " ")),
	["0 B", "999 B", "1.00 kB", "12.3 kB", "1.00 MB", "1.50 GB"]);
const heap = [{name: "alloc", unit: "allocations", period: 1}, {name: "alloc.bytes", unit: "bytes", period: 1}];
const waits = [{name: "blocked", unit: "ns", period: 1000}, {name: "blocked.queued", unit: "ns", period: 1000}];
assert.deepEqual([m.mainMetric(heap), m.mainMetric(waits), m.mainMetric(heap.slice(1)), m.mainMetric([])], [1, 0, 0, 0]);
assert.equal(m.formatTrusted(heap, 0, 100), m.formatError(100));
const io = ["io", "io.bytes", "io.calls", "io.ns"].map((name, i) => ({name, unit: ["calls", "bytes", "calls", "ns"][i], period: 1}));
assert.deepEqual(m.metricGroups(io), [{event: "Files and network", members: [1, 2, 3]}]); // io counts what io.calls does
assert.deepEqual([m.mainMetric(io), m.usualMetrics(io, 1), m.usualMetrics(io, 3), m.nextMetric(io, 3)], [1, [1, 2], [1, 3], 1]);
assert.equal(m.formatTrusted(io, 0, 5), "5 calls");
assert.deepEqual(m.metricGroups([{name: "cycles"}, {name: "cpu-clock"}, ...heap]).map(({event, members}) => [event, members]),
	[["Events", [0]], ["Time", [1]], ["Memory", [3, 2]]]);
assert.equal(m.formatTrusted(heap, 1, 100), "100\u202fB"); // bytes are no samples
console.log(`${checks} rows compared`);
