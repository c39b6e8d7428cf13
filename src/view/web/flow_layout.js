// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a control-flow graph stand: in layers from the entry downwards, so that all edges but those that
// go back lead down (Sugiyama's way). An edge over several layers has a bend in each that it passes. Bends and
// blocks of a layer are put in an order with few crossings, and as near to what they are connected with as there is
// room; what runs often weighs more, so that the usual way is straight.

const GAP = {x: 26, y: 44, bend: 14};
const BENDS_MAX = 6000; // longer edges have none then
const ORDER_ROUNDS = 3, PLACE_ROUNDS = 4;

// Marks edges that go back (edge.back), and returns the blocks so that others lead from earlier ones to later ones.
export function orderBlocks({blocks, entry}) {
	const state = new Uint8Array(blocks.length), order = [], next = new Uint32Array(blocks.length);
	const visit = (root) => {
		const stack = [root];
		state[root] = 1;
		while (stack.length) {
			const at = stack[stack.length - 1], {out} = blocks[at];
			if (next[at] === out.length) {
				state[at] = 2;
				order.push(at);
				stack.pop();
				continue;
			}
			const edge = out[next[at]++];
			edge.back = state[edge.to] === 1;
			if (!state[edge.to]) {
				state[edge.to] = 1;
				stack.push(edge.to);
			}
		}
	};
	const others = [];
	if (blocks.length)
		visit(entry);
	for (let i = 0; i < blocks.length; i++)
		if (!state[i])
			others.push(i);
	for (const i of others) // which nothing is known to lead to
		if (!state[i])
			visit(i);
	return order.reverse();
}

function findLayers({blocks}, order) {
	const layer = new Uint32Array(blocks.length);
	for (const at of order)
		for (const {to, back} of blocks[at].out)
			if (!back && layer[to] <= layer[at])
				layer[to] = layer[at] + 1;
	return layer;
}

// Nodes: blocks, then bends. Each has links {node, weight} to the layer above (up) and below (down).
function makeNodes(graph, layer, size) {
	const nodes = graph.blocks.map((block, i) => ({layer: layer[i], ...size(block), up: [], down: [], x: 0, at: 0}));
	const most = Math.max(1, ...graph.edges.map(({runs}) => runs));
	let room = BENDS_MAX;
	const link = (above, below, weight) => {
		nodes[above].down.push({node: below, weight});
		nodes[below].up.push({node: above, weight});
	};
	const bySpan = [...graph.edges].sort((a, b) => Math.abs(layer[a.to] - layer[a.from]) - Math.abs(layer[b.to] - layer[b.from]));
	for (const edge of bySpan) {
		const [above, below] = layer[edge.from] <= layer[edge.to] ? [edge.from, edge.to] : [edge.to, edge.from];
		const span = layer[below] - layer[above], weight = 0.05 + Math.sqrt(edge.runs / most);
		edge.bends = [];
		if (span === 0 || (span > 1 && (room -= span - 1) < 0))
			continue;
		let last = above;
		for (let at = layer[above] + 1; at < layer[below]; at++) {
			nodes.push({layer: at, width: 0, height: 0, up: [], down: [], x: 0, at: 0, bend: true});
			link(last, nodes.length - 1, 2 * weight); // long edges are straight
			last = nodes.length - 1;
			edge.bends.push(last);
		}
		link(last, below, weight);
		if (above !== edge.from)
			edge.bends.reverse(); // as it runs
	}
	return nodes;
}

function meanOf(links, nodes, what, otherwise) {
	let sum = 0, weights = 0;
	for (const {node, weight} of links) {
		sum += weight * nodes[node][what];
		weights += weight;
	}
	return weights ? sum / weights : otherwise;
}

function sortLayer(list, nodes, side) {
	for (const node of list)
		nodes[node].key = meanOf(nodes[node][side], nodes, "at", nodes[node].at);
	list.sort((a, b) => nodes[a].key - nodes[b].key || nodes[a].at - nodes[b].at);
	list.forEach((node, i) => { nodes[node].at = i; });
}

function orderLayers(layers, nodes) {
	for (const list of layers)
		list.forEach((node, i) => { nodes[node].at = i; });
	for (let round = 0; round < ORDER_ROUNDS; round++) {
		for (let i = 1; i < layers.length; i++)
			sortLayer(layers[i], nodes, "up");
		for (let i = layers.length - 2; i >= 0; i--)
			sortLayer(layers[i], nodes, "down");
	}
}

