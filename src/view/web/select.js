// SPDX-License-Identifier: Apache-2.0
// Which samples count: filters by name, module and thread, and the subtree that is zoomed into.
//
// A filter is {how: "keep" | "hide", what: "name" | "module", text}: paths with a scope that
// matches the regular expression are the only ones that count, or do not count.

import {cached, modulePath, scopeName} from "./model.js";

const MATCHES_KEPT = 16;

// Small letters match capitals, too. NULL where it is no regular expression.
export function compilePattern(text) {
	try {
		return new RegExp(text, /[A-Z]/.test(text) ? "" : "i");
	} catch {
		return null;
	}
}

// By scope: 1 where name or module matches. The last few are kept.
export function matchScopes(model, what, text) {
	const kept = cached(model, "matches", () => new Map()), key = what + " " + text;
	if (kept.has(key))
		return kept.get(key);
	const pattern = compilePattern(text);
	const found = new Uint8Array(model.scopes.count);
	for (let i = 1; pattern && i < found.length; i++)
		found[i] = pattern.test(what === "module" ? modulePath(model, i) : scopeName(model, i)) ? 1 : 0;
	if (kept.size >= MATCHES_KEPT)
		kept.delete(kept.keys().next().value);
	kept.set(key, found);
	return found;
}

// By node: 1 where its samples are left out. NULL where none are.
function findDropped(model, filters) {
	const active = filters.filter((f) => compilePattern(f.text));
	if (!active.length)
		return null;
	const {scope, parent, count} = model.nodes;
	const dropped = new Uint8Array(count);
	for (const filter of active) {
		const found = matchScopes(model, filter.what, filter.text);
		const below = new Uint8Array(count);
		const keep = filter.how === "keep";
		for (let i = 1; i < count; i++) {
			below[i] = below[parent[i]] | found[scope[i]];
			if (keep ? !below[i] : below[i])
				dropped[i] = 1;
		}
		dropped[0] |= keep ? 1 : 0;
	}
	return dropped;
}

// threads: a Set of indices, or null for all. zoom: a node. The result has, for each metric, `self`
// and `total` by node; nodes outside of the zoom have none. `any`: whether a node has a total of some
// metric. `wanted`: whether a row counts.
// `reuse`: a selection that is no longer needed, whose memory may be taken.
export function computeSelection(model, {filters = [], threads = null, zoom = 0} = {}, reuse = null) {
	const {parent, end, count} = model.nodes;
	const {node, thread} = model.rows;
	const dropped = findDropped(model, filters);
	const chosen = new Uint8Array(model.header.threads.length).fill(threads ? 0 : 1);
	for (const index of threads || [])
		chosen[index] = 1;
	const first = zoom, last = end[zoom];
	const wanted = reuse ? reuse.wanted : new Uint8Array(node.length);
	for (let r = 0; r < node.length; r++)
		wanted[r] = chosen[thread[r]] && node[r] >= first && node[r] < last &&
			!(dropped && dropped[node[r]]) ? 1 : 0;
	const self = [], total = [];
	const any = reuse ? reuse.any.fill(0) : new Uint8Array(count);
	for (const counts of model.rows.counts) {
		const own = reuse ? reuse.self[self.length].fill(0) : new Float64Array(count);
		const sum = reuse ? reuse.total[self.length] : new Float64Array(count);
		for (let r = 0; r < node.length; r++)
			if (wanted[r])
				own[node[r]] += counts[r];
		sum.set(own);
		for (let i = last - 1; i > first; i--) {
			const value = sum[i];
			if (value > 0) {
				any[i] = 1;
				sum[parent[i]] += value;
			}
		}
		any[first] |= sum[first] > 0 ? 1 : 0;
		self.push(own);
		total.push(sum);
	}
	return {zoom, self, total, any, wanted, narrowed: Boolean(dropped || threads || zoom)};
}

// Self samples by line of the rows that count and whose node is in [from, to).
export function lineSelf(model, selection, metric, from = 0, to = model.nodes.count) {
	const {node, line, counts} = model.rows;
	const sums = new Float64Array(model.lines.count);
	for (let r = 0; r < node.length; r++)
		if (selection.wanted[r] && node[r] >= from && node[r] < to)
			sums[line[r]] += counts[metric][r];
	return sums;
}

// Samples by thread, of all filters but the threads'.
export function threadTotals(model, filters, metric, zoom = 0) {
	const {wanted} = computeSelection(model, {filters, zoom});
	const sums = new Float64Array(model.header.threads.length);
	const {thread, counts} = model.rows;
	for (let r = 0; r < thread.length; r++)
		if (wanted[r])
			sums[thread[r]] += counts[metric][r];
	return sums;
}
