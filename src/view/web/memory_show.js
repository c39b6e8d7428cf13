// SPDX-License-Identifier: Apache-2.0
// What stands above the places that allocate: what they may be ordered by, with how much there is of it.

import {formatWorded} from "./events.js";
import {MEMORY_ORDERS, hasMemoryOrder, isMemoryMetric, memoryMetric} from "./memory.js";
import {usualSort} from "./state.js";
import {el, setAttribute, setText} from "./dom.js";

export class MemoryBar {
	constructor(app) {
		this.app = app;
		this.buttons = MEMORY_ORDERS.map(([, name, about]) => el("button", {type: "button", title: `order by ${about}`,
			onclick: () => app.sortBy("self", memoryMetric(app.model, name), false)}));
		this.about = el("span", {class: "about"});
		this.element = el("div", {class: "legend memory", role: "group", "aria-label": "order of the places that allocate"},
			...this.buttons, this.about);
	}
	// It is ordered by a measure of memory, at first by the peak, and something is selected.
	select() {
		const {app} = this, {model, state} = app, peak = memoryMetric(model, "alloc.peak");
		if (!isMemoryMetric(model, state.metric))
			state.metric = peak >= 0 ? peak : memoryMetric(model, "alloc.bytes");
		if (!isMemoryMetric(model, state.sorts.memory.metric))
			state.sorts.memory = usualSort("memory", state.metric);
		const outline = app.outlineOf("memory");
		if (!app.selectedBy.memory || !app.view("memory").rowOf(app.selectedBy.memory))
			app.selectedBy.memory = outline.length ? outline.entry(0).row.key : "";
	}
	draw() {
		const {model, state} = this.app;
		const chosen = MEMORY_ORDERS.findIndex(([, name]) => memoryMetric(model, name) === state.metric);
		MEMORY_ORDERS.forEach(([word, name], i) => {
			const m = memoryMetric(model, name);
			this.buttons[i].hidden = !hasMemoryOrder(model, name);
			setText(this.buttons[i], m < 0 ? "" : `${word}: ${formatWorded(model.recorded.metrics[m], model.whole[m])}`);
			setAttribute(this.buttons[i], "aria-pressed", String(i === chosen));
		});
		const [word, , about] = MEMORY_ORDERS[chosen] || ["", "", ""];
		setText(this.about, !chosen || word !== "Leaks" || model.whole[state.metric] ? about : "everything was freed at the end");
	}
}
