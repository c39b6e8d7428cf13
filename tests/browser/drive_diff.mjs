// SPDX-License-Identifier: Apache-2.0
// drive_diff.mjs CHROMIUM PAGE DIFF THREADS HOSTILE [FOLDER]: uses a page with two sides (PAGE, of which `culprit
// diff --json` gave DIFF) and one of a recording with threads (THREADS) as people do. HOSTILE has two sides and
// names that would like to be HTML. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {Browser} from "./browser.mjs";
import {pageUrl, treeUrl} from "./page.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, page, diffPath, threadsPage, hostile, folder] = process.argv.slice(2);
const diff = JSON.parse(readFileSync(diffPath, "utf8"));
const b = await new Browser(program).start();
const {count, keys, shoot, step, steps, text} = stepper(b, folder);

const selected = () => text(".row.selected:not([hidden]) .label");
const titles = () => b.evaluate(`[...document.querySelectorAll(".head .what")].map((t) => t.innerText)`);
// What stands in the rows that are seen, top to bottom: the name and the texts of the cells.
const rows = () => b.evaluate(`${ROWS_SEEN}
	.map((r) => ({name: r.querySelector(".label").innerText,
	level: Number(r.getAttribute("aria-level")),
	full: culprit.outline.list[Number(r.id.slice(3))].row.scope >= 0 ?
		culprit.model.strings[culprit.model.scopes.name[culprit.outline.list[Number(r.id.slice(3))].row.scope]] : "",
	cells: [...r.querySelectorAll(".number")].map((c) => [c.firstChild.innerText, c.lastChild.innerText])}))`);

// As the page writes numbers.
const MINUS = "\u2212", THIN = "\u202f";
const share = (part) => (100 * part).toFixed(2) + "%";
function time(ns) {
	const seconds = ns / 1e9;
	const [size, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([s]) => seconds >= s * 0.9995) ||
		[1e-9, "ns"];
	const value = seconds / size;
	return seconds ? value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2) + THIN + name : "0 s";
}
const sign = (value, digits) => Number(digits) === 0 ? "±" : value > 0 ? "+" : MINUS;
function points(part) {
	const digits = (100 * Math.abs(part)).toFixed(2);
	return sign(part, digits) + digits + THIN + "pp";
}
function ratio(value) {
	if (value === null)
		return "";
	const digits = (100 * Math.abs(value - 1)).toFixed(1);
	return value >= 10 ? "×" + (value < 100 ? value.toFixed(1) : Math.round(value)) : sign(value - 1, digits) + digits + "%";
}
function verdict(row) {
	return !row.tested ? "too few" : !row.changed ? "noise" : !row.old.samples ? "new" : !row.new.samples ? "gone" :
		row.difference > 0 ? "slower" : "faster";
}
function cells(row) {
	const side = ({samples, cost, share: part}) => samples ? [share(part), time(cost)] : ["", ""];
	return [side(row.old), side(row.new), [points(row.share_difference),
		(row.difference > 0 ? "+" : row.difference < 0 ? MINUS : "±") + time(Math.abs(row.difference))],
	[ratio(row.ratio), verdict(row)]];
}

