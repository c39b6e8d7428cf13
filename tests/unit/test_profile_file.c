/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a profile: what is written is read again, whatever happens to it in between. */
#include "profiles.h"

#include "profile/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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
	buf_append(b, header, sizeof header);
}

static void add_section(struct buf *b, uint32_t type, uint32_t flags, const void *bytes,
			size_t size, uint64_t raw)
{
	uint8_t header[FORMAT_SECTION_SIZE];
	struct format_section s = {type, flags, size, raw, format_checksum(bytes, size)};
	format_put_section(header, &s);
	buf_append(b, header, sizeof header);
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
