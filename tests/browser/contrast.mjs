// SPDX-License-Identifier: Apache-2.0
// In the page: the worst contrast of all texts that are seen with what is behind them.
export function worstContrast() {
	const paper = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgba = (colour) => {
		paper.clearRect(0, 0, 1, 1);
		paper.fillStyle = colour;
		paper.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = paper.getImageData(0, 0, 1, 1).data;
		return {r, g, b, a: a / 255};
	};
	const light = ({r, g, b}) => {
		const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const contrast = (one, two) => {
		const [x, y] = [light(one), light(two)];
		return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
	};
	const known = new Map();
	const colour = (text) => known.get(text) || known.set(text, rgba(text)).get(text);
	// What may be behind an element: the colours of it and of what is around it, down to the first that
	// covers; and those of its bars.
	const behind = (element) => {
		const list = [];
		for (let e = element; e; e = e.parentElement) {
			const style = getComputedStyle(e);
			for (const bar of style.backgroundImage.matchAll(/rgba?\([^)]*\)/g))
				list.push(colour(bar[0]));
			const back = colour(style.backgroundColor);
			if (back.a > 0.99)
				return [...list, back];
		}
		return [...list, colour(getComputedStyle(document.body).backgroundColor)];
	};
	const root = document.querySelector("dialog[open]") || document.body;
	const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
	let worst = {ratio: 21}, seen = 0;
	const look = (element, text, style) => {
		seen++;
		for (const back of behind(element)) {
			const ratio = contrast(colour(style.color), back);
			if (ratio < worst.ratio)
				worst = {ratio, text: text.slice(0, 40), element: element.className || element.tagName, fore: style.color, back};
		}
	};
	for (let node; (node = walker.nextNode());) {
		const element = node.parentElement;
		if (node.data.trim() && element.getClientRects().length && !element.closest("[hidden], script, style, .status"))
			look(element, node.data, getComputedStyle(element));
	}
	for (const input of root.querySelectorAll("input, select"))
		if (input.getClientRects().length && (input.placeholder || input.value))
			look(input, input.value || input.placeholder, getComputedStyle(input, input.value ? null : "::placeholder"));
	return {worst, seen};
}
