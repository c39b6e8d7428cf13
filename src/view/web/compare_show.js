// SPDX-License-Identifier: Apache-2.0
// How a comparison looks: columns, details, what the pointer shows, the bar above the table.

import {formatCount, formatError, formatSize, formatTime, plural} from "./format.js";
import {cached, inBlocks} from "./model.js";
import {rowName} from "./views.js";
import {Comparison} from "./compare.js";
import {chosenSides, defaultLimits} from "./compare_sides.js";
import {BASES, COMPARED, COMPARE_COLUMNS, WIDTHS} from "./compare_state.js";
import {el, setClass, setStyle, setText, whenIdle} from "./dom.js";

const KEPT_MAX = 16e6; // numbers for the runs of comparisons that are not looked at any more

// The comparison that a state asks for, or null. The last few are kept.
export function comparisonOf(model, state) {
	const sides = chosenSides(model, state), kept = cached(model, "comparisons", () => new Map());
	if (!sides)
		return null;
	const key = JSON.stringify([state.compare, state.metric, state.noise, state.min, state.time]);
	const comparison = kept.get(key) || makeComparison(model, sides, state);
	comparison.setShares(state.shares);
	kept.delete(key);
	kept.set(key, comparison);
	const cells = () => [...kept.values()].reduce((sum, {base}) => sum + base.madeCount, 0) * model.nodes.count;
	for (const [other, {base}] of [...kept].slice(0, -1))
		if (cells() > KEPT_MAX) {
			kept.delete(other);
			comparison.base.spare.push(...base.release());
		}
	return comparison;
}

// What takes a while of comparisons by other metrics, as far as they are kept: steps that can be taken while
// nothing else is to do.
export function prepareComparisons(app) {
	const {model} = app, step = (metric, run) => () => {
		const other = otherComparison(app, metric);
		if (other)
			run(other);
	};
	return model.header.metrics.flatMap((_, metric) => [step(metric, (other) => { other.select().sums; }),
		step(metric, (other) => {
			other.select(); // it may be another one meanwhile
			other.contexts("total");
		})]);
}

// The one by another metric than that which is shown, or null where that cannot be kept beside it.
function otherComparison(app, metric) {
	const {model, comparison} = app;
	if (!comparison || model.header.metrics.length * comparison.runs.length * model.nodes.count > KEPT_MAX)
		return null;
	const other = comparisonOf(model, {...app.state, metric});
	return other === comparison ? null : other;
}

// Their views, which have sums of all functions. viewOf: of app.js.
export function prepareOthers(app, viewOf) {
	const {model} = app, step = (metric, run) => () => {
		const other = otherComparison(app, metric);
		return other ? run(other, other.select()) : false;
	};
	return model.header.metrics.flatMap((_, metric) => [
		step(metric, (other, selection) => viewOf("callers", model, selection).advance()),
		step(metric, (other, selection) => { viewOf("flat", model, selection); }),
		step(metric, (other, selection) => {
			const callers = viewOf("callers", model, selection);
			callers.level(null);
			["self", "total"].forEach((base) => other.functions(base, callers));
			other.nodesOfLarge; // for filters
		}),
	]);
}

function makeComparison(model, sides, state) {
	const {alpha, noise, min} = defaultLimits(model);
	const limits = {alpha, noise: state.noise === null ? noise : state.noise / 100,
		min: state.min === null ? min : state.min / 100};
	return new Comparison(model, sides, {metric: state.metric, limits, time: state.time});
}

function usualBase(app) {
	return ["tree", "sandwich"].includes(app.sortName()) ? "total" : "self";
}

// Which samples are compared in the view that is shown: ["total"], ["self"] or both.
export function comparedBases(app) {
	const {base} = app.state;
	return base === "both" ? ["total", "self"] : [base || usualBase(app)];
}

function parseColumn(app, column) {
	const bases = comparedBases(app), second = column.endsWith("-self");
	return {what: second ? column.slice(0, -5) : column, base: second ? "self" : bases[0]};
}

export function comparedColumns(app) {
	const {metric} = app.state;
	const columns = comparedBases(app).length > 1 ? COMPARE_COLUMNS : COMPARED;
	return columns.map((column) => ({metric, column}));
}

