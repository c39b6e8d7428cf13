/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "made_module.h"

#include "view/pack.h"
#include "view/page.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "analyze/attribution.h"
#include "analyze/modules.h"
#include "analyze/scopes.h"
#include "analyze/tree.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

#define NAMES 6
#define COLUMN_MAX 128

/* Functions of a module made at run time: number i is at 0x1000 + 0x100 * i. */
static const char *const function_names[NAMES] = {
	"main", "solve(int)",     "operator<<<script>alert(1)</script>", "a\"b\\c\n\x1b[31m",
	"wait", "bad \xff utf-8",
};

static void good(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static struct profile *new_profile(void)
{
	struct profile_name names[NAMES];
	struct profile *p;
	uint32_t index;
	good(profile_new(&p));
	for (unsigned i = 0; i < NAMES; i++)
		names[i] = (struct profile_name){0x1000 + 0x100u * i, 0x100, function_names[i]};
	good(profile_add_process(
		p,
		&(struct profile_process){
			.pid = 10, .name = "app", .command = "app", .rank = -1, .status = 0},
		&index));
	add_made_module(p, names, NAMES);
	good(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &index));
	good(profile_add_metric(p, &(struct profile_metric){"faults", "faults", 1, false, {0, 0}},
				&index));
	for (int t = 0; t < 2; t++)
		good(profile_add_thread(
			p, &(struct profile_thread){.tid = 10 + t, .name = t ? "worker" : "app"},
			&index));
	p->complete = true;
	return p;
}

/* A path of digits, outermost first: the numbers of its functions. '!' first: it is partial. */
static void count(struct profile *p, const char *path, unsigned thread, unsigned metric, uint64_t n)
{
	uint32_t node = 0;
	if (*path == '!') {
		good(profile_child(p, 0, PROFILE_PARTIAL, 0, 3, &node));
		path++;
	}
	for (; *path; path++) {
		uint64_t start = 0x1000 + 0x100u * (unsigned)(*path - '0');
		bool call = path[1] != 0;
		good(profile_child(p, node, call ? PROFILE_CALL : PROFILE_EXACT, 1,
				   start + (call ? 4 + (uint64_t)(path[1] - '0') : 0x80), &node));
	}
	good(profile_count(p, node, thread, metric, n));
}

/* ---- reading what was packed ---- */

struct column {
	char name[32];
	uint64_t count, size, start;
};

struct packed {
	struct buf bytes;
	char *header;
	struct column columns[COLUMN_MAX];
	size_t column_count;
};

static void read_columns(struct packed *k)
{
	const unsigned char *b = (const unsigned char *)k->bytes.data;
	size_t size = b[0] | b[1] << 8 | b[2] << 16 | (size_t)b[3] << 24, start = size + 4;
	assert_in_range(size, 2, k->bytes.size - 4);
	k->header = strndup(k->bytes.data + 4, size);
	const char *at = strstr(k->header, "\"columns\":[");
	assert_non_null(at);
	for (at += strlen("\"columns\":["); *at == '[' || *at == ','; k->column_count++) {
		struct column *c = &k->columns[k->column_count];
		unsigned long long n, bytes;
		int read = 0;
		assert_in_range(k->column_count, 0, COLUMN_MAX - 1);
		at += *at == ',';
		assert_int_equal(
			sscanf(at, "[\"%31[^\"]\",%llu,%llu]%n", c->name, &n, &bytes, &read), 3);
		c->count = n;
		c->size = bytes;
		c->start = start;
		start += bytes;
		at += read;
	}
	assert_int_equal(start, k->bytes.size);
}

/* The numbers of a column, malloc'ed. */
static uint64_t *column(const struct packed *k, const char *name, size_t *count_out)
{
	const struct column *c = NULL;
	for (size_t i = 0; i < k->column_count; i++)
		if (!strcmp(k->columns[i].name, name))
			c = &k->columns[i];
	assert_non_null(c);
	const unsigned char *at = (const unsigned char *)k->bytes.data + c->start,
			    *end = at + c->size;
	uint64_t *values = calloc(c->count + 1, sizeof *values);
	for (uint64_t i = 0; i < c->count; i++) {
		unsigned shift = 0;
		do {
			assert_true(at < end);
			values[i] |= (uint64_t)(*at & 0x7f) << shift;
			shift += 7;
		} while (*at++ & 0x80);
	}
	assert_ptr_equal(at, end);
	*count_out = c->count;
	return values;
}

