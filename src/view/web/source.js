// SPDX-License-Identifier: Apache-2.0
// The source pane: the file of what is selected, with the samples of each line beside it.

import {baseName, formatAmount, formatError, formatPercent} from "./format.js";
import {KIND} from "./model.js";
import {lineSelf} from "./select.js";
import {VirtualList, el, setClass, setStyle, setText} from "./dom.js";

const SOURCE_ROW = 18;

// What is shown of a file: [{number, text}…], number 0 for a gap. Without its text only lines with
// samples are.
export function fileEntries(model, file) {
	const source = (model.header.sources || []).find((s) => s.file === file);
	const entries = [];
	if (!source) {
		for (let i = 1; i < model.lines.count; i++)
			if (model.lines.file[i] === file)
				entries.push({number: model.lines.line[i], text: ""});
		return entries.sort((a, b) => a.number - b.number);
	}
	let next = 1;
	for (const [first, text] of source.parts) {
		if (first > next)
			entries.push({number: 0, text: ""});
		next = first;
		for (const line of text.replace(/\n$/, "").split("\n"))
			entries.push({number: next++, text: line.replace(/\t/g, "        ")});
	}
	if (next <= source.lines)
		entries.push({number: 0, text: ""});
	return entries;
}

export class Source {
	constructor(app) {
		this.app = app;
		this.title = el("h2", {class: "file"});
		this.note = el("p", {class: "note"});
		this.head = el("div", {class: "lines head", "aria-hidden": "true"},
			el("span", {class: "share"}, "total"), el("span", {class: "share"}, "self"),
			el("span", {class: "number"}, "line"), el("span", {class: "text"}, ""));
		this.scroller = el("div", {class: "scroller", tabIndex: 0, role: "list", "aria-label": "source lines"});
		this.element = el("section", {class: "source", "aria-label": "source"}, this.title, this.note,
			this.head, this.scroller);
		this.list = new VirtualList(this.scroller, SOURCE_ROW, () => this.make(), (row, i) => this.fill(row, i));
		this.file = -1;
		this.entries = [];
	}
	make() {
		return el("div", {class: "lines", role: "listitem"}, el("span", {class: "share"}),
			el("span", {class: "share self"}), el("span", {class: "number"}), el("span", {class: "text"}));
	}
	fill(row, index) {
		const {model, state, selection} = this.app;
		const {number, text} = this.entries[index], id = this.ids.get(number);
		const whole = model.whole[state.metric], metric = model.metrics[state.metric];
		const self = this.selfOf(id);
		const total = id === undefined || selection.narrowed ? 0 : model.lines.total[state.metric][id];
		const [all, own, line, code] = row.children;
		setText(all, total ? formatPercent(total, whole) : "");
		setText(own, self ? formatPercent(self, whole) : "");
		setStyle(own, "background-size", (whole ? Math.min(100, 100 * self / whole).toFixed(1) : 0) + "% 100%");
		row.title = self || total ? `self ${formatAmount(metric, self)}, ${formatError(self)}` : "";
		setText(line, number ? String(number) : "⋯");
		setText(code, text);
		const marked = number >= this.first && number <= this.last;
		setClass(row, "lines" + (marked ? " marked" : "") + (self ? " hot" : ""));
	}
	selfOf(line) {
		if (line === undefined)
			return 0;
		if (!this.known.has(line))
			this.known.set(line, lineSelf(this.app.model, this.selection, this.metric, line));
		return this.known.get(line);
	}
	// Shows what belongs to a row.
	showRow(row) {
		const {model} = this.app;
		if (!row || row.scope < 0) {
			this.show(0, 0, 0, row ? "" : "Select a row to see its source.");
			return;
		}
		const {file, line, last, kind} = model.scopes, scope = row.scope;
		const why = kind[scope] === KIND.root ? "Select a row to see its source." :
			kind[scope] === KIND.kernel ? "This is code of the kernel." :
			kind[scope] === KIND.partial ? "The callers of what is below are not known." :
			"No source is known: its module has no debug information about lines.";
		this.show(file[scope], line[scope], last[scope] || line[scope], file[scope] ? "" : why);
	}
	show(file, first, last, why = "") {
		const {model, state, selection} = this.app;
		const fresh = file !== this.file;
		this.first = first;
		this.last = last;
		if (fresh) {
			this.file = file;
			this.entries = file ? fileEntries(model, file) : [];
			this.ids = new Map();
			for (let i = 1; file && i < model.lines.count; i++)
				if (model.lines.file[i] === file)
					this.ids.set(model.lines.line[i], i);
		}
		if (this.selection !== selection || this.metric !== state.metric) {
			this.known = new Map(); // line -> self
			this.selection = selection;
			this.metric = state.metric;
		}
		const path = file ? model.strings[file] : "";
		setText(this.title, path ? baseName(path) + (first ? ":" + first : "") : "Source");
		this.title.title = path;
		const hasText = this.entries.some((entry) => entry.text);
		setText(this.note, why || (hasText ? path : this.whyNone(path)));
		this.head.hidden = !this.entries.length;
		this.list.set(this.entries.length);
		const at = this.entries.findIndex((entry) => entry.number >= first);
		if (at >= 0)
			this.list.scrollTo((at - 4) * SOURCE_ROW);
		this.list.draw();
	}
	whyNone(path) {
		const {header} = this.app.model;
		if (!header.hasSources)
			return `${path}: sources were left out (--no-source); these are its lines with samples.`;
		const known = (header.sourceNotes || []).find((note) => note.includes(path));
		return known || `${path}: its text was not found, or had no room here; these are its lines with ` +
			"samples. --source-dir and --path-map tell where sources are.";
	}
}