// [title, explanation]
export function comparedTitle(app, column) {
	const {what, base} = parseColumn(app, column), {comparison} = app;
	const {names, labels, shares} = comparison;
	const of = base === "total" ? "with all that was called" : "in its own code";
	const mean = (side) => comparison.counts[side] > 1 ? ", the mean of its runs" : "";
	if (what === "difference")
		return [`${base} difference`, `${names[1]} less ${names[0]}, as share of each side's whole and by itself; ${of}`];
	if (what === "change")
		return ["change", `${shares ? "of the share" : "of the cost"}, and whether it is more than chance; ${of}`];
	const side = what === "new" ? 1 : 0;
	return [`${names[side]} ${base}`, `${labels[side]}: ${of}${mean(side)}`];
}

// Numbers for people

export function formatCost(unit, cost) {
	if (unit === "ns")
		return formatTime(cost / 1e9);
	if (unit === "bytes")
		return formatSize(cost);
	return cost && cost < 100 && !Number.isInteger(cost) ? cost.toFixed(1) : formatCount(cost);
}

const MINUS = "\u2212";

function sign(value) {
	return value > 0 ? "+" : value < 0 ? MINUS : "±";
}

// A ratio as a difference: "+10.0%", "×12" where it is large.
export function formatRatio(ratio) {
	if (Number.isNaN(ratio))
		return "";
	if (ratio === Infinity)
		return "any";
	if (ratio >= 10)
		return "×" + (ratio < 100 ? ratio.toFixed(1) : formatCount(Math.min(ratio, 1e9)));
	const percent = (100 * Math.abs(ratio - 1)).toFixed(1);
	return (percent === "0.0" ? "±" : sign(ratio - 1)) + percent + "%";
}

// The end of an interval. If it is not 0, it never reads as 0: whether it is above or below says what the verdict is.
export function formatEnd(ratio) {
	const percent = 100 * (ratio - 1);
	return percent && Math.abs(percent) < 0.05 ? sign(percent) + Math.abs(percent).toPrecision(1) + "%" : formatRatio(ratio);
}

export function formatPoints(part) {
	const points = (100 * Math.abs(part)).toFixed(2);
	return (points === "0.00" ? "±" : sign(part)) + points + "\u202fpp";
}

export function formatDifference(unit, difference) {
	return sign(difference) + formatCost(unit, Math.abs(difference));
}

function formatShare(share) {
	return (100 * share).toFixed(2) + "%";
}

export function formatChance(p) {
	return p < 1e-99 ? "p < 10⁻⁹⁹" : p < 0.0001 ? `p = ${p.toExponential(1).replace("-", MINUS)}` :
		`p = ${p.toFixed(p < 0.001 ? 5 : p < 0.01 ? 4 : 3)}`;
}

// Rows

function judged(app, row, base) {
	const measure = app.comparison.rowMeasure(row, base);
	const {p, tests} = app.comparison.judge(row, base, app.view(app.treeView()), () => app.view("callers"));
	return {measure, p, tests, verdict: app.comparison.verdict(measure, p),
		changed: p >= 0 && p <= app.comparison.limits.alpha};
}

// The numbers of a cell: [share, amount, part of the bar, class].
function cellTexts(app, row, column) {
	const {what, base} = parseColumn(app, column), {comparison} = app;
	if (what === "old" || what === "new") {
		const side = what === "new" ? 1 : 0, {cost, share} = comparison.rowMeasure(row, base);
		return cost[side] ? [formatShare(share[side]), formatCost(comparison.unit, cost[side]), share[side], base] :
			["", "", 0, base];
	}
	const {measure, verdict, changed} = judged(app, row, base);
	const way = measure.by > 0 ? "more" : measure.by < 0 ? "less" : "";
	if (what === "change")
		return [formatRatio(measure.ratio), verdict, 0, changed ? `changed ${way}` : "unchanged"];
	const size = comparison.shares ? Math.abs(measure.shareDifference) :
		Math.abs(measure.difference) / (Math.max(...comparison.whole) || 1);
	return measure.difference || measure.shareDifference ?
		[formatPoints(measure.shareDifference), formatDifference(comparison.unit, measure.difference), size,
			`${changed ? "changed" : "unchanged"} ${way}`] : ["", "", 0, ""];
}

