// SPDX-License-Identifier: Apache-2.0
// Functions whose paths were counted, and below them the paths of the selected one, the costliest first. The selected path is
// marked in the source beside them, and in the control flow.

import {baseName, formatCount, formatPercent, plural} from "./format.js";
import {scopesOfCode} from "./flow_show.js";
import {PATH_ORDERS, HOT_PART, allInstructions, functionOrder, hotPaths, pathCost, pathLines, pathOrder, pathRanges, pathsLeftOut} from "./paths.js";
import {compilePattern} from "./select.js";
import {VirtualList, el, setAttribute, setClass, setStyle, setText} from "./dom.js";

const PATH_ROW = 24;

// A list of rows that the keyboard moves in. what: {name, label, titles, count(), fill(cells, i), isAt(i), isMatch(i), at(), select(i), keys}
class Grid {
	constructor(what) {
		this.what = what;
		this.scroller = el("div", {class: "scroller", role: "presentation"});
		const head = el("div", {class: `counted ${what.name} head`, role: "row"}, ...what.titles.map((title) => el("span", {role: "columnheader"}, title)));
		this.element = el("div", {class: "countedlist", role: "grid", tabIndex: 0, "aria-label": what.label,
			onkeydown: (event) => this.key(event), onclick: (event) => this.click(event)}, head, this.scroller);
		this.list = new VirtualList(this.scroller, PATH_ROW, () => this.make(), (row, i) => this.fill(row, i));
	}
	make() {
		return el("div", {class: "counted", role: "row"}, ...this.what.titles.map(() => el("span", {role: "gridcell"})));
	}
	fill(row, i) {
		const {what} = this, selected = what.isAt(i);
		if (i >= what.count())
			return;
		row.index = i;
		row.id = what.name + i;
		what.fill(row.children, i);
		setAttribute(row, "aria-selected", String(selected));
		setAttribute(row, "aria-rowindex", i + 2);
		setClass(row, `counted ${what.name}${selected ? " selected" : ""}${what.isMatch(i) ? " match" : ""}`);
	}
	draw(reveal) {
		const count = this.what.count();
		setAttribute(this.element, "aria-rowcount", count + 1);
		this.showActive();
		this.list.set(count, reveal ? this.what.at() : -1, reveal === "middle");
	}
	// What is selected has changed.
	showActive() {
		const at = this.what.at();
		setAttribute(this.element, "aria-activedescendant", at >= 0 ? this.what.name + at : null);
	}
	reveal() {
		this.showActive();
		if (this.what.at() >= 0)
			this.list.aim(this.what.at(), false);
		this.list.draw(true);
	}
	click(event) {
		const row = event.target.closest(".counted:not(.head)");
		if (row)
			this.what.select(row.index);
	}
	key(event) {
		const at = this.what.at(), last = this.what.count() - 1, action = this.what.keys[event.key];
		const to = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + this.list.page(), PageUp: at - this.list.page(), Home: 0, End: last}[event.key];
		if (event.ctrlKey || event.metaKey || event.altKey || (to === undefined && !action))
			return;
		event.preventDefault();
		event.stopPropagation();
		if (action)
			action();
		else if (last >= 0)
			this.what.select(Math.max(0, Math.min(last, to)));
	}
}

function bar(cell, part, whole) {
	setStyle(cell, "background-size", `${whole ? Math.min(100, 100 * part / whole).toFixed(1) : 0}% 100%`);
}

