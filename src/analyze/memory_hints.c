/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/memory_hints.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/attribution.h"
#include "analyze/scopes.h"
#include "analyze/summary.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/term.h"
#include "profile/profile.h"

enum number { BYTES, CALLS, TEMPORARY, BRIEF, FREED, ELSEWHERE, WASTED, GROWN, NUMBERS };
static const char *const metric_names[NUMBERS] = {"alloc.bytes",  "alloc.calls", "alloc.temporary",
						  "alloc.brief",  "alloc.freed", "alloc.elsewhere",
						  "alloc.wasted", "alloc.grown"};

/* ---- the program's own code ---- */

static bool begins_with_any(const char *text, const char *const *all)
{
	while (*all && strncmp(text, *all, strlen(*all)))
		all++;
	return *all;
}

static bool is_library(const char *path)
{
	static const char *const names[] = {
		"ld-linux", "ld-musl",    "libc.so",     "libc++",      "libstdc++",   "libgcc_s",
		"libm.so",  "libpthread", "libjemalloc", "libtcmalloc", "libmimalloc", NULL};
	const char *slash = strrchr(path, '/');
	return begins_with_any(slash ? slash + 1 : path, names);
}

static bool is_own(const struct profile *p, const struct scope *scope)
{
	static const char *const names[] = {
		"operator new", "std::",    "__gnu_cxx::", "alloc::",  "core::",    "xmalloc",
		"xcalloc",      "xrealloc", "xstrdup",     "g_malloc", "g_realloc", NULL};
	if ((scope->kind != SCOPE_FUNCTION && scope->kind != SCOPE_INLINE) || scope->object)
		return false;
	if (scope->module >= p->module_count || is_library(p->modules[scope->module].path))
		return false;
	if (scope->file && (strstr(scope->file, "/include/c++/") ||
			    !strncmp(scope->file, "/usr/include/", strlen("/usr/include/"))))
		return false;
	return !begins_with_any(scope->name, names);
}

/* For each node, the innermost scope of own code that it is in or that called it; 0: none. */
static uint32_t *find_own(const struct attribution *a)
{
	const struct profile *p = a->profile;
	uint32_t *own = calloc(p->node_count, sizeof *own);
	for (size_t i = 1; own && i < p->node_count; i++) {
		const struct attribution_span *span = &a->spans[i];
		if (p->nodes[i].parent < i)
			own[i] = own[p->nodes[i].parent];
		for (uint32_t k = 0; k < span->count; k++) {
			uint32_t scope = a->steps[span->first + k].scope;
			if (is_own(p, scopes_get(a->scopes, scope)))
				own[i] = scope;
		}
	}
	return own;
}

/* ---- sums ---- */

struct sums {
	uint64_t (*all)[NUMBERS]; /* by scope */
	size_t count;
};

static size_t number_of(const struct profile *p, uint32_t metric)
{
	size_t i = 0;
	while (i < NUMBERS && strcmp(metric_names[i], p->metrics[metric].name))
		i++;
	return i;
}

static struct err *sum_up(const struct attribution *a, const bool *threads, struct sums *out)
{
	const struct profile *p = a->profile;
	uint32_t *own = find_own(a);
	for (size_t i = 0; own && i < p->node_count; i++)
		if (own[i] >= out->count)
			out->count = own[i] + 1;
	out->all = own ? calloc(out->count + 1, sizeof *out->all) : NULL;
	for (size_t i = 0; out->all && i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		size_t number = number_of(p, v->metric);
		if (number < NUMBERS && own[v->node] && !a->dropped[v->node] &&
		    (!threads || threads[v->thread]))
			out->all[own[v->node]][number] += v->count;
	}
	free(own);
	return out->all ? NULL : err_new("out of memory");
}

/* ---- rules ---- */

/* A rule holds if there are enough, and `part` is at least whole / times. In its text, {part} and {whole} stand for
   these numbers, {share} for part / whole. `otherwise`: only if the rule before does not hold, nor those that it depends on. */
static const struct rule {
	enum number part, whole;
	unsigned times;
	enum number of;
	uint64_t least;
	bool otherwise;
	const char *text;
} rules[] = {
	{GROWN, CALLS, 2, GROWN, 100, false,
	 "realloc had to grow the memory {part} times: reserve what is needed at once, or double the size each "
	 "time."},
	{TEMPORARY, CALLS, 2, CALLS, 1000, true,
	 "{share} of {whole} allocations were freed before anything else was allocated: the memory could be on "
	 "the stack, or be kept for the next time."},
	{BRIEF, CALLS, 2, CALLS, 1000, true,
	 "{share} of {whole} allocations were freed within 10 µs: keep the memory for the next time, or take it "
	 "from a pool."},
	{WASTED, BYTES, 3, WASTED, UINT64_C(1) << 20, false,
	 "The allocator gave {share} more than was asked for: the blocks are small, so put several into one."},
	{ELSEWHERE, FREED, 2, FREED, 1000, false,
	 "{share} of what was freed was freed by another thread, which is slow in most allocators: give it back "
	 "to the thread that allocates."},
};
#define RULES (sizeof rules / sizeof *rules)

