/* SPDX-License-Identifier: Apache-2.0 */
#include "stores.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void round_trip(void **state)
{
	struct read_choice app = {ALL_TIME, .process = "10"}, all = {ALL_TIME};
	struct read_epochs epochs;
	struct read_samples x;
	struct stat st;
	struct store *s = fresh("round.db");
	(void)state;
	add(s, begin(s, START), 1, true);
	store_close(s);
	assert_int_equal(stat(scratch("round.db"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	good(store_open(scratch("round.db"), STORE_READ, &s));
	good(store_check(s));
	good(read_epochs(s, &epochs));
	assert_int_equal(epochs.count, 1);
	const struct read_epoch *e = &epochs.items[0];
	assert_string_equal(e->host, "host");
	assert_true(e->start_ms == START && e->end_ms == START + MINUTE && e->spans == 1);
	assert_true(e->hz == 5000 && e->cpus == 2 && e->total_count == 2 && e->loss_count == 2);
	assert_true(e->totals[0].samples == 80 && e->totals[0].walked == 15);
	assert_true(e->totals[1].samples == 3 && e->totals[1].walked == 0);
	assert_true(e->losses[0].samples == 7 && e->losses[1].kind == STORE_UNKNOWN);
	assert_true(e->cost.cpu_ns == 1000000 && e->cost.kernel_runs == 10);
	read_epochs_free(&epochs);

	assert_int_equal(samples_of(s, &all, "cycles"), 80);
	assert_int_equal(samples_of(s, &app, "cycles"), 50);
	assert_int_equal(samples_of(s, &app, "imiss"), 3);
	good(read_samples(s, &all, &x));
	assert_int_equal(x.count_count, 4); /* equal ones were added up */
	for (size_t i = 0; i < x.count_count; i++) {
		const struct read_count *c = &x.counts[i];
		const struct store_symbol *y = read_symbol(&x.images[c->image], c->address);
		if (c->address == 0x1100)
			assert_true(c->count == 50 && !strcmp(y->name, "solve"));
		if (c->address == 0x510)
			assert_string_equal(y->name, "memcpy");
		if (c->address == 0xdead)
			assert_true(!c->image && !c->process && !y);
	}
	read_samples_free(&x);
	store_close(s);
}

static void choices(void **state)
{
	struct store *s = fresh("choices.db");
	regex_t libc, solve;
	(void)state;
	add(s, begin(s, START), 1, true);
	assert_int_equal(regcomp(&libc, "libc", REG_NOSUB), 0);
	assert_int_equal(regcomp(&solve, "^solve$", REG_NOSUB), 0);
	assert_int_equal(samples_of(s, &(struct read_choice){ALL_TIME, .image = &libc}, "cycles"),
			 25);
	assert_int_equal(
		samples_of(s, &(struct read_choice){ALL_TIME, .procedure = &solve}, "cycles"), 50);
	assert_int_equal(
		samples_of(s, &(struct read_choice){ALL_TIME, .container = "c0f"}, "cycles"), 25);
	assert_int_equal(samples_of(s, &(struct read_choice){ALL_TIME, .process = "app"}, "cycles"),
			 75);
	struct read_choice user = {ALL_TIME};
	user.user = 1000;
	assert_int_equal(samples_of(s, &user, "cycles"), 75);
	user.user = 0;
	assert_int_equal(samples_of(s, &user, "cycles"), 0);
	assert_int_equal(samples_of(s, &(struct read_choice){ALL_TIME, .epoch = 2}, "cycles"), 0);
	regfree(&libc);
	regfree(&solve);
	store_close(s);
}

static void retries_count_once(void **state)
{
	struct store *s = fresh("retry.db");
	int64_t epoch = begin(s, START);
	uint64_t last;
	(void)state;
	for (uint64_t i = 1; i <= 5; i++) {
		add(s, epoch, i, true);
		add(s, epoch, i, false);
		add(s, epoch, 1, false);
	}
	good(store_last_interval(s, epoch, &last));
	assert_int_equal(last, 5);
	assert_int_equal(all_samples(s), 5 * 80);
	store_close(s);
	/* Another process that goes on. */
	good(store_open(scratch("retry.db"), STORE_WRITE, &s));
	add(s, epoch, 5, false);
	add(s, epoch, 6, true);
	assert_int_equal(all_samples(s), 6 * 80);
	good(store_check(s));
	store_close(s);
}

static void wrong_intervals_leave_nothing(void **state)
{
	struct store *s = fresh("wrong.db");
	int64_t epoch = begin(s, START);
	struct store_count count = {9, 1, 0, 0, 1};
	struct store_node node = {2, 1, PROFILE_CALL, 0};
	bool added;
	(void)state;
	struct store_interval v = make_interval(1);
	v.counts = &count;
	v.count_count = 1;
	bad(store_add(s, epoch, &v, &added), "refers to what it does not have");
	v = make_interval(1);
	v.nodes = &node;
	v.node_count = 1;
	bad(store_add(s, epoch, &v, &added), "refers to what it does not have");
	v = make_interval(1);
	v.count_count = STORE_INTERVAL_ROWS_MAX + 1;
	bad(store_add(s, epoch, &v, &added), "more than");
	v = make_interval(1);
	bad(store_add(s, epoch + 1, &v, &added), "there is no epoch");
	assert_int_equal(store_trouble(s), STORE_DAMAGED);
	assert_int_equal(all_samples(s), 0);
	add(s, epoch, 1, true);
	assert_int_equal(all_samples(s), 80);
	store_close(s);
}

static void as_a_profile(void **state)
{
	struct profile *p;
	struct store *s = fresh("profile.db");
	(void)state;
	add(s, begin(s, START), 1, true);
	add(s, begin(s, START), 2, true);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, NULL, &p));
	assert_int_equal(p->metric_count, 3);
	assert_string_equal(p->metrics[0].name, "cycles");
	assert_int_equal(p->metrics[0].period, 5000);
	assert_string_equal(p->metrics[1].name, "cycles:all");
	assert_int_equal(p->metrics[1].period, 1000);
	assert_string_equal(p->metrics[2].name, "imiss");
	assert_int_equal(profile_samples(p, 0), 30);
	assert_int_equal(profile_samples(p, 1), 160);
	assert_int_equal(profile_samples(p, 2), 6);
	assert_int_equal(p->process_count, 3);
	assert_true(p->start_time == START / 1000 && p->duration_ns == 120 * UINT64_C(1000000000));
	assert_int_equal(p->lost_count, 1);
	assert_int_equal(p->lost[0].count, 14);
	for (size_t i = 1; i < p->module_count; i++)
		assert_true(p->modules[i].name_count > 0);
	profile_free(p);
	bad(read_profile(s, &(struct read_choice){.from_ms = 0, .to_ms = 5, .user = -1}, NULL, &p),
	    "nothing in that time");
	bad(read_profile(s, &(struct read_choice){ALL_TIME, .process = "nobody"}, NULL, &p),
	    "no such samples");
	store_close(s);
}

static void as_a_profile_without_what_is_spared(void **state)
{
	const struct profile_spare spare = {.threads = true, .pathless = true};
	struct profile *p;
	struct store *s = fresh("spared.db");
	(void)state;
	add(s, begin(s, START), 1, true);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &spare, &p));
	assert_int_equal(p->metric_count, 2);
	assert_string_equal(p->metrics[0].name, "cycles");
	assert_string_equal(p->metrics[1].name, "imiss"); /* no sample of it has a call path */
	assert_int_equal(profile_samples(p, 0), 15);
	assert_int_equal(profile_samples(p, 1), 3);
	for (size_t i = 0; i < p->value_count; i++)
		assert_int_equal(p->values[i].thread, 0);
	profile_free(p);
	store_close(s);
}

