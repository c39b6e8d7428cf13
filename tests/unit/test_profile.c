/* SPDX-License-Identifier: Apache-2.0 */
#include "scratch.h"

#include "base/buf.h"
#include "base/err.h"
#include "profile/format.h"
#include "profile/profile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEED 0x2545f4914f6cdd1du

static uint64_t random_state;

static uint64_t roll(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x9e3779b97f4a7c15u >> 11;
}

static uint32_t below(uint64_t limit)
{
	return (uint32_t)(roll() % limit);
}

/* Numbers of every length, the largest one too. */
static uint64_t any_number(void)
{
	return roll() % 20 == 0 ? UINT64_MAX : (roll() << 11 ^ roll()) >> below(64);
}

static const char *any_text(void)
{
	static char text[64];
	size_t size = below(sizeof(text) - 1);

	if (roll() % 3 == 0)
		size = 0;
	for (size_t i = 0; i < size; i++)
		text[i] = (char)(1 + below(255));
	text[size] = 0;
	return text;
}

static void ok(struct err *e)
{
	if (e)
		fail_msg("%s", err_text(e));
}

static void fails(struct err *e, const char *part)
{
	assert_non_null(e);
	if (!strstr(err_text(e), part))
		fail_msg("'%s' is not in: %s", part, err_text(e));
	err_free(e);
}

static struct profile *fresh(void)
{
	struct profile *p;

	ok(profile_new(&p));
	assert_int_equal(p->node_count, 1);
	assert_int_equal(p->nodes[0].kind, PROFILE_ROOT);
	assert_int_equal(p->module_count, 1);
	assert_int_equal(p->modules[0].kind, PROFILE_NONE);
	return p;
}

static void add_random_tables(struct profile *p, unsigned most)
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
						 any_number(), any_number(), any_number()},
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

static struct profile *random_profile(unsigned most)
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

static const char *differ_module(const struct profile_module *a, const struct profile_module *b)
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

static const char *differ_process(const struct profile_process *a, const struct profile_process *b)
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

static const char *differ_thread(const struct profile_thread *a, const struct profile_thread *b)
{
	SAME(process);
	SAME(tid);
	SAME_TEXT(name);
	SAME(start_ns);
	SAME(end_ns);
	SAME(cpu_ns);
	SAME(handler_ns);
	SAME(handled);
	return NULL;
}

static const char *differ_info(const struct profile *a, const struct profile *b)
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

static const char *differ_tree(const struct profile *a, const struct profile *b)
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
	for (size_t i = 0; i < a->lost_count; i++) {
		SAME_TEXT(lost[i].reason);
		SAME(lost[i].count);
	}
	return NULL;
}

/* What the first difference is in, or NULL. */
static const char *differ(const struct profile *a, const struct profile *b)
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

static void assert_same(const struct profile *a, const struct profile *b)
{
	const char *where = differ(a, b);

	if (where)
		fail_msg("profiles differ: %s", where);
}

static struct buf pack(const struct profile *p)
{
	struct buf bytes = {0};

	ok(profile_pack(p, &bytes));
	return bytes;
}

/* Sane whatever it was made of: as profile.h promises. */
static void assert_sane(const struct profile *p)
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

static struct profile *parse_damaged(const void *bytes, size_t size, const char *part)
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

static struct profile *parse_whole(const void *bytes, size_t size)
{
	struct profile *p;
	char *damage;

	ok(profile_parse(bytes, size, &p, &damage));
	if (damage)
		fail_msg("damaged: %s", damage);
	assert_sane(p);
	return p;
}

/* As doc/format.md says. */
static void checksum_is_the_documented_one(void **state)
{
	(void)state;
	assert_true(format_checksum("", 0) == 0xdd6a291afd5b5e76u);
	assert_true(format_checksum("culprit", 7) == 0x703855c6aac88888u);
	assert_true(format_checksum("culprit culprit.prof", 20) == 0x63ec1b86ffe0beb3u);
}

static void round_trips(void **state)
{
	(void)state;
	random_state = SEED;
	for (int i = 0; i < 300; i++) {
		struct profile *p = random_profile(2 + below(60)), *q;
		struct buf bytes = pack(p);

		q = parse_whole(bytes.data, bytes.size);
		assert_same(p, q);
		profile_free(q);
		profile_free(p);
		buf_free(&bytes);
	}
}

