// SPDX-License-Identifier: Apache-2.0
// Formulas of derived metrics: "$1 / $2". $n is metric n of a scope, @n that of the whole recording.

const FUNCTIONS = {
	min: Math.min, max: Math.max, abs: Math.abs, sqrt: Math.sqrt, log: Math.log, log2: Math.log2,
	floor: Math.floor, round: Math.round,
};

class Parser {
	constructor(text, count) {
		this.words = text.match(/\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|[$@]\d+|[A-Za-z_]\w*|\S/g) || [];
		this.at = 0;
		this.count = count;
		this.depth = 0;
	}
	take(word) {
		if (this.words[this.at] !== word)
			return false;
		this.at++;
		return true;
	}
	expect(word) {
		if (!this.take(word))
			throw new Error(this.at < this.words.length ? `"${word}" is missing before "${this.words[this.at]}"` :
				`"${word}" is missing at the end`);
	}
	all() {
		const run = this.sum();
		if (this.at < this.words.length)
			throw new Error(`what is "${this.words[this.at]}" there?`);
		return run;
	}
	sum() {
		let left = this.product();
		for (;;) {
			const a = left;
			if (this.take("+")) {
				const b = this.product();
				left = (v, w) => a(v, w) + b(v, w);
			} else if (this.take("-")) {
				const b = this.product();
				left = (v, w) => a(v, w) - b(v, w);
			} else {
				return left;
			}
		}
	}
	product() {
		let left = this.power();
		for (;;) {
			const a = left;
			if (this.take("*")) {
				const b = this.power();
				left = (v, w) => a(v, w) * b(v, w);
			} else if (this.take("/")) {
				const b = this.power();
				left = (v, w) => a(v, w) / b(v, w);
			} else {
				return left;
			}
		}
	}
	power() {
		if (++this.depth > 100)
			throw new Error("too many in each other");
		let run;
		if (this.take("-")) {
			const a = this.power();
			run = (v, w) => -a(v, w);
		} else {
			const a = this.value();
			run = a;
			if (this.take("^")) {
				const b = this.power();
				run = (v, w) => a(v, w) ** b(v, w);
			}
		}
		this.depth--;
		return run;
	}
	value() {
		const word = this.words[this.at++];
		if (word === undefined)
			throw new Error("something is missing at the end");
		if (word === "(") {
			const inner = this.sum();
			this.expect(")");
			return inner;
		}
		if (/^[\d.]/.test(word) && word !== ".") {
			const number = Number(word);
			return () => number;
		}
		if (/^[$@]\d/.test(word))
			return this.metric(word);
		if (Object.hasOwn(FUNCTIONS, word))
			return this.function(FUNCTIONS[word]);
		throw new Error(`what is "${word}"?`);
	}
	metric(word) {
		const m = Number(word.slice(1)) - 1;
		if (m < 0 || m >= this.count)
			throw new Error(`there is no metric ${word}`);
		return word[0] === "$" ? (v) => v(m) : (v, w) => w(m);
	}
	function(f) {
		const list = [];
		this.expect("(");
		do
			list.push(this.sum());
		while (this.take(","));
		this.expect(")");
		return (v, w) => f(...list.map((one) => one(v, w)));
	}
}

// A function of (value, whole), which give the amount of metric m, of a scope and of all. Throws an
// error that says what is wrong.
export function compileFormula(text, count) {
	return new Parser(text, count).all();
}
