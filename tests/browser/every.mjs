// SPDX-License-Identifier: Apache-2.0
// every.mjs CHROMIUM ALL DIFF [FOLDER]: every view and dialog, wide and narrow, light and dark, by mouse and by keyboard:
// all that is there fits, is not covered, can be read, and another thing can be selected. ALL is a recording with
// time, waits, allocations and a time line, DIFF has two sides (109-view-every). Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {worstContrast} from "./contrast.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, all, diff, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {keys, settle, shoot, step, steps} = stepper(b, folder);

const VIEWS = {overview: "o", tree: "1", callers: "2", flat: "3", graph: "4", time: "5", sandwich: "6", memory: "7", waits: "8"};
const DIALOGS = {"?": "keys", i: "about", e: "filter", t: "threads", v: "compare", c: "columns"};

// What is wrong with what can be used or read: texts.
const WRONG = `(() => {
	const dialog = document.querySelector("dialog[open]"), root = dialog || document, wrong = [];
	const name = (e) => (e.getAttribute("aria-label") || e.innerText || e.className || e.tagName).slice(0, 50);
	if (document.documentElement.scrollWidth > innerWidth || document.documentElement.scrollHeight > innerHeight)
		wrong.push("the page is larger than the window");
	for (const e of root.querySelectorAll("button, select, input, h1, .chip, .legend .key, .events span, .pane h2")) {
		const box = e.getBoundingClientRect(), scrolled = e.closest(".scroller, .detail, .chains, dialog, .headbox, h2");
		if (!box.width || !box.height || e.closest("[hidden]"))
			continue;
		if (!scrolled && (box.left < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1))
			wrong.push(name(e) + " is outside");
		if (e.matches("button") && !scrolled && e.scrollWidth > e.clientWidth + 1)
			wrong.push(name(e) + " is cut off");
		const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
		if (!scrolled && e.matches("button, select, input") && at && !e.contains(at) && !at.contains(e) && !at.closest("label")?.contains(e))
			wrong.push(name(e) + " is covered by " + (at.className || at.tagName));
	}
	for (const e of root.querySelectorAll(".table .scroller, .waitlist .scroller"))
		if (e.scrollWidth > e.clientWidth)
			wrong.push("columns are cut off");
	const seen = [...document.querySelectorAll("#main > *")].every((e) => e.getBoundingClientRect().height > 20);
	return seen ? wrong : [...wrong, "the view has no room"];
})()`;
// What is selected.
const SELECTED = `(({state, graph, selectedBy}) => state.view === "waits" ? state.wait : state.view === "time" ? String(state.moment) :
	state.view === "graph" ? graph.source.selectedKey() : state.view === "sandwich" ? selectedBy.upper + " " + selectedBy.lower :
	culprit.selectedKey())(culprit)`;

