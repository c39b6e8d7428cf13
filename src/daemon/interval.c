/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and processes keep their numbers: both count from 1 what the other
 * does. Threads of a process become one.
 */
#include "daemon/interval.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/namer.h"
#include "profile/profile.h"
#include "unwind/end.h"

static struct err *no_memory(void)
{
	return err_new("out of memory");
}

void interval_lose(struct interval *v, enum store_loss_kind kind, const char *reason,
		   uint64_t samples)
{
	for (size_t i = 0; i < v->rows.loss_count; i++)
		if (v->losses[i].kind == kind && !strcmp(v->losses[i].reason, reason)) {
			v->losses[i].samples += samples;
			return;
		}
	if (!samples)
		return;
	if (v->rows.loss_count == INTERVAL_LOSSES)
		v->losses[INTERVAL_LOSSES - 1].samples += samples;
	else
		v->losses[v->rows.loss_count++] = (struct store_loss){kind, reason, samples};
	v->rows.losses = v->losses;
}

/* The kernel lies elsewhere in each boot, and so do its modules: its addresses mean something for
   that boot alone. */
static struct err *make_images(struct interval *v, const char *boot)
{
	const struct profile *p = v->from.profile;
	v->images = calloc(p->module_count, sizeof *v->images);
	if (!v->images)
		return no_memory();
	for (size_t i = 1; i < p->module_count; i++) {
		const struct profile_module *m = &p->modules[i];
		v->images[i - 1] = (struct store_image){
			m->kind, m->path, m->kind == PROFILE_KERNEL ? boot : m->build_id,
			m->kind == PROFILE_JIT ? m->process + 1 : 0};
	}
	v->rows.images = v->images;
	v->rows.image_count = p->module_count - 1;
	return NULL;
}

static struct err *make_processes(struct interval *v)
{
	const struct profile *p = v->from.profile;
	v->processes = calloc(p->process_count + 1, sizeof *v->processes);
	if (!v->processes)
		return no_memory();
	for (size_t i = 0; i < p->process_count; i++) {
		const struct profile_process *x = &p->processes[i];
		const struct process_owner *owner = &v->from.processes[i];
		v->processes[i] = (struct store_process){x->pid,      owner->start_ms,
							 x->name,     x->command,
							 owner->user, owner->container};
	}
	v->rows.processes = v->processes;
	v->rows.process_count = p->process_count;
	return NULL;
}

/* Stands for samples without a path. */
static bool is_counted(const struct profile_node *n)
{
	return n->kind == PROFILE_PARTIAL && n->address == WALK_COUNTED;
}

/* Of those, only the places are of interest. Where there are too many nodes, the last ones are left out,
   and the paths that end in them: parents come first. */
static struct err *make_nodes(struct interval *v)
{
	const struct profile *p = v->from.profile;
	size_t count = 0;
	v->node_ids = calloc(p->node_count, sizeof *v->node_ids);
	v->nodes = calloc(p->node_count, sizeof *v->nodes);
	if (!v->node_ids || !v->nodes)
		return no_memory();
	for (size_t i = 1; i < p->node_count && count < STORE_INTERVAL_ROWS_MAX; i++) {
		const struct profile_node *n = &p->nodes[i];
		if (is_counted(n) || is_counted(&p->nodes[n->parent]))
			continue;
		v->nodes[count++] = (struct store_node){v->node_ids[n->parent], n->module, n->kind,
							n->address};
		v->node_ids[i] = (uint32_t)count;
	}
	v->rows.nodes = v->nodes;
	v->rows.node_count = count;
	return NULL;
}

