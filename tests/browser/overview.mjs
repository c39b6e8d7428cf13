// SPDX-License-Identifier: Apache-2.0
// overview.mjs CHROMIUM PAGE TINY FLAT EMPTY [FOLDER]: the first screen, by mouse and keyboard, wide and narrow, light and
// dark. PAGE is a recording of threads.cc (view.sh), TINY one with a single sample, FLAT one of many functions without
// callers, EMPTY one without samples. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, page, tiny, flat, empty, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {keys, settle, shoot, step, steps, text} = stepper(b, folder);

const selected = () => text(".row.selected:not([hidden]) .label");
const frame = (selector) => b.evaluate(`(({left, top, right, bottom, width, height}) => ({left, top, right, bottom, width,
	height}))(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`);
const rows = () => b.evaluate(`${ROWS_SEEN}.map((r) => ({name: r.querySelector(".label").innerText,
	self: parseFloat(r.querySelector(".number.self .share").innerText) || 0}))`);
// Where the middle of a box is, in the page: of the first that is drawn and in sight, of a function.
const boxOf = (name, least = 8) => b.evaluate(`(() => { const {graph, model} = culprit, {layout} = graph;
	const frame = graph.canvas.getBoundingClientRect(), high = graph.scroller.clientHeight, top = graph.scroller.scrollTop;
	const box = layout.item.findIndex((n, i) => layout.w[i] > ${least} && graph.topOf(layout.depth[i]) - top + 20 <= high &&
		model.strings[model.scopes.short[model.nodes.scope[n]]] === ${JSON.stringify(name)});
	return box < 0 ? null : {x: frame.x + layout.x[box] + layout.w[box] / 2,
		y: frame.y + graph.topOf(layout.depth[box]) - top + 10, node: layout.item[box]}; })()`);
const clickAt = async ({x, y}, count = 1) => {
	for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
		await b.call("Input.dispatchMouseEvent", {type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: count});
};

