/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file that a recording goes to. It is looked at before the command
 * starts and touched only when there is something to write; then what was
 * there becomes FILE.old. A profile that finds no room there goes to $TMPDIR.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct profile;

struct output {
	char *path, *old; /* what is written, and what an existing one becomes */
	bool written;
};

/* An error where nothing could be written there: a directory, no permission, … */
struct err *output_open(struct output *output, const char *path);
void output_close(struct output *output);

/* Writes the profile; may be called again with a newer one. */
struct err *output_save(struct output *output, const struct profile *profile);

/* The same at the end: where it fails the profile is written elsewhere, and the error says where. */
struct err *output_save_last(struct output *output, const struct profile *profile);

/* Bytes of what was written. */
uint64_t output_size(const struct output *output);
