/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cfi_bytes.h"
#include "image/image.h"
#include "recipes/landings.h"

static const struct image_segment code = {.address = 0x1000, .size = 0x1000, .executable = true};

static void read_table(const struct bytes *b, uint64_t sites, struct landings *out)
{
	struct cfi_entry entry = {.start = 0x1000, .end = 0x1100, .lsda = 0x8000};
	uint8_t *copy = malloc(b->size ? b->size : 1);
	assert_non_null(copy);
	memcpy(copy, b->data, b->size);
	*out = (struct landings){.segments = &code, .segment_count = 1, .sites_left = sites};
	landings_read_table(out, &entry, copy, b->size);
	landings_sort(out);
	assert_false(out->out_of_memory);
	free(copy);
}

static void expect_site(const struct landings *landings, size_t i, uint64_t start, uint64_t end,
			uint64_t pad)
{
	assert_true(i < landings->count);
	assert_int_equal(landings->items[i].start, start);
	assert_int_equal(landings->items[i].end, end);
	assert_int_equal(landings->items[i].landing_pad, pad);
}

static void uleb_call_sites(void **state)
{
	struct landings landings;
	struct bytes b = {.size = 0};
	(void)state;
	put(&b, "\xff\x9b\x19\x01\x0d", 5); /* no LPStart, types at 25, uleb, 13 bytes */
	put(&b, "\x40\x04\x80\x01\x01", 5); /* 0x40 + 4 -> 0x80 */
	put(&b, "\x10\x05\x00\x00", 4);     /* no landing pad */
	put(&b, "\x20\x05\x70\x00", 4);     /* out of order */
	put(&b, "\x00\x00\x00\x00", 4);
	read_table(&b, 100, &landings);
	assert_int_equal(landings.count, 2);
	expect_site(&landings, 0, 0x1020, 0x1025, 0x1070);
	expect_site(&landings, 1, 0x1040, 0x1044, 0x1080);
	free(landings.items);
	read_table(&b, 1, &landings);
	assert_int_equal(landings.count, 1);
	free(landings.items);
}

static void pads_of_their_own_base(void **state)
{
	struct landings landings;
	struct bytes b = {.size = 0};
	(void)state;
	put8(&b, 0x1b); /* LPStart from here */
	put32(&b, 0x1800 - 0x8001);
	put8(&b, 0xff); /* no types */
	put8(&b, 0x03); /* udata4 */
	put_uleb(&b, 13);
	put32(&b, 0x10);
	put32(&b, 0x08);
	put32(&b, 0x20);
	put_uleb(&b, 0);
	read_table(&b, 100, &landings);
	assert_int_equal(landings.count, 1);
	expect_site(&landings, 0, 0x1010, 0x1018, 0x1820);
	free(landings.items);
}

static void nonsense_is_left_out(void **state)
{
	struct landings landings;
	struct bytes b = {.size = 0};
	(void)state;
	put(&b, "\xff\xff\x01\x1b", 4);
	put(&b, "\xf0\x01\x20\x20\x00", 5);     /* goes past the procedure */
	put(&b, "\x10\x00\x20\x00", 4);         /* empty */
	put(&b, "\x10\x04\xff\xff\x7f\x00", 6); /* pad is no code */
	put(&b, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x04\x20\x00", 12);
	read_table(&b, 100, &landings);
	assert_int_equal(landings.count, 0);
	free(landings.items);
	for (size_t size = b.size; size--;) {
		b.size = size;
		read_table(&b, 100, &landings);
		assert_int_equal(landings.count, 0);
		free(landings.items);
	}
	b.size = 0;
	put(&b, "\xff\xff\x1b\x04\x10\x04\x20\x00", 8); /* call sites relative to here */
	read_table(&b, 100, &landings);
	assert_int_equal(landings.count, 0);
	free(landings.items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uleb_call_sites),
		cmocka_unit_test(pads_of_their_own_base),
		cmocka_unit_test(nonsense_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
