/* SPDX-License-Identifier: Apache-2.0 */
/* script/python.c on memory that is made here: an interpreter with one thread, of 3.11, and of later versions. */
#include "unit.h"

#include <string.h>

#include "script/python.h"

/* Addresses of the things in it. */
enum {
	RUNTIME = 0x1000,
	INTERPRETER = 0x2000,
	THREAD = 0x3000,
	RECORD = 0x4000, /* two of them: on the C stack */
	OUTER_RECORD = 0x4100,
	FRAME = 0x5000, /* some of 256 bytes */
	CODE = 0x6000,
	TYPE = 0x7000,
	NAME = 0x7100,
	FILE_NAME = 0x7200,
	LINES = 0x7300,
	MEMORY = 0x8000,
};

static uint8_t memory[MEMORY];

static void put(uint64_t address, uint64_t value)
{
	memcpy(memory + address, &value, sizeof value);
}

static bool read_memory(void *context, uint64_t address, void *out, size_t size)
{
	(void)context;
	if (address > MEMORY || size > MEMORY - address)
		return false;
	memcpy(out, memory + address, size);
	return true;
}

static const struct python_memory reader = {read_memory, NULL};
static const struct python_file file = {.runtime = RUNTIME, .code_type = TYPE, .version = 0x030b};

/* ASCII text has one byte for a character, behind 48 others. */
static void put_text(uint64_t at, const char *text)
{
	put(at + 16, strlen(text));
	put(at + 32, 1 << 2 | 1 << 5 | 1 << 6);
	memcpy(memory + at + 48, text, strlen(text));
}

static void put_frame(uint64_t at, uint64_t previous, uint64_t instruction, bool last)
{
	put(at + 32, CODE);
	put(at + 48, previous);
	put(at + 56, instruction);
	memory[at + 68] = last;
}

static void make(void)
{
	/* Instructions 0 and 1 are of line 10, 2 of 12, 3 has no line, 4 is of 9. */
	static const uint8_t lines[] = {
		0x80 | 0 << 3 | 1, 0x23, 0x80 | 12 << 3, 1, 2, 0x80 | 15 << 3, 0x80 | 13 << 3, 7};
	memset(memory, 0, sizeof memory);
	put(RUNTIME + 40, INTERPRETER);
	put(INTERPRETER + 16, THREAD);
	put(THREAD + 56, RECORD);
	put(RECORD + 8, FRAME);
	put(RECORD + 16, OUTER_RECORD);
	put(OUTER_RECORD + 8, FRAME + 0x200);
	put_frame(FRAME, FRAME + 0x100, CODE + 184, false);
	put_frame(FRAME + 0x100, FRAME + 0x200, CODE + 186, true);
	put_frame(FRAME + 0x200, 0, CODE + 188, true);
	put(CODE + 8, TYPE);
	put(CODE + 72, 10);
	put(CODE + 112, FILE_NAME);
	put(CODE + 128, NAME);
	put(CODE + 136, LINES);
	put_text(NAME, "Reader.next");
	put_text(FILE_NAME, "/tmp/a.py");
	put(LINES + 16, sizeof lines);
	memcpy(memory + LINES + 32, lines, sizeof lines);
}

static bool see(void *context, uint64_t thread)
{
	unsigned *seen = context;
	assert_int_equal(thread, THREAD);
	return ++*seen < 1000;
}

static void calls_are_grouped_by_the_c_function_that_runs_them(void **state)
{
	struct python python;
	struct python_call calls[8];
	unsigned seen = 0;
	(void)state;
	make();
	assert_true(python_open(&file, 0, &reader, &python));
	python_threads(&python, &reader, see, &seen);
	assert_int_equal(seen, 1);
	assert_int_equal(python_calls(&python, &reader, THREAD, calls, 8), 5);
	assert_int_equal(calls[0].code, CODE);
	assert_int_equal(calls[0].instruction, CODE + 184);
	assert_int_equal(calls[1].instruction, CODE + 186);
	assert_int_equal(calls[2].code, 0);
	assert_int_equal(calls[2].instruction, RECORD);
	assert_int_equal(calls[3].instruction, CODE + 188);
	assert_int_equal(calls[4].instruction, OUTER_RECORD);
	assert_int_equal(python_calls(&python, &reader, THREAD, calls, 2), 2);
}

