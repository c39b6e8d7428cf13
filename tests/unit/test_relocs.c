/* SPDX-License-Identifier: Apache-2.0 */
/* Relocations come by offset, however the file has them. */
#include "image/relocs.h"

#include "made_image.h"

#define MANY 5000

static struct reloc *read_all(const Elf64_Rela *relas, size_t count, size_t *found)
{
	const struct made_section sections[] = {
		{.name = ".rela.dyn",
		 .bytes = relas,
		 .size = count * sizeof *relas,
		 .type = SHT_RELA},
	};
	struct image *image = made_image(EM_X86_64, 0, sections, 1);
	struct reloc *relocs;
	assert_null(relocs_read(image, &relocs, found));
	image_close(image);
	return relocs;
}

static Elf64_Rela relative(uint64_t offset, uint64_t value)
{
	return (Elf64_Rela){.r_offset = offset,
			    .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
			    .r_addend = (Elf64_Sxword)value};
}

/* Offsets ascend, and what has the same one stays in its order: the value is the place in the file. */
static void assert_sorted(const Elf64_Rela *relas, size_t count)
{
	size_t found;
	struct reloc *relocs = read_all(relas, count, &found);
	bool seen[MANY] = {false};
	assert_int_equal(found, count);
	for (size_t i = 0; i < found; i++) {
		uint64_t place = relocs[i].value;
		assert_true(place < count && !seen[place]);
		seen[place] = true;
		assert_int_equal(relocs[i].offset, relas[place].r_offset);
		if (!i)
			continue;
		assert_true(relocs[i - 1].offset <= relocs[i].offset);
		assert_true(relocs[i - 1].offset < relocs[i].offset || relocs[i - 1].value < place);
	}
	free(relocs);
}

static void every_order_is_sorted(void **state)
{
	static Elf64_Rela relas[MANY];
	static const size_t counts[] = {1, 2, 3, 7, 64, 1000, MANY};
	(void)state;
	for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
		size_t n = counts[c];
		for (size_t i = 0; i < n; i++)
			relas[i] = relative(8 * i, i);
		assert_sorted(relas, n);
		for (size_t i = 0; i < n; i++)
			relas[i] = relative(8 * (n - i), i);
		assert_sorted(relas, n);
		for (size_t i = 0; i < n; i++) /* two runs, one in the other */
			relas[i] = relative(i < n / 2 ? 16 * i : 16 * (i - n / 2) + 8, i);
		assert_sorted(relas, n);
		uint64_t random = 20261118;
		for (size_t i = 0; i < n; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			relas[i] = relative((random >> 40) % n, i);
		}
		assert_sorted(relas, n);
	}
}

static void none_is_no_error(void **state)
{
	size_t found;
	struct reloc *relocs = read_all(NULL, 0, &found);
	(void)state;
	assert_int_equal(found, 0);
	free(relocs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_order_is_sorted),
		cmocka_unit_test(none_is_no_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
