/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/modules.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analyze/answers.h"
#include "analyze/kernel_debug.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parallel.h"
#include "base/path.h"
#include "base/term.h"
#include "image/image.h"
#include "image/places.h"
#include "image/relocs.h"
#include "image/symbols.h"
#include "process/backing.h"
#include "profile/between.h"
#include "profile/profile.h"
#include "recipes/cfi.h"
#include "recipes/procedures.h"
#include "structure/structure.h"

#define GAP_BYTES_MAX (16u << 20) /* of code that is followed while people wait */
#define LISTED_MAX 4              /* modules named in one line */
#define NESTING_MAX 64            /* functions before an address that are looked at */

enum state { UNUSED, GOOD, MISSING, CHANGED };

struct module {
	enum state state;
	bool tried; /* to be opened */
	struct image *image;
	struct places *places;
	bool has_structure; /* was tried */
	struct structure *structure;
	bool has_ranges; /* were looked for */
	struct cfi_range *ranges;
	size_t range_count;
	bool has_imports; /* were looked for */
	struct reloc *imports;
	size_t import_count;
	bool nameless;  /* a function of it was asked for that has no name */
	bool has_debug; /* was looked for: of the kernel */
	struct kernel_debug debug;
	struct answers answers;
};

struct modules {
	const struct profile *profile;
	bool download;
	struct module *all; /* as profile->modules */
	size_t count;
	/* while preparing */
	bool with_structure;
	struct modules_question *questions;
	size_t question_count, done;
	uint32_t *first; /* of each module, in questions */
	pthread_mutex_t lock;
	struct term_progress progress;
};

/* ---- opening ---- */

/* Without a build-id, a file written after the recording is another one. */
static bool is_recorded(const struct profile *p, const struct profile_module *m,
			const struct image *image)
{
	return image_is_same(image, m->path, m->build_id, m->until ? m->until : profile_end(p));
}

static void open_recorded(const struct modules *ms, struct module *m,
			  const struct profile_module *p)
{
	struct err *e = p->kind == PROFILE_VDSO ? backing_open_vdso(&m->image)
						: image_open(p->path, &m->image);
	if (e) {
		err_free(e);
		return;
	}
	m->state = CHANGED;
	if (!is_recorded(ms->profile, p, m->image))
		return;
	e = places_open(m->image, ms->download, &m->places);
	if (!e) {
		m->state = GOOD;
		places_symbols(m->places);
	}
	err_free(e);
}

static void open_module(void *context, size_t index)
{
	struct modules *ms = context;
	struct module *m = &ms->all[index];
	const struct profile_module *p = &ms->profile->modules[index];
	if (m->state == UNUSED || m->tried || (p->kind != PROFILE_FILE && p->kind != PROFILE_VDSO))
		return;
	m->tried = true;
	m->state = MISSING;
	open_recorded(ms, m, p);
	if (m->state != GOOD && p->name_count) { /* the recording itself has its names */
		image_close(m->image);
		m->image = NULL;
		m->state = GOOD;
	}
}

static void close_module(struct module *m)
{
	answers_free(&m->answers);
	kernel_debug_close(&m->debug);
	free(m->ranges);
	free(m->imports);
	structure_close(m->structure);
	places_close(m->places);
	image_close(m->image);
}

static void open_used(struct modules *ms)
{
	const struct profile *p = ms->profile;
	for (size_t i = 0; i < p->node_count; i++) {
		struct module *m = &ms->all[p->nodes[i].module];
		if (m->state == UNUSED &&
		    (p->nodes[i].kind == PROFILE_CALL || p->nodes[i].kind == PROFILE_EXACT))
			m->state = GOOD;
	}
	parallel_for(p->module_count, open_module, ms);
}

struct err *modules_open(const struct profile *profile, bool download, struct modules **out)
{
	struct modules *ms = calloc(1, sizeof *ms);
	*out = NULL;
	if (!ms)
		return err_new("out of memory");
	pthread_mutex_init(&ms->lock, NULL);
	ms->profile = profile;
	ms->download = download;
	ms->count = profile->module_count;
	ms->all = calloc(profile->module_count + 1, sizeof *ms->all);
	ms->first = calloc(profile->module_count + 2, sizeof *ms->first);
	if (!ms->all || !ms->first) {
		modules_close(ms);
		return err_new("out of memory");
	}
	open_used(ms);
	*out = ms;
	return NULL;
}