/* One of each table, and sums that tests know. */
static struct profile *small_profile(void)
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

static void every_flip_is_noticed(void **state)
{
	struct profile *p = small_profile();
	struct buf bytes = pack(p);
	uint8_t *copy = malloc(bytes.size);
	size_t shown = 0;

	(void)state;
	for (size_t i = 0; i < bytes.size * 8; i++) {
		struct profile *q;
		struct err *e;
		char *damage;

		memcpy(copy, bytes.data, bytes.size);
		copy[i / 8] ^= (uint8_t)(1 << i % 8);
		e = profile_parse(copy, bytes.size, &q, &damage);
		if (e) {
			assert_null(q);
			assert_null(damage);
			err_free(e);
			continue;
		}
		if (!damage)
			fail_msg("bit %zu of byte %zu: not noticed", i % 8, i / 8);
		assert_null(strchr(damage, '\n'));
		assert_sane(q);
		shown++;
		free(damage);
		profile_free(q);
	}
	assert_true(shown >= bytes.size * 8 - 8); /* one section never spoils the others */
	free(copy);
	profile_free(p);
	buf_free(&bytes);
}

static void every_cut_is_noticed(void **state)
{
	struct profile *p = small_profile();
	struct buf bytes = pack(p);

	(void)state;
	for (size_t size = 0; size < bytes.size; size++) {
		uint8_t *copy = malloc(size +
				       !size); /* exact, so that the sanitizer sees its end */
		struct profile *q;
		struct err *e;
		char *damage;

		memcpy(copy, bytes.data, size);
		e = profile_parse(copy, size, &q, &damage);
		assert_true(e || damage);
		if (!e)
			assert_sane(q);
		err_free(e);
		free(damage);
		profile_free(q);
		free(copy);
	}
	buf_append(&bytes, "x", 1);
	profile_free(parse_damaged(bytes.data, bytes.size, "1 bytes after the end"));
	profile_free(p);
	buf_free(&bytes);
}

/* The offset of the nth section of a type. */
static size_t find_section(const struct buf *b, uint32_t type, int nth, struct format_section *s)
{
	size_t at = FORMAT_HEADER_SIZE;

	while (at < b->size) {
		assert_true(format_get_section((const uint8_t *)b->data + at, s));
		if (s->type == type && nth-- == 0)
			return at;
		at += FORMAT_SECTION_SIZE + s->stored;
	}
	fail_msg("no section of type %u", type);
	return 0;
}

/* The small profile with one section's contents damaged, or its header. */
static struct profile *damage_type(uint32_t type, bool header, const char *part)
{
	struct profile *p = small_profile(), *q;
	struct buf bytes = pack(p);
	struct format_section s;
	size_t at = find_section(&bytes, type, 0, &s);

	bytes.data[header ? at + 17 : at + FORMAT_SECTION_SIZE + s.stored / 2] ^= 0x10;
	q = parse_damaged(bytes.data, bytes.size, part);
	profile_free(p);
	buf_free(&bytes);
	return q;
}

static void lost_threads_have_stand_ins(void **state)
{
	(void)state;
	for (int header = 0; header < 2; header++) {
		struct profile *q = damage_type(FORMAT_THREADS, header,
						header ? "threads: missing: 2 of 2 threads left out"
						       : "threads: checksum wrong: 2 of 2");
		assert_int_equal(q->thread_count, 2);
		assert_string_equal(q->threads[1].name, "(lost)");
		assert_string_equal(q->processes[q->threads[1].process].name, "(lost)");
		assert_int_equal(profile_samples(q, 0), 125);
		assert_int_equal(q->value_count, 4);
		profile_free(q);
	}
}

static void lost_processes_have_stand_ins(void **state)
{
	struct profile *q = damage_type(FORMAT_PROCESSES, false, "processes: checksum wrong");

	(void)state;
	assert_int_equal(q->process_count, 2);
	assert_string_equal(q->threads[1].name, "worker");
	assert_int_equal(q->threads[1].process, 1);
	assert_int_equal(q->modules[2].process, 1);
	assert_string_equal(q->processes[1].name, "(lost)");
	profile_free(q);
}

