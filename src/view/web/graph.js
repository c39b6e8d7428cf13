// SPDX-License-Identifier: Apache-2.0
// The flame graph, or icicles: a canvas as large as what is in sight, over a space as high as the
// stacks are deep.

import {formatTrusted, formatWorded} from "./events.js";
import {baseName, formatCount, formatPercent} from "./format.js";
import {KIND, cached, modulePath, scopeName, scopeShort} from "./model.js";
import {flameHit, flameLevels, layoutFlame, matchedTotal} from "./flame.js";
import {GraphSource} from "./graph_source.js";
import {openMenu} from "./menu.js";
import {matchScopes} from "./select.js";
import {comparedColour, comparedLabel, comparedLegend, comparedTip, comparedWidths} from "./compare_graph.js";
import {drawResized, el, fitCanvas, setAttribute, setStyle, setText} from "./dom.js";

const BOX = 20;
const MODULES_NAMED = 5;
const DOUBLE_CLICK = 500; // milliseconds

// A hue for each module, those with the most samples first; what is drawn on it is readable by the lightness
// that the theme sets.
const HUES = [214, 150, 275, 52, 355, 185, 320, 95];

export function moduleHues(model) {
	return cached(model, "hues", () => {
		const sums = model.header.modules.map(() => 0), {scope} = model.nodes, {module} = model.scopes;
		const {node, counts} = model.rows;
		for (let r = 0; r < node.length; r++)
			sums[module[scope[node[r]]]] += counts[0][r];
		const hues = [];
		sums.map((_, m) => m).sort((a, b) => sums[b] - sums[a]).forEach((m, i) => {
			hues[m] = i < HUES.length ? HUES[i] : (i * 137.5 + 10) % 360;
		});
		return hues;
	});
}

