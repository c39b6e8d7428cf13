/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/keys.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/scopes.h"
#include "base/array.h"
#include "base/err.h"
#include "base/hash.h"
#include "compare/names.h"

enum { KEY_WHOLE = 1000 }; /* beside enum scope_kind */

/* ---- names ---- */

const char *keys_function_name(struct keys *k, const struct scope *s)
{
	bool whole = builds_whole(&k->builds, s->module);
	buf_clear(&k->text);
	if (whole || (s->nameless && builds_differ(&k->builds, s->module))) {
		buf_puts(&k->text, whole ? "all of " : "functions without a name in ");
		builds_name(&k->builds, s->module, &k->text);
		return buf_text(&k->text);
	}
	if (!s->nameless)
		name_plain(s->name, &k->text);
	return k->text.size ? buf_text(&k->text) : s->name;
}

static uint64_t start_of(const struct keys *k, int kind, uint32_t module)
{
	return hash_number(hash_number(HASH_START, (uint64_t)kind), k->builds.same[module]);
}

/* ---- functions ---- */

static const struct scope *function_of(const struct keys *k, const struct scope *s)
{
	if (s->kind != SCOPE_LOOP)
		return s;
	/* What it was inlined into is above it in the tree. */
	return scopes_get(k->scopes, s->inlined ? s->inlined : s->function);
}

static uint64_t family_of(struct keys *k, const struct scope *s, const char *name)
{
	struct buf family = {0};
	name_family(name, &family);
	uint64_t hash = hash_text(start_of(k, SCOPE_FUNCTION, s->module), buf_text(&family));
	k->text.failed |= family.failed;
	buf_free(&family);
	return hash;
}

struct err *keys_function(struct keys *k, const struct scope *scope, uint8_t sides,
			  uint32_t *number)
{
	const struct scope *s = function_of(k, scope);
	const char *name = keys_function_name(k, s);
	uint64_t key = hash_text(start_of(k, SCOPE_FUNCTION, s->module), name);
	*number = lookup_find(&k->by_key, key);
	if (*number == LOOKUP_NONE) {
		if (!ARRAY_ROOM(k->functions, k->function_count, k->function_room) ||
		    !lookup_put(&k->by_key, key, (uint32_t)k->function_count))
			return err_new("out of memory");
		*number = (uint32_t)k->function_count++;
		k->functions[*number] = (struct key_function){
			.key = key,
			.family = family_of(k, s, name),
			.same = *number,
			.known = !s->nameless || !builds_differ(&k->builds, s->module),
		};
	}
	k->functions[*number].sides |= sides;
	return k->text.failed ? err_new("out of memory") : NULL;
}

/* The only function of a family that just this side has; LOOKUP_NONE - 1: there are several. */
static bool find_only(const struct keys *k, uint8_t side, struct lookup *out)
{
	bool good = true;
	for (uint32_t i = 0; i < k->function_count && good; i++) {
		const struct key_function *f = &k->functions[i];
		if (f->sides == side && f->known)
			good = lookup_put(
				out, f->family,
				lookup_find(out, f->family) == LOOKUP_NONE ? i : LOOKUP_NONE - 1);
	}
	return good;
}

struct err *keys_join_families(struct keys *k)
{
	struct lookup old = {0}, new = {0};
	bool good = find_only(k, SIDE_OLD, &old) && find_only(k, SIDE_NEW, &new);
	for (uint32_t i = 0; i < k->function_count && good; i++) {
		struct key_function *f = &k->functions[i];
		uint32_t after = lookup_find(&new, f->family);
		if (f->sides == SIDE_OLD && lookup_find(&old, f->family) == i &&
		    after < k->function_count)
			f->same = after;
	}
	lookup_free(&old);
	lookup_free(&new);
	return good ? NULL : err_new("out of memory");
}

/* ---- keys ---- */

uint64_t keys_of_function(const struct keys *k, uint32_t number)
{
	return k->functions[number].key;
}

uint64_t keys_of_piece(const struct keys *k, uint32_t number, const struct scope *s, uint32_t same)
{
	return hash_number(hash_number(k->functions[number].key, s->kind), same);
}

uint64_t keys_of_other(struct keys *k, const struct scope *s)
{
	return hash_text(start_of(k, (int)s->kind, s->module),
			 s->kind == SCOPE_MODULE ? "" : keys_function_name(k, s));
}

uint64_t keys_of_whole(const struct keys *k, uint32_t module)
{
	return start_of(k, KEY_WHOLE, module);
}

/* ---- the face ---- */

struct err *keys_open(const struct profile *profile, struct modules *modules,
		      const struct scopes *scopes, const uint8_t *sides, struct keys *out)
{
	*out = (struct keys){.scopes = scopes};
	return builds_find(profile, modules, sides, &out->builds);
}

void keys_close(struct keys *k)
{
	builds_free(&k->builds);
	free(k->functions);
	lookup_free(&k->by_key);
	buf_free(&k->text);
	*k = (struct keys){0};
}
