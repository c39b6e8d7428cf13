// SPDX-License-Identifier: Apache-2.0
// What is done in a page whose answers are measured: [name, code], in this order. `hot` is a function with much
// below it, by which is filtered and searched; HELPERS are what else the code uses. "There" is the view that was
// opened last.

export const HELPERS = `
	window.hot = (() => {
		const {model, selection} = culprit, {scope} = model.nodes, sums = new Map();
		for (let i = 1; i < model.nodes.count; i++)
			sums.set(scope[i], (sums.get(scope[i]) || 0) + selection.sums[0].self(i));
		const best = [...sums].filter(([s]) => model.scopes.kind[s] === 6).sort((x, y) => y[1] - x[1])[0][0];
		return model.strings[model.scopes.name[best]].match(/[A-Za-z_]\\w{3,}/g)?.pop() || "a";
	})();
	window.first = (test) => { for (let i = 0; i < culprit.outline.length; i++) {
		const entry = culprit.outline.entry(i); if (test(entry)) return entry; } };
	window.toggle = () => culprit.toggleRow(
		first((e) => !e.row.leaf && !culprit.open[culprit.treeView()].has(e.row.key)).row.key);
	window.hover = (x, level) => { const box = culprit.graph.canvas.getBoundingClientRect();
		culprit.graph.hover({clientX: box.x + x * box.width, clientY: box.y + 20 * level + 5}); };
	window.press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
	window.shut = () => document.querySelector("dialog").close();
	window.pointer = (x, row) => { const box = culprit.timeline.canvas.getBoundingClientRect();
		return {clientX: box.x + 210 + x * (box.width - 210), clientY: box.y + 22 + culprit.timeline.tops[row] + 12, pointerId: 1, button: 0,
			deltaX: 0, deltaY: -100, preventDefault() {}}; };
	window.span = (x, row) => culprit.timeline.spanUnder(pointer(x, row));
	window.part = (from, to) => { const [a, b] = culprit.timeline.window();
		return [Math.round(a + from * (b - a)), Math.round(a + to * (b - a))]; };
	window.threads = culprit.model.header.threads.map((_, i) => i);
	window.half = Math.min(8, threads.length >> 1);
`;

const SEARCH = [
	["search: first letter", "culprit.setSearch(hot[0])"],
	["search: whole name", "culprit.setSearch(hot)"],
	["next match", "culprit.nextMatch(1)"],
	["match after that", "culprit.nextMatch(1)"],
	["end of search", "culprit.setSearch('')"],
];