for (const [width, height, dark] of [[1500, 900, false], [1500, 900, true], [800, 900, false], [800, 900, true]])
	await step(`shows what is hot at once, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, height);
		await b.dark(dark);
		await b.open(pageUrl(page));
		const list = await rows(), graph = await frame(".graph"), table = await frame(".table"), pane = await frame(".pane");
		assert.ok(list.length >= 5 && list.every(({self}, i) => !i || list[i - 1].self >= self), JSON.stringify(list));
		assert.equal(await selected(), list[0].name);
		assert.ok(graph.height > 80 && graph.bottom <= table.top + 1 && table.bottom <= height, "not above each other");
		assert.ok(pane.right <= width && pane.bottom <= height && pane.height > 200, "no pane");
		assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
		const names = await b.evaluate(`culprit.outline.list.map(({row}) => culprit.model.scopes.kind[row.scope])`);
		assert.ok(names.includes(7), "no inlined function is listed");
		assert.ok(await b.evaluate("culprit.graph.layout.item.length") > 10);
		await shoot(`overview-${width}-${dark ? "dark" : "light"}`);
	});
await b.dark(false);
await b.size(1500, 900);
await step("brings the hottest line of the selected function into sight", async () => {
	await b.open(pageUrl(page));
	await keys("/");
	await b.type("^fib");
	await keys("Enter", "Escape");
	await settle();
	const seen = await b.evaluate(`(() => { const {model, source} = culprit, scope = culprit.selectedRow().scope;
		let most = 0, best = 0;
		for (let i = 1; i < model.lines.count; i++) {
			const self = model.lines.file[i] === model.scopes.file[scope] && Math.abs(model.lines.line[i] - model.scopes.line[scope]) < 4 ?
				source.selfOf(i) : 0;
			if (self > most) [best, most] = [i, self];
		}
		const row = [...source.list.rows.values()].find((r) => !r.hidden && r.children[2].innerText === String(model.lines.line[best]));
		const box = row?.getBoundingClientRect(), frame = source.scroller.getBoundingClientRect();
		return {most, inside: Boolean(box) && box.top >= frame.top && box.bottom <= frame.bottom}; })()`);
	assert.ok(seen.most > 0 && seen.inside, JSON.stringify(seen));
});
await step("a box selects its function, a function its widest box", async () => {
	const box = await boxOf("work");
	await clickAt(box);
	assert.equal(await selected(), "work");
	assert.equal(await text(".detail h2"), "work(int)");
	assert.equal(await b.evaluate("Number(culprit.graph.source.selectedKey())"), box.node);
	await clickAt(await b.evaluate(`(({x, y}) => ({x: x + 40, y: y + 60}))(document.querySelector(".table .scroller")
		.getBoundingClientRect())`));
	await settle();
	const {name, widest, node} = await b.evaluate(`(() => { const {model, graph, selection} = culprit;
		const scope = culprit.selectedRow().scope, node = Number(graph.source.selectedKey()), total = (n) => selection.sums[0].total(n);
		let widest = 0;
		for (let i = 1; i < model.nodes.count; i++)
			if (model.nodes.scope[i] === scope) widest = Math.max(widest, total(i));
		return {name: model.strings[model.scopes.short[scope]], widest, node: [model.nodes.scope[node] === scope, total(node)]}; })()`);
	assert.equal(await selected(), name);
	assert.deepEqual(node, [true, widest]);
});
await step("the keyboard moves in both, and the address has it all", async () => {
	await b.open(pageUrl(page));
	assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "treegrid");
	const first = await selected();
	await keys("ArrowDown");
	const second = await selected();
	assert.notEqual(second, first);
	await b.until("/[#&]r=\\d+/.test(location.hash)");
	await b.open(await b.evaluate("location.href"));
	assert.equal(await selected(), second);
	await b.evaluate("culprit.graph.canvas.focus()");
	await keys("Home", "ArrowDown", "ArrowDown");
	const node = await b.evaluate("Number(culprit.graph.source.selectedKey())");
	assert.ok(node > 1);
	await b.until(`location.hash.includes("n=${node}")`);
	const name = await text(".detail h2");
	await b.open(await b.evaluate("location.href"));
	assert.equal(await b.evaluate("Number(culprit.graph.source.selectedKey())"), node);
	assert.equal(await text(".detail h2"), name);
	await keys("1");
	assert.equal(await b.evaluate("culprit.selectedKey()"), String(node), "the tree has another row selected");
	await keys("o");
	assert.equal(await b.evaluate("Number(culprit.graph.source.selectedKey())"), node);
	await b.click("#tab-callers");
	await b.click("#tab-overview");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
});
await step("zooms, filters and searches in both", async () => {
	await b.open(pageUrl(page));
	const before = await b.evaluate("culprit.outline.length"), box = await boxOf("work", 60);
	await clickAt(box);
	await clickAt(box, 2);
	await settle();
	assert.equal(await b.evaluate("culprit.state.zoom"), box.node);
	assert.ok(await b.evaluate("culprit.outline.length") < before);
	await keys("Z", "/");
	await b.type("fib");
	assert.match(await text(".matched"), /matched: [\d.]+%/);
	assert.match(await text(".count"), /^\d+$/);
	await keys("Enter", "Escape", "x");
	assert.ok(await b.evaluate("culprit.selectedKey() !== ''"), "nothing is selected after a filter");
	assert.doesNotMatch(await selected(), /^fib/);
	await keys("u");
});
await step("goes along the hot path, and says why it ends", async () => {
	await b.open(pageUrl(page));
	await b.evaluate("culprit.selectNode(0)");
	await keys("h");
	assert.ok(await b.evaluate("Number(culprit.graph.source.selectedKey())") > 0);
	await keys("h");
	assert.match(await text(".said"), /^The hot path ends here: nothing below .* (has half of its samples\. The largest is|\.)/);
	await b.open(pageUrl(flat));
	await b.click("header .buttons button");
	assert.match(await text(".said"), /nothing below .* has half of its samples\. The largest is function_\d+, with [\d.]+% of them\.$/);
	for (const view of ["1", "2", "3"]) {
		await keys(view, "Home", "h", "h");
		assert.match(await text(".said"), /^The hot path ends here: /);
	}
});
await step("a tiny profile looks sensible", async () => {
	await b.open(pageUrl(tiny));
	assert.deepEqual((await rows()).map((r) => r.name), ["leaf", "main"]);
	assert.equal(await selected(), "leaf");
	const graph = await frame(".graph"), table = await frame(".table");
	assert.ok(graph.height < 150, `the graph of three levels is ${graph.height} high`);
	assert.ok(table.top - graph.bottom < 2 && table.height > 400);
	await shoot("overview-tiny");
});

await step("an empty profile says so, and nothing fails", async () => {
	await b.open(pageUrl(empty));
	assert.equal(await text(".table .none"), "This recording has no samples.");
	await keys("h", "1", "h", "2", "3", "4", "I", "R", "I", "R", "5", "6", "T", "M", "Escape", "o", "z", "k");
	await b.open(pageUrl(tiny));
	await keys("e");
	await b.type("nothing");
	await keys("Enter");
	assert.equal(await text(".table .none"), "The filters leave out all samples.");
	await keys("u");
	assert.equal(await b.evaluate("document.querySelector('.table .none').hidden"), true);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
