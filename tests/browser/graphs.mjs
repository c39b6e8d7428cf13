// SPDX-License-Identifier: Apache-2.0
// graphs.mjs CHROMIUM PAGE MANY DIFF [FOLDER]: the flame graph inverted, with recursion folded and with boxes too small to
// draw; callers and callees of a function; the way back. By mouse and keyboard, wide and narrow. PAGE is a recording of
// threads.cc (view.sh), MANY has thousands of functions, DIFF compares two builds. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, page, many, diff, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {chips, count, keys, settle, shoot, step, steps, text} = stepper(b, folder);

// Boxes of a graph: name, level, width, and where their middle is.
const boxes = (graph = "culprit.graph") => b.evaluate(`(() => { const graph = ${graph}, {layout, tree} = graph, {model} = culprit;
	const frame = graph.canvas.getBoundingClientRect(), top = graph.scroller.scrollTop, high = graph.scroller.clientHeight;
	return layout.item.map((item, i) => ({name: layout.small[i] ? "" : model.strings[model.scopes.short[tree.scope(item)]],
		small: layout.small[i], level: layout.depth[i], w: layout.w[i], key: tree.key(item),
		up: layout.parent[i] < 0 ? "" : model.strings[model.scopes.short[tree.scope(layout.item[layout.parent[i]])]],
		x: frame.x + layout.x[i] + layout.w[i] / 2, y: frame.y + graph.topOf(layout.depth[i]) - top + 10,
		seen: graph.topOf(layout.depth[i]) >= top && graph.topOf(layout.depth[i]) - top + 20 <= high})); })()`);
const clickAt = async ({x, y}, clicks = 1) => {
	for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
		await b.call("Input.dispatchMouseEvent", {type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: clicks});
};
const doubleClick = async (box) => {
	await clickAt(box);
	await clickAt(box, 2);
	await settle();
};
const pressed = (name) => b.evaluate(`[...document.querySelectorAll(".legend button")].find((e) => e.innerText === "${name}")
	.getAttribute("aria-pressed")`);
const press = (name) => b.evaluate(`(() => { const {x, y, width, height} = [...document.querySelectorAll("button")]
	.find((e) => e.innerText === "${name}").getBoundingClientRect(); return {x: x + width / 2, y: y + height / 2}; })()`).then(clickAt);

for (const width of [1500, 800])
	await step(`inverted, functions stand at the top by their own samples, ${width} pixels wide`, async () => {
		await b.size(width, 900);
		await b.open(pageUrl(page) + "#v=graph");
		await press("Inverted");
		assert.equal(await pressed("Inverted"), "true");
		const list = await boxes(), top = list.filter((box) => box.level === 1 && !box.small);
		assert.ok(top.length > 3 && top.every((box, i) => !i || top[i - 1].w >= box.w), "not the widest first");
		const fib = top.find((box) => box.name === "fib");
		assert.ok(fib, "fib is no leaf");
		assert.ok(list.some((box) => box.level > 2 && /^(fib|work)$/.test(box.name)), "no callers below");
		await clickAt(fib);
		assert.equal(await text(".detail h2"), "fib(int)");
		const share = await b.evaluate(`culprit.selectedRow().self[0] / culprit.model.whole[0]`);
		assert.ok(Math.abs(share * list[0].w - fib.w) < 1, `${share} of ${list[0].w} is ${fib.w} wide`);
		await b.until("/graph=i/.test(location.hash) && /[#&]r=/.test(location.hash)");
		await b.open(await b.evaluate("location.href"));
		assert.equal(await text(".detail h2"), "fib(int)");
		await b.evaluate("culprit.focus()");
		await keys("Enter");
		assert.deepEqual(await chips(), ["graph: fib"]);
		await keys("ArrowDown");
		assert.notEqual(await text(".detail h2"), "fib(int)");
		await keys("Escape");
		assert.deepEqual(await chips(), []);
		await keys("I");
		assert.equal(await pressed("Inverted"), "false");
		await shoot(`inverted-${width}`);
	});
