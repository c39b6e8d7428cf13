// SPDX-License-Identifier: Apache-2.0
// Own samples of functions, with those of their loops, without totals: these take far longer to add up.

import {inBlocks} from "./model.js";
import {findInThread, fitsThreads, forThreads, keptOfThread, listOf} from "./lists.js";
import {FIRST, placesOf} from "./views.js";

function ownOfThread(model, counts, thread) {
	return keptOfThread(model, "own", counts, thread, () =>
		findInThread(model, counts, thread, null).addOwn(placesOf(model), new counts.constructor(model.scopes.count)));
}

function addTo(from, to, numbers, sums) {
	for (let i = from; i < to; i++)
		sums[i] += numbers[i];
}

// Whether own samples of each scope are kept for threads.
export const keepsOwn = (model) => fitsThreads(model, model.scopes.count);

// Own samples of each scope, with those of its loops, of some threads.
export function ownOfThreads(model, {counts, threads}) {
	const {count} = model.scopes, own = new counts.constructor(count);
	threads.forEach((yes, t) => {
		const one = yes ? ownOfThread(model, counts, t) : [];
		inBlocks(0, one.length, (from, to) => addTo(from, to, one, own));
	});
	return own;
}

// The same from sums up to each node.
export function ownOfNodes(model, upTo) {
	const own = new upTo.constructor(model.scopes.count), places = placesOf(model);
	inBlocks(0, places.length, (from, to) => addNodes(from, to, upTo, places, own));
	return own;
}

function addNodes(from, to, upTo, places, own) {
	for (let i = from; i < to; i++)
		own[places[i] & ~FIRST] += upTo[i + 1] - upTo[i];
}

// The same of those in groups alone (by scope its number, or -1), times a weight.
export function addGrouped(model, {counts, threads}, groups, weight, sums) {
	const places = placesOf(model);
	threads.forEach((yes, t) => {
		const list = yes ? listOf(model, counts, t) : {places: []};
		inBlocks(0, list.places.length, (from, to) => addGroups(from, to, list, places, groups, weight, sums));
	});
	return sums;
}

function addGroups(from, to, {places: nodes, sums}, places, groups, weight, result) {
	for (let i = from; i < to; i++) {
		const group = groups[places[nodes[i]] & ~FIRST];
		if (group >= 0)
			result[group] += (sums[i + 1] - sums[i]) * weight;
	}
}

// Nodes whose own samples are those of some scopes, and of which: {nodes, groups}.
export function nodesOfScopes(model, scopes) {
	const places = placesOf(model), group = new Int32Array(model.scopes.count).fill(-1), nodes = [], groups = [];
	scopes.forEach((scope, i) => { group[scope] = i; });
	inBlocks(0, places.length, (from, to) => listNodes(from, to, places, group, nodes, groups));
	return {nodes: Int32Array.from(nodes), groups: Int32Array.from(groups)};
}

function listNodes(from, to, places, group, nodes, groups) {
	for (let i = from; i < to; i++) {
		const found = group[places[i] & ~FIRST];
		if (found >= 0) {
			nodes.push(i);
			groups.push(found);
		}
	}
}

// What is kept of threads, as steps that can be taken while nothing else is to do.
export function prepareOwn(model) {
	return model.rows.counts.flatMap((counts) =>
		forThreads(model, model.scopes.count, (t) => ownOfThread(model, counts, t)));
}
