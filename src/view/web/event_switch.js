// SPDX-License-Identifier: Apache-2.0
// Chooses what is counted: time, memory, waiting. Metrics of one event stand together, with how much there is of each.

import {formatWorded, metricEvent, metricGroups, metricWords} from "./events.js";
import {el, setText} from "./dom.js";

export class EventSwitch {
	constructor(app) {
		this.app = app;
		this.event = el("span");
		this.select = el("select", {"aria-label": "event: what is counted", title: "what is counted (m)", onchange: () =>
			app.setMetric(Number(this.select.value))});
		this.element = el("label", {class: "events"}, this.event, this.select);
	}
	option(metric, m) {
		return el("option", {value: m}, `${metricWords(metric)} – ${formatWorded(metric, metric.total)}`);
	}
	// Newer data has other sums.
	show() {
		const {model, state} = this.app, {metrics} = model.recorded;
		this.element.hidden = metrics.length < 2;
		if (this.model !== model)
			this.select.replaceChildren(...metricGroups(metrics).map(({event, members}) => el("optgroup", {label: event},
				...members.map((m) => this.option(metrics[m], m)))));
		this.model = model;
		this.select.value = state.metric;
		setText(this.event, metricEvent(metrics[state.metric]) + ":");
	}
}
