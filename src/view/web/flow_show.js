// SPDX-License-Identifier: Apache-2.0
// The control flow of one function: a picture of its blocks, in layers. Edges are as wide as they are frequent, blocks
// have the colour of what they lose, and say why.

import {SURE, flowGraph, flowOfCode} from "./flow.js";
import {layOut} from "./flow_layout.js";
import {causeName, formatCycles, formatRange, formatRuns, wholePercents, worstReason} from "./flow_words.js";
import {baseName, formatCount, plural} from "./format.js";
import {codeOf, functionOf} from "./instructions.js";
import {countedOfFlow, pathBlocks, pathOrder, pathWay} from "./paths.js";
import {KIND, cached, scopeShort} from "./model.js";
import {compilePattern} from "./select.js";
import {el, setAttribute, setText} from "./dom.js";

const BLOCK_SIZE = {width: 190, height: 56, line: 16, letters: 29};
const CHOICES_AT_ONCE = 200;
const WIDEST = 9; // of an edge, in pixels
const LOST = [0.01, 0.03, 0.1, 0.25]; // of the function's cycles: where a colour ends
const ZOOM = {least: 0.05, most: 3, step: 1.25, read: 0.75 /* at first, at least */, far: 0.4 /* smaller, texts cannot be read */};

// The name of SVG's elements is an address, and the page has none: a parser tells it.
const namespace = () => new DOMParser().parseFromString("<svg></svg>", "text/html").querySelector("svg").namespaceURI;

function svg(tag, attributes, ...children) {
	svg.namespace = svg.namespace || namespace();
	const element = document.createElementNS(svg.namespace, tag);
	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
}

// From one point to the next, upright at both.
function curve(points) {
	return points.map(([x, y], i) => {
		if (!i)
			return `M${x.toFixed(1)} ${y.toFixed(1)}`;
		const middle = ((points[i - 1][1] + y) / 2).toFixed(1);
		return points[i - 1][0] === x ? `V${y.toFixed(1)}` : `C${points[i - 1][0].toFixed(1)} ${middle} ${x.toFixed(1)} ${middle} ${x.toFixed(1)} ${y.toFixed(1)}`;
	}).join("");
}

// In straight lines: from a block to itself.
function loopCurve(points) {
	return "M" + points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
}

// The head of an arrow, where an edge ends: down, up, or to the left.
function arrow(points) {
	const [x, y] = points[points.length - 1], [, before] = points[points.length - 2];
	const [a, b] = before < y ? [[-4, -8], [4, -8]] : before > y ? [[-4, 8], [4, 8]] : [[8, -4], [8, 4]];
	return `M${x.toFixed(1)} ${y.toFixed(1)}l${a.join(" ")}h${b[0] - a[0]}v${b[1] - a[1]}z`;
}

function cut(text) {
	return text.length > BLOCK_SIZE.letters ? text.slice(0, BLOCK_SIZE.letters - 1) + "…" : text;
}

// Scopes of functions, by the place of their code.
export function scopesOfCode(model) {
	return cached(model, "scopes of code", () => {
		const of = new Map();
		for (let scope = model.scopes.count - 1; scope > 0; scope--)
			if (model.scopes.kind[scope] === KIND.function && codeOf(model, scope) >= 0)
				of.set(codeOf(model, scope), scope);
		return of;
	});
}

