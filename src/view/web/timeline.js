// SPDX-License-Identifier: Apache-2.0
// The time line: one row for each thread, coloured by the function that it was in. A canvas as large
// as what is in sight, as the flame graph is.

import {metricShort} from "./events.js";
import {formatTime, plural} from "./format.js";
import {cached, scopeName, scopeShort, threadLabel} from "./model.js";
import {matchScopes} from "./select.js";
import {drawResized, el, fitCanvas, setAttribute, setText} from "./dom.js";
import {Pixels, hslColour, readColours} from "./pixels.js";
import {moduleHues} from "./graph.js";
import {ownNodes} from "./own_code.js";
import {TimeMap} from "./timeline_map.js";
import {laneAt, laneTops, levelHigh, stackLevel, stackNodes} from "./timeline_lanes.js";
import {hasTimeline, shownNodes, spanAt, spanReason, spanWaker, stepOf, timeBoxes, timeRows, timeTicks, wholeTime} from "./times.js";
import {paintArrow, reasonColour, wakesOfSpan} from "./timeline_waits.js";
import {wakerWords} from "./waits.js";

const AXIS = 22, LEVELS = 12, NEAR = 4 /* pixels */, SHORTEST = 20 /* µs in sight */;
const NAMED = 8 /* functions and waits in the legend */, WAITS_NAMED = 4, WAIT_PART = 0.5 /* of the height of what runs */;

// Metrics that it has samples of.
export function timedMetrics(model) {
	return cached(model, "timed metrics", () => model.header.metrics.map((_, m) => m).filter((m) => model.spans.metric.includes(m)));
}

function seconds(us) {
	return formatTime(us / 1e6);
}

// The same hue as in the flame graph, a little different for each function of a module.
function functionColour(model, scope, theme) {
	const spread = Math.imul(scope + 1, 0x9e3779b1) >>> 0;
	const hue = moduleHues(model)[model.scopes.module[scope]] + (spread % 11 - 5) * 12;
	const light = parseFloat(theme.light) + ((spread >>> 8) % 5 - 2) * 2;
	return hslColour((hue + 720) % 360, parseFloat(theme.strength) / 100, light / 100);
}

export class Timeline {
	constructor(app) {
		this.app = app;
		this.canvas = el("canvas", {
			tabIndex: 0, role: "application", "aria-roledescription": "time line",
			"aria-label": "time line: arrow keys move, + and - zoom, Enter keeps the time of the span, " +
				"[ and ] a part of the time, w what is in sight, Escape all, j the thread that ended a wait",
			onkeydown: (event) => this.key(event),
			onpointerdown: (event) => this.press(event),
			onpointermove: (event) => this.move(event),
			onpointerup: (event) => this.release(event),
			onpointercancel: () => { this.drag = null; },
			ondblclick: (event) => this.zoomToSpan(this.spanUnder(event)),
			onmouseleave: () => { this.tip.hidden = true; },
		});
		this.canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
		this.tip = el("div", {class: "tip", role: "tooltip", hidden: true});
		this.space = el("div", {class: "space"});
		this.scroller = el("div", {class: "scroller"}, this.space, this.canvas);
		this.level = el("select", {"aria-label": "colour by", onchange: () =>
			this.setLevel(Number(this.level.value))});
		this.level.append(el("option", {value: 0}, "innermost function"));
		for (let i = 1; i <= LEVELS; i++)
			this.level.append(el("option", {value: i}, `level ${i}`));
		const button = (text, label, run) => el("button", {type: "button", title: label,
			"aria-label": label, onclick: run}, text);
		this.about = el("span", {class: "matched"});
		this.names = el("span", {class: "modules"});
		this.stacks = button("Stacks", "stacks over time of the selected thread (l)", () => app.toggleStacks());
		this.map = new TimeMap(this);
		this.bar = el("div", {class: "legend"}, el("label", {}, "colour by ", this.level),
			button("+", "zoom in (+)", () => this.zoom(0.5)), button("−", "zoom out (-)", () => this.zoom(2)),
			button("Whole", "the whole time (0)", () => this.setWindow(null)),
			button("Keep", "count only what is in sight (w)", () => this.app.setTime(this.window())), this.stacks,
			this.names, this.about);
		this.none = el("div", {class: "none"});
		this.element = el("div", {class: "graph timeline"}, this.bar, this.map.canvas, this.scroller, this.none, this.tip);
		this.scroller.addEventListener("scroll", () => this.paint(), {passive: true});
		this.drawn = null;
		drawResized(this.scroller, () => this.drawn, () => this.draw());
		this.rows = [];
		this.tops = new Float64Array(1); // where rows begin
		this.pixelColours = {};
		this.mark = null; // where a part of the time begins
		this.drag = null;
	}
	focus() {
		(hasTimeline(this.app.model) ? this.canvas : this.none.querySelector("p")).focus();
	}

