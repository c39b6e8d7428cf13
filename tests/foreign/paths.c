/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the paths of a program that an emulator runs.
 *
 *    paths LIBRARY OUTPUT MODULE EMULATOR [OPTION...] PROGRAM [ARGUMENT...]
 *
 * LIBRARY counts in the program. The paths of MODULE are written to OUTPUT, as JSON. The emulator must not preload the
 * library itself: it is of another CPU, or cannot find the socket's name. The exit status is the program's; 125 if we fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "collect/paths/copier.h"
#include "collect/paths/counting.h"
#include "paths/result.h"
#include "paths/show.h"

#define FAILED 125
/* The emulator keeps a note of each page that its program maps. */
#define ADDRESSES (16ull << 30)

static void check(struct err *e)
{
	if (!e)
		return;
	fprintf(stderr, "paths: %s\n", err_text(e));
	exit(FAILED);
}

static void write_json(const struct counting *c, const struct path_result *result, FILE *file)
{
	const struct path_show show = {.name = "paths: ", .notes = buf_text(&c->notes)};
	struct json j = json_to_file(file);
	json_begin_object(&j);
	check(path_show_json(result, &show, &j));
	json_end_object(&j);
	json_newline(&j);
}

int main(int argc, char **argv)
{
	const struct rlimit limit = {ADDRESSES, ADDRESSES};
	struct path_result result = {0};
	struct copier *copier;
	if (argc < 6 || setrlimit(RLIMIT_AS, &limit) || setenv("CULPRIT_AGENT", argv[1], 1))
		check(err_new(
			"usage: paths LIBRARY OUTPUT MODULE EMULATOR [OPTION...] PROGRAM..."));
	const struct copier_options options = {
		.choice = {.modules = (const char *[]){argv[3]}, .module_count = 1},
		.emulated = true};
	check(copier_open(&options, &copier));
	struct counting counting = {.command = argv + 4,
				    .libdir = "",
				    .make = copier_make,
				    .context = copier,
				    .emulated = true};
	FILE *out = fopen(argv[2], "we");
	if (!out)
		check(err_errno("%s", argv[2]));
	check(counting_run(&counting));
	for (size_t i = 0; i < counting.program_count; i++)
		check(copier_collect(copier, counting.programs[i], &result));
	path_result_join(&result);
	write_json(&counting, &result, out);
	fclose(out);
	fputs(buf_text(&counting.notes), stderr);
	path_result_free(&result);
	counting_free(&counting);
	copier_close(copier);
	return counting_exit(&counting);
}
