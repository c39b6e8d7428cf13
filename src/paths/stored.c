/* SPDX-License-Identifier: Apache-2.0 */
#include "paths/stored.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "paths/files.h"
#include "paths/graph_bytes.h"
#include "paths/result.h"
#include "profile/profile.h"

/* What a file may ask of us, all in all: counters of paths, and steps from block to block and edge to edge. */
#define COUNTERS_MAX (UINT64_C(1) << 27)
#define STEPS_MAX (UINT64_C(1) << 34)

#define TOO_LARGE "what was counted of it is too large to be stored"

/* ---- into a profile ---- */

struct storing {
	struct profile *profile;
	const struct path_result *result;
	struct path_files files;
	const struct path_function *last; /* whose module has this number: */
	uint32_t module;
};

static bool same_module(const struct profile_module *m, const struct path_function *f)
{
	return m->kind == PROFILE_FILE && !strcmp(m->path, f->module) &&
	       !strcmp(m->build_id, f->build_id ? f->build_id : "");
}

static struct err *find_module(struct storing *s, const struct path_function *f)
{
	const struct profile *p = s->profile;
	if (s->last && same_module(&p->modules[s->module], f))
		return NULL;
	s->last = f;
	for (s->module = 1; s->module < p->module_count; s->module++)
		if (same_module(&p->modules[s->module], f))
			return NULL;
	return profile_add_module(
		s->profile,
		&(struct profile_module){.kind = PROFILE_FILE,
					 .path = f->module,
					 .build_id = f->build_id ? f->build_id : "",
					 .problem = ""},
		&s->module);
}

/* By block, malloc'ed; NULL: no memory. */
static uint32_t *measure(struct storing *s, const struct path_function *f)
{
	const struct path_file *file = path_files_get(&s->files, f);
	uint32_t *lengths = calloc(f->graph.block_count + 1, sizeof *lengths);
	for (size_t i = 0; i < f->graph.block_count && lengths; i++)
		lengths[i] = f->lengths ? f->lengths[i]
					: path_block_length(file, &f->graph.blocks[i]);
	return lengths;
}

/* The paths that were taken, malloc'ed; NULL: no memory. */
static struct profile_path *list_paths(const struct path_function *f, size_t *count)
{
	size_t taken = 0;
	for (uint64_t i = 0; i < f->numbering.path_count; i++)
		taken += f->counts[i] > 0;
	struct profile_path *paths = calloc(taken + 1, sizeof *paths);
	*count = taken;
	taken = 0;
	for (uint64_t i = 0; i < f->numbering.path_count && paths; i++)
		if (f->counts[i])
			paths[taken++] = (struct profile_path){i, f->counts[i]};
	return paths;
}

/* The paths that have any of a metric. False: there is no memory. */
static bool list_sampled(const struct path_function *f, const struct path_metered *m,
			 struct profile_sampled *out)
{
	size_t count = 0;
	for (uint64_t i = 0; i < f->numbering.path_count && m->paths; i++)
		count += m->paths[i].value > 0;
	out->paths = calloc(count + 1, sizeof *out->paths);
	for (uint64_t i = 0; i < f->numbering.path_count && m->paths && out->paths; i++)
		if (m->paths[i].value)
			out->paths[out->path_count++] = (struct profile_sampled_path){
				i, m->paths[i].value, m->paths[i].sure};
	return out->paths;
}

static bool store_sampled(const struct storing *s, const struct path_function *f,
			  struct profile_counted *out)
{
	bool good = true;
	out->sampled = calloc(f->metered_count + 1, sizeof *out->sampled);
	/* Also those that have nothing here: so they stay in their order. */
	for (size_t i = 0; i < f->metered_count && out->sampled && good; i++) {
		const struct path_metered *m = &f->metered[i];
		if (i >= s->result->metric_count || i == PROFILE_SAMPLED_MAX)
			break;
		struct profile_sampled *to = &out->sampled[out->sampled_count++];
		*to = (struct profile_sampled){.metric = s->result->metrics[i].name,
					       .unit = s->result->metrics[i].unit,
					       .samples = m->samples,
					       .placed = m->placed,
					       .sure = m->sure,
					       .value = m->value};
		good = list_sampled(f, m, to);
	}
	return out->sampled && good;
}

static void free_sampled(struct profile_sampled *sampled, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(sampled[i].paths);
	free(sampled);
}

