/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are made in the background, and lists that are forgotten. */
#include "scratch.h"

#include "base/err.h"
#include "image/name_table.h"
#include "library/internal.h"
#include "process/backing.h"
#include "process/maps.h"
#include "process/registers.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

static struct library *open_library(void)
{
	struct library *l;
	setenv("XDG_CACHE_HOME", scratch("cache"), 1);
	assert_null(library_open(RECIPES_AUTO, true, NULL, &l));
	assert_null(library_set_background(l, false, NULL));
	return l;
}

/* What this process has now, or one with this memory map. */
static struct library_look look_at(struct library *l, pid_t pid, const struct maps *maps)
{
	struct library_look found;
	assert_null(library_look(l, &(struct library_question){.pid = pid, .maps = maps}, &found));
	assert_int_equal(found.state == LIBRARY_LOOK_READY, found.list != NULL);
	return found;
}

static struct library_look look_now(struct library *l)
{
	return look_at(l, getpid(), NULL);
}

/* What this process has, as soon as its tables are there. */
static const struct library_list *look(struct library *l)
{
	const struct library_list *list = NULL;
	for (int i = 0; i < 100 && !list; i++) {
		unsigned builds = library_builds(l);
		struct library_look found = look_now(l);
		list = found.list;
		assert_int_equal(found.builds, list ? 0 : builds);
		while (!list && library_builds(l) == builds)
			library_wait(l, UINT64_MAX / 2);
	}
	assert_non_null(list);
	return list;
}

static size_t count_tables(struct library *l, const struct library_list *list)
{
	size_t count = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct library_module *m = library_module(l, list->modules[i].id);
		count += m && m->state == LIBRARY_READY && m->table.page_count;
	}
	return count;
}

/* Nobody waits for a table. */
static void makes_tables_in_the_background(void **state)
{
	struct library *l = open_library();
	const struct library_list *list = NULL;
	(void)state;
	struct library_look first = look_now(l);
	assert_int_equal(first.state, LIBRARY_LOOK_WAITING);
	assert_true(library_is_building(l));
	unsigned builds = 1;
	for (int i = 0; i < 3 && builds == 1; i++) { /* the cache has nothing, at first */
		struct pollfd built = {library_built_fd(l), POLLIN, 0};
		assert_int_equal(poll(&built, 1, 60000), 1);
		builds = library_builds(l);
	}
	/* What was made between the look and this is worth another look. */
	assert_int_not_equal(builds, first.builds);
	list = look(l);
	assert_true(count_tables(l, list) >= 2); /* of the program and the C library */
	assert_ptr_equal(look(l), list);
	assert_true(
		walk_find_module(&(struct walk_space){library_walk(l, list).modules, list->count},
				 (uint64_t)(uintptr_t)look) != NULL);
	library_close(l);
}

/* However long others take to be made. This program is young, and perhaps large: it is made again for its names. */
static void finds_tables_that_were_made_before(void **state)
{
	struct library *l = open_library();
	(void)state;
	look(l);
	library_close(l);
	l = open_library();
	l->lanes[LIBRARY_SMALL].running = true;
	assert_true(count_tables(l, look(l)) >= 2);
	l->lanes[LIBRARY_SMALL].running = false;
	library_close(l);
}

/* What is not in use is given back, and made again when it is. */
static void forgets_what_is_not_used(void **state)
{
	struct library *l = open_library();
	const struct library_list *list = look(l);
	uint32_t id = list->modules[0].id;
	size_t tables = count_tables(l, list);
	(void)state;
	assert_false(library_has_many(l));
	library_mark_used(list);
	library_forget_unused(l);
	assert_ptr_equal(look(l), list);
	assert_int_equal(library_module(l, id)->state, LIBRARY_READY);
	library_forget_unused(l);
	assert_int_equal(library_module(l, id)->state, LIBRARY_DROPPED);
	assert_int_equal(library_module(l, id)->table.page_count, 0);
	list = look(l);
	assert_int_equal(list->modules[0].id, id); /* it is known by the same number */
	assert_int_equal(count_tables(l, list), tables);
	library_close(l);
}

