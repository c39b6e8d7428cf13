// SPDX-License-Identifier: Apache-2.0
// Finds among many nodes or functions those that are large enough to be compared, and adds up what they have.

import {cached, inBlocks} from "./model.js";
import {addAll, findInThread, fitsThreads, keptOfThread} from "./lists.js";
import {computeSelection} from "./select.js";
import {addGrouped, ownOfNodes} from "./own.js";

const COMMON_AT_ONCE = 8; // threads

// For each list of numbers the index of the first one that is equal.
export function firstOfEach(lists) {
	const known = new Map();
	return lists.map((list, i) => {
		const key = list.join(" ");
		if (!known.has(key))
			known.set(key, i);
		return known.get(key);
	});
}

export function addScaled(from, to, numbers, factor, part, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i] * factor / part;
}

export function addWeighted(from, to, numbers, weight, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i] * weight;
}

export function takeChances(from, to, scopes, chances, result) {
	for (let i = from; i < to; i++)
		result[i] = chances[scopes[i]];
}

// Of the rows of a level, from the verdicts of some nodes; -1: not tested. Whichever are fewer are gone through.
export function chancesOf(level, contexts) {
	const chances = new Float64Array(level.length).fill(-1);
	if (level.length < contexts.size) {
		for (let place = 0; place < level.length; place++)
			chances[place] = contexts.get(level.ids[place])?.p ?? -1;
		return chances;
	}
	for (const [node, {p}] of contexts) {
		const place = level.placeOf(node);
		if (place >= 0)
			chances[place] = p;
	}
	return chances;
}

export function listLeast(from, to, shares, least, list) {
	for (let i = from; i < to; i++)
		if (shares[i] >= least)
			list.push(i);
}

// Nodes that have at least so much, in the order of the tree. Where one has less, so has all below it. upTo: sums of
// each run, weights: what a sample of it adds.
export function findLeast(end, upTo, weights, least) {
	const list = [];
	for (let i = 0; i < end.length;) {
		const next = end[i];
		let share = 0;
		for (let r = 0; r < upTo.length; r++)
			share += (upTo[r][next] - upTo[r][i]) * weights[r];
		if (share >= least)
			list.push(i);
		i = share >= least ? i + 1 : next;
	}
	return Int32Array.from(list);
}

