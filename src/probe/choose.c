/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/choose.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/shorten.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/nearest.h"
#include "base/path.h"
#include "harvest/probes.h"
#include "image/image.h"
#include "image/names.h"
#include "image/symbols.h"
#include "probe/entries.h"
#include "probe/modules.h"
#include "probe/names.h"
#include "probe/sites.h"

#define LISTED_MAX 8       /* functions that an error names */
#define FUNCTIONS_MAX 1000 /* more probes than that take too long to put in place */

struct found {
	size_t module;
	uint64_t address;
	const char *symbol; /* NULL: it has none */
};

struct search {
	struct probe_modules *modules;
	const char *text; /* without MODULE! */
	const char *only; /* the module's name as given; NULL: all */
	size_t given;     /* if that is a path: its index */
	struct found *all;
	size_t count, room;
	struct nearest nearest;
	bool any_module;
};

/* ---- modules ---- */

/* Where the name begins behind MODULE!; the text itself: there is none. "operator!" is a name. */
static const char *behind_module(const char *text)
{
	const char *mark = strchr(text, '!');
	if (!mark || mark == text || strstr(text, "operator") || !mark[1])
		return text;
	return mark + 1;
}

/* "libc" is libc.so.6. */
static bool is_module(const struct probe_module *m, const char *name)
{
	const char *file = path_file(m->path);
	size_t length = strlen(name);
	if (!strcmp(m->path, name) || !strcmp(file, name))
		return true;
	return !strncmp(file, name, length) &&
	       (!strncmp(file + length, ".so", 3) || file[length] == '-');
}

/* Whether functions of this module are asked for. */
static bool is_wanted(const struct search *s, size_t module)
{
	if (s->only && strchr(s->only, '/'))
		return module == s->given;
	return !s->only || is_module(&s->modules->all[module], s->only);
}

/* A path may be that of a file which is loaded later. */
static struct err *find_given(struct search *s)
{
	struct probe_modules *m = s->modules;
	if (!s->only || !strchr(s->only, '/'))
		return NULL;
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->all[i].path, s->only)) { /* as the process sees it */
			s->given = i;
			return NULL;
		}
	return probe_modules_add_file(m, s->only, &s->given);
}

/* ---- looking ---- */

static struct err *keep(struct search *s, size_t module, uint64_t address, const char *symbol)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].module == module && s->all[i].address == address)
			return NULL;
	if (!ARRAY_ROOM(s->all, s->count, s->room))
		return err_new("out of memory");
	s->all[s->count++] = (struct found){module, address, symbol};
	return NULL;
}

/* A part of a function that was moved away is none itself. */
static bool is_part(const char *symbol)
{
	const char *dot = strstr(symbol, ".cold");
	return dot && (!dot[5] || dot[5] == '.');
}

static struct err *look_in(struct search *s, size_t module, enum name_match wanted)
{
	const struct symbol *all;
	size_t count = symbols_all(s->modules->all[module].symbols, &all);
	struct err *e = NULL;
	for (size_t i = 0; i < count && !e; i++) {
		if (is_part(all[i].name))
			continue;
		nearest_try(&s->nearest, s->text, strlen(s->text), all[i].name);
		if (name_matches(all[i].name, s->text) == wanted)
			e = keep(s, module, all[i].address, all[i].name);
	}
	return e;
}

static struct err *look(struct search *s, enum name_match wanted)
{
	struct err *e = NULL;
	for (size_t i = 0; i < s->modules->count && !e; i++) {
		struct probe_module *m = &s->modules->all[i];
		if (!is_wanted(s, i))
			continue;
		s->any_module = true;
		e = probe_module_open(m);
		if (e) { /* some libraries cannot be read: that matters only if one is asked for */
			if (s->only)
				return e;
			err_free(e);
			e = NULL;
			continue;
		}
		e = look_in(s, i, wanted);
	}
	return e;
}

/* ---- addresses ---- */