/* main calls a function that has nearly all samples, and RARE others, each below three callers of its own. */
enum { RARE = 100, USUAL = 1000000, RARE_DEPTH = 4 };

static void add_rare_paths(struct store *s)
{
	static struct store_node tree[1 + 1 + RARE * RARE_DEPTH];
	static struct store_path rows[1 + RARE];
	struct store_interval v = make_interval(1);
	bool added;
	uint32_t count = 0;
	tree[count++] = (struct store_node){0, 1, PROFILE_CALL, 0x10};
	tree[count++] = (struct store_node){1, 1, PROFILE_EXACT, 0x20};
	rows[0] = (struct store_path){2, 1, 0, USUAL};
	for (uint32_t i = 0; i < RARE; i++) {
		for (uint32_t depth = 0; depth < RARE_DEPTH; depth++) {
			bool leaf = depth == RARE_DEPTH - 1;
			tree[count] = (struct store_node){depth ? count : 1, 1,
							  leaf ? PROFILE_EXACT : PROFILE_CALL,
							  leaf ? 0x30 : 0x100 + i * 16 + depth};
			count++;
		}
		rows[1 + i] = (struct store_path){count, 1 + i % 2, 0, 1};
	}
	v.nodes = tree;
	v.node_count = count;
	v.paths = rows;
	v.path_count = 1 + RARE;
	v.count_count = 0;
	good(store_add(s, begin(s, START), &v, &added));
	assert_true(added);
}

