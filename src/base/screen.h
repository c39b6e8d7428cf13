/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The whole terminal, for a program that shows something there until it is
 * told to stop. What was on it comes back at the end.
 *
 *     screen_open(&s);
 *     screen_enter(&s);
 *     screen_show(&s, text) …
 *     screen_leave(&s);
 *
 * Ctrl-C and Ctrl-Z stay signals; whoever uses a screen takes care that they (and
 * SIGTERM, SIGHUP) lead to screen_leave, and calls screen_enter after SIGCONT.
 */
#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct buf;

struct screen {
	int in, out; /* in: -1 where there is no keyboard */
	bool own_in; /* was opened here */
	bool on;
	bool utf8;
	struct termios before; /* of the keyboard */
	char typed[64];        /* not yet decoded */
	size_t typed_size;
};

/* Whether standard output is a terminal that can be used this way. */
bool screen_possible(void);
void screen_open(struct screen *screen);
void screen_close(struct screen *screen);

void screen_enter(struct screen *screen);
void screen_leave(struct screen *screen);
void screen_size(const struct screen *screen, unsigned *columns, unsigned *rows);
/* Shows lines, each ended by a line end, from the top; the rest of the screen becomes empty. False
   where nobody sees it any more. */
bool screen_show(struct screen *screen, const struct buf *lines);

/* Keys are characters (bytes of UTF-8 one by one) or these. */
enum {
	KEY_NONE = -1, /* no whole key was typed */
	KEY_ESCAPE = 27,
	KEY_ENTER = 13,
	KEY_BACKSPACE = 127,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_LEFT,
	KEY_RIGHT,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_OTHER, /* a sequence that means nothing here */
};

/* Takes in what was typed; returns at once. */
void screen_read(struct screen *screen);
/* The next key. `waited`: nothing followed for a while, so that the key Escape is what it seems. */
int screen_key(struct screen *screen, bool waited);
/* The key that `bytes` begin with, and how many of them it takes (0 with KEY_NONE). */
int key_decode(const char *bytes, size_t size, bool waited, size_t *used);
