/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/patchable.h"

#include <string.h>

#include "harvest/probes.h"
#include "image/image.h"
#include "patch/plan.h"
#include "probe/modules.h"

#define NEAR (256u << 10) /* an island can be so near, on all CPUs */

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

/* camlModule__function_1, camlModule$function_1: the collector of OCaml's runtime looks each return address up. */
static bool is_ocaml(const char *name)
{
	return !strncmp(name, "caml", 4) && name[4] >= 'A' && name[4] <= 'Z' &&
	       (strstr(name, "__") || strpbrk(name, "$."));
}

static const char *why_not(const struct probe_function *f)
{
	const char *slash = strrchr(f->module, '/'), *file = slash ? slash + 1 : f->module;
	if (!strncmp(file, "ld-linux", 8) || !strncmp(file, "ld-musl", 7) || !strcmp(file, "ld.so"))
		return "it is a function of the dynamic linker, which runs before the agent";
	for (size_t i = 0; i < sizeof odd_returns / sizeof *odd_returns; i++)
		if (!strcmp(f->name, odd_returns[i]))
			return "it looks at its own return address, or returns in a way of its own";
	if (is_ocaml(f->name))
		return "it is a function of OCaml, whose runtime looks at return addresses";
	if (!f->room)
		return "where it ends is not known";
	return NULL;
}

static struct image *image_of(const struct probe_function *f, const struct probe_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++)
		if (!strcmp(modules->all[i].path, f->module))
			return modules->all[i].image;
	return NULL;
}

/* Why its beginning cannot be replaced by a jump, wherever that goes; NULL: it can. */
static const char *why_no_jump(const struct probe_function *f, struct image *image)
{
	const struct patch_cpu *cpu = patch_cpu_for(image_machine(image));
	uint64_t targets[PROBE_TARGETS], island = (f->address + NEAR) & ~UINT64_C(15);
	struct patch_plan plan;
	size_t size;
	const uint8_t *code = image_bytes_at(image, f->address, &size);
	if (!cpu || !code)
		return NULL;
	for (size_t i = 0; i < f->target_count; i++)
		targets[i] = f->address + f->targets[i];
	const struct patch_input input = {.code = code,
					  .size = size < f->room ? size : f->room,
					  .address = f->address,
					  .island = island,
					  .through = island - 16,
					  .targets = targets,
					  .target_count = f->target_count};
	enum patch_refusal refusal = patch_plan(cpu, &input, &plan);
	return refusal && refusal != PATCH_OUT_OF_REACH ? patch_refusal_text(refusal) : NULL;
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
		struct probe_function *f = &p->functions[i];
		struct image *image = image_of(f, modules);
		const char *why = why_not(f);
		if (!why && !f->unpatched && image)
			why = why_no_jump(f, image);
		if (comes_later(f, modules, at_start))
			why = "its file is loaded when the program already runs";
		if (why)
			f->unpatched = why;
	}
}

void probe_use_patches(struct probes *p, size_t first)
{
	for (size_t i = first; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		if (f->unpatched)
			probes_refuse(f, PROBE_REFUSED, f->unpatched);
		else if (f->state == PROBE_COUNTING)
			f->state = PROBE_ON;
		f->jumps = false;
		f->everywhere = true;
	}
}