static uint64_t count_at(const struct profile *p, uint64_t address, size_t *places)
{
	uint64_t sum = 0;
	*places = 0;
	for (size_t i = 0; i < p->node_count; i++)
		*places += p->nodes[i].address == address;
	for (size_t i = 0; i < p->value_count; i++)
		if (p->nodes[p->values[i].node].address == address)
			sum += p->values[i].count;
	return sum;
}

static void rare_samples_keep_their_functions(void **state)
{
	const struct profile_spare few = {.rare_above = RARE}, many = {.rare_above = 100000};
	struct profile *p;
	size_t places;
	struct store *s = fresh("rare.db");
	(void)state;
	add_rare_paths(s);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &few, &p));
	assert_true(p->shortened);
	assert_int_equal(profile_samples(p, 0), USUAL + RARE);
	assert_int_equal(p->node_count, 1 + 3); /* the root, main and two functions */
	assert_int_equal(count_at(p, 0x30, &places), RARE);
	assert_int_equal(places, 1);
	profile_free(p);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &many, &p));
	assert_false(p->shortened);
	assert_int_equal(profile_samples(p, 0), USUAL + RARE);
	assert_int_equal(count_at(p, 0x30, &places), RARE);
	assert_int_equal(places, RARE);
	profile_free(p);
	store_close(s);
}

static void full_epochs(void **state)
{
	enum { NODES = STORE_INTERVAL_ROWS_MAX };
	struct store_node *many = calloc(NODES, sizeof *many);
	struct store *s = fresh("full.db");
	int64_t epoch = begin(s, START);
	bool added;
	(void)state;
	for (uint64_t n = 1; n <= STORE_EPOCH_NODES_MAX / NODES + 1; n++) {
		struct store_interval v = make_interval(n);
		for (uint32_t i = 0; i < NODES; i++)
			many[i] = (struct store_node){0, 1, PROFILE_CALL, n << 32 | i};
		v.nodes = many;
		v.node_count = NODES;
		v.path_count = 0;
		struct err *e = store_add(s, epoch, &v, &added);
		if (n <= STORE_EPOCH_NODES_MAX / NODES) {
			good(e);
			continue;
		}
		bad(e, "all that it can have");
		assert_int_equal(store_trouble(s), STORE_EPOCH_FULL);
		epoch = begin(s, START);
		good(store_add(s, epoch, &v, &added));
	}
	good(store_check(s));
	store_close(s);
	free(many);
}

