/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Firefox Profiler's "processed profile" JSON, in a version that every later one knows how to
 * read: tables as columns, which refer to each other by row.
 *
 *     samples (of each thread) -> stackTable -> frameTable -> funcTable -> resourceTable -> libs
 *
 * When samples came is told by the time line, where one was recorded (export/moments.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/scopes.h"
#include "analyze/strings.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "export/job.h"
#include "export/locations.h"
#include "export/moments.h"
#include "export/text.h"
#include "profile/profile.h"

#define VERSION 60       /* of the processed format */
#define GECKO_VERSION 31 /* of what it was made from, if it were */
#define EXACT_MAX (UINT64_C(1) << 53)

enum category { CATEGORY_OTHER, CATEGORY_USER, CATEGORY_KERNEL };
enum { RESOURCE_LIBRARY = 1 };

struct writer {
	struct job *j;
	struct json json;
	struct strings strings, sources; /* of functions: their files */
	struct frame_tree stacks;
	uint32_t *func_of, *scope_of; /* functions that are in use, by scope; and back */
	uint32_t func_count;
	uint32_t *lib_of, *module_of;
	uint32_t lib_count;
	struct timing timing;
};

#define NONE UINT32_MAX

/* ---- JSON in short ---- */

static void begin(struct writer *w, const char *key)
{
	json_key(&w->json, key);
	json_begin_object(&w->json);
}

static void column(struct writer *w, const char *key)
{
	json_key(&w->json, key);
	json_begin_array(&w->json);
}

static void key_text(struct writer *w, const char *key, const char *text)
{
	json_key(&w->json, key);
	json_string(&w->json, text);
}

static void key_number(struct writer *w, const char *key, double number)
{
	json_key(&w->json, key);
	json_double(&w->json, number);
}

static void key_bool(struct writer *w, const char *key, bool yes)
{
	json_key(&w->json, key);
	json_bool(&w->json, yes);
}

/* A row number, a number that is known if it is not 0. */
static void put_row(struct writer *w, uint32_t row)
{
	if (row == NONE)
		json_null(&w->json);
	else
		json_u64(&w->json, row);
}

static void put_line(struct writer *w, int line)
{
	if (line > 0)
		json_i64(&w->json, line);
	else
		json_null(&w->json);
}

/* The same in every row. */
static void column_of(struct writer *w, const char *key, const char *value, size_t count)
{
	column(w, key);
	for (size_t i = 0; i < count; i++) {
		if (!value)
			json_null(&w->json);
		else if (!strcmp(value, "false"))
			json_bool(&w->json, false);
		else
			json_u64(&w->json, 0);
	}
	json_end_array(&w->json);
}

/* ---- what is in use ---- */

static void number_libs(struct writer *w, uint32_t module)
{
	if (!module || w->lib_of[module] != NONE)
		return;
	w->module_of[w->lib_count] = module;
	w->lib_of[module] = w->lib_count++;
}

static struct err *number_all(struct writer *w)
{
	const struct locations *l = &w->stacks.locations;
	size_t scopes = scopes_count(w->j->a->scopes) + 1, modules = w->j->p->module_count + 1;
	w->func_of = malloc(scopes * sizeof *w->func_of);
	w->scope_of = malloc(scopes * sizeof *w->scope_of);
	w->lib_of = malloc(modules * sizeof *w->lib_of);
	w->module_of = malloc(modules * sizeof *w->module_of);
	if (!w->func_of || !w->scope_of || !w->lib_of || !w->module_of)
		return err_new("out of memory");
	memset(w->func_of, 0xff, scopes * sizeof *w->func_of);
	memset(w->lib_of, 0xff, modules * sizeof *w->lib_of);
	for (size_t i = 0; i < l->frame_count; i++) {
		uint32_t scope = l->frames[i].scope;
		if (w->func_of[scope] != NONE)
			continue;
		w->scope_of[w->func_count] = scope;
		w->func_of[scope] = w->func_count++;
		number_libs(w, job_scope(w->j, scope)->module);
	}
	return NULL;
}

/* ---- tables ---- */

static void put_stacks(struct writer *w)
{
	begin(w, "stackTable");
	key_number(w, "length", (double)w->stacks.count);
	column(w, "prefix");
	for (size_t i = 0; i < w->stacks.count; i++)
		put_row(w, w->stacks.parent[i]);
	json_end_array(&w->json);
	column(w, "frame");
	for (size_t i = 0; i < w->stacks.count; i++)
		json_u64(&w->json, w->stacks.frame[i]);
	json_end_array(&w->json);
	json_end_object(&w->json);
}

static const struct location *location_of(const struct writer *w, size_t frame)
{
	return &w->stacks.locations.all[w->stacks.locations.frames[frame].location];
}

static enum category category_of(const struct writer *w, const struct frame *f)
{
	switch (job_scope(w->j, f->scope)->kind) {
	case SCOPE_KERNEL:
		return CATEGORY_KERNEL;
	case SCOPE_PARTIAL:
	case SCOPE_ROOT:
		return CATEGORY_OTHER;
	default:
		return CATEGORY_USER;
	}
}

static void put_addresses(struct writer *w, size_t count)
{
	column(w, "address");
	for (size_t i = 0; i < count; i++) {
		const struct location *l = location_of(w, i);
		uint64_t address = location_instruction(l);
		bool known = (l->kind == PROFILE_CALL || l->kind == PROFILE_EXACT) && l->module;
		if (known && address < EXACT_MAX)
			json_u64(&w->json, address);
		else
			json_i64(&w->json, -1);
	}
	json_end_array(&w->json);
	column(w, "inlineDepth");
	for (size_t i = 0; i < count; i++) {
		size_t depth = i - location_of(w, i)->first;
		json_u64(&w->json, depth > 255 ? 255 : depth);
	}
	json_end_array(&w->json);
}

static void put_frames(struct writer *w)
{
	const struct frame *frames = w->stacks.locations.frames;
	size_t count = w->stacks.locations.frame_count;
	begin(w, "frameTable");
	key_number(w, "length", (double)count);
	put_addresses(w, count);
	column(w, "category");
	for (size_t i = 0; i < count; i++)
		json_u64(&w->json, category_of(w, &frames[i]));
	json_end_array(&w->json);
	column_of(w, "subcategory", "0", count);
	column(w, "func");
	for (size_t i = 0; i < count; i++)
		json_u64(&w->json, w->func_of[frames[i].scope]);
	json_end_array(&w->json);
	column_of(w, "nativeSymbol", NULL, count);
	column_of(w, "innerWindowID", NULL, count);
	column(w, "line");
	for (size_t i = 0; i < count; i++)
		put_line(w, frames[i].line);
	json_end_array(&w->json);
	column_of(w, "column", NULL, count);
	json_end_object(&w->json);
}

static void put_functions(struct writer *w)
{
	size_t count = w->func_count;
	begin(w, "funcTable");
	key_number(w, "length", (double)count);
	column(w, "name");
	for (size_t i = 0; i < count; i++)
		json_u64(&w->json, text_number(&w->strings, job_name(w->j, w->scope_of[i])));
	json_end_array(&w->json);
	column_of(w, "isJS", "false", count);
	column_of(w, "relevantForJS", "false", count);
	column(w, "resource");
	for (size_t i = 0; i < count; i++) {
		uint32_t module = job_scope(w->j, w->scope_of[i])->module;
		json_i64(&w->json, module ? (int64_t)w->lib_of[module] : -1);
	}
	json_end_array(&w->json);
	column(w, "source");
	for (size_t i = 0; i < count; i++) {
		const char *file = job_scope(w->j, w->scope_of[i])->file;
		put_row(w, file ? text_number(&w->sources, file) : NONE);
	}
	json_end_array(&w->json);
	column(w, "lineNumber");
	for (size_t i = 0; i < count; i++)
		put_line(w, job_scope(w->j, w->scope_of[i])->line);
	json_end_array(&w->json);
	column_of(w, "columnNumber", NULL, count);
	json_end_object(&w->json);
}

static const struct profile_module *module_of(const struct writer *w, size_t lib)
{
	return &w->j->p->modules[w->module_of[lib]];
}

/* One for each library, under its number. */
static void put_resources(struct writer *w)
{
	begin(w, "resourceTable");
	key_number(w, "length", w->lib_count);
	column(w, "lib");
	for (uint32_t i = 0; i < w->lib_count; i++)
		json_u64(&w->json, i);
	json_end_array(&w->json);
	column(w, "name");
	for (uint32_t i = 0; i < w->lib_count; i++)
		json_u64(&w->json, text_number(&w->strings, path_file(module_of(w, i)->path)));
	json_end_array(&w->json);
	column_of(w, "host", NULL, w->lib_count);
	column(w, "type");
	for (uint32_t i = 0; i < w->lib_count; i++)
		json_u64(&w->json, RESOURCE_LIBRARY);
	json_end_array(&w->json);
	json_end_object(&w->json);
}

static void put_sources(struct writer *w)
{
	begin(w, "sources");
	key_number(w, "length", (double)w->sources.count);
	column_of(w, "uuid", NULL, w->sources.count);
	column(w, "filename");
	for (size_t i = 0; i < w->sources.count; i++)
		json_u64(&w->json, text_number(&w->strings, strings_get(&w->sources, i)));
	json_end_array(&w->json);
	json_end_object(&w->json);
}

static void put_symbols(struct writer *w)
{
	begin(w, "nativeSymbols");
	key_number(w, "length", 0);
	column_of(w, "libIndex", NULL, 0);
	column_of(w, "address", NULL, 0);
	column_of(w, "name", NULL, 0);
	column_of(w, "functionSize", NULL, 0);
	json_end_object(&w->json);
}

static void put_shared(struct writer *w)
{
	begin(w, "shared");
	put_stacks(w);
	put_frames(w);
	put_functions(w);
	put_resources(w);
	put_symbols(w);
	put_sources(w);
	column(w, "stringArray"); /* last: all else adds to it */
	for (uint32_t i = 0; i < w->strings.count; i++)
		json_string(&w->json, strings_get(&w->strings, i));
	json_end_array(&w->json);
	json_end_object(&w->json);
}

/* Libraries. Their debug id is the build-id as Breakpad writes it: the first 16 bytes as a GUID
   whose first three numbers are little-endian, and an age. */

static void debug_id(const char *build_id, char out[34])
{
	static const unsigned char order[16] = {3, 2, 1,  0,  5,  4,  7,  6,
						8, 9, 10, 11, 12, 13, 14, 15};
	size_t length = strlen(build_id);
	for (size_t i = 0; i < 16; i++)
		for (size_t k = 0; k < 2; k++) {
			size_t at = 2 * (size_t)order[i] + k;
			char c = at < length ? build_id[at] : '0';
			out[2 * i + k] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
		}
	out[32] = '0';
	out[33] = 0;
}

static void put_libs(struct writer *w)
{
	column(w, "libs");
	for (uint32_t i = 0; i < w->lib_count; i++) {
		const struct profile_module *m = module_of(w, i);
		char id[34];
		debug_id(m->build_id, id);
		json_begin_object(&w->json);
		key_text(w, "name", path_file(m->path));
		key_text(w, "path", m->path);
		key_text(w, "debugName", path_file(m->path));
		key_text(w, "debugPath", m->path);
		key_text(w, "breakpadId", *m->build_id ? id : "");
		key_text(w, "codeId", *m->build_id ? m->build_id : NULL);
		key_text(w, "arch", w->j->p->machine ? w->j->p->machine : "");
		json_end_object(&w->json);
	}
	json_end_array(&w->json);
}

/* ---- what was recorded ---- */

static void put_category(struct writer *w, const char *name, const char *colour)
{
	json_begin_object(&w->json);
	key_text(w, "name", name);
	key_text(w, "color", colour);
	column(w, "subcategories");
	json_string(&w->json, "Other");
	json_end_array(&w->json);
	json_end_object(&w->json);
}

static void put_meta(struct writer *w)
{
	const struct profile *p = w->j->p;
	begin(w, "meta");
	key_number(w, "preprocessedProfileVersion", VERSION);
	key_number(w, "version", GECKO_VERSION);
	key_number(w, "interval", w->timing.step_ms);
	key_number(w, "startTime", (double)p->start_time * 1000);
	key_number(w, "processType", 0);
	key_number(w, "stackwalk", 1);
	key_bool(w, "debug", false);
	key_text(w, "product", p->process_count ? p->processes[0].name : "culprit");
	key_text(w, "importedFrom", w->j->o->creator);
	key_text(w, "arguments", p->command ? p->command : "");
	key_text(w, "platform", "Linux");
	key_text(w, "oscpu", p->machine ? p->machine : "");
	key_bool(w, "symbolicated", true);
	key_bool(w, "usesOnlyOneStackType", true);
	key_bool(w, "sourceCodeIsNotOnSearchfox", true);
	column(w, "categories");
	put_category(w, "Other", "grey");
	put_category(w, "User", "yellow");
	put_category(w, "Kernel", "orange");
	json_end_array(&w->json);
	column(w, "markerSchema");
	json_end_array(&w->json);
	json_end_object(&w->json);
}

/* ---- threads ---- */

static void put_samples(struct writer *w, uint32_t thread)
{
	struct moments m;
	struct err *e = moments_make(&w->timing, thread, &m);
	w->j->no_memory |= e != NULL;
	err_free(e);
	begin(w, "samples");
	key_number(w, "length", (double)m.count);
	key_text(w, "weightType", "samples");
	column(w, "stack");
	for (size_t i = 0; i < m.count; i++)
		put_row(w, w->stacks.of_node[m.all[i].node]);
	json_end_array(&w->json);
	column(w, "weight");
	for (size_t i = 0; i < m.count; i++)
		json_u64(&w->json, m.all[i].count);
	json_end_array(&w->json);
	column(w, "time");
	for (size_t i = 0; i < m.count; i++)
		json_double(&w->json, m.all[i].ms);
	json_end_array(&w->json);
	json_end_object(&w->json);
	moments_free(&m);
}

static void put_markers(struct writer *w)
{
	static const char *const columns[] = {"data",    "name",  "startTime",
					      "endTime", "phase", "category"};
	begin(w, "markers");
	key_number(w, "length", 0);
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		column_of(w, columns[i], NULL, 0);
	json_end_object(&w->json);
}

static void key_id(struct writer *w, const char *key, int32_t id)
{
	char text[16];
	snprintf(text, sizeof text, "%" PRId32, id);
	key_text(w, key, text);
}

static void put_thread(struct writer *w, uint32_t thread)
{
	const struct profile_thread *t = &w->j->p->threads[thread];
	const struct profile_process *x = &w->j->p->processes[t->process];
	json_begin_object(&w->json);
	key_text(w, "processType", "default");
	key_text(w, "processName", x->name);
	key_number(w, "processStartupTime", (double)x->start_ns / 1e6);
	json_key(&w->json, "processShutdownTime");
	json_null(&w->json);
	key_number(w, "registerTime", (double)t->start_ns / 1e6);
	json_key(&w->json, "unregisterTime");
	json_null(&w->json);
	column(w, "pausedRanges");
	json_end_array(&w->json);
	key_text(w, "name", t->name);
	key_bool(w, "isMainThread", t->tid == x->pid);
	key_id(w, "pid", x->pid);
	key_number(w, "tid", t->tid);
	put_samples(w, thread);
	put_markers(w);
	json_end_object(&w->json);
}

static void put_all(struct writer *w)
{
	json_begin_object(&w->json);
	put_meta(w);
	put_libs(w);
	column(w, "threads");
	for (uint32_t i = 0; i < w->j->p->thread_count; i++)
		if (moments_any(&w->timing, i))
			put_thread(w, i);
	json_end_array(&w->json);
	put_shared(w);
	json_end_object(&w->json);
	json_newline(&w->json);
	w->j->no_memory |= w->strings.failed || w->sources.failed;
}

struct err *firefox_write(struct job *j)
{
	struct writer w = {.j = j, .json = json_to_file(j->out)};
	struct err *e = frame_tree_make(j, &w.stacks);
	if (!e)
		e = number_all(&w);
	if (!e)
		e = moments_open(j, j->metric_count ? j->metrics[0] : 0, &w.timing);
	if (!e)
		put_all(&w);
	frame_tree_free(&w.stacks);
	strings_free(&w.strings);
	strings_free(&w.sources);
	free(w.func_of);
	free(w.scope_of);
	free(w.lib_of);
	free(w.module_of);
	moments_close(&w.timing);
	return e;
}