	// What is in sight

	window() {
		return this.app.state.window || wholeTime(this.app.model);
	}
	setWindow(window) {
		const {app} = this, [first, last] = wholeTime(app.model);
		if (window) {
			const length = Math.min(last - first, Math.max(SHORTEST, window[1] - window[0]));
			const from = Math.max(first, Math.min(window[0], last - length));
			window = [Math.round(from), Math.round(from + length)];
		}
		app.state.window = window && (window[0] > first || window[1] < last) ? window : null;
		this.paint();
		app.save();
	}
	zoom(by, at = null) {
		const [from, to] = this.window();
		const here = at === null ? this.cursorTime() : at;
		const middle = here >= from && here <= to ? here : (from + to) / 2;
		this.setWindow([middle - (middle - from) * by, middle + (to - middle) * by]);
	}
	pan(part) {
		const [from, to] = this.window(), by = (to - from) * part;
		this.setWindow([from + by, to + by]);
	}
	zoomToSpan(span) {
		const {start, end} = this.app.model.spans;
		if (span < 0)
			return;
		const more = Math.max(SHORTEST, (end[span] - start[span]) * 0.2);
		this.setWindow([start[span] - more, end[span] + more]);
	}
	cursorTime() {
		const {moment} = this.app.state;
		return moment ? moment[1] : -1;
	}

	// Drawing