export class Paths {
	constructor(app) {
		this.app = app;
		const button = (text, title, run) => el("button", {type: "button", title, onclick: run}, text);
		this.orders = PATH_ORDERS.map(([order, words]) => button(words, "order by this (r: the other)", () => this.setOrder(order)));
		this.note = el("span", {class: "left-out"});
		this.hot = el("span", {class: "left-out", title: `hot: with at least ${100 * HOT_PART}% of all counted instructions`});
		this.legend = el("div", {class: "legend"}, el("span", {}, "order by"), ...this.orders,
			button("Control flow", "draw the path through the control flow (Enter)", () => this.openFlow()), this.hot, this.note);
		this.functions = new Grid({
			name: "countedfunction", label: "functions with counted paths",
			titles: ["share", "instructions", "calls", "paths", "hottest", "function"],
			count: () => app.model.paths.count, at: () => this.order.indexOf(this.f), isAt: (i) => this.order[i] === this.f,
			isMatch: (i) => Boolean(this.matched && this.matched.test(this.nameOf(this.order[i]))),
			fill: (cells, i) => this.fillFunction(cells, this.order[i]), select: (i) => this.choose(this.order[i]),
			keys: {ArrowRight: () => this.paths.element.focus(), Enter: () => this.paths.element.focus(), r: () => this.turnOrder()},
		});
		this.paths = new Grid({
			name: "countedpath", label: "paths of the function", titles: ["share", "up to here", "count", "length", "path"],
			count: () => this.list.list.length, at: () => this.list.list.indexOf(this.p), isAt: (i) => this.list.list[i] === this.p,
			isMatch: () => false, fill: (cells, i) => this.fillPath(cells, i), select: (i) => this.select(this.list.list[i]),
			keys: {ArrowLeft: () => this.functions.element.focus(), Enter: () => this.openFlow(), r: () => this.turnOrder()},
		});
		this.heading = el("h3", {class: "countedtitle"});
		this.element = el("div", {class: "counts"}, this.legend, this.functions.element, this.heading, this.paths.element);
	}
	// Which function is looked at, and which of its paths; -1: there are none.
	get f() {
		return Math.min(this.app.state.paths - 1, this.app.model.paths.count - 1);
	}
	get p() {
		return this.app.state.path - 1;
	}
	get order() {
		return functionOrder(this.app.model, this.app.state.pathOrder);
	}
	get list() {
		return this.f < 0 ? {list: [], upTo: []} : pathOrder(this.app.model, this.f, this.app.state.pathOrder);
	}
	nameOf(f) {
		return this.app.model.strings[this.app.model.paths.short[f]];
	}
	// Selects something, if nothing is.
	begin() {
		const {state, model} = this.app;
		if (!state.paths && model.paths.count)
			state.paths = this.order[0] + 1;
		const p = state.path - 1, {first} = model.paths;
		if (this.f >= 0 && (p < first[this.f] || p >= first[this.f + 1]))
			state.path = (this.list.list[0] ?? -1) + 1;
	}

	// What is shown

	draw(reveal = false) {
		const {app} = this, {state} = app;
		this.begin();
		this.matched = state.search ? compilePattern(state.search) : null;
		this.orders.forEach((button, i) => setAttribute(button, "aria-pressed", String(PATH_ORDERS[i][0] === state.pathOrder)));
		const {count, of, part} = hotPaths(app.model);
		setText(this.hot, `${formatCount(count)} of ${plural(of, "path")} ${count === 1 ? "is" : "are"} hot, with ${formatPercent(part, 1)} of the instructions`);
		setText(this.note, app.selection.narrowed ? "This is of the whole recording, whatever is filtered." : "");
		this.functions.draw(reveal);
		this.drawPaths(reveal);
	}
	drawPaths(reveal) {
		const {model} = this.app, {f} = this;
		this.heading.hidden = f < 0;
		if (f >= 0)
			setText(this.heading, this.titleOf(model, f));
		this.paths.draw(reveal);
	}
	titleOf(model, f) {
		const {paths} = model, {count, cost} = pathsLeftOut(model, f);
		const more = count > 0 ? ` — ${plural(count, "more path")} with ${formatPercent(cost, paths.instructions[f])} of its instructions, which report --by=path --limit 0 lists` : "";
		const open = paths.open[f] ? `, ${formatCount(paths.open[f])} not seen to end` : "";
		return `${this.nameOf(f)}: ${plural(paths.calls[f], "call")}${open}, ${formatCount(paths.taken[f])} of ${formatCount(paths.possible[f])} paths taken${more}` +
			(paths.unknown[f] ? `; ${formatCount(paths.unknown[f])} times it is not known which` : "") + (paths.wrong[f] ? "; its counts do not add up" : "");
	}
	paint() {}
	fillFunction(cells, f) {
		const {model} = this.app, {paths} = model, whole = allInstructions(model), path = model.header.modules[paths.module[f]]?.path || "";
		const [share, instructions, calls, taken, hottest, name] = cells, first = paths.first[f];
		setText(share, formatPercent(paths.instructions[f], whole));
		bar(share, paths.instructions[f], whole);
		setText(instructions, formatCount(paths.instructions[f]));
		setText(calls, formatCount(paths.calls[f]));
		setText(taken, `${formatCount(paths.taken[f])} of ${formatCount(paths.possible[f])}`);
		setText(hottest, first < paths.first[f + 1] ? formatPercent(pathCost(paths, first), paths.instructions[f]) : "");
		setText(name, this.nameOf(f) + (paths.wrong[f] ? " ⚠" : ""));
		name.title = `${model.strings[paths.name[f]]}  (${path})`;
	}
	fillPath(cells, i) {
		const {model} = this.app, {paths} = model, {list, upTo} = this.list, p = list[i];
		const [share, sum, count, length, path] = cells, whole = paths.instructions[this.f];
		setText(share, formatPercent(pathCost(paths, p), whole));
		bar(share, pathCost(paths, p), whole);
		setText(sum, formatPercent(upTo[i], 1));
		setText(count, formatCount(paths.runs[p]));
		setText(length, formatCount(paths.length[p]));
		setText(path, this.wordsOf(p));
		path.title = this.wordsOf(p);
	}
	wordsOf(p) {
		const {strings, paths} = this.app.model;
		return strings[paths.text[p]] + (paths.by[p] ? `  [by ${strings[paths.by[p]]}]` : "");
	}
	search(text) {
		const pattern = compilePattern(text), keys = this.order.filter((f) => pattern && pattern.test(this.nameOf(f))).map((f) => String(f + 1));
		return {length: keys.length, key: (i) => keys[i], indexOf: (key) => keys.indexOf(key)};
	}

