// SPDX-License-Identifier: Apache-2.0
// The two sides of a comparison and their runs.

import {threadLabel} from "./model.js";
import {baseName, plural} from "./format.js";

export const PERS = ["file", "process", "thread", "group"]; // what a run is

export function defaultLimits(model) {
	const {alpha = 0.05, noise = 0.02, min = 0.001} = model.header.comparison || {};
	return {alpha, noise, min};
}

// The sides that the page was made for, or null.
export function fileSides(model) {
	const {comparison} = model.header;
	if (!comparison)
		return null;
	const sides = {a: [], b: [], per: "file", files: true};
	comparison.threads.forEach((run, thread) => sides[run < comparison.old ? "a" : "b"].push(thread));
	return sides;
}

// What is compared, or null: {a, b: threads, per, files: whether they are those of the page}.
export function chosenSides(model, state) {
	if (state.compare === "off")
		return null;
	return state.compare || fileSides(model);
}

// The runs of a side: [{label, threads}…].
export function splitRuns(model, threads, per) {
	const {header} = model, runs = new Map();
	for (const thread of threads) {
		const {process} = header.threads[thread];
		const key = per === "file" ? header.comparison.threads[thread] : per === "process" ? process :
			per === "thread" ? thread : 0;
		if (!runs.has(key))
			runs.set(key, {threads: [], label: per === "file" ? baseName(header.comparison.runs[key].path) :
				per === "process" ? processLabel(model, process) :
				per === "thread" ? threadLabel(model, thread) : plural(threads.length, "thread")});
		runs.get(key).threads.push(thread);
	}
	return [...runs.values()];
}

// "app (process 12, rank 3)", and of which file where there are several.
export function processLabel(model, index) {
	const {processes, threads, comparison} = model.header, process = processes[index];
	if (!process)
		return `process ${index}`;
	const thread = comparison ? threads.findIndex((t) => t.process === index) : -1;
	return `${process.name} (process ${process.pid}${process.rank >= 0 ? `, rank ${process.rank}` : ""}` +
		`${thread >= 0 ? ` of ${comparison.runs[comparison.threads[thread]].path}` : ""})`;
}

// Files that have no threads with samples are runs all the same.
export function fileRuns(model) {
	const {runs, old, threads} = model.header.comparison;
	const all = runs.map(({path, periods}, i) => ({label: baseName(path), side: i < old ? 0 : 1, threads: [], periods}));
	threads.forEach((run, thread) => all[run].threads.push(thread));
	return all;
}

// How much is wanted of a side's name: "worker (thread 12)", "3 threads", "old.prof and 2 more".
export function sideText(runs, threads) {
	return runs.length === 1 ? runs[0].label : runs.length <= threads ?
		`${runs[0].label} and ${runs.length - 1} more` : plural(threads, "thread");
}
