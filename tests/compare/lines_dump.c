/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What image/lines.h and image/inlines.h say of a file, as text for the script
 * `lines` beside this:
 *
 *     lines_dump rows FILE [DEBUG]       L start end path:line:column statement discriminator
 *     lines_dump scopes FILE [DEBUG]     S depth parent name line path:line:column start-end...
 *     lines_dump places FILE [DEBUG]     A address name path:line name path:line..., for each
 *                                        address on stdin, innermost first
 *     lines_dump time FILE [DEBUG]       the CPU time that it takes to read all
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "image/debug.h"
#include "image/image.h"
#include "image/inlines.h"
#include "image/lines.h"

static struct lines *lines;
static struct inlines *inlines;
static size_t procedures, scopes;

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "lines_dump: %s\n", err_text(e));
	exit(1);
}

static const char *path(uint32_t file)
{
	const char *text = lines_file(lines, file);
	return text ? text : "?";
}

static void show_rows(void)
{
	struct line_row *rows;
	size_t count;
	check(lines_range(lines, 0, UINT64_MAX, &rows, &count));
	for (size_t i = 0; i < count; i++)
		printf("L\t%" PRIx64 "\t%" PRIx64 "\t%s\t%u\t%u\t%d\t%u\n", rows[i].address,
		       rows[i].end, path(rows[i].file), rows[i].line, rows[i].column,
		       rows[i].statement, rows[i].discriminator);
	free(rows);
}

static struct err *show_procedure(void *context, const struct inline_procedure *p)
{
	(void)context;
	for (size_t i = 0; i < p->scope_count; i++) {
		const struct inline_scope *s = &p->scopes[i];
		printf("S\t%u\t%u\t%s\t%s\t%s\t%u\t%s\t%u\t%u\t%d\t", s->depth, s->parent,
		       s->name ? s->name : "?", s->plain ? s->plain : "?", path(s->file), s->line,
		       path(s->call_file), s->call_line, s->call_column, p->records_inlining);
		for (uint32_t k = 0; k < s->count; k++)
			printf("%s%" PRIx64 "-%" PRIx64, k ? " " : "",
			       p->ranges[s->first + k].start, p->ranges[s->first + k].end);
		printf("\n");
	}
	return NULL;
}

static struct err *count_procedure(void *context, const struct inline_procedure *p)
{
	(void)context;
	procedures++;
	scopes += p->scope_count;
	return NULL;
}

/* The innermost scope with the address: of those equally deep the one that comes last. */
static size_t innermost(const struct inline_procedure *p, uint64_t address)
{
	size_t best = 0;
	for (size_t i = 1; i < p->scope_count; i++) {
		const struct inline_scope *s = &p->scopes[i];
		for (uint32_t k = 0; k < s->count; k++)
			if (address >= p->ranges[s->first + k].start &&
			    address < p->ranges[s->first + k].end &&
			    s->depth >= p->scopes[best].depth)
				best = i;
	}
	return best;
}

static void show_place(uint64_t address)
{
	struct inline_procedure p;
	struct line_row *rows;
	const char *file = "?";
	uint32_t line = 0;
	size_t count, at;
	bool found;
	check(inlines_find(inlines, address, &p, &found));
	check(lines_range(lines, address, address + 1, &rows, &count));
	if (count) {
		file = path(rows[0].file);
		line = rows[0].line;
	}
	printf("A\t%" PRIx64, address);
	if (!found)
		printf("\t?\t%s:%u", file, line);
	for (at = found ? innermost(&p, address) : 0; found; at = p.scopes[at].parent) {
		printf("\t%s\t%s:%u", p.scopes[at].name ? p.scopes[at].name : "?", file, line);
		file = path(p.scopes[at].call_file);
		line = p.scopes[at].call_line;
		if (at == 0)
			break;
	}
	printf("\n");
	free(rows);
	inline_procedure_free(&p);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void show_times(void)
{
	double start = now(), indexed, listed, again;
	struct inline_procedure p;
	struct line_row *rows;
	size_t count;
	bool found;
	check(inlines_find(inlines, 0, &p, &found));
	indexed = now();
	check(inlines_each(inlines, count_procedure, NULL));
	listed = now();
	check(lines_range(lines, 0, UINT64_MAX, &rows, &count));
	again = now();
	printf("index of units %.3f s; %zu procedures with %zu scopes %.3f s; %zu rows %.3f s\n",
	       indexed - start, procedures, scopes, listed - indexed, count, again - listed);
	free(rows);
}

int main(int argc, char **argv)
{
	struct image *image, *debug = NULL;
	char line[64];
	if (argc < 3) {
		fprintf(stderr, "usage: lines_dump rows|scopes|places|time FILE [DEBUG]\n");
		return 2;
	}
	check(image_open(argv[2], &image));
	check(argc > 3 ? image_open(argv[3], &debug) : debug_find(image, false, &debug));
	check(lines_open(image, debug, &lines));
	check(inlines_open(image, debug, lines, &inlines));
	if (strcmp(argv[1], "rows") == 0)
		show_rows();
	else if (strcmp(argv[1], "scopes") == 0)
		check(inlines_each(inlines, show_procedure, NULL));
	else if (strcmp(argv[1], "time") == 0)
		show_times();
	else
		while (fgets(line, sizeof line, stdin))
			show_place(strtoull(line, NULL, 16));
	if (inlines_damage(inlines))
		fprintf(stderr, "lines_dump: %s: %s\n", argv[2], inlines_damage(inlines));
	inlines_close(inlines);
	lines_close(lines);
	image_close(debug);
	image_close(image);
	return 0;
}
