/* SPDX-License-Identifier: Apache-2.0 */
/* 100 MB to standard output, in pieces of all sizes. */
#include "stress.h"
#include <unistd.h>

int main(int argc, char **argv)
{
	static uint32_t block[65536];
	uint32_t x = 12345;
	long left = scaled(argc, argv, 100) * 1000000l;
	while (left > 0) {
		for (size_t i = 0; i < 65536; i++)
			block[i] = x = x * 1664525 + 1013904223;
		size_t size = 1 + x % sizeof block, done = 0;

		if (size > (size_t)left)
			size = (size_t)left;
		while (done < size) {
			ssize_t n = write(1, (char *)block + done, size - done);
			must(n > 0, "write");
			done += (size_t)n;
		}
		left -= (long)size;
	}
	return 0;
}
