/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/links.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/lookup.h"
#include "analyze/modules.h"
#include "analyze/summary.h"
#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/path.h"
#include "image/image.h"
#include "isa/insn.h"
#include "profile/profile.h"

struct count {
	struct link_totals *totals;
	struct evidence *evidence;
	uint64_t *through; /* samples in each node and below it */
	struct lookup known;
	size_t room;
};

static struct image *image_of(void *context, size_t module)
{
	return modules_image(context, (uint32_t)module);
}

static const struct symbols *symbols_of(void *context, size_t module)
{
	return modules_symbols(context, (uint32_t)module);
}

/* That of the first module which can be read. */
static const struct isa *find_isa(const struct profile *p, struct modules *modules)
{
	for (size_t i = 0; i < p->module_count; i++) {
		struct image *image = modules_image(modules, (uint32_t)i);
		if (image)
			return isa_for_machine(image_machine(image));
	}
	return NULL;
}

static uint64_t *samples_through(const struct profile *p, uint32_t metric)
{
	uint64_t *through = calloc(p->node_count + 1, sizeof *through);
	if (!through)
		return NULL;
	for (size_t i = 0; i < p->value_count; i++)
		if (p->values[i].metric == metric)
			through[p->values[i].node] += p->values[i].count;
	for (size_t i = p->node_count; i-- > 1;)
		through[p->nodes[i].parent] += through[i];
	return through;
}

/* ---- of one link ---- */

static bool is_frame(const struct profile_node *n)
{
	return n->kind == PROFILE_CALL || n->kind == PROFILE_EXACT;
}

/* Into a signal handler leads the kernel, and out of it the trampoline, which is what has an
   interrupted frame as its caller. */
static bool is_signal(const struct profile *p, const struct profile_node *caller)
{
	return caller->kind == PROFILE_EXACT || p->nodes[caller->parent].kind == PROFILE_EXACT;
}

static struct evidence_address place(const struct profile *p, const struct profile_node *n,
				     uint64_t address)
{
	uint8_t kind = p->modules[n->module].kind;
	bool is_file = kind == PROFILE_FILE || kind == PROFILE_VDSO;
	return (struct evidence_address){is_file ? n->module : EVIDENCE_NOWHERE, address};
}