export function fillCompared(app, cell, row, column) {
	const [share, amount, part, name] = cellTexts(app, row, column);
	setText(cell.firstChild, share);
	setText(cell.lastChild, amount);
	setClass(cell, `cell number compared ${column} ${name}`);
	setStyle(cell, "background-size", (100 * Math.min(1, part)).toFixed(1) + "% 100%");
}

function levelChances(app, level, base) {
	return app.comparison.levelChances(app.view(app.treeView()), level, base, () => app.view("callers"));
}

// What the top level of a view needs when it is looked at.
export function prepareChances(app, name) {
	const view = app.view(name), level = view.level(null);
	for (const base of ["total", "self"])
		app.comparison.levelChances(view, level, base, () => app.view("callers"));
	app.comparison.nodesOfLarge; // for filters
}

function differenceKeys(from, to, [old, now], keys) {
	for (let i = from; i < to; i++)
		keys[i] = now[i] - old[i];
}

// What changed comes first, then what differs more, as `culprit diff` has it.
function changeKeys(from, to, [old, now], chances, alpha, most, keys) {
	for (let i = from; i < to; i++) {
		const p = chances[i], rank = p < 0 ? 0 : p > alpha ? 1 : 2;
		keys[i] = rank * 4 + Math.min(2, Math.abs(now[i] - old[i]) / most);
	}
}

// What rows of a level are ordered by. chances(): of its rows.
function orderKeys(comparison, level, {what, base}, chances) {
	const costs = comparison.levelCosts(level, base), keys = new Float64Array(level.length);
	if (what === "old" || what === "new")
		return costs[what === "new" ? 1 : 0];
	if (what === "difference") {
		inBlocks(0, keys.length, (from, to) => differenceKeys(from, to, costs, keys));
		return keys;
	}
	const known = chances(), {alpha} = comparison.limits, most = comparison.shares ? 1 : Math.max(...comparison.whole) || 1;
	inBlocks(0, keys.length, (from, to) => changeKeys(from, to, costs, known, alpha, most, keys));
	return keys;
}

// How much the rows of a level differ.
export function comparedSizes(app, level) {
	const [old, now] = app.comparison.levelCosts(level, "total");
	return now.map((cost, place) => Math.abs(cost - old[place]));
}

// The order of the state, for rows with two sides.
export function comparedSort(app) {
	const {sort} = app, {metric} = app.state;
	const column = sort.column === "name" || comparedColumns(app).some((c) => c.column === sort.column) ?
		sort.column : "change";
	return {
		column, metric, up: column === sort.column && sort.up,
		keys: (level) => orderKeys(app.comparison, level, parseColumn(app, column), () =>
			levelChances(app, level, parseColumn(app, column).base)),
		stamp: app.comparison.family("order " + comparedBases(app), () => ({})),
		prepare: app.treeView() === "tree" ? null : (level) =>
			app.comparison.remember(app.view(app.treeView()), level, () => app.view("callers")),
	};
}

// Lines of [name, text] about a row.
export function comparedLines(app, row, bases = ["total", "self"]) {
	const {comparison} = app, {names, unit} = comparison, lines = [];
	for (const base of bases) {
		const {measure, p, tests, verdict} = judged(app, row, base);
		if (base === "self" && !measure.samples[0] && !measure.samples[1]) {
			lines.push(["self", comparison.amounts ? "nothing" : "no samples"]);
			continue;
		}
		names.forEach((name, side) => lines.push([`${name} ${base}`, `${formatShare(measure.share[side])} · ` +
			`${formatCost(unit, measure.cost[side])}${comparison.amounts ? "" : ` · ${formatError(measure.samples[side])}`}`]));
		lines.push([`${base} change`, changeText(comparison, row[base], measure, {p, tests, verdict})]);
	}
	return lines;
}

// "slower: +20 ms, +1.20 pp, +12.0% (95%: +8.0% to +16.0%), p = 0.001"
function changeText(comparison, counts, measure, {p, tests, verdict}) {
	const ratio = formatRatio(measure.ratio);
	const parts = [formatDifference(comparison.unit, measure.difference), formatPoints(measure.shareDifference)];
	if (p < 0)
		return `${verdict}: ${[...parts, ratio].filter(Boolean).join(", ")}`;
	const [low, high] = comparison.interval(counts, tests).map(formatEnd);
	const sure = `${Math.round(100 * (1 - comparison.limits.alpha))}%`;
	return `${verdict}: ${[...parts, ratio].filter(Boolean).join(", ")} (${sure}: ${low} to ${high}), ${formatChance(p)}`;
}

