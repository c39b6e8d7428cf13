// SPDX-License-Identifier: Apache-2.0
// events.mjs CHROMIUM MEMORY TIME LIVES [FOLDER]: what is counted, in plain words and with its unit. MEMORY is a recording of
// time, allocations, calls and cycles (107-view-memory), TIME one of time and page faults, LIVES one of
// allocations and what became of them. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, memory, time, lives, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {keys, shoot, step, steps, text} = stepper(b, folder);

const NARROW = "\u202f";
const plain = (value) => JSON.parse(JSON.stringify(value).replaceAll(NARROW, " "));
const titles = () => b.evaluate(`[...document.querySelectorAll(".table [role=columnheader] .what")].map((e) => e.innerText)`);
const choose = (words) => b.evaluate(`(() => { const {select} = culprit.events;
	select.value = [...select.options].find((o) => o.innerText.startsWith(${JSON.stringify(words)})).value;
	select.dispatchEvent(new Event("change")); })()`);
// Names and texts of the details.
const details = async () => Object.fromEntries(plain(await b.evaluate(`[...document.querySelectorAll(".detail dt")].map((e) =>
	[e.innerText, e.nextSibling.innerText])`)));

await step("groups what is counted by event, in plain words and with how much there is", async () => {
	await b.open(pageUrl(memory));
	const groups = plain(await b.evaluate(`[...document.querySelectorAll(".events optgroup")].map((g) => [g.label,
		...[...g.children].map((o) => o.innerText)])`));
	assert.deepEqual(groups, [["Time", "on a CPU – 900 ms"],
		["Memory", "allocated bytes – 46.0 MB", "allocations – 55 000 calls", "alive at the peak – 30.8 MB",
			"still alive at the end – 900 kB", "temporary allocations – 50 000 calls", "samples – 100 allocations"],
		["Calls", "of functions – 12 calls"], ["Events", "cycles – 500 samples"]]);
	assert.equal(await text(".events span"), "Time:");
	await b.open(pageUrl(time));
	assert.deepEqual(await b.evaluate(`[...document.querySelectorAll(".events optgroup")].map((g) => g.label)`), ["Time", "Events"]);
});
for (const [width, dark] of [[1500, false], [800, true]])
	await step(`chooses another by mouse and keyboard, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(memory) + "#v=callers");
		assert.deepEqual(await titles(), ["scope", "CPU time total", "CPU time self", "allocated total", "allocated self"]);
		await choose("still alive");
		assert.equal(await text(".events span"), "Memory:");
		assert.deepEqual(await titles(), ["scope", "CPU time total", "CPU time self", "not freed total", "not freed self"]);
		await keys("Home");
		const first = await details();
		assert.equal(first["not freed self"], "100.00% · 900 kB"); // bytes have no error of counting
		assert.equal(first.allocated, "total 100.00% · 46.0 MB, self 100.00% · 46.0 MB");
		assert.equal(first.allocations, "total 100.00% · 55 000 calls, self 100.00% · 55 000 calls");
		assert.ok(!("calls" in first) && !("CPU time" in first), "there is none of it here");
		assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
		await shoot(`events-${width}-${dark ? "dark" : "light"}`);
		const seen = [];
		for (let i = 0; i < 9; i++) {
			await keys("m");
			seen.push(await b.evaluate("culprit.events.select.selectedOptions[0].innerText.split(' – ')[0]"));
		}
		assert.deepEqual(seen, ["temporary allocations", "samples", "of functions", "cycles", "on a CPU", "allocated bytes",
			"allocations", "alive at the peak", "still alive at the end"]);
		await choose("of functions");
		assert.deepEqual(await titles(), ["scope", "CPU time total", "CPU time self", "calls"]);
		await b.until("location.hash.includes('m=7')");
		await b.open(await b.evaluate("location.href"));
		assert.equal(await text(".events span"), "Calls:");
		await keys("/");
		await b.type("^load");
		await keys("Enter", "Escape");
		assert.equal((await details()).calls, "100.00% · 12 calls");
		assert.equal((await details())["each call"], "75.0 ms"); // 900 ms in 12 calls
		assert.equal((await details())["each allocation"], "10.0 kB");
		await keys("c");
		assert.deepEqual(await b.evaluate(`[...document.querySelectorAll("dialog legend")].map((e) => e.innerText)`),
			["Time", "Memory", "Calls", "Events"]);
		await keys("Escape");
	});

const places = () => b.evaluate(`${ROWS_SEEN}.map((r) => [...r.querySelectorAll(".label, .amount")].map((e) => e.innerText))`).then(plain);
const pressed = () => b.evaluate(`document.querySelector(".legend.memory [aria-pressed=true]").innerText`).then(plain);
for (const [width, dark] of [[1500, false], [1500, true], [800, false], [800, true]])
	await step(`lists the places that allocate, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(memory));
		await b.click("#tab-memory");
		assert.equal(await text(".events span"), "Memory:");
		assert.deepEqual(await titles(), ["place that allocates", "at the peak", "not freed", "allocated", "allocations", "temporary"]);
		assert.equal(await pressed(), "Peak: 30.8 MB");
		// What is of libraries is left out.
		assert.deepEqual(await places(), [["load", "30.0 MB", "", "40.0 MB", "4 000", ""], ["forget", "800 kB", "900 kB", "1.00 MB", "1 000", ""],
			["format", "100 B", "", "5.00 MB", "50 000", "50 000"]]);
		assert.equal(await text(".detail h2"), "load");
		assert.deepEqual(await details(), {"at the peak": "97.40% · 30.0 MB", "not freed": "0.00% · 0 B", allocated: "86.96% · 40.0 MB",
			allocations: "4 000, 10.0 kB each", temporary: "0.00% of them"});
		assert.deepEqual(await b.evaluate(`[...document.querySelectorAll(".path .label")].map((e) => e.innerText)`), ["load", "main"]);
		assert.ok(await b.evaluate(`document.documentElement.scrollWidth <= innerWidth &&
			document.querySelector(".table .scroller").scrollWidth <= document.querySelector(".table .scroller").clientWidth`), "it is cut off");
		await shoot(`memory-${width}-${dark ? "dark" : "light"}`);
	});
