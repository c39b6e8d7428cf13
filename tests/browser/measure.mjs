// SPDX-License-Identifier: Apache-2.0
// measure.mjs [--json] CHROMIUM PAGE [ROUNDS] [plain | times | events | diff]: how long a page takes to open and to answer,
// the median of ROUNDS (3): milliseconds of work, until the frame after it is drawn, until nothing in sight changes
// any more, and of CPU time of the page's thread up to that frame, which depends less on what else runs; and of the
// longest task that the page had left for later, if that is longer than 50 ms. What is done: as the page is for, or
// the actions that are named.
import {statSync} from "node:fs";
import {Browser} from "./browser.mjs";
import {HELPERS, actionsOf} from "./measure_actions.mjs";
import {treeUrl} from "./page.mjs";

const json = process.argv[2] === "--json";
const [program, page, rounds = "3", kind = ""] = process.argv.slice(json ? 3 : 2);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];

// What was left for later is done in one go by some: nobody may wait for that, either.
const TASKS = `
	window.tasks = [];
	new PerformanceObserver((list) => tasks.push(...list.getEntries())).observe({entryTypes: ["longtask"]});
	window.longest = (since) => Math.max(0, ...tasks.filter((t) => t.startTime > since).map((t) => t.duration));
`;

// Tells when something in sight changed after the first frame: window.changed.
const CHANGES = `
	window.isSeen = (node) => {
		const element = node.nodeType === 1 ? node : node.parentElement;
		if (!element?.isConnected || !element.checkVisibility())
			return false;
		const box = element.getBoundingClientRect(), frame = element.closest(".scroller, dialog")?.getBoundingClientRect();
		const [left, top, right, bottom] = frame ? [frame.left, frame.top, frame.right, frame.bottom] :
			[0, 0, innerWidth, innerHeight];
		return box.width > 1 && box.height > 1 && box.left < right && box.right > left && box.top < bottom && box.bottom > top;
	};
	window.isSeenChange = ({type, target, addedNodes}) => type === "childList" ? [...addedNodes].some(isSeen) ||
		(!addedNodes.length && !target.matches(".row") && isSeen(target)) : isSeen(target);
	window.watcher = new MutationObserver((list) => {
		if (list.some(isSeenChange))
			requestAnimationFrame(() => setTimeout(() => { window.changed = performance.now(); }));
	});
	window.watch = () => watcher.observe(document.body, {subtree: true, childList: true, characterData: true,
		attributes: true, attributeFilter: ["class", "style", "hidden", "aria-sort"]});
`;

async function measureAll(b, actions) {
	await b.evaluate(HELPERS + TASKS + CHANGES);
	const results = [];
	for (const [name, code] of actions) {
		const ticks = async () => (await b.call("Performance.getMetrics")).metrics
			.find((m) => m.name === "TaskDuration").value;
		const before = await ticks();
		const [work, frame, end, start] = await b.evaluate(`new Promise((done) => {
			const start = performance.now();
			window.changed = 0;
			${code};
			document.body.offsetHeight;
			const end = performance.now();
			requestAnimationFrame(() => setTimeout(() => {
				const now = performance.now();
				watch();
				done([end - start, now - start, now, start]);
			}));
		})`);
		const cpu = 1000 * (await ticks() - before);
		await new Promise((resolve) => setTimeout(resolve, 250)); // as people do, and what is put off is done
		const changed = await b.evaluate("watcher.disconnect(), changed");
		results.push({name, work, frame, cpu, seen: Math.max(frame, changed - start), later: await b.evaluate(`longest(${end})`)});
	}
	return results;
}

const b = await new Browser(program, 600000).start();
await b.size(1400, 900);
await b.call("Performance.enable", {timeDomain: "threadTicks"});
const opened = [], all = [];
let actions = null;
for (let i = 0; i < Number(rounds); i++) {
	opened.push(await b.open(treeUrl(page)));
	await new Promise((resolve) => setTimeout(resolve, 1500)); // what it prepares while nobody asks
	actions = actions || actionsOf(kind || await b.evaluate("culprit.comparison ? 'diff' : " +
		"culprit.model.wakes.count ? 'events' : culprit.model.spans.count ? 'times' : 'plain'"));
	all.push(await measureAll(b, actions));
}
const result = {
	bytes: statSync(page).size,
	nodes: await b.evaluate("culprit.model.nodes.count"),
	rows: await b.evaluate("culprit.model.rows.count"),
	samples: await b.evaluate("culprit.model.whole[0]"),
	opened: median(opened), openedAll: opened,
	memory: (await b.call("Performance.getMetrics")).metrics.find((m) => m.name === "JSHeapUsedSize").value,
	actions: actions.map(([name], i) => ({name,
		...Object.fromEntries(["work", "frame", "seen", "cpu", "later"].map((key) => [key, median(all.map((r) => r[i][key]))]))})),
	problems: b.problems,
};
if (json) {
	console.log(JSON.stringify(result));
} else {
	console.log(`${result.bytes} bytes, ${result.nodes} nodes, ${result.rows} rows of samples`);
	console.log(`first paint with data: ${Math.round(result.opened)} ms (of ${opened.map(Math.round).join(", ")})`);
	for (const {name, work, frame, seen, cpu, later} of result.actions)
		console.log(name.padEnd(26), ...[work, frame, seen, cpu, later].map((ms) => ms.toFixed(0).padStart(5)));
	const most = (key) => Math.max(...result.actions.map((a) => a[key])).toFixed(0);
	console.log(`slowest: ${most("work")} ms of work, ${most("frame")} ms to the next frame, ${most("seen")} ms until ` +
		`nothing in sight changes, ${most("cpu")} ms of CPU; ${most("later")} ms left for later`);
	result.problems.forEach((problem) => console.log(problem));
}
await b.close();
