// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, why and for how long, of the samples that count; as `culprit report --view=waits` has it.
//
// A chain begins with a thread, and with the thread that most of its wait was for. If that one waited itself for more
// than half of this time, the chain goes on with what it waits for most, and so on.

import {rowsByThread} from "./lists.js";
import {cached, inBlocks, partBy, threadLabel} from "./model.js";

const WAKER_THREADS = 3; // from here on: + the number of a thread
const WAKER_WORDS = ["an interrupt", "a thread of the kernel", "a thread that is not recorded"];
const WAKER_UNKNOWN = -1;
const REASONS_MAX = 256;
const CHAIN_LEAST = 0.1, CHAIN_MAX = 8;
export const EACH_OTHER = -1; // how a chain ends that leads back into itself

// Metrics that tell of waiting.
export function waitMetrics(model) {
	return model.header.metrics.flatMap((metric, m) => metric.waits ? [m] : []);
}

export const threadOfWaker = (waker) => waker >= WAKER_THREADS ? waker - WAKER_THREADS : -1;

// Who ended a wait of a pair. For a CPU, no thread does.
export function pairWaker(model, {waker, reason}) {
	return waker === WAKER_UNKNOWN && model.header.reasons[reason] === "a CPU" ? "nobody: it could run" : wakerWords(model, waker);
}

export function wakerWords(model, waker) {
	return waker === WAKER_UNKNOWN ? "what is not known" : WAKER_WORDS[waker] || threadLabel(model, waker - WAKER_THREADS);
}

const keyOfPair = (thread, waker, reason) => `${thread}.${waker + 1}.${reason}`;

// All waits of a metric, whatever counts: parts of rows, each {row, samples, waited, pair}, as columns; pairs: {thread,
// waker, reason}; order, starts: parts by pair.
function allWaits(model, metric) {
	return cached(model, `waits of ${metric}`, () => {
		const {rows, wakes} = model, whole = rows.counts[metric], left = Float64Array.from(whole), known = new Map(), pairs = [];
		const room = wakes.count + rows.count, row = new Int32Array(room), pair = new Int32Array(room);
		const samples = new Float64Array(room), waited = new Float64Array(room), threads = model.header.threads.length;
		let count = 0;
		const add = (r, waker, part, itself) => {
			const {thread, reason} = rows, key = (thread[r] * (threads + WAKER_THREADS + 1) + waker + 1) * REASONS_MAX + reason[r];
			let number = known.get(key);
			if (number === undefined) {
				number = pairs.push({thread: thread[r], waker, reason: reason[r]}) - 1;
				known.set(key, number);
			}
			row[count] = r;
			pair[count] = number;
			samples[count] = part;
			waited[count++] = itself;
		};
		for (let w = 0; w < wakes.count; w++) {
			const r = wakes.row[w], part = wakes.metric[w] === metric && rows.reason[r] ? Math.min(wakes.samples[w], left[r]) : 0;
			left[r] -= part;
			if (part > 0)
				add(r, wakes.waker[w], part, wakes.waited[w]);
		}
		for (let r = 0; r < rows.count; r++)
			if (rows.reason[r] && left[r] > 0)
				add(r, WAKER_UNKNOWN, left[r], 0);
		const used = pair.subarray(0, count);
		return {count, row, samples, waited, pair: used, pairs, ...partBy(used, pairs.length)};
	});
}

// The part of a row that counts.
function shareOf({rows}, {base, wanted}, metric) {
	const {counts, threads} = base.columns[metric], whole = rows.counts[metric];
	return (r) => wanted[r] && (!threads || threads[rows.thread[r]]) ? counts[r] / whole[r] : 0;
}

function addWaits(from, to, {row, samples, waited, pair}, share, counts, itself) {
	for (let i = from; i < to; i++) {
		const part = share(row[i]);
		counts[pair[i]] += samples[i] * part;
		itself[pair[i]] += waited[i] * part;
	}
}

// {key, thread, waker, reason, count, waited: of the count, while the waker waited itself}, the largest first.
function findPairs(model, selection, metric) {
	const all = allWaits(model, metric), counts = new Float64Array(all.pairs.length), itself = new Float64Array(all.pairs.length);
	const share = shareOf(model, selection, metric);
	inBlocks(0, all.count, (from, to) => addWaits(from, to, all, share, counts, itself));
	const pairs = all.pairs.map(({thread, waker, reason}, number) => ({key: keyOfPair(thread, waker, reason), number, thread, waker,
		reason, count: counts[number], waited: itself[number]})).filter(({count}) => count > 0);
	const last = (pair) => pair.waker === WAKER_UNKNOWN ? Infinity : pair.waker;
	const byWaker = (a, b) => a.waker === b.waker ? 0 : last(a) - last(b);
	return pairs.sort((a, b) => b.count - a.count || a.thread - b.thread || byWaker(a, b) || a.reason - b.reason);
}

