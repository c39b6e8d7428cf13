// SPDX-License-Identifier: Apache-2.0
// flow_logic.mjs PAGE EXPLAINED: the control flow that the page has is that of `explain --json` (EXPLAINED), and blocks are
// laid out so that edges lead down and nothing overlaps, soon enough also where there are many.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {loadModules, readPage} from "./page.mjs";

const [page, json] = process.argv.slice(2);
const m = await loadModules("format", "model", "flow", "flow_layout", "flow_words");
const model = m.parseModel(readPage(page).bytes), {functions} = JSON.parse(readFileSync(json, "utf8"));

// Numbers.
// The clock may be measured anew for each command.
const near = (a, b, by = 0.006) => assert.ok(Math.abs(a - b) <= by + 1e-3 * Math.abs(b), `${a} is not ${b}`);
let blames = 0;
for (let i = 0; i < model.flow.count; i++) {
	const graph = m.flowGraph(model, i), start = graph.blocks[graph.entry].address;
	const wanted = functions.find(({address}) => Number(address) === start);
	assert.ok(wanted, `no function at ${start.toString(16)}`);
	assert.deepEqual(graph.blocks.map(({address, size}) => [address, address + size]),
		wanted.blocks.map(({address, end}) => [Number(address), Number(end)]));
	graph.blocks.forEach((block, k) => {
		near(block.runs, wanted.blocks[k].frequency, 0.5);
		assert.equal(m.SURE[block.sure], wanted.blocks[k].confidence);
	});
	graph.edges.forEach((edge, k) => {
		near(edge.runs, wanted.edges[k].frequency, 0.5);
		assert.equal(graph.blocks[edge.to].address, Number(wanted.edges[k].to));
	});
	for (const insn of wanted.instructions) {
		const at = model.code.address.findIndex((address, n) => address === Number(insn.address) && n >= model.code.first[model.flow.code[i]] &&
			n < model.code.first[model.flow.code[i] + 1]);
		const cost = at < 0 ? null : m.costOf(model, at);
		if (!cost)
			continue;
		near(cost.cycles, insn.cpi);
		assert.deepEqual(cost.blames.map(({cause, by}) => [cause, by < 0 ? null : model.code.address[by]]).map(([, by]) => by).filter(Boolean),
			insn.culprits.map(({by}) => Number(by)).filter((by) => model.code.address.includes(by)));
		blames += cost.blames.length;
	}
	near(graph.sum.cycles / wanted.cycles, 1, 0.05); // but for instructions that are not in the page
	const said = graph.blocks.filter(({verdict}) => verdict).map(({address, verdict}) => [address, verdict]);
	assert.deepEqual(said.sort(), wanted.loops.map(({address, verdict}) => [Number(address), verdict]).sort());
}

// Layouts.
function random(seed) {
	let state = seed;
	return () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
}
function makeGraph(count, chance) {
	const blocks = Array.from({length: count}, (_, number) => ({number, in: [], out: []})), edges = [];
	const add = (from, to) => {
		const edge = {from, to, runs: Math.floor(chance() * 1000), kind: 1};
		edges.push(edge);
		blocks[from].out.push(edge);
		blocks[to].in.push(edge);
	};
	for (let i = 0; i + 1 < count; i++) {
		if (chance() < 0.95)
			add(i, i + 1);
		if (chance() < 0.5)
			add(i, Math.min(count - 1, i + 2 + Math.floor(chance() * chance() * 12)));
		if (chance() < 0.15)
			add(i, Math.max(0, i - Math.floor(chance() * 20)));
	}
	return {blocks, edges, entry: 0};
}
function checkLayout(graph) {
	const {boxes, paths, layers, width, height} = m.layOut(graph, () => ({width: 190, height: 56}));
	assert.equal(layers.flat().length, graph.blocks.length);
	for (const {x, y} of boxes)
		assert.ok(x >= 0 && y >= 0 && x + 190 <= width && y + 56 <= height, "a block is not in the picture");
	for (const list of layers) {
		const sorted = list.map((i) => boxes[i]).sort((a, b) => a.x - b.x);
		sorted.forEach(({x}, i) => assert.ok(!i || x >= sorted[i - 1].x + 190, "blocks overlap"));
	}
	graph.edges.forEach(({from, to, back}, i) => {
		assert.ok(back || boxes[from].y < boxes[to].y, "an edge leads up");
		assert.ok(paths[i].length >= 2 && paths[i].flat().every(Number.isFinite), "an edge leads nowhere");
	});
}
for (let i = 0; i < 60; i++)
	checkLayout(makeGraph(1 + i * 3, random(i + 1)));
checkLayout({blocks: [], edges: [], entry: 0});
const large = makeGraph(1000, random(99)), begin = process.cpuUsage();
checkLayout(large);
const {user} = process.cpuUsage(begin);
assert.ok(user < 2e6, `1000 blocks take ${user / 1000} ms`); // this machine may be any; bench/view measures
assert.equal(m.formatRuns(20670244), "20.7M");
assert.equal(m.formatRuns(7), "7");
console.log(`${model.flow.count} functions, ${blames} blames`);
