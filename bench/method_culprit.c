/* SPDX-License-Identifier: Apache-2.0 */
/* Ours: the tables of all modules, the step of unwind/step.h compiled in. */
#include "methods.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "local.h"
#include "recipes/cache.h"
#include "unwind/cpu.h"
#include "unwind/step.h"

#if defined(__aarch64__)
#define LOCAL_CPU unwind_cpu_aarch64
#else
#define LOCAL_CPU unwind_cpu_x86_64
#endif

#define MODULES_MAX 64

static struct walk_module modules[MODULES_MAX];
static struct walk_space space = {.modules = modules};

struct stack_bounds {
	uint64_t low, size;
};

static inline bool read_local(void *context, uint64_t address, uint64_t *out)
{
	const struct stack_bounds *b = context;
	if (address - b->low >= b->size)
		return false;
	memcpy(out, (const void *)(uintptr_t)address, sizeof *out);
	return true;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct walk_module m = {.start = UINT64_MAX, .bias = info->dlpi_addr};
	struct module_table table;
	struct image *image;
	struct err *e;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = m.bias + p->p_vaddr;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		m.start = start < m.start ? start : m.start;
		m.end = start + p->p_memsz > m.end ? start + p->p_memsz : m.end;
	}
	if (*path != '/' || !m.end) /* the vDSO is in none of the stacks */
		return 0;
	e = image_open(path, &image);
	if (!e)
		e = cache_table(image, RECIPES_AUTO, &table);
	if (e || space.count == MODULES_MAX) {
		fprintf(stderr, "bench: %s\n", e ? err_text(e) : "too many modules");
		*(bool *)data = false;
		return 1;
	}
	image_close(image);
	m.table = table.table;
	modules[space.count++] = m;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct walk_module *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static bool prepare(void)
{
	bool good = true;
	dl_iterate_phdr(add_module, &good);
	qsort(modules, space.count, sizeof *modules, by_start);
	return good;
}

/* Every lookup anew. */
static __attribute__((noinline)) size_t walk_tables(uintptr_t *frames)
{
	const struct walk_module *module = &modules[0];
	uint64_t registers[CPU_REGISTERS];
	struct stack_bounds bounds;
	struct walk w;
	size_t n = 0;
	step_begin(&w, &LOCAL_CPU, registers, local_registers(registers));
	bounds = (struct stack_bounds){w.sp, stack_top - w.sp};
	do {
		frames[n++] = w.pc;
		module = step_find_module(&space, module, w.pc - !w.exact);
	} while (n < FRAMES_MAX && module &&
		 step_inline(&w, module, read_local, &bounds) == WALK_ON);
	return n;
}

/* With the recipes of places seen before. */
static __attribute__((noinline)) size_t walk_cached(uintptr_t *frames)
{
	static struct step_cache cache;
	uint64_t registers[CPU_REGISTERS];
	struct stack_bounds bounds;
	struct walk w;
	size_t n = 0;
	step_begin(&w, &LOCAL_CPU, registers, local_registers(registers));
	bounds = (struct stack_bounds){w.sp, stack_top - w.sp};
	do
		frames[n++] = w.pc;
	while (n < FRAMES_MAX && step_cached(&w, &space, &cache, read_local, &bounds) == WALK_ON);
	return n;
}

const struct method method_culprit = {"culprit", "ours, cached recipes", prepare, walk_cached};
const struct method method_culprit_tables = {"culprit-tables", "ours, every lookup anew", NULL,
					     walk_tables};