// What each run has, where there are several.
export function runLines(app, row) {
	const {comparison} = app, [base] = comparedBases(app), counts = row[base];
	if (!comparison.hasReplicates)
		return [];
	return comparison.names.map((name, side) => [`${name} runs`, comparison.runs.flatMap((run, r) => run.side === side ?
		[formatCost(comparison.unit, counts[r] * run.period)] : []).join("  ")]);
}

export function comparedStatus(app, row) {
	const [base] = comparedBases(app), {measure, verdict} = judged(app, row, base), {names, unit} = app.comparison;
	return `${rowName(app.model, row)}: ${base} ${names[0]} ${formatCost(unit, measure.cost[0])}, ` +
		`${names[1]} ${formatCost(unit, measure.cost[1])}, ${formatRatio(measure.ratio)} ${verdict}`;
}

// The bar

// "1.2 s → 1.9 s, +58% slower; 2 of 31 functions changed". The first time it takes a look at all functions, which has
// time.
function summary(app) {
	const element = el("span", {class: "shown"}), {comparison} = app;
	const show = () => setText(element, summaryText(app));
	if (comparison.knowsFunctions)
		show();
	else
		whenIdle(() => app.comparison === comparison && element.isConnected && show());
	return element;
}

function summaryText(app) {
	const {comparison} = app, {selection} = comparison;
	const measure = comparison.measure(selection.values("total", selection.zoom));
	const {total, tested, changed} = comparison.functions("self", app.view("callers"));
	const amounts = measure.cost.map((cost, side) => comparison.shares ? formatShare(measure.share[side]) :
		formatCost(comparison.unit, cost)).join(" → ");
	const verdict = total < 0 ? "" : ` ${comparison.verdict(measure, total)}`;
	const whole = comparison.shares && !selection.zoom ? "" : `${amounts}, ${formatRatio(measure.ratio)}${verdict}; `;
	return comparison.untestable ? `${whole}no verdicts: they take several runs on each side` :
		`${whole}${changed} of ${plural(tested, "function")} changed`;
}

export function compareBar(app) {
	const {comparison, state} = app, {names, labels} = comparison;
	const button = (text, label, run) => el("button", {type: "button", title: label, "aria-label": `${text}: ${label}`,
		onclick: run}, text);
	const bases = comparedBases(app);
	return el("span", {class: "comparing", role: "group", "aria-label": "comparison"},
		el("span", {class: "chip"}, `${names[0]} ${labels[0]} → ${names[1]} ${labels[1]}`,
			el("button", {type: "button", "aria-label": "stop comparing", onclick: () => app.setCompare("off")}, "✕")),
		button(bases.length > 1 ? "total and self" : bases[0], "which samples are compared (b)", () => app.nextBase()),
		button(comparison.shares ? "shares" : comparison.unit === "ns" ? "time" : comparison.unit === "bytes" ? "bytes" : "cost",
			"compare what it took, or its share of the samples (%)", () => app.toggleShares()),
		app.showsGraph() ? button(`width: ${widthName(app)}`, "which side boxes are as wide as (w)",
			() => app.nextWidth()) : null,
		app.showsGraph() ? button(state.unsure ? "all differences" : "sure differences",
			"colours for what is more than chance, or for all that differs (y)", () => app.toggleUnsure()) : null,
		summary(app));
}

export function widthName(app) {
	const {names} = app.comparison;
	return app.state.width === "both" ? "both" : names[app.state.width === "new" ? 1 : 0];
}

export function nextOf(list, value) {
	return list[(list.indexOf(value) + 1) % list.length];
}

export function nextCompareBase(app) {
	const bases = comparedBases(app), next = nextOf(BASES, bases.length > 1 ? "both" : bases[0]);
	return next === usualBase(app) ? "" : next;
}

export function nextCompareWidth(app) {
	return nextOf(WIDTHS, app.state.width);
}