static void lost_modules_have_stand_ins(void **state)
{
	struct profile *q = damage_type(FORMAT_MODULES, false, "modules: checksum wrong");

	(void)state;
	assert_int_equal(q->module_count, 3);
	assert_string_equal(q->modules[1].path, "(lost)");
	assert_int_equal(q->modules[1].kind, PROFILE_NONE);
	assert_int_equal(q->nodes[1].module, 1);
	assert_int_equal(profile_samples(q, 0), 125);
	profile_free(q);
	q = damage_type(FORMAT_NAMES, false, "names: checksum wrong: 2 of 2 names left out");
	assert_string_equal(q->modules[2].path, "[anon]");
	assert_int_equal(q->modules[2].name_count, 0);
	profile_free(q);
}

static void lost_metrics_have_stand_ins(void **state)
{
	struct profile *q = damage_type(FORMAT_METRICS, false, "metrics: checksum wrong");

	(void)state;
	assert_int_equal(q->metric_count, 2);
	assert_string_equal(q->metrics[1].name, "(lost) 1");
	assert_int_equal(profile_samples(q, 0), 125);
	assert_int_equal(profile_samples(q, 1), 3);
	profile_free(q);
}

static void values_without_nodes_are_counted(void **state)
{
	struct profile *q = damage_type(FORMAT_NODES, false, "nodes: checksum wrong: 4 of 4 nodes");

	(void)state;
	assert_int_equal(q->node_count, 1);
	assert_int_equal(q->value_count, 0);
	assert_int_equal(q->thread_count, 2);
	profile_free(q);
	q = damage_type(FORMAT_NODES, false, "4 of 4 values left out, with 128 samples");
	profile_free(q);
	q = damage_type(FORMAT_VALUES, true, "values: missing: 4 of 4 values left out");
	assert_int_equal(q->node_count, 5);
	profile_free(q);
}

static void other_sections_can_be_lost(void **state)
{
	struct profile *q = damage_type(FORMAT_INFO, false, "info: checksum wrong");

	(void)state;
	assert_string_equal(q->command, "");
	assert_int_equal(profile_samples(q, 0), 125);
	profile_free(q);
	q = damage_type(FORMAT_LOST, false, "lost samples: checksum wrong");
	assert_int_equal(q->lost_count, 0);
	profile_free(q);
	q = damage_type(FORMAT_END, false, "the file's end is missing");
	assert_int_equal(profile_samples(q, 0), 125);
	profile_free(q);
}

/* Like a program's: chains of calls with sites that come again and again. */
static struct profile *large_profile(size_t nodes, size_t threads)
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

static void damage_costs_one_run_of_nodes(void **state)
{
	struct profile *p = large_profile(60000, 5), *q;
	struct buf bytes = pack(p);
	struct format_section s;
	size_t at = find_section(&bytes, FORMAT_NODES, 2, &s);
	char *damage, *found;
	unsigned long nodes, dropped;

	(void)state;
	bytes.data[at + FORMAT_SECTION_SIZE + 40]++;
	ok(profile_parse(bytes.data, bytes.size, &q, &damage));
	assert_sane(q);
	assert_in_range(q->node_count, FORMAT_ROWS * 2 + 1, 60000 - FORMAT_ROWS);
	for (size_t i = 0; i < FORMAT_ROWS * 2; i++)
		assert_int_equal(q->nodes[i].address, p->nodes[i].address);
	found = strstr(damage, "nodes: checksum wrong: ");
	assert_non_null(found);
	nodes = strtoul(found + strlen("nodes: checksum wrong: "), NULL, 10);
	assert_int_equal(nodes + q->node_count, p->node_count);
	found = strstr(damage, "with ");
	assert_non_null(found);
	dropped = strtoul(found + 5, NULL, 10);
	assert_int_equal(dropped + profile_samples(q, 0), profile_samples(p, 0));
	assert_true(profile_samples(q, 0) > 0);
	free(damage);
	profile_free(q);
	profile_free(p);
	buf_free(&bytes);
}

/* Bytes that are gone from the middle: what follows is found again. */
static void missing_bytes_are_skipped(void **state)
{
	struct profile *p = large_profile(60000, 5), *q;
	struct buf bytes = pack(p);
	struct format_section s;
	size_t at = find_section(&bytes, FORMAT_NODES, 3, &s) + FORMAT_SECTION_SIZE + 100;

	(void)state;
	memmove(bytes.data + at, bytes.data + at + 1000, bytes.size - at - 1000);
	q = parse_damaged(bytes.data, bytes.size - 1000, "nodes: checksum wrong");
	assert_true(profile_samples(q, 0) > 0);
	profile_free(q);
	profile_free(p);
	buf_free(&bytes);
}

