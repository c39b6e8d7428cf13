/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a database with time: spans and epochs are put together, the oldest go. */
#include "stores.h"

#include <stdlib.h>

/* Merging changes no sum; the time of coarse spans is coarse. */
static void merging(void **state)
{
	const struct store_policy policy = {.levels = {{0, 600}, {0, 3600}}};
	struct store_tidied tidied;
	struct read_epochs epochs;
	struct store *s = fresh("merge.db");
	int64_t epoch = begin(s, START);
	(void)state;
	for (uint64_t i = 1; i <= 150; i++)
		add(s, epoch, i, true);
	uint64_t before = all_samples(s);
	tidy_all(s, &policy, START + 130 * MINUTE, &tidied);
	good(store_check(s));
	assert_int_equal(all_samples(s), before);
	good(read_epochs(s, &epochs));
	/* two hours, ten minutes, and 20 minutes of which not all are over */
	assert_int_equal(epochs.items[0].spans, 2 + 1 + 20);
	assert_true(epochs.items[0].coarsest_ms == HOUR && epochs.items[0].finest_ms == MINUTE);
	assert_true(epochs.items[0].losses[0].samples == 150 * 7);
	assert_true(epochs.items[0].cost.cpu_ns == 150 * UINT64_C(1000000));
	read_epochs_free(&epochs);
	struct read_choice first = {.from_ms = START, .to_ms = START + HOUR, .user = -1};
	assert_int_equal(samples_of(s, &first, "cycles"), 60 * 80);
	/* Hours know groups of processes: by name, user and container. */
	first.process = "10";
	assert_int_equal(samples_of(s, &first, "cycles"), 0);
	first.process = "app";
	assert_int_equal(samples_of(s, &first, "cycles"), 60 * 75);
	first.container = "c0ffee";
	assert_int_equal(samples_of(s, &first, "cycles"), 60 * 25);
	add(s, epoch, 151, true);
	store_close(s);
}

static void retention(void **state)
{
	struct store_policy policy = {.keep_s = 3600};
	struct store_tidied tidied;
	struct store *s = fresh("keep.db");
	int64_t epoch = begin(s, START), number;
	(void)state;
	for (uint64_t i = 1; i <= 120; i++)
		add(s, epoch, i, true);
	epoch = begin(s, START + 120 * MINUTE);
	add(s, epoch, 121, true);
	tidy_all(s, &policy, START + 150 * MINUTE, &tidied);
	assert_int_equal(tidied.removed, 90);
	assert_int_equal(all_samples(s), 31 * 80);
	policy = (struct store_policy){.max_bytes = 1};
	tidy_all(s, &policy, START + 150 * MINUTE, &tidied);
	assert_int_equal(all_samples(s), 80); /* the last one stays */
	good(store_check(s));
	/* Epochs without spans go, images that have samples stay. */
	good(sql_number(s, &number, 0, "SELECT count(*) FROM epoch", ""));
	assert_int_equal(number, 1);
	good(sql_number(s, &number, 0, "SELECT count(*) FROM image", ""));
	assert_int_equal(number, 2);
	/* Long after, nothing refers to them. */
	policy = (struct store_policy){.keep_s = 1};
	tidy_all(s, &policy, START + 30 * DAY, &tidied);
	for (int i = 0; i < 3; i++) {
		const char *const left[] = {"SELECT count(*) FROM image",
					    "SELECT count(*) FROM symbol",
					    "SELECT count(*) FROM process"};
		good(sql_number(s, &number, 0, left[i], ""));
		assert_int_equal(number, 0);
	}
	store_close(s);
}

static void joining_epochs(void **state)
{
	const struct store_policy policy = {.join_epochs_after_s = 3600};
	struct store_tidied tidied;
	struct profile *p;
	struct store *s = fresh("join.db");
	int64_t epochs;
	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		int64_t epoch = begin(s, START + (int64_t)i * 10 * MINUTE);
		for (uint64_t k = 1; k <= 10; k++)
			add(s, epoch, i * 10 + k, true);
	}
	tidy_all(s, &policy, START + 5 * HOUR, &tidied);
	assert_int_equal(tidied.joined, 2);
	good(sql_number(s, &epochs, 0, "SELECT count(*) FROM epoch", ""));
	assert_int_equal(epochs, 2); /* the newest stays as it is */
	good(store_check(s));
	assert_int_equal(all_samples(s), 40 * 80);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, NULL, &p));
	assert_int_equal(profile_samples(p, 0), 40 * 15);
	profile_free(p);
	store_close(s);
}

