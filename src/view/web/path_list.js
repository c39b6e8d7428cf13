// SPDX-License-Identifier: Apache-2.0
// The calls that lead to a node, as a list of which each shows its source.

import {baseName} from "./format.js";
import {KIND, scopeFile, scopeShort} from "./model.js";
import {el} from "./dom.js";

const FRAMES_MAX = 60;

// The innermost first: {node, line: from which it calls the next (model.lines; 0: not known)}. Loops are left out.
export function pathTo(model, node, line = 0) {
	const {scope, parent, call} = model.nodes, {kind} = model.scopes, path = [];
	for (let at = node, next = line; at > 0; at = parent[at]) {
		if (kind[scope[at]] === KIND.loop)
			continue;
		path.push({node: at, line: next});
		next = call[at];
	}
	return path;
}

function frameOf(app, {node, line}) {
	const {model} = app, {scopes, lines} = model, scope = model.nodes.scope[node];
	const known = line > 0, file = known ? lines.file[line] : scopes.file[scope], number = known ? lines.line[line] : scopes.line[scope];
	const place = file ? `${baseName(known ? model.strings[file] : scopeFile(model, scope))}${number ? ":" + number : ""}` : "";
	return el("li", {}, el("button", {type: "button", class: "frame", disabled: !file, onclick: () =>
		app.source.show(file, number, number)}, el("span", {class: "label"}, scopeShort(model, scope)), el("span", {class: "place"}, place)));
}

// An element. line: of the innermost function, if that is known
export function pathList(app, title, node, line = 0) {
	const path = pathTo(app.model, node, line), more = path.length - FRAMES_MAX;
	return el("div", {class: "path"}, el("h3", {}, title), el("ol", {}, ...path.slice(0, FRAMES_MAX).map((frame) => frameOf(app, frame)),
		more > 0 ? el("li", {class: "note"}, `${more} more`) : null));
}
