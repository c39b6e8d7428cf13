// SPDX-License-Identifier: Apache-2.0
// The data of the page, as the program packed it: a header of JSON and columns of numbers. What
// each column means is told in the program's source, view/pack.h. Nodes are in preorder: the subtree
// of node i is i .. end[i] - 1, its first child i + 1, the sibling after child c is end[c].

export const KIND = {
	root: 0, rank: 1, process: 2, thread: 3, module: 4, file: 5, function: 6, inline: 7, loop: 8,
	line: 9, insn: 10, kernel: 11, partial: 12,
};

export const NAMELESS = 1;
export const GUESSED = 2;

export function decodeBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const binary = atob(text);
	const bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

export async function inflate(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readColumn(bytes, start, count, out) {
	let at = start;
	for (let i = 0; i < count; i++) {
		let byte = bytes[at++];
		if (byte < 128) {
			out[i] = byte;
			continue;
		}
		let value = byte & 127, scale = 128;
		do {
			byte = bytes[at++];
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte >= 128);
		out[i] = value;
	}
	return out;
}

class Columns {
	constructor(bytes, list, start) {
		this.bytes = bytes;
		this.places = new Map();
		for (const [name, count, size] of list) {
			this.places.set(name, {start, count});
			start += size;
		}
		if (start !== bytes.length)
			throw new Error("the data of this page is damaged");
	}
	count(name) {
		return this.places.get(name).count;
	}
	read(name, Type) {
		const {start, count} = this.places.get(name);
		return readColumn(this.bytes, start, count, new Type(count));
	}
}

function readScopes(columns) {
	const whole = (name) => columns.read("scope." + name, Uint32Array);
	return {
		count: columns.count("scope.kind"),
		kind: columns.read("scope.kind", Uint8Array),
		name: whole("name"), short: whole("short"), module: whole("module"), file: whole("file"),
		line: whole("line"), last: whole("last"), flags: columns.read("scope.flags", Uint8Array),
		function: whole("function"), inlined: whole("inlined"), low: whole("low"), high: whole("high"),
	};
}

function readNodes(columns) {
	const up = columns.read("node.up", Uint32Array);
	const count = up.length;
	const parent = new Int32Array(count), end = new Int32Array(count), depth = new Int32Array(count);
	const path = [];
	for (let i = 0; i < count; i++) {
		depth[i] = i ? depth[i - 1] + 1 - up[i] : 0;
		path[depth[i]] = i;
		parent[i] = i ? path[depth[i] - 1] : -1;
		end[i] = i + 1;
	}
	for (let i = count - 1; i > 0; i--)
		if (end[parent[i]] < end[i])
			end[parent[i]] = end[i];
	return {
		count, parent, end, depth,
		scope: columns.read("node.scope", Uint32Array),
		callFile: columns.read("node.call_file", Uint32Array),
		callLine: columns.read("node.call_line", Uint32Array),
		call: columns.read("node.call", Uint32Array),
	};
}

// What holds sums of samples: of usual recordings 32 bits do, which is less memory to go through.
export function sumsType(metrics) {
	return metrics.every((metric) => metric.total < 0x100000000) ? Uint32Array : Float64Array;
}

function readRows(columns, metrics) {
	const node = columns.read("row.node", Uint32Array);
	for (let i = 1; i < node.length; i++)
		node[i] += node[i - 1];
	return {
		count: node.length, node,
		thread: columns.read("row.thread", Uint32Array),
		line: columns.read("row.line", Uint32Array),
		reason: columns.read("row.reason", Uint8Array), // why it waited (header.reasons); 0: it did not
		counts: metrics.map((_, m) => columns.read("row." + m, sumsType(metrics))),
	};
}

function readLines(columns, metrics) {
	return {
		count: columns.count("line.file"),
		file: columns.read("line.file", Uint32Array),
		line: columns.read("line.line", Uint32Array),
		total: metrics.map((_, m) => columns.read("line.total." + m, Float64Array)),
	};
}

// Samples of nodes that are called from several lines, by the line.
function readCalls(columns, metrics) {
	return {
		node: columns.read("call.node", Uint32Array), line: columns.read("call.line", Uint32Array),
		counts: metrics.map((_, m) => columns.read("call." + m, Float64Array)),
	};
}

// Instructions of function f of `functions` are first[f] .. first[f + 1] - 1; there may be none.
function readCode(columns, metrics) {
	const whole = (name) => columns.read(name, Uint32Array);
	const of = whole("insn.function"), address = columns.read("insn.address", Float64Array);
	for (let i = 1; i < address.length; i++)
		if (of[i] === of[i - 1])
			address[i] += address[i - 1];
	const module = whole("code.module"), low = whole("code.low"), high = whole("code.high");
	const functions = new Map(), first = new Int32Array(module.length + 1);
	for (let i = 0; i < of.length; i++)
		first[of[i] + 1]++;
	for (let f = 0; f < module.length; f++) {
		first[f + 1] += first[f];
		functions.set(`${module[f]}:${high[f]}:${low[f]}`, f);
	}
	return {
		functions, first, address, text: whole("insn.text"), file: whole("insn.file"), line: whole("insn.line"),
		gap: columns.read("insn.gap", Uint8Array), intel: whole("insn.intel"),
		self: metrics.map((_, m) => columns.read("insn." + m, Float64Array)),
	};
}

function sums(counts) {
	const first = new Uint32Array(counts.length + 1);
	counts.forEach((count, i) => { first[i + 1] = first[i] + count; });
	return first;
}

// Functions whose paths were counted, the costliest first: the paths of f are first[f] .. first[f + 1] - 1, the costliest first;
// those of path p come by the blocks block[firstBlock[p]] .. of its function, whose control flow is flow[f] (model.flow).
function readPaths(columns) {
	const whole = (name) => columns.read(name, Uint32Array), real = (name) => columns.read(name, Float64Array);
	return {
		count: columns.count("paths.flow"), flow: whole("paths.flow"), name: whole("paths.name"), short: whole("paths.short"),
		module: whole("paths.module"), file: whole("paths.file"), calls: real("paths.calls"), open: real("paths.open"),
		unknown: real("paths.unknown"), instructions: real("paths.instructions"), possible: real("paths.possible"),
		taken: real("paths.taken"), wrong: columns.read("paths.wrong", Uint8Array), first: sums(whole("paths.listed")),
		id: whole("path.id"), runs: real("path.count"), length: whole("path.length"), text: whole("path.text"), by: whole("path.by"),
		next: whole("path.next"), firstBlock: sums(whole("path.blocks")), block: whole("path.block"),
	};
}

// What is explained of some functions, or counted: their blocks are first[f] .. first[f + 1] - 1, their edges firstEdge[f] .. ; costs
// are those of instructions (model.code), blames those of costs.
function readFlow(columns) {
	const whole = (name) => columns.read(name, Uint32Array), real = (name) => columns.read(name, Float64Array);
	const verdict = new Map(), texts = whole("verdict.text");
	whole("verdict.block").forEach((block, i) => verdict.set(block, texts[i]));
	return {
		count: columns.count("flow.function"), code: whole("flow.function"), entry: whole("flow.entry"),
		incomplete: columns.read("flow.incomplete", Uint8Array), first: sums(whole("flow.blocks")), firstEdge: sums(whole("flow.edges")),
		address: real("block.address"), size: whole("block.size"), runs: real("block.count"), low: real("block.low"),
		high: real("block.high"), sure: columns.read("block.sure", Uint8Array), verdict,
		length: whole("block.length"), firstLine: sums(whole("block.lines")), lineFile: whole("blockline.file"), line: whole("blockline.line"),
		from: whole("edge.from"), to: whole("edge.to"), edgeRuns: real("edge.count"), kind: columns.read("edge.kind", Uint8Array),
		cost: {insn: whole("cost.insn"), runs: real("cost.count"), cycles: real("cost.cycles"), lost: real("cost.lost")},
		blame: {cost: whole("blame.cost"), cause: columns.read("blame.cause", Uint8Array), low: real("blame.low"),
			high: real("blame.high"), by: whole("blame.by")},
	};
}

// The time line, by thread and start: those of thread t are first[t] .. first[t + 1] - 1.
function readSpans(columns, rows, threads) {
	const row = columns.read("span.row", Float64Array), start = columns.read("span.start", Float64Array);
	const count = row.length, end = columns.read("span.duration", Float64Array);
	const first = new Uint32Array(threads + 1), place = new Uint32Array(count);
	for (let i = 0; i < count; i++) {
		const distance = row[i] % 2 ? -(row[i] + 1) / 2 : row[i] / 2;
		place[i] = (i ? place[i - 1] : 0) + distance;
		const same = i > 0 && rows.thread[place[i]] === rows.thread[place[i - 1]];
		start[i] += same ? end[i - 1] : 0;
		end[i] += start[i];
		first[rows.thread[place[i]] + 1]++;
	}
	for (let t = 0; t < threads; t++)
		first[t + 1] += first[t];
	return {
		count, row: place, start, end, first,
		samples: columns.read("span.samples", Float64Array),
		metric: columns.read("span.metric", Uint8Array),
		waker: columns.read("span.waker", Uint32Array), // one more than that of a wake; 0: not known
	};
}

// Who ended the waits of rows, ascending by row. waker: 0 an interrupt, 1 a thread of the kernel, 2 one that is not
// recorded; else 3 + the number of a thread.
function readWakes(columns) {
	const row = columns.read("wake.row", Uint32Array);
	for (let i = 1; i < row.length; i++)
		row[i] += row[i - 1];
	return {
		count: row.length, row, metric: columns.read("wake.metric", Uint8Array), waker: columns.read("wake.waker", Uint32Array),
		samples: columns.read("wake.samples", Float64Array), waited: columns.read("wake.waited", Float64Array),
	};
}

// From bytes (inflated) to a model.
export function parseModel(bytes) {
	const size = bytes[0] + bytes[1] * 256 + bytes[2] * 65536 + bytes[3] * 16777216;
	const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
	if (header.format !== 1)
		throw new Error("this data is of another version");
	const columns = new Columns(bytes, header.columns, 4 + size);
	const model = {
		header,
		strings: header.strings,
		metrics: header.metrics,
		whole: header.metrics.map((metric) => metric.total),
		scopes: readScopes(columns),
		nodes: readNodes(columns),
		rows: readRows(columns, header.metrics),
		lines: readLines(columns, header.metrics),
		calls: readCalls(columns, header.metrics),
		code: readCode(columns, header.metrics),
		wakes: readWakes(columns),
		flow: readFlow(columns),
		paths: readPaths(columns),
		cache: new Map(),
	};
	model.spans = readSpans(columns, model.rows, header.threads.length);
	return model;
}

const BLOCK = 4096;

// Goes through from .. to - 1 in blocks. Engines make a function quick that is called often, and for good; one
// with a single long loop they may have to make quick anew each time, while somebody waits.
export function inBlocks(from, to, run) {
	for (let at = from; at < to; at += BLOCK)
		run(at, Math.min(to, at + BLOCK));
}

// Places by what they belong to: those of group g are order[starts[g]] .. order[starts[g + 1] - 1], ascending.
export function partBy(groups, count) {
	const starts = new Int32Array(count + 1), order = new Int32Array(groups.length);
	inBlocks(0, groups.length, (from, to) => countGroups(from, to, groups, starts));
	for (let g = 0; g < count; g++)
		starts[g + 1] += starts[g];
	const next = starts.slice();
	inBlocks(0, groups.length, (from, to) => putInGroups(from, to, groups, next, order));
	return {starts, order};
}

function countGroups(from, to, groups, starts) {
	for (let i = from; i < to; i++)
		starts[groups[i] + 1]++;
}

function putInGroups(from, to, groups, next, order) {
	for (let i = from; i < to; i++)
		order[next[groups[i]]++] = i;
}

// A value that depends on the model alone, made when first needed.
export function cached(model, name, make) {
	if (!model.cache.has(name))
		model.cache.set(name, make());
	return model.cache.get(name);
}

export function scopeName(model, scope) {
	return model.strings[model.scopes.name[scope]];
}

export function scopeShort(model, scope) {
	return model.strings[model.scopes.short[scope]];
}

export function modulePath(model, scope) {
	const module = model.header.modules[model.scopes.module[scope]];
	return module ? module.path : "";
}

export function moduleKind(model, scope) {
	const module = model.header.modules[model.scopes.module[scope]];
	return module ? module.kind : "none";
}

export function scopeFile(model, scope) {
	return model.strings[model.scopes.file[scope]];
}

export function scopeAddress(model, scope) {
	const high = model.scopes.high[scope], low = model.scopes.low[scope];
	return high ? "0x" + high.toString(16) + low.toString(16).padStart(8, "0") : "0x" + low.toString(16);
}

export function threadLabel(model, index) {
	const thread = model.header.threads[index];
	const process = model.header.processes[thread.process];
	const of = model.header.processes.length > 1 && process ? ` of ${process.name} ${process.pid}` : "";
	return `${thread.name} (thread ${thread.tid}${of})`;
}
