// SPDX-License-Identifier: Apache-2.0
// live.mjs CHROMIUM URL RECORDER [FOLDER]: a page that is served while the process RECORDER records. What is
// looked at stays while newer samples come; the end is told.
import assert from "node:assert/strict";
import {join} from "node:path";
import {Browser} from "./browser.mjs";
import {ROWS_SEEN, stepper} from "./steps.mjs";

const [program, url, recorder, folder] = process.argv.slice(2);
const b = await new Browser(program).start();
const {keys, step, steps} = stepper(b, folder);

const mark = () => b.evaluate(`document.querySelector(".live")?.innerText ?? ""`);
const samples = async () => Number((await mark()).replace(/^.*·|[^0-9]/g, ""));
const selected = () => b.evaluate(`document.querySelector(".row.selected:not([hidden]) .label")?.innerText ?? ""`);
const rows = () => b.evaluate(`${ROWS_SEEN}
	.map((r) => r.querySelector(".label").innerText)`);
// Until there are more samples than before.
async function newer() {
	const before = await samples();
	await b.until(`Number(document.querySelector(".live").innerText.replace(/^.*·|[^0-9]/g, "")) > ${before}`, 20000);
}

await b.size(1400, 900);
await step("opens live", async () => {
	await b.open(url + "#v=tree");
	assert.match(await mark(), /^● live · [0-9]/);
});
await step("keeps the selected row and open rows of the tree", async () => {
	await keys("h");
	const name = await selected(), open = await rows();
	assert.ok(name && open.length > 4);
	await newer();
	assert.equal(await selected(), name);
	for (const row of open)
		assert.ok((await rows()).includes(row), `${row} is gone`);
});
await step("keeps those of the other views", async () => {
	for (const view of ["2", "3"]) {
		await keys(view, "Home", "ArrowDown", "ArrowRight", "ArrowDown");
		const name = await selected(), count = (await rows()).length;
		await newer();
		assert.equal(await selected(), name);
		assert.ok((await rows()).length >= Math.min(count, 3));
	}
	await keys("1");
});
await step("keeps zoom and filters", async () => {
	await keys("z");
	const zoom = await b.evaluate(`document.querySelector(".chip")?.innerText`);
	assert.match(zoom, /zoom/);
	await newer();
	assert.equal(await b.evaluate(`document.querySelector(".chip")?.innerText`), zoom);
	await keys("u");
});
await step("follows a link to what is shown", async () => {
	const before = await b.evaluate("location.hash");
	assert.ok(before.length > 1);
});
await step("pauses and goes on", async () => {
	await keys("p");
	assert.match(await mark(), /paused/);
	const before = await samples();
	await new Promise((r) => setTimeout(r, 3000));
	assert.equal(await samples(), before);
	await b.click(".live");
	await b.until(`document.querySelector(".live").innerText.includes("live")`);
	await newer();
});
await step("asks nobody else", async () => {
	const others = b.requests.filter((u) => u !== "about:blank" && u !== url && !u.startsWith(url));
	assert.deepEqual(others.filter((u) => !u.startsWith("data:")), []);
});
if (folder)
	await b.screenshot(join(folder, "live.png"));
await step("tells the end", async () => {
	process.kill(Number(recorder), "SIGTERM");
	await b.until(`document.querySelector(".live").innerText.includes("ended")`, 20000);
	assert.equal(await b.evaluate(`document.querySelector(".live").disabled`), true);
	const asked = b.requests.length;
	await new Promise((r) => setTimeout(r, 2500));
	assert.equal(b.requests.length, asked);
});
await b.close();
console.log(`${steps.length} steps: ${steps.join("; ")}`);
