/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of epochs as they grow in the file, and the statements that are kept for that. */
#include "scratch.h"

#include "base/err.h"
#include "profile/profile.h"
#include "store/internal.h"

#define START INT64_C(1794700800000) /* a whole day, in UTC */
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define FULL 65536 /* nodes of a piece to which nothing is added */

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct store *open_as(const char *name, enum store_mode mode)
{
	struct store *s;
	good(store_open(scratch(name), mode, &s));
	return s;
}

static int64_t begin(struct store *s)
{
	static const struct store_event events[] = {{"cycles", "cycles", 1000, 5, false}};
	const struct store_epoch epoch = {"host", "6.1", "aarch64", "cpu",  "1", "",
					  2,      5000,  START,     events, 1,   false};
	int64_t id;
	good(store_begin_epoch(s, &epoch, &id));
	return id;
}

static const struct store_image images[] = {{PROFILE_FILE, "/bin/app", "0123", 0}};
static const struct store_symbol symbols[] = {
	{1, 0x1000, 0x1000, "main"}, {1, 0x2000, 0x1000, "first"}, {1, 0x3000, 0x1000, "second"}};
static const struct store_process processes[] = {{10, START, "app", "app", 1000, ""}};

static struct store_interval interval_at(uint64_t number, int64_t start_ms)
{
	return (struct store_interval){.number = number,
				       .start_ms = start_ms,
				       .end_ms = start_ms + MINUTE,
				       .images = images,
				       .image_count = 1,
				       .symbols = symbols,
				       .symbol_count = 3,
				       .processes = processes,
				       .process_count = 1};
}

/* With so many nodes that no other interval has: paths of ten frames. */
static struct err *add_nodes(struct store *s, int64_t epoch, uint64_t number, uint32_t count)
{
	struct store_interval v = interval_at(number, START + (int64_t)number * MINUTE);
	struct store_node *nodes = calloc(count, sizeof *nodes);
	struct store_path last = {count, 1, 0, 1};
	bool added;
	assert_non_null(nodes);
	for (uint32_t i = 0; i < count; i++)
		nodes[i] = (struct store_node){i % 10 ? i : 0, 1, PROFILE_CALL, number << 20 | i};
	v.nodes = nodes;
	v.node_count = count;
	v.paths = &last;
	v.path_count = 1;
	struct err *e = store_add(s, epoch, &v, &added);
	assert_int_equal(added, !e);
	free(nodes);
	return e;
}

static int64_t number_of(struct store *s, const char *sql)
{
	int64_t number;
	good(sql_number(s, &number, -1, sql, ""));
	return number;
}

/* What the file has is what is known in memory. */
static void compare(struct store *s, const char *name, int64_t epoch)
{
	struct store *reader = open_as(name, STORE_READ);
	struct calltree tree = {0};
	good(store_check(reader));
	good(trees_read(reader, epoch, &tree));
	assert_int_equal(s->tree_epoch, epoch);
	assert_int_equal(tree.count, s->tree.count);
	for (uint32_t i = 1; i < tree.count; i++) {
		const struct pack_node *x = &tree.nodes[i], *y = &s->tree.nodes[i];
		assert_true(x->parent == y->parent && x->image == y->image && x->kind == y->kind &&
			    x->address == y->address);
	}
	calltree_free(&tree);
	store_close(reader);
}

static void pieces_grow(void **state)
{
	enum { INTERVALS = 400, NODES = 300 };
	struct store *s = open_as("grow.db", STORE_CREATE);
	int64_t epoch = begin(s);
	(void)state;
	for (uint64_t i = 1; i <= INTERVALS; i++) {
		good(add_nodes(s, epoch, i, i % 7 ? NODES : 1));
		assert_true(number_of(s, "SELECT count(*) FROM node") <= 24);
		assert_int_equal(number_of(s, "SELECT sum(count) FROM node"),
				 number_of(s, "SELECT nodes FROM epoch"));
	}
	assert_int_equal(number_of(s, "SELECT max(count) FROM node"), FULL);
	compare(s, "grow.db", epoch);
	store_close(s);
}

/* What a large epoch took is not kept for those that are written; and these go on. */
static void memory_is_given_back(void **state)
{
	struct store *s = open_as("back.db", STORE_CREATE);
	int64_t epoch = begin(s);
	struct store_tidied tidied = {0};
	(void)state;
	good(add_nodes(s, epoch, 1, 1000));
	for (uint32_t i = 0; i <= STORE_EPOCH_NODES_MAX + 2; i++) {
		struct pack_node node = pack_node(0, 1, PROFILE_CALL, i);
		assert_int_not_equal(calltree_child(&s->tree, &node), UINT32_MAX);
	}
	s->tree_epoch = 0;
	good(store_tidy(s, &store_policy, 1000, 1, &tidied));
	assert_int_equal(s->tree.room, 0);
	good(add_nodes(s, epoch, 2, 1000));
	compare(s, "back.db", epoch);
	store_close(s);
}

