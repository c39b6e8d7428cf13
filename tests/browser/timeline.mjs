// SPDX-License-Identifier: Apache-2.0
// timeline.mjs CHROMIUM PAGE WITHOUT JOINED [FOLDER]: the time line by mouse and keyboard. PAGE is what
// tests/e2e/103-view-timeline describes, WITHOUT has no time line, JOINED one that is not exact.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl, treeUrl} from "./page.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, page, without, joined, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {chips, keys, shoot, step, steps, text} = stepper(b, folder);
const LEFT = 200;
// Where a time (ms) of a row is on the screen, and what colour is there.
const place = (row, ms) => b.evaluate(`(() => { const t = culprit.timeline;
	const frame = t.canvas.getBoundingClientRect();
	return {x: frame.x + t.xOf(${ms} * 1000), y: frame.y + 22 + t.tops[${row} + 1] - 7 - t.scroller.scrollTop}; })()`);
const colour = (row, ms) => b.evaluate(`(() => { const t = culprit.timeline;
	const d = t.canvas.getContext("2d").getImageData(Math.floor(t.xOf(${ms} * 1000)), 22 + t.tops[${row} + 1] - 7, 1, 1).data;
	return d[0] << 16 | d[1] << 8 | d[2]; })()`);
const inSight = () => b.evaluate("culprit.timeline.window()");
const total = () => b.evaluate("culprit.selection.sums[0].total(0)");

