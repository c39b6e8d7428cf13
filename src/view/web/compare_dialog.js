// SPDX-License-Identifier: Apache-2.0
// Chooses what is compared with what.

import {formatPercent} from "./format.js";
import {threadLabel} from "./model.js";
import {compilePattern, samplesByThread, threadTotals} from "./select.js";
import {PERS, chosenSides, defaultLimits, fileSides, processLabel} from "./compare_sides.js";
import {el, whenIdle} from "./dom.js";
import {openDialog} from "./dialogs.js";

const PER_TEXTS = {
	file: "each file is a run", process: "each process is a run", thread: "each thread is a run",
	group: "each side is one run",
};

const LINE = 22; // pixels: none is less high
const LINES = 20; // that are added at a time

// What is proposed where nothing is compared yet: the two largest processes, or threads.
function propose(model, sums) {
	const {threads} = model.header, byProcess = new Map();
	threads.forEach(({process}, i) => {
		if (sums[i] > 0)
			byProcess.set(process, (byProcess.get(process) || 0) + sums[i]);
	});
	const processes = [...byProcess.keys()].sort((x, y) => byProcess.get(y) - byProcess.get(x));
	const of = (wanted) => threads.flatMap(({process}, i) => process === wanted ? [i] : []);
	if (processes.length > 1)
		return {a: of(processes[0]), b: of(processes[1]), per: "process"};
	const order = threads.map((_, i) => i).sort((x, y) => sums[y] - sums[x]);
	return {a: order.slice(0, 1), b: order.slice(1, 2), per: "thread"};
}

function sideChooser(label, value, change) {
	const select = el("select", {"aria-label": `side of ${label}`, onchange: () => change && change(select.value)});
	for (const [key, text] of [["", "–"], ["a", "A"], ["b", "B"], ...(change ? [["mixed", "mixed"]] : [])])
		select.append(el("option", {value: key, hidden: key === "mixed"}, text));
	select.value = value;
	return select;
}

class Chooser {
	constructor(app) {
		this.app = app;
		const {model, state} = app;
		this.sums = state.filters.length || state.zoom ? threadTotals(model, state.filters, state.metric, state.zoom) :
			samplesByThread(model, state.metric);
		const now = chosenSides(model, state) || propose(model, this.sums);
		this.sides = model.header.threads.map(() => "");
		now.a.forEach((i) => { this.sides[i] = "a"; });
		now.b.forEach((i) => { this.sides[i] = "b"; });
		this.per = now.per;
		this.selects = [];
		this.groups = [];
		this.waiting = []; // what adds lines that are not yet there
	}
	list() {
		const {model, state} = this.app, {threads, processes} = model.header, whole = model.whole[state.metric];
		const list = el("div", {class: "threads sides"});
		const byProcess = processes.map(() => []);
		threads.forEach(({process}, i) => byProcess[process]?.push(i));
		byProcess.forEach((members, p) => {
			if (!members.length)
				return;
			const group = el("fieldset");
			this.waiting.push(() => {
				group.append(this.heading(p, members, whole));
				list.append(group);
			});
			for (const i of members.sort((x, y) => this.sums[y] - this.sums[x]))
				this.waiting.push(() => group.append(this.line(i, whole)));
		});
		this.addLines(Math.ceil(window.innerHeight / LINE));
		return list;
	}
	heading(process, members, whole) {
		const label = processLabel(this.app.model, process), sum = members.reduce((s, i) => s + this.sums[i], 0);
		const all = sideChooser(label, "", (value) => this.set(members, value));
		this.groups.push({all, members});
		return el("legend", {}, el("label", {}, all, ` ${label} ${formatPercent(sum, whole)}`));
	}
	line(i, whole) {
		const {model} = this.app, label = threadLabel(model, i), select = sideChooser(label, this.sides[i]);
		select.addEventListener("change", () => this.set([i], select.value));
		this.selects[i] = select;
		return el("label", {class: "thread"}, select, ` ${label} `,
			el("span", {class: "share"}, formatPercent(this.sums[i], whole) || "0%"));
	}
	// As many as can be seen at once, others after the dialog is shown: choosers take a browser long to make.
	addLines(count) {
		this.waiting.splice(0, count).forEach((add) => add());
		this.set([], "");
		if (this.waiting.length)
			whenIdle(() => this.addLines(LINES));
	}
	set(members, value) {
		for (const i of members) {
			this.sides[i] = value;
			if (this.selects[i])
				this.selects[i].value = value;
		}
		for (const group of this.groups) {
			const sides = new Set(group.members.map((i) => this.sides[i]));
			group.all.value = sides.size === 1 ? [...sides][0] : "mixed";
		}
	}
	// By the names of threads and processes.
	pattern() {
		const {model} = this.app, input = el("input", {type: "text", spellcheck: false,
			"aria-label": "threads or processes like"});
		const assign = (side) => () => {
			const found = input.value && compilePattern(input.value);
			if (found)
				this.set(model.header.threads.flatMap(({process}, i) =>
					found.test(threadLabel(model, i)) || found.test(processLabel(model, process)) ? [i] : []), side);
		};
		return el("p", {}, "threads or processes like ", input, " ",
			el("button", {type: "button", onclick: assign("a")}, "to A"), " ",
			el("button", {type: "button", onclick: assign("b")}, "to B"), " ",
			el("button", {type: "button", onclick: assign("")}, "to neither"));
	}
	chosen() {
		const of = (side) => this.sides.flatMap((s, i) => s === side ? [i] : []);
		return {a: of("a"), b: of("b")};
	}
}

