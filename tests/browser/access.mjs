// SPDX-License-Identifier: Apache-2.0
// access.mjs CHROMIUM PAGE HOSTILE: the page without a mouse, by what a screen reader is told, and with other
// eyes: the keyboard alone reaches and does everything, all has a name and a role, focus is seen, all text has the
// contrast that WCAG AA asks for, in light and dark, and it stays usable when the page is enlarged.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {worstContrast} from "./contrast.mjs";
import {treeUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, page, hostile] = process.argv.slice(2);
const b = await new Browser(program).start();
const {count, keys, settle, step, steps, text} = stepper(b);
const SHIFT = 8;

// The element that has the keyboard: its name, and how that is seen.
const focused = () => b.evaluate(`(() => { const e = document.activeElement, s = getComputedStyle(e);
	const row = e.matches(".table") && e.querySelector(".row.selected:not([hidden])");
	const shown = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2 &&
		style.outlineColor !== "rgba(0, 0, 0, 0)";
	return {name: e.getAttribute("aria-label") || e.innerText?.trim() || e.tagName, tag: e.tagName,
		role: e.getAttribute("role"), seen: shown(s) || Boolean(row && shown(getComputedStyle(row))),
		inDialog: Boolean(e.closest("dialog"))}; })()`);
// Goes on with Tab until an element of this name has the keyboard.
async function tabTo(name, limit = 80) {
	for (let i = 0; i < limit; i++) {
		await keys("Tab");
		const now = await focused();
		if (now.name.startsWith(name))
			return now;
	}
	throw new Error(`Tab does not reach ${name}`);
}
const dialogOpens = () => b.until("document.querySelector('dialog[open]')?.contains(document.activeElement)");
const dialogCloses = () => b.until("!document.querySelector('dialog')");

