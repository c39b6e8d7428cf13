// SPDX-License-Identifier: Apache-2.0
// The way back: from a zoom, or from the callers and callees of a function, to what was looked at before, as it was.

const STEPS_MAX = 200;
const PLACE = ["view", "zoom", "inside", "node", "center", "flow", "block", "paths", "path"]; // of the state

export class Trail {
	constructor(app) {
		this.app = app;
		this.steps = [];
	}
	clear() {
		this.steps = [];
	}
	// Before something else is looked at.
	remember() {
		const {state, selectedBy} = this.app;
		this.steps.push({state: Object.fromEntries(PLACE.map((name) => [name, state[name]])), selectedBy: {...selectedBy}});
		this.steps.splice(0, this.steps.length - STEPS_MAX);
	}
	// Before it is zoomed: inwards, one may come back; outwards, what is inside is not on the way back any more.
	// isAround(state): whether what was looked at then is around what comes now.
	zoom(isInwards, isAround) {
		if (isInwards)
			return this.remember();
		this.steps = this.steps.filter(({state}) => state.view !== this.app.state.view || isAround(state));
	}
	// To where one came from; where that is not known, outwards.
	back() {
		const {app} = this, step = this.steps.pop();
		if (!step)
			return app.zoomOut();
		const zoomed = step.state.zoom !== app.state.zoom, there = step.state.view === app.state.view;
		Object.assign(app.state, step.state);
		Object.assign(app.selectedBy, step.selectedBy);
		if (zoomed)
			app.select();
		app.render({reveal: "middle"});
		app.save(true);
		if (!there)
			app.focus();
	}
}
