// SPDX-License-Identifier: Apache-2.0
// What is compared, as part of the address of the page.

import {PERS} from "./compare_sides.js";

// Columns of the first base that is shown, and of the second.
export const COMPARED = ["old", "new", "difference", "change"];
export const COMPARE_COLUMNS = [...COMPARED, ...COMPARED.map((name) => name + "-self")];
export const BASES = ["total", "self", "both"];
export const WIDTHS = ["new", "old", "both"];

// compare: null (what the page was made for), "off", or {a, b: threads, per: one of PERS}. base: which samples
// are compared; "": total in top-down and the graph, self where functions are listed. noise, min: per cents,
// null: as the page has them. unsure: whether the graph has the colours of differences that may be chance, too.
export function newCompareState() {
	return {compare: null, base: "", shares: false, width: "new", noise: null, min: null, unsure: false};
}

// 0 1 2 5 -> "0-2.5"
function packNumbers(list) {
	const parts = [];
	const sorted = [...new Set(list)].sort((a, b) => a - b);
	for (let i = 0; i < sorted.length;) {
		let j = i;
		while (sorted[j + 1] === sorted[j] + 1)
			j++;
		parts.push(j > i ? `${sorted[i]}-${sorted[j]}` : String(sorted[i]));
		i = j + 1;
	}
	return parts.join(".");
}

function unpackNumbers(text, limit) {
	const list = [];
	for (const part of text.split(".")) {
		const found = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
		for (let n = found ? Number(found[1]) : 1; found && n <= Number(found[2] ?? found[1]) && n < limit; n++)
			list.push(n);
	}
	return list;
}

export function encodeCompare(p, state) {
	if (state.compare === "off")
		p.set("cmp", "off");
	else if (state.compare) {
		p.set("a", packNumbers(state.compare.a));
		p.set("b", packNumbers(state.compare.b));
		p.set("per", state.compare.per);
	}
	if (state.base)
		p.set("base", state.base);
	if (state.shares)
		p.set("share", "1");
	if (state.unsure)
		p.set("unsure", "1");
	if (state.width !== "new")
		p.set("w", state.width);
	for (const name of ["noise", "min"])
		if (state[name] !== null)
			p.set(name, state[name]);
}

export function decodeCompare(p, state, model) {
	const limit = model.header.threads.length;
	if (p.get("cmp") === "off")
		state.compare = "off";
	else if (p.has("a") && p.has("b")) {
		const a = unpackNumbers(p.get("a"), limit), other = new Set(a);
		const b = unpackNumbers(p.get("b"), limit).filter((thread) => !other.has(thread));
		const per = PERS.includes(p.get("per")) && (p.get("per") !== "file" || model.header.comparison) ?
			p.get("per") : "thread";
		if (a.length && b.length)
			state.compare = {a, b, per};
	}
	if (BASES.includes(p.get("base")))
		state.base = p.get("base");
	state.shares = p.get("share") === "1";
	state.unsure = p.get("unsure") === "1";
	if (WIDTHS.includes(p.get("w")))
		state.width = p.get("w");
	for (const name of ["noise", "min"]) {
		const value = p.has(name) && p.get(name) !== "" ? Number(p.get(name)) : NaN;
		if (value >= 0 && value <= 100)
			state[name] = value;
	}
}