/* An epoch that only began because the one before was full becomes part of it, as soon as the spans
   of both are coarse; those of the same hour become one. */
static void continuing_epochs(void **state)
{
	const struct store_policy policy = {.levels = {{0, 600}, {0, 3600}}};
	struct store_tidied tidied;
	struct read_epochs epochs;
	struct store *s = fresh("continue.db");
	int64_t first = begin(s, START), second;
	(void)state;
	for (uint64_t i = 1; i <= 30; i++)
		add(s, first, i, true);
	second = begin_as(s, START + 30 * MINUTE, true);
	for (uint64_t i = 31; i <= 60; i++)
		add(s, second, i, true);
	add(s, begin(s, START + HOUR), 61, true);
	tidy_all(s, &policy, START + HOUR + MINUTE, &tidied);
	assert_int_equal(tidied.joined, 1);
	good(store_check(s));
	good(read_epochs(s, &epochs));
	assert_int_equal(epochs.count, 2);
	assert_true(epochs.items[0].spans == 1 && epochs.items[0].joined == 2);
	assert_true(epochs.items[0].totals[0].samples == 60 * 80);
	assert_true(epochs.items[0].losses[0].samples == 60 * 7);
	read_epochs_free(&epochs);
	assert_int_equal(all_samples(s), 61 * 80);
	store_close(s);
}

/* What is rare in an hour loses detail, and no sample. */
static void folding(void **state)
{
	enum { RARE = 200, RARER = 30 /* of another process */ };
	const struct store_policy policy = {.levels = {{0, 3600}}};
	struct store_node *many = calloc(RARE * 2 + 2, sizeof *many);
	struct store_path *rows = calloc(RARE + 1, sizeof *rows);
	struct store_count *places = calloc(RARE + 1, sizeof *places);
	struct store_tidied tidied;
	struct profile *p;
	struct store *s = fresh("fold.db");
	int64_t number, epoch = begin(s, START);
	uint64_t rest = 0, functions = 0;
	bool added;
	(void)state;
	many[0] = (struct store_node){0, 1, PROFILE_CALL, 0x1010};
	many[1] = (struct store_node){1, 1, PROFILE_EXACT, 0x1110};
	rows[0] = (struct store_path){2, 1, 0, 10000000};
	places[0] = (struct store_count){1, 1, 0, 0x1110, 50000000};
	for (uint32_t i = 0; i < RARE; i++) {
		many[2 + 2 * i] = (struct store_node){1, 2, PROFILE_CALL, 0x10000 + i};
		many[3 + 2 * i] = (struct store_node){3 + 2 * i, 2, PROFILE_EXACT, 0x500 + i % 128};
		rows[1 + i] = (struct store_path){4 + 2 * i, i < RARER ? 2 : 1, 0, 1};
		places[1 + i] = (struct store_count){1, 2, 0, 0x500 + i % 128, 5};
	}
	struct store_interval v = make_interval(1);
	v.nodes = many;
	v.node_count = RARE * 2 + 2;
	v.paths = rows;
	v.path_count = RARE + 1;
	v.counts = places;
	v.count_count = RARE + 1;
	good(store_add(s, epoch, &v, &added));
	begin(s, START + HOUR);
	tidy_all(s, &policy, START + 2 * HOUR, &tidied);
	good(store_check(s));
	/* main, solve, and memcpy and the rest of its library below main: four nodes; two places. */
	good(sql_number(s, &number, 0, "SELECT nodes FROM epoch WHERE id = 1", ""));
	assert_int_equal(number, 4);
	good(sql_number(s, &number, 0, "SELECT rows FROM segment", ""));
	assert_int_equal(number, 3 + 2);
	assert_int_equal(all_samples(s), 50000000 + RARE * 5);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, NULL, &p));
	assert_int_equal(profile_samples(p, 0), 10000000 + RARE);
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_node *x = &p->nodes[p->values[i].node];
		if (p->values[i].metric) /* all samples, without their paths */
			continue;
		rest += x->address ? 0 : p->values[i].count;
		functions += x->address == 0x500 ? p->values[i].count : 0;
		assert_int_equal(p->nodes[x->parent].address, 0x1010);
	}
	assert_int_equal(rest, RARER);
	assert_int_equal(functions, RARE - RARER);
	profile_free(p);
	store_close(s);
	free(many);
	free(rows);
	free(places);
}

