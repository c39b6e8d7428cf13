/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of files that may be gone when somebody asks for them. */
#include "scratch.h"

#include "base/err.h"
#include "image/image.h"
#include "image/name_table.h"
#include "image/symbols.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

static int new_file(void)
{
	bool in_memory;
	int file;
	setenv("XDG_CACHE_HOME", scratch("cache"), 1);
	file = name_table_file(&in_memory);
	assert_true(file >= 0);
	assert_false(in_memory);
	return file;
}

static int write_table(struct image *image)
{
	int file = new_file();
	struct err *e = name_table_write(image, file, NAME_TABLE_MAX);
	if (e)
		fail_msg("%s", err_text(e));
	return file;
}

/* At every address of its code, and around it, what the symbols say. */
static void compare(const char *path)
{
	struct image *image;
	struct symbols *symbols;
	struct name_table names;
	const struct symbol *all;
	uint64_t found = 0;
	assert_null(image_open(path, &image));
	int file = write_table(image);
	assert_null(symbols_read(image, NULL, &symbols));
	assert_true(name_table_open(file, &names));
	close(file);
	size_t count = symbols_all(symbols, &all);
	assert_true(count > 3);
	for (uint64_t at = all[0].address - 16; at < all[count - 1].address + 4096; at++) {
		const struct symbol *s = symbols_find(symbols, at);
		uint64_t start, size;
		const char *name = name_table_find(&names, at, &start, &size);
		assert_int_equal(!name, !s);
		if (!s)
			continue;
		assert_string_equal(name, s->name);
		assert_int_equal(start, s->address);
		assert_true(s->size ? size == s->size : at - start < size);
		found++;
	}
	assert_true(found > 10);
	name_table_close(&names);
	symbols_free(symbols);
	image_close(image);
}

static void says_what_the_symbols_say(void **state)
{
	(void)state;
	compare("/proc/self/exe");
}

/* Functions within others, labels without a size, holes. */
static void pieces(void **state)
{
	static const char code[] = ".text\n"
				   ".type outer,@function\nouter: .skip 16\n"
				   ".type inner,@function\ninner: .skip 8\n.size inner,8\n"
				   ".skip 8\n.size outer,32\n"
				   ".skip 64\n"
				   "label: .skip 16\n"
				   ".globl _start\n.type _start,@function\n_start: .skip 4\n"
				   ".size _start,4\n.section .note.GNU-stack,\"\"\n";
	(void)state;
	scratch_write("pieces.s", code, sizeof code - 1);
	assert_true(scratch_run("${CC:-cc} -nostdlib -static pieces.s -o pieces"));
	compare(scratch("pieces"));
}

/* What died while it was written, or was written by others. */
static void takes_no_damaged_file(void **state)
{
	struct image *image;
	struct name_table names;
	struct stat st;
	char byte = 1;
	(void)state;
	assert_null(image_open("/proc/self/exe", &image));
	int file = write_table(image);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(ftruncate(file, st.st_size - 1), 0);
	assert_false(name_table_open(file, &names));
	assert_null(names.header);
	for (off_t size = 0; size < 64; size++) {
		assert_int_equal(ftruncate(file, size), 0);
		assert_false(name_table_open(file, &names));
	}
	/* Written anew it is whole; every other byte of the header makes it none. */
	assert_null(name_table_write(image, file, NAME_TABLE_MAX));
	for (off_t at = 0; at < 24; at++) {
		char before, other;
		assert_int_equal(pread(file, &before, 1, at), 1);
		other = (char)(before ^ 0x40);
		assert_int_equal(pwrite(file, &other, 1, at), 1);
		assert_false(name_table_open(file, &names));
		assert_int_equal(pwrite(file, &before, 1, at), 1);
	}
	assert_int_equal(pwrite(file, &byte, 1, st.st_size - 1), 1); /* the last name has no end */
	assert_false(name_table_open(file, &names));
	close(file);
	assert_false(name_table_open(-1, &names));
	image_close(image);
}

/* Entries that lead anywhere. */
static void stays_within_the_file(void **state)
{
	struct image *image;
	struct name_table names;
	struct stat st;
	unsigned seed = 1;
	(void)state;
	assert_null(image_open("/proc/self/exe", &image));
	int file = write_table(image);
	assert_int_equal(fstat(file, &st), 0);
	for (int round = 0; round < 2000; round++) {
		char byte = (char)rand_r(&seed);
		off_t at = 24 + rand_r(&seed) % (st.st_size - 25);
		assert_int_equal(pwrite(file, &byte, 1, at), 1);
	}
	assert_true(name_table_open(file, &names));
	for (uint64_t address = 0; address < 0x80000; address += 3) {
		uint64_t start, size;
		const char *name = name_table_find(&names, address, &start, &size);
		if (name)
			assert_true(strlen(name) < (size_t)st.st_size);
	}
	name_table_close(&names);
	close(file);
	image_close(image);
}

/* A program that has more names than anybody wants to keep. */
static void has_a_limit(void **state)
{
	struct image *image;
	struct name_table names;
	struct stat st;
	(void)state;
	assert_true(scratch_run(
		"{ echo .text; printf '.globl _start\\n_start: nop\\n';"
		"  long=$(printf '%050000d' 0);"
		"  for i in $(seq 1100); do"
		"    printf '.type f%s_%d,@function\\nf%s_%d: nop\\n.size f%s_%d,1\\n' $long $i $long $i $long $i;"
		"  done; } >many.s && ${CC:-cc} -nostdlib -static many.s -o many"));
	assert_null(image_open(scratch("many"), &image));
	int file = new_file();
	struct err *e = name_table_write(image, file, NAME_TABLE_MAX);
	assert_non_null(e);
	assert_non_null(strstr(err_text(e), "too many functions"));
	err_free(e);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_false(name_table_open(file, &names));
	close(file);
	image_close(image);
}

/* Of a stripped one there is nothing to keep. */
static void none_is_empty(void **state)
{
	struct image *image;
	struct stat st;
	(void)state;
	scratch_write("none.s", ".globl _start\n_start: nop\n", 26);
	assert_true(scratch_run("${CC:-cc} -nostdlib -static -s none.s -o none"));
	assert_null(image_open(scratch("none"), &image));
	int file = write_table(image);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(file);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_the_symbols_say),
		cmocka_unit_test(pieces),
		cmocka_unit_test(takes_no_damaged_file),
		cmocka_unit_test(stays_within_the_file),
		cmocka_unit_test(has_a_limit),
		cmocka_unit_test(none_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