static void open_input(struct profile *p, struct pack_input *in, struct attribution *a)
{
	struct modules *modules;
	good(profile_settle(p));
	good(modules_open(p, false, &modules));
	good(attribution_make(p, modules, &(struct attribution_options){.by = BY_FUNCTION}, a));
	*in = (struct pack_input){
		.profile = p,
		.modules = modules,
		.attribution = a,
		.notes = "one\ntwo\n",
		.title = "x.prof",
		.version = "1",
	};
}

static void close_input(struct pack_input *in)
{
	attribution_free(in->attribution);
	modules_close(in->modules);
}

static void packed_free(struct packed *k)
{
	buf_free(&k->bytes);
	free(k->header);
}

/* ---- the tests ---- */

static struct profile *example(void)
{
	struct profile *p = new_profile();
	count(p, "01", 0, 0, 5);
	count(p, "012", 0, 0, 300);
	count(p, "012", 1, 0, 40000);
	count(p, "013", 1, 1, 7);
	count(p, "0111", 0, 0, 11);
	count(p, "04", 1, 0, 1ull << 40);
	count(p, "!5", 0, 0, 2);
	return p;
}

/* The packed tree, put together again, is that of the report: every node's samples by metric. */
static void packs_the_tree(void **state)
{
	struct profile *p = example();
	struct attribution a;
	struct pack_input in;
	struct packed k = {0};
	struct tree *t;
	size_t nodes, rows, n;
	(void)state;
	open_input(p, &in, &a);
	good(pack_make(&in, &k.bytes));
	read_columns(&k);
	good(view_make(&a, &(struct view_options){.view = VIEW_TREE}, &t));

	uint64_t *up = column(&k, "node.up", &nodes), *scope = column(&k, "node.scope", &n);
	uint64_t *row_node = column(&k, "row.node", &rows);
	uint64_t *counts[] = {column(&k, "row.0", &n), column(&k, "row.1", &n)};
	assert_int_equal(n, rows);
	assert_int_equal(nodes, t->count);
	uint32_t *at = calloc(nodes, sizeof *at), *path = calloc(nodes + 1, sizeof *path);
	uint64_t *self = calloc(nodes * 2, sizeof *self);
	uint32_t depth = 0;
	for (size_t i = 1; i < nodes; i++) { /* the same path of scopes in the report's tree */
		assert_in_range(up[i], 0, depth);
		depth = depth + 1 - (uint32_t)up[i];
		uint32_t child = t->nodes[path[depth - 1]].child;
		while (child != TREE_NONE && t->nodes[child].scope != scope[i])
			child = t->nodes[child].next;
		assert_int_not_equal(child, TREE_NONE);
		path[depth] = at[i] = child;
	}
	for (size_t i = 0, node = 0; i < rows; i++) {
		node += row_node[i];
		assert_in_range(node, 0, nodes - 1);
		for (size_t m = 0; m < 2; m++)
			self[at[node] * 2 + m] += counts[m][i];
	}
	assert_memory_equal(self, t->self, nodes * 2 * sizeof *self);

	free(up), free(scope), free(row_node), free(counts[0]), free(counts[1]);
	free(at), free(path), free(self);
	tree_free(t);
	packed_free(&k);
	close_input(&in);
	profile_free(p);
}

static uint64_t sum_of_thread(const struct packed *k, uint64_t thread, const char *name)
{
	size_t n;
	uint64_t sum = 0, *threads = column(k, "row.thread", &n), *values = column(k, name, &n);
	for (size_t i = 0; i < n; i++)
		sum += threads[i] == thread ? values[i] : 0;
	free(threads);
	free(values);
	return sum;
}

static void keeps_threads_apart(void **state)
{
	struct profile *p = example();
	struct attribution a;
	struct pack_input in;
	struct packed k = {0};
	(void)state;
	open_input(p, &in, &a);
	good(pack_make(&in, &k.bytes));
	read_columns(&k);
	assert_int_equal(sum_of_thread(&k, 0, "row.0"), 5 + 300 + 11 + 2);
	assert_int_equal(sum_of_thread(&k, 1, "row.0"), 40000 + (1ull << 40));
	assert_int_equal(sum_of_thread(&k, 1, "row.1"), 7);
	assert_non_null(strstr(k.header, "\"notes\":[\"one\",\"two\"]"));
	assert_non_null(strstr(k.header, "operator<<<script>alert(1)</script>"));
	assert_non_null(strstr(k.header, "\"hasSources\":false"));
	packed_free(&k);
	close_input(&in);
	profile_free(p);
}

