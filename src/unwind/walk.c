/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind/walk.h"

#include "unwind/step.h"

void walk_begin(struct walk *w, const struct unwind_cpu *cpu, const uint64_t *registers,
		uint64_t pc)
{
	step_begin(w, cpu, registers, pc);
}

const struct walk_module *walk_find_module(const struct walk_space *space, uint64_t address)
{
	size_t low = 0, high = space->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (space->modules[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct walk_module *found = low < space->count ? &space->modules[low] : NULL;
	return found && address >= found->start ? found : NULL;
}

enum walk_end walk_step(struct walk *w, const struct walk_space *space,
			const struct walk_reader *reader)
{
	const struct walk_module *module = walk_find_module(space, w->pc - !w->exact);
	if (!module)
		return WALK_NO_MODULE;
	return step_inline(w, module, reader->word, reader->context);
}

const char *walk_end_name(enum walk_end end)
{
	static const char *const names[] = {
		[WALK_ON] = "on",
		[WALK_COMPLETE] = "complete",
		[WALK_NO_MODULE] = "no module",
		[WALK_NO_RECIPE] = "no recipe",
		[WALK_COMPLEX] = "complex recipe",
		[WALK_BAD_MEMORY] = "bad memory",
		[WALK_BAD_FRAME] = "bad frame",
		[WALK_TOO_DEEP] = "too deep",
		[WALK_NO_STACK] = "stack not kept",
		[WALK_COUNTED] = "only counted",
	};
	return (unsigned)end < sizeof names / sizeof *names ? names[end] : "unknown";
}
