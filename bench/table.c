/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table build|load auto|analysis|cfi FILE [TIMES]: makes the unwind table of a file, or loads it
 * from the cache, and prints a line per time:
 *
 *     WALL_MS CPU_MS ROWS RULES BYTES FROM_CACHE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/err.h"
#include "image/image.h"
#include "recipes/cache.h"

static double wall(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double cpu(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int mode_of(const char *name)
{
	static const char *const names[] = {"auto", "cfi", "analysis"};
	for (int i = 0; i < 3; i++)
		if (!strcmp(names[i], name))
			return i;
	return RECIPES_AUTO;
}

/* Building counts from opening the file; loading, which is a part of opening a process, without. */
static struct err *once(bool build, const char *path, enum recipes_mode mode)
{
	double w = wall(), c = cpu();
	struct image *image;
	struct module_table t;
	struct err *e = image_open(path, &image);
	if (e)
		return e;
	if (!build)
		w = wall(), c = cpu();
	e = cache_table(image, mode, &t);
	if (!e) {
		printf("%.3f %.3f %u %u %zu %d\n", wall() - w, cpu() - c, t.table.row_count,
		       t.table.rule_count, t.size, t.mapped);
		module_table_free(&t);
	}
	image_close(image);
	return e;
}

int main(int argc, char **argv)
{
	struct err *e = NULL;
	if (argc < 4)
		return 2;
	for (int i = argc > 4 ? atoi(argv[4]) : 1; i > 0 && !e; i--)
		e = once(!strcmp(argv[1], "build"), argv[3], (enum recipes_mode)mode_of(argv[2]));
	if (e)
		fprintf(stderr, "bench_table: %s\n", err_text(e));
	return e ? 1 : 0;
}
