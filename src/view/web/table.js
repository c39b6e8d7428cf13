// SPDX-License-Identifier: Apache-2.0
// The tree as a table: a treegrid of which only the rows in sight are elements.

import {columnCount, columnName, valueOf} from "./columns.js";
import {baseName, formatAmount, formatNumber, formatPercent} from "./format.js";
import {GUESSED, KIND, NAMELESS, modulePath, scopeFile, scopeShort} from "./model.js";
import {comparedTitle, fillCompared} from "./compare_show.js";
import {openMenu} from "./menu.js";
import {VirtualList, el, setAttribute, setClass, setStyle, setText} from "./dom.js";

const TABLE_ROW = 24;
const WIDTHS_USUAL = [320, 140], COMPARED_WIDTHS = [250, 152], MEMORY_WIDTHS = [260, 108]; // of the name and of a column: pixels
const ROWS_FEW = 30; // as many are quickly filled
const LATE = 50; // ms after what is in sight
const INDENT = 14;
const INDENT_MAX = 20; // levels; what is deeper says how deep

export const MARKS = {
	[KIND.loop]: ["↻", "loop"],
	[KIND.inline]: ["⤷", "inlined function"],
	[KIND.kernel]: ["K", "kernel"],
	[KIND.partial]: ["⚠", "partial path"],
	[KIND.function]: ["", "function"],
	[KIND.root]: ["", "all samples"],
};

// What follows a name: file, line, module.
export function rowPlace(model, row) {
	if (row.scope < 0)
		return row.level === 0 ? "module" : "file";
	if (row.line)
		return `${baseName(model.strings[model.lines.file[row.line]])}:${model.lines.line[row.line]}`;
	const {kind, line, module} = model.scopes;
	const parts = [];
	const file = scopeFile(model, row.scope);
	if (file && kind[row.scope] !== KIND.loop)
		parts.push(baseName(file) + (line[row.scope] ? ":" + line[row.scope] : ""));
	const path = modulePath(model, row.scope); // of an interpreted function: its file
	if (module[row.scope] && kind[row.scope] !== KIND.loop && kind[row.scope] !== KIND.inline && path !== file)
		parts.push(baseName(path));
	return parts.join("  ");
}

export function rowLabel(model, row) {
	if (row.scope < 0)
		return row.level === 0 ? baseName(row.label) : row.label;
	return scopeShort(model, row.scope);
}

export function rowBadge(model, row) {
	if (row.scope < 0)
		return "";
	const flags = model.scopes.flags[row.scope];
	return flags & NAMELESS ? "no symbol" : flags & GUESSED ? "guessed" : "";
}

