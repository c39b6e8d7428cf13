/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/keys.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/answers.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/path.h"
#include "compare/names.h"
#include "image/places.h"
#include "profile/profile.h"
#include "structure/structure.h"

#define LOOPS_RANKED 20000 /* scopes of a procedure; in larger ones loops are known by line */

const char *keys_plain(struct keys *k, const char *name)
{
	buf_clear(&k->text);
	name_plain(name, &k->text);
	return k->text.size ? buf_text(&k->text) : name;
}

const char *keys_module_name(struct keys *k, uint32_t module)
{
	buf_clear(&k->text);
	name_module(k->profile->modules[module].path, &k->text);
	return buf_text(&k->text);
}

/* ---- modules that were built anew between the runs ---- */

static uint64_t module_key(struct keys *k, uint32_t module)
{
	const char *name = keys_module_name(k, module);
	return hash_bytes(HASH_START, name, strlen(name));
}

static uint32_t first_of(struct keys *k, uint32_t module)
{
	return module ? lookup_find(&k->files, module_key(k, module)) : LOOKUP_NONE;
}

/* Which modules have code in the tree: others were not opened. */
static bool *find_used(const struct profile *p)
{
	bool *used = calloc(p->module_count + 1, sizeof *used);
	for (size_t i = 0; used && i < p->node_count; i++)
		used[p->nodes[i].module] = true;
	return used;
}

static struct err *find_rebuilt(struct keys *k)
{
	bool *used = find_used(k->profile);
	k->rebuilt = calloc(k->profile->module_count + 1, sizeof *k->rebuilt);
	k->unreadable = calloc(k->profile->module_count + 1, sizeof *k->unreadable);
	bool good = used && k->rebuilt && k->unreadable;
	for (uint32_t i = 1; i < k->profile->module_count && good; i++) {
		const struct profile_module *m = &k->profile->modules[i];
		uint32_t first = used[i] ? first_of(k, i) : i;
		if (first == LOOKUP_NONE)
			good = lookup_put(&k->files, module_key(k, i), i);
		else if (used[i] && strcmp(k->profile->modules[first].build_id, m->build_id) != 0)
			k->rebuilt[first] = true;
	}
	for (uint32_t i = 1; i < k->profile->module_count && good; i++) {
		uint32_t first = used[i] ? first_of(k, i) : LOOKUP_NONE;
		const struct profile_module *m = &k->profile->modules[i];
		if (first == LOOKUP_NONE || m->kind != PROFILE_FILE || modules_image(k->modules, i))
			continue;
		k->unreadable[first] = true;
		if (!*m->build_id && !m->name_count) /* nothing says that it is the same */
			k->rebuilt[first] = true;
	}
	free(used);
	return good ? NULL : err_new("out of memory");
}

static bool is_rebuilt(struct keys *k, uint32_t module)
{
	uint32_t first = first_of(k, module);
	return first != LOOKUP_NONE && k->rebuilt[first];
}

/* Whether it can only be compared as a whole. */
bool keys_whole(struct keys *k, uint32_t module)
{
	uint32_t first = first_of(k, module);
	return first != LOOKUP_NONE && k->rebuilt[first] && k->unreadable[first];
}

void keys_note_wholes(struct keys *k, struct buf *notes)
{
	for (uint32_t i = 1; i < k->profile->module_count; i++)
		if (k->rebuilt[i] && k->unreadable[i])
			buf_printf(notes,
				   "%s is compared as a whole: not all of its builds are there\n",
				   keys_module_name(k, i));
}

/* ---- keys: parts that end with a zero ---- */

