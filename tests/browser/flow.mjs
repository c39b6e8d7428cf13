// SPDX-License-Identifier: Apache-2.0
// flow.mjs CHROMIUM PAGE NONE [FOLDER]: the control flow of a function, by mouse and keyboard, wide and narrow, light and dark.
// PAGE is that of 109-view-flow, NONE a recording without explained functions. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, page, none, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {count, keys, settle, shoot, step, steps, text} = stepper(b, folder);

const graph = (code) => b.evaluate(`(() => { const {flow} = culprit, {graph} = flow; return ${code}; })()`);
const words = (selector) => b.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)} + " tspan")].map((e) => e.textContent).join("\\n")`);
const selected = () => graph("flow.block");
const inSight = () => b.evaluate(`(() => { const box = document.querySelector(".block[aria-selected=true] rect").getBoundingClientRect(),
	frame = culprit.flow.scroller.getBoundingClientRect();
	return box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1; })()`);
// The least contrast of a text with its block.
const contrast = () => b.evaluate(`(() => {
	const part = (n) => (n /= 255) <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4;
	const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number); return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
	const rect = document.querySelector(".block rect"), words = light(getComputedStyle(document.querySelector(".block text")).fill);
	return Math.min(...["same", "more-1", "more-2", "more-3", "more-4", "more-5"].map((name) => {
		const before = rect.parentNode.getAttribute("class");
		rect.parentNode.setAttribute("class", "block " + name);
		const back = light(getComputedStyle(rect).fill);
		rect.parentNode.setAttribute("class", before);
		return (Math.max(words, back) + 0.05) / (Math.min(words, back) + 0.05);
	})); })()`);

for (const [width, dark] of [[1500, false], [1500, true], [800, false], [800, true]])
	await step(`draws the blocks of a function, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(page) + "#v=flow");
		assert.equal(await count(".block"), await graph("graph.blocks.length"));
		assert.equal(await count(".edge"), await graph("graph.edges.length"));
		assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window");
		assert.ok(await inSight(), "the selected block is not in sight");
		assert.match(await words(".block[aria-selected=true]"), /counted\.c:\d+/);
		assert.match(await text(".detail dl"), /executions[\s\S]*cycles[\s\S]*of the function/);
		assert.ok(await contrast() >= 4.5, `contrast ${await contrast()}`);
		await shoot(`flow-${width}-${dark ? "dark" : "light"}`);
	});
