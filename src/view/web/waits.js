// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, why and for how long, of the samples that count; as `culprit report --view=waits` has it.
//
// A chain begins with a thread, and with the thread that most of its wait was for. If that one waited itself for more
// than half of this time, the chain goes on with what it waits for most, and so on.

import {threadLabel} from "./model.js";

const WAKER_THREADS = 3; // from here on: + the number of a thread
const WAKER_WORDS = ["an interrupt", "a thread of the kernel", "a thread that is not recorded"];
const WAKER_UNKNOWN = -1;
const CHAIN_LEAST = 0.1, CHAIN_MAX = 8;
export const EACH_OTHER = -1; // how a chain ends that leads back into itself

// Metrics that tell of waiting.
export function waitMetrics(model) {
	return model.header.metrics.flatMap((metric, m) => metric.waits ? [m] : []);
}

export const threadOfWaker = (waker) => waker >= WAKER_THREADS ? waker - WAKER_THREADS : -1;

export function wakerWords(model, waker) {
	return waker === WAKER_UNKNOWN ? "what is not known" : WAKER_WORDS[waker] || threadLabel(model, waker - WAKER_THREADS);
}

// Calls run(row, waker, samples, waited) for all waits that count.
function eachWait(model, {base, wanted}, metric, run) {
	const {rows, wakes} = model, {counts, threads} = base.columns[metric], whole = rows.counts[metric], left = new Map();
	for (let r = 0; r < rows.count; r++)
		if (rows.reason[r] && wanted[r] && counts[r] > 0 && (!threads || threads[rows.thread[r]]))
			left.set(r, counts[r]);
	for (let w = 0; w < wakes.count; w++) {
		const row = wakes.row[w];
		if (wakes.metric[w] !== metric || !left.has(row))
			continue;
		const part = counts[row] / whole[row], samples = Math.min(wakes.samples[w] * part, left.get(row));
		left.set(row, left.get(row) - samples);
		run(row, wakes.waker[w], samples, wakes.waited[w] * part);
	}
	for (const [row, samples] of left)
		if (samples > 0)
			run(row, WAKER_UNKNOWN, samples, 0);
}

const keyOfPair = (thread, waker, reason) => `${thread}.${waker + 1}.${reason}`;

// {key, thread, waker, reason, count, waited: of the count, while the waker waited itself}, the largest first.
function findPairs(model, selection, metric) {
	const pairs = new Map(), {thread, reason} = model.rows;
	eachWait(model, selection, metric, (row, waker, samples, waited) => {
		const key = keyOfPair(thread[row], waker, reason[row]);
		if (!pairs.has(key))
			pairs.set(key, {key, thread: thread[row], waker, reason: reason[row], count: 0, waited: 0});
		const pair = pairs.get(key);
		pair.count += samples;
		pair.waited += waited;
	});
	const last = (pair) => pair.waker === WAKER_UNKNOWN ? Infinity : pair.waker;
	const byWaker = (a, b) => a.waker === b.waker ? 0 : last(a) - last(b);
	return [...pairs.values()].sort((a, b) => b.count - a.count || a.thread - b.thread || byWaker(a, b) || a.reason - b.reason);
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

// How much is of each reason, whichever of them is kept: [{reason, count}…], the largest first.
function findReasons(model, {base, wanted}, metric) {
	const {counts, threads} = (base.unmasked || base).columns[metric], {reason, thread, count} = model.rows;
	const sums = model.header.reasons.map(() => 0);
	for (let r = 0; r < count; r++)
		if (wanted[r] && (!threads || threads[thread[r]]))
			sums[reason[r]] += counts[r];
	return sums.map((sum, i) => ({reason: i, count: sum})).filter((one) => one.reason && one.count > 0)
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
export function pairNodes(model, selection, metric, pair, most) {
	const {thread, reason} = model.rows;
	return largestNodes(model, (run) => eachWait(model, selection, metric, (row, waker, samples) => {
		if (thread[row] === pair.thread && waker === pair.waker && reason[row] === pair.reason)
			run(row, samples);
	}), most);
}

// Where a thread is, of all its samples of some metrics: {count: all, nodes}.
export function threadNodes(model, thread, metrics, most) {
	const {rows} = model;
	let count = 0;
	const nodes = largestNodes(model, (run) => {
		for (const m of metrics)
			for (let r = 0; r < rows.count; r++)
				if (rows.thread[r] === thread && rows.counts[m][r] > 0) {
					count += rows.counts[m][r] * model.metrics[m].period;
					run(r, rows.counts[m][r] * model.metrics[m].period);
				}
	}, most);
	return {count, nodes};
}

// "main ← worker ← sleep"
export function chainWords(model, {threads, end}) {
	const names = threads.map((thread) => model.header.threads[thread].name).join(" ← ");
	if (end === EACH_OTHER)
		return `${names}, for each other`;
	return end ? `${names} ← ${model.header.reasons[end]}` : `${names}, which runs`;
}
