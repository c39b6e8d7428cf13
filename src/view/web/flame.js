// SPDX-License-Identifier: Apache-2.0
// Where the boxes of a flame graph are, without drawing them.

// Boxes at least `least` wide of the subtree of `root`, which is `width` wide: parallel arrays, parents
// before children. Children stand beside each other from the left, in the tree's order. sums: of one metric
// (select.js).
export function layoutFlame(model, sums, root, width, least = 0.6) {
	const {end} = model.nodes;
	const node = [root], x = [0], w = [width], depth = [0], parent = [-1];
	const scale = sums.total(root) > 0 ? width / sums.total(root) : 0;
	let deepest = 0;
	for (let b = 0; b < node.length; b++) {
		let left = x[b];
		for (let c = node[b] + 1; c < end[node[b]]; c = end[c]) {
			const wide = sums.total(c) * scale;
			if (wide >= least) {
				node.push(c);
				x.push(left);
				w.push(wide);
				depth.push(depth[b] + 1);
				parent.push(b);
				if (depth[b] + 1 > deepest)
					deepest = depth[b] + 1;
			}
			left += wide;
		}
	}
	return {node, x, w, depth, parent, deepest};
}

// Boxes of each level, as indices in order from the left.
export function flameLevels(layout) {
	const levels = Array.from({length: layout.deepest + 1}, () => []);
	for (let b = 0; b < layout.node.length; b++)
		levels[layout.depth[b]].push(b);
	return levels;
}

// The box at a place, or -1.
export function flameHit(layout, levels, depth, x) {
	const level = levels[depth] || [];
	let low = 0, high = level.length - 1;
	while (low <= high) {
		const middle = (low + high) >> 1, b = level[middle];
		if (x < layout.x[b])
			high = middle - 1;
		else if (x >= layout.x[b] + layout.w[b])
			low = middle + 1;
		else
			return b;
	}
	return -1;
}

// Samples in frames that match, recursion once.
export function matchedTotal(model, sums, root, found) {
	const {scope, end} = model.nodes;
	let sum = 0;
	for (let i = root; i < end[root];) {
		if (found[scope[i]]) {
			sum += sums.total(i);
			i = end[i];
		} else {
			i++;
		}
	}
	return sum;
}