/* Many processes of the same program, each at addresses of its own. */
static void lists_are_bounded(void **state)
{
	struct library *l = open_library();
	struct maps maps;
	const struct library_list *first = look(l);
	size_t made = 0, sweeps = 0;
	(void)state;
	assert_null(maps_read(getpid(), &maps));
	for (unsigned i = 0; i < 20000; i++) {
		const struct library_list *list;
		for (size_t k = 0; k < maps.count; k++) {
			maps.items[k].start += 4096;
			maps.items[k].end += 4096;
		}
		list = look_at(l, getpid(), &maps).list;
		made += list && list != first;
		if (!library_has_many(l))
			continue;
		library_mark_used(first); /* so that tables stay */
		library_forget_unused(l);
		assert_false(library_has_many(l));
		sweeps++;
	}
	assert_int_equal(made, 20000);
	assert_true(sweeps >= 10);
	maps_free(&maps);
	library_close(l);
}

/* A file of its own, as a program that was just built. */
static const char *build_program(unsigned number)
{
	char name[32];
	snprintf(name, sizeof name, "program-%u", number);
	const char *path = scratch(name);
	char command[1024];
	snprintf(command, sizeof command, "cp /bin/true '%s'", path);
	assert_int_equal(system(command), 0);
	return path;
}

/* What a process has that runs this file alone; NULL as long as its table is being made. */
static const struct library_list *run_program(struct library *l, const char *path)
{
	const struct library_list *list = NULL;
	struct stat st;
	char line[1024];
	assert_int_equal(stat(path, &st), 0);
	int length = snprintf(line, sizeof line, "400000-40c000 r-xp 00000000 %02x:%02x %lu %s\n",
			      major(st.st_dev), minor(st.st_dev), (unsigned long)st.st_ino, path);
	for (int i = 0; i < 100 && !list; i++) {
		struct maps maps;
		unsigned builds = library_builds(l);
		assert_null(maps_parse(line, (size_t)length, &maps));
		list = look_at(l, PROCESS_GONE, &maps).list;
		maps_free(&maps);
		while (!list && library_builds(l) == builds)
			library_wait(l, UINT64_MAX / 2);
	}
	assert_non_null(list);
	assert_int_equal(list->count, 1);
	return list;
}

/* A machine on which programs are built, run and removed for months. Only so many ids are there. */
static void ids_are_given_back(void **state)
{
	struct library *l = open_library();
	uint64_t now = 5000000000u;
	const char *stays = build_program(0);
	const struct library_list *kept = run_program(l, stays);
	uint32_t kept_id = kept->modules[0].id, last = 0;
	(void)state;
	l->module_limit = 20;
	for (unsigned i = 1; i <= 50; i++) {
		const char *path = build_program(i);
		const struct library_list *list = run_program(l, path);
		uint32_t id = list->modules[0].id;
		assert_true(id && id <= 20 && id != kept_id && id != last);
		assert_string_equal(library_module(l, id)->path, path);
		assert_true(library_module(l, id)->table.page_count);
		unlink(path);
		last = id;
		/* It ends at once, but what it did is still on its way for two turns. */
		library_mark_used(kept);
		library_forget_unused(l);
		assert_non_null(library_module(l, id));
		library_end_round(l, now += 1000000000u);
		library_end_round(l, now + 1000000u); /* that is no turn */
		library_mark_used(kept);
		library_forget_unused(l);
		assert_non_null(library_module(l, id));
		assert_string_equal(library_module(l, id)->path, path);
	}
	assert_string_equal(library_module(l, kept_id)->path, stays);
	assert_ptr_equal(run_program(l, stays), kept);
	assert_true(l->module_count <= 20);
	library_close(l);
}