	draw() {
		const {app} = this;
		if (app.state.view !== "time")
			return;
		const there = hasTimeline(app.model);
		this.bar.hidden = this.scroller.hidden = this.map.canvas.hidden = !there;
		this.none.hidden = there;
		if (!there) {
			this.explain();
			return;
		}
		this.level.value = app.state.level;
		this.rows = timeRows(app.model, app.state.threads);
		this.layLanes();
		this.found = app.state.search ? matchScopes(app.model, "name", app.state.search) : null;
		setText(this.about, this.remark());
		this.paint();
	}
	layLanes() {
		const {app} = this;
		this.tops = laneTops(app.model, this.rows, this.scroller.clientHeight - AXIS - 2, this.openedThread());
		this.space.style.height = AXIS + this.tops.at(-1) + 2 + "px";
		setAttribute(this.stacks, "aria-pressed", String(app.state.stacks));
	}
	// The thread whose stacks are shown: that of the selected span, or the first; -1: none are.
	openedThread() {
		const {moment, stacks} = this.app.state;
		return !stacks ? -1 : moment ? moment[0] : this.rows.find((row) => row.thread >= 0)?.thread ?? -1;
	}
	highOf(row) {
		return this.tops[row + 1] - this.tops[row];
	}
	explain() {
		const {recorded} = this.app.model.header.timeline;
		this.none.replaceChildren(el("p", {tabIndex: -1}, recorded ?
			"A time line was asked for, but no sample is on it." :
			"No time line was recorded. It needs an option when recording:"),
		recorded ? null : el("p", {}, el("code", {}, "culprit record --timeline COMMAND")));
	}
	// What is not exact.
	remark() {
		const {model} = this.app, {coarse, untimed} = model.header.timeline, texts = [];
		if (model.recorded.metrics.length > 1)
			texts.push(`of ${timedMetrics(model).map((m) => metricShort(model.recorded.metrics[m])).join(", ")}`);
		if (coarse)
			texts.push(`samples within ${seconds(coarse)} were joined: shorter spans and gaps are not seen`);
		if (untimed)
			texts.push(`${plural(untimed, "sample")} not on it`);
		return texts.join(" · ");
	}
	get left() {
		return Math.round(Math.min(200, this.scroller.clientWidth * 0.25));
	}
	scale() {
		const [from, to] = this.window();
		return (this.scroller.clientWidth - this.left) / (to - from);
	}
	xOf(time) {
		return this.left + (time - this.window()[0]) * this.scale();
	}
	timeOf(x) {
		return this.window()[0] + (x - this.left) / this.scale();
	}
	readTheme() {
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(name).trim();
		this.theme = {
			text: get("--graph-text"), light: get("--graph-light"), strength: get("--graph-strength"),
			back: get("--back"), panel: get("--panel"), page: get("--text"), dim: get("--dim"),
			line: get("--line"), match: get("--graph-match"), focus: get("--focus"), chosen: get("--chosen"),
		};
		const {back, line, match, focus, chosen} = this.theme, key = JSON.stringify(this.theme), {model} = this.app;
		if (this.coloursFor !== key || this.coloursModel !== model) {
			this.coloursFor = key;
			this.coloursModel = model;
			this.pixelColours = readColours({back, line, match, focus, chosen});
			this.colours = new Uint32Array(model.scopes.count); // by function, where it is known
			this.waitColours = model.header.reasons.map((_, reason) => reasonColour(model, reason, parseFloat(this.theme.light) < 50));
		}
	}
	colour(scope) {
		if (this.found && this.found[scope])
			return this.pixelColours.match;
		return this.colours[scope] || (this.colours[scope] = functionColour(this.app.model, scope, this.theme));
	}
	paint() {
		this.drawn = null;
		if (this.app.state.view !== "time" || !this.scroller.clientWidth || !this.scroller.clientHeight || !hasTimeline(this.app.model))
			return;
		this.readTheme();
		this.look();
		this.showNames(); // which may leave less room for the lanes
		if (this.scroller.clientHeight !== this.sight.height || this.scroller.clientWidth !== this.sight.width) {
			this.layLanes();
			this.look();
		}
		const {left, width, height, first, last} = this.sight, scale = window.devicePixelRatio || 1, c = this.canvas.getContext("2d");
		this.drawn = {width, height};
		fitCanvas(this.canvas, width, height, scale);
		this.clearPixels(width - left, height, scale);
		c.setTransform(scale, 0, 0, scale, 0, 0);
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		const top = this.scroller.scrollTop, names = [], opened = this.openedThread();
		this.paintKept(height);
		for (let i = first; i < last; i++) {
			const paint = this.rows[i].thread === opened ? this.paintStacks : this.paintBoxes;
			paint.call(this, this.rows[i].thread, AXIS + this.tops[i] - top, this.highOf(i), width - left, names);
		}
		c.fillStyle = this.theme.back;
		c.fillRect(0, 0, left, height);
		c.putImageData(this.pixels.image, Math.round(left * scale), 0);
		for (let i = first; i < last; i++)
			this.paintLabel(c, this.rows[i], AXIS + this.tops[i] - top, Math.min(24, this.highOf(i)));
		for (const [name, from, to, y] of names)
			this.paintName(c, typeof name === "string" ? name : scopeShort(this.app.model, name), from, to, y);
		this.map.paint(this.theme, left, width);
		this.paintAxis(c, width, height);
		this.paintCursor(c, top);
	}
	// What is in sight, asked for once: the browser may have to lay out the page for it.
	look() {
		const {clientWidth: width, clientHeight: height, scrollTop: top} = this.scroller, [from, to] = this.window(), {left} = this;
		const {selection, state, model} = this.app, end = laneAt(this.tops, top + height - AXIS);
		this.sight = {left, width, height, from, to, scale: (width - left) / (to - from), wanted: selection.wanted, kept: state.reason,
			reasons: model.rows.reason, first: Math.max(0, laneAt(this.tops, top)), last: end < 0 ? this.rows.length : end + 1};
		this.shown = shownNodes(model, state.level);
	}
	clearPixels(width, height, scale) {
		if (!this.pixels || !this.pixels.isLike(width, height, scale))
			this.pixels = new Pixels(width, height, scale);
		this.pixels.all.fill(this.pixelColours.back);
	}
	// What has the most of the lanes in sight: functions (scopes), and what is waited for (reasons).
	largest() {
		const {model} = this.app, {scope} = model.nodes, {row} = model.spans, {left, width, first, last, reasons} = this.sight;
		const functions = new Map(), waiting = new Map(), opened = this.openedThread();
		const add = (shares, one, share) => shares.set(one, (shares.get(one) || 0) + share);
		for (const {thread} of this.rows.slice(first, last)) {
			if (thread < 0)
				continue;
			const shown = thread === opened ? shownNodes(model, 0) : this.shown; // where stacks are shown, the innermost counts
			for (const {span, w, busy, waits, wait} of this.boxesOf(thread, width - left)) {
				if (busy && this.isCounted(row[span]))
					add(functions, scope[shown[model.rows.node[row[span]]]], Math.max(1, w) * busy);
				if (waits >= 0 && this.isCounted(row[waits]))
					add(waiting, reasons[row[waits]], Math.max(1, w) * wait);
			}
		}
		const order = (shares, count) => [...shares].sort((a, b) => b[1] - a[1]).slice(0, count).map(([one]) => one);
		const waits = order(waiting, WAITS_NAMED);
		return {waits, most: order(functions, NAMED - waits.length)};
	}
	// The functions that took the most of what is in sight, in their colours; and what was waited for.
	showNames() {
		const {model} = this.app, {most, waits} = this.largest();
		const key = JSON.stringify([most, waits, this.coloursFor]);
		if (this.named === key)
			return;
		this.named = key;
		const sample = (colour, text, title) => {
			const parts = [colour & 255, colour >> 8 & 255, colour >> 16 & 255];
			const name = el("span", {class: "key exact", title}, text);
			name.style.setProperty("--exact", `rgb(${parts.join(" ")})`);
			return name;
		};
		this.names.replaceChildren(...most.map((scope) => sample(this.colour(scope), scopeShort(model, scope), scopeName(model, scope))),
			...waits.map((reason) => sample(this.waitColours[reason], `waits: ${model.header.reasons[reason]}`, "what threads wait for")));
	}
	paintLabel(c, row, y, high) {
		const {model} = this.app, {theme} = this, {left} = this.sight;
		c.fillStyle = row.thread < 0 ? theme.page : theme.dim;
		const process = model.header.processes[row.process];
		const name = row.thread < 0 ? `${process.name} ${process.pid}` :
			`${model.header.threads[row.thread].name} ${model.header.threads[row.thread].tid}`;
		c.save();
		c.beginPath();
		c.rect(0, y, left - 4, high);
		c.clip();
		c.fillText(name, row.thread < 0 || this.rows[0].thread >= 0 ? 6 : 18, y + high / 2);
		c.restore();
	}
	boxesOf(thread, width) {
		const {model} = this.app, [from, to] = this.window(), key = `${from} ${to} ${width}`;
		if (this.boxesFor !== key || this.boxesModel !== model) {
			this.boxes = new Map();
			this.boxesFor = key;
			this.boxesModel = model; // newer data comes while it is recorded
		}
		if (!this.boxes.has(thread))
			this.boxes.set(thread, timeBoxes(model, thread, from, to, width));
		return this.boxes.get(thread);
	}
	// Whether the filters leave a row of samples.
	isCounted(row) {
		const {wanted, kept, reasons} = this.sight;
		return wanted[row] && (!kept || reasons[row] === kept);
	}
	// The boxes of a thread; those with room for it get a name, [scope, from, to, its middle].
	paintBoxes(thread, y, laneHigh, width, names) {
		if (thread < 0)
			return;
		const {model} = this.app, {scope, end} = model.nodes, {row} = model.spans;
		const {pixels, pixelColours, sight} = this, [begun, ended] = model.header.timeline.threads[thread];
		const chosen = Number(this.app.selectedBy.tree) || 0, bottom = y + laneHigh - 3;
		const x = (begun - sight.from) * sight.scale, until = (ended - sight.from) * sight.scale;
		if (until > 0 && x < width)
			pixels.fill(Math.max(0, x), y + laneHigh - 2, Math.min(until, width) - Math.max(0, x), 1, pixelColours.line);
		for (const box of this.boxesOf(thread, width)) {
			const place = row[box.span], node = model.rows.node[place], shown = this.shown[node];
			const counts = this.isCounted(place), high = Math.max(3, (laneHigh - 6) * box.busy);
			const w = Math.max(1, box.w - (box.w > 3 ? 0.5 : 0));
			if (box.waits >= 0)
				this.paintWait(box, bottom, laneHigh, w, names);
			if (!box.busy)
				continue;
			pixels.fill(box.x, bottom - high, w, high, counts ? this.colour(scope[shown]) : pixelColours.line);
			if (chosen && node >= chosen && node < end[chosen])
				pixels.fill(box.x, bottom, w, 3, pixelColours.focus);
			if (counts && w > 24 && high > 12)
				names.push([scope[shown], sight.left + box.x, sight.left + box.x + w, bottom - Math.min(high, 18) / 2]);
		}
	}
	// Waiting stands above what runs in the same time, and is not as high.
	paintWait({x, waits, busy, wait}, bottom, laneHigh, w, names) {
		const {pixels, pixelColours, sight} = this, room = laneHigh - 6, row = this.app.model.spans.row[waits];
		const reason = sight.reasons[row], counts = this.isCounted(row);
		const high = Math.max(3, room * WAIT_PART * wait), top = bottom - room * busy - high;
		pixels.fill(x, top, w, high, counts ? this.waitColours[reason] : pixelColours.line);
		if (!counts)
			return;
		if (w > 24 && high > 12)
			names.push([this.app.model.header.reasons[reason], sight.left + x, sight.left + x + w, top + Math.min(high, 18) / 2]);
	}
	// The same with all functions of each stack, the outermost above.
	paintStacks(thread, y, laneHigh, width, names) {
		const {model} = this.app, {scope} = model.nodes, {pixels, pixelColours, sight} = this;
		const before = []; // by level: {node, from, to} that may go on
		const end = (level) => {
			const {node, from, to} = before[level];
			if (to - from > 24)
				names.push([scope[node], sight.left + from, sight.left + to, y + 2 + (level + 0.5) * high]);
		};
		const boxes = this.boxesOf(thread, width).map((box) => {
			const place = model.spans.row[box.span];
			return {...box, counts: this.isCounted(place), stack: stackNodes(model, model.rows.node[place])};
		});
		const deepest = Math.max(1, ...boxes.map((box) => box.stack.length)), high = levelHigh(laneHigh, deepest);
		this.stackDepth = deepest;
		for (const {x, w, counts, stack} of boxes) {
			while (before.length > stack.length) {
				if (high > 11)
					end(before.length - 1);
				before.pop();
			}
			stack.forEach((node, level) => {
				pixels.fill(x, y + 2 + level * high, Math.max(1, w), Math.max(1, high - 1),
					counts ? this.colour(scope[node]) : pixelColours.line);
				const last = before[level];
				if (last && last.node === node && x - last.to < 2) {
					last.to = x + w;
					return;
				}
				if (last && high > 11)
					end(level);
				before[level] = {node, from: x, to: x + w};
			});
		}
		if (high > 11)
			before.forEach((_, level) => end(level));
	}
	paintName(c, name, from, to, y) {
		const left = Math.max(from, this.sight.left), room = Math.floor((Math.min(to, this.sight.width) -
			left - 6) / 6.4);
		if (room < 3)
			return;
		c.fillStyle = this.theme.text;
		c.fillText(name.length > room ? name.slice(0, room - 1) + "…" : name, left + 4, y);
	}
	paintAxis(c, width, height) {
		const {theme} = this, {left, from, to, scale} = this.sight;
		c.fillStyle = theme.panel;
		c.fillRect(0, 0, width, AXIS);
		c.fillStyle = theme.line;
		c.fillRect(0, AXIS - 1, width, 1);
		c.fillRect(left - 1, 0, 1, height);
		const {ticks} = timeTicks(from, to, (width - left) / 110);
		for (const tick of ticks) {
			const x = left + (tick - from) * scale;
			c.fillStyle = theme.line;
			c.fillRect(x, AXIS - 6, 1, 6);
			c.fillStyle = theme.dim;
			c.fillText(this.tickText(tick), x + 3, AXIS / 2);
		}
	}
	tickText(us) {
		const [from, to] = this.window(), digits = Math.max(0, 6 - Math.floor(Math.log10((to - from) / 8)));
		return (us / 1e6).toFixed(Math.min(6, digits)) + " s";
	}
	// The part of the time that counts.
	paintKept(height) {
		const kept = this.drag && this.drag.moved ? [this.drag.from, this.drag.to].sort((a, b) => a - b) :
			this.app.state.time;
		if (!kept)
			return;
		const {from, scale, left, width} = this.sight, [begin, end] = kept.map((time) => (time - from) * scale);
		if (end > 0 && begin < width - left)
			this.pixels.fill(Math.max(0, begin), AXIS, Math.max(1, Math.min(end, width) - Math.max(0, begin)), height,
				this.pixelColours.chosen);
	}
	paintCursor(c, top) {
		const {moment} = this.app.state, {start, end} = this.app.model.spans;
		const at = moment ? this.rows.findIndex((row) => row.thread === moment[0]) : -1;
		const span = at < 0 ? -1 : spanAt(this.app.model, moment[0], moment[1], Infinity);
		if (span < 0)
			return;
		const x = Math.max(this.left, this.xOf(start[span])), y = AXIS + this.tops[at] - top, high = this.highOf(at);
		if (y < AXIS - high || this.xOf(end[span]) < this.left)
			return;
		c.strokeStyle = this.theme.focus;
		c.lineWidth = 2;
		c.strokeRect(x - 1, y + 2, Math.max(3, this.xOf(end[span]) - x + 2), high - 3);
		this.paintArrows(c, span, top);
	}
	// From the thread that woke to the one that was woken.
	paintArrows(c, span, top) {
		const {model} = this.app, {left, width} = this.sight;
		c.fillStyle = this.theme.focus;
		this.arrows = 0;
		for (const [waker, woken, time] of wakesOfSpan(model, span)) {
			const [from, to] = [waker, woken].map((thread) => this.rows.findIndex((row) => row.thread === thread)), x = this.xOf(time);
			if (from < 0 || to < 0 || from === to || x < left || x > width)
				continue;
			const middle = (row) => AXIS + this.tops[row] - top + this.highOf(row) / 2;
			paintArrow(c, x, middle(from), middle(to));
			this.arrows++;
		}
	}
	// To the thread that ended the selected wait, at that time.
	pickWaker() {
		const {model} = this.app, {span} = this.cursor(), waker = span < 0 ? -1 : spanWaker(model, span);
		const at = waker < 0 ? -1 : spanAt(model, waker, model.spans.end[span], Infinity);
		if (at >= 0 && this.rows.some((row) => row.thread === waker))
			this.pick(at);
		else
			this.app.say(span < 0 || !spanReason(model, span) ? "Select a time in which a thread waits first." :
				"No thread that is in sight is known to have ended this wait.");
	}

