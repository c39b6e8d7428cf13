// SPDX-License-Identifier: Apache-2.0
// Puts it all together: the state, what is computed from it, and the parts that show it.

import {formatCount, formatPercent} from "./format.js";
import {scopeName} from "./model.js";
import {computeSelection, matchScopes} from "./select.js";
import {BottomUp, TopDown} from "./views.js";
import {Flat} from "./flat.js";
import {Folded} from "./folded.js";
import {Trail} from "./trail.js";
import {Outline} from "./outline.js";
import {columnCount, setColumns} from "./columns.js";
import {VIEWS, decodeState, encodeState, noView, usualSort} from "./state.js";
import {MemoryPlaces, isMemoryMetric, memoryColumns} from "./memory.js";
import {Waits} from "./waits_show.js";
import {Flow} from "./flow_show.js";
import {Paths} from "./paths_show.js";
import {MemoryBar} from "./memory_show.js";
import {chipsOf} from "./chips.js";
import {noHotPath} from "./hot_path.js";
import {firstFunction, functionOfNode, functionOfScope, nodeOfFunction} from "./overview.js";
import {isOwnOnly, usualMetrics} from "./events.js";
import {buildFrame} from "./frame.js";
import {setAttribute, setText} from "./dom.js";
import {Table} from "./table.js";
import {Graph} from "./graph.js";
import {Timeline} from "./timeline.js";
import {Sandwich} from "./sandwich_show.js";
import {Source} from "./source.js";
import {Detail} from "./detail.js";
import {comparedColumns, comparedSizes, comparedSort, comparedStatus, comparisonOf, nextCompareBase,
	nextCompareWidth} from "./compare_show.js";
import {keyActions} from "./keys.js";
import {copyOnDemand} from "./menu.js";

const SAID_FOR = 8000; // milliseconds

// What was made of a selection is kept with it; that of all samples stays.
export function viewOf(name, model, selection) {
	const {views} = selection;
	const make = {
		tree: () => new TopDown(model, selection), callers: () => new BottomUp(model, selection),
		flat: () => new Flat(model, selection), folded: () => new Folded(model, selection),
		foldedCallers: () => new BottomUp(model, selection, viewOf("callers", model, selection)),
		memory: () => new MemoryPlaces(viewOf("callers", model, selection)),
	};
	views[name] = views[name] || make[name]();
	return views[name];
}

export function wholeView(name, model) {
	return viewOf(name, model, computeSelection(model));
}

export class App {
	constructor(model) {
		this.model = model;
		setColumns(model, {compared: null, metric: 0, derived: []});
		this.selectedBy = {tree: "", callers: "", flat: ""};
		this.spent = null;
		this.trail = new Trail(this);
		this.table = new Table(this);
		this.graph = new Graph(this);
		this.timeline = new Timeline(this);
		this.sandwich = new Sandwich(this);
		this.memory = new MemoryBar(this);
		this.waits = new Waits(this);
		this.flow = new Flow(this);
		this.paths = new Paths(this);
		this.source = new Source(this);
		this.detail = new Detail(this);
		buildFrame(this);
		this.load();
		window.addEventListener("hashchange", () => {
			if (location.hash.slice(1) !== this.written)
				this.load();
		});
		document.addEventListener("keydown", (event) => this.key(event));
		copyOnDemand(this);
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
	}

	// The state