static void packs_a_profile_without_samples(void **state)
{
	struct profile *p = new_profile();
	struct attribution a;
	struct pack_input in;
	struct packed k = {0};
	size_t n;
	(void)state;
	open_input(p, &in, &a);
	good(pack_make(&in, &k.bytes));
	read_columns(&k);
	free(column(&k, "node.up", &n));
	assert_int_equal(n, 1);
	free(column(&k, "row.node", &n));
	assert_int_equal(n, 0);
	packed_free(&k);
	close_input(&in);
	profile_free(p);
}

/* Spans lead to the rows of their contexts; one whose values are missing is left out and counted. */
static void packs_the_time_line(void **state)
{
	struct profile *p = example();
	struct attribution a;
	struct pack_input in;
	struct packed k = {0};
	size_t n, rows;
	uint64_t sums[16] = {0}, row = 0, end = 0;
	(void)state;
	p->timed = true;
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		if (v->metric == 0 && v->count < 1000)
			for (uint64_t s = 0; s < v->count; s++)
				good(profile_time(p, v->node, v->thread, 0,
						  (s + 1000 * i + 1) * 1000000, 1));
	}
	good(profile_time(p, 1, 1, 0, 1000000, 1)); /* nothing was counted there */
	open_input(p, &in, &a);
	good(pack_make(&in, &k.bytes));
	read_columns(&k);
	uint64_t *counts = column(&k, "row.0", &rows), *threads = column(&k, "row.thread", &n);
	uint64_t *distances = column(&k, "span.row", &n), *starts = column(&k, "span.start", &n);
	uint64_t *durations = column(&k, "span.duration", &n),
		 *samples = column(&k, "span.samples", &n);
	assert_int_equal(n, 4);
	assert_in_range(rows, 4, 16);
	for (size_t i = 0; i < n; i++) {
		row = distances[i] % 2 ? row - (distances[i] + 1) / 2 : row + distances[i] / 2;
		assert_in_range(row, 0, rows - 1);
		assert_int_equal(threads[row], 0);
		sums[row] += samples[i];
		assert_int_equal(durations[i], samples[i] * 1000);
		end += starts[i] + durations[i];
	}
	assert_int_equal(end % 1000, 0);
	for (size_t i = 0; i < rows; i++)
		if (threads[i] == 0)
			assert_int_equal(sums[i], counts[i]);
	assert_non_null(strstr(k.header, "\"timeline\":{\"recorded\":true,\"coarse\":0,"
					 "\"untimed\":1,"));
	free(counts), free(threads), free(distances), free(starts), free(durations), free(samples);
	packed_free(&k);
	close_input(&in);
	profile_free(p);
}

/* ---- the page ---- */

static int digit_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;
	assert_non_null(at);
	return (int)(at - digits);
}

static void decode_base64(const char *text, size_t size, struct buf *out)
{
	assert_int_equal(size % 4, 0);
	for (size_t i = 0; i < size; i += 4) {
		unsigned word = 0, pad = (text[i + 2] == '=') + (text[i + 3] == '=');
		char bytes[3];
		for (size_t j = 0; j < 4; j++)
			word = word << 6 | (unsigned)(j < 4 - pad ? digit_of(text[i + j]) : 0);
		for (int j = 0; j < 3; j++)
			bytes[j] = (char)(word >> (16 - 8 * j));
		buf_append(out, bytes, 3 - pad);
	}
}

/* The data in the page is what was packed, and nothing of a recording stands in it as text. */
static void page_holds_the_data(void **state)
{
	struct profile *p = example();
	struct attribution a;
	struct pack_input in;
	struct buf plain = {0}, page = {0}, packed = {0};
	z_stream z = {0};
	(void)state;
	open_input(p, &in, &a);
	good(pack_make(&in, &plain));
	good(page_make(&in, &page));
	const char *start = strstr(page.data, "id=\"data\">");
	assert_non_null(start);
	start += strlen("id=\"data\">");
	decode_base64(start, strcspn(start, "<"), &packed);
	char *back = calloc(plain.size + 1, 1);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (unsigned char *)packed.data;
	z.avail_in = (unsigned)packed.size;
	z.next_out = (unsigned char *)back;
	z.avail_out = (unsigned)plain.size + 1;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, plain.size);
	assert_memory_equal(back, plain.data, plain.size);
	inflateEnd(&z);
	assert_null(strstr(page.data, "alert(1)"));
	assert_null(strstr(page.data, "@DATA@"));
	free(back);
	buf_free(&plain);
	buf_free(&page);
	buf_free(&packed);
	close_input(&in);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packs_the_tree),
		cmocka_unit_test(keeps_threads_apart),
		cmocka_unit_test(packs_a_profile_without_samples),
		cmocka_unit_test(packs_the_time_line),
		cmocka_unit_test(page_holds_the_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
