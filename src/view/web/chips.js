// SPDX-License-Identifier: Apache-2.0
// What stands above a view: a chip for each thing that narrows what is counted, which takes it back; and what is left.

import {compareBar} from "./compare_show.js";
import {formatWorded, metricShort} from "./events.js";
import {formatPercent, formatTime, plural} from "./format.js";
import {scopeShort, threadLabel} from "./model.js";
import {timedMetrics} from "./timeline.js";
import {el} from "./dom.js";

// What is not exact about a part of the time.
function timeRemark(model) {
	const {coarse} = model.header.timeline, {metrics} = model.recorded;
	const timed = timedMetrics(model).map((m) => metricShort(metrics[m])).join(" and ");
	return (coarse ? `, by samples within ${formatTime(coarse / 1e6)}` : "") +
		(metrics.length > 1 ? `, ${timed} alone` : "");
}

function zoomChips(app, chip) {
	const {state, model} = app;
	if (state.zoom)
		chip(`zoom: ${scopeShort(model, model.nodes.scope[state.zoom])}`, () => app.zoomTo(0), "zoom");
	if (state.inside && app.showsGraph())
		chip(`graph: ${scopeShort(model, Number(state.inside.split(".").pop()))}`, () => app.setInside(""), "zoom of the graph");
}

// Elements.
export function chipsOf(app) {
	const {state, model} = app, chips = [];
	const chip = (text, remove, label) => chips.push(el("span", {class: "chip"}, text,
		el("button", {type: "button", "aria-label": `remove ${label || text}`, onclick: remove}, "×")));
	state.filters.forEach((f, i) => chip(
		`${f.how === "keep" ? "only" : "without"} ${f.what === "module" ? "module " : ""}/${f.text}/`,
		() => app.removeFilter(i)));
	if (state.threads)
		chip(state.threads.length === 1 ? threadLabel(model, state.threads[0]) :
			`${state.threads.length} of ${plural(model.header.threads.length, "thread")}`,
		() => app.setThreads(null));
	if (state.compared)
		chip(`compared: ${plural(model.metrics.length - model.recorded.metrics.length, state.compared.by,
			state.compared.by === "process" ? "processes" : undefined)}`, () => app.compare(null));
	if (state.time)
		chip(`time ${(state.time[0] / 1e6).toFixed(3)} s to ${(state.time[1] / 1e6).toFixed(3)} s` +
			timeRemark(model), () => app.setTime(null), "time");
	if (state.reason)
		chip(`waits for: ${model.header.reasons[state.reason]}`, () => app.setReason(0), "reason");
	zoomChips(app, chip);
	if (!app.comparison && (state.filters.length || state.threads || state.time || state.reason || state.zoom)) {
		const shown = app.selection.sums[state.metric].total(state.zoom);
		chips.push(el("span", {class: "shown"}, `${formatPercent(shown, model.whole[state.metric]) || "0%"} ` +
			`of all: ${formatWorded(model.metrics[state.metric], shown)}`));
	}
	if (app.comparison)
		chips.unshift(compareBar(app));
	if (state.view === "flat")
		chips.unshift(app.flattened);
	return chips;
}