	// What is done

	// Another function, and its first path.
	choose(f) {
		this.app.state.paths = f + 1;
		this.app.state.path = 0;
		this.begin();
		this.functions.reveal();
		this.paths.list.scrollTo(0);
		this.drawPaths(true);
		this.changed();
	}
	select(p) {
		this.app.state.path = p + 1;
		this.paths.reveal();
		this.changed();
	}
	changed() {
		this.app.showRow();
		this.app.showCount();
		this.app.save();
	}
	setOrder(order) {
		this.app.state.pathOrder = order;
		this.draw("middle");
		this.app.save();
	}
	turnOrder() {
		this.setOrder(PATH_ORDERS.find(([order]) => order !== this.app.state.pathOrder)[0]);
	}
	hottest() {
		if (this.app.model.paths.count)
			this.choose(this.order[0]);
	}
	// The function of a row, if its paths were counted.
	open(row) {
		const {app} = this, {model} = app, index = app.flow.placeOf(row);
		app.trail.remember();
		const f = index < 0 ? -1 : Array.prototype.indexOf.call(model.paths.flow, index);
		if (f >= 0)
			Object.assign(app.state, {paths: f + 1, path: 0});
		app.state.view = "paths";
		this.begin();
		app.render({reveal: "middle"});
		app.save(true);
		this.focus();
	}
	openFlow() {
		const {app} = this;
		if (this.f < 0)
			return;
		app.trail.remember();
		app.state.view = "flow";
		app.state.flow = app.model.paths.flow[this.f] + 1;
		app.state.block = app.flow.firstOfPath() + 1;
		app.render({reveal: true});
		app.save(true);
		app.focus();
	}
	focus() {
		this.functions.element.focus();
	}

	// The pane

	showRow() {
		const {app} = this, {f, p} = this;
		setText(app.status, f < 0 ? "" : p < 0 ? this.nameOf(f) : `${this.nameOf(f)}: ${this.wordsOf(p)}`);
		if (app.state.pane)
			showPath(app, f, p, this);
	}
}

// Fills the pane with what is known of a path, and marks its lines or instructions.
function showPath(app, f, p) {
	const {element} = app.detail;
	element.textContent = "";
	if (f < 0 || p < 0)
		return app.source.show(0, 0, 0, "Select a path to see its source.");
	element.append(el("h2", {class: "full"}, app.paths.nameOf(f)), pathFacts(app, f, p));
	showWay(app, f, p);
}

function pathFacts(app, f, p) {
	const {model} = app, {paths} = model, {list, upTo} = pathOrder(model, f, app.state.pathOrder), at = list.indexOf(p), facts = el("dl");
	const put = (word, text) => facts.append(el("dt", {}, word), el("dd", {}, text));
	put("path", `${at + 1} of ${formatCount(paths.taken[f])} (number ${formatCount(paths.id[p])})`);
	put("taken", `${plural(paths.runs[p], "time")}, ${plural(paths.length[p], "instruction")} each`);
	put("share", `${formatPercent(pathCost(paths, p), paths.instructions[f])} of the function's instructions; with all before it ${formatPercent(upTo[at], 1)}`);
	put("goes", app.paths.wordsOf(p));
	put("in", `${baseName(model.header.modules[paths.module[f]]?.path || "")}${paths.file[f] ? ", " + baseName(model.strings[paths.file[f]]) : ""}`);
	return facts;
}

// Its lines, or its instructions.
function showWay(app, f, p) {
	const {model, state} = app, lines = pathLines(model, p), scope = scopesOfCode(model).get(model.flow.code[model.paths.flow[f]]) || 0;
	const file = lines.has(model.paths.file[f]) ? model.paths.file[f] : lines.keys().next().value || 0;
	setAttribute(app.source.switch, "aria-pressed", String(state.instructions));
	if (scope && (state.instructions || !file))
		app.source.showCode(scope, pathRanges(model, p));
	else
		app.source.showLines(file, lines.get(file) || new Set(), file ? "" : "Its lines are not known: its file has no debug information, or cannot be read.");
}
