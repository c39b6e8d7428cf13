/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, gzipped. A sample is a list of locations, the innermost
 * first; a location is an address of a mapping, with a line for each function that is there, the
 * innermost first. Addresses are those of the files, so a mapping begins at 0 and has no end.
 * Every metric gives two values: its samples, and these in its unit. The first metric comes last,
 * since that is what readers show that do not look for a default.
 *
 * Messages leave as soon as they are complete; the strings, which they refer to by number, come
 * last.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "analyze/strings.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/path.h"
#include "export/gzip.h"
#include "export/job.h"
#include "export/locations.h"
#include "export/proto.h"
#include "export/text.h"
#include "image/symbols.h"
#include "profile/profile.h"

#define FLUSH_AT (64u << 10)

enum { /* fields of Profile */
       FIELD_SAMPLE_TYPE = 1,
       FIELD_SAMPLE,
       FIELD_MAPPING,
       FIELD_LOCATION,
       FIELD_FUNCTION,
       FIELD_STRINGS,
       FIELD_TIME = 9,
       FIELD_DURATION,
       FIELD_PERIOD_TYPE,
       FIELD_PERIOD,
       FIELD_COMMENT,
       FIELD_DEFAULT_TYPE,
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILE,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	MAPPING_HAS_FILES,
	MAPPING_HAS_LINES,
	MAPPING_HAS_INLINED,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_LINE };

struct writer {
	struct job *j;
	struct gzip *gzip;
	struct strings strings;
	struct locations locations;
	struct buf all, message, inner; /* fields of Profile; one of them; a message inside of it */
	uint64_t *path;                 /* locations of a sample */
	bool *functions, *modules;      /* that are in use, by scope and by module */
};

static void flush(struct writer *w, size_t least)
{
	if (w->all.size < least)
		return;
	gzip_put(w->gzip, w->all.data, w->all.size);
	w->j->no_memory |= w->all.failed || w->message.failed || w->inner.failed;
	buf_clear(&w->all);
}

/* Ends w->message. */
static void put_message(struct writer *w, uint32_t field)
{
	proto_bytes(&w->all, field, w->message.data, w->message.size);
	w->j->no_memory |= w->message.failed;
	buf_clear(&w->message);
	flush(w, FLUSH_AT);
}

static uint32_t text(struct writer *w, const char *t)
{
	return text_number(&w->strings, t);
}

/* ---- types ---- */

static const char *unit_of(const struct profile_metric *m)
{
	if (!strcmp(m->unit, "ns"))
		return "nanoseconds";
	return *m->unit ? m->unit : "count";
}

static void put_type(struct writer *w, uint32_t field, const char *type, const char *unit)
{
	proto_number(&w->message, TYPE_TYPE, text(w, type));
	proto_number(&w->message, TYPE_UNIT, text(w, unit));
	put_message(w, field);
}

static void put_types(struct writer *w)
{
	const struct job *j = w->j;
	for (size_t i = j->metric_count; i-- > 0;) {
		const struct profile_metric *m = &j->p->metrics[j->metrics[i]];
		struct buf name = {0};
		if (j->metric_count > 1)
			buf_printf(&name, "%s-", m->name);
		buf_puts(&name, "samples");
		put_type(w, FIELD_SAMPLE_TYPE, buf_text(&name), "count");
		put_type(w, FIELD_SAMPLE_TYPE, m->name, unit_of(m));
		buf_free(&name);
	}
	if (!j->metric_count)
		return;
	const struct profile_metric *first = &j->p->metrics[j->metrics[0]];
	put_type(w, FIELD_PERIOD_TYPE, first->name, unit_of(first));
	proto_number(&w->all, FIELD_PERIOD, profile_period(j->p, j->metrics[0]));
	proto_number(&w->all, FIELD_DEFAULT_TYPE, text(w, first->name));
}

