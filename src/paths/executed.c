/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/executed.h"

#include <string.h>

#include "base/err.h"
#include "image/image.h"
#include "isa/insn.h"
#include "paths/ranking.h"
#include "paths/result.h"
#include "profile/profile.h"

#define INSNS_MAX (1u << 22) /* more are not told apart, but block by block */

struct adding {
	struct profile *profile;
	uint32_t metric, thread;
	uint32_t module; /* of the function at hand */
	size_t insns;    /* so far */
};

static bool is_module(const struct profile_module *m, const struct path_function *f)
{
	return m->kind == PROFILE_FILE && !strcmp(m->path, f->module) &&
	       !strcmp(m->build_id, f->build_id ? f->build_id : "");
}

uint32_t paths_find_module(const struct profile *p, const struct path_function *f)
{
	for (uint32_t i = 1; i < p->module_count; i++)
		if (is_module(&p->modules[i], f))
			return i;
	return 0;
}

static struct err *add_at(struct adding *a, uint64_t address, uint64_t count)
{
	uint32_t node = 0;
	struct err *e = profile_child(a->profile, 0, PROFILE_EXACT, a->module, address, &node);
	return e ? e : profile_count(a->profile, node, a->thread, a->metric, count);
}

static struct err *add_block(struct adding *a, const struct ranked_function *f, uint32_t block)
{
	const struct graph_block *b = &f->function->graph.blocks[block];
	uint64_t count = f->flow.blocks[block];
	size_t size = 0;
	const uint8_t *code = f->file ? image_bytes_at(f->file->image, b->start, &size) : NULL;
	struct err *e = NULL;
	if (!count)
		return NULL;
	if (!code || b->end <= b->start || size < b->end - b->start ||
	    b->end - b->start > INSNS_MAX || a->insns >= INSNS_MAX)
		return add_at(a, b->start, count * f->lengths[block]);
	for (uint64_t at = b->start; at < b->end && !e;) {
		struct insn insn;
		f->file->isa->decode(code + (at - b->start), (size_t)(b->end - at), at, &insn);
		e = add_at(a, at, count);
		at += insn.length ? insn.length : 1;
		a->insns++;
	}
	return e;
}

/* Without its file, that name is all that is known of it. */
static struct err *add_name(struct adding *a, const struct ranked_function *f)
{
	const struct graph *g = &f->function->graph;
	const char *name = f->function->name;
	uint32_t last = g->entry;
	while (last + 1 < g->block_count && g->blocks[last + 1].start == g->blocks[last].end)
		last++;
	uint64_t start = f->function->address;
	if (f->file || !name || !*name || g->blocks[last].end <= start)
		return NULL;
	return profile_name_function(a->profile, a->module, start, g->blocks[last].end - start,
				     name);
}

static struct err *add_function(struct adding *a, const struct ranked_function *f)
{
	a->module = paths_find_module(a->profile, f->function);
	struct err *e = a->module && f->flow.taken ? add_name(a, f) : NULL;
	for (uint32_t i = 0; i < f->function->graph.block_count && a->module && !e; i++)
		e = add_block(a, f, i);
	return e;
}

struct err *paths_add_executed(const struct ranking *r, struct profile *p)
{
	struct adding a = {.profile = p};
	uint32_t process = 0;
	struct err *e = profile_add_metric(p,
					   &(struct profile_metric){.name = PATHS_EXECUTED,
								    .unit = "instructions",
								    .period = 1},
					   &a.metric);
	if (!e)
		e = profile_add_process(p,
					&(struct profile_process){.name = "counted",
								  .command = p->command,
								  .rank = -1,
								  .end_ns = p->duration_ns,
								  .status = -1,
								  .parent = -1},
					&process);
	if (!e)
		e = profile_add_thread(p,
				       &(struct profile_thread){.process = process,
								.name = "counted",
								.end_ns = p->duration_ns},
				       &a.thread);
	for (size_t i = 0; i < r->count - r->refused && !e; i++)
		e = add_function(&a, &r->functions[i]);
	return e ? e : profile_settle(p);
}
