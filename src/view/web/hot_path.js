// SPDX-License-Identifier: Apache-2.0
// Why the hot path does not go on.

import {formatPercent} from "./format.js";
import {rowName} from "./views.js";

// key: of the row from which it would go, "" for the top; numbers(level): what is large, where that is no total.
export function noHotPath({model, state}, outline, key, numbers = null) {
	const {metric} = state, row = key ? outline.view.rowOf(key) : null, from = row ? rowName(model, row) : "all";
	const best = outline.largest(row, numbers || ((level) => level.numbers("total", metric)));
	if (!best)
		return `The hot path ends here: nothing is below ${from}.`;
	if (numbers)
		return `The hot path ends here: nothing below ${from} has half of its difference.`;
	const whole = row ? row.total[metric] : model.whole[metric];
	return `The hot path ends here: nothing below ${from} has half of its samples. The largest is ` +
		`${rowName(model, best)}, with ${formatPercent(best.total[metric], whole)} of them.`;
}
