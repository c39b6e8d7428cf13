/* SPDX-License-Identifier: Apache-2.0 */
#include "annotate/find.h"

#include <ctype.h>
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "analyze/shorten.h"
#include "annotate/sources.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/nearest.h"
#include "base/path.h"
#include "image/names.h"
#include "image/symbols.h"
#include "profile/profile.h"
#include "structure/structure.h"

#define LISTED_MAX 6 /* functions named in an error */

struct matches {
	struct annotate_function *all;
	size_t count, room;
	bool failed;
};

static uint64_t key_of(uint32_t module, uint64_t start)
{
	return start * 0x9e3779b97f4a7c15ull ^ (uint64_t)module << 40;
}

/* Adds samples to a function, which is new or not. */
static void add(struct matches *m, struct lookup *known, const struct annotate_function *f)
{
	uint64_t key = key_of(f->module, f->start);
	uint32_t at = lookup_find(known, key);
	if (at != LOOKUP_NONE) {
		m->all[at].self += f->self;
		return;
	}
	if (!ARRAY_ROOM(m->all, m->count, m->room)) {
		m->failed = true;
		return;
	}
	m->failed |= !lookup_put(known, key, (uint32_t)m->count);
	m->all[m->count++] = *f;
}

static int by_self(const void *a, const void *b)
{
	const struct annotate_function *x = a, *y = b;
	if (x->self != y->self)
		return x->self > y->self ? -1 : 1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* ---- the list ---- */

/* Samples of each node itself. */
static uint64_t *node_values(const struct annotate_functions *f)
{
	const struct profile *p = f->profile;
	uint64_t *values = calloc(p->node_count + 1, sizeof *values);
	for (size_t i = 0; values && i < p->value_count; i++)
		if (p->values[i].metric == f->metric &&
		    (!f->thread || f->thread[p->values[i].thread]))
			values[p->values[i].node] += p->values[i].count;
	return values;
}

static bool is_frame(const struct profile_node *n)
{
	return n->kind == PROFILE_CALL || n->kind == PROFILE_EXACT;
}

static struct annotate_function function_of(const struct annotate_functions *f, size_t node,
					    uint64_t self)
{
	const struct profile_node *n = &f->profile->nodes[node];
	struct modules_function found;
	modules_function(f->modules, n->module, n->address, n->kind == PROFILE_EXACT, &found);
	return (struct annotate_function){n->module, found.start, found.name, self};
}

struct err *annotate_functions_list(const struct profile *profile, struct modules *modules,
				    uint32_t metric, const bool *thread,
				    struct annotate_functions *out)
{
	*out = (struct annotate_functions){
		.profile = profile, .modules = modules, .metric = metric, .thread = thread};
	struct matches m = {0};
	struct lookup known = {0};
	uint64_t *values = node_values(out);
	for (size_t i = 0; values && i < profile->node_count; i++) {
		out->samples += values[i];
		if (!is_frame(&profile->nodes[i]) || !profile->nodes[i].module)
			continue;
		struct annotate_function f = function_of(out, i, values[i]);
		add(&m, &known, &f);
	}
	bool good = values && !m.failed;
	free(values);
	lookup_free(&known);
	out->all = m.all;
	out->count = m.count;
	if (!good) {
		annotate_functions_free(out);
		return err_new("out of memory");
	}
	if (m.count)
		qsort(m.all, m.count, sizeof *m.all, by_self);
	return NULL;
}

void annotate_functions_free(struct annotate_functions *f)
{
	free(f->all);
	*f = (struct annotate_functions){0};
}

/* ---- names ---- */

static const char *symbol_of(const struct annotate_functions *f, const struct annotate_function *x)
{
	const struct symbols *symbols = modules_symbols(f->modules, x->module);
	const struct symbol *s = symbols ? symbols_find(symbols, x->start) : NULL;
	return s && s->address == x->start ? s->name : NULL;
}

static bool is_whole(const struct annotate_functions *f, const struct annotate_function *x,
		     const char *text)
{
	const char *symbol = symbol_of(f, x);
	return (x->name && !strcmp(x->name, text)) || (symbol && !strcmp(symbol, text));
}

static bool is_short(const struct annotate_functions *f, const struct annotate_function *x,
		     const char *text)
{
	struct buf shortened = {0};
	(void)f;
	if (x->name)
		name_shorten(x->name, &shortened);
	bool same = x->name && !strcmp(buf_text(&shortened), text);
	buf_free(&shortened);
	return same;
}

/* "find" is "shop::find(int)", "shop::find<int>(int)"; "shop::find" is both, too. */
static bool is_called(const char *name, const char *text)
{
	size_t length = strlen(text);
	for (const char *at = name; length && (at = strstr(at, text)); at++) {
		bool begins = at == name || at[-1] == ' ' ||
			      (at >= name + 2 && at[-1] == ':' && at[-2] == ':');
		if (begins && (!at[length] || strchr("(<[. ", at[length])))
			return true;
	}
	return false;
}

static bool is_tail(const struct annotate_functions *f, const struct annotate_function *x,
		    const char *text)
{
	(void)f;
	return x->name && is_called(x->name, text);
}

/* ---- each way to match ---- */

/* The procedure with this instruction; NULL where there is none, or the module has no file. */
static const struct structure_procedure *procedure_at(const struct annotate_functions *f,
						      uint32_t module, uint64_t address)
{
	struct structure *s = modules_image(f->modules, module)
				      ? modules_structure(f->modules, module)
				      : NULL;
	return s ? structure_find(s, address) : NULL;
}

/* A procedure's parts have symbols of their own ("find.cold"): they are one function. */
static uint64_t entry_of(const struct annotate_functions *f, const struct annotate_function *x)
{
	const struct structure_procedure *p = procedure_at(f, x->module, x->start);
	return p ? p->start : x->start;
}

static void join_parts(const struct annotate_functions *f, struct matches *m)
{
	struct matches joined = {0};
	struct lookup known = {0};
	if (m->count < 2)
		return;
	for (size_t i = 0; i < m->count; i++) {
		struct annotate_function x = m->all[i];
		x.start = entry_of(f, &x);
		add(&joined, &known, &x);
	}
	lookup_free(&known);
	joined.failed |= m->failed;
	free(m->all);
	*m = joined;
}

static void match_names(const struct annotate_functions *f, const char *text,
			bool (*fits)(const struct annotate_functions *,
				     const struct annotate_function *, const char *),
			struct matches *out)
{
	struct lookup known = {0};
	for (size_t i = 0; i < f->count; i++)
		if (fits(f, &f->all[i], text))
			add(out, &known, &f->all[i]);
	lookup_free(&known);
}

/* MODULE:0xADDRESS, and MODULE+0xADDRESS as report shows it. */
static void match_address(const struct annotate_functions *f, const char *text, struct matches *out)
{
	const char *number = strstr(text, "0x");
	struct lookup known = {0};
	char *end;
	while (number && strstr(number + 1, "0x"))
		number = strstr(number + 1, "0x");
	if (!number || number - text < 2 || !strchr(":+", number[-1]))
		return;
	uint64_t address = strtoull(number, &end, 16);
	size_t length = (size_t)(number - text) - 1;
	for (uint32_t i = 1; !*end && i < f->profile->module_count; i++) {
		const char *path = f->profile->modules[i].path, *file = path_file(path);
		bool named = (strlen(file) == length && !strncmp(file, text, length)) ||
			     (strlen(path) == length && !strncmp(path, text, length));
		struct modules_function found;
		if (!named)
			continue;
		modules_function(f->modules, i, address, true, &found);
		add(out, &known, &(struct annotate_function){i, address, found.name, 0});
	}
	lookup_free(&known);
}

/* The last identifier stands in a mangled name as it is; *length 0 where that cannot be told. */
static const char *identifier_of(const char *text, size_t *length)
{
	*length = 0;
	if (strstr(text, "operator"))
		return text;
	size_t end = strcspn(text, "(<"), start;
	while (end && !isalnum((unsigned char)text[end - 1]) && text[end - 1] != '_')
		end--;
	for (start = end;
	     start && (isalnum((unsigned char)text[start - 1]) || text[start - 1] == '_');)
		start--;
	*length = end - start;
	return text + start;
}

static bool is_symbol(const char *symbol, const char *text, const char *word, size_t length)
{
	if (!strcmp(symbol, text))
		return true;
	if (!memmem(symbol, strlen(symbol), word, length))
		return false;
	char *name = name_demangle(symbol);
	bool called = name && is_called(name, text);
	free(name);
	return called;
}

static const struct annotate_function *listed(const struct annotate_functions *f, uint32_t module,
					      uint64_t start)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->all[i].module == module && f->all[i].start == start)
			return &f->all[i];
	return NULL;
}