export class Graph {
	// source: what is drawn (graph_source.js)
	constructor(app, source = new GraphSource(app)) {
		this.app = app;
		this.source = source;
		this.canvas = el("canvas", {
			tabIndex: 0, role: "application", "aria-roledescription": "flame graph",
			"aria-label": "flame graph: arrow keys move, Enter zooms, Backspace zooms out",
			onkeydown: (event) => this.key(event),
			onclick: (event) => this.click(event),
			ondblclick: (event) => this.zoomAt(event),
			onmousemove: (event) => this.hover(event),
			oncontextmenu: (event) => this.menu(event),
			onmouseleave: () => this.showTip(-1),
		});
		this.tip = el("div", {class: "tip", role: "tooltip", hidden: true});
		this.space = el("div", {class: "space"});
		this.scroller = el("div", {class: "scroller"}, this.space, this.canvas);
		const button = (label, run) => el("button", {type: "button", title: label, onclick: run}, "");
		this.flip = button("flames or icicles (g)", () => app.flip());
		this.invert = button("each function as wide as its own samples, its callers below (I)", () => app.toggleGraph("inverted"));
		this.fold = button("a function that calls itself, also by way of others, stands once on each path (R)",
			() => app.toggleGraph("folded"));
		setText(this.invert, "Inverted");
		setText(this.fold, "Fold recursion");
		this.matched = el("span", {class: "matched"});
		this.modules = el("span", {class: "modules"});
		this.legend = el("span");
		this.element = el("div", {class: "graph"},
			this.bar = el("div", {class: "legend"}, this.flip, this.invert, this.fold,
				el("span", {class: "key function"}, "function"),
				el("span", {class: "key loop"}, "loop"),
				el("span", {class: "key inline"}, "inlined"),
				this.partial = el("span", {class: "key partial"}, "partial"), this.legend, this.modules,
				this.matched),
			this.scroller, this.tip);
		this.scroller.addEventListener("scroll", () => this.paint(), {passive: true});
		this.drawn = null;
		drawResized(this.scroller, () => this.drawn, () => this.draw());
		this.hovered = -1;
		this.laid = {};
		this.highest = 0;
		this.zoomedAt = -Infinity;
	}
	draw() {
		const {app, source} = this, width = this.scroller.clientWidth, icicle = source.icicle();
		this.drawn = null;
		if (!this.element.isConnected || !width)
			return;
		this.lay(source.tree(), width);
		this.found = app.state.search ? matchScopes(app.model, "name", app.state.search) : null;
		const high = (this.layout.deepest + 1) * BOX + 4;
		this.space.style.height = Math.max(high, 1) + "px";
		this.highest = Math.max(this.highest, high); // it stays as high when it is zoomed or filtered
		setStyle(this.element, "--deep", this.highest + "px");
		if (!source.isPart)
			this.showLegend();
		const root = this.tree.key(this.tree.root);
		if (!icicle && this.flipped !== root)
			this.scroller.scrollTop = high;
		this.flipped = icicle ? null : root;
		this.paint();
	}
	// Boxes stay where they are when a search or the direction changes.
	lay(tree, width) {
		if (this.tree === tree && this.laidWidth === width)
			return;
		this.tree = tree;
		this.laidWidth = width;
		this.layout = layoutFlame(tree, width);
		this.levels = flameLevels(this.layout);
	}
	showLegend() {
		const {app} = this, compared = Boolean(app.comparison), {icicle, inverted, folded} = app.state;
		this.partial.hidden = this.modules.hidden = this.invert.hidden = this.fold.hidden = compared;
		this.legend.replaceChildren(...(compared ? [comparedLegend(app)] : []));
		setText(this.flip, icicle ? "turn into flames" : "turn into icicles");
		setAttribute(this.invert, "aria-pressed", String(inverted));
		setAttribute(this.fold, "aria-pressed", String(folded));
		this.showMatched();
		if (!compared)
			this.showModules();
	}
	// However boxes are put together: samples on whose path something matches.
	showMatched() {
		const {app} = this, {metric, zoom} = app.state;
		const sums = app.comparison ? comparedWidths(app) : app.selection.sums[metric];
		const sum = this.found ? matchedTotal(app.model, sums, zoom, this.found) : 0;
		setText(this.matched, this.found ?
			`matched: ${formatPercent(sum, app.comparison ? sums.total(zoom) : app.model.whole[metric]) || "0%"}` : "");
	}
	// The colours of those modules that take the most room.
	showModules() {
		const {scopes, header} = this.app.model, room = new Map();
		this.layout.item.forEach((item, box) => {
			const module = scopes.module[this.tree.scope(item)];
			if (module && !this.layout.small[box])
				room.set(module, (room.get(module) || 0) + this.layout.w[box]);
		});
		const most = [...room].sort((a, b) => b[1] - a[1]).slice(0, MODULES_NAMED).map(([module]) => module);
		this.modules.replaceChildren(...most.map((module) => {
			const key = el("span", {class: "key module"}, baseName(header.modules[module].path));
			key.style.setProperty("--hue", moduleHues(this.app.model)[module]);
			return key;
		}));
	}
	// The top of a level, in the space, of which so much is seen.
	topOf(depth, seen = this.scroller.clientHeight) {
		const high = Math.max(seen, (this.layout.deepest + 1) * BOX + 4);
		return this.source.icicle() ? depth * BOX : high - (depth + 1) * BOX - 2;
	}
	paint() {
		if (!this.layout)
			return;
		const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
		const scale = window.devicePixelRatio || 1, c = this.canvas.getContext("2d");
		this.drawn = {width, height};
		fitCanvas(this.canvas, width, height, scale);
		const style = getComputedStyle(document.documentElement);
		this.theme = {
			text: style.getPropertyValue("--graph-text").trim(),
			light: style.getPropertyValue("--graph-light").trim(),
			strength: style.getPropertyValue("--graph-strength").trim(),
			line: style.getPropertyValue("--graph-line").trim(),
			edge: style.getPropertyValue("--graph-edge").trim(),
			back: style.getPropertyValue("--back").trim(),
			match: style.getPropertyValue("--graph-match").trim(),
			warn: style.getPropertyValue("--graph-warn").trim(),
			focus: style.getPropertyValue("--focus").trim(),
			colours: new Map(), style,
		};
		c.setTransform(scale, 0, 0, scale, 0, 0);
		c.fillStyle = this.theme.back;
		c.fillRect(0, 0, width, height);
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		this.pattern = this.makePattern(c);
		const top = this.scroller.scrollTop;
		const batches = new Map(), wide = [];
		for (let depth = 0; depth < this.levels.length; depth++) {
			const y = this.topOf(depth, height) - top;
			if (y < -BOX || y > height)
				continue;
			for (const box of this.levels[depth])
				this.sortBox(box, y, batches, wide);
		}
		for (const [colour, boxes] of batches) {
			c.fillStyle = colour;
			for (let i = 0; i < boxes.length; i += 3)
				c.fillRect(boxes[i], boxes[i + 1], boxes[i + 2], BOX - 1);
		}
		for (const [box, y] of wide)
			this.paintBox(c, box, y);
		this.paintFocus(c, top);
	}
	makePattern(c) {
		if (this.hatch && this.hatchLine === this.theme.line)
			return this.hatch;
		const tile = el("canvas", {width: 8, height: 8}), t = tile.getContext("2d");
		t.strokeStyle = this.theme.line;
		t.lineWidth = 1.2;
		for (const x of [-8, 0, 8]) {
			t.beginPath();
			t.moveTo(x, 8);
			t.lineTo(x + 8, 0);
			t.stroke();
		}
		this.hatchLine = this.theme.line;
		this.hatch = c.createPattern(tile, "repeat");
		return this.hatch;
	}
	colour(scope, kind, node) {
		const {theme} = this, module = this.app.model.scopes.module[scope];
		if (this.found && this.found[scope])
			return theme.match;
		if (this.app.comparison)
			return comparedColour(this.app, node, theme);
		if (kind === KIND.partial)
			return theme.warn;
		if (kind === KIND.root)
			return this.plainColour();
		const key = module * 2 + (kind === KIND.inline ? 1 : 0);
		if (!theme.colours.has(key))
			theme.colours.set(key, `hsl(${moduleHues(this.app.model)[module]} ${key % 2 ? "35%" : theme.strength} ${theme.light})`);
		return theme.colours.get(key);
	}
	// Of what is no code.
	plainColour() {
		return `hsl(0 0% ${this.theme.light})`;
	}
	// {scope, kind, node} of a box; kind is the root's for those that are drawn together.
	about(box) {
		const {layout, tree} = this, item = layout.item[box], scope = tree.scope(item);
		return {scope, node: tree.node(item), kind: layout.small[box] || !scope ? KIND.root : this.app.model.scopes.kind[scope]};
	}
	boxColour(box) {
		const {scope, kind, node} = this.about(box);
		return this.layout.small[box] ? this.plainColour() : this.colour(scope, kind, node);
	}
	// Boxes are filled colour by colour, which is much quicker; what has more than a colour comes
	// afterwards.
	sortBox(box, y, batches, wide) {
		const {layout} = this, w = layout.w[box], {kind} = this.about(box), colour = this.boxColour(box);
		if (!batches.has(colour))
			batches.set(colour, []);
		batches.get(colour).push(layout.x[box], y, Math.max(0.5, w - (w > 3 ? 1 : 0)));
		if (w > 28 || (w > 4 && (kind === KIND.loop || kind === KIND.inline)))
			wide.push([box, y]);
	}
	paintBox(c, box, y) {
		const {layout} = this, {kind} = this.about(box), x = layout.x[box], wide = layout.w[box] - 1;
		if (kind === KIND.loop && wide > 2) {
			c.fillStyle = this.pattern;
			c.fillRect(x, y, wide, BOX - 1);
		}
		if (kind === KIND.inline && wide > 4) {
			c.strokeStyle = this.theme.edge;
			c.setLineDash([2, 2]);
			c.lineWidth = 1;
			c.strokeRect(x + 0.5, y + 0.5, wide - 1, BOX - 2);
			c.setLineDash([]);
		}
		if (wide > 28)
			this.paintText(c, box, x, y, wide);
	}
	label(box, room) {
		const {app, layout} = this, {scope, node} = this.about(box);
		if (layout.small[box])
			return `${formatCount(layout.small[box])} small`;
		return app.comparison && node >= 0 ? comparedLabel(app, node, room) : scopeShort(app.model, scope);
	}
	paintText(c, box, x, y, wide) {
		const left = Math.max(x, 0), room = Math.floor((x + wide - left - 6) / 6.4);
		if (room < 3)
			return;
		const name = this.label(box, room), text = name.length > room ? name.slice(0, room - 1) + "…" : name;
		if (this.about(box).kind === KIND.loop) { // the hatch must not run through the letters
			c.fillStyle = this.boxColour(box);
			c.fillRect(left + 2, y + 2, Math.min(wide - 4, c.measureText(text).width + 4), BOX - 5);
		}
		c.fillStyle = this.theme.text;
		c.fillText(text, left + 4, y + BOX / 2, x + wide - left - 5);
	}
	// The selected box, and others of the same function.
	paintFocus(c, top) {
		const box = this.boxOf(this.source.selectedKey()), row = box < 0 ? this.app.selectedRow() : null;
		const scope = box >= 0 ? this.about(box).scope : row ? row.scope : -1;
		c.strokeStyle = this.theme.focus;
		if (scope > 0)
			this.paintSame(c, top, scope);
		if (box < 0)
			return;
		c.lineWidth = 2;
		c.strokeRect(this.layout.x[box] + 1, this.topOf(this.layout.depth[box]) - top + 1,
			Math.max(2, this.layout.w[box] - 2), BOX - 3);
	}
	paintSame(c, top, scope) {
		const {layout, tree} = this, bottom = top + this.scroller.clientHeight;
		c.lineWidth = 1;
		layout.item.forEach((item, box) => {
			if (layout.w[box] <= 3 || layout.small[box] || tree.scope(item) !== scope)
				return;
			const y = this.topOf(layout.depth[box]);
			if (y >= top - BOX && y < bottom)
				c.strokeRect(layout.x[box] + 0.5, y - top + 0.5, layout.w[box] - 2, BOX - 2);
		});
	}
	boxOf(key) {
		const {layout, tree} = this;
		return layout ? layout.item.findIndex((item, box) => !layout.small[box] && tree.key(item) === key) : -1;
	}
	boxAt(event) {
		if (!this.layout)
			return -1;
		const frame = this.canvas.getBoundingClientRect();
		const y = event.clientY - frame.top + this.scroller.scrollTop;
		const depth = this.source.icicle() ? Math.floor(y / BOX) :
			Math.floor((this.topOf(0) + BOX - y) / BOX);
		return flameHit(this.layout, this.levels, depth, event.clientX - frame.left);
	}
	keyOf(box) {
		return this.tree.key(this.layout.item[box]);
	}
	hover(event) {
		const box = this.boxAt(event);
		this.canvas.style.cursor = box >= 0 ? "pointer" : "default";
		this.showTip(box, event);
	}
	// box: -1 for none
	showTip(box, event) {
		this.tip.hidden = box < 0;
		if (box < 0)
			return;
		const {app} = this, {model} = app, {scope, node} = this.about(box), small = this.layout.small[box];
		this.tip.textContent = "";
		if (small)
			this.tip.append(el("b", {}, `${formatCount(small)} boxes too small to draw`), ...this.smallLines(box));
		else
			this.tip.append(el("b", {}, scopeName(model, scope)),
				...(app.comparison && node >= 0 ? comparedTip(app, node) : this.tipLines(box)),
				el("div", {class: "place"}, baseName(modulePath(model, scope))));
		const frame = this.element.getBoundingClientRect();
		const x = event.clientX - frame.left, y = event.clientY - frame.top;
		this.tip.style.left = Math.max(0, Math.min(x + 12, frame.width - this.tip.offsetWidth - 4)) + "px";
		const below = y + 18 + this.tip.offsetHeight < frame.height;
		this.tip.style.top = (below ? y + 18 : Math.max(0, y - 12 - this.tip.offsetHeight)) + "px";
	}
	tipLines(box) {
		const {model, state} = this.app, {total, self} = this.tree.values(this.layout.item[box]);
		const metric = model.metrics[state.metric], whole = model.whole[state.metric];
		return [el("div", {}, `total ${formatPercent(total, whole)} · ` +
			formatTrusted(model.metrics, state.metric, total)),
		el("div", {}, `self ${formatPercent(self, whole)} · ${formatWorded(metric, self)}`)];
	}
	smallLines(box) {
		const {model} = this.app, {layout, tree} = this, item = layout.item[box], up = layout.parent[box];
		const name = tree.scope(item) ? scopeShort(model, tree.scope(item)) : "all";
		const share = formatPercent(layout.w[box], layout.w[up]);
		return [el("div", {}, `together ${share} of ${name}; a zoom into that shows more of them`)];
	}
	// A click on what is selected zooms. What the rest of a double click then hits is another box.
	click(event) {
		const box = this.boxAt(event);
		if (box < 0 || event.timeStamp < this.zoomedAt + DOUBLE_CLICK)
			return;
		const key = this.keyOf(box);
		if (!this.layout.small[box] && this.source.selectedKey() === key && !this.source.isRoot(key) && event.detail === 1)
			this.zoomBy(event, key);
		else
			this.source.select(key);
	}
	menu(event) {
		const box = event.button === 2 ? this.boxAt(event) : -1;
		event.preventDefault();
		if (box >= 0)
			this.source.select(this.keyOf(box));
		this.showTip(-1);
		openMenu(this.app, event.clientX, event.clientY);
	}
	zoomAt(event) {
		const box = this.boxAt(event);
		if (box >= 0 && event.timeStamp >= this.zoomedAt + DOUBLE_CLICK)
			this.zoomBy(event, this.keyOf(box));
	}
	zoomBy(event, key) {
		this.zoomedAt = event.timeStamp;
		this.source.zoom(key);
	}
	reveal() {
		const box = this.boxOf(this.source.selectedKey());
		if (box >= 0) {
			const y = this.topOf(this.layout.depth[box]), at = this.scroller.scrollTop;
			if (y < at)
				this.scroller.scrollTop = y - BOX;
			else if (y + BOX > at + this.scroller.clientHeight)
				this.scroller.scrollTop = y + 2 * BOX - this.scroller.clientHeight;
		}
		this.paint();
	}
	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.layout)
			return;
		const {layout, app, source} = this, box = Math.max(0, this.boxOf(source.selectedKey()));
		const level = this.levels[layout.depth[box]].filter((b) => !layout.small[b]), at = level.indexOf(box);
		const go = (b) => b >= 0 && b < layout.item.length && source.select(this.keyOf(b));
		const inward = () => go(layout.parent.findIndex((up, b) => up === box && !layout.small[b]));
		const outward = () => go(layout.parent[box]);
		const actions = {
			ArrowDown: source.icicle() ? inward : outward,
			ArrowUp: source.icicle() ? outward : inward,
			ArrowLeft: () => at > 0 && go(level[at - 1]),
			ArrowRight: () => at + 1 < level.length && go(level[at + 1]),
			Home: () => go(0),
			Enter: () => source.zoom(this.keyOf(box)),
			Backspace: () => source.isPart ? app.trail.back() : app.zoomOut(),
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}
}