	// The mouse

	place(event) {
		const frame = this.canvas.getBoundingClientRect();
		return {x: event.clientX - frame.left, y: event.clientY - frame.top};
	}
	rowUnder(y) {
		const row = y < AXIS ? null : this.rows[laneAt(this.tops, y - AXIS + this.scroller.scrollTop)];
		return row && row.thread >= 0 ? row : null;
	}
	spanUnder(event) {
		const {x, y} = this.place(event), row = x < this.left ? null : this.rowUnder(y);
		return row ? spanAt(this.app.model, row.thread, this.timeOf(x), NEAR / this.scale()) : -1;
	}
	// The node of a stack that is shown there; null: there is none.
	stackUnder(event) {
		const {model} = this.app, {y} = this.place(event), span = this.spanUnder(event), row = this.rowUnder(y);
		if (span < 0 || row.thread !== this.openedThread())
			return null;
		const at = this.rows.indexOf(row), stack = stackNodes(model, model.rows.node[model.spans.row[span]]);
		return stack[stackLevel(y - AXIS + this.scroller.scrollTop - this.tops[at], this.highOf(at), this.stackDepth)] ?? null;
	}
	press(event) {
		const {x} = this.place(event);
		if (event.button || x < this.left)
			return;
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = {x, from: this.timeOf(x), to: this.timeOf(x), moved: false, pan: event.shiftKey,
			window: this.window()};
	}
	move(event) {
		const {drag} = this, {x} = this.place(event);
		if (!drag) {
			this.showTip(this.spanUnder(event), event);
			return;
		}
		drag.moved = drag.moved || Math.abs(x - drag.x) > 3;
		this.tip.hidden = true;
		if (drag.pan) {
			const by = (drag.x - x) / this.scale();
			this.setWindow([drag.window[0] + by, drag.window[1] + by]);
			return;
		}
		drag.to = this.timeOf(Math.max(this.left, x));
		this.paint();
	}
	release(event) {
		const {drag} = this;
		this.drag = null;
		if (!drag)
			return;
		if (!drag.moved)
			this.pick(this.spanUnder(event), this.stackUnder(event));
		else if (!drag.pan)
			this.keep(drag.from, drag.to);
	}
	wheel(event) {
		const {x} = this.place(event);
		if (x < this.left || event.altKey)
			return; // then the threads are scrolled
		event.preventDefault();
		if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
			this.pan((event.deltaX || event.deltaY) / 1000);
		else
			this.zoom(1.2 ** (Math.sign(event.deltaY) * Math.min(3, Math.abs(event.deltaY) / 50)), this.timeOf(x));
	}
	showTip(span, event) {
		this.tip.hidden = span < 0;
		if (span < 0)
			return;
		const {model} = this.app, {x, y} = this.place(event);
		const [name, ...lines] = this.describe(span, this.stackUnder(event));
		this.tip.replaceChildren(el("b", {}, name), ...lines.map((line) => el("div", {}, line)));
		const frame = this.element.getBoundingClientRect(), top = y + this.bar.offsetHeight;
		this.tip.style.left = Math.max(0, Math.min(x + 12, frame.width - this.tip.offsetWidth - 4)) + "px";
		const below = top + 18 + this.tip.offsetHeight < frame.height;
		this.tip.style.top = (below ? top + 18 : Math.max(0, top - 12 - this.tip.offsetHeight)) + "px";
		this.canvas.style.cursor = model.spans.count ? "pointer" : "default";
	}
	// Where, in what, when, how much.
	describe(span, over = null) {
		const {model} = this.app, {spans, nodes, rows} = model;
		const node = rows.node[spans.row[span]], shown = over ?? (this.shown ? this.shown[node] : node);
		const inner = shownNodes(model, 0)[node], length = spans.end[span] - spans.start[span];
		const step = stepOf(model, spans.metric[span]);
		const busy = step && length ? Math.min(1, spans.samples[span] * step / length) : 1, reason = spanReason(model, span);
		const when = `from ${(spans.start[span] / 1e6).toFixed(6)} s, for ${seconds(length)}`;
		if (reason)
			return [`waits for: ${model.header.reasons[reason]}`, `in ${scopeName(model, nodes.scope[over ?? this.waitNode(node)])}`, when,
				...spans.waker[span] ? [`woken by ${wakerWords(model, spans.waker[span] - 1)}`] : [],
				threadLabel(model, rows.thread[spans.row[span]])];
		return [scopeName(model, nodes.scope[shown]),
			...inner === shown ? [] : [`in ${scopeName(model, nodes.scope[inner])}`],
			when,
			`${plural(spans.samples[span], "sample")}${busy < 0.95 ? `, ${Math.round(100 * busy)}% busy` : ""}`,
			threadLabel(model, rows.thread[spans.row[span]])];
	}