/* Functions that have another name on the paths. Returns whether there is any of this name, if only
   without samples. */
static bool match_symbols(const struct annotate_functions *f, const char *text, struct matches *out)
{
	struct lookup known = {0};
	bool exists = false;
	size_t length;
	const char *word = identifier_of(text, &length);
	for (uint32_t i = 1; i < f->profile->module_count; i++) {
		const struct symbols *symbols = modules_symbols(f->modules, i);
		const struct symbol *all;
		size_t count = symbols ? symbols_all(symbols, &all) : 0;
		for (size_t k = 0; k < count; k++) {
			if (!is_symbol(all[k].name, text, word, length))
				continue;
			struct modules_function found;
			modules_function(f->modules, i, all[k].address, true, &found);
			const struct annotate_function *same = listed(f, i, found.start);
			exists = true;
			if (same)
				add(out, &known, same);
		}
	}
	lookup_free(&known);
	return exists;
}

struct wanted {
	const char *text, *word; /* the name, and what must be in its symbol */
	size_t length;
	struct lookup known; /* names by their addresses -> whether they fit */
};

static bool fits(struct wanted *w, const char *symbol)
{
	uint32_t answer = lookup_find(&w->known, (uintptr_t)symbol);
	if (answer == LOOKUP_NONE) {
		answer = is_symbol(symbol, w->text, w->word, w->length);
		lookup_put(&w->known, (uintptr_t)symbol, answer);
	}
	return answer;
}

