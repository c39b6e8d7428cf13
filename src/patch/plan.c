/* SPDX-License-Identifier: Apache-2.0 */
#include "patch/plan.h"

static const struct patch_cpu *const cpus[] = {&patch_x86_64, &patch_aarch64};

const struct patch_cpu *patch_cpu_for(uint16_t machine)
{
	for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
		if (cpus[i]->elf_machine == machine)
			return cpus[i];
	return NULL;
}

/* Whether a jump goes into the window. One to its beginning would be taken for a call. */
static bool is_jumped_into(const struct patch_input *in, const struct patch_plan *plan)
{
	for (size_t i = 0; i < in->target_count; i++)
		if (in->targets[i] >= plan->at && in->targets[i] < plan->at + plan->window)
			return true;
	return false;
}

enum patch_refusal patch_plan(const struct patch_cpu *cpu, const struct patch_input *in,
			      struct patch_plan *out)
{
	*out = (struct patch_plan){0};
	uint64_t distance = in->island > in->address ? in->island - in->address
						     : in->address - in->island;
	if (distance >= cpu->reach)
		return PATCH_OUT_OF_REACH;
	enum patch_refusal refusal = cpu->plan(in, out);
	if (!refusal && is_jumped_into(in, out))
		return PATCH_JUMPED_INTO;
	return refusal;
}

const char *patch_refusal_text(enum patch_refusal refusal)
{
	switch (refusal) {
	case PATCH_TOO_SMALL:
		return "it is too small for a jump";
	case PATCH_JUMPED_INTO:
		return "a jump goes to where the jump of the probe would be";
	case PATCH_UNKNOWN:
		return "it begins with an instruction that cannot be moved";
	case PATCH_TWO_PAGES:
		return "its beginning lies in two pages, which cannot be changed at once";
	case PATCH_OUT_OF_REACH:
		return "there is no room for code within reach of it";
	default:
		return "";
	}
}