function percentInput(label, value) {
	return el("input", {type: "number", min: 0, max: 100, step: "any", value: String(value), "aria-label": label,
		class: "percent"});
}

function sameList(a, b) {
	return a.length === b.length && a.every((value, i) => value === b[i]);
}

export function showCompare(app) {
	const {model, state} = app, chooser = new Chooser(app), files = fileSides(model);
	const per = el("select", {"aria-label": "what a run is", autofocus: true});
	for (const name of PERS)
		if (name !== "file" || files)
			per.append(el("option", {value: name}, PER_TEXTS[name]));
	per.value = chooser.per;
	const limits = defaultLimits(model), percent = (part) => Number((100 * part).toFixed(6));
	const first = {noise: percent(limits.noise), min: percent(limits.min)};
	const noise = percentInput("noise in per cent", state.noise ?? first.noise);
	const min = percentInput("least share in per cent", state.min ?? first.min);
	const why = el("p", {class: "warning", role: "alert"});
	const number = (input, otherwise) => {
		const value = Number(input.value);
		return input.value !== "" && value >= 0 && value <= 100 && value !== otherwise ? value : null;
	};
	const form = el("form", {onsubmit: (event) => {
		event.preventDefault();
		const {a, b} = chooser.chosen();
		if (!a.length || !b.length) {
			why.textContent = "Each side needs a thread.";
			return;
		}
		const own = files && per.value === "file" && sameList(a, files.a) && sameList(b, files.b);
		dialog.close();
		app.setCompare(own ? null : {a, b, per: per.value}, {noise: number(noise, first.noise), min: number(min, first.min)});
	}}, el("div", {class: "buttons"}, el("button", {type: "submit", class: "main"}, "Compare A with B"), " ",
		app.comparison ? el("button", {type: "button", onclick: () => { dialog.close(); app.setCompare("off"); }},
			"Stop comparing") : null, " ",
		files ? el("button", {type: "button", onclick: () => { dialog.close(); app.setCompare(null); }},
			"Old with new, as recorded") : null), why,
	el("p", {class: "limits"}, per, el("label", {}, "runs differ by ", noise, " % by themselves"),
		el("label", {}, "looked at from ", min, " % on")),
	el("p", {class: "note"}, "With several runs on a side the mean of a run is shown, and their scatter tells how " +
		"much runs differ by themselves."), chooser.pattern(), chooser.list());
	const dialog = openDialog("Compare", form);
}
