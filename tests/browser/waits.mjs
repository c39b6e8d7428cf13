// SPDX-License-Identifier: Apache-2.0
// waits.mjs CHROMIUM WAITS TIME [FOLDER]: who waits for whom, and waiting on the time line, by mouse and keyboard, wide and
// narrow, light and dark. WAITS is that of 108-view-waits, TIME a recording without waiting. Screenshots go to FOLDER.
import assert from "node:assert/strict";
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";
import {stepper} from "./steps.mjs";

const [program, waits, time, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {chips, keys, settle, shoot, step, steps, text} = stepper(b, folder);

const plain = (value) => JSON.parse(JSON.stringify(value).replaceAll("\u202f", " "));
const texts = (selector) => b.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].filter((e) => !e.closest("[hidden]"))
	.map((e) => e.innerText)`).then(plain);
// All are in sight, but some may be drawn a little later.
const pairs = async () => {
	await b.until("culprit.waits.list.rows.size === culprit.waits.pairs.length");
	return plain(await b.evaluate(`[...culprit.waits.list.rows].sort(([i], [j]) => i - j).map(([, row]) =>
		[...row.children].map((c) => c.innerText.trim()))`));
};
const share = (ms) => (100 * ms / 3270).toFixed(2) + "%"; // of all waiting
const PAIRS = [[`${share(900)}  900 ms`, "main (thread 10)", "end of a thread", "waiter (thread 11)", "89%"],
	[`${share(900)}  900 ms`, "waiter (thread 11)", "condition", "worker (thread 12)", "96%"],
	[`${share(870)}  870 ms`, "worker (thread 12)", "sleep", "an interrupt", ""],
	[`${share(500)}  500 ms`, "reader (thread 13)", "pipe", "spinner (thread 14)", "0%"],
	[`${share(50)}  50.0 ms`, "reader (thread 13)", "lock", "a thread that is not recorded", ""],
	[`${share(50)}  50.0 ms`, "reader (thread 13)", "pipe", "what is not known", ""]];
const rowOf = (name) => b.evaluate(`culprit.timeline.rows.findIndex((r) => culprit.model.header.threads[r.thread]?.name === "${name}")`);
// Where a time of a thread is, in the page.
const placeOf = async (name, ms) => b.evaluate(`(() => { const t = culprit.timeline, f = t.canvas.getBoundingClientRect(), row = ${await rowOf(name)};
	return {x: f.x + t.xOf(${ms} * 1000), y: f.y + 22 + (t.tops[row] + t.tops[row + 1]) / 2}; })()`);
const colourAt = async (name, ms) => b.evaluate(`(() => { const t = culprit.timeline, row = ${await rowOf(name)};
	return [...t.canvas.getContext("2d").getImageData(t.xOf(${ms} * 1000), 22 + t.tops[row] + t.highOf(row) - 12, 1, 1).data].join(); })()`);
const clickAt = async ({x, y}) => {
	for (const type of ["mouseMoved", "mousePressed", "mouseReleased"])
		await b.call("Input.dispatchMouseEvent", {type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: 1});
};
// What is in sight fits.
const fits = () => b.evaluate(`document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll(".waits, .waitlist .scroller")]
	.every((e) => e.scrollWidth <= e.clientWidth)`);

for (const [width, dark] of [[1500, false], [1500, true], [800, false], [800, true]])
	await step(`shows who waits for whom, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(waits));
		await b.click("#tab-waits");
		assert.deepEqual(await pairs(), PAIRS);
		assert.deepEqual(await texts(".reason"), ["condition 28%", "end of a thread 28%", "sleep 27%", "pipe 17%", "lock 2%"]);
		assert.deepEqual(await texts(".chain"), ["900 ms\nmain ← waiter ← worker ← sleep", "900 ms\nwaiter ← worker ← sleep",
			"500 ms\nreader ← spinner, which runs"]);
		assert.equal(await text(".detail h2"), "main waits for waiter");
		assert.ok(await fits(), "it is cut off");
		await shoot(`waits-${width}-${dark ? "dark" : "light"}`);
	});
