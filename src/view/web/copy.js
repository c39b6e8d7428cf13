// SPDX-License-Identifier: Apache-2.0
// What can be copied of a row: its name, the stack that it stands for, and its numbers.

import {columnName, valueOf} from "./columns.js";
import {comparedLines} from "./compare_show.js";
import {formatWorded} from "./events.js";
import {formatNumber, formatPercent} from "./format.js";
import {scopeName} from "./model.js";
import {nodeOfFunction} from "./overview.js";
import {el} from "./dom.js";
import {rowName} from "./views.js";

// The names on the way from a row to the root, the innermost first. A function as a whole has the stack with the most
// samples.
export function stackOf(app, row) {
	const {model} = app, {scope, parent} = model.nodes, names = [];
	let node = row.node >= 0 ? row.node : row.nodes ? row.nodes[0] : nodeOfFunction(app, row);
	if (node <= 0)
		return rowName(model, row);
	for (; node > 0; node = parent[node])
		names.push(scopeName(model, scope[node]));
	return names.join("\n");
}

// "name  total share  amount  self share  amount …", with tabs between.
export function rowText(app, row) {
	const {model} = app, cells = [rowName(model, row)];
	for (const {metric, column} of app.comparison ? [] : app.table.columns) {
		const value = valueOf(model, row, column, metric), title = `${columnName(model, metric)} ${column}`;
		cells.push(metric >= model.metrics.length ? `${title} ${formatNumber(value)}` :
			`${title} ${formatPercent(value, model.whole[metric]) || "0%"} ${formatWorded(model.metrics[metric], value)}`);
	}
	if (app.comparison)
		cells.push(...comparedLines(app, row).map(([name, text]) => `${name}: ${text}`));
	return cells.join("\t");
}

// Without the right to write there by itself, the browser copies what is selected.
function copySelected(text) {
	const box = el("textarea", {value: text}), before = document.activeElement;
	document.body.append(box);
	box.select();
	document.execCommand("copy");
	box.remove();
	before?.focus();
}

export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch {
		copySelected(text);
	}
}