static struct err *store_counted(struct storing *s, const struct path_function *f,
				 struct profile_counted *out)
{
	struct buf graph = {0};
	uint32_t *lengths = measure(s, f);
	struct profile_path *paths = list_paths(f, &out->path_count);
	struct err *e = NULL;
	if (lengths)
		graph_bytes_put(f, lengths, &graph);
	bool sampled = store_sampled(s, f, out);
	struct profile_sampled *of_metrics = out->sampled;
	const size_t metric_count = out->sampled_count;
	if (!lengths || !paths || graph.failed || !sampled)
		e = err_new("out of memory");
	out->entries = f->entries;
	out->unknown = f->unknown;
	out->graph = (uint8_t *)graph.data;
	out->graph_size = graph.size;
	out->paths = paths;
	if (graph.size > PROFILE_GRAPH_MAX || out->path_count > PROFILE_PATH_MAX ||
	    f->numbering.path_count > GRAPH_BYTES_PATHS)
		*out = (struct profile_counted){.module = out->module,
						.address = out->address,
						.name = out->name,
						.reason = TOO_LARGE};
	if (!e)
		e = profile_count_paths(s->profile, out);
	free(lengths);
	free(paths);
	free_sampled(of_metrics, metric_count);
	buf_free(&graph);
	return e;
}

static struct err *store_function(struct storing *s, const struct path_function *f)
{
	struct err *e = find_module(s, f);
	struct profile_counted out = {
		.module = s->module, .address = f->address, .name = f->name, .reason = ""};
	if (e || f->state == PATH_EXACT)
		return e ? e : store_counted(s, f, &out);
	out.reason = f->reason && *f->reason ? f->reason : "unknown reason";
	return profile_count_paths(s->profile, &out);
}

/* ---- contexts ---- */

/* The module of each function that has contexts, as the counted function has it. */
static struct err *find_modules(struct storing *s, uint32_t *modules)
{
	const struct path_contexts *c = &s->result->contexts;
	for (size_t i = 0; i < c->place_count; i++) {
		const struct path_caller *place = &c->places[i];
		struct err *e = NULL;
		for (size_t k = 0; k < s->result->count && !modules[i] && !e; k++) {
			const struct path_function *f = &s->result->functions[k];
			if (f->address != place->address || strcmp(f->module, place->module))
				continue;
			e = find_module(s, f);
			modules[i] = s->module;
		}
		if (e)
			return e;
	}
	return NULL;
}

static struct err *store_context(const struct storing *s, const struct path_context *n,
				 const uint32_t *modules)
{
	const struct path_caller *place = &s->result->contexts.places[n->place];
	struct profile_path *paths = calloc(n->taken_count + 1, sizeof *paths);
	if (!paths)
		return err_new("out of memory");
	for (size_t i = 0; i < n->taken_count; i++)
		paths[i] = (struct profile_path){n->taken[i].path, n->taken[i].count};
	const struct profile_context context = {.parent = n->parent,
						.module = modules[n->place],
						.address = place->address,
						.site = n->site,
						.entries = n->entries,
						.unknown = n->unknown,
						.paths = paths,
						.path_count = n->taken_count};
	struct err *e = profile_add_context(s->profile, &context);
	free(paths);
	return e;
}

static struct err *store_contexts(struct storing *s)
{
	const struct path_contexts *c = &s->result->contexts;
	uint32_t *modules = calloc(c->place_count + 1, sizeof *modules);
	struct err *e = modules ? find_modules(s, modules) : err_new("out of memory");
	for (size_t i = PATH_CONTEXTS_FIRST; i < c->count && !e; i++)
		e = store_context(s, &c->items[i], modules);
	free(modules);
	return e;
}

struct err *path_result_store(const struct path_result *result, struct profile *profile)
{
	struct storing s = {.profile = profile, .result = result};
	struct err *e = NULL;
	for (size_t i = 0; i < result->count && !e; i++)
		e = store_function(&s, &result->functions[i]);
	if (!e && profile->context_count == 0)
		e = store_contexts(&s);
	profile->forks += result->forks;
	path_files_free(&s.files);
	return e ? e : profile_settle(profile);
}

/* ---- out of it ---- */

struct budget {
	uint64_t counters, steps;
};

static bool spend(uint64_t *budget, uint64_t amount)
{
	bool enough = amount <= *budget;
	*budget -= enough ? amount : 0;
	return enough;
}

/* A path comes by each block and edge at most once. */
static bool is_bearable(const struct path_function *f, const struct profile_counted *c,
			struct budget *left)
{
	uint64_t last = c->path_count ? c->paths[c->path_count - 1].number : 0;
	return (!c->path_count || last < f->numbering.path_count) &&
	       spend(&left->steps,
		     c->path_count * (uint64_t)(f->graph.block_count + f->graph.edge_count)) &&
	       spend(&left->counters, f->numbering.path_count);
}

static bool restore_metric(const struct profile_sampled *s, struct path_result *result,
			   struct path_function *f)
{
	size_t metric = path_result_metric(result, s->metric, s->unit);
	struct path_metered *m = metric < PATH_METRICS_MAX ? &f->metered[metric] : NULL;
	if (!m)
		return false;
	*m = (struct path_metered){
		.samples = s->samples, .placed = s->placed, .sure = s->sure, .value = s->value};
	m->paths = calloc(f->numbering.path_count + 1, sizeof *m->paths);
	for (size_t i = 0; i < s->path_count && m->paths; i++)
		m->paths[s->paths[i].number] = (struct path_value){s->paths[i].value,
								   s->paths[i].sure};
	return m->paths;
}

