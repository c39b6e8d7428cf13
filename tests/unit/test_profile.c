/* SPDX-License-Identifier: Apache-2.0 */
/* A profile in memory: counting, sums, names, merging. */
#include "profiles.h"

static void strings_are_shared(void **state)
{
	struct profile *p = fresh();
	char long_text[40000], text[32];
	const char *kept[5000];
	(void)state;
	assert_string_equal(profile_string(p, NULL), "");
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "text %d", i);
		kept[i] = profile_string(p, text);
	}
	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	assert_string_equal(profile_string(p, long_text), long_text);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "text %d", i);
		assert_string_equal(kept[i], text);
		assert_ptr_equal(profile_string(p, text), kept[i]);
	}
	profile_free(p);
}

static void counts_in_any_order(void **state)
{
	enum { NODES = 300, THREADS = 3000, METRICS = 2 };
	uint64_t *expected = calloc((size_t)NODES * THREADS * METRICS, sizeof *expected);
	struct profile *p = fresh();
	uint32_t index;
	size_t kinds = 0;
	(void)state;
	random_state = SEED;
	ok(profile_add_process(p, &(struct profile_process){0}, &index));
	for (int i = 0; i < THREADS; i++)
		ok(profile_add_thread(p, &(struct profile_thread){0}, &index));
	for (int i = 0; i < METRICS; i++)
		ok(profile_add_metric(p, &(struct profile_metric){0}, &index));
	for (int i = 1; i < NODES; i++)
		ok(profile_child(p, 0, PROFILE_CALL, 0, (uint64_t)i, &index));
	for (int i = 0; i < 200000; i++) {
		uint32_t n = below(NODES), t = below(10) ? below(20) : below(THREADS);
		uint32_t m = below(METRICS);
		uint64_t *e = &expected[((size_t)n * THREADS + t) * METRICS + m];
		kinds += *e == 0;
		*e += i & 7;
		kinds -= *e == 0;
		ok(profile_count(p, n, t, m, i & 7));
		if (below(20000) == 0)
			ok(profile_settle(p));
	}
	ok(profile_settle(p));
	assert_sane(p);
	assert_int_equal(p->value_count, kinds);
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i];
		assert_int_equal(
			v->count,
			expected[((size_t)v->node * THREADS + v->thread) * METRICS + v->metric]);
	}
	free(expected);
	profile_free(p);
}

static void children_are_found_again(void **state)
{
	struct profile *p = large_profile(30000, 1);
	uint32_t node;
	(void)state;
	for (uint32_t i = 1; i < p->node_count; i++) {
		const struct profile_node n = p->nodes[i];
		ok(profile_child(p, n.parent, n.kind, n.module, n.address, &node));
		assert_int_equal(node, i);
	}
	fails(profile_child(p, 30001, PROFILE_CALL, 0, 0, &node), "no such context");
	fails(profile_child(p, 0, PROFILE_CALL, 99, 0, &node), "no such context");
	fails(profile_child(p, 1, PROFILE_PARTIAL, 0, 0, &node), "no such context");
	fails(profile_count(p, 1, 2, 0, 1), "no such value");
	profile_free(p);
}

static void sums(void **state)
{
	struct profile *p = small_profile();
	(void)state;
	assert_int_equal(profile_samples(p, 0), 125);
	assert_int_equal(profile_samples(p, 1), 3);
	assert_int_equal(profile_samples(p, 2), 0);
	assert_int_equal(profile_partial(p, 0, 3), 5);
	assert_int_equal(profile_partial(p, 0, 2), 0);
	assert_int_equal(profile_partial(p, 1, 3), 0);
	ok(profile_count(p, 2, 0, 0, UINT64_MAX));
	assert_true(profile_samples(p, 0) == UINT64_MAX);
	profile_free(p);
}

static const void *const names_context = &names_context;

static void merges_equal_parts(void **state)
{
	struct profile *a = small_profile(), *b = small_profile(), *into = fresh();
	uint32_t index;
	(void)state;
	ok(profile_merge(into, a));
	assert_same(into, a);
	b->note = profile_string(b, "another note");
	b->metrics[0].user_only = true;
	b->metrics[1].period = 2;
	ok(profile_child(b, 0, PROFILE_CALL, 1, 0x5555, &index));
	ok(profile_count(b, index, 0, 1, 11));
	ok(profile_merge(into, b));
	assert_sane(into);
	assert_int_equal(into->process_count, 4);
	assert_int_equal(into->thread_count, 4);
	assert_int_equal(into->threads[3].process, 3);
	assert_int_equal(into->module_count, 4); /* the file once, each JIT on its own */
	assert_int_equal(into->modules[3].process, 3);
	assert_int_equal(into->modules[3].name_count, 2);
	assert_int_equal(into->metric_count, 3); /* the period differs */
	assert_true(into->metrics[0].user_only);
	assert_int_equal(profile_samples(into, 0), 250);
	assert_int_equal(profile_samples(into, 1), 3);
	assert_int_equal(profile_samples(into, 2), 14);
	assert_int_equal(profile_partial(into, 0, 3), 10);
	/* the leaf in the JIT module and the new one are new, all others are common */
	assert_int_equal(into->node_count, 7);
	assert_int_equal(into->lost_count, 1);
	assert_int_equal(into->lost[0].count, 8);
	assert_string_equal(into->note, "another note");
	assert_true(into->complete);
	a->complete = false;
	ok(profile_merge(into, a));
	assert_false(into->complete);
	fails(profile_merge(into, into), "with itself");
	profile_free(a);
	profile_free(b);
	profile_free(into);
}

