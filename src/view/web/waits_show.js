// SPDX-License-Identifier: Apache-2.0
// Who waits for whom on the page: the reasons, a row for each pair of threads, and chains of them.

import {formatAmount, formatPercent} from "./format.js";
import {threadLabel} from "./model.js";
import {ownNodes} from "./own_code.js";
import {pathList} from "./path_list.js";
import {compilePattern} from "./select.js";
import {chainWords, pairNodes, pairWaker, threadName, threadNodes, threadOfWaker, waitMetrics, waitsOf} from "./waits.js";
import {VirtualList, el, setAttribute, setClass, setStyle, setText} from "./dom.js";

const WAIT_ROW = 26;
const PATHS_MOST = 3;
const CHAINS_MOST = 100;
const REASONS_MOST = 12;

function wholePercent(part, whole) {
	const percent = 100 * part / whole;
	return percent < 1 ? "<1%" : `${Math.round(percent)}%`;
}

export class Waits {
	constructor(app) {
		this.app = app;
		this.reasons = el("div", {class: "legend reasons", role: "group", "aria-label": "why threads wait"});
		this.scroller = el("div", {class: "scroller", role: "presentation"});
		const head = el("div", {class: "wait head", role: "row"}, ...["time", "who waits", "for", "woken by", "waited itself"]
			.map((title) => el("span", {role: "columnheader"}, title)));
		this.table = el("div", {class: "waitlist", role: "grid", tabIndex: 0, "aria-label": "who waits for whom",
			onkeydown: (event) => this.key(event), onclick: (event) => this.click(event)}, head, this.scroller);
		this.chains = el("section", {class: "chains", "aria-label": "chains"});
		this.none = el("p", {class: "note none", hidden: true});
		this.element = el("div", {class: "waits"}, this.reasons, this.none, this.table, this.chains);
		this.list = new VirtualList(this.scroller, WAIT_ROW, () => this.makeRow(), (row, i) => this.fill(row, i));
		this.pairs = [];
	}
	// The metric that tells of waiting: the one that everything shows, or the first.
	metric() {
		const {model, state} = this.app, metrics = waitMetrics(model);
		return metrics.includes(state.metric) ? state.metric : metrics[0];
	}
	found() {
		return waitsOf(this.app.model, this.app.selection, this.metric());
	}
	amount(count) {
		return formatAmount(this.app.model.metrics[this.metric()], count);
	}
	draw(reveal = false) {
		const {app} = this, {pairs, chains, reasons, total} = this.found();
		this.pairs = pairs;
		this.total = total;
		if (!this.place(app.state.wait) && pairs.length)
			app.state.wait = pairs[0].key;
		this.none.hidden = pairs.length > 0;
		setText(this.none, app.selection.narrowed ? "The filters leave out all waiting." : "No thread waited.");
		this.drawReasons(reasons);
		this.drawChains(chains);
		this.matched = app.state.search ? compilePattern(app.state.search) : null;
		setAttribute(this.table, "aria-rowcount", pairs.length + 1);
		this.showActive();
		setStyle(this.table, "flex-basis", `${(pairs.length + 1) * WAIT_ROW + 2}px`);
		this.list.set(pairs.length, reveal ? this.place(app.state.wait) - 1 : -1, reveal === "middle");
	}
	paint() {}
	drawReasons(reasons) {
		const {app} = this, names = app.model.header.reasons, all = reasons.reduce((sum, {count}) => sum + count, 0);
		const rest = reasons.slice(REASONS_MOST).reduce((sum, {count}) => sum + count, 0);
		this.reasons.replaceChildren(el("span", {}, "waits for"), ...reasons.slice(0, REASONS_MOST).map(({reason, count}) => {
			const kept = app.state.reason === reason;
			const button = el("button", {type: "button", class: "reason", "aria-pressed": String(kept), title:
				`count only waits for this, in all views: ${this.amount(count)}`, onclick: () => app.setReason(kept ? 0 : reason)},
			`${names[reason]} ${wholePercent(count, all)}`);
			button.style.setProperty("--part", (100 * count / all).toFixed(1) + "%");
			return button;
		}), rest ? el("span", {}, `others ${wholePercent(rest, all)}`) : "");
	}
	drawChains(chains) {
		const {app} = this;
		this.chains.hidden = !chains.length;
		this.chains.replaceChildren(el("h3", {}, "Chains: who waits in the end for what"), ...chains.slice(0, CHAINS_MOST).map((chain) =>
			el("button", {type: "button", class: "chain", onclick: () => this.select(chain.key)},
				el("span", {class: "amount"}, this.amount(chain.count)), el("span", {}, chainWords(app.model, chain)))));
	}
	makeRow() {
		return el("div", {class: "wait", role: "row"}, el("span", {class: "time", role: "gridcell"}), ...[1, 2, 3, 4].map(() =>
			el("span", {role: "gridcell"})));
	}
	fill(element, index) {
		const {app} = this, {model} = app, pair = this.pairs[index];
		if (!pair)
			return;
		const [time, who, why, waker, itself] = element.children, selected = pair.key === app.state.wait;
		element.index = index;
		element.id = "wait" + index;
		setText(time, `${formatPercent(pair.count, this.total)}  ${this.amount(pair.count)}`);
		setStyle(time, "background-size", `${(100 * pair.count / this.total).toFixed(1)}% 100%`);
		setText(who, threadLabel(model, pair.thread));
		setText(why, model.header.reasons[pair.reason]);
		setText(waker, pairWaker(model, pair));
		setText(itself, threadOfWaker(pair.waker) < 0 ? "" : `${Math.round(100 * pair.waited / pair.count)}%`);
		[who, why, waker].forEach((cell) => { cell.title = cell.innerText; });
		setAttribute(element, "aria-selected", String(selected));
		setAttribute(element, "aria-rowindex", index + 2);
		setClass(element, `wait${selected ? " selected" : ""}${this.matched && this.matched.test(this.wordsOf(pair)) ? " match" : ""}`);
	}
	wordsOf(pair) {
		const {model} = this.app;
		return `${threadLabel(model, pair.thread)} ${model.header.reasons[pair.reason]} ${pairWaker(model, pair)}`;
	}
	// 1 + where a pair stands; 0: nowhere.
	place(key) {
		return this.pairs.findIndex((pair) => pair.key === key) + 1;
	}
	search(text) {
		const pattern = compilePattern(text), keys = this.found().pairs.filter((pair) => pattern && pattern.test(this.wordsOf(pair)))
			.map(({key}) => key);
		return {length: keys.length, key: (i) => keys[i], indexOf: (key) => keys.indexOf(key)};
	}

