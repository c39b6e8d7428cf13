/* SPDX-License-Identifier: Apache-2.0 */
/* Files behind the mappings of processes that live, that end meanwhile, and that are gone. */
#include "scratch.h"

#include "base/err.h"
#include "image/image.h"
#include "process/backing.h"
#include "process/maps.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static pid_t child;
static struct maps maps;

/* Starts a copy of cat and reads its mappings, once it answers. */
static size_t start(void)
{
	const char *program = scratch("copycat");
	int to[2], from[2];
	size_t found = 0;
	char byte = 'x';
	assert_true(scratch_run("cp $(command -v cat) copycat"));
	assert_true(!pipe(to) && !pipe(from));
	child = fork();
	if (!child) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl(program, "copycat", (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	assert_int_equal(write(to[1], &byte, 1), 1);
	assert_int_equal(read(from[0], &byte, 1), 1);
	close(from[0]);
	assert_null(maps_read(child, &maps));
	while (found < maps.count &&
	       (!maps.items[found].executable || !strstr(maps.items[found].path, "/copycat")))
		found++;
	assert_true(found < maps.count);
	return found;
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static bool opens(pid_t pid, size_t index)
{
	struct image *image = NULL;
	struct err *e = backing_open(pid, &maps, index, &image);
	bool good = !e && image_section(image, ".text");
	err_free(e);
	image_close(image);
	return good;
}

static void finds_files_of_the_living(void **state)
{
	size_t index = start();
	uint64_t changed = backing_changed(child, &maps.items[index]);
	(void)state;
	assert_true(opens(child, index));
	assert_true(changed);
	assert_true(scratch_run("rm copycat"));
	maps.items[index].deleted = true;
	assert_true(opens(child, index) || geteuid());
	if (!geteuid()) /* map_files is for root alone */
		assert_int_equal(backing_changed(child, &maps.items[index]), changed);
	end();
	assert_false(opens(child, index));
	assert_int_equal(backing_changed(child, &maps.items[index]), 0);
	maps_free(&maps);
}

static void finds_files_of_the_dead(void **state)
{
	size_t index = start();
	uint64_t changed = backing_changed(child, &maps.items[index]);
	(void)state;
	end();
	assert_true(opens(child, index));
	assert_true(opens(PROCESS_GONE, index));
	assert_int_equal(backing_changed(child, &maps.items[index]), changed);
	assert_int_equal(backing_changed(PROCESS_GONE, &maps.items[index]), changed);
	maps_free(&maps);
}

/* Another file has its name now. */
static void takes_no_other_file(void **state)
{
	size_t index = start();
	(void)state;
	assert_true(scratch_run("cp copycat other && mv other copycat"));
	end();
	assert_false(opens(child, index));
	assert_false(opens(PROCESS_GONE, index));
	assert_int_equal(backing_changed(child, &maps.items[index]), 0);
	maps_free(&maps);
}

/* Nor one that looks the same, as a process can mount it over the path of what it has mapped. */
static void takes_the_mapped_file(void **state)
{
	size_t index = start();
	struct image *image;
	struct stat st;
	(void)state;
	assert_true(scratch_run("cp copycat other && echo >>other && mv other copycat"));
	if (!geteuid()) { /* map_files is for root alone */
		assert_null(backing_open(child, &maps, index, &image));
		assert_int_equal(fstat(image_descriptor(image), &st), 0);
		assert_int_equal(st.st_ino, maps.items[index].inode);
		image_close(image);
	}
	end();
	maps_free(&maps);
}

/* A process can write what it likes to where its vDSO is. */
static void takes_our_own_vdso(void **state)
{
	size_t program = start(), vdso = 0;
	struct image *ours, *image;
	char wanted[2 * BUILD_ID_MAX + 1], id[2 * BUILD_ID_MAX + 1];
	(void)state;
	while (vdso < maps.count && strcmp(maps.items[vdso].path, "[vdso]") != 0)
		vdso++;
	assert_null(backing_open_vdso(&ours));
	image_build_id_hex(ours, wanted);
	assert_true(vdso < maps.count);
	for (size_t i = 0; i <= program; i++) /* here, it looks like another file */
		if (!maps.items[i].offset && strstr(maps.items[i].path, "/copycat")) {
			maps.items[vdso].start = maps.items[i].start;
			maps.items[vdso].end = maps.items[i].end;
		}
	assert_null(backing_open(child, &maps, vdso, &image));
	image_build_id_hex(image, id);
	assert_string_equal(id, wanted);
	image_close(image);
	image_close(ours);
	end();
	maps_free(&maps);
}

/* Where the file can be found later, or that it cannot. */
static void tells_where_files_are(void **state)
{
	size_t index = start();
	char *path = backing_path(child, &maps.items[index]);
	(void)state;
	assert_non_null(path);
	assert_string_equal(path, maps.items[index].path);
	free(path);
	assert_true(scratch_run("cp copycat other && mv other copycat"));
	assert_null(backing_path(child, &maps.items[index])); /* another one has its name */
	maps.items[index].deleted = true;
	assert_null(backing_path(child, &maps.items[index]));
	end();
	assert_null(backing_path(child, &maps.items[index]));
	maps_free(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_files_of_the_living),
		cmocka_unit_test(finds_files_of_the_dead),
		cmocka_unit_test(takes_no_other_file),
		cmocka_unit_test(takes_the_mapped_file),
		cmocka_unit_test(takes_our_own_vdso),
		cmocka_unit_test(tells_where_files_are),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
