/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an address to its function in two steps, each a search among sorted
 * points: which unit (dwarf_module.h, made once from what units say of
 * themselves), then which function of the unit. The second index is made when
 * a unit is first asked for, by one pass over its DIEs that reads only those of
 * functions. The tree of a function is read anew for every question, and given
 * away: so threads share nothing but indices that do not change any more.
 */
#include "image/inlines.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/parallel.h"
#include "image/gotab.h"
#include "image/gotab_lines.h"
#include "image/image.h"
#include "image/inlines_unit.h"
#include "image/lines_files.h"
#include "image/lines_table.h"

#define LOCKS 64
#define MEMORY_SMALL 64
#define MEMORY_LARGE 16384

struct lazy_unit {
	atomic_bool ready;
	struct inline_unit unit;
};

struct inlines {
	struct image *image;
	struct dwarf_module *module;
	struct inline_tools tools;
	struct lines_files names;
	pthread_mutex_t lock;
	pthread_mutex_t unit_locks[LOCKS];
	_Atomic(struct lazy_unit *) units; /* one per unit of the module's file */
	size_t unit_count;
};

struct err *inlines_open(struct image *image, struct image *debug, struct lines *lines,
			 struct inlines **out)
{
	struct inlines *x = calloc(1, sizeof *x);
	(void)debug; /* the lines know which of the two has the DWARF */
	*out = x;
	if (!x)
		return err_new("%s: out of memory", image_path(image));
	x->image = image;
	x->module = lines_module(lines);
	x->tools = (struct inline_tools){x->module, lines, &x->names};
	lines_files_init(&x->names);
	pthread_mutex_init(&x->lock, NULL);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&x->unit_locks[i], NULL);
	return NULL;
}

void inlines_close(struct inlines *x)
{
	struct lazy_unit *units;
	if (!x)
		return;
	units = atomic_load(&x->units);
	for (size_t i = 0; units && i < x->unit_count; i++)
		inline_unit_free(&units[i].unit);
	free(units);
	lines_files_free(&x->names);
	pthread_mutex_destroy(&x->lock);
	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_destroy(&x->unit_locks[i]);
	free(x);
}

const char *inlines_damage(const struct inlines *x)
{
	return atomic_load(&dwarf_module_note(x->module)->text);
}

/* ---- units ---- */

static struct lazy_unit *all_units(struct inlines *x)
{
	struct lazy_unit *units = atomic_load_explicit(&x->units, memory_order_acquire);
	if (units)
		return units;
	pthread_mutex_lock(&x->lock);
	units = atomic_load(&x->units);
	if (!units) {
		x->unit_count = dwarf_module_file(x->module)->unit_count;
		units = calloc(x->unit_count + 1, sizeof *units);
		atomic_store_explicit(&x->units, units, memory_order_release);
	}
	pthread_mutex_unlock(&x->lock);
	return units;
}

/* The index of a unit's functions, made by the first who asks. */
static struct inline_unit *need_unit(struct inlines *x, size_t index)
{
	struct lazy_unit *units = all_units(x), *lazy;
	if (!units)
		return NULL;
	lazy = &units[index];
	if (atomic_load_explicit(&lazy->ready, memory_order_acquire))
		return &lazy->unit;
	pthread_mutex_lock(&x->unit_locks[index % LOCKS]);
	if (!atomic_load_explicit(&lazy->ready, memory_order_relaxed)) {
		inline_unit_read(&lazy->unit, x->module,
				 &dwarf_module_file(x->module)->units[index]);
		atomic_store_explicit(&lazy->ready, true, memory_order_release);
	}
	pthread_mutex_unlock(&x->unit_locks[index % LOCKS]);
	return &lazy->unit;
}

/* ---- one procedure ---- */

#define OF_GO (UINT64_C(1) << 63) /* a number of Go's own table */

/* What DWARF does not know: of programs without it. */
static bool find_go(struct inlines *x, uint64_t address, uint64_t *which)
{
	const struct gotab *go = lines_go(x->tools.lines);
	size_t index;
	if (!go || !gotab_find(go, address, &index))
		return false;
	*which = OF_GO | index;
	return true;
}

