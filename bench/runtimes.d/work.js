// SPDX-License-Identifier: Apache-2.0
const end = Date.now() + 1000 * Number(process.argv[2] ?? 5);
const tree = (n) => (n === 0 ? 1 : tree(n - 1) + tree(n - 1) + 1);

function words(seed) {
	const map = new Map();
	for (let i = 0; i < 2000; i++) {
		const key = String((i * seed) & 0x3ff);
		map.set(key, (map.get(key) ?? 0) + 1);
	}
	return [...map.keys()].sort().join(",").replace(/(\d+),(\d+)/g, "$2;$1").length;
}

let sum = 0;
for (let n = 1; Date.now() < end; n++)
	sum += tree(14) + words(n) + JSON.stringify({ n, list: [1, 2, n] }).length;
console.log(sum > 0);
