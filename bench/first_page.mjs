// SPDX-License-Identifier: Apache-2.0
// first_page.mjs CHROMIUM PAGE PICTURE: opens the page at 1500 x 900, writes a screenshot, and prints the names of the
// functions that its list shows, as JSON.
import {Browser} from "../tests/browser/browser.mjs";
import {pageUrl} from "../tests/browser/page.mjs";
import {ROWS_SEEN} from "../tests/browser/steps.mjs";

const [program, page, picture] = process.argv.slice(2);
const browser = await new Browser(program).start();
await browser.size(1500, 900);
await browser.open(pageUrl(page));
const names = await browser.evaluate(`${ROWS_SEEN}.filter((row) => row.getBoundingClientRect().bottom <= innerHeight)
	.map((row) => row.querySelector(".label").innerText)`);
await browser.screenshot(picture);
await browser.close();
console.log(JSON.stringify(names));
