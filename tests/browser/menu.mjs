// SPDX-License-Identifier: Apache-2.0
// menu.mjs CHROMIUM PAGE STRIPPED GONE [FOLDER]: copying, the menu of rows and boxes, instructions at the hottest one, and
// what is said where there is no source. By mouse and keyboard, wide and narrow. PAGE is a recording of threads.cc
// (view.sh), STRIPPED one without lines, GONE one whose sources are not there any more. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, page, stripped, gone, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {chips, count, keys, settle, shoot, step, steps, text} = stepper(b, folder);
const CTRL = 2;

await b.call("Browser.grantPermissions", {permissions: ["clipboardReadWrite", "clipboardSanitizedWrite"]});
const clipboard = () => b.evaluate("navigator.clipboard.readText()");
const search = async (name) => {
	await keys("/");
	await b.type(name);
	await keys("Enter", "Escape");
};
const items = () => b.evaluate(`[...document.querySelectorAll(".menu [role=menuitem] span")].map((e) => e.innerText)`);
const rightClick = async (selector, x, y) => {
	const box = await b.evaluate(`(({x, y, width, height}) => ({x, y, width, height}))(
		document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`);
	const at = {x: box.x + (x ?? 40), y: box.y + (y ?? box.height / 2), button: "right", clickCount: 1};
	for (const type of ["mousePressed", "mouseReleased"])
		await b.call("Input.dispatchMouseEvent", {type, ...at});
	await settle();
};
const stackByHand = () => b.evaluate(`(() => { const {model} = culprit, names = [];
	for (let n = Number(culprit.selectedKey()); n > 0; n = model.nodes.parent[n])
		names.push(model.strings[model.scopes.name[model.nodes.scope[n]]]);
	return names.join("\\n"); })()`);

for (const [width, dark] of [[1500, false], [800, true]])
	await step(`copies a name, a stack, a row, ${width} pixels wide`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(page) + "#v=tree");
		await search("^fib");
		await b.call("Input.dispatchKeyEvent", {type: "keyDown", key: "c", code: "KeyC", windowsVirtualKeyCode: 67, modifiers: CTRL,
			commands: ["copy"]});
		await b.until(`navigator.clipboard.readText().then((t) => t === "fib(int)")`);
		assert.equal(await text(".said"), "copied: fib(int)");
		assert.equal(await count("dialog"), 0, "the key chose columns");
		await rightClick(".row.selected:not([hidden])");
		assert.deepEqual((await items()).slice(0, 4), ["Copy name", "Copy stack", "Copy row", "Callers and callees"]);
		await shoot(`menu-${width}`);
		await b.click(".menu [role=menuitem]:nth-child(2)");
		const stack = await stackByHand();
		assert.match(stack, /^fib\(int\)\n[^]*work/);
		await b.until(`navigator.clipboard.readText().then((t) => t === ${JSON.stringify(stack)})`);
		await b.evaluate("culprit.focus()");
		await keys("M", "ArrowDown", "ArrowDown", "Enter");
		await b.until("document.querySelector('.said').innerText.startsWith('copied: the row')");
		assert.match(await clipboard(), /^fib\(int\)\tCPU time total [\d.]+% .*\tCPU time self [\d.]+% /);
		assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "treegrid", "the focus is elsewhere");
	});
