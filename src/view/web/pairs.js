// SPDX-License-Identifier: Apache-2.0
// Numbers by pairs of numbers of 32 bits. A Map would need a key of both, which is slow where there are millions.

export class Pairs {
	constructor() {
		this.first = [];
		this.second = [];
		this.value = [];
		this.slots = new Int32Array(1024).fill(-1); // by hash: which pair is there
	}
	slot(a, b) {
		const mask = this.slots.length - 1;
		let at = (Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b)) >>> 7 & mask;
		while (this.slots[at] >= 0 && (this.first[this.slots[at]] !== a || this.second[this.slots[at]] !== b))
			at = (at + 1) & mask;
		return at;
	}
	// Its number; -1: it has none.
	get(a, b) {
		const pair = this.slots[this.slot(a, b)];
		return pair < 0 ? -1 : this.value[pair];
	}
	// Of a pair that has none.
	add(a, b, value) {
		this.slots[this.slot(a, b)] = this.first.push(a) - 1;
		this.second.push(b);
		this.value.push(value);
		if (this.first.length * 2 > this.slots.length) {
			this.slots = new Int32Array(this.slots.length * 2).fill(-1);
			this.first.forEach((one, i) => { this.slots[this.slot(one, this.second[i])] = i; });
		}
		return value;
	}
}
