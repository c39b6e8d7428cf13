/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that a process of their own makes: this program, or scripts that do not do what they should. */
#include "scratch.h"

#include "base/err.h"
#include "image/identity.h"
#include "image/image.h"
#include "image/name_table.h"
#include "image/symbols.h"
#include "library/internal.h"
#include "process/maps.h"
#include "process/registers.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

static struct image *image;

/* The C library: large enough that it is not made here. */
static int open_image(void **state)
{
	struct maps maps;
	(void)state;
	assert_null(maps_read(getpid(), &maps));
	for (size_t i = 0; i < maps.count && !image; i++)
		if (strstr(maps.items[i].path, "/libc.so.6"))
			assert_null(image_open(maps.items[i].path, &image));
	maps_free(&maps);
	assert_non_null(image);
	return 0;
}

static int close_image(void **state)
{
	(void)state;
	image_close(image);
	return 0;
}

/* A cache that is empty. */
static void new_cache(void)
{
	static unsigned number;
	setenv("XDG_CACHE_HOME", scratch(scratch_format("cache-%u", number++)), 1);
}

/* A program that counts how often it is started, and then does this. */
static const char *script(const char *text)
{
	const char *whole = scratch_format("#!/bin/sh\necho \"$2\" >>'%s'\n%s\n", scratch("calls"),
					   text);
	unlink(scratch("calls"));
	scratch_write("script", whole, strlen(whole));
	assert_int_equal(chmod(scratch("script"), 0700), 0);
	return scratch("script");
}

/* The modes that it was started with, one after the other. */
static const char *calls(void)
{
	size_t size, used = 0;
	char *text = (char *)scratch_read("calls", &size);
	const char *out;
	for (size_t i = 0; i < size; i++)
		if (text[i] != '\n')
			text[used++] = text[i];
	out = scratch_format("%.*s", (int)used, text);
	free(text);
	return out;
}

static void make_with(const char *program, int names, struct module_table *table,
		      struct maker_report *report)
{
	struct maker maker = {program, eventfd(0, EFD_CLOEXEC)};
	maker_table(&maker, image, RECIPES_AUTO, names, table, report);
	close(maker.stop);
}

static void make(const char *program, struct module_table *table, struct maker_report *report)
{
	make_with(program, -1, table, report);
}

static void assert_same_as_here(const struct module_table *table)
{
	struct module_table here;
	new_cache();
	assert_null(cache_table(image, RECIPES_AUTO, &here));
	assert_int_equal(table->size, here.size);
	assert_memory_equal(table->bytes, here.bytes, here.size);
	assert_int_equal(table->table.row_count, here.table.row_count);
	module_table_free(&here);
}

static void makes_them_apart(void **state)
{
	struct module_table table, again;
	struct maker_report report;
	(void)state;
	new_cache();
	make("/proc/self/exe", &table, &report);
	assert_null(report.reason);
	assert_true(table.mapped);
	assert_true(report.cpu_ns > 0 && report.memory > 1000000);
	make("/nowhere", &again, &report); /* it is in the cache now */
	assert_null(report.reason);
	assert_int_equal(again.size, table.size);
	assert_int_equal(report.cpu_ns, 0);
	module_table_free(&again);
	assert_same_as_here(&table);
	module_table_free(&table);
}

/* A file that others may write to is copied: what is made is what was looked at. */
static void makes_those_of_others(void **state)
{
	struct image *kept = image;
	struct module_table table, again;
	struct maker_report report;
	(void)state;
	assert_int_equal(system(scratch_format("cp '%s' '%s' && chmod 666 '%s'", image_path(image),
					       scratch("others"), scratch("others"))),
			 0);
	new_cache();
	assert_null(image_open(scratch("others"), &image));
	make("/proc/self/exe", &table, &report);
	assert_null(report.reason);
	assert_true(table.mapped && report.cpu_ns > 0);
	make("/nowhere", &again, &report);
	assert_null(report.reason);
	assert_int_equal(again.size, table.size);
	module_table_free(&again);
	module_table_free(&table);
	image_close(image);
	image = kept;
	assert_false(
		maker_find_cached(image, RECIPES_AUTO, &table)); /* the real one has none by that */
}