static struct err *keep_address(struct search *s, size_t module, uint64_t address)
{
	struct probe_module *m = &s->modules->all[module];
	struct err *e = probe_module_open(m);
	if (e)
		return e;
	const struct symbol *symbol = symbols_find(m->symbols, address);
	if (!image_is_code(m->image, address))
		return err_new("%s: %s has no code there", s->text, m->path);
	if (symbol && symbol->address != address)
		return err_new("%s: this is no beginning of a function, but in %s, which begins at "
			       "0x%" PRIx64,
			       s->text, symbol->name, symbol->address);
	return keep(s, module, address, symbol ? symbol->name : NULL);
}

/* Finds the address in the file of one in memory. */
static struct err *keep_in_memory(struct search *s, uint64_t address)
{
	const struct probe_modules *m = s->modules;
	for (size_t i = 0; i < m->range_count; i++) {
		const struct probe_range *r = &m->ranges[i];
		const struct image_segment *segments;
		if (address < r->start || address >= r->end)
			continue;
		struct err *e = probe_module_open(&m->all[r->module]);
		if (e)
			return e;
		uint64_t offset = address - r->start + r->offset;
		size_t count = image_segments(m->all[r->module].image, &segments);
		for (size_t k = 0; k < count; k++)
			if (offset >= segments[k].offset &&
			    offset - segments[k].offset < segments[k].file_size)
				return keep_address(s, r->module,
						    offset - segments[k].offset +
							    segments[k].address);
	}
	return err_new("%s: the process has no code of a file there", s->text);
}

static struct err *look_at(struct search *s, uint64_t address)
{
	if (!s->only && s->modules->range_count)
		return keep_in_memory(s, address);
	for (size_t i = 0; i < s->modules->count; i++)
		if (is_wanted(s, i)) {
			s->any_module = true;
			return keep_address(s, i, address);
		}
	return NULL;
}

/* ---- source lines ---- */

static struct err *look_on_line(struct search *s, const struct entry_line *at)
{
	uint32_t before = 0;
	const char *name = NULL;
	struct err *e = NULL;
	for (size_t i = 0; i < s->modules->count && !e; i++) {
		uint64_t address;
		if (!is_wanted(s, i))
			continue;
		s->any_module = true;
		struct err *unread = entry_line_find(&s->modules->all[i], at, &address, &before,
						     &name);
		if (!unread && address)
			e = keep_address(s, i, address);
		err_free(unread);
	}
	if (e || s->count || !s->any_module)
		return e;
	return name ? err_new("%s: no function begins there; %s begins on line %u", s->text, name,
			      before)
		    : err_new("%s: no function begins there, or there is no debug information",
			      s->text);
}

/* ---- what came of it ---- */

static struct err *refuse_none(const struct search *s)
{
	if (s->only && !s->any_module)
		return err_new(
			"%s: there is no such module: give the path of a file that is loaded later",
			s->only);
	return err_new("%s: there is no such function%s%s%s%s", s->text, s->only ? " in " : "",
		       s->only ? s->only : "", s->nearest.name ? ", did you mean " : "",
		       s->nearest.name ? s->nearest.name : "");
}

static struct err *refuse_many(const struct search *s)
{
	struct buf list = {0};
	for (size_t i = 0; i < s->count && i < LISTED_MAX; i++) {
		const struct found *f = &s->all[i];
		char *name = name_demangle(f->symbol);
		buf_printf(&list, "%s%s!0x%" PRIx64 " (%s)", i ? ", " : "",
			   path_file(s->modules->all[f->module].path), f->address,
			   name ? name : f->symbol);
		free(name);
	}
	if (s->count > LISTED_MAX)
		buf_printf(&list, ", %zu more", s->count - LISTED_MAX);
	struct err *e = err_new("%s: several functions are called so: %s", s->text,
				buf_text(&list));
	buf_free(&list);
	return e;
}

/* Whether it is there. If it was taken away, it comes back. */
static bool is_known(struct probes *p, const struct probe_module *m, uint64_t address)
{
	for (size_t i = 0; i < p->count; i++) {
		struct probe_function *f = &p->functions[i];
		if (f->address != address || strcmp(f->module, m->path))
			continue;
		f->fresh |= f->removed;
		f->removed = false;
		return true;
	}
	return false;
}