export class Flow {
	constructor(app) {
		this.app = app;
		this.choice = el("select", {"aria-label": "function", onchange: () => this.show(Number(this.choice.value)),
			onfocus: () => this.fillChoice(true), onpointerdown: () => this.fillChoice(true)});
		const button = (text, label, run) => el("button", {type: "button", title: label, "aria-label": label, onclick: run}, text);
		this.way = el("span", {class: "way"}, button("‹", "the path before (,)", () => this.nextPath(-1)), el("span", {class: "which"}),
			button("›", "the next path (.)", () => this.nextPath(1)), button("Paths", "all its paths (P)", () => app.setView("paths")));
		this.lost = el("span", {});
		const swatches = ["same", "more-1", "more-2", "more-3", "more-4", "more-5"].map((name) => el("span", {class: "swatch " + name}));
		this.legend = el("div", {class: "legend"}, this.choice,
			button("−", "zoom out (-)", () => this.zoomBy(1 / ZOOM.step)), button("+", "zoom in (+)", () => this.zoomBy(ZOOM.step)),
			button("Whole", "all of it (0)", () => this.zoomTo(this.fit())),
			button("Worst", "the block that loses most (h)", () => this.select(this.worst())),
			this.way, el("span", {class: "lost"}, this.lost, ...swatches, " most"), el("span", {}, "edges: width as executions"));
		this.scroller = el("div", {class: "scroller", tabIndex: 0, role: "listbox", onkeydown: (event) => this.key(event),
			onclick: (event) => this.click(event), onwheel: (event) => this.wheel(event), onscroll: () => this.fill()});
		this.note = el("p", {class: "note none", hidden: true});
		this.element = el("div", {class: "flow"}, this.legend, this.note, this.scroller);
		this.zoom = 1;
		this.drawn = -1;
	}
	// Which function, by its place in model.flow.
	get index() {
		return Math.min(Math.max(0, this.app.state.flow - 1), this.app.model.flow.count - 1);
	}
	get graph() {
		return flowGraph(this.app.model, this.index);
	}
	get block() {
		const {blocks, entry} = this.graph, {block} = this.app.state;
		return block > 0 && block <= blocks.length ? block - 1 : entry;
	}
	scopeOf(index = this.index) {
		return scopesOfCode(this.app.model).get(this.app.model.flow.code[index]) || 0;
	}
	nameOf(index) {
		const {model} = this.app, scope = this.scopeOf(index), f = countedOfFlow(model, index);
		return f >= 0 ? model.strings[model.paths.short[f]] : scope ? scopeShort(model, scope) : "??";
	}
	// Its function in model.paths; -1: its paths were not counted.
	get counted() {
		return countedOfFlow(this.app.model, this.index);
	}
	// The path that is drawn; -1: none is.
	get path() {
		const {model, state} = this.app, f = this.counted, p = state.path - 1;
		return f >= 0 && p >= model.paths.first[f] && p < model.paths.first[f + 1] ? p : -1;
	}
	// The block with which it begins; or the entry.
	firstOfPath() {
		return this.path < 0 ? this.graph.entry : pathBlocks(this.app.model, this.path)[0];
	}
	nextPath(by) {
		const {model, state} = this.app, f = this.counted;
		if (f < 0)
			return;
		const {list} = pathOrder(model, f, state.pathOrder), at = list.indexOf(this.path);
		if (!list.length)
			return;
		state.paths = f + 1;
		state.path = list[at < 0 ? by > 0 ? 0 : list.length - 1 : (at + by + list.length) % list.length] + 1;
		this.markPath();
		this.select(this.firstOfPath());
	}
	// Draws the path on the picture.
	markPath() {
		const {model, state} = this.app, {path, counted} = this, way = path < 0 ? {blocks: new Set(), edges: new Set()} : pathWay(model, path);
		this.boxes.forEach((box, i) => box.classList.toggle("on-path", way.blocks.has(i)));
		this.lines.forEach((line, i) => line.classList.toggle("on-path", way.edges.has(i)));
		this.svg.classList.toggle("with-path", path >= 0);
		this.way.hidden = counted < 0;
		if (counted >= 0) {
			const {list} = pathOrder(model, counted, state.pathOrder);
			setText(this.way.children[1], path < 0 ? "no path" : `path ${list.indexOf(path) + 1} of ${list.length}`);
		}
	}
	// The function of a row, if its control flow is here; -1.
	placeOf(row) {
		const {model} = this.app;
		return row && row.scope > 0 ? flowOfCode(model, codeOf(model, functionOf(model, row))) : -1;
	}
	// The control flow of what a row is in; if it is not here, that of the function that was looked at last.
	open(row) {
		const {app} = this, index = this.placeOf(row);
		if (app.state.view !== "flow")
			app.trail.remember();
		if (index >= 0 && index + 1 !== app.state.flow)
			this.choose(index);
		else if (!app.state.flow)
			this.choose(0);
		if (index < 0 && row && row.scope > 0)
			app.say("Its control flow is not here: that of functions with many samples is, if their files can be read.");
		app.state.view = "flow";
		app.render({reveal: true});
		app.save(true);
		this.focus();
	}
	// Another function: its worst block.
	choose(index) {
		this.app.state.flow = index + 1;
		this.app.state.block = this.worst() + 1;
	}
	show(index) {
		this.choose(index);
		this.app.render();
		this.app.save(true);
	}
	worst() {
		const {blocks, entry} = this.graph;
		const isWorse = (a, b) => (a.sum.lost - b.sum.lost || a.sum.cycles - b.sum.cycles || a.runs * a.length - b.runs * b.length) > 0;
		return blocks.reduce((best, block, i) => isWorse(block, blocks[best]) ? i : best, entry);
	}

