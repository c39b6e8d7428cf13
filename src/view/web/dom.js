// SPDX-License-Identifier: Apache-2.0
// The little that is needed to make elements. Texts are always text nodes: names of functions and
// files may be anything, and are never read as HTML.

export function el(tag, properties = {}, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties)) {
		if (name === "class")
			element.className = value;
		else if (name.startsWith("on"))
			element.addEventListener(name.slice(2), value);
		else if (name === "role" || name.includes("-"))
			element.setAttribute(name, value);
		else
			element[name] = value;
	}
	element.append(...children.filter((c) => c !== null && c !== undefined));
	return element;
}

// Sets a text only where it is another.
export function setText(element, text) {
	if (element.firstChild && element.firstChild.nodeType === 3 && !element.firstChild.nextSibling) {
		if (element.firstChild.data !== text)
			element.firstChild.data = text;
	} else {
		element.textContent = text;
	}
}

export function setAttribute(element, name, value) {
	if (value === null || value === undefined || value === false)
		element.removeAttribute(name);
	else if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value);
}

// A long list of rows of one height, of which only those in sight are elements.
export class VirtualList {
	// make() gives an element, fill(element, index) shows a row in it.
	constructor(scroller, height, make, fill) {
		this.scroller = scroller;
		this.height = height;
		this.make = make;
		this.fill = fill;
		this.count = 0;
		this.rows = new Map(); // index -> element
		this.spare = [];
		this.space = el("div", {class: "space", role: "presentation"});
		scroller.append(this.space);
		scroller.addEventListener("scroll", () => this.draw(), {passive: true});
		new ResizeObserver(() => this.draw()).observe(scroller);
	}
	set(count) {
		this.count = count;
		this.space.style.height = count * this.height + "px";
		this.draw(true);
	}
	draw(again = false) {
		const top = this.scroller.scrollTop, high = this.scroller.clientHeight;
		const first = Math.max(0, Math.floor(top / this.height) - 6);
		const last = Math.min(this.count, Math.ceil((top + high) / this.height) + 6);
		for (const [index, row] of this.rows)
			if (index < first || index >= last) {
				this.rows.delete(index);
				this.spare.push(row);
			}
		for (let i = first; i < last; i++) {
			let row = this.rows.get(i);
			if (row && !again)
				continue;
			if (!row) {
				row = this.spare.pop() || this.make();
				row.hidden = false;
				row.style.top = i * this.height + "px";
				this.rows.set(i, row);
				if (!row.parentNode)
					this.space.append(row);
			}
			this.fill(row, i);
		}
		for (const row of this.spare)
			row.hidden = true;
	}
	// Brings a row into sight, with a few around it.
	reveal(index, middle = false) {
		const top = index * this.height, high = this.scroller.clientHeight;
		const at = this.scroller.scrollTop, margin = this.height;
		if (middle && (top < at || top + this.height > at + high))
			this.scroller.scrollTop = top - high / 2;
		else if (top < at + margin)
			this.scroller.scrollTop = Math.max(0, top - margin);
		else if (top + this.height > at + high - margin)
			this.scroller.scrollTop = top + this.height + margin - high;
		this.draw();
	}
	page() {
		return Math.max(1, Math.floor(this.scroller.clientHeight / this.height) - 2);
	}
}
