// SPDX-License-Identifier: Apache-2.0
// Drives a headless Chromium over a pipe by its own protocol: nothing else is needed. Every wait ends: with
// what was waited for, or with an error that says what did not come. The browser ends with this process,
// however that ends.
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";

const KEY_CODES = {
	Enter: 13, Escape: 27, Backspace: 8, Tab: 9, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40,
	Home: 36, End: 35, PageUp: 33, PageDown: 34,
};

export class Browser {
	// limit: milliseconds that an answer may take
	constructor(program, limit = 30000) {
		this.limit = limit;
		this.folder = mkdtempSync(join(tmpdir(), "culprit-browser-"));
		this.process = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu",
			"--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
			"--disable-component-update", "--disable-extensions", "--hide-scrollbars",
			"--remote-debugging-pipe", "--user-data-dir=" + this.folder, "--window-size=1400,900",
			"about:blank"], {stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"]});
		this.next = 1;
		this.waiting = new Map();
		this.problems = [];
		this.requests = [];
		this.text = "";
		this.words = ""; // the last of what it said
		this.process.stdio[2].on("data", (data) => { this.words = (this.words + data).slice(-2000); });
		const decoder = new TextDecoder();
		this.process.stdio[4].on("data", (data) => this.receive(decoder.decode(data, {stream: true})));
		this.process.stdio[3].on("error", () => {});
		this.process.on("error", (error) => this.end(`${program} cannot be started: ${error.message}`));
		this.process.on("exit", (code, signal) => this.end(`${program} ended (${signal || `status ${code}`})`));
		this.stop = () => this.clear();
		process.on("exit", this.stop);
		for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
			process.on(signal, () => process.exit(1));
	}
	end(why) {
		this.ended = why + (this.words ? `; it said: ${this.words.trim().split("\n").pop()}` : "");
		for (const {reject, timer} of this.waiting.values()) {
			clearTimeout(timer);
			reject(new Error(this.ended));
		}
		this.waiting.clear();
	}
	clear() {
		if (!this.ended)
			this.process.kill("SIGKILL");
		rmSync(this.folder, {recursive: true, force: true, maxRetries: 5});
	}
	receive(data) {
		this.text += data;
		const parts = this.text.split("\0");
		this.text = parts.pop();
		for (const part of parts) {
			const message = JSON.parse(part);
			const waiting = this.waiting.get(message.id);
			if (waiting) {
				this.waiting.delete(message.id);
				clearTimeout(waiting.timer);
				if (message.error)
					waiting.reject(new Error(message.error.message));
				else
					waiting.resolve(message.result);
			} else {
				this.note(message);
			}
		}
	}
	note({method, params}) {
		if (method === "Runtime.exceptionThrown")
			this.problems.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
		else if (method === "Runtime.consoleAPICalled" && params.type === "error")
			this.problems.push(params.args.map((a) => a.value || a.description).join(" "));
		else if (method === "Log.entryAdded" && params.entry.level === "error")
			this.problems.push(params.entry.text);
		else if (method === "Network.requestWillBeSent")
			this.requests.push(params.request.url);
	}
	call(method, params = {}) {
		const id = this.next++;
		const message = {id, method, params};
		if (this.session)
			message.sessionId = this.session;
		if (this.ended)
			return Promise.reject(new Error(this.ended));
		this.process.stdio[3].write(JSON.stringify(message) + "\0");
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => {
				this.waiting.delete(id);
				reject(new Error(`no answer in ${this.limit / 1000} s to ${method} ` +
					JSON.stringify(params).slice(0, 200)));
			}, this.limit);
			this.waiting.set(id, {resolve, reject, timer});
		});
	}
	async start() {
		let page;
		for (const start = performance.now(); !page;) {
			const {targetInfos} = await this.call("Target.getTargets");
			page = targetInfos.find((t) => t.type === "page");
			if (!page && performance.now() - start > this.limit)
				throw new Error(`the browser has no page after ${this.limit / 1000} s`);
		}
		const {sessionId} = await this.call("Target.attachToTarget", {targetId: page.targetId, flatten: true});
		this.session = sessionId;
		for (const domain of ["Page", "Runtime", "Log", "Network"])
			await this.call(domain + ".enable");
		return this;
	}
	size(width, height) {
		return this.call("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
	}
	dark(on) {
		return this.call("Emulation.setEmulatedMedia",
			{features: [{name: "prefers-color-scheme", value: on ? "dark" : "light"}]});
	}
	// Opens a page and waits until it shows its data; milliseconds until then.
	async open(url) {
		await this.call("Page.navigate", {url: "about:blank"});
		const start = performance.now();
		await this.call("Page.navigate", {url});
		await this.until(`document.documentElement.dataset.ready`, this.limit);
		await this.evaluate("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))");
		return performance.now() - start;
	}
	// The value of an expression in the page.
	async evaluate(expression) {
		const {result, exceptionDetails} = await this.call("Runtime.evaluate",
			{expression, returnByValue: true, awaitPromise: true});
		if (exceptionDetails)
			throw new Error(`${expression}: ${exceptionDetails.exception?.description || exceptionDetails.text}`);
		return result.value;
	}
	async until(expression, limit = 10000) {
		const end = performance.now() + limit;
		while (performance.now() < end) {
			const value = await this.evaluate(expression).catch(() => null);
			if (value)
				return value;
			await new Promise((r) => setTimeout(r, 10));
		}
		throw new Error(`did not come true in ${limit / 1000} s: ${expression}`);
	}
	// A key, as the keyboard sends it.
	async key(key, modifiers = 0) {
		const one = key.length === 1;
		const code = KEY_CODES[key] || (/^[a-z0-9 ]$/i.test(key) ? key.toUpperCase().charCodeAt(0) : 0);
		const common = {key, modifiers, windowsVirtualKeyCode: code};
		const text = one ? key : key === "Enter" ? "\r" : undefined;
		await this.call("Input.dispatchKeyEvent", {type: text ? "keyDown" : "rawKeyDown", text, ...common});
		await this.call("Input.dispatchKeyEvent", {type: "keyUp", ...common});
	}
	async type(text) {
		for (const letter of text)
			await this.key(letter);
	}
	// A click into the middle of an element, or at a place in it.
	async click(selector, x, y, count = 1) {
		const box = await this.evaluate(`(() => { const e = document.querySelector(${JSON.stringify(selector)});
			if (!e) return null; const b = e.getBoundingClientRect();
			return {x: b.x, y: b.y, w: b.width, h: b.height}; })()`);
		if (!box)
			throw new Error(`no ${selector}`);
		const at = {x: box.x + (x ?? box.w / 2), y: box.y + (y ?? box.h / 2), button: "left", clickCount: count};
		await this.call("Input.dispatchMouseEvent", {type: "mouseMoved", x: at.x, y: at.y});
		await this.call("Input.dispatchMouseEvent", {type: "mousePressed", ...at});
		await this.call("Input.dispatchMouseEvent", {type: "mouseReleased", ...at});
	}
	async move(x, y) {
		await this.call("Input.dispatchMouseEvent", {type: "mouseMoved", x, y});
	}
	// From one place to another with the button held.
	async drag(from, to) {
		const send = (type, {x, y}, buttons) => this.call("Input.dispatchMouseEvent",
			{type, x, y, button: "left", buttons, clickCount: 1});
		await send("mouseMoved", from, 0);
		await send("mousePressed", from, 1);
		for (let i = 1; i <= 4; i++)
			await send("mouseMoved", {x: from.x + (to.x - from.x) * i / 4, y: from.y + (to.y - from.y) * i / 4}, 1);
		await send("mouseReleased", to, 0);
	}
	async wheel(x, y, deltaY, modifiers = 0) {
		await this.call("Input.dispatchMouseEvent", {type: "mouseWheel", x, y, deltaX: 0, deltaY, modifiers});
	}
	async screenshot(path) {
		const {data} = await this.call("Page.captureScreenshot", {format: "png"});
		writeFileSync(path, Buffer.from(data, "base64"));
	}
	async close() {
		const ended = new Promise((resolve) => this.process.on("exit", resolve));
		this.session = undefined;
		this.call("Browser.close").catch(() => {});
		const late = setTimeout(() => this.process.kill("SIGKILL"), 5000);
		if (!this.ended)
			await ended;
		clearTimeout(late);
		process.off("exit", this.stop);
		this.clear();
	}
}