// By thread: {total, most: the pair that it waits for most, other: the same among other threads}.
function findWaiters(pairs) {
	const waiters = new Map();
	for (const pair of pairs) { // the largest first
		const waiter = waiters.get(pair.thread) || {total: 0, most: pair, other: null};
		waiter.total += pair.count;
		if (!waiter.other && threadOfWaker(pair.waker) >= 0)
			waiter.other = pair;
		waiters.set(pair.thread, waiter);
	}
	return waiters;
}

// From a wait for another thread: {threads, count, end: a reason, 0 (the last one runs) or EACH_OTHER, key: of the pair}.
function followChain(waiters, from) {
	const chain = {threads: [from.thread], count: from.count, end: 0, key: from.key};
	for (let pair = from; chain.threads.length < CHAIN_MAX;) {
		const next = threadOfWaker(pair.waker);
		if (chain.threads.includes(next))
			return {...chain, end: EACH_OTHER};
		chain.threads.push(next);
		chain.end = 0;
		const waiter = waiters.get(next);
		if (pair.waited < Math.floor(pair.count / 2) || !waiter)
			return chain;
		pair = waiter.most;
		chain.end = pair.reason;
		if (threadOfWaker(pair.waker) < 0)
			return chain;
	}
	return chain;
}

function findChains(pairs) {
	const waiters = findWaiters(pairs);
	return [...waiters.values()].filter(({other, total}) => other && other.count >= CHAIN_LEAST * total)
		.map(({other}) => followChain(waiters, other)).sort((a, b) => b.count - a.count || a.threads[0] - b.threads[0]);
}

function addReasons(from, to, {reason, thread}, wanted, counts, threads, sums) {
	for (let r = from; r < to; r++)
		if (wanted[r] && (!threads || threads[thread[r]]))
			sums[reason[r]] += counts[r];
}

// How much is of each reason, whichever of them is kept: [{reason, count}…], the largest first.
function findReasons(model, {base, wanted}, metric) {
	const {counts, threads} = (base.unmasked || base).columns[metric], sums = new Float64Array(model.header.reasons.length);
	inBlocks(0, model.rows.count, (from, to) => addReasons(from, to, model.rows, wanted, counts, threads, sums));
	return Array.from(sums, (count, reason) => ({reason, count})).filter((one) => one.reason && one.count > 0)
		.sort((a, b) => b.count - a.count || a.reason - b.reason);
}

// {pairs, chains, reasons, total: samples of waiting}. What was found of a selection is kept with it.
export function waitsOf(model, selection, metric) {
	const kept = selection.views, name = `waits ${metric}`;
	if (!kept[name]) {
		const pairs = findPairs(model, selection, metric);
		kept[name] = {pairs, chains: findChains(pairs), reasons: findReasons(model, selection, metric),
			total: pairs.reduce((sum, pair) => sum + pair.count, 0)};
	}
	return kept[name];
}

// The nodes with the most of some samples: [{node, row, count}…], the largest first. each(run): calls run(row, samples).
function largestNodes(model, each, most) {
	const sums = new Map();
	each((row, samples) => {
		const node = model.rows.node[row], known = sums.get(node) || {node, row, count: 0};
		known.count += samples;
		sums.set(node, known);
	});
	return [...sums.values()].sort((a, b) => b.count - a.count || a.node - b.node).slice(0, most);
}

// Where the waits of a pair are.
export function pairNodes(model, selection, metric, {number}, most) {
	const all = allWaits(model, metric), share = shareOf(model, selection, metric);
	return largestNodes(model, (run) => {
		for (const i of all.order.subarray(all.starts[number], all.starts[number + 1]))
			if (share(all.row[i]) > 0)
				run(all.row[i], all.samples[i] * share(all.row[i]));
	}, most);
}

// Where a thread is, of all its samples of some metrics: {count: all, nodes}.
export function threadNodes(model, thread, metrics, most) {
	return cached(model, `nodes of thread ${thread}`, () => {
		const {rows} = model, {starts, order} = rowsByThread(model);
		let count = 0;
		const nodes = largestNodes(model, (run) => {
			for (const r of order.subarray(starts[thread], starts[thread + 1]))
				for (const m of metrics)
					if (rows.counts[m][r] > 0) {
						count += rows.counts[m][r] * model.metrics[m].period;
						run(r, rows.counts[m][r] * model.metrics[m].period);
					}
		}, most);
		return {count, nodes};
	});
}

// What it needs of the model and makes once, as steps that can be taken while nothing else is to do.
export function prepareWaits(model) {
	return waitMetrics(model).map((metric) => () => { allWaits(model, metric); });
}

// The name of a thread; with its number, if others have the same.
export function threadName(model, thread) {
	const {name, tid} = model.header.threads[thread], counts = cached(model, "names of threads", () => {
		const known = new Map();
		model.header.threads.forEach((one) => known.set(one.name, (known.get(one.name) || 0) + 1));
		return known;
	});
	return counts.get(name) > 1 ? `${name} ${tid}` : name;
}

// "main ← worker ← sleep"
export function chainWords(model, {threads, end}) {
	const names = threads.map((thread) => threadName(model, thread)).join(" ← ");
	if (end === EACH_OTHER)
		return `${names}, for each other`;
	return end ? `${names} ← ${model.header.reasons[end]}` : `${names}, which runs`;
}