await b.size(1500, 900);
await step("folds recursion", async () => {
	const recursive = (list) => list.filter((box) => box.name === "fib" && box.up !== "").length;
	const deepest = (list) => Math.max(...list.filter((box) => box.name === "fib").map((box) => box.level));
	await b.open(pageUrl(page) + "#v=graph");
	const before = await boxes();
	await keys("R");
	assert.equal(await pressed("Fold recursion"), "true");
	const after = await boxes();
	assert.ok(deepest(before) > deepest(after) && recursive(after) < recursive(before), "fib stands below fib");
	const fib = after.find((box) => box.name === "fib" && box.seen);
	await clickAt(fib);
	assert.equal(await text(".detail h2"), "fib(int)");
	await keys("h");
	await keys("/");
	await b.type("^fib");
	assert.match(await text(".matched"), /matched: [\d.]+%/);
	await keys("Enter", "Escape", "I");
	const both = (await boxes()).filter((box) => box.name === "fib");
	assert.ok(both.every((box) => box.up !== "fib"), "fib is its own caller");
	await shoot("folded");
	await press("Inverted");
	await press("Fold recursion");
	assert.deepEqual((await boxes()).map((box) => box.key), before.map((box) => box.key));
});
await step("all graphs work in the overview, too", async () => {
	await b.open(pageUrl(page));
	await keys("I");
	const top = (await boxes()).filter((box) => box.level === 1 && box.seen);
	await clickAt(top[1]);
	assert.equal(await text(".row.selected:not([hidden]) .label"), top[1].name);
	await keys("I", "R");
	const work = (await boxes()).find((box) => box.name === "work" && box.seen);
	await clickAt(work);
	assert.equal(await text(".row.selected:not([hidden]) .label"), "work");
});
for (const dark of [false, true])
	await step(`draws small boxes together, ${dark ? "dark" : "light"}`, async () => {
		await b.dark(dark);
		await b.open(pageUrl(many) + "#v=graph");
		const list = await boxes(), small = list.find((box) => box.small > 1000 && box.seen);
		assert.ok(small, "none are");
		assert.equal(await b.evaluate(`culprit.graph.label(${list.indexOf(small)}, 100).replace(/\\D/g, "")`), String(small.small));
		assert.match(await b.evaluate(`culprit.graph.label(${list.indexOf(small)}, 100)`), / small$/);
		await b.move(small.x, small.y);
		assert.match(await text(".tip"), /boxes too small to draw\s+together [\d.]+% of \S+; a zoom/);
		const up = list.find((box) => box.key === small.key && !box.small);
		await clickAt(small);
		assert.equal(await b.evaluate("culprit.graph.source.selectedKey()"), up.key);
		await doubleClick(small);
		assert.equal(await b.evaluate("String(culprit.state.zoom)"), up.key);
		assert.ok((await boxes()).length > 1);
		await shoot(`small-${dark ? "dark" : "light"}`);
	});
await b.dark(false);
for (const width of [1500, 800])
	await step(`callers and callees of a function, ${width} pixels wide`, async () => {
		await b.size(width, 900);
		await b.open(pageUrl(page));
		await keys("/");
		await b.type("^fib");
		await keys("Enter", "Escape", "6");
		assert.equal(await text(".sandwich h2"), "fib(int)");
		const [upper, lower] = [await boxes("culprit.sandwich.halves.upper.graph"), await boxes("culprit.sandwich.halves.lower.graph")];
		assert.equal(upper[0].name, "fib");
		assert.equal(lower[0].name, "fib");
		assert.ok(upper.some((box) => box.name === "work") && !lower.some((box) => box.name === "work"), "work calls fib");
		assert.ok(upper[0].y > upper.find((box) => box.name === "work").y, "callers are not above");
		const total = await b.evaluate("culprit.view('callers').rowOf(String(culprit.state.center)).total");
		for (const half of ["upper", "lower"])
			assert.deepEqual(await b.evaluate(`culprit.view("${half}").level(null).row(0).total`), total, "recursion counts twice");
		const work = upper.find((box) => box.name === "work" && box.seen);
		await clickAt(work);
		assert.equal(await text(".detail h2"), "work(int)");
		await doubleClick(work);
		assert.equal(await text(".sandwich h2"), "work(int)");
		await b.until("location.hash.includes('around=')");
		await b.open(await b.evaluate("location.href"));
		assert.equal(await text(".sandwich h2"), "work(int)");
		await shoot(`sandwich-${width}`);
	});