	load() {
		this.state = decodeState(location.hash.slice(1), this.model);
		if (setColumns(this.model, this.state))
			this.selection = null;
		this.limitSorts();
		this.trail.clear();
		this.open = {};
		for (const [name, keys] of Object.entries(this.state.open))
			this.open[name] = new Set(keys);
		const view = this.treeView();
		this.selectedBy = {tree: "", callers: "", flat: "", [view]: this.state.selected};
		this.select();
		this.selectFirst();
		this.render({reveal: "middle"});
	}
	// The overview has something selected: what the address says, or the first function; and the sandwich has a function.
	selectFirst() {
		if (this.state.view === "sandwich" && !this.state.center)
			this.setCenter(null);
		if (this.state.view === "memory")
			this.memory.select();
		if (this.state.view === "waits")
			this.state.metric = this.waits.metric();
		if (this.state.view === "flow" && !this.state.flow)
			this.flow.choose(0);
		if (this.state.view === "paths")
			this.paths.begin();
		if (this.state.view !== "overview")
			return;
		if (!this.view("callers").rowOf(this.selectedBy.callers || "0"))
			this.selectedBy.callers = firstFunction(this);
		if (this.state.node && this.view("tree").rowOf(String(this.state.node)))
			this.selectedBy.tree = String(this.state.node);
		else
			this.linkFunction();
	}
	// Selects in the overview the node that stands for the selected function.
	linkFunction() {
		this.state.node = 0;
		const row = this.view("callers").rowOf(this.selectedBy.callers || "0");
		this.selectedBy.tree = String(nodeOfFunction(this, row) || "");
	}
	// Writes the state into the address, as a step that can be taken back (push) or not: a little later, so
	// that nobody waits for it.
	save(push = false) {
		clearTimeout(this.saving);
		this.pushing = push || this.pushing;
		this.saving = setTimeout(() => this.write(), this.pushing ? 0 : 150);
	}
	write() {
		for (const name of Object.keys(this.open))
			this.state.open[name] = [...this.open[name]];
		this.state.selected = this.selectedKey();
		this.written = encodeState(this.state);
		if (this.pushing)
			history.pushState(null, "", "#" + this.written);
		else
			history.replaceState(null, "", "#" + this.written);
		this.pushing = false;
	}
	// What is drawn instead of a table, or null; it shows the tree.
	picture() {
		return {graph: this.graph, time: this.timeline, sandwich: this.sandwich, waits: this.waits, flow: this.flow, paths: this.paths}[this.state.view] || null;
	}
	showsGraph() {
		return this.state.view === "graph" || this.state.view === "overview";
	}
	// What the view consists of, from the top.
	parts() {
		const above = {overview: this.graph, memory: this.memory}[this.state.view];
		return above ? [above, this.table] : [this.picture() || this.table];
	}
	repaint() {
		if (this.picture())
			this.picture().paint();
		else if (this.showsGraph())
			this.graph.paint();
	}
	// The view whose rows are those that are shown.
	treeView() {
		const {view} = this.state;
		return view === "graph" ? this.graph.source.name() : view === "sandwich" ? this.sandwich.side :
			["time", "waits", "flow", "paths"].includes(view) ? "tree" : view === "overview" ? "callers" : view;
	}
	selectedKey() {
		return this.selectedBy[this.treeView()] || "";
	}
	// The same of what is searched in.
	shownKey() {
		const {view, wait, block, paths} = this.state;
		return view === "waits" ? wait : view === "flow" ? String(block) : view === "paths" ? String(paths) : this.selectedKey();
	}
	// Of the table: [{metric, column}…]
	columns() {
		const {model} = this, added = Array.from({length: columnCount(model)}, (_, m) => m).slice(model.recorded.metrics.length);
		if (this.comparison)
			return comparedColumns(this);
		return this.state.view === "memory" ? memoryColumns(model, this.state.metric) : [...this.shownMetrics(), ...added].flatMap((metric) =>
			(isOwnOnly(model.metrics[metric] || {}) ? ["self"] : ["total", "self"]).map((column) => ({metric, column})));
	}
	shownMetrics() {
		const {columns, metric} = this.state;
		return columns && columns.length ? columns : usualMetrics(this.model.recorded.metrics, metric);
	}

	// What is computed

