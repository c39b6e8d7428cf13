/* SPDX-License-Identifier: Apache-2.0 */
/* Against what its authors published: the secret is 00 01 02 ..., and so is the text. */
#include "unit.h"

#include "base/siphash.h"

#include <string.h>

static const struct {
	size_t size;
	uint8_t hash[SIPHASH_SIZE];
} published[] = {
	{0,
	 {0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
	  0x93}},
	{1,
	 {0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
	  0x45}},
	{2,
	 {0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff,
	  0xe4}},
	{15,
	 {0x54, 0x93, 0xe9, 0x99, 0x33, 0xb0, 0xa8, 0x11, 0x7e, 0x08, 0xec, 0x0f, 0x97, 0xcf, 0xc3,
	  0xd9}},
	{63,
	 {0x51, 0x50, 0xd1, 0x77, 0x2f, 0x50, 0x83, 0x4a, 0x50, 0x3e, 0x06, 0x9a, 0x97, 0x3f, 0xbd,
	  0x7c}},
};

static void is_as_published(void **state)
{
	uint8_t text[64], out[SIPHASH_SIZE];
	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)i;
	for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
		for (size_t step = 1; step <= 64; step++) { /* in pieces of any size */
			struct siphash hash;
			siphash_start(&hash, text);
			for (size_t at = 0; at < published[i].size; at += step)
				siphash_add(&hash, text + at,
					    published[i].size - at < step ? published[i].size - at
									  : step);
			siphash_end(&hash, out);
			assert_memory_equal(out, published[i].hash, sizeof out);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_as_published),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
