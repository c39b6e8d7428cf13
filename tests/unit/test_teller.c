/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a process of its own reads: this program, or scripts that do not do what they should. */
#include "scratch.h"

#include "base/buf.h"
#include "base/err.h"
#include "image/image.h"
#include "library/pieces.h"
#include "library/teller.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#define HEAD (4 * sizeof(uint64_t) + sizeof(uint32_t))

/* ---- the bytes ---- */

static void add(struct buf *b, uint64_t from, uint64_t to, uint64_t start, uint64_t size,
		const char *name, size_t length)
{
	const uint64_t numbers[] = {from, to, start, size};
	const uint32_t bytes = (uint32_t)length;
	buf_append(b, numbers, sizeof numbers);
	buf_append(b, &bytes, sizeof bytes);
	buf_append(b, name, length);
}

static void are_read(void **state)
{
	struct buf b = {0};
	struct pieces_item x;
	(void)state;
	add(&b, 16, 32, 8, 24, "one", 3);
	add(&b, 32, 40, 0, 0, "", 0);
	add(&b, 40, UINT64_MAX, 40, 1, "two", 3);
	assert_true(pieces_are_whole(b.data, b.size));
	struct pieces p = {.at = (const uint8_t *)b.data, .left = b.size};
	assert_true(pieces_next(&p, &x));
	assert_int_equal(x.from, 16);
	assert_int_equal(x.to, 32);
	assert_int_equal(x.start, 8);
	assert_int_equal(x.size, 24);
	assert_int_equal(x.length, 3);
	assert_memory_equal(x.name, "one", 3);
	assert_true(pieces_next(&p, &x));
	assert_null(x.name);
	assert_true(pieces_next(&p, &x));
	assert_memory_equal(x.name, "two", 3);
	assert_false(pieces_next(&p, &x));
	assert_int_equal(p.left, 0);
	for (size_t size = 0; size <= b.size; size++) /* cut off anywhere but between them */
		assert_int_equal(pieces_are_whole(b.data, size), size == 0 || size == HEAD + 3 ||
									 size == 2 * HEAD + 3 ||
									 size == b.size);
	assert_true(pieces_are_whole(NULL, 0));
	buf_free(&b);
}

