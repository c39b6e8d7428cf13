/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that clang -fprofile-sample-use reads (llvm/ProfileData/SampleProf.h), of what export/source_counts.h has:
 *
 *     FUNCTION:TOTAL:CALLS
 *      LINE[.DISCRIMINATOR]: COUNT [CALLED:COUNT ...]
 *      LINE[.DISCRIMINATOR]: INLINED:TOTAL
 *       LINE...
 */
#include <inttypes.h>

#include "base/err.h"
#include "export/executions_of.h"
#include "export/source_counts.h"

static void print_place(FILE *out, struct source_place place, unsigned depth)
{
	fprintf(out, "%*s%" PRIu32, (int)depth, "", place.line);
	if (place.discriminator)
		fprintf(out, ".%" PRIu32, place.discriminator);
	fputs(": ", out);
}

static void print_called(const struct source_counts *c, uint32_t site, FILE *out)
{
	for (size_t i = source_counts_called(c, site);
	     i < c->called_count && c->called[i].site == site; i++)
		fprintf(out, " %.*s:%" PRIu64, (int)c->called[i].name_size, c->called[i].name,
			executions_round(c->called[i].count));
}

/* Code is inlined at most as deep as image/inlines.h allows. */
static void print_body(const struct source_counts *c, uint32_t function, unsigned depth, FILE *out)
{
	for (size_t i = source_counts_sites(c, function);
	     i < c->site_count && c->sites[i].function == function; i++) {
		print_place(out, c->sites[i].place, depth);
		fprintf(out, "%" PRIu64, executions_round(c->sites[i].count));
		print_called(c, c->sites[i].number, out);
		fputc('\n', out);
	}
	for (size_t i = source_counts_inlined(c, function);
	     i < c->function_count && c->functions[i].parent == function; i++) {
		const struct source_function *f = &c->functions[i];
		print_place(out, f->place, depth);
		fprintf(out, "%.*s:%" PRIu64 "\n", (int)f->name_size, f->name,
			executions_round(f->total));
		print_body(c, f->number, depth + 1, out);
	}
}

struct err *llvm_sample_write(struct executions *x)
{
	struct source_counts c;
	struct err *e = source_counts_make(x, &c);
	if (e)
		return e;
	for (size_t i = source_counts_inlined(&c, SOURCE_NONE); i < c.function_count; i++) {
		const struct source_function *f = &c.functions[i];
		fprintf(x->out, "%.*s:%" PRIu64 ":%" PRIu64 "\n", (int)f->name_size, f->name,
			executions_round(f->total), executions_round(f->calls));
		print_body(&c, f->number, 1, x->out);
	}
	source_counts_free(&c);
	return NULL;
}
