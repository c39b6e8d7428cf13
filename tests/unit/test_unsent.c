/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that wait to be sent, and what a span has for that. */
#include "scratch.h"

#include "base/err.h"
#include "profile/profile.h"
#include "store/internal.h"
#include "store/unsent.h"

#define START INT64_C(1794700800000)
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static const struct store_image images[] = {
	{PROFILE_FILE, "/bin/app", "0123", 0},
	{PROFILE_JIT, "[jit]", "", 2},
	{PROFILE_FILE, "/lib/caller.so", "4567", 0},
};
static const struct store_symbol symbols[] = {
	{1, 0x1000, 0x100, "main"}, {2, 0x500, 0x80, "made"}, {3, 0x10, 0x80, "caller"}};
static const struct store_process processes[] = {
	{10, START, "app", "app --fast", 1000, ""},
	{11, START, "other", "other", 1001, "c0ffee"},
};
static const struct store_node nodes[] = {
	{0, 3, PROFILE_CALL, 0x20},
	{1, 1, PROFILE_EXACT, 0x1010},
	{1, 2, PROFILE_EXACT, 0x510},
};
static const struct store_count counts[] = {
	{1, 1, 0, 0x1010, 40}, {1, 2, 1, 0x510, 3}, {0, 0, 0, 0xdead, 5}};
static const struct store_path paths[] = {{2, 1, 0, 40}, {3, 1, 1, 3}};
static const struct store_loss losses[] = {{STORE_LOST, "ring full", 7}};

/* A minute with files and processes, and nothing else. */
static struct store_interval begin_interval(uint64_t number)
{
	return (struct store_interval){
		.number = number,
		.start_ms = START + (int64_t)(number - 1) * MINUTE,
		.end_ms = START + (int64_t)number * MINUTE,
		.images = images,
		.image_count = 3,
		.processes = processes,
		.process_count = 2,
	};
}

static void add(struct store *s, int64_t epoch, uint64_t number)
{
	struct store_interval v = begin_interval(number);
	v.symbols = symbols;
	v.symbol_count = 3;
	v.nodes = nodes;
	v.node_count = 3;
	v.counts = counts;
	v.count_count = 3;
	v.paths = paths;
	v.path_count = 2;
	v.losses = losses;
	v.loss_count = 1;
	v.cost = (struct store_cost){1, 2, 3, 4};
	bool added;
	good(store_add(s, epoch, &v, &added));
	assert_true(added);
}

/* With a frame that was not there before. */
static void add_deeper(struct store *s, int64_t epoch, uint64_t number)
{
	static const struct store_node deeper[] = {{0, 3, PROFILE_CALL, 0x20},
						   {1, 1, PROFILE_EXACT, 0x1010},
						   {1, 1, PROFILE_EXACT, 0x1020}};
	static const struct store_path path[] = {{3, 1, 0, 2}};
	struct store_interval v = begin_interval(number);
	v.nodes = deeper;
	v.node_count = 3;
	v.paths = path;
	v.path_count = 1;
	bool added;
	good(store_add(s, epoch, &v, &added));
}

static struct store *fresh(const char *name, int64_t *epoch)
{
	static const struct store_event events[] = {{"cycles", "cycles", 1000, 1, false},
						    {"imiss", "misses", 100, 1, true}};
	const struct store_epoch x = {"host", "6.1", "aarch64", "cpu",  "1", "noted",
				      2,      5000,  START,     events, 2,   false};
	struct store *s;
	unlink(scratch(name));
	good(store_open(scratch(name), STORE_CREATE, &s));
	good(store_begin_epoch(s, &x, epoch));
	return s;
}

static size_t waiting(struct store *s, int64_t after, uint64_t *bytes)
{
	struct unsent_span spans[100];
	size_t count;
	good(unsent_list(s, after, spans, 100, &count, bytes));
	for (size_t i = 0; i < count; i++) {
		assert_true(spans[i].id > after && spans[i].samples == 48 && spans[i].bytes > 0);
		assert_true(!i || spans[i].id > spans[i - 1].id);
	}
	return count;
}

static void tidy(struct store *s, int64_t now_ms)
{
	struct store_tidied tidied = {.more = true};
	while (tidied.more)
		good(store_tidy(s, &store_policy, now_ms, 16, &tidied));
	good(store_check(s));
}