async function check(where) {
	await settle();
	assert.deepEqual(await b.evaluate(WRONG), [], where);
	const {worst, seen} = await b.evaluate(`(${worstContrast})()`);
	assert.ok(seen > 3 && worst.ratio >= 4.5, `${where}: ${JSON.stringify(worst)}`);
}
// Clicks into the middle of something that is not selected.
async function click(view) {
	const place = await b.evaluate(`(() => {
		const {graph, timeline, sandwich, model} = culprit, middle = ({left, top, width, height}) => ({x: left + width / 2, y: top + height / 2});
		const row = (list) => { const e = [...list].find((r) => !r.hidden && !r.classList.contains("selected") && r.getBoundingClientRect().height);
			return e && middle((e.querySelector(".label, span:nth-child(2)") || e).getBoundingClientRect()); };
		const box = (g) => { const frame = g.canvas.getBoundingClientRect(), {layout} = g;
			const i = layout.item.findIndex((n, i) => layout.depth[i] === 1 && layout.w[i] > 8);
			return i < 0 ? null : {x: frame.x + layout.x[i] + layout.w[i] / 2, y: frame.y + g.topOf(1) - g.scroller.scrollTop + 10}; };
		if (${JSON.stringify(view)} === "time") {
			const frame = timeline.canvas.getBoundingClientRect(), r = timeline.rows.findIndex(({thread}) => thread >= 0 && thread !== culprit.state.moment?.[0]);
			return {x: frame.x + timeline.xOf(300000), y: frame.y + 22 + (timeline.tops[r] + timeline.tops[r + 1]) / 2};
		}
		return ${JSON.stringify(view)} === "graph" ? box(graph) : ${JSON.stringify(view)} === "waits" ? row(document.querySelectorAll(".wait:not(.head)")) :
			${JSON.stringify(view)} === "sandwich" ? culprit.comparison ? row(document.querySelectorAll(".upper .space .row")) : box(sandwich.halves.upper.graph) :
			row(document.querySelectorAll("#main .table .space .row"));
	})()`);
	assert.ok(place, `${view}: there is nothing to click`);
	for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
		await b.call("Input.dispatchMouseEvent", {type, ...place, button: type === "mouseMoved" ? "none" : "left", clickCount: 1});
}
// Opens a view by its tab.
async function open(view) {
	if (view === "sandwich") // of a function that is called and calls
		await b.evaluate(`culprit.setView("tree"); culprit.openTo(2)`);
	await b.click("#tab-" + view);
	assert.equal(await b.evaluate("culprit.state.view"), view);
}
async function look(view, where) {
	const before = await b.evaluate(SELECTED);
	await keys("Home", "ArrowDown", "ArrowDown");
	const moved = await b.evaluate(SELECTED);
	assert.ok(moved && (moved !== before || view === "waits"), `${where}: the keyboard selects nothing else (${before}, ${moved})`);
	await click(view);
	assert.notEqual(await b.evaluate(SELECTED), moved, `${where}: the mouse selects nothing else`);
	await b.move(3, 3);
}

// In light and in dark.
async function checkBoth(where, picture = "") {
	for (const dark of [false, true]) {
		await b.dark(dark);
		await check(`${where}, ${dark ? "dark" : "light"}`);
		if (picture)
			await shoot(`${picture}-${dark ? "dark" : "light"}`);
	}
	await b.dark(false);
}

for (const width of [1500, 800]) {
	const how = `${width} pixels wide`;
	await step(`every view, ${how}`, async () => {
		await b.size(width, 900);
		await b.open(pageUrl(all) + "#v=tree&m=0");
		for (const [view, key] of Object.entries(VIEWS)) {
			await open(view);
			await look(view, `${view}, ${how}`);
			await checkBoth(`${view}, ${how}`, `every-${view}-${width}`);
			await keys(view === "tree" ? "2" : "1", key);
			assert.equal(await b.evaluate("culprit.state.view"), view, `${key} does not open ${view}`);
		}
	});
	await step(`every view of a comparison, ${how}`, async () => {
		await b.open(pageUrl(diff));
		for (const view of ["overview", "tree", "callers", "flat", "graph", "sandwich"]) {
			await open(view);
			await look(view, `${view} of a comparison, ${how}`);
			await checkBoth(`${view} of a comparison, ${how}`, `every-diff-${view}-${width}`);
		}
		assert.deepEqual(await b.evaluate(`["memory", "waits"].map((v) => document.getElementById("tab-" + v).hidden)`), [true, true]);
	});
	await step(`every dialog, ${how}`, async () => {
		await b.open(pageUrl(all) + "#v=tree&m=0");
		for (const [key, name] of Object.entries(DIALOGS)) {
			await keys(key);
			await b.until("document.querySelector('dialog[open]')");
			const {left, right, top, bottom} = await b.evaluate(`(({left, right, top, bottom}) => ({left, right, top, bottom}))(
				document.querySelector("dialog").getBoundingClientRect())`);
			assert.ok(left >= 0 && right <= width && top >= 0 && bottom <= 900, `${name}, ${how}: it is not all in sight`);
			await checkBoth(`dialog ${name}, ${how}`);
			await keys("Escape");
			await b.until("!document.querySelector('dialog')");
		}
		await keys("M");
		await checkBoth(`menu, ${how}`);
		await keys("Escape");
	});
}

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
