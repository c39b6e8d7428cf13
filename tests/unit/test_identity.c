/* SPDX-License-Identifier: Apache-2.0 */
/* What files are called in the cache, and that nobody gets another's table by that. */
#include "scratch.h"

#include "base/buf.h"
#include "base/err.h"
#include "image/identity.h"
#include "image/image.h"
#include "recipes/cache.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void new_cache(void)
{
	static unsigned number;
	setenv("XDG_CACHE_HOME", scratch(scratch_format("cache-%u", number++)), 1);
}

/* ---- whom we believe ---- */

static void believes_owners(void **state)
{
	const struct identity_facts good = {.owner = 1000,
					    .mode = S_IFREG | 0755,
					    .file_system = EXT4_SUPER_MAGIC,
					    .here = true};
	struct identity_facts f = good;
	(void)state;
	assert_true(identity_believes(&f, 1000));
	assert_false(identity_believes(&f, 1001));
	assert_false(identity_believes(&f, 0)); /* root does not believe others */
	f.owner = 0;
	assert_true(identity_believes(&f, 0));
	assert_true(identity_believes(&f, 1000)); /* but all believe root */
	for (mode_t bit = 1; bit <= 0400; bit <<= 1) {
		f = good;
		f.mode = S_IFREG | 0700 | bit;
		assert_int_equal(identity_believes(&f, 1000), bit != S_IWGRP && bit != S_IWOTH);
	}
	f = good;
	f.mode = S_IFSOCK | 0755;
	assert_false(identity_believes(&f, 1000));
}

static void believes_places(void **state)
{
	const struct identity_facts good = {
		.owner = 0, .mode = S_IFREG | 0755, .file_system = EXT4_SUPER_MAGIC, .here = true};
	struct identity_facts f = good;
	(void)state;
	f.file_system = FUSE_SUPER_MAGIC;
	assert_false(identity_believes(&f, 0));
	f = good;
	f.nosuid = true;
	assert_false(identity_believes(&f, 0));
	f = good;
	f.here = false; /* a container's */
	assert_false(identity_believes(&f, 0));
}

/* ---- files ---- */

/* Two programs that are not the same, one with the other's build-id. */
static int compile(void **state)
{
	static const char *const id = "-Wl,--build-id=0x00112233445566778899aabbccddeeff00112233";
	const char *cc = getenv("CC") ? getenv("CC") : "cc";
	(void)state;
	scratch_write("real.c", "int f(int x) { return x + 1; } int main(void) { return f(-1); }",
		      strlen("int f(int x) { return x + 1; } int main(void) { return f(-1); }"));
	scratch_write("forged.c", "int main(void) { volatile int x[99] = {0}; return x[3]; }",
		      strlen("int main(void) { volatile int x[99] = {0}; return x[3]; }"));
	umask(022);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "forged" : "real";
		assert_int_equal(
			system(scratch_format("%s -O0 %s -o '%s' '%s'", cc, id, scratch(name),
					      scratch(scratch_format("%s.c", name)))),
			0);
	}
	return 0;
}

static struct image *open_it(const char *name)
{
	struct image *image;
	assert_null(image_open(scratch(name), &image));
	return image;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->kind == b->kind && a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static struct identity identity_of_name(const char *name)
{
	struct image *image = open_it(name);
	struct identity id = identity_of(image, false);
	image_close(image);
	return id;
}

static void names_them(void **state)
{
	struct buf text = {0};
	struct identity real, forged, copied;
	struct image *image;
	(void)state;
	new_cache();
	real = identity_of_name("real");
	assert_int_equal(real.kind, IDENTITY_BUILD_ID);
	identity_name(&real, &text);
	assert_string_equal(buf_text(&text), "00112233445566778899aabbccddeeff00112233");
	chmod(scratch("forged"), 0757);
	forged = identity_of_name("forged");
	assert_int_equal(forged.kind, IDENTITY_CONTENTS);
	buf_clear(&text);
	identity_name(&forged, &text);
	assert_non_null(strstr(buf_text(&text), "-contents"));
	buf_free(&text);
	/* A copy has the same, whatever it is called. */
	assert_int_equal(
		system(scratch_format("cp -p '%s' '%s'", scratch("forged"), scratch("again"))), 0);
	copied = identity_of_name("again");
	assert_true(is_same(&copied, &forged));
	/* As a file it has not. */
	image = open_it("again");
	copied = identity_of_file(image, NULL);
	image_close(image);
	image = open_it("forged");
	forged = identity_of_file(image, NULL);
	image_close(image);
	assert_int_equal(forged.kind, IDENTITY_FILE);
	assert_int_equal(copied.kind, IDENTITY_FILE);
	assert_false(is_same(&copied, &forged));
}

static void believes_no_memory(void **state)
{
	struct image *file = open_it("real"), *image;
	size_t size;
	uint8_t *bytes = scratch_read("real", &size);
	struct identity id;
	(void)state;
	assert_true(identity_is_believed(file));
	assert_null(image_open_memory(bytes, size, "real", &image));
	assert_false(identity_is_believed(image));
	id = identity_of(image, true);
	assert_int_equal(id.kind, IDENTITY_CONTENTS);
	image_close(image);
	image_close(file);
	free(bytes);
	/* Nor what is nowhere any more. */
	assert_int_equal(
		system(scratch_format("cp -p '%s' '%s'", scratch("real"), scratch("gone"))), 0);
	image = open_it("gone");
	assert_true(identity_is_believed(image));
	unlink(scratch("gone"));
	assert_false(identity_is_believed(image));
	image_close(image);
}

static void has_one_secret(void **state)
{
	struct identity a, b;
	struct stat st;
	const char *path;
	(void)state;
	chmod(scratch("forged"), 0757);
	new_cache();
	a = identity_of_name("forged");
	path = scratch_format("%s/culprit/secret", getenv("XDG_CACHE_HOME"));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_size, 16);
	b = identity_of_name("forged");
	assert_true(is_same(&a, &b));
	new_cache();
	b = identity_of_name("forged");
	assert_int_equal(b.kind, IDENTITY_CONTENTS);
	assert_false(is_same(&a, &b));
	chmod(scratch_format("%s/culprit/secret", getenv("XDG_CACHE_HOME")),
	      0644); /* others know it */
	b = identity_of_name("forged");
	assert_int_equal(b.kind, IDENTITY_NONE);
}

