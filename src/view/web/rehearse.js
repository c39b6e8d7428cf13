// SPDX-License-Identifier: Apache-2.0
// Browsers make code quick that is used often. That of comparisons would be slow when somebody waits for the first
// one, so some threads are compared while nothing else is to do, and shown in a table that is not in the page.

import {App} from "./app.js";
import {Comparison} from "./compare.js";
import {compareBar, comparedColumns, comparedStatus} from "./compare_show.js";
import {newCompareState} from "./compare_state.js";
import {Detail} from "./detail.js";
import {Table} from "./table.js";

const SIDE_MOST = 2; // threads of a side
const ROWS_OPEN = 200;
const TIMES = 3;

// An application of which only the table is there.
function makeRehearsal({model, state}, compare) {
	const comparison = new Comparison(model, compare), app = Object.create(App.prototype);
	Object.assign(app, {
		model, comparison, selection: comparison.select(), outlines: {}, open: {tree: new Set()},
		selectedBy: {tree: "0"}, matched: null,
		state: {...state, ...newCompareState(), compare, view: "tree", zoom: 0,
			sorts: {tree: {column: "change", metric: 0, up: false}}},
	});
	app.table = new Table(app);
	return app;
}

function show(app) {
	const row = app.selectedRow();
	app.outline.openAll("0", ROWS_OPEN);
	app.table.setColumns(comparedColumns(app));
	app.table.draw();
	compareBar(app);
	new Detail(app).show(row);
	comparedStatus(app, row);
}

// As steps.
export function prepareSides(app) {
	const threads = app.model.header.threads.map((_, t) => t), half = Math.min(SIDE_MOST, threads.length >> 1);
	const compare = {a: threads.slice(0, half), b: threads.slice(half, 2 * half), per: "thread"};
	let rehearsal = null;
	const steps = [() => {
		rehearsal = makeRehearsal(app, compare);
		rehearsal.outline.entry(0);
		rehearsal.comparison.contexts("total");
	}, () => { rehearsal.comparison.functions("self", rehearsal.view("callers")); }, () => { show(rehearsal); }];
	return half ? Array.from({length: TIMES}, () => steps).flat() : [];
}
