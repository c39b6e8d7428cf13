/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Text that may be anything (names of functions, files, threads), on its way to a person. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of the character at `text`, of which there are `size`, and its number; 0 where it is none (RFC 3629). */
size_t utf8_decode(const char *text, size_t size, uint32_t *character);

/* Writes a character, at most 4 bytes. Returns how many there are. What is no character becomes U+FFFD. */
size_t utf8_encode(uint32_t character, char *to);

/* What does something to a terminal or to the text around it: control characters (C0, C1), line ends of other kinds, and those
   that turn the direction. */
bool utf8_is_harmful(uint32_t character);

/* Whether this byte begins a character. */
static inline bool utf8_begins(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

/* How many characters the text has. */
size_t utf8_count(const char *text);

/* The byte at which character number `index` begins; where there are fewer, the end. */
size_t utf8_at(const char *text, size_t index);

/* In place: bytes of what is harmful, or no character, become '?'. */
void utf8_tame(char *text);

/* In place: the lines and marks that we draw with become ASCII, each as wide as before. Names stay as they are. Returns how
   many bytes are left. */
size_t utf8_draw_ascii(char *text, size_t size);