/* The functions of the file come with it, also where the table is in the cache. */
static void names_come_with_it(void **state)
{
	const struct symbol *all;
	struct symbols *symbols;
	uint64_t start, size;
	(void)state;
	new_cache();
	assert_null(symbols_read(image, NULL, &symbols));
	assert_true(symbols_all(symbols, &all) > 1000);
	for (int i = 0; i < 2; i++) {
		struct module_table table;
		struct maker_report report;
		struct name_table names;
		bool in_memory;
		int file = name_table_file(&in_memory);
		assert_true(file >= 0 && !in_memory);
		make_with("/proc/self/exe", file, &table, &report);
		assert_null(report.reason);
		assert_true(table.mapped);
		assert_true(report.cpu_ns > 0); /* for the names */
		assert_true(name_table_open(file, &names));
		assert_non_null(name_table_find(&names, all[500].address, &start, &size));
		assert_int_equal(start, all[500].address);
		name_table_close(&names);
		close(file);
		module_table_free(&table);
	}
	symbols_free(symbols);
}

/* A small file is not made here where it only looks small. */
static void small_bombs_go_apart(void **state)
{
	struct image *libc = image;
	(void)state;
	scratch_compile("small", "int main(void) { return 0; }", "-O1");
	if (!scratch_run("{ head -c 2000000 /dev/zero; head -c 20000 /dev/urandom; } >bomb && "
			 "xz -f bomb && objcopy --add-section .gnu_debugdata=bomb.xz small"))
		skip();
	for (int i = 0; i < 2; i++) {
		struct module_table table;
		struct maker_report report;
		struct name_table names;
		bool in_memory;
		int file = name_table_file(&in_memory);
		new_cache();
		assert_null(image_open(scratch("small"), &image));
		image_bound(image, i ? 1 << 20 : 4 << 20);
		make_with("/proc/self/exe", file, &table, &report);
		assert_null(report.reason);
		assert_non_null(table.bytes);
		assert_int_equal(report.cpu_ns > 0, i == 1 || !identity_is_believed(image));
		assert_true(name_table_open(file, &names));
		name_table_close(&names);
		close(file);
		module_table_free(&table);
		image_close(image);
	}
	image = libc;
}

/* However small: what others could have written is not read here, be it in a file or in a process's memory. */
static void small_ones_of_others_go_apart(void **state)
{
	struct image *libc = image;
	(void)state;
	scratch_compile("little", "int main(void) { return 0; }", "-O1");
	assert_true(scratch_run("chmod 666 little"));
	for (int i = 0; i < 2; i++) {
		struct module_table table;
		struct maker_report report;
		size_t size;
		uint8_t *bytes = scratch_read("little", &size);
		new_cache();
		assert_null(i ? image_open_memory(bytes, size, "memory", &image)
			      : image_open(scratch("little"), &image));
		make("/proc/self/exe", &table, &report);
		assert_null(report.reason);
		assert_non_null(table.bytes);
		assert_true(report.cpu_ns > 0);
		module_table_free(&table);
		image_close(image);
		free(bytes);
	}
	image = libc;
}

static void needs_no_cache(void **state)
{
	char *home = strdup(getenv("HOME") ? getenv("HOME") : "/");
	struct module_table table;
	struct maker_report report;
	(void)state;
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	make("/proc/self/exe", &table, &report);
	setenv("HOME", home, 1);
	free(home);
	assert_null(report.reason);
	assert_true(table.mapped && report.cpu_ns > 0);
	assert_same_as_here(&table);
	module_table_free(&table);
}

/* Whatever becomes of the process, there is a sentence about it. */
static void survives_its_death(void **state)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{"kill -KILL $$", "ended by signal 9"},
		{"exit 3", "ended with status 3"},
		{"echo nonsense >&4; exit 0", "answers nonsense"},
		{"exec 4>&-; exec sleep 1000", "ended by signal 9"}, /* by us */
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct module_table table;
		struct maker_report report;
		new_cache();
		make(script(cases[i].text), &table, &report);
		assert_null(table.bytes);
		assert_non_null(strstr(report.reason, cases[i].reason));
		assert_non_null(strstr(report.reason, "libc.so.6"));
		assert_true(report.died);
		assert_string_equal(calls(), "01"); /* as wanted, and the simpler one */
		free(report.reason);
	}
}

static void cannot_be_started(void **state)
{
	struct module_table table;
	struct maker_report report;
	(void)state;
	new_cache();
	make("/nowhere/culprit", &table, &report);
	assert_null(table.bytes);
	assert_non_null(strstr(report.reason, "cannot start '/nowhere/culprit'"));
	assert_true(report.died);
	free(report.reason);
}

