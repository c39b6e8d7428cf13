// SPDX-License-Identifier: Apache-2.0
// The tree with recursion folded: a function that is called while it is already on the path, by itself or by way of
// others, is the one that is there, and what it calls stands below that. It is a view as those of views.js; keys are
// the scopes on the way from the top.

import {Level, numbersOf} from "./levels.js";
import {cached, inBlocks} from "./model.js";
import {matchScopes} from "./select.js";
import {PathView, placesWith, valuesAt} from "./views.js";

// Which place of the folded tree each node has, found step by step. Place 0 is the root; those above come first. Nodes
// beside each other have different scopes, so places below one that stands for a single node are all new: they are
// looked up only below those that stand for several (`shared`).
class Fold {
	constructor(model, zoom) {
		const length = model.nodes.end[zoom] - zoom, list = () => new Int32Array(length);
		this.model = model;
		this.zoom = zoom;
		this.of = list();
		this.scope = list();
		this.parent = list();
		this.first = list(); // the last place below it; 0: none
		this.sibling = list(); // the one before it
		this.shared = new Uint8Array(length);
		this.scope[0] = model.nodes.scope[zoom];
		this.count = 1; // places
		this.next = zoom + 1;
		this.known = new Map(); // places below shared ones, by both numbers
		this.path = []; // scopes above the node that comes next, and by scope how often it is among them
		this.onPath = new Int32Array(model.scopes.count);
	}
	// Takes in some more nodes. Returns whether there are others.
	advance(limit) {
		const {scope, parent, end, depth} = this.model.nodes, {of, zoom, path, onPath} = this;
		const last = Math.min(end[zoom], this.next + limit);
		for (let i = this.next; i < last; i++) {
			while (path.length >= depth[i] - depth[zoom])
				onPath[path.pop()]--;
			of[i - zoom] = this.placeOf(of[parent[i] - zoom], scope[i]);
			path.push(scope[i]);
			onPath[scope[i]]++;
		}
		this.next = last;
		return last < end[zoom];
	}
	placeOf(up, scope) {
		for (let at = this.onPath[scope] ? up : 0; at > 0; at = this.parent[at])
			if (this.scope[at] === scope)
				return this.share(at);
		const found = this.shared[up] ? this.known.get(this.keyOf(up, scope)) : undefined;
		return found === undefined ? this.add(up, scope) : this.share(found);
	}
	keyOf(up, scope) {
		return up * this.onPath.length + scope;
	}
	add(up, scope) {
		const place = this.count++;
		this.scope[place] = scope;
		this.parent[place] = up;
		this.sibling[place] = this.first[up];
		this.first[up] = place;
		if (this.shared[up])
			this.known.set(this.keyOf(up, scope), place);
		return place;
	}
	// From now on it stands for several nodes.
	share(place) {
		for (let at = this.shared[place] ? 0 : this.first[place]; at; at = this.sibling[at])
			this.known.set(this.keyOf(place, this.scope[at]), at);
		this.shared[place] = 1;
		return place;
	}
	// The places below one.
	below(place) {
		const places = [];
		for (let at = this.first[place]; at; at = this.sibling[at])
			places.push(at);
		return Int32Array.from(places.reverse());
	}
}

const FOLD_STEP = 50000; // nodes

const begunFold = (model) => cached(model, "fold", () => new Fold(model, 0));

function foldOf(model, zoom) {
	const fold = zoom ? new Fold(model, zoom) : begunFold(model);
	fold.advance(Infinity);
	return fold;
}

function addOwn(from, to, of, zoom, upTo, own) {
	for (let i = from; i < to; i++)
		own[of[i - zoom]] += upTo[i + 1] - upTo[i];
}

export class Folded extends PathView {
	constructor(model, selection) {
		super(model, selection);
		this.fold = foldOf(model, selection.zoom);
		this.self = selection.sums.map(({upTo}) => this.sumOwn(upTo));
		this.total = this.self.map((own) => this.sumUp(own));
	}
	sumOwn(upTo) {
		const {of, zoom, count} = this.fold, own = new Float64Array(count);
		inBlocks(zoom, zoom + of.length, (from, to) => addOwn(from, to, of, zoom, upTo, own));
		return own;
	}
	sumUp(own) {
		const total = own.slice(), {parent} = this.fold;
		for (let place = total.length - 1; place > 0; place--)
			total[parent[place]] += total[place];
		return total;
	}
	row(place, key) {
		return {key, scope: this.fold.scope[place], node: -1, place, self: valuesAt(this.self, place),
			total: valuesAt(this.total, place), leaf: !this.fold.first[place]};
	}
	levelBelow(place, prefix) {
		const all = this.fold.below(place);
		const totals = this.total.map((list) => numbersOf(all, list));
		const places = placesWith(totals, 0, all.length).map((i) => all[i]);
		const scopes = places.map((one) => this.fold.scope[one]);
		return new Level(scopes, {
			of: (scope, i) => this.row(places[i], prefix + scope),
			numbers: (column, metric) => numbersOf(places, this[column][metric]),
			scopes,
		});
	}
	topLevel() {
		return this.levelBelow(0, "");
	}
	lowerLevel(row) {
		return this.levelBelow(row.place, `${row.key}.`);
	}
	keyOf(place) {
		const {scope, parent} = this.fold, path = [];
		for (let at = place; at > 0; at = parent[at])
			path.push(scope[at]);
		return path.reverse().join(".");
	}
	search(text) {
		const found = matchScopes(this.model, "name", text), {scope} = this.fold;
		const places = placesWith(this.total, 1, scope.length).filter((place) => found[scope[place]]);
		return {length: places.length, key: (i) => this.keyOf(places[i]),
			indexOf: (key) => places.findIndex((place) => this.keyOf(place) === key)};
	}
}

// As steps that can be taken while nothing else is to do.
export function prepareFold(model) {
	return [() => begunFold(model).advance(FOLD_STEP)];
}
