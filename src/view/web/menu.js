// SPDX-License-Identifier: Apache-2.0
// What can be done with a row or box, where the pointer is: a menu that the keyboard can use as well.

import {copyText, rowText, stackOf} from "./copy.js";
import {rowName} from "./views.js";
import {el} from "./dom.js";

// [words, key, what is done]
function itemsOf(app, row) {
	const copy = (what, text) => async () => {
		await copyText(text);
		app.say(`copied: ${what}`);
	};
	const name = rowName(app.model, row), items = [["Copy name", "Ctrl+C", copy(name, name)]];
	if (row.scope > 0)
		items.push(["Copy stack", "", copy(`the stack of ${name}`, stackOf(app, row))]);
	items.push(["Copy row", "", copy(`the row of ${name}`, rowText(app, row))]);
	if (row.scope > 0)
		items.push(["Callers and callees", "6", () => app.showSandwich(row)], ["Zoom in", "z", () => app.zoomIn()],
			["Keep only paths with it", "k", () => app.filterRow("keep", "name")],
			["Leave out paths with it", "x", () => app.filterRow("hide", "name")]);
	return items;
}

function moveFocus(menu, by) {
	const items = [...menu.children], at = items.indexOf(document.activeElement);
	items[(at + by + items.length) % items.length].focus();
}

// Opens it for the selected row, at a place of the window.
export function openMenu(app, x, y) {
	const row = app.selectedRow(), before = document.activeElement;
	document.querySelector(".menu")?.remove();
	if (!row)
		return;
	const close = (back) => {
		document.removeEventListener("pointerdown", outside, true);
		menu.remove();
		if (back && before?.isConnected)
			before.focus();
	};
	const outside = (event) => !menu.contains(event.target) && close(false);
	const keys = {
		ArrowDown: () => moveFocus(menu, 1), ArrowUp: () => moveFocus(menu, -1), Home: () => menu.firstChild.focus(),
		End: () => menu.lastChild.focus(), Escape: () => close(true), Tab: () => close(true),
	};
	const menu = el("div", {class: "menu", role: "menu", "aria-label": rowName(app.model, row), onkeydown: (event) => {
		event.stopPropagation();
		if (keys[event.key]) {
			event.preventDefault();
			keys[event.key]();
		}
	}}, ...itemsOf(app, row).map(([words, key, run]) => el("button", {
		type: "button", role: "menuitem", tabIndex: -1, onclick: () => {
			close(true);
			run();
		},
	}, el("span", {}, words), el("kbd", {}, key))));
	document.body.append(menu);
	menu.style.left = Math.max(0, Math.min(x, innerWidth - menu.offsetWidth - 4)) + "px";
	menu.style.top = Math.max(0, Math.min(y, innerHeight - menu.offsetHeight - 4)) + "px";
	document.addEventListener("pointerdown", outside, true);
	menu.firstChild.focus();
}

// Opens it at the selected row or box, as far as that can be seen.
export function openMenuByKey(app) {
	const focused = document.activeElement, row = focused.querySelector?.(".row.selected:not([hidden])") || focused;
	const {left, top, height} = row.getBoundingClientRect();
	openMenu(app, left + 40, top + (row === focused ? 20 : height));
}

// The browser's own copying (Ctrl+C) takes the name of what is selected, unless some text is.
export function copyOnDemand(app) {
	document.addEventListener("copy", (event) => {
		const row = app.selectedRow();
		if (!row || !getSelection().isCollapsed || event.target.closest?.("input, textarea, dialog"))
			return;
		event.clipboardData.setData("text/plain", rowName(app.model, row));
		event.preventDefault();
		app.say(`copied: ${rowName(app.model, row)}`);
	});
}
