// SPDX-License-Identifier: Apache-2.0
// What is looked at, as text for the address of the page.

import {GROUPS_MAX} from "./columns.js";
import {COMPARE_COLUMNS, decodeCompare, encodeCompare, newCompareState} from "./compare_state.js";
import {mainMetric} from "./format.js";
import {hasMemory} from "./memory.js";
import {waitMetrics} from "./waits.js";

const DERIVED_MAX = 20;
const OPEN_MAX = 1500; // rows that are remembered as open
const LETTERS_MAX = 30000; // of their keys: those of bottom-up are as long as the way to them

// [name, title, key]
export const VIEWS = [["overview", "Overview", "o"], ["tree", "Top-down", "1"], ["callers", "Bottom-up", "2"],
	["flat", "Flat", "3"], ["graph", "Flame graph", "4"], ["time", "Time line", "5"], ["sandwich", "Sandwich", "6"],
	["memory", "Memory", "7"], ["waits", "Waits", "8"], ["flow", "Control flow", "9"], ["paths", "Paths", "P"]];

// Why there is no such view of a recording; "": there is one.
export function noView(model, view, compared = model.header.comparison) {
	if (view === "memory" && !hasMemory(model))
		return "No allocations were recorded: culprit record -e alloc COMMAND";
	if (view === "waits" && !waitMetrics(model).length)
		return "No waiting was recorded: culprit record -e blocked COMMAND (or -e wall)";
	if (view === "flow" && !model.flow.count)
		return "No function could be explained: it needs many samples of time (culprit record -F 5000) and a file that can be read.";
	if (view === "paths" && !model.paths.count)
		return "No paths were counted: culprit paths -o FILE -- COMMAND";
	return ["memory", "waits", "flow", "paths"].includes(view) && compared ? "Two sides are compared in the other views." : "";
}

// What each table is ordered by at first: a tree by all that is in a subtree, lists of functions by their own code.
export function usualSort(table, metric = 0) {
	return {metric, column: table === "tree" || table === "sandwich" ? "total" : "self", up: false};
}

export function newState() {
	return {
		view: "overview", metric: 0, mainMetric: 0, // the main one is shown first
		sorts: Object.fromEntries(["tree", "callers", "flat", "sandwich", "memory"].map((table) => [table, usualSort(table)])),
		flatten: 2, zoom: 0, selected: "", node: 0, open: {tree: ["0"], callers: [], flat: [], memory: []},
		filters: [], threads: null, time: null, window: null, moment: null, level: 0, stacks: false, search: "", icicle: true,
		inverted: false, folded: false, inside: "", // the graph: as it is drawn, and the box that it is zoomed to
		reason: 0, wait: "", // why threads waited whose samples count, and which wait is looked at
		flow: 0, block: 0, // control flow: one more than the function (model.flow) and its block; 0: not chosen
		paths: 0, path: 0, pathOrder: "cost", // one more than the function and path (model.paths); 0: not chosen
		center: 0, tables: false, // the sandwich: around which function, and whether as tables
		theme: "", pane: true, columns: null, compared: null, derived: [], instructions: false, intel: false,
		...newCompareState(),
	};
}

// Keys that are numbers become distances, others stay.
function packKeys(keys) {
	const list = keys.slice(0, OPEN_MAX);
	if (!list.every((key) => /^\d+$/.test(key))) {
		let letters = 0;
		return "k" + list.filter((key) => (letters += key.length + 1) <= LETTERS_MAX).join("_");
	}
	const numbers = list.map(Number).sort((a, b) => a - b);
	return "n" + numbers.map((n, i) => (n - (i ? numbers[i - 1] : 0)).toString(36)).join("_");
}

function unpackKeys(text) {
	if (text.length < 2)
		return [];
	const parts = text.slice(1).split("_");
	if (text[0] === "k")
		return parts.filter(isPath);
	let sum = 0;
	return parts.map((part) => String(sum += parseInt(part, 36) || 0));
}

export function encodeState(state) {
	const p = new URLSearchParams();
	const first = newState();
	p.set("v", state.view);
	if (state.metric !== state.mainMetric)
		p.set("m", state.metric);
	for (const [name, sort] of Object.entries(state.sorts))
		if (sort.metric !== state.metric || sort.column !== first.sorts[name].column || sort.up)
			p.set("s" + name[0], `${sort.column}.${sort.metric}${sort.up ? ".up" : ""}`);
	if (state.flatten !== first.flatten)
		p.set("l", state.flatten);
	if (state.zoom)
		p.set("z", state.zoom);
	if (state.selected)
		p.set("r", state.selected);
	if (state.node)
		p.set("n", state.node);
	for (const name of Object.keys(first.open)) {
		const keys = packKeys(state.open[name]);
		if (keys !== packKeys(first.open[name]))
			p.set("o" + name[0], keys);
	}
	for (const f of state.filters)
		p.append("f", `${f.how}.${f.what}.${f.text}`);
	if (state.threads)
		p.set("t", state.threads.join("."));
	for (const name of ["time", "window", "moment"])
		if (state[name])
			p.set(name, state[name].join("-"));
	if (state.level)
		p.set("level", state.level);
	if (state.stacks)
		p.set("stacks", "1");
	if (state.search)
		p.set("q", state.search);
	if (!state.icicle)
		p.set("flame", "1");
	if (state.inverted || state.folded)
		p.set("graph", (state.inverted ? "i" : "") + (state.folded ? "f" : ""));
	if (state.inside)
		p.set("in", state.inside);
	if (state.center)
		p.set("around", state.center);
	if (state.reason)
		p.set("why", state.reason);
	if (state.wait)
		p.set("wait", state.wait);
	if (state.view === "flow" && state.flow)
		p.set("flow", `${state.flow}.${state.block}`);
	if (["flow", "paths"].includes(state.view) && state.paths)
		p.set("path", `${state.paths}.${state.path}`);
	if (state.pathOrder !== first.pathOrder)
		p.set("paths", state.pathOrder);
	if (state.tables)
		p.set("tables", "1");
	if (state.theme)
		p.set("theme", state.theme);
	if (!state.pane)
		p.set("pane", "0");
	if (state.columns)
		p.set("c", state.columns.join("."));
	if (state.compared)
		p.set("by", [state.compared.by, ...state.compared.threads].join("."));
	for (const {name, formula} of state.derived)
		p.append("d", `${name}=${formula}`);
	if (state.instructions)
		p.set("insn", "1");
	if (state.intel)
		p.set("intel", "1");
	encodeCompare(p, state);
	return p.toString();
}