	// The picture

	// Lists the functions that can be chosen. Many of them take long to draw: until somebody is about to choose, it is but the one that
	// is shown.
	fillChoice(all) {
		const {count} = this.app.model.flow, list = all || count <= CHOICES_AT_ONCE ? Array.from({length: count}, (_, i) => i) : [this.index];
		const {length} = this.choice.children, isOther = length !== count && this.choice.value !== String(this.index);
		if (isOther || length < list.length)
			this.choice.replaceChildren(...list.map((i) => el("option", {value: i}, this.nameOf(i))));
		this.choice.value = String(this.index);
	}
	draw(reveal = false) {
		const {app} = this, {model} = app;
		this.fillChoice(false);
		setAttribute(this.scroller, "aria-label", `blocks of ${this.nameOf(this.index)}`);
		setText(this.note, [this.graph.incomplete ? "Where some jumps go is not known: edges are missing." : "",
			app.selection.narrowed ? "This is of the whole recording, whatever is filtered." : ""].join(" ").trim());
		this.note.hidden = !this.note.textContent;
		setText(this.lost, this.graph.instructions ? "instructions: few " : "cycles lost: none ");
		if (this.drawn !== this.index)
			this.build();
		this.markPath();
		this.showMatches();
		this.mark(reveal);
	}
	showMatches() {
		for (const box of this.svg.querySelectorAll(".match"))
			box.classList.remove("match");
		const pattern = this.app.state.search ? compilePattern(this.app.state.search) : null;
		for (let i = 0; pattern && i < this.boxes.length; i++)
			this.boxes[i].classList.toggle("match", pattern.test(this.wordsOf(i)));
	}
	paint() {}
	build() {
		this.measure();
		const {blocks, edges} = this.graph, layout = layOut(this.graph, () => BLOCK_SIZE);
		const most = Math.max(1, ...edges.map(({runs}) => runs));
		this.layout = layout;
		this.drawn = this.index;
		const lines = this.lines = edges.map((edge, i) => this.makeEdge(edge, layout.paths[i], most));
		this.boxes = blocks.map((block, i) => this.makeBox(block, layout.boxes[i]));
		this.svg = svg("svg", {role: "presentation", viewBox: `0 0 ${layout.width} ${layout.height}`},
			svg("g", {class: "edges", "aria-hidden": "true"}, ...lines, svg("path", {class: "arrows", d: layout.paths.map(arrow).join("")})), svg("g", {role: "presentation"}, ...this.boxes));
		this.scroller.replaceChildren(this.svg);
		this.setZoom(Math.max(ZOOM.read, Math.min(1, this.fit())));
		this.marked = undefined;
	}
	makeEdge(edge, points, most) {
		const width = edge.runs > 0 ? 1 + (WIDEST - 1) * edge.runs / most : 0.75;
		return svg("path", {class: `edge${edge.back ? " back" : ""}${edge.runs > 0 ? "" : " never"}`, "stroke-width": width.toFixed(2),
			d: edge.from === edge.to ? loopCurve(points) : curve(points)});
	}
	makeBox(block, {x, y, width, height}) {
		const box = svg("g", {class: `block ${this.colourOf(block)}`, role: "option", id: "block" + block.number,
			"aria-selected": "false", "aria-label": this.textsOf(block).filter(Boolean).join(", ")},
		svg("rect", {x: x.toFixed(1), y: y.toFixed(1), width, height, rx: 4}));
		box.block = block.number;
		return box;
	}
	// Writes into the blocks that are in sight: of a large function, to lay out all texts would take longer than all else.
	fill() {
		const {scrollLeft, scrollTop} = this.scroller, {zoom} = this, [wide, high] = this.size;
		const left = scrollLeft / zoom, top = scrollTop / zoom, right = left + wide / zoom, bottom = top + high / zoom;
		this.layout.boxes.forEach((place, i) => {
			const {x, y, width, height} = place;
			if (zoom < ZOOM.far || place.filled || x > right || x + width < left || y > bottom || y + height < top)
				return;
			place.filled = true;
			this.boxes[i].append(svg("text", {}, ...this.textsOf(this.graph.blocks[i]).filter(Boolean).map((words, line) =>
				svg("tspan", {x: (x + 8).toFixed(1), y: (y + 15 + line * BLOCK_SIZE.line).toFixed(1)}, cut(words)))));
		});
	}
	placeWords({file, line, last, address}) {
		return file ? `${baseName(this.app.model.strings[file])}:${line}${last > line ? "-" + last : ""}` : address.toString(16);
	}
	textsOf(block) {
		const {model} = this.app, {sum} = block;
		if (this.graph.instructions || block.length)
			return [this.placeWords(block), block.runs ? `${formatRuns(block.runs)} × ${plural(block.length, "instruction")}` : "never ran", ""];
		return [(block.verdict ? "↻ " : "") + this.placeWords(block),
			block.runs ? `${formatRuns(block.runs)} × ${formatCycles(sum.cycles / block.runs)} cycles` : "never ran",
			worstReason(model, sum, this.graph.sum.cycles)];
	}
	colourOf({sum, runs, length}) {
		const {sum: whole, instructions} = this.graph;
		const share = instructions ? runs * length / instructions : whole.cycles ? sum.lost / whole.cycles : 0;
		return share > 0 ? "more-" + (1 + LOST.filter((limit) => share >= limit).length) : "same";
	}
	wordsOf(number) {
		const {model} = this.app, block = this.graph.blocks[number], words = this.textsOf(block);
		for (let i = block.first; i < block.end; i++)
			words.push(model.strings[model.code.text[i]]);
		return words.join(" ");
	}
	search(text) {
		const pattern = compilePattern(text), keys = this.graph.blocks.filter((_, i) => pattern && pattern.test(this.wordsOf(i)))
			.map(({number}) => String(number + 1));
		return {length: keys.length, key: (i) => keys[i], indexOf: (key) => keys.indexOf(key)};
	}