// The first of ascending places that is not before one.
export function firstFrom(places, place) {
	let low = 0, high = places.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (places[middle] < place)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

export function sumGroups(numbers, groups, count) {
	const sums = new Float64Array(count);
	for (let i = 0; i < numbers.length; i++)
		sums[groups[i]] += numbers[i];
	return sums;
}

// Functions that have at least so much by their own samples, and what they have: {scopes, arrays: of these, by column}.
export function findOwn(model, columns, weights, least) {
	const groups = new Int32Array(model.scopes.count), shares = new Float64Array(groups.length), scopes = [];
	for (let scope = 0; scope < groups.length; scope++)
		groups[scope] = scope;
	columns.forEach((column, k) => addGrouped(model, column, groups, weights[k], shares));
	listLeast(1, shares.length, shares, least, scopes);
	groups.fill(-1);
	scopes.forEach((scope, i) => { groups[scope] = i; });
	return {scopes, arrays: columns.map((column) => addGrouped(model, column, groups, 1, new Float64Array(scopes.length)))};
}

const COMMON = 1 / 16000; // of all samples

// Nodes that have as much of all samples of a metric: what is large for a few threads of many is among them, too.
function commonNodes(model, metric) {
	return cached(model, "common nodes " + metric, () => {
		const {upTo} = computeSelection(model).sums[metric], {end} = model.nodes, least = upTo[end[0]] * COMMON;
		return {least, nodes: findLeast(end, [upTo], [1], least)};
	});
}

// Functions that have as much by their own samples, and by scope which of them it is, or -1.
function commonFunctions(model, metric) {
	return cached(model, "common functions " + metric, () => {
		const {upTo} = computeSelection(model).sums[metric], {least} = commonNodes(model, metric), scopes = [];
		listLeast(1, model.scopes.count, ownOfNodes(model, upTo), least, scopes);
		const groups = new Int32Array(model.scopes.count).fill(-1);
		scopes.forEach((scope, i) => { groups[scope] = i; });
		return {scopes, groups};
	});
}

// What a thread has of these: of nodes {total, self}, of functions their own samples.
function commonNumbers(model, metric, thread) {
	const counts = model.rows.counts[metric], {nodes} = commonNodes(model, metric);
	return keptOfThread(model, "common numbers", counts, thread, () => {
		const finder = findInThread(model, counts, thread, null), find = (ends) => {
			const numbers = new Float64Array(nodes.length);
			inBlocks(0, nodes.length, (from, to) => finder.numbers(from, to, nodes, ends, numbers));
			return numbers;
		};
		return {total: find(model.nodes.end), self: find(null)};
	});
}

function commonOwn(model, metric, thread) {
	const counts = model.rows.counts[metric], {scopes, groups} = commonFunctions(model, metric);
	return keptOfThread(model, "common own", counts, thread, () => {
		const threads = new Uint8Array(model.header.threads.length);
		threads[thread] = 1;
		return addGrouped(model, {counts, threads}, groups, 1, new Float64Array(scopes.length));
	});
}

// As steps that can be taken while nothing else is to do.
export function prepareCommon(model) {
	const {length} = model.header.threads;
	const some = (first, run) => () => {
		for (let t = first; t < Math.min(length, first + COMMON_AT_ONCE); t++)
			run(t);
	};
	const steps = [];
	for (let m = 0; m < model.header.metrics.length; m++) {
		steps.push(() => { commonFunctions(model, m); });
		for (let first = 0; first < length; first += COMMON_AT_ONCE)
			steps.push(some(first, (t) => { if (keepsCommon(model, m)) commonNumbers(model, m, t); }),
				some(first, (t) => { if (keepsCommon(model, m)) commonOwn(model, m, t); }));
	}
	return steps;
}

function keepsCommon(model, metric) {
	return fitsThreads(model, Math.max(commonNodes(model, metric).nodes.length, commonFunctions(model, metric).scopes.length));
}

// Whether all that has at least so much in runs of a metric is common, where no sample adds more than `most`, and what
// threads have of that is known.
export function areCommon(model, metric, most, least) {
	const known = model.cache.get("common own of threads")?.get(model.rows.counts[metric]);
	return Boolean(known) && model.header.threads.every((_, t) => known[t]) && commonNodes(model, metric).least * most <= least;
}

// What runs have of it: {nodes, total, self: by run}, {scopes, arrays: by run}.
export function commonOfRuns(model, metric, runs) {
	const {nodes} = commonNodes(model, metric), of = (column) => runs.map(({threads}) =>
		addAll(nodes.length, threads, (t) => commonNumbers(model, metric, t)[column]));
	return {nodes, total: of("total"), self: of("self")};
}

export function commonOwnOfRuns(model, metric, runs) {
	const {scopes} = commonFunctions(model, metric);
	return {scopes, arrays: runs.map(({threads}) => addAll(scopes.length, threads, (t) => commonOwn(model, metric, t)))};
}

// Whether a node has at least so much. samples: how many it has at most; sums: of runs, those first whose samples add
// most. No more of them are looked up than must be.
function hasLeast(node, samples, sums, adds, least) {
	let share = 0;
	for (let k = 0; k < sums.length && share < least && share + samples * adds[k] >= least; k++)
		share += sums[k].total(node) * adds[k];
	return share >= least;
}

function samplesOf(all, node, next) {
	let samples = 0;
	for (let m = 0; m < all.length; m++)
		samples += all[m][next] - all[m][node];
	return samples;
}

// Goes down the tree as findLeast does. all: sums of the metrics, which no run has more of.
function searchTree(end, all, sums, adds, least) {
	const list = [];
	for (let i = 0; i < end.length;) {
		const next = end[i], isLarge = hasLeast(i, samplesOf(all, i, next), sums, adds, least);
		if (isLarge)
			list.push(i);
		i = isLarge ? i + 1 : next;
	}
	return list;
}

// The same where it is among some nodes, which are in the order of the tree.
function searchAmong(nodes, end, all, sums, adds, least) {
	const list = [];
	for (let k = 0, from = 0; k < nodes.length; k++) {
		const node = nodes[k], next = end[node];
		if (node < from) // in one that has less
			continue;
		if (hasLeast(node, samplesOf(all, node, next), sums, adds, least))
			list.push(node);
		else
			from = next;
	}
	return list;
}

// The same as findLeast has where sums are looked up (sums.js). metrics: of each run.
export function findLeastLate(model, metrics, sums, weights, least) {
	const {end} = model.nodes, recorded = [...new Set(metrics)], most = Math.max(...weights);
	const all = recorded.map((metric) => computeSelection(model).sums[metric].upTo);
	const common = commonNodes(model, recorded[0]), isCommon = recorded.length === 1 && common.least * most <= least;
	const order = weights.map((_, r) => r).sort((x, y) => weights[y] - weights[x]);
	const ordered = order.map((r) => sums[r]), adds = order.map((r) => weights[r]);
	return Int32Array.from(isCommon ? searchAmong(common.nodes, end, all, ordered, adds, least) :
		searchTree(end, all, ordered, adds, least));
}
