// SPDX-License-Identifier: Apache-2.0
// The source pane: the file of what is selected, with the samples of each line beside it; or the
// instructions of its function.

import {formatTrusted} from "./events.js";
import {baseName, formatError, formatPercent} from "./format.js";
import {formatCost} from "./compare_show.js";
import {lineCosts, wholeCycles} from "./flow.js";
import {insnWhy, insnWords, lineWhy, lineWords} from "./flow_words.js";
import {functionOf, hasInstructions, hasIntel, instructionEntries} from "./instructions.js";
import {hotLine} from "./hot_line.js";
import {KIND, scopeShort} from "./model.js";
import {lineTotal} from "./line_total.js";
import {lineSelf} from "./select.js";
import {VirtualList, el, setAttribute, setClass, setStyle, setText} from "./dom.js";

const SOURCE_ROW = 18;
const ABOVE = 4; // lines that stand above what is shown
const HIGH = 260; // pixels that it has at least, as long as that is not known

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
			entries.push({number: next++, text: line.replace(/\t/g, "    ")});
	}
	if (next <= source.lines)
		entries.push({number: 0, text: ""});
	return entries;
}

export class Source {
	constructor(app) {
		this.app = app;
		this.title = el("h2", {class: "file"});
		this.switch = el("button", {type: "button", class: "switch", title: "key a", onclick: () =>
			app.switchInstructions()}, "Instructions");
		this.syntax = el("button", {type: "button", class: "switch", title: "Intel or AT&T syntax: key A", hidden: true,
			onclick: () => app.switchSyntax()}, "Intel");
		this.note = el("p", {class: "note"});
		this.first = el("span", {class: "share"}, "total");
		this.what = el("span", {class: "number"}, "line");
		this.head = el("div", {class: "lines head", "aria-hidden": "true"},
			this.first, el("span", {class: "share"}, "self"), this.what, el("span", {class: "text"}, ""));
		this.scroller = el("div", {class: "scroller", tabIndex: 0, role: "list", "aria-label": "source lines"});
		this.element = el("section", {class: "source", "aria-label": "source"},
			el("div", {class: "bar"}, this.title, this.syntax, this.switch), this.note, this.head, this.scroller);
		this.list = new VirtualList(this.scroller, SOURCE_ROW, () => this.make(), (row, i) => this.fill(row, i));
		this.file = -1;
		this.entries = [];
	}
	make() {
		return el("div", {class: "lines", role: "listitem"}, el("span", {class: "share"}),
			el("span", {class: "share self"}), el("span", {class: "number"}), el("span", {class: "text"}), el("span", {class: "why"}));
	}
	fill(row, index) {
		const entry = this.entries[index], {number, text, insn} = entry;
		const {model, state, comparison} = this.app;
		const compared = comparison && insn === undefined;
		const whole = compared ? comparison.sideSamples(this.sideOf()) : model.whole[state.metric];
		const id = this.instructions ? undefined : this.ids.get(number);
		const self = insn === undefined ? this.selfOf(id) : model.code.self[state.metric][insn];
		const total = id === undefined || comparison ? 0 : this.totalOf(id);
		const [all, own, line, code, why] = row.children;
		setText(all, total ? formatPercent(total, whole) : Number.isNaN(total) ? "?" : "");
		setText(own, self ? formatPercent(self, whole) : "");
		setStyle(own, "background-size", (whole ? Math.min(100, 100 * self / whole).toFixed(1) : 0) + "% 100%");
		all.title = Number.isNaN(total) ? "what is called from here is called from elsewhere, too: under these filters " +
			"it cannot be told apart" : "";
		const words = this.whyOf(entry);
		row.title = [...self || total ? [`self ${compared ? this.comparedSelf(self) : formatTrusted(model.metrics, state.metric, self)}`] : [],
			...words.slice(1)].join("\n");
		setText(why, words[0]);
		setText(line, insn !== undefined ? entry.address : entry.heading ? "" : number ? String(number) : "…");
		setText(code, text);
		setClass(row, "lines" + (this.isMarked(entry) ? " marked" : "") + (self ? " hot" : "") +
			(insn !== undefined ? " insn" : "") + (entry.heading ? " heading" : ""));
	}
	// Why an instruction or a line waits: a few words, then all that is known. It is of the whole recording.
	whyOf({insn, number, heading}) {
		const {model} = this.app;
		if (insn !== undefined)
			return [insnWhy(model, insn), ...insnWords(model, insn)];
		const sum = heading || this.instructions || !number ? undefined : lineCosts(model, this.file).get(number);
		return [lineWhy(model, sum, wholeCycles(model)), ...lineWords(model, sum, wholeCycles(model))];
	}
	comparedSelf(self) {
		const {amounts, unit} = this.app.comparison;
		return amounts ? formatCost(unit, self) : formatError(self);
	}
	isMarked({number, insn, file = this.file}) {
		if (this.addresses) {
			const at = this.app.model.code.address[insn];
			return insn !== undefined && this.addresses.some(([from, to]) => at >= from && at < to);
		}
		if (this.chosen)
			return this.chosen.has(number) && file === this.markedFile;
		return number >= this.from && number <= this.to && file === this.markedFile;
	}
	selfOf(line) {
		if (line === undefined)
			return 0;
		if (!this.known.has(line))
			this.known.set(line, this.app.comparison ? this.app.comparison.lineSelf(line, this.sideOf()) :
				lineSelf(this.app.model, this.selection, this.metric, line));
		return this.known.get(line);
	}
	// With what was called from it; NaN: it cannot be told.
	totalOf(line) {
		const {model, state} = this.app;
		if (!this.selection.narrowed)
			return model.lines.total[state.metric][line];
		if (!this.totals.has(line))
			this.totals.set(line, lineTotal(model, this.selection, state.metric, line));
		return this.totals.get(line);
	}
	// Shows what belongs to a row.
	showRow(row) {
		const {model, state} = this.app;
		setAttribute(this.switch, "aria-pressed", String(state.instructions));
		if (!row || row.scope < 0) {
			this.show(0, 0, 0, row ? "" : "Select a row to see its source.");
			return;
		}
		const {file, line, last, kind} = model.scopes, scope = row.scope;
		const why = kind[scope] === KIND.root ? "Select a row to see its source." :
			kind[scope] === KIND.kernel ? "This is code of the kernel." :
			kind[scope] === KIND.partial ? "The callers of what is below are not known." :
			"No source is known: its module has no debug information about lines.";
		const isCode = kind[scope] !== KIND.root && kind[scope] !== KIND.partial;
		if (row.line && !state.instructions)
			this.show(model.lines.file[row.line], model.lines.line[row.line], model.lines.line[row.line], "", row.line);
		else if (isCode && (state.instructions || (!file[scope] && hasInstructions(model, functionOf(model, row)))))
			this.showInstructions(row, file[scope], line[scope], last[scope] || line[scope], state.instructions ? "" : why);
		else
			this.show(file[scope], line[scope], last[scope] || line[scope], file[scope] ? "" : why, file[scope] ? hotLine(this.app, row) : 0);
	}
	// Of which samples, and which lines are marked.
	begin(instructions, file, first, last) {
		this.addresses = this.chosen = null;
		this.syntax.hidden = true;
		const {state, selection} = this.app;
		if (this.selection !== selection || this.metric !== state.metric || this.width !== state.width) {
			this.known = new Map(); // line -> self
			this.totals = new Map();
			this.selection = selection;
			this.metric = state.metric;
			this.width = state.width;
		}
		this.instructions = instructions;
		this.markedFile = file;
		this.from = first || Infinity;
		this.to = last;
		const {comparison} = this.app;
		setText(this.first, instructions || comparison ? "" : "total");
		setText(this.first.nextSibling, comparison && !instructions ? `${comparison.names[this.sideOf()]} self` : "self");
		setText(this.what, instructions ? "address" : "line");
		setAttribute(this.scroller, "aria-label", instructions ? "instructions" : "source lines");
	}
	// at: an entry that is to be in sight near the top; hot: one that is to be in sight in any case.
	finish(at, hot = -1) {
		this.head.hidden = !this.entries.length;
		this.list.set(this.entries.length);
		const first = at - ABOVE, high = this.list.high || HIGH, fits = hot >= first && (hot + 2 - first) * SOURCE_ROW <= high;
		if (hot >= 0 && !fits)
			this.list.scrollTo(hot * SOURCE_ROW - high / 2);
		else if (at >= 0)
			this.list.scrollTo(first * SOURCE_ROW);
		this.list.draw();
	}
	// The lines of a set are marked.
	showLines(file, lines, why) {
		const first = Math.min(...lines);
		this.show(file, lines.size ? first : 0, first, why);
		this.chosen = lines;
		this.list.draw(true);
	}
	// hot: the number of a line (model.lines) that is to be in sight
	show(file, first, last, why = "", hot = 0) {
		const {model} = this.app;
		const fresh = file !== this.file || this.instructions;
		this.begin(false, file, first, last);
		if (fresh) {
			this.file = file;
			this.entries = file ? fileEntries(model, file) : [];
			this.ids = new Map();
			for (let i = 1; file && i < model.lines.count; i++)
				if (model.lines.file[i] === file)
					this.ids.set(model.lines.line[i], i);
		}
		const path = file ? model.strings[file] : "";
		setText(this.title, path ? baseName(path) + (first ? ":" + first : "") : "Source");
		this.title.title = path;
		const hasText = this.entries.some((entry) => entry.text);
		setText(this.note, why || (hasText ? path : this.whyNone(path)));
		this.finish(this.entries.findIndex((entry) => entry.number >= first), hot && model.lines.file[hot] === file ?
			this.entries.findIndex(({number}) => number === model.lines.line[hot]) : -1);
	}
	// why: they are shown although nobody asked for them
	showInstructions(row, file, first, last, why = "") {
		const scope = functionOf(this.app.model, row);
		this.begin(true, scope === row.scope ? 0 : file, first, last);
		this.fillCode(scope, why);
	}
	// The instructions of a function, those from some addresses to others marked: [[from, to]...].
	showCode(scope, ranges) {
		this.begin(true, 0, 0, 0);
		this.addresses = ranges;
		this.fillCode(scope, "");
	}
	fillCode(scope, why) {
		const {model, selection} = this.app;
		this.entries = instructionEntries(model, scope, (of, line) => this.textOf(of, line),
			this.app.state.intel) || [];
		this.syntax.hidden = !hasIntel(model, scope);
		setAttribute(this.syntax, "aria-pressed", String(this.app.state.intel));
		setText(this.title, scope ? scopeShort(model, scope) : "Instructions");
		setText(this.note, !this.entries.length ? "Its instructions are not here: they are where a function has many " +
			"samples of its own and its file could be read. culprit annotate shows them for one function." :
			[why, selection.narrowed ? "Samples here are those of the whole recording, whatever is filtered." : ""].join(" ").trim());
		const marked = this.entries.findIndex((entry) => this.isMarked(entry));
		const inside = this.hottestInsn((entry) => this.isMarked(entry)), hottest = this.hottestInsn(() => true);
		this.finish(marked >= 0 ? marked : hottest, marked >= 0 ? inside : hottest);
	}
	// The entry of the instruction with the most samples among some; -1: none has any.
	hottestInsn(isWanted) {
		let best = -1, most = 0;
		this.entries.forEach((entry, i) => {
			const self = entry.insn !== undefined && isWanted(entry) ? this.selfOfInsn(entry.insn) : 0;
			if (self > most)
				[best, most] = [i, self];
		});
		return best;
	}
	selfOfInsn(insn) {
		return this.app.model.code.self[this.metric][insn];
	}
	// The text of a line; "" where it is not here.
	textOf(file, line) {
		const source = (this.app.model.header.sources || []).find((s) => s.file === file);
		const part = source && source.parts.findLast(([first]) => first <= line);
		if (!part)
			return "";
		part.lines = part.lines || part[1].split("\n");
		return part.lines[line - part[0]] || "";
	}
	// The side whose lines are shown: that which the graph is as wide as.
	sideOf() {
		return this.app.state.width === "old" ? 0 : 1;
	}
	whyNone(path) {
		const {header} = this.app.model;
		if (!header.hasSources)
			return `${path}: sources were left out (--no-source); these are its lines with samples.`;
		const unusable = (header.sourceNotes || []).find((note) => note.startsWith(`no source: ${path} `));
		return `${unusable || `${path}: its text was not found, or had no room here`}; these are its lines with ` +
			"samples. --source-dir and --path-map tell where sources are.";
	}
}
