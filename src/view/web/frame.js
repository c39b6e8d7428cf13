// SPDX-License-Identifier: Apache-2.0
// What is around the views: the head of the page with its switches and buttons, and the panes.

import {showCompare} from "./compare_dialog.js";
import {showColumns, showFilter, showHelp, showNotes, showThreads} from "./dialogs.js";
import {EventSwitch} from "./event_switch.js";
import {baseName, plural} from "./format.js";
import {VIEWS} from "./state.js";
import {el} from "./dom.js";

// Puts it into the page; app gets the elements that change.
export function buildFrame(app) {
	const {header} = app.model;
	const title = header.comparison ? header.title : header.summary.command;
	document.title = `${title || header.title} – culprit`;
	app.tabs = VIEWS.map(([name, title, key]) => el("button", {type: "button", role: "tab",
		id: "tab-" + name, "aria-controls": "main", title: `key ${key}`,
		onclick: () => app.setView(name)}, title));
	app.events = new EventSwitch(app);
	app.search = el("input", {type: "search", placeholder: "search  (/)", "aria-label": "search by name",
		spellcheck: false, oninput: () => app.setSearch(app.search.value),
		onkeydown: (event) => app.searchKey(event)});
	app.count = el("span", {class: "count", role: "status"});
	app.chips = el("div", {class: "chips", role: "group", "aria-label": "filters"});
	app.status = el("div", {class: "status", role: "status"});
	app.said = el("div", {class: "said", role: "status", hidden: true, onclick: () => { app.said.hidden = true; }});
	const notes = header.summary.notes.length + header.moduleNotes.length;
	const button = (text, label, run, cls = "") => el("button", {type: "button", title: label,
		"aria-label": label, class: cls, onclick: run}, text);
	app.warned = button(notes ? `⚠ ${plural(notes, "note")}` : "About", "about this recording (i)",
		() => showNotes(app), notes ? "warned" : "");
	app.main = el("div", {id: "main", class: "view", role: "tabpanel"});
	app.pane = el("aside", {class: "pane"}, app.detail.element, app.source.element);
	const page = document.getElementById("app");
	page.textContent = "";
	page.append(el("header", {},
		el("h1", {title: header.title}, title || baseName(header.title)),
		el("div", {class: "tabs", role: "tablist", "aria-label": "views"}, ...app.tabs), app.events.element,
		el("span", {class: "searchbox"}, app.search, app.count,
			button("‹", "previous match (N)", () => app.nextMatch(-1)),
			button("›", "next match (n)", () => app.nextMatch(1))),
		el("span", {class: "buttons"},
			button("Hot path", "open the costliest chain (h)", () => app.hotPath()),
			button("Filter", "filter by a regular expression (e)", () => showFilter(app)),
			button("Threads", "choose threads and processes (t)", () => showThreads(app)),
			button("Compare", "compare threads, processes or recordings (v)", () => showCompare(app)),
			button("Columns", "choose columns (c)", () => showColumns(app)),
			app.warned,
			button("◐", "light or dark (d)", () => app.switchTheme()),
			button("?", "keys (?)", showHelp))),
	app.chips, el("main", {class: "body"}, app.main, app.pane), app.said, app.status);
	app.flattened = el("span", {class: "flatten"},
		button("Flatten", "take the top level away (f)", () => app.flatten(1)),
		button("Unflatten", "bring the level above back (F)", () => app.flatten(-1)));
}

// The first time that a sign or a slope is drawn, the browser looks for a font that has it, which takes long:
// better now than when somebody waits.
export function showMarks() {
	const signs = "▸▾↻⤷⚠…±µ▲▼×", letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ:<>()0123456789";
	document.body.append(el("div", {class: "status", "aria-hidden": "true"}, el("span", {}, signs),
		el("b", {}, letters), el("i", {}, letters, signs), el("b", {}, el("i", {}, letters))));
}