/* Pieces that were taken along are there again. */
static void an_undone_interval(void **state)
{
	struct store *s = open_as("undone.db", STORE_CREATE);
	int64_t epoch = begin(s);
	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		good(add_nodes(s, epoch, i, 1000));
	good(sql_run(s, "PRAGMA max_page_count = 1")); /* as many as there are */
	struct err *e = add_nodes(s, epoch, 4, 100000);
	assert_non_null(e);
	err_free(e);
	assert_int_equal(store_trouble(s), STORE_FULL);
	assert_int_equal(number_of(s, "SELECT sum(count) FROM node"), 3000);
	good(store_check(s));
	good(sql_run(s, "PRAGMA max_page_count = 100000"));
	good(add_nodes(s, epoch, 4, 100000));
	compare(s, "undone.db", epoch);
	store_close(s);
}

/* In an hour of their own: one path that is common, and some that are rare in this function. */
static void add_rare(struct store *s, int64_t epoch, uint64_t number, uint64_t function)
{
	enum { RARE = 50 };
	struct store_interval v = interval_at(number, START + (int64_t)number * HOUR);
	struct store_node nodes[2 * RARE + 2] = {{0, 1, PROFILE_CALL, 0x1010},
						 {1, 1, PROFILE_EXACT, 0x1020}};
	struct store_path paths[RARE + 1] = {{2, 1, 0, 1000000}};
	bool added;
	for (uint32_t i = 0; i < RARE; i++) {
		nodes[2 + 2 * i] = (struct store_node){1, 1, PROFILE_CALL, 0x1100 + i};
		nodes[3 + 2 * i] = (struct store_node){3 + 2 * i, 1, PROFILE_EXACT,
						       function + 8 + i};
		paths[1 + i] = (struct store_path){4 + 2 * i, 1, 0, 100};
	}
	v.nodes = nodes;
	v.node_count = 2 * RARE + 2;
	v.paths = paths;
	v.path_count = RARE + 1;
	good(store_add(s, epoch, &v, &added));
	assert_true(added);
}

/* Another process tidies meanwhile: what that adds to the tree is not written over. */
static void two_who_tidy(void **state)
{
	const struct store_policy policy = {.levels = {{0, 3600}}};
	struct store_tidied tidied = {0};
	struct store *s = open_as("two.db", STORE_CREATE), *other;
	int64_t epoch = begin(s), nodes;
	(void)state;
	add_rare(s, epoch, 1, 0x2000);
	add_rare(s, epoch, 2, 0x3000);
	nodes = number_of(s, "SELECT nodes FROM epoch");
	other = open_as("two.db", STORE_WRITE);
	good(store_tidy(other, &policy, START + 2 * HOUR, 4, &tidied));
	store_close(other);
	assert_true(number_of(s, "SELECT nodes FROM epoch") > nodes); /* `first`, folded */
	nodes = number_of(s, "SELECT nodes FROM epoch");
	good(store_tidy(s, &policy, START + 3 * HOUR, 4, &tidied));
	assert_true(number_of(s, "SELECT nodes FROM epoch") > nodes); /* `second` */
	compare(s, "two.db", epoch);
	assert_int_equal(number_of(s, "SELECT sum(walked) FROM total"), 2 * (1000000 + 50 * 100));
	store_close(s);
}

static void kept_statements(void **state)
{
	struct store *s = open_as("kept.db", STORE_CREATE), *other;
	sqlite3_stmt *first, *second;
	int64_t epoch = begin(s), number;
	bool row;
	(void)state;
	/* The same one twice at a time, and then again; nothing stays bound. */
	good(sql_prepare(s, &first, "SELECT ?", "d", INT64_C(1)));
	good(sql_prepare(s, &second, "SELECT ?", "d", INT64_C(2)));
	assert_ptr_not_equal(first, second);
	good(sql_step(s, first, &row));
	good(sql_step(s, second, &row));
	assert_int_equal(sqlite3_column_int64(first, 0), 1);
	assert_int_equal(sqlite3_column_int64(second, 0), 2);
	sql_done(s, first);
	sql_done(s, second);
	assert_int_equal(number_of(s, "SELECT ?"), -1);
	sql_done(s, NULL);
	/* More than are kept. */
	for (int64_t i = 0; i < 3 * KEPT_MAX; i++) {
		good(sql_number(s, &number, 0, scratch_format("SELECT %lld", (long long)i), ""));
		assert_int_equal(number, i);
		assert_true(s->kept.count <= KEPT_MAX);
	}
	/* Another process changes tables. */
	good(add_nodes(s, epoch, 1, 10));
	other = open_as("kept.db", STORE_WRITE);
	good(sql_run(other, "CREATE INDEX process_user ON process (user)"));
	good(add_nodes(s, epoch, 2, 10));
	good(sql_run(other, "ALTER TABLE epoch ADD COLUMN colour TEXT"));
	store_close(other);
	good(add_nodes(s, epoch, 3, 10));
	good(store_check(s));
	/* One that fails does so again, and the next one does not. */
	for (int i = 0; i < 2; i++) {
		struct err *e = sql_do(s, "INSERT INTO epoch (id, start) VALUES (?, 0)", "d",
				       epoch);
		assert_non_null(e);
		err_free(e);
	}
	good(add_nodes(s, epoch, 4, 10));
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_grow),        cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(an_undone_interval), cmocka_unit_test(two_who_tidy),
		cmocka_unit_test(kept_statements),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
