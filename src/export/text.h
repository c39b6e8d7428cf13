/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Text that may be anything (names of functions, files, threads) made harmless:
 * valid UTF-8 without control characters, so that it is one line, valid in JSON and protocol
 * buffers, and does nothing to a terminal.
 */
#include <stdint.h>

struct buf;
struct strings;

/* Appends it; bytes that are not UTF-8 become U+FFFD, control characters '?', and characters of
   `avoid` (ASCII) what `instead` is. */
void text_clean(const char *text, const char *avoid, char instead, struct buf *out);
/* The number that it has in `strings` (analyze/strings.h), clean. NULL is "". */
uint32_t text_number(struct strings *strings, const char *text);
