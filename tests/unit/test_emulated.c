/* SPDX-License-Identifier: Apache-2.0 */
/* The page to which signal handlers return in an emulator: known by what is in it, and only there. */
#include "library/emulated.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "image/image.h"
#include "process/maps.h"
#include "process/space.h"
#include "recipes/build.h"
#include "recipes/rows.h"
#include "unit.h"
#include "unwind/table.h"

#define PAGE 4096u

static const uint8_t aarch64_code[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
static const uint8_t x86_code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};

/* Memory with inaccessible pages around, so that nothing joins it. */
static uint8_t *make_memory(size_t pages)
{
	uint8_t *all = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	assert_ptr_not_equal(all, MAP_FAILED);
	assert_int_equal(mprotect(all + PAGE, pages * PAGE, PROT_READ | PROT_WRITE), 0);
	return all + PAGE;
}

/* The mapping of the trampoline in this process, as if it were an emulator. */
static size_t find(uint16_t machine, struct map *out)
{
	struct maps maps;
	size_t count = 0;
	assert_null(maps_read(getpid(), &maps));
	assert_null(emulated_maps(getpid(), machine, &maps));
	for (size_t i = 0; i < maps.count; i++)
		if (emulated_is_sigreturn(&maps.items[i])) {
			*out = maps.items[i];
			count++;
		}
	maps_free(&maps);
	return count;
}

/* The table of what is mapped there. */
static const struct recipe *recipe_at(const struct map *map, uint64_t address)
{
	static struct recipe found;
	const struct image_segment *segments;
	const uint8_t key[40] = {0};
	struct image *image;
	struct rows rows;
	struct table table;
	uint64_t bias;
	void *bytes;
	size_t size;
	assert_null(emulated_open_sigreturn(getpid(), map, &image));
	size_t count = image_segments(image, &segments);
	assert_true(space_bias(segments, count, map, &bias));
	rows_init(&rows);
	assert_null(recipes_rows(image, NULL, RECIPES_AUTO, &rows));
	assert_null(recipes_pack(&rows, image_machine(image), RECIPES_AUTO, key, &bytes, &size));
	assert_true(table_open(&table, bytes, size));
	found = *table_find(&table, address - bias);
	rows_free(&rows);
	free(bytes);
	image_close(image);
	return &found;
}

static void check(uint16_t machine, uint16_t other, const uint8_t *code, size_t size)
{
	uint8_t *memory = make_memory(3), *page = memory + PAGE;
	uint64_t at = (uint64_t)(uintptr_t)page;
	struct map map;
	memcpy(page, code, size);
	assert_int_equal(find(machine, &map), 0); /* it may still change */
	assert_int_equal(mprotect(memory, 3 * PAGE, PROT_READ), 0);
	assert_int_equal(find(other, &map), 0);
	assert_int_equal(find(machine, &map), 1);
	assert_true(map.start < at && at - map.start <= 4 && map.end == at + PAGE);
	/* A handler returns to the first instruction: that is looked up a byte before. */
	assert_int_equal(recipe_at(&map, at - 1)->cfa, RECIPE_SIGNAL);
	assert_int_equal(recipe_at(&map, at)->cfa, RECIPE_SIGNAL);
	assert_int_equal(recipe_at(&map, at + size - 1)->cfa, RECIPE_SIGNAL);
	assert_int_not_equal(recipe_at(&map, at + size + 64)->cfa, RECIPE_SIGNAL);
	/* With anything else in the page, or not at its beginning, it is somebody's data. */
	assert_int_equal(mprotect(memory, 3 * PAGE, PROT_READ | PROT_WRITE), 0);
	page[PAGE - 1] = 1;
	assert_int_equal(mprotect(memory, 3 * PAGE, PROT_READ), 0);
	assert_int_equal(find(machine, &map), 0);
	assert_int_equal(mprotect(memory, 3 * PAGE, PROT_READ | PROT_WRITE), 0);
	memset(page, 0, PAGE);
	memcpy(page + 64, code, size);
	assert_int_equal(mprotect(memory, 3 * PAGE, PROT_READ), 0);
	assert_int_equal(find(machine, &map), 0);
	munmap(memory - PAGE, 5 * PAGE);
}

static void aarch64_page(void **state)
{
	(void)state;
	check(EM_AARCH64, EM_X86_64, aarch64_code, sizeof aarch64_code);
}

static void x86_page(void **state)
{
	(void)state;
	check(EM_X86_64, EM_AARCH64, x86_code, sizeof x86_code);
}

/* Gone since it was seen. */
static void cannot_be_read(void **state)
{
	const struct map map = {.start = 0x1000,
				.end = 0x2000,
				.inode = EM_AARCH64,
				.executable = true,
				.path = "[sigreturn]"};
	struct image *image;
	struct err *e = emulated_open_sigreturn(getpid(), &map, &image);
	(void)state;
	assert_non_null(e);
	assert_null(image);
	err_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aarch64_page),
		cmocka_unit_test(x86_page),
		cmocka_unit_test(cannot_be_read),
	};
	return cmocka_run_group_tests_name("emulated", tests, NULL, NULL);
}