static int compare_counts(const void *a, const void *b)
{
	const struct store_count *x = a, *y = b;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Where there are too many, equal ones become one; what is too much even then is lost. */
static void settle_counts(struct interval *v)
{
	size_t kept = 0, count = v->rows.count_count;
	if (count <= STORE_INTERVAL_ROWS_MAX)
		return;
	qsort(v->counts, count, sizeof *v->counts, compare_counts);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_counts(&v->counts[kept - 1], &v->counts[i]))
			v->counts[kept - 1].count += v->counts[i].count;
		else
			v->counts[kept++] = v->counts[i];
	}
	for (; kept > STORE_INTERVAL_ROWS_MAX; kept--)
		interval_lose(v, STORE_LOST, "too many places at once", v->counts[kept - 1].count);
	v->rows.count_count = kept;
}

static struct err *make_counts(struct interval *v)
{
	const struct profile *p = v->from.profile;
	v->counts = calloc(p->value_count + 1, sizeof *v->counts);
	v->paths = calloc(p->value_count + 1, sizeof *v->paths);
	if (!v->counts || !v->paths)
		return no_memory();
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *x = &p->values[i];
		const struct profile_node *n = &p->nodes[x->node];
		uint32_t process = p->threads[x->thread].process + 1;
		bool nowhere = n->kind == PROFILE_PARTIAL || n->kind == PROFILE_ROOT;
		bool unknown = nowhere || p->modules[n->module].kind == PROFILE_NONE;
		v->counts[i] = (struct store_count){process, unknown ? 0 : n->module, x->metric,
						    unknown ? 0 : n->address, x->count};
		v->samples += x->count;
		if (v->node_ids[x->node] && v->rows.path_count < STORE_INTERVAL_ROWS_MAX)
			v->paths[v->rows.path_count++] = (struct store_path){
				v->node_ids[x->node], process, x->metric, x->count};
		if (unknown)
			interval_lose(v, STORE_UNKNOWN, nowhere ? "no frame" : "code of nobody",
				      x->count);
	}
	v->rows.counts = v->counts;
	v->rows.count_count = p->value_count;
	v->rows.paths = v->paths;
	settle_counts(v);
	return NULL;
}

static struct err *make_coverage(struct interval *v)
{
	const struct profile *p = v->from.profile;
	v->coverage = calloc(p->metric_count + 1, sizeof *v->coverage);
	if (!v->coverage)
		return no_memory();
	for (size_t i = 0; i < p->metric_count; i++)
		v->coverage[i] = p->metrics[i].coverage;
	v->rows.coverage = v->coverage;
	v->rows.coverage_count = p->metric_count;
	return NULL;
}

static void add_losses_and_cost(struct interval *v)
{
	const struct profile *p = v->from.profile;
	for (size_t i = 0; i < p->lost_count; i++)
		interval_lose(v, STORE_LOST, p->lost[i].reason, p->lost[i].count);
	for (size_t i = 0; i < p->thread_count; i++) {
		v->rows.cost.kernel_ns += p->threads[i].handler_ns;
		v->rows.cost.kernel_runs += p->threads[i].handled;
	}
}

struct err *interval_make(struct session_drained *from, struct namer *namer, const char *boot,
			  struct interval *v)
{
	*v = (struct interval){.from = *from};
	*from = (struct session_drained){0};
	struct err *e = make_images(v, boot);
	if (!e)
		e = make_processes(v);
	if (!e)
		e = make_nodes(v);
	if (!e)
		e = make_counts(v);
	if (!e)
		e = make_coverage(v);
	if (!e)
		e = namer_find(namer, v->from.profile, &v->symbols, &v->rows.symbol_count);
	if (v->rows.symbol_count > STORE_INTERVAL_ROWS_MAX)
		v->rows.symbol_count = STORE_INTERVAL_ROWS_MAX;
	v->rows.symbols = v->symbols;
	if (!e)
		add_losses_and_cost(v);
	return e;
}

void interval_free(struct interval *v)
{
	free(v->images);
	free(v->symbols);
	free(v->processes);
	free(v->nodes);
	free(v->node_ids);
	free(v->counts);
	free(v->paths);
	free(v->coverage);
	session_drained_free(&v->from);
	*v = (struct interval){0};
}