static void put_recording(struct writer *w)
{
	const struct profile *p = w->j->p;
	uint64_t time;
	if (!__builtin_mul_overflow(p->start_time, UINT64_C(1000000000), &time) &&
	    time <= INT64_MAX)
		proto_number(&w->all, FIELD_TIME, time);
	if (p->duration_ns <= INT64_MAX)
		proto_number(&w->all, FIELD_DURATION, p->duration_ns);
	if (p->command && *p->command)
		proto_number(&w->all, FIELD_COMMENT, text(w, p->command));
	if (p->note && *p->note)
		proto_number(&w->all, FIELD_COMMENT, text(w, p->note));
}

/* ---- samples ---- */

static void put_label(struct writer *w, const char *key, const char *value, uint64_t number)
{
	buf_clear(&w->inner);
	proto_number(&w->inner, LABEL_KEY, text(w, key));
	if (value)
		proto_number(&w->inner, LABEL_TEXT, text(w, value));
	else
		proto_number(&w->inner, LABEL_NUMBER, number);
	proto_bytes(&w->message, SAMPLE_LABEL, w->inner.data, w->inner.size);
}

static size_t find_path(struct writer *w, uint32_t node)
{
	size_t count = 0;
	do {
		uint32_t at = w->locations.of_node[node];
		if (at != LOCATION_NONE && (node || !count))
			w->path[count++] = (uint64_t)at + 1;
		node = node ? w->j->p->nodes[node].parent : 0;
	} while (node);
	return count;
}

static void put_sample(struct writer *w, uint32_t node, uint32_t thread, const uint64_t *values)
{
	const struct profile_thread *t = &w->j->p->threads[thread];
	const struct profile_process *x = &w->j->p->processes[t->process];
	proto_packed(&w->message, SAMPLE_LOCATIONS, w->path, find_path(w, node));
	proto_packed(&w->message, SAMPLE_VALUES, values, 2 * w->j->metric_count);
	put_label(w, "thread", t->name, 0);
	put_label(w, "tid", NULL, (uint64_t)t->tid);
	put_label(w, "process", x->name, 0);
	put_label(w, "pid", NULL, (uint64_t)x->pid);
	put_message(w, FIELD_SAMPLE);
}

/* Values of one node and thread stand together, one for each metric. */
static void put_samples(struct writer *w)
{
	const struct profile *p = w->j->p;
	uint64_t values[2 * PROFILE_METRIC_MAX] = {0};
	bool any = false;
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (job_has(w->j, v)) {
			size_t at = 2 * (w->j->metric_count - 1 - job_column(w->j, v->metric));
			values[at] = v->count > INT64_MAX ? INT64_MAX : v->count;
			values[at + 1] = job_amount(w->j, v->metric, v->count);
			any = true;
		}
		if (i + 1 < p->value_count && v[1].node == v->node && v[1].thread == v->thread)
			continue;
		if (any) {
			put_sample(w, v->node, v->thread, values);
			memset(values, 0, 2 * w->j->metric_count * sizeof *values);
		}
		any = false;
	}
}

static struct err *check_paths(struct writer *w)
{
	size_t deepest;
	struct err *e = job_check_paths(w->j, false, &deepest);
	if (e)
		return e;
	w->path = calloc(deepest + 1, sizeof *w->path);
	return w->path ? NULL : err_new("out of memory");
}

/* ---- what samples refer to ---- */

static void put_line(struct writer *w, const struct frame *f)
{
	buf_clear(&w->inner);
	proto_number(&w->inner, LINE_FUNCTION, (uint64_t)f->scope + 1);
	proto_number(&w->inner, LINE_LINE, f->line > 0 ? (uint64_t)f->line : 0);
	proto_bytes(&w->message, LOCATION_LINE, w->inner.data, w->inner.size);
	w->functions[f->scope] = true;
}

static void put_locations(struct writer *w)
{
	for (size_t i = 0; i < w->locations.count; i++) {
		const struct location *l = &w->locations.all[i];
		bool real = l->kind == PROFILE_CALL || l->kind == PROFILE_EXACT;
		proto_number(&w->message, LOCATION_ID, i + 1);
		if (real) {
			proto_number(&w->message, LOCATION_MAPPING, l->module);
			proto_number(&w->message, LOCATION_ADDRESS, location_instruction(l));
			w->modules[l->module] = true;
		}
		for (uint32_t f = l->count; f-- > 0;)
			put_line(w, &w->locations.frames[l->first + f]);
		put_message(w, FIELD_LOCATION);
	}
}