await b.size(1400, 900);
await step("opens with both sides", async () => {
	await b.open(treeUrl(page));
	assert.equal(await b.evaluate("document.documentElement.dataset.ready"), "true");
	assert.deepEqual([...new Set(b.requests.filter((u) => u !== "about:blank"))], [pageUrl(page)]);
	assert.deepEqual(await titles(), ["scope", "old total", "new total", "total difference", "change"]);
	const [all] = await rows();
	assert.equal(all.name, "(all)");
	assert.deepEqual(all.cells, cells(diff.total));
	await b.until(`/${diff.changed} of [0-9]+ functions changed/.test(document.querySelector(".comparing .shown").innerText)`);
	assert.match(await text("h1"), /old1\.prof → new1\.prof/);
});
await step("has the numbers of diff, in its order", async () => {
	await keys("2");
	assert.deepEqual(await titles(), ["scope", "old self", "new self", "self difference", "change"]);
	const shown = await rows(), wanted = diff.rows;
	assert.ok(shown.length > 10);
	shown.slice(0, Math.min(shown.length, wanted.length)).forEach((row, i) => {
		// Where two differ by the same, either may come first.
		const like = wanted.filter((w) => w.name === row.full && JSON.stringify(cells(w)) === JSON.stringify(row.cells));
		assert.ok(like.length, `${i}: ${row.name} ${JSON.stringify(row.cells)}`);
		if (wanted[i].tested)
			assert.ok(like.some((w) => Math.abs(w.difference) === Math.abs(wanted[i].difference)), `${row.name} is elsewhere`);
	});
	assert.ok(shown[0].cells[3][1] === "slower" && shown[0].name.startsWith("solve"));
	await shoot("diff-callers");
	await keys("3");
	for (const row of (await rows()).filter((r) => r.level === 1).slice(0, 2)) {
		const like = wanted.find((w) => w.name === row.full);
		assert.deepEqual(row.cells, cells(like));
	}
	await shoot("diff-flat");
});
await step("sorts by difference", async () => {
	const differences = async () => (await b.evaluate(`culprit.outline.list.filter((e) => !e.depth).map((e) =>
		culprit.comparison.rowMeasure(e.row, "self").by)`));
	const falls = (list, by) => list.length > 5 && list.every((v, i) => !i || by * (list[i - 1] - v) >= 0);
	await b.click('[data-column="difference"] button');
	assert.ok(falls(await differences(), 1));
	assert.equal(await b.evaluate(`document.querySelector('[data-column="difference"]').getAttribute("aria-sort")`),
		"descending");
	await keys("r");
	assert.ok(falls(await differences(), -1));
	await keys("<");
	assert.equal(await b.evaluate(`document.querySelector('[data-column="new"]').getAttribute("aria-sort")`), "descending");
	await keys(">", ">");
	assert.equal(await b.evaluate(`document.querySelector('[data-column="change"]').getAttribute("aria-sort")`), "descending");
});
await step("compares total, self or both, time or shares", async () => {
	await keys("b");
	assert.equal((await titles()).length, 9);
	await keys("b");
	assert.equal((await titles())[1], "old total");
	await keys("b", "2");
	assert.equal((await titles())[1], "old self");
	const before = await rows();
	await keys("%");
	assert.match(await text(".comparing"), /shares/);
	// In another order, and names may be of several: one that is in sight both times will do.
	const after = await rows();
	assert.ok(after.some((y) => before.some((x) => x.name === y.name && x.cells[0].join() === y.cells[0].join() &&
		x.cells[3][0] !== y.cells[3][0])), "changes of time and of shares are the same");
	await keys("%");
	assert.deepEqual(await rows(), before);
	await keys("m"); // page faults
	assert.match((await rows())[0].cells.flat().join(), /^[^m]*$/);
	await keys("m");
	assert.deepEqual(await rows(), before);
});
await step("follows what changed", async () => {
	await keys("1", "Home", "h");
	const path = await b.evaluate(`culprit.outline.list.map((e) => culprit.model.strings[culprit.model.scopes.short[e.row.scope]])`);
	assert.ok(path.some((name) => name.startsWith("solve")), path.join());
	assert.match(await text(".detail"), /total change\s+(slower|new): \+.*pp.*\(95%: .* to .*\), p [<=]/);
	assert.match(await text(".status"), /total old .*, new .*(slower|new)$/);
	await shoot("diff-tree");
});
await step("shows the source of one side", async () => {
	await keys("/");
	await b.type("^solve");
	await keys("Enter", "Escape");
	assert.match(await text(".source .head"), /new self/);
	assert.ok(await count(".source .lines.hot") > 0);
	await keys("w");
	assert.match(await text(".source .head"), /old self/);
	await keys("w", "w");
});
await step("draws the difference", async () => {
	await keys("4");
	const colours = () => b.evaluate(`(() => { const c = document.querySelector("canvas");
		const d = c.getContext("2d").getImageData(0, 0, c.width, Math.min(400, c.height)).data, s = new Set();
		for (let i = 0; i < d.length; i += 4) s.add("#" + (d[i] << 16 | d[i + 1] << 8 | d[i + 2]).toString(16).padStart(6, "0"));
		const style = getComputedStyle(document.documentElement);
		const has = (name) => s.has(style.getPropertyValue(name).trim());
		return {more: [1, 2, 3, 4, 5].some((n) => has("--more-" + n)), less: [1, 2, 3, 4, 5].some((n) => has("--less-" + n)),
			same: has("--same")}; })()`);
	assert.deepEqual(await colours(), {more: true, less: false, same: true});
	// Boxes are as wide as the new side: extra is there; as wide as the old one: it is not.
	const has = (name) => b.evaluate(`culprit.graph.layout.item.some((n) =>
		culprit.model.strings[culprit.model.scopes.name[culprit.model.nodes.scope[n]]].startsWith(${JSON.stringify(name)}))`);
	assert.ok(await has("extra") && await has("solve"));
	await shoot("diff-graph");
	await keys("w");
	assert.ok(!(await has("extra")) && await has("solve"));
	assert.match(await text(".comparing"), /width: old/);
	await keys("w");
	assert.ok(await has("extra"));
	await keys("w");
	assert.match(await text(".legend"), /less in new.*more in new/s);
	const at = await b.evaluate(`(() => { const g = culprit.graph, i = g.layout.item.findIndex((n) =>
		culprit.model.strings[culprit.model.scopes.name[culprit.model.nodes.scope[n]]].startsWith("solve"));
		const f = g.canvas.getBoundingClientRect();
		return {x: f.x + g.layout.x[i] + 5, y: f.y + g.topOf(g.layout.depth[i]) - g.scroller.scrollTop + 8}; })()`);
	await b.move(at.x, at.y);
	assert.match(await text(".tip"), /old total: .*new total: .*total change: slower: \+/s);
	await shoot("diff-tip");
	await keys("g");
	await shoot("diff-flames");
	await keys("g", "Home", "ArrowDown");
	assert.match(await text(".status"), /old .*, new /);
	await keys("%");
	assert.ok((await colours()).more && (await colours()).less);
	await keys("%", "y");
	assert.ok((await colours()).less, "what may be chance has no colour");
	assert.match(await text(".comparing"), /all differences/);
	await keys("y");
});
await step("keeps a comparison in the address", async () => {
	await keys("2", "b", "%", "Home");
	await b.until("location.hash.includes('share=1')");
	await new Promise((r) => setTimeout(r, 300));
	const url = await b.evaluate("location.href"), before = await rows(), heads = await titles();
	await b.open(url);
	assert.deepEqual(await titles(), heads);
	assert.deepEqual(await rows(), before);
	await b.open(treeUrl(page));
	await b.click(".comparing .chip button");
	assert.match((await titles())[1], /total$/);
	assert.equal(await count(".comparing .chip"), 0);
	await b.until("location.hash.includes('cmp=off')");
	await b.evaluate("history.back()");
	await b.until("document.querySelectorAll('.chips .comparing').length === 1");
});
await step("filters and zooms with two sides", async () => {
	await keys("1", "/");
	await b.type("fib<");
	await keys("Enter", "Escape", "k");
	const [all] = await rows();
	assert.ok(parseFloat(all.cells[0][0]) < 50 && parseFloat(all.cells[1][0]) < 50);
	await keys("u", "/");
	await b.type("^solve");
	await keys("Enter", "Escape", "z");
	assert.match((await rows())[0].name, /^solve/);
	assert.equal((await rows())[0].cells[3][1], "slower");
	await keys("u");
});
await step("compares threads by the keyboard alone", async () => {
	await b.open(treeUrl(threadsPage));
	assert.equal(await count(".comparing .chip"), 0);
	await keys("v");
	assert.equal(await count("dialog[open]"), 1);
	assert.ok(await count(".sides .thread select") >= 2);
	const sides = () => b.evaluate(`[...document.querySelectorAll(".sides .thread select")].map((s) => s.value)`);
	assert.deepEqual((await sides()).slice(0, 2), ["a", "b"]);
	await shoot("compare-dialog");
	const focus = () => b.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.innerText");
	for (let i = 0; i < 20 && !(await focus()).startsWith("side of"); i++)
		await keys("Tab");
	assert.match(await focus(), /^side of .*process/);
	await keys("a"); // a key in a list chooses, and does nothing else
	assert.ok((await sides()).every((side) => side === "a"));
	await keys("Tab", "Tab", "B");
	assert.deepEqual((await sides()).slice(0, 2), ["a", "b"]);
	await keys("Enter");
	if (await count("dialog[open]"))
		await b.evaluate(`document.querySelector("dialog form:not(.bar)").requestSubmit()`);
	assert.equal(await count("dialog[open]"), 0);
	await keys("2");
	assert.deepEqual((await titles()).slice(1, 3), ["A self", "B self"]);
	assert.match(await text(".comparing .chip"), /^A .*thread \d+\) → B .*thread \d+\)/);
	const sums = await b.evaluate(`culprit.outline.list.filter((e) => !e.depth).reduce((s, e) => {
		const {cost} = culprit.comparison.rowMeasure(e.row, "self"); return [s[0] + cost[0], s[1] + cost[1]]; }, [0, 0])`);
	const whole = await b.evaluate("culprit.comparison.whole");
	sums.forEach((sum, side) => assert.ok(whole[side] > 0 && Math.abs(sum / whole[side] - 1) < 1e-9));
	await shoot("compare-threads");
	await keys("4");
	await shoot("compare-threads-graph");
	await b.until("location.hash.includes('per=thread')");
	await keys("v");
	await b.evaluate(`document.querySelector('[aria-label="threads or processes like"]').focus()`);
	await b.type("thread");
	await keys("Tab", "Enter");
	assert.ok((await sides()).every((side) => side === "a"));
	await b.click("dialog .main");
	assert.match(await text("dialog .warning"), /Each side needs a thread/);
	await keys("Escape");
});
await step("is readable in light and dark", async () => {
	await b.open(treeUrl(page));
	for (const dark of [false, true]) {
		await b.dark(dark);
		const worst = await b.evaluate(`(${contrast})()`);
		assert.ok(worst.ratio >= 4.5, `${dark ? "dark" : "light"}: ${JSON.stringify(worst)}`);
	}
	await keys("2");
	await shoot("diff-callers-dark");
	await keys("4");
	await shoot("diff-graph-dark");
	await b.dark(false);
	await keys("1");
});
await step("is reached by the keyboard alone", async () => {
	const reached = new Set();
	for (let i = 0; i < 60; i++) {
		await keys("Tab");
		reached.add(await b.evaluate(`(() => { const e = document.activeElement;
			return e.getAttribute("aria-label") || e.textContent.slice(0, 20); })()`));
	}
	for (const wanted of ["stop comparing", "total: which samples are compared (b)", "compare threads, processes or recordings (v)",
		"time: compare what it took, or its share of the samples (%)"])
		assert.ok(reached.has(wanted), `${wanted} is not reached: ${[...reached]}`);
});
await step("shows names as they are, whatever they are", async () => {
	await b.open(treeUrl(hostile));
	await keys("Home", "*");
	const names = (await rows()).map((r) => r.name).join("\n");
	assert.match(names, /<script>alert\(1\)<\/script>/);
	assert.match(names, /<img src=x onerror=/);
	await keys("4", "2", "3", "1", "v");
	assert.match(await text("dialog"), /<b>app<\/b>/);
	await keys("Escape");
	assert.equal(await b.evaluate("window.hacked"), undefined);
	assert.equal(await count("main img, main script, aside img, dialog b, .chips b, h1 b"), 0);
});
await step("fits a narrow window", async () => {
	await b.size(420, 800);
	await b.open(treeUrl(page));
	assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
	await shoot("diff-narrow");
	await keys("4");
	assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
});

// In the page: the worst contrast of the texts of a comparison with what is behind them.
function contrast() {
	const paper = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const light = (colour) => {
		paper.fillStyle = colour;
		paper.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...paper.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255).map((v) =>
			v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const style = getComputedStyle(document.documentElement), pairs = [];
	for (const way of ["more", "less"]) {
		pairs.push(["--text", `--${way}`]);
		for (const back of ["--back", "--panel", "--chosen", "--match"])
			pairs.push([`--${way}-text`, back]);
		for (let level = 1; level <= 5; level++)
			pairs.push(["--graph-text", `--${way}-${level}`]);
	}
	pairs.push(["--graph-text", "--same"]);
	let worst = {ratio: 21};
	for (const [fore, back] of pairs) {
		const [x, y] = [fore, back].map((name) => light(style.getPropertyValue(name).trim()));
		const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		if (ratio < worst.ratio)
			worst = {ratio, fore, back};
	}
	return worst;
}

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
