// SPDX-License-Identifier: Apache-2.0
// The differential graph: boxes as wide as one side, in the colour of what changed. Orange is more, blue is
// less, which the colour-blind tell apart; grey is not told from chance. A sign says it, too.

import {scopeShort} from "./model.js";
import {comparedLines, formatRatio} from "./compare_show.js";
import {el} from "./dom.js";

const SIDES = {old: 0, new: 1, both: 2};

// By node: how wide boxes are.
export function comparedWidths(app) {
	return app.comparison.widths(SIDES[app.state.width]);
}

// theme: {style, colours: those that are known}.
export function comparedColour(app, node, {style, colours}) {
	const strength = app.comparison.strength(node, app.state.unsure), key = "change" + strength;
	if (!colours.has(key))
		colours.set(key, style.getPropertyValue(!strength ? "--same" :
			`--${strength > 0 ? "more" : "less"}-${Math.abs(strength)}`).trim());
	return colours.get(key);
}

// "solve +12.0%": what changed for certain says how much. "solve +12.0%?": or perhaps. Where there is no room
// (in letters) for that, the sign stands first.
export function comparedLabel(app, node, room) {
	const {comparison, model} = app, name = scopeShort(model, model.nodes.scope[node]);
	const strength = comparison.strength(node, app.state.unsure);
	if (!strength)
		return name;
	const old = comparison.widths(0).total(node), now = comparison.widths(1).total(node);
	const change = old > 0 ? formatRatio(now / old) : `+${comparison.names[1]}`;
	const text = `${name} ${change}${comparison.isSure(node) ? "" : "?"}`;
	return text.length <= room ? text : `${strength > 0 ? "+" : "\u2212"} ${name}`;
}

// What the pointer shows of a node: elements.
export function comparedTip(app, node) {
	const row = app.view("tree").row(node);
	return comparedLines(app, row).map(([name, text]) => el("div", {}, `${name}: ${text}`));
}

// The key of the colours.
export function comparedLegend(app) {
	const [, now] = app.comparison.names, list = [];
	for (let level = 5; level >= 1; level--)
		list.push(el("span", {class: `swatch less-${level}`}));
	list.push(el("span", {class: "swatch same"}));
	for (let level = 1; level <= 5; level++)
		list.push(el("span", {class: `swatch more-${level}`}));
	return el("span", {class: "scale", title: "less, by more than half, a quarter, 10 %, 5 %, or less; the same for more"},
		`− less in ${now} `, ...list, ` + more in ${now}`, el("span", {class: "swatch same"}),
		app.state.unsure ? " the same" : " not told from chance");
}
