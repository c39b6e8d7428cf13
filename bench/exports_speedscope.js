// SPDX-License-Identifier: Apache-2.0
// exports_speedscope.js PACKAGE FILE: what speedscope (the npm package in the folder PACKAGE) says of a
// profile: each profile's unit and each function's weights, as JSON.
//
// The package is a page: its script is run up to where it would draw, and asked for its importer.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [folder, file] = process.argv.slice(2);
const release = path.join(folder, 'dist/release');
const script = fs.readdirSync(release).find(name => /^speedscope-.*\.js$/.test(name));
const code = fs.readFileSync(path.join(release, script), 'utf8');
const importer = /loadFileFromBase64:\((\w+),(\w+)\)=>\{this\.loadProfile\(\(\)=>([\w$]+)\(\1,\2\)\)/.exec(code);
const end = code.lastIndexOf('console.log(`speedscope v');
if (!importer || end < 0)
	throw new Error(`${script}: another speedscope than this script knows`);

// Whatever the page wants of a browser.
const nothing = new Proxy(function () {}, {
	get: (_, key) => key === Symbol.toPrimitive ? () => '' : nothing,
	set: () => true,
	apply: () => nothing,
	construct: () => nothing,
	has: () => true,
});
const world = {
	console: {...console, log: console.error}, setTimeout, clearTimeout, TextDecoder, TextEncoder, URL, performance,
	atob, btoa, DecompressionStream, Response, Blob,
	document: nothing, navigator: {userAgent: '', platform: ''}, location: {href: '', hash: '', protocol: 'file:'},
	matchMedia: () => nothing, addEventListener: () => {}, requestAnimationFrame: () => 0,
	localStorage: nothing, HTMLElement: class {}, Node: class {},
};
world.window = world.self = world.globalThis = world;
vm.createContext(world);
vm.runInContext(`${code.slice(0, end)};globalThis.importer=${importer[3]};})();`, world);

world.importer(path.basename(file), fs.readFileSync(file).toString('base64')).then(group => {
	if (!group)
		throw new Error('not recognised');
	const out = group.profiles.map(profile => {
		const frames = [];
		profile.forEachFrame(f => frames.push([f.name, f.file || '', f.line || 0, f.getSelfWeight(), f.getTotalWeight()]));
		return {name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames};
	});
	process.stdout.write(JSON.stringify(out));
}).catch(error => {
	console.error(String(error));
	process.exit(1);
});
