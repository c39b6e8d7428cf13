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
 * The samples of a thread stand in the order of their times, where there is a time line; else those
 * of a path stand together, each a period after the one before (export/moments.h). Readers leave out
 * names that begin with a bracket: ours become others.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/job.h"
#include "export/locations.h"
#include "export/moments.h"
#include "export/text.h"
#include "profile/profile.h"

#define ANONYMOUS "(anonymous namespace)"
#define BLANKS " \t"
#define MS_MAX 1e15

struct script {
	struct job *j;
	struct locations locations;
	char **modules; /* names that are clean, by module */
	char **frames;  /* lines that were made before, by frame */
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

/* Of a file: a bracket after a space would begin another. Readers know the kernel by perf's name for it. */
static const char *module_of(struct script *s, uint32_t module)
{
	if (!module)
		return "[unknown]";
	if (s->j->p->modules[module].kind == PROFILE_KERNEL)
		return "[kernel.kallsyms]";
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
	if (scope_has_address(scope) && l->address >= scope->address)
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

/* A sample came at the end of what it stands for. */
static void put_moment(struct script *s, const struct moment *m, uint64_t period, const char *event)
{
	put_path(s, m->node);
	s->j->no_memory |= s->head.failed || s->path.failed;
	for (uint64_t i = 0; i < m->count && !ferror(s->j->out); i++) {
		double ms = m->ms + m->length_ms * ((double)(i + 1) / (double)m->count);
		uint64_t us = ms < MS_MAX ? (uint64_t)(ms * 1000 + 0.5) : (uint64_t)(MS_MAX * 1000);
		fprintf(s->j->out, "%s %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n%s\n",
			buf_text(&s->head), us / 1000000, us % 1000000, period, event,
			buf_text(&s->path));
	}
}

static struct err *put_thread(struct script *s, const struct timing *timing, uint32_t thread,
			      const char *event)
{
	struct moments m;
	struct err *e = moments_make(timing, thread, &m);
	put_head(s, &s->j->p->threads[thread]);
	for (size_t i = 0; i < m.count; i++)
		put_moment(s, &m.all[i], job_amount(s->j, timing->metric, 1), event);
	moments_free(&m);
	return e;
}

/* An event after the other: readers take the first one that they meet for theirs. */
static struct err *put_all(struct script *s)
{
	const struct profile *p = s->j->p;
	struct err *e = NULL;
	for (size_t m = 0; !e && m < s->j->metric_count; m++) {
		uint32_t metric = s->j->metrics[m];
		char *event = take_clean(s->j, p->metrics[metric].name, BLANKS, '_');
		struct timing timing;
		e = moments_open(s->j, metric, &timing);
		for (uint32_t i = 0; !e && i < p->thread_count; i++)
			if (moments_any(&timing, i))
				e = put_thread(s, &timing, i, event ? event : "");
		moments_close(&timing);
		free(event);
	}
	return e;
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
		e = s.modules && s.frames ? put_all(&s) : err_new("out of memory");
	}
	free_all(s.modules, j->p->module_count);
	free_all(s.frames, s.locations.frame_count);
	buf_free(&s.head);
	buf_free(&s.path);
	locations_free(&s.locations);
	return e;
}