await b.size(1400, 900);
await step("Tab reaches every control, and focus is seen", async () => {
	await b.open(treeUrl(page));
	await keys("3", "h", "k"); // so that there are buttons to flatten, and a chip
	await settle();
	const wanted = await b.evaluate(`[...document.querySelectorAll("button, input, select, a[href], [tabindex]")]
		.filter((e) => e.tabIndex >= 0 && e.getClientRects().length && !e.disabled)
		.map((e) => e.getAttribute("aria-label") || e.innerText?.trim() || e.tagName)`);
	const reached = new Set();
	for (let i = 0; i < wanted.length + 10; i++) {
		await keys("Tab");
		const {name, tag, seen} = await focused();
		if (tag === "BODY")
			continue;
		reached.add(name);
		assert.ok(seen, `focus on ${name} is not seen`);
	}
	for (const name of wanted)
		assert.ok(reached.has(name), `${name} is not reached; reached are ${[...reached].join(", ")}`);
	assert.ok(wanted.length > 18, `${wanted.length} controls`);
	await b.key("Tab", SHIFT);
	assert.notEqual((await focused()).tag, "BODY");
});
await step("names and roles are told", async () => {
	const {nodes} = await b.call("Accessibility.getFullAXTree");
	const roles = new Map();
	for (const {role, name, ignored} of nodes) {
		if (ignored || !role)
			continue;
		if (["button", "tab", "textbox", "searchbox", "combobox", "checkbox", "treegrid", "tablist", "tabpanel",
			"columnheader", "list", "group"].includes(role.value))
			assert.ok(name?.value, `a ${role.value} without a name`);
		roles.set(role.value, (roles.get(role.value) || 0) + 1);
	}
	assert.equal(roles.get("tab"), await count("[role=tab]:not([hidden])"));
	assert.ok(roles.get("tab") >= 7);
	assert.equal(roles.get("treegrid"), 1);
	for (const role of ["tablist", "tabpanel", "row", "gridcell", "columnheader", "searchbox", "list", "listitem",
		"banner", "main", "heading"])
		assert.ok(roles.has(role), `no ${role}: ${[...roles.keys()]}`);
	const rows = await b.evaluate(`[...document.querySelectorAll(".table .space [role=row]:not([hidden])")].map((r) =>
		["level", "posinset", "setsize", "rowindex", "selected"].every((a) => r.hasAttribute("aria-" + a)))`);
	assert.ok(rows.length > 3 && rows.every(Boolean));
	assert.equal(await count("[role=columnheader][aria-sort=descending]"), 1);
	assert.equal(await count("[role=tab][aria-selected=true]"), 1);
	assert.ok(await b.evaluate(`document.getElementById(document.querySelector("[role=tab][aria-selected=true]")
		.getAttribute("aria-controls")) !== null`));
});
await step("tabs move by arrows", async () => {
	await tabTo("Flat");
	await keys("ArrowRight");
	assert.equal((await focused()).name, "Flame graph");
	await b.until("document.querySelector('canvas')");
	await keys("ArrowRight");
	assert.equal((await focused()).name, "Time line");
	await keys("ArrowRight");
	assert.equal((await focused()).name, "Sandwich");
	const explained = await count("#tab-flow:not([hidden])"); // if there were enough samples
	if (explained) {
		await keys("ArrowRight");
		assert.equal((await focused()).name, "Control flow");
	}
	await keys("ArrowRight");
	assert.equal((await focused()).name, "Overview");
	await keys(...explained ? ["ArrowLeft"] : [], "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft");
	assert.equal((await focused()).name, "Flat");
	await keys("ArrowLeft");
	assert.equal((await focused()).name, "Bottom-up");
});
await step("a filter is made and taken away by Tab and Enter", async () => {
	await b.open(treeUrl(page));
	await tabTo("filter by a regular expression");
	await keys("Enter");
	await dialogOpens();
	await b.type("fib");
	await tabTo("how");
	await keys("ArrowDown");
	await b.key("Tab");
	await tabTo("Filter");
	await keys("Enter");
	await dialogCloses();
	assert.match(await text(".chip"), /^without \/fib\//);
	await tabTo("remove without");
	await keys("Enter");
	assert.equal(await count(".chip"), 0);
	assert.equal((await focused()).role, "treegrid");
});
await step("a dialog keeps the keyboard and gives it back", async () => {
	await tabTo("choose threads and processes");
	await keys("Enter");
	await dialogOpens();
	for (let i = 0; i < 12; i++) {
		await keys("Tab");
		const now = await focused();
		assert.ok(now.inDialog || now.tag === "BODY", `${now.name} is behind the dialog`);
	}
	await keys("Escape");
	await dialogCloses();
	assert.match((await focused()).name, /^choose threads/);
});
await step("threads are chosen and compared by Tab, Space and Enter", async () => {
	await keys("Enter");
	await dialogOpens();
	await b.until("document.querySelectorAll('.threads input').length > 2");
	while (!await b.evaluate("document.activeElement.matches('.thread input')"))
		await keys("Tab");
	await keys(" ");
	await tabTo("Show only these");
	await keys("Enter");
	await dialogCloses();
	assert.equal(await count(".chip"), 1);
	await keys("u", "t");
	await dialogOpens();
	await tabTo("Compare these");
	await keys("Enter");
	await dialogCloses();
	assert.ok(await count("[role=columnheader]") >= 9);
	await keys("u");
	assert.equal(await count(".chip"), 0);
});
await step("a column is derived, sorted by and removed by the keyboard", async () => {
	await keys("c");
	await dialogOpens();
	await tabTo("name of the new column");
	await b.type("each");
	await tabTo("formula");
	await b.type("$1 / ($2");
	await keys("Enter");
	assert.match(await text("dialog [role=alert]"), /"\)" is missing at the end/);
	await b.type(" + 1)");
	await keys("Enter");
	await dialogCloses();
	await tabTo("each total");
	await keys("Enter");
	assert.match(await b.evaluate(`document.querySelector("[aria-sort=descending]").innerText`), /each total/);
	await keys("c");
	await dialogOpens();
	await tabTo("remove each");
	await keys("Enter");
	await dialogCloses();
	assert.equal(await b.evaluate("culprit.state.derived.length"), 0);
});
await step("rows, source and flame graph are moved in by arrows", async () => {
	await b.open(treeUrl(page));
	await keys("Home", "h");
	const before = await text(".row.selected:not([hidden]) .label");
	await keys("ArrowUp");
	assert.notEqual(await text(".row.selected:not([hidden]) .label"), before);
	await keys("/");
	await b.type("^fill");
	await keys("Enter", "Escape");
	await tabTo("source lines");
	await settle();
	const at = await b.evaluate("document.querySelector('.source .scroller').scrollTop");
	await keys("PageUp");
	await b.until(`document.querySelector('.source .scroller').scrollTop !== ${at}`);
	await keys("4");
	await b.until("document.activeElement.tagName === 'CANVAS'");
	await keys("Home", "ArrowDown", "ArrowDown", "Enter");
	assert.match(await text(".chip"), /^zoom/);
	assert.match(await text(".status"), /total [\d.]+%/, "a screen reader is not told");
	await keys("Backspace", "Backspace", "Backspace");
	assert.equal(await count(".chip"), 0);
});
for (const dark of [false, true])
	await step(`text is readable in ${dark ? "dark" : "light"}`, async () => {
		await b.dark(dark);
		const check = async (where) => {
			await settle();
			const {worst, seen} = await b.evaluate(`(${worstContrast})()`);
			assert.ok(seen > 3, `${where}: only ${seen} texts`);
			assert.ok(worst.ratio >= 4.5, `${where}: ${JSON.stringify(worst)}`);
		};
		await b.open(treeUrl(page));
		await keys("Home", "h");
		await check("top-down");
		await keys("/");
		await b.type("i");
		await check("search");
		await keys("Escape", "a");
		await check("instructions");
		await keys("a", "k");
		await check("filter");
		await keys("o");
		await check("overview");
		await keys("M");
		await check("menu");
		await keys("Escape", "6");
		await check("sandwich");
		await keys("T");
		await check("sandwich as tables");
		await keys("Escape");
		await keys("3");
		await check("flat");
		await keys("2");
		await check("bottom-up");
		for (const key of ["?", "i", "t", "c", "e"]) {
			await keys(key);
			await dialogOpens();
			await check(`dialog ${key}`);
			await keys("Escape");
			await dialogCloses();
		}
		await keys("4");
		await check("flame graph");
		const labels = await b.evaluate(`(${worstLabel})()`);
		assert.ok(labels.seen > 5 && labels.worst.ratio >= 4.5, `labels: ${JSON.stringify(labels)}`);
		await b.open(treeUrl(hostile));
		await keys("Home", "*");
		await check("partial paths");
	});
await b.dark(false);
await step("nothing moves by itself", async () => {
	await b.call("Emulation.setEmulatedMedia", {features: [{name: "prefers-reduced-motion", value: "reduce"}]});
	await b.open(treeUrl(page));
	assert.deepEqual(await b.evaluate(`[...document.querySelectorAll("*")].filter((e) => { const s = getComputedStyle(e);
		return parseFloat(s.transitionDuration) > 0 || s.animationName !== "none" || s.scrollBehavior === "smooth"; }).length`), 0);
	assert.equal(await b.evaluate("document.getAnimations().length"), 0);
});
await step("stays usable when enlarged four times", async () => {
	await b.call("Emulation.setDeviceMetricsOverride", {width: 350, height: 480, deviceScaleFactor: 4, mobile: false});
	await b.open(treeUrl(page));
	await keys("Home", "h");
	await settle();
	assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window");
	const frame = await b.evaluate("document.querySelector('.table .scroller').getBoundingClientRect().height");
	assert.ok(frame >= 72, `only ${frame} pixels for rows`);
	assert.ok(await text(".row.selected:not([hidden]) .label"));
	await tabTo("keys (?)");
	await keys("Enter");
	await dialogOpens();
	assert.ok(await b.evaluate("document.querySelector('dialog').getBoundingClientRect().width <= innerWidth"));
	await keys("Escape");
	await dialogCloses();
});

// The same of the labels in the flame graph, which are painted: from the colours that it paints with. All hues
// that modules may have are tried, and what a search and a partial path look like.
function worstLabel() {
	const {graph, model} = window.culprit;
	const paper = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const light = (colour) => {
		paper.fillStyle = colour;
		paper.fillRect(0, 0, 1, 1);
		const [x, y, z] = [...paper.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255)
			.map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const {text, match, warn, light: lightness, strength} = graph.theme;
	const colours = new Set([match, warn]);
	for (const node of graph.layout.item) {
		const scope = model.nodes.scope[node];
		colours.add(graph.colour(scope, model.scopes.kind[scope]));
	}
	const seen = colours.size;
	for (let hue = 0; hue < 360; hue += 3)
		for (const s of ["35%", strength])
			colours.add(`hsl(${hue} ${s} ${lightness})`);
	let worst = {ratio: 21};
	for (const colour of colours) {
		const [x, y] = [light(text), light(colour)];
		const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
		if (ratio < worst.ratio)
			worst = {ratio, colour};
	}
	return {worst, seen};
}

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
