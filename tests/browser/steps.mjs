// SPDX-License-Identifier: Apache-2.0
// What all tests in a browser do: step by step, ended by the first that fails.
import assert from "node:assert/strict";
import {join} from "node:path";

// Code: the elements of the table's rows that are in sight, top to bottom.
export const ROWS_SEEN = `[...culprit.table.list.rows].filter(([i]) => { const {top, high, height} = culprit.table.list;
	return (i + 1) * height > top && i * height < top + high; }).sort(([i], [j]) => i - j).map(([, row]) => row)`;

// b: a Browser. folder: where screenshots go, if anywhere.
export function stepper(b, folder) {
	const steps = [];
	const settle = () => b.evaluate("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))");
	return {
		steps, settle,
		text: (selector) => b.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? null`),
		count: (selector) => b.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`),
		chips: () => b.evaluate(`[...document.querySelectorAll(".chip")].map((c) => c.firstChild.data)`),
		shoot: async (name) => folder && (await settle(), await b.screenshot(join(folder, name + ".png"))),
		keys: async (...list) => { for (const key of list) await b.key(key); },
		async step(name, run) {
			try {
				await run();
				await settle();
				assert.deepEqual(b.problems, [], "the console has errors");
				steps.push(name);
			} catch (error) {
				await b.screenshot(join(folder || ".", "failed.png")).catch(() => {});
				console.log(`${name}: ${error.stack}`);
				await b.close();
				process.exit(1);
			}
		},
	};
}
