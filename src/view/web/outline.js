// SPDX-License-Identifier: Apache-2.0
// The rows that are seen, in order. A level (levels.js) stands in it as a whole, its rows in sorted order,
// with the levels of those that are open in between: a part for each of these. How many rows a part has with all
// that is open below it does not depend on the order, so levels are sorted only when somebody looks at their rows, or
// at those of a level below.

import {sortLevel} from "./levels.js";

const ALONE = 0.25; // how far a row without siblings is indented: only forks need room

const FEW_RANKS = 8;

// The last of ascending parts whose number (start or rank) is below a limit, or null.
function lastBelow(parts, number, limit) {
	let low = 0, high = parts.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (parts[middle][number] < limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? parts[low - 1] : null;
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
	// A level in order: {order, rank: where each row is in the order}.
	sortedOf(level) {
		let found = this.sorted.get(level);
		if (!found) {
			found = {order: sortLevel(this.model, level, this.sort), rank: null, asked: 0};
			this.sorted.set(level, found);
		}
		return found;
	}
	// For few places there is no need of all ranks.
	rankOf(level, place) {
		const part = this.sortedOf(level), {order} = part;
		part.asked++;
		if (!part.rank && part.asked <= FEW_RANKS)
			return order.indexOf(place);
		if (!part.rank) {
			part.rank = new Int32Array(order.length);
			for (let i = 0; i < order.length; i++)
				part.rank[order[i]] = i;
		}
		return part.rank[place];
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
		const groups = this.groupOpen(), parts = [this.makePart(null, null, -1)];
		this.byKey = new Map();
		for (let i = 0; i < parts.length; i++) { // those below are added meanwhile
			const part = parts[i];
			this.byKey.set(part.key, part);
			part.below = this.partsBelow(part, groups.get(part.key) || []);
			for (const one of part.below)
				parts.push(one);
		}
		for (let i = parts.length - 1; i > 0; i--)
			parts[i].parent.size += parts[i].size;
		[this.root] = parts;
		this.root.start = 0;
		this.length = this.root.size;
		this.last = this.root; // where somebody looked
		this.made = null;
	}
	partsBelow(part, keys) {
		const below = [];
		for (const key of keys) {
			const place = part.level.placeOf(this.view.idOf(key)), row = place < 0 ? null : part.level.row(place);
			if (row && !row.leaf)
				below.push(this.makePart(row, part, place));
		}
		return below;
	}
	// The level below a row, which is at that place of its own level. start: where it begins, when that is known; rank: of
	// the row; below: parts of it that are open, in order when it is arranged; size: with all in them.
	makePart(row, parent, place) {
		const level = this.view.level(row), depth = parent ? parent.depth + 1 : 0;
		const indent = parent ? parent.indent + (level.length === 1 ? ALONE : 1) : 0;
		return {key: row ? row.key : "", level, parent, place, depth, indent, rank: -1, start: -1, size: level.length,
			order: null, below: []};
	}
	// Sorts the rows of a part that has a start, which gives one to those below.
	arrange(part) {
		if (part.order)
			return;
		part.order = this.sortedOf(part.level).order;
		for (const one of part.below)
			one.rank = this.rankOf(part.level, one.place);
		part.below.sort((a, b) => a.rank - b.rank);
		let before = 0;
		for (const one of part.below) {
			one.start = part.start + one.rank + 1 + before;
			before += one.size;
		}
	}
	// The same of any part, after those above it.
	settle(part) {
		const waiting = [];
		for (let up = part; up && !up.order; up = up.parent)
			waiting.push(up);
		while (waiting.length)
			this.arrange(waiting.pop());
	}
	// The row at a place: {row, depth, indent, position, siblings}; null where there is none.
	entry(place) {
		if (!(place >= 0 && place < this.length))
			return null;
		let part = this.last;
		while (place < part.start || place >= part.start + part.size)
			part = part.parent;
		for (;;) {
			this.arrange(part);
			const one = lastBelow(part.below, "start", place + 1);
			if (one && place < one.start + one.size) {
				part = one;
				continue;
			}
			this.last = part;
			const rank = one ? one.rank + 1 + place - one.start - one.size : place - part.start;
			return {row: part.level.row(part.order[rank]), depth: part.depth, indent: part.indent,
				position: rank + 1, siblings: part.order.length};
		}
	}
	placeOf(key) {
		const part = key ? this.byKey.get(this.view.parentKey(key)) : null;
		const place = part ? part.level.placeOf(this.view.idOf(key)) : -1;
		if (place < 0)
			return -1;
		this.settle(part);
		const rank = this.rankOf(part.level, place), one = lastBelow(part.below, "rank", rank);
		return one ? one.start + one.size + rank - one.rank - 1 : part.start + rank;
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
		const level = this.view.level(row), values = numbers(level);
		let best = 0, equals = 0;
		for (let i = 1; i < level.length; i++) {
			equals = values[i] > values[best] ? 0 : equals + (values[i] === values[best] ? 1 : 0);
			best = values[i] > values[best] ? i : best;
		}
		if (equals)
			best = this.sortedOf(level).order.find((place) => values[place] === values[best]);
		return level.length ? level.row(best) : null;
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
				const below = this.view.level(row);
				added += below.length;
				for (let i = 0; i < below.length && next.length < limit; i++)
					next.push(below.row(i));
			}
		}
		this.build();
	}
}
