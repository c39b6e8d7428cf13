/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "store/store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/err.h"
#include "profile/profile.h"
#include "store/internal.h"
#include "store/read.h"

#define START INT64_C(1794700800000) /* a whole day, in UTC */
#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define ALL_TIME .from_ms = 0, .to_ms = INT64_MAX / 4, .user = -1

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void bad(struct err *e, const char *why)
{
	if (!e || !strstr(err_text(e), why))
		fail_msg("not '%s' but '%s'", why, e ? err_text(e) : "no error");
	assert_null(strchr(err_text(e), '\n'));
	err_free(e);
}

/* One interval: two processes in two images; of each sample at 0x1100 four others have no path. */
static const struct store_image images[] = {
	{PROFILE_FILE, "/bin/app", "0123", 0},
	{PROFILE_FILE, "/lib/libc.so", "abcd", 0},
};
static const struct store_symbol symbols[] = {
	{1, 0x1000, 0x100, "main"},
	{1, 0x1100, 0x100, "solve"},
	{2, 0x500, 0x80, "memcpy"},
};
static const struct store_process processes[] = {
	{10, START, "app", "app --fast", 1000, ""},
	{11, START, "app", "app --slow", 1000, "c0ffee"},
};
static const struct store_node nodes[] = {
	{0, 1, PROFILE_CALL, 0x1010},
	{1, 1, PROFILE_EXACT, 0x1100},
	{1, 2, PROFILE_EXACT, 0x510},
};
static const struct store_count counts[] = {
	{1, 1, 0, 0x1100, 40}, {1, 1, 0, 0x1100, 10}, {2, 2, 0, 0x510, 25},
	{0, 0, 0, 0xdead, 5},  {1, 2, 1, 0x510, 3},
};
static const struct store_path paths[] = {{2, 1, 0, 10}, {3, 2, 0, 5}};
static const struct store_loss losses[] = {{STORE_LOST, "ring full", 7},
					   {STORE_UNKNOWN, "process gone", 5}};

static struct store_interval make_interval(uint64_t number)
{
	return (struct store_interval){
		.number = number,
		.start_ms = START + (int64_t)(number - 1) * MINUTE,
		.end_ms = START + (int64_t)number * MINUTE,
		.images = images,
		.image_count = 2,
		.symbols = symbols,
		.symbol_count = 3,
		.processes = processes,
		.process_count = 2,
		.nodes = nodes,
		.node_count = 3,
		.counts = counts,
		.count_count = 5,
		.paths = paths,
		.path_count = 2,
		.losses = losses,
		.loss_count = 2,
		.cost = {1000000, 20 << 20, 5000, 10},
	};
}

static int64_t begin_as(struct store *s, int64_t start_ms, bool continues)
{
	static const struct store_event events[] = {{"cycles", "cycles", 1000, 5, false},
						    {"imiss", "misses", 100, 0, true}};
	const struct store_epoch epoch = {"host", "6.1", "aarch64", "cpu",  "1", "",
					  2,      5000,  start_ms,  events, 2,   continues};
	int64_t id;
	good(store_begin_epoch(s, &epoch, &id));
	return id;
}

static int64_t begin(struct store *s, int64_t start_ms)
{
	return begin_as(s, start_ms, false);
}

static void add(struct store *s, int64_t epoch, uint64_t number, bool wanted)
{
	struct store_interval v = make_interval(number);
	bool added;
	good(store_add(s, epoch, &v, &added));
	assert_int_equal(added, wanted);
}

static struct store *fresh(const char *name)
{
	struct store *s;
	unlink(scratch(name));
	good(store_open(scratch(name), STORE_CREATE, &s));
	return s;
}

static uint64_t samples_of(struct store *s, const struct read_choice *choice, const char *event)
{
	struct read_samples x;
	uint64_t sum = 0;
	good(read_samples(s, choice, &x));
	for (size_t i = 0; i < x.count_count; i++)
		if (!strcmp(x.events[x.counts[i].event].name, event))
			sum += x.counts[i].count;
	read_samples_free(&x);
	return sum;
}

static uint64_t all_samples(struct store *s)
{
	return samples_of(s, &(struct read_choice){ALL_TIME}, "cycles");
}

static void tidy_all(struct store *s, const struct store_policy *policy, int64_t now_ms,
		     struct store_tidied *tidied)
{
	*tidied = (struct store_tidied){.more = true};
	for (int i = 0; tidied->more; i++) {
		assert_true(i < 10000);
		good(store_tidy(s, policy, now_ms, 1, tidied));
	}
}

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
	assert_int_equal(all_samples(s), 0);
	add(s, epoch, 1, true);
	assert_int_equal(all_samples(s), 80);
	store_close(s);
}

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
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &p));
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
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &p));
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
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &p));
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

static void as_a_profile(void **state)
{
	struct profile *p;
	struct store *s = fresh("profile.db");
	(void)state;
	add(s, begin(s, START), 1, true);
	add(s, begin(s, START), 2, true);
	good(read_profile(s, &(struct read_choice){ALL_TIME}, &p));
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
	bad(read_profile(s, &(struct read_choice){.from_ms = 0, .to_ms = 5, .user = -1}, &p),
	    "nothing in that time");
	bad(read_profile(s, &(struct read_choice){ALL_TIME, .process = "nobody"}, &p),
	    "no such samples");
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
		good(read_profile(s, &(struct read_choice){ALL_TIME}, &p));
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

int main(void)
{
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(choices),
		cmocka_unit_test(retries_count_once),
		cmocka_unit_test(wrong_intervals_leave_nothing),
		cmocka_unit_test(merging),
		cmocka_unit_test(retention),
		cmocka_unit_test(joining_epochs),
		cmocka_unit_test(continuing_epochs),
		cmocka_unit_test(folding),
		cmocka_unit_test(made_code),
		cmocka_unit_test(as_a_profile),
		cmocka_unit_test(events_in_turns),
		cmocka_unit_test(full_epochs),
		cmocka_unit_test(no_room),
		cmocka_unit_test(migration),
		cmocka_unit_test(damaged_files),
		cmocka_unit_test(sql),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
