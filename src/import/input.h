/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bytes of a file, a pipe or memory, from the beginning to the end, and for
 * files and memory also from any place. Memory is taken as far as there are bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct input;

/* "-" is standard input. */
struct err *input_open(const char *path, struct input **out);
/* The bytes stay the caller's and must stay. */
struct err *input_open_memory(const void *bytes, size_t size, struct input **out);
void input_close(struct input *input); /* NULL is fine */

bool input_is_seekable(const struct input *input);
uint64_t input_size(const struct input *input); /* UINT64_MAX for a pipe */
uint64_t input_place(const struct input *input);
uint64_t input_modified(const struct input *input); /* seconds since 1970; 0: not known */

/* The next `size` bytes, valid until the next call; NULL where there are fewer. */
const uint8_t *input_next(struct input *input, uint64_t size);
/* Goes over bytes; false where there are fewer. */
bool input_skip(struct input *input, uint64_t size);
/* False where that is behind the end, or it is a pipe. */
bool input_seek(struct input *input, uint64_t place);
