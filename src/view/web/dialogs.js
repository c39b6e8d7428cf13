// SPDX-License-Identifier: Apache-2.0
// What comes in front: help, filters, threads, notes, columns. The browser keeps the keyboard inside
// and closes them by Escape.

import {GROUPINGS, GROUPS_MAX} from "./columns.js";
import {formatWorded, metricGroups, metricShort, metricWords} from "./events.js";
import {formatPercent, plural} from "./format.js";
import {compileFormula} from "./formula.js";
import {threadLabel} from "./model.js";
import {compilePattern, threadTotals} from "./select.js";
import {el} from "./dom.js";

export const KEYS = [
	["↑ ↓ PgUp PgDn Home End", "move"],
	["→ ←", "open, close a row; go to what is above it"],
	["Enter, Space", "open or close; in the graph: zoom"],
	["*", "open all below"],
	["h", "hot path: open the costliest chain below"],
	["z", "zoom into the row or box"],
	["Z, Escape", "back to where you came from"],
	["o", "overview: graph, functions and source at once"],
	["1 2 3 4 5", "top-down, bottom-up, flat, graph, time line"],
	["6", "sandwich: callers above and callees below the selected function"],
	["7", "memory: the places that allocate, by peak, leaks or churn"],
	["8", "waits: who waits for whom, why and for how long"],
	["9", "control flow of the selected function: how often its blocks ran, and why they waited"],
	["P", "paths of functions, if they were counted: how often each was taken"],
	["T", "sandwich: flame graphs or tables"],
	["f / F", "flat view: take the top level away, so that loops stand as peers / bring it back"],
	["< > r", "sort by the column before, after; the other way round"],
	["m", "the next measure: time, allocated bytes, …"],
	["/ n N", "search; next and previous match"],
	["k / x", "keep only paths with this function / leave them out"],
	["K / X", "the same with its module"],
	["e", "filter by a regular expression"],
	["t", "choose threads, processes, ranks, or have a column for each"],
	["v", "compare threads or processes (or recordings) with others"],
	["b", "comparing: total, self or both"],
	["%", "comparing: what it took, or its share"],
	["w / y", "comparing: the side that the graph is as wide as; colours for sure or all differences"],
	["u", "take the last filter away"],
	["c", "choose columns, derive new ones by a formula"],
	["i", "notes: what is uncertain"],
	["s", "details and source: show or hide"],
	["a", "source or instructions"],
	["A", "instructions of x86-64: Intel or AT&T syntax"],
	["g", "graph: flames or icicles"],
	["I", "graph: inverted, each function with its callers below"],
	["R", "graph: fold recursion"],
	["+ - 0", "time line, control flow: zoom in, out, the whole; Shift with ← → moves the time line"],
	["↑ ↓ ← → Enter", "control flow: along the most frequent edge, to the block beside; its instructions or source"],
	["→ ← Enter r", "paths: from a function to its paths and back; the path in the control flow; the other order"],
	[", .", "control flow: the path before, the next one, if paths were counted"],
	["l", "time line: stacks over time of the selected thread"],
	["j", "time line: from a wait to the thread that ended it"],
	[", .", "time line: colour by the level above, below"],
	["Enter [ ] w Esc", "time line: count only the time of the span, from here, to here, what is in sight; all"],
	["Ctrl+C", "copy the name of what is selected"],
	["M, right click", "menu: copy name, stack or row; callers and callees; zoom; filter"],
	["d", "light or dark"],
	["?", "this help"],
];

function open(title, ...content) {
	const before = document.activeElement;
	const dialog = el("dialog", {"aria-label": title, onclose: () => {
		dialog.remove();
		if (before && before.isConnected)
			before.focus();
	}}, el("form", {method: "dialog", class: "bar"}, el("h2", {}, title),
		el("button", {"aria-label": "close", class: "close"}, "×")), ...content);
	dialog.addEventListener("keydown", (event) => event.stopPropagation());
	dialog.addEventListener("click", (event) => {
		if (event.target === dialog)
			dialog.close();
	});
	document.body.append(dialog);
	dialog.showModal();
	return dialog;
}

export const openDialog = open;