/* Code made at run time: groups know it by the names of its functions. */
static void made_code(void **state)
{
	const struct store_policy policy = {.levels = {{0, 600}, {0, 3600}}};
	const struct store_image made[] = {{PROFILE_JIT, "[made]", "", 1},
					   {PROFILE_JIT, "[made]", "", 2}};
	const struct store_symbol names[] = {
		{1, 0x7000, 0x100, "loop"}, {1, 0x8000, 0x100, "sort"}, {2, 0x9000, 0x100, "loop"}};
	const struct store_process both[] = {{10, START, "node", "node a", 1, ""},
					     {11, START, "node", "node b", 1, ""}};
	const struct store_node calls[] = {{0, 1, PROFILE_CALL, 0x8010},
					   {1, 1, PROFILE_EXACT, 0x7010},
					   {0, 2, PROFILE_EXACT, 0x9020},
					   {0, 2, PROFILE_EXACT, 0xffff0000}};
	const struct store_count rows[] = {
		{1, 1, 0, 0x7010, 30}, {2, 2, 0, 0x9020, 20}, {2, 2, 0, 0xffff0000, 5}};
	const struct store_path ends[] = {{2, 1, 0, 6}, {3, 2, 0, 4}, {4, 2, 0, 1}};
	struct store_tidied tidied;
	struct read_samples x;
	struct profile *p;
	struct store *s = fresh("made.db");
	int64_t number, epoch = begin(s, START);
	uint64_t loop = 0;
	bool added;
	(void)state;
	struct store_interval v = make_interval(1);
	v.images = made;
	v.symbols = names;
	v.processes = both;
	v.nodes = calls;
	v.node_count = 4;
	v.counts = rows;
	v.count_count = 3;
	v.paths = ends;
	v.path_count = 3;
	good(store_add(s, epoch, &v, &added));
	begin(s, START + DAY);
	tidy_all(s, &policy, START + 2 * DAY, &tidied);
	good(store_check(s));
	good(read_samples(s, &(struct read_choice){ALL_TIME}, &x));
	assert_int_equal(x.count_count, 2);
	for (size_t i = 0; i < x.count_count; i++) {
		const struct read_image *m = &x.images[x.counts[i].image];
		const struct store_symbol *y = read_symbol(m, x.counts[i].address);
		assert_int_equal(x.processes[x.counts[i].process].pid, 0);
		assert_string_equal(m->path, "[made]");
		loop += y && !strcmp(y->name, "loop") ? x.counts[i].count : 0;
	}
	assert_int_equal(loop, 50);
	read_samples_free(&x);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, NULL, &p));
	assert_int_equal(profile_samples(p, 0), 11);
	assert_int_equal(p->process_count, 1);
	profile_free(p);
	/* Those of single processes are gone, and so are the processes. */
	good(sql_number(s, &number, 0, "SELECT count(*) FROM image", ""));
	assert_int_equal(number, 1);
	good(sql_number(s, &number, 0, "SELECT count(*) FROM process", ""));
	assert_int_equal(number, 1);
	store_close(s);
}

static struct coverage coverage_of(struct store *s, const char *event)
{
	struct read_samples x;
	struct coverage c = {1, 1};
	good(read_samples(s, &(struct read_choice){ALL_TIME}, &x));
	for (size_t i = 0; i < x.event_count; i++)
		if (!strcmp(x.events[i].name, event))
			c = x.coverage[i];
	read_samples_free(&x);
	return c;
}