static void is_small(void **state)
{
	struct profile *p = large_profile(50000, 8), *q;
	struct buf bytes = pack(p);

	(void)state;
	assert_true(bytes.size < 400000);
	q = parse_whole(bytes.data, bytes.size);
	assert_same(p, q);
	profile_free(q);
	profile_free(p);
	buf_free(&bytes);
}

static void start_file(struct buf *b)
{
	uint8_t header[FORMAT_HEADER_SIZE];

	format_put_header(header);
	buf_append(b, header, sizeof(header));
}

static void add_section(struct buf *b, uint32_t type, uint32_t flags, const void *bytes,
			size_t size, uint64_t raw)
{
	uint8_t header[FORMAT_SECTION_SIZE];
	struct format_section s = {type, flags, size, raw, format_checksum(bytes, size)};

	format_put_section(header, &s);
	buf_append(b, header, sizeof(header));
	buf_append(b, bytes, size);
}

/* Info without fields, and one section of these bytes. */
static struct profile *parse_section(uint32_t type, uint32_t flags, const char *bytes, size_t size,
				     uint64_t raw, const char *part)
{
	struct buf b = {0};
	struct profile *p;

	start_file(&b);
	add_section(&b, FORMAT_INFO, 0, "\0", 1, 1);
	add_section(&b, type, flags, bytes, size, raw);
	p = parse_damaged(b.data, b.size, part);
	buf_free(&b);
	return p;
}

#define HUGE "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

static void hostile_counts_are_refused(void **state)
{
	static const char *const parts[] = {
		"info: malformed",    "modules: malformed",   "names: malformed",
		"metrics: malformed", "processes: malformed", "threads: malformed",
		"nodes: malformed",   "values: malformed",    "lost samples: malformed"};

	(void)state;
	for (uint32_t type = FORMAT_INFO; type <= FORMAT_LOST; type++) {
		const char *part = parts[type - 1];

		profile_free(parse_section(type, 0, "\x01" HUGE, 11, 11, part));
		profile_free(parse_section(type, 0, HUGE HUGE, 20, 20, part));
		profile_free(parse_section(type, 0, "\x01\x05\x00", 3, 3, part));
		profile_free(parse_section(type, 0, "", 0, 0, part));
		profile_free(parse_section(type, 0, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10,
					   10, part));
	}
	profile_free(parse_section(FORMAT_NODES, 0, "\x01\x01\x00", 3, 4, "nodes: malformed"));
	profile_free(parse_section(FORMAT_NODES, FORMAT_ZSTD, "abcd", 4, UINT64_C(1) << 40,
				   "nodes: too large"));
	profile_free(parse_section(FORMAT_NODES, FORMAT_ZSTD, "abcd", 4, 400,
				   "nodes: cannot be decompressed"));
	profile_free(
		parse_section(FORMAT_NODES, 6, "abcd", 4, 4, "nodes: written by a newer culprit"));
}

