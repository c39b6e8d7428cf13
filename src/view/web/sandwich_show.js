// SPDX-License-Identifier: Apache-2.0
// The sandwich on the page: the callers of a function above it, its callees below it, as two flame graphs or two tables.

import {formatWorded} from "./events.js";
import {formatPercent} from "./format.js";
import {ViewTree} from "./flame_trees.js";
import {Graph} from "./graph.js";
import {scopeName} from "./model.js";
import {firstFunction, functionOfScope} from "./overview.js";
import {CallersOf, CalleesOf} from "./sandwich.js";
import {Table} from "./table.js";
import {el, setAttribute, setText} from "./dom.js";

const HALVES = {upper: "callers", lower: "callees"};

// What the graph of a half shows (as GraphSource of graph_source.js does).
class HalfSource {
	constructor(app, name) {
		this.app = app;
		this.half = name;
		this.made = {};
	}
	get isPart() {
		return true;
	}
	icicle() {
		return this.half === "lower";
	}
	tree() {
		const view = this.app.view(this.half), {metric} = this.app.state;
		if (this.made.view !== view || this.made.metric !== metric)
			this.made = {view, metric, tree: new ViewTree(view, {column: "total", metric, root: view.top})};
		return this.made.tree;
	}
	selectedKey() {
		return this.app.sandwich.side === this.half ? this.app.selectedBy[this.half] || "" : "";
	}
	select(key) {
		this.app.sandwich.select(this.half, key);
	}
	isRoot(key) {
		return !key.includes(".");
	}
	// The box becomes the function in the middle.
	zoom(key) {
		const row = key ? this.app.view(this.half).rowOf(key) : null;
		if (row)
			this.app.showSandwich(row);
	}
}

// The application as the table of a half sees it: its rows, its table.
function partOf(app, name, own) {
	const others = {treeView: () => name, selectRow: (key, reveal) => app.sandwich.select(name, key, reveal)};
	return new Proxy(app, {
		get: (target, key, receiver) => key === "table" ? own.table : others[key] || Reflect.get(target, key, receiver),
		set: (target, key, value) => Reflect.set(target, key, value),
	});
}

export class Sandwich {
	constructor(app) {
		this.app = app;
		this.side = "lower"; // where something was selected last
		this.views = {};
		this.halves = {};
		this.title = el("h2", {});
		this.about = el("span", {class: "shown"});
		this.switch = el("button", {type: "button", title: "flame graphs or tables (T)",
			onclick: () => app.toggleTables()}, "Tables");
		this.element = el("div", {class: "sandwich"});
		for (const [name, what] of Object.entries(HALVES)) {
			const own = {box: el("section", {class: "half " + name, "aria-label": what}), what: el("h3", {}, what)};
			own.table = new Table(partOf(app, name, own));
			own.table.element.setAttribute("aria-label", what);
			own.graph = new Graph(app, new HalfSource(app, name));
			own.graph.canvas.setAttribute("aria-label", `${what}: arrow keys move, Enter puts the function into the middle`);
			own.box.append(own.what);
			this.halves[name] = own;
		}
		const center = el("div", {class: "center"}, this.title, this.about, this.switch);
		this.element.append(this.halves.upper.box, center, this.halves.lower.box);
	}
	// The views of a selection; name: of a half.
	view(name) {
		const {app, views} = this, {selection, state} = app;
		if (views.selection !== selection || views.center !== state.center) {
			const up = app.view("callers");
			this.views = {selection, center: state.center, upper: new CallersOf(up, state.center),
				lower: new CalleesOf(up, state.center)};
			delete app.outlines.upper;
			delete app.outlines.lower;
		}
		return this.views[name];
	}
	// What is around which function: that of a row, or the first one.
	centerOf(row) {
		const {app} = this;
		return Number(row && row.scope > 0 ? functionOfScope(app.model, row.scope) : firstFunction(app)) || 0;
	}
	asTables() {
		return this.app.state.tables || Boolean(this.app.comparison);
	}
	draw(reveal) {
		const {app} = this, tables = this.asTables(), {model, state} = app;
		const row = this.view("upper").top;
		setText(this.title, state.center ? scopeName(model, state.center) : "");
		setText(this.about, row && !app.comparison ? this.numbersOf(row) : "");
		setText(this.switch, tables ? "Graphs" : "Tables");
		this.switch.hidden = Boolean(app.comparison);
		for (const [name, half] of Object.entries(this.halves)) {
			const part = tables ? half.table : half.graph;
			if (half.box.lastChild !== part.element)
				half.box.replaceChildren(half.what, part.element);
			if (tables)
				this.openTop(name);
			half.table.setColumns(app.table.columns);
			part.draw(reveal);
		}
	}
	// "total 12.00% · 1.2 s, self 3.00%"
	numbersOf(row) {
		const {model, state: {metric}} = this.app, whole = model.whole[metric];
		return `total ${formatPercent(row.total[metric], whole)} · ${formatWorded(model.metrics[metric], row.total[metric])}, ` +
			`self ${formatPercent(row.self[metric], whole)}`;
	}
	// The function's own row is always open.
	openTop(name) {
		const {outline} = this.halves[name].table.app, key = String(this.app.state.center);
		if (!outline.open.has(key)) {
			outline.open.add(key);
			outline.build();
		}
	}
	paint() {
		if (!this.asTables())
			Object.values(this.halves).forEach((half) => half.graph.paint());
	}
	select(side, key, reveal = true) {
		this.side = side;
		this.app.selectedBy[side] = key;
		this.app.showSelected(reveal, false);
	}
	reveal(reveal) {
		for (const half of Object.values(this.halves))
			if (this.asTables())
				half.table.showSelected(reveal);
			else
				half.graph.reveal();
	}
	focus() {
		const half = this.halves[this.side];
		(this.asTables() ? half.table.element : half.graph.canvas).focus();
	}
}