static void functions_have_names_and_lines(void **state)
{
	struct python python;
	struct python_function f;
	(void)state;
	make();
	assert_true(python_open(&file, 0, &reader, &python));
	assert_true(python_function_read(&python, &reader, CODE, &f));
	assert_string_equal(f.name, "Reader.next");
	assert_string_equal(f.file, "/tmp/a.py");
	static const uint32_t lines[] = {10, 10, 12, 0, 9, 0};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_int_equal(python_line(&f, CODE + 184 + 2 * i), lines[i]);
	assert_int_equal(python_line(&f, CODE), 0); /* before it, or far behind it */
	assert_int_equal(python_line(&f, UINT64_MAX), 0);
	python_function_free(&f);

	put(NAME + 16, 2); /* two characters of two bytes: "é€" */
	put(NAME + 32, 2 << 2 | 1 << 5);
	put(NAME + 72, 0x20ac00e9);
	assert_true(python_function_read(&python, &reader, CODE, &f));
	assert_string_equal(f.name, "é€");
	python_function_free(&f);
}

static void what_makes_no_sense_is_left_out(void **state)
{
	struct python python;
	struct python_function f;
	struct python_call calls[100];
	unsigned seen = 0;
	(void)state;
	make();
	assert_true(python_open(&file, 0, &reader, &python));
	put(CODE + 8, TYPE + 8); /* no code object */
	assert_false(python_function_read(&python, &reader, CODE, &f));
	make();
	put(NAME + 16, 1 << 30); /* a very long name */
	assert_false(python_function_read(&python, &reader, CODE, &f));
	make();
	put(LINES + 16, UINT64_MAX);
	assert_false(python_function_read(&python, &reader, CODE, &f));
	assert_false(python_function_read(&python, &reader, UINT64_MAX - 4, &f));

	make();
	put(THREAD + 8, THREAD); /* circles */
	put_frame(FRAME + 0x100, FRAME, CODE, false);
	python_threads(&python, &reader, see, &seen);
	assert_int_equal(seen, 1000);
	assert_int_equal(python_calls(&python, &reader, THREAD, calls, 100), 100);
	put_frame(FRAME, FRAME + 0x100, CODE, true);
	put(OUTER_RECORD + 16, RECORD);
	assert_int_equal(python_calls(&python, &reader, THREAD, calls, 100), 100);
	put(FRAME + 32, 0); /* no code, and a circle */
	put_frame(FRAME + 0x100, FRAME, 0, false);
	put(FRAME + 0x100 + 32, 0);
	memory[FRAME + 68] = 0;
	assert_in_range(python_calls(&python, &reader, THREAD, calls, 100), 0, 100);
	put(RECORD + 8, UINT64_MAX - 8);
	put(RECORD + 16, MEMORY);
	assert_in_range(python_calls(&python, &reader, THREAD, calls, 100), 0, 100);

	struct python_file other = file;
	other.version = 0x030a; /* older and newer ones than are known */
	assert_false(python_open(&other, 0, &reader, &python));
	other.version = 0x0310;
	assert_false(python_open(&other, 0, &reader, &python));
	other.version = 0x030d; /* it should say where things are, and does not */
	assert_false(python_open(&other, 0, &reader, &python));
}

/* ---- 3.12 and later ---- */

/* Where things are in such an interpreter: those of 3.12 as they are, the others as nobody has them. */
static const struct shape {
	uint32_t version;
	bool record; /* between thread and frame */
	uint64_t interpreter, thread, frame, code, previous, instruction, owner;
	uint64_t file, name, lines, line, start, text;
	unsigned kind_shift; /* of the flags of text: some releases of 3.14 have them elsewhere */
} shapes[] = {
	{0x030c, true, 40, 72, 56, 0, 8, 56, 70, 112, 128, 136, 68, 192, 40, 2},
	{0x030d, false, 800, 88, 72, 16, 24, 32, 42, 120, 136, 144, 76, 200, 40, 2},
	{0x030e, false, 808, 96, 80, 24, 32, 40, 50, 128, 144, 152, 84, 208, 48, 16},
	{0x030e, false, 808, 96, 80, 24, 32, 40, 50, 128, 144, 152, 84, 208, 48, 2},
	{0x030f, false, 936, 104, 88, 32, 40, 48, 58, 136, 152, 160, 92, 216, 56, 2},
};

/* The list of offsets at the beginning of the runtime. */
static void put_list(const struct shape *s)
{
	const uint64_t list[][4] = {
		/* place in 3.13, in 3.14, in 3.15, offset */
		{5, 5, 5, s->interpreter}, {8, 8, 8, 0},           {9, 9, 9, s->thread},
		{21, 24, 24, 8},           {23, 26, 26, s->frame}, {24, 27, 30, 136},
		{29, 32, 40, s->previous}, {30, 33, 41, s->code},  {31, 34, 42, s->instruction},
		{33, 36, 44, s->owner},    {35, 40, 48, s->file},  {37, 42, 50, s->name},
		{38, 43, 51, s->lines},    {39, 44, 52, s->line},  {43, 48, 56, s->start},
		{44, 50, 58, 16},          {45, 51, 59, 8},        {68, 78, 90, 32},
		{69, 79, 91, 16},          {70, 80, 92, s->text}};
	memcpy(memory + RUNTIME, "xdebugpy", 8);
	put(RUNTIME + 8, (uint64_t)s->version << 16 | 0x00f0);
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		put(RUNTIME + 8 * list[i][s->version - 0x030d], list[i][3]);
}