/* ---- tables ---- */

static bool same_table(const struct module_table *a, const struct module_table *b)
{
	size_t head = sizeof(struct table_header); /* which has the key */
	return a->size == b->size &&
	       !memcmp((char *)a->bytes + head, (char *)b->bytes + head, a->size - head);
}

static void table_of(struct image *image, struct module_table *out)
{
	assert_null(cache_table(image, RECIPES_AUTO, out));
	assert_true(out->mapped);
}

static void keeps_them_apart(void **state)
{
	struct image *real = open_it("real"), *forged;
	struct module_table alone, first, second;
	(void)state;
	chmod(scratch("forged"), 0757);
	forged = open_it("forged");
	new_cache();
	table_of(real, &alone);
	new_cache();
	table_of(forged, &first);
	table_of(real, &second);
	assert_true(same_table(&alone, &second));
	assert_false(same_table(&alone, &first));
	module_table_free(&first);
	assert_true(cache_find(forged, RECIPES_AUTO, true, &first)); /* it has its own */
	assert_false(same_table(&first, &second));
	module_table_free(&first);
	module_table_free(&second);
	module_table_free(&alone);
	image_close(real);
	image_close(forged);
}

/* Its owner shows one thing to the hash and another one to whoever makes the table. */
static void is_made_of_what_was_hashed(void **state)
{
	struct module_table shown, made;
	struct cache_job *job;
	struct image *image;
	struct identity before;
	size_t size;
	uint8_t *bytes = scratch_read("forged", &size);
	int fd = open(scratch("shifty"), O_RDWR | O_CREAT | O_TRUNC, 0777);
	(void)state;
	chmod(scratch("real"), 0757);
	new_cache();
	image = open_it("real");
	table_of(image, &shown);
	image_close(image);
	new_cache();
	assert_int_equal(
		system(scratch_format("cat '%s' >'%s'", scratch("real"), scratch("shifty"))), 0);
	fchmod(fd, 0757);
	image = open_it("shifty");
	before = identity_of_name("shifty");
	assert_null(cache_begin(image, RECIPES_AUTO, &made, &job));
	assert_null(made.bytes);
	assert_int_equal(pwrite(fd, bytes, size, 0), (ssize_t)size);
	{
		int table;

		assert_null(cache_make(cache_image(job), RECIPES_AUTO, cache_debug(job), &table));
		assert_true(cache_adopt(job, table, &made));
		close(table);
	}
	cache_end(job);
	image_close(image);
	assert_true(same_table(&made, &shown));
	module_table_free(&made);
	image = open_it("real"); /* what it was a copy of */
	{
		struct identity id = identity_of(image, false);

		assert_true(is_same(&id, &before));
	}
	assert_true(cache_find(image, RECIPES_AUTO, true, &made));
	assert_true(same_table(&made, &shown));
	module_table_free(&made);
	module_table_free(&shown);
	image_close(image);
	chmod(scratch("real"), 0755);
	close(fd);
	free(bytes);
}

/* Whoever makes tables cannot change one that was taken. */
static void takes_what_is_sealed(void **state)
{
	struct image *image = open_it("real");
	struct module_table made;
	struct cache_job *job;
	char buffer[4096];
	int table, open_still = memfd_create("table", MFD_CLOEXEC);
	ssize_t got;
	(void)state;
	new_cache();
	assert_null(cache_begin(image, RECIPES_AUTO, &made, &job));
	assert_null(cache_make(cache_image(job), RECIPES_AUTO, cache_debug(job), &table));
	for (off_t at = 0; (got = pread(table, buffer, sizeof buffer, at)) > 0; at += got)
		assert_int_equal(pwrite(open_still, buffer, (size_t)got, at), got);
	assert_false(cache_adopt(job, open_still, &made));
	assert_false(cache_find(image, RECIPES_AUTO, false, &made));
	assert_true(cache_adopt(job, table, &made));
	module_table_free(&made);
	assert_true(cache_find(image, RECIPES_AUTO, false, &made));
	module_table_free(&made);
	cache_end(job);
	close(table);
	close(open_still);
	image_close(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(believes_owners),
		cmocka_unit_test(believes_places),
		cmocka_unit_test(names_them),
		cmocka_unit_test(believes_no_memory),
		cmocka_unit_test(has_one_secret),
		cmocka_unit_test(keeps_them_apart),
		cmocka_unit_test(is_made_of_what_was_hashed),
		cmocka_unit_test(takes_what_is_sealed),
	};
	return cmocka_run_group_tests(tests, compile, NULL);
}