void modules_close(struct modules *ms)
{
	if (!ms)
		return;
	for (size_t i = 0; ms->all && i < ms->count; i++)
		close_module(&ms->all[i]);
	free(ms->all);
	free(ms->first);
	pthread_mutex_destroy(&ms->lock);
	free(ms);
}

/* ---- another profile ---- */

static bool move_modules(struct modules *ms, const struct profile *before,
			 const struct profile *now)
{
	struct module *all = calloc(now->module_count + 1, sizeof *all);
	uint32_t *to = all ? between_modules(before, now) : NULL;
	for (size_t i = 0; to && i < ms->count; i++) {
		if (to[i] == BETWEEN_NONE)
			close_module(&ms->all[i]);
		else
			all[to[i]] = ms->all[i];
	}
	if (to) {
		free(ms->all);
		ms->all = all;
		ms->count = now->module_count;
	} else {
		free(all);
	}
	free(to);
	return to != NULL;
}

struct err *modules_update(struct modules *ms, const struct profile *now)
{
	uint32_t *first = calloc(now->module_count + 2, sizeof *first);
	if (!first || !move_modules(ms, ms->profile, now)) {
		free(first);
		return err_new("out of memory");
	}
	free(ms->first);
	ms->first = first;
	ms->profile = now;
	open_used(ms);
	return NULL;
}

/* ---- functions ---- */

/* Of names that the recording has: the last that begins at or before the address. A function may lie in another
   one; code that is made at run time may lie where another one was. */
static void find_made(const struct profile_module *p, uint64_t at, struct modules_function *out)
{
	size_t after = FIRST_NOT(i, p->name_count, p->names[i].start <= at);
	size_t more = p->kind == PROFILE_JIT ? 0 : NESTING_MAX;
	while (after && at - p->names[after - 1].start >= p->names[after - 1].size)
		after = more-- ? after - 1 : 0;
	if (!after)
		return;
	out->name = p->names[after - 1].name;
	out->start = p->names[after - 1].start;
}

/* Where there is no symbol, unwind information still says where functions begin. */
static uint64_t range_start(struct module *m, uint64_t at)
{
	if (!m->has_ranges)
		err_free(
			cfi_ranges(m->image, places_debug(m->places), &m->ranges, &m->range_count));
	m->has_ranges = true;
	size_t after = FIRST_NOT(i, m->range_count, m->ranges[i].start <= at);
	return after && at < m->ranges[after - 1].end ? m->ranges[after - 1].start : at;
}

static void find_in_file(struct module *m, uint64_t address, bool exact,
			 struct modules_function *out)
{
	uint64_t at = address - !exact;
	const struct symbol *s = places_function(m->places, at);
	/* Nobody called from a signal trampoline: its own beginning is the "return address". */
	if (!s && !exact && (s = places_function(m->places, address)) && s->address != address)
		s = NULL;
	if (s) {
		out->name = places_name(m->places, s->name);
		out->start = s->address;
		return;
	}
	out->start = range_start(m, at);
	if (procedures_is_stub(m->image, at))
		out->name = "[plt]";
	else
		m->nameless = true;
}

void modules_function(struct modules *ms, uint32_t module, uint64_t address, bool exact,
		      struct modules_function *out)
{
	struct module *m = &ms->all[module];
	*out = (struct modules_function){.start = address - !exact};
	if (m->places)
		find_in_file(m, address, exact, out);
	else
		find_made(&ms->profile->modules[module], address - !exact, out);
}

struct image *modules_image(struct modules *ms, uint32_t module)
{
	return ms->all[module].state == GOOD ? ms->all[module].image : NULL;
}

/* A large program has hundreds of thousands of relocations, and few imports among them. */
static void find_imports(struct module *m, struct image *image)
{
	size_t count;
	m->has_imports = true;
	err_free(relocs_read(image, &m->imports, &count));
	for (size_t i = 0; i < count; i++)
		if (m->imports[i].symbol)
			m->imports[m->import_count++] = m->imports[i];
}