/* Of `imiss` 3 samples: with a tenth of the time, none of it, and all of it. */
static void events_in_turns(void **state)
{
	const struct store_policy policy = {.levels = {{0, 600}, {0, 3600}}};
	const struct coverage tenth[] = {{0, 0}, {5000, 500}}, never[] = {{9, 9}, {5000, 0}};
	struct store_tidied tidied;
	struct read_epochs epochs;
	struct profile *p;
	struct store *s = fresh("turns.db");
	int64_t epoch = begin(s, START);
	bool added;
	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		struct store_interval v = make_interval(i);
		v.coverage = i == 1 ? tenth : i == 2 ? never : NULL;
		v.coverage_count = i < 3 ? 2 : 0;
		v.count_count = i == 2 ? 4 : 5;
		good(store_add(s, epoch, &v, &added));
	}
	for (int merged = 0; merged < 2; merged++) {
		good(store_check(s));
		/* 30 of the first, 3 of the last; half of the time that is known of has none of it, so
		   that the first stand for twice as many: 60 and 3. */
		double share = coverage_share(coverage_of(s, "imiss"));
		assert_true(share > 6.0 / 63 - 1e-3 && share < 6.0 / 63 + 1e-3);
		assert_true(coverage_share(coverage_of(s, "cycles")) == 1);
		good(read_epochs(s, &epochs));
		assert_true(coverage_share(epochs.items[0].totals[1].coverage) == share);
		assert_true(coverage_share(epochs.items[0].totals[0].coverage) == 1);
		read_epochs_free(&epochs);
		good(read_profile(s, &(struct read_choice){ALL_TIME}, NULL, &p));
		assert_int_equal(profile_period(p, 0), 5000);
		assert_string_equal(p->metrics[2].name, "imiss");
		assert_int_equal(profile_period(p, 2), (uint64_t)(100 / share + 0.5));
		profile_free(p);
		tidy_all(s, &policy, START + 2 * HOUR, &tidied);
		assert_int_equal(tidied.merged, merged ? 0 : 2);
	}
	store_close(s);
	/* One that is never counted is told of, although it has no samples. */
	s = fresh("never.db");
	struct store_interval v = make_interval(1);
	v.coverage = never;
	v.coverage_count = 2;
	v.count_count = 4;
	good(store_add(s, begin(s, START), &v, &added));
	assert_true(coverage_never(coverage_of(s, "imiss")));
	good(store_check(s));
	store_close(s);
}

/* How much of the time an event was counted stays with its samples. */
static void joined_turns(void **state)
{
	const struct store_policy policy = {.join_epochs_after_s = 3600};
	const struct coverage tenth[] = {{0, 0}, {5000, 500}};
	struct store_tidied tidied;
	struct store *s = fresh("joined-turns.db");
	bool added;
	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		struct store_interval v = make_interval(i);
		v.coverage = tenth;
		v.coverage_count = 2;
		good(store_add(s, begin(s, START + (int64_t)i * MINUTE), &v, &added));
	}
	assert_true(coverage_share(coverage_of(s, "imiss")) == 0.1);
	tidy_all(s, &policy, START + 5 * HOUR, &tidied);
	assert_int_equal(tidied.joined, 1);
	assert_true(coverage_share(coverage_of(s, "imiss")) == 0.1);
	good(store_check(s));
	store_close(s);
}