static char *name_for_people(const struct found *f)
{
	struct buf out = {0};
	char *name = f->symbol ? name_demangle(f->symbol) : NULL;
	if (name)
		name_shorten(name, &out);
	else
		buf_printf(&out, "0x%" PRIx64, f->address);
	free(name);
	return buf_take(&out);
}

static struct err *add(struct probes *p, struct probe_module *m, const struct found *f)
{
	if (is_known(p, m, f->address))
		return NULL;
	if (p->count >= FUNCTIONS_MAX)
		return err_new("more than %d functions: give a narrower pattern", FUNCTIONS_MAX);
	if (!ARRAY_ROOM(p->functions, p->count, p->room))
		return err_new("out of memory");
	struct probe_function *to = &p->functions[p->count++];
	*to = (struct probe_function){.name = name_for_people(f),
				      .module = strdup(m->path),
				      .file = strdup(m->file),
				      .address = f->address,
				      .everywhere = !m->shared,
				      .sums.least = UINT64_MAX};
	if (!to->name || !to->module || !to->file)
		return err_new("out of memory");
	return probe_find_sites(m, to, f->symbol);
}

static struct err *find(struct search *s)
{
	char *end;
	uint64_t address = strtoull(s->text, &end, 16);
	struct entry_line line;
	struct err *e = NULL;
	if (!strncmp(s->text, "0x", 2) && !*end)
		return look_at(s, address);
	if (entry_line_parse(s->text, &line))
		return look_on_line(s, &line);
	for (int wanted = NAME_WHOLE; wanted < NAME_NONE && !e && !s->count; wanted++)
		e = look(s, (enum name_match)wanted);
	return e;
}

struct err *probe_choose(struct probe_modules *modules, const char *text, struct probes *out)
{
	const char *name = behind_module(text);
	char *only = name == text ? NULL : strndup(text, (size_t)(name - text) - 1);
	struct search s = {.modules = modules, .text = name, .only = only};
	struct err *e = find_given(&s);
	if (!e)
		e = find(&s);
	if (!e && !s.count)
		e = refuse_none(&s);
	if (!e && s.count > 1 && !name_is_pattern(name))
		e = refuse_many(&s);
	for (size_t i = 0; i < s.count && !e; i++)
		e = add(out, &modules->all[s.all[i].module], &s.all[i]);
	free(s.all);
	free(only);
	return e;
}

/* ---- exceptions ---- */

static const struct {
	const char *symbol;
	enum probe_kind kind;
} marks[] = {
	{"_Unwind_RaiseException", PROBE_THROWS},
	{"_Unwind_Resume_or_Rethrow", PROBE_THROWS},
	{"_Unwind_ForcedUnwind", PROBE_THROWS},
	{"__cxa_begin_catch", PROBE_CATCHES},
};

static uint64_t find_symbol(const struct probe_module *m, const char *name)
{
	const struct symbol *all;
	size_t count = symbols_all(m->symbols, &all);
	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return all[i].address;
	return 0;
}

static struct err *mark(struct probe_module *m, struct probes *out)
{
	struct probe_site sites[sizeof marks / sizeof *marks];
	size_t count = 0;
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		uint64_t address = find_symbol(m, marks[i].symbol);
		uint64_t offset = address ? probe_offset(m->image, address) : UINT64_MAX;
		if (offset != UINT64_MAX)
			sites[count++] = (struct probe_site){offset, (uint8_t)marks[i].kind};
	}
	if (!count)
		return NULL;
	if (!ARRAY_ROOM(out->marks, out->mark_count, out->mark_room))
		return err_new("out of memory");
	struct probe_marks x = {.file = strdup(m->file),
				.everywhere = !m->shared,
				.sites = malloc(count * sizeof *sites),
				.site_count = count};
	if (x.sites)
		memcpy(x.sites, sites, count * sizeof *sites);
	out->marks[out->mark_count++] = x;
	return x.file && x.sites ? NULL : err_new("out of memory");
}

struct err *probe_mark_exceptions(struct probe_modules *modules, struct probes *out)
{
	struct err *e = NULL;
	for (size_t i = 0; i < modules->count && !e; i++) {
		struct err *unread = probe_module_open(&modules->all[i]);
		if (!unread)
			e = mark(&modules->all[i], out);
		err_free(unread);
	}
	return e;
}