export function showHelp() {
	const table = el("table", {class: "keys"});
	for (const [keys, what] of KEYS)
		table.append(el("tr", {}, el("th", {scope: "row"}, el("kbd", {}, keys)), el("td", {}, what)));
	open("Keys", table, el("p", {}, "total: samples in a scope and in all that it called. " +
		"self: samples in its own code. Shares are of the whole recording, whatever is filtered. " +
		"± is the statistical error of counting n samples, the square root of n."));
}

export function showNotes(app) {
	const {header} = app.model, {summary} = header;
	const about = el("dl");
	const put = (name, value) => value && about.append(el("dt", {}, name), el("dd", {}, value));
	put("command", summary.command);
	put("samples", `${plural(summary.samples, "sample")} in ${summary.seconds.toFixed(2)} s, ` +
		`${plural(summary.processes, "process", "processes")}, ${plural(summary.threads, "thread")}`);
	const reasons = Object.entries(summary.partial).map(([name, n]) => `${n} ${name}`).join(", ");
	const partial = summary.samples - summary.complete;
	put("paths", `${plural(summary.complete, "complete path")}, ${partial} partial` +
		`${reasons ? ` (${reasons})` : ""}; ${plural(summary.lost, "lost sample")}`);
	put("host", [header.host, header.machine, header.kernel].filter(Boolean).join(", "));
	put("recorded", header.startTime ? new Date(header.startTime * 1000).toISOString() : "");
	put("made by", header.tool ? "culprit " + header.tool : "");
	const notes = [...summary.notes, ...header.moduleNotes, ...(header.sourceNotes || [])];
	const list = el("ul", {class: "notes"});
	for (const note of notes)
		list.append(el("li", {}, note));
	open("About this recording", about, el("h3", {}, "What is uncertain"),
		notes.length ? list : el("p", {}, "Nothing to note."));
}

export function showFilter(app, how = "keep", what = "name", text = "") {
	const input = el("input", {type: "text", value: text, spellcheck: false, autofocus: true,
		"aria-label": "regular expression"});
	const choose = (label, options, value) => {
		const select = el("select", {"aria-label": label});
		for (const [key, words] of options)
			select.append(el("option", {value: key, selected: key === value}, words));
		return select;
	};
	const hows = choose("how", [["keep", "keep only paths with"], ["hide", "leave out paths with"]], how);
	const whats = choose("what", [["name", "a function like"], ["module", "a module like"]], what);
	const why = el("p", {class: "warning", role: "alert"});
	const form = el("form", {class: "filter", onsubmit: (event) => {
		event.preventDefault();
		if (!input.value || !compilePattern(input.value)) {
			why.textContent = input.value ? "This is no regular expression." : "";
			return;
		}
		dialog.close();
		app.addFilter({how: hows.value, what: whats.value, text: input.value});
	}}, hows, " ", whats, " ", input, " ", el("button", {type: "submit"}, "Filter"), why,
	el("p", {class: "note"}, "A regular expression; small letters match capitals, too."));
	const dialog = open("Filter", form);
	input.focus();
}

