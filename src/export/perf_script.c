/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text as `perf script` prints it: a block for each path of each thread, innermost frame first,
 * which stackcollapse-perf.pl and others read. The samples of a path are one block,
 * whose period is the sum of theirs.
 *
 *     app                10/11       0.000000:  800000000 cpu-clock:
 *     	            1230 inner+0x30 (/usr/bin/app)
 *     	            1120 small (inlined)
 *     	            1120 solve+0x20 (/usr/bin/app)
 *
 * Readers leave out names that begin with a bracket: ours become others.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/job.h"
#include "export/locations.h"
#include "export/text.h"
#include "profile/profile.h"

#define ANONYMOUS "(anonymous namespace)"
#define BLANKS " \t"

struct script {
	struct job *j;
	struct locations locations;
	char **modules; /* names that are clean, by module */
	char **frames;  /* lines that were printed before, by frame */
};

static char *take_clean(struct job *j, const char *text, const char *avoid, char instead)
{
	struct buf clean = {0};
	text_clean(text, avoid, instead, &clean);
	if (!clean.size)
		buf_puts(&clean, "??");
	char *own = buf_take(&clean);
	j->no_memory |= !own;
	return own;
}

/* Of a file: a bracket after a space would begin another. */
static const char *module_of(struct script *s, uint32_t module)
{
	if (!module)
		return "[unknown]";
	if (!s->modules[module])
		s->modules[module] = take_clean(s->j, s->j->p->modules[module].path, BLANKS, '_');
	return s->modules[module] ? s->modules[module] : "[unknown]";
}

/* "(partial: …)" -> "[partial: …]", "(anonymous namespace)::f" -> "{anonymous}::f" */
static void put_name(const char *name, struct buf *out)
{
	size_t size = strlen(name);
	if (name[0] != '(')
		buf_puts(out, name);
	else if (!strncmp(name, ANONYMOUS, sizeof ANONYMOUS - 1))
		buf_printf(out, "{anonymous}%s", name + sizeof ANONYMOUS - 1);
	else if (name[size - 1] == ')')
		buf_printf(out, "[%.*s]", (int)(size - 2), name + 1);
	else
		buf_printf(out, "_%s", name);
}

static void describe(struct script *s, const struct frame *f, struct buf *out)
{
	const struct location *l = &s->locations.all[f->location];
	const struct scope *scope = job_scope(s->j, f->scope);
	bool real = l->kind == PROFILE_CALL || l->kind == PROFILE_EXACT;
	buf_printf(out, "\t%16" PRIx64 " ", real ? l->address : 0);
	put_name(job_name(s->j, f->scope), out);
	if (scope->kind == SCOPE_INLINE || scope->kind == SCOPE_LOOP) {
		buf_printf(out, " (%s)\n", scope->kind == SCOPE_LOOP ? "loop" : "inlined");
		return;
	}
	if (scope->kind == SCOPE_FUNCTION && scope->module && l->address >= scope->address)
		buf_printf(out, "+0x%" PRIx64, l->address - scope->address);
	buf_printf(out, " (%s)\n", real ? module_of(s, l->module) : "[unknown]");
}

static void put_frame(struct script *s, uint32_t frame)
{
	if (!s->frames[frame]) {
		struct buf line = {0};
		describe(s, &s->locations.frames[frame], &line);
		s->frames[frame] = buf_take(&line);
		s->j->no_memory |= !s->frames[frame];
	}
	if (s->frames[frame])
		fputs(s->frames[frame], s->j->out);
}

static void put_location(struct script *s, uint32_t location)
{
	const struct location *l = &s->locations.all[location];
	for (uint32_t i = l->count; i-- > 0;)
		put_frame(s, l->first + i);
}

static void put_block(struct script *s, const struct profile_value *v)
{
	const struct profile *p = s->j->p;
	const struct profile_thread *t = &p->threads[v->thread];
	char *name = take_clean(s->j, t->name, BLANKS, '_');
	char *event = take_clean(s->j, p->metrics[v->metric].name, BLANKS, '_');
	fprintf(s->j->out,
		"%-15s %5" PRId32 "/%-5" PRId32 " %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n",
		name ? name : "", p->processes[t->process].pid, t->tid, t->start_ns / 1000000000,
		t->start_ns / 1000 % 1000000, job_amount(s->j, v->metric, v->count),
		event ? event : "");
	free(name);
	free(event);
	uint32_t node = v->node;
	do {
		if (s->locations.of_node[node] != LOCATION_NONE && (node || !v->node))
			put_location(s, s->locations.of_node[node]);
		node = node ? p->nodes[node].parent : 0;
	} while (node);
	fputs("\n", s->j->out);
}

/* An event after the other: readers take the first one that they meet for theirs. */
static void put_all(struct script *s)
{
	const struct profile *p = s->j->p;
	for (size_t m = 0; m < s->j->metric_count; m++)
		for (size_t i = 0; i < p->value_count; i++)
			if (p->values[i].metric == s->j->metrics[m] && job_has(s->j, &p->values[i]))
				put_block(s, &p->values[i]);
}

static void free_all(char **texts, size_t count)
{
	for (size_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
}

struct err *perf_script_write(struct job *j)
{
	struct script s = {.j = j};
	struct err *e = job_check_paths(j, NULL);
	if (!e)
		e = locations_make(j, &s.locations);
	if (!e) {
		s.modules = calloc(j->p->module_count + 1, sizeof *s.modules);
		s.frames = calloc(s.locations.frame_count + 1, sizeof *s.frames);
		if (s.modules && s.frames)
			put_all(&s);
		else
			e = err_new("out of memory");
	}
	free_all(s.modules, j->p->module_count);
	free_all(s.frames, s.locations.frame_count);
	locations_free(&s.locations);
	return e;
}