export class Table {
	constructor(app) {
		this.app = app;
		this.head = el("div", {class: "row head", role: "row"});
		this.scroller = el("div", {class: "scroller", role: "presentation"});
		this.none = el("p", {class: "note none", hidden: true});
		this.element = el("div", {
			class: "table", role: "treegrid", tabIndex: 0, "aria-label": "profile",
			onkeydown: (event) => this.key(event),
			onclick: (event) => this.click(event),
			ondblclick: (event) => this.doubleClick(event),
			oncontextmenu: (event) => this.menu(event),
		}, el("div", {class: "headbox", role: "rowgroup"}, this.head), this.none, this.scroller);
		this.list = new VirtualList(this.scroller, TABLE_ROW, () => this.makeRow(), (row, i) => this.fill(row, i));
		this.scroller.addEventListener("scroll", () => {
			this.moved = this.scroller.scrollLeft;
			this.fillLate();
			this.head.style.transform = `translateX(${-this.moved}px)`;
		}, {passive: true});
		this.head.addEventListener("focusin", (event) => this.showTitle(event.target.closest(".cell")));
		this.columns = [];
		this.moved = 0; // how far it is scrolled
		this.late = null; // set as long as columns out of sight are not yet there
	}
	// Titles that the keyboard comes to are brought into sight with their column.
	showTitle(cell) {
		const {scroller} = this;
		this.head.parentNode.scrollLeft = 0;
		if (cell.offsetLeft + cell.offsetWidth > scroller.scrollLeft + scroller.clientWidth)
			scroller.scrollLeft = cell.offsetLeft + cell.offsetWidth - scroller.clientWidth;
		else if (cell.offsetLeft < scroller.scrollLeft)
			scroller.scrollLeft = cell.offsetLeft;
	}
	// columns: [{metric, column}]
	setColumns(columns) {
		const {comparison, state} = this.app;
		const text = JSON.stringify([state.view === "memory", ...columns.map((c) => [c, comparison ? comparedTitle(this.app, c.column) :
			columnName(this.app.model, c.metric)])]);
		if (text === this.columnsText)
			return;
		this.columnsText = text;
		this.columns = columns;
		this.fillLater();
		this.setWidths();
		for (const row of this.list.elements())
			this.fitRow(row);
		this.head.textContent = "";
		this.head.append(this.makeTitle("name", 0));
		for (const c of columns)
			this.head.append(this.makeTitle(c.column, c.metric));
	}
	// With other columns all is filled anew, which takes the longer the more there are: first those in sight.
	fillLater() {
		const late = this.late = this.list.rows.size > ROWS_FEW ? {} : null;
		requestAnimationFrame(() => setTimeout(() => this.late === late && this.fillLate(), LATE));
	}
	fillLate() {
		if (!this.late)
			return;
		this.late = null;
		for (const row of this.list.elements())
			this.addCells(row, this.columns);
		if (!this.app.picture() || this.element.isConnected)
			this.list.draw(true);
	}
	widths() {
		return this.app.comparison ? COMPARED_WIDTHS : this.app.state.view === "memory" ? MEMORY_WIDTHS : WIDTHS_USUAL;
	}
	// Said once for all rows, so that the browser need not look at all that is in them.
	setWidths() {
		const [name, column] = this.widths();
		setStyle(this.element, "--least", name + "px");
		setStyle(this.element, "--number", column + "px");
		setStyle(this.element, "--numbers", this.columns.length * column + "px");
	}
	// How many columns rows have now.
	filled() {
		const [name, column] = this.widths(), {length} = this.columns;
		const right = this.moved + this.list.wide;
		return this.late && this.list.wide ? Math.min(length, Math.ceil((right - name) / column)) : length;
	}
	makeTitle(column, metric) {
		const {model} = this.app, first = this.app.state.view === "memory" ? "place that allocates" : "scope";
		const compared = this.app.comparison && column !== "name" ? comparedTitle(this.app, column) : null;
		const name = compared ? compared[0] : column === "name" ? first : columnCount(model) > 1 ?
			`${columnName(model, metric)}${this.isOnly(metric) ? "" : " " + column}` : column;
		const button = el("button", {
			type: "button", class: "title", onclick: () => this.app.sortBy(column, metric),
			title: compared ? compared[1] : name + (column === "total" ? ": with all that was called" :
				column === "self" ? ": in its own code" : ""),
		}, el("span", {class: "what"}, name), el("span", {class: "arrow", "aria-hidden": "true"}));
		const cell = el("div", {class: column === "name" ? "cell name" : "cell number",
			role: "columnheader"}, button);
		cell.dataset.column = column;
		cell.dataset.metric = metric;
		return cell;
	}
	// Whether a metric has but one column.
	isOnly(metric) {
		return this.columns.filter((c) => c.metric === metric).length === 1;
	}
	showSort() {
		const sort = this.app.sorting();
		for (const cell of this.head.children) {
			const here = cell.dataset.column === sort.column &&
				(sort.column === "name" || Number(cell.dataset.metric) === sort.metric);
			setAttribute(cell, "aria-sort", here ? sort.up ? "ascending" : "descending" : "none");
			setText(cell.querySelector(".arrow"), here ? sort.up ? " ▲" : " ▼" : "");
		}
	}
	makeRow() {
		const row = el("div", {class: "row", role: "row"},
			el("div", {class: "cell name", role: "gridcell"},
				el("span", {class: "toggle", "aria-hidden": "true"}),
				el("span", {class: "mark"}), el("span", {class: "label"}),
				el("span", {class: "badge"}), el("span", {class: "place"})));
		return this.fitRow(row);
	}
	// As many cells as there are columns, each of its kind.
	fitRow(row) {
		const columns = this.columns.slice(0, this.filled());
		while (row.children.length > columns.length + 1)
			row.lastChild.remove();
		for (let c = 0; c + 1 < row.children.length; c++)
			setClass(row.children[c + 1], "cell number " + columns[c].column);
		return this.addCells(row, columns);
	}
	addCells(row, columns) {
		for (const {column} of columns.slice(row.children.length - 1))
			row.append(el("div", {class: "cell number " + column, role: "gridcell"},
				el("span", {class: "share"}), el("span", {class: "amount"})));
		return row;
	}
	fill(element, index) {
		const {app} = this, {model} = app;
		const entry = app.outline.entry(index);
		if (!entry) // the rows are others by now: those will be drawn
			return;
		const {row, depth, indent, position, siblings} = entry;
		const selected = row.key === app.selectedKey();
		const open = app.outline.open.has(row.key) && !row.leaf;
		if (element.index !== index) {
			element.index = index;
			element.id = "row" + index;
		}
		setAttribute(element, "aria-level", depth + 1);
		setAttribute(element, "aria-posinset", position);
		setAttribute(element, "aria-setsize", siblings);
		setAttribute(element, "aria-rowindex", index + 2);
		setAttribute(element, "aria-expanded", row.leaf ? null : String(open));
		setAttribute(element, "aria-selected", String(selected));
		const kind = row.scope < 0 ? KIND.module : model.scopes.kind[row.scope];
		setClass(element, `row kind${kind}${selected ? " selected" : ""}${app.isMatch(row) ? " match" : ""}`);
		this.fillName(element.firstChild, row, indent, kind, open);
		for (let c = 0; c + 1 < element.children.length; c++)
			this.fillNumber(element.children[c + 1], row, this.columns[c]);
	}
	fillName(cell, row, indent, kind, open) {
		const {model} = this.app;
		const [toggle, mark, label, badge, place] = cell.children;
		setStyle(cell, "padding-left", 6 + INDENT * Math.min(indent, INDENT_MAX) + "px");
		setText(toggle, row.leaf ? "" : open ? "▾" : "▸");
		setText(mark, (indent > INDENT_MAX ? `${Math.round(indent)}· ` : "") + (MARKS[kind] ? MARKS[kind][0] : ""));
		setAttribute(mark, "title", MARKS[kind] ? MARKS[kind][1] : null);
		setText(label, rowLabel(model, row));
		setText(badge, rowBadge(model, row));
		setText(place, rowPlace(model, row));
	}
	fillNumber(cell, row, {metric, column}) {
		if (this.app.comparison)
			return fillCompared(this.app, cell, row, column);
		const {model} = this.app;
		const value = valueOf(model, row, column, metric), whole = model.whole[metric];
		if (metric >= model.metrics.length) {
			setText(cell.firstChild, "");
			setText(cell.lastChild, formatNumber(value));
			setStyle(cell, "background-size", "0 100%");
			return;
		}
		const share = whole > 0 ? value / whole : 0;
		setText(cell.firstChild, value && this.app.state.view !== "memory" ? formatPercent(value, whole) : "");
		setText(cell.lastChild, value ? formatAmount(model.metrics[metric], value) : "");
		setStyle(cell, "background-size", (100 * share).toFixed(1) + "% 100%");
	}
	// Everything anew. reveal: whether the selected row is brought into sight, and whether into the middle ("middle").
	draw(reveal = false) {
		const {app} = this, place = this.showActive();
		this.showSort();
		setAttribute(this.element, "aria-rowcount", app.outline.length + 1);
		this.none.hidden = app.outline.length > 0;
		setText(this.none, app.selection.narrowed ? "The filters leave out all samples." : "This recording has no samples.");
		this.list.set(app.outline.length, reveal ? place : -1, reveal === "middle");
	}
	// Tells which row is selected; returns its place, or -1.
	showActive() {
		const place = this.app.outline.placeOf(this.app.selectedKey());
		setAttribute(this.element, "aria-activedescendant", place >= 0 ? "row" + place : null);
		return place;
	}
	// The rows, of which another one is selected.
	showSelected(reveal) {
		const place = this.showActive();
		if (place >= 0)
			this.list.aim(place, reveal === "middle");
		this.list.draw(true);
	}
	click(event) {
		const element = event.target.closest(".row");
		if (!element || element === this.head)
			return;
		const {row} = this.app.outline.entry(element.index);
		this.app.selectRow(row.key);
		if (event.target.closest(".toggle"))
			this.app.toggleRow(row.key);
	}
	menu(event) {
		const element = event.target.closest(".row");
		if (event.target.closest(".head"))
			return;
		event.preventDefault();
		if (element)
			this.app.selectRow(this.app.outline.entry(element.index).row.key);
		openMenu(this.app, event.clientX, event.clientY);
	}
	doubleClick(event) {
		const element = event.target.closest(".row");
		if (element && element !== this.head && !event.target.closest(".toggle"))
			this.app.toggleRow(this.app.outline.entry(element.index).row.key);
	}
	key(event) {
		const {app} = this, {outline} = app;
		if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("button"))
			return;
		const place = outline.placeOf(app.selectedKey());
		const go = (to) => {
			if (outline.length)
				app.selectRow(outline.entry(Math.max(0, Math.min(outline.length - 1, to))).row.key);
		};
		const entry = place >= 0 ? outline.entry(place) : null;
		const actions = {
			ArrowDown: () => go(place + 1),
			ArrowUp: () => go(place < 0 ? 0 : place - 1),
			PageDown: () => go(place + this.list.page()),
			PageUp: () => go(place - this.list.page()),
			Home: () => go(0),
			End: () => go(outline.length - 1),
			ArrowRight: () => this.right(entry, place, go),
			ArrowLeft: () => this.left(entry),
			Enter: () => entry && app.toggleRow(entry.row.key),
			" ": () => entry && app.toggleRow(entry.row.key),
			"*": () => entry && app.openAll(entry.row.key),
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}
	right(entry, place, go) {
		if (!entry)
			go(0);
		else if (!entry.row.leaf && !this.app.outline.open.has(entry.row.key))
			this.app.toggleRow(entry.row.key);
		else if (!entry.row.leaf)
			go(place + 1);
	}
	left(entry) {
		const {app} = this;
		if (!entry)
			return;
		if (!entry.row.leaf && app.outline.open.has(entry.row.key)) {
			app.toggleRow(entry.row.key);
			return;
		}
		const up = app.outline.view.parentKey(entry.row.key);
		if (up)
			app.selectRow(up);
	}
}