function isPath(text) {
	return /^\d+(\.\d+)*$/.test(text || "");
}

function numbers(text) {
	return text.split(".").map(Number).filter((n) => Number.isInteger(n) && n >= 0);
}

// Two whole numbers: from and to, or a thread and a time.
function decodeTimes(p, model, state) {
	for (const name of ["time", "window", "moment"]) {
		const match = /^(\d{1,15})-(\d{1,15})$/.exec(p.get(name) || "");
		const [a, b] = match ? [Number(match[1]), Number(match[2])] : [1, 0];
		if (match && model.spans.count && (name === "moment" ? a < model.header.threads.length : a < b))
			state[name] = [a, b];
	}
}

// The order of each table: "column.metric", and ".up".
function decodeSorts(p, limit, state) {
	for (const name of Object.keys(state.sorts)) {
		const [column, metric, up] = (p.get("s" + name[0]) || "").split(".");
		state.sorts[name].metric = state.metric;
		if (["total", "self", "name", ...COMPARE_COLUMNS].includes(column) && Number(metric) < limit)
			state.sorts[name] = {column, metric: Math.max(0, Math.trunc(Number(metric))) || 0, up: up === "up"};
	}
}

// Anything may stand in an address: what makes no sense for this model is left out.
export function decodeState(text, model) {
	const p = new URLSearchParams(text);
	const state = newState();
	const whole = (name, limit, otherwise) => {
		const n = p.has(name) ? Number(p.get(name)) : NaN;
		return Number.isInteger(n) && n >= 0 && n < limit ? n : otherwise;
	};
	if (VIEWS.some(([name]) => name === p.get("v")) && !noView(model, p.get("v")))
		state.view = p.get("v");
	const {threads} = model.header, metrics = model.header.metrics.length;
	state.mainMetric = mainMetric(model.header.metrics);
	state.metric = whole("m", metrics, state.mainMetric);
	const [by, ...compared] = (p.get("by") || "").split(".");
	if (["thread", "process", "rank"].includes(by))
		state.compared = {by, threads: numbers(compared.join(".")).filter((n) => n < threads.length)};
	for (const text of p.getAll("d").slice(0, DERIVED_MAX)) {
		const at = text.indexOf("=");
		if (at > 0)
			state.derived.push({name: text.slice(0, at), formula: text.slice(at + 1)});
	}
	state.instructions = p.get("insn") === "1";
	state.intel = p.get("intel") === "1";
	decodeSorts(p, metrics + GROUPS_MAX + state.derived.length, state);
	state.flatten = whole("l", 20, state.flatten);
	state.zoom = whole("z", model.nodes.count, 0);
	if (isPath(p.get("r")))
		state.selected = p.get("r");
	state.node = whole("n", model.nodes.count, 0);
	for (const name of Object.keys(state.open))
		if (p.has("o" + name[0]))
			state.open[name] = unpackKeys(p.get("o" + name[0]));
	for (const f of p.getAll("f")) {
		const [how, what, ...rest] = f.split(".");
		if (["keep", "hide"].includes(how) && ["name", "module"].includes(what))
			state.filters.push({how, what, text: rest.join(".")});
	}
	if (p.has("t"))
		state.threads = numbers(p.get("t")).filter((n) => n < threads.length);
	decodeTimes(p, model, state);
	state.level = whole("level", 13, 0);
	state.stacks = p.get("stacks") === "1";
	state.search = p.get("q") || "";
	state.icicle = p.get("flame") !== "1";
	state.inverted = (p.get("graph") || "").includes("i");
	state.folded = (p.get("graph") || "").includes("f");
	if ((state.inverted || state.folded) && isPath(p.get("in")))
		state.inside = p.get("in");
	state.center = whole("around", model.scopes.count, 0);
	state.tables = p.get("tables") === "1";
	const [flow, block] = numbers(p.get("flow") || "");
	if (flow <= model.flow.count)
		Object.assign(state, {flow, block: block || 0});
	const [paths, path] = numbers(p.get("path") || "");
	if (paths <= model.paths.count)
		Object.assign(state, {paths, path: path <= model.paths.runs.length ? path : 0});
	state.pathOrder = p.get("paths") === "count" ? "count" : "cost";
	state.reason = model.header.comparison ? 0 : whole("why", (model.header.reasons || []).length, 0);
	if (isPath(p.get("wait")))
		state.wait = p.get("wait");
	if (["light", "dark"].includes(p.get("theme")))
		state.theme = p.get("theme");
	state.pane = p.get("pane") !== "0";
	if (p.has("c"))
		state.columns = numbers(p.get("c")).filter((n) => n < metrics);
	decodeCompare(p, state, model);
	return state;
}
