// SPDX-License-Identifier: Apache-2.0
// What code costs and why it waits, in words.

import {costOf} from "./flow.js";
import {baseName, formatCount} from "./format.js";

// 20 670 244 -> "20.7M"
export function formatRuns(runs) {
	const [size, letter] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => runs >= size * 0.9995) || [1, ""];
	const value = runs / size;
	return (size === 1 || value >= 99.95 ? Math.round(value) : value.toFixed(value >= 9.995 ? 1 : 2)) + letter;
}

export function formatCycles(cycles) {
	return cycles >= 99.95 ? formatCount(cycles) : cycles.toFixed(cycles >= 9.995 ? 1 : 2);
}

// "3.1-5.0", or one number where both are near
export function formatRange(low, high, format = formatCycles) {
	return high - low < 0.05 * high ? format(high) : `${format(low)}-${format(high)}`;
}

export function wholePercents(part, whole) {
	const percent = whole > 0 ? 100 * part / whole : 0;
	return percent > 0 && percent < 1 ? "<1%" : `${Math.round(percent)}%`;
}

export function causeName(model, cause) {
	return model.header.causes[cause];
}

// The worst reason of a sum, and how much of something is lost to it: "data cache misses 12%"; "": nothing is lost.
export function worstReason(model, sum, whole) {
	const [worst] = sum.lost > 0 ? sum.reasons() : [];
	return worst ? `${causeName(model, worst.cause)} ${wholePercents(Math.min((worst.low + worst.high) / 2, sum.lost), whole)}` : "";
}

// Behind an instruction that waits: "12.3 cycles, lost to data cache misses".
export function insnWhy(model, insn) {
	const cost = costOf(model, insn);
	if (!cost || !cost.lost)
		return "";
	const [worst] = cost.blames;
	return `${formatCycles(cost.cycles)} cycles` + (worst ? `, lost to ${causeName(model, worst.cause)}` : "");
}

// All that is known of an instruction, a line each.
export function insnWords(model, insn) {
	const cost = costOf(model, insn), {code} = model;
	if (!cost)
		return [];
	const words = [`${formatRuns(cost.runs)} executions, ${formatCycles(cost.cycles)} cycles each`];
	if (cost.lost)
		words[0] += `, ${formatCycles(cost.lost)} lost`;
	for (const {cause, low, high, by} of cost.blames) {
		const place = by >= 0 && by !== insn ? ` by ${code.address[by].toString(16)}` +
			(code.line[by] ? ` (${baseName(model.strings[code.file[by]])}:${code.line[by]})` : "") : "";
		words.push(`${causeName(model, cause)}: ${formatRange(low, high)} cycles${place}`);
	}
	return words;
}

// Behind a line of source: "lost: data cache misses 12%", of all cycles.
export function lineWhy(model, sum, whole) {
	const worst = sum ? worstReason(model, sum, whole) : "";
	return worst ? `lost to ${worst}` : "";
}

export function lineWords(model, sum, whole) {
	return !sum ? [] : [`${wholePercents(sum.lost, whole)} of the cycles that are explained are lost here`,
		...sum.reasons().map(({cause, low, high}) => `${causeName(model, cause)}: ${formatRange(low, high, (part) => wholePercents(part, whole))}`)];
}