await b.size(1500, 900);
await b.dark(false);
await step("shows the paths of who waits and of who wakes", async () => {
	await b.open(pageUrl(waits) + "#v=waits");
	await b.click(".wait:not(.head):nth-of-type(2)");
	assert.equal(await text(".detail h2"), "waiter waits for worker");
	assert.deepEqual(await texts(".path h3"), ["waiter waits here: 100.00%", "worker waits (sleep) here: 95.60% of its time",
		"worker runs here: 4.40% of its time"]);
	assert.deepEqual(await texts(".path:nth-of-type(1) .label"), ["futex_wait", "pthread_cond_wait", "wait_for_job"]);
	assert.deepEqual(await texts(".path:nth-of-type(2) .label"), ["hrtimer_nanosleep", "clock_nanosleep", "work"]);
	assert.match(await text(".detail dl"), /worker waited itself for 96% of this time/);
	await keys("1"); // the same place in the tree
	assert.equal(await text(".row.selected:not([hidden]) .label"), "wait_for_job");
	await keys("8");
	assert.equal(await text(".detail h2"), "waiter waits for worker");
});
await step("moves by keyboard, searches, and has it in the address", async () => {
	await b.open(pageUrl(waits) + "#v=waits");
	assert.equal(await b.evaluate("document.activeElement.className"), "waitlist");
	await keys("ArrowDown", "ArrowDown");
	assert.equal(await text(".detail h2"), "worker waits: sleep");
	await keys("End");
	assert.equal(await text(".wait.selected span"), await text(".wait[aria-rowindex='7'] span"));
	await keys("Home", "/");
	await b.type("spinner");
	await keys("Enter", "Escape");
	assert.equal(await text(".detail h2"), "reader waits for spinner");
	await b.until("location.hash.includes('wait=3.8.')");
	await b.open(await b.evaluate("location.href"));
	assert.equal(await text(".detail h2"), "reader waits for spinner");
	await b.click(".chain:nth-of-type(2)");
	assert.equal(await text(".detail h2"), "waiter waits for worker");
});
await step("keeps the waits for one reason, in all views", async () => {
	await b.open(pageUrl(waits) + "#v=waits&m=1");
	await b.click(".reason:nth-of-type(4)");
	assert.deepEqual((await pairs()).map(([, who]) => who), ["reader (thread 13)", "reader (thread 13)"]);
	assert.deepEqual(await chips(), ["waits for: pipe"]);
	assert.equal((await texts(".reason")).length, 5, "the others can still be chosen");
	assert.equal(await b.evaluate(`document.activeElement.getAttribute("aria-pressed")`), "true");
	await keys("2");
	await b.until("document.querySelectorAll('.row:not(.head) .label').length == 3"); // the switch, and its rows
	assert.deepEqual((await texts(".row:not(.head) .label")).sort(), ["anon_pipe_read", "el0_svc", "read_often"]);
	await b.until("location.hash.includes('why=')");
	await b.open(await b.evaluate("location.href"));
	assert.deepEqual(await chips(), ["waits for: pipe"]);
	await keys("5"); // there the others are grey
	assert.equal(await colourAt("waiter", 200), await colourAt("spinner", 200));
	assert.notEqual(await colourAt("reader", 300), await colourAt("waiter", 200));
	await keys("u", "8");
	assert.equal((await pairs()).length, 6);
	await b.evaluate(`document.querySelector(".reason").focus()`);
	await keys("Enter");
	assert.deepEqual(await chips(), ["waits for: condition"]);
	await keys("u", "t");
	await b.click("dialog .thread:nth-of-type(1) input");
	await b.click("dialog .main");
	assert.ok((await pairs()).length < 6, "threads are not left out");
	await keys("u");
	await b.evaluate("culprit.setMetric(0)"); // which does not tell of waiting
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
});
for (const [width, dark] of [[1500, false], [800, true]])
	await step(`draws waiting on the time line, ${width} pixels wide, ${dark ? "dark" : "light"}`, async () => {
		await b.size(width, 900);
		await b.dark(dark);
		await b.open(pageUrl(waits) + "#v=time");
		const condition = await colourAt("waiter", 200), sleep = await colourAt("worker", 200), work = await colourAt("worker", 400);
		assert.equal(new Set([condition, sleep, work, await colourAt("spinner", 200), await colourAt("reader", 50)]).size, 5);
		assert.equal(await colourAt("waiter", 600), condition);
		const named = await texts(".timeline .modules .key");
		assert.ok(["spin", "work", "waits: condition", "waits: sleep", "waits: pipe", "waits: end of a thread"].every((name) => named.includes(name)),
			JSON.stringify(named));
		await clickAt(await placeOf("waiter", 200));
		await settle();
		assert.match((await texts(".detail dl"))[0], /waits for\s+condition, 400 ms\s+woken by\s+worker \(thread 12\)/);
		assert.equal(await b.evaluate("culprit.timeline.arrows"), 1, "no arrow from worker");
		assert.equal(await text(".detail h2"), "wait_for_job");
		assert.ok(await b.evaluate("document.documentElement.scrollWidth <= innerWidth"));
		await b.move(5, 5);
		await shoot(`timeline-waits-${width}-${dark ? "dark" : "light"}`);
	});
await step("goes from a wait to who ended it, and shows whom a thread woke", async () => {
	await b.size(1500, 900);
	await b.open(pageUrl(waits) + "#v=time");
	await keys("j");
	assert.match(await text(".said"), /^Select a time in which a thread waits first/);
	await clickAt(await placeOf("waiter", 200));
	await keys("j");
	assert.equal(await text(".detail h2"), "work");
	assert.equal(await b.evaluate("culprit.timeline.arrows"), 1, "the wait that it ended has no arrow");
	await clickAt(await placeOf("waiter", 600));
	await b.click(".detail .link");
	assert.equal(await b.evaluate("culprit.model.header.threads[culprit.state.moment[0]].name"), "worker");
	await clickAt(await placeOf("worker", 200));
	assert.match((await texts(".detail dl"))[0], /woken by\s+an interrupt/);
	await keys("j");
	assert.match(await text(".said"), /^No thread that is in sight is known to have ended this wait/);
	await b.move(...Object.values(await placeOf("reader", 300)));
	assert.match(await text(".timeline .tip"), /^waits for: pipe\nin read_often\nfrom 0.100000 s, for 500\u202fms\nwoken by spinner \(thread 14\)/);
});
await step("a recording without waiting says so", async () => {
	await b.open(pageUrl(time) + "#v=waits");
	assert.equal(await b.evaluate("culprit.state.view"), "overview");
	await keys("8");
	assert.equal(await text(".said"), "No waiting was recorded: culprit record -e blocked COMMAND (or -e wall)");
	assert.equal(await b.evaluate(`document.querySelector("#tab-waits").hidden`), true);
});

await b.close();
console.log(`${steps.length} steps: ${steps.join(", ")}`);
