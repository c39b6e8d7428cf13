// SPDX-License-Identifier: Apache-2.0
// Did it change? The same test as that of `culprit diff`, whose source (compare/test.c) has the reasons;
// a test of the viewer holds both against each other.

const TINY = 1e-300;
const RATIO_MAX = 1e9;
const CLUMPED = 2; // as in compare/test.c
export const TEST_LEAST = 10; // fewer samples on both sides together decide nothing

// Of x >= 0. Small ones by the series of erf, all of whose terms are positive; others by the continued
// fraction, so that chances of any smallness come out right.
function erfcPositive(x) {
	if (x < 2) {
		let term = x, sum = x;
		for (let n = 1; n < 100 && term > 1e-17 * sum; n++) {
			term *= 2 * x * x / (2 * n + 1);
			sum += term;
		}
		return 1 - 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
	}
	let c = x, d = 0, f = x;
	for (let n = 1; n < 300; n++) {
		d = 1 / (x + n / 2 * d);
		c = x + n / 2 / c;
		f *= c * d;
		if (Math.abs(c * d - 1) < 1e-16)
			break;
	}
	return Math.exp(-x * x) / Math.sqrt(Math.PI) / f;
}

// The chance that a standard normal number is above z.
export function normalAbove(z) {
	const x = z / Math.SQRT2;
	return 0.5 * (x < 0 ? 2 - erfcPositive(-x) : erfcPositive(x));
}

const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
	-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
	1.5056327351493116e-7];

function logGamma(x) {
	if (x === 0.5)
		return 0.5 * Math.log(Math.PI);
	if (x < 0.5)
		return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - logGamma(1 - x);
	let sum = LANCZOS[0];
	for (let i = 1; i < LANCZOS.length; i++)
		sum += LANCZOS[i] / (x - 1 + i);
	const t = x + 6.5;
	return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

function away(value) {
	return Math.abs(value) < TINY ? TINY : value;
}

function betaFraction(a, b, x) {
	let c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), result = d;
	for (let i = 1; i <= 200; i++) {
		const even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		const odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
		const before = result;
		d = 1 / away(1 + even * d);
		c = away(1 + even / c);
		result *= c * d;
		d = 1 / away(1 + odd * d);
		c = away(1 + odd / c);
		result *= c * d;
		if (Math.abs(result - before) <= 1e-15 * Math.abs(result))
			break;
	}
	return result;
}

// The regularised incomplete beta function.
function betaPart(a, b, x) {
	if (x <= 0 || x >= 1)
		return x >= 1 ? 1 : 0;
	const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * betaFraction(a, b, x) / a :
		1 - front * betaFraction(b, a, 1 - x) / b;
}

// The chance that a number of Student's distribution with `df` degrees of freedom is above t.
export function studentAbove(t, df) {
	if (!Number.isFinite(df) || df > 1e6)
		return normalAbove(t);
	if (!Number.isFinite(t))
		return t < 0 ? 1 : 0;
	const tail = 0.5 * betaPart(df / 2, 0.5, df / (df + t * t));
	return t >= 0 ? tail : 1 - tail;
}

// Corrects an array of chances for the number of tests that are made (Bonferroni), which those below 0 are none of:
// {chances, tests}.
export function correct(list) {
	const tests = list.reduce((sum, p) => sum + (p >= 0 ? 1 : 0), 0);
	return {tests, chances: list.map((p) => p >= 0 ? Math.min(1, p * tests) : p)};
}

// The runs of a side: those from `first` on, and what a sample stands for in each.
export class Side {
	constructor(first, scales) {
		this.first = first;
		this.scales = scales;
		this.sum = scales.reduce((sum, scale) => sum + scale, 0);
		this.exposure = scales.reduce((sum, scale) => sum + 1 / scale, 0);
		this.half = 0.5 * scales[0] / scales.length; // a sample, in the mean
	}
	spread(counts) {
		const {first, scales} = this, {length} = scales;
		let mean = 0, samples = 0, squares = 0;
		for (let i = 0; i < length; i++) {
			mean += counts[first + i] * scales[i] / length;
			samples += counts[first + i];
		}
		for (let i = 0; i < length; i++)
			squares += (counts[first + i] * scales[i] - mean) ** 2;
		return {mean, samples, variance: length > 1 ? squares / (length - 1) : -1};
	}
}