static void nonsense_is_seen(void **state)
{
	static const struct {
		uint64_t from, to, start, size;
		const char *name;
		size_t length;
	} cases[] = {
		{16, 16, 8, 24, "x", 1},             /* empty */
		{16, 8, 8, 24, "x", 1},              /* ends before it begins */
		{2, 32, 1, 24, "x", 1},              /* overlaps the one before */
		{16, 32, 17, 24, "x", 1},            /* its function begins behind it */
		{16, 32, 8, 0, "x", 1},              /* which is empty, */
		{16, 32, 8, UINT64_MAX - 7, "x", 1}, /* or wraps around */
		{16, 32, 8, 24, "", 0},              /* a function without a name */
		{16, 32, 8, 24, "x\0y", 3},          /* a name that ends before its end */
		{16, 32, 8, 24, NULL, PIECES_NAME_MAX + 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct buf b = {0};
		char *name = malloc(PIECES_NAME_MAX + 1);
		memset(name, 'x', PIECES_NAME_MAX + 1);
		add(&b, 1, 8, 1, 7, "good", 4);
		assert_true(pieces_are_whole(b.data, b.size));
		add(&b, cases[i].from, cases[i].to, cases[i].start, cases[i].size,
		    cases[i].name ? cases[i].name : name, cases[i].length);
		assert_false(pieces_are_whole(b.data, b.size));
		free(name);
		buf_free(&b);
	}
}

/* ---- the process ---- */

static void turning(void)
{
}

static char build_id[2 * BUILD_ID_MAX + 1];
static uint64_t address; /* of turning, in the file */

/* The program comes first: it is over after that. */
static int note_bias(struct dl_phdr_info *program, size_t size, void *bias)
{
	(void)size;
	*(uint64_t *)bias = program->dlpi_addr;
	return 1;
}

static int look_at_self(void **state)
{
	struct image *image;
	uint64_t bias = 0;
	(void)state;
	assert_null(image_open("/proc/self/exe", &image));
	image_build_id_hex(image, build_id);
	dl_iterate_phdr(note_bias, &bias);
	address = (uint64_t)(uintptr_t)turning - bias;
	image_close(image);
	return 0;
}

static struct err *ask_of(struct teller *t, const char *path, const char *id, struct buf *out,
			  struct teller_report *report)
{
	struct teller_question q = {.path = path,
				    .build_id = id,
				    .file = open(path, O_RDONLY | O_CLOEXEC),
				    .addresses = &address,
				    .count = 1,
				    .wait_ms = 60000};
	struct err *e = teller_ask(t, &q, out, report);
	close(q.file);
	return e;
}

static void assert_named(struct teller *t)
{
	struct teller_report report;
	struct pieces_item x;
	struct buf out = {0};
	assert_null(ask_of(t, "/proc/self/exe", build_id, &out, &report));
	assert_false(report.failed);
	assert_true(report.memory > 100000);
	struct pieces p = {.at = (const uint8_t *)out.data, .left = out.size};
	assert_true(pieces_next(&p, &x));
	assert_int_equal(x.length, strlen("turning"));
	assert_memory_equal(x.name, "turning", x.length);
	assert_int_equal(x.start, address);
	assert_true(x.from <= address && address < x.to);
	assert_int_equal(p.left, 0);
	buf_free(&out);
}

static void names_are_told(void **state)
{
	struct teller *t;
	(void)state;
	assert_null(teller_open("/proc/self/exe", &t));
	assert_int_equal(teller_rest(t), 0);
	for (int i = 0; i < 3; i++)
		assert_named(t);
	assert_true(teller_rest(t) > 0);
	assert_named(t); /* by another one */
	teller_close(t);
	teller_close(NULL);
}

/* It says so, and goes on. */
static void other_files_are_refused(void **state)
{
	struct teller_report report;
	struct buf out = {0};
	struct teller *t;
	struct err *e;
	(void)state;
	assert_null(teller_open("/proc/self/exe", &t));
	e = ask_of(t, "/proc/self/exe", "00", &out, &report);
	assert_non_null(strstr(err_text(e), "another file"));
	assert_false(report.failed);
	err_free(e);
	scratch_write("text", "text", 4);
	e = ask_of(t, scratch("text"), "", &out, &report);
	assert_non_null(strstr(err_text(e), "not an ELF file"));
	assert_false(report.failed);
	err_free(e);
	assert_int_equal(out.size, 0);
	assert_named(t);
	teller_close(t);
	buf_free(&out);
}

static const char *script(const char *text)
{
	const char *whole = scratch_format("#!/bin/sh\n%s\n", text);
	scratch_write("script", whole, strlen(whole));
	assert_int_equal(chmod(scratch("script"), 0700), 0);
	return scratch("script");
}

/* Whatever becomes of the process, there is a sentence about it. */
static void its_death_is_survived(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"sleep 0.1; kill -KILL $$", "signal 9"},
		{"sleep 0.1; exit 3", "status 3"},
		{"echo nonsense >&3; sleep 10", "nonsense"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct teller_report report;
		struct buf out = {0};
		struct teller *t;
		assert_null(teller_open(script(cases[i].text), &t));
		struct err *e = ask_of(t, "/proc/self/exe", build_id, &out, &report);
		assert_non_null(e);
		assert_non_null(strstr(err_text(e), cases[i].reason));
		assert_true(report.failed);
		assert_int_equal(out.size, 0);
		err_free(e);
		teller_close(t);
		buf_free(&out);
	}
}

static void nobody_waits_for_ever(void **state)
{
	struct teller_question q = {.path = "/proc/self/exe",
				    .build_id = "",
				    .addresses = &address,
				    .count = 1,
				    .wait_ms = 50};
	struct teller_report report;
	struct buf out = {0};
	struct teller *t;
	(void)state;
	q.file = open(q.path, O_RDONLY | O_CLOEXEC);
	assert_null(teller_open(script("exec sleep 1000"), &t));
	struct err *e = teller_ask(t, &q, &out, &report);
	assert_non_null(strstr(err_text(e), "took more than"));
	assert_true(report.failed);
	err_free(e);
	teller_close(t);
	assert_null(teller_open("/nowhere/culprit", &t));
	e = teller_ask(t, &q, &out, &report);
	assert_non_null(strstr(err_text(e), "cannot start '/nowhere/culprit'"));
	assert_true(report.failed);
	err_free(e);
	teller_close(t);
	close(q.file);
}

int main(int argc, char **argv)
{
	if (argc == TELLER_ARGUMENTS + 1 && !strcmp(argv[1], TELLER_COMMAND))
		return teller_main(argc - 1, argv + 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(are_read),
		cmocka_unit_test(nonsense_is_seen),
		cmocka_unit_test(names_are_told),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(its_death_is_survived),
		cmocka_unit_test(nobody_waits_for_ever),
	};
	return cmocka_run_group_tests(tests, look_at_self, NULL);
}
