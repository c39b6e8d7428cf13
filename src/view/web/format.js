// SPDX-License-Identifier: Apache-2.0
// Numbers and names for people.

const NARROW = "\u202f";

// 41203 -> "41 203"
export function formatCount(count) {
	return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, NARROW);
}

// Three digits that matter: "1.23 s", "45.6 ms"
export function formatTime(seconds) {
	const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
	if (!seconds)
		return "0 s";
	if (seconds >= 600)
		return formatCount(seconds) + NARROW + "s";
	const [size, name] = units.find(([size]) => seconds >= size * 0.9995) || units[3];
	const value = seconds / size;
	const digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	return value.toFixed(digits) + NARROW + name;
}

// Three digits that matter: "1.23 MB", "456 B"
export function formatSize(bytes) {
	const units = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
	const [size, name] = units.find(([size]) => bytes >= size * 0.9995) || units[4];
	const value = bytes / size;
	const digits = size === 1 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	return value.toFixed(digits) + NARROW + name;
}

// Samples as what they stand for: time where the metric is a clock.
export function formatAmount(metric, count) {
	if (metric.unit === "ns")
		return formatTime(count * metric.period / 1e9);
	return metric.unit === "bytes" ? formatSize(count * metric.period) : formatCount(count);
}

// Of the metrics by number: the one that counts the samples of a metric's event. Mostly that is itself, but
// alloc.bytes is what the samples of alloc stand for.
export function sampledMetric(metrics, m) {
	const {name, unit, period} = metrics[m], dot = name.lastIndexOf(".");
	const event = dot < 0 || (unit === "ns" && period > 1) ? -1 : metrics.findIndex((other) => other.name === name.slice(0, dot));
	return event < 0 ? m : event;
}

// The metric that people want to see first: what samples stand for, if they do not stand for time.
export function mainMetric(metrics) {
	return metrics.length > 1 && metrics[0].unit !== "ns" && sampledMetric(metrics, 1) === 0 ? 1 : 0;
}

export function formatPercent(part, whole) {
	return whole > 0 ? (100 * part / whole).toFixed(2) + "%" : "";
}

// Of a derived metric: four digits that matter. "" where there is no number.
export function formatNumber(value) {
	if (!Number.isFinite(value))
		return "";
	const size = Math.abs(value);
	return size >= 10000 ? formatCount(value) : size && size < 0.001 ? value.toExponential(2) :
		String(Number(value.toPrecision(4)));
}

// "1 204 ± 35 samples (± 2.9%)": what a count of independent samples can be trusted for.
export function formatError(count) {
	if (!count)
		return "no samples";
	const error = Math.sqrt(count);
	const share = 100 / error;
	return `${formatCount(count)} ± ${formatCount(Math.ceil(error))} samples` +
		` (± ${share < 10 ? share.toFixed(1) : Math.round(share)}%)`;
}

export function baseName(path) {
	const slash = path.lastIndexOf("/");
	return slash >= 0 && slash + 1 < path.length ? path.slice(slash + 1) : path;
}

export function plural(count, one, many) {
	return `${formatCount(count)} ${count === 1 ? one : many || one + "s"}`;
}
