/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text as `perf script` prints it: a block for each sample, innermost frame first, which
 * stackcollapse-perf.pl and others read. Some of them add up the periods, some count the blocks,
 * some take the time from one to the next; so each sample has a block of its own.
 *
 *     app                10/11       0.001000:    1000000 cpu-clock:
 *     	            1230 inner+0x30 (/usr/bin/app)
 *     	            1120 small (inlined)
 *     	            1120 solve+0x20 (/usr/bin/app)
 *
 * There are no times in a profile: the samples of a thread stand one after the other, a path's
 * together. Readers leave out names that begin with a bracket: ours become others.
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
#define NO_CLOCK_STEP UINT64_C(1000000) /* ns between samples of what is no time */

struct script {
	struct job *j;
	struct locations locations;
	char **modules; /* names that are clean, by module */
	char **frames;  /* lines that were made before, by frame */
	uint64_t *time; /* of the newest sample in ns, by thread */
	struct buf head, path;
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
		buf_puts(&s->path, s->frames[frame]);
}

static void put_location(struct script *s, uint32_t location)
{
	const struct location *l = &s->locations.all[location];
	for (uint32_t i = l->count; i-- > 0;)
		put_frame(s, l->first + i);
}

static void put_path(struct script *s, uint32_t leaf)
{
	uint32_t node = leaf;
	buf_clear(&s->path);
	do {
		if (s->locations.of_node[node] != LOCATION_NONE && (node || !leaf))
			put_location(s, s->locations.of_node[node]);
		node = node ? s->j->p->nodes[node].parent : 0;
	} while (node);
}

static void put_head(struct script *s, const struct profile_thread *t)
{
	char *name = take_clean(s->j, t->name, BLANKS, '_');
	buf_clear(&s->head);
	buf_printf(&s->head, "%-15s %5" PRId32 "/%-5" PRId32, name ? name : "",
		   s->j->p->processes[t->process].pid, t->tid);
	free(name);
}

static void put_samples(struct script *s, const struct profile_value *v, const char *event)
{
	const struct profile_metric *m = &s->j->p->metrics[v->metric];
	uint64_t period = job_amount(s->j, v->metric, 1), *time = &s->time[v->thread];
	uint64_t step = m->period && !strcmp(m->unit, "ns") ? period : NO_CLOCK_STEP;
	put_head(s, &s->j->p->threads[v->thread]);
	put_path(s, v->node);
	s->j->no_memory |= s->head.failed || s->path.failed;
	for (uint64_t i = 0; i < v->count && !ferror(s->j->out); i++) {
		*time += step;
		fprintf(s->j->out, "%s %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n%s\n",
			buf_text(&s->head), *time / 1000000000, *time / 1000 % 1000000, period,
			event, buf_text(&s->path));
	}
}

/* An event after the other: readers take the first one that they meet for theirs. */
static void put_all(struct script *s)
{
	const struct profile *p = s->j->p;
	for (size_t m = 0; m < s->j->metric_count; m++) {
		char *event = take_clean(s->j, p->metrics[s->j->metrics[m]].name, BLANKS, '_');
		for (size_t i = 0; i < p->thread_count; i++)
			s->time[i] = p->threads[i].start_ns;
		for (size_t i = 0; i < p->value_count; i++)
			if (p->values[i].metric == s->j->metrics[m] && job_has(s->j, &p->values[i]))
				put_samples(s, &p->values[i], event ? event : "");
		free(event);
	}
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
	struct err *e = job_check_paths(j, true, NULL);
	if (!e)
		e = locations_make(j, &s.locations);
	if (!e) {
		s.modules = calloc(j->p->module_count + 1, sizeof *s.modules);
		s.frames = calloc(s.locations.frame_count + 1, sizeof *s.frames);
		s.time = calloc(j->p->thread_count + 1, sizeof *s.time);
		if (s.modules && s.frames && s.time)
			put_all(&s);
		else
			e = err_new("out of memory");
	}
	free_all(s.modules, j->p->module_count);
	free_all(s.frames, s.locations.frame_count);
	free(s.time);
	buf_free(&s.head);
	buf_free(&s.path);
	locations_free(&s.locations);
	return e;
}
