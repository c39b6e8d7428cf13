/* SPDX-License-Identifier: Apache-2.0 */
#include "step/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "image/image.h"
#include "image/symbols.h"
#include "isa/insn.h"
#include "isa/text.h"

/* Symbols of the images that were asked for. */
struct report_names {
	const struct image *image;
	struct symbols *symbols;
	struct report_names *next;
};

static const struct symbols *symbols_of(struct report *r, struct image *image)
{
	struct report_names *n;
	for (n = r->names; n; n = n->next)
		if (n->image == image)
			return n->symbols;
	n = calloc(1, sizeof *n);
	if (!n)
		return NULL;
	n->image = image;
	n->next = r->names;
	r->names = n;
	err_free(symbols_read(image, NULL, &n->symbols));
	return n->symbols;
}

static bool is_same(const struct miss *a, const struct miss *b)
{
	return a->at == b->at && a->forgiven == b->forgiven && a->reason == b->reason &&
	       a->end == b->end && !memcmp(&a->recipe, &b->recipe, sizeof a->recipe);
}

static void put_text(const struct isa *isa, const uint8_t *code, size_t size, struct miss_group *g)
{
	struct text *text;
	struct insn insn;
	struct err *e = text_open(isa, &text);
	if (!e) {
		isa->decode(code, size, g->address, &insn);
		snprintf(g->text, sizeof g->text, "%s", text_insn(text, code, size, &insn, NULL));
		text_close(text);
	}
	err_free(e);
}

static void name_group(struct report *r, const struct isa *isa, const struct space *space,
		       struct miss_group *g)
{
	const struct space_module *m = space_find(space, g->first.at);
	const struct symbols *symbols;
	const struct symbol *symbol;
	const uint8_t *code;
	size_t size;
	if (!m || !m->image)
		return;
	g->module = strdup(m->path);
	g->address = g->first.at - m->bias;
	symbols = symbols_of(r, m->image);
	symbol = symbols ? symbols_find(symbols, g->address) : NULL;
	if (symbol) {
		g->function = strdup(symbol->name);
		g->offset = g->address - symbol->address;
	}
	code = image_bytes_at(m->image, g->address, &size);
	if (code && g->first.frame == 0)
		put_text(isa, code, size, g);
}

void report_add(struct report *r, const struct isa *isa, const struct space *space,
		const struct miss *miss)
{
	for (size_t i = 0; i < r->group_count; i++) {
		if (is_same(&r->groups[i].first, miss)) {
			r->groups[i].count++;
			return;
		}
	}
	struct miss_group *more = reallocarray(r->groups, r->group_count + 1, sizeof *more);
	if (!more)
		return;
	r->groups = more;
	struct miss_group *g = &more[r->group_count++];
	*g = (struct miss_group){.first = *miss, .count = 1};
	name_group(r, isa, space, g);
}

static const char *file_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path ? path : "?";
}

static const char *reason_name(const struct miss *m)
{
	static const char *const names[] = {"partial",   "other caller", "other SP",
					    "too short", "too long",     "returned elsewhere"};
	return m->reason == MISS_PARTIAL ? walk_end_name(m->end) : names[m->reason];
}

static void where_text(char *out, size_t size, const char *name, unsigned where, int32_t offset)
{
	static const char *const bases[] = {"same", "cfa", "fp",   "sp",   "r",
					    "lost", "via", "base", "*base"};
	const char *base = where <= RECIPE_VIA_BASE ? bases[where] : "?";
	if (where == RECIPE_SAME || where == RECIPE_LOST)
		snprintf(out, size, "%s %s", name, base);
	else if (where == RECIPE_IN_REG)
		snprintf(out, size, "%s r%d", name, offset);
	else
		snprintf(out, size, "%s [%s%+d]", name, base, offset);
}

/* "r31+32, ra [cfa-8], fp same (code)" */
static void recipe_text(const struct recipe *r, char *out, size_t size)
{
	static const char *const kinds[] = {"none",   "",        "*",       "root",
					    "signal", "complex", "special "};
	static const char *const sources[] = {"nothing", "cfi", "code", "shape"};
	char cfa[48] = "", ra[32], fp[32];
	if (r->cfa == RECIPE_REG)
		snprintf(cfa, sizeof cfa, "r%d%+d", r->cfa_reg, r->cfa_offset);
	else if (r->cfa == RECIPE_SPECIAL)
		snprintf(cfa, sizeof cfa, "%#x r%d%+d%+d", (unsigned)r->cfa_vg, r->cfa_reg,
			 r->cfa_offset, r->cfa_add);
	else if (r->cfa == RECIPE_DEREF)
		snprintf(cfa, sizeof cfa, "(r%d%+d)%+d", r->cfa_reg, r->cfa_offset, r->cfa_add);
	where_text(ra, sizeof ra, "ra", r->ra, r->ra_offset);
	where_text(fp, sizeof fp, "fp", r->fp, r->fp_offset);
	if (r->cfa == RECIPE_REG || r->cfa == RECIPE_DEREF || r->cfa == RECIPE_SPECIAL)
		snprintf(out, size, "%s%s, %s, %s (%s)", kinds[r->cfa], cfa, ra, fp,
			 sources[r->source & 3]);
	else
		snprintf(out, size, "%s (%s)", kinds[r->cfa % 7], sources[r->source & 3]);
}

