// SPDX-License-Identifier: Apache-2.0
// live_logic.mjs BEFORE NOW: pages of one recording, earlier and later, in which the same rows have other
// numbers: what was looked at is found again.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";
import {loadModules, readPage} from "./page.mjs";

// All of the page's modules but the one that starts it, in the order of the build.
const build = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "../../src/view/meson.build"), "utf8");
const names = [...build.matchAll(/'web\/([a-z_]+)\.js'/g)].map((match) => match[1])
	.filter((name) => name !== "app" && name !== "start");
const m = await loadModules(...names);
const [before, now] = process.argv.slice(2).map((page) => m.parseModel(readPage(page).bytes));

// As much of the page as is needed.
function newApp(model, state) {
	const app = {
		model, state: {...m.newState(), ...state}, shown: 0,
		open: {tree: new Set(), callers: new Set(), flat: new Set()},
		selectedBy: {tree: "", callers: "", flat: ""}, trail: {clear() {}},
		source: {list: {top: 7, scrollTo() {}}},
		selectedKey: () => app.selectedBy.tree,
		select() {
			const {filters, threads, zoom} = app.state;
			app.selection = m.computeSelection(app.model, {filters, threads: threads ? new Set(threads) : null, zoom},
				app.selection);
			app.views = {};
		},
		view: (name) => app.views[name] ||= {
			tree: () => new m.TopDown(app.model, app.selection),
			callers: () => new m.BottomUp(app.model, app.selection),
			flat: () => new m.Flat(app.model, app.selection, app.state.flatten),
		}[name](),
		warned: {className: "", textContent: ""},
		render: () => app.shown++,
		save: () => {},
	};
	app.select();
	return app;
}
// The way to a row: its name and those of the rows above it.
function path(view, model, key) {
	const names = [];
	for (let at = key; at; at = view.parentKey(at)) {
		const row = view.rowOf(at);
		assert.ok(row, `no row ${at}`);
		names.unshift(row.scope < 0 ? row.label : m.scopeName(model, row.scope));
	}
	return names.join(" > ");
}
function keysOf(view, rows, depth) {
	return depth ? rows.flatMap((row) => [row.key, ...keysOf(view, view.level(row).rows(), depth - 1)]) : [];
}

let moved = 0, checks = 0;
for (const name of ["tree", "callers", "flat"]) {
	const probe = newApp(before, {});
	for (const key of keysOf(probe.view(name), probe.view(name).level(null).rows(), 5)) {
		const app = newApp(before, {});
		app.open[name].add(key);
		app.selectedBy[name] = key;
		const wanted = path(app.view(name), before, key);
		m.replaceModel(app, now);
		assert.equal(app.model, now);
		assert.equal(path(app.view(name), now, app.selectedBy[name]), wanted, name);
		assert.deepEqual([...app.open[name]], [app.selectedBy[name]]);
		moved += app.selectedBy[name] !== key;
		checks++;
	}
}
assert.ok(moved > 5, "the test tells nothing: rows have the same numbers");

// Zoom and threads.
for (let node = 1; node < before.nodes.count; node++) {
	const app = newApp(before, {zoom: node, threads: [0]});
	const tid = before.header.threads[0].tid;
	const way = (model, at) => at > 0 ? [...way(model, model.nodes.parent[at]), m.scopeName(model, model.nodes.scope[at])] : [];
	const wanted = way(before, node);
	m.replaceModel(app, now);
	assert.deepEqual(way(now, app.state.zoom), wanted);
	assert.deepEqual(app.state.threads.map((i) => now.header.threads[i].tid), [tid]);
	assert.equal(app.source.list.top, 7);
	checks++;
}

// What is not there any more is not looked at any more; the other way round, too.
const app = newApp(now, {});
const keys = keysOf(app.view("tree"), app.view("tree").level(null).rows(), 9);
app.open.tree = new Set(keys);
app.selectedBy.tree = keys.at(-1);
m.replaceModel(app, before);
assert.ok(app.open.tree.size <= before.nodes.count && app.shown === 1);
for (const key of app.open.tree)
	assert.ok(app.view("tree").rowOf(key));
assert.match(app.warned.textContent, /^(About|⚠ [0-9]+ notes?)$/);
console.log(`${checks} rows found again, ${moved} of them elsewhere`);