const char *modules_import(struct modules *ms, uint32_t module, uint64_t slot)
{
	struct module *m = &ms->all[module];
	struct image *image = modules_image(ms, module);
	if (image && !m->has_imports)
		find_imports(m, image);
	size_t found = FIRST_NOT(i, m->import_count, m->imports[i].offset < slot);
	return found < m->import_count && m->imports[found].offset == slot
		       ? m->imports[found].symbol
		       : NULL;
}

struct structure *modules_structure(struct modules *ms, uint32_t module)
{
	struct module *m = &ms->all[module];
	struct structure_options options = {.download = ms->download,
					    .gap_bytes_max = GAP_BYTES_MAX};
	if (m->state == GOOD && m->image && !m->has_structure)
		err_free(structure_open(m->image, &options, &m->structure));
	m->has_structure = true;
	return m->structure;
}

const struct symbols *modules_symbols(struct modules *ms, uint32_t module)
{
	return ms->all[module].places ? places_symbols(ms->all[module].places) : NULL;
}

struct image *modules_debug(struct modules *ms, uint32_t module)
{
	return ms->all[module].places ? places_debug(ms->all[module].places) : NULL;
}

/* ---- places ---- */

static int compare_questions(const void *a, const void *b)
{
	const struct modules_question *x = a, *y = b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* The address itself has the line. */
static void answer_script(struct modules *ms, size_t index)
{
	const struct profile_module *p = &ms->profile->modules[index];
	for (size_t i = ms->first[index]; i < ms->first[index + 1]; i++) {
		uint64_t address = ms->questions[i].address;
		struct modules_function f;
		modules_function(ms, (uint32_t)index, address, true, &f);
		answers_add_place(
			&ms->all[index].answers, address,
			&(struct place){.function = f.name,
					.symbol = f.name,
					.file = p->path,
					.line = (int)PROFILE_SCRIPT_LINE(address),
					.declared_file = p->path,
					.declared_line = (int)PROFILE_SCRIPT_LINE(f.start)});
	}
}

/* What is read or written stands where a file of source does. */
static void answer_object(struct modules *ms, size_t index)
{
	const char *path = ms->profile->modules[index].path;
	for (size_t i = ms->first[index]; i < ms->first[index + 1]; i++)
		answers_add_place(&ms->all[index].answers, ms->questions[i].address,
				  &(struct place){.file = path});
}

/* Names of the kernel's functions are those of the recording. If the debug information agrees with them, it
   says what is inlined. */
static void answer_kernel(struct modules *ms, size_t index)
{
	struct module *m = &ms->all[index];
	if (ms->first[index] == ms->first[index + 1])
		return;
	if (!m->has_debug)
		kernel_debug_open(&ms->profile->modules[index], &m->debug);
	m->has_debug = true;
	for (size_t i = ms->first[index]; m->debug.places && i < ms->first[index + 1]; i++) {
		uint64_t address = ms->questions[i].address, at = address - m->debug.shift;
		const struct symbol *s = places_function(m->debug.places, at);
		struct modules_function f;
		modules_function(ms, (uint32_t)index, address, true, &f);
		if (f.name && s && s->address + m->debug.shift == f.start)
			answers_add_at(&m->answers, m->debug.places, address, at);
	}
}

static void answer_module(void *context, size_t index)
{
	struct modules *ms = context;
	struct module *m = &ms->all[index];
	switch (ms->profile->modules[index].kind) {
	case PROFILE_SCRIPT:
		answer_script(ms, index);
		return;
	case PROFILE_OBJECT:
		answer_object(ms, index);
		return;
	case PROFILE_KERNEL:
		answer_kernel(ms, index);
		return;
	default:
		break;
	}
	bool any = m->places && ms->first[index] < ms->first[index + 1];
	struct structure *structure = any && ms->with_structure
					      ? modules_structure(ms, (uint32_t)index)
					      : NULL;
	for (size_t i = ms->first[index]; any && i < ms->first[index + 1]; i++) {
		answers_add(&m->answers, m->places, structure, ms->questions[i].address);
		pthread_mutex_lock(&ms->lock);
		term_progress_update(&ms->progress, ++ms->done, ms->question_count);
		pthread_mutex_unlock(&ms->lock);
	}
}

void modules_prepare(struct modules *ms, struct modules_question *questions, size_t count,
		     bool with_structure)
{
	size_t module_count = ms->profile->module_count, at = 0;
	qsort(questions, count, sizeof *questions, compare_questions);
	for (size_t m = 0; m < module_count; m++) {
		ms->first[m] = (uint32_t)at;
		while (at < count && questions[at].module == m)
			at++;
	}
	ms->first[module_count] = (uint32_t)at;
	ms->with_structure = with_structure;
	ms->questions = questions;
	ms->question_count = count;
	ms->done = 0;
	term_progress_start(&ms->progress, "culprit: names and lines");
	parallel_for(module_count, answer_module, ms);
	term_progress_end(&ms->progress);
	ms->questions = NULL;
}

const struct answer *modules_answer(const struct modules *ms, uint32_t module, uint64_t address)
{
	return answers_find(&ms->all[module].answers, address);
}

/* ---- what could not be read ---- */

static bool is_nameless(const struct module *m)
{
	return m->state == GOOD && m->nameless;
}
static bool is_changed(const struct module *m)
{
	return m->state == CHANGED;
}
static bool is_missing(const struct module *m)
{
	return m->state == MISSING;
}

static bool is_damaged(const struct module *m)
{
	return m->structure && structure_damage(m->structure);
}

static bool has_gaps(const struct module *m)
{
	return m->structure && structure_has_gaps(m->structure);
}

/* "app, libx.so and 3 more"; returns how many there are. */
static size_t list(const struct modules *ms, const struct modules_shown *shown,
		   bool (*wanted)(const struct module *m), struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < ms->profile->module_count; i++) {
		if (!wanted(&ms->all[i]) || (shown && !shown[i].any) ||
		    (shown && wanted == is_nameless && !shown[i].nameless))
			continue;
		if (count++ < LISTED_MAX)
			buf_printf(out, "%s%s", count > 1 ? ", " : "",
				   path_file(ms->profile->modules[i].path));
	}
	if (count > LISTED_MAX)
		buf_printf(out, " and %zu more", count - LISTED_MAX);
	return count;
}

