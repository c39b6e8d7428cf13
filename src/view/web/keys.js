// SPDX-License-Identifier: Apache-2.0
// What keys do, wherever the focus is; tables, graphs and the time line have some of their own.

import {showCompare} from "./compare_dialog.js";
import {showColumns, showFilter, showHelp, showNotes, showThreads} from "./dialogs.js";
import {nextMetric} from "./events.js";
import {openMenuByKey} from "./menu.js";
import {VIEWS} from "./state.js";

export function keyActions(app) {
	return {
		...Object.fromEntries(VIEWS.map(([name, , key]) => [key, () => app.setView(name)])),
		h: () => app.hotPath(), z: () => app.zoomIn(), Z: () => app.trail.back(),
		Escape: () => app.trail.back(), I: () => app.toggleGraph("inverted"), R: () => app.toggleGraph("folded"),
		T: () => app.toggleTables(), l: () => app.toggleStacks(),
		f: () => app.flatten(1), F: () => app.flatten(-1),
		"<": () => app.moveSort(-1), ">": () => app.moveSort(1),
		r: () => app.sortBy(app.sorting().column, app.sorting().metric),
		m: () => app.setMetric(nextMetric(app.model.recorded.metrics, app.state.metric)),
		"/": () => app.search.focus(), n: () => app.nextMatch(1), N: () => app.nextMatch(-1),
		k: () => app.filterRow("keep", "name"), x: () => app.filterRow("hide", "name"),
		K: () => app.filterRow("keep", "module"), X: () => app.filterRow("hide", "module"),
		M: () => openMenuByKey(app), e: () => showFilter(app), t: () => showThreads(app),
		v: () => showCompare(app), b: () => app.nextBase(), "%": () => app.toggleShares(),
		w: () => app.nextWidth(), y: () => app.toggleUnsure(), u: () => app.undo(),
		c: () => showColumns(app), i: () => showNotes(app), s: () => app.togglePane(),
		a: () => app.switchInstructions(), A: () => app.switchSyntax(),
		g: () => app.flip(), d: () => app.switchTheme(), "?": showHelp,
	};
}