	select() {
		const {filters, threads, zoom, time, reason} = this.state, chosen = threads ? new Set(threads) : null;
		const reuse = this.selection?.hasMemory ? this.selection : this.spent;
		this.comparison = comparisonOf(this.model, this.state);
		this.selection = this.comparison ? this.comparison.select({filters, zoom, threads: chosen}, reuse) :
			computeSelection(this.model, {filters, threads: chosen, zoom, time, reason}, reuse);
		this.spent = reuse?.hasMemory ? reuse : null; // what is shown now did not need its memory
		this.outlines = {};
	}
	view(name) {
		if (name === "upper" || name === "lower")
			return this.sandwich.view(name);
		const view = viewOf(name, this.model, this.selection);
		if (name === "flat" && view.flatten !== this.state.flatten)
			view.setFlatten(this.state.flatten);
		return view;
	}
	get outline() {
		return this.outlineOf(this.treeView());
	}
	outlineOf(name) {
		if (!this.outlines[name]) {
			const open = this.open[name] = this.open[name] || new Set();
			const sort = name === this.treeView() ? this.sorting() : this.state.sorts[this.sortName(name)];
			if (name === "tree")
				open.add(String(this.state.zoom));
			this.outlines[name] = new Outline(this.model, this.view(name), sort, open);
		}
		return this.outlines[name];
	}
	// Which order a view has: some have one together.
	sortName(name = this.treeView()) {
		return {upper: "sandwich", lower: "sandwich", folded: "tree", foldedCallers: "callers"}[name] || name;
	}
	get sort() {
		return this.state.sorts[this.sortName()];
	}
	sorting() {
		if (this.comparison)
			return comparedSort(this);
		return ["total", "self", "name"].includes(this.sort.column) ? this.sort : usualSort(this.sortName(), this.sort.metric);
	}
	// No table is ordered by a column that is gone.
	limitSorts() {
		const {sorts, metric} = this.state;
		for (const [name, sort] of Object.entries(sorts))
			if (sort.metric >= columnCount(this.model))
				sorts[name] = usualSort(name, metric);
	}
	selectedRow() {
		const key = this.selectedKey();
		if (this.state.view === "overview" && this.state.node)
			return this.view("tree").rowOf(String(this.state.node));
		if (this.picture())
			return key ? this.view(this.treeView()).rowOf(key) : null;
		const place = this.outline.placeOf(key);
		return place >= 0 ? this.outline.entry(place).row : key ? this.outline.view.rowOf(key) : null;
	}

	// What is shown

	// later: the table first, the pane beside it afterwards; reveal: as of the table's draw
	render({later = false, reveal = false} = {}) {
		const {state} = this;
		document.documentElement.dataset.theme = state.theme;
		this.tabs.forEach((tab, i) => {
			const here = VIEWS[i][0] === state.view;
			setAttribute(tab, "aria-selected", String(here));
			tab.tabIndex = here ? 0 : -1;
			tab.hidden = Boolean(noView(this.model, VIEWS[i][0]));
		});
		this.events.show();
		if (this.search.value !== state.search)
			this.search.value = state.search;
		this.pane.hidden = !state.pane;
		const parts = this.parts(), elements = parts.map((part) => part.element);
		if (this.main.children.length !== parts.length || this.main.firstChild !== elements[0])
			this.main.replaceChildren(...elements);
		this.main.classList.toggle("overview", parts.length > 1);
		this.main.setAttribute("aria-labelledby", "tab-" + state.view);
		this.matched = state.search ? matchScopes(this.model, "name", state.search) : null;
		this.table.setColumns(this.columns());
		parts.forEach((part) => part.draw(reveal));
		this.renderChips();
		this.renderCount();
		if (later)
			setTimeout(() => this.showRow());
		else
			this.showRow();
	}
	renderChips() {
		const chips = chipsOf(this);
		this.chips.replaceChildren(...chips);
		this.chips.hidden = !chips.length;
	}
	renderCount() {
		const where = ["waits", "flow", "paths"].includes(this.state.view) ? this.picture() : this.view(this.treeView());
		this.matches = this.state.search ? where.search(this.state.search) : null;
		this.showCount();
	}
	showCount() {
		const {matches} = this, at = matches ? matches.indexOf(this.shownKey()) : -1;
		setText(this.count, !matches ? "" : !matches.length ? "no match" :
			`${at >= 0 ? at + 1 + "/" : ""}${formatCount(matches.length)}`);
	}
	showRow() {
		if (["waits", "flow", "paths"].includes(this.state.view))
			return this.picture().showRow();
		const row = this.selectedRow();
		if (this.state.pane) {
			this.detail.show(row);
			this.source.showRow(row);
		}
		setText(this.status, row && this.comparison ? comparedStatus(this, row) : row ? `${row.scope < 0 ? row.label : scopeName(this.model, row.scope)}: total ` +
			`${formatPercent(row.total[this.state.metric], this.model.whole[this.state.metric])}, self ` +
			`${formatPercent(row.self[this.state.metric], this.model.whole[this.state.metric])}` : "");
	}
	isMatch(row) {
		return Boolean(this.matched && row.scope >= 0 && this.matched[row.scope]);
	}

