// SPDX-License-Identifier: Apache-2.0
// The rows of one level, as columns: there may be many thousands, of which few are ever seen, so a row
// is made when it is looked at, and what sorts them works on numbers alone.

import {levelNumbers} from "./columns.js";
import {cached, inBlocks, scopeName} from "./model.js";

function isOrdered(ids) {
	for (let i = 1; i < ids.length; i++)
		if (ids[i - 1] >= ids[i])
			return false;
	return true;
}

export class Level {
	// ids: an Int32Array of numbers that stand for the rows. of(id, place): the row. numbers(column, metric):
	// a Float64Array of those of all rows, which stays as it is. scopes: of the rows (-1: none). label(place): the name of a row
	// that has no scope.
	constructor(ids, {of, numbers, scopes, label = null}) {
		this.ids = ids;
		this.length = ids.length;
		this.of = of;
		this.numbers = numbers;
		this.scopes = scopes;
		this.label = label;
		this.made = new Map();
		this.places = null;
	}
	row(place) {
		let row = this.made.get(place);
		if (!row) {
			row = this.of(this.ids[place], place);
			this.made.set(place, row);
		}
		return row;
	}
	rows() {
		return Array.from(this.ids, (_, place) => this.row(place));
	}
	// Where an id is, or -1. Most levels have them in order.
	placeOf(id) {
		if (this.ordered === undefined)
			this.ordered = isOrdered(this.ids);
		if (this.ordered)
			return this.search(id);
		if (!this.places) {
			this.places = new Map();
			for (let i = 0; i < this.length; i++)
				this.places.set(this.ids[i], i);
		}
		const place = this.places.get(id);
		return place === undefined ? -1 : place;
	}
	search(id) {
		let low = 0, high = this.length - 1;
		while (low <= high) {
			const middle = (low + high) >> 1;
			if (this.ids[middle] === id)
				return middle;
			if (this.ids[middle] < id)
				low = middle + 1;
			else
				high = middle - 1;
		}
		return -1;
	}
}

// Numbers of an array by id.
export function numbersOf(ids, values) {
	const numbers = new Float64Array(ids.length);
	for (let i = 0; i < ids.length; i++)
		numbers[i] = values[ids[i]];
	return numbers;
}

// The place of each scope's name among all names.
export function nameRanks(model) {
	return cached(model, "name ranks", () => {
		const names = Array.from({length: model.scopes.count}, (_, i) => scopeName(model, i));
		const order = names.map((_, i) => i).sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
		const ranks = new Int32Array(order.length);
		order.forEach((scope, i) => { ranks[scope] = i && names[order[i - 1]] === names[scope] ?
			ranks[order[i - 1]] : i; });
		return ranks;
	});
}

const FEW = 200;

// Sorts `order` (of places in `keys`) ascending, equal ones as they were. Numbers as they lie in memory,
// with the sign turned, are in order as whole numbers: these are parted by 11 bits at a time.
function sortByKey(order, keys) {
	if (order.length < FEW)
		return order.sort((a, b) => keys[a] - keys[b]);
	const count = keys.length, words = new Uint32Array(keys.buffer, keys.byteOffset, 2 * count);
	const low = new Uint32Array(count), high = new Uint32Array(count);
	for (let i = 0; i < count; i++) {
		const turn = words[2 * i + 1] >> 31; // all ones where negative
		low[i] = words[2 * i] ^ turn;
		high[i] = words[2 * i + 1] ^ (turn | 0x80000000);
	}
	const starts = new Uint32Array(2049);
	let from = order, to = new Int32Array(count);
	for (const [part, shift] of [[low, 0], [low, 11], [low, 22], [high, 0], [high, 11], [high, 22]]) {
		starts.fill(0);
		for (let i = 0; i < count; i++)
			starts[(part[i] >>> shift & 2047) + 1]++;
		if (starts.includes(count)) // the same in all
			continue;
		for (let i = 0; i < 2048; i++)
			starts[i + 1] += starts[i];
		for (let i = 0; i < count; i++)
			to[starts[part[from[i]] >>> shift & 2047]++] = from[i];
		[from, to] = [to, from];
	}
	return from;
}

// By name, as numbers. For few there is no need to wait until all names are in order.
function nameKeys(model, {ids, scopes, label}) {
	if (!label && (ids.length >= FEW || model.cache.has("name ranks"))) {
		return numbersOf(scopes, nameRanks(model));
	}
	const names = Array.from(scopes, (scope, i) => scope >= 0 ? scopeName(model, scope) : label(i));
	const order = names.map((_, i) => i).sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
	const keys = new Float64Array(ids.length);
	order.forEach((place, i) => { keys[place] = i; });
	return keys;
}

function numberKeys(model, level, column, metric, sign) {
	return turnKeys(levelNumbers(model, level, column, metric), sign);
}

function turnKeys(numbers, sign) {
	const keys = new Float64Array(numbers.length);
	inBlocks(0, keys.length, (from, to) => turnSome(from, to, numbers, sign, keys));
	return keys;
}

function turnSome(from, to, numbers, sign, keys) {
	for (let i = from; i < to; i++)
		keys[i] = sign * numbers[i] || 0; // no minus zero, nothing that is no number
}

// Places of a level in order. sort: {metric, column: "total" | "self" | "name", up}. Equal numbers are
// ordered by the other column, then by name. The last order of a level is kept with it. keys(level): the numbers,
// where they are none of a metric, and stamp: as long as that is the same, they are; prepare(level): is told of each
// level that is sorted.
export function sortLevel(model, level, sort) {
	const wanted = `${sort.column} ${sort.metric} ${sort.up}`;
	if (sort.prepare)
		sort.prepare(level);
	if (level.sorted !== wanted || level.stamp !== sort.stamp || sort.metric >= model.metrics.length) {
		level.order = makeOrder(model, level, sort);
		level.sorted = wanted;
		level.stamp = sort.stamp;
	}
	return level.order;
}

function makeOrder(model, level, {metric, column, up, keys = null}) {
	let order = new Int32Array(level.length);
	for (let i = 0; i < order.length; i++)
		order[i] = i;
	if (order.length < 2)
		return order;
	const sign = up ? 1 : -1, names = nameKeys(model, level);
	if (column === "name")
		return sortByKey(order, turnKeys(names, sign));
	order = sortByKey(order, names);
	if (keys)
		return sortByKey(order, turnKeys(keys(level), sign));
	order = sortByKey(order, numberKeys(model, level, column === "total" ? "self" : "total", metric, sign));
	return sortByKey(order, numberKeys(model, level, column, metric, sign));
}