// Puts the nodes of a layer as near to where they want to be as the others leave room: those that would overlap stand
// together around the mean of their wishes (pool adjacent violators).
function placeLayer(list, nodes, wish) {
	const offsets = new Float64Array(list.length), ends = [], sums = [], weights = []; // of groups
	for (let i = 0; i < list.length; i++) {
		const node = nodes[list[i]], before = i ? nodes[list[i - 1]] : null;
		if (before)
			offsets[i] = offsets[i - 1] + (before.width + node.width) / 2 + (before.bend || node.bend ? GAP.bend : GAP.x);
		let weight = node.bend ? 1 : 2, sum = weight * (wish(node) - offsets[i]);
		while (ends.length && sums[ends.length - 1] * weight > sum * weights[ends.length - 1]) {
			sum += sums.pop();
			weight += weights.pop();
			ends.pop();
		}
		sums.push(sum);
		weights.push(weight);
		ends.push(i + 1);
	}
	for (let group = 0, i = 0; group < ends.length; group++)
		for (; i < ends[group]; i++)
			nodes[list[i]].x = sums[group] / weights[group] + offsets[i];
}

function placeNodes(layers, nodes) {
	for (const list of layers)
		placeLayer(list, nodes, () => 0);
	for (let round = 0; round < PLACE_ROUNDS; round++) {
		const side = round % 2 ? "down" : "up", way = round % 2 ? [...layers].reverse() : layers;
		for (const list of way)
			placeLayer(list, nodes, (node) => meanOf(node[side], nodes, "x", node.x));
	}
}

function stackLayers(layers, nodes) {
	let y = 0;
	for (const list of layers) {
		const high = Math.max(0, ...list.map((node) => nodes[node].height));
		for (const node of list) {
			nodes[node].y = y;
			nodes[node].high = high;
		}
		y += high + GAP.y;
	}
	return y - GAP.y;
}

// Where edges leave and enter a block: beside each other, in the order of where they go.
function findPorts(graph, nodes) {
	const aim = (edge, leaves) => {
		const bend = leaves ? edge.bends[0] : edge.bends[edge.bends.length - 1];
		return nodes[bend === undefined ? leaves ? edge.to : edge.from : bend].x;
	};
	const spread = (list, node, leaves) => {
		const ports = list.filter(({back}) => !back).sort((a, b) => aim(a, leaves) - aim(b, leaves));
		ports.forEach((edge, i) => {
			const x = node.x + (i - (ports.length - 1) / 2) * Math.min(18, (node.width - 20) / Math.max(1, ports.length - 1));
			edge[leaves ? "start" : "end"] = x;
		});
	};
	graph.blocks.forEach((block, i) => {
		spread(block.out, nodes[i], true);
		spread(block.in, nodes[i], false);
	});
}

// The points that an edge goes through. One that goes back leaves upwards, and enters from below; to the block itself, it
// goes around its side.
function pointsOf(edge, nodes) {
	const from = nodes[edge.from], to = nodes[edge.to], bends = edge.bends.map((i) => nodes[i]);
	const through = bends.flatMap((n) => [[n.x, n.y], [n.x, n.y + n.high]]);
	if (!edge.back)
		return [[edge.start, from.y + from.height], ...through, [edge.end, to.y]];
	if (edge.from === edge.to) {
		const right = from.x + from.width / 2, middle = from.y + from.height / 2;
		return [[right, middle + 12], [right + 16, middle + 12], [right + 16, middle - 12], [right, middle - 12]];
	}
	const into = (node, x) => Math.max(node.x - node.width / 2 + 10, Math.min(node.x + node.width / 2 - 10, x));
	const back = bends.flatMap((n) => [[n.x, n.y + n.high], [n.x, n.y]]);
	const first = bends.length ? bends[0].x : from.x + from.width / 2, last = bends.length ? bends[bends.length - 1].x : to.x + to.width / 2;
	return [[into(from, first), from.y], ...back, [into(to, last), to.y + to.height]];
}

// size(block): {width, height}. Gives {width, height, boxes: [{x, y, width, height, layer}…], paths: [points…], layers} of blocks
// and edges. x and y are those of the upper left corner.
export function layOut(graph, size) {
	const order = orderBlocks(graph), layer = findLayers(graph, order), nodes = makeNodes(graph, layer, size), layers = [];
	nodes.forEach((node) => { layers[node.layer] = layers[node.layer] || []; });
	for (const at of order)
		layers[layer[at]].push(at);
	nodes.forEach((node, i) => node.bend && layers[node.layer].push(i));
	orderLayers(layers, nodes);
	placeNodes(layers, nodes);
	const height = stackLayers(layers, nodes);
	let left = Infinity, right = -Infinity;
	for (const {x, width} of nodes) {
		left = Math.min(left, x - width / 2 - 20);
		right = Math.max(right, x + width / 2 + 20);
	}
	findPorts(graph, nodes);
	const move = ([x, y]) => [x - left, y + 10];
	return {
		width: Math.max(0, right - left), height: Math.max(0, height) + 20, paths: graph.edges.map((edge) => pointsOf(edge, nodes).map(move)),
		layers: layers.map((list) => list.filter((node) => !nodes[node].bend)),
		boxes: graph.blocks.map((_, i) => ({x: nodes[i].x - nodes[i].width / 2 - left, y: nodes[i].y + 10,
			width: nodes[i].width, height: nodes[i].height, layer: nodes[i].layer})),
	};
}
