// SPDX-License-Identifier: Apache-2.0
// What metrics are called for people, and which belong together: an event may have several, as alloc has bytes,
// calls, what is not freed, and more.

import {formatAmount, formatCount, formatError, formatNumber, formatPercent, formatSize, formatTime,
	sampledMetric} from "./format.js";

// By name: what it is about, what it counts of that, and a word for the head of a column. Those about the same thing
// are listed in this order.
const METRIC_WORDS = {
	"cpu-clock": ["Time", "on a CPU", "CPU time"],
	wall: ["Time", "on a CPU and waiting", "all time"],
	"cpu-clock.serial": ["Time", "on a CPU, divided by how many threads run", "serial time"],
	"wall.serial": ["Time", "on a CPU, divided by how many threads run", "serial time"],
	"cycles.serial": ["Time", "on a CPU, divided by how many threads run", "serial time"],
	blocked: ["Waiting", "until something happens", "waiting"],
	"blocked.queued": ["Waiting", "for a CPU", "for a CPU"],
	"alloc.bytes": ["Memory", "allocated bytes", "allocated"],
	"alloc.calls": ["Memory", "allocations", "allocations"],
	"alloc.peak": ["Memory", "alive at the peak", "at the peak"],
	"alloc.live": ["Memory", "still alive at the end", "not freed"],
	"alloc.temporary": ["Memory", "temporary allocations", "temporary"],
	"alloc.brief": ["Memory", "freed within 10 µs", "short-lived"],
	"alloc.freed": ["Memory", "freed allocations", "freed"],
	"alloc.lifetime": ["Memory", "sum of lifetimes", "lifetimes"],
	"alloc.elsewhere": ["Memory", "freed by another thread", "freed elsewhere"],
	"alloc.released": ["Memory", "bytes that it frees", "frees"],
	"alloc.wasted": ["Memory", "more than was asked for", "wasted"],
	"alloc.grown": ["Memory", "grown by realloc", "grown"],
	"alloc.mapped": ["Memory", "mapped by mmap", "mapped"],
	"alloc.kept": ["Memory", "still mapped at the end", "still mapped"],
	alloc: ["Memory", "samples", "samples"],
	"lock.ns": ["Locks", "waiting for locks", "lock wait"],
	"lock.held": ["Locks", "made others wait", "to blame"],
	lock: ["Locks", "waits", "lock waits"],
	"io.bytes": ["Files and network", "bytes read and written", "I/O bytes"],
	"io.calls": ["Files and network", "reads and writes", "I/O calls"],
	"io.ns": ["Files and network", "time in reads and writes", "I/O time"],
	io: ["Files and network", "reads and writes", "I/O calls"],
	"mpi.ns": ["MPI", "time in calls", "MPI time"],
	mpi: ["MPI", "calls", "MPI calls"],
	"probe.ns": ["Probed functions", "time in calls", "call time"],
	probe: ["Probed functions", "calls", "calls"],
	calls: ["Calls", "of functions", "calls"],
	executed: ["Paths", "instructions that were executed", "executed"],
};
// Quotients of two of them, as report has them (analyze/derived.h).
const QUOTIENT_WORDS = {
	"alloc.size": "each allocation", "alloc.churn": "temporary share", "alloc.age": "each lifetime", "alloc.slack": "wasted share",
	"io.size": "each read or write", "io.time": "time of each",
	"lock.wait": "each lock wait", "mpi.time": "each MPI call", "probe.time": "each call", "calls.time": "each call", "calls.cycles": "cycles of a call",
	ipc: "instructions/cycle", "cache-miss-rate": "cache miss rate", "branch-miss-rate": "branch miss rate",
	"frontend-stalls": "frontend stalls", "backend-stalls": "backend stalls",
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

// Whether a metric is of counted paths (paths/executed.h).
const isExecuted = ({name, unit}) => name === "executed" && unit === "instructions";

// Whether a metric has numbers that are counted for each function by itself: sums of them say nothing.
export function isOwnOnly({name, unit, group}) {
	return !group && ((name === "calls" && unit === "calls") || isExecuted({name, unit}));
}

// Whether each one is counted, so that there is no error of sampling.
const isCounted = (metric) => ["io", "lock", "mpi", "probe"].includes(metric.name) || isOwnOnly(metric);

// "1.20 GB", "3 033 calls". Where a sample stands for several, samples are counted.
export function formatWorded(metric, count) {
	const amount = formatAmount(metric, count), {unit, period} = metric;
	return unit === "ns" || unit === "bytes" ? amount : `${amount} ${period === 1 && unit ? unit : "samples"}`;
}

const QUOTIENT_FORMATS = {bytes: formatSize, ns: (ns) => formatTime(ns / 1e9), share: (part) => formatPercent(part, 1),
	ratio: formatNumber, cycles: (cycles) => `${formatCount(cycles)} cycles`};

// Lines of [name, text] about a row: with all that it calls; of calls its own.
export function quotientLines({header, recorded}, row) {
	return (header.quotients || []).flatMap(({name, unit, over, under, ofCalls}) => {
		const amount = (column, m) => row[column][m] * recorded.metrics[m].period;
		const divisor = amount(ofCalls ? "self" : "total", under), format = QUOTIENT_FORMATS[unit] || formatNumber;
		return divisor > 0 ? [[QUOTIENT_WORDS[name] || name, format(amount("total", over) / divisor)]] : [];
	});
}

// The amount of a metric by number, and how far it can be trusted, where that is known.
export function formatTrusted(metrics, m, count) {
	const metric = metrics[m];
	if (sampledMetric(metrics, m) !== m || isCounted(metric))
		return formatWorded(metric, count);
	const isCount = metric.unit !== "ns" && metric.unit !== "bytes";
	return isCount ? formatError(count) : `${formatAmount(metric, count)} · ${formatError(count)}`;
}