static bool is_inlined(const struct annotate_functions *f, const struct profile_node *n,
		       struct wanted *w)
{
	uint64_t at = n->address - (n->kind == PROFILE_CALL);
	const struct structure_procedure *p = procedure_at(f, n->module, at);
	for (uint32_t i = p ? structure_scope_at(p, at) : 0; i; i = p->scopes[i].parent)
		if (p->scopes[i].type == STRUCTURE_INLINE && p->scopes[i].name &&
		    fits(w, p->scopes[i].name))
			return true;
	return false;
}

/* Functions with samples in something of this name that was inlined into them. */
static void match_inlined(const struct annotate_functions *f, const char *text, struct matches *out)
{
	const struct profile *p = f->profile;
	uint64_t *values = node_values(f);
	struct lookup known = {0};
	struct wanted w = {.text = text};
	w.word = identifier_of(text, &w.length);
	out->failed |= !values;
	for (size_t i = 0; values && i < p->node_count; i++)
		if (is_frame(&p->nodes[i]) && p->nodes[i].module &&
		    is_inlined(f, &p->nodes[i], &w)) {
			struct annotate_function found = function_of(f, i, values[i]);
			add(out, &known, &found);
		}
	lookup_free(&w.known);
	lookup_free(&known);
	free(values);
}

static void match_expression(const struct annotate_functions *f, const char *text,
			     struct matches *out)
{
	struct lookup known = {0};
	regex_t re;
	if (regcomp(&re, text, REG_EXTENDED | REG_NOSUB))
		return;
	for (size_t i = 0; i < f->count; i++)
		if (f->all[i].name && !regexec(&re, f->all[i].name, 0, NULL, 0))
			add(out, &known, &f->all[i]);
	regfree(&re);
	lookup_free(&known);
}

/* ---- the choice ---- */