await b.size(1500, 900);
await b.dark(false);
await step("edges are as wide as they are frequent", async () => {
	const [wide, runs] = await graph(`[[...document.querySelectorAll(".edge")].map((e) => Number(e.getAttribute("stroke-width"))),
		graph.edges.map(({runs}) => runs)]`);
	runs.forEach((n, i) => runs.forEach((k, j) => assert.ok(n <= k || wide[i] >= wide[j], `${n} is thinner than ${k}`)));
	assert.ok(Math.max(...wide) > 2 * Math.min(...wide));
});
await step("moves by keyboard", async () => {
	await b.open(pageUrl(page) + "#v=flow");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "listbox");
	await keys("Home");
	const entry = await selected();
	assert.equal(entry, await graph("graph.entry"));
	await keys("ArrowDown");
	const next = await selected();
	assert.ok(await graph(`graph.blocks[${entry}].out.some(({to}) => to === ${next})`), "not along an edge");
	assert.ok(await inSight());
	assert.equal(await b.evaluate("culprit.flow.scroller.getAttribute('aria-activedescendant')"), "block" + next);
	await keys("ArrowUp");
	assert.ok(await graph(`graph.blocks[${next}].in.some(({from}) => from === ${await selected()})`));
	await keys("h");
	assert.equal(await selected(), await graph("flow.worst()"));
	const layer = await graph("flow.layout.boxes[flow.block].layer");
	await keys("ArrowRight", "ArrowLeft");
	assert.equal(await graph("flow.layout.boxes[flow.block].layer"), layer);
	const zoom = await graph("flow.zoom");
	await keys("+");
	assert.ok(await graph("flow.zoom") > zoom);
	await keys("-", "-");
	assert.ok(await graph("flow.zoom") < zoom);
	await keys("0");
	assert.ok(await b.evaluate(`(() => { const {scroller} = culprit.flow; return scroller.scrollWidth <= scroller.clientWidth + 1 &&
		scroller.scrollHeight <= scroller.clientHeight + 1 || culprit.flow.zoom === 0.05; })()`), "not all of it is in sight");
});
await step("a click shows the instructions and the source of a block", async () => {
	await b.open(pageUrl(page) + "#v=flow");
	await keys("0");
	const other = await graph("graph.blocks.findIndex((block, i) => i !== flow.block && block.file && block.first < block.end)");
	await b.click(`#block${other}`);
	assert.equal(await selected(), other);
	const {line, address} = await graph(`graph.blocks[${other}]`);
	assert.equal(await text(".source h2"), `counted.c:${line}`);
	await keys("Enter");
	await settle();
	const marked = await b.evaluate(`[...document.querySelectorAll(".lines.marked:not([hidden]) .number")].map((e) => parseInt(e.innerText, 16))`);
	assert.equal(Math.min(...marked), address);
	assert.ok(marked.every((at) => at < address + 4096));
	await keys("Enter");
	assert.equal(await text(".source h2"), `counted.c:${line}`);
	const link = await graph(`graph.blocks[${other}].in[0]?.from ?? -1`);
	if (link >= 0) {
		await b.click(".detail .link");
		assert.equal(await selected(), link);
	}
});
await step("instructions and lines say what they lost, and to what", async () => {
	await b.open(pageUrl(page) + "#v=flow&insn=1");
	const worst = await graph("graph.blocks.some(({sum}) => sum.lost > 0)");
	const whys = () => b.evaluate(`[...document.querySelectorAll(".lines:not([hidden]) .why")].map((e) => e.innerText).filter(Boolean)`);
	if (worst)
		assert.ok((await whys()).every((words) => /^[\d.]+ cycles(, lost to [a-z TLB]+)?$/.test(words)) && (await whys()).length, JSON.stringify(await whys()));
	await keys("a");
	await settle();
	assert.ok((await whys()).every((words) => /^lost to [a-z TLB]+ <?\d+%$/.test(words)), JSON.stringify(await whys()));
});
await step("goes to the function of a row, and Escape back", async () => {
	await b.open(pageUrl(page) + "#v=callers");
	await keys("/");
	await b.type("seldom");
	await keys("Enter", "Escape", "9");
	assert.equal(await b.evaluate("culprit.state.view"), "flow");
	assert.equal(await b.evaluate("culprit.flow.nameOf(culprit.flow.index)"), "seldom");
	assert.match(await text(".detail h2"), /^seldom, block at/);
	await b.until("location.hash.includes('flow=')");
	const address = await b.evaluate("location.href");
	await keys("Escape");
	assert.equal(await b.evaluate("culprit.state.view"), "callers");
	await b.open(address);
	assert.match(await text(".detail h2"), /^seldom, block at/);
	await b.evaluate(`(() => { const s = document.querySelector(".flow select"); s.value = "0"; s.dispatchEvent(new Event("change")); })()`);
	assert.equal(await b.evaluate("culprit.flow.index"), 0);
	assert.equal(await count(".block"), await graph("graph.blocks.length"));
});
await step("finds blocks by their instructions and lines", async () => {
	await b.open(pageUrl(page) + "#v=flow");
	const {line} = await graph("graph.blocks[flow.worst()]");
	await keys("/");
	await b.type("counted.c:" + line);
	await keys("Enter", "Escape");
	assert.match(await words(".block[aria-selected=true]"), new RegExp(`counted\\.c:${line}`));
});
await step("a recording without explained functions says so", async () => {
	await b.open(pageUrl(none) + "#v=flow");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
	await keys("9");
	assert.match(await text(".said"), /^No function could be explained/);
	assert.equal(await b.evaluate(`document.querySelector("#tab-flow").hidden`), true);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