/* No room: an error that says so, nothing half written, and on it goes when there is room again. */
static void no_room(void **state)
{
	struct store *s = fresh("room.db");
	int64_t epoch = begin(s, START);
	struct rlimit old, none;
	bool added;
	(void)state;
	add(s, epoch, 1, true);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = (struct rlimit){4096, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	struct store_interval v = make_interval(2);
	struct err *e = store_add(s, epoch, &v, &added);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	bad(e, "is the disk full?");
	assert_int_equal(store_trouble(s), STORE_FULL);
	assert_int_equal(all_samples(s), 80);
	add(s, epoch, 2, true);
	assert_int_equal(store_trouble(s), STORE_FINE);
	assert_int_equal(all_samples(s), 160);
	good(store_check(s));
	store_close(s);
}

/* A version 2 that we make up: the same mechanism brings version 1 there. */
static void migration(void **state)
{
	static const char second[] = "ALTER TABLE epoch ADD COLUMN colour TEXT NOT NULL DEFAULT "
				     "'red';";
	static const char broken[] = "ALTER TABLE nothing ADD COLUMN x;";
	struct schema_step steps[STORE_VERSION + 1];
	struct store *s = fresh("old.db");
	int64_t number;
	(void)state;
	add(s, begin(s, START), 1, true);
	memcpy(steps, schema_steps, sizeof schema_steps);
	steps[STORE_VERSION].sql = broken;
	bad(schema_make(s, steps, STORE_VERSION + 1), "cannot bring the tables up to date");
	good(sql_number(s, &number, 0, "PRAGMA user_version", ""));
	assert_int_equal(number, STORE_VERSION);
	steps[STORE_VERSION].sql = second;
	good(schema_make(s, steps, STORE_VERSION + 1));
	good(schema_make(s, steps, STORE_VERSION + 1));
	good(sql_number(s, &number, 0, "SELECT count(*) FROM epoch WHERE colour = 'red'", ""));
	assert_int_equal(number, 1);
	assert_int_equal(all_samples(s), 80);
	store_close(s);
	/* For today's program that is a file of the future. */
	bad(store_open(scratch("old.db"), STORE_READ, &s), "written by a newer culprit");
	bad(store_open(scratch("old.db"), STORE_WRITE, &s), "written by a newer culprit");
	/* One of the past is read by nobody, and brought up to date by who writes. */
	s = fresh("past.db");
	good(sql_run(s, "PRAGMA user_version = 0; PRAGMA application_id = 0x434c5044"));
	store_close(s);
	bad(store_open(scratch("past.db"), STORE_READ, &s), "written by an older culprit");
}

static void damaged_files(void **state)
{
	size_t size;
	struct store *s = fresh("whole.db");
	int64_t epoch = begin(s, START);
	(void)state;
	for (uint64_t i = 1; i <= 200; i++)
		add(s, epoch, i, true);
	store_close(s);
	uint8_t *bytes = scratch_read("whole.db", &size);
	bad(store_open(scratch("none.db"), STORE_READ, &s), "there is no");
	bad(store_open(scratch("none.db"), STORE_WRITE, &s), "there is no");
	bad(store_open("/dev/null", STORE_READ, &s), "not a regular file");
	bad(store_open(scratch_format("%s/.", scratch_dir), STORE_READ, &s), "not a regular file");
	scratch_write("text.db", "this is no database at all, but a text\n", 39);
	bad(store_open(scratch("text.db"), STORE_READ, &s), "damaged or no database");
	scratch_write("empty.db", "", 0);
	bad(store_open(scratch("empty.db"), STORE_READ, &s), "not a database of culprit");
	unsigned found = 0, tried = 0;
	for (size_t cut = 512; cut < size; cut += 4096) {
		scratch_write("cut.db", bytes, cut);
		struct err *e = store_open(scratch("cut.db"), STORE_READ, &s);
		if (!e)
			e = store_check(s);
		found += e != NULL;
		tried++;
		err_free(e);
		store_close(s);
	}
	assert_int_equal(found, tried);
	/* A page of zeros in each place: noticed, or in a place that is not used. */
	for (size_t at = 0; at + 4096 <= size; at += 4096) {
		uint8_t saved[4096];
		memcpy(saved, bytes + at, sizeof saved);
		memset(bytes + at, 0, sizeof saved);
		scratch_write("holes.db", bytes, size);
		memcpy(bytes + at, saved, sizeof saved);
		struct err *e = store_open(scratch("holes.db"), STORE_READ, &s);
		if (!e)
			e = store_check(s);
		assert_true(e || !memcmp(bytes + at, (uint8_t[4096]){0}, 4096));
		assert_true(!e || !strchr(err_text(e), '\n'));
		err_free(e);
		store_close(s);
	}
	free(bytes);
}

static struct err *count_rows(void *context, int columns, const char *const *names,
			      const struct read_cell *cells)
{
	int64_t *sum = context;
	assert_true(columns >= 1 && names[0]);
	if (cells)
		*sum += cells[0].integer;
	return NULL;
}

static void sql(void **state)
{
	struct store *s = fresh("sql.db");
	int64_t sum = 0;
	(void)state;
	add(s, begin(s, START), 1, true);
	store_close(s);
	static const struct {
		const char *sql;
		int64_t sum;
	} asked[] = {
		{"SELECT sum(samples) FROM counts WHERE event = 1", 80},
		{"SELECT sum(samples) FROM procedures WHERE procedure = 'memcpy'", 28},
		{"SELECT sum(samples) FROM paths", 15},
		{"SELECT count(*) FROM nodes", 3},
		{"SELECT count(*) FROM packed_nodes(1);", 3},
		{"SELECT sum(samples) FROM losses WHERE kind = 'lost'", 7},
		{"SELECT walked FROM totals WHERE event = 1", 15},
		{"SELECT count(*) FROM epochs, events, images, symbols, processes, spans",
		 1 * 2 * 2 * 3 * 2 * 1},
	};
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
		sum = 0;
		good(store_open(scratch("sql.db"), STORE_READ, &s));
		good(read_sql(s, asked[i].sql, count_rows, &sum));
		assert_int_equal(sum, asked[i].sum);
		store_close(s);
	}
	static const char *const refused[] = {
		"DELETE FROM epoch",
		"PRAGMA user_version = 9",
		"ATTACH '/tmp/x' AS y",
		"CREATE TABLE x (a)",
		"SELECT load_extension('x')",
		"SELECT 1; SELECT 2",
		"SELECT FROM",
		"",
	};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		good(store_open(scratch("sql.db"), STORE_READ, &s));
		bad(read_sql(s, refused[i], count_rows, &sum), "--sql");
		store_close(s);
	}
}