/* Where the whole work fails, what the file says of itself is used. */
static void falls_back(void **state)
{
	char self[PATH_MAX] = "";
	struct module_table table, simple;
	struct maker_report report;
	(void)state;
	new_cache();
	assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	make(script(scratch_format("[ \"$2\" = 0 ] && kill -SEGV $$\nexec '%s' \"$@\"", self)),
	     &table, &report);
	assert_non_null(table.bytes);
	assert_non_null(strstr(report.reason, "signal 11"));
	assert_string_equal(calls(), "01");
	assert_null(cache_table(image, RECIPES_CFI, &simple));
	assert_int_equal(table.size, simple.size);
	assert_memory_equal(table.bytes, simple.bytes, simple.size);
	module_table_free(&simple);
	module_table_free(&table);
	free(report.reason);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct library *open_library(const char *program)
{
	struct library *l;
	new_cache();
	assert_null(library_open(RECIPES_AUTO, true, NULL, &l));
	assert_null(library_set_background(l, true, program));
	return l;
}

static const struct library_list *look_now(struct library *l)
{
	struct library_look found;
	assert_null(library_look(l, &(struct library_question){.pid = getpid()}, &found));
	return found.list;
}

static const struct library_list *look(struct library *l)
{
	const struct library_list *list = NULL;
	for (int i = 0; i < 100 && !list; i++) {
		list = look_now(l);
		while (!list && library_is_building(l)) {
			library_wait(l, UINT64_MAX / 2);
			library_builds(l);
		}
	}
	assert_non_null(list);
	return list;
}

static struct library_module *find_libc(struct library *l)
{
	for (uint32_t id = 1; library_module(l, id); id++)
		if (strstr(library_module(l, id)->path, "/libc.so.6"))
			return (struct library_module *)library_module(l, id);
	fail_msg("the C library is not there");
	return NULL;
}

/* A module whose table could not be made is tried again later, a few times. */
static void tries_again(void **state)
{
	struct library *l = open_library(
		script("case $3 in *libc.so.6) [ -e ${0%/*}/good ] || exit 1 ;; esac\n"
		       "exec /proc/$PPID/exe \"$@\""));
	(void)state;
	for (unsigned tries = 1; tries <= 3; tries++) {
		look(l);
		struct library_module *m = find_libc(l);
		assert_int_equal(m->state, LIBRARY_READY);
		assert_int_equal(m->table.page_count, 0);
		assert_non_null(strstr(m->problem, "status 1"));
		assert_int_equal(m->tries, tries);
		assert_int_equal(!m->again_ns, tries == 3);
		look(l);
		assert_int_equal(m->tries, tries); /* it is not time yet */
		if (tries < 3)
			assert_true(m->again_ns > now_ns() + 30000000000u);
		m->again_ns = tries < 3 ? 1 : 0;
	}
	struct library_account making = library_take_account(l);
	assert_int_equal(making.failed, 3);
	assert_non_null(strstr(making.reason, "status 1"));
	assert_int_equal(library_take_account(l).failed, 0);
	/* Had it been tried once more, it would have gone well. */
	scratch_write("good", "", 0);
	struct library_module *m = find_libc(l);
	m->again_ns = 1;
	look(l);
	assert_true(m->table.page_count > 0);
	assert_null(m->problem);
	library_close(l);
}

/* Nobody waits for it in the end. */
static void ends_with_the_library(void **state)
{
	struct library *l = open_library(script("exec sleep 1000"));
	uint64_t start = now_ns();
	(void)state;
	assert_null(look_now(l));
	while (access(scratch("calls"), F_OK) && now_ns() - start < 20000000000u)
		usleep(1000);
	assert_true(library_is_building(l));
	library_close(l);
	assert_true(now_ns() - start < 30000000000u);
}

int main(int argc, char **argv)
{
	if (argc == MAKER_ARGUMENTS + 1 && !strcmp(argv[1], MAKER_COMMAND))
		return maker_main(argc - 1, argv + 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_them_apart),
		cmocka_unit_test(names_come_with_it),
		cmocka_unit_test(small_bombs_go_apart),
		cmocka_unit_test(small_ones_of_others_go_apart),
		cmocka_unit_test(makes_those_of_others),
		cmocka_unit_test(needs_no_cache),
		cmocka_unit_test(survives_its_death),
		cmocka_unit_test(cannot_be_started),
		cmocka_unit_test(falls_back),
		cmocka_unit_test(tries_again),
		cmocka_unit_test(ends_with_the_library),
	};
	return cmocka_run_group_tests(tests, open_image, close_image);
}
