/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file that an export goes to: written beside its place and then put there,
 * so that whoever looks sees the old one or the whole new one. What is no ordinary file (a pipe,
 * /dev/null) is written to as it is; without a path it is stdout.
 */
#include <stdio.h>

struct err;

struct outfile {
	FILE *file;
	char *path, *temporary; /* NULL: written as it is */
};

/* `path` NULL: stdout. */
struct err *outfile_open(struct outfile *out, const char *path);
/* Ends it: with an error of the caller's (which is returned), or where it could not all be written,
   nothing stays. */
struct err *outfile_close(struct outfile *out, struct err *e);
