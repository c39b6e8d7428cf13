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

/* From how many on it is worth a hint. */
#define LEAST_CALLS 1000u
#define LEAST_GROWN 100u
#define LEAST_WASTED (UINT64_C(1) << 20)

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

/* ---- words ---- */

static unsigned percent(uint64_t part, uint64_t whole)
{
	return (unsigned)(100 * (double)part / (double)whole + 0.5);
}

static bool grows(const uint64_t *n)
{
	return n[GROWN] >= LEAST_GROWN && n[GROWN] >= n[CALLS] / 2;
}

static void tell_lives(const uint64_t *n, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX];
	bool temporary = n[TEMPORARY] >= n[CALLS] / 2, brief = n[BRIEF] >= n[CALLS] / 2;
	if (n[CALLS] < LEAST_CALLS || (!temporary && !brief) || grows(n))
		return;
	buf_printf(out, " %u%% of %s allocations were freed ",
		   percent(n[temporary ? TEMPORARY : BRIEF], n[CALLS]),
		   summary_count(count, n[CALLS]));
	buf_puts(out, temporary ? "before anything else was allocated: the memory could be on the "
				  "stack, or be kept for the next time."
				: "within 10 µs: keep the memory for the next time, or take it "
				  "from a pool.");
}

static void tell_sizes(const uint64_t *n, struct buf *out)
{
	char count[SUMMARY_COUNT_MAX];
	if (grows(n))
		buf_printf(out,
			   " realloc had to grow the memory %s times: reserve what is needed at "
			   "once, or double the size each time.",
			   summary_count(count, n[GROWN]));
	if (n[WASTED] >= LEAST_WASTED && n[WASTED] >= n[BYTES] / 3 && n[BYTES])
		buf_printf(out,
			   " The allocator gave %u%% more than was asked for: the blocks are "
			   "small, so put several into one.",
			   percent(n[WASTED], n[BYTES]));
}

static char *tell(const uint64_t *n)
{
	struct buf out = {0};
	tell_lives(n, &out);
	tell_sizes(n, &out);
	if (n[FREED] >= LEAST_CALLS && n[ELSEWHERE] >= n[FREED] / 2)
		buf_printf(&out,
			   " %u%% of what was freed was freed by another thread, which is slow in "
			   "most allocators: give it back to the thread that allocates.",
			   percent(n[ELSEWHERE], n[FREED]));
	char *text = out.size ? strdup(buf_text(&out) + 1) : NULL;
	buf_free(&out);
	return text;
}

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
