// SPDX-License-Identifier: Apache-2.0
// What a flame graph draws. A tree gives, for its items, of which `root` is the first:
//
//     total(item)     how wide it is
//     children(item, least)  those below that are at least as wide: {totals, itemAt(i)}; and of the others, how many
//                     these are, and how wide all of them: {count, rest}
//     scope(item), node(item), key(item)   its scope, its node in the profile's tree (or -1), a text that stays the same
//     values(item)    {self, total} of a metric
//
// leastOpen: how wide a box must be (pixels) for what is below it to be looked at.

// The tree of the profile: items are nodes. sums: of what they are as wide as.
export class NodeTree {
	constructor(model, sums, root) {
		this.model = model;
		this.sums = sums;
		this.root = root;
		this.leastOpen = 0;
	}
	total(node) {
		return this.sums.total(node);
	}
	children(node, least) {
		const {end} = this.model.nodes, totals = [], nodes = [];
		let count = 0, rest = 0;
		for (let c = node + 1; c < end[node]; c = end[c]) {
			const total = this.sums.total(c);
			if (total >= least) {
				totals.push(total);
				nodes.push(c);
			} else if (total > 0) {
				count++;
				rest += total;
			}
		}
		return {totals, itemAt: (i) => nodes[i], count, rest};
	}
	scope(node) {
		return this.model.nodes.scope[node];
	}
	node(node) {
		return node;
	}
	key(node) {
		return String(node);
	}
	values(node) {
		return {self: this.sums.self(node), total: this.sums.total(node)};
	}
}

// A view (views.js) as a tree: items are its rows, as wide as a column of a metric. root: a row, or null for all that
// the view has, which is `whole` wide.
export class ViewTree {
	constructor(view, {column, metric, root = null, whole = 0}) {
		this.view = view;
		this.column = column;
		this.metric = metric;
		this.root = root;
		this.whole = whole;
		this.leastOpen = 2; // below it there are many nodes to go through for little to see
	}
	total(row) {
		return row ? row[this.column][this.metric] : this.whole;
	}
	// The widest first.
	children(row, least) {
		const level = row?.leaf ? null : this.view.level(row), places = [];
		const numbers = level ? level.numbers(this.column, this.metric) : [];
		let count = 0, rest = 0;
		numbers.forEach((total, place) => {
			if (total >= least) {
				places.push(place);
			} else if (total > 0) {
				count++;
				rest += total;
			}
		});
		places.sort((a, b) => numbers[b] - numbers[a]);
		return {totals: places.map((place) => numbers[place]), itemAt: (i) => level.row(places[i]), count, rest};
	}
	scope(row) {
		return row ? row.scope : 0;
	}
	node() {
		return -1;
	}
	key(row) {
		return row ? row.key : "";
	}
	values(row) {
		return row ? {self: row.self[this.metric], total: row.total[this.metric]} : {self: 0, total: this.whole};
	}
}
