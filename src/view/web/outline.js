// SPDX-License-Identifier: Apache-2.0
// The rows that are seen, in order. A level (levels.js) stands in it as a whole, its rows in sorted order,
// with the levels of those that are open in between. What is kept of each level is where it begins, which of
// its rows are open, and how many rows stand below them.

import {sortLevel} from "./levels.js";

const ALONE = 0.25; // how far a row without siblings is indented: only forks need room

const FEW_RANKS = 8;

function rankAmong({order}, place) {
	return place < 0 ? -1 : order.indexOf(place);
}

export class Outline {
	constructor(model, view, sort, open) {
		this.model = model;
		this.view = view;
		this.sort = sort;
		this.open = open; // keys of rows whose children are shown
		this.sorted = new Map();
		this.build();
	}
	// A level in order: {level, order, rank: where each row is in the order}.
	below(row) {
		const key = row ? row.key : "";
		let found = this.sorted.get(key);
		if (!found) {
			const level = this.view.level(row);
			found = {level, order: sortLevel(this.model, level, this.sort), rank: null};
			this.sorted.set(key, found);
		}
		return found;
	}
	// For few keys there is no need of all ranks.
	rankOf(part, key) {
		part.asked = (part.asked || 0) + 1;
		if (!part.rank && part.asked <= FEW_RANKS)
			return rankAmong(part, part.level.placeOf(this.view.idOf(key)));
		if (!part.rank) {
			part.rank = new Int32Array(part.order.length);
			for (let i = 0; i < part.order.length; i++)
				part.rank[part.order[i]] = i;
		}
		const place = part.level.placeOf(this.view.idOf(key));
		return place < 0 ? -1 : part.rank[place];
	}
	// Open keys by that of the row above them.
	groupOpen() {
		const groups = new Map();
		for (const key of this.open) {
			const up = this.view.parentKey(key);
			if (groups.has(up))
				groups.get(up).push(key);
			else
				groups.set(up, [key]);
		}
		return groups;
	}
	build() {
		const groups = this.groupOpen();
		this.parts = []; // levels, in the order in which they begin
		this.byKey = new Map();
		this.length = this.place(null, "", groups, 0, -1, 0);
		this.made = null;
	}
	// Puts a level and all that is open below it at `start`; returns how many rows that is. What is
	// deep is not recursive: stacks may be.
	place(row, key, groups, start, indent, depth) {
		const stack = [this.begin(row, key, groups, start, indent, depth)];
		let size = 0;
		for (;;) {
			const part = stack[stack.length - 1];
			if (part.at < part.opened.length) {
				const rank = part.opened[part.at];
				const child = part.level.row(part.order[rank]);
				stack.push(this.begin(child, child.key, groups,
					part.start + rank + 1 + part.before[part.at], part.indent, part.depth + 1));
				continue;
			}
			stack.pop();
			size = part.order.length + part.before[part.at];
			if (!stack.length)
				return size;
			const above = stack[stack.length - 1];
			above.before[above.at + 1] = above.before[above.at] + size;
			above.at++;
		}
	}
	begin(row, key, groups, start, indent, depth) {
		const sorted = this.below(row);
		const opened = (groups.get(key) || []).map((one) => this.rankOf(sorted, one))
			.filter((rank) => rank >= 0 && !sorted.level.row(sorted.order[rank]).leaf).sort((a, b) => a - b);
		const alone = sorted.order.length === 1 && depth > 0;
		const part = {key, level: sorted.level, order: sorted.order, sorted, start, depth,
			indent: indent + (alone ? ALONE : 1), opened, before: [0], at: 0};
		this.parts.push(part);
		this.byKey.set(key, part);
		return part;
	}
	// The row at a place: {row, depth, indent, position, siblings}; null where there is none.
	entry(place) {
		if (!(place >= 0 && place < this.length))
			return null;
		let low = 0, high = this.parts.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (this.parts[middle].start <= place)
				low = middle;
			else
				high = middle - 1;
		}
		// The last level that begins before it may have ended: then it is in one further up.
		let part = this.parts[low], rank = this.rankAt(part, place);
		while (rank < 0) {
			part = this.byKey.get(this.view.parentKey(part.key));
			rank = this.rankAt(part, place);
		}
		return {row: part.level.row(part.order[rank]), depth: part.depth, indent: part.indent,
			position: rank + 1, siblings: part.order.length};
	}
	// Which of a level's own rows is at a place that no level below it has; -1: the place is after it.
	rankAt(part, place) {
		const {opened, before, start} = part;
		let low = 0, high = opened.length; // how many open rows are before the place
		while (low < high) {
			const middle = (low + high) >> 1;
			if (start + opened[middle] + before[middle] < place)
				low = middle + 1;
			else
				high = middle;
		}
		const rank = place - start - before[low];
		return rank < part.order.length ? rank : -1;
	}
	placeOf(key) {
		if (!key)
			return -1;
		const part = this.byKey.get(this.view.parentKey(key));
		const rank = part ? this.rankOf(part.sorted, key) : -1;
		if (rank < 0)
			return -1;
		let low = 0;
		for (let high = part.opened.length; low < high;) {
			const middle = (low + high) >> 1;
			if (part.opened[middle] < rank)
				low = middle + 1;
			else
				high = middle;
		}
		return part.start + rank + part.before[low];
	}
	// All entries, for those who want few.
	get list() {
		if (!this.made)
			this.made = Array.from({length: this.length}, (_, i) => this.entry(i));
		return this.made;
	}
	// Opens all above a row.
	reveal(key) {
		for (let up = this.view.parentKey(key); up; up = this.view.parentKey(up))
			this.open.add(up);
		this.build();
		return this.placeOf(key);
	}
	// The largest of a level, the first of equals; null where there is none.
	largest(row, numbers) {
		const {level, order} = this.below(row);
		if (!order.length)
			return null;
		const values = numbers(level);
		let best = order[0];
		for (let i = 1; i < order.length; i++)
			if (values[order[i]] > values[best])
				best = order[i];
		return level.row(best);
	}
	// From a row down to the largest child, as long as that has at least half. Opens them and returns
	// the key of the last. value(row), numbers(level): what is large, of a row and of all of a level.
	hotPath(key, metric, value = (row) => row.total[metric], numbers = (level) => level.numbers("total", metric)) {
		let row = key ? this.view.rowOf(key) : null;
		for (let steps = 0; steps < 10000; steps++) {
			const best = this.largest(row, numbers);
			if (!best || (row && value(best) * 2 < value(row)))
				break;
			if (row)
				this.open.add(row.key);
			row = best;
			if (row.leaf)
				break;
		}
		this.build();
		return row ? row.key : "";
	}
	// Opens all below a row, level by level, until `limit` more rows are shown.
	openAll(key, limit = 2000) {
		let next = [this.view.rowOf(key)];
		for (let added = 0; next.length && added < limit;) {
			const level = next;
			next = [];
			for (const row of level) {
				if (!row || row.leaf || added >= limit)
					continue;
				this.open.add(row.key);
				const {level: below} = this.below(row);
				added += below.length;
				for (let i = 0; i < below.length && next.length < limit; i++)
					next.push(below.row(i));
			}
		}
		this.build();
	}
}