/* Who is named elsewhere keeps its id, though it is in no list. */
static void ids_in_use_are_kept(void **state)
{
	struct library *l = open_library();
	uint64_t now = 5000000000u;
	const char *path = build_program(100);
	uint32_t id = run_program(l, path)->modules[0].id;
	(void)state;
	for (int i = 0; i < 10; i++) {
		library_mark_module_used(l, id);
		library_mark_module_used(l, 0);
		library_mark_module_used(l, 30000);
		library_forget_unused(l);
		library_end_round(l, now += 1000000000u);
	}
	assert_string_equal(library_module(l, id)->path, path);
	for (int i = 0; i < 3; i++) {
		assert_non_null(library_module(l, id));
		library_forget_unused(l);
		library_end_round(l, now += 1000000000u);
	}
	assert_null(library_module(l, id));
	library_close(l);
}

/* Where there are too many at once some have no id; they get one when there are some again. */
static void too_many_at_once(void **state)
{
	struct library *l = open_library();
	uint64_t now = 5000000000u;
	const struct library_list *lists[6];
	const char *paths[6];
	(void)state;
	l->module_limit = 4;
	for (unsigned i = 0; i < 6; i++) {
		paths[i] = build_program(200 + i);
		lists[i] = run_program(l, paths[i]);
		assert_int_equal(lists[i]->modules[0].id, i < 4 ? i + 1 : 0);
	}
	assert_true(l->module_count == 4 && !l->freed);
	for (int turn = 0; turn < 4; turn++) {
		library_mark_used(lists[0]);
		library_forget_unused(l);
		library_end_round(l, now += 1000000000u);
	}
	assert_int_equal(l->freed, 3);
	assert_int_not_equal(run_program(l, paths[5])->modules[0].id, 0);
	assert_int_equal(run_program(l, paths[0])->modules[0].id, 1);
	library_close(l);
}

/* At the end nobody waits for what is not ready: it has no table then. */
static void can_be_hurried(void **state)
{
	struct library *l = open_library();
	const struct library_question hurried = {.pid = getpid(), .unready_too = true};
	struct library_look found;
	unsigned builds = library_builds(l);
	(void)state;
	assert_int_equal(look_now(l).state, LIBRARY_LOOK_WAITING);
	/* One look, or all from now on. */
	assert_null(library_look(l, &hurried, &found));
	assert_non_null(found.list);
	if (library_builds(l) == builds)
		assert_int_equal(look_now(l).state, LIBRARY_LOOK_WAITING);
	library_wait(l, 0);
	assert_int_not_equal(library_builds(l), builds);
	assert_int_equal(look_now(l).state, LIBRARY_LOOK_READY);
	while (library_is_building(l)) /* so that nothing is left running */
		library_builds(l);
	library_close(l);
}