await step("orders places by leaks and churn, by mouse and keyboard", async () => {
	await b.open(pageUrl(memory) + "#v=memory");
	await b.click(".legend.memory button:nth-of-type(2)");
	assert.equal((await places())[0][0], "forget");
	assert.equal(await pressed(), "Leaks: 900 kB");
	await b.evaluate(`document.querySelector(".legend.memory button:nth-of-type(3)").focus()`);
	await keys("Enter");
	assert.equal((await places())[0][0], "format");
	assert.equal(await pressed(), "Churn: 55 000 calls");
	await b.evaluate("culprit.focus()");
	await keys("Home", "ArrowRight", "ArrowDown");
	assert.equal(await text(".detail h2"), "main");
	await keys("<");
	assert.equal(await b.evaluate("culprit.state.metric"), 2, "the column before is that of bytes");
	assert.equal((await places())[0][0], "load");
	await b.until("location.hash.includes('v=memory') && /om=k|om=n/.test(location.hash)");
	await b.open(await b.evaluate("location.href"));
	assert.equal((await places())[0][0], "load");
	assert.deepEqual((await places()).map(([name]) => name), ["load", "format", "main", "forget"], "what was open is not");
});
await step("filters, searches and goes elsewhere from a place", async () => {
	await b.open(pageUrl(memory) + "#v=memory");
	await keys("/");
	await b.type("form");
	await keys("Enter", "Escape");
	assert.equal(await text(".detail h2"), "format");
	await keys("x");
	assert.deepEqual((await places()).map(([name]) => name), ["load", "forget"]);
	await keys("u", "6");
	assert.equal(await b.evaluate("culprit.state.view"), "sandwich");
	await keys("Escape", "M");
	assert.match(await text(".menu"), /Copy stack/);
	await keys("Escape", "2", "7");
	assert.equal(await b.evaluate("culprit.state.view"), "memory");
});
await step("another measure than one of memory leaves that view", async () => {
	await b.open(pageUrl(memory) + "#v=memory");
	await choose("allocations");
	assert.equal(await b.evaluate("culprit.state.view"), "memory");
	assert.equal((await places())[0][0], "format");
	await choose("on a CPU");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
	assert.equal(await text(".detail h2"), "load");
});
await step("says how long memory lives, who frees it, and what could be done", async () => {
	await b.open(pageUrl(lives) + "#v=memory");
	assert.equal(await text(".detail h2"), "load");
	const first = await details();
	assert.equal(first.lifetime, "2.00 µs on average");
	assert.equal(first["short-lived"], "75.00% of them: freed within 10 µs");
	assert.equal(first["freed elsewhere"], "0.25% of them: by another thread");
	assert.equal(plain(await text(".detail .hint")),
		"75.00% of 4 000 allocations were freed within 10 µs: keep the memory for the next time, or take it from a pool.");
	await b.click(".legend.memory button:nth-of-type(4)");
	assert.equal(await pressed(), "Frees: 4.00 MB");
	assert.deepEqual(await titles(), ["place that allocates", "frees", "at the peak", "allocated"]);
	assert.deepEqual((await places())[0].slice(0, 2), ["forget", "4.00 MB"]);
	assert.ok(await b.evaluate(`document.querySelector(".legend.memory button:nth-of-type(5)").hidden`), "nothing was mapped");
});
await step("a recording without allocations says so", async () => {
	await b.open(pageUrl(time) + "#v=memory");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
	assert.equal(await b.evaluate(`document.querySelector("#tab-memory").hidden`), true);
	await keys("7");
	assert.equal(await text(".said"), "No allocations were recorded: culprit record -e alloc COMMAND");
	await b.evaluate(`document.querySelector("#tab-overview").focus()`);
	await keys("ArrowLeft");
	assert.equal(await b.evaluate("culprit.state.view"), "sandwich", "the tabs that are there are a ring");
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