	// Zoom

	// How much room there is.
	measure() {
		const {clientWidth, clientHeight} = this.scroller;
		this.size = [clientWidth || 800, clientHeight || 600];
	}
	fit() {
		const {width, height} = this.layout;
		return Math.max(ZOOM.least, Math.min(1, this.size[0] / width, this.size[1] / height));
	}
	setZoom(zoom) {
		this.zoom = Math.max(ZOOM.least, Math.min(ZOOM.most, zoom));
		this.svg.setAttribute("width", Math.ceil(this.layout.width * this.zoom));
		this.svg.setAttribute("height", Math.ceil(this.layout.height * this.zoom));
		this.svg.classList.toggle("far", this.zoom < ZOOM.far);
	}
	zoomTo(zoom) {
		this.setZoom(zoom);
		this.reveal();
	}
	zoomBy(by) {
		this.zoomTo(this.zoom * by);
	}
	wheel(event) {
		if (!event.ctrlKey)
			return;
		event.preventDefault();
		const {scroller} = this, frame = scroller.getBoundingClientRect(), before = this.zoom;
		const x = event.clientX - frame.x, y = event.clientY - frame.y, left = scroller.scrollLeft, top = scroller.scrollTop;
		this.setZoom(this.zoom * (event.deltaY < 0 ? ZOOM.step : 1 / ZOOM.step));
		scroller.scrollTo((left + x) * this.zoom / before - x, (top + y) * this.zoom / before - y);
		this.fill();
	}
	// Brings the selected block into the middle, if it is not in sight.
	reveal() {
		this.measure();
		const {scroller, zoom} = this, {x, y, width, height} = this.layout.boxes[this.block], [clientWidth, clientHeight] = this.size;
		const [left, top, right, bottom] = [x, y, x + width, y + height].map((n) => n * zoom);
		if (left < scroller.scrollLeft || right > scroller.scrollLeft + clientWidth)
			scroller.scrollLeft = (left + right - clientWidth) / 2;
		if (top < scroller.scrollTop || bottom > scroller.scrollTop + clientHeight)
			scroller.scrollTop = (top + bottom - clientHeight) / 2;
		this.fill();
	}

	// What is done