static void write_file(const char *path, time_t written)
{
	char command[1024];
	struct timespec times[2] = {{.tv_sec = written}, {.tv_sec = written}};
	snprintf(command, sizeof command, "cat /bin/true >'%s'", path); /* it stays the same file */
	assert_int_equal(system(command), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A file that is being worked on is asked each time whether it is the same; one that has been as it is for
   long, once a second. */
static void files_are_asked_anew(void **state)
{
	struct library *l = open_library();
	const char *path = build_program(300);
	time_t now = time(NULL);
	const struct library_list *first, *list;
	(void)state;
	write_file(path, now - 10);
	first = run_program(l, path);
	assert_ptr_equal(run_program(l, path), first);
	write_file(path, now - 5);
	list = run_program(l, path);
	assert_int_not_equal(list->modules[0].id, first->modules[0].id);

	write_file(path, now - 80000);
	first = run_program(l, path);
	assert_int_not_equal(list->modules[0].id, first->modules[0].id);
	assert_int_equal(l->unasked_ns, 1000000000);
	l->unasked_ns = UINT64_MAX; /* so that it does not matter how long this takes */
	write_file(path, now - 70000);
	assert_ptr_equal(run_program(l, path), first);
	l->unasked_ns = 0;
	assert_int_not_equal(run_program(l, path)->modules[0].id, first->modules[0].id);
	library_close(l);
}

/* By name and numbers: nothing is opened for that. */
static void knows_what_it_looked_at(void **state)
{
	struct library *l = open_library();
	struct maps maps, own = {0};
	(void)state;
	assert_null(maps_read(getpid(), &maps));
	own.items = calloc(maps.count, sizeof *own.items);
	for (size_t i = 0; i < maps.count; i++)
		if (maps.items[i].executable && strcmp(maps.items[i].path, "[vsyscall]") != 0)
			own.items[own.count++] = maps.items[i];
	assert_true(own.count >= 2);
	assert_false(library_knows(l, &own));
	look(l);
	assert_true(library_knows(l, &own));
	own.items[1].inode++;
	assert_false(library_knows(l, &own));
	own.items[1].inode--;
	/* As it was mapped at first: as a whole, and with what comes behind. */
	struct map first = own.items[0];
	own.items[0].end += 1 << 20;
	assert_true(library_knows(l, &own));
	assert_int_equal(own.items[0].start, first.start);
	assert_int_equal(own.items[0].end, first.end);
	own.items[0].start -= first.offset;
	own.items[0].offset = 0;
	assert_true(library_knows(l, &own));
	assert_int_equal(own.items[0].start, first.start);
	assert_int_equal(own.items[0].offset, first.offset);
	assert_int_equal(own.items[0].end, first.end);
	library_forget_unused(l); /* their tables must be made again */
	assert_false(library_knows(l, &own));
	free(own.items);
	maps_free(&maps);
	library_close(l);
}

/* One whose functions have names, as those of Debian's programs have not. */
static const char *build_named(unsigned number)
{
	if (access(scratch("named"), F_OK))
		assert_true(scratch_run(
			"echo 'int it(void) { return 1; } int main(void) { return it(); }' |"
			" ${CC:-cc} -O0 -x c - -o named"));
	assert_true(scratch_run(scratch_format("cp named program-%u", number)));
	return scratch(scratch_format("program-%u", number));
}

static size_t count_open(const char *what)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		char target[PATH_MAX] = "";
		count += readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0 &&
			 strstr(target, what);
	}
	closedir(folder);
	return count;
}

/* Of programs that may be gone soon the functions are learned, and their files are not kept open. */
static void files_are_not_held(void **state)
{
	struct library *l = open_library();
	const char *path = build_named(399);
	(void)state;
	uint32_t id = run_program(l, path)->modules[0].id;
	struct image *image;
	struct name_table names;
	bool found = false;

	assert_int_equal(count_open("program-399"), 0);
	unlink(path);
	assert_true(name_table_open(library_names(l, id, &image), &names));
	assert_null(image);
	for (uint64_t address = 0, start, size; address < 0x500000 && !found; address++) {
		const char *name = name_table_find(&names, address, &start, &size);
		found = name && !strcmp(name, "it") && start == address;
	}
	assert_true(found);
	name_table_close(&names);
	assert_int_equal(library_names(l, id + 1, &image), -1);
	/* One that has been there for long is left alone. */
	const char *old = build_named(400);
	assert_true(scratch_run("touch -d '2 hours ago' program-400"));
	id = run_program(l, old)->modules[0].id;
	assert_int_equal(library_names(l, id, &image), -1);
	library_close(l);
	assert_int_equal(count_open("/tables/"), 0);
}

/* While its table is made the file is open: that one is used then. */
static void files_that_are_read(void **state)
{
	struct library *l = open_library();
	const char *path = build_named(401);
	struct image *image;
	struct stat st;
	(void)state;
	assert_int_equal(stat(path, &st), 0);
	l->tables = false; /* the lanes have little to do, but nobody looks after them */
	const char *line = scratch_format("400000-40c000 r-xp 00000000 %02x:%02x %lu %s\n",
					  major(st.st_dev), minor(st.st_dev),
					  (unsigned long)st.st_ino, path);
	const struct library_list *list;
	struct maps maps;

	assert_null(maps_parse(line, strlen(line), &maps));
	list = look_at(l, PROCESS_GONE, &maps).list;
	maps_free(&maps);
	assert_null(list);
	assert_int_equal(library_names(l, 1, &image), -1);
	assert_non_null(image);
	assert_int_equal(count_open("program-401"), 1);
	while (library_is_building(l)) {
		library_wait(l, UINT64_MAX / 2);
		library_builds(l);
	}
	assert_true(library_names(l, 1, &image) >= 0); /* also where no tables are made */
	assert_null(image);
	assert_int_equal(count_open("program-401"), 0);
	library_close(l);
}

