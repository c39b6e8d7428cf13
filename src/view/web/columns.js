// SPDX-License-Identifier: Apache-2.0
// Columns beside those of the recorded metrics: the samples of some threads alone, to compare these, and
// metrics that are derived by a formula. The first are metrics like the recorded ones, and come after them
// in model.metrics; the second (model.derived) are computed from a row's numbers, and come last.

import {metricShort} from "./events.js";
import {compileFormula} from "./formula.js";
import {samplesByThread} from "./select.js";

export const GROUPS_MAX = 8;

// What threads may be grouped by: for each the number of a thread's group, and what that is called.
export const GROUPINGS = {
	thread: {of: (header, thread) => thread,
		label: (header, n) => `${header.threads[n].name} ${header.threads[n].tid}`},
	process: {of: (header, thread) => header.threads[thread].process,
		label: (header, n) => `${header.processes[n].name} ${header.processes[n].pid}`},
	rank: {of: (header, thread) => header.processes[header.threads[thread].process].rank,
		label: (header, n) => n < 0 ? "no rank" : `rank ${n}`},
};

// The groups that threads are in: [{by, number, name, threads}…], at most `limit`.
export function groupThreads(header, by, threads, limit = GROUPS_MAX) {
	const groups = new Map(), {of, label} = GROUPINGS[by];
	for (const thread of threads) {
		const number = of(header, thread);
		if (!groups.has(number) && groups.size < limit)
			groups.set(number, {by, number, name: label(header, number), threads: []});
		if (groups.has(number))
			groups.get(number).threads.push(thread);
	}
	return [...groups.values()];
}

// Samples of `metric` of each group become a metric: {of: that metric, chosen: by thread}. What was computed for
// others is forgotten.
function setGroups(model, groups, metric) {
	const recorded = model.recorded.metrics;
	model.metrics = recorded.slice();
	for (const group of groups) {
		const chosen = new Uint8Array(model.header.threads.length);
		let total = 0;
		for (const thread of group.threads) {
			chosen[thread] = 1;
			total += samplesByThread(model, metric)[thread];
		}
		model.metrics.push({...recorded[metric], name: group.name, total, group: true, of: metric, chosen});
	}
	model.whole = model.metrics.map((one) => one.total);
	for (const name of ["base", "base of a time", "whole selection"])
		model.cache.delete(name);
}

// In what people count in: seconds, or events.
function amountOf(metric, count) {
	return metric.unit === "ns" ? count * metric.period / 1e9 : count * metric.period;
}

function setDerived(model, formulas) {
	model.derived = formulas.flatMap(({name, formula}) => {
		try {
			return [{name, formula, run: compileFormula(formula, model.recorded.metrics.length)}];
		} catch {
			return [];
		}
	});
}

// Makes the columns that a state wants. Returns whether samples must be summed again.
export function setColumns(model, {compared, metric, derived}) {
	if (!model.recorded)
		model.recorded = {metrics: model.metrics};
	setDerived(model, derived);
	const text = JSON.stringify(compared && [compared, metric]);
	if ((model.comparedText || "null") === text)
		return false;
	model.comparedText = text;
	setGroups(model, compared ? groupThreads(model.header, compared.by, compared.threads) : [], metric);
	return true;
}

// The number of a row in a column; of a derived metric NaN where there is none.
export function valueOf(model, row, column, metric) {
	if (metric < model.metrics.length)
		return row[column][metric];
	return derivedValue(model, metric, (m) => row[column][m]);
}

export function derivedValue(model, metric, count) {
	const derived = model.derived[metric - model.metrics.length], {metrics} = model;
	if (!derived)
		return NaN;
	return derived.run((m) => amountOf(metrics[m], count(m)), (m) => amountOf(metrics[m], model.whole[m]));
}

// Numbers of all rows of a level.
export function levelNumbers(model, level, column, metric) {
	if (metric < model.metrics.length)
		return level.numbers(column, metric);
	const base = model.recorded.metrics.map((_, m) => level.numbers(column, m));
	const numbers = new Float64Array(level.length);
	for (let i = 0; i < numbers.length; i++)
		numbers[i] = derivedValue(model, metric, (m) => base[m][i]);
	return numbers;
}

export function columnName(model, metric) {
	return metric < model.metrics.length ? metricShort(model.metrics[metric]) :
		model.derived[metric - model.metrics.length].name;
}

export function columnCount(model) {
	return model.metrics.length + (model.derived || []).length;
}