export function showThreads(app) {
	const {model, state} = app, {threads, processes} = model.header;
	const sums = threadTotals(model, state.filters, state.metric, state.zoom, state.time);
	const whole = model.whole[state.metric];
	const chosen = new Set(state.threads || threads.map((_, i) => i));
	const boxes = [];
	const list = el("div", {class: "threads"});
	const byProcess = processes.map(() => []);
	threads.forEach((thread, i) => (byProcess[thread.process] || (byProcess[thread.process] = [])).push(i));
	byProcess.forEach((members, p) => {
		const own = members.sort((a, b) => sums[b] - sums[a]);
		const mine = [];
		const all = el("input", {type: "checkbox", checked: own.some((i) => chosen.has(i)),
			onchange: () => mine.forEach((box) => { box.checked = all.checked; })});
		const sum = own.reduce((s, i) => s + sums[i], 0);
		const group = el("fieldset", {}, el("legend", {}, el("label", {}, all,
			` ${processes[p].name} (process ${processes[p].pid}) ${formatPercent(sum, whole)}`)));
		for (const i of own) {
			const box = el("input", {type: "checkbox", checked: chosen.has(i)});
			box.dataset.thread = i;
			mine.push(box);
			boxes.push(box);
			group.append(el("label", {class: "thread"}, box, ` ${threadLabel(model, i)} `,
				el("span", {class: "share"}, formatPercent(sums[i], whole) || "0%"), " ",
				el("span", {class: "amount"}, formatWorded(model.metrics[state.metric], sums[i]))));
		}
		list.append(group);
	});
	const set = (value) => document.querySelectorAll(".threads input").forEach((b) => { b.checked = value; });
	const wanted = () => boxes.filter((b) => b.checked).map((b) => Number(b.dataset.thread)).sort((a, b) => a - b);
	const by = el("select", {"aria-label": "what each column has"});
	for (const name of Object.keys(GROUPINGS))
		if (name !== "rank" || processes.some((process) => process.rank >= 0))
			by.append(el("option", {value: name, selected: state.compared && state.compared.by === name},
				`a column for each ${name}`));
	const form = el("form", {onsubmit: (event) => {
		event.preventDefault();
		dialog.close();
		app.setThreads(wanted().length === threads.length ? null : wanted());
	}}, el("div", {class: "buttons"}, el("button", {type: "button", onclick: () => set(true)}, "all"), " ",
		el("button", {type: "button", onclick: () => set(false)}, "none"), " ",
		el("button", {type: "submit", class: "main"}, "Show only these")),
	el("div", {class: "buttons"}, by, " ", el("button", {type: "button", class: "compare", onclick: () => {
		dialog.close();
		app.compare({by: by.value, threads: wanted()});
	}}, "Compare these"), el("span", {class: "note"}, ` at most ${GROUPS_MAX} columns`)), list);
	const dialog = open("Threads and processes", form);
}

// A form to add a derived metric, and those that there are.
function derivedForm(app, again) {
	const {model, state} = app;
	const name = el("input", {type: "text", size: 14, "aria-label": "name of the new column", spellcheck: false});
	const formula = el("input", {type: "text", size: 28, "aria-label": "formula", placeholder: "$1 / $2", spellcheck: false});
	const why = el("p", {class: "warning", role: "alert"});
	const list = el("ul", {class: "notes"});
	state.derived.forEach((one, i) => list.append(el("li", {}, `${one.name} = ${one.formula} `,
		el("button", {type: "button", "aria-label": `remove ${one.name}`, onclick: () =>
			again(state.derived.filter((_, at) => at !== i))}, "×"))));
	const words = model.recorded.metrics.map((metric, m) =>
		`$${m + 1} is ${metricShort(metric)}${metric.unit === "ns" ? " in seconds" : ""}`).join(", ");
	return el("form", {class: "derived", onsubmit: (event) => {
		event.preventDefault();
		try {
			compileFormula(formula.value, model.recorded.metrics.length);
		} catch (error) {
			why.textContent = error.message;
			formula.focus();
			return;
		}
		again([...state.derived, {name: name.value.replace(/=/g, " ") || formula.value, formula: formula.value}]);
	}}, el("h3", {}, "Derived columns"), list, name, " = ", formula, " ",
	el("button", {type: "submit"}, "Add"), why,
	el("p", {class: "note"}, `${words}; @1 is that of the whole recording. + - * / ^ ( ), min, max, abs, sqrt, log.`));
}

export function showColumns(app) {
	const {model} = app, shown = new Set(app.shownMetrics());
	const boxes = model.recorded.metrics.map((metric, m) => {
		const box = el("input", {type: "checkbox", checked: shown.has(m)});
		return {box, label: el("label", {class: "thread"}, box, ` ${metricWords(metric)} `,
			el("span", {class: "amount"}, formatWorded(metric, metric.total)))};
	});
	const groups = metricGroups(model.recorded.metrics).map(({event, members}) => el("fieldset", {},
		el("legend", {}, event), ...members.map((m) => boxes[m].label)));
	const form = el("form", {onsubmit: (event) => {
		event.preventDefault();
		dialog.close();
		app.setColumns(boxes.flatMap(({box}, m) => box.checked ? [m] : []));
	}, class: "threads"}, ...groups, el("p", {}, el("button", {type: "submit", class: "main"}, "Show these")));
	const dialog = open("Columns", form, derivedForm(app, (derived) => {
		dialog.close();
		app.setDerived(derived);
	}));
}
