// SPDX-License-Identifier: Apache-2.0
// The instructions of the function that a row is in, with a heading where their source line changes.

import {baseName} from "./format.js";
import {KIND} from "./model.js";
import {nodesOfScope} from "./views.js";

// The function around a node of the tree; 0: none.
function functionAround(model, node) {
	const {scope, parent} = model.nodes, {kind} = model.scopes;
	while (node > 0 && (kind[scope[node]] === KIND.loop || kind[scope[node]] === KIND.inline))
		node = parent[node];
	return node > 0 ? scope[node] : 0;
}

// The function that a row belongs to; 0: none. What is in several is shown in one of them.
export function functionOf(model, row) {
	const {kind} = model.scopes, {scope} = row;
	if (scope <= 0 || kind[scope] === KIND.function)
		return Math.max(0, scope);
	if (kind[scope] === KIND.loop && model.scopes.function[scope])
		return model.scopes.function[scope];
	return functionAround(model, row.node >= 0 ? row.node : nodesOfScope(model, scope)[0]);
}

// The place of a function's instructions in model.code; -1: they are not here.
export function codeOf({code, scopes}, scope) {
	const f = scope ? code.functions.get(`${scopes.module[scope]}:${scopes.high[scope]}:${scopes.low[scope]}`) : undefined;
	return f === undefined || code.first[f] === code.first[f + 1] ? -1 : f;
}

// Whether there are two ways to write them.
export function hasIntel(model, scope) {
	const f = codeOf(model, scope);
	return f >= 0 && model.code.intel[model.code.first[f]] > 0;
}

export function hasInstructions(model, scope) {
	return codeOf(model, scope) >= 0;
}

// What is shown of a function: headings {number, text}, gaps {number: 0} and instructions {address, text,
// insn}. null: its instructions are not here.
export function instructionEntries(model, scope, textOf, intel = false) {
	const {code} = model, f = codeOf(model, scope);
	if (f < 0)
		return null;
	const entries = [];
	for (let i = code.first[f]; i < code.first[f + 1]; i++) {
		const begins = i === code.first[f];
		if (code.gap[i])
			entries.push({number: 0, text: ""});
		if (code.line[i] && (begins || code.line[i] !== code.line[i - 1] || code.file[i] !== code.file[i - 1]))
			entries.push({number: code.line[i], file: code.file[i], heading: true,
				text: `${baseName(model.strings[code.file[i]])}:${code.line[i]}  ${textOf(code.file[i], code.line[i]).trim()}`});
		entries.push({insn: i, number: code.line[i], file: code.file[i],
			text: model.strings[intel && code.intel[i] || code.text[i]],
			address: code.address[i].toString(16)});
	}
	return entries;
}