static void put_text_as(const struct shape *s, uint64_t at, const char *text)
{
	put(at + 16, strlen(text));
	put(at + 32, (uint64_t)(1 | 1 << 3 | 1 << 4) << s->kind_shift | 1 | (uint64_t)0x77 << 24);
	memcpy(memory + at + s->text, text, strlen(text));
}

/* Two calls, a frame on the C stack, another call, and the outermost frame on the C stack. */
static void make_as(const struct shape *s)
{
	static const uint8_t owners[] = {0, 1, 3, 0, 3};
	memset(memory, 0, sizeof memory);
	if (s->version > 0x030c)
		put_list(s);
	put(RUNTIME + s->interpreter, INTERPRETER);
	put(INTERPRETER + s->thread, THREAD);
	put(THREAD + s->frame, s->record ? RECORD : FRAME);
	put(RECORD, FRAME);
	for (size_t i = 0; i < sizeof owners; i++) {
		uint64_t frame = FRAME + 0x100 * i;
		/* From 3.14 on, references have a mark. */
		put(frame + s->code, CODE | (s->version >= 0x030e));
		put(frame + s->previous, i + 1 < sizeof owners ? frame + 0x100 : 0);
		put(frame + s->instruction, CODE + s->start + 2 * i);
		memory[frame + s->owner] = owners[i];
	}
	put(CODE + s->line, 10);
	put(CODE + 8, TYPE);
	put(CODE + s->file, FILE_NAME);
	put(CODE + s->name, NAME);
	put(CODE + s->lines, LINES);
	put_text_as(s, NAME, "Reader.next");
	put_text_as(s, FILE_NAME, "/tmp/a.py");
	put(LINES + 16, 2);
	memory[LINES + 32] = 0x80 | 11 << 3; /* the next line */
}

static void later_versions_have_one_list_of_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct shape *s = &shapes[i];
		struct python_file other = {RUNTIME, TYPE, s->version};
		struct python python;
		struct python_call calls[8];
		struct python_function f;
		unsigned seen = 0;
		make_as(s);
		assert_true(python_open(&other, 0, &reader, &python));
		python_threads(&python, &reader, see, &seen);
		assert_int_equal(seen, 1);
		assert_int_equal(python_calls(&python, &reader, THREAD, calls, 8), 5);
		static const uint64_t codes[] = {CODE, CODE, 0, CODE, 0};
		for (size_t n = 0; n < 5; n++) {
			assert_int_equal(calls[n].code, codes[n]);
			assert_int_equal(calls[n].instruction,
					 codes[n] ? CODE + s->start + 2 * n : FRAME + 0x100 * n);
		}
		assert_true(python_function_read(&python, &reader, CODE, &f));
		assert_string_equal(f.name, "Reader.next");
		assert_string_equal(f.file, "/tmp/a.py");
		assert_int_equal(python_line(&f, CODE + s->start), 11);
		python_function_free(&f);
	}
}

static void a_list_that_is_not_as_known_is_refused(void **state)
{
	static const uint64_t object_size[] = {44, 50, 58}; /* its place in the list */
	struct python python;
	(void)state;
	for (size_t i = 1; i < sizeof shapes / sizeof *shapes; i++) {
		struct python_file other = {RUNTIME, TYPE, shapes[i].version};
		make_as(&shapes[i]);
		put(RUNTIME + 8 * object_size[shapes[i].version - 0x030d],
		    32); /* objects of a build without the lock */
		assert_false(python_open(&other, 0, &reader, &python));
		make_as(&shapes[i]);
		put(RUNTIME + 8, (uint64_t)0x0310 << 16); /* of another version */
		assert_false(python_open(&other, 0, &reader, &python));
		make_as(&shapes[i]);
		put(RUNTIME + 8 * 5, UINT64_MAX);
		assert_false(python_open(&other, 0, &reader, &python));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_grouped_by_the_c_function_that_runs_them),
		cmocka_unit_test(functions_have_names_and_lines),
		cmocka_unit_test(what_makes_no_sense_is_left_out),
		cmocka_unit_test(later_versions_have_one_list_of_frames),
		cmocka_unit_test(a_list_that_is_not_as_known_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