await b.size(1500, 900);
await step("the same as tables", async () => {
	await b.open(pageUrl(page) + "#v=tree");
	await keys("/");
	await b.type("^fib");
	await keys("Enter", "Escape", "6", "T");
	assert.equal(await count(".half .table"), 2);
	const rows = (half) => b.evaluate(`[...document.querySelectorAll(".half.${half} .space .row:not([hidden])")]
		.sort((a, c) => a.index - c.index).map((r) => r.querySelector(".label").innerText)`);
	assert.equal((await rows("upper"))[0], "fib");
	assert.equal((await rows("lower"))[0], "fib");
	assert.ok((await rows("upper")).length > 1 && (await rows("lower")).length > 1, "what is around is closed");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('aria-label')"), "callees");
	// The hottest callee may be a function of the kernel that calls nothing: the first that calls something is opened.
	const before = await rows("lower");
	const closed = await b.evaluate(`Math.min(...[...document.querySelectorAll(
		".half.lower .space .row[aria-expanded=false]:not([hidden])")].map((r) => r.index))`);
	await keys("Home", ...Array(closed).fill("ArrowDown"), "ArrowRight");
	assert.ok((await rows("lower")).length > before.length);
	assert.equal(await text(".half.lower .row.selected:not([hidden]) .label"), before[closed]);
	await b.click(".half.upper .space .row:nth-child(2)");
	assert.equal(await b.evaluate("culprit.sandwich.side"), "upper");
	await b.click(".half.upper .row:nth-child(2) .toggle");
	await b.click('.half.upper [data-column="self"] button');
	assert.equal(await b.evaluate(`document.querySelector('.half.lower [data-column="self"]').getAttribute("aria-sort")`), "descending");
	await shoot("sandwich-tables");
	await press("Graphs");
	assert.equal(await count(".half canvas"), 2);
});
await step("Escape and Z go back to where one came from", async () => {
	await b.open(pageUrl(page) + "#v=tree");
	await keys("/");
	await b.type("^fill");
	await keys("Enter", "Escape");
	const from = await b.evaluate("culprit.selectedKey()");
	await keys("z");
	const zoom = await b.evaluate("culprit.state.zoom");
	assert.equal(String(zoom), from);
	await keys("End", "6");
	assert.equal(await b.evaluate("culprit.state.view"), "sandwich");
	await keys("Escape");
	assert.deepEqual(await b.evaluate("[culprit.state.view, culprit.state.zoom]"), ["tree", zoom]);
	await keys("Z");
	assert.deepEqual(await b.evaluate("[culprit.state.zoom, culprit.selectedKey()]"), [0, from]);
	assert.equal(await text(".row.selected:not([hidden]) .label"), "fill");
	await keys("Z", "Escape");
	assert.equal(await b.evaluate("culprit.state.view"), "tree");
	await keys("z", "u"); // outwards: what was inside is not on the way back
	assert.deepEqual(await b.evaluate("[culprit.state.zoom, culprit.trail.steps.length]"), [0, 0]);
	await keys("Escape");
	assert.equal(await b.evaluate("culprit.state.zoom"), 0);
	await b.open(pageUrl(page) + `#v=graph&z=${zoom}`); // nobody knows where from
	await keys("Z");
	assert.notEqual(await b.evaluate("culprit.state.zoom"), zoom);
});
await step("compared sides have tables of callers and callees", async () => {
	await b.open(pageUrl(diff));
	await keys("/");
	await b.type("^solve");
	await keys("Enter", "Escape", "6");
	assert.match(await text(".sandwich h2"), /^solve/);
	assert.equal(await count(".half .table"), 2);
	assert.match(await text(".half.upper .space .row .change"), /%\s+(slower|noise|faster)/);
	await keys("4");
	assert.equal(await b.evaluate("culprit.graph.invert.hidden"), true);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
