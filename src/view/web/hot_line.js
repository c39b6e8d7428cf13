// SPDX-License-Identifier: Apache-2.0
// The line in which a function or loop has the most samples of its own, so that it can be brought into sight.

import {KIND, cached} from "./model.js";
import {nodesOfScope} from "./views.js";

// By node: the first of its rows.
function rowStarts(model) {
	return cached(model, "rows by node", () => {
		const {node, count} = model.rows, starts = new Int32Array(model.nodes.count + 1);
		let next = 0;
		for (let r = 0; r < count; r++)
			while (next <= node[r])
				starts[next++] = r;
		return starts.fill(count, next);
	});
}

const hasLoops = (model) => cached(model, "has loops", () => model.scopes.kind.includes(KIND.loop));

// Goes through the rows of a node and of the loops in it.
function eachRow(model, node, run) {
	const starts = rowStarts(model), {scope, end} = model.nodes, {kind} = model.scopes;
	for (let r = starts[node]; r < starts[node + 1]; r++)
		run(r);
	for (let c = node + 1; hasLoops(model) && c < end[node]; c = end[c])
		if (kind[scope[c]] === KIND.loop)
			eachRow(model, c, run);
}

// The number of the line (model.lines) among the samples that count; 0: none is known. row: of any view
export function hotLine({model, selection, state, comparison}, row) {
	const nodes = row.node >= 0 ? [row.node] : row.scope > 0 ? nodesOfScope(model, row.scope) : [], sums = new Map();
	const {wanted, base} = selection, columns = comparison ? base.columns : [base.columns[state.metric]];
	const {line, thread} = model.rows;
	const add = (r) => {
		for (const {counts, threads} of wanted[r] ? columns : [])
			if (!threads || threads[thread[r]])
				sums.set(line[r], (sums.get(line[r]) || 0) + counts[r]);
	};
	for (const node of nodes)
		eachRow(model, node, add);
	sums.delete(0); // line not known
	return [...sums].reduce((best, one) => one[1] > best[1] ? one : best, [0, 0])[0];
}