static void put_function(const struct annotate_functions *f, const struct annotate_function *x,
			 struct buf *out)
{
	struct buf name = {0};
	name_shorten(x->name ? x->name : "?", &name);
	source_put_clean(out, buf_text(&name), name.size, 60);
	buf_printf(out, " (%s:0x%" PRIx64 ")", path_file(f->profile->modules[x->module].path),
		   x->start);
	if (x->self && f->samples)
		buf_printf(out, " %.2f%%", 100 * (double)x->self / (double)f->samples);
	buf_free(&name);
}

static struct err *several(const struct annotate_functions *f, const char *text,
			   const struct matches *m, bool inlined)
{
	struct buf names = {0};
	for (size_t i = 0; i < m->count && i < LISTED_MAX; i++) {
		buf_puts(&names, i ? ", " : "");
		put_function(f, &m->all[i], &names);
	}
	if (m->count > LISTED_MAX)
		buf_printf(&names, " and %zu more", m->count - LISTED_MAX);
	struct err *e = err_new("'%.200s' %s %zu functions: %s; say which one (MODULE:0xADDRESS "
				"does), or --hottest",
				text, inlined ? "was inlined into" : "may be", m->count,
				buf_text(&names));
	buf_free(&names);
	return e;
}

static struct err *choose(const struct annotate_functions *f, const char *text, bool hottest,
			  struct matches *m, bool inlined, struct annotate_function *out)
{
	if (m->failed)
		return err_new("out of memory");
	qsort(m->all, m->count, sizeof *m->all, by_self);
	if (m->count > 1 && !hottest)
		return several(f, text, m, inlined);
	*out = m->all[0];
	return NULL;
}

static bool is_expression(const char *text)
{
	return strpbrk(text, "^$*+?|[\\") || strstr(text, ".*");
}

/* Fills `m` by the first way that gives anything. Returns whether there is such a function at all. */
static bool match(const struct annotate_functions *f, const char *text, struct matches *m,
		  bool *inlined)
{
	match_address(f, text, m);
	if (!m->count)
		match_names(f, text, is_whole, m);
	if (!m->count)
		match_names(f, text, is_short, m);
	if (!m->count)
		match_names(f, text, is_tail, m);
	if (!m->count && is_expression(text))
		match_expression(f, text, m);
	if (!m->count) {
		match_inlined(f, text, m);
		*inlined = m->count > 0;
	}
	if (!m->count)
		match_expression(f, text, m);
	return m->count || match_symbols(f, text, m);
}

/* The function with samples whose name, or the last part of it, is nearest; NULL: none is near. */
static const char *nearest_name(const struct annotate_functions *f, const char *text)
{
	struct nearest nearest = {0};
	for (size_t i = 0; i < f->count; i++) {
		const char *name = f->all[i].name;
		struct buf shortened = {0};
		if (!name)
			continue;
		name_shorten(name, &shortened);
		const char *last = buf_text(&shortened);
		for (const char *part = last; (part = strstr(part, "::")); last = part)
			part += 2;
		nearest_try(&nearest, text, strlen(text), last);
		if (nearest.name == last)
			nearest.name = name;
		buf_free(&shortened);
	}
	return nearest.name;
}

static struct err *find_none(const struct annotate_functions *f, const char *text, bool exists)
{
	const char *nearest = exists ? NULL : nearest_name(f, text);
	return err_new("%s '%.200s'%s%s%s: culprit report --view=flat lists functions that have "
		       "some",
		       exists ? "there are no samples in" : "no function with samples is called",
		       text, nearest ? " (the nearest is '" : "", nearest ? nearest : "",
		       nearest ? "')" : "");
}

struct err *annotate_functions_find(const struct annotate_functions *f, const char *text,
				    bool hottest, struct annotate_function *out, bool *inlined)
{
	struct matches m = {0};
	*inlined = false;
	bool exists = match(f, text, &m, inlined);
	join_parts(f, &m);
	struct err *e = m.count ? choose(f, text, hottest, &m, *inlined, out)
				: find_none(f, text, exists);
	free(m.all);
	return e;
}
