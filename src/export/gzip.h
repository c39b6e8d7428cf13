/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A stream of bytes, gzipped into a file as they come.
 */
#include <stddef.h>
#include <stdio.h>

struct err;
struct gzip;

struct err *gzip_open(FILE *out, struct gzip **gzip);
void gzip_put(struct gzip *gzip, const void *bytes, size_t size);
/* Ends the stream. That the file could be written is not looked at. NULL is fine. */
struct err *gzip_close(struct gzip *gzip);