static int by_count(const void *a, const void *b)
{
	const struct miss_group *x = a, *y = b;
	return (y->count > x->count) - (y->count < x->count);
}

void report_text(const struct report *r, size_t shown)
{
	char recipe[128];
	double steps = r->steps ? (double)r->steps : 1;
	qsort(r->groups, r->group_count, sizeof *r->groups, by_count);
	printf("steps %" PRIu64 "  complete %" PRIu64 " (%.4f%%)  consistent %" PRIu64
	       " (%.4f%%)\n",
	       r->steps, r->complete, 100 * (double)r->complete / steps, r->consistent,
	       100 * (double)r->consistent / steps);
	printf("windows %" PRIu64 "  signals %" PRIu64 "  unwound %" PRIu64 "  within such %" PRIu64
	       "  other stack %" PRIu64 "  declared roots %" PRIu64
	       "  frames/walk %.1f  deepest %" PRIu64 "  %.0f steps/s\n",
	       r->windows, r->signals, r->unwound, r->transitions, r->lost, r->declared,
	       (double)r->frames / steps, r->deepest, steps / (r->seconds > 0 ? r->seconds : 1));
	for (size_t i = 0; i < r->group_count && i < shown; i++) {
		const struct miss_group *g = &r->groups[i];
		const struct miss *m = &g->first;
		recipe_text(&m->recipe, recipe, sizeof recipe);
		printf("%8" PRIu64 "  %s: %s+0x%" PRIx64 " %s+0x%" PRIx64 " frame %zu: %s\n",
		       g->count, reason_name(m), file_of(g->module), g->address,
		       g->function ? g->function : "?", g->offset, m->frame, g->text);
		printf("          recipe %s; step %" PRIu64 " at 0x%" PRIx64 ", got 0x%" PRIx64
		       ", wanted 0x%" PRIx64 "\n",
		       recipe, m->step, m->pc, m->got, m->wanted);
		if (m->forgiven)
			printf("          not counted: longjmp or the unwinder was at work\n");
	}
	if (r->group_count > shown)
		printf("          … and %zu other places\n", r->group_count - shown);
}

static void json_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void json_group(struct json *j, const struct miss_group *g)
{
	char recipe[128];
	recipe_text(&g->first.recipe, recipe, sizeof recipe);
	json_begin_object(j);
	json_number(j, "count", g->count);
	json_key(j, "forgiven");
	json_bool(j, g->first.forgiven);
	json_key(j, "reason");
	json_string(j, reason_name(&g->first));
	json_key(j, "module");
	json_string(j, g->module);
	json_key(j, "address");
	json_address(j, g->address);
	json_key(j, "function");
	json_string(j, g->function);
	json_number(j, "offset", g->offset);
	json_number(j, "frame", g->first.frame);
	json_key(j, "instruction");
	json_string(j, g->text);
	json_key(j, "recipe");
	json_string(j, recipe);
	json_end_object(j);
}

void report_json(const struct report *r, struct json *j)
{
	json_begin_object(j);
	json_number(j, "steps", r->steps);
	json_number(j, "complete", r->complete);
	json_number(j, "consistent", r->consistent);
	json_number(j, "windows", r->windows);
	json_number(j, "signals", r->signals);
	json_number(j, "unwound", r->unwound);
	json_number(j, "transitions", r->transitions);
	json_number(j, "other_stack", r->lost);
	json_number(j, "declared_roots", r->declared);
	json_number(j, "deepest", r->deepest);
	json_number(j, "frames", r->frames);
	json_key(j, "seconds");
	json_double(j, r->seconds);
	json_key(j, "differences");
	json_begin_array(j);
	for (size_t i = 0; i < r->group_count; i++)
		json_group(j, &r->groups[i]);
	json_end_array(j);
	json_end_object(j);
	json_newline(j);
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->group_count; i++) {
		free(r->groups[i].module);
		free(r->groups[i].function);
	}
	free(r->groups);
	while (r->names) {
		struct report_names *next = r->names->next;
		symbols_free(r->names->symbols);
		free(r->names);
		r->names = next;
	}
}
