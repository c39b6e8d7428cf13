// SPDX-License-Identifier: Apache-2.0
// What metrics are called for people, and which belong together: an event may have several, as alloc has bytes,
// calls, what is not freed, and more.

import {formatAmount, formatError, sampledMetric} from "./format.js";

// By name: what it is about, what it counts of that, and a word for the head of a column. Those about the same thing
// are listed in this order.
const METRIC_WORDS = {
	"cpu-clock": ["Time", "on a CPU", "CPU time"],
	wall: ["Time", "on a CPU and waiting", "all time"],
	blocked: ["Waiting", "until something happens", "waiting"],
	"blocked.queued": ["Waiting", "for a CPU", "for a CPU"],
	"alloc.bytes": ["Memory", "allocated bytes", "allocated"],
	"alloc.calls": ["Memory", "allocations", "allocations"],
	"alloc.peak": ["Memory", "alive at the peak", "at the peak"],
	"alloc.live": ["Memory", "still alive at the end", "not freed"],
	"alloc.temporary": ["Memory", "temporary allocations", "temporary"],
	alloc: ["Memory", "samples", "samples"],
	"lock.ns": ["Locks", "waiting for locks", "lock wait"],
	"lock.held": ["Locks", "made others wait", "to blame"],
	lock: ["Locks", "waits", "lock waits"],
	"io.bytes": ["Files and network", "bytes read and written", "I/O bytes"],
	"io.calls": ["Files and network", "reads and writes", "I/O calls"],
	"io.ns": ["Files and network", "time in reads and writes", "I/O time"],
	io: ["Files and network", "reads and writes", "I/O calls"],
	calls: ["Calls", "of functions", "calls"],
};
const METRIC_ORDER = Object.keys(METRIC_WORDS);

// Events that have no other words are called as the user called them.
function wordsOf({name, group}) {
	return !group && Object.hasOwn(METRIC_WORDS, name) ? METRIC_WORDS[name] : ["Events", name, name];
}

export const metricEvent = (metric) => wordsOf(metric)[0];
export const metricWords = (metric) => wordsOf(metric)[1];
export const metricShort = (metric) => wordsOf(metric)[2];

// Of these calls, two metrics have the same number.
const isTwice = (metrics, {name}) => name === "io" && metrics.some((other) => other.name === "io.calls");

// Metrics (by number) that are about the same: [{event, members}…], as they were recorded.
export function metricGroups(metrics) {
	const groups = new Map(), place = (m) => METRIC_ORDER.indexOf(metrics[m].name);
	metrics.forEach((metric, m) => {
		const event = metricEvent(metric);
		if (isTwice(metrics, metric))
			return;
		groups.set(event, [...groups.get(event) || [], m]);
	});
	return [...groups].map(([event, members]) => ({event, members: members.sort((a, b) => place(a) - place(b) || a - b)}));
}

// The metric after another one, as they are listed.
export function nextMetric(metrics, m) {
	const list = metricGroups(metrics).flatMap(({members}) => members);
	return list[(list.indexOf(m) + 1) % list.length];
}

// Which metrics a table shows, if nobody chose: the first of two events, or the first two of one, and in any case the one
// that everything else shows.
export function usualMetrics(metrics, chosen) {
	const groups = metricGroups(metrics);
	const list = groups.flatMap(({event, members}) => event === "Events" ? members : members.slice(0, 1));
	const wanted = (list.length > 1 ? list : groups.flatMap(({members}) => members)).slice(0, 2);
	return wanted.includes(chosen) || wanted.length < 2 ? wanted : [wanted[0], chosen];
}

// Whether a metric has numbers that are counted for each function by itself: sums of them say nothing.
export function isOwnOnly({name, unit, group}) {
	return !group && name === "calls" && unit === "calls";
}

// Whether each one is counted, so that there is no error of sampling.
const isCounted = (metric) => metric.name === "io" || isOwnOnly(metric);

// "1.20 GB", "3 033 calls". Where a sample stands for several, samples are counted.
export function formatWorded(metric, count) {
	const amount = formatAmount(metric, count), {unit, period} = metric;
	return unit === "ns" || unit === "bytes" ? amount : `${amount} ${period === 1 && unit ? unit : "samples"}`;
}

// The amount of a metric by number, and how far it can be trusted, where that is known.
export function formatTrusted(metrics, m, count) {
	const metric = metrics[m];
	if (sampledMetric(metrics, m) !== m || isCounted(metric))
		return formatWorded(metric, count);
	const isCount = metric.unit !== "ns" && metric.unit !== "bytes";
	return isCount ? formatError(count) : `${formatAmount(metric, count)} · ${formatError(count)}`;
}
