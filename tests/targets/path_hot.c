/* SPDX-License-Identifier: Apache-2.0 */
/* most() takes about 70 % of the time, with code that is inlined; second() about 20 %; jumps() about 10 %, and it cannot be
   counted. rare() takes none. */
#include <stdlib.h>
static volatile unsigned sink;
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
	return x & 1 ? x * 3 + 1 : x >> 1;
}
__attribute__((noinline, noclone)) unsigned most(unsigned n)
{
	unsigned x = n;
	for (unsigned i = 0; i < n; i++)
		sink = x = mix(x + i);
	return x;
}
__attribute__((noinline, noclone)) unsigned second(unsigned n)
{
	unsigned x = 7;
	for (unsigned i = 0; i < n; i++)
		sink = x = mix(x + i);
	return x;
}
__attribute__((noinline, noclone)) unsigned jumps(unsigned n)
{
	unsigned x = 0;
	void **where = malloc(3 * sizeof *where);
	where[0] = &&even, where[1] = &&odd, where[2] = &&end;
again:
	goto *where[n ? n & 1 : 2];
even:
	sink = x += 2;
	n--;
	goto again;
odd:
	sink = x ^= n--;
	goto again;
end:
	free(where);
	return x;
}
__attribute__((noinline, noclone)) unsigned rare(unsigned n)
{
	return n % 5 ? n : 2;
}
int main(void)
{
	unsigned x = 0;
	for (int i = 0; i < 100; i++)
		x += most(700000) + second(200000) + jumps(100000) + rare((unsigned)i);
	return x == 1;
}
