/* SPDX-License-Identifier: Apache-2.0 */
/* Works in the kernel, below many calls. */
#include <fcntl.h>
#include <unistd.h>

static char block[1 << 16];

__attribute__((noinline)) int reading(int fd)
{
	return read(fd, block, sizeof block) > 0;
}

__attribute__((noinline)) int deeper(int n, int fd)
{
	return n ? deeper(n - 1, fd) + 1 : reading(fd);
}

int main(void)
{
	int fd = open("/dev/zero", O_RDONLY), sum = 0;
	nice(19); /* so slow a CPU would have nothing left for culprit's tables */
	for (;;)
		sum += deeper(20, fd);
	return sum;
}
