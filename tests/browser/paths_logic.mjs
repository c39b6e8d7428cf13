// SPDX-License-Identifier: Apache-2.0
// paths_logic.mjs PAGE REPORT: the paths that the page has are those of `report --by=path --json --limit 0` (REPORT), with their blocks,
// lines and edges, and its numbers are exact.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {loadModules, readPage} from "./page.mjs";

const [page, json] = process.argv.slice(2);
const m = await loadModules("format", "model", "flow", "paths");
const model = m.parseModel(readPage(page).bytes), {paths} = model;
const called = JSON.parse(readFileSync(json, "utf8")).functions.filter(({state, entries, taken}) => state === "exact" && (entries || taken));
const hex = (address) => "0x" + address.toString(16);

assert.equal(paths.count, called.length);
let count = 0;
for (let f = 0; f < paths.count; f++) {
	const graph = m.flowGraph(model, paths.flow[f]), address = hex(graph.blocks[graph.entry].address), path = model.header.modules[paths.module[f]].path;
	const wanted = called.find((other) => other.address === address && other.module === path);
	assert.ok(wanted, `no function at ${address}`);
	assert.equal(model.strings[paths.name[f]], wanted.name);
	assert.deepEqual([paths.calls[f], paths.open[f], paths.unknown[f], paths.instructions[f], paths.possible[f], paths.taken[f]],
		[wanted.entries, wanted.open, wanted.unknown, wanted.instructions, wanted.possible, wanted.taken]);
	assert.equal(graph.instructions, wanted.instructions);
	const {list, upTo} = m.pathOrder(model, f, "cost"), byCount = m.pathOrder(model, f, "count").list;
	assert.ok(list.every((p, i) => !i || m.pathCost(paths, p) <= m.pathCost(paths, list[i - 1])), "the costliest is not first");
	assert.ok(byCount.every((p, i) => !i || paths.runs[p] <= paths.runs[byCount[i - 1]]), "the most frequent is not first");
	const left = m.pathsLeftOut(model, f), whole = list.reduce((sum, p) => sum + m.pathCost(paths, p), 0);
	assert.deepEqual([left.count, left.cost + whole], [wanted.taken - list.length, wanted.instructions]);
	if (list.length && wanted.instructions)
		assert.ok(Math.abs(upTo[list.length - 1] - whole / wanted.instructions) < 1e-9);
	for (const p of list) {
		const other = wanted.paths.find(({id}) => id === paths.id[p]), blocks = m.pathBlocks(model, p), way = m.pathWay(model, p);
		assert.deepEqual([paths.runs[p], paths.length[p]], [other.count, other.instructions]);
		assert.deepEqual(blocks.map((block) => hex(graph.blocks[block].address)), other.blocks);
		assert.equal(paths.next[p] ? hex(graph.blocks[paths.next[p] - 1].address) : null, other.next);
		assert.deepEqual([...way.blocks].sort((a, b) => a - b), [...blocks].sort((a, b) => a - b));
		assert.equal(way.edges.size, blocks.length - (other.next ? 0 : 1), "an edge of the way is missing");
		const told = new Set(other.lines), lines = [...m.pathLines(model, p)].flatMap(([file, set]) => [...set].map((line) => `${model.strings[file]}:${line}`));
		assert.ok(!other.lines.length === !lines.length, "it has lines, or has none");
		assert.ok(lines.every((line) => told.has(line) || ![...told].every((t) => t.split(":")[0] === line.split(":")[0])), `${lines} are not ${[...told]}`);
		assert.deepEqual(m.pathRanges(model, p).map(([from]) => hex(from)), other.blocks);
		count++;
	}
	// Each edge was taken as often as the paths that come by it.
	const edges = new Map(wanted.edges.map(([from, to, n]) => [`${to} ${from}`, n])), sum = graph.edges.reduce((all, {runs}) => all + runs, 0);
	assert.equal(sum, [...edges.values()].reduce((all, n) => all + n, 0));
}
const whole = called.reduce((sum, {instructions}) => sum + instructions, 0);
const hot = called.flatMap((f) => f.paths.map((path) => path.count * path.instructions)).filter((cost) => cost >= 0.01 * whole);
const {count: hotCount, of, part} = m.hotPaths(model);
assert.deepEqual([hotCount, of], [hot.length, called.reduce((sum, {taken}) => sum + taken, 0)]);
assert.ok(hot.length && Math.abs(part - hot.reduce((sum, cost) => sum + cost, 0) / whole) < 1e-9);
console.log(`${paths.count} functions, ${count} paths`);
