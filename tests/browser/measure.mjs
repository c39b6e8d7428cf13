// SPDX-License-Identifier: Apache-2.0
// measure.mjs [--json] CHROMIUM PAGE [ROUNDS]: how long a page takes to open and to answer, the median of ROUNDS
// (3): milliseconds of work, until the frame after it is drawn, and of CPU time of the page's thread, which
// depends less on what else runs.
import {statSync} from "node:fs";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";

const json = process.argv[2] === "--json";
const [program, page, rounds = "3"] = process.argv.slice(json ? 3 : 2);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

// What is done, in this order. `hot` is a function with much below it, by which is filtered and searched.
const ACTIONS = [
	["hot path", "culprit.hotPath()"],
	["select another row", "culprit.selectRow(culprit.outline.entry(5).row.key)"],
	["expand", "culprit.toggleRow(first((e) => !e.row.leaf && !culprit.open.tree.has(e.row.key)).row.key)"],
	["expand all: 10 000 rows", "culprit.openAll(String(culprit.state.zoom), 10000)"],
	["scroll to row 9000", "culprit.table.scroller.scrollTop = 9000 * 24"],
	["sort by self", "culprit.sortBy('self', 0)"],
	["sort by name", "culprit.sortBy('name', 0)"],
	["sort by total", "culprit.sortBy('total', 0)"],
	["search: first letter", "culprit.setSearch(hot[0])"],
	["search: whole name", "culprit.setSearch(hot)"],
	["next match", "culprit.nextMatch(1)"],
	["match after that", "culprit.nextMatch(1)"],
	["end of search", "culprit.setSearch('')"],
	["hide by name", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["keep by name", "culprit.addFilter({how: 'keep', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["keep by module", "culprit.addFilter({how: 'keep', what: 'module', text: 'lib'})"],
	["undo", "culprit.undo()"],
	["one thread", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	["zoom into a subtree", "culprit.zoomTo(culprit.view('tree').level(culprit.view('tree').rowOf('0')).row(0).node)"],
	["zoom out", "culprit.zoomTo(0)"],
	["flame graph", "culprit.setView('graph')"],
	["hover", "hover(0.3, 5)"],
	["hover elsewhere", "hover(0.6, 12)"],
	["zoom by a click", "culprit.zoomTo(culprit.graph.layout.node[3])"],
	["zoom out", "culprit.zoomTo(0)"],
	["upside down", "culprit.flip()"],
	["search in it", "culprit.setSearch(hot)"],
	["end of search", "culprit.setSearch('')"],
	["bottom-up", "culprit.setView('callers')"],
	["hot path there", "culprit.hotPath()"],
	["expand there", "culprit.toggleRow(first((e) => !e.row.leaf && !culprit.open.callers.has(e.row.key)).row.key)"],
	["sort by self there", "culprit.sortBy('self', 0)"],
	["search there", "culprit.setSearch(hot)"],
	["end of search", "culprit.setSearch('')"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["one thread there", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	["flat", "culprit.setView('flat')"],
	["flatten", "culprit.flatten(1)"],
	["unflatten", "culprit.flatten(-1)"],
	["sort by total there", "culprit.sortBy('total', 0)"],
	["hide by name there", "culprit.addFilter({how: 'hide', what: 'name', text: hot})"],
	["undo", "culprit.undo()"],
	["source of the row", "culprit.selectRow(first((e) => e.row.scope > 0 && culprit.model.scopes.file[e.row.scope])?.row.key || culprit.outline.entry(0).row.key)"],
	["top-down", "culprit.setView('tree')"],
];

async function measureAll(b) {
	await b.evaluate(`window.hot = (() => {
		const {model, selection} = culprit, {scope} = model.nodes, sums = new Map();
		for (let i = 1; i < model.nodes.count; i++)
			sums.set(scope[i], (sums.get(scope[i]) || 0) + selection.sums[0].self(i));
		const best = [...sums].filter(([s]) => model.scopes.kind[s] === 6).sort((x, y) => y[1] - x[1])[0][0];
		return model.strings[model.scopes.name[best]].match(/[A-Za-z_]\\w{3,}/g)?.pop() || "a";
	})();
	window.first = (test) => { for (let i = 0; i < culprit.outline.length; i++) {
		const entry = culprit.outline.entry(i); if (test(entry)) return entry; } };
	window.hover = (x, level) => { const box = culprit.graph.canvas.getBoundingClientRect();
		culprit.graph.hover({clientX: box.x + x * box.width, clientY: box.y + 20 * level + 5}); };`);
	const results = [];
	for (const [name, code] of ACTIONS) {
		const ticks = async () => (await b.call("Performance.getMetrics")).metrics
			.find((m) => m.name === "TaskDuration").value;
		const before = await ticks();
		const [work, frame] = await b.evaluate(`new Promise((done) => {
			const start = performance.now();
			${code};
			document.body.offsetHeight;
			const end = performance.now();
			requestAnimationFrame(() => setTimeout(() => done([end - start, performance.now() - start])));
		})`);
		results.push({name, work, frame, cpu: 1000 * (await ticks() - before)});
		await new Promise((resolve) => setTimeout(resolve, 250)); // as people do, and what is put off is done
	}
	return results;
}

const b = await new Browser(program, 600000).start();
await b.size(1400, 900);
await b.call("Performance.enable", {timeDomain: "threadTicks"});
const opened = [], all = [];
for (let i = 0; i < Number(rounds); i++) {
	opened.push(await b.open(pageUrl(page)));
	await new Promise((resolve) => setTimeout(resolve, 1500)); // what it prepares while nobody asks
	all.push(await measureAll(b));
}
const result = {
	bytes: statSync(page).size,
	nodes: await b.evaluate("culprit.model.nodes.count"),
	rows: await b.evaluate("culprit.model.rows.count"),
	samples: await b.evaluate("culprit.model.whole[0]"),
	opened: median(opened), openedAll: opened,
	memory: (await b.call("Performance.getMetrics")).metrics.find((m) => m.name === "JSHeapUsedSize").value,
	actions: ACTIONS.map(([name], i) => ({name,
		work: median(all.map((r) => r[i].work)), frame: median(all.map((r) => r[i].frame)),
		cpu: median(all.map((r) => r[i].cpu))})),
	problems: b.problems,
};
if (json) {
	console.log(JSON.stringify(result));
} else {
	console.log(`${result.bytes} bytes, ${result.nodes} nodes, ${result.rows} rows of samples`);
	console.log(`first paint with data: ${Math.round(result.opened)} ms (of ${opened.map(Math.round).join(", ")})`);
	for (const {name, work, frame, cpu} of result.actions)
		console.log(name.padEnd(24), ...[work, frame, cpu].map((ms) => ms.toFixed(0).padStart(5)));
	const most = (key) => Math.max(...result.actions.map((a) => a[key])).toFixed(0);
	console.log(`slowest: ${most("work")} ms of work, ${most("frame")} ms to the next frame, ${most("cpu")} ms of CPU`);
	result.problems.forEach((problem) => console.log(problem));
}
await b.close();
