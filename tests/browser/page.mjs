// SPDX-License-Identifier: Apache-2.0
// The viewer's modules and the model of a page, for tests without a browser.
import {readFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";
import {gunzipSync} from "node:zlib";

const web = join(dirname(fileURLToPath(import.meta.url)), "../../src/view/web");

// The files have no package around them that calls them modules: they are read as such by a data URL
// of all of them, as the build puts them together.
export async function loadModules(...names) {
	const text = names.map((name) => readFileSync(join(web, name + ".js"), "utf8")
		.replace(/^import\s[^;]*;\n/gm, "")).join("\n");
	return import("data:text/javascript;base64," + Buffer.from(text).toString("base64"));
}

export function readPage(path) {
	const html = readFileSync(path, "utf8");
	const data = /<script type="text\/plain" id="data">([A-Za-z0-9+/=]*)<\/script>/.exec(html);
	if (!data)
		throw new Error(`${path}: no data`);
	return {html, bytes: new Uint8Array(gunzipSync(Buffer.from(data[1], "base64")))};
}

export function pageUrl(path) {
	return pathToFileURL(path).href;
}

// The page with the tree in sight.
export function treeUrl(path) {
	return pageUrl(path) + "#v=tree";
}