/* What is known to be in the file takes no more memory with each new program. */
static void known_functions(void **state)
{
	enum { AT_ONCE = 50000, TIMES = 6 };
	struct store_symbol *many = calloc(AT_ONCE, sizeof *many);
	struct store *s = fresh("known.db");
	int64_t epoch = begin(s, START), rows;
	bool added;
	(void)state;
	for (uint64_t i = 0; i < TIMES; i++) {
		struct store_interval v = make_interval(i + 1);
		for (uint64_t k = 0; k < AT_ONCE; k++)
			many[k] = (struct store_symbol){1, (i * AT_ONCE + k) * 16, 16, "f"};
		v.symbols = many;
		v.symbol_count = AT_ONCE;
		good(store_add(s, epoch, &v, &added));
	}
	assert_true(s->symbols.room <= 1 << 18);
	good(sql_number(s, &rows, 0, "SELECT count(*) FROM symbol", ""));
	assert_int_equal(rows, AT_ONCE * TIMES);
	store_close(s);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(choices),
		cmocka_unit_test(retries_count_once),
		cmocka_unit_test(wrong_intervals_leave_nothing),
		cmocka_unit_test(as_a_profile),
		cmocka_unit_test(as_a_profile_without_what_is_spared),
		cmocka_unit_test(rare_samples_keep_their_functions),
		cmocka_unit_test(full_epochs),
		cmocka_unit_test(no_room),
		cmocka_unit_test(migration),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(sql),
		cmocka_unit_test(known_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