await b.size(1400, 700);
await step("is a tab", async () => {
	await b.open(treeUrl(page));
	await b.click("#tab-time");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('aria-roledescription')"), "time line");
	await keys("1", "5");
	assert.equal(await b.evaluate("culprit.state.view"), "time");
	await shoot("timeline");
});
// Rows: 0 the heading of app, 1 app, 2 worker, 3 the heading of other, 4 other.
await step("draws what threads did, and gaps", async () => {
	const back = await colour(1, 850);
	const solve = await colour(1, 200), inner = await colour(1, 550);
	assert.notEqual(solve, back);
	assert.notEqual(inner, back);
	assert.notEqual(solve, inner);
	assert.equal(await colour(1, 1200), solve);
	assert.equal(await colour(1, 1600), back);
	assert.equal(await colour(2, 100), back);
	assert.notEqual(await colour(2, 1000), back);
	assert.equal(await colour(4, 500), back);
	assert.equal(await colour(4, 1000), inner);
});
await step("tells what is under the mouse", async () => {
	const at = await place(1, 550);
	await b.move(at.x, at.y);
	assert.match(await text(".timeline .tip"), /^inner\s+from 0\.400000 s, for 300\s*ms\s+300 samples\s+app \(thread 10/);
	const gap = await place(1, 850);
	await b.move(gap.x, gap.y);
	assert.equal(await b.evaluate("document.querySelector('.timeline .tip').hidden"), true);
});
await step("selects a context by a click", async () => {
	const at = await place(1, 550);
	await b.move(at.x, at.y);
	await b.drag(at, at);
	assert.equal(await text(".detail h2"), "inner");
	assert.match(await text(".status"), /^inner, from 0\.400000 s/);
	await keys("1");
	assert.equal(await text(".row.selected:not([hidden]) .label"), "inner");
	await keys("5");
});
await step("zooms by wheel, drag with Shift and keys", async () => {
	const before = await inSight(), at = await place(1, 550);
	for (let i = 0; i < 5; i++)
		await b.wheel(at.x, at.y, -100);
	const near = await inSight();
	assert.ok(near[1] - near[0] < (before[1] - before[0]) / 4, `${near}`);
	assert.ok(near[0] < 550000 && near[1] > 550000);
	const still = await place(1, 550);
	assert.ok(Math.abs(still.x - at.x) < 3, "what is under the mouse stays there");
	await b.wheel(at.x, at.y, 300, 8);
	assert.ok((await inSight())[0] > near[0]);
	await keys("0");
	assert.deepEqual(await inSight(), before);
	await keys("+", "+");
	assert.ok((await inSight())[1] - (await inSight())[0] < (before[1] - before[0]) / 3);
	await keys("-", "-", "-");
	assert.deepEqual(await inSight(), before);
	await b.drag(await place(1, 550), await place(1, 551));
	await b.click(".legend button", undefined, undefined);
	assert.notDeepEqual(await inSight(), before);
	await keys("0");
	await b.evaluate("culprit.timeline.focus()");
});
await step("goes from entry to entry by keys", async () => {
	await keys("Home");
	assert.match(await text(".status"), /^solve\(int\), from 0\.000000 s, for 400/);
	await keys("ArrowRight");
	assert.match(await text(".status"), /^inner, from 0\.400000 s/);
	await keys("ArrowRight");
	assert.match(await text(".status"), /^solve\(int\), from 1\.000000 s/);
	await keys("ArrowDown");
	assert.match(await text(".status"), /^wait, .*worker \(thread 11/);
	await keys("ArrowDown");
	assert.match(await text(".status"), /^inner, from 0\.900000 s.*thread 20/);
	await keys("ArrowUp", "ArrowUp", "Home");
	assert.match(await text(".status"), /^solve\(int\), from 0\.000000 s/);
});
await step("counts the time of an entry alone", async () => {
	assert.equal(await total(), 3300);
	await keys("Enter");
	assert.match((await chips())[0], /^time 0\.000 s to 0\.400 s, CPU time alone$/);
	assert.equal(await total(), 600);
	assert.match(await text(".shown"), /^18\.18% of all: 600\s*ms$/);
	await keys("1");
	const rows = await b.evaluate(`${ROWS_SEEN}
		.map((r) => r.innerText)`);
	assert.match(rows[0], /18\.18%/);
	await keys("3");
	assert.equal(await b.evaluate(`culprit.view("flat").level(null).rows().filter((r) => r.total[0] > 0).map((r) =>
		culprit.model.strings[culprit.model.scopes.name[r.scope]] + " " + r.total[0]).sort().join()`),
	"main 600,solve(int) 400,wait 200");
	await shoot("timeline-flat");
	await keys("5", "Escape");
	assert.deepEqual(await chips(), []);
	assert.equal(await total(), 3300);
});
await step("counts a part by [ and ], what is in sight, and a drag", async () => {
	await keys("Home", "ArrowRight", "[", "ArrowRight", "]");
	assert.match((await chips())[0], /^time 0\.400 s to 1\.500 s/);
	// 300 of inner, 500 of solve, 1100 of wait, 500 of the other process
	assert.equal(await total(), 2400);
	await keys("u");
	assert.equal(await total(), 3300);
	await b.evaluate("culprit.timeline.setWindow([900000, 1100000])");
	await keys("w");
	assert.equal(await total(), 500);
	await b.click(".chip button");
	await b.evaluate("culprit.timeline.setWindow(null)");
	await b.drag(await place(1, 200), await place(2, 1000));
	const [from, to] = await b.evaluate("culprit.state.time");
	assert.ok(Math.abs(from - 200000) < 4000 && Math.abs(to - 1000000) < 4000, `${from} ${to}`);
	// 200 of solve, 300 of inner, 800 of wait, 100 of the other
	assert.ok(Math.abs(await total() - 1400) < 30, await total());
	await shoot("timeline-part");
	await b.drag(await place(1, 1000), await place(1, 300));
	assert.ok(Math.abs(await b.evaluate("culprit.state.time[0]") - 300000) < 4000, "from right to left");
	await b.evaluate("culprit.timeline.focus()");
	await keys("Escape");
});
await step("colours by level", async () => {
	const leaf = [await colour(1, 200), await colour(1, 550)];
	await keys(".");
	assert.equal(await b.evaluate("document.querySelector('.timeline select').value"), "1");
	assert.equal(await colour(1, 200), await colour(1, 550));
	await keys(",");
	assert.deepEqual([await colour(1, 200), await colour(1, 550)], leaf);
});
await step("follows filters, search and threads", async () => {
	const solve = await colour(1, 200), inner = await colour(1, 550);
	await b.evaluate(`culprit.addFilter({how: "hide", what: "name", text: "^solve"})`);
	assert.notEqual(await colour(1, 200), solve);
	assert.equal(await colour(1, 550), inner);
	await keys("u");
	await b.evaluate(`culprit.setSearch("^inner")`);
	assert.notEqual(await colour(1, 550), inner);
	await b.evaluate(`culprit.setSearch("")`);
	await b.evaluate("culprit.setThreads([1])");
	assert.equal(await b.evaluate("culprit.timeline.rows.length"), 1);
	await keys("u");
});
await step("keeps its state in the address", async () => {
	await keys("Home", "ArrowRight", "Enter", "+", ".");
	await b.until("location.hash.includes('level=1')");
	await new Promise((r) => setTimeout(r, 300));
	const url = await b.evaluate("location.href");
	const seen = () => b.evaluate(`JSON.stringify([culprit.state.time, culprit.state.window, culprit.state.moment,
		culprit.state.level, culprit.state.view, culprit.selectedKey(), culprit.selection.sums[0].total(0)])`);
	const before = await seen();
	await b.open(url);
	assert.equal(await seen(), before);
	assert.match((await chips())[0], /^time 0\.400 s to 0\.700 s/);
});
await step("is readable in the dark", async () => {
	await b.open(pageUrl(page) + "#v=time&theme=dark");
	await shoot("timeline-dark");
	const worst = await b.evaluate(`(() => { const paper = document.createElement("canvas").getContext("2d");
		const light = (colour) => { paper.fillStyle = colour; paper.fillRect(0, 0, 1, 1);
			const [r, g, b] = [...paper.getImageData(0, 0, 1, 1).data].map((v) => v / 255).map((v) =>
				v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
			return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
		let worst = 21;
		for (const theme of ["light", "dark"]) {
			culprit.state.theme = theme; culprit.render();
			const t = culprit.timeline, text = light(t.theme.text);
			for (let hue = 0; hue < 360; hue += 5)
				for (const more of [-4, -2, 0, 2, 4]) {
					const back = light("hsl(" + hue + " " + t.theme.strength + " " + (parseFloat(t.theme.light) + more) + "%)");
					worst = Math.min(worst, (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05));
				}
		}
		return worst; })()`);
	assert.ok(worst >= 4.5, worst);
});
await step("says what is not exact", async () => {
	await b.open(pageUrl(joined) + "#v=time&time=0-400000");
	assert.match(await text(".timeline .legend"), /samples within 8\.00\s*ms were joined.* · 7 samples not on it/);
	assert.match((await chips())[0], /, by samples within 8\.00\s*ms/);
});
await step("says how to get one", async () => {
	await b.open(pageUrl(without) + "#time=5-10&moment=0-5");
	await keys("5");
	assert.match(await text(".timeline .none"), /culprit record --timeline/);
	await keys("ArrowRight", "+", "Enter", "1");
	assert.equal(await b.evaluate("culprit.state.view"), "tree");
});
for (const [width, dark] of [[1400, false], [800, true]])
	await step(`lanes use the room, colours are named, stacks are drawn, ${width} pixels wide`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(page) + "#v=time");
		const high = await b.evaluate("[0, 1, 2].map((row) => culprit.timeline.highOf(row))");
		assert.ok(high[0] === 24 && high[1] > 24 && high[1] === high[2], JSON.stringify(high));
		const names = await b.evaluate("[...document.querySelectorAll('.timeline .key.exact')].map((e) => e.innerText)");
		assert.deepEqual([...names].sort(), ["inner", "solve", "wait"]);
		assert.equal(names[0], "wait", "not the longest first");
		await keys("ArrowDown", "l");
		const at = async (level) => b.evaluate(`(() => { const t = culprit.timeline, frame = t.canvas.getBoundingClientRect();
			return {x: frame.x + t.xOf(1200000), y: frame.y + 22 + t.tops[1] + 2 + (${level} + 0.5) * 16}; })()`);
		const outer = await at(0), inner = await at(1);
		assert.ok(await b.evaluate("culprit.timeline.highOf(1)") >= 2 * 16);
		await b.move(outer.x, outer.y);
		assert.match(await text(".timeline .tip"), /^main\s+in solve/);
		await b.drag(outer, outer);
		assert.equal(await text(".detail h2"), "main");
		await b.drag(inner, inner);
		assert.match(await text(".detail h2"), /^solve/);
		await shoot(`timeline-stacks-${width}`);
		await b.until("location.hash.includes('stacks=1')");
		await b.evaluate("[...document.querySelectorAll('.timeline button')].find((e) => e.innerText === 'Stacks').click()");
		assert.equal(await b.evaluate("culprit.state.stacks"), false);
	});