static const char *first_damage(const struct modules *ms, const struct modules_shown *shown)
{
	for (size_t i = 0; i < ms->profile->module_count; i++)
		if (is_damaged(&ms->all[i]) && (!shown || shown[i].any))
			return structure_damage(ms->all[i].structure);
	return NULL;
}

unsigned modules_notes(const struct modules *ms, const struct modules_shown *shown, struct buf *out)
{
	static const struct {
		bool (*wanted)(const struct module *m);
		const char *text;
	} kinds[] = {
		{is_changed, "changed since the recording, so that functions are shown as "
			     "addresses: put the recorded file back, or record again"},
		{is_missing, "cannot be opened, so that functions are shown as addresses: put the "
			     "file back, or record again"},
		{is_nameless,
		 "without symbols for some functions, shown as addresses: debug packages "
		 "name them, or --debuginfod with DEBUGINFOD_URLS set"},
		{has_gaps,
		 "so much code without symbols and unwind information that loops in it were "
		 "not looked for: 'culprit structure FILE' finds them, and keeps them"},
		{is_damaged,
		 "debug information that cannot all be read, so that inlined functions, "
		 "loops and lines may be missing"},
	};
	unsigned lines = 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct buf names = {0};
		if (list(ms, shown, kinds[i].wanted, &names)) {
			const char *why = kinds[i].wanted == is_damaged ? first_damage(ms, shown)
									: NULL;
			buf_printf(out, "%s: %s%s%s%s\n", buf_text(&names), kinds[i].text,
				   why ? " (" : "", why ? why : "", why ? ")" : "");
			lines++;
		}
		buf_free(&names);
	}
	return lines;
}

struct err *modules_blame(const struct modules *ms, struct err *error)
{
	struct buf changed = {0}, missing = {0}, text = {0};
	if (!error || !ms)
		return error;
	if (list(ms, NULL, is_changed, &changed))
		buf_printf(&text, "; changed since the recording: %s", buf_text(&changed));
	if (list(ms, NULL, is_missing, &missing))
		buf_printf(&text, "; cannot be opened: %s", buf_text(&missing));
	if (text.size) {
		struct err *more = err_new("%s%s: put the recorded file back, or record again",
					   err_text(error), buf_text(&text));
		err_free(error);
		error = more;
	}
	buf_free(&changed);
	buf_free(&missing);
	buf_free(&text);
	return error;
}
