// SPDX-License-Identifier: Apache-2.0
// measure.mjs CHROMIUM PAGE: how long a page takes to open and to answer: milliseconds of work, until the
// next frame is drawn, and of CPU time of the page's thread, which does not depend on what else runs.
import {statSync} from "node:fs";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";

const [program, page] = process.argv.slice(2);
const b = await new Browser(program).start();
await b.size(1400, 900);
const opened = [];
for (let i = 0; i < 3; i++)
	opened.push(Math.round(await b.open(pageUrl(page))));
console.log(`${statSync(page).size} bytes, ${await b.evaluate("culprit.model.nodes.count")} nodes,`,
	`${await b.evaluate("culprit.model.rows.count")} rows of samples`);
console.log(`first paint with data: ${Math.min(...opened)} ms (of ${opened.join(", ")})`);

await new Promise((resolve) => setTimeout(resolve, 1000)); // what it prepares while nobody asks
const actions = [
	["hot path", "culprit.hotPath()"],
	["open 2000 rows", "culprit.openAll('0')"],
	["scroll", "culprit.table.scroller.scrollTop = 20000"],
	["sort by self", "culprit.sortBy('self', 0)"],
	["sort by name", "culprit.sortBy('name', 0)"],
	["sort by total", "culprit.sortBy('total', 0)"],
	["search", "culprit.setSearch('step_1')"],
	["next match", "culprit.nextMatch(1)"],
	["next match", "culprit.nextMatch(1)"],
	["end of search", "culprit.setSearch('')"],
	["select", "culprit.selectRow(culprit.outline.list[5].row.key)"],
	["hide by name", "culprit.addFilter({how: 'hide', what: 'name', text: 'step_7'})"],
	["keep by module", "culprit.addFilter({how: 'keep', what: 'module', text: '3'})"],
	["undo", "culprit.undo()"],
	["undo", "culprit.undo()"],
	["threads", "culprit.setThreads([0])"],
	["all threads", "culprit.setThreads(null)"],
	["graph", "culprit.setView('graph')"],
	["zoom", "culprit.zoomTo(1)"],
	["zoom out", "culprit.zoomTo(0)"],
	["flames", "culprit.flip()"],
	["bottom-up", "culprit.setView('callers')"],
	["hot path there", "culprit.hotPath()"],
	["open a row", "culprit.toggleRow(culprit.outline.list[0].row.key)"],
	["hide there", "culprit.addFilter({how: 'hide', what: 'name', text: 'step_7'})"],
	["undo there", "culprit.undo()"],
	["flat", "culprit.setView('flat')"],
	["flatten", "culprit.flatten(1)"],
	["unflatten", "culprit.flatten(-1)"],
	["hide there", "culprit.addFilter({how: 'hide', what: 'name', text: 'step_7'})"],
	["undo there", "culprit.undo()"],
	["top-down", "culprit.setView('tree')"],
];
await b.call("Performance.enable", {timeDomain: "threadTicks"});
const ticks = async () => (await b.call("Performance.getMetrics")).metrics.find((m) => m.name === "TaskDuration").value;
let worst = 0, busiest = 0;
for (const [name, code] of actions) {
	const before = await ticks();
	const [work, frame] = await b.evaluate(`new Promise((done) => {
		const start = performance.now();
		${code};
		document.body.offsetHeight;
		const end = performance.now();
		requestAnimationFrame(() => setTimeout(() => done([end - start, performance.now() - start])));
	})`);
	const cpu = 1000 * (await ticks() - before);
	worst = Math.max(worst, work);
	busiest = Math.max(busiest, cpu);
	console.log(name.padEnd(16), ...[work, frame, cpu].map((ms) => ms.toFixed(0).padStart(5)));
}
console.log(`slowest: ${worst.toFixed(0)} ms, of CPU ${busiest.toFixed(0)} ms`);
for (const problem of b.problems)
	console.log(problem);
await b.close();
