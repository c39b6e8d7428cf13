/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where what can be computed again is kept: $XDG_CACHE_HOME/culprit, else
 * ~/.cache/culprit. A directory that is not the user's own, or that others may
 * write to, is refused: its contents would not be trustworthy.
 */
struct buf;
struct err;

/* Appends the path to `path`, creates nothing. An error where neither variable names a place. */
struct err *cachedir_path(struct buf *path);

/* The same with `name` below it ("tables", or NULL for none), every missing
   directory created with mode 0700. */
struct err *cachedir_create(const char *name, struct buf *path);
