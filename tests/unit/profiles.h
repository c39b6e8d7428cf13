/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Profiles made at random, small ones and large ones, and what tests ask of them. */
#include "scratch.h"

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#define SEED 0x2545f4914f6cdd1du

static uint64_t random_state;

static inline uint64_t roll(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x9e3779b97f4a7c15u >> 11;
}

static inline uint32_t below(uint64_t limit)
{
	return (uint32_t)(roll() % limit);
}

/* Numbers of every length, the largest one too. */
static inline uint64_t any_number(void)
{
	return roll() % 20 == 0 ? UINT64_MAX : (roll() << 11 ^ roll()) >> below(64);
}

static inline const char *any_text(void)
{
	static char text[64];
	size_t size = below(sizeof text - 1);
	if (roll() % 3 == 0)
		size = 0;
	for (size_t i = 0; i < size; i++)
		text[i] = (char)(1 + below(255));
	text[size] = 0;
	return text;
}

static inline void ok(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static inline void fails(struct err *e, const char *part)
{
	assert_non_null(e);
	if (!strstr(err_text(e), part))
		fail_msg("'%s' is not in: %s", part, err_text(e));
	err_free(e);
}

static inline struct profile *fresh(void)
{
	struct profile *p;
	ok(profile_new(&p));
	assert_int_equal(p->node_count, 1);
	assert_int_equal(p->nodes[0].kind, PROFILE_ROOT);
	assert_int_equal(p->module_count, 1);
	assert_int_equal(p->modules[0].kind, PROFILE_NONE);
	return p;
}

static inline void add_random_tables(struct profile *p, unsigned most)
{
	uint32_t index;
	for (unsigned i = below(most); i; i--)
		ok(profile_add_process(
			p,
			&(struct profile_process){(int32_t)any_number(), (int32_t)any_number(),
						  any_text(), "cmd --with 'args'",
						  (int32_t)below(3) - 1, any_number(), any_number(),
						  (int32_t)any_number()},
			&index));
	for (unsigned i = p->process_count ? below(most) : 0; i; i--)
		ok(profile_add_thread(
			p,
			&(struct profile_thread){below(p->process_count), (int32_t)any_number(),
						 any_text(), any_number(), any_number(),
						 any_number(), any_number(), any_number(),
						 any_number(), any_number()},
			&index));
	for (unsigned i = below(4); i; i--)
		ok(profile_add_metric(p,
				      &(struct profile_metric){any_text(),
							       "ns",
							       any_number(),
							       roll() & 1,
							       {any_number(), any_number()}},
				      &index));
	for (unsigned i = below(most); i; i--) {
		struct profile_name names[] = {{any_number(), any_number(), "f(int)"},
					       {any_number(), any_number(), ""},
					       {0, 1, "third"}};
		struct profile_module m = {.kind = (uint8_t)below(5), .path = any_text()};
		m.build_id = "0123abcd";
		m.problem = roll() & 1 ? "no recipe" : "";
		if (m.kind == PROFILE_JIT && !p->process_count)
			m.kind = PROFILE_FILE;
		if (m.kind == PROFILE_JIT) {
			m.process = below(p->process_count);
			m.names = names;
			m.name_count = below(4);
		}
		ok(profile_add_module(p, &m, &index));
	}
}

static inline struct profile *random_profile(unsigned most)
{
	struct profile *p = fresh();
	uint32_t node;
	p->command = profile_string(p, any_text());
	p->directory = profile_string(p, any_text());
	p->host = profile_string(p, "host");
	p->kernel = profile_string(p, "6.1");
	p->machine = profile_string(p, "aarch64");
	p->version = profile_string(p, "0.1");
	p->note = profile_string(p, any_text());
	p->start_time = any_number();
	p->duration_ns = any_number();
	p->hz = any_number();
	p->delivery_ns = any_number();
	p->unwind = (uint32_t)any_number();
	p->complete = roll() & 1;
	add_random_tables(p, most);
	for (unsigned i = below(most * 8); i; i--)
		ok(profile_child(p, below(p->node_count), PROFILE_CALL + below(2),
				 below(p->module_count), any_number(), &node));
	ok(profile_child(p, 0, PROFILE_PARTIAL, 0, 3, &node));
	for (unsigned i = p->thread_count && p->metric_count ? below(most * 16) : 0; i; i--)
		ok(profile_count(p, below(p->node_count), below(p->thread_count),
				 below(p->metric_count), any_number()));
	for (unsigned i = p->thread_count && p->metric_count ? below(most * 4) : 0; i; i--) {
		uint64_t samples = any_number();
		ok(profile_wake(
			p, &(struct profile_wake){.node = below(p->node_count),
						  .thread = below(p->thread_count),
						  .metric = below(p->metric_count),
						  .waker = below(PROFILE_WAKERS + p->thread_count),
						  .count = samples,
						  .waited = samples / (1 + below(4))}));
	}
	for (unsigned i = below(5); i; i--)
		ok(profile_lose(p, any_text(), any_number()));
	ok(profile_settle(p));
	return p;
}

#define SAME_TEXT(member)                      \
	if (strcmp(a->member, b->member) != 0) \
	return #member
#define SAME(member)                \
	if (a->member != b->member) \
	return #member

static inline const char *differ_module(const struct profile_module *a,
					const struct profile_module *b)
{
	SAME(kind);
	SAME_TEXT(path);
	SAME_TEXT(build_id);
	SAME(process);
	SAME_TEXT(problem);
	SAME(name_count);
	for (size_t i = 0; i < a->name_count; i++) {
		SAME(names[i].start);
		SAME(names[i].size);
		SAME_TEXT(names[i].name);
	}
	return NULL;
}

static inline const char *differ_process(const struct profile_process *a,
					 const struct profile_process *b)
{
	SAME(pid);
	SAME(parent);
	SAME_TEXT(name);
	SAME_TEXT(command);
	SAME(rank);
	SAME(start_ns);
	SAME(end_ns);
	SAME(status);
	return NULL;
}

static inline const char *differ_thread(const struct profile_thread *a,
					const struct profile_thread *b)
{
	SAME(process);
	SAME(tid);
	SAME_TEXT(name);
	SAME(start_ns);
	SAME(end_ns);
	SAME(cpu_ns);
	SAME(handler_ns);
	SAME(handled);
	SAME(blocked_ns);
	SAME(queued_ns);
	return NULL;
}

static inline const char *differ_info(const struct profile *a, const struct profile *b)
{
	SAME_TEXT(command);
	SAME_TEXT(directory);
	SAME_TEXT(host);
	SAME_TEXT(kernel);
	SAME_TEXT(machine);
	SAME_TEXT(version);
	SAME_TEXT(note);
	SAME(start_time);
	SAME(duration_ns);
	SAME(hz);
	SAME(delivery_ns);
	SAME(unwind);
	SAME(complete);
	SAME(module_count);
	SAME(metric_count);
	SAME(process_count);
	SAME(thread_count);
	SAME(node_count);
	SAME(value_count);
	SAME(lost_count);
	return NULL;
}

static inline const char *differ_tree(const struct profile *a, const struct profile *b)
{
	for (size_t i = 0; i < a->node_count; i++) {
		SAME(nodes[i].parent);
		SAME(nodes[i].module);
		SAME(nodes[i].address);
		SAME(nodes[i].kind);
	}
	for (size_t i = 0; i < a->value_count; i++) {
		SAME(values[i].node);
		SAME(values[i].thread);
		SAME(values[i].metric);
		SAME(values[i].count);
	}
	SAME(wake_count);
	for (size_t i = 0; i < a->wake_count; i++) {
		SAME(wakes[i].node);
		SAME(wakes[i].thread);
		SAME(wakes[i].metric);
		SAME(wakes[i].waker);
		SAME(wakes[i].count);
		SAME(wakes[i].waited);
	}
	for (size_t i = 0; i < a->lost_count; i++) {
		SAME_TEXT(lost[i].reason);
		SAME(lost[i].count);
	}
	return NULL;
}

/* What the first difference is in, or NULL. */
static inline const char *differ(const struct profile *a, const struct profile *b)
{
	const char *where = differ_info(a, b);
	for (size_t i = 0; !where && i < a->module_count; i++)
		where = differ_module(&a->modules[i], &b->modules[i]);
	for (size_t i = 0; !where && i < a->process_count; i++)
		where = differ_process(&a->processes[i], &b->processes[i]);
	for (size_t i = 0; !where && i < a->thread_count; i++)
		where = differ_thread(&a->threads[i], &b->threads[i]);
	for (size_t i = 0; !where && i < a->metric_count; i++) {
		SAME_TEXT(metrics[i].name);
		SAME_TEXT(metrics[i].unit);
		SAME(metrics[i].period);
		SAME(metrics[i].user_only);
		SAME(metrics[i].coverage.enabled_ns);
		SAME(metrics[i].coverage.running_ns);
	}
	return where ? where : differ_tree(a, b);
}

static inline void assert_same(const struct profile *a, const struct profile *b)
{
	const char *where = differ(a, b);
	if (where)
		fail_msg("profiles differ: %s", where);
}

static inline struct buf pack(const struct profile *p)
{
	struct buf bytes = {0};
	ok(profile_pack(p, &bytes));
	return bytes;
}

/* Sane whatever it was made of: as profile.h promises. */
static inline void assert_sane(const struct profile *p)
{
	assert_true(p->node_count >= 1 && p->module_count >= 1);
	for (size_t i = 1; i < p->node_count; i++) {
		assert_true(p->nodes[i].parent < i);
		assert_true(p->nodes[i].module < p->module_count);
		assert_true(p->nodes[i].kind != PROFILE_ROOT);
	}
	for (size_t i = 0; i < p->thread_count; i++)
		assert_true(p->threads[i].process < p->process_count);
	for (size_t i = 0; i < p->module_count; i++)
		assert_true(p->modules[i].kind != PROFILE_JIT ||
			    p->modules[i].process < p->process_count);
	for (size_t i = 0; i < p->wake_count; i++) {
		const struct profile_wake *w = &p->wakes[i];
		assert_true(w->node < p->node_count && w->thread < p->thread_count &&
			    w->metric < p->metric_count && w->count && w->waited <= w->count);
		assert_true(w->waker < PROFILE_WAKERS + p->thread_count);
	}
	for (size_t i = 0; i < p->value_count; i++) {
		const struct profile_value *v = &p->values[i], *w = v - 1;
		assert_true(v->node < p->node_count && v->thread < p->thread_count &&
			    v->metric < p->metric_count);
		if (i)
			assert_true(w->node < v->node ||
				    (w->node == v->node &&
				     (w->thread < v->thread ||
				      (w->thread == v->thread && w->metric < v->metric))));
	}
}

static inline struct profile *parse_damaged(const void *bytes, size_t size, const char *part)
{
	struct profile *p;
	char *damage;
	ok(profile_parse(bytes, size, &p, &damage));
	assert_sane(p);
	if (!damage || !strstr(damage, part))
		fail_msg("'%s' is not in: %s", part, damage ? damage : "(no damage)");
	free(damage);
	return p;
}

static inline struct profile *parse_whole(const void *bytes, size_t size)
{
	struct profile *p;
	char *damage;
	ok(profile_parse(bytes, size, &p, &damage));
	if (damage)
		fail_msg("damaged: %s", damage);
	assert_sane(p);
	return p;
}

/* One of each table, and sums that tests know. */
static inline struct profile *small_profile(void)
{
	struct profile *p = fresh();
	struct profile_name names[] = {{0x2000, 16, "second"}, {0x1000, 32, "first"}};
	struct profile_module file = {.kind = PROFILE_FILE, .path = "/bin/app", .build_id = "ab"};
	struct profile_module jit = {.kind = PROFILE_JIT, .path = "[anon]", .process = 1};
	uint32_t i, main_node, leaf, late;
	p->command = profile_string(p, "app --fast");
	p->complete = true;
	ok(profile_add_process(p, &(struct profile_process){.pid = 7, .name = "app"}, &i));
	ok(profile_add_process(p, &(struct profile_process){.pid = 8, .name = "child"}, &i));
	ok(profile_add_thread(p, &(struct profile_thread){.tid = 7, .name = "main"}, &i));
	ok(profile_add_thread(p, &(struct profile_thread){.process = 1, .tid = 9, .name = "worker"},
			      &i));
	ok(profile_add_metric(
		p, &(struct profile_metric){"cpu-clock", "ns", 1000000, false, {0, 0}}, &i));
	ok(profile_add_metric(p, &(struct profile_metric){"page-faults", "faults", 1, true, {0, 0}},
			      &i));
	ok(profile_add_module(p, &file, &i));
	jit.names = names;
	jit.name_count = 2;
	ok(profile_add_module(p, &jit, &i));
	ok(profile_child(p, 0, PROFILE_CALL, 1, 0x4000, &main_node));
	ok(profile_child(p, main_node, PROFILE_EXACT, 2, 0x1004, &leaf));
	ok(profile_child(p, 0, PROFILE_PARTIAL, 0, 3, &late));
	ok(profile_child(p, late, PROFILE_EXACT, 1, 0x4444, &late));
	ok(profile_count(p, late, 1, 0, 5));
	ok(profile_count(p, leaf, 1, 0, 100));
	ok(profile_count(p, leaf, 0, 0, 20));
	ok(profile_count(p, leaf, 1, 1, 3));
	ok(profile_lose(p, "no room", 4));
	ok(profile_settle(p));
	return p;
}

/* Like a program's: chains of calls with sites that come again and again. */
static inline struct profile *large_profile(size_t nodes, size_t threads)
{
	struct profile *p = fresh();
	uint32_t index, node = 0, depth = 0;
	random_state = SEED;
	ok(profile_add_process(p, &(struct profile_process){.pid = 1, .name = "big"}, &index));
	for (size_t i = 0; i < threads; i++)
		ok(profile_add_thread(p, &(struct profile_thread){.name = "t"}, &index));
	ok(profile_add_metric(p, &(struct profile_metric){"cpu-clock", "ns", 1, 0, {0, 0}},
			      &index));
	for (int i = 0; i < 20; i++)
		ok(profile_add_module(p, &(struct profile_module){.kind = PROFILE_FILE}, &index));
	while (p->node_count < nodes) {
		uint64_t site = below(3000);
		bool leaf = depth > 10 && below(20) == 0;
		ok(profile_child(p, node, leaf ? PROFILE_EXACT : PROFILE_CALL,
				 1 + (uint32_t)(site * site % 20), site * 0x9e3779 % 0x200000 & ~3u,
				 &node));
		depth++;
		if (!leaf)
			continue;
		ok(profile_count(p, node, below(threads), 0, 1 + below(4)));
		for (unsigned up = 1 + below(depth); up; up--, depth--)
			node = p->nodes[node].parent;
	}
	ok(profile_settle(p));
	return p;
}