/* What was there before anybody sent is not sent; what comes waits, through another opening. */
static void states(void **state)
{
	struct unsent_state x, y;
	struct store *s;
	uint64_t bytes;
	int64_t epoch;
	(void)state;
	s = fresh("states.db", &epoch);
	add(s, epoch, 1);
	good(unsent_begin(s, "m", &x));
	assert_true(x.source != 0 && x.sent == 1 && !x.given_up);
	assert_int_equal(waiting(s, x.sent, &bytes), 0);
	assert_int_equal(bytes, 0);
	for (uint64_t i = 2; i <= 4; i++)
		add(s, epoch, i);
	assert_int_equal(waiting(s, x.sent, &bytes), 3);
	x.sent = 2;
	x.given_up = 77;
	good(unsent_note(s, &x));
	store_close(s);
	good(store_open(scratch("states.db"), STORE_WRITE, &s));
	good(unsent_begin(s, "m", &y));
	assert_memory_equal(&x, &y, sizeof x);
	assert_int_equal(waiting(s, y.sent, &bytes), 2);
	/* A copy on another machine is another source, which goes on where this one is. */
	good(unsent_begin(s, "n", &y));
	assert_true(y.source != x.source && y.sent == 2 && y.given_up == 77);
	x = y;
	good(unsent_begin(s, "n", &y));
	assert_memory_equal(&x, &y, sizeof x);
	good(unsent_end(s));
	good(unsent_end(s));
	good(unsent_begin(s, "m", &y));
	assert_true(y.source != x.source && y.sent == 4);
	store_close(s);
}

/* They are neither merged nor removed, however old; what is sent is, and comes never again. */
static void left_alone(void **state)
{
	struct unsent_state x;
	uint64_t bytes;
	int64_t epoch;
	(void)state;
	struct store *s = fresh("alone.db", &epoch);
	good(unsent_begin(s, "m", &x));
	for (uint64_t i = 1; i <= 30; i++)
		add(s, epoch, i);
	tidy(s, START + 1000 * 24 * HOUR);
	assert_int_equal(waiting(s, x.sent, &bytes), 30);
	x.sent = 15;
	good(unsent_note(s, &x));
	tidy(s, START + 3 * HOUR);
	assert_int_equal(waiting(s, x.sent, &bytes), 15);
	struct read_epochs epochs;
	good(read_epochs(s, &epochs));
	assert_true(epochs.items[0].spans > 15 && epochs.items[0].spans < 20);
	assert_int_equal(epochs.items[0].totals[0].samples, 30 * 45);
	read_epochs_free(&epochs);
	x.sent = 30;
	good(unsent_note(s, &x));
	tidy(s, START + 3 * HOUR);
	assert_int_equal(waiting(s, x.sent, &bytes), 0);
	good(read_epochs(s, &epochs));
	assert_true(epochs.items[0].spans <= 2);
	assert_int_equal(epochs.items[0].totals[0].samples, 30 * 45);
	read_epochs_free(&epochs);
	tidy(s, START + 1000 * 24 * HOUR);
	assert_int_equal(waiting(s, x.sent, &bytes), 0);
	store_close(s);
}