	// What is done

	showActive() {
		const place = this.place(this.app.state.wait);
		setAttribute(this.table, "aria-activedescendant", place ? "wait" + (place - 1) : null);
		return place - 1;
	}
	select(key) {
		this.app.state.wait = key;
		const place = this.showActive();
		if (place >= 0)
			this.list.aim(place, false);
		this.list.draw(true);
		this.app.showRow();
		this.app.showCount();
		this.app.save();
	}
	click(event) {
		const row = event.target.closest(".wait:not(.head)");
		if (row)
			this.select(this.pairs[row.index].key);
	}
	key(event) {
		const place = this.place(this.app.state.wait) - 1, last = this.pairs.length - 1;
		const to = {ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + this.list.page(), PageUp: place - this.list.page(),
			Home: 0, End: last}[event.key];
		if (to === undefined || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		event.stopPropagation();
		if (last >= 0)
			this.select(this.pairs[Math.max(0, Math.min(last, to))].key);
	}
	focus() {
		this.table.focus();
	}

	// The pane

	selected() {
		return this.pairs[this.place(this.app.state.wait) - 1] || null;
	}
	// The selected wait: its paths, and the source of the innermost function of own code. In the tree that is selected, too.
	showRow() {
		const {app} = this, {lines, scopes, nodes} = app.model, place = this.showDetail(app.detail.element), pair = this.selected();
		const scope = place ? nodes.scope[place.node] : 0, line = place ? place.line : 0;
		if (place)
			app.selectedBy.tree = String(place.node);
		if (app.state.pane && line)
			app.source.show(lines.file[line], lines.line[line], lines.line[line], "", line);
		else if (app.state.pane)
			app.source.show(scopes.file[scope], scopes.line[scope], scopes.line[scope],
				scopes.file[scope] ? "" : "No source is known of it.");
		setText(app.status, pair ? `${this.title(pair)}: ${this.amount(pair.count)}` : "");
	}
	// Fills the details; returns the node of own code that waits, and the line: {node, line}, or null.
	showDetail(element) {
		const {app} = this, {model} = app, pair = this.selected();
		element.textContent = "";
		if (!pair)
			return null;
		const thread = threadOfWaker(pair.waker), list = el("dl"), name = (t) => threadName(model, t);
		const put = (word, text) => list.append(el("dt", {}, word), el("dd", {}, text));
		put("time", `${this.amount(pair.count)} · ${formatPercent(pair.count, this.total)} of all waiting`);
		put("for", model.header.reasons[pair.reason]);
		put("woken by", pairWaker(model, pair));
		if (thread >= 0)
			put("", `${name(thread)} waited itself for ${Math.round(100 * pair.waited / pair.count)}% of this time`);
		const paths = pairNodes(model, app.selection, this.metric(), pair, PATHS_MOST);
		element.append(el("h2", {class: "full"}, this.title(pair)), list, ...paths.map(({node, row, count}) =>
			pathList(app, `${name(pair.thread)} waits here: ${formatPercent(count, pair.count)}`, node, model.rows.line[row])));
		if (thread >= 0)
			element.append(...this.wakerPaths(thread));
		const [first] = paths, own = first ? ownNodes(model) : null;
		return first ? {node: own.node[first.node] || first.node, line: Math.max(0, own.line[first.node])} : null;
	}
	title({thread, waker, reason}) {
		const {model} = this.app, other = threadOfWaker(waker);
		const name = threadName(model, thread);
		return other < 0 ? `${name} waits: ${model.header.reasons[reason]}` : `${name} waits for ${threadName(model, other)}`;
	}
	// What the other thread does, of all its time that is known.
	wakerPaths(thread) {
		const {app} = this, {model} = app, name = threadName(model, thread);
		const times = model.header.metrics.flatMap(({unit, period}, m) => unit === "ns" && period > 1 ? [m] : []);
		const {count, nodes} = threadNodes(model, thread, times, PATHS_MOST);
		return nodes.map(({node, row, count: part}) => {
			const reason = model.rows.reason[row];
			return pathList(app, `${name} ${reason ? `waits (${model.header.reasons[reason]})` : "runs"} here: ` +
				`${formatPercent(part, count)} of its time`, node, model.rows.line[row]);
		});
	}
}
