/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ClickHouse's format RowBinary: numbers as they lie in memory (little-endian),
 * texts and lists after their length (LEB128). No byte of a text means anything,
 * so any name survives. What a server sends is foreign: every length is checked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct profile;

void rowbinary_put(struct buf *out, uint64_t number, unsigned int bytes);
void rowbinary_put_length(struct buf *out, uint64_t length);
void rowbinary_put_text(struct buf *out, const char *text);

struct rowbinary {
	const unsigned char *at, *end;
	bool damaged; /* it ended early, or a length is too great; all that follows is 0 and "" */
};

struct rowbinary rowbinary_read(const struct buf *from);
/* Is there another row? */
bool rowbinary_more(const struct rowbinary *rows);
uint64_t rowbinary_get(struct rowbinary *rows, unsigned int bytes);
/* The length of a list of things that take at least so many bytes each. */
uint64_t rowbinary_length(struct rowbinary *rows, size_t each);
/* A text that lives as long as `strings`; it ends at a 0, where there is one, and what is long is cut. */
#define ROWBINARY_TEXT_MAX 8192
const char *rowbinary_text(struct rowbinary *rows, struct profile *strings);