/* So many at once; those that are asked for stay. */
static void names_are_bounded(void **state)
{
	struct library *l = open_library();
	struct image *image;
	(void)state;
	l->tables = false;
	for (unsigned i = 0; i < 520; i++) {
		const char *path = build_named(1000 + i);
		assert_int_equal(run_program(l, path)->modules[0].id, i + 1);
		unlink(path);
		assert_true(library_names(l, 1, &image) >= 0);
	}
	assert_int_equal(l->names_count, 512);
	assert_int_equal(count_open("/tables/"), 512);
	assert_int_equal(library_names(l, 2, &image), -1);
	assert_true(library_names(l, 520, &image) >= 0);
	uint64_t bytes = 0;
	for (uint32_t id = 1; id <= 520; id++)
		bytes += library_module(l, id)->names >= 0 ? library_module(l, id)->names_size : 0;
	assert_int_equal(bytes, l->names_size);
	library_close(l);
}

/* Without a cache directory they are in memory, and fewer. */
static void names_without_a_cache(void **state)
{
	struct library *l = open_library();
	struct image *image;
	(void)state;
	setenv("XDG_CACHE_HOME", "/proc/none", 1);
	uint32_t id = run_program(l, build_named(402))->modules[0].id;
	assert_true(library_names(l, id, &image) >= 0);
	assert_int_equal(count_open("memfd:culprit-names"), 1);
	assert_true(l->memory_size && !l->names_size);
	names_forget(l, (struct library_module *)library_module(l, id));
	assert_true(!l->memory_size && !l->names_count);
	library_close(l);
}

/* What the kernel shows at the end of each list on x86-64 is no code that was made at run time. */
/* libc looks at return addresses, this program does not. (It has the string that all programs of OCaml have.) */
static void says_what_looks_at_return_addresses(void **state)
{
	struct library *l = open_library();
	unsigned own = 0, other = 0;
	(void)state;
	library_count_returns(l);
	const struct library_list *list = look(l);
	for (uint32_t i = 0; i < list->count; i++) {
		const struct library_module *m = library_module(l, list->modules[i].id);
		uint32_t flags = list->modules[i].flags & ~(uint32_t)WIRE_MODULE_SIGNS;
		own += m && strstr(m->path, "libc.so") && flags == WIRE_MODULE_OWN_RETURNS;
		other += m && strstr(m->path, "test_library") && flags == WIRE_MODULE_OWN_WALKS;
	}
	assert_true(own && other);
	library_close(l);
}

static void the_kernels_page(void **state)
{
	static const char text[] =
		"7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";
	struct library *l = open_library();
	const struct library_list *list = NULL;
	struct maps maps;
	(void)state;
	assert_null(maps_parse(text, sizeof text - 1, &maps));
	list = look_at(l, PROCESS_GONE, &maps).list;
	assert_non_null(list);
	assert_int_equal(list->count, 1);
	assert_true(list->modules[0].flags & WIRE_MODULE_JIT);
	assert_int_equal(list->modules[0].start, 0x7f0000000000);
	maps_free(&maps);
	library_close(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_tables_in_the_background),
		cmocka_unit_test(finds_tables_that_were_made_before),
		cmocka_unit_test(forgets_what_is_not_used),
		cmocka_unit_test(lists_are_bounded),
		cmocka_unit_test(ids_are_given_back),
		cmocka_unit_test(ids_in_use_are_kept),
		cmocka_unit_test(too_many_at_once),
		cmocka_unit_test(can_be_hurried),
		cmocka_unit_test(files_are_asked_anew),
		cmocka_unit_test(knows_what_it_looked_at),
		cmocka_unit_test(files_are_not_held),
		cmocka_unit_test(files_that_are_read),
		cmocka_unit_test(names_are_bounded),
		cmocka_unit_test(names_without_a_cache),
		cmocka_unit_test(the_kernels_page),
		cmocka_unit_test(says_what_looks_at_return_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
