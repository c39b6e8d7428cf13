/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's side of the database, where another file takes its place. */
#include "stores.h"

#include <stdlib.h>

#include "daemon/interval.h"
#include "daemon/writer.h"
#include "store/unsent.h"

static struct writer *open_writer(const char *name)
{
	const struct store_epoch epoch = make_epoch(START);
	struct writer *w;
	unlink(scratch(name));
	good(writer_open(scratch(name), &w));
	good(writer_begin(w, &epoch));
	return w;
}

static enum writer_result add_one(struct writer *w, uint64_t number)
{
	struct interval v = {.rows = make_interval(number)};
	v.rows.losses = NULL;
	v.rows.loss_count = 0;
	return writer_add(w, &v);
}

static uint64_t samples_in(const char *name)
{
	struct store *s;
	good(store_open(scratch(name), STORE_READ, &s));
	uint64_t samples = all_samples(s);
	store_close(s);
	return samples;
}

/* Another database, with an epoch of the same number, takes the place of ours while somebody writes it. */
static void replaced_and_busy(void **state)
{
	struct writer *w = open_writer("replaced.db");
	struct store *other = fresh("other.db");
	(void)state;
	assert_int_equal(add_one(w, 1), WRITER_STORED);
	int64_t epoch = begin(other, START);
	for (uint64_t i = 1; i <= 5; i++)
		add(other, epoch, i, true);
	store_close(other);
	assert_int_equal(rename(scratch("other.db"), scratch("replaced.db")), 0);
	good(store_open(scratch("replaced.db"), STORE_WRITE, &other));
	good(sql_begin(other));
	assert_int_equal(add_one(w, 2), WRITER_WAITS);
	good(sql_end(other, NULL));
	store_close(other);
	assert_int_equal(writer_retry(w), WRITER_STORED);
	assert_true(writer_epoch(w) > epoch);
	writer_close(w);
	assert_int_equal(samples_in("replaced.db"), 6 * 80);
}

/* What goes into a new database first is sent on, too. */
static void removed_and_sent(void **state)
{
	struct writer *w = open_writer("removed.db");
	struct unsent_state sent;
	struct unsent_span spans[4];
	struct store *s;
	size_t count;
	uint64_t bytes;
	(void)state;
	good(writer_send_begin(w, "machine", &sent));
	assert_int_equal(add_one(w, 1), WRITER_STORED);
	assert_int_equal(rename(scratch("removed.db"), scratch("elsewhere.db")), 0);
	assert_int_equal(add_one(w, 2), WRITER_STORED);
	good(writer_send_begin(w, "machine", &sent));
	good(store_open(scratch("removed.db"), STORE_READ, &s));
	good(unsent_list(s, sent.sent, spans, 4, &count, &bytes));
	assert_int_equal(count, 1);
	store_close(s);
	writer_close(w);
	assert_int_equal(samples_in("removed.db"), 80);
	assert_int_equal(samples_in("elsewhere.db"), 80);
}

/* The next epoch says that it only began because the one before was full. */
static void full_and_continued(void **state)
{
	enum { NODES = STORE_INTERVAL_ROWS_MAX };
	struct store_node *many = calloc(NODES, sizeof *many);
	struct writer *w = open_writer("continued.db");
	struct store *s;
	int64_t continues, epochs;
	int64_t first = writer_epoch(w);
	(void)state;
	for (uint64_t i = 1; writer_epoch(w) == first; i++) {
		struct interval v = {.rows = make_interval(i)};
		assert_true(i < 100);
		for (uint32_t k = 0; k < NODES; k++)
			many[k] = (struct store_node){0, 1, PROFILE_EXACT, i * NODES + k};
		v.rows.nodes = many;
		v.rows.node_count = NODES;
		v.rows.path_count = 0;
		v.rows.losses = NULL;
		v.rows.loss_count = 0;
		assert_int_equal(writer_add(w, &v), WRITER_STORED);
	}
	writer_close(w);
	good(store_open(scratch("continued.db"), STORE_READ, &s));
	good(sql_number(s, &epochs, 0, "SELECT count(*) FROM epoch", ""));
	good(sql_number(s, &continues, 0, "SELECT sum(continues * (id > 1)) FROM epoch", ""));
	assert_true(epochs == 2 && continues == 1);
	store_close(s);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_and_busy),
		cmocka_unit_test(removed_and_sent),
		cmocka_unit_test(full_and_continued),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