const FILTERS = [
	["hide by name", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["keep by name", "culprit.addFilter({how: 'keep', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["keep by module", "culprit.addFilter({how: 'keep', what: 'module', text: 'lib'})"],
	["undo", "culprit.undo()"],
];

const ZOOM = [
	["zoom into a subtree", "culprit.zoomTo(culprit.view('tree').level(culprit.view('tree').rowOf('0')).row(0).node)"],
	["zoom out", "culprit.zoomTo(0)"],
];

const GRAPH = [
	["flame graph", "culprit.setView('graph')"],
	["hover", "hover(0.3, 5)"],
	["hover elsewhere", "hover(0.6, 12)"],
	["zoom by a click", "culprit.zoomTo(culprit.graph.layout.item[3])"],
	["zoom out", "culprit.zoomTo(0)"],
	["upside down", "culprit.flip()"],
	["search in it", "culprit.setSearch(hot)"],
	["end of search", "culprit.setSearch('')"],
];

const GRAPHS = [
	["inverted", "culprit.toggleGraph('inverted')"],
	["as it was", "culprit.toggleGraph('inverted')"],
	["recursion folded", "culprit.toggleGraph('folded')"],
	["inverted, too", "culprit.toggleGraph('inverted')"],
	["as it was", "culprit.toggleGraph('inverted'); culprit.toggleGraph('folded')"],
];

const OVERVIEW = [
	["overview", "culprit.setView('overview')"],
	["another function", "culprit.selectRow(culprit.outline.entry(5).row.key)"],
	["a box", "culprit.selectNode(culprit.graph.layout.item[3])"],
	["zoom in both", "culprit.zoomTo(culprit.graph.layout.item[3])"],
	["back", "culprit.trail.back()"],
	["sandwich", "culprit.showSandwich(culprit.view('callers').rowOf(culprit.outline.entry(0).row.key))"],
	["as tables", "culprit.toggleTables()"],
	["as graphs", "culprit.toggleTables()"],
	["back", "culprit.trail.back()"],
];

const FILTERS_THERE = [
	["search there", "culprit.setSearch(hot)"],
	["end of search", "culprit.setSearch('')"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["one thread there", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
];

const OPEN = [
	["hot path", "culprit.hotPath()"],
	["select another row", "culprit.selectRow(culprit.outline.entry(5).row.key)"],
	["expand", "toggle()"],
	["expand all: 10 000 rows", "culprit.openAll(String(culprit.state.zoom), 10000)"],
	["scroll to row 9000", "culprit.table.scroller.scrollTop = 9000 * 24"],
];

const FLATTEN = [
	["flatten", "culprit.flatten(1)"],
	["unflatten", "culprit.flatten(-1)"],
];

// All threads, on two sides.
const GROUPS = "culprit.setCompare({a: threads.filter((t) => t % 2), b: threads.filter((t) => t % 2 === 0), per: 'group'})";

const PLAIN = [
	...OPEN,
	["sort by self", "culprit.sortBy('self', 0)"],
	["sort by name", "culprit.sortBy('name', 0)"],
	["sort by total", "culprit.sortBy('total', 0)"],
	...SEARCH,
	...FILTERS,
	["one thread", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	...ZOOM,
	["last metric", "culprit.setMetric(culprit.model.metrics.length - 1)"],
	["first metric", "culprit.setMetric(0)"],
	["a derived column", "culprit.setDerived([{name: 'double', formula: '2 * $1'}])"],
	["sort by that", "culprit.sortBy('self', culprit.model.metrics.length)"],
	["without it", "culprit.setDerived([])"],
	["dialog of threads", "press('t')"],
	["end of dialog", "shut()"],
	["threads beside each other", "culprit.compare({by: 'thread', threads: threads.slice(0, 2)})"],
	["without them", "culprit.compare(null)"],
	...GRAPH,
	["bottom-up", "culprit.setView('callers')"],
	["hot path there", "culprit.hotPath()"],
	["expand there", "toggle()"],
	["sort by total there", "culprit.sortBy('total', 0)"],
	...FILTERS_THERE,
	["flat", "culprit.setView('flat')"],
	...FLATTEN,
	["sort by total there", "culprit.sortBy('total', 0)"],
	...FILTERS_THERE,
	["source of the row", "culprit.selectRow(first((e) => e.row.scope > 0 && culprit.model.scopes.file[e.row.scope])?.row.key || culprit.outline.entry(0).row.key)"],
	["top-down", "culprit.setView('tree')"],
	["dialog of sides", "press('v')"],
	["end of dialog", "shut()"],
	["compare threads", "culprit.setCompare({a: threads.slice(0, half), b: threads.slice(half, 2 * half), per: 'thread'})"],
	["compare groups", GROUPS],
	["compare nothing", "culprit.setCompare('off')"],
	["flame graph", "culprit.setView('graph')"],
	...GRAPHS,
	...OVERVIEW,
	...FILTERS_THERE,
	["dark, or light", "culprit.switchTheme()"],
];

const TIMES = [
	["time line", "culprit.setView('time')"],
	["hover", "culprit.timeline.move(pointer(0.3, 1))"],
	["zoom in", "culprit.timeline.zoom(0.5)"],
	["pan", "culprit.timeline.pan(0.1)"],
	["zoom by the wheel", "culprit.timeline.wheel(pointer(0.4, 3))"],
	["zoom out", "culprit.timeline.zoom(2)"],
	["whole time", "culprit.timeline.setWindow(null)"],
	["colour by level 3", "culprit.timeline.setLevel(3)"],
	["by innermost function", "culprit.timeline.setLevel(0)"],
	["choose a span", "culprit.timeline.pick(span(0.5, 3))"],
	["next span", "culprit.timeline.step(1)"],
	["thread below", "culprit.timeline.stepRow(1)"],
	["zoom to a span", "culprit.timeline.zoomToSpan(span(0.5, 3))"],
	["whole time", "culprit.timeline.setWindow(null)"],
	["select a subtree", "culprit.selectRow(culprit.view('tree').level(culprit.view('tree').rowOf('0')).row(0).key)"],
	["search in it", "culprit.setSearch(hot)"],
	["end of search", "culprit.setSearch('')"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["begin to drag", "culprit.timeline.drag = {x: 0, from: part(0.2, 1)[0], to: part(0.8, 1)[0], moved: true}; culprit.timeline.paint()"],
	["most of the time", "culprit.timeline.drag = null; culprit.setTime(part(0.1, 0.9))"],
	["a part of the time", "culprit.setTime(part(0.4, 0.5))"],
	["most of it again", "culprit.setTime(part(0.1, 0.9))"],
	["one thread of it", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	["top-down of that time", "culprit.setView('tree')"],
	["hot path there", "culprit.hotPath()"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["flame graph of it", "culprit.setView('graph')"],
	["bottom-up of it", "culprit.setView('callers')"],
	["another time there", "culprit.setTime(part(0.2, 0.7))"],
	["flat of it", "culprit.setView('flat')"],
	["another time there", "culprit.setTime(part(0.3, 0.95))"],
	["the whole time there", "culprit.setTime(null)"],
	["time line", "culprit.setView('time')"],
	["one thread", "culprit.setThreads([1])"],
	["all threads", "culprit.setThreads(null)"],
	["dark, or light", "culprit.switchTheme()"],
];

const EVENTS = [
	["memory", "culprit.setView('memory')"],
	["by leaks", "document.querySelectorAll('.legend.memory button')[1].click()"],
	["by churn", "document.querySelectorAll('.legend.memory button')[2].click()"],
	["sort by bytes", "culprit.sortBy('self', 4)"],
	["select another place", "culprit.selectRow(culprit.outline.entry(5).row.key)"],
	["expand", "toggle()"],
	...FILTERS_THERE,
	["waits", "culprit.setView('waits')"],
	["another wait", "culprit.waits.select(culprit.waits.pairs[3].key)"],
	["one reason", "culprit.setReason(culprit.waits.found().reasons[0].reason)"],
	["its flame graph", "culprit.setView('graph')"],
	["its functions", "culprit.setView('callers')"],
	["all samples", "culprit.setReason(0)"],
	["waits again", "culprit.setView('waits')"],
	["search there", "culprit.setSearch('worker-3')"],
	["next match", "culprit.nextMatch(1)"],
	["end of search", "culprit.setSearch('')"],
	["one thread", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["another measure", "press('m')"],
	["overview", "culprit.setView('overview')"],
	["another measure", "press('m')"],
	["time line", "culprit.setView('time')"],
	["choose a span", "culprit.timeline.pick(span(0.5, 3))"],
	["next span", "culprit.timeline.step(1)"],
	["to the waker", "culprit.timeline.pickWaker()"],
	["zoom in", "culprit.timeline.zoom(0.01)"],
	["whole time", "culprit.timeline.setWindow(null)"],
	["stacks", "culprit.toggleStacks()"],
	["without stacks", "culprit.toggleStacks()"],
];

const SORTS = [
	["sort by old", "culprit.sortBy('old', 0)"],
	["sort by new", "culprit.sortBy('new', 0)"],
	["sort by difference", "culprit.sortBy('difference', 0)"],
	["sort by name", "culprit.sortBy('name', 0)"],
	["sort by change", "culprit.sortBy('change', 0)"],
];

const MEASURES = [
	["compare self", "culprit.nextBase()"],
	["compare both", "culprit.nextBase()"],
	["compare total", "culprit.nextBase()"],
	["compare shares", "culprit.toggleShares()"],
	["compare costs", "culprit.toggleShares()"],
	["last metric", "culprit.setMetric(culprit.model.metrics.length - 1)"],
	["first metric", "culprit.setMetric(0)"],
];

const DIFF = [
	...OPEN,
	...SORTS,
	...MEASURES,
	...SEARCH,
	...FILTERS,
	["one thread", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	...ZOOM,
	...GRAPH,
	["width of old", "culprit.nextWidth()"],
	["width of both", "culprit.nextWidth()"],
	["width of new", "culprit.nextWidth()"],
	["all differences", "culprit.toggleUnsure()"],
	["sure differences", "culprit.toggleUnsure()"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["last metric", "culprit.setMetric(culprit.model.metrics.length - 1)"],
	["first metric", "culprit.setMetric(0)"],
	["bottom-up", "culprit.setView('callers')"],
	["hot path there", "culprit.hotPath()"],
	["expand there", "toggle()"],
	...SORTS,
	...MEASURES,
	...FILTERS_THERE,
	["flat", "culprit.setView('flat')"],
	...FLATTEN,
	...SORTS,
	...MEASURES,
	...FILTERS_THERE,
	["top-down", "culprit.setView('tree')"],
	["dialog of sides", "press('v')"],
	["end of dialog", "shut()"],
	["compare threads", "culprit.setCompare({a: threads.slice(0, 4), b: threads.slice(4, 8), per: 'thread'})"],
	["compare groups", GROUPS],
	["compare nothing", "culprit.setCompare('off')"],
	["old with new", "culprit.setCompare(null)"],
];

// kind: "plain", "times", "events" or "diff".
export function actionsOf(kind) {
	return {plain: PLAIN, times: TIMES, events: EVENTS, diff: DIFF}[kind];
}
