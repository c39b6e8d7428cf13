// SPDX-License-Identifier: Apache-2.0
// What is explained of functions: their blocks and edges, how often these ran, what instructions cost, and why they
// waited. Cycles are those of all executions together, unless they are said to be of one.

import {cached, inBlocks} from "./model.js";

export const SURE = ["low", "medium", "high"];
const HUNDREDTHS = 100;

// By instruction (model.code): the number of its cost, or -1; and by cost, where its blames begin.
function costPlaces(model) {
	return cached(model, "costs", () => {
		const {cost, blame} = model.flow, of = new Int32Array(model.code.address.length).fill(-1);
		const first = new Uint32Array(cost.insn.length + 1);
		inBlocks(0, cost.insn.length, (from, to) => {
			for (let i = from; i < to; i++)
				of[cost.insn[i]] = i;
		});
		for (const number of blame.cost)
			first[number + 1]++;
		for (let i = 0; i < cost.insn.length; i++)
			first[i + 1] += first[i];
		return {of, first};
	});
}

// What an instruction costs each time: {runs, cycles, lost, blames: [{cause, low, high, by}…]}; null: it is not known.
// by: the instruction that is to blame; -1: it is not here.
export function costOf(model, insn) {
	const {cost, blame} = model.flow, {of, first} = costPlaces(model), at = of[insn];
	if (at === undefined || at < 0)
		return null;
	const blames = [];
	for (let i = first[at]; i < first[at + 1]; i++)
		blames.push({cause: blame.cause[i], low: blame.low[i] / HUNDREDTHS, high: blame.high[i] / HUNDREDTHS, by: blame.by[i] - 1});
	return {runs: cost.runs[at], cycles: cost.cycles[at] / HUNDREDTHS, lost: cost.lost[at] / HUNDREDTHS, blames};
}

// Sums of costs: cycles, lost ones, and by cause at least and at most what is lost to it.
export class CostSum {
	constructor() {
		this.cycles = this.lost = 0;
		this.causes = new Map();
	}
	add({runs, cycles, lost, blames}) {
		this.cycles += runs * cycles;
		this.lost += runs * lost;
		for (const {cause, low, high} of blames) {
			const sum = this.causes.get(cause) || {cause, low: 0, high: 0};
			sum.low += runs * low;
			sum.high += runs * high;
			this.causes.set(cause, sum);
		}
	}
	// The worst first.
	reasons() {
		return [...this.causes.values()].filter(({high}) => high > 0).sort((a, b) => b.low + b.high - a.low - a.high);
	}
}

// Sums of the lines of a file, by line.
export function lineCosts(model, file) {
	return cached(model, "costs of file " + file, () => {
		const {cost} = model.flow, {code} = model, sums = new Map();
		for (let i = 0; i < cost.insn.length; i++) {
			const insn = cost.insn[i];
			if (code.file[insn] !== file || !code.line[insn] || !cost.lost[i])
				continue;
			const sum = sums.get(code.line[insn]) || new CostSum();
			sum.add(costOf(model, insn));
			sums.set(code.line[insn], sum);
		}
		return sums;
	});
}

// All cycles of functions that are explained.
export function wholeCycles(model) {
	return cached(model, "cycles", () => {
		const {runs, cycles} = model.flow.cost;
		let sum = 0;
		for (let i = 0; i < runs.length; i++)
			sum += runs[i] * cycles[i] / HUNDREDTHS;
		return sum;
	});
}

// The function of model.flow whose code is here; -1: it is not explained.
export function flowOfCode(model, f) {
	return f < 0 ? -1 : model.flow.code.indexOf(f);
}

// Instructions from an address on, before another: [first, end) of model.code.
function insnsBetween(code, f, from, to) {
	if (f + 1 >= code.first.length) // it is not here
		return [0, 0];
	const find = (address) => {
		let low = code.first[f], high = code.first[f + 1];
		while (low < high) {
			const middle = low + high >> 1;
			if (code.address[middle] < address)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	};
	return [find(from), find(to)];
}

function makeBlock(model, index, number) {
	const {flow, code} = model, at = flow.first[index] + number;
	const [first, end] = insnsBetween(code, flow.code[index], flow.address[at], flow.address[at] + flow.size[at]);
	const sum = new CostSum(), block = {number, address: flow.address[at], size: flow.size[at], runs: flow.runs[at], low: flow.low[at],
		high: flow.high[at], sure: flow.sure[at], first, end, file: 0, line: 0, last: 0, in: [], out: [], sum,
		length: flow.length[at], verdict: flow.verdict.has(at) ? model.strings[flow.verdict.get(at)] : ""};
	for (let i = first; i < end; i++) {
		const cost = costOf(model, i), line = code.line[i];
		if (cost)
			sum.add(cost);
		if (line && !block.line)
			Object.assign(block, {file: code.file[i], line, last: line});
		if (line && code.file[i] === block.file) {
			block.line = Math.min(block.line, line);
			block.last = Math.max(block.last, line);
		}
	}
	for (let i = flow.firstLine[at]; i < flow.firstLine[at + 1]; i++) {
		if (!block.told)
			Object.assign(block, {told: true, file: flow.lineFile[i], line: flow.line[i], last: flow.line[i]});
		if (flow.lineFile[i] === block.file) {
			block.line = Math.min(block.line, flow.line[i]);
			block.last = Math.max(block.last, flow.line[i]);
		}
	}
	return block;
}

// The control flow of a function: {blocks, edges, entry, sum, instructions, incomplete}. `instructions`: those that were executed, if
// that was counted, else 0. An edge {from, to, runs, kind} is in the
// list `out` of one block and `in` of another; the most frequent comes first.
export function flowGraph(model, index) {
	return cached(model, "flow " + index, () => {
		const {flow} = model, count = flow.first[index + 1] - flow.first[index], blocks = [], edges = [], sum = new CostSum();
		let instructions = 0;
		for (let i = 0; i < count; i++)
			blocks.push(makeBlock(model, index, i));
		for (let i = flow.firstEdge[index]; i < flow.firstEdge[index + 1]; i++) {
			const edge = {from: flow.from[i], to: flow.to[i], runs: flow.edgeRuns[i], kind: flow.kind[i]};
			edges.push(edge);
			blocks[edge.from].out.push(edge);
			blocks[edge.to].in.push(edge);
		}
		for (const block of blocks) {
			block.out.sort((a, b) => b.runs - a.runs);
			block.in.sort((a, b) => b.runs - a.runs);
			sum.cycles += block.sum.cycles;
			sum.lost += block.sum.lost;
			instructions += block.runs * block.length;
		}
		return {blocks, edges, entry: flow.entry[index], sum, instructions, incomplete: Boolean(flow.incomplete[index])};
	});
}
