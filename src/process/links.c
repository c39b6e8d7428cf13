/* SPDX-License-Identifier: Apache-2.0 */
#include "process/links.h"

#include <stdlib.h>

#include "base/err.h"
#include "isa/insn.h"
#include "process/space.h"
#include "process/stacks.h"
#include "process/symbolize.h"

struct links {
	struct space *space;
	struct symbolizer *symbolizer;
	struct evidence *evidence;
};

static struct image *image_of(void *context, size_t module)
{
	return ((struct links *)context)->space->modules[module].image;
}

static const struct symbols *symbols_of(void *context, size_t module)
{
	struct links *l = context;
	return symbolizer_symbols(l->symbolizer, &l->space->modules[module]);
}

struct err *links_open(struct space *space, struct symbolizer *symbolizer, struct links **out)
{
	struct links *l = calloc(1, sizeof *l);
	*out = NULL;
	if (!l)
		return err_new("out of memory");
	l->space = space;
	l->symbolizer = symbolizer;
	struct evidence_source source = {l, space->module_count, image_of, symbols_of};
	struct err *e = evidence_open(&source, isa_for_machine(space->machine), &l->evidence);
	if (e) {
		free(l);
		return e;
	}
	*out = l;
	return NULL;
}

void links_close(struct links *l)
{
	if (!l)
		return;
	evidence_close(l->evidence);
	free(l);
}

static struct evidence_address place(const struct links *l, uint64_t address, uint64_t inside)
{
	const struct space_module *m = space_find(l->space, inside);
	if (!m)
		return (struct evidence_address){EVIDENCE_NOWHERE, 0};
	return (struct evidence_address){(size_t)(m - l->space->modules), address - m->bias};
}

enum link links_classify(struct links *l, const struct stack *stack, size_t index)
{
	if (index + 1 >= stack->count)
		return LINK_NONE;
	const struct stack_frame *callee = &stack->frames[index],
				 *caller = &stack->frames[index + 1];
	/* The kernel calls a signal handler, and its signal frame leads out of it: there is no call
	   instruction to check. */
	if (caller->exact || callee->how == STACK_SIGNAL || caller->how == STACK_SIGNAL)
		return LINK_VALID;
	uint64_t at = callee->address - !callee->exact;
	struct evidence_address from = place(l, caller->address, caller->address - 1),
				to = place(l, at, at);
	return evidence_classify(l->evidence, &from, &to);
}
