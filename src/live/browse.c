/* SPDX-License-Identifier: Apache-2.0 */
#include "live/browse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/screen.h"

#define SHORTEST 0.1
#define LONGEST 60.0

void browse_free(struct browse *b)
{
	if (b->has_regex)
		regfree(&b->regex);
	b->has_regex = false;
	free(b->rows);
	board_free(b->board);
	b->rows = NULL;
	b->board = NULL;
}

static uint64_t selected_id(const struct browse *b)
{
	return b->selected < b->row_count ? b->rows[b->selected]->id : 0;
}

/* Rows in order, the selected one found again. Who has not chosen one stays at the top. */
static void arrange(struct browse *b, uint64_t id)
{
	free(b->rows);
	b->rows = NULL;
	b->row_count = 0;
	if (b->board)
		b->rows = order_rows(b->board, &b->order, &b->row_count);
	if (!b->rows)
		b->row_count = 0;
	bool found = false;
	for (size_t i = 0; i < b->row_count && b->moved && !found; i++) {
		found = b->rows[i]->id == id;
		b->selected = found ? i : b->selected;
	}
	if (!b->moved)
		b->selected = 0;
	if (b->selected >= b->row_count)
		b->selected = b->row_count ? b->row_count - 1 : 0;
}

/* The path is asked for again where another row is selected. */
static void ask_path(struct browse *b)
{
	uint64_t id = selected_id(b);
	if (b->wish.path != b->path || (b->path && b->wish.selected != id)) {
		b->wish.path = b->path;
		b->wish.selected = id;
		b->rewished = true;
	}
}

void browse_take(struct browse *b, struct board *board)
{
	uint64_t id = selected_id(b);
	bool other = b->board && b->board->wish.by != board->wish.by;
	struct board *before = b->board;
	b->board = board;
	if (other) {
		b->moved = false;
		b->first = 0;
	}
	arrange(b, id);
	board_free(before);
	ask_path(b);
}

struct err *browse_filter(struct browse *b, const char *text)
{
	regex_t regex;
	char why[128];
	int failed = *text ? regcomp(&regex, text, REG_EXTENDED | REG_NOSUB) : 0;
	if (failed) {
		regerror(failed, &regex, why, sizeof why);
		return err_new("'%s' is no regular expression: %s", text, why);
	}
	if (b->has_regex)
		regfree(&b->regex);
	b->has_regex = *text != 0;
	if (b->has_regex)
		b->regex = regex;
	b->order.filter = b->has_regex ? &b->regex : NULL;
	snprintf(b->filter, sizeof b->filter, "%s", text);
	uint64_t id = selected_id(b);
	b->first = 0;
	arrange(b, id);
	ask_path(b);
	return NULL;
}

/* ---- keys ---- */

static void type(struct browse *b, int key)
{
	size_t length = strlen(b->typed);
	if (key == KEY_ENTER) {
		struct err *e = browse_filter(b, b->typed);
		snprintf(b->message, sizeof b->message, "%s", e ? err_text(e) : "");
		b->typing = e != NULL;
		err_free(e);
		return;
	}
	b->message[0] = 0;
	if (key == KEY_ESCAPE) {
		b->typing = false;
	} else if (key == KEY_BACKSPACE) {
		while (length && ((unsigned char)b->typed[--length] & 0xc0) == 0x80)
			;
		b->typed[length] = 0;
	} else if (key >= ' ' && key < KEY_UP && length + 1 < sizeof b->typed) {
		b->typed[length] = (char)key;
		b->typed[length + 1] = 0;
	}
}

static void move(struct browse *b, long by)
{
	long to = (long)b->selected + by, last = b->row_count ? (long)b->row_count - 1 : 0;
	b->selected = (size_t)(to < 0 ? 0 : to > last ? last : to);
	b->moved = true;
	ask_path(b);
}

static void set_by(struct browse *b, enum board_by by)
{
	b->rewished |= b->wish.by != by;
	b->wish.by = by;
}

static void set_interval(struct browse *b, double factor)
{
	double interval = b->interval * factor;
	b->interval = interval < SHORTEST ? SHORTEST : interval > LONGEST ? LONGEST : interval;
	snprintf(b->message, sizeof b->message, "every %.3g s", b->interval);
}

