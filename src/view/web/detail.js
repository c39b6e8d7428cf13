// SPDX-License-Identifier: Apache-2.0
// What is known of the selected row, and how sure it is.

import {memoryHints, memoryLines} from "./memory.js";
import {nodeOfFunction} from "./overview.js";
import {pathList} from "./path_list.js";
import {columnCount, columnName, valueOf} from "./columns.js";
import {formatTrusted, formatWorded, isOwnOnly, metricShort, quotientLines} from "./events.js";
import {baseName, formatNumber, formatPercent} from "./format.js";
import {GUESSED, KIND, NAMELESS, moduleKind, modulePath, scopeAddress, scopeFile, scopeName, scopeShort} from "./model.js";
import {comparedLines, runLines} from "./compare_show.js";
import {MARKS} from "./table.js";
import {el} from "./dom.js";

const REASONS = {
	"no recipe": "the unwinder knew no way on from this code",
	"no module": "the code belongs to no file, such as code made at run time",
	"bad frame": "the stack did not make sense here",
	"bad memory": "the stack could not be read",
	"too deep": "the stack is deeper than what is recorded",
	"stack not kept": "the code was not known yet, and not all of the stack was kept",
};

const METRICS_FEW = 2; // whose numbers all have lines of their own

function partialReason(name) {
	const reason = Object.keys(REASONS).find((key) => name.includes(key));
	return "The callers of these samples are not known" + (reason ? `: ${REASONS[reason]}.` : ".");
}

// Lines about the module that say why names or lines are missing.
export function moduleNotes(model, scope) {
	const path = modulePath(model, scope), module = model.header.modules[model.scopes.module[scope]];
	const isNamed = (note) => note.split(/[\s,;:()'"]+/).some((word) => baseName(word) === baseName(path));
	const notes = path ? model.header.moduleNotes.filter(isNamed) : [];
	if (module && module.problem)
		notes.push(`${baseName(path)}: ${module.problem}`);
	return notes;
}

function warnings(model, scope) {
	const {kind, flags} = model.scopes;
	const list = [];
	if (kind[scope] === KIND.partial)
		list.push(partialReason(scopeName(model, scope)));
	if (flags[scope] & GUESSED)
		list.push("That this was inlined is told from line numbers alone.");
	if (flags[scope] & NAMELESS)
		list.push("No symbol names this function: it is shown by its address.");
	if (flags[scope] & NAMELESS || !model.scopes.file[scope])
		list.push(...moduleNotes(model, scope));
	return list;
}

export class Detail {
	constructor(app) {
		this.app = app;
		this.element = el("section", {class: "detail", "aria-label": "details"});
	}
	show(row) {
		this.element.textContent = "";
		if (!row)
			return;
		const {app} = this, {model} = app;
		const {scope} = row;
		this.element.append(el("h2", {class: "full"}, scope < 0 ? row.label : scopeName(model, scope)));
		const list = el("dl");
		const put = (name, ...value) => list.append(el("dt", {}, name), el("dd", {}, ...value));
		if (app.comparison)
			for (const [name, text] of [...comparedLines(app, row), ...runLines(app, row)])
				put(name, text);
		if (app.state.view === "time")
			app.timeline.putSpan(put);
		if (app.state.view === "memory")
			return this.showPlace(row, list, put);
		if (!app.comparison)
			this.putMetrics(row, put);
		for (const [name, text] of app.comparison ? [] : quotientLines(model, row))
			put(name, text);
		for (let m = model.metrics.length; !app.comparison && m < columnCount(model); m++)
			put(columnName(model, m), ["total", "self"].map((column) =>
				`${column} ${formatNumber(valueOf(model, row, column, m)) || "none"}`).join(" · "));
		if (scope >= 0)
			this.putScope(row, put);
		this.element.append(list);
		for (const text of scope >= 0 ? warnings(model, scope) : [])
			this.element.append(el("p", {class: "warning"}, "⚠ " + text));
	}
	// A place that allocates.
	showPlace(row, list, put) {
		for (const [name, text] of memoryLines(this.app.model, row))
			put(name, text);
		this.element.append(list);
		for (const text of memoryHints(this.app.model, row))
			this.element.append(el("p", {class: "hint"}, text));
		this.element.append(pathList(this.app, "called by way of", nodeOfFunction(this.app, row), row.line));
	}
	// That which everything else shows comes first, with how far it can be trusted. Of many others, each has a line.
	putMetrics(row, put) {
		const {model, state} = this.app, {metrics} = model, many = metrics.length > METRICS_FEW;
		const others = metrics.map((_, m) => m).filter((m) => m !== state.metric);
		const share = (column, m) => formatPercent(row[column][m], model.whole[m]) || "0%";
		for (const m of many ? [state.metric, ...others] : metrics.map((_, m) => m)) {
			const name = metricShort(metrics[m]), only = isOwnOnly(metrics[m]);
			if (many && m !== state.metric && !row.total[m]) // there is none
				continue;
			if (many && m !== state.metric) {
				put(name, (only ? ["self"] : ["total", "self"]).map((column) =>
					`${only ? "" : column + " "}${share(column, m)} · ${formatWorded(metrics[m], row[column][m])}`).join(", "));
				continue;
			}
			for (const column of only ? ["self"] : ["total", "self"])
				put(only ? name : `${metrics.length > 1 ? name + " " : ""}${column}`,
					`${share(column, m)} · ${formatTrusted(metrics, m, row[column][m])}`);
		}
	}
	putScope(row, put) {
		const {app} = this, {model} = app, {scope} = row;
		const {kind, line, last} = model.scopes;
		const number = kind[scope];
		put("kind", MARKS[number] ? MARKS[number][1] : "");
		const file = scopeFile(model, scope);
		if (file)
			put("source", `${file}${line[scope] ? ":" + line[scope] : ""}` +
				`${last[scope] > line[scope] ? "-" + last[scope] : ""}`);
		if (modulePath(model, scope))
			put("module", modulePath(model, scope));
		if (moduleKind(model, scope) === "script")
			put("run by", "_PyEval_EvalFrameDefault");
		if (number === KIND.function || number === KIND.loop)
			put("address", scopeAddress(model, scope));
		if (number === KIND.loop && model.scopes.function[scope])
			put("in", scopeShort(model, model.scopes.inlined[scope] || model.scopes.function[scope]));
		if (row.node >= 0 && model.nodes.callLine[row.node])
			this.putCall(row.node, put);
	}
	putCall(node, put) {
		const {app} = this, {model} = app;
		const file = model.nodes.callFile[node], line = model.nodes.callLine[node];
		put("called at", el("button", {
			type: "button", class: "link",
			onclick: () => app.source.show(file, line, line),
		}, `${baseName(model.strings[file])}:${line}`));
	}
}
