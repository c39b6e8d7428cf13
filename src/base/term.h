/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Output for people: colours, units, progress. What a pipe or file gets is
 * plain unless CLICOLOR_FORCE asks for colour.
 */
#include <stdbool.h>
#include <stdint.h>

enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW, TERM_CYAN };

bool term_is_tty(int fd);

/* Whether to colour: NO_COLOR forbids, CLICOLOR_FORCE demands, else a terminal that is not dumb. */
bool term_colour(int fd);

/* Whether the user's locale is another than UTF-8. If the environment names none, it is not. */
bool term_wants_ascii(void);

/* The escape sequence that starts `style` on fd (TERM_PLAIN ends it); "" where fd has no colour. */
const char *term_style(int fd, enum term_style style);

/* Columns of the terminal; 80 where unknown. */
unsigned term_width(int fd);

/* Text of others for a terminal (base/utf8.h), to be printed at once: it is valid until the eighth call after this one. */
const char *term_text(const char *text);

#define TERM_UNIT_MAX 24
/* "212 kB", "1.4 GB" (powers of 1000) and "41.3 s", "820 us" into out; returns out. */
const char *term_size(char out[TERM_UNIT_MAX], uint64_t bytes);
const char *term_time(char out[TERM_UNIT_MAX], double seconds);

/* A line on stderr that appears after half a second, only on a terminal, and leaves nothing. */
struct term_progress {
	const char *what;
	uint64_t start_ns, shown_ns;
	bool enabled;
};
/* No such lines from here on: the terminal shows something else. */
void term_progress_forbid(void);
void term_progress_start(struct term_progress *p, const char *what);
void term_progress_update(struct term_progress *p, uint64_t done, uint64_t total);
void term_progress_end(struct term_progress *p);
