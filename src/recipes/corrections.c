/* SPDX-License-Identifier: Apache-2.0 */
#include "recipes/corrections.h"

#include <stdbool.h>
#include <stddef.h>

#include "flow/frame.h"
#include "isa/insn.h"
#include "recipes/analysis.h"
#include "recipes/rows.h"

struct corrector {
	const struct analysis *analysis;
	const struct rows *cfi;
	void (*each)(void *context, uint64_t start, uint64_t end);
	void *context;
	size_t row;         /* of cfi, at or before the place */
	uint64_t run_start; /* first instruction of the disagreement under way, 0: none */
	uint64_t run_end;
};

/* Does the procedure end here, with the stack as it was at the entry? */
static bool leaves_procedure(const struct corrector *c, const struct trace_place *p)
{
	struct insn insn;
	size_t size;
	const uint8_t *code = trace_bytes(c->analysis->trace, p->address, &size);

	if (!code || !frame_is_entry(c->analysis->isa, p->state))
		return false;
	c->analysis->isa->decode(code, size, p->address, &insn);
	return insn.kind == INSN_RETURN || insn.kind == INSN_JUMP || insn.kind == INSN_JUMP_INDIRECT;
}

static bool differs(const struct corrector *c, const struct trace_place *p, const struct recipe *cfi)
{
	enum frame_verdict verdict;

	if (cfi->cfa == RECIPE_NONE || p->state->guessed)
		return false;
	verdict = frame_confirms(c->analysis->isa, p->state, cfi);
	return verdict == FRAME_OTHER_CFA || verdict == FRAME_OTHER_RA || verdict == FRAME_OTHER_FP;
}

static void correct_place(void *context, const struct trace_place *p)
{
	struct corrector *c = context;
	const struct recipe *cfi = &c->cfi->rules[rows_follow(c->cfi, &c->row, p->address)];
	bool wrong = differs(c, p, cfi);

	if (p->address != c->run_end || !wrong)
		c->run_start = 0;
	if (!wrong)
		return;
	if (!c->run_start)
		c->run_start = p->address;
	c->run_end = p->address + p->length;
	if (leaves_procedure(c, p)) {
		c->each(c->context, c->run_start, c->run_end);
		c->run_start = 0;
	}
}

void corrections_each(const struct analysis *analysis, const struct rows *cfi,
		      void (*each)(void *context, uint64_t start, uint64_t end), void *context)
{
	struct corrector c = {.analysis = analysis, .cfi = cfi, .each = each, .context = context};

	trace_each(analysis->trace, false, correct_place, &c);
}