static void one_span(void **state)
{
	struct unsent_state none;
	struct unsent x;
	int64_t epoch;
	(void)state;
	struct store *s = fresh("one.db", &epoch);
	good(unsent_begin(s, "m", &none));
	add(s, epoch, 1);
	good(unsent_read(s, 1, &x));
	assert_true(x.start_ms == START && x.end_ms == START + MINUTE && x.intervals == 1);
	assert_true(x.cost.cpu_ns == 1 && x.cost.kernel_runs == 4);
	assert_string_equal(x.epoch.host, "host");
	assert_string_equal(x.epoch.note, "noted");
	assert_int_equal(x.epoch.total_count, 2);
	assert_string_equal(x.epoch.totals[1].event.name, "imiss");
	assert_true(x.epoch.totals[0].samples == 45 && x.epoch.totals[0].walked == 40);
	assert_true(x.names.loss_count == 1 && x.names.losses[0].samples == 7);
	assert_int_equal(x.names.count_count, 3);
	uint64_t sum = 0;
	for (size_t i = 0; i < 3; i++) {
		const struct read_count *c = &x.names.counts[i];
		assert_true(c->image < x.names.image_count && c->process < x.names.process_count);
		sum += c->count * (c->event ? 1000 : 1);
	}
	assert_int_equal(sum, 45 + 3000);
	/* Paths, with the images of their callers, and whose code made at run time is. */
	assert_true(x.path_count == 2 && x.node_count == 4);
	bool caller = false, owner = false;
	for (size_t i = 0; i < x.names.image_count; i++)
		caller |= !strcmp(x.names.images[i].path, "/lib/caller.so") &&
			  x.names.images[i].symbol_count == 1;
	for (size_t i = 0; i < x.names.process_count; i++)
		owner |= x.names.processes[i].pid == 11;
	assert_true(caller && owner);
	const struct unsent_node *leaf = &x.nodes[x.paths[0].node];
	assert_int_equal(leaf->address, 0x1010);
	assert_string_equal(x.names.images[x.nodes[leaf->parent].image].path, "/lib/caller.so");
	unsent_free(&x);
	/* What is kept for the next one is not kept for too long. */
	struct store *other;
	good(store_open(scratch("one.db"), STORE_READ, &other));
	good(unsent_read(other, 1, &x));
	assert_int_equal(x.node_count, 4);
	unsent_free(&x);
	add_deeper(s, epoch, 2);
	good(unsent_read(other, 2, &x));
	assert_true(x.node_count == 5 && x.path_count == 1);
	assert_int_equal(x.nodes[x.paths[0].node].address, 0x1020);
	unsent_free(&x);
	unsent_forget(other);
	good(unsent_read(other, 1, &x));
	assert_int_equal(x.node_count, 5);
	unsent_free(&x);
	store_close(other);
	struct err *e = unsent_read(s, 99, &x);
	assert_non_null(strstr(err_text(e), "span 99 is gone"));
	err_free(e);
	store_close(s);
}

/* One in memory takes more, and is read as any other. */
static void in_memory(void **state)
{
	static const struct store_event events[] = {{"cycles", "cycles", 1000, 1, false}};
	const struct store_epoch epoch = {"a", "", "", "", "", "", 1, 1, START, events, 1, false};
	const struct store_epoch other = {"b", "", "", "", "", "", 1, 1, START, events, 1, false};
	struct read_choice choice = {.to_ms = INT64_MAX / 4, .user = -1};
	size_t many = STORE_INTERVAL_ROWS_MAX + 10;
	struct store_count *rows = calloc(many, sizeof *rows);
	struct store_interval v = {.number = 1,
				   .start_ms = START,
				   .end_ms = START + MINUTE,
				   .counts = rows,
				   .count_count = many};
	struct read_samples x;
	struct store *s;
	int64_t first, second;
	bool added;
	(void)state;
	for (size_t i = 0; i < many; i++)
		rows[i] = (struct store_count){0, 0, 0, i, 1};
	good(store_open_memory("somewhere", &s));
	good(store_begin_epoch(s, &epoch, &first));
	good(store_begin_epoch(s, &other, &second));
	good(store_add(s, first, &v, &added));
	v.count_count = 3;
	good(store_add(s, second, &v, &added));
	good(read_samples(s, &choice, &x));
	assert_true(x.host_count == 2 && x.count_count == many + 3);
	assert_int_equal(x.spans, 2);
	read_samples_free(&x);
	choice.host = "b";
	good(read_samples(s, &choice, &x));
	assert_true(x.count_count == 3 && x.spans == 1);
	read_samples_free(&x);
	choice.host = "nobody";
	good(read_samples(s, &choice, &x));
	assert_int_equal(x.spans, 0);
	read_samples_free(&x);
	store_close(s);
	free(rows);
}

/* What is noted is our own doing: nobody has touched the file, so it need not be checked as a whole. */
static void noting_is_no_damage(void **state)
{
	struct unsent_state sent = {0};
	int64_t epoch;
	struct store *s = fresh("noted.db", &epoch);
	bool same;
	(void)state;
	add(s, epoch, 1);
	good(sql_begin(s)); /* something that a check would find */
	good(sql_end(s, sql_do(s,
			       "INSERT INTO total (segment, event, samples, walked)"
			       " VALUES (99, 1, 1, 0)",
			       "")));
	good(unsent_begin(s, "m", &sent));
	usleep(20000);
	sent.sent = 1;
	good(unsent_note(s, &sent));
	good(store_look(s, &same));
	usleep(20000);
	good(unsent_end(s));
	good(store_look(s, &same));
	assert_true(same);
	struct err *e = store_check(s);
	assert_non_null(e);
	err_free(e);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states),
		cmocka_unit_test(left_alone),
		cmocka_unit_test(one_span),
		cmocka_unit_test(in_memory),
		cmocka_unit_test(noting_is_no_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
