/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/restored.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flow/frame.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"

/* Is it in a word below SP, by the recipe's own account? */
static bool is_below(const struct recipe *r, uint8_t where, int32_t offset)
{
	return where == RECIPE_AT_CFA && offset < -r->cfa_offset;
}

static bool has_words_below(const struct isa *isa, const struct recipe *r)
{
	return r->cfa == RECIPE_REG && !r->cfa_vg && r->cfa_reg == isa->sp &&
	       (is_below(r, r->fp, r->fp_offset) || is_below(r, r->extra, r->extra_offset));
}

/* The same caller, with nothing from below SP that is in its register, too. False where there is no such thing. */
static bool make_restored(const struct isa *isa, const struct frame_state *state,
			  const struct recipe *cfi, struct recipe *out)
{
	bool fp = is_below(cfi, cfi->fp, cfi->fp_offset) && state->fp.kind == FRAME_FP;
	bool extra = is_below(cfi, cfi->extra, cfi->extra_offset) &&
		     state->extra.kind == FRAME_EXTRA;
	*out = *cfi;
	if ((!fp && !extra) || frame_confirms(isa, state, cfi) != FRAME_AGREES)
		return false;
	if (fp) {
		out->fp = RECIPE_SAME;
		out->fp_offset = 0;
	}
	if (extra) {
		out->extra = RECIPE_SAME;
		out->extra_offset = 0;
	}
	return true;
}

/* Most such intervals are one instruction. */
static void add_interval(const struct analysis *analysis, const struct recipe *cfi, uint64_t start,
			 uint64_t end, struct rows *out)
{
	const struct isa *isa = analysis->isa;
	struct recipe recipe;
	struct insn insn;
	for (uint64_t at = start; at < end; at += isa->insn_min) {
		const struct frame_state *state = trace_at(analysis->trace, at);
		size_t size;
		if (!state || !make_restored(isa, state, cfi, &recipe))
			continue;
		isa->decode(trace_bytes(analysis->trace, at, &size), size, at, &insn);
		rows_add(out, at, insn.length < end - at ? at + insn.length : end,
			 rows_rule(out, &recipe));
	}
}

void restored_add(const struct analysis *analysis, const struct rows *cfi, struct rows *out)
{
	for (size_t i = 0; i + 1 < cfi->count; i++) {
		const struct recipe *rule = &cfi->rules[cfi->rows[i].rule];
		if (has_words_below(analysis->isa, rule))
			add_interval(analysis, rule, cfi->rows[i].address, cfi->rows[i + 1].address,
				     out);
	}
}
