/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/patchable.h"

#include <string.h>

#include "harvest/probes.h"
#include "probe/modules.h"

/* Those that do something with their own return address, or return elsewhere than they were called. */
static const char *const odd_returns[] = {
	"vfork",
	"__vfork",
	"clone",
	"__clone",
	"clone3",
	"__clone3",
	"__clone_internal",
	"makecontext",
	"__makecontext",
	"__start_context",
	"__restore_rt",
	"__restore",
	"_start",
	"_Unwind_RaiseException",
	"_Unwind_ForcedUnwind",
	"_Unwind_Resume",
	"_Unwind_Resume_or_Rethrow",
	"_Unwind_Backtrace",
	"__builtin_return_address",
	"mcount",
	"_mcount",
	"__fentry__",
	"dlopen",
	"dlmopen",
	"dlsym",
	"dlvsym",
	"dlclose",
};

static const char *why_not(const struct probe_function *f)
{
	const char *slash = strrchr(f->module, '/'), *file = slash ? slash + 1 : f->module;
	if (!strncmp(file, "ld-linux", 8) || !strncmp(file, "ld-musl", 7) || !strcmp(file, "ld.so"))
		return "it is a function of the dynamic linker, which runs before the agent";
	for (size_t i = 0; i < sizeof odd_returns / sizeof *odd_returns; i++)
		if (!strcmp(f->name, odd_returns[i]))
			return "it looks at its own return address, or returns in a way of its own";
	if (!f->room)
		return "where it ends is not known";
	return NULL;
}

static bool comes_later(const struct probe_function *f, const struct probe_modules *modules,
			size_t at_start)
{
	for (size_t i = at_start; i < modules->count; i++)
		if (!strcmp(modules->all[i].path, f->module))
			return true;
	return false;
}

void probe_judge_patches(struct probes *p, const struct probe_modules *modules, size_t at_start)
{
	for (size_t i = 0; i < p->count; i++) {
		const char *why = why_not(&p->functions[i]);
		if (comes_later(&p->functions[i], modules, at_start))
			why = "its file is loaded when the program already runs";
		if (why)
			p->functions[i].unpatched = why;
	}
}
