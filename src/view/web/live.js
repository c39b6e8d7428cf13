// SPDX-License-Identifier: Apache-2.0
// A page that is served while the recording goes on: newer data comes from where the page came from,
// and what is looked at stays: rows have other numbers in it, so each is found again by what it is.

import {setColumns} from "./columns.js";
import {inflate, parseModel, modulePath, scopeAddress, scopeFile, scopeName} from "./model.js";
import {el, setAttribute, setText} from "./dom.js";
import {formatCount, plural} from "./format.js";

const EVERY = 2000; // milliseconds between questions
const RETRY = 10000; // after one that was not answered
const COST_PART = 10; // taking newer data over takes at most this part of the time

function scopeKey(model, scope) {
	return [model.scopes.kind[scope], modulePath(model, scope), scopeAddress(model, scope),
		scopeName(model, scope), scopeFile(model, scope), model.scopes.line[scope]].join("\n");
}

// For each scope of one model that of the other which is the same, or -1.
export function matchScopesOf(before, now) {
	const places = new Map();
	for (let i = now.scopes.count - 1; i >= 0; i--)
		places.set(scopeKey(now, i), i);
	return Int32Array.from({length: before.scopes.count}, (_, i) => places.get(scopeKey(before, i)) ?? -1);
}

// Finds nodes of one model in the other by their way from the root.
export class NodeFinder {
	constructor(before, now, scopes) {
		this.before = before;
		this.now = now;
		this.scopes = scopes;
		this.known = new Map([[0, 0]]);
	}
	find(node) {
		const path = [];
		let at = node;
		while (at >= 0 && !this.known.has(at)) {
			path.push(at);
			at = this.before.nodes.parent[at];
		}
		if (at < 0 || at === undefined)
			return -1;
		let place = this.known.get(at);
		while (path.length) {
			const next = path.pop();
			place = place < 0 ? -1 : this.child(place, this.scopes[this.before.nodes.scope[next]]);
			this.known.set(next, place);
		}
		return place;
	}
	child(parent, wanted) {
		const {end, scope} = this.now.nodes;
		for (let c = parent + 1; wanted >= 0 && c < end[parent]; c = end[c])
			if (scope[c] === wanted)
				return c;
		return -1;
	}
}

// Rows of the flat view, by their way from the top.
function findFlat(before, now, scopes, key, known) {
	if (known.has(key))
		return known.get(key);
	const row = before.rowOf(key), up = row ? before.parentKey(key) : "";
	const above = up ? findFlat(before, now, scopes, up, known) : null;
	const rows = !row || (up && !above) ? [] : now.level(above).rows();
	const found = rows.find((r) => row.scope < 0 ? r.scope < 0 && r.label === row.label :
		r.scope === scopes[row.scope]) || null;
	known.set(key, found);
	return found;
}

function threadKey(model, index) {
	const thread = model.header.threads[index], process = model.header.processes[thread.process];
	return [process ? process.pid : 0, thread.tid].join();
}

function findThreads(before, now, list) {
	const places = new Map(now.header.threads.map((_, i) => [threadKey(now, i), i]));
	return list.map((i) => places.get(threadKey(before, i)) ?? -1).filter((i) => i >= 0);
}

// What turns the keys of each view into those of the newer model; "" where there is none any more.
function keyFinders(app, before, now, scopes, nodes) {
	const flatBefore = app.open.flat.size || app.selectedBy.flat ? app.view("flat") : null;
	const known = new Map();
	const path = (key) => {
		const parts = key ? key.split(".").map((part) => scopes[Number(part)]) : [-1];
		return parts.every((part) => part >= 0) ? parts.join(".") : "";
	};
	return {
		memory: () => "", callers: path, folded: path, foldedCallers: path, upper: path, lower: path,
		tree: (key) => key && nodes.find(Number(key)) >= 0 ? String(nodes.find(Number(key))) : "",
		flat: (key) => {
			const row = key && flatBefore ? findFlat(flatBefore, app.view("flat"), scopes, key, known) : null;
			return row ? row.key : "";
		},
	};
}

// Newer data may have other reasons not to trust it.
function markNotes(app) {
	const {header} = app.model, count = header.summary.notes.length + header.moduleNotes.length;
	setText(app.warned, count ? `⚠ ${plural(count, "note")}` : "About");
	app.warned.className = count ? "warned" : "";
}

