/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/scopes.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "base/err.h"
#include "base/hash.h"

struct scopes {
	struct scope *all;
	uint32_t *next; /* with the same hash; LOOKUP_NONE: none */
	size_t count, room;
	struct lookup hashes; /* -> the newest scope with this hash */
};

const char *scope_kind_name(enum scope_kind kind)
{
	static const char *const names[] = {
		[SCOPE_ROOT] = "root",         [SCOPE_RANK] = "rank",
		[SCOPE_PROCESS] = "process",   [SCOPE_THREAD] = "thread",
		[SCOPE_MODULE] = "module",     [SCOPE_FILE] = "file",
		[SCOPE_FUNCTION] = "function", [SCOPE_INLINE] = "inline",
		[SCOPE_LOOP] = "loop",         [SCOPE_LINE] = "line",
		[SCOPE_INSN] = "insn",         [SCOPE_KERNEL] = "kernel",
		[SCOPE_PARTIAL] = "partial",   [SCOPE_REASON] = "reason",
	};
	return names[kind];
}

static bool has_name(enum scope_kind kind)
{
	return kind == SCOPE_INLINE || kind == SCOPE_LINE;
}
static bool has_file(enum scope_kind kind)
{
	return kind == SCOPE_INLINE || kind == SCOPE_LINE || kind == SCOPE_FILE;
}

static uint64_t hash_of(const struct scope *s)
{
	uint64_t hash = hash_number(hash_number(hash_number(0, s->kind), s->module), s->address);
	if (has_name(s->kind))
		hash = hash_text(hash, s->name);
	if (has_file(s->kind))
		hash = hash_text(hash, s->file);
	return s->kind == SCOPE_LINE ? hash_number(hash, (uint64_t)s->line) : hash;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same(const struct scope *a, const struct scope *b)
{
	return a->kind == b->kind && a->module == b->module && a->address == b->address &&
	       a->guessed == b->guessed && (!has_name(a->kind) || same_text(a->name, b->name)) &&
	       (!has_file(a->kind) || same_text(a->file, b->file)) &&
	       (a->kind != SCOPE_LINE || a->line == b->line);
}

struct err *scopes_new(struct scopes **out)
{
	uint32_t root;
	*out = calloc(1, sizeof **out);
	if (!*out)
		return err_new("out of memory");
	struct err *e = scopes_add(*out, &(struct scope){.kind = SCOPE_ROOT, .name = "(all)"},
				   &root);
	if (e) {
		scopes_free(*out);
		*out = NULL;
	}
	return e;
}

void scopes_free(struct scopes *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++)
		free((char *)s->all[i].name);
	free(s->all);
	free(s->next);
	lookup_free(&s->hashes);
	free(s);
}

static bool grow(struct scopes *s)
{
	if (s->count < s->room)
		return true;
	size_t room = s->room ? s->room * 2 : 256;
	struct scope *all = reallocarray(s->all, room, sizeof *all);
	if (all)
		s->all = all;
	uint32_t *next = reallocarray(s->next, room, sizeof *next);
	if (next)
		s->next = next;
	if (all && next)
		s->room = room;
	return all && next && room < LOOKUP_NONE;
}

static uint32_t find(const struct scopes *s, uint64_t hash, const struct scope *scope)
{
	uint32_t at = lookup_find(&s->hashes, hash);
	while (at != LOOKUP_NONE && !same(&s->all[at], scope))
		at = s->next[at];
	return at;
}

struct err *scopes_add(struct scopes *s, const struct scope *scope, uint32_t *number)
{
	uint64_t hash = hash_of(scope);
	*number = find(s, hash, scope);
	if (*number != LOOKUP_NONE)
		return NULL;
	char *name = strdup(scope->name ? scope->name : "??");
	if (!name || !grow(s)) {
		free(name);
		return err_new("out of memory");
	}
	uint32_t index = (uint32_t)s->count;
	s->next[index] = lookup_find(&s->hashes, hash);
	if (!lookup_put(&s->hashes, hash, index)) {
		free(name);
		return err_new("out of memory");
	}
	s->all[index] = *scope;
	s->all[index].name = name;
	s->count++;
	*number = index;
	return NULL;
}

const struct scope *scopes_get(const struct scopes *s, uint32_t number)
{
	return &s->all[number];
}

void scopes_place(struct scopes *s, uint32_t number, const char *file, int line)
{
	s->all[number].file = file;
	s->all[number].line = line;
}

size_t scopes_count(const struct scopes *s)
{
	return s->count;
}
