// SPDX-License-Identifier: Apache-2.0
// The flame graph, or icicles: a canvas as large as what is in sight, over a space as high as the
// stacks are deep.

import {baseName, formatAmount, formatError, formatPercent} from "./format.js";
import {KIND, cached, modulePath, scopeName, scopeShort} from "./model.js";
import {flameHit, flameLevels, layoutFlame, matchedTotal} from "./flame.js";
import {matchScopes} from "./select.js";
import {comparedColour, comparedLabel, comparedLegend, comparedTip, comparedWidths} from "./compare_graph.js";
import {el, fitCanvas, setStyle, setText} from "./dom.js";

const BOX = 20;
const MODULES_NAMED = 5;

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
	constructor(app) {
		this.app = app;
		this.canvas = el("canvas", {
			tabIndex: 0, role: "application", "aria-roledescription": "flame graph",
			"aria-label": "flame graph: arrow keys move, Enter zooms, Backspace zooms out",
			onkeydown: (event) => this.key(event),
			onclick: (event) => this.click(event),
			ondblclick: (event) => this.zoomAt(event),
			onmousemove: (event) => this.hover(event),
			onmouseleave: () => this.showTip(null),
		});
		this.tip = el("div", {class: "tip", role: "tooltip", hidden: true});
		this.space = el("div", {class: "space"});
		this.scroller = el("div", {class: "scroller"}, this.space, this.canvas);
		this.flip = el("button", {type: "button", onclick: () => app.flip()}, "");
		this.matched = el("span", {class: "matched"});
		this.modules = el("span", {class: "modules"});
		this.legend = el("span");
		this.element = el("div", {class: "graph"},
			el("div", {class: "legend"}, this.flip,
				el("span", {class: "key function"}, "function"),
				el("span", {class: "key loop"}, "loop"),
				el("span", {class: "key inline"}, "inlined"),
				this.partial = el("span", {class: "key partial"}, "partial"), this.legend, this.modules,
				this.matched),
			this.scroller, this.tip);
		this.scroller.addEventListener("scroll", () => this.paint(), {passive: true});
		new ResizeObserver(() => this.draw()).observe(this.scroller);
		this.hovered = -1;
		this.laid = {};
		this.highest = 0;
	}
	draw() {
		const {app} = this, width = this.scroller.clientWidth;
		if (!app.showsGraph() || !width)
			return;
		const sums = app.comparison ? comparedWidths(app) : app.selection.sums[app.state.metric];
		this.lay(sums, app.state.zoom, width);
		this.found = app.state.search ? matchScopes(app.model, "name", app.state.search) : null;
		const high = (this.layout.deepest + 1) * BOX + 4;
		this.space.style.height = Math.max(high, 1) + "px";
		this.highest = Math.max(this.highest, high); // it stays as high when it is zoomed or filtered
		setStyle(this.element, "--deep", this.highest + "px");
		this.partial.hidden = Boolean(app.comparison);
		this.legend.replaceChildren(...(app.comparison ? [comparedLegend(app)] : []));
		setText(this.flip, app.state.icicle ? "turn into flames" : "turn into icicles");
		this.showMatched(sums);
		this.modules.hidden = Boolean(app.comparison);
		if (!app.comparison)
			this.showModules();
		if (!app.state.icicle && this.flipped !== app.state.zoom)
			this.scroller.scrollTop = high;
		this.flipped = app.state.icicle ? -1 : app.state.zoom;
		this.paint();
	}
	// Boxes stay where they are when a search or the direction changes.
	lay(sums, root, width) {
		const {laid} = this;
		if (laid.sums === sums && laid.root === root && laid.width === width)
			return;
		this.laid = {sums, root, width};
		this.layout = layoutFlame(this.app.model, sums, root, width);
		this.levels = flameLevels(this.layout);
	}
	showMatched(sums) {
		const {app} = this;
		const sum = this.found ? matchedTotal(app.model, sums, app.state.zoom, this.found) : 0;
		setText(this.matched, this.found ?
			`matched: ${formatPercent(sum, app.comparison ? sums.total(app.state.zoom) :
				app.model.whole[app.state.metric]) || "0%"}` : "");
	}
	// The colours of those modules that take the most room.
	showModules() {
		const {scopes, nodes, header} = this.app.model, room = new Map();
		this.layout.node.forEach((node, box) => {
			const module = scopes.module[nodes.scope[node]];
			if (module)
				room.set(module, (room.get(module) || 0) + this.layout.w[box]);
		});
		const most = [...room].sort((a, b) => b[1] - a[1]).slice(0, MODULES_NAMED).map(([module]) => module);
		this.modules.replaceChildren(...most.map((module) => {
			const key = el("span", {class: "key module"}, baseName(header.modules[module].path));
			key.style.setProperty("--hue", moduleHues(this.app.model)[module]);
			return key;
		}));
	}
	// The top of a level, in the space.
	topOf(depth) {
		const high = Math.max(this.scroller.clientHeight, (this.layout.deepest + 1) * BOX + 4);
		return this.app.state.icicle ? depth * BOX : high - (depth + 1) * BOX - 2;
	}
	paint() {
		if (!this.layout)
			return;
		const width = this.scroller.clientWidth, height = this.scroller.clientHeight;
		const scale = window.devicePixelRatio || 1, c = this.canvas.getContext("2d");
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
			const y = this.topOf(depth) - top;
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
			return `hsl(0 0% ${theme.light})`;
		const key = module * 2 + (kind === KIND.inline ? 1 : 0);
		if (!theme.colours.has(key))
			theme.colours.set(key, `hsl(${moduleHues(this.app.model)[module]} ${key % 2 ? "35%" : theme.strength} ${theme.light})`);
		return theme.colours.get(key);
	}
	// Boxes are filled colour by colour, which is much quicker; what has more than a colour comes
	// afterwards.
	sortBox(box, y, batches, wide) {
		const {layout, app} = this, {model} = app, w = layout.w[box];
		const scope = model.nodes.scope[layout.node[box]], kind = model.scopes.kind[scope];
		const colour = this.colour(scope, kind, layout.node[box]);
		if (!batches.has(colour))
			batches.set(colour, []);
		batches.get(colour).push(layout.x[box], y, Math.max(0.5, w - (w > 3 ? 1 : 0)));
		if (w > 28 || (w > 4 && (kind === KIND.loop || kind === KIND.inline)))
			wide.push([box, y]);
	}
	paintBox(c, box, y) {
		const {layout, app} = this, {model} = app;
		const scope = model.nodes.scope[layout.node[box]], kind = model.scopes.kind[scope];
		const x = layout.x[box], wide = layout.w[box] - 1;
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
			this.paintText(c, layout.node[box], kind, x, y, wide);
	}
	paintText(c, node, kind, x, y, wide) {
		const left = Math.max(x, 0), {app} = this, scope = app.model.nodes.scope[node];
		const room = Math.floor((x + wide - left - 6) / 6.4);
		if (room < 3)
			return;
		const name = app.comparison ? comparedLabel(app, node, room) : scopeShort(app.model, scope);
		const text = name.length > room ? name.slice(0, room - 1) + "…" : name;
		if (kind === KIND.loop) { // the hatch must not run through the letters
			c.fillStyle = this.colour(scope, kind, node);
			c.fillRect(left + 2, y + 2, Math.min(wide - 4, c.measureText(text).width + 4), BOX - 5);
		}
		c.fillStyle = this.theme.text;
		c.fillText(text, left + 4, y + BOX / 2, x + wide - left - 5);
	}
	// The selected box, and others of the same function.
	paintFocus(c, top) {
		const box = this.boxOf(this.selectedNode());
		if (box < 0)
			return;
		c.strokeStyle = this.theme.focus;
		this.paintSame(c, top, this.app.model.nodes.scope[this.layout.node[box]]);
		c.lineWidth = 2;
		c.strokeRect(this.layout.x[box] + 1, this.topOf(this.layout.depth[box]) - top + 1,
			Math.max(2, this.layout.w[box] - 2), BOX - 3);
	}
	paintSame(c, top, scope) {
		const {layout} = this, {scope: scopes} = this.app.model.nodes, bottom = top + this.scroller.clientHeight;
		c.lineWidth = 1;
		layout.node.forEach((node, box) => {
			if (scopes[node] !== scope || layout.w[box] <= 3)
				return;
			const y = this.topOf(layout.depth[box]);
			if (y >= top - BOX && y < bottom)
				c.strokeRect(layout.x[box] + 0.5, y - top + 0.5, layout.w[box] - 2, BOX - 2);
		});
	}
	selectedNode() {
		return Number(this.app.selectedBy.tree || NaN);
	}
	boxOf(node) {
		const {layout} = this;
		return layout && Number.isInteger(node) ? layout.node.indexOf(node) : -1;
	}
	boxAt(event) {
		if (!this.layout)
			return -1;
		const frame = this.canvas.getBoundingClientRect();
		const y = event.clientY - frame.top + this.scroller.scrollTop;
		const depth = this.app.state.icicle ? Math.floor(y / BOX) :
			Math.floor((this.topOf(0) + BOX - y) / BOX);
		return flameHit(this.layout, this.levels, depth, event.clientX - frame.left);
	}
	hover(event) {
		const box = this.boxAt(event);
		this.canvas.style.cursor = box >= 0 ? "pointer" : "default";
		this.showTip(box >= 0 ? this.layout.node[box] : null, event);
	}
	showTip(node, event) {
		this.tip.hidden = node === null;
		if (node === null)
			return;
		const {app} = this, {model} = app;
		this.tip.textContent = "";
		this.tip.append(el("b", {}, scopeName(model, model.nodes.scope[node])),
			...(app.comparison ? comparedTip(app, node) : this.tipLines(node)),
			el("div", {class: "place"}, baseName(modulePath(model, model.nodes.scope[node]))));
		const frame = this.element.getBoundingClientRect();
		const x = event.clientX - frame.left, y = event.clientY - frame.top;
		this.tip.style.left = Math.max(0, Math.min(x + 12, frame.width - this.tip.offsetWidth - 4)) + "px";
		const below = y + 18 + this.tip.offsetHeight < frame.height;
		this.tip.style.top = (below ? y + 18 : Math.max(0, y - 12 - this.tip.offsetHeight)) + "px";
	}
	tipLines(node) {
		const {model, selection, state} = this.app;
		const sums = selection.sums[state.metric], total = sums.total(node), self = sums.self(node);
		const metric = model.metrics[state.metric], whole = model.whole[state.metric];
		return [el("div", {}, `total ${formatPercent(total, whole)} · ${formatAmount(metric, total)}` +
			` · ${formatError(total)}`),
		el("div", {}, `self ${formatPercent(self, whole)} · ${formatAmount(metric, self)}`)];
	}
	click(event) {
		const box = this.boxAt(event);
		if (box < 0)
			return;
		const node = this.layout.node[box];
		if (this.selectedNode() === node && node !== this.app.state.zoom && event.detail === 1)
			this.app.zoomTo(node);
		else
			this.app.selectNode(node);
	}
	zoomAt(event) {
		const box = this.boxAt(event);
		if (box >= 0)
			this.app.zoomTo(this.layout.node[box]);
	}
	reveal() {
		const box = this.boxOf(this.selectedNode());
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
		const {layout, app} = this;
		const box = Math.max(0, this.boxOf(this.selectedNode()));
		const level = this.levels[layout.depth[box]], at = level.indexOf(box);
		const go = (b) => b >= 0 && b < layout.node.length && app.selectNode(layout.node[b]);
		const inward = () => go(layout.parent.indexOf(box));
		const outward = () => go(layout.parent[box]);
		const actions = {
			ArrowDown: app.state.icicle ? inward : outward,
			ArrowUp: app.state.icicle ? outward : inward,
			ArrowLeft: () => at > 0 && go(level[at - 1]),
			ArrowRight: () => at + 1 < level.length && go(level[at + 1]),
			Home: () => go(0),
			Enter: () => app.zoomTo(layout.node[box]),
			Backspace: () => app.zoomOut(),
		};
		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}
}
