/* SPDX-License-Identifier: Apache-2.0 */
#include "harvest/entries.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "image/symbols.h"
#include "profile/profile.h"

struct moving {
	struct profile *p;
	uint32_t metric;
	size_t count;  /* nodes that were there before */
	bool *counted; /* nodes that have counts */
	uint32_t *to;  /* where they go; 0: nowhere */
};

static uint64_t instruction_of(const struct profile_node *n)
{
	return n->address - (n->kind == PROFILE_CALL);
}

static bool is_wanted(const struct moving *m, size_t node, uint32_t module)
{
	return m->counted[node] && m->p->nodes[node].module == module;
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Returns the addresses in a module that have counts, ascending; NULL: none. */
static uint64_t *find_addresses(const struct moving *m, uint32_t module, size_t *count)
{
	uint64_t *out = reallocarray(NULL, m->count + 1, sizeof *out);
	*count = 0;
	for (size_t i = 1; out && i < m->count; i++)
		if (is_wanted(m, i, module))
			out[(*count)++] = instruction_of(&m->p->nodes[i]);
	if (out && *count)
		qsort(out, *count, sizeof *out, compare_addresses);
	if (out && *count)
		return out;
	free(out);
	return NULL;
}

static struct image *open_file(const struct profile_module *module)
{
	char build_id[2 * BUILD_ID_MAX + 1];
	struct image *image = NULL;
	err_free(image_open(module->path, &image));
	if (image)
		image_build_id_hex(image, build_id);
	if (image && strcmp(build_id, module->build_id) != 0) {
		image_close(image);
		image = NULL;
	}
	return image;
}

static struct err *find_entries(const struct moving *m, uint32_t module,
				const struct symbols *symbols)
{
	struct err *e = NULL;
	for (size_t i = 1; !e && i < m->count; i++) {
		const struct profile_node *n = &m->p->nodes[i];
		const struct symbol *s = is_wanted(m, i, module)
						 ? symbols_find(symbols, instruction_of(n))
						 : NULL;
		if (s)
			e = profile_child(m->p, n->parent, PROFILE_EXACT, module, s->address,
					  &m->to[i]);
	}
	return e;
}

static struct err *look_into(const struct moving *m, uint32_t module)
{
	struct symbols *symbols = NULL;
	size_t count;
	uint64_t *addresses = find_addresses(m, module, &count);
	struct image *image = addresses ? open_file(&m->p->modules[module]) : NULL;
	struct err *e = NULL;
	if (image)
		err_free(symbols_read_near(image, NULL, addresses, count, &symbols));
	if (symbols)
		e = find_entries(m, module, symbols);
	symbols_free(symbols);
	image_close(image);
	free(addresses);
	return e;
}

/* Whether there is anything to move. */
static bool prepare(struct moving *m)
{
	bool any = false;
	m->counted = calloc(m->count + 1, sizeof *m->counted);
	m->to = calloc(m->count + 1, sizeof *m->to);
	for (size_t i = 0; m->counted && m->to && i < m->p->value_count; i++)
		if (m->p->values[i].metric == m->metric)
			any = m->counted[m->p->values[i].node] = true;
	return any;
}

void entries_take_counts(struct profile *p, uint32_t metric)
{
	struct moving m = {.p = p, .metric = metric, .count = p->node_count};
	struct err *e = NULL;
	if (prepare(&m)) {
		for (uint32_t i = 1; !e && i < p->module_count; i++)
			if (p->modules[i].kind == PROFILE_FILE)
				e = look_into(&m, i);
		if (!e)
			e = profile_move(p, metric, m.to, m.count);
	}
	err_free(e); /* what was not moved stays where it is */
	free(m.counted);
	free(m.to);
}