static const char *name_of_page(const void *context, uint64_t address, uint64_t *start,
				uint64_t *size)
{
	static const char *const names[] = {NULL, "one", "two", "three"};
	assert_ptr_equal(context, names_context);
	*start = address & ~0xfffull;
	*size = 0x1000;
	return names[address >> 12 & 3];
}

/* Of the kernel and of files that are gone, the profile itself has the names. */
static struct profile *named_profile(uint64_t first, uint64_t second)
{
	struct profile *p = fresh();
	uint32_t module, node;
	ok(profile_add_module(
		p, &(struct profile_module){.kind = PROFILE_KERNEL, .path = "[kernel]"}, &module));
	ok(profile_child(p, 0, PROFILE_CALL, module, first, &node));
	ok(profile_child(p, node, PROFILE_EXACT, module, second, &node));
	profile_name_module(p, module, name_of_page, names_context);
	return p;
}

static void names_are_merged(void **state)
{
	/* The first is a return address: the call is in the page before. */
	struct profile *a = named_profile(0x2000, 0x3010), *b = named_profile(0x2abc, 0x1004);
	const struct profile_module *m = &a->modules[1];

	(void)state;
	assert_int_equal(m->name_count, 2);
	assert_string_equal(m->names[0].name, "one");
	assert_string_equal(m->names[1].name, "three");
	ok(profile_merge(a, b));
	assert_int_equal(a->module_count, 2);
	m = &a->modules[1];
	assert_int_equal(m->name_count, 3); /* "one" once */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(m->names[i].start, (i + 1) << 12);
	assert_string_equal(m->names[1].name, "two");
	profile_name_module(a, 1, name_of_page, names_context); /* the same again */
	assert_int_equal(a->modules[1].name_count, 3);
	profile_free(a);
	profile_free(b);
}

static void merging_keeps_all_samples(void **state)
{
	(void)state;
	random_state = SEED + 1;
	for (int i = 0; i < 50; i++) {
		struct profile *a = random_profile(30), *b = random_profile(30), *into = fresh(),
			       *q;
		struct buf bytes;
		ok(profile_merge(into, a));
		assert_int_equal(into->value_count, a->value_count);
		ok(profile_merge(into, b));
		assert_sane(into);
		assert_int_equal(into->value_count, a->value_count + b->value_count);
		assert_int_equal(into->thread_count, a->thread_count + b->thread_count);
		assert_true(into->node_count < a->node_count + b->node_count);
		bytes = pack(into);
		q = parse_whole(bytes.data, bytes.size);
		assert_same(into, q);
		profile_free(q);
		buf_free(&bytes);
		profile_free(a);
		profile_free(b);
		profile_free(into);
	}
}

static void values_are_moved(void **state)
{
	struct profile *p = fresh();
	uint32_t index, a, b, to[3] = {0};
	(void)state;
	ok(profile_add_process(p, &(struct profile_process){0}, &index));
	ok(profile_add_thread(p, &(struct profile_thread){0}, &index));
	for (int i = 0; i < 2; i++)
		ok(profile_add_metric(p, &(struct profile_metric){0}, &index));
	ok(profile_child(p, 0, PROFILE_CALL, 0, 1, &a));
	ok(profile_child(p, 0, PROFILE_CALL, 0, 2, &b));
	ok(profile_count(p, a, 0, 0, 3));
	ok(profile_count(p, a, 0, 1, 4));
	ok(profile_count(p, b, 0, 1, 5));
	ok(profile_child(p, 0, PROFILE_EXACT, 0, 1, &index));
	to[a] = to[b] = index;
	ok(profile_move(p, 1, to, 3));
	assert_sane(p);
	assert_int_equal(p->value_count, 2);
	assert_int_equal(p->values[0].node, a);
	assert_int_equal(p->values[0].count, 3);
	assert_int_equal(p->values[1].node, index);
	assert_int_equal(p->values[1].metric, 1);
	assert_int_equal(p->values[1].count, 9);
	profile_free(p);
}

static void reasons_are_bounded(void **state)
{
	struct profile *p = fresh();
	char text[32];
	(void)state;
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof text, "reason %d", i);
		ok(profile_lose(p, text, 1));
	}
	assert_int_equal(p->lost_count, PROFILE_LOST_MAX);
	assert_string_equal(p->lost[PROFILE_LOST_MAX - 1].reason, "other");
	assert_int_equal(p->lost[PROFILE_LOST_MAX - 1].count, 3000 - PROFILE_LOST_MAX + 1);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_shared),        cmocka_unit_test(counts_in_any_order),
		cmocka_unit_test(children_are_found_again),  cmocka_unit_test(sums),
		cmocka_unit_test(merges_equal_parts),        cmocka_unit_test(names_are_merged),
		cmocka_unit_test(merging_keeps_all_samples), cmocka_unit_test(reasons_are_bounded),
		cmocka_unit_test(values_are_moved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
