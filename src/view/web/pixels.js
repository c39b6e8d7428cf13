// SPDX-License-Identifier: Apache-2.0
// A picture of many small boxes.

import {el} from "./dom.js";

// Pixels are numbers as they lie in memory: red in the lowest byte.
function packColour(red, green, blue) {
	return (0xff000000 | Math.round(blue) << 16 | Math.round(green) << 8 | Math.round(red)) >>> 0;
}

// Hue in degrees, the others from 0 to 1.
export function hslColour(hue, strength, light) {
	const part = (n) => {
		const k = (n + hue / 30) % 12;
		return 255 * (light - strength * Math.min(light, 1 - light) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
	};
	return packColour(part(0), part(8), part(4));
}

// Colours of the style, by name.
export function readColours(colours) {
	const c = el("canvas", {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});
	return Object.fromEntries(Object.entries(colours).map(([name, colour]) => {
		c.fillStyle = colour;
		c.fillRect(0, 0, 1, 1);
		return [name, packColour(...c.getImageData(0, 0, 1, 1).data)];
	}));
}

// A picture of many small boxes: pixels are set one by one, which is much quicker than to have a canvas fill them.
export class Pixels {
	constructor(width, height, scale) {
		this.size = [width, height, scale].join();
		this.image = new ImageData(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
		this.all = new Uint32Array(this.image.data.buffer);
		this.scale = scale;
	}
	isLike(width, height, scale) {
		return this.size === [width, height, scale].join();
	}
	// Whatever its width, a box is at least one pixel wide.
	fill(x, y, w, h, colour) {
		const {scale, all} = this, {width, height} = this.image;
		const from = Math.max(0, Math.round(x * scale)), top = Math.max(0, Math.round(y * scale));
		const to = x + w < 0 ? 0 : Math.min(width, Math.max(from + 1, Math.round((x + w) * scale)));
		const bottom = Math.min(height, Math.round((y + h) * scale));
		for (let line = top; line < bottom; line++)
			for (let at = line * width + from, end = line * width + to; at < end; at++)
				all[at] = colour;
	}
}