	// What is done

	// reveal: as of the table's draw; anew: whether its rows are others
	selectRow(key, reveal = true, anew = false) {
		this.selectedBy[this.treeView()] = key;
		if (this.state.view === "overview")
			this.linkFunction();
		this.showSelected(reveal, anew);
	}
	// The same of a node of the tree, as it is chosen in the graph.
	selectNode(node) {
		if (this.state.view !== "overview")
			return this.selectRow(String(node));
		this.state.node = node;
		this.selectedBy.tree = String(node);
		this.selectedBy.callers = functionOfNode(this, node);
		this.showSelected("middle", false);
	}
	// The same of a box of a graph that is not the tree as it is.
	selectBox(name, key) {
		if (this.state.view !== "overview")
			return this.selectRow(key);
		const row = key ? this.view(name).rowOf(key) : null;
		this.selectedBy[name] = key;
		this.state.node = 0;
		if (row && name !== "callers")
			this.selectedBy.callers = functionOfScope(this.model, row.scope);
		this.outline.reveal(this.selectedBy.callers || "0");
		this.showSelected("middle", true);
	}
	showSelected(reveal, anew) {
		if (this.state.view === "time")
			this.timeline.paint();
		if (this.state.view === "sandwich")
			this.sandwich.reveal(reveal);
		if (this.showsGraph())
			this.graph.reveal();
		if (!this.picture() && anew)
			this.table.draw(reveal);
		else if (!this.picture())
			this.table.showSelected(reveal);
		this.showRow();
		this.showCount();
		this.save();
	}
	toggleRow(key) {
		const {open} = this.outline;
		if (open.has(key))
			open.delete(key);
		else
			open.add(key);
		this.outline.build();
		this.table.draw();
		this.save();
	}
	openAll(key) {
		this.outline.openAll(key);
		this.table.draw();
		this.save();
	}
	// In the overview it is that of the graph.
	hotPath() {
		if (this.state.view === "flow")
			return this.flow.select(this.flow.worst());
		if (this.state.view === "paths")
			return this.paths.hottest();
		const name = this.state.view === "overview" ? "tree" : this.treeView(), outline = this.outlineOf(name);
		const start = this.state.view === "overview" ? String(this.state.node || this.state.zoom) : this.selectedKey();
		const {metric} = this.state, inverted = this.state.view === "graph" && this.treeView().endsWith("allers");
		const large = this.comparison ? [(row) => Math.abs(this.comparison.rowMeasure(row, "total").by),
			(level) => comparedSizes(this, level)] :
			inverted ? [(row) => row.self[metric], (level) => level.numbers("self", metric)] : [];
		const end = outline.hotPath(start, this.state.metric, ...large);
		if (!end || end === start)
			this.say(noHotPath(this, outline, start, large[1]));
		else if (this.state.view === "overview")
			this.selectNode(Number(end));
		else
			this.selectRow(end, "middle", true);
	}
	// Tells what was done, or why nothing was.
	say(text) {
		setText(this.said, text);
		this.said.hidden = false;
		clearTimeout(this.saying);
		this.saying = setTimeout(() => { this.said.hidden = true; }, SAID_FOR);
	}
	setView(view) {
		const why = noView(this.model, view, this.comparison);
		if (why)
			return this.say(why);
		if (view === "sandwich")
			return this.showSandwich(this.selectedRow());
		if (view === "flow")
			return this.flow.open(this.selectedRow());
		if (view === "paths")
			return this.paths.open(this.selectedRow());
		const row = this.selectedRow();
		const from = this.treeView();
		this.state.view = view;
		const to = this.treeView();
		if (row && from !== to && !this.selectedBy[to])
			this.carry(row, to);
		if (to === "tree" && this.selectedKey() && this.view("tree").rowOf(this.selectedKey()))
			this.outline.reveal(this.selectedKey());
		if (view === "overview" && from === "tree" && row && row.node > 0) {
			this.state.node = row.node;
			this.selectedBy.callers = functionOfNode(this, row.node);
		}
		this.selectFirst();
		this.render({reveal: "middle"});
		this.save(true);
		this.focus();
	}
	focus() {
		if (["time", "sandwich", "waits", "flow", "paths"].includes(this.state.view))
			this.picture().focus();
		else
			(this.state.view === "graph" ? this.graph.canvas : this.table.element).focus();
	}
	// Selects a node of the tree, and opens the way to it.
	openTo(node) {
		this.outline.reveal(String(node));
		this.selectRow(String(node));
	}
	// The row of another view that stands for the same.
	carry(row, to) {
		const {structure} = to === "flat" ? this.view("flat") : {};
		const key = (to === "callers" || to === "foldedCallers") && row.scope >= 0 ? functionOfScope(this.model, row.scope) :
			to === "flat" && row.node > 0 ? String(structure.of[row.node]) : "";
		if (key && this.view(to).rowOf(key) && (to !== "flat" || this.view(to).isShown(key))) {
			this.selectedBy[to] = key;
			this.outlineOf(to).reveal(key);
		}
	}
	// Callers and callees of what a row is, or is in.
	showSandwich(row) {
		this.trail.remember();
		this.setCenter(row);
		this.state.view = "sandwich";
		this.render();
		this.save(true);
		this.focus();
	}
	setCenter(row) {
		this.state.center = this.sandwich.centerOf(row);
		this.selectedBy.upper = this.selectedBy.lower = String(this.state.center || "");
		this.sandwich.side = "lower";
	}
	toggleTables() {
		if (this.state.view !== "sandwich")
			return;
		this.state.tables = !this.state.tables;
		this.render();
		this.save();
		this.focus();
	}
	// Makes the columns anew that are not recorded ones.
	columnsChanged() {
		if (setColumns(this.model, this.state)) {
			this.selection = null;
			this.select();
		}
		this.outlines = {};
		this.limitSorts();
		this.render();
		this.save(true);
	}
	// compared: {by, threads}, or null
	compare(compared) {
		this.state.compared = compared;
		this.columnsChanged();
	}
	setDerived(derived) {
		this.state.derived = derived;
		this.columnsChanged();
	}
	setMetric(metric) {
		const {view} = this.state, {model} = this;
		this.state.metric = metric;
		if ((view === "memory" && !isMemoryMetric(model, metric)) || (view === "waits" && !model.recorded.metrics[metric].waits))
			this.state.view = "overview"; // those show other things
		if (this.state.compared)
			this.columnsChanged();
		else if (this.comparison)
			this.select();
		for (const sort of Object.values(this.state.sorts))
			sort.metric = metric;
		if (this.state.view !== view) {
			this.outlines = {};
			this.selectFirst();
		}
		this.sortBy(this.sorting().column, metric, this.sorting().up);
	}
	sortBy(column, metric, up) {
		const sort = this.sorting();
		const same = sort.column === column && (sort.metric === metric || column === "name");
		const turned = up === undefined ? same ? !sort.up : column === "name" : up;
		this.state.sorts[this.sortName()] = {column, metric, up: turned};
		if (column !== "name" && metric < this.model.recorded.metrics.length)
			this.state.metric = metric;
		this.outlines = {};
		this.render({reveal: true});
		this.save();
	}
	// Sorts by the column to the left or right.
	moveSort(by) {
		const list = [{column: "name", metric: 0}, ...this.table.columns];
		const sort = this.sorting();
		const at = list.findIndex((c) => c.column === sort.column &&
			(c.column === "name" || c.metric === sort.metric));
		const next = list[(at + by + list.length) % list.length];
		this.sortBy(next.column, next.metric, next.column === "name");
	}
	changed(push = true) {
		this.select();
		if (this.selectedKey() && !this.view(this.treeView()).rowOf(this.selectedKey()))
			this.selectedBy[this.treeView()] = "";
		this.selectFirst();
		this.render({later: true, reveal: true});
		this.save(push);
	}
	addFilter(filter) {
		this.state.filters = [...this.state.filters, filter];
		this.changed();
	}
	removeFilter(index) {
		this.state.filters = this.state.filters.filter((_, i) => i !== index);
		this.changed();
		this.table.element.focus();
	}
	filterRow(how, what) {
		const row = this.selectedRow();
		if (!row || row.scope <= 0)
			return;
		const escape = (text) => "^" + text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&") + "$";
		const module = this.model.header.modules[this.model.scopes.module[row.scope]];
		if (what === "name")
			this.addFilter({how, what, text: escape(scopeName(this.model, row.scope))});
		else if (module && module.path)
			this.addFilter({how, what, text: escape(module.path)});
	}
	undo() {
		const {state} = this;
		if (state.filters.length)
			this.removeFilter(state.filters.length - 1);
		else if (state.threads)
			this.setThreads(null);
		else if (state.compared)
			this.compare(null);
		else if (state.time)
			this.setTime(null);
		else if (state.reason)
			this.setReason(0);
		else if (state.inside)
			this.setInside("");
		else if (state.zoom)
			this.zoomTo(0);
	}
	setThreads(threads) {
		this.state.threads = threads;
		this.changed();
	}
	// Counts only waits for this reason (header.reasons); 0: all samples.
	setReason(reason) {
		const focused = document.activeElement?.closest(".reasons");
		this.state.reason = reason;
		this.changed();
		if (focused)
			this.waits.reasons.querySelector(reason ? "[aria-pressed=true]" : "button")?.focus();
	}
	// What is compared (state.compare) and the limits of it.
	setCompare(compare, limits = {}) {
		Object.assign(this.state, limits, {compare});
		if (compare && compare !== "off") {
			this.state.reason = 0;
			if (["memory", "waits", "flow", "paths"].includes(this.state.view))
				this.state.view = "overview";
		}
		this.changed();
	}
	nextBase() {
		if (!this.comparison)
			return;
		this.state.base = nextCompareBase(this);
		this.outlines = {};
		this.render();
		this.save();
	}
	toggleShares() {
		if (!this.comparison)
			return;
		this.state.shares = !this.state.shares;
		this.comparison.setShares(this.state.shares);
		this.outlines = {};
		this.render();
		this.save(true);
	}
	nextWidth() {
		if (!this.comparison)
			return;
		this.state.width = nextCompareWidth(this);
		this.render();
		this.save();
	}
	toggleUnsure() {
		this.state.unsure = !this.state.unsure;
		this.render();
		this.save();
	}
	// The time line: stacks over time of the selected thread.
	toggleStacks() {
		if (this.state.view !== "time")
			return;
		this.state.stacks = !this.state.stacks;
		this.timeline.draw();
		this.save();
	}
	// Counts only a part of the time, by the time line.
	setTime(time) {
		if (!time && !this.state.time)
			return;
		this.state.time = time;
		this.changed();
	}
	setColumns(metrics) {
		this.state.columns = metrics;
		this.render();
		this.save();
	}
	zoomTo(node) {
		if (node === this.state.zoom)
			return;
		const {end} = this.model.nodes, isIn = (inner, outer) => inner > outer && inner < end[outer];
		this.trail.zoom(!isIn(this.state.zoom, node), (before) => isIn(node, before.zoom));
		this.state.zoom = node;
		this.state.inside = "";
		this.selectedBy.tree = this.selectedBy.tree || String(node);
		this.changed();
	}
	// Zooms into a box of a graph that is not the tree as it is.
	setInside(key) {
		if (key === this.state.inside)
			return;
		const isIn = (inner, outer) => inner !== outer && (!outer || inner.startsWith(outer + "."));
		this.trail.zoom(!isIn(this.state.inside, key), (before) => isIn(key, before.inside));
		this.state.inside = key;
		this.render();
		this.save(true);
	}
	// The graph: inverted, folded.
	toggleGraph(what) {
		const row = this.selectedRow();
		this.state[what] = !this.state[what];
		this.state.inside = "";
		if (row && this.state.view === "graph" && !this.selectedKey())
			this.carry(row, this.treeView());
		this.render();
		this.save(true);
	}
	zoomIn() {
		if (this.state.view === "graph" && !this.graph.source.isPlain())
			return this.setInside(this.selectedKey());
		const row = this.selectedRow();
		if (row && this.state.view === "sandwich")
			this.showSandwich(row);
		else if (row && row.node > 0)
			this.zoomTo(row.node);
		else if (row && row.scope > 0)
			this.filterRow("keep", "name");
	}
	// To what is around.
	zoomOut() {
		if (this.state.inside)
			this.setInside(this.view(this.graph.source.name()).parentKey(this.state.inside));
		else if (this.state.zoom)
			this.zoomTo(Math.max(0, this.model.nodes.parent[this.state.zoom]));
	}
	flatten(by) {
		if (this.state.view !== "flat")
			return;
		const next = Math.max(0, Math.min(19, this.state.flatten + by));
		const flat = this.view("flat"), before = flat.level(null).ids;
		flat.setFlatten(next);
		if (by > 0 && flat.level(null).ids.every((id, i) => id === before[i])) // there is nothing below
			return flat.setFlatten(this.state.flatten);
		this.state.flatten = next;
		delete this.outlines.flat;
		if (this.selectedKey() && !flat.isShown(this.selectedKey()))
			this.selectedBy.flat = "";
		this.render();
		this.save();
	}
	flip() {
		this.state.icicle = !this.state.icicle;
		this.graph.draw();
		this.save();
	}
	switchTheme() {
		const dark = this.state.theme ? this.state.theme === "dark" :
			matchMedia("(prefers-color-scheme: dark)").matches;
		this.state.theme = dark ? "light" : "dark";
		document.documentElement.dataset.theme = this.state.theme;
		this.repaint();
		this.save();
	}
	setSearch(text) {
		this.state.search = text;
		this.matched = text ? matchScopes(this.model, "name", text) : null;
		this.renderCount();
		if (this.showsGraph())
			this.graph.draw();
		if (!this.picture())
			this.table.list.draw(true);
		else if (!this.showsGraph())
			this.picture().draw();
		this.save();
	}
	nextMatch(by) {
		const {matches} = this;
		if (!matches || !matches.length)
			return;
		const at = matches.indexOf(this.shownKey());
		const next = at < 0 ? by > 0 ? 0 : matches.length - 1 : (at + by + matches.length) % matches.length;
		if (this.state.view === "waits")
			return this.waits.select(matches.key(next));
		if (this.state.view === "flow")
			return this.flow.select(Number(matches.key(next)) - 1);
		if (this.state.view === "paths")
			return this.paths.choose(Number(matches.key(next)) - 1);
		this.outline.reveal(matches.key(next));
		this.selectRow(matches.key(next), "middle", true);
	}
	searchKey(event) {
		if (event.key === "Enter") {
			event.preventDefault();
			this.nextMatch(event.shiftKey ? -1 : 1);
		} else if (event.key === "Escape") {
			this.setSearch("");
			this.search.value = "";
			this.focus();
		}
	}
	switchInstructions() {
		this.state.instructions = !this.state.instructions;
		this.state.pane = true;
		this.render();
		this.save();
	}
	switchSyntax() {
		this.state.intel = !this.state.intel;
		this.showRow();
		this.save();
	}
	togglePane() {
		this.state.pane = !this.state.pane;
		this.render();
		this.save();
	}
	tabKey(event) {
		const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
		if (!by)
			return false;
		const there = VIEWS.map(([name], i) => [name, i]).filter(([name]) => !noView(this.model, name));
		const at = there.findIndex(([name]) => name === this.state.view);
		const [view, tab] = there[(at + by + there.length) % there.length];
		this.setView(view);
		this.tabs[tab].focus();
		return true;
	}
	key(event) {
		const {target} = event;
		if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, dialog"))
			return;
		if (target.closest("[role=tab]") && this.tabKey(event)) {
			event.preventDefault();
			return;
		}
		const action = keyActions(this)[event.key];
		if (!action)
			return;
		event.preventDefault();
		action();
	}
}
