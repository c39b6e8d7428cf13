// SPDX-License-Identifier: Apache-2.0
// drive.mjs CHROMIUM PAGE HOSTILE [FOLDER]: uses the page as people do, by keyboard and mouse. HOSTILE is
// a page with names that would like to be HTML. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl, treeUrl} from "./page.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, page, hostile, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {chips, count, keys, settle, shoot, step, steps, text} = stepper(b, folder);

const selected = () => text(".row.selected:not([hidden]) .label");
// What stands in the rows that are seen, top to bottom.
const rows = () => b.evaluate(`${ROWS_SEEN}
	.map((r) => ({name: r.querySelector(".label").innerText,
	level: Number(r.getAttribute("aria-level")), open: r.getAttribute("aria-expanded"),
	total: parseFloat(r.querySelector(".number.total .share").innerText) || 0,
	self: parseFloat(r.querySelector(".number.self .share").innerText) || 0}))`);

await b.size(1400, 900);
await step("opens", async () => {
	await b.open(treeUrl(page));
	assert.equal(await b.evaluate("document.documentElement.dataset.ready"), "true");
	assert.deepEqual([...new Set(b.requests.filter((u) => u !== "about:blank"))], [pageUrl(page)]);
	assert.equal((await rows())[0].name, "(all)");
	assert.equal((await rows())[0].total, 100);
	assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "treegrid");
});
await step("opens and closes rows", async () => {
	const before = (await rows()).length;
	await keys("ArrowDown", "ArrowDown");
	assert.ok(await selected());
	const active = await b.evaluate("document.querySelector('[role=treegrid]').getAttribute('aria-activedescendant')");
	assert.equal(await b.evaluate(`document.getElementById("${active}").classList.contains("selected")`), true);
	await keys("ArrowRight");
	assert.ok((await rows()).length > before);
	await keys("ArrowLeft");
	assert.equal((await rows()).length, before);
	await keys("ArrowRight", "ArrowRight");
	assert.ok((await rows()).find((r) => r.level === 3));
});
await step("finds the hot path", async () => {
	await keys("Home", "h");
	const shown = await rows(), name = await selected();
	assert.ok(shown.length > 5 && name && name !== "(all)");
	assert.match(await text(".detail"), /total\s+[\d.]+% · .* ± \d+ samples/);
	await shoot("tree");
});
await step("searches", async () => {
	await keys("/");
	await b.type("fib");
	assert.match(await text(".count"), /^\d+$/);
	await keys("Enter");
	assert.match(await selected(), /fib/);
	assert.match(await text(".count"), /^1\/\d+$/);
	await keys("Enter");
	assert.match(await text(".count"), /^2\/\d+$/);
	assert.ok(await count(".row.match") > 0);
	await keys("Escape", "n");
	assert.equal(await text(".count"), "");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "treegrid");
});
await step("shows the source with cost per line", async () => {
	await keys("/");
	await b.type("^fill");
	await keys("Enter", "Escape");
	assert.match(await text(".source h2"), /^threads\.cc:\d+$/);
	const lines = await b.evaluate(`[...document.querySelectorAll(".source .lines.hot")].map((l) => l.innerText)`);
	assert.ok(lines.length > 0 && lines.some((l) => /%/.test(l)), "no line has a cost");
	assert.match(await text(".source .scroller"), /static unsigned long fill\(int n\)/);
	assert.ok(await count(".source .lines.marked") > 0);
	await shoot("source");
});
await step("keeps, hides and takes back", async () => {
	const whole = (await text(".shown"));
	assert.equal(whole, null);
	await keys("k");
	assert.deepEqual((await chips()).length, 1);
	assert.match((await chips())[0], /^only \/\^fill/);
	const kept = parseFloat(await text(".shown"));
	assert.ok(kept > 0 && kept < 100);
	await keys("u");
	assert.deepEqual(await chips(), []);
	await keys("/");
	await b.type("^fill");
	await keys("Enter", "Escape", "x");
	assert.match((await chips())[0], /^without \/\^fill/);
	assert.ok(Math.abs(parseFloat(await text(".shown")) + kept - 100) < 0.02);
	await b.click(".chip button");
	assert.deepEqual(await chips(), []);
	await keys("e");
	await b.type("libc");
	await b.evaluate(`document.querySelectorAll("dialog select")[1].value = "module"`);
	await keys("Enter");
	assert.deepEqual(await chips(), ["only module /libc/"]);
	await keys("u");
});
await step("chooses threads", async () => {
	await keys("t");
	assert.ok(await count(".threads .thread") >= 2);
	await b.click(".threads .thread input");
	await b.click("dialog .main");
	assert.equal((await chips()).length, 1);
	const part = parseFloat(await text(".shown"));
	assert.ok(part > 0 && part < 100);
	assert.ok(Math.abs((await rows())[0].total - part) < 0.02);
	await keys("u");
	assert.deepEqual(await chips(), []);
});
await step("zooms", async () => {
	await keys("/");
	await b.type("^fill");
	await keys("Enter", "Escape", "z");
	assert.match((await rows())[0].name, /^fill/);
	assert.match((await chips())[0], /^zoom: fill/);
	const share = parseFloat(await text(".shown"));
	await b.until(`(() => { const totals = [...document.querySelectorAll(".source .lines:not(.head):not([hidden]) .share:first-child")]
		.map((e) => parseFloat(e.innerText)).filter((n) => n > 0); return totals.length > 0 && totals.every((t) => t <= ${share} + 0.01); })()`);
	await keys("Z");
	assert.doesNotMatch((await rows())[0].name, /^fill/);
	await keys("u");
	assert.equal((await rows())[0].name, "(all)");
});
await step("sorts", async () => {
	await keys("3");
	const sortedBy = async (pick, sign) => {
		const list = (await rows()).filter((r) => r.level === 1).map(pick);
		return list.every((v, i) => !i || sign * (list[i - 1] - v) >= 0) && list.length > 3;
	};
	const orderOf = (column) => b.evaluate(`document.querySelector('[data-column="${column}"]').getAttribute("aria-sort")`);
	assert.ok(await sortedBy((r) => r.self, 1));
	await b.click('[data-column="total"] button');
	assert.ok(await sortedBy((r) => r.total, 1));
	await b.click('[data-column="self"] button');
	assert.ok(await sortedBy((r) => r.self, 1));
	assert.equal(await orderOf("self"), "descending");
	await b.click('[data-column="self"] button');
	assert.ok(await sortedBy((r) => r.self, -1));
	await keys("r", "<");
	assert.ok(await sortedBy((r) => r.total, 1));
	assert.equal(await orderOf("total"), "descending");
	await keys("2"); // each view keeps its own order
	assert.equal(await orderOf("self"), "descending");
	assert.ok(await sortedBy((r) => r.self, 1));
	await b.click('[data-column="name"] button');
	assert.equal(await orderOf("name"), "ascending");
	await keys("3");
	assert.equal(await orderOf("total"), "descending");
	await keys("1");
	assert.equal(await orderOf("total"), "descending");
	const url = await b.until("location.hash.includes('sc=name') && location.href");
	await b.open(url);
	await keys("2");
	assert.equal(await orderOf("name"), "ascending");
	await b.click('[data-column="self"] button');
	await keys("3");
	assert.equal(await orderOf("total"), "descending");
});
await step("flattens, with loops as peers", async () => {
	const top = async () => (await b.evaluate(`culprit.outline.list.filter((e) => !e.depth).map((e) =>
		e.row.scope < 0 ? "group" : culprit.model.scopes.kind[e.row.scope])`));
	assert.ok(!(await top()).includes(8));
	await keys("f");
	assert.ok((await top()).includes(8));
	await shoot("flat");
	await keys("F", "F", "F");
	assert.ok((await top()).every((kind) => kind === "group"));
	await keys("f", "f");
});
await step("shows callers", async () => {
	await keys("2");
	await keys("/");
	await b.type("^fib");
	await keys("Enter", "Escape");
	assert.match(await selected(), /^fib/);
	await keys("ArrowRight", "ArrowRight");
	assert.match(await selected(), /fib|work|loop/);
	await shoot("callers");
});
await step("draws the graph", async () => {
	await keys("4");
	const colours = await b.evaluate(`(() => { const c = document.querySelector("canvas");
		const d = c.getContext("2d").getImageData(0, 0, c.width, Math.min(300, c.height)).data;
		const s = new Set(); for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
		return s.size; })()`);
	assert.ok(colours > 10);
	const frame = await b.evaluate(`(({x, y, width}) => ({x, y, width}))(
		document.querySelector("canvas").getBoundingClientRect())`);
	await b.move(frame.x + 20, frame.y + 50);
	assert.match(await text(".tip"), /total [\d.]+% · .* samples/);
	await b.click("canvas", 20, 50);
	const name = await text(".detail h2");
	assert.ok(name);
	await keys("Enter");
	assert.match((await chips())[0], /^zoom: /);
	await keys("Backspace", "u");
	assert.deepEqual(await chips(), []);
	await keys("Home", "ArrowDown", "ArrowDown");
	assert.ok(await text(".status"));
	await shoot("graph");
	await keys("g");
	await shoot("flames");
	await keys("g");
});
await step("filters by module", async () => {
	await keys("1", "/");
	await b.type("^fill");
	await keys("Enter", "Escape", "K");
	assert.match((await chips())[0], /^only module \/.*threads\$\//);
	const kept = parseFloat(await text(".shown"));
	await keys("u", "X");
	assert.match((await chips())[0], /^without module \/.*threads\$\//);
	assert.ok(Math.abs(kept + parseFloat(await text(".shown")) - 100) < 0.02);
	await keys("u");
	assert.deepEqual(await chips(), []);
});
await step("sorts by another metric, and shows those that are wanted", async () => {
	const titles = () => b.evaluate(`[...document.querySelectorAll("[role=columnheader] .what")].map((e) => e.innerText)`);
	assert.deepEqual(await titles(), ["scope", "CPU time total", "CPU time self", "page-faults total", "page-faults self"]);
	await keys("m");
	assert.match(await b.evaluate(`document.querySelector("[aria-sort=descending]").innerText`), /^page-faults total/);
	await keys("m", "c");
	await b.click("dialog fieldset:nth-of-type(2) input");
	await b.click("dialog .main");
	await b.until("!document.querySelector('dialog')");
	assert.deepEqual(await titles(), ["scope", "CPU time total", "CPU time self"]);
	await keys("c");
	await b.click("dialog fieldset:nth-of-type(2) input");
	await b.click("dialog .main");
	await b.until("!document.querySelector('dialog')");
	assert.equal((await titles()).length, 5);
});
await step("derives metrics by a formula", async () => {
	await keys("c");
	await b.evaluate("document.querySelector('.derived input').focus()");
	await b.type("share");
	await keys("Tab");
	await b.type("100 * $1 / @1");
	await keys("Enter");
	await b.until("!document.querySelector('dialog')");
	const numbers = await b.evaluate(`[...document.querySelectorAll(".table .space .row:not([hidden])")].map((r) =>
		[parseFloat(r.children[1].innerText) || 0, parseFloat(r.children[5].innerText) || 0])`);
	assert.ok(numbers.length > 3 && numbers.every(([share, derived]) => Math.abs(share - derived) < 0.02),
		JSON.stringify(numbers));
	await keys("3");
	await b.evaluate(`document.querySelector('[data-column="self"][data-metric="2"] button').focus()`);
	await settle();
	await b.click('[data-column="self"][data-metric="2"] button'); // it was out of sight
	await settle();
	const self = (await rows()).filter((r) => r.level === 1).map((r) => r.self);
	assert.ok(self.length > 3 && self.every((v, i) => !i || self[i - 1] >= v), "not sorted by the formula");
	await keys("1", "c");
	await b.click("dialog .derived li button");
	await b.until("!document.querySelector('dialog')");
	assert.equal(await count("[role=columnheader]"), 5);
});
await step("compares threads and processes", async () => {
	await keys("t");
	await b.click("dialog .compare");
	await b.until("!document.querySelector('dialog')");
	assert.equal(await count("[role=columnheader]"), 9);
	assert.match((await chips())[0], /^compared: 2 threads$/);
	const [whole, ...parts] = await b.evaluate(`(() => { const {model} = culprit, row = culprit.view("tree").rowOf("0");
		return [row.total[0], row.total[2], row.total[3], model.metrics.length]; })()`);
	assert.equal(parts[2], 4);
	assert.equal(parts[0] + parts[1], whole);
	assert.ok(parts[0] > 0 && parts[1] > 0);
	await shoot("compared");
	await keys("t");
	await b.evaluate("document.querySelector('dialog select').value = 'process'");
	await b.click("dialog .compare");
	await b.until("!document.querySelector('dialog')");
	assert.match((await chips())[0], /^compared: 1 process$/);
	await keys("u");
	assert.equal(await count("[role=columnheader]"), 5);
});
await step("shows instructions on demand", async () => {
	await keys("/");
	await b.type("^fib");
	await keys("Enter", "Escape", "a");
	assert.equal(await text(".source h2"), "fib");
	const list = await b.evaluate("culprit.source.entries.filter((e) => e.insn !== undefined).map((e) => e.text)");
	assert.ok(list.length > 4 && list.some((t) => /fib/.test(t)), `no call of itself: ${list.slice(0, 20)}`);
	const {sum, self} = await b.evaluate(`(() => { const {entries} = culprit.source, {code} = culprit.model;
		const flat = culprit.view("callers"), scope = culprit.selectedRow().scope;
		return {sum: entries.reduce((s, e) => s + (e.insn === undefined ? 0 : code.self[0][e.insn]), 0),
			self: flat.rowOf(String(scope)).self[0]}; })()`);
	assert.ok(sum > 0 && sum <= self, `${sum} of ${self}`);
	assert.ok(await b.evaluate("culprit.source.entries.some((e) => e.heading && /return n < 2/.test(e.text))"));
	await shoot("instructions");
	await keys("a");
	assert.match(await text(".source h2"), /^threads\.cc/);
});
await step("keeps its state in the address", async () => {
	await keys("1", "Home", "h", "k");
	await b.until("location.hash.includes('f=keep')");
	await new Promise((r) => setTimeout(r, 300));
	const url = await b.evaluate("location.href"), before = await rows(), chosen = await selected();
	await b.open(url);
	assert.deepEqual(await rows(), before);
	assert.equal(await selected(), chosen);
	assert.equal((await chips()).length, 1);
	await keys("u");
	await b.until("!location.hash.includes('f=keep')");
	await b.evaluate("history.back()");
	await b.until("document.querySelectorAll('.chip').length === 1");
	await keys("u");
});
await step("has all of its state in the address", async () => {
	const link = "v=flat&m=1&sf=name.1.up&l=3&q=fi&f=hide.name.order&t=0&flame=1&theme=dark&pane=1&c=1&by=thread.0.1&" +
		"d=a%3D%241%2B1&insn=1";
	await b.open(pageUrl(page) + "#" + link);
	const seen = await b.evaluate(`({...culprit.state, open: null, selected: null})`);
	assert.deepEqual(seen, {view: "flat", metric: 1, mainMetric: 0, sorts: {tree: {column: "total", metric: 1, up: false},
		callers: {column: "self", metric: 1, up: false}, flat: {column: "name", metric: 1, up: true},
		sandwich: {column: "total", metric: 1, up: false}, memory: {column: "self", metric: 1, up: false}}, flatten: 3, zoom: 0, node: 0,
		selected: null, open: null, filters: [{how: "hide", what: "name", text: "order"}], threads: [0], search: "fi",
		icicle: false, inverted: false, folded: false, inside: "", center: 0, tables: false, theme: "dark", pane: true, columns: [1], compared: {by: "thread", threads: [0, 1]},
		derived: [{name: "a", formula: "$1+1"}], instructions: true, intel: false, compare: null, base: "", shares: false, width: "new",
		noise: null, min: null, unsure: false, time: null, window: null, moment: null, level: 0, stacks: false, reason: 0, wait: "", flow: 0, block: 0,
		paths: 0, path: 0, pathOrder: "cost"});
	assert.deepEqual(await chips(), ["without /order/", await b.evaluate("document.querySelectorAll('.chip')[1].firstChild.data"),
		"compared: 2 threads"]);
	assert.equal(await b.evaluate("document.querySelector('input[type=search]').value"), "fi");
	assert.equal(await count("[role=columnheader]"), 9);
	await b.evaluate("culprit.write()");
	const again = new URLSearchParams(await b.evaluate("location.hash.slice(1)"));
	for (const [name, value] of new URLSearchParams(link))
		assert.ok(name === "pane" || again.getAll(name).includes(value), `${name}=${value} is gone`);
	await b.open(treeUrl(page));
});
await step("is light or dark, as the system is or as wanted", async () => {
	await b.open(treeUrl(page));
	for (const dark of [false, true]) {
		await b.dark(dark);
		await keys("Home", "h");
		await shoot(dark ? "tree-dark" : "tree-light");
	}
	const back = () => b.evaluate("getComputedStyle(document.body).backgroundColor");
	const before = await back();
	await keys("d");
	assert.notEqual(await back(), before);
	await keys("d", "4");
	await shoot("graph-dark");
	await keys("1");
	await b.dark(false);
});
await step("helps", async () => {
	await keys("?");
	assert.equal(await count("dialog[open]"), 1);
	assert.match(await text("dialog"), /hot path/);
	await shoot("help");
	await keys("Escape");
	await b.until("!document.querySelector('dialog')");
	assert.equal(await b.evaluate("document.activeElement.getAttribute('role')"), "treegrid");
	await keys("i");
	assert.match(await text("dialog"), /complete path/);
	assert.match(await text("dialog .notes"), /without symbols .* debug packages name them|Nothing/);
	await keys("Escape");
	await b.until("!document.querySelector('dialog')");
});
await step("says why names are missing, and what would give them", async () => {
	const key = await b.evaluate(`(() => { const {model} = culprit; for (let i = 1; i < model.nodes.count; i++)
		if (model.scopes.flags[model.nodes.scope[i]] & 1) return String(i); return ""; })()`);
	if (!key) // all have names here
		return;
	await b.evaluate(`culprit.outline.reveal("${key}"); culprit.table.draw(); culprit.selectRow("${key}", true)`);
	await settle();
	assert.equal(await text(".row.selected:not([hidden]) .badge"), "no symbol");
	assert.match(await text(".detail"), /No symbol names this function/);
	assert.match(await text(".detail"), /without symbols .*: debug packages name them, or --debuginfod/);
});
await step("has only the rows in sight as elements", async () => {
	await b.evaluate("culprit.table.element.focus()");
	await keys("Home", "*");
	assert.ok(await b.evaluate("culprit.outline.list.length") > 60);
	assert.ok(await count(".table .row") < 120);
	await keys("End");
	assert.ok((await rows()).length > 5 && await selected());
});
await step("shows names as they are, whatever they are", async () => {
	await b.open(treeUrl(hostile));
	await keys("Home", "*");
	const names = (await rows()).map((r) => r.name).join("\n");
	assert.match(names, /<script>alert\(1\)<\/script>/);
	assert.match(names, /<img src=x onerror=/);
	assert.match(names, /partial: no recipe/);
	await keys("/");
	await b.type("partial:");
	await keys("Enter", "Escape");
	assert.match(await text(".detail"), /⚠ The callers of these samples are not known: the unwinder knew no way on/);
	assert.match(await text(".detail"), /total\s+0\.62% · .* · 5 ± 3 samples \(± 45%\)/);
	await keys("i");
	assert.match(await text("dialog"), /800 complete paths, 5 partial \(5 no recipe\)/);
	await keys("Escape");
	await b.until("!document.querySelector('dialog')");
	await keys("4", "2", "3", "1");
	assert.equal(await b.evaluate("window.hacked"), undefined);
	assert.equal(await count("main img, main script, aside img"), 0);
});
await step("fits a narrow window", async () => {
	await b.size(420, 800);
	await b.open(treeUrl(page));
	assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
	await shoot("narrow");
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