static void set_order(struct browse *b, bool *which)
{
	uint64_t id = selected_id(b);
	*which = !*which;
	arrange(b, id);
	ask_path(b);
}

static bool press_move(struct browse *b, int key, size_t room)
{
	long page = room > 1 ? (long)room - 1 : 1, all = (long)b->row_count + 1;
	const struct {
		int key;
		long by;
	} moves[] = {{KEY_UP, -1},         {'k', -1},
		     {KEY_DOWN, 1},        {'j', 1},
		     {KEY_PAGE_UP, -page}, {KEY_PAGE_DOWN, page},
		     {KEY_HOME, -all},     {KEY_END, all}};
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
		if (moves[i].key == key) {
			move(b, moves[i].by);
			return true;
		}
	return false;
}

static bool press_by(struct browse *b, int key)
{
	static const char keys[] = "flnmt";
	const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;
	if (at)
		set_by(b, (enum board_by)(at - keys));
	return at != NULL;
}

static void press(struct browse *b, int key)
{
	switch (key) {
	case 'q':
		b->quit = true;
		break;
	case '?':
		b->help = !b->help;
		break;
	case ' ':
	case 'p':
		b->paused = !b->paused;
		break;
	case 's':
		set_order(b, &b->order.by_total);
		break;
	case 'a':
		set_order(b, &b->order.by_all);
		break;
	case 'e':
		if (b->board && b->board->metric_count > 1) {
			b->wish.metric = (b->board->wish.metric + 1) %
					 (uint32_t)b->board->metric_count;
			b->rewished = true;
		} else {
			snprintf(b->message, sizeof b->message, "there is one event only");
		}
		break;
	case KEY_ENTER:
	case 'h':
		b->path = !b->path;
		ask_path(b);
		break;
	case '/':
		b->typing = true;
		snprintf(b->typed, sizeof b->typed, "%s", b->filter);
		break;
	case '+':
		set_interval(b, 2);
		break;
	case '-':
		set_interval(b, 0.5);
		break;
	default:
		break;
	}
}

/* Escape takes back one thing after the other. */
static void escape(struct browse *b)
{
	if (b->help)
		b->help = false;
	else if (b->path)
		b->path = false;
	else if (b->has_regex)
		err_free(browse_filter(b, ""));
	ask_path(b);
}

void browse_key(struct browse *b, int key, size_t room)
{
	if (b->typing) {
		type(b, key);
		return;
	}
	b->message[0] = 0;
	if (b->help && key != '?' && key != 'q') {
		b->help = false;
		return;
	}
	if (key == KEY_ESCAPE)
		escape(b);
	else if (!press_move(b, key, room) && !press_by(b, key))
		press(b, key);
}

/* ---- the picture ---- */

static void say(struct browse *b, struct picture *p)
{
	char *text = b->last;
	size_t size = sizeof b->last;
	if (b->typing && !b->message[0])
		snprintf(text, size, "filter: %s_   (enter: apply, escape: leave)", b->typed);
	else if (b->message[0])
		snprintf(text, size, "%s", b->message);
	else if (b->paused && b->has_regex)
		snprintf(text, size, "paused: space goes on   filter: %s", b->filter);
	else if (b->paused)
		snprintf(text, size, "paused: space goes on");
	else if (b->has_regex)
		snprintf(text, size, "filter: %s   (escape takes it away)", b->filter);
	else if (b->board && b->board->rough)
		snprintf(text, size, "loops, lines and inlined functions are being looked up");
	else
		return;
	p->message = text;
}

void browse_picture(struct browse *b, struct picture *p)
{
	p->board = b->board;
	p->rows = b->rows;
	p->row_count = b->row_count;
	p->order = &b->order;
	p->help = b->help;
	p->path = b->path;
	p->message = NULL;
	say(b, p);
	size_t room = draw_room(p);
	if (b->selected < b->first)
		b->first = b->selected;
	if (room && b->selected >= b->first + room)
		b->first = b->selected - room + 1;
	if (b->first + room > b->row_count)
		b->first = b->row_count > room ? b->row_count - room : 0;
	p->selected = b->selected;
	p->first = b->first;
}