/* Room that trees take is given back before other spans go. */
static void trees_go_first(void **state)
{
	enum { NODES = STORE_INTERVAL_ROWS_MAX };
	struct store_node *many = calloc(NODES, sizeof *many);
	struct store *s = fresh("surplus.db");
	struct store_interval v = make_interval(1);
	struct store_tidied tidied;
	int64_t pages, size;
	bool added;
	(void)state;
	for (uint32_t i = 0; i < NODES; i++)
		many[i] = (struct store_node){0, 1, PROFILE_EXACT,
					      (i * UINT64_C(0x9e3779b97f4a7c15)) >> 16};
	v.nodes = many;
	v.node_count = NODES;
	good(store_add(s, begin(s, START), &v, &added));
	int64_t second = begin(s, START + MINUTE);
	for (uint64_t i = 2; i <= 21; i++)
		add(s, second, i, true);
	add(s, begin(s, START + 21 * MINUTE), 22, true);
	good(sql_number(s, &pages, 0, "PRAGMA page_count", ""));
	good(sql_number(s, &size, 0, "PRAGMA page_size", ""));
	assert_true(pages * size > 200000); /* most of it is the first tree */
	tidy_all(s, &(struct store_policy){.max_bytes = 100000}, START + HOUR, &tidied);
	assert_int_equal(tidied.removed, 1);
	assert_int_equal(all_samples(s), 21 * 80);
	good(store_check(s));
	store_close(s);
	free(many);
}

static uint64_t samples_in(struct store *s, const char *procedure)
{
	struct read_samples x;
	uint64_t sum = 0;
	good(read_samples(s, &(struct read_choice){ALL_TIME}, &x));
	for (size_t i = 0; i < x.count_count; i++) {
		const struct read_count *c = &x.counts[i];
		const struct store_symbol *y = read_symbol(&x.images[c->image], c->address);
		sum += y && !strcmp(y->name, procedure) ? c->count : 0;
	}
	read_samples_free(&x);
	return sum;
}

static struct err *take_number(void *context, int columns, const char *const *names,
			       const struct read_cell *cells)
{
	(void)columns, (void)names;
	if (cells)
		*(int64_t *)context = cells[0].integer;
	return NULL;
}

static int64_t samples_by_sql(const char *database, const char *procedure)
{
	struct store *s;
	int64_t sum = -1;
	char sql[200];
	snprintf(sql, sizeof sql, "SELECT sum(samples) FROM procedures WHERE procedure = '%s'",
		 procedure);
	good(store_open(scratch(database), STORE_READ, &s));
	good(read_sql(s, sql, take_number, &sum));
	store_close(s);
	return sum;
}

/* A function in which another one lies has what is before and behind that, also where it is rare in an hour; not
   so code that is made at run time, where another function may have been there before. */
static void functions_in_functions(void **state)
{
	static const struct store_image both[] = {{PROFILE_FILE, "/bin/app", "0123", 0},
						  {PROFILE_JIT, "[made]", "", 1}};
	static const struct store_symbol nested[] = {{1, 0x1000, 0x200, "outer"},
						     {1, 0x1080, 0x10, "inner"},
						     {2, 0x1000, 0x200, "old"},
						     {2, 0x1080, 0x10, "new"}};
	static const struct store_count in[] = {{1, 1, 0, 0x1084, 100000},
						{1, 1, 0, 0x1100, 1},
						{1, 1, 0, 0x1010, 2},
						{1, 2, 0, 0x1100, 4}};
	const struct store_policy policy = {.levels = {{0, 600}, {0, 3600}}};
	struct store *s = fresh("nested.db");
	struct store_interval v = make_interval(1);
	struct store_tidied tidied;
	bool added;
	(void)state;
	v.images = both;
	v.symbols = nested;
	v.symbol_count = 4;
	v.counts = in;
	v.count_count = 4;
	v.path_count = v.node_count = 0;
	good(store_add(s, begin(s, START), &v, &added));
	for (int folded = 0; folded < 2; folded++) {
		assert_int_equal(samples_in(s, "outer"), 3);
		assert_int_equal(samples_in(s, "inner"), 100000);
		assert_int_equal(samples_in(s, "old"), 0);
		assert_int_equal(samples_by_sql("nested.db", "outer"), 3);
		assert_int_equal(samples_by_sql("nested.db", "inner"), 100000);
		tidy_all(s, &policy, START + 2 * HOUR, &tidied);
	}
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merging),         cmocka_unit_test(retention),
		cmocka_unit_test(joining_epochs),  cmocka_unit_test(continuing_epochs),
		cmocka_unit_test(folding),         cmocka_unit_test(made_code),
		cmocka_unit_test(events_in_turns), cmocka_unit_test(joined_turns),
		cmocka_unit_test(trees_go_first),  cmocka_unit_test(functions_in_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
