/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/hottest.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "profile/profile.h"
#include "structure/extents.h"

#define GAP_BYTES_MAX 1u /* code that nothing describes is in no function */

struct place { /* samples of an instruction */
	uint32_t module;
	uint64_t address;
	uint64_t samples;
};

struct maker {
	const struct profile *profile;
	struct place *places; /* ascending by module */
	size_t place_count;
	struct hottest *out;
	size_t room;
};

/* ---- samples ---- */

static bool is_of_cpu(const struct profile_metric *m)
{
	static const char *const names[] = {"cpu-clock", "task-clock", "cpu-cycles", "cycles"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t size = strlen(names[i]);
		if (!strncmp(m->name, names[i], size) && (!m->name[size] || m->name[size] == ':'))
			return true;
	}
	return false;
}

static bool choose_metric(const struct profile *p, uint32_t *metric)
{
	for (uint32_t i = 0; i < p->metric_count; i++)
		if (is_of_cpu(&p->metrics[i])) {
			*metric = i;
			return true;
		}
	return false;
}

static int by_module(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return x->module < y->module ? -1 : x->module > y->module;
}

static struct err *list_places(struct maker *m, uint32_t metric, const bool *wanted)
{
	const struct profile *p = m->profile;
	m->places = calloc(p->value_count + 1, sizeof *m->places);
	if (!m->places)
		return err_new("out of memory");
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		const struct profile_node *n = &p->nodes[v->node];
		if (v->metric != metric)
			continue;
		m->out->all += v->count;
		if (!wanted[n->module] || (n->kind != PROFILE_EXACT && n->kind != PROFILE_CALL))
			continue;
		uint64_t before = n->kind == PROFILE_CALL; /* the call is there */
		m->out->samples += v->count;
		m->places[m->place_count++] = (struct place){n->module, n->address - before,
							     v->count};
	}
	if (m->place_count)
		qsort(m->places, m->place_count, sizeof *m->places, by_module);
	return NULL;
}

/* ---- a module ---- */

static bool is_recorded(const struct profile *p, const struct profile_module *m,
			const struct image *image)
{
	return image_is_same(image, m->path, m->build_id, m->until ? m->until : profile_end(p));
}

static struct err *add_functions(struct maker *m, uint32_t module, const struct extents *extents,
				 const uint64_t *samples)
{
	struct hottest *out = m->out;
	for (uint32_t i = 0; i < extents->procedure_count; i++) {
		const char *name = extents->procedures[i].name;
		if (!samples[i])
			continue;
		if (!ARRAY_ROOM(out->functions, out->count, m->room))
			return err_new("out of memory");
		out->functions[out->count++] = (struct hot_function){
			.module = module,
			.entry = extents_start(extents, i),
			.name = name ? strdup(name) : NULL,
			.samples = samples[i]};
	}
	return NULL;
}

static struct err *count_samples(struct maker *m, const struct place *places, size_t count,
				 const struct extents *extents)
{
	uint64_t *samples = calloc(extents->procedure_count + 1, sizeof *samples);
	if (!samples)
		return err_new("out of memory");
	for (size_t i = 0; i < count; i++) {
		uint32_t procedure = extents_at(extents, places[i].address);
		if (procedure != EXTENT_NONE)
			samples[procedure] += places[i].samples;
	}
	struct err *e = add_functions(m, places->module, extents, samples);
	free(samples);
	return e;
}

/* `places` are those of one module. */
static struct err *read_module(struct maker *m, const struct place *places, size_t count)
{
	const struct profile_module *module = &m->profile->modules[places->module];
	struct image *image = NULL;
	struct symbols *symbols = NULL;
	struct extents extents = {0};
	struct err *e = image_open(module->path, &image);
	if (!e && !is_recorded(m->profile, module, image))
		e = err_new("%s has changed since it was recorded: record it again", module->path);
	if (!e)
		e = symbols_read(image, NULL, &symbols);
	if (!e)
		e = extents_find(image, NULL, symbols, NULL, GAP_BYTES_MAX, &extents);
	if (!e)
		e = count_samples(m, places, count, &extents);
	extents_free(&extents);
	symbols_free(symbols);
	image_close(image);
	return e;
}

/* ---- all of it ---- */

static int hottest_first(const void *a, const void *b)
{
	const struct hot_function *x = a, *y = b;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct err *hottest_make(const struct profile *profile, const bool *wanted, struct hottest *out)
{
	struct maker m = {.profile = profile, .out = out};
	uint32_t metric;
	*out = (struct hottest){0};
	if (!choose_metric(profile, &metric))
		return err_new("it has no samples of CPU time");
	struct err *e = list_places(&m, metric, wanted);
	for (size_t first = 0, end; first < m.place_count && !e; first = end) {
		for (end = first + 1;
		     end < m.place_count && m.places[end].module == m.places[first].module;)
			end++;
		e = read_module(&m, &m.places[first], end - first);
	}
	if (out->count)
		qsort(out->functions, out->count, sizeof *out->functions, hottest_first);
	free(m.places);
	if (e)
		hottest_free(out);
	return e;
}

void hottest_free(struct hottest *h)
{
	for (size_t i = 0; i < h->count; i++)
		free(h->functions[i].name);
	free(h->functions);
	*h = (struct hottest){0};
}
