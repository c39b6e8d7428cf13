/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where what can be computed again is kept: $XDG_CACHE_HOME/culprit, else
 * ~/.cache/culprit. A directory that is not the user's own, or that others may
 * write to, is refused: its contents would not be trustworthy. What is checked is
 * what is open, and files are opened in it, so that nobody can put something else
 * into its place meanwhile. No link is followed below $XDG_CACHE_HOME or ~/.cache,
 * which themselves may be one.
 */
#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;

/* Appends the path to `path`, creates nothing. An error where neither variable names a place. */
struct err *cachedir_path(struct buf *path);

/* Opens the directory `name` below it ("tables"; NULL: itself), every missing directory created with mode 0700. The descriptor is the
   caller's; -1 with an error. */
struct err *cachedir_open(const char *name, int *out);

/* Files in it; `directory` is such a descriptor. */

/* Opens one for reading that is regular and ours. -1: there is none. */
int cachedir_read(int directory, const char *name);
/* Creates one under another name, which is put into `temporary`. -1: it cannot be. */
int cachedir_write(int directory, const char *name, struct buf *temporary);
/* Closes it and gives it its name where it is whole: no reader ever sees half a file. Else removes it. */
void cachedir_keep(int directory, const char *name, const struct buf *temporary, int fd,
		   bool whole);

/* The cache's own secret, random bytes that nobody else can read, made when it is first asked for. False: there is none. */
#define CACHEDIR_SECRET 16
bool cachedir_secret(uint8_t out[CACHEDIR_SECRET]);
