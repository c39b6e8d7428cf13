// SPDX-License-Identifier: Apache-2.0
// paths.mjs CHROMIUM PAGE NONE LARGE [FOLDER]: paths of functions, by mouse and keyboard, wide and narrow, light and dark. PAGE is that of
// 110-view-paths, NONE a recording without paths, LARGE one of very many. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {worstContrast} from "./contrast.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, page, none, large, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {count, keys, settle, shoot, step, steps, text} = stepper(b, folder);

const paths = (code) => b.evaluate(`(() => { const {paths: view, model, state} = culprit, {paths} = model; return ${code}; })()`);
const name = () => paths("view.nameOf(view.f)");
const selectedPath = () => text(".countedpath.selected:not([hidden]) span:last-child");
const open = (more = "") => b.open(pageUrl(page) + "#v=paths" + more);
const marked = () => b.evaluate(`[...document.querySelectorAll(".lines.marked:not([hidden]) .number")].map((e) => e.innerText)`);
// Selects a function by its name.
const choose = async (wanted) => {
	await keys("/");
	await b.type(`^${wanted}$`);
	await keys("Enter", "Escape");
	assert.equal(await name(), wanted);
};

for (const [width, dark] of [[1500, false], [1500, true], [800, false], [800, true]])
	await step(`shows functions and paths, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await open();
		assert.equal(await b.evaluate("culprit.state.view"), "paths");
		assert.ok(await count(".countedfunction[aria-rowindex]:not([hidden])") > 2);
		assert.equal(await b.evaluate("Number(culprit.paths.functions.element.getAttribute('aria-rowcount'))"), await paths("paths.count + 1"));
		assert.equal(await name(), await paths("view.nameOf(0)"));
		assert.ok(await selectedPath());
		assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window");
		assert.match(await text(".countedtitle"), /calls?, [\d\u202f]+ of [\d\u202f]+ paths taken/);
		assert.match(await text(".detail dl"), /taken\s+[\d\u202f]+ times?, [\d\u202f]+ instructions? each[\s\S]*goes/);
		const {worst} = await b.evaluate(`(${worstContrast})()`);
		assert.ok(worst.ratio >= 4.5, JSON.stringify(worst));
		await shoot(`paths-${width}-${dark ? "dark" : "light"}`);
	});
await b.size(1500, 900);
await b.dark(false);
await step("moves by keyboard, from functions to paths and back", async () => {
	await open();
	assert.equal(await b.evaluate("document.activeElement.getAttribute('aria-label')"), "functions with counted paths");
	await keys("ArrowDown");
	assert.equal(await paths("view.f"), 1);
	await keys("ArrowUp", "ArrowRight");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('aria-label')"), "paths of the function");
	const first = await selectedPath();
	await keys("ArrowDown");
	assert.notEqual(await selectedPath(), first);
	assert.equal(await b.evaluate("document.activeElement.getAttribute('aria-activedescendant')"), "countedpath1");
	await keys("End");
	assert.equal(await paths("view.list.list.indexOf(view.p)"), await paths("view.list.list.length - 1"));
	await keys("Home", "ArrowLeft", "End");
	assert.equal(await paths("view.f"), await paths("paths.count - 1"));
	await keys("h");
	assert.deepEqual(await paths("[view.f, view.p]"), [0, await paths("paths.first[0]")]);
});
await step("marks the lines of a path, and those alone", async () => {
	await open();
	await choose("classify");
	const all = await paths(`Array.from({length: paths.first[view.f + 1] - paths.first[view.f]}, (_, i) => view.wordsOf(paths.first[view.f] + i))`);
	assert.ok(all.length > 1);
	await keys("ArrowRight");
	const seen = new Set();
	for (let i = 0; i < all.length; i++) {
		const lines = await marked(), known = await paths(`(() => { const {flow} = model, start = flow.first[paths.flow[view.f]], set = new Set();
			for (let k = paths.firstBlock[view.p]; k < paths.firstBlock[view.p + 1]; k++)
				for (let i = flow.firstLine[start + paths.block[k]]; i < flow.firstLine[start + paths.block[k] + 1]; i++) set.add(String(flow.line[i]));
			return [...set]; })()`);
		assert.deepEqual(lines.sort(), known.sort());
		seen.add(lines.join());
		await keys("ArrowDown");
	}
	assert.ok(seen.size > 1, "all paths have the same lines");
	await keys("a");
	await settle();
	assert.ok((await marked()).length > 0 && (await marked()).every((address) => /^[0-9a-f]+$/.test(address)), "no instruction is marked");
	assert.equal((await marked()).length, await paths("paths.length[view.p]"));
});
await step("orders by count, and has shares that add up", async () => {
	await open();
	await choose("solve");
	const counts = () => b.evaluate(`[...document.querySelectorAll(".countedpath[aria-rowindex]:not([hidden])")].sort((a, b) => a.index - b.index)
		.map((row) => Number(row.children[2].innerText.replace(/\\D/g, "")))`);
	const upTo = () => b.evaluate(`[...document.querySelectorAll(".countedpath[aria-rowindex]:not([hidden])")].sort((a, b) => a.index - b.index)
		.map((row) => parseFloat(row.children[1].innerText))`);
	assert.ok((await upTo()).every((share, i, all) => !i || share >= all[i - 1]) && (await upTo()).pop() === 100);
	await keys("r");
	const ordered = await counts();
	assert.ok(ordered.every((n, i) => !i || n <= ordered[i - 1]), `${ordered}`);
	assert.equal(await text(".legend [aria-pressed=true]"), "count");
	await b.until("location.hash.includes('paths=count')");
	assert.equal((await upTo()).pop(), 100);
});
await step("draws a path through the control flow, and the next one", async () => {
	await open();
	await choose("classify");
	await keys("ArrowRight", "Enter");
	assert.equal(await b.evaluate("culprit.state.view"), "flow");
	const drawn = () => b.evaluate(`(() => { const {flow} = culprit; return [[...document.querySelectorAll(".block.on-path")].map((e) => e.block),
		flow.lines.flatMap((e, i) => e.classList.contains("on-path") ? [i] : [])]; })()`);
	const wanted = () => b.evaluate(`(() => { const {paths, model, flow} = culprit, p = culprit.state.path - 1, all = model.paths;
		const blocks = [...all.block.subarray(all.firstBlock[p], all.firstBlock[p + 1])], next = all.next[p];
		const steps = blocks.slice(1).map((to, i) => blocks[i] + ">" + to).concat(next ? [blocks[blocks.length - 1] + ">" + (next - 1)] : []);
		return [blocks.sort((a, b) => a - b), flow.graph.edges.flatMap(({from, to}, i) => steps.includes(from + ">" + to) ? [i] : [])]; })()`);
	const sorted = ([blocks, edges]) => [blocks.sort((x, y) => x - y), edges];
	assert.deepEqual(sorted(await drawn()), await wanted());
	assert.match(await text(".way .which"), /^path 1 of \d+$/);
	await shoot("paths-flow");
	await keys(".");
	assert.match(await text(".way .which"), /^path 2 of \d+$/);
	assert.deepEqual(sorted(await drawn()), await wanted());
	await b.click(".way button");
	assert.match(await text(".way .which"), /^path 1 of \d+$/);
	assert.match(await text(".detail dl"), /executions\s+[\d\u202f]+, counted/);
	await b.until("location.hash.includes('path=')");
	const address = await b.evaluate("location.href");
	await keys("Escape");
	assert.equal(await b.evaluate("culprit.state.view"), "paths");
	assert.equal(await name(), "classify");
	await b.open(address);
	assert.deepEqual(sorted(await drawn()), await wanted());
	await keys("P");
	assert.equal(await b.evaluate("culprit.state.view"), "paths");
	assert.equal(await name(), "classify");
});
await step("a click selects, and a function of another view is found", async () => {
	await open();
	await b.click(".countedfunction[aria-rowindex='3']");
	assert.equal(await paths("view.f"), 1);
	await b.open(pageUrl(page) + "#v=callers");
	await keys("/");
	await b.type("^machine$");
	await keys("Enter", "Escape", "P");
	assert.equal(await b.evaluate("culprit.state.view"), "paths");
	assert.equal(await name(), "machine");
	await keys("Escape");
	assert.equal(await b.evaluate("culprit.state.view"), "callers");
});
await step("other views count executed instructions", async () => {
	await b.open(pageUrl(page) + "#v=callers");
	assert.equal(await b.evaluate("culprit.model.metrics[culprit.state.metric].name"), "executed");
	assert.equal(await b.evaluate("culprit.model.whole[culprit.state.metric]"), await paths("paths.instructions.reduce((a, b) => a + b, 0)"));
	await keys("ArrowDown");
	assert.match(await text(".detail"), /[\d\u202f]+ instructions/);
});
await step("is quick with very many functions and paths", async () => {
	await b.open(pageUrl(large) + "#v=paths");
	assert.ok(await paths("paths.count") > 1000, "there are not many functions");
	await b.call("Performance.enable", {timeDomain: "threadTicks"});
	const taken = async () => (await b.call("Performance.getMetrics")).metrics.find(({name}) => name === "TaskDuration").value * 1000;
	const slow = [];
	for (const key of ["ArrowDown", "PageDown", "End", "Home", "r", "r", "ArrowRight", "PageDown", "End", "Enter", ".", "P"]) {
		const before = await taken();
		await keys(key);
		await settle();
		slow.push([key, Math.round(await taken() - before)]);
	}
	console.log(slow.map(([key, ms]) => `${key} ${ms} ms`).join(", "));
	await keys("Enter", "Enter");
	const choices = () => count(".flow select option");
	assert.equal(await choices(), 1);
	const other = await paths("view.order[7]");
	await b.evaluate(`document.querySelector(".flow select").focus()`);
	assert.equal(await choices(), await paths("model.flow.count"));
	await b.evaluate(`(() => { const s = document.querySelector(".flow select"); s.value = String(culprit.model.paths.flow[${other}]);
		s.dispatchEvent(new Event("change")); })()`);
	assert.equal(await b.evaluate("culprit.flow.counted"), other);
	// This machine may be any, and others work on it; bench/view measures.
	assert.ok(slow.every(([, ms]) => ms < 1000), `slow: ${slow}`);
});
await step("a recording without paths says so", async () => {
	await b.open(pageUrl(none) + "#v=paths");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
	await keys("P");
	assert.match(await text(".said"), /^No paths were counted: culprit paths -o/);
	assert.equal(await b.evaluate(`document.querySelector("#tab-paths").hidden`), true);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
