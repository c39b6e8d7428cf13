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

// Gives a canvas its size. Only if it is another: each change clears it.
export function fitCanvas(canvas, width, height, scale) {
	if (canvas.width === width * scale && canvas.height === height * scale)
		return;
	canvas.width = width * scale;
	canvas.height = height * scale;
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
}

// When what is to be seen is drawn.
export const whenIdle = globalThis.requestIdleCallback || ((run) => setTimeout(run, 50));

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

export function setClass(element, name) {
	if (element.className !== name)
		element.className = name;
}

// A property of the style. What was set is kept beside it: reading styles is slow.
export function setStyle(element, name, value) {
	const kept = element.kept || (element.kept = {});
	if (kept[name] === value)
		return;
	kept[name] = value;
	element.style.setProperty(name, value);
}

const AROUND = 3; // rows before and after those in sight

// A long list of rows of one height, of which only those in sight are elements. Where it is scrolled to and how
// high it is are kept here: asking the browser would make it lay out the page again each time.
export class VirtualList {
	// make() gives an element, fill(element, index) shows a row in it.
	constructor(scroller, height, make, fill) {
		this.scroller = scroller;
		this.height = height;
		this.make = make;
		this.fill = fill;
		this.count = 0;
		this.top = 0;
		this.high = 0;
		this.wide = 0;
		this.rows = new Map(); // index -> element
		this.spare = [];
		this.space = el("div", {class: "space", role: "presentation"});
		scroller.append(this.space);
		scroller.addEventListener("scroll", () => {
			if (this.moving && !this.keeping)
				return;
			cancelAnimationFrame(this.moving); // the user has moved it meanwhile
			this.moving = 0;
			this.top = scroller.scrollTop;
			this.draw();
		}, {passive: true});
		new ResizeObserver(() => {
			if (!scroller.clientHeight) // it is not in the page
				return;
			this.high = scroller.clientHeight;
			this.wide = scroller.clientWidth;
			this.scrollTo(this.top, true); // what comes back into the page begins at its top
			this.draw();
		}).observe(scroller);
	}
	// All that there are, also those out of sight.
	elements() {
		return [...this.rows.values(), ...this.spare];
	}
	// How many there are now. index: one that is to be in sight, maybe in the middle.
	set(count, index = -1, middle = false) {
		this.count = count;
		setStyle(this.space, "height", count * this.height + "px");
		this.top = Math.max(0, Math.min(this.top, count * this.height - this.high));
		if (index >= 0)
			this.aim(index, middle);
		this.draw(true, true);
	}
	// Fills rows that are new, or all of them again; later: those around what is in sight come afterwards.
	draw(again = false, later = false) {
		const high = this.high || 1200; // not yet known
		const begin = Math.floor(this.top / this.height), end = Math.ceil((this.top + high) / this.height);
		const first = Math.max(0, begin - AROUND), last = Math.min(this.count, end + AROUND);
		for (const [index, row] of this.rows)
			if (index < first || index >= last) {
				this.rows.delete(index);
				this.spare.push(row);
			}
		for (let i = first; i < last; i++) {
			if (later && (i < begin || i >= end))
				this.putOff(i);
			else if (again || !this.rows.has(i))
				this.fill(this.rows.get(i) || this.place(i), i);
		}
		for (const row of this.spare)
			row.hidden = true;
	}
	// Gives a row an element.
	place(index) {
		const row = this.spare.pop() || this.make();
		row.hidden = false;
		setStyle(row, "top", index * this.height + "px");
		this.rows.set(index, row);
		if (!row.parentNode)
			this.space.append(row);
		return row;
	}
	// Takes it away until there is nothing else to do.
	putOff(index) {
		if (this.rows.has(index))
			this.spare.push(this.rows.get(index));
		this.rows.delete(index);
		if (!this.late)
			whenIdle(() => {
				this.late = false;
				this.draw();
			});
		this.late = true;
	}
	// The browser moves it right before it draws: at once it would have to lay out the page, which may change
	// further. keep: it only stays where it is, unless the user moves it before that.
	scrollTo(top, keep = false) {
		this.top = Math.max(0, Math.min(top, this.count * this.height - this.high));
		this.keeping = keep && (!this.moving || this.keeping);
		if (this.moving)
			return;
		this.moving = requestAnimationFrame(() => {
			this.moving = 0;
			this.scroller.scrollTop = this.top;
		});
	}
	// Brings a row into sight, with a few around it, when it is drawn.
	aim(index, middle) {
		const top = index * this.height, at = this.top, margin = this.height;
		if (middle && (top < at || top + this.height > at + this.high))
			this.scrollTo(top - this.high / 2);
		else if (top < at + margin)
			this.scrollTo(top - margin);
		else if (top + this.height > at + this.high - margin)
			this.scrollTo(top + this.height + margin - this.high);
	}
	page() {
		return Math.max(1, Math.floor(this.high / this.height) - 2);
	}
}

// Draws what is in a scroller again when that has another size than it was drawn for: {width, height}, or null if it
// was not.
export function drawResized(scroller, drawnFor, draw) {
	new ResizeObserver(() => {
		const drawn = drawnFor();
		if (!drawn || drawn.width !== scroller.clientWidth || drawn.height !== scroller.clientHeight)
			draw();
	}).observe(scroller);
}
