// SPDX-License-Identifier: Apache-2.0
// Where the boxes of a flame graph are, without drawing them.

// The boxes of a tree (flame_trees.js), `width` wide: parallel arrays, parents before children. Children stand beside
// each other from the left, in the tree's order. Those that are less than `least` wide stand together in one box after
// the others: small[b] says how many these are (0: it is a usual box), and item[b] what they are in.
export function layoutFlame(tree, width, least = 0.6) {
	const item = [tree.root], x = [0], w = [width], depth = [0], parent = [-1], small = [0];
	const whole = tree.total(tree.root), scale = whole > 0 ? width / whole : 0;
	let deepest = 0;
	const put = (what, left, wide, up, count) => {
		item.push(what);
		x.push(left);
		w.push(wide);
		depth.push(depth[up] + 1);
		parent.push(up);
		small.push(count);
		deepest = Math.max(deepest, depth[up] + 1);
	};
	for (let b = 0; b < item.length; b++) {
		if (small[b] || w[b] < tree.leastOpen || !scale)
			continue;
		const {totals, itemAt, count, rest} = tree.children(item[b], Math.max(Number.MIN_VALUE, least / scale));
		let left = x[b];
		totals.forEach((total, i) => {
			put(itemAt(i), left, total * scale, b, 0);
			left += total * scale;
		});
		if (count && rest * scale >= least)
			put(item[b], left, rest * scale, b, count);
	}
	return {item, x, w, depth, parent, small, deepest};
}

// Boxes of each level, as indices in order from the left.
export function flameLevels(layout) {
	const levels = Array.from({length: layout.deepest + 1}, () => []);
	for (let b = 0; b < layout.item.length; b++)
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

// Samples in frames that match, recursion once. sums: of one metric (select.js).
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