/* False: it cannot be used. */
static bool restore_sampled(const struct profile_counted *c, struct path_result *result,
			    struct budget *left, struct path_function *f)
{
	bool good = true;
	if (!c->sampled_count)
		return true;
	f->metered = calloc(PATH_METRICS_MAX, sizeof *f->metered);
	f->metered_count = f->metered ? PATH_METRICS_MAX : 0;
	for (size_t i = 0; i < c->sampled_count && f->metered && good; i++)
		good = spend(&left->counters, 2 * f->numbering.path_count) &&
		       restore_metric(&c->sampled[i], result, f);
	return f->metered && good;
}

/* False: it cannot be used. */
static bool restore_counted(const struct profile_counted *c, struct path_result *result,
			    struct budget *left, struct path_function *f)
{
	struct err *e = graph_bytes_read(c->graph, c->graph_size, f);
	bool good = !e && is_bearable(f, c, left);
	err_free(e);
	f->counts = good ? calloc(f->numbering.path_count + 1, sizeof *f->counts) : NULL;
	for (size_t i = 0; i < c->path_count && f->counts; i++)
		f->counts[c->paths[i].number] = c->paths[i].count;
	f->entries = c->entries;
	f->unknown = c->unknown;
	return f->counts && restore_sampled(c, result, left, f);
}

static bool restore_function(const struct profile *p, const struct profile_counted *c,
			     struct path_result *result, struct budget *left,
			     struct path_function *f)
{
	const struct profile_module *m = &p->modules[c->module];
	bool refused = *c->reason;
	*f = (struct path_function){.name = strdup(c->name),
				    .module = strdup(m->path),
				    .build_id = strdup(m->build_id),
				    .until = m->until ? m->until : profile_end(p),
				    .address = c->address,
				    .state = refused ? PATH_REFUSED : PATH_EXACT,
				    .reason = refused ? c->reason : NULL};
	return f->name && f->module && f->build_id &&
	       (refused || restore_counted(c, result, left, f));
}

/* ---- contexts ---- */

static const char *name_at(const struct profile *p, uint32_t module, uint64_t address)
{
	size_t i = FIRST_NOT(k, p->counted_count,
			     p->counted[k].module < module || (p->counted[k].module == module &&
							       p->counted[k].address < address));
	bool here = i < p->counted_count && p->counted[i].module == module &&
		    p->counted[i].address == address;
	return here ? p->counted[i].name : "";
}

/* Those that were called, but in no context. */
static void find_without(struct path_result *r)
{
	for (size_t i = 0; i < r->count && r->contexts.count; i++) {
		struct path_function *f = &r->functions[i];
		f->no_context = f->state == PATH_EXACT && f->entries &&
				!path_contexts_of(&r->contexts, f->module, f->address);
	}
}

/* `to`: by index, what becomes of it. */
static bool restore_context(const struct profile *p, const struct profile_context *x, uint32_t *to,
			    size_t index, struct path_contexts *out)
{
	uint32_t place = path_contexts_place(out, name_at(p, x->module, x->address),
					     p->modules[x->module].path, x->address);
	uint32_t parent = x->parent < PROFILE_CONTEXT_FIRST ? x->parent
							    : to[x->parent - PROFILE_CONTEXT_FIRST];
	bool good = place != PATH_NO_CONTEXT;
	to[index] = good ? path_contexts_add(out, parent, place, x->site) : PATH_NO_CONTEXT;
	good = to[index] != PATH_NO_CONTEXT;
	if (good) {
		out->items[to[index]].entries += x->entries;
		out->items[to[index]].unknown += x->unknown;
	}
	for (size_t i = 0; i < x->path_count && good; i++)
		good = path_contexts_count(out, to[index], x->paths[i].number, x->paths[i].count);
	return good;
}

static struct err *restore_contexts(const struct profile *p, struct path_result *out)
{
	uint32_t *to = calloc(p->context_count + 1, sizeof *to);
	bool good = to && (!p->context_count || path_contexts_open(&out->contexts));
	for (size_t i = 0; i < p->context_count && good; i++)
		good = restore_context(p, &p->contexts[i], to, i, &out->contexts);
	free(to);
	path_contexts_settle(&out->contexts);
	find_without(out);
	return good ? NULL : err_new("out of memory");
}

struct err *path_result_restore(const struct profile *p, struct path_result *out, size_t *left_out)
{
	struct budget left = {COUNTERS_MAX, STEPS_MAX};
	struct err *e = NULL;
	*out = (struct path_result){.forks = p->forks};
	*left_out = 0;
	for (size_t i = 0; i < p->counted_count && !e; i++) {
		struct path_function f;
		if (restore_function(p, &p->counted[i], out, &left, &f)) {
			e = path_result_add(out, &f);
			continue;
		}
		path_function_free(&f);
		++*left_out;
	}
	if (!e)
		e = restore_contexts(p, out);
	if (e)
		path_result_free(out);
	else
		path_result_join(out);
	return e;
}