bool inlines_function(struct inlines *x, uint64_t address, uint64_t *which)
{
	uint32_t index = dwarf_points_find(dwarf_module_points(x->module), address), function;
	struct inline_unit *unit = index == POINT_NOTHING ? NULL : need_unit(x, index);
	function = unit ? dwarf_points_find(&unit->points, address) : POINT_NOTHING;
	if (function == POINT_NOTHING)
		return find_go(x, address, which);
	*which = (uint64_t)index << 32 | function;
	return true;
}

bool inlines_build(struct inlines *x, uint64_t which, struct inline_procedure *out)
{
	struct inline_names kept[MEMORY_SMALL] = {0};
	struct inline_memory memory = {kept, MEMORY_SMALL - 1};
	struct inline_unit *unit;
	if (which & OF_GO)
		return gotab_tree(lines_go(x->tools.lines), (size_t)(which & ~OF_GO),
				  lines_paths(x->tools.lines), out);
	unit = need_unit(x, which >> 32);
	return unit &&
	       inline_unit_build(unit, &x->tools, &memory, &unit->functions[(uint32_t)which], out);
}

struct err *inlines_find(struct inlines *x, uint64_t address, struct inline_procedure *out,
			 bool *found)
{
	uint64_t which;
	*out = (struct inline_procedure){0};
	*found = inlines_function(x, address, &which) && inlines_build(x, which, out);
	return all_units(x) ? NULL : err_new("%s: out of memory", image_path(x->image));
}

/* ---- all procedures ---- */

struct listed {
	uint64_t start;
	uint32_t unit, function;
};

static int compare_listed(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static void read_one(void *context, size_t index)
{
	struct inlines *x = context;
	if (dwarf_module_file(x->module)->units[index].has_addresses)
		need_unit(x, index);
}

/* All functions, in the order of their addresses. */
static struct listed *list_all(struct inlines *x, size_t *count)
{
	struct lazy_unit *units = all_units(x);
	struct listed *all;
	size_t at = 0;
	*count = 0;
	if (!units)
		return NULL;
	parallel_for(x->unit_count, read_one, x);
	for (size_t i = 0; i < x->unit_count; i++)
		*count += units[i].unit.count;
	all = reallocarray(NULL, *count + 1, sizeof *all);
	for (size_t i = 0; all && i < x->unit_count; i++)
		for (size_t k = 0; k < units[i].unit.count; k++)
			all[at++] = (struct listed){units[i].unit.functions[k].start, (uint32_t)i,
						    (uint32_t)k};
	if (all)
		qsort(all, *count, sizeof *all, compare_listed);
	return all;
}

/* Whether inlines_find gives this one for its address: of several units that have the same
   function (the linker folded equal ones) one counts. */
static bool is_named(struct inlines *x, const struct listed *l)
{
	const struct inline_unit *unit = &all_units(x)[l->unit].unit;
	return dwarf_points_find(dwarf_module_points(x->module), l->start) == l->unit &&
	       dwarf_points_find(&unit->points, l->start) == l->function;
}

struct err *inlines_each(struct inlines *x,
			 struct err *(*each)(void *context,
					     const struct inline_procedure *procedure),
			 void *context)
{
	struct inline_memory memory = {calloc(MEMORY_LARGE, sizeof(struct inline_names)),
				       MEMORY_LARGE - 1};
	struct err *e = NULL;
	size_t count = 0;
	struct listed *all = memory.all ? list_all(x, &count) : NULL;
	if (!all)
		e = err_new("%s: out of memory", image_path(x->image));
	for (size_t i = 0; i < count && !e; i++) {
		struct inline_unit *unit = &all_units(x)[all[i].unit].unit;
		struct inline_procedure procedure;
		if (!is_named(x, &all[i]) ||
		    !inline_unit_build(unit, &x->tools, &memory, &unit->functions[all[i].function],
				       &procedure))
			continue;
		e = each(context, &procedure);
		inline_procedure_free(&procedure);
	}
	free(all);
	free(memory.all);
	return e;
}