// Shows newer data in the place of what is shown.
export function replaceModel(app, now) {
	const before = app.model, {state} = app;
	const scopes = matchScopesOf(before, now), nodes = new NodeFinder(before, now, scopes);
	const finders = keyFinders(app, before, now, scopes, nodes);
	const scrolled = app.source.list.top, shown = app.selectedKey();
	app.model = now;
	app.selection = undefined;
	app.spent = null;
	app.comparison = null;
	if (state.compared)
		state.compared.threads = findThreads(before, now, state.compared.threads);
	setColumns(now, state);
	state.zoom = Math.max(0, nodes.find(state.zoom));
	state.node = Math.max(0, nodes.find(state.node));
	state.center = Math.max(0, scopes[state.center]);
	state.inside = finders.callers(state.inside);
	app.trail.clear(); // its nodes are others now
	if (state.threads)
		state.threads = findThreads(before, now, state.threads);
	if (state.compare && state.compare !== "off") {
		const [a, b] = [state.compare.a, state.compare.b].map((list) => findThreads(before, now, list));
		state.compare = a.length && b.length ? {...state.compare, a, b} : null;
	}
	if (state.moment) {
		const [thread] = findThreads(before, now, [state.moment[0]]);
		state.moment = thread === undefined ? null : [thread, state.moment[1]];
	}
	app.select();
	for (const [name, find] of Object.entries(finders)) {
		app.open[name] = new Set([...app.open[name] || []].map(find).filter(Boolean));
		app.selectedBy[name] = find(app.selectedBy[name] || "");
	}
	app.source.file = -1;
	markNotes(app);
	app.render();
	if (shown && app.selectedKey())
		app.source.list.scrollTo(scrolled);
	app.save();
}

// The mark in the page's head, and what it stands for.
export class Live {
	constructor(app, version) {
		this.app = app;
		this.version = version;
		this.paused = false;
		this.state = "going";
		this.mark = el("button", {type: "button", class: "live", onclick: () => this.toggle()});
		document.querySelector("header .buttons").prepend(this.mark);
		document.addEventListener("keydown", (event) => {
			const elsewhere = event.ctrlKey || event.metaKey || event.altKey ||
				event.target.closest("input, select, textarea, dialog");
			if (event.key === "p" && !elsewhere)
				this.toggle();
		});
		document.addEventListener("visibilitychange", () => this.later(0));
		this.show();
		this.later(EVERY);
	}
	show() {
		const {state, paused} = this;
		const samples = formatCount(this.app.model.header.summary.samples);
		const text = state === "ended" ? "■ ended" : state === "cut" ? "■ cut short" :
			state === "away" ? "○ no answer" : paused ? "‖ paused" : "● live";
		const over = state === "ended" || state === "cut";
		setText(this.mark, `${text} · ${samples} samples`);
		this.mark.title = over ? "the recording has ended: this is what came of it" :
			state === "away" ? "culprit view --serve does not answer any more: this is the newest that came" :
			paused ? "go on (p)" : "newer samples come by themselves; pause (p)";
		this.mark.dataset.state = over ? "over" : state === "away" || paused ? "still" : "live";
		this.mark.disabled = over;
		setAttribute(this.mark, "aria-pressed", over ? null : paused);
	}
	toggle() {
		this.paused = !this.paused;
		this.show();
		this.later(0);
	}
	later(delay) {
		clearTimeout(this.timer);
		if (this.state !== "ended" && this.state !== "cut" && !this.paused && !document.hidden)
			this.timer = setTimeout(() => this.ask(), delay);
	}
	// A dialog shows numbers of the present data: it is waited for.
	async ask() {
		let delay = EVERY;
		if (this.asking || document.querySelector("dialog[open]"))
			return this.later(EVERY);
		this.asking = true;
		try {
			const answer = await fetch("data", {cache: "no-store", headers: {"If-None-Match": `"${this.version}"`}});
			if (!answer.ok && answer.status !== 304)
				throw new Error(`answer ${answer.status}`);
			const model = answer.ok ? parseModel(await inflate(new Uint8Array(await answer.arrayBuffer()))) : null;
			const start = performance.now();
			if (model && !this.paused) {
				replaceModel(this.app, model);
				this.version = (answer.headers.get("ETag") || "").replaceAll('"', "");
			}
			if (!model || !this.paused)
				this.state = answer.headers.get("Culprit-State") || "going";
			delay = Math.max(EVERY, (performance.now() - start) * COST_PART);
		} catch {
			this.state = "away";
			delay = RETRY;
		}
		this.asking = false;
		this.show();
		this.later(delay);
	}
}
