// SPDX-License-Identifier: Apache-2.0
// measure_flow.mjs CHROMIUM PAGE [COUNT]: how long it takes to draw the control flow of the COUNT functions (3) with the most
// blocks: CPU time of the page's main thread, until it is drawn; the median of 5.
import {Browser} from "./browser.mjs";
import {pageUrl} from "./page.mjs";

const [program, page, most = 3] = process.argv.slice(2), ROUNDS = 5;
const b = await new Browser(program).start();
await b.size(1500, 900);
await b.call("Performance.enable", {timeDomain: "threadTicks"});
await b.open(pageUrl(page) + "#v=flow");
const taken = async () => (await b.call("Performance.getMetrics")).metrics.find(({name}) => name === "TaskDuration").value * 1000;
const sizes = await b.evaluate(`Array.from({length: culprit.model.flow.count}, (_, i) => {
	const {first, firstEdge} = culprit.model.flow;
	return [i, first[i + 1] - first[i], firstEdge[i + 1] - firstEdge[i]]; })`);
for (const [index, blocks, edges] of sizes.sort((a, b) => b[1] - a[1]).slice(0, Number(most))) {
	const times = [];
	for (let i = 0; i < ROUNDS; i++) {
		const before = await taken();
		await b.evaluate(`new Promise((done) => {
			culprit.flow.drawn = -1;
			culprit.flow.show(${index});
			requestAnimationFrame(() => setTimeout(done)); })`);
		times.push(await taken() - before);
	}
	console.log(`${await b.evaluate(`culprit.flow.nameOf(${index})`)}: ${blocks} blocks, ${edges} edges: ${Math.round(times.sort((x, y) => x - y)[ROUNDS >> 1])} ms`);
}
await b.close();