static bool holds(const struct rule *r, const uint64_t *n)
{
	return n[r->of] >= r->least && n[r->whole] && n[r->part] * r->times >= n[r->whole];
}

static void tell_share(const struct rule *r, const uint64_t *n, struct buf *out)
{
	buf_printf(out, "%u%%", (unsigned)(100 * (double)n[r->part] / (double)n[r->whole] + 0.5));
}

/* Appends a rule's text with numbers. */
static void tell_rule(const struct rule *r, const uint64_t *n, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX];
	for (const char *at = r->text, *brace; at; at = brace ? strchr(brace, '}') + 1 : NULL) {
		brace = strchr(at, '{');
		buf_append(out, at, brace ? (size_t)(brace - at) : strlen(at));
		if (brace && brace[1] == 's')
			tell_share(r, n, out);
		else if (brace)
			buf_puts(out,
				 summary_count(count, n[brace[1] == 'p' ? r->part : r->whole]));
	}
}

static char *tell(const uint64_t *n)
{
	struct buf out = {0};
	bool held = false;
	for (size_t i = 0; i < RULES; i++) {
		bool now = holds(&rules[i], n) && !(rules[i].otherwise && held);
		held = now || (rules[i].otherwise && held);
		if (now && out.size)
			buf_puts(&out, " ");
		if (now)
			tell_rule(&rules[i], n, &out);
	}
	char *text = out.size ? strdup(buf_text(&out)) : NULL;
	buf_free(&out);
	return text;
}

void memory_rules_json(struct json *j)
{
	json_key(j, "memoryRules");
	json_begin_array(j);
	for (size_t i = 0; i < RULES; i++) {
		json_begin_object(j);
		json_put_string(j, "part", metric_names[rules[i].part]);
		json_put_string(j, "whole", metric_names[rules[i].whole]);
		json_key(j, "times");
		json_u64(j, rules[i].times);
		json_put_string(j, "of", metric_names[rules[i].of]);
		json_key(j, "least");
		json_u64(j, rules[i].least);
		json_key(j, "otherwise");
		json_bool(j, rules[i].otherwise);
		json_put_string(j, "text", rules[i].text);
		json_end_object(j);
	}
	json_end_array(j);
}

/* ---- the functions with most calls ---- */

/* Keeps those with the most calls. */
static void add(struct memory_hints *h, struct memory_hint hint)
{
	size_t at = h->count;
	while (at && h->all[at - 1].calls < hint.calls)
		at--;
	if (at == MEMORY_HINTS_MAX) {
		free(hint.text);
		return;
	}
	if (h->count == MEMORY_HINTS_MAX)
		free(h->all[--h->count].text);
	memmove(&h->all[at + 1], &h->all[at], (h->count - at) * sizeof *h->all);
	h->all[at] = hint;
	h->count++;
}

struct err *memory_hints_make(const struct attribution *a, const bool *threads,
			      struct memory_hints *out)
{
	struct sums sums = {0};
	*out = (struct memory_hints){0};
	for (uint32_t i = 0; i < a->profile->metric_count; i++)
		out->recorded |= number_of(a->profile, i) == CALLS;
	if (!out->recorded || (a->by != BY_FUNCTION && a->by != BY_LOOP))
		return NULL;
	struct err *e = sum_up(a, threads, &sums);
	for (size_t i = 1; i < sums.count && !e; i++) {
		char *text = tell(sums.all[i]);
		if (text)
			add(out, (struct memory_hint){(uint32_t)i, sums.all[i][CALLS], text});
	}
	free(sums.all);
	return e;
}

void memory_hints_free(struct memory_hints *h)
{
	while (h->count)
		free(h->all[--h->count].text);
}

void memory_hints_print(const struct memory_hints *h, const struct attribution *a, struct buf *out)
{
	for (size_t i = 0; i < h->count; i++) {
		buf_puts(out, i ? "hint: " : "\nhint: ");
		buf_put_clean(out, scopes_get(a->scopes, h->all[i].scope)->name,
			      strlen(scopes_get(a->scopes, h->all[i].scope)->name));
		buf_printf(out, ": %s\n", h->all[i].text);
	}
}

void memory_hints_json(const struct memory_hints *h, const struct attribution *a, struct json *j)
{
	if (!h->recorded)
		return;
	json_key(j, "hints");
	json_begin_array(j);
	for (size_t i = 0; i < h->count; i++) {
		const struct scope *scope = scopes_get(a->scopes, h->all[i].scope);
		json_begin_object(j);
		json_put_string(j, "name", scope->name);
		if (scope->file)
			json_put_string(j, "file", scope->file);
		json_put_string(j, "text", h->all[i].text);
		json_end_object(j);
	}
	json_end_array(j);
}