/* As the linker knows it, where it does. */
static const char *symbol_of(const struct job *j, const struct scope *s)
{
	const struct symbols *all = s->kind == SCOPE_FUNCTION
					    ? modules_symbols(j->modules, s->module)
					    : NULL;
	const struct symbol *found = all ? symbols_find(all, s->address) : NULL;
	return found && found->address == s->address ? found->name : s->name;
}

static void put_functions(struct writer *w)
{
	size_t count = scopes_count(w->j->a->scopes);
	for (uint32_t i = 0; i < count; i++) {
		if (!w->functions[i])
			continue;
		const struct scope *s = job_scope(w->j, i);
		proto_number(&w->message, FUNCTION_ID, (uint64_t)i + 1);
		proto_number(&w->message, FUNCTION_NAME, text(w, job_name(w->j, i)));
		proto_number(&w->message, FUNCTION_SYSTEM_NAME, text(w, symbol_of(w->j, s)));
		proto_number(&w->message, FUNCTION_FILE, text(w, s->file));
		proto_number(&w->message, FUNCTION_LINE, s->line > 0 ? (uint64_t)s->line : 0);
		put_message(w, FIELD_FUNCTION);
	}
}

/* What is known is in the profile: pprof is told not to look for more. */
static void put_mapping(struct writer *w, uint32_t module)
{
	const struct profile_module *m = &w->j->p->modules[module];
	proto_number(&w->message, MAPPING_ID, module);
	proto_number(&w->message, MAPPING_LIMIT, UINT64_MAX);
	proto_number(&w->message, MAPPING_FILE, text(w, m->path));
	proto_number(&w->message, MAPPING_BUILD_ID, text(w, m->build_id));
	for (uint32_t has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINED; has++)
		proto_number(&w->message, has, has != MAPPING_HAS_INLINED || !w->j->o->no_inline);
	put_message(w, FIELD_MAPPING);
}

/* The first one is the program itself. */
static void put_mappings(struct writer *w)
{
	const struct profile *p = w->j->p;
	const char *program = p->process_count ? p->processes[0].name : "";
	uint32_t main_one = 0;
	for (uint32_t i = 1; i < p->module_count && !main_one; i++)
		if (w->modules[i] && !strcmp(path_file(p->modules[i].path), program))
			main_one = i;
	if (main_one)
		put_mapping(w, main_one);
	for (uint32_t i = 1; i < p->module_count; i++)
		if (w->modules[i] && i != main_one)
			put_mapping(w, i);
}

static void put_all(struct writer *w)
{
	text(w, ""); /* string 0 */
	put_types(w);
	put_recording(w);
	put_samples(w);
	put_locations(w);
	put_functions(w);
	put_mappings(w);
	for (uint32_t i = 0; i < w->strings.count; i++) {
		proto_text(&w->all, FIELD_STRINGS, strings_get(&w->strings, i));
		flush(w, FLUSH_AT);
	}
	flush(w, 1);
	w->j->no_memory |= w->strings.failed;
}

struct err *pprof_write(struct job *j)
{
	struct writer w = {.j = j};
	w.functions = calloc(scopes_count(j->a->scopes) + 1, sizeof *w.functions);
	w.modules = calloc(j->p->module_count + 1, sizeof *w.modules);
	struct err *e = w.functions && w.modules ? locations_make(j, &w.locations)
						 : err_new("out of memory");
	if (!e)
		e = check_paths(&w);
	if (!e)
		e = gzip_open(j->out, &w.gzip);
	if (!e) {
		put_all(&w);
		e = gzip_close(w.gzip);
	}
	strings_free(&w.strings);
	locations_free(&w.locations);
	buf_free(&w.all);
	buf_free(&w.message);
	buf_free(&w.inner);
	free(w.path);
	free(w.functions);
	free(w.modules);
	return e;
}
