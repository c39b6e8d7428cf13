/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "made_module.h"

#include "live/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/screen.h"
#include "live/browse.h"
#include "live/draw.h"
#include "profile/profile.h"

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

/* Functions of code made at run time, which the profile itself names: "a" at 0x1000, "b" at 0x1100; and
   names that no terminal should get as they are. */
static struct profile *new_profile(double seconds)
{
	struct profile_name names[] = {
		{0x1000, 0x100, "alpha"},
		{0x1100, 0x100, "beta"},
		{0x1200, 0x100, "ev\033[2Jil\n\t\302\233name"},
		{0x1300, 0x100,
		 "un nom très long très long très long très long très long très long"},
	};
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	p->duration_ns = (uint64_t)(seconds * 1e9);
	p->command = profile_string(p, "./app\033[H");
	for (int i = 0; i < 2; i++)
		good(profile_add_metric(p,
					&(struct profile_metric){.name = i ? "faults" : "cpu-clock",
								 .unit = i ? "faults" : "ns",
								 .period = i ? 1 : 1000000},
					&index));
	good(profile_add_process(
		p,
		&(struct profile_process){.pid = 10, .name = "app", .command = "app", .rank = -1},
		&index));
	add_made_module(p, names, 4);
	for (int i = 0; i < 2; i++)
		good(profile_add_thread(
			p, &(struct profile_thread){.tid = 10 + i, .name = i ? "worker" : "app"},
			&index));
	return p;
}

static void count(struct profile *p, uint32_t thread, uint64_t samples, uint64_t outer,
		  uint64_t inner)
{
	uint32_t node;
	good(profile_child(p, 0, PROFILE_CALL, 1, outer + 8, &node));
	if (inner)
		good(profile_child(p, node, PROFILE_EXACT, 1, inner + 8, &node));
	good(profile_count(p, node, thread, 0, samples));
	good(profile_count(p, node, thread, 1, 1));
}

static struct profile *first_profile(void)
{
	struct profile *p = new_profile(1);
	count(p, 0, 90, 0x1000, 0x1100);
	count(p, 0, 10, 0x1000, 0);
	good(profile_settle(p));
	return p;
}

static struct profile *second_profile(void)
{
	struct profile *p = new_profile(3);
	count(p, 1, 30, 0x1200, 0x1300);
	count(p, 0, 100, 0x1000, 0x1100);
	count(p, 0, 70, 0x1000, 0);
	good(profile_settle(p));
	return p;
}

