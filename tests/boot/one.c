/* SPDX-License-Identifier: Apache-2.0 */
/* In one, often takes three times what seldom takes. */
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void spin(unsigned long n)
{
	while (n--)
		sink += n;
}

__attribute__((noinline)) void seldom(unsigned long n)
{
	spin(n);
	sink++;
}

__attribute__((noinline)) void often(unsigned long n)
{
	spin(3 * n);
	sink++;
}

int main(void)
{
	nice(19); /* so slow a CPU would have nothing left for culprit's tables */
	for (;;) {
		seldom(100000);
		often(100000);
	}
}