	mark(reveal) {
		const {block} = this;
		if (this.marked !== undefined && this.boxes[this.marked])
			this.boxes[this.marked].setAttribute("aria-selected", "false");
		this.marked = block;
		this.boxes[block].setAttribute("aria-selected", "true");
		this.scroller.setAttribute("aria-activedescendant", "block" + block);
		if (reveal)
			this.reveal();
		else
			this.fill();
	}
	select(number) {
		this.app.state.block = number + 1;
		this.mark(true);
		this.app.showRow();
		this.app.showCount();
		this.app.save();
	}
	click(event) {
		const box = event.target.closest(".block");
		if (box)
			this.select(box.block);
	}
	beside(by) {
		const {layers, boxes} = this.layout, list = [...layers[boxes[this.block].layer]].sort((a, b) => boxes[a].x - boxes[b].x);
		return list[list.indexOf(this.block) + by];
	}
	// Along the most frequent edge, down or up if there is one; else back.
	along(edges, end) {
		const edge = edges.find(({back, from, to}) => !back && from !== to) || edges.find(({from, to}) => from !== to);
		return edge && edge[end];
	}
	key(event) {
		const {blocks, entry} = this.graph, at = blocks[this.block];
		const moves = {ArrowDown: () => this.along(at.out, "to"), ArrowUp: () => this.along(at.in, "from"), ArrowLeft: () => this.beside(-1),
			ArrowRight: () => this.beside(1), Home: () => entry, End: () => this.layout.layers[this.layout.layers.length - 1][0]};
		const actions = {"+": () => this.zoomBy(ZOOM.step), "=": () => this.zoomBy(ZOOM.step), "-": () => this.zoomBy(1 / ZOOM.step),
			0: () => this.zoomTo(this.fit()), ",": () => this.nextPath(-1), ".": () => this.nextPath(1), Enter: () => this.app.switchInstructions()};
		if (event.ctrlKey || event.metaKey || event.altKey || !(moves[event.key] || actions[event.key]))
			return;
		event.preventDefault();
		event.stopPropagation();
		if (actions[event.key])
			return actions[event.key]();
		const to = moves[event.key]();
		if (to !== undefined)
			this.select(to);
	}
	focus() {
		this.scroller.focus();
	}

	// The pane

	showRow() {
		const {app} = this, {blocks} = this.graph, block = blocks[this.block], {flow} = app.model;
		const title = `${this.nameOf(this.index)}, block at ${block.address.toString(16)}`;
		setText(app.status, [title, ...this.textsOf(block)].filter(Boolean).join(", "));
		if (!app.state.pane)
			return;
		this.showDetail(app.detail.element, title, block);
		if (app.state.instructions || !block.file)
			app.source.showCode(this.scopeOf(), [[block.address, block.address + flow.size[flow.first[this.index] + block.number]]]);
		else
			app.source.show(block.file, block.line, block.last);
	}
	showDetail(element, title, block) {
		const {model} = this.app, {sum} = block, whole = this.graph.sum.cycles, list = el("dl");
		const put = (word, ...text) => list.append(el("dt", {}, word), el("dd", {}, ...text));
		const counted = this.graph.instructions > 0 || block.length > 0;
		put("executions", counted ? `${formatCount(block.runs)}, counted` :
			`${formatRuns(block.runs)} (${formatRange(block.low, block.high, formatRuns)}), confidence ${SURE[block.sure]}`);
		if (counted)
			put("instructions", `${formatCount(block.length)} each time, ${wholePercents(block.runs * block.length, this.graph.instructions)} of the function`);
		else
			put("cycles", `${wholePercents(sum.cycles, whole)} of the function` + (block.runs ? `, ${formatCycles(sum.cycles / block.runs)} each time` : ""));
		if (sum.lost > 0)
			put("lost", `${wholePercents(sum.lost, whole)} of the function` + (block.runs ? `, ${formatCycles(sum.lost / block.runs)} each time` : ""));
		for (const {cause, low, high} of sum.lost > 0 ? sum.reasons() : [])
			put(causeName(model, cause), `${formatRange(low, high, (part) => wholePercents(part, whole))} of the function`);
		this.putEdges(put, "comes from", block.in, "from");
		this.putEdges(put, "goes to", block.out, "to");
		element.replaceChildren(el("h2", {class: "full"}, title), ...block.verdict ? [el("p", {class: "verdict"}, "↻ " + block.verdict)] : [], list);
	}
	putEdges(put, word, edges, end) {
		const {blocks} = this.graph, all = edges.reduce((sum, {runs}) => sum + runs, 0);
		for (const edge of edges)
			put(word, el("button", {type: "button", class: "link", onclick: () => this.select(edge[end])}, this.placeWords(blocks[edge[end]])),
				` ${formatRuns(edge.runs)}${all ? `, ${wholePercents(edge.runs, all)}` : ""}`);
	}
}
