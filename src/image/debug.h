/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finding the separate debug file of an image: by build-id below
 * /usr/lib/debug/.build-id, by .gnu_debuglink (with its checksum) beside the
 * image, in .debug/ and below /usr/lib/debug, or from debuginfod where
 * DEBUGINFOD_URLS is set and `allow_download` says so.
 */
#include <stdbool.h>
struct err;
struct image;

/* *out is the opened debug file, or NULL where none was found. */
struct err *debug_find(struct image *image, bool allow_download, struct image **out);

/* The folder in which debug files are installed: $CULPRIT_DEBUG_ROOT, /usr/lib/debug by default. */
const char *debug_root(void);