/* Nodes and values of one row each. */
static void hostile_rows_are_refused(void **state)
{
	struct profile *p;

	(void)state;
	/* first 1, one node, one frame: module, kind, address; distance, frame */
	p = parse_section(FORMAT_NODES, 0, "\x01\x01\x01\x00\x01\x08\x01\x00", 8, 8, "end");
	assert_int_equal(p->node_count, 2);
	assert_int_equal(p->nodes[1].address, 4);
	profile_free(p);
	p = parse_section(FORMAT_NODES, 0, "\x01\x01\x01\x00\x01\x08\x02\x00", 8, 8, "malformed");
	assert_int_equal(p->node_count, 1); /* its parent would be before the root */
	profile_free(p);
	p = parse_section(FORMAT_NODES, 0, "\x01\x01\x01\x00\x01\x08\x00\x00", 8, 8, "malformed");
	assert_int_equal(p->node_count, 1); /* its own parent */
	profile_free(p);
	p = parse_section(FORMAT_NODES, 0, "\x01\x01\x01\x00\x00\x08\x01\x00", 8, 8, "malformed");
	assert_int_equal(p->node_count, 1); /* a second root */
	profile_free(p);
	p = parse_section(FORMAT_NODES, 0, "\x01\x01\x01\x00\x01\x08\x01\x01", 8, 8, "malformed");
	assert_int_equal(p->node_count, 1); /* no such frame */
	profile_free(p);
	p = parse_section(FORMAT_NODES, 0, "\x00\x01\x01\x00\x01\x08\x01\x00", 8, 8,
			  "out of order");
	assert_int_equal(p->node_count, 1); /* the root is in no file */
	profile_free(p);
	p = parse_section(FORMAT_VALUES, 0, "\x01\x00\xff\xff\xff\xff\x07\x09\x05", 9, 9,
			  "threads: missing, 1 shown as (lost)");
	assert_int_equal(p->thread_count, 1);
	assert_int_equal(p->metric_count, 1);
	assert_int_equal(p->values[0].count, 5);
	profile_free(p);
	/* the second value is the first one again; then one of no samples */
	p = parse_section(FORMAT_VALUES, 0, "\2\0\0\1\1\0\0\5\6", 9, 9, "values: malformed");
	assert_int_equal(p->value_count, 1);
	assert_int_equal(p->values[0].count, 5);
	profile_free(p);
	p = parse_section(FORMAT_VALUES, 0, "\1\0\0\0\0", 5, 5, "values: malformed");
	assert_int_equal(p->value_count, 0);
	profile_free(p);
}

static void put_number(struct buf *b, unsigned value)
{
	uint8_t bytes[] = {(uint8_t)(value | 0x80), (uint8_t)(value >> 7)};

	assert_true(value < 1 << 14);
	buf_append(b, bytes, 2);
}

/* Values of the root in one thread, of more metrics than there can be. */
static void stand_ins_are_limited(void **state)
{
	struct buf b = {0}, rows = {0};
	struct profile *p;

	(void)state;
	put_number(&rows, 300);
	for (unsigned i = 0; i < 600; i++)
		put_number(&rows, 0);
	for (unsigned i = 0; i < 300; i++)
		put_number(&rows, i);
	for (unsigned i = 0; i < 300; i++)
		put_number(&rows, 2);
	start_file(&b);
	add_section(&b, FORMAT_INFO, 0, "\0", 1, 1);
	add_section(&b, FORMAT_VALUES, 0, rows.data, rows.size, rows.size);
	add_section(&b, FORMAT_END, 0, "\2\2\1\1\10\xac\2", 7, 7);
	p = parse_damaged(b.data, b.size,
			  "values: malformed: 44 of 300 values left out, with 88 samples");
	assert_int_equal(p->metric_count, PROFILE_METRIC_MAX);
	assert_int_equal(p->value_count, PROFILE_METRIC_MAX);
	profile_free(p);
	buf_free(&b);
	buf_free(&rows);
}

static void newer_versions(void **state)
{
	struct profile *p = small_profile(), *q;
	struct buf bytes = pack(p);
	uint64_t sum;
	char *damage;

	(void)state;
	bytes.data[8] = 2;
	profile_free(parse_damaged(bytes.data, bytes.size, "file header: checksum wrong"));
	sum = format_checksum(bytes.data, 16);
	memcpy(bytes.data + 16, &sum, 8);
	fails(profile_parse(bytes.data, bytes.size, &q, &damage),
	      "written by a newer culprit (format 2): update culprit");
	buf_clear(&bytes);
	start_file(&bytes);
	bytes.data[10] = 9; /* the minor version */
	sum = format_checksum(bytes.data, 16);
	memcpy(bytes.data + 16, &sum, 8);
	add_section(&bytes, 77, 0, "whatever", 8, 8);
	/* an unknown key, and bytes after the last row */
	add_section(&bytes, FORMAT_INFO, 0, "\2\3new\0\5\7command\1\2ab-more-", 25, 25);
	add_section(&bytes, FORMAT_END, 0, "\2\1\1\1", 4, 4);
	q = parse_whole(bytes.data, bytes.size);
	assert_string_equal(q->command, "ab");
	profile_free(q);
	profile_free(p);
	buf_free(&bytes);
}