static const struct board_row *find(const struct board *b, const char *name)
{
	for (size_t i = 0; i < b->count; i++)
		if (!strcmp(b->rows[i].name, name))
			return &b->rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static struct board *make(struct board_maker *maker, struct board_wish wish)
{
	struct board *board;
	good(board_make(maker, &wish, false, &board));
	return board;
}

static void test_rows(void **state)
{
	struct board_maker *maker;
	struct board *b;
	(void)state;
	good(board_maker_new(&maker));
	good(board_maker_take(maker, first_profile(), false));
	b = make(maker, (struct board_wish){0});
	assert_true(b->interval == 0);
	assert_int_equal(b->all_samples, 100);
	assert_int_equal(find(b, "alpha")->all_total, 100);
	assert_int_equal(find(b, "alpha")->all_self, 10);
	uint64_t id = find(b, "beta")->id;
	board_free(b);
	good(board_maker_take(maker, second_profile(), false));
	b = make(maker, (struct board_wish){0});
	assert_true(b->interval > 1.99 && b->interval < 2.01);
	assert_int_equal(b->now_samples, 100);
	assert_int_equal(b->all_samples, 200);
	assert_int_equal(find(b, "alpha")->now_total, 70);
	assert_int_equal(find(b, "alpha")->now_self, 60);
	assert_int_equal(find(b, "beta")->now_self, 10);
	assert_int_equal(find(b, "beta")->all_self, 100);
	assert_true(find(b, "beta")->id == id);
	board_free(b);
	b = make(maker, (struct board_wish){.metric = 1});
	assert_string_equal(b->metric, "faults");
	assert_int_equal(b->now_samples, 1);
	board_free(b);
	b = make(maker, (struct board_wish){.by = BOARD_THREAD});
	assert_int_equal(b->count, 2);
	assert_int_equal(find(b, "worker (thread 11)")->now_total, 30);
	board_free(b);
	b = make(maker, (struct board_wish){.by = BOARD_MODULE});
	assert_int_equal(b->count, 1);
	board_free(b);
	/* With nothing before it, all is now. */
	good(board_maker_take(maker, first_profile(), true));
	b = make(maker, (struct board_wish){0});
	assert_true(b->interval == 0);
	board_free(b);
	board_maker_free(maker);
}

static void test_path(void **state)
{
	struct board_maker *maker;
	struct board *b;
	(void)state;
	good(board_maker_new(&maker));
	good(board_maker_take(maker, first_profile(), false));
	good(board_maker_take(maker, second_profile(), false));
	b = make(maker, (struct board_wish){0});
	struct board_wish wish = {.path = true, .selected = find(b, "beta")->id};
	board_free(b);
	b = make(maker, wish);
	assert_int_equal(b->step_count, 2);
	assert_string_equal(b->steps[0].label, "alpha");
	assert_false(b->steps[0].selected);
	assert_string_equal(b->steps[1].label, "beta");
	assert_true(b->steps[1].selected);
	assert_int_equal(b->steps[1].now_total, 10);
	board_free(b);
	wish.selected = 12345;
	b = make(maker, wish);
	assert_int_equal(b->step_count, 0);
	board_free(b);
	board_maker_free(maker);
}

/* Every size: as many lines as there are rows, none longer than it may be, no byte that moves a cursor. */
static void check_picture(struct browse *browse, unsigned width, unsigned height, bool utf8)
{
	struct picture p = {.width = width,
			    .height = height,
			    .utf8 = utf8,
			    .title = "x.prof",
			    .state = "recording"};
	struct buf out = {0};
	size_t lines = 0, used = 0;
	browse_picture(browse, &p);
	draw_picture(&p, &out);
	for (size_t i = 0; i < out.size; i++) {
		unsigned char c = (unsigned char)out.data[i];
		if (c == '\n') {
			lines++;
			used = 0;
			continue;
		}
		assert_true(c >= 0x20 && c != 0x7f && (utf8 || c < 0x80));
		assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
		used += (c & 0xc0) != 0x80;
		if (used > width)
			fail_msg("%ux%u: a line is too long", width, height);
	}
	if (lines > height || (height > 3 && lines != height))
		fail_msg("%ux%u: %zu lines", width, height, lines);
	buf_free(&out);
}

static struct board *both(bool path)
{
	struct board_maker *maker;
	struct board *b;
	good(board_maker_new(&maker));
	good(board_maker_take(maker, first_profile(), false));
	good(board_maker_take(maker, second_profile(), false));
	b = make(maker, (struct board_wish){0});
	if (path) {
		struct board_wish wish = {.path = true, .selected = find(b, "beta")->id};
		board_free(b);
		b = make(maker, wish);
	}
	board_maker_free(maker);
	return b;
}

static void test_pictures(void **state)
{
	struct browse browse = {.interval = 1};
	(void)state;
	for (int turn = 0; turn < 4; turn++) {
		for (unsigned width = 1; width < 140; width += width < 60 ? 1 : 13)
			for (unsigned height = 1; height < 50; height += height < 20 ? 1 : 11)
				check_picture(&browse, width, height, turn % 2);
		if (!turn)
			browse_take(&browse, both(false));
		browse.help = turn == 1;
		browse.path = turn == 2;
		if (turn == 2)
			browse_take(&browse, both(true));
	}
	browse_free(&browse);
}

static void press(struct browse *b, const char *keys)
{
	for (; *keys; keys++)
		browse_key(b, (unsigned char)*keys, 10);
}

static void test_keys(void **state)
{
	struct browse b = {.interval = 1};
	(void)state;
	press(&b, "j/x\rkflnmts"); /* before there is anything */
	browse_key(&b, KEY_ESCAPE, 10);
	browse_free(&b);
	b = (struct browse){.interval = 1};
	browse_take(&b, both(false));
	assert_string_equal(b.rows[0]->name, "alpha");
	press(&b, "j");
	char chosen[128];
	snprintf(chosen, sizeof chosen, "%s", b.rows[b.selected]->name);
	press(&b, "s"); /* by total: another order, the same row */
	assert_true(b.order.by_total);
	assert_string_equal(b.rows[b.selected]->name, chosen);
	browse_take(&b, both(false));
	assert_string_equal(b.rows[b.selected]->name, chosen);
	browse_key(&b, KEY_END, 10);
	assert_int_equal(b.selected, b.row_count - 1);
	browse_key(&b, KEY_DOWN, 10);
	assert_int_equal(b.selected, b.row_count - 1);
	browse_key(&b, KEY_HOME, 10);
	assert_int_equal(b.selected, 0);
	press(&b, "/^(al|be)");
	assert_true(b.typing);
	browse_key(&b, KEY_BACKSPACE, 10);
	press(&b, "\r"); /* "^(al|be": not whole */
	assert_true(b.typing && b.message[0]);
	press(&b, ")\r");
	assert_false(b.typing);
	assert_int_equal(b.row_count, 2);
	press(&b, "/nothing\r");
	press(&b, "jjkk\r"); /* no rows at all */
	browse_key(&b, KEY_ESCAPE, 10);
	browse_key(&b, KEY_ESCAPE, 10);
	assert_int_equal(b.row_count, 4);
	b.rewished = false;
	press(&b, "t");
	assert_true(b.rewished && b.wish.by == BOARD_THREAD);
	press(&b, "e");
	assert_int_equal(b.wish.metric, 1);
	press(&b, "+++");
	assert_true(b.interval == 8);
	press(&b, "--------");
	assert_true(b.interval == 0.1);
	press(&b, " ");
	assert_true(b.paused);
	for (int i = 0; i < 300; i++)
		press(&b, i ? "x" : "/");
	press(&b, "\r");
	press(&b, "q");
	assert_true(b.quit);
	browse_free(&b);
}

static void test_print(void **state)
{
	struct board *b = both(false);
	struct order order = {0};
	struct buf out = {0};
	struct json j;
	(void)state;
	print_board(b, &order, "recording", 2, &out);
	assert_non_null(strstr(out.data, "recording 3.00 s: 200 samples of cpu-clock so far; last "
					 "2.00 s: 100 samples, 5.0% of a CPU\n"));
	assert_non_null(strstr(out.data, "  60.00%   70.00%      3.0%   35.00%   85.00%  alpha"));
	assert_null(strchr(out.data, 033));
	buf_clear(&out);
	j = json_to_buf(&out);
	print_json(b, &order, "recording", 1, &j);
	assert_non_null(
		strstr(out.data, "\"samples\":{\"now\":100,\"all\":200,\"partial\":0,\"lost\":0}"));
	assert_non_null(strstr(out.data, "\"now\":{\"self\":60,\"total\":70},\"all\":{\"self\":70,"
					 "\"total\":170}}]}"));
	buf_free(&out);
	board_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),     cmocka_unit_test(test_path),
		cmocka_unit_test(test_pictures), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_print),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
