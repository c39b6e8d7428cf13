/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A utility function that is right for nearly all of its callers: order() is quick for the few entries that menus and
 * folders have. One caller has many. With -DMENDED, order() looks at how many there are.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 32

#define APART __attribute__((noinline, noclone))

static uint32_t state = 1;

static uint32_t any(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

#ifdef MENDED
static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}
#endif

APART void order(uint32_t *keys, uint32_t count)
{
#ifdef MENDED
	if (count > FEW) {
		qsort(keys, count, sizeof *keys, compare);
		return;
	}
#endif
	for (uint32_t i = 1; i < count; i++) {
		uint32_t key = keys[i], k = i;
		for (; k && keys[k - 1] > key; k--)
			keys[k] = keys[k - 1];
		keys[k] = key;
	}
}

static uint32_t keys[4096];

static uint32_t fill(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		keys[i] = any(1000000);
	return count;
}

APART uint32_t show_menu(void)
{
	order(keys, fill(4 + any(8)));
	return keys[0];
}

APART uint32_t list_folder(void)
{
	order(keys, fill(10 + any(20)));
	return keys[0];
}

APART uint32_t merge_logs(void)
{
	order(keys, fill(200 + any(1800)));
	return keys[0];
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	uint32_t sum = 0;
	for (int i = 0; i < rounds; i++) {
		for (int k = 0; k < 100; k++)
			sum += show_menu();
		for (int k = 0; k < 20; k++)
			sum += list_folder();
		sum += merge_logs();
	}
	printf("%u\n", sum);
	return 0;
}