static void other_files_are_refused(void **state)
{
	struct profile *q;
	char *damage;

	(void)state;
	scratch_write("text", "hello\n", 6);
	fails(profile_read(scratch("text"), &q, &damage), "text: not a profile of culprit");
	assert_null(q);
	scratch_write("none", "", 0);
	fails(profile_read(scratch("none"), &q, &damage), "the file is empty");
	fails(profile_read(scratch("absent"), &q, &damage), "absent: cannot open: No such file");
	fails(profile_read(scratch(""), &q, &damage), "cannot read: Is a directory");
	fails(profile_read("/dev/zero", &q, &damage), "/dev/zero: not a profile of culprit");
}

static unsigned count_files(const char *folder)
{
	DIR *d = opendir(scratch(folder));
	unsigned count = 0;

	assert_non_null(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static void writes_files(void **state)
{
	struct profile *p = small_profile(), *q;
	const struct rlimit tiny = {100, RLIM_INFINITY};
	struct rlimit before;
	struct stat st;
	char *damage;

	(void)state;
	assert_int_equal(mkdir(scratch("out"), 0700), 0);
	scratch_write("out/a", "old", 3);
	assert_int_equal(symlink("a", scratch("out/link")), 0);
	ok(profile_write(p, scratch("out/link")));
	assert_int_equal(lstat(scratch("out/link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	ok(profile_read(scratch("out/a"), &q, &damage));
	assert_null(damage);
	assert_same(p, q);
	profile_free(q);
	fails(profile_write(p, scratch("out")), "out: cannot write: Is a directory");
	fails(profile_write(p, scratch("no/where")), "cannot create: No such file");
	fails(profile_write(p, "/dev/full"), "/dev/full: cannot write: No space left");
	ok(profile_write(p, "/dev/null"));
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tiny), 0);
	struct err *e = profile_write(p, scratch("out/a"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	fails(e, "cannot write: File too large");
	ok(profile_read(scratch("out/a"), &q, &damage)); /* the old one */
	assert_null(damage);
	profile_free(q);
	assert_int_equal(count_files("out"), 2);
	profile_free(p);
}

static void strings_are_shared(void **state)
{
	struct profile *p = fresh();
	char long_text[40000], text[32];
	const char *kept[5000];

	(void)state;
	assert_string_equal(profile_string(p, NULL), "");
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		kept[i] = profile_string(p, text);
	}
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = 0;
	assert_string_equal(profile_string(p, long_text), long_text);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "text %d", i);
		assert_string_equal(kept[i], text);
		assert_ptr_equal(profile_string(p, text), kept[i]);
	}
	profile_free(p);
}

static void counts_in_any_order(void **state)
{
	enum { NODES = 300, THREADS = 3000, METRICS = 2 };
	uint64_t *expected = calloc((size_t)NODES * THREADS * METRICS, sizeof(*expected));
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

static void reasons_are_bounded(void **state)
{
	struct profile *p = fresh();
	char text[32];

	(void)state;
	for (int i = 0; i < 3000; i++) {
		snprintf(text, sizeof(text), "reason %d", i);
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
		cmocka_unit_test(checksum_is_the_documented_one),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(every_flip_is_noticed),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(lost_threads_have_stand_ins),
		cmocka_unit_test(lost_processes_have_stand_ins),
		cmocka_unit_test(lost_modules_have_stand_ins),
		cmocka_unit_test(lost_metrics_have_stand_ins),
		cmocka_unit_test(values_without_nodes_are_counted),
		cmocka_unit_test(other_sections_can_be_lost),
		cmocka_unit_test(damage_costs_one_run_of_nodes),
		cmocka_unit_test(missing_bytes_are_skipped),
		cmocka_unit_test(is_small),
		cmocka_unit_test(hostile_counts_are_refused),
		cmocka_unit_test(hostile_rows_are_refused),
		cmocka_unit_test(stand_ins_are_limited),
		cmocka_unit_test(newer_versions),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(writes_files),
		cmocka_unit_test(strings_are_shared),
		cmocka_unit_test(counts_in_any_order),
		cmocka_unit_test(children_are_found_again),
		cmocka_unit_test(sums),
		cmocka_unit_test(merges_equal_parts),
		cmocka_unit_test(names_are_merged),
		cmocka_unit_test(merging_keeps_all_samples),
		cmocka_unit_test(reasons_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