static enum link classify(struct count *c, const struct profile_node *caller,
			  const struct profile_node *callee)
{
	const struct profile *p = c->totals->profile;
	if (is_signal(p, caller))
		return LINK_VALID;
	struct evidence_address from = place(p, caller, caller->address),
				to = place(p, callee,
					   callee->address - (callee->kind == PROFILE_CALL));
	/* Code that was there and cannot be read now says nothing. */
	if (to.module != EVIDENCE_NOWHERE && !modules_image(c->totals->modules, callee->module))
		return LINK_UNKNOWN;
	return evidence_classify(c->evidence, &from, &to);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint64_t key_of(const struct profile *p, const struct profile_node *caller,
		       const struct profile_node *callee)
{
	uint64_t key = mix(caller->module, caller->address);
	key = mix(mix(key, callee->module), callee->address);
	return mix(key, callee->kind * 2u + is_signal(p, caller));
}

static struct link_pair *add_pair(struct count *c, const struct link_pair *pair)
{
	struct link_totals *t = c->totals;
	if (!ARRAY_ROOM(t->pairs, t->pair_count, c->room))
		return NULL;
	t->pairs[t->pair_count] = *pair;
	return &t->pairs[t->pair_count++];
}

/* The link from a node to its parent. */
static bool count_link(struct count *c, uint32_t node)
{
	struct link_totals *t = c->totals;
	const struct profile *p = t->profile;
	const struct profile_node *callee = &p->nodes[node], *caller = &p->nodes[callee->parent];
	if (!c->through[node] || !is_frame(callee) || !is_frame(caller))
		return true;
	uint64_t key = key_of(p, caller, callee);
	uint32_t index = lookup_find(&c->known, key);
	if (index == LOOKUP_NONE) {
		struct link_pair pair = {callee->parent, node, classify(c, caller, callee), 0};
		index = (uint32_t)t->pair_count;
		if (!add_pair(c, &pair) || !lookup_put(&c->known, key, index))
			return false;
	}
	t->pairs[index].samples += c->through[node];
	t->samples[t->pairs[index].link] += c->through[node];
	return true;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct link_pair *x = a, *y = b;
	if ((x->link == LINK_INVALID) != (y->link == LINK_INVALID))
		return x->link == LINK_INVALID ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return (x->callee > y->callee) - (x->callee < y->callee);
}

struct err *link_totals_make(const struct profile *profile, struct modules *modules,
			     uint32_t metric, struct link_totals *out)
{
	struct count c = {.totals = out, .through = samples_through(profile, metric)};
	struct evidence_source source = {modules, profile->module_count, image_of, symbols_of};
	*out = (struct link_totals){.profile = profile, .modules = modules};
	struct err *e = c.through ? evidence_open(&source, find_isa(profile, modules), &c.evidence)
				  : err_new("out of memory");
	for (uint32_t i = 1; !e && i < profile->node_count; i++)
		if (!count_link(&c, i))
			e = err_new("out of memory");
	if (out->pair_count)
		qsort(out->pairs, out->pair_count, sizeof *out->pairs, compare_pairs);
	evidence_close(c.evidence);
	lookup_free(&c.known);
	free(c.through);
	if (e)
		link_totals_free(out);
	return e;
}

void link_totals_free(struct link_totals *t)
{
	free(t->pairs);
	*t = (struct link_totals){0};
}

/* ---- output ---- */

/* "name+0x1c (libx.so)"; the place of a caller is that of its call. */
static void put_place(const struct link_totals *t, uint32_t node, struct buf *out)
{
	const struct profile_node *n = &t->profile->nodes[node];
	bool exact = n->kind == PROFILE_EXACT;
	uint64_t at = n->address - !exact;
	struct modules_function f;
	modules_function(t->modules, n->module, n->address, exact, &f);
	if (f.name)
		buf_printf(out, "%s+0x%" PRIx64, f.name, at > f.start ? at - f.start : 0);
	else
		buf_printf(out, "0x%" PRIx64, at);
	if (n->module)
		buf_printf(out, " (%s)", path_file(t->profile->modules[n->module].path));
}

static bool is_shown(const struct link_totals *t, size_t index, uint64_t limit)
{
	return index < t->pair_count && t->pairs[index].link == LINK_INVALID &&
	       (!limit || index < limit);
}

void link_totals_print(const struct link_totals *t, uint64_t limit, struct buf *out)
{
	char n[SUMMARY_COUNT_MAX];
	buf_puts(out, "links:");
	for (enum link link = LINK_VALID; link < LINK_COUNT; link++)
		buf_printf(out, "%s %s %s", link == LINK_VALID ? "" : ",",
			   summary_count(n, t->samples[link]), link_name(link));
	buf_puts(out, "\n");
	for (size_t i = 0; is_shown(t, i, limit); i++) {
		buf_printf(out, "%12s  ", summary_count(n, t->pairs[i].samples));
		put_place(t, t->pairs[i].caller, out);
		buf_puts(out, " does not call ");
		put_place(t, t->pairs[i].callee, out);
		buf_puts(out, "\n");
	}
}

static void json_place(const struct link_totals *t, const char *key, uint32_t node, struct json *j)
{
	struct buf text = {0};
	put_place(t, node, &text);
	json_key(j, key);
	json_string(j, buf_text(&text));
	buf_free(&text);
}

static void json_pair(const struct link_totals *t, const struct link_pair *pair, struct json *j)
{
	json_begin_object(j);
	json_key(j, "samples");
	json_u64(j, pair->samples);
	json_place(t, "caller", pair->caller, j);
	json_place(t, "callee", pair->callee, j);
	json_end_object(j);
}

void link_totals_json(const struct link_totals *t, uint64_t limit, struct json *j)
{
	json_key(j, "links");
	json_begin_object(j);
	for (enum link link = LINK_VALID; link < LINK_COUNT; link++) {
		json_key(j, link_name(link));
		json_u64(j, t->samples[link]);
	}
	json_key(j, "worst");
	json_begin_array(j);
	for (size_t i = 0; is_shown(t, i, limit); i++)
		json_pair(t, &t->pairs[i], j);
	json_end_array(j);
	json_end_object(j);
}