	// The selected wait, for the details.
	putSpan(put) {
		const {model} = this.app, {span} = this.cursor(), reason = span < 0 ? 0 : spanReason(model, span);
		if (!reason)
			return;
		const waker = model.spans.waker[span];
		put("waits for", `${model.header.reasons[reason]}, ${seconds(model.spans.end[span] - model.spans.start[span])}`);
		if (waker)
			put("woken by", spanWaker(model, span) < 0 ? wakerWords(model, waker - 1) : el("button", {type: "button", class: "link",
				title: "go there (j)", onclick: () => this.pickWaker()}, wakerWords(model, waker - 1)));
	}
	// The innermost function outside of the kernel and libraries that waits.
	waitNode(node) {
		return ownNodes(this.app.model).node[node] || shownNodes(this.app.model, 0)[node];
	}

	// What is done

	// node: what is selected, if it is not that of the span
	pick(span, node = null) {
		const {app} = this, {spans, rows} = app.model;
		if (span < 0)
			return;
		const from = Math.floor((spans.start[span] + spans.end[span]) / 2);
		app.state.moment = [rows.thread[spans.row[span]], from];
		this.layLanes();
		this.reveal(span);
		app.openTo(node ?? (spanReason(app.model, span) ? this.waitNode(rows.node[spans.row[span]]) : rows.node[spans.row[span]]));
		setText(app.status, this.describe(span).join(", "));
	}
	reveal(span) {
		const {start, end, row} = this.app.model.spans, [from, to] = this.window();
		const at = this.rows.findIndex((r) => r.thread === this.app.model.rows.thread[row[span]]);
		const y = this.tops[at], top = this.scroller.scrollTop, high = this.scroller.clientHeight - AXIS;
		if (y < top)
			this.scroller.scrollTop = y;
		else if (y + this.highOf(at) > top + high)
			this.scroller.scrollTop = y + this.highOf(at) - high;
		if (end[span] < from || start[span] > to)
			this.setWindow([start[span] - (to - from) / 4, start[span] + 3 * (to - from) / 4]);
	}
	keep(a, b) {
		const [first, last] = wholeTime(this.app.model);
		const from = Math.max(first, Math.round(Math.min(a, b))), to = Math.min(last, Math.round(Math.max(a, b)));
		if (to > from)
			this.app.setTime([from, to]);
	}
	setLevel(level) {
		this.app.state.level = Math.max(0, Math.min(LEVELS, level));
		this.level.value = this.app.state.level;
		this.paint();
		this.app.save();
	}
	cursor() {
		const {moment} = this.app.state, {model} = this.app;
		const row = moment ? this.rows.findIndex((r) => r.thread === moment[0]) : -1;
		return {row, span: row < 0 ? -1 : spanAt(model, moment[0], moment[1], Infinity)};
	}
	// To the span before or after, or (by 0) to the first one in sight.
	step(by) {
		const {first} = this.app.model.spans, {row, span} = this.cursor();
		if (row < 0)
			return this.stepRow(1);
		const {thread} = this.rows[row];
		this.pick(Math.max(first[thread], Math.min(first[thread + 1] - 1, span + by)));
	}
	// To the thread above or below, at the same time.
	stepRow(by) {
		const {model, state} = this.app, {row} = this.cursor();
		const time = state.moment && row >= 0 ? state.moment[1] : this.window()[0];
		for (let at = row + by; at >= 0 && at < this.rows.length; at += by)
			if (this.rows[at].thread >= 0) {
				this.pick(spanAt(model, this.rows[at].thread, time, Infinity));
				return;
			}
	}
	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.rows.length)
			return;
		const {spans} = this.app.model, {span} = this.cursor();
		const actions = {
			ArrowLeft: () => event.shiftKey ? this.pan(-0.1) : this.step(-1),
			ArrowRight: () => event.shiftKey ? this.pan(0.1) : this.step(1),
			ArrowUp: () => this.stepRow(-1), ArrowDown: () => this.stepRow(1),
			PageUp: () => this.pan(-0.8), PageDown: () => this.pan(0.8),
			Home: () => this.step(-spans.count), End: () => this.step(spans.count),
			"+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
			0: () => this.setWindow(null),
			",": () => this.setLevel(this.app.state.level - 1), ".": () => this.setLevel(this.app.state.level + 1),
			Enter: () => span >= 0 && this.keep(spans.start[span], spans.end[span]),
			"[": () => { this.mark = span >= 0 ? spans.start[span] : null; },
			"]": () => span >= 0 && this.keep(this.mark === null ? wholeTime(this.app.model)[0] : this.mark,
				spans.end[span]),
			w: () => this.app.setTime(this.window()), j: () => this.pickWaker(),
			Escape: () => this.app.setTime(null),
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}
}