// counts: samples in each run of both sides. Options: {noise, confidence, shares, amounts: counts are no samples, and only
// the scatter of runs tells of chance}.
class Question {
	constructor(counts, [before, after], options) {
		this.sides = [before, after];
		this.options = options;
		this.spreads = [before.spread(counts), after.spread(counts)];
	}
	// The cost of a run before, if that after is r times it.
	commonCost(r) {
		const exposure = this.sides[0].exposure + r * this.sides[1].exposure;
		return exposure > 0 ? (this.spreads[0].samples + this.spreads[1].samples) / exposure : 0;
	}
	// Of a side's mean, by sampling alone.
	sampling(s, cost) {
		const {scales, sum} = this.sides[s];
		if (this.options.amounts)
			return 0;
		return cost * (this.options.shares ? Math.max(0, 1 - cost) : 1) * sum / scales.length ** 2;
	}
	// Of a side's mean.
	variance(s, cost, r) {
		const runs = this.sides[s].scales.length, least = this.sampling(s, cost);
		const own = this.spreads[s].variance, others = this.spreads[1 - s].variance;
		if (own < 0 && others < 0)
			return least * (this.options.noise * cost > 0 ? CLUMPED : 1) + this.options.noise ** 2 * cost * cost / runs;
		const scatter = own >= 0 ? own : others * (s ? r * r : r > 0 ? 1 / (r * r) : 1);
		return Math.max(least, scatter / runs);
	}
	// The degrees of freedom of that.
	freedom(s) {
		const own = this.spreads[s].variance, others = this.spreads[1 - s].variance;
		return own < 0 && others < 0 ? Infinity : this.sides[own >= 0 ? s : 1 - s].scales.length - 1;
	}
	// A cost or share whose luck is the same in both directions, and how fast that grows with it.
	evened(cost) {
		return this.options.shares ? Math.asin(Math.sqrt(Math.min(1, cost))) : Math.sqrt(cost);
	}
	evenedSlope(cost) {
		return 0.5 / Math.sqrt(cost * (this.options.shares ? Math.max(0, 1 - cost) : 1));
	}
	// The part of a difference that is left when the luck of few samples is evened out, at most 1.
	evenPart(r, expected) {
		const before = r * this.spreads[0].mean, after = this.spreads[1].mean;
		const slope = this.evenedSlope(expected), off = Math.abs(after - before);
		if (!(off > 0) || !Number.isFinite(slope))
			return 1;
		return Math.min(1, Math.abs(this.evened(after) - this.evened(before)) / (slope * off));
	}
	// [t, degrees of freedom] of "after is r times before".
	tOf(r) {
		const cost = this.commonCost(r);
		const v0 = this.variance(0, cost, r) * r * r, v1 = this.variance(1, cost * r, r);
		const df0 = this.freedom(0), df1 = this.freedom(1);
		const v = v0 + v1, off = this.spreads[1].mean - r * this.spreads[0].mean;
		const correction = this.options.amounts ? 0 : r * this.sides[0].half + this.sides[1].half;
		let df = Infinity;
		if (this.spreads[0].variance >= 0 && this.spreads[1].variance >= 0 && v > 0)
			df = v * v / (v0 * v0 / df0 + v1 * v1 / df1);
		else if (Number.isFinite(df0))
			df = df0;
		const left = Math.max(0, Math.abs(off) - correction);
		if (!(v > 0))
			return [left > 0 ? Math.sign(off) * Infinity : 0, df];
		const part = Number.isFinite(df) ? 1 : this.evenPart(r, cost * r);
		return [Math.sign(off) * part * left / Math.sqrt(v), df];
	}
	isPlausible(r) {
		const [t, df] = this.tOf(r);
		return 2 * studentAbove(Math.abs(t), df) > 1 - this.options.confidence;
	}
	findEdge(inside, outside) {
		for (let i = 0; i < 60; i++) {
			const middle = (inside + outside) / 2;
			if (this.isPlausible(middle))
				inside = middle;
			else
				outside = middle;
		}
		return inside;
	}
}

// The chance of such a difference if nothing changed, two-sided, not corrected.
export function testChance(counts, sides, options) {
	const [t, df] = new Question(counts, sides, options).tOf(1);
	return Math.min(1, 2 * studentAbove(Math.abs(t), df));
}

// The interval of after / before: [low, high]; high may be Infinity. It has 1 if and only if that is plausible.
export function testInterval(counts, sides, options) {
	const q = new Question(counts, sides, options), same = q.isPlausible(1);
	const middle = q.spreads[0].mean > 0 ? q.spreads[1].mean / q.spreads[0].mean : RATIO_MAX;
	return [findLow(q, middle, same), findHigh(q, middle, same)];
}

function findLow(q, middle, same) {
	if (!same && middle > 1)
		return q.findEdge(middle, 1);
	return q.isPlausible(0) ? 0 : q.findEdge(same ? Math.min(middle, 1) : middle, 0);
}

function findHigh(q, middle, same) {
	const inside = same ? Math.max(middle, 1) : middle;
	let far = inside;
	if (!same && middle < 1)
		return q.findEdge(middle, 1);
	do
		far = far * 2 + 1e-3;
	while (far < RATIO_MAX && q.isPlausible(far));
	return far < RATIO_MAX ? q.findEdge(inside, far) : Infinity;
}