await b.size(1400, 700);
await b.dark(false);
await step("the whole time in small moves what is in sight", async () => {
	await b.open(pageUrl(page) + "#v=time");
	const [first, last] = await inSight();
	const {x, y, width} = await b.evaluate("(({x, y, width}) => ({x, y, width}))(document.querySelector('.timemap').getBoundingClientRect())");
	const at = (part) => ({x: x + LEFT + (width - LEFT) * part, y: y + 10});
	await b.drag(at(0.25), at(0.5));
	const [from, to] = await inSight(), whole = last - first;
	assert.ok(Math.abs(from - whole * 0.25) < whole / 100 && Math.abs(to - whole * 0.5) < whole / 100, `${from} to ${to} of ${whole}`);
	await b.drag(at(0.75), at(0.75));
	const [a, c] = await inSight();
	assert.ok(Math.abs((a + c) / 2 - whole * 0.75) < whole / 100 && Math.abs(c - a - (to - from)) < whole / 100);
	assert.ok(await b.evaluate("culprit.timeline.map.canvas.getContext('2d').getImageData(250, 20, 400, 4).data.some((v, i, d) => i % 4 === 0 && v !== d[0])"));
});
await step("a comparison counts the chosen time alone", async () => {
	const totals = async (hash) => {
		await b.open(pageUrl(page) + "#v=tree&" + hash);
		return b.evaluate("culprit.view('tree').rowOf('0').total");
	};
	const [one] = await totals("time=0-500000&t=0"), [other] = await totals("time=0-500000&t=1");
	assert.ok(one > 0 && other > 0 && one !== other);
	assert.deepEqual(await totals("time=0-500000&a=0&b=1&per=thread"), [one, other]);
	assert.match((await chips()).join(), /time 0\.000 s to 0\.500 s/);
	assert.deepEqual(await b.evaluate("culprit.comparison.runs.map((run) => run.samples)"), [one, other]);
	const all = await totals("a=0&b=1&per=thread");
	assert.ok(all[0] > one && all[1] > other);
	await b.open(pageUrl(page) + "#v=tree&a=0&b=1&per=thread");
	await b.evaluate("culprit.setTime([0, 500000])");
	assert.deepEqual(await b.evaluate("culprit.view('tree').rowOf('0').total"), [one, other]);
	await keys("u");
	assert.deepEqual(await b.evaluate("culprit.view('tree').rowOf('0').total"), all);
	for (const view of ["2", "3", "4", "o"])
		await keys(view);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
