// SPDX-License-Identifier: Apache-2.0
// The calls that lead to a node, as a list of which each shows its source.

import {baseName} from "./format.js";
import {KIND, scopeShort} from "./model.js";
import {el} from "./dom.js";

const FRAMES_MAX = 60;

// The innermost first: {node, line: from which it calls the next (model.lines; 0: not known)}. Loops are left out, and of
// the kernel's functions all but the innermost (left: how many).
export function pathTo(model, node, line = 0) {
	const {scope, parent, call} = model.nodes, {kind} = model.scopes, path = [];
	for (let at = node, next = line; at > 0; at = parent[at]) {
		if (kind[scope[at]] === KIND.loop)
			continue;
		const last = path.at(-1);
		if (kind[scope[at]] === KIND.kernel && last && kind[scope[last.node]] === KIND.kernel)
			last.left++;
		else
			path.push({node: at, line: next, left: 0});
		next = call[at];
	}
	return path;
}

function frameOf(app, {node, line, left}) {
	const {model} = app, {scopes, lines} = model, scope = model.nodes.scope[node];
	const file = line ? lines.file[line] : scopes.file[scope], number = line ? lines.line[line] : scopes.line[scope];
	const kernel = scopes.kind[scope] === KIND.kernel ? `kernel${left ? ` (${left} more)` : ""}` : "";
	const place = file ? `${baseName(model.strings[file])}${number ? ":" + number : ""}` : kernel;
	return el("li", {}, el("button", {type: "button", class: "frame", disabled: !file, onclick: () =>
		app.source.show(file, number, number)}, el("span", {class: "label"}, scopeShort(model, scope)),
	el("span", {class: "place"}, place)));
}

// An element. line: of the innermost function, if that is known
export function pathList(app, title, node, line = 0) {
	const path = pathTo(app.model, node, line), more = path.length - FRAMES_MAX;
	const frames = path.slice(0, FRAMES_MAX).map((frame) => frameOf(app, frame));
	return el("div", {class: "path"}, el("h3", {}, title), el("ol", {}, ...frames,
		more > 0 ? el("li", {class: "note"}, `${more} more`) : null));
}