static void add_part(struct keys *k, const char *text)
{
	buf_append(&k->key, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void add_number(struct keys *k, long number)
{
	buf_printf(&k->key, "%ld", number);
	buf_append(&k->key, "", 1);
}

/* The name of a function's row. */
const char *keys_function_name(struct keys *k, const struct scope *s)
{
	bool whole = keys_whole(k, s->module);
	if (whole || (s->nameless && is_rebuilt(k, s->module))) {
		buf_clear(&k->text);
		buf_puts(&k->text, whole ? "all of " : "functions without a name in ");
		name_module(k->profile->modules[s->module].path, &k->text);
		return buf_text(&k->text);
	}
	return s->nameless ? s->name : keys_plain(k, s->name);
}

/* ---- loops ---- */

static uint32_t inline_of(const struct structure_procedure *p, uint32_t scope)
{
	while (scope && p->scopes[scope].type != STRUCTURE_INLINE)
		scope = p->scopes[scope].parent < scope ? p->scopes[scope].parent : 0;
	return scope;
}

static bool equal(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static int compare_positions(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static uint64_t position(const struct structure_scope *s)
{
	return s->file && s->line ? s->line : s->header;
}

/* How many loops of the same function (inlined or not) and file begin before this one. */
static long rank_loop(const struct structure_procedure *p, uint32_t loop)
{
	const struct structure_scope *l = &p->scopes[loop];
	const char *within = p->scopes[inline_of(p, loop)].name;
	uint64_t *before = p->scope_count <= LOOPS_RANKED ? calloc(p->scope_count, sizeof *before)
							  : NULL;
	size_t count = 0;
	long rank = 0;
	if (!before)
		return (long)position(l);
	for (uint32_t i = 1; i < p->scope_count; i++) {
		const struct structure_scope *s = &p->scopes[i];
		if (s->type == STRUCTURE_LOOP && equal(path_file(s->file), path_file(l->file)) &&
		    position(s) < position(l) && equal(p->scopes[inline_of(p, i)].name, within))
			before[count++] = position(s);
	}
	qsort(before, count, sizeof *before, compare_positions);
	for (size_t i = 0; i < count; i++)
		rank += !i || before[i] != before[i - 1];
	free(before);
	return rank;
}

static void key_of_loop(struct keys *k, const struct scope *s, const struct answer *answer)
{
	const struct structure_procedure *p = answer ? answer->procedure : NULL;
	uint32_t loop = p ? answer->scope : 0;
	while (loop &&
	       (p->scopes[loop].type != STRUCTURE_LOOP || p->scopes[loop].header != s->address))
		loop = p->scopes[loop].parent < loop ? p->scopes[loop].parent : 0;
	add_part(k, keys_function_name(k, scopes_get(k->scopes, s->function)));
	add_part(k, s->inlined ? keys_plain(k, scopes_get(k->scopes, s->inlined)->name) : "");
	add_part(k, path_file(s->file));
	add_number(k, loop ? rank_loop(p, loop) : (long)s->address);
}

/* ---- lines ---- */

static void key_of_line(struct keys *k, const struct scope *s, const struct answer *answer)
{
	size_t at = answer && k->no_inline ? answer->count - 1 : 0;
	const struct place *p = answer && answer->count ? &answer->places[at] : NULL;
	bool known = p && p->declared_line > 0 && p->declared_line <= s->line &&
		     equal(p->declared_file, s->file);
	add_part(k, keys_function_name(k, s));
	add_part(k, path_file(s->file));
	add_part(k, known ? "+" : "");
	add_number(k, known ? s->line - p->declared_line : s->line);
}

uint64_t keys_of(struct keys *k, const struct scope *s, const struct answer *answer)
{
	buf_clear(&k->key);
	add_number(k, s->kind == SCOPE_INLINE ? SCOPE_FUNCTION : s->kind);
	add_part(k, s->module ? keys_module_name(k, s->module) : "");
	if (s->kind == SCOPE_LOOP && s->module)
		key_of_loop(k, s, answer);
	else if (s->kind == SCOPE_LINE)
		key_of_line(k, s, answer);
	else
		add_part(k, s->kind == SCOPE_MODULE ? "" : keys_function_name(k, s));
	return k->key.size ? hash_bytes(HASH_START, k->key.data, k->key.size) : 0;
}

/* ---- the face ---- */

struct scope keys_whole_scope(uint32_t module)
{
	return (struct scope){.kind = SCOPE_FUNCTION, .module = module, .name = ""};
}

struct err *keys_open(const struct profile *profile, struct modules *modules,
		      const struct scopes *scopes, bool no_inline, struct keys *out)
{
	*out = (struct keys){
		.profile = profile, .modules = modules, .scopes = scopes, .no_inline = no_inline};
	return find_rebuilt(out);
}

void keys_close(struct keys *k)
{
	lookup_free(&k->files);
	free(k->rebuilt);
	free(k->unreadable);
	buf_free(&k->key);
	buf_free(&k->text);
	*k = (struct keys){0};
}
