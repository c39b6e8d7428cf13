/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A folder of scratch files for a test, removed when the test ends, and programs
 * compiled in it. CC names the compiler (default: cc).
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit.h"

static char scratch_dir[PATH_MAX];

/* Formats into memory that lives as long as the test. */
static inline const char *scratch_format(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static inline const char *scratch_format(const char *format, ...)
{
	static char *kept[64];
	static unsigned int next;
	char **slot = &kept[next++ % 64];
	va_list args;
	free(*slot);
	va_start(args, format);
	assert_true(vasprintf(slot, format, args) >= 0);
	va_end(args);
	return *slot;
}

static inline void scratch_remove(void)
{
	if (system(scratch_format("rm -rf '%s'", scratch_dir)) != 0)
		fprintf(stderr, "cannot remove %s\n", scratch_dir);
}

/* The path of a scratch file; valid for a while. */
static inline const char *scratch(const char *name)
{
	const char *base = getenv("TMPDIR");
	if (!scratch_dir[0]) {
		snprintf(scratch_dir, sizeof scratch_dir, "%s/culprit-test-XXXXXX",
			 base ? base : "/tmp");
		assert_non_null(mkdtemp(scratch_dir));
		atexit(scratch_remove);
	}
	return scratch_format("%s/%s", scratch_dir, name);
}

static inline void scratch_write(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(scratch(name), "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

/* The whole of a scratch file, malloc'ed. */
static inline uint8_t *scratch_read(const char *name, size_t *size)
{
	FILE *file = fopen(scratch(name), "r");
	uint8_t *bytes;
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	assert_int_equal(fread(bytes, 1, *size, file), *size);
	fclose(file);
	return bytes;
}

/* Runs a command in the scratch folder; returns whether it succeeded. */
static inline bool scratch_run(const char *command)
{
	scratch("");
	return system(scratch_format("cd '%s' && { %s; } >/dev/null 2>&1", scratch_dir, command)) ==
	       0;
}

/* Compiles `text` to the scratch file `output`; returns whether that worked. */
static inline bool scratch_try_compile(const char *output, const char *text, const char *flags)
{
	const char *cc = getenv("CC");
	scratch_write(scratch_format("%s.c", output), text, strlen(text));
	return scratch_run(
		scratch_format("%s -o %s %s.c %s", cc ? cc : "cc", output, output, flags));
}

static inline void scratch_compile(const char *output, const char *text, const char *flags)
{
	if (!scratch_try_compile(output, text, flags))
		fail_msg("cannot compile %s with %s", output, flags);
}
