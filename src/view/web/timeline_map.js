// SPDX-License-Identifier: Apache-2.0
// The whole time in small, above the time line: how busy all threads were, and which part is in sight. Dragging over
// it brings that part into sight.

import {cached, inBlocks} from "./model.js";
import {el, fitCanvas} from "./dom.js";
import {stackDepths} from "./timeline_lanes.js";
import {stepOf, wholeTime} from "./times.js";

const MAP_HIGH = 26, BUCKETS = 1000, MAP_NEAR = 3 /* pixels */;

// waits: whether it is waiting that counts
function addBusy(from, to, {start, end, samples, metric, row}, reason, waits, steps, scale, sums) {
	for (let i = from; i < to; i++) {
		if (Boolean(reason[row[i]]) !== waits)
			continue;
		const first = Math.floor(start[i] * scale), last = Math.min(BUCKETS - 1, Math.floor(end[i] * scale));
		const busy = steps[metric[i]] ? samples[i] * steps[metric[i]] : samples[i];
		for (let k = first; k <= last; k++)
			sums[k] += busy / (last - first + 1);
	}
}

// By part of the whole time, of 1000: how much was done in it, at most 1.
export function busyParts(model) {
	return cached(model, "busy parts", () => {
		const sums = new Float64Array(BUCKETS), steps = model.header.metrics.map((_, m) => stepOf(model, m));
		const scale = BUCKETS / wholeTime(model)[1];
		const add = (waits) => inBlocks(0, model.spans.count, (from, to) =>
			addBusy(from, to, model.spans, model.rows.reason, waits, steps, scale, sums));
		add(false);
		if (!sums.some((sum) => sum)) // nothing but waiting was recorded
			add(true);
		const most = Math.max(...sums) || 1;
		return sums.map((sum) => sum / most);
	});
}

// As steps that can be taken while nothing else is to do.
export function prepareTimeMap(model) {
	return model.spans.count ? [() => { busyParts(model); }, () => { stackDepths(model); }] : [];
}

export class TimeMap {
	constructor(timeline) {
		this.timeline = timeline;
		this.canvas = el("canvas", {
			class: "timemap", "aria-hidden": "true", title: "the whole time; drag to bring a part into sight",
			onpointerdown: (event) => this.press(event),
			onpointermove: (event) => this.move(event),
			onpointerup: (event) => this.release(event),
			onpointercancel: () => { this.from = null; },
			ondblclick: () => timeline.setWindow(null),
		});
		this.canvas.style.height = MAP_HIGH + "px"; // before it is painted, so that the lanes below know their room
		this.from = null; // where a part begins, pixels
	}
	timeAt(x) {
		const [first, last] = wholeTime(this.timeline.app.model), {left, width} = this.sight;
		return first + (last - first) * Math.max(0, Math.min(1, (x - left) / (width - left)));
	}
	xOf(time) {
		const [first, last] = wholeTime(this.timeline.app.model), {left, width} = this.sight;
		return left + (width - left) * (time - first) / (last - first);
	}
	paint(theme, left, width) {
		const c = this.canvas.getContext("2d"), scale = window.devicePixelRatio || 1, parts = busyParts(this.timeline.app.model);
		this.sight = {left, width};
		fitCanvas(this.canvas, width, MAP_HIGH, scale);
		c.setTransform(scale, 0, 0, scale, 0, 0);
		c.fillStyle = theme.panel;
		c.fillRect(0, 0, width, MAP_HIGH);
		const [a, b] = this.timeline.window().map((time) => this.xOf(time));
		c.fillStyle = theme.chosen;
		c.fillRect(a, 0, b - a, MAP_HIGH);
		c.fillStyle = theme.dim;
		for (let x = 0; x < width - left; x++) {
			const high = (MAP_HIGH - 4) * parts[Math.min(BUCKETS - 1, Math.floor(x * BUCKETS / (width - left)))];
			c.fillRect(left + x, MAP_HIGH - 2 - high, 1, high);
		}
		c.fillStyle = theme.page;
		c.font = "12px system-ui, sans-serif";
		c.textBaseline = "middle";
		c.fillText("whole time", 6, MAP_HIGH / 2);
		c.strokeStyle = theme.focus;
		c.lineWidth = 2;
		c.strokeRect(a + 1, 1, Math.max(2, b - a - 2), MAP_HIGH - 2);
	}
	place(event) {
		return event.clientX - this.canvas.getBoundingClientRect().left;
	}
	press(event) {
		this.canvas.setPointerCapture(event.pointerId);
		this.from = this.place(event);
	}
	move(event) {
		const x = this.place(event);
		if (this.from !== null && Math.abs(x - this.from) > MAP_NEAR)
			this.timeline.setWindow([this.timeAt(this.from), this.timeAt(x)].sort((a, b) => a - b));
	}
	// A click moves what is in sight there.
	release(event) {
		const x = this.place(event), [from, to] = this.timeline.window();
		if (this.from !== null && Math.abs(x - this.from) <= MAP_NEAR)
			this.timeline.setWindow([this.timeAt(x) - (to - from) / 2, this.timeAt(x) + (to - from) / 2]);
		this.from = null;
	}
}