await b.size(1500, 900);
await b.dark(false);
await step("the menu acts, closes and moves by keys", async () => {
	await b.open(pageUrl(page));
	await search("^order");
	await keys("M");
	assert.equal(await count(".menu"), 1);
	await keys("Escape");
	assert.equal(await count(".menu"), 0);
	assert.equal(await b.evaluate("culprit.state.view"), "overview", "Escape went back");
	await keys("M", "End", "Enter");
	assert.match((await chips())[0], /^without \/\^order/);
	await keys("u", "4");
	const box = await b.evaluate(`(() => { const {layout, tree} = culprit.graph, {model} = culprit;
		const at = layout.item.findIndex((i) => model.strings[model.scopes.short[tree.scope(i)]] === "work");
		return {x: layout.x[at] + layout.w[at] / 2, y: culprit.graph.topOf(layout.depth[at]) + 10}; })()`);
	await rightClick("canvas", box.x, box.y);
	assert.equal(await b.evaluate("document.querySelector('.menu').getAttribute('aria-label')"), "work(int)");
	await b.click(".menu [role=menuitem]:nth-child(4)");
	assert.equal(await text(".sandwich h2"), "work(int)");
	await rightClick(".half.lower canvas", 100, 30);
	assert.equal(await count(".menu"), 1);
	await b.click("h1");
	assert.equal(await count(".menu"), 0, "a click elsewhere does not close it");
});
await step("instructions open at the hottest one of what is selected", async () => {
	const seen = () => b.evaluate(`(() => { const {source} = culprit, frame = source.scroller.getBoundingClientRect();
		const own = (e) => e.insn === undefined ? 0 : source.selfOfInsn(e.insn), {entries} = source;
		const wanted = entries.some((e) => source.isMarked(e)) ? (e) => source.isMarked(e) : () => true;
		const best = entries.reduce((m, e, i) => wanted(e) && own(e) > own(entries[m] || {}) ? i : m, -1);
		const row = source.list.rows.get(best)?.getBoundingClientRect();
		return {best, self: best < 0 ? 0 : own(entries[best]), inside: Boolean(row) && row.top >= frame.top - 1 &&
			row.bottom <= frame.bottom + 1}; })()`);
	await b.open(pageUrl(page) + "#v=tree");
	await search("^fib");
	await keys("a");
	await settle();
	const fib = await seen();
	assert.ok(fib.self > 0 && fib.inside, JSON.stringify(fib));
	await search("^order");
	await settle();
	const order = await seen();
	assert.ok(order.best < 0 || order.inside, JSON.stringify(order));
	await keys("a");
});
await step("instructions have the other syntax where the CPU has one", async () => {
	await b.open(pageUrl(page) + "#v=tree");
	await search("^fib");
	await keys("a");
	const own = await b.evaluate("culprit.model.code.intel.some((text) => text > 0)");
	assert.equal(await b.evaluate("culprit.source.syntax.hidden"), !own);
	if (!own) // as if it had
		await b.evaluate(`(() => { const {code, strings} = culprit.model; code.intel = code.text.map((t) => strings.push("intel " + strings[t]) - 1); })()`);
	await keys("a", "a");
	const texts = () => b.evaluate("culprit.source.entries.filter((e) => e.insn !== undefined).map((e) => e.text)");
	const before = await texts();
	await b.click(".source .bar .switch"); // the first of the two
	assert.equal(await b.evaluate("culprit.source.syntax.getAttribute('aria-pressed')"), "true");
	assert.notDeepEqual(await texts(), before);
	await b.until("location.hash.includes('intel=1')");
	await keys("A");
	assert.deepEqual(await texts(), before);
	await keys("a");
	assert.equal(await b.evaluate("culprit.source.syntax.hidden"), true, "it is offered for source");
});
await step("without lines the instructions are shown, and why", async () => {
	await b.open(pageUrl(stripped));
	const has = await b.evaluate("culprit.model.code.first.length > 1 && culprit.source.entries.length");
	assert.ok(has, "no instructions");
	assert.equal(await b.evaluate("culprit.source.instructions"), true);
	assert.match(await text(".source .note"), /^No source is known/);
	assert.equal(await text(".lines.head .number"), "address");
});
await step("where a source is missing only that one is named", async () => {
	await b.open(pageUrl(gone));
	await search("^two");
	assert.match(await text(".source .note"), /gone_two\.c: its text was not found/);
	assert.doesNotMatch(await text(".source .note"), /gone_one\.c/);
	assert.ok(await count(".source .lines:not(.head):not([hidden])") > 0, "no lines with samples");
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
