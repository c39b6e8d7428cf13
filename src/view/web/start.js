// SPDX-License-Identifier: Apache-2.0
// Reads the data of the page and begins.

import {App, viewOf, wholeView} from "./app.js";
import {prepareChances, prepareComparisons, prepareOthers} from "./compare_show.js";
import {prepareCommon} from "./compare_find.js";
import {whenIdle} from "./dom.js";
import {showMarks} from "./frame.js";
import {prepareFlat} from "./flat.js";
import {prepareFold} from "./folded.js";
import {moduleHues} from "./graph.js";
import {nameRanks, sortLevel} from "./levels.js";
import {Live} from "./live.js";
import {decodeBase64, inflate, parseModel} from "./model.js";
import {computeSelection, rowsByLine, samplesByThread} from "./select.js";
import {prepareThreads, rowsByThread} from "./lists.js";
import {prepareMemory} from "./memory.js";
import {prepareOwn} from "./own.js";
import {prepareSides} from "./rehearse.js";
import {noView} from "./state.js";
import {prepareTimeMap} from "./timeline_map.js";
import {prepareTimes} from "./times.js";
import {prepareWaits} from "./waits.js";
import {prepareCallers} from "./views.js";

const AT_ONCE = 8; // milliseconds

// Takes steps while there is nothing else to do, short ones together. One that returns true is not yet at its end.
function prepare(steps) {
	const take = () => {
		const start = performance.now();
		while (steps.length && performance.now() - start < AT_ONCE)
			if (!steps[0]())
				steps = steps.slice(1);
		if (steps.length)
			whenIdle(take);
	};
	whenIdle(take);
}

async function start() {
	try {
		const data = document.getElementById("data");
		const model = parseModel(await inflate(decodeBase64(data.textContent.trim())));
		data.remove();
		if (!model.metrics.length)
			throw new Error("this recording has no samples");
		window.culprit = new App(model);
		const {live} = document.documentElement.dataset;
		if (live)
			window.culprit.live = new Live(window.culprit, live);
		window.culprit.focus();
		document.documentElement.dataset.ready = "true";
		// Where two sides are compared, the views are others.
		const current = (name) => window.culprit.comparison ? window.culprit.view(name) : wholeView(name, model);
		const view = (name) => [() => current(name).advance?.(),
			() => {
				if (window.culprit.comparison)
					prepareChances(window.culprit, name);
				else
					sortLevel(model, wholeView(name, model).level(null), window.culprit.state.sorts[name]);
			}];
		prepare([() => { nameRanks(model); }, () => { moduleHues(model); }, () => { rowsByThread(model); }, () => { computeSelection(model).sums; }, () => { computeSelection(model).wanted; },
			...prepareComparisons(window.culprit), ...prepareTimes(model), ...prepareTimeMap(model),
			...prepareMemory(model), ...noView(model, "memory") ? [] : [() => wholeView("memory", model).advance()], ...prepareWaits(model),
			...prepareCallers(model), ...view("callers"),
			...prepareFlat(model), ...view("flat"), () => current("flat").advanceUpper?.(),
			...prepareOthers(window.culprit, viewOf), () => { rowsByLine(model); },
			...prepareFold(model), ...prepareThreads(model), ...prepareOwn(model), ...prepareCommon(model),
			...model.header.metrics.map((_, m) => () => { samplesByThread(model, m); }), ...prepareSides(window.culprit),
			() => { showMarks(); }]);
	} catch (error) {
		document.getElementById("app").textContent = `This profile cannot be shown: ${error.message}`;
		document.documentElement.dataset.ready = "failed";
	}
}

start();
