// SPDX-License-Identifier: Apache-2.0
// A model as model.js reads it from a page, by chance: recursion, loops, nodes with many children, nodes and a thread
// without samples, rows with none of a metric.

export function randomNumbers(seed) {
	let state = seed;
	return (limit) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor(state / 4294967296 * limit);
	};
}

const KINDS = [6, 6, 6, 7, 8]; // functions, inlined ones, loops
const THREADS = 7, SCOPES = 60, MODULES = 4, WIDE = 300;

function makeNodes(random, count) {
	const parent = new Int32Array(count).fill(-1), end = new Int32Array(count), depth = new Int32Array(count);
	const scope = new Uint32Array(count), path = [0];
	for (let i = 1; i < count; i++) {
		const wide = i > count - WIDE; // many below one that is not the root
		depth[i] = wide ? Math.min(3, depth[i - 1] + 1) : 1 + random(random(4) ? Math.min(depth[i - 1] + 1, 12) : 1);
		parent[i] = path[depth[i] - 1];
		path[depth[i]] = i;
		scope[i] = 1 + random(SCOPES - 1);
	}
	for (let i = count - 1; i >= 0; i--) {
		end[i] = Math.max(end[i], i + 1);
		if (i)
			end[parent[i]] = Math.max(end[parent[i]], end[i]);
	}
	return {count, parent, end, depth, scope, callFile: new Uint32Array(count), callLine: new Uint32Array(count)};
}

// The first thread has far more samples than others, the last one none.
function makeRows(random, nodes, Type, scale) {
	const node = [], thread = [], counts = [[], []];
	for (let i = 0; i < nodes; i++)
		for (let n = random(4); n > 0; n--) {
			const of = random(THREADS - 1);
			node.push(i);
			thread.push(of);
			counts[0].push(random(9) * scale * (of ? 1 : 40));
			counts[1].push(random(3) ? 0 : random(50) * scale);
		}
	return {count: node.length, node: Uint32Array.from(node), thread: Uint32Array.from(thread),
		line: new Uint32Array(node.length), counts: counts.map((list) => Type.from(list))};
}

// m: the viewer's modules. scale: what all counts are multiplied with; large sums need other arrays.
export function randomModel(m, seed, {count = 4000, scale = 1} = {}) {
	const random = randomNumbers(seed), nodes = makeNodes(random, count);
	const strings = ["", ...Array.from({length: SCOPES}, (_, i) => `space${i % 7}::function_${i}`), "a.c", "b.c"];
	const column = (of) => Uint32Array.from({length: SCOPES}, (_, i) => i ? of(i) : 0);
	const rows = makeRows(random, count, scale > 1e6 ? Float64Array : Uint32Array, scale);
	const total = (list) => list.reduce((sum, value) => sum + value, 0);
	const metrics = [{name: "cpu-clock", unit: "ns", period: 1000000}, {name: "page-faults", unit: "", period: 1}]
		.map((metric, i) => ({...metric, total: total(rows.counts[i])}));
	const header = {
		metrics, strings, modules: Array.from({length: MODULES}, (_, i) => ({path: i ? `/lib/lib${i}.so` : ""})),
		processes: [0, 1, 2].map((i) => ({name: "app", pid: 100 + i, rank: -1})),
		threads: Array.from({length: THREADS}, (_, i) => ({process: i % 3, tid: 200 + i, name: `worker-${i}`})),
	};
	const scopes = {
		count: SCOPES, kind: Uint8Array.from({length: SCOPES}, (_, i) => i ? KINDS[i % KINDS.length] : 0),
		name: column((i) => i), short: column((i) => i), module: column((i) => 1 + i % (MODULES - 1)),
		file: column((i) => SCOPES + 1 + i % 2), line: column((i) => i), last: column((i) => i),
		flags: new Uint8Array(SCOPES), function: column(() => 0), inlined: column(() => 0), low: column((i) => i),
		high: column(() => 0),
	};
	const model = {header, strings, metrics, whole: metrics.map((metric) => metric.total), scopes, nodes, rows,
		lines: {count: 1, file: new Uint32Array(1), line: new Uint32Array(1), total: metrics.map(() => new Float64Array(1))},
		spans: {count: 0, metric: new Uint8Array(0)}, cache: new Map()};
	m.setColumns(model, {compared: null, metric: 0, derived: []});
	return model;
}
